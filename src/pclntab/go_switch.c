// SPDX-License-Identifier: Apache-2.0
/* What a Go function's code shows beyond its frame sizes: where it saves rbp, and where it leaves its stack. The instruction sequences are
 * those of Go's assembler (src/cmd/internal/obj/x86/obj6.go) and of src/runtime/asm_amd64.s, 1.16 to 1.27. If one is not found, there is no
 * rule, and the stack ends in a mark. Encodings: Intel SDM volume 2. */
#include <string.h>

#include "pclntab/go_rows.h"

#define RSP_BITS 4 /* rsp's number in a ModRM byte */

/* struct runtime.g: sched.sp is at 56 in all of these versions (GO_G_SCHED_SP of bpf/walk/walk_go.h). */

bool go_is_signal_return(const char *name)
{
	return !strcmp(name, "runtime.sigreturn") || !strcmp(name, "runtime.sigreturn__sigaction");
}

static bool has_bytes(const struct go_code *code, uint32_t at, const char *bytes, uint32_t nr)
{
	return at <= code->nr && nr <= code->nr - at && !memcmp(code->bytes + at, bytes, nr);
}

static int32_t i32_at(const struct go_code *code, uint32_t at)
{
	int32_t value = 0;

	if (at <= code->nr && code->nr - at >= sizeof(value))
		memcpy(&value, code->bytes + at, sizeof(value));
	return value;
}

/* Returns the length of a `mov REG, off(%rsp)` (`opcode` 0x89) or `mov off(%rsp), REG` (0x8b); REG is one of the first eight registers. 0:
 * no such instruction here. */
static uint32_t stack_move_at(const struct go_code *code, uint32_t at, uint8_t opcode, uint8_t reg, int32_t *ret_off)
{
	const uint8_t *b = code->bytes + at;

	if (code->nr < 8 || at > code->nr - 8 || b[0] != 0x48 || b[1] != opcode || (b[2] & 0x3f) != (reg << 3 | 4) || b[3] != 0x24)
		return 0;
	switch (b[2] >> 6) {
	case 0:
		*ret_off = 0;
		return 4;
	case 1:
		*ret_off = (int8_t)b[4];
		return 5;
	case 2:
		*ret_off = i32_at(code, at + 4);
		return 8;
	}
	return 0;
}

/* Returns the length of an instruction that writes rsp: mov REG,%rsp; mov off(REG),%rsp; and $IMM8,%rsp. 0: no such instruction here. */
static uint32_t sp_write_at(const struct go_code *code, uint32_t at)
{
	static const uint8_t off_bytes[] = { 0, 1, 4, 0 };
	const uint8_t *b = code->bytes + at;

	if (code->nr < 3 || at > code->nr - 3)
		return 0;
	if ((b[0] == 0x48 || b[0] == 0x4c) && b[1] == 0x89 && (b[2] & 0xc7) == (0xc0 | RSP_BITS))
		return 3;
	if ((b[0] == 0x48 || b[0] == 0x49) && b[1] == 0x8b && (b[2] & 0x38) == RSP_BITS << 3)
		return 3 + ((b[2] & 0xc7) != 0xc4 && (b[2] & 7) == 4) + off_bytes[b[2] >> 6];
	return b[0] == 0x48 && b[1] == 0x83 && b[2] == 0xe4 ? 4 : 0;
}

/* Finds the next of these from `at` on; code->nr: none. */
static uint32_t find_sp_write(const struct go_code *code, uint32_t at, uint32_t *ret_size)
{
	for (*ret_size = 0; at < code->nr; at++) {
		*ret_size = sp_write_at(code, at);
		if (*ret_size)
			return at;
	}
	return code->nr;
}

static uint32_t find_bytes(const struct go_code *code, uint32_t at, const char *bytes, uint32_t nr)
{
	while (at < code->nr && !has_bytes(code, at, bytes, nr))
		at++;
	return at;
}

/* Reads g's offset in TLS from mov %fs:off32,%REG; or, where the linker has relaxed an access through the GOT, from mov $off32,%rcx; mov
 * %fs:(%rcx),%REG. Reads m.curg's offset from cmp off32(%rbx),%rax. */
