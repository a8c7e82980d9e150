// SPDX-License-Identifier: Apache-2.0
#include "runtime/java/java_blob.h"

#include <errno.h>
#include <string.h>

uint64_t java_blob_field(const struct java_blob_header *header, uint16_t off, size_t size)
{
	size_t at = header->process->java.block_bytes + off;
	uint64_t value = 0;

	if (at + size <= sizeof(header->bytes))
		memcpy(&value, header->bytes + at, size);
	return value;
}

int java_blob_read(const struct java_process *process, const struct runtime_memory *memory, uint64_t start, size_t size,
		   struct java_blob_header *ret_header)
{
	int err;

	*ret_header = (struct java_blob_header){ .process = process, .start = start };
	if (start % 8 || start < 4096)
		return -EBADMSG;
	err = memory->read(memory->arg, start - process->java.block_bytes, ret_header->bytes, size);
	if (!err && !(ret_header->bytes[process->java.block_used] & SONDE_JAVA_IS_USED))
		err = -ESTALE;
	return err;
}

int java_blob_read_nmethod(const struct java_process *process, const struct runtime_memory *memory, const struct sonde_runtime_frame *frame,
			   struct java_blob_header *ret_header)
{
	int err = java_blob_read(process, memory, frame->code, process->java.header_bytes, ret_header);
	int8_t state;

	if (err)
		return err;
	state = (int8_t)java_blob_field(ret_header, process->java.nmethod_state, 1);
	if ((uint32_t)java_blob_field(ret_header, process->java.nmethod_id, 4) != frame->cookie || state < 0 ||
	    state > process->layout.last_live_state)
		return -ESTALE;
	return 0;
}

int java_blob_read_stub(const struct java_process *process, const struct runtime_memory *memory, const struct sonde_runtime_frame *frame,
			struct java_blob_header *ret_header, uint64_t *ret_name)
{
	int err = java_blob_read(process, memory, frame->code, 64 + process->java.block_bytes + 48, ret_header);

	if (err)
		return err;
	*ret_name = java_blob_field(ret_header, process->java.blob_name, 8);
	return (uint32_t)(*ret_name ^ *ret_name >> 32) == frame->cookie ? 0 : -ESTALE;
}

struct sonde_code_range java_blob_code(const struct java_blob_header *header)
{
	const struct sonde_java *java = &header->process->java;

	if (java->has_addresses)
		return (struct sonde_code_range){ java_blob_field(header, java->blob_code_start, 8),
						  java_blob_field(header, java->blob_code_end, 8) };
	return (struct sonde_code_range){ header->start + (uint32_t)java_blob_field(header, java->blob_code_start, 4),
					  header->start + (uint32_t)java_blob_field(header, java->blob_code_end, 4) };
}
