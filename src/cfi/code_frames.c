// SPDX-License-Identifier: Apache-2.0
#include "cfi/code_frames.h"

#include <errno.h>
#include <string.h>

#include "cfi/code_state.h"

#define MAX_SIZE    (1u << 20) /* of a function */
#define MAX_STATES  2000
#define MAX_TARGETS 4096
#define MAX_WORK    (12u << 20) /* per file, in instructions: a quarter of a second */
#define HASH_STEPS  2  /* work to hash a state */
#define MEET_STEPS  8  /* work when two states meet */
#define HLT_BYTES   32 /* how far behind the call of a program's start its hlt may be */

struct code_frames {
	struct code_function function;
	struct code_state states[MAX_STATES];
	uint32_t hashes[MAX_STATES], nr_states;
	uint16_t *at;     /* by offset: the state before the instruction, + 1; 0: not reached */
	uint8_t *sizes;   /* likewise, sizes of the instructions */
	uint32_t *todo;   /* offsets whose state has changed */
	uint64_t targets[MAX_TARGETS];
	size_t nr_targets;
	uint32_t nr_todo, max_size;
	uint32_t used;    /* from here on `at` is empty */
	uint64_t nr_steps; /* work done */
	bool is_contradicted, returns;
	bool gives_back; /* it returns, or jumps away, with sp as at the start */
	bool resets_sp, has_calls, is_doubtful; /* is_doubtful: calls may have dropped arguments */
};

struct code_frames *code_frames_new(void)
{
	return calloc(1, sizeof(struct code_frames));
}

void code_frames_free(struct code_frames *frames)
{
	if (!frames)
		return;
	free(frames->at);
	free(frames->sizes);
	free(frames->todo);
	free(frames);
}

void code_frames_add_work(struct code_frames *frames, uint64_t nr_steps)
{
	frames->nr_steps += nr_steps;
}

bool code_frames_is_spent(const struct code_frames *frames)
{
	return frames->nr_steps >= MAX_WORK;
}

const uint64_t *code_frames_targets(const struct code_frames *frames, size_t *ret_nr)
{
	*ret_nr = frames->nr_targets;
	return frames->targets;
}

static int make_room(struct code_frames *f, size_t size)
{
	if (size > f->max_size) {
		free(f->at);
		free(f->sizes);
		free(f->todo);
		f->max_size = f->used = 0;
		f->at = calloc(size, sizeof(*f->at));
		f->sizes = malloc(size);
		f->todo = malloc(size * sizeof(*f->todo));
		if (!f->at || !f->sizes || !f->todo)
			return -ENOMEM;
		f->max_size = (uint32_t)size;
	}
	memset(f->at, 0, f->used * sizeof(*f->at));
	f->nr_steps += f->used / 64;
	f->used = 0;
	return 0;
}

static uint32_t hash_of(const struct code_state *state)
{
	uint64_t hash = (uint64_t)state->is_outermost, words[(sizeof(state->regs) + sizeof(state->slots)) / sizeof(uint64_t)];

	memcpy(words, state->regs, sizeof(state->regs));
	memcpy((uint8_t *)words + sizeof(state->regs), state->slots, sizeof(state->slots));
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ULL;
	return (uint32_t)(hash >> 32);
}

/* Returns the state's number + 1. Few instructions create a new state, and most of those give one that occurred just before. */
static uint16_t number_of(struct code_frames *f, const struct code_state *state)
{
	uint32_t hash = hash_of(state), i = f->nr_states;

	f->nr_steps += HASH_STEPS;
	while (i-- > 0) {
		if (f->hashes[i] == hash && f->nr_steps++ && !memcmp(&f->states[i], state, sizeof(*state)))
			break;
	}
	f->nr_steps += (f->nr_states - i) / 16;
	if (i < f->nr_states)
		return (uint16_t)(i + 1);
	if (f->nr_states == MAX_STATES) {
		f->is_contradicted = true;
		return 1;
	}
	f->hashes[f->nr_states] = hash;
	f->states[f->nr_states] = *state;
	return (uint16_t)++f->nr_states;
}