void go_thread_read_systemstack(const struct go_code *code, struct go_thread *thread)
{
	uint32_t at = find_bytes(code, 0, "\x64\x48\x8b\x04\x25", 5), curg = find_bytes(code, 0, "\x48\x3b\x83", 3);

	if (at < code->nr) {
		thread->tls_off = i32_at(code, at + 5);
	} else {
		at = find_bytes(code, 0, "\x48\xc7\xc1", 3);
		if (!has_bytes(code, at + 7, "\x64\x48\x8b\x01", 4))
			return;
		thread->tls_off = i32_at(code, at + 3);
	}
	if (curg < code->nr && i32_at(code, curg + 3) > 0 && i32_at(code, curg + 3) <= INT16_MAX) {
		thread->curg_off = (int16_t)i32_at(code, curg + 3);
		thread->is_known = true;
	}
}

/* Reads g.sched.bp's offset from mov %rbp,off8(%rdi or %rsi). */
void go_thread_read_morestack(const struct go_code *code, struct go_thread *thread)
{
	uint32_t at = 0;

	while (at < code->nr && !has_bytes(code, at, "\x48\x89\x6f", 3) && !has_bytes(code, at, "\x48\x89\x6e", 3))
		at++;
	if (code->nr > 3 && at < code->nr - 3)
		thread->sched_bp = code->bytes[at + 3];
}

/* There are two prologues: push %rbp; mov %rsp,%rbp; sub $N,%rsp (1.21 and later), or sub $N,%rsp; mov %rbp,N-8(%rsp); lea N-8(%rsp),%rbp.
 * Both leave the caller's rbp at CFA - 16 and rbp pointing at it. Assembly that keeps C's registers (PUSH_REGS_HOST_TO_ABI0) may save it
 * elsewhere. */
void go_code_find_frame(struct go_code *code, uint64_t first_vaddr, uint64_t end_vaddr, int32_t delta)
{
	uint64_t first = first_vaddr - code->function.start_vaddr, last = end_vaddr - code->function.start_vaddr - 1;
	int32_t off;

	if (first > code->nr || delta > INT32_MAX / 2)
		return;
	if (delta == 8 && first && has_bytes(code, (uint32_t)first - 1, "\x55", 1)) {
		code->bp_saved_from = first_vaddr;
		code->bp_off = -16;
		if (has_bytes(code, (uint32_t)first, "\x48\x89\xe5", 3))
			code->bp_set_from = first_vaddr + 3;
	}
	if (!(code->function.flags & GO_FUNCTION_ASM))
		last = first; /* the compiler saves it at once */
	for (uint32_t at = (uint32_t)first; at <= last && at < code->nr; at++) {
		uint32_t size = stack_move_at(code, at, 0x89, 5, &off); /* rbp */
		int32_t from_cfa = off - delta - 8;

		if (!size || off < 0 || from_cfa > -16 || code->bp_saved_from != UINT64_MAX)
			continue;
		code->bp_saved_from = code->function.start_vaddr + at + size;
		code->bp_off = from_cfa;
		if (from_cfa == -16 && has_bytes(code, at + size, "\x48\x8d", 2))
			code->bp_set_from = code->bp_saved_from + size; /* lea has the same length */
		return;
	}
}

/* C calls crosscall2, and some of C's frames can only be found by rbx. */
static void find_rbx(struct go_code *code)
{
	int32_t off = 0, delta = 8;
	uint32_t at = 0, size = 0;

	for (; at < code->nr && !size; at++) {
		if (has_bytes(code, at, "\x48\x83\xec", 3) && at + 3 < code->nr)
			delta += (int8_t)code->bytes[at + 3];
		size = stack_move_at(code, at, 0x89, 3, &off);
	}
	if (!size || code->bp_off != -16 || off < 0 || off >= delta)
		return;
	code->keeps_rbx = true;
	code->rbx_saved_from = code->function.start_vaddr + at - 1 + size;
	code->rbx_off = (int16_t)(off - delta - 8);
}

struct sonde_rule go_code_rule(const struct go_code *code, uint64_t vaddr, int32_t delta)
{
	struct sonde_rule rule = { .kind = SONDE_RULE_KIND_STEP, .cfa_kind = SONDE_CFA_SP, .cfa_off = delta + 8, .ra_off = -8 };

