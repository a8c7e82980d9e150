/* SPDX-License-Identifier: Apache-2.0 */
/* golden: compares output with the files in GOLDEN_DIR; SONDE_GOLDEN_UPDATE=1 rewrites them. */
#pragma once
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "output/export.h"

#define MAX_BYTES ((size_t)1 << 24)

static inline void read_file(const char *path, struct buffer *buffer)
{
	CLEANUP(fclosep) FILE *file = fopen(path, "re");
	char bytes[4096];
	size_t size;

	if (!file)
		fail_msg("%s: %s", path, strerror(errno));
	while ((size = fread(bytes, 1, sizeof(bytes), file)) > 0)
		buffer_append(buffer, bytes, size);
}

static inline void check_golden(const char *name, const void *bytes, size_t size)
{
	CLEANUP(buffer_done) struct buffer want = BUFFER_INIT(MAX_BYTES);
	CLEANUP(fclosep) FILE *file = NULL;
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", GOLDEN_DIR, name);
	if (getenv("SONDE_GOLDEN_UPDATE")) {
		file = fopen(path, "we");
		assert_non_null(file);
		assert_int_equal(fwrite(bytes, 1, size, file), size);
		return;
	}
	read_file(path, &want);
	if (want.size != size || memcmp(want.data, bytes, size))
		fail_msg("%s differs from what is written now; SONDE_GOLDEN_UPDATE=1 writes it anew, then see git diff", name);
}

static inline void write_ok(const struct profile *profile, enum export_format format, const struct export_options *options,
			    struct buffer *buffer)
{
	struct diag diag = { 0 };

	if (export_write(profile, format, options, buffer, &diag))
		fail_msg("%s", diag.text);
}
