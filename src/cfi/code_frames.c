// SPDX-License-Identifier: Apache-2.0
#include "cfi/code_frames.h"

#include <errno.h>
#include <string.h>

#include "base/reader.h"
#include "cfi/code_state.h"

#define MAX_SIZE    (1u << 20) /* of a function */
#define MAX_STATES  2000
#define MAX_TARGETS 4096
#define MAX_PLACES  16
#define MAX_CUTS    8
#define MAX_TABLES  256
#define MAX_INDEX   (1u << 16)
#define MAX_HANDLERS 4096
#define HASH_STEPS  2  /* work to hash a state */
#define MEET_STEPS  8  /* work when two states meet */
#define BEGIN_STEPS 24 /* work before a function's first instruction */
#define HLT_BYTES   32 /* how far behind the call of a program's start its hlt may be */

struct table { /* of jumps, among the code */
	uint32_t start, end;
};

struct straight { /* what was read since the last jump */
	uint32_t before[2];  /* the last instructions */
	bool is_behind_call; /* nothing but padding was read since a call */
};

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
	uint64_t nr_steps, max_steps; /* work done, and allowed */
	/* Of managed code: */
	uint32_t handlers[MAX_HANDLERS], nr_handlers; /* where control enters in a way that the code does not show */
	uint32_t inside;            /* the state that all calls have in common, + 1; 0: there was none */
	uint32_t place, place_at;   /* the last own address that was computed, and where */
	uint32_t max_index;         /* of a table there, by the instructions before; UINT32_MAX: not known */
	struct table tables[MAX_TABLES];
	uint32_t nr_tables;
	uint32_t cut_off;           /* another function begins there; 0: not found */
	uint32_t low, high;         /* what was first reached from the handler that is read */
	bool is_shown;              /* by a call, a return, or a way to code outside of that: it belongs to the function */
	/* Of all code: */
	bool is_contradicted, returns;
	bool gives_back; /* it returns, or jumps away, with sp as at the start */
	bool resets_sp, has_calls, is_doubtful; /* is_doubtful: calls may have dropped arguments */
	bool leaves, makes_threads;
	uint64_t places[MAX_PLACES]; /* of code, that it computes */
	size_t nr_places;
};

struct code_frames *code_frames_new(uint64_t max_steps)
{
	struct code_frames *frames = calloc(1, sizeof(*frames));

	if (frames)
		frames->max_steps = max_steps;
	return frames;
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
	return frames->nr_steps >= frames->max_steps;
}

const uint64_t *code_frames_targets(const struct code_frames *frames, size_t *ret_nr)
{
	*ret_nr = frames->nr_targets;
	return frames->targets;
}

const uint64_t *code_frames_thread_starts(const struct code_frames *frames, size_t *ret_nr)
{
	*ret_nr = frames->makes_threads ? frames->nr_places : 0;
	return frames->places;
}