	if (code->is_switching && delta > 0 && vaddr >= code->bp_set_from)
		return (struct sonde_rule){
			.kind = SONDE_RULE_KIND_SWITCH, .cfa_kind = SONDE_SWITCH_BY_BP, .cfa_off = 16, .bp_kind = SONDE_BP_CFA
		};
	if (code->has_switch_kind) {
		rule = (struct sonde_rule){ .kind = SONDE_RULE_KIND_SWITCH, .cfa_kind = (uint8_t)code->switch_kind, .cfa_off = delta + 8 };
		if (delta > 0 && vaddr >= code->bp_saved_from && code->bp_off == -16)
			rule.bp_kind = SONDE_BP_CFA;
		return rule;
	}
	if (delta > 0 && vaddr >= code->bp_saved_from) {
		rule.bp_kind = SONDE_BP_CFA;
		rule.bp_off = code->bp_off;
	}
	if (!code->keeps_rbx)
		rule.rbx_off = SONDE_RBX_LOST;
	else if (delta > 0 && vaddr >= code->rbx_saved_from)
		rule.rbx_off = code->rbx_off;
	return rule;
}

static void except(struct go_code *code, uint64_t from, uint64_t to, struct sonde_rule rule)
{
	if (code->nr_exceptions < GO_MAX_EXCEPTIONS && from < to)
		code->exceptions[code->nr_exceptions++] =
		    (struct go_exception){ .from = code->function.start_vaddr + from, .to = code->function.start_vaddr + to, .rule = rule };
}

static void except_all(struct go_code *code, enum sonde_rule_kind kind)
{
	except(code, 0, code->function.end_vaddr - code->function.start_vaddr, (struct sonde_rule){ .kind = (uint8_t)kind });
}

/* Returns a rule that leaves the stack, for a function whose own frame has the caller's rbp, or that has no frame. */
static struct sonde_rule switch_rule(const struct go_code *code, enum sonde_switch_kind kind)
{
	struct sonde_rule rule = { .kind = SONDE_RULE_KIND_SWITCH, .cfa_kind = (uint8_t)kind, .cfa_off = 8 };

	if (code->bp_saved_from != UINT64_MAX && code->bp_off == -16) {
		rule.cfa_off = 16;
		rule.bp_kind = SONDE_BP_CFA;
	}
	return rule;
}

static uint64_t function_size(const struct go_code *code)
{
	return code->function.end_vaddr - code->function.start_vaddr;
}

/* Covers the older epilogue from the restore of rbp to the end of `add $N,%rsp`: rsp is back on the frame's stack there. */
static void except_epilogues(struct go_code *code)
{
	for (uint32_t at = 0; at < code->nr; at++) {
		int32_t off = 0;
		uint32_t size = stack_move_at(code, at, 0x8b, 5, &off), to = at + size;

		if (!size || off < 0 || off > INT16_MAX)
			continue;
		if (has_bytes(code, to, "\x48\x83\xc4", 3))
			to += 4;
		else if (has_bytes(code, to, "\x48\x81\xc4", 3))
			to += 7;
		except(code, at + size, to,
		       (struct sonde_rule){ .kind = SONDE_RULE_KIND_STEP, .cfa_off = off + 16, .ra_off = -8, .rbx_off = SONDE_RBX_LOST });
	}
}

/* For a function that switches to another stack and back: rbp points to its frame throughout, if it has one. */
static void except_by_frame(struct go_code *code)
{
	uint32_t size, at = find_sp_write(code, 0, &size);

	if (code->bp_set_from == UINT64_MAX) {
		except(code, at < code->nr ? at + size : 0, function_size(code),
		       (struct sonde_rule){ .kind = SONDE_RULE_KIND_UNSUPPORTED });
		return;
	}
	code->is_switching = true;
	except_epilogues(code);
}

/* Sets the rule from the first write of rsp to the end. */
static void except_rest(struct go_code *code, struct sonde_rule rule)
{
	uint32_t size, at = find_sp_write(code, 0, &size);

	except(code, at < code->nr ? at + size : 0, function_size(code), rule);
}

/* Sets the rule between the two writes of rsp, where the function runs on another stack than its frame's. */
static void except_between(struct go_code *code, struct sonde_rule rule)
{
	uint32_t size, first, second;

	first = find_sp_write(code, 0, &size) + size;
	second = find_sp_write(code, first, &size) + size;
	if (first < code->nr && second <= code->nr && size)
		except(code, first, second, rule);
	else
		except_all(code, SONDE_RULE_KIND_UNSUPPORTED);
}

