/* SPDX-License-Identifier: Apache-2.0 */
/* reading: what the readers of viewers' files share: texts, frames that have a file and a line, names of threads. */
#pragma once
#include "codec/json_read.h"
#include "importer/importer.h"

struct reading {
	struct importer *importer;
	struct json_reader r;
	struct buffer key, text; /* scratch */
};

#define READING_TEXT_BYTES ((size_t)1 << 20)
#define READING_OF(importer_)                                                                                         \
	{                                                                                                             \
		.importer = (importer_), .r = json_reader_of((importer_)->bytes, (importer_)->size),                  \
		.key = BUFFER_INIT(READING_TEXT_BYTES), .text = BUFFER_INIT(READING_TEXT_BYTES),                      \
	}

void reading_done(struct reading *in);
static inline bool reading_is_key(const struct reading *in, const char *key)
{
	return !strcmp(in->key.data, key);
}
/* True: an error of the text or of a buffer is waiting for reading_verdict. */
static inline bool reading_failed(const struct reading *in)
{
	return in->r.bad || in->key.err || in->text.err;
}
/* 0; -EBADMSG with the position: "bad FORMAT at byte ..."; -EFBIG; -ENOMEM. */
MUST_CHECK int reading_verdict(const struct reading *in, const char *format);
/* A string of the profile; "" for null. Records errors. */
uint32_t reading_string(struct reading *in);
/* A whole number up to INT32_MAX; one below 0 and null are 0. */
uint32_t reading_line(struct reading *in);
/* Goes to a place that was kept. */
static inline void reading_go(struct reading *in, struct json_reader place)
{
	const char *bad = in->r.bad;

	in->r = place;
	in->r.bad = bad;
}

struct value_text {
	const char *type, *unit;
};
/* Sets the profile's kinds of values, all of them sums; the first is shown. 0 or -ENOMEM. */
MUST_CHECK int reading_set_types(struct importer *importer, const struct value_text *kinds, uint32_t nr);

struct frame_text {
	uint32_t name, file; /* strings */
	uint32_t path;       /* string: of the mapped file; "": none */
	uint32_t first_line, line;
	enum frame_kind kind; /* FRAME_NATIVE: it is told by the file, or by the name */
};
/* The location of such a frame. PROFILE_NONE: no memory. */
uint32_t reading_location(struct importer *importer, const struct frame_text *frame);
/* Fills in name and ids of a thread from "name (pid/tid)", as sonde writes it; else the whole text is the name. 0 or -ENOMEM. */
MUST_CHECK int reading_thread(struct importer *importer, const char *text, size_t size, struct profile_sample *sample);
