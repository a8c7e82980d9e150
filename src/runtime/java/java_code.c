// SPDX-License-Identifier: Apache-2.0
#include "runtime/java/java_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cfi/code_state.h"

#define MAX_STATES     4096
#define STATE_SLOTS    (2 * MAX_STATES) /* of the hash table; a power of two */
#define MAX_SHIFT      16 /* a row's offset has 16 bits */
#define MIN_SHIFT      6
#define MAX_PARTS      512
#define STUB_ALIGN     16
#define MAX_REPLACED   8 /* bytes behind a jump that are left of what it replaces */
#define STATE_UNKNOWN  1  /* number of the state in which nothing is known */
#define STEPS_PER_BYTE 8  /* paths meet, and are followed again with less known */

struct java_code {
	struct java_code_row *rows;
	uint32_t nr_rows, capacity;
	uint32_t size, shift;
};

/* Code that is entered at one place. */
struct piece {
	uint32_t number;
	bool contradicts;
	bool loses_sp;
	bool leaves; /* it returns or jumps away with sp at the return address, or joins code that does */
};

struct reading {
	const struct java_code_blob *blob;
	struct code_state *states;
	uint16_t *slots; /* a hash table of states' numbers; 0: free */
	uint32_t nr_states;
	uint16_t *at;      /* by offset: the state before the instruction; 0: not reached */
	uint16_t *owners;  /* likewise: the piece that it was reached by */
	uint8_t *sizes;    /* likewise, of the instruction */
	uint8_t *is_soft;  /* likewise: control comes there only if a call before returns, which some do not */
	uint8_t *is_inside; /* by offset: in a stub whose begin is certain, but not what follows: no other begins there */
	uint32_t *todo, nr_todo;
	uint32_t *touched, nr_touched; /* offsets of the piece that is read */
	uint32_t *roots, nr_roots;     /* of further stubs: where calls lead */
	uint64_t nr_steps, max_steps;
	struct piece piece;
};

static void reading_done(struct reading *r)
{
	free(r->states);
	free(r->slots);
	free(r->at);
	free(r->owners);
	free(r->sizes);
	free(r->is_soft);
	free(r->is_inside);
	free(r->todo);
	free(r->touched);
	free(r->roots);
}

static int reading_init(struct reading *r, const struct java_code_blob *blob)
{
	size_t size = blob->size;

	*r = (struct reading){ .blob = blob,
			       .states = malloc((MAX_STATES + 1) * sizeof(*r->states)),
			       .slots = calloc(STATE_SLOTS, sizeof(*r->slots)),
			       .at = calloc(size, sizeof(*r->at)),
			       .owners = malloc(size * sizeof(*r->owners)),
			       .sizes = malloc(size),
			       .is_soft = malloc(size),
			       .is_inside = calloc(size, 1),
			       .todo = malloc(size * sizeof(*r->todo)),
			       .touched = malloc(size * sizeof(*r->touched)),
			       .roots = malloc(size * sizeof(*r->roots)),
			       .max_steps = STEPS_PER_BYTE * (uint64_t)size };
	if (!r->states || !r->slots || !r->at || !r->owners || !r->sizes || !r->is_soft || !r->is_inside || !r->todo ||
	    !r->touched || !r->roots)
		return -ENOMEM;
	memset(&r->states[STATE_UNKNOWN], 0, sizeof(*r->states));
	r->nr_states = STATE_UNKNOWN + 1;
	return 0;
}

/* --- states --------------------------------------------------------------------------------------------------------------------------- */

static bool is_nmethod(const struct reading *r)
{
	return r->blob->frame_bytes != 0;
}

/* Only sp, rbp and copies of them are followed: the rest is not needed. */
static struct code_state state_at_begin(void)
{
	struct code_state state = code_state_at_begin(false);

	state.is_managed = true;
	return state;
}

/* Behind push rbp; mov rbp, rsp; sub rsp, x. */
static struct code_state state_linked(const struct reading *r)
{
	struct code_state state = { .is_managed = true };

	state.regs[X86_CODE_SP] = (struct code_value){ CODE_CFA, -(int32_t)r->blob->stub_bytes };
	state.regs[X86_CODE_BP] = (struct code_value){ CODE_CFA, -16 };
	state.slots[0] = (struct code_slot){ { CODE_CFA, -16 }, { CODE_BP, 0 } };
	return state;
}

