/* SPDX-License-Identifier: Apache-2.0 */
/* java_vm: HotSpot's description of its own data (vmStructs.cpp: gHotSpotVMStructs and gHotSpotVMTypes, for the serviceability agent), read
 * from a process's memory, as its pointers are relocated. */
#pragma once
#include <stdint.h>

#include "abi/java.h"
#include "runtime/runtime.h"

#define JAVA_NONE SONDE_JAVA_NONE

/* What a file says: struct runtime_image's `naming`. Addresses as linked. */
struct java_image {
	uint64_t structs, types;                 /* the variables gHotSpotVMStructs and gHotSpotVMTypes */
	uint64_t structs_stride, types_stride;   /* likewise, of their entries' sizes */
	uint64_t continuation_return;            /* the variable ContinuationEntry::_return_pc; 0: not known */
	uint64_t major;                          /* 8, 11, ... */
};

/* What resolving frames needs besides what the kernel side knows: offsets in the VM's structs. NONE: this version has none. */
struct java_layout {
	uint16_t nmethod_method;
	uint16_t scopes_data, scopes_pcs, pcs_end; /* PcDesc[], and behind the last one */
	uint16_t immutable_data;                 /* the address that these are relative to; NONE: the nmethod itself */
	uint16_t metadata;                       /* offset of Method*[]; NONE: behind the relocations in the mutable data */
	uint16_t mutable_data, relocation_size;
	uint16_t pc_desc_bytes, pc_desc_scope;
	uint16_t const_flags;
	uint16_t pool_length, pool_source_file; /* ConstantPool */
	uint16_t klass_source_file;              /* before 15 */
	uint16_t symbol_length, symbol_body;
	uint8_t scopes_data_is_address;
	uint8_t is_sparse;                       /* numbers do without the byte 0 (UNSIGNED5 of 20 and newer) */
	uint8_t last_live_state;                 /* nmethod._state up to which its methods exist */
	uint8_t pad;
};

/* What is known of a process: the kernel side's part first. */
struct java_process {
	struct sonde_java java;
	struct java_layout layout;
};

/* Reads the tables and what they lead to. 0; -EAGAIN: the VM is not ready; -EOPNOTSUPP: `diag` says why. */
MUST_CHECK int java_vm_read(const struct java_image *image, uint64_t load_bias, const struct runtime_memory *memory, struct diag *diag,
			    struct java_process *ret_process);
