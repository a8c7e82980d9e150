/* SPDX-License-Identifier: Apache-2.0 */
/* import_ways: writes made-up profiles, reads them back, damages them. */
#pragma once
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec/protobuf.h"
#include "output/export.h"
#include "import/gunzip.h"
#include "import/import.h"
#include "made_up_profile.h"

#define MAX_BYTES ((size_t)64 << 20)

static inline struct buffer write_with(const struct profile *profile, enum export_format format, const struct export_options *options)
{
	struct buffer buffer = BUFFER_INIT(MAX_BYTES);
	struct diag diag = { 0 };

	if (export_write(profile, format, options, &buffer, &diag))
		fail_msg("%s", diag.text);
	return buffer;
}

/* Writes with marks, so that the side of each frame shows. */
static inline struct buffer write_as(const struct profile *profile, enum export_format format)
{
	return write_with(profile, format, &(struct export_options){ .delimited = true, .annotate = true });
}

static inline int try_read(const void *bytes, size_t size, struct profile **ret_profile, struct diag *diag)
{
	struct buffer unpacked = BUFFER_INIT(MAX_BYTES);
	enum import_format format;
	uint32_t nr_own;
	int err = 0;

	*ret_profile = profile_new();
	assert_non_null(*ret_profile);
	if (import_is_gzip(bytes, size))
		err = gunzip(bytes, size, &unpacked, diag);
	else
		buffer_append(&unpacked, bytes, size);
	if (!err)
		err = import_detect(unpacked.data, unpacked.size, diag, &format);
	if (!err)
		err = import_read(unpacked.data, unpacked.size, format, *ret_profile, diag, &nr_own);
	buffer_done(&unpacked);
	return err;
}

static inline struct profile *read_back(const struct buffer *buffer)
{
	struct diag diag = { 0 };
	struct profile *profile;

	if (try_read(buffer->data, buffer->size, &profile, &diag))
		fail_msg("%s", diag.text);
	return profile;
}

static inline void check_same(const struct profile *a, const struct profile *b, enum export_format format)
{
	struct buffer one = write_as(a, format), other = write_as(b, format);

	assert_int_equal(one.size, other.size);
	assert_memory_equal(one.data, other.data, one.size);
	buffer_done(&one);
	buffer_done(&other);
}

static inline int order_lines(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Lines with equal numbers may change their order. */
static inline void sort_lines(struct buffer *text)
{
	char *lines[64], *rest = text->data, *line;
	struct buffer sorted = BUFFER_INIT(MAX_BYTES);
	size_t nr = 0;

	for (; (line = strsep(&rest, "\n")) && *line; nr++) {
		assert_true(nr < ARRAY_SIZE(lines));
		lines[nr] = line;
	}
	qsort(lines, nr, sizeof(*lines), order_lines);
	for (size_t i = 0; i < nr; i++)
		buffer_printf(&sorted, "%s\n", lines[i]);
	buffer_done(text);
	*text = sorted;
}

/* No truncated file and no file with a changed byte does harm. Most truncated files are refused. */
static inline void damage(enum export_format format, bool gzipped)
{
	CLEANUP(profile_freep) struct profile *profile = made_up_profile();
	struct buffer packed = write_as(profile, format), whole = BUFFER_INIT(MAX_BYTES);
	uint32_t nr_refused = 0, nr_tried = 0;

	if (gzipped)
		assert_int_equal(gunzip(packed.data, packed.size, &whole, NULL), 0);
	else
		buffer_append(&whole, packed.data, packed.size);
	for (size_t i = 1; i < whole.size; i += whole.size / 150 + 1, nr_tried++) {
		CLEANUP(profile_freep) struct profile *cut = NULL, *changed = NULL;
		struct diag diag = { 0 };
		char kept = whole.data[i];

		if (try_read(whole.data, i, &cut, &diag)) {
			nr_refused++;
			assert_true(diag.err != 0);
		}
		whole.data[i] = (char)~kept;
		diag.err = 0;
		if (try_read(whole.data, whole.size, &changed, &diag) < 0)
			assert_true(diag.err != 0);
		whole.data[i] = kept;
	}
	assert_true(nr_refused > nr_tried * 9 / 10);
	buffer_done(&packed);
	buffer_done(&whole);
}