bool code_frames_never_returns(const struct code_frames *frames)
{
	return !frames->returns && !frames->gives_back && !frames->leaves;
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

	f->is_shown |= f->at[off] && (off < f->low || off > f->high);
	if (f->at[off] == number)
		return false;
	if (!f->at[off]) {
		f->at[off] = number;
		f->low = off < f->low ? off : f->low;
		f->high = off > f->high ? off : f->high;
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

/* Control leaves the function, or its target is not known. The first function of a thread has nowhere to return to. All of a managed
 * function's code is known. */
static void leave(struct code_frames *f, const struct code_state *state)
{
	f->leaves = true;
	f->is_contradicted |= f->function.is_managed || (state->is_outermost && !f->function.is_start);
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

/* Handlers of exceptions may be entered with what is known at calls. */
static void note_inside(struct code_frames *f, const struct code_state *state)
{
	struct code_state both = *state;

	if (f->inside && !code_state_meet(&both, &f->states[f->inside - 1]))
		f->is_contradicted = true;
	f->inside = number_of(f, &both);
}

static bool is_aligned(const struct code_frames *f, uint32_t off)
{
	return !((f->function.vaddr + off) % CODE_MANAGED_ALIGN);
}

/* The function cannot be this long: another one begins at `off`. */
static void cut(struct code_frames *f, uint32_t off)
{
	if (is_aligned(f, off))
		f->cut_off = off;
	f->is_contradicted = true;
}

static void call_managed(struct code_frames *f, struct code_state *state, int64_t target, bool is_known)
{
	struct code_value sp = state->regs[X86_CODE_SP];

	if (sp.kind != CODE_CFA || sp.off % 16)
		f->is_contradicted = true;
	else if (is_known && target > 0 && target < (int64_t)f->function.size)
		cut(f, (uint32_t)target);
	else if (is_known && target)
		note_target(f, target);
	f->has_calls = f->is_shown = true;
	code_state_call(state, true);
	note_inside(f, state);
}

/* Padding. */
static bool is_filler(const struct x86_code *code)
{
	return code->op == 0x90 || code->op == 0x11f || code->op == 0xcc || code->op == 0xf4 || code->op == 0x10b;
}

/* The size of a table's entries. 0: the instructions before the jump at `off` are not what Graal writes:
 * lea table(%rip),%a; movslq (%a,%b,4),%c; add %c,%a; jmp *%a, or, by a hash of the value, which is in the entry's lower half:
 * lea table(%rip),%a; mov (%a,%b,8),%c; cmp %c,%d; jne; sar $32,%c; add %c,%a; jmp *%a */
static uint32_t entry_size(const struct code_frames *f, uint32_t off)
{
	struct x86_code codes[7];
	uint32_t at = f->place_at, nr = 0;

	for (; nr < ARRAY_SIZE(codes) && at < off; nr += !is_filler(&codes[nr])) {
		if (!x86_code_read(f->function.code + at, f->function.size - at, &codes[nr]))
			return 0;
		at += codes[nr].size;
	}
	if (at != off)
		return 0;
	if (nr == 3 && codes[1].op == 0x63 && codes[2].op == 0x03)
		return 4;
	return nr == 6 && codes[1].op == 0x8b && (codes[2].op == 0x39 || codes[2].op == 0x3b) &&
	       (codes[3].op == 0x75 || codes[3].op == 0x185) && codes[4].op == 0xc1 && codes[4].imm == 32 && codes[5].op == 0x03 ? 8 : 0;
}

static bool add_table(struct code_frames *f, uint32_t start, uint32_t end)
{
	for (uint32_t i = 0; i < f->nr_tables; i++) {
		if (f->tables[i].start == start)
			return f->tables[i].end == end;
	}
	if (f->nr_tables == MAX_TABLES)
		return false;
	f->tables[f->nr_tables++] = (struct table){ start, end };
	return true;
}

static void jump_by_table(struct code_frames *f, const struct code_state *state, uint32_t off, uint16_t number)
{
	uint32_t size = entry_size(f, off), nr = f->max_index + 1;
	struct reader r;

	if (!size || f->max_index >= MAX_INDEX || f->place > f->function.size - size * nr || size * nr > f->function.size ||
	    !add_table(f, f->place, f->place + size * nr)) {
		f->is_contradicted = true;
		return;
	}
	r = reader_of(f->function.code + f->place, size * nr);
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t value = size == 8 ? reader_u32(&r) : 0;
		int32_t distance = (int32_t)reader_u32(&r);

		if (value || distance) /* an empty entry of a hash table */
			jump(f, state, (int64_t)f->place + distance, number);
	}
	f->nr_steps += nr;
}

static void jump_managed(struct code_frames *f, const struct code_state *state, uint32_t off, uint16_t number)
{
	if (code_state_is_at_begin(state))
		f->gives_back = true;
	else
		jump_by_table(f, state, off, number);
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

/* Is this true of the function at `off`? */
static bool calls(const struct code_frames *f, bool (*is)(void *arg, uint64_t vaddr), int64_t off)
{
	return is && is(f->function.arg, f->function.vaddr + (uint64_t)off);
}

/* An address of code is computed: of a function, most likely. */
static void note_code(struct code_frames *f, const struct x86_code *code, int64_t next)
{
	uint64_t vaddr = code->op == 0x8d ? f->function.vaddr + (uint64_t)(next + code->disp) : (uint64_t)code->imm;

	if (f->nr_places == MAX_PLACES || !f->function.is_code || !f->function.is_code(f->function.arg, vaddr))
		return;
	for (size_t i = 0; i < f->nr_places; i++) {
		if (f->places[i] == vaddr)
			return;
	}
	f->places[f->nr_places++] = vaddr;
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

		if (f->function.is_managed) {
			call_managed(f, state, target, is_known);
			return true;
		}
		if (is_known &&
		    (target == next || (f->function.is_sized && target > 0 &&
					target < (int64_t)f->function.size))) /* a way to read pc, or code that shares the frame */
			f->is_contradicted = true;
		else if (is_known)
			note_target(f, target);
		f->has_calls = true;
		if (is_known && calls(f, f->function.never_returns, target))
			return false;
		f->makes_threads |= is_known && f->nr_places && calls(f, f->function.is_clone, target);
		code_state_call(state, !f->is_doubtful || (is_known && calls(f, f->function.keeps_sp, target)));
		return goes_on(f, next);
	}
	if (code->op == 0xc3 || code->op == 0xc2 || code->op == 0xca || code->op == 0xcb || code->op == 0xcf) {
		f->returns = f->gives_back = f->is_shown = true;
		f->is_contradicted |= !code_state_is_at_begin(state) || code->op >= 0xca || (f->function.is_managed && code->op == 0xc2);
	} else if (code->op == 0xe9 && !f->function.is_sized && code_state_is_at_begin(state)) {
		f->gives_back = true;
		note_target(f, target); /* most likely another function; a part of this one would also start in the initial state */
	} else if (code->op == 0xe9 || code->op == 0xeb) {
		jump(f, state, target, number);
	} else if (code->op == 0xff && x86_code_extension(code) == 4 && code_state_code(state, code, &target)) {
		jump(f, state, target, number);
	} else if (code->op == 0xff && f->function.is_managed) {
		jump_managed(f, state, next - code->size, number);
	} else if (code->op == 0xff) {
		leave(f, state);
	}
	return false;
}

static bool moves_control(const struct x86_code *code)
{
	return x86_code_is_branch(code) || x86_code_is_end(code) || is_call(code);
}

/* The highest value of an index, by the two instructions before its use: cmp $n,%reg; ja, or and $n,%reg. */
static uint32_t max_index(const struct code_frames *f, const uint32_t before[2])
{
	struct x86_code last, cmp;
	int64_t max = UINT32_MAX;

	if (!x86_code_read(f->function.code + before[1], f->function.size - before[1], &last) ||
	    !x86_code_read(f->function.code + before[0], f->function.size - before[0], &cmp))
		return UINT32_MAX;
	if ((last.op == 0x83 || last.op == 0x81) && x86_code_is_register(&last) && x86_code_extension(&last) == 4)
		max = last.imm;
	else if ((last.op == 0x77 || last.op == 0x187) &&
		 (cmp.op == 0x3d || ((cmp.op == 0x83 || cmp.op == 0x81) && x86_code_is_register(&cmp) && x86_code_extension(&cmp) == 7)))
		max = cmp.imm;
	return max >= 0 && max < UINT32_MAX ? (uint32_t)max : UINT32_MAX;
}

/* An own address is computed. `before`: the two instructions before. */
static void note_place(struct code_frames *f, const struct x86_code *code, uint32_t off, const uint32_t before[2])
{
	int64_t place = (int64_t)off + code->size + code->disp;

	if (place > 0 && place < (int64_t)f->function.size) {
		f->place = (uint32_t)place;
		f->place_at = off;
		f->max_index = max_index(f, before);
	}
}

/* Before an instruction of managed code that the one before reaches. False: it is none, as a call that does not return was before. */
static bool note_managed(struct code_frames *f, struct straight *s, const struct x86_code *code, uint32_t off)
{
	if (is_filler(code))
		return true;
	if (s->is_behind_call && is_aligned(f, off) && code_frames_is_begin(f->function.code + off, f->function.size - off)) {
		cut(f, off);
		return false;
	}
	if (code->op == 0x8d && (code->modrm & 0xc7) == 5)
		note_place(f, code, off, s->before);
	s->before[0] = s->before[1];
	s->before[1] = off;
	s->is_behind_call = is_call(code);
	return true;
}

/* Follows instructions from an offset on, until control ends or reaches a known state. */
static void run(struct code_frames *f, uint32_t off)
{
	uint16_t number = f->at[off];
	struct straight straight = { { off, off }, false };
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
		if (f->function.is_managed && !note_managed(f, &straight, &code, off))
			return;
		if (moves_control(&code)) {
			if (!follow(f, &code, &state, next, number))
				return;
			is_changed = is_call(&code) || code_state_branch(&state, &code, false);
		} else if (!code_state_step(&state, &code, next, f->function.vaddr, &is_changed)) {
			f->is_contradicted = true;
			return;
		}
		if ((code.op == 0x8d && (code.modrm & 0xc7) == 5) || (code.op >= 0xb8 && code.op <= 0xbf))
			note_code(f, &code, next);
		f->resets_sp |= !f->function.is_managed && code_state_resets_sp(&code);
		if (is_changed)
			number = number_of(f, &state);
		if (next >= f->function.size || is_other(f, next)) {
			if (!straight.is_behind_call) /* else the call does not return */
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

static void run_all(struct code_frames *f, uint64_t max_steps)
{
	while (f->nr_todo && !f->is_contradicted && f->nr_steps < max_steps)
		run(f, f->todo[--f->nr_todo]);
}

/* Managed code that no path leads to is entered when an exception is thrown, with the frame that the calls have. Code that neither calls,
 * nor returns, nor gets back to known code shows nothing of a frame: it may as well be another function. */
static void enter_handler(struct code_frames *f, uint32_t off, uint64_t max_steps)
{
	if (!f->inside || f->nr_handlers == MAX_HANDLERS ||
	    (is_aligned(f, off) && code_frames_is_begin(f->function.code + off, f->function.size - off))) {
		cut(f, off);
		return;
	}
	f->handlers[f->nr_handlers++] = off;
	f->is_shown = false;
	f->low = f->high = off;
	if (arrive(f, off, (uint16_t)f->inside))
		f->todo[f->nr_todo++] = off;
	run_all(f, max_steps);
	if ((f->is_contradicted || !f->is_shown) && !f->cut_off)
		cut(f, off);
}

/* What is known at calls may become less while handlers are read. */
static void enter_again(struct code_frames *f, uint64_t max_steps)
{
	for (uint32_t inside = 0; f->inside != inside && !f->is_contradicted;) {
		inside = f->inside;
		for (uint32_t i = 0; i < f->nr_handlers; i++) {
			if (arrive(f, f->handlers[i], (uint16_t)inside))
				f->todo[f->nr_todo++] = f->handlers[i];
			run_all(f, max_steps);
		}
	}
}

/* The end of the table at an offset; 0: there is none. */
static uint32_t table_end(struct code_frames *f, uint32_t off)
{
	f->nr_steps += f->nr_tables / 16;
	for (uint32_t i = 0; i < f->nr_tables; i++) {
		if (f->tables[i].start == off)
			return f->tables[i].end;
	}
	return 0;
}

/* Is there an instruction in a table? */
static bool has_code(struct code_frames *f, const struct table *table)
{
	f->nr_steps += (table->end - table->start) / 16;
	for (uint32_t off = table->start; off < table->end; off++) {
		if (f->at[off])
			return true;
	}
	return false;
}

static void enter_handlers(struct code_frames *f, uint64_t max_steps)
{
	struct x86_code code;

	for (uint32_t off = 0, end; off < f->function.size && !f->is_contradicted; f->nr_steps++) {
		f->is_contradicted |= code_frames_is_spent(f);
		if (f->at[off]) {
			off += f->sizes[off];
		} else if ((end = table_end(f, off))) {
			off = end;
		} else if (x86_code_read(f->function.code + off, f->function.size - off, &code) && is_filler(&code)) {
			off += code.size;
		} else {
			enter_handler(f, off, max_steps);
			if (!f->at[off])
				f->is_contradicted = true;
		}
	}
	enter_again(f, max_steps);
	for (uint32_t i = 0; i < f->nr_tables && !f->is_contradicted; i++)
		f->is_contradicted = has_code(f, &f->tables[i]);
}

static int read_once(struct code_frames *f, bool is_doubtful)
{
	struct code_state begin;
	/* each path is followed a few times at most, as less is known each time */
	uint64_t end = f->nr_steps + 256 * (uint64_t)f->function.size + MAX_STATES;

	f->nr_steps += BEGIN_STEPS;
	f->nr_states = 0;
	f->nr_todo = 0;
	f->nr_targets = 0;
	f->is_contradicted = f->returns = f->gives_back = f->resets_sp = f->has_calls = f->leaves = f->makes_threads = false;
	f->nr_places = 0;
	f->is_doubtful = is_doubtful;
	f->nr_handlers = f->nr_tables = f->inside = f->place = f->place_at = f->cut_off = 0;
	if (make_room(f, f->function.size))
		return -ENOMEM;
	begin = code_state_at_begin(f->function.is_start);
	begin.is_managed = f->function.is_managed;
	f->at[0] = number_of(f, &begin);
	f->used = 1;
	f->todo[f->nr_todo++] = 0;
	run_all(f, end);
	if (f->function.is_managed && !f->is_contradicted)
		enter_handlers(f, end);
	if (f->is_contradicted || f->nr_todo)
		return CODE_CONTRADICTS;
	if (f->function.is_managed) /* calls have aligned sp, which shows the frame, too */
		return f->returns || f->has_calls ? CODE_RETURNS : CODE_CONTRADICTS;
	return f->returns ? CODE_RETURNS : CODE_MAY_BE;
}

static int read_managed(struct code_frames *f)
{
	int verdict = read_once(f, false);

	for (uint32_t i = 0; i < MAX_CUTS && verdict == CODE_CONTRADICTS && f->cut_off; i++) {
		f->function.size = f->cut_off;
		verdict = read_once(f, false);
	}
	return verdict;
}

size_t code_frames_size(const struct code_frames *f)
{
	return f->function.size;
}

bool code_frames_is_begin(const uint8_t *code, size_t size)
{
	struct x86_code insn;

	if (!x86_code_read(code, size, &insn))
		return false;
	if (insn.op == 0x81 || insn.op == 0x83)
		return x86_code_is_register(&insn) && x86_code_rm(&insn) == X86_CODE_SP && x86_code_extension(&insn) == 5;
	if (insn.op == 0x8d)
		return (insn.modrm & 7) == 4 && insn.sib == 0x24 && insn.disp < 0;
	return insn.op == 0x55;
}

int code_frames_read(struct code_frames *f, const struct code_function *function)
{
	int verdict;

	f->function = *function;
	if (!function->size || function->size > MAX_SIZE)
		return CODE_CONTRADICTS;
	if (function->is_managed)
		return read_managed(f);
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

bool code_frames_is_clone(const uint8_t *code, size_t size)
{
	struct code_state state = code_state_at_begin(false);
	struct x86_code insn;
	bool is_changed;

	for (size_t at = 0; x86_code_read(code + at, size - at, &insn) && !state.is_outermost; at += insn.size) {
		if (x86_code_is_branch(&insn))
			is_changed = code_state_branch(&state, &insn, false);
		else if (moves_control(&insn) || !code_state_step(&state, &insn, (int64_t)(at + insn.size), 0, &is_changed))
			return false;
	}
	return state.is_outermost;
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
