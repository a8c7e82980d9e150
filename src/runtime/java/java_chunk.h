/* SPDX-License-Identifier: Apache-2.0 */
/* java_chunk: where the objects that hold a virtual thread's frames have what the kernel side reads of them. */
#pragma once
#include "abi/java.h"
#include "runtime/java/java_class.h"

/* From the VM's tables; 0: it has none. */
struct java_chunk_layout {
	struct java_class_layout classes;
	uint64_t flags, nr_flags;             /* the variables JVMFlag::flags and numFlags */
	uint64_t narrow_base, narrow_shift;   /* likewise, of CompressedOops */
	uint64_t colors, old_colors;          /* likewise, _instance_p of ZGlobalsForVMStructs, and of XGlobalsForVMStructs (until 23) */
	uint16_t flag_name, flag_value, flag_bytes; /* JVMFlag._name, _addr, and its size */
	uint16_t bad_mask, shift, old_bad_mask; /* in these */
	uint16_t thread_entry, thread_vthread; /* JavaThread; the first may be SONDE_JAVA_NONE */
};

/* What is not found leaves *ret_chunk as one that is not walked. */
void java_chunk_read(const struct java_chunk_layout *layout, const struct runtime_memory *memory, struct sonde_java_chunk *ret_chunk);
