/* SPDX-License-Identifier: Apache-2.0 */
/* table_image: an unwind table as bytes, for storage on disk: with its rules by value, the key of its file, and a checksum. The layout is
 * specific to the machine and the build: other images are refused. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "unwind/rule_table.h"
#include "unwind/unwind_table.h"

/* Identifies the ELF file and its version. Zero it before filling it. */
struct table_key {
	uint64_t device, inode, size;
	int64_t modified_s, modified_ns, changed_s, changed_ns;
	struct build_id build_id;
	uint8_t pad[7];
};

#define TABLE_IMAGE_BYTES_MAX (64u << 20)

/* Appends the image of a table; all its rules are in `rules`. 0; -ENOMEM; -EFBIG. */
MUST_CHECK int table_image_make(const struct unwind_table *table, const struct rule_table *rules, const struct table_key *key,
				struct buffer *to);
/* The bytes may be damaged or hostile. Borrows the rules for the table's life; `uid` becomes the owner of new ones. 0; -EBADMSG: not an
 * image for this key by this build, or damaged; -EXFULL: there may be no room for its rules; -ENOMEM. */
MUST_CHECK int table_image_read(const void *bytes, size_t size, const struct table_key *key, struct rule_table *rules, uint32_t uid,
				struct unwind_table **ret_table);