/* Control reaches `off` in a state. True: the state there has changed. */
static bool arrive(struct code_frames *f, uint32_t off, uint16_t number)
{
	struct code_state both;

	if (f->at[off] == number)
		return false;
	if (!f->at[off]) {
		f->at[off] = number;
		if (off >= f->used)
			f->used = off + 1;
		return true;
	}
	f->nr_steps += MEET_STEPS;
	both = f->states[f->at[off] - 1];
	if (!code_state_meet(&both, &f->states[number - 1])) {
		f->is_contradicted = true;
		return false;
	}
	number = number_of(f, &both);
	if (f->at[off] == number)
		return false;
	f->at[off] = number;
	return true;
}

static void note_target(struct code_frames *f, int64_t off)
{
	uint64_t vaddr = f->function.vaddr + (uint64_t)off;

	f->nr_steps += f->nr_targets / 16;
	for (size_t i = 0; i < f->nr_targets; i++) {
		if (f->targets[i] == vaddr)
			return;
	}
	if (f->nr_targets < MAX_TARGETS)
		f->targets[f->nr_targets++] = vaddr;
}

static bool is_other(const struct code_frames *f, int64_t off)
{
	return off && !f->function.is_sized && f->function.is_other &&
	       f->function.is_other(f->function.arg, f->function.vaddr + (uint64_t)off);
}

/* Control leaves the function, or its target is not known. The first function of a thread has nowhere to return to. */
static void leave(struct code_frames *f, const struct code_state *state)
{
	f->is_contradicted |= state->is_outermost && !f->function.is_start;
}

/* A jump. If it leaves the function with nothing left on the stack, another function begins at the target. */
static void jump(struct code_frames *f, const struct code_state *state, int64_t off, uint16_t number)
{
	if (off >= 0 && off < (int64_t)f->function.size && !is_other(f, off)) {
		if (!arrive(f, (uint32_t)off, number))
			return;
		if (f->nr_todo == f->max_size)
			f->is_contradicted = true;
		else
			f->todo[f->nr_todo++] = (uint32_t)off;
	} else if (code_state_is_at_begin(state)) {
		f->gives_back = true;
		note_target(f, off);
	} else {
		leave(f, state);
	}
}

/* Does a program's start end soon after `off`, where its only call would return to? */
static bool has_hlt(const struct code_frames *f, uint32_t off)
{
	struct x86_code code;

	for (uint32_t end = off + HLT_BYTES; off < end && off < f->function.size; off += code.size) {
		if (!x86_code_read(f->function.code + off, f->function.size - off, &code))
			return false;
		if (x86_code_is_end(&code))
			return code.op == 0xf4;
	}
	return false;
}

/* Padding after a call that does not return: the function ends there. */
static bool is_padding(const struct code_frames *f, uint32_t off)
{
	uint32_t start = off;
	struct x86_code code;

	while (off < f->function.size && (f->function.vaddr + off) & 15) {
		if (!x86_code_read(f->function.code + off, f->function.size - off, &code) ||
		    !(code.op == 0x90 || code.op == 0x11f || code.op == 0xcc))
			return false;
		off += code.size;
	}
	return off > start;
}

/* Does the function continue after this call? */
static bool goes_on(const struct code_frames *f, uint32_t off)
{
	if (off >= f->function.size)
		return false;
	if (f->function.is_start)
		return has_hlt(f, off);
	return f->function.is_sized || !is_padding(f, off);
}

static bool is_call(const struct x86_code *code)
{
	return code->op == 0xe8 || (code->op == 0xff && x86_code_extension(code) == 2);
}

static bool keeps_sp(const struct code_frames *f, int64_t off)
{
	return f->function.keeps_sp && f->function.keeps_sp(f->function.arg, f->function.vaddr + (uint64_t)off);
}

