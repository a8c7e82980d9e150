/* SPDX-License-Identifier: Apache-2.0 */
/* table_image: an unwind table as bytes, to be kept on disk: with its rules by value, what it was made from, and a checksum. The layout is
 * this machine's and this build's: an image of another is refused. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "unwind/rule_table.h"
#include "unwind/unwind_table.h"

/* What tells the ELF file from all others, and from what it was before. Zeroed before it is filled. */
struct table_key {
	uint64_t device, inode, size;
	int64_t modified_s, modified_ns, changed_s, changed_ns;
	struct build_id build_id;
	uint8_t pad[7];
};

#define TABLE_IMAGE_BYTES_MAX (64u << 20)

/* Appends the image of a table whose rules are all in `rules`. 0; -ENOMEM; -EFBIG. */
MUST_CHECK int table_image_make(const struct unwind_table *table, const struct rule_table *rules, const struct table_key *key,
				struct buffer *to);
/* The bytes may be damaged or hostile. Borrows the rules for the table's life; new ones are `uid`'s. 0; -EBADMSG: not an image of this key
 * by this build, or damaged; -EXFULL: there may be no room for its rules; -ENOMEM. */
MUST_CHECK int table_image_read(const void *bytes, size_t size, const struct table_key *key, struct rule_table *rules, uint32_t uid,
				struct unwind_table **ret_table);
