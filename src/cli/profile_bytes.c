// SPDX-License-Identifier: Apache-2.0
#include "cli/profile_bytes.h"

static int append(void *arg, const void *bytes, size_t size)
{
	struct buffer *buffer = arg;

	buffer_append(buffer, bytes, size);
	return buffer->err;
}

int profile_bytes_write(struct sonde_profile *profile, const struct sonde_write_options *options, struct buffer *buffer)
{
	return sonde_profile_write_bytes(profile, options, append, buffer);
}