/* Handles an instruction that moves control. True: control also reaches the next one. */
static bool follow(struct code_frames *f, const struct x86_code *code, struct code_state *state, uint32_t next, uint16_t number)
{
	int64_t target = (int64_t)next + code->imm;

	if (x86_code_is_branch(code)) {
		struct code_state taken = *state;

		if (code_state_branch(&taken, code, true))
			number = number_of(f, &taken);
		jump(f, &taken, target, number);
		return true;
	}
	if (is_call(code)) {
		bool is_known = code->op == 0xe8 || code_state_code(state, code, &target);

		if (is_known &&
		    (target == next || (f->function.is_sized && target > 0 &&
					target < (int64_t)f->function.size))) /* a way to read pc, or code that shares the frame */
			f->is_contradicted = true;
		else if (is_known)
			note_target(f, target);
		f->has_calls = true;
		code_state_call(state, !f->is_doubtful || (is_known && keeps_sp(f, target)));
		return goes_on(f, next);
	}
	if (code->op == 0xc3 || code->op == 0xc2 || code->op == 0xca || code->op == 0xcb || code->op == 0xcf) {
		f->returns = f->gives_back = true;
		f->is_contradicted |= !code_state_is_at_begin(state) || code->op >= 0xca;
	} else if (code->op == 0xe9 && !f->function.is_sized && code_state_is_at_begin(state)) {
		f->gives_back = true;
		note_target(f, target); /* most likely another function; a part of this one would also start in the initial state */
	} else if (code->op == 0xe9 || code->op == 0xeb) {
		jump(f, state, target, number);
	} else if (code->op == 0xff && x86_code_extension(code) == 4 && code_state_code(state, code, &target)) {
		jump(f, state, target, number);
	} else if (code->op == 0xff) {
		leave(f, state);
	}
	return false;
}

static bool moves_control(const struct x86_code *code)
{
	return x86_code_is_branch(code) || x86_code_is_end(code) || is_call(code);
}

/* Follows instructions from an offset on, until control ends or reaches a known state. */
static void run(struct code_frames *f, uint32_t off)
{
	uint16_t number = f->at[off];
	struct code_state state;

	if (!number) /* found to be no instruction since it was queued */
		return;
	state = f->states[number - 1];
	for (;;) {
		struct x86_code code;
		uint32_t next;
		bool is_changed;

		f->nr_steps++;
		f->is_contradicted |= code_frames_is_spent(f);
		if (!x86_code_read(f->function.code + off, f->function.size - off, &code)) {
			leave(f, &state);
			f->at[off] = 0;
			return;
		}
		f->sizes[off] = code.size;
		next = off + code.size;
		if (moves_control(&code)) {
			if (!follow(f, &code, &state, next, number))
				return;
			is_changed = is_call(&code) || code_state_branch(&state, &code, false);
		} else if (!code_state_step(&state, &code, next, f->function.vaddr, &is_changed)) {
			f->is_contradicted = true;
			return;
		}
		f->resets_sp |= code_state_resets_sp(&code);
		if (is_changed)
			number = number_of(f, &state);
		if (next >= f->function.size || is_other(f, next)) {
			leave(f, &state);
			return;
		}
		if (f->is_contradicted || !arrive(f, next, number))
			return;
		if (f->at[next] != number) { /* less is known there */
			number = f->at[next];
			state = f->states[number - 1];
		}
		off = next;
	}
}

static int read_once(struct code_frames *f, bool is_doubtful)
{
	struct code_state begin;
	/* each path is followed a few times at most, as less is known each time */
	uint64_t end = f->nr_steps + 256 * (uint64_t)f->function.size + MAX_STATES;

	f->nr_states = 0;
	f->nr_todo = 0;
	f->nr_targets = 0;
	f->is_contradicted = f->returns = f->gives_back = f->resets_sp = f->has_calls = false;
	f->is_doubtful = is_doubtful;
	if (make_room(f, f->function.size))
		return -ENOMEM;
	begin = code_state_at_begin(f->function.is_start);
	f->at[0] = number_of(f, &begin);
	f->used = 1;
	f->todo[f->nr_todo++] = 0;
	while (f->nr_todo && !f->is_contradicted && f->nr_steps < end)
		run(f, f->todo[--f->nr_todo]);
	if (f->is_contradicted || f->nr_todo)
		return CODE_CONTRADICTS;
	return f->returns ? CODE_RETURNS : CODE_MAY_BE;
}

