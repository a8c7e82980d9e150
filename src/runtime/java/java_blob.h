/* SPDX-License-Identifier: Apache-2.0 */
/* java_blob: a blob of HotSpot's code cache in a process's memory: its header (codeBlob.hpp, nmethod.hpp) and its code. */
#pragma once
#include "runtime/java/java_vm.h"
#include "runtime/runtime.h"

struct java_blob_header {
	const struct java_process *process;
	uint64_t start;
	uint8_t bytes[SONDE_JAVA_HEADER_BYTES]; /* from the block's header on */
};

/* A field of `size` bytes; beyond what was read it is 0. */
uint64_t java_blob_field(const struct java_blob_header *header, uint16_t off, size_t size);
/* Reads `size` bytes from the block's header on. 0; -EBADMSG: no blob can be there; -ESTALE: none is there now; or as memory->read. */
MUST_CHECK int java_blob_read(const struct java_process *process, const struct runtime_memory *memory, uint64_t start, size_t size,
			      struct java_blob_header *ret_header);
/* The nmethod of a frame. -ESTALE: another method's code is there, or its methods may be gone. */
MUST_CHECK int java_blob_read_nmethod(const struct java_process *process, const struct runtime_memory *memory,
				      const struct sonde_runtime_frame *frame, struct java_blob_header *ret_header);
/* The name of a stub of a frame, as the VM calls it. 0; -ESTALE: another blob is there. */
MUST_CHECK int java_blob_read_stub(const struct java_process *process, const struct runtime_memory *memory,
				   const struct sonde_runtime_frame *frame, struct java_blob_header *ret_header, uint64_t *ret_name);
/* Where its code is: start and end. */
struct sonde_code_range java_blob_code(const struct java_blob_header *header);