static bool is_same(struct code_value a, struct code_value b)
{
	return a.kind == b.kind && a.off == b.off;
}

#define LEAVE 0xc9

/* Is rbp not known, but the caller's is next to the return address? */
static bool state_has_frame(const struct code_state *state)
{
	bool has_slot = false;

	for (uint32_t i = 0; i < CODE_NR_SLOTS; i++)
		has_slot |= state->slots[i].value.kind == CODE_BP && is_same(state->slots[i].at, (struct code_value){ CODE_CFA, -16 });
	return has_slot && state->regs[X86_CODE_BP].kind == CODE_ANY;
}

/* Is the return address at sp, with the caller's rbp? */
static bool state_is_at_begin(const struct code_state *state)
{
	const struct code_value *sp = &state->regs[X86_CODE_SP];

	return sp->kind == CODE_CFA && sp->off == -8 && state->regs[X86_CODE_BP].kind == CODE_BP;
}

/* Is sp as after the return, with the caller's rbp? So a stub goes to the handler of an exception. The return address is still below sp. */
static bool state_is_returned(const struct code_state *state)
{
	const struct code_value *sp = &state->regs[X86_CODE_SP];

	return sp->kind == CODE_CFA && !sp->off && state->regs[X86_CODE_BP].kind == CODE_BP;
}

/* With an nmethod's frame complete. */
static struct code_state state_inside(const struct reading *r)
{
	struct code_state state = { .is_managed = true };

	state.regs[X86_CODE_SP] = (struct code_value){ CODE_CFA, -(int32_t)r->blob->frame_bytes };
	state.slots[0] = (struct code_slot){ { CODE_CFA, -16 }, { CODE_BP, 0 } };
	return state;
}

static uint32_t state_hash(const struct code_state *state)
{
	uint64_t hash = 1;
	uint32_t words[sizeof(*state) / sizeof(uint32_t)];

	memcpy(words, state, sizeof(words));
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ULL;
	return (uint32_t)(hash >> 32);
}

static uint16_t state_number(struct reading *r, const struct code_state *state)
{
	uint32_t slot = state_hash(state) % STATE_SLOTS;

	for (; r->slots[slot]; slot = (slot + 1) % STATE_SLOTS) {
		if (!memcmp(&r->states[r->slots[slot]], state, sizeof(*state)))
			return r->slots[slot];
	}
	if (r->nr_states > MAX_STATES)
		return STATE_UNKNOWN;
	r->states[r->nr_states] = *state;
	r->slots[slot] = (uint16_t)r->nr_states;
	return (uint16_t)r->nr_states++;
}

static bool is_on_stack(struct code_value value)
{
	return value.kind == CODE_CFA || value.kind == CODE_ALIGNED;
}

/* Makes sp a base of its own, as its distance from the CFA is no longer known. Words on the stack that lead to the CFA are from now on
 * found from it, too. */
static void state_rebase(struct code_state *state)
{
	struct code_value sp = state->regs[X86_CODE_SP];
	struct code_slot slots[CODE_NR_SLOTS] = { 0 };
	uint32_t nr = 0;

	for (uint32_t i = 0; i < CODE_NR_SLOTS && state->slots[i].value.kind; i++) {
		struct code_slot slot = state->slots[i];

		if (slot.at.kind == CODE_CFA && nr < CODE_NR_SLOTS)
			slots[nr++] = slot;
		slot.at = (struct code_value){ CODE_ALIGNED, slot.at.off - sp.off };
		if (state->slots[i].at.kind == sp.kind && slot.value.kind == CODE_CFA && nr < CODE_NR_SLOTS)
			slots[nr++] = slot;
	}
	memcpy(state->slots, slots, sizeof(slots));
	for (uint32_t reg = 0; reg < ARRAY_SIZE(state->regs); reg++) {
		if (state->regs[reg].kind == CODE_ALIGNED)
			state->regs[reg] = (struct code_value){ 0 };
	}
	state->regs[X86_CODE_SP] = (struct code_value){ CODE_ALIGNED, 0 };
}

