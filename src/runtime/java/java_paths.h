/* SPDX-License-Identifier: Apache-2.0 */
/* java_paths: follows an nmethod's code from an instruction on, on all paths, each up to the first safepoint on it.
 *
 * A safepoint's PcDesc is at the return address of a call, or at an instruction that polls. With -XX:+DebugNonSafepoints there are others,
 * which prove nothing (docs/internals/java.md, "Inlined methods"): callGenerator.cpp, do_late_inline_helper; output.cpp,
 * NonSafepointEmitter. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "runtime/java/java_descs.h"

#define JAVA_MAX_REACHED 32
#define JAVA_MAX_STARTS 48
#define JAVA_CODE_READ 1024

struct java_safepoint {
	struct java_desc desc;
	uint32_t next; /* offset of the instruction behind it, and behind the one that polls */
	bool is_poll;
};

struct java_paths {
	struct java_safepoint reached[JAVA_MAX_REACHED];
	uint32_t nr_reached;
	bool is_open;   /* a path ends elsewhere, as at the method's return, or is not known */
	bool is_cyclic; /* a path comes to the instruction that was watched for, not counting where they begin */
	uint32_t starts[JAVA_MAX_STARTS];
	uint32_t nr_starts;
	uint32_t nr_instructions;
};

/* An nmethod's debug information and code, and what was read of them last. */
struct java_text {
	const struct java_debug_info *info;
	struct java_descs descs;
	uint8_t code[JAVA_CODE_READ];
	uint32_t start, nr;   /* of the code that was read; all zero at first */
	bool is_dense_known, is_dense; /* there are PcDescs at places that are no safepoints */
};

/* What a PcDesc is. 0, or an error of reading the memory. */
MUST_CHECK int java_paths_is_safepoint(struct java_text *text, uint32_t number, bool *ret_is_safepoint);

/* 0, or an error of reading the memory. */
MUST_CHECK int java_paths_follow(struct java_text *text, uint32_t off, uint32_t watched, struct java_paths *ret_paths);

/* What is before a place. */
struct java_before {
	uint32_t off;          /* of the instruction that is executed, or that comes next; not set unless is_known */
	struct java_desc desc; /* of the last safepoint that is not behind it; its pc is -1: none */
	bool is_known;         /* else the code cannot be decoded from there on, or is too long */
	bool is_connected;     /* control goes on from there to the instruction, if no jump on the way is taken */
};

/* `where`: a return address, or one byte behind the start of an instruction. `number`: of the first PcDesc not below it. */
MUST_CHECK int java_paths_before(struct java_text *text, uint32_t where, uint32_t number, struct java_before *ret_before);