int code_frames_read(struct code_frames *f, const struct code_function *function)
{
	int verdict;

	f->function = *function;
	if (!function->size || function->size > MAX_SIZE)
		return CODE_CONTRADICTS;
	verdict = read_once(f, false);
	if (verdict >= 0 && verdict != CODE_CONTRADICTS && f->has_calls && !f->function.is_start && (f->resets_sp || !f->gives_back))
		verdict = read_once(f, true);
	return verdict;
}

bool code_frames_is_start(const uint8_t *code, size_t size)
{
	struct code_state state = code_state_at_begin(false);
	struct x86_code insn;
	bool is_changed;

	for (size_t at = 0; x86_code_read(code + at, size - at, &insn); at += insn.size) {
		if (is_call(&insn)) {
			code_state_call(&state, true);
			return state.regs[X86_CODE_BP].kind == CODE_ZERO && state.regs[X86_CODE_SP].kind == CODE_ALIGNED &&
			       !state.slots[0].value.kind && code_state_rule(&state, false).kind == SONDE_RULE_KIND_UNSUPPORTED;
		}
		if (moves_control(&insn) || !code_state_step(&state, &insn, (int64_t)(at + insn.size), 0, &is_changed))
			return false;
	}
	return false;
}

bool code_frames_is_plain(struct code_frames *f, const uint8_t *code, size_t size)
{
	size_t at = 0, farthest = 0; /* start of an instruction that a branch leads to */
	struct x86_code insn;

	while (x86_code_read(code + at, size - at, &insn)) {
		f->nr_steps++;
		at += insn.size;
		if (x86_code_is_branch(&insn) || insn.op == 0xeb || insn.op == 0xe9) {
			if (insn.imm < -(int64_t)at || insn.imm > (int64_t)(size - at))
				return false;
			if (insn.imm > 0 && at + (size_t)insn.imm > farthest)
				farthest = at + (size_t)insn.imm;
		} else if (insn.op == 0xc3 && farthest < at) {
			return true;
		} else if (x86_code_is_end(&insn) && insn.op != 0xc3 && insn.op != 0xf4 && insn.op != 0x10b) {
			return false;
		}
	}
	return false;
}

int code_frames_rows(const struct code_frames *f, bool by_frame, cfi_row_fn row, void *arg, struct cfi_stats *stats)
{
	uint16_t given = 0; /* the state of the open row, + 1; 0: none is open */
	uint32_t end = 0;   /* of the previous instruction */
	int err = 0;

	for (uint32_t off = 0; !err && off < f->used; off++) {
		struct sonde_rule rule;

		if (!f->at[off])
			continue;
		if (given && (off > end || f->at[off] != given)) {
			rule = code_state_rule(&f->states[f->at[off] - 1], by_frame);
			if (off > end || rule.kind == SONDE_RULE_KIND_UNSUPPORTED) {
				err = row(arg, f->function.vaddr + (off > end ? end : off), NULL);
				given = 0;
			}
		}
		end = off + f->sizes[off];
		if (err || f->at[off] == given)
			continue;
		rule = code_state_rule(&f->states[f->at[off] - 1], by_frame);
		if (rule.kind == SONDE_RULE_KIND_UNSUPPORTED)
			continue;
		given = f->at[off];
		stats->nr_rows++;
		err = row(arg, f->function.vaddr + off, &rule);
	}
	return !err && given ? row(arg, f->function.vaddr + end, NULL) : err;
}