/* What two paths have in common. */
static void state_join(struct code_state *state, const struct code_state *with)
{
	struct code_state other = *with;
	struct code_value *sp = &state->regs[X86_CODE_SP], *other_sp = &other.regs[X86_CODE_SP];

	if (!is_same(*sp, *other_sp)) {
		if (is_on_stack(*sp) && is_on_stack(*other_sp)) {
			state_rebase(state);
			state_rebase(&other);
		} else {
			*sp = *other_sp = (struct code_value){ 0 };
		}
	}
	if (!code_state_meet(state, &other))
		memset(state, 0, sizeof(*state));
}

/* --- paths ---------------------------------------------------------------------------------------------------------------------------- */

/* Control comes to an offset that it has come to before, with another sp. True: what is known there has changed. */
static bool reading_differ(struct reading *r, uint32_t off, uint16_t number, bool is_soft)
{
	bool is_own = r->owners[off] == (uint16_t)r->piece.number;
	struct code_state both;

	if (is_soft && (!is_own || !r->is_soft[off]))
		return false; /* the call does not return */
	if (!is_own) {
		r->piece.contradicts = true;
		return false;
	}
	both = r->states[number];
	if (is_soft || !r->is_soft[off])
		state_join(&both, &r->states[r->at[off]]);
	r->is_soft[off] = is_soft;
	number = state_number(r, &both);
	if (r->at[off] == number)
		return false;
	r->at[off] = number;
	return true;
}

/* Control comes to an offset. True: what is known there has changed. */
static bool reading_arrive(struct reading *r, uint32_t off, uint16_t number, bool is_soft)
{
	struct code_state both;

	if (!r->at[off]) {
		r->at[off] = number;
		r->owners[off] = (uint16_t)r->piece.number;
		r->is_soft[off] = is_soft;
		r->touched[r->nr_touched++] = off;
		return true;
	}
	both = r->states[r->at[off]];
	if (r->at[off] == STATE_UNKNOWN)
		return false;
	if (!is_same(both.regs[X86_CODE_SP], r->states[number].regs[X86_CODE_SP]))
		return reading_differ(r, off, number, is_soft);
	r->is_soft[off] &= is_soft;
	if (r->owners[off] != (uint16_t)r->piece.number) {
		r->piece.leaves = true;
		return false;
	}
	state_join(&both, &r->states[number]);
	number = state_number(r, &both);
	if (r->at[off] == number)
		return false;
	r->at[off] = number;
	return true;
}

static void reading_jump(struct reading *r, int64_t target, const struct code_state *state, uint16_t number, bool is_soft)
{
	if (target < 0 || target >= r->blob->size) {
		r->piece.leaves |= state_is_at_begin(state);
		return;
	}
	if (reading_arrive(r, (uint32_t)target, number, is_soft) && r->nr_todo < r->blob->size)
		r->todo[r->nr_todo++] = (uint32_t)target;
}

static bool is_call(const struct x86_code *code)
{
	return code->op == 0xe8 || (code->op == 0xff && x86_code_extension(code) == 2);
}

static bool is_pop(const struct x86_code *code)
{
	return code->op >= 0x58 && code->op <= 0x5f && (code->op & 7) != X86_CODE_SP && !(code->rex & 1);
}

static bool is_return(const struct x86_code *code)
{
	return code->op == 0xc3 || code->op == 0xc2;
}

static void reading_call(struct reading *r, const struct x86_code *code, uint32_t next, struct code_state *state)
{
	/* What a callee keeps by the psABI; Java's own keep rbp alone, and then nothing is left in the others. */
	static const uint8_t kept[] = { X86_CODE_BP, X86_CODE_BX, 12, 13, 14, 15 };
	const struct code_state before = *state;
	int64_t target = (int64_t)next + code->imm;

	if (code->op == 0xe8 && target == next) { /* pushes its own address */
		if (is_on_stack(state->regs[X86_CODE_SP]))
			state->regs[X86_CODE_SP].off -= 8;
		return;
	}
	if (code->op == 0xe8 && target >= 0 && target < r->blob->size && !is_nmethod(r) && r->nr_roots < r->blob->size)
		r->roots[r->nr_roots++] = (uint32_t)target;
	code_state_call(state, true);
	for (size_t i = 0; i < sizeof(kept); i++)
		state->regs[kept[i]] = before.regs[kept[i]];
}

