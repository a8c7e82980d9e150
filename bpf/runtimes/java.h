/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* java: from a frame in HotSpot's code cache to its caller, x86-64. The walk calls java_frame where a frame's pc is in memory of the code
 * cache. What is not proved ends the walk with a mark: a frame that was interrupted while being built has its return address found from the
 * instructions (java/java_leaf.h), and each return address must lead to the code cache or be behind a call.
 *
 * Cost: a read for each compiled frame (its blob's header), three more where the pc is not in the cache; an interpreted frame: seven. */
#pragma once
#include "java/java_chunk.h"
#include "java/java_leaf.h"

#define JAVA_SLOT_WRAPPER 6 /* of the call stub's frame: the JavaCallWrapper (frame_x86.hpp: entry_frame_call_wrapper_offset) */
/* Slots of an interpreter frame, in words below rbp. */
#define JAVA_SLOT_SENDER_SP 1
#define JAVA_SLOT_METHOD 3
#define JAVA_ENTRY_FILLED 32 /* bytes after an entry's `push rbp`: up to there rbx holds the method, behind it the slot does, too */
#define JAVA_BCP_START 1      /* instead of an address: no bytecode has run yet */
#define JAVA_METHOD_IN_ENTRY 6 /* likewise: the slot of sender_sp is filled */

#define JAVA_BY_ROW 16 /* beside WALK_GOES_ON and its kind: the row at pc says where the caller is */

/* Stores what the current frame runs in place of its native frame. */
static __always_inline int java_push(struct walk *w, struct runtime_walk *r, __u64 code, __u32 kind, __u64 where, __u32 cookie)
{
	if (runtime_push_placed(w, r, code, where | (__u64)kind << SONDE_JAVA_CODE_SHIFT, cookie) != RUNTIME_GOES_ON)
		return walk_stop(w, SONDE_STOP_DEPTH);
	return WALK_GOES_ON;
}

/* Moves to the caller. The return address must be one: in the code cache, or behind a call. */
static __always_inline int java_return(struct walk *w, struct runtime_walk *r, const struct sonde_java *j, __u64 pc, __u64 sp, __u64 bp)
{
	if (sp <= w->sp && !(w->exact && sp == w->sp))
		return runtime_owner_torn(w, r);
	if (java_heap_of(j, pc) >= SONDE_JAVA_MAX_HEAPS && !java_is_on_heap(w, r) && !walk_is_return(ref_of(w), pc))
		return runtime_owner_torn(w, r);
	walk_return_to(w, pc, sp, bp);
	return WALK_GOES_ON;
}

/* Frames that are linked by rbp. */
static __always_inline int java_linked(struct walk *w, struct runtime_walk *r, const struct sonde_java *j, __u64 sp)
{
	__u64 pc, bp;

	if (w->bp & 7 || w->bp < w->sp || w->bp - w->sp > WALK_MAX_FP_FRAME_BYTES)
		return runtime_owner_torn(w, r);
	if (walk_peek(w, w->bp, &bp) || walk_peek(w, w->bp + 8, &pc))
		return runtime_owner_fault(w, r, w->bp);
	return java_return(w, r, j, pc, sp ? sp : w->bp + 16, bp);
}

/* The return address is at sp, or above a pushed rbp. `sp`: the caller's; 0: just above. */
static __always_inline int java_bare(struct walk *w, struct runtime_walk *r, const struct sonde_java *j, int is_pushed, __u64 sp)
{
	__u64 pc, bp = w->bp, at = w->sp + (is_pushed ? 8 : 0);

	if ((is_pushed && walk_peek(w, w->sp, &bp)) || walk_peek(w, at, &pc))
		return runtime_owner_fault(w, r, at);
	return java_return(w, r, j, pc, sp ? sp : at + 8, bp);
}

/* What proves that code without a known frame returns to its caller, or goes to the caller's handler of an exception: its instructions. */
static __always_inline int java_by_code(struct walk *w, struct runtime_walk *r, const struct sonde_java *j)
{
	int found;

	walk_note_lost(w);
	w->emulation.returns_in_dx = 1;
	found = walk_emulate(w);
	w->emulation.returns_in_dx = 0;
	if (found == EMULATE_LINKED)
		return java_linked(w, r, j, 0);
	return found == EMULATE_MOVED ? WALK_GOES_ON : runtime_owner_torn(w, r);
}

/* --- interpreter ---------------------------------------------------------------------------------------------------------------------- */

/* Reads what names a method, and its cookie: 0, or -1. */
static __always_inline int java_method(struct walk *w, struct runtime_walk *r, const struct sonde_java *j, __u64 method,
				       struct sonde_java_method *ret_method)
{
	__u64 name, symbol, entry;

	*ret_method = (struct sonde_java_method){ 0 };
	if (read_user(w, &ret_method->const_method, 8, method + j->method_const) ||
	    read_user(w, r->buffer, 64, ret_method->const_method))
		return -1;
	ret_method->constants = java_u64(r->buffer, j->const_constants & 63);
	ret_method->code_size = java_u16(r->buffer, j->const_code_size & 63);
	ret_method->name = java_u16(r->buffer, j->const_name & 63);
	ret_method->signature = java_u16(r->buffer, j->const_signature & 63);
	if (read_user(w, &ret_method->holder, 8, ret_method->constants + j->pool_holder) ||
	    read_user(w, &name, 8, ret_method->holder + j->klass_name) || read_user(w, &symbol, 8, name))
		return -1;
	ret_method->class_name = symbol & j->symbol_mask;
	entry = ret_method->constants + j->pool_bytes + 8 * (__u64)ret_method->name;
	if (read_user(w, &ret_method->method_symbol, 8, entry) || read_user(w, &symbol, 8, ret_method->method_symbol))
		return -1;
	ret_method->method_name = symbol & j->symbol_mask;
	return 0;
}

static __always_inline int java_push_method(struct walk *w, struct runtime_walk *r, const struct sonde_java *j, __u64 method, __u64 bcp,
					    __u64 bcp_register)
{
	struct sonde_java_method *of = (struct sonde_java_method *)&r->state[JAVA_STATE_METHOD];
	__u64 codes, bci = SONDE_JAVA_NO_BCI;

	_Static_assert(sizeof(*of) <= sizeof(r->state) - 8 * JAVA_STATE_METHOD, "no room");
	if (java_method(w, r, j, method, of))
		return runtime_owner_torn(w, r);
	codes = of->const_method + j->const_bytes;
	if (bcp == JAVA_BCP_START)
		bci = of->code_size ? 0 : SONDE_JAVA_NO_BCI;
	else if (bcp_register - codes < of->code_size)
		bci = bcp_register - codes;
	else if (bcp - codes < of->code_size)
		bci = bcp - codes;
	return java_push(w, r, method, SONDE_JAVA_METHOD, bci, sonde_java_cookie(of));
}

/* While an entry's code builds the frame. r13 is the caller's sp, rbx the method. */
static __always_inline int java_entering(struct walk *w, struct runtime_walk *r, const struct sonde_java *j, enum java_leaf leaf)
{
	__u64 sp = w->regs[JAVA_R13];

	if (java_push_method(w, r, j, w->regs[JAVA_RBX], JAVA_BCP_START, 0))
		return WALK_ENDED;
	if (leaf == JAVA_LEAF_IN_REG)
		return java_return(w, r, j, w->regs[0], sp, w->bp);
	return java_bare(w, r, j, leaf == JAVA_LEAF_PUSHED, sp);
}

/* While the frame is removed. Its slots are still there, below sp, where nothing is written (psABI: the red zone), until sp is the
 * caller's. From then on the method is not known. */
static __always_inline int java_leaving(struct walk *w, struct runtime_walk *r, const struct sonde_java *j,
					const struct java_removal *removal)
{
	__u64 sp = removal->has_sp ? w->sp : w->regs[removal->sp_reg & (WALK_NR_REGS - 1)];
	__u64 bp = w->sp - (removal->where == JAVA_LEAF_IN_REG ? 16 : 8), method, bcp;

	if (removal->has_sp) {
		if (java_push(w, r, j->interpreter_start, SONDE_JAVA_STUB, w->pc - j->interpreter_start, 0))
			return WALK_ENDED;
	} else {
		if (walk_peek(w, bp - 8 * JAVA_SLOT_METHOD, &method) || walk_peek(w, bp - 8 * (j->bcp_slot & 15), &bcp))
			return runtime_owner_fault(w, r, bp);
		if (java_push_method(w, r, j, method, bcp, 0))
			return WALK_ENDED;
	}
	if (removal->where == JAVA_LEAF_IN_REG)
		return java_return(w, r, j, w->regs[removal->ret_reg & (WALK_NR_REGS - 1)], sp, w->bp);
	return java_bare(w, r, j, 0, sp);
}

static __always_inline int java_interpreted(struct walk *w, struct runtime_walk *r, const struct sonde_java *j)
{
	__u32 off = w->pc - j->interpreter_start, word;
	const struct sonde_java_entry *entry = 0;
	__u64 sender_sp, method, bcp;
	struct java_removal removal;

	if (w->exact == WALK_EXACT) {
		if (off - j->entries_start < j->entries_end - j->entries_start) {
			enum java_leaf leaf = java_entry_leaf(j, off, &entry);

			if (leaf == JAVA_LEAF_UNKNOWN)
				return java_by_code(w, r, j);
			if (leaf != JAVA_LEAF_WHOLE)
				return java_entering(w, r, j, leaf);
		}
		word = java_interpreter_leaf(ref_of(w));
		__builtin_memcpy(&removal, &word, sizeof(removal));
		if (removal.where == JAVA_LEAF_UNKNOWN)
			return runtime_owner_torn(w, r);
		if (removal.where != JAVA_LEAF_WHOLE)
			return java_leaving(w, r, j, &removal);
	}
	if (w->bp & 7 || w->bp < w->sp || w->bp - w->sp > WALK_MAX_FP_FRAME_BYTES)
		return runtime_owner_torn(w, r);
	if (walk_peek(w, w->bp - 8 * JAVA_SLOT_SENDER_SP, &sender_sp) || walk_peek(w, w->bp - 8 * JAVA_SLOT_METHOD, &method) ||
	    walk_peek(w, w->bp - 8 * (j->bcp_slot & 15), &bcp))
		return runtime_owner_fault(w, r, w->bp);
	if (entry && off < entry->pushed + JAVA_ENTRY_FILLED) {
		method = w->regs[JAVA_RBX];
		bcp = JAVA_BCP_START;
		if (off < entry->pushed + JAVA_METHOD_IN_ENTRY)
			sender_sp = w->regs[JAVA_R13];
	}
	if (java_is_on_heap(w, r))
		sender_sp = w->bp + 8 * sender_sp;
	if (sender_sp <= w->bp || sender_sp & 7)
		return runtime_owner_torn(w, r);
	if (java_push_method(w, r, j, method, bcp, w->exact == WALK_EXACT ? w->regs[JAVA_R13] : 0))
		return WALK_ENDED;
	return java_linked(w, r, j, sender_sp);
}

/* --- compiled code and stubs ---------------------------------------------------------------------------------------------------------- */

/* What the walk assumes of an nmethod that has no rows yet, see SONDE_JAVA_CLAIM_WORDS. `words` 0: its code proves the caller. */
static __always_inline __u64 java_claim(const struct walk *w, __u64 words, int is_bp_kept)
{
	return SONDE_RUNTIME_CLAIM | (w->exact != WALK_RETURN ? SONDE_JAVA_CLAIM_EXACT : 0) | (is_bp_kept ? SONDE_JAVA_CLAIM_BP_KEPT : 0) |
	       words << SONDE_JAVA_CLAIM_SHIFT;
}

static __always_inline __u64 java_leaf_claim(const struct walk *w, const struct java_blob *blob, enum java_leaf leaf)
{
	__u64 words = blob->frame_bytes / 8;

	switch (leaf) {
	case JAVA_LEAF_NONE:
	case JAVA_LEAF_PUSHED:
		return java_claim(w, leaf == JAVA_LEAF_PUSHED ? 2 : 1, leaf == JAVA_LEAF_NONE);
	case JAVA_LEAF_WHOLE:
	case JAVA_LEAF_NO_BP:
		return java_claim(w, words, leaf == JAVA_LEAF_NO_BP);
	default:
		return java_claim(w, 0, 0);
	}
}

static __always_inline int java_has_row(const struct java_blob *blob)
{
	return (blob->row >> 16 & 0xff) > SONDE_JAVA_CFA_UNKNOWN;
}

static __always_inline int java_is_stub_row(__u64 word)
{
	const struct sonde_java_row *row = (const struct sonde_java_row *)&word;

	return row->cfa == SONDE_JAVA_CFA_SP && row->at == SONDE_JAVA_AT_STUB;
}

#define JAVA_MAX_POLL_BYTES 16 /* a poll is skipped: SafepointBlob returns behind it */

/* What a row says of the caller, in the emulator's line: a function of the walk alone, as BPF's stack is small. */
#define JAVA_ROW_SP 0
#define JAVA_ROW_PC 1
#define JAVA_ROW_BP 2

enum java_row_answer { JAVA_ROW_FOUND, JAVA_ROW_TORN, JAVA_ROW_FAULT };

WALK_FUNCTION int java_row_caller(WALK_REF ref, __u64 word)
{
	const struct sonde_java_row *row = (const struct sonde_java_row *)&word;
	struct walk *w = walk_of(ref);
	__u64 cfa, pc, bp;

	if (!w)
		return JAVA_ROW_TORN;
	bp = w->bp;
	switch (row->cfa) {
	case SONDE_JAVA_CFA_SP:
		cfa = w->sp;
		break;
	case SONDE_JAVA_CFA_BP:
		cfa = w->bp;
		break;
	case SONDE_JAVA_CFA_REG:
		cfa = w->regs[row->at & (WALK_NR_REGS - 1)];
		if (w->exact != WALK_EXACT)
			return JAVA_ROW_TORN;
		break;
	case SONDE_JAVA_CFA_SLOT:
		if (walk_peek(w, w->sp + 8 * row->at, &cfa))
			return JAVA_ROW_FAULT;
		break;
	default:
		return JAVA_ROW_TORN;
	}
	cfa += 8 * (__s64)row->words;
	if (cfa - w->sp > WALK_MAX_FP_FRAME_BYTES)
		return JAVA_ROW_TORN;
	if (walk_peek(w, cfa - 8, &pc) || (row->bp && walk_peek(w, cfa - 8 * (__s64)row->bp, &bp)))
		return JAVA_ROW_FAULT;
	w->emulation.line[JAVA_ROW_SP] = cfa;
	w->emulation.line[JAVA_ROW_PC] = pc;
	w->emulation.line[JAVA_ROW_BP] = bp;
	return JAVA_ROW_FOUND;
}

/* To the caller by the row at pc. `interrupted`: the caller's pc, where that is not on the stack yet; or 0. */
static __always_inline int java_by_row(struct walk *w, struct runtime_walk *r, const struct sonde_java *j, __u64 word, __u64 interrupted)
{
	int found = java_row_caller(ref_of(w), word);
	__u64 cfa = w->emulation.line[JAVA_ROW_SP], pc = w->emulation.line[JAVA_ROW_PC];

	if (found != JAVA_ROW_FOUND)
		return found == JAVA_ROW_FAULT ? runtime_owner_fault(w, r, w->sp) : runtime_owner_torn(w, r);
	if (interrupted && (cfa == w->sp || pc - interrupted > JAVA_MAX_POLL_BYTES)) {
		if (cfa != w->sp && java_heap_of(j, pc) < SONDE_JAVA_MAX_HEAPS) /* made to return elsewhere, or what a register held */
			return runtime_owner_torn(w, r);
		pc = interrupted;
	}
	return java_return(w, r, j, pc, cfa, w->emulation.line[JAVA_ROW_BP]);
}

/* A frame of known size: from the blob's, at w->sp. */
static __always_inline int java_sized(struct walk *w, struct runtime_walk *r, const struct sonde_java *j, const struct java_blob *blob,
				      enum java_leaf leaf)
{
	__u64 cfa = w->sp + blob->frame_bytes, pc, bp = w->bp;

	if (walk_peek(w, cfa - 8, &pc) || (leaf != JAVA_LEAF_NO_BP && walk_peek(w, cfa - 16, &bp)))
		return runtime_owner_fault(w, r, cfa);
	return java_return(w, r, j, pc, cfa, bp);
}

/* Where the code of a deoptimized frame continued before: it has its pc in a slot, and its return address leads to the handler. */
static __always_inline int java_deoptimized(struct walk *w, struct runtime_walk *r, const struct sonde_java *j,
					    const struct java_blob *blob, __u64 *pc)
{
	__u32 at = j->block_bytes;
	__u64 handler, handler_mh = 0;

	if (j->has_addresses) {
		handler = java_u64(r->buffer, at + j->nmethod_deopt);
		if (j->nmethod_deopt_mh != SONDE_JAVA_NONE)
			handler_mh = java_u64(r->buffer, at + j->nmethod_deopt_mh);
	} else {
		handler = blob->start + java_u32(r->buffer, at + j->nmethod_deopt);
		if (j->nmethod_deopt_mh != SONDE_JAVA_NONE)
			handler_mh = blob->start + java_u32(r->buffer, at + j->nmethod_deopt_mh);
	}
	if (*pc != handler && *pc != handler_mh)
		return 0;
	if (walk_peek(w, w->sp + (java_u32(r->buffer, at + j->nmethod_orig_pc) & 0xfffffff8), pc))
		return -1;
	return *pc - blob->code_start < blob->code_end - blob->code_start ? 0 : -1;
}

static __always_inline int java_compiled(struct walk *w, struct runtime_walk *r, const struct sonde_java *j, struct java_blob *blob)
{
	enum java_leaf leaf = JAVA_LEAF_WHOLE;
	__u64 pc = w->pc, claim = 0;
	int is_bare, is_interrupted;

	is_bare = !blob->frame_bytes && blob->kind == JAVA_BLOB_NATIVE; /* jumps to the method of a method handle */
	if ((blob->frame_bytes < 16 && !is_bare) || blob->frame_bytes / 8 > SONDE_JAVA_CLAIM_WORDS)
		return runtime_owner_torn(w, r);
	if (w->exact != WALK_EXACT && blob->kind == JAVA_BLOB_NMETHOD && java_deoptimized(w, r, j, blob, &pc))
		return runtime_owner_torn(w, r);
	if (pc != w->pc && blob->row)
		blob->row = java_row_at(blob->start, j->process.serial, blob->id, pc - blob->code_start - (w->exact == WALK_RETURN));
	if (!blob->row) {
		if (is_bare)
			leaf = JAVA_LEAF_NONE;
		else if (w->exact == WALK_EXACT)
			leaf = java_method_leaf(w, blob);
		claim = java_leaf_claim(w, blob, leaf);
	}
	is_interrupted = w->exact == WALK_EXACT || (claim && w->exact); /* a poll is described like a call, if that needs no proof */
	if (java_is_stub_row(blob->row)
		? java_push(w, r, blob->start, SONDE_JAVA_STUB, pc - blob->start, blob->name_hash)
		: java_push(w, r, blob->start, SONDE_JAVA_COMPILED, (pc - blob->code_start + is_interrupted) | claim, blob->id))
		return WALK_ENDED;
	if (blob->row)
		return JAVA_BY_ROW;
	switch (leaf) {
	case JAVA_LEAF_WHOLE:
	case JAVA_LEAF_NO_BP:
		return java_sized(w, r, j, blob, leaf);
	case JAVA_LEAF_NONE:
	case JAVA_LEAF_PUSHED:
		return java_bare(w, r, j, leaf == JAVA_LEAF_PUSHED, 0);
	default:
		return runtime_owner_torn(w, r);
	}
}

/* Exchanges a compiled frame for interpreted ones: first it looks at the compiled one, later it fills the new ones in, which say nothing
 * before (Deoptimization::fetch_unroll_info, unpack_frames). */
static __always_inline int java_exchanging(struct walk *w, struct runtime_walk *r, const struct sonde_java *j, const struct java_blob *blob)
{
	int at = blob->frame_bytes > 0 ? java_sized(w, r, j, blob, JAVA_LEAF_WHOLE) : runtime_owner_torn(w, r);

	return at == WALK_GOES_ON && java_is_interpreter(j, w->pc) ? runtime_owner_torn(w, r) : at;
}

/* A virtual thread's last frame on the stack returns to a stub that brings back more from the heap. Its first frame is always on the stack,
 * above that one: the code that entered the continuation (ContinuationEntry). */
static __always_inline int java_parked(struct walk *w, struct runtime_walk *r, const struct sonde_java *j)
{
	int is_called = walk_after_call(ref_of(w), w->pc);

	if (is_called && !java_is_thawing(w, r, j))
		return java_linked(w, r, j, 0);
	java_leave_stack(w, r, is_called);
	return WALK_GOES_ON;
}

static __always_inline int java_in_adapter(struct walk *w, struct runtime_walk *r, const struct sonde_java *j)
{
	__u32 word = java_adapter_leaf(ref_of(w));
	struct java_removal removal;
	__u64 pc = w->regs[JAVA_RAX], sp;

	__builtin_memcpy(&removal, &word, sizeof(removal));
	sp = removal.has_sp ? w->sp : w->regs[JAVA_R13];
	if (removal.where == JAVA_LEAF_UNKNOWN || (removal.where == JAVA_LEAF_NONE && walk_peek(w, w->sp, &pc)) ||
	    java_heap_of(j, pc) >= SONDE_JAVA_MAX_HEAPS) /* only Java's code calls it */
		return runtime_owner_torn(w, r);
	return java_return(w, r, j, pc, sp + (removal.has_sp && removal.where == JAVA_LEAF_NONE ? 8 : 0), w->bp);
}

/* On the way to the handler of an exception, where the return address is in rdx. */
static __always_inline int java_in_dx(struct walk *w, struct runtime_walk *r, const struct sonde_java *j)
{
	__u64 pc = w->regs[JAVA_RDX];

	if (w->exact != WALK_EXACT || java_heap_of(j, pc) >= SONDE_JAVA_MAX_HEAPS)
		return runtime_owner_torn(w, r);
	return java_return(w, r, j, pc, w->sp, w->bp);
}

static __always_inline int java_in_exception(struct walk *w, struct runtime_walk *r, const struct sonde_java *j,
					     const struct java_blob *blob)
{
	enum java_leaf leaf = java_exception_leaf(ref_of(w), blob->code_start);

	if (leaf == JAVA_LEAF_IN_REG)
		return java_in_dx(w, r, j);
	if (leaf == JAVA_LEAF_NONE)
		return java_bare(w, r, j, 0, 0);
	if (leaf == JAVA_LEAF_UNKNOWN || blob->frame_bytes < 16)
		return runtime_owner_torn(w, r);
	return java_sized(w, r, j, blob, leaf);
}

/* A stub that was interrupted. */
static __always_inline int java_in_stub(struct walk *w, struct runtime_walk *r, const struct sonde_java *j, const struct java_blob *blob)
{
	enum java_leaf leaf;

	if (blob->kind == JAVA_BLOB_ADAPTER && w->exact == WALK_EXACT)
		return java_in_adapter(w, r, j);
	if (blob->kind == JAVA_BLOB_EXCEPTION)
		return java_in_exception(w, r, j, blob);
	leaf = blob->kind == JAVA_BLOB_TABLE ? JAVA_LEAF_NONE : java_stub_leaf(ref_of(w), blob->code_start);
	if (leaf == JAVA_LEAF_WHOLE)
		return java_linked(w, r, j, 0);
	if (leaf != JAVA_LEAF_UNKNOWN)
		return java_bare(w, r, j, leaf == JAVA_LEAF_PUSHED, 0);
	if (java_is_popped(ref_of(w)))
		return java_in_dx(w, r, j);
	return blob->kind == JAVA_BLOB_SAFEPOINT ? runtime_owner_torn(w, r) : java_by_code(w, r, j);
}

/* Below a stub without a known size that has called the VM: rbp is its own or its caller's. */
static __always_inline int java_calling(struct walk *w, struct runtime_walk *r, const struct sonde_java *j, const struct java_blob *blob)
{
	return java_links(ref_of(w), blob->code_start) ? java_linked(w, r, j, 0) : java_by_code(w, r, j);
}

/* The current frame is the call stub's: where its JavaCallWrapper keeps the anchor of the Java frames farther out. */
static __always_inline void java_note_wrapper(struct walk *w, struct runtime_walk *r, const struct sonde_java *j)
{
	__u64 wrapper;

	if (j->wrapper_anchor != SONDE_JAVA_NONE && !walk_peek(w, w->bp - 8 * JAVA_SLOT_WRAPPER, &wrapper) && wrapper > w->bp)
		r->state[JAVA_STATE_ANCHOR] = wrapper + j->wrapper_anchor;
}

/* Is this a return address that was put in place of another one, in a stub that brings frames of a virtual thread? */
static __always_inline int java_is_parked(struct walk *w, const struct java_blob *blob)
{
	return w->exact == WALK_RETURN && blob->kind == JAVA_BLOB_STUBS && !walk_after_call(ref_of(w), w->pc);
}

static __always_inline int java_has_claim(__u8 kind)
{
	return kind == JAVA_BLOB_STUBS || kind == JAVA_BLOB_SAFEPOINT || kind == JAVA_BLOB_ADAPTER || kind == JAVA_BLOB_OTHER;
}

#define JAVA_PUSH_BX 0x53

/* Has a signal led to this blob, which interrupted the caller? The blob first pushes rbx to make room for a return address, and takes that
 * from the JavaThread later (SharedRuntime::generate_handler_blob). Others are called or jumped to. */
static __always_inline int java_is_by_signal(struct walk *w, const struct java_blob *blob)
{
	__u8 first = 0;

	return blob->kind == JAVA_BLOB_SAFEPOINT && !read_user(w, &first, 1, blob->code_start) && first == JAVA_PUSH_BX;
}

/* Then: what it interrupted; 0: the return address is there. */
static __always_inline __u64 java_interrupted(struct walk *w, const struct sonde_java *j)
{
	__u64 pc = 0;

	if (w->exact != WALK_EXACT || j->thread_exception_pc == SONDE_JAVA_NONE ||
	    read_user(w, &pc, 8, w->regs[JAVA_R15] + j->thread_exception_pc))
		return 0;
	return pc;
}

static __always_inline int java_stub(struct walk *w, struct runtime_walk *r, const struct sonde_java *j, const struct java_blob *blob)
{
	__u64 claim = !blob->row && java_has_claim(blob->kind) ? java_claim(w, 0, 0) : 0;

	if (java_push(w, r, blob->start, SONDE_JAVA_STUB, (w->pc - blob->start) | claim, blob->name_hash))
		return WALK_ENDED;
	if (w->pc == j->call_stub_return) {
		java_note_wrapper(w, r, j);
		return java_linked(w, r, j, 0);
	}
	if (java_has_row(blob) && !java_is_parked(w, blob))
		return JAVA_BY_ROW;
	if (w->exact == WALK_RETURN) {
		if (blob->kind == JAVA_BLOB_DEOPTIMIZE)
			return java_exchanging(w, r, j, blob);
		if (blob->kind == JAVA_BLOB_ADAPTER) /* it has saved all registers and calls the VM: rbp is the caller's */
			return runtime_owner_torn(w, r);
		if (blob->frame_bytes > 0 && blob->kind != JAVA_BLOB_FOREIGN) /* those may have called with sp aligned */
			return java_sized(w, r, j, blob, JAVA_LEAF_WHOLE);
		return blob->kind == JAVA_BLOB_STUBS ? java_parked(w, r, j) : java_calling(w, r, j, blob);
	}
	return java_in_stub(w, r, j, blob);
}

/* --- gaps ----------------------------------------------------------------------------------------------------------------------------- */

/* Names the frame above a gap, for java_frame to put the mark there. */
static __always_inline __u64 java_gap_at(const struct walk *w, __u32 frame)
{
	return w->nr_walks << 16 | frame;
}

/* The current thread's own anchor; 0: it has none. What leads there may be anything on a thread that is not Java's: the proof is that the
 * thread's pthread_t, which is its thread pointer, is in the OSThread, and that the walk is on that thread's stack. */
static __always_inline __u64 java_own_anchor(struct walk *w, const struct sonde_java *j)
{
	__u64 base = user_tls_base(w), thread, os, pthread, high, size;

	if (!base || j->process.root.kind != SONDE_TLS_STATIC || read_user(w, &thread, 8, base + (__u64)j->process.root.off) ||
	    read_user(w, &os, 8, thread + j->thread_os) || read_user(w, &pthread, 8, os + j->os_pthread) || pthread != base ||
	    read_user(w, &high, 8, thread + j->thread_stack_base) || read_user(w, &size, 8, thread + j->thread_stack_size))
		return 0;
	return high - w->sp <= size ? thread + j->thread_anchor : 0;
}

/* From a native frame whose caller is not found to the last Java frame before it: the VM records that frame whenever Java calls out of its
 * code, and unmakes the record when it is called back (JavaFrameAnchor, JavaCallWrapper). sp is written last and cleared first. */
static __always_inline int java_bridge(struct walk *w, struct runtime_walk *r, const struct sonde_java *j)
{
	__u64 anchor = 0, sp, pc, bp;

	walk_note_lost(w);
	if (!r->nr_frames)
		anchor = java_own_anchor(w, j);
	else if (r->nr_frames > r->first_frame)
		anchor = r->state[JAVA_STATE_ANCHOR];
	if (!anchor || w->nr_frames >= SONDE_LEAF_FRAMES || read_user(w, &sp, 8, anchor + j->anchor_sp) ||
	    read_user(w, &pc, 8, anchor + j->anchor_pc) || read_user(w, &bp, 8, anchor + j->anchor_fp) || sp <= w->sp || sp & 7)
		return WALK_ENDED;
	if (!pc && read_user(w, &pc, 8, sp - 8)) /* the VM was called, and that pushed it */
		return WALK_ENDED;
	if (java_heap_of(j, pc) >= SONDE_JAVA_MAX_HEAPS)
		return WALK_ENDED;
	walk_leave_to_owner(w);
	walk_return_to(w, pc, sp, bp);
	w->has_gap = 1;
	r->state[JAVA_STATE_GAP] = java_gap_at(w, w->nr_frames);
	return WALK_GOES_ON;
}

/* --- frames on the heap --------------------------------------------------------------------------------------------------------------- */

/* To the frame that entered the continuation. */
static __always_inline int java_to_entry(struct walk *w, struct runtime_walk *r, const struct sonde_java *j)
{
	r->state[JAVA_STATE_CHUNK] = 0;
	w->sp = r->state[JAVA_STATE_ENTRY];
	if (!j->continuation_return || read_user(w, &w->pc, 8, j->continuation_return) || !w->pc)
		return runtime_owner_torn(w, r);
	return WALK_GOES_ON;
}

/* Nothing has called the stub that the last frame on the stack returns to: no frame takes its place. */
static __always_inline void java_drop_barrier(const struct walk *w, struct runtime_walk *r)
{
	struct sonde_runtime_frame *last = &r->frames[(r->nr_frames - 1) & (SONDE_MAX_RUNTIME_FRAMES - 1)];

	if (last->flags != SONDE_RUNTIME_PLACED || last->native != w->nr_frames - 1)
		return;
	last->code = 0;
	last->cookie = 0;
	last->where = last->native;
	last->flags = SONDE_RUNTIME_ENTRY;
	last->native = 0;
}

/* Behind the step from a frame, once the walk has left the stack: to the next one. 0; -1: it is not known. */
static __always_inline int java_on_heap(struct walk *w, struct runtime_walk *r, const struct sonde_java *j)
{
	int is_first = !r->state[JAVA_STATE_CHUNK_END];
	__u64 chunk;

	if (!is_first && !java_is_behind_chunk(w, r))
		return java_take_caller(w, r, j);
	chunk = is_first ? java_first_chunk(w, r, j, java_own_anchor(w, j)) : r->state[JAVA_STATE_CHUNK_NEXT];
	if (!is_first && !chunk)
		return java_to_entry(w, r, j);
	if (java_enter_chunk(w, r, j, chunk))
		return -1;
	if (is_first)
		java_drop_barrier(w, r);
	return 0;
}

/* From the current frame to its caller, or to the stack's end. */
static __always_inline int java_to_caller(struct walk *w, struct runtime_walk *r, const struct sonde_java *j)
{
	struct java_blob blob;
	int at, is_by_signal;

	r->state[JAVA_STATE_ANCHOR] = 0;
	if (java_is_interpreter(j, w->pc))
		return java_interpreted(w, r, j);
	if (java_find_blob(w, r, j, w->pc, &blob) || (java_is_on_heap(w, r) && blob.kind != JAVA_BLOB_NMETHOD))
		return runtime_owner_torn(w, r);
	java_note_yield(w, r, &blob);
	at = java_is_nmethod(blob.kind) ? java_compiled(w, r, j, &blob) : java_stub(w, r, j, &blob);
	is_by_signal = java_is_by_signal(w, &blob);
	if (at == JAVA_BY_ROW)
		at = java_by_row(w, r, j, blob.row, is_by_signal ? java_interrupted(w, j) : 0);
	if (at == WALK_GOES_ON && is_by_signal)
		w->exact = WALK_EXACT_PC;
	return at;
}

static __always_inline int java_frame(struct walk *w, struct runtime_walk *r, const struct sonde_java *j)
{
	int at;

	if (r->state[JAVA_STATE_GAP] == java_gap_at(w, w->nr_frames - 1) && java_push(w, r, 0, SONDE_JAVA_GAP, 0, 0))
		return WALK_ENDED;
	r->state[JAVA_STATE_BP] = java_is_interpreter(j, w->pc) ? w->bp : 0;
	r->state[JAVA_STATE_STOP] = (__u64)r->record.stopped_runtime << 8 | r->record.stop;
	at = java_to_caller(w, r, j);
	if (!java_is_on_heap(w, r) || (at == WALK_ENDED && w->stop == SONDE_STOP_DEPTH))
		return at;
	if (at == WALK_GOES_ON && !java_on_heap(w, r, j))
		return WALK_GOES_ON;
	r->record.stop = r->state[JAVA_STATE_STOP];
	r->record.stopped_runtime = r->state[JAVA_STATE_STOP] >> 8;
	if (java_push(w, r, 0, SONDE_JAVA_PARKED, 0, 0))
		return WALK_ENDED;
	return java_to_entry(w, r, j);
}