/* Before 1.21 runtime.systemstack has no frame: uses the registers saved in the goroutine. */
static void except_systemstack(struct go_code *code, const struct go_thread *thread)
{
	struct sonde_rule rule = switch_rule(code, SONDE_SWITCH_TO_CURG);

	rule.tls_off = thread->tls_off;
	rule.curg_off = thread->curg_off;
	if (code->bp_set_from == UINT64_MAX && thread->is_known)
		except_between(code, rule);
	else
		except_by_frame(code);
}

static struct sonde_rule left_goroutine_rule(const struct go_thread *thread, enum sonde_switch_kind kind)
{
	if (!thread->is_known || !thread->sched_bp)
		return (struct sonde_rule){ .kind = SONDE_RULE_KIND_UNSUPPORTED };
	return (struct sonde_rule){ .kind = SONDE_RULE_KIND_SWITCH,
				    .cfa_kind = (uint8_t)kind,
				    .tls_off = thread->tls_off,
				    .curg_off = thread->curg_off,
				    .sched_bp = thread->sched_bp };
}

/* mcall switches the stack, then pushes the calling goroutine (push %rax), and calls. */
static void except_mcall(struct go_code *code, const struct go_thread *thread)
{
	uint32_t size, at = find_sp_write(code, 0, &size), push = find_bytes(code, at + size, "\x50", 1);
	struct sonde_rule unsupported = { .kind = SONDE_RULE_KIND_UNSUPPORTED };

	except(code, at + size, push + 1u, unsupported);
	except(code, push < code->nr ? push + 1u : 0, function_size(code),
	       push < code->nr ? left_goroutine_rule(thread, SONDE_SWITCH_MCALL) : unsupported);
}

/* Sets the rule from the first move of `reg` to the stack, at or after `at`, to the next mov %rsi,%rsp. Returns the offset after that;
 * UINT32_MAX: not found. */
static uint32_t except_call(struct go_code *code, uint32_t at, uint8_t reg, struct sonde_rule *rule)
{
	int32_t off = 0;
	uint32_t size = 0, end;

	while (at < code->nr && !size) {
		size = stack_move_at(code, at, 0x89, reg, &off);
		at += size ? size : 1;
	}
	end = find_bytes(code, at, "\x48\x89\xf4", 3);
	if (!size || end >= code->nr || off < 0 || off > INT16_MAX)
		return UINT32_MAX;
	rule->depth_slot = (int16_t)off;
	except(code, at, end + 3, *rule);
	return end + 3;
}

/* asmcgocall saves g (rdi) and the depth of the goroutine's stack (rdi again) on the stack on which it calls C. If it was called on such a
 * stack already, it saves 0 and the old rsp (rdx). The goroutine's stack may be another one when C returns. */
static void except_asmcgocall(struct go_code *code)
{
	struct sonde_rule rule = switch_rule(code, SONDE_SWITCH_ASMCGOCALL);
	uint32_t size = 0, first, at = find_sp_write(code, 0, &first), end;
	int32_t off = 0;

	first += at;
	while (at < code->nr && !size) {
		size = stack_move_at(code, at, 0x89, 7, &off);
		at += size ? size : 1;
	}
	rule.g_slot = (int16_t)off;
	end = size && off >= 0 && off <= INT16_MAX ? except_call(code, at, 7, &rule) : UINT32_MAX;
	if (end != UINT32_MAX)
		end = except_call(code, end, 2, &rule);
	if (end == UINT32_MAX) {
		code->nr_exceptions = 0;
		except_all(code, SONDE_RULE_KIND_UNSUPPORTED);
	} else if (code->bp_set_from != UINT64_MAX) {
		code->is_switching = true; /* for the few instructions around the calls */
	} else { /* the stack is unknown up to the first call, and before the second one */
		rule = (struct sonde_rule){ .kind = SONDE_RULE_KIND_UNSUPPORTED };
		except(code, first, code->exceptions[0].from - code->function.start_vaddr, rule);
		except(code, find_bytes(code, (uint32_t)(code->exceptions[0].to - code->function.start_vaddr), "\x48\x83\xec", 3),
		       code->exceptions[1].from - code->function.start_vaddr, rule);
	}
}