/* An instruction behind which control does not go on. */
static void reading_end(struct reading *r, const struct x86_code *code, uint32_t next, const struct code_state *state, uint16_t number,
			bool is_soft)
{
	if (code->op == 0xe9 || code->op == 0xeb)
		reading_jump(r, (int64_t)next + code->imm, state, number, is_soft);
	else if (code->op == 0xff)
		r->piece.leaves |= state_is_at_begin(state) || state_is_returned(state);
	else if (is_return(code) && state_is_at_begin(state))
		r->piece.leaves = true;
	else if (is_return(code))
		r->piece.contradicts = true;
}

/* Is an nmethod's frame made once more, on top of a complete one? Then the code was not entered with that: its begin was replaced by a
 * jump, as no thread shall enter it any more (nmethod::make_not_entrant), and threads are still in it. `pushed` is where rbp was just
 * pushed. */
static bool is_second_frame(const struct reading *r, const struct code_state *state, int32_t pushed)
{
	const struct code_value sp = state->regs[X86_CODE_SP];
	int32_t bytes = (int32_t)r->blob->frame_bytes;

	return is_nmethod(r) && bytes > 16 && sp.kind == CODE_CFA && pushed == -bytes - 8 && sp.off == pushed - (bytes - 16);
}

/* Follows instructions from an offset on, until control ends or reaches what is known. */
static void reading_run(struct reading *r, uint32_t off)
{
	struct code_state state = r->states[r->at[off]];
	uint16_t number = r->at[off];
	bool is_soft = r->is_soft[off];
	int32_t pushed = 0;

	for (;;) {
		struct x86_code code;
		bool is_changed = true;
		uint32_t next;

		if (r->nr_steps++ > r->max_steps || !x86_code_read(r->blob->code + off, r->blob->size - off, &code)) {
			r->piece.contradicts = true;
			r->at[off] = STATE_UNKNOWN;
			r->sizes[off] = 1;
			return;
		}
		r->sizes[off] = code.size;
		next = off + code.size;
		if (x86_code_is_end(&code)) {
			reading_end(r, &code, next, &state, number, is_soft);
			return;
		}
		if (x86_code_is_branch(&code)) {
			reading_jump(r, (int64_t)next + code.imm, &state, number, is_soft);
			is_changed = false;
		} else if (is_call(&code)) {
			reading_call(r, &code, next, &state);
			is_soft = true;
		} else if (is_pop(&code) && !is_nmethod(r) && state_is_at_begin(&state)) { /* of the return address */
			state.regs[code.op & 7] = (struct code_value){ 0 };
			state.regs[X86_CODE_SP].off = 0;
			if (r->blob->is_adapter) {
				memset(&state, 0, sizeof(state));
				r->piece.leaves = true;
			}
		} else if (code.op == LEAVE && state_has_frame(&state)) { /* rbp was saved with all other registers, and is restored */
			state.regs[X86_CODE_SP] = (struct code_value){ CODE_CFA, -8 };
			state.regs[X86_CODE_BP] = (struct code_value){ CODE_BP, 0 };
		} else if (!code_state_step(&state, &code, next, r->blob->pc, &is_changed)) {
			memset(&state, 0, sizeof(state));
			is_changed = true;
		}
		r->piece.loses_sp |= is_changed && !is_on_stack(state.regs[X86_CODE_SP]);
		if (code.op == 0x50 + X86_CODE_BP && !(code.rex & 1))
			pushed = state.regs[X86_CODE_SP].off;
		r->piece.contradicts |= is_changed && is_second_frame(r, &state, pushed);
		if (is_changed)
			number = state_number(r, &state);
		if (next >= r->blob->size || !reading_arrive(r, next, number, is_soft))
			return;
		off = next;
		number = r->at[off];
		state = r->states[number];
		is_soft = r->is_soft[off];
	}
}

/* Reads what control reaches from an entry. */
static void reading_enter(struct reading *r, uint32_t entry, uint16_t number)
{
	r->piece = (struct piece){ .number = r->piece.number + 1 };
	r->nr_touched = 0;
	r->nr_todo = 0;
	reading_jump(r, entry, &r->states[number], number, false);
	while (r->nr_todo)
		reading_run(r, r->todo[--r->nr_todo]);
}

static void reading_undo(struct reading *r)
{
	for (uint32_t i = 0; i < r->nr_touched; i++)
		r->at[r->touched[i]] = 0;
}

