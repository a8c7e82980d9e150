/* SPDX-License-Identifier: Apache-2.0 */
/* name_answers: the names of many addresses as bytes, from the process that reads files to the one that may not. Whoever wrote the bytes
 * may be hostile: all is checked when they are opened. Layout: a header, for each address the number of its names and its extent, the
 * names, the texts. One thread. */
#pragma once
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/u64_map.h"
#include "symbolize/symbolizer.h"

#define NAME_ANSWERS_MAX 64 /* names of one address: inlined functions, and the one they were inlined into */

struct name_writer {
	struct buffer answers, names, texts; /* struct written_answer; struct written_name; NUL-terminated */
	struct u64_map text_of;             /* a text's address -> its offset in texts */
	/* The caller sets these before _end: */
	uint32_t nr_refused;                /* lines or records of the file that made no sense; unusable fetched debug files */
	uint32_t nr_missing;                /* parts of its debug info in other files (.dwo) that were not found */
	uint32_t nr_packed;                 /* files whose lines cannot be decompressed */
	uint32_t nr_cut;                    /* units of its debug info of which a part was left out */
};

void name_writer_init(struct name_writer *writer);
void name_writer_done(struct name_writer *writer);
/* Adds the names of the next address, innermost first; none when nr is 0. They are those of all addresses of the extent. Their texts must
 * stay valid until _end. */
void name_writer_add(struct name_writer *writer, const struct symbol_extent *extent, const struct symbol_name *names, uint32_t nr);
/* Appends all names added. 0, -ENOMEM or -EFBIG. */
MUST_CHECK int name_writer_end(struct name_writer *writer, struct buffer *to);

struct name_answers {
	const void *names, *answers;
	const char *texts;
	uint32_t nr_addresses, next, next_name;
	uint32_t nr_refused, nr_missing, nr_packed, nr_cut;
};
/* Opens the answers to a request of that many addresses. Borrows the bytes. 0 or -EBADMSG. */
MUST_CHECK int name_answers_open(const void *bytes, size_t size, uint32_t nr_addresses, struct name_answers *ret_answers);
/* Returns the names of the next address, borrowed from the bytes, and how many there are, up to max; omits the outermost. May be called
 * nr_addresses times. *ret_extent: whatever was written. */
uint32_t name_answers_next(struct name_answers *answers, struct symbol_extent *ret_extent, struct symbol_name *names, uint32_t max);
