/* SPDX-License-Identifier: Apache-2.0 */
/* java_descs: reads an nmethod's debug information: PcDescs, each with the scope at a pc, and scopes: a method, a bci, and the scope that
 * it is inlined into. Layouts: pcDesc.hpp, debugInfoRec.cpp (describe_scope), scopeDesc.cpp (ScopeDesc::decode_body). Untrusted. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "runtime/runtime.h"

#define JAVA_MAX_LEVELS 256
#define JAVA_DESCS_READ 64
#define JAVA_SCOPES_READ 1024

/* Where the debug information and the code of one nmethod are. */
struct java_debug_info {
	const struct runtime_memory *memory;
	uint64_t descs, scopes; /* addresses */
	uint32_t nr_descs;
	bool is_sparse;         /* of the numbers, as java_number takes it */
	uint64_t code;
	uint32_t code_bytes;
};

struct java_desc {
	int32_t pc;    /* offset in the code; the first one's is -1, the last one's is behind all code, and neither has a scope */
	int32_t scope; /* 0: none */
	int32_t object, flags;
};

/* What was read last; all zero at first. */
struct java_descs {
	struct java_desc descs[JAVA_DESCS_READ];
	uint32_t first, nr;
	uint8_t scopes[JAVA_SCOPES_READ]; /* each has its caller's before it, mostly close by */
	uint32_t scopes_start, nr_scopes; /* offset of the first byte, and how many there are */
};

/* The number of the first one that is not below the offset. */
MUST_CHECK int java_descs_find(const struct java_debug_info *info, struct java_descs *descs, uint32_t off, uint32_t *ret_number);
MUST_CHECK int java_descs_at(const struct java_debug_info *info, struct java_descs *descs, uint32_t number, struct java_desc *ret_desc);

struct java_scope {
	uint32_t method; /* number in the metadata, from 1 on; 0: none */
	uint32_t bci;    /* or SONDE_JAVA_NO_BCI */
};

/* A method and those that are inlined into each other there, the nmethod's own first. */
struct java_scopes {
	uint32_t nr;
	bool has_values; /* where a local variable, a word of the expression stack or a monitor is: said at safepoints alone */
	struct java_scope scopes[JAVA_MAX_LEVELS];
};

/* The scope at an offset in the scopes, which is not 0, and those that it is inlined into. */
MUST_CHECK int java_scopes_read(const struct java_debug_info *info, struct java_descs *descs, uint32_t scope,
				struct java_scopes *ret_scopes);