static bool is_filler(const struct x86_code *code)
{
	return code->op == 0x90 || code->op == 0x11f || code->op == 0xcc || code->op == 0xf4 || code->op == 0x10b;
}

#define STATIC_STUB_MOV 10

/* mov rbx, x; jmp: where an nmethod calls a method that is interpreted (CompiledDirectCall::emit_to_interp_stub). */
static bool is_static_stub(const struct reading *r, uint32_t off)
{
	struct x86_code mov, jmp;

	return x86_code_read(r->blob->code + off, r->blob->size - off, &mov) && mov.op == 0xb8 + X86_CODE_BX &&
	       mov.size == STATIC_STUB_MOV && !(mov.rex & 1) &&
	       x86_code_read(r->blob->code + off + mov.size, r->blob->size - off - mov.size, &jmp) && jmp.op == 0xe9;
}

/* Code of an nmethod that no path leads to: with a complete frame, or before there is one. `is_doubtful`: it need not begin there; then it
 * counts only if where it leads to proves its frame. False: it is neither. */
static bool reading_enter_handler(struct reading *r, uint32_t entry, bool is_doubtful)
{
	const struct code_state states[] = { state_inside(r), state_at_begin() };
	bool is_called = is_static_stub(r, entry);

	for (uint32_t i = is_called; i < ARRAY_SIZE(states); i++) {
		reading_enter(r, entry, state_number(r, &states[i]));
		if (!r->piece.contradicts && !r->piece.loses_sp && (r->piece.leaves || !is_doubtful))
			return true;
		reading_undo(r);
	}
	return false;
}

/* push rbp; mov rbp, rsp */
static bool is_linking(const struct reading *r, uint32_t off)
{
	static const uint8_t forms[][4] = { { 0x55, 0x48, 0x8b, 0xec }, { 0x55, 0x48, 0x89, 0xe5 } };

	return r->blob->size - off >= sizeof(forms[0]) &&
	       (!memcmp(r->blob->code + off, forms[0], sizeof(forms[0])) || !memcmp(r->blob->code + off, forms[1], sizeof(forms[1])));
}

/* Another stub, or data. False: it is no stub. One that links rbp need not leave: it may jump to another blob with its frame on the stack,
 * as C1's do that throw (Runtime1::generate_exception_throw). */
static bool reading_enter_stub(struct reading *r, uint32_t entry)
{
	const struct code_state begin = state_at_begin();
	bool is_certain = is_linking(r, entry);

	if (r->at[entry])
		return true;
	if (r->is_inside[entry])
		return false;
	reading_enter(r, entry, state_number(r, &begin));
	if (!r->piece.contradicts && (r->piece.leaves || is_certain))
		return true;
	for (uint32_t i = 0; is_certain && i < r->nr_touched; i++)
		r->is_inside[r->touched[i]] = true;
	reading_undo(r);
	return false;
}

/* A blob that is a single stub. C1's stubs jump to one of them with their own frame in place, which rbp links
 * (Runtime1::generate_handle_exception). */
static void reading_enter_start(struct reading *r)
{
	const struct code_state states[] = { state_at_begin(), state_linked(r) };

	for (uint32_t i = 0; i < ARRAY_SIZE(states); i++) {
		reading_enter(r, 0, state_number(r, &states[i]));
		if (!r->piece.contradicts && (!r->piece.loses_sp || i))
			return;
		reading_undo(r);
	}
}

/* Behind code that is not a handler's begin. */
static uint32_t reading_skip(const struct reading *r, uint32_t off, bool may_be_replaced)
{
	struct x86_code code;

	if (!is_nmethod(r))
		return (uint32_t)((r->blob->pc + off + STUB_ALIGN) / STUB_ALIGN * STUB_ALIGN - r->blob->pc);
	if (may_be_replaced || !x86_code_read(r->blob->code + off, r->blob->size - off, &code))
		return off + 1;
	return off + code.size;
}

/* Looks for what no path leads to. C1 writes a jump over the begin of an instruction that it has yet to complete (PatchingStub): then the
 * next one begins a few bytes later. */
