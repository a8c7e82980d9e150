// SPDX-License-Identifier: Apache-2.0
#include "runtime/java/java_paths.h"

#include <errno.h>

#include "cfi/x86_code.h"

#define MAX_INSTRUCTIONS 2000
#define MAX_BEFORE_BYTES 8192
#define MAX_BEFORE_DESCS 128
#define MAX_INSTRUCTION_BYTES 15
#define MAX_CALL_BYTES 8
#define NR_NEIGHBOURS 4 /* each way */

/* Reads code around the offset, so that it and some instructions before it are there. 0; -EBADMSG: there is none. */
static int text_read(struct java_text *text, uint32_t off)
{
	const struct java_debug_info *info = text->info;
	uint32_t start, nr;
	int err;

	if (off >= info->code_bytes)
		return -EBADMSG;
	if (off - text->start < text->nr &&
	    (text->nr - (off - text->start) >= MAX_INSTRUCTION_BYTES || text->start + text->nr == info->code_bytes) &&
	    (off - text->start >= MAX_CALL_BYTES || !text->start))
		return 0;
	start = off > JAVA_CODE_READ / 4 ? off - JAVA_CODE_READ / 4 : 0;
	nr = info->code_bytes - start < JAVA_CODE_READ ? info->code_bytes - start : JAVA_CODE_READ;
	err = info->memory->read(info->memory->arg, info->code + start, text->code, nr);
	text->start = start;
	text->nr = err ? 0 : nr;
	return err;
}

/* 0; -EBADMSG: no instruction. */
static int text_code(struct java_text *text, uint32_t off, struct x86_code *ret_code)
{
	int err = text_read(text, off);
	uint32_t at = off - text->start;

	if (err)
		return err;
	return x86_code_read(text->code + at, text->nr - at, ret_code) ? 0 : -EBADMSG;
}

static bool code_is_call(const struct x86_code *code)
{
	return code->op == 0xe8 || (code->op == 0xff && x86_code_extension(code) == 2);
}

static bool code_is_poll(const struct x86_code *code) /* test [page], eax */
{
	return code->op == 0x85 && !x86_code_is_register(code);
}

static bool code_is_jump(const struct x86_code *code)
{
	return code->op == 0xe9 || code->op == 0xeb;
}

static bool code_is_trap(const struct x86_code *code) /* what compilers write where control never comes */
{
	return code->op == 0xf4 || code->op == 0xcc || (code->op == 0x10b && !code->is_vector);
}

/* Could it be a safepoint's, by the code around it? If it is one, it could. */
static int desc_is_at_safepoint(struct java_text *text, const struct java_desc *desc, bool *ret_is_at)
{
	uint32_t off = (uint32_t)desc->pc;
	struct x86_code code;
	int err;

	*ret_is_at = desc->pc < 0 || off >= text->info->code_bytes;
	err = *ret_is_at ? 0 : text_read(text, off);
	for (uint32_t size = 2; !err && !*ret_is_at && size <= MAX_CALL_BYTES && size <= off; size++)
		*ret_is_at = x86_code_read(text->code + (off - size - text->start), size, &code) && code.size == size &&
			     code_is_call(&code);
	if (!err && !*ret_is_at) {
		err = text_code(text, off, &code);
		*ret_is_at = !err && code_is_poll(&code);
	}
	return err == -EBADMSG ? 0 : err;
}

/* Looks at some PcDescs. */
static int text_is_dense(struct java_text *text, uint32_t number, bool *ret_is_dense)
{
	uint32_t first = number > NR_NEIGHBOURS ? number - NR_NEIGHBOURS : 0;
	int err = 0;

	for (uint32_t i = first; !text->is_dense_known && !text->is_dense && i < text->info->nr_descs && i <= number + NR_NEIGHBOURS; i++) {
		struct java_desc desc;
		bool is_at = true;

		err = java_descs_at(text->info, &text->descs, i, &desc);
		if (!err)
			err = desc_is_at_safepoint(text, &desc, &is_at);
		if (err)
			return err;
		text->is_dense = !is_at;
	}
	text->is_dense_known = true;
	*ret_is_dense = text->is_dense;
	return 0;
}

int java_paths_is_safepoint(struct java_text *text, uint32_t number, bool *ret_is_safepoint)
{
	struct java_desc desc;
	struct java_scopes scopes;
	bool is_dense = false;
	int err = java_descs_at(text->info, &text->descs, number, &desc);

	*ret_is_safepoint = false;
	if (!err)
		err = desc_is_at_safepoint(text, &desc, ret_is_safepoint);
	if (!err && *ret_is_safepoint)
		err = text_is_dense(text, number, &is_dense);
	if (err || !is_dense || !*ret_is_safepoint || desc.pc < 0 || !desc.scope)
		return err;
	/* behind a call that is no safepoint it says no values */
	err = java_scopes_read(text->info, &text->descs, (uint32_t)desc.scope, &scopes);
	if (!err)
		*ret_is_safepoint = scopes.has_values;
	return err;
}

static void paths_add(struct java_paths *paths, const struct java_safepoint *safepoint)
{
	for (uint32_t i = 0; i < paths->nr_reached; i++) {
		if (paths->reached[i].desc.pc == safepoint->desc.pc)
			return;
	}
	if (paths->nr_reached == JAVA_MAX_REACHED)
		paths->is_open = true;
	else
		paths->reached[paths->nr_reached++] = *safepoint;
}