static void except_cgocallback(struct go_code *code, const struct go_thread *thread)
{
	struct sonde_rule rule = switch_rule(code, SONDE_SWITCH_CGOCALLBACK);
	uint32_t at = find_bytes(code, 0, "\x48\x83\xec", 3); /* sub $N,%rsp: its frame is on C's stack */

	rule.tls_off = thread->tls_off;
	if (!thread->is_known || at + 3 >= code->nr || code->bp_off != -16)
		rule = (struct sonde_rule){ .kind = SONDE_RULE_KIND_UNSUPPORTED };
	else if (has_bytes(code, 0, "\x55", 1))
		rule.cfa_off = code->bytes[at + 3] + 16;
	else
		rule.cfa_off = code->bytes[at + 3] + 8;
	except_between(code, rule);
}

enum special { END, SIGNAL_HANDLER, INJECTED, SCHEDULER, SYSTEMSTACK, MORESTACK, MCALL, ASMCGOCALL, CGOCALLBACK, CROSSCALL2 };

/* Found by name, which every program has; the numbers of abi.FuncID change. */
static const struct {
	const char *name;
	enum special special;
} specials[] = {
	{ "runtime.goexit", END },
	{ "runtime.mstart", END },
	{ "runtime.rt0_go", END },
	{ "_rt0_amd64", END },
	{ "_rt0_amd64_linux", END },
	{ "runtime.sigtramp", SIGNAL_HANDLER },
	{ "runtime.cgoSigtramp", SIGNAL_HANDLER },
	{ "runtime.sigpanic", INJECTED },
	{ "runtime.asyncPreempt", INJECTED },
	{ "runtime.debugCallV1", INJECTED },
	{ "runtime.debugCallV2", INJECTED },
	{ "runtime.schedule", SCHEDULER },
	{ "runtime.systemstack", SYSTEMSTACK },
	{ "runtime.morestack", MORESTACK },
	{ "runtime.mcall", MCALL },
	{ "runtime.asmcgocall", ASMCGOCALL },
	{ "runtime.cgocallback", CGOCALLBACK },
	{ "crosscall2", CROSSCALL2 },
};

static void set_switch_kind(struct go_code *code, enum sonde_switch_kind kind)
{
	code->has_switch_kind = true;
	code->switch_kind = kind;
}

static void except_special(struct go_code *code, enum special special, const struct go_thread *thread)
{
	switch (special) {
	case END:
		except_all(code, SONDE_RULE_KIND_END);
		break;
	/* Marked as the end of a stack, which only holds for Go's own tracebacks: the kernel's signal frame continues it. */
	case SIGNAL_HANDLER:
		break;
	case INJECTED:
		set_switch_kind(code, SONDE_SWITCH_INJECTED);
		break;
	case SYSTEMSTACK:
		except_systemstack(code, thread);
		break;
	case MORESTACK:
		except_rest(code, left_goroutine_rule(thread, SONDE_SWITCH_MORESTACK));
		break;
	case MCALL:
		except_mcall(code, thread);
		break;
	case SCHEDULER:
		set_switch_kind(code, SONDE_SWITCH_SCHEDULER);
		break;
	case ASMCGOCALL:
		except_asmcgocall(code);
		break;
	case CGOCALLBACK:
		except_cgocallback(code, thread);
		break;
	case CROSSCALL2:
		find_rbx(code);
		break;
	}
}

/* The compiler generates wrappers with the same names that translate between calling conventions. They have no flags; before 1.17 no
 * function has. */
static bool may_be_special(const struct go_code *code, enum special special)
{
	return code->function.flags || special == INJECTED || special == SCHEDULER || !code->has_flags;
}

void go_code_find_exceptions(struct go_code *code, const struct go_thread *thread)
{
	for (size_t i = 0; i < ARRAY_SIZE(specials); i++) {
		if (!strcmp(code->function.name, specials[i].name) && may_be_special(code, specials[i].special)) {
			except_special(code, specials[i].special, thread);
			return;
		}
	}
	if (code->function.flags & GO_FUNCTION_TOP_FRAME)
		except_all(code, SONDE_RULE_KIND_END);
	else if (code->function.flags & GO_FUNCTION_SP_WRITE)
		except_by_frame(code);
}