static void reading_sweep(struct reading *r)
{
	uint32_t nr_tried = is_nmethod(r) && !r->at[0]; /* since the last code that is known */
	bool is_behind_jump = false;
	struct x86_code code;

	for (uint32_t off = 0; off < r->blob->size && r->nr_steps < r->max_steps;) {
		bool is_code = x86_code_read(r->blob->code + off, r->blob->size - off, &code);
		bool may_be_replaced = is_behind_jump && nr_tried < MAX_REPLACED;

		while (!is_nmethod(r) && r->nr_roots)
			(void)reading_enter_stub(r, r->roots[--r->nr_roots]);
		if (r->at[off]) {
			is_behind_jump = is_code && code.op == 0xe9;
			off += r->sizes[off];
			nr_tried = 0;
		} else if (is_code && is_filler(&code)) {
			off += code.size;
		} else if (!(is_nmethod(r) ? reading_enter_handler(r, off, nr_tried && !may_be_replaced) : reading_enter_stub(r, off))) {
			off = reading_skip(r, off, may_be_replaced);
			nr_tried++;
		}
	}
}

/* --- rows ----------------------------------------------------------------------------------------------------------------------------- */

static bool is_words(int64_t bytes, int64_t min, int64_t max)
{
	return bytes % 8 == 0 && bytes / 8 >= min && bytes / 8 <= max;
}

static struct sonde_java_row row_of(const struct code_state *state)
{
	static const uint8_t kinds[] = { [SONDE_CFA_SP] = SONDE_JAVA_CFA_SP,
					 [SONDE_CFA_BP] = SONDE_JAVA_CFA_BP,
					 [SONDE_CFA_REG] = SONDE_JAVA_CFA_REG,
					 [SONDE_CFA_DEREF_SP] = SONDE_JAVA_CFA_SLOT };
	const struct sonde_java_row unknown = { .cfa = SONDE_JAVA_CFA_UNKNOWN };
	const struct sonde_rule rule = code_state_rule(state, false);
	const struct code_value sp = state->regs[X86_CODE_SP];
	const struct code_slot *slot = NULL;
	struct sonde_java_row row = { 0 };
	bool is_slot = rule.cfa_kind == SONDE_CFA_DEREF_SP;
	int32_t off = is_slot ? rule.cfa_add : rule.cfa_off;

	if (rule.kind != SONDE_RULE_KIND_STEP || rule.cfa_kind >= ARRAY_SIZE(kinds) || !kinds[rule.cfa_kind] ||
	    !is_words(off, INT16_MIN, INT16_MAX) || (is_slot && !is_words(rule.cfa_off, 0, UINT8_MAX)))
		return unknown;
	for (uint32_t i = 0; i < CODE_NR_SLOTS && !slot; i++)
		slot = state->slots[i].value.kind == CODE_BP && state->slots[i].at.kind == CODE_CFA ? &state->slots[i] : NULL;
	if (sp.kind == CODE_CFA && slot && slot->at.off < sp.off)
		slot = NULL; /* released */
	if (slot && is_words(-slot->at.off, 1, INT16_MAX)) /* also while it is in rbp as well: fewer rows */
		row.bp = (int16_t)(-slot->at.off / 8);
	else if (rule.bp_kind != SONDE_BP_SAME)
		return unknown;
	row.cfa = kinds[rule.cfa_kind];
	row.words = (int16_t)(off / 8);
	row.at = is_slot ? (uint8_t)(rule.cfa_off / 8) : row.cfa == SONDE_JAVA_CFA_REG ? rule.cfa_reg : 0;
	return row;
}

static int code_append(struct java_code *code, uint32_t off, struct sonde_java_row row)
{
	if (code->nr_rows && !memcmp(&code->rows[code->nr_rows - 1].row, &row, sizeof(row)))
		return 0;
	if (!array_grow(&code->rows, code->nr_rows, &code->capacity, sizeof(*code->rows), 16, JAVA_CODE_MAX_BYTES))
		return -ENOMEM;
	code->rows[code->nr_rows++] = (struct java_code_row){ off, row };
	return 0;
}

/* Is the instruction one of those, which are no part of the method? */
static bool is_in_static_stub(const struct reading *r, uint32_t off)
{
	return is_static_stub(r, off) ||
	       (off >= STATIC_STUB_MOV && r->at[off - STATIC_STUB_MOV] && is_static_stub(r, off - STATIC_STUB_MOV));
}

