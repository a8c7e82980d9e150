// SPDX-License-Identifier: Apache-2.0
#include "symbols/minidebug.h"

#include <errno.h>

#include <lzma.h>

#define FIRST_BYTES ((size_t)256 << 10)

void minidebug_done(struct minidebug *minidebug)
{
	elf_file_free(minidebug->elf);
	free(minidebug->bytes);
	*minidebug = (struct minidebug){ 0 };
}

static int grow(void **bytes, size_t *capacity)
{
	size_t wanted = *capacity ? *capacity * 2 : FIRST_BYTES;
	void *grown;

	if (wanted > MINIDEBUG_MAX_BYTES)
		return -EFBIG;
	grown = realloc(*bytes, wanted);
	if (!grown)
		return -ENOMEM;
	*bytes = grown;
	*capacity = wanted;
	return 0;
}

static int error_of(lzma_ret got)
{
	if (got == LZMA_MEM_ERROR)
		return -ENOMEM;
	return got == LZMA_MEMLIMIT_ERROR ? -EFBIG : -EBADMSG;
}

/* The caller frees the bytes, on failure, too. */
static int unpack(lzma_stream *stream, void **bytes, size_t *ret_size)
{
	size_t capacity = 0;
	lzma_ret got = lzma_stream_decoder(stream, MINIDEBUG_MAX_MEMORY, 0);

	while (got == LZMA_OK) {
		if (stream->total_out == capacity) {
			int err = grow(bytes, &capacity);

			if (err)
				return err;
		}
		stream->next_out = (uint8_t *)*bytes + stream->total_out;
		stream->avail_out = capacity - stream->total_out;
		got = lzma_code(stream, LZMA_FINISH);
	}
	if (got != LZMA_STREAM_END)
		return error_of(got);
	*ret_size = stream->total_out;
	return 0;
}

int minidebug_open(const struct elf_file *elf, struct diag *diag, struct minidebug *ret_minidebug)
{
	const struct elf_section *section = elf_file_find_section(elf, ".gnu_debugdata");
	CLEANUP(minidebug_done) struct minidebug minidebug = { 0 };
	CLEANUP(freep) void *packed = NULL;
	lzma_stream stream = LZMA_STREAM_INIT;
	size_t size;
	int err;

	if (!section)
		return -ENODATA;
	err = elf_file_read_section(elf, section, MINIDEBUG_MAX_PACKED_BYTES, diag, &packed, &stream.avail_in);
	if (err)
		return err;
	stream.next_in = packed;
	err = unpack(&stream, &minidebug.bytes, &size);
	lzma_end(&stream);
	if (err)
		return diag_errno(diag, -err, "section .gnu_debugdata cannot be unpacked");
	err = elf_file_open_memory(minidebug.bytes, size, diag, &minidebug.elf);
	if (err)
		return err;
	*ret_minidebug = minidebug;
	minidebug = (struct minidebug){ 0 };
	return 0;
}