static bool paths_has_start(const struct java_paths *paths, uint32_t off)
{
	for (uint32_t i = 0; i < paths->nr_starts; i++) {
		if (paths->starts[i] == off)
			return true;
	}
	return false;
}

static void paths_jump(const struct java_text *text, struct java_paths *paths, int64_t to)
{
	if (to < 0 || to >= text->info->code_bytes)
		paths->is_open = true;
	else if (paths_has_start(paths, (uint32_t)to))
		return;
	else if (paths->nr_starts == JAVA_MAX_STARTS)
		paths->is_open = true;
	else
		paths->starts[paths->nr_starts++] = (uint32_t)to;
}

/* Is there a safepoint at this instruction's end, or, if it polls, at its start? *number is of the first PcDesc not below its start. */
static int instruction_is_safepoint(struct java_text *text, uint32_t off, const struct x86_code *code, uint32_t *number,
				    struct java_safepoint *ret_safepoint, bool *ret_is_safepoint)
{
	struct java_desc desc;
	uint32_t end = off + code->size;
	int err = java_descs_at(text->info, &text->descs, *number, &desc);

	*ret_is_safepoint = false;
	if (!err && desc.pc == (int64_t)off) {
		*ret_safepoint = (struct java_safepoint){ .desc = desc, .next = end, .is_poll = true };
		if (code_is_poll(code))
			err = java_paths_is_safepoint(text, *number, ret_is_safepoint);
		if (err || *ret_is_safepoint)
			return err;
		err = java_descs_at(text->info, &text->descs, ++*number, &desc);
	}
	if (!err && desc.pc < (int64_t)end)
		return -EBADMSG; /* not at an instruction's start */
	if (!err && desc.pc == (int64_t)end && code_is_call(code)) {
		*ret_safepoint = (struct java_safepoint){ .desc = desc, .next = end };
		err = java_paths_is_safepoint(text, *number, ret_is_safepoint);
	}
	return err;
}

static int path_follow(struct java_text *text, uint32_t first, uint32_t watched, struct java_paths *paths)
{
	struct java_safepoint safepoint;
	struct x86_code code;
	uint32_t number;
	int err = java_descs_find(text->info, &text->descs, first, &number);

	for (uint32_t off = first; !err && paths->nr_instructions++ < MAX_INSTRUCTIONS; off += code.size) {
		bool is_safepoint = false;

		paths->is_cyclic |= off == watched && (off != first || first != paths->starts[0]);
		if (off != first && paths_has_start(paths, off))
			return 0;
		err = text_code(text, off, &code);
		if (!err)
			err = instruction_is_safepoint(text, off, &code, &number, &safepoint, &is_safepoint);
		if (err)
			break;
		if (is_safepoint)
			paths_add(paths, &safepoint);
		if (is_safepoint || code_is_trap(&code))
			return 0;
		if (x86_code_is_branch(&code) || code_is_jump(&code))
			paths_jump(text, paths, (int64_t)off + code.size + code.imm);
		if (code_is_jump(&code))
			return 0;
		if (x86_code_is_end(&code))
			break;
	}
	paths->is_open = true;
	return err == -EBADMSG ? 0 : err;
}

int java_paths_follow(struct java_text *text, uint32_t off, uint32_t watched, struct java_paths *ret_paths)
{
	struct java_paths *paths = ret_paths;
	int err = 0;

	paths->nr_reached = paths->nr_instructions = 0;
	paths->is_open = paths->is_cyclic = false;
	paths->starts[0] = off;
	paths->nr_starts = 1;
	for (uint32_t i = 0; !err && !paths->is_cyclic && i < paths->nr_starts; i++)
		err = path_follow(text, paths->starts[i], watched, paths);
	return err;
}

/* The last safepoint before this PcDesc. Its pc is -1: none. */
static int last_safepoint(struct java_text *text, uint32_t number, struct java_desc *ret_desc)
{
	*ret_desc = (struct java_desc){ .pc = -1 };
	for (uint32_t i = number; i > 1 && number - i < MAX_BEFORE_DESCS; i--) {
		bool is_safepoint;
		int err = java_paths_is_safepoint(text, i - 1, &is_safepoint);

		if (err || is_safepoint)
			return err ? err : java_descs_at(text->info, &text->descs, i - 1, ret_desc);
	}
	return 0;
}

int java_paths_before(struct java_text *text, uint32_t where, uint32_t number, struct java_before *ret_before)
{
	struct java_before before = { .is_connected = true };
	bool is_call = false;
	struct x86_code code;
	int err = last_safepoint(text, number, &before.desc);

	before.off = before.desc.pc < 0 ? 0 : (uint32_t)before.desc.pc;
	if (!err && (before.off >= where || where - before.off > MAX_BEFORE_BYTES))
		err = -EBADMSG;
	while (!err && before.off < where - 1) {
		err = text_code(text, before.off, &code);
		if (err)
			break;
		before.is_connected &= !x86_code_is_end(&code);
		is_call = code_is_call(&code);
		before.off += code.size;
	}
	before.is_known = !err && (before.off == where - 1 || (before.off == where && is_call));
	*ret_before = before;
	return err == -EBADMSG ? 0 : err;
}