static int code_take_rows(struct java_code *code, const struct reading *r)
{
	uint32_t end = 0; /* of the last instruction */
	int err = 0;

	for (uint32_t off = 0; !err && off < code->size; off++) {
		if (r->at[off]) {
			struct sonde_java_row row = row_of(&r->states[r->at[off]]);

			if (is_nmethod(r) && row.cfa == SONDE_JAVA_CFA_SP && row.words == 1 && is_in_static_stub(r, off))
				row.at = SONDE_JAVA_AT_STUB;
			err = code_append(code, off, row);
			end = off + r->sizes[off];
		} else if (off >= end) {
			err = code_append(code, off, (struct sonde_java_row){ .cfa = SONDE_JAVA_CFA_UNKNOWN });
		}
	}
	return err;
}

static uint32_t code_index(const struct java_code *code, uint32_t off)
{
	uint32_t low = 0, high = code->nr_rows;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (code->rows[middle].off <= off)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static bool code_fits(const struct java_code *code, uint32_t shift)
{
	for (uint32_t start = 0; start < code->size; start += 1u << shift) {
		uint32_t end = start + (1u << shift) < code->size ? start + (1u << shift) : code->size;

		if (code_index(code, end - 1) - code_index(code, start) >= SONDE_JAVA_MAX_ROWS)
			return false;
	}
	return true;
}

/* The largest parts that their rows fit into. */
static void code_divide(struct java_code *code)
{
	code->shift = MAX_SHIFT;
	while (code->shift > MIN_SHIFT && code->size >> (code->shift - 1) < MAX_PARTS && !code_fits(code, code->shift))
		code->shift--;
}

int java_code_read(const struct java_code_blob *blob, struct java_code **ret_code)
{
	CLEANUP(java_code_freep) struct java_code *code = calloc(1, sizeof(*code));
	struct reading r = { 0 };
	struct code_state begin;
	int err = !code ? -ENOMEM : !blob->size || blob->size > JAVA_CODE_MAX_BYTES ? -EFBIG : reading_init(&r, blob);

	if (!err) {
		code->size = blob->size;
		begin = state_at_begin();
		if (blob->is_interrupting)
			begin.regs[X86_CODE_SP].off = 0;
		if (blob->stub_bytes && !blob->is_interrupting) {
			reading_enter_start(&r);
		} else if (is_nmethod(&r) || blob->is_interrupting) {
			reading_enter(&r, 0, state_number(&r, &begin));
			if (r.piece.contradicts || r.piece.loses_sp)
				reading_undo(&r);
		}
		reading_sweep(&r);
		err = code_take_rows(code, &r);
	}
	reading_done(&r);
	if (err)
		return err;
	code_divide(code);
	*ret_code = MOVE(code);
	return 0;
}

void java_code_free(struct java_code *code)
{
	if (!code)
		return;
	free(code->rows);
	free(code);
}

const struct java_code_row *java_code_rows(const struct java_code *code, uint32_t *ret_nr)
{
	*ret_nr = code->nr_rows;
	return code->rows;
}

struct sonde_java_row java_code_find(const struct java_code *code, uint32_t off)
{
	return off < code->size ? code->rows[code_index(code, off)].row : (struct sonde_java_row){ .cfa = SONDE_JAVA_CFA_UNKNOWN };
}

bool java_code_part(const struct java_code *code, uint32_t part, struct sonde_java_rows *ret_rows)
{
	bool is_divided = code->shift < MAX_SHIFT || code->size > 1u << MAX_SHIFT;
	uint32_t start = is_divided ? (part - 1) << code->shift : 0, end = start + (1u << code->shift), i;

	*ret_rows = (struct sonde_java_rows){ .shift = code->shift };
	if (is_divided && !part)
		return true;
	if (start >= code->size || (!is_divided && part))
		return false;
	for (i = code_index(code, start); i < code->nr_rows && code->rows[i].off < end; i++) {
		struct sonde_java_row row = code->rows[i].row;

		row.off = (uint16_t)(code->rows[i].off > start ? code->rows[i].off - start : 0);
		if (ret_rows->nr == SONDE_JAVA_MAX_ROWS) { /* no room: then nothing is known of the rest */
			ret_rows->rows[ret_rows->nr - 1] =
			    (struct sonde_java_row){ .cfa = SONDE_JAVA_CFA_UNKNOWN, .off = ret_rows->rows[ret_rows->nr - 1].off };
			break;
		}
		ret_rows->rows[ret_rows->nr++] = row;
	}
	return true;
}
