// SPDX-License-Identifier: Apache-2.0
/* The kernel side's walk through Go's stacks (bpf/walk/walk_go.h), on the host, in a process made by hand: a thread's own stack (g0), a
 * goroutine's stack, and the structs that link them. Real programs: tests/system/go.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>

#include "walk_host.h"

#define CODE_PC	  0x400000ULL
#define CODE_BYTES 0x10000ULL
#define MEMORY_WORDS 512
#define G0_STACK  0x7ffd00000000ULL /* far above the goroutine's stack, as Linux lays them out for the first thread */
#define GO_STACK  0xc000100000ULL
#define STRUCTS	  0xc000000000ULL
#define TLS_BASE  (STRUCTS + 0x100)
#define M	  (STRUCTS + 0x200)
#define G0	  (STRUCTS + 0x400)
#define CURG	  (STRUCTS + 0x600)
#define CURG_OFF  0xb8
#define SCHED_BP  0x60
#define NR_FUNCTIONS 11
#define FRAME(pc) ((pc) | SONDE_FRAME_RETURN)

enum function { PLAIN, END, SYSTEMSTACK, OLD_SYSTEMSTACK, MORESTACK, ASMCGOCALL, CGOCALLBACK, SIGPANIC, TURNING, MCALL, SCHEDULER };
#define PC(function) (CODE_PC + (function) * 0x100 + 8)

static const struct sonde_rule function_rules[NR_FUNCTIONS] = {
	[PLAIN] = { .kind = SONDE_RULE_KIND_STEP, .cfa_off = 32, .ra_off = -8, .bp_kind = SONDE_BP_CFA, .bp_off = -16 },
	[END] = { .kind = SONDE_RULE_KIND_END },
	[SYSTEMSTACK] = { .kind = SONDE_RULE_KIND_SWITCH, .cfa_kind = SONDE_SWITCH_BY_BP, .cfa_off = 16, .bp_kind = SONDE_BP_CFA },
	[OLD_SYSTEMSTACK] = { .kind = SONDE_RULE_KIND_SWITCH,
			      .cfa_kind = SONDE_SWITCH_TO_CURG,
			      .cfa_off = 8,
			      .tls_off = -8,
			      .curg_off = CURG_OFF },
	[MORESTACK] = { .kind = SONDE_RULE_KIND_SWITCH,
			.cfa_kind = SONDE_SWITCH_MORESTACK,
			.tls_off = -8,
			.curg_off = CURG_OFF,
			.sched_bp = SCHED_BP },
	[ASMCGOCALL] = { .kind = SONDE_RULE_KIND_SWITCH,
			 .cfa_kind = SONDE_SWITCH_ASMCGOCALL,
			 .cfa_off = 16,
			 .bp_kind = SONDE_BP_CFA,
			 .g_slot = 8,
			 .depth_slot = 0 },
	[CGOCALLBACK] = { .kind = SONDE_RULE_KIND_SWITCH,
			  .cfa_kind = SONDE_SWITCH_CGOCALLBACK,
			  .cfa_off = 40,
			  .bp_kind = SONDE_BP_CFA,
			  .tls_off = -8 },
	[SIGPANIC] = { .kind = SONDE_RULE_KIND_SWITCH, .cfa_kind = SONDE_SWITCH_INJECTED, .cfa_off = 32, .bp_kind = SONDE_BP_CFA },
	[MCALL] = { .kind = SONDE_RULE_KIND_SWITCH,
		    .cfa_kind = SONDE_SWITCH_MCALL,
		    .tls_off = -8,
		    .curg_off = CURG_OFF,
		    .sched_bp = SCHED_BP },
	[SCHEDULER] = { .kind = SONDE_RULE_KIND_SWITCH, .cfa_kind = SONDE_SWITCH_SCHEDULER, .cfa_off = 32, .bp_kind = SONDE_BP_CFA },
	[TURNING] = { .kind = SONDE_RULE_KIND_SWITCH, .cfa_kind = SONDE_SWITCH_BY_BP, .cfa_off = 16 },
};

static struct {
	uint64_t vaddr, words[MEMORY_WORDS];
} memory[] = { { .vaddr = G0_STACK }, { .vaddr = GO_STACK }, { .vaddr = STRUCTS } };
static uint32_t nr_reads, faulty_read;
static struct walk w;
static __u64 frames[SONDE_MAX_USER_FRAMES];

static long read_memory(void *to, __u32 size, __u64 from)
{
	if (++nr_reads == faulty_read)
		return -14;
	for (size_t i = 0; i < 3; i++) {
		uint64_t off = from - memory[i].vaddr;

		if (off < sizeof(memory[i].words) && size <= sizeof(memory[i].words) - off) {
			memcpy(to, (const char *)memory[i].words + off, size);
			return 0;
		}
	}
	return -14;
}

static void put(uint64_t vaddr, uint64_t word)
{
	for (size_t i = 0; i < 3; i++) {
		if (vaddr - memory[i].vaddr < sizeof(memory[i].words))
			memory[i].words[(vaddr - memory[i].vaddr) / 8] = word;
	}
}

/* Sets up the program, and its thread on g0 with a goroutine. */
static void setup_program(void)
{
	struct sonde_mapping mapping = { .start_pc = CODE_PC, .end_pc = CODE_PC + CODE_BYTES, .base_pc = CODE_PC };
	struct host_row rows[NR_FUNCTIONS];

	memset(&w, 0, sizeof(w));
	host_reset();
	for (uint32_t i = 0; i < NR_FUNCTIONS; i++) {
		rows[i] = (struct host_row){ .rel = i * 0x100, .rule = SONDE_RULE_FIRST_FREE + i };
		host_rules[SONDE_RULE_FIRST_FREE + i] = function_rules[i];
	}
	nr_host_rules = SONDE_RULE_FIRST_FREE + NR_FUNCTIONS;
	host_table(rows, NR_FUNCTIONS, NR_FUNCTIONS * 0x100, SONDE_MIN_BLOCK_SHIFT, &mapping);
	host_process(&w, &mapping, 1);
	for (size_t i = 0; i < 3; i++)
		memset(memory[i].words, 0x5a, sizeof(memory[i].words));
	host_read = read_memory;
	host_tls_base = TLS_BASE;
	faulty_read = 0;
	put(TLS_BASE - 8, G0);
	put(G0 + 48, M);
	put(M, G0);
	put(M + CURG_OFF, CURG);
	put(CURG + 8, GO_STACK + 0x800); /* stack.hi */
	put(CURG + 48, M);
}

/* Puts the frame of a function of the kind PLAIN at sp: its return address, and the caller's rbp. Returns the address of the next frame. */
static uint64_t put_plain(uint64_t sp, uint64_t bp, uint64_t ret)
{
	put(sp + 16, bp);
	put(sp + 24, ret);
	return sp + 32;
}

static void walk_from(uint64_t pc, uint64_t sp, uint64_t bp)
{
	w.pc = pc;
	w.sp = sp;
	w.bp = bp;
	nr_reads = 0;
	memset(w.cache, 0, sizeof(w.cache));
	host_walk(&w, frames);
}

/* A function under systemstack keeps rbp, which points to systemstack's frame on the goroutine's stack, far below. */
static void by_frame_pointer(void **state)
{
	uint64_t sp = G0_STACK + 0x100, of_systemstack = GO_STACK + 0x100;

	setup_program();
	put_plain(sp, of_systemstack, PC(SYSTEMSTACK));
	put(of_systemstack, GO_STACK + 0x200); /* rbp of its caller */
	put(of_systemstack + 8, PC(PLAIN));
	put_plain(of_systemstack + 16, 0, PC(END));
	walk_from(PC(PLAIN), sp, 0);
	check_stack(SONDE_STOP_COMPLETE, PC(PLAIN), FRAME(PC(SYSTEMSTACK)), FRAME(PC(PLAIN)), FRAME(PC(END)));
}

static void by_goroutine(void **state)
{
	uint64_t sp = G0_STACK + 0x100;

	setup_program();
	put_plain(sp, 0, PC(OLD_SYSTEMSTACK));
	put(CURG + 56, GO_STACK + 0x100);
	put(GO_STACK + 0x100, PC(PLAIN));
	put_plain(GO_STACK + 0x108, 0, PC(END));
	walk_from(PC(PLAIN), sp, 0);
	check_stack(SONDE_STOP_COMPLETE, PC(PLAIN), FRAME(PC(OLD_SYSTEMSTACK)), FRAME(PC(PLAIN)), FRAME(PC(END)));
	put(TLS_BASE - 8, CURG); /* between the switch of g and the switch of rsp */
	walk_from(PC(PLAIN), sp, 0);
	assert_int_equal(w.stop, SONDE_STOP_COMPLETE);
	put(M + CURG_OFF, 0);
	walk_from(PC(PLAIN), sp, 0);
	check_stack(SONDE_STOP_READ_FAULT, PC(PLAIN), FRAME(PC(OLD_SYSTEMSTACK)));
	host_tls_base = 0;
	walk_from(PC(PLAIN), sp, 0);
	check_stack(SONDE_STOP_READ_FAULT, PC(PLAIN), FRAME(PC(OLD_SYSTEMSTACK)));
}

static void more_stack(void **state)
{
	uint64_t sp = G0_STACK + 0x100;

	setup_program();
	put_plain(sp, 0, PC(MORESTACK));
	put(CURG + 56, GO_STACK + 0x100);
	put(CURG + 64, PC(PLAIN));
	put(CURG + SCHED_BP, GO_STACK + 0x300);
	put_plain(GO_STACK + 0x100, 0, PC(END));
	walk_from(PC(PLAIN), sp, 0);
	check_stack(SONDE_STOP_COMPLETE, PC(PLAIN), FRAME(PC(MORESTACK)), FRAME(PC(PLAIN)), FRAME(PC(END)));
	put(M + CURG_OFF, 0); /* the goroutine ended, the scheduler continues */
	walk_from(PC(PLAIN), sp, 0);
	check_stack(SONDE_STOP_COMPLETE, PC(PLAIN), FRAME(PC(MORESTACK)));
	put(M + CURG_OFF, 0x123);
	walk_from(PC(PLAIN), sp, 0);
	check_stack(SONDE_STOP_READ_FAULT, PC(PLAIN), FRAME(PC(MORESTACK)));
}

/* The walk goes on from mcall to its caller if that is the thread's goroutine and no scheduler is above. */
static void machine_call(void **state)
{
	uint64_t sp = G0_STACK + 0x100;

	setup_program();
	put(put_plain(sp, 0, PC(MCALL)), CURG);
	put(CURG + 56, GO_STACK + 0x100);
	put(CURG + 64, PC(PLAIN));
	put(CURG + SCHED_BP, 0);
	put_plain(GO_STACK + 0x100, 0, PC(END));
	walk_from(PC(PLAIN), sp, 0);
	check_stack(SONDE_STOP_COMPLETE, PC(PLAIN), FRAME(PC(MCALL)), FRAME(PC(PLAIN)), FRAME(PC(END)));
	put(sp + 32, G0); /* the calling goroutine is not m.curg */
	walk_from(PC(PLAIN), sp, 0);
	check_stack(SONDE_STOP_COMPLETE, PC(PLAIN), FRAME(PC(MCALL)));
	put(sp + 32, CURG);
	walk_from(PC(SCHEDULER), sp, 0); /* m.curg may be the next goroutine already */
	check_stack(SONDE_STOP_COMPLETE, PC(SCHEDULER), FRAME(PC(MCALL)));
	put(sp + 24, PC(MORESTACK));
	walk_from(PC(SCHEDULER), sp, 0);
	check_stack(SONDE_STOP_COMPLETE, PC(SCHEDULER), FRAME(PC(MORESTACK)));
	walk_from(PC(PLAIN), sp, 0); /* the next walk forgets the scheduler */
	check_stack(SONDE_STOP_COMPLETE, PC(PLAIN), FRAME(PC(MORESTACK)), FRAME(PC(PLAIN)), FRAME(PC(END)));
}

/* Go, C, Go, C, Go: each callback's frame on g0 saved the position of the one before. */
static void there_and_back(void **state)
{
	uint64_t inner = G0_STACK + 0x100, outer = G0_STACK + 0x400;

	setup_program();
	/* the goroutine: its top is what the second callback called; going down, everything is found from g0 */
	put_plain(GO_STACK + 0x100, 0, PC(CGOCALLBACK));
	put(G0 + 56, inner);
	put(inner, outer);
	put(inner + 24, 0x77);
	put(inner + 32, PC(PLAIN)); /* C, called by asmcgocall */
	put_plain(inner + 40, 0, PC(ASMCGOCALL));
	put(inner + 72, 0x300); /* depth */
	put(inner + 80, CURG);
	put(GO_STACK + 0x500, 0);
	put(GO_STACK + 0x508, PC(CGOCALLBACK)); /* the caller of asmcgocall */
	put(outer + 24, 0x88);
	put(outer + 32, PC(PLAIN));
	put_plain(outer + 40, 0, PC(ASMCGOCALL));
	put(outer + 72, 0x200);
	put(outer + 80, CURG);
	put(GO_STACK + 0x600, 0);
	put(GO_STACK + 0x608, PC(END));
	walk_from(PC(PLAIN), GO_STACK + 0x100, 0);
	check_stack(SONDE_STOP_COMPLETE, PC(PLAIN), FRAME(PC(CGOCALLBACK)), FRAME(PC(PLAIN)), FRAME(PC(ASMCGOCALL)), FRAME(PC(CGOCALLBACK)),
		    FRAME(PC(PLAIN)), FRAME(PC(ASMCGOCALL)), FRAME(PC(END)));
	walk_from(PC(PLAIN), GO_STACK + 0x100, 0); /* go_g0_sp of the last walk is not reused */
	assert_int_equal(w.nr_frames, 8);
	put(inner + 80, 0); /* called on g0 already: its rsp is stored there unchanged */
	put(inner + 72, outer + 0x100);
	put(outer + 0x100, 0);
	put(outer + 0x108, PC(END));
	walk_from(PC(PLAIN), GO_STACK + 0x100, 0);
	check_stack(SONDE_STOP_COMPLETE, PC(PLAIN), FRAME(PC(CGOCALLBACK)), FRAME(PC(PLAIN)), FRAME(PC(ASMCGOCALL)), FRAME(PC(END)));
}

/* sigpanic's caller was interrupted at this very address: the byte before it may be in another function. */
static void injected(void **state)
{
	setup_program();
	put(GO_STACK + 0x110, 0);
	put(GO_STACK + 0x118, CODE_PC + PLAIN * 0x100);
	put_plain(GO_STACK + 0x120, 0, PC(END));
	walk_from(PC(SIGPANIC), GO_STACK + 0x100, 0);
	check_stack(SONDE_STOP_COMPLETE, PC(SIGPANIC), CODE_PC + PLAIN * 0x100, FRAME(PC(END)));
}

static void no_way_out(void **state)
{
	setup_program();
	put(GO_STACK + 0x108, PC(TURNING)); /* returns to itself, on the same frame */
	walk_from(PC(TURNING), GO_STACK, GO_STACK + 0x100);
	assert_int_equal(w.stop, SONDE_STOP_DEPTH);
	assert_true(w.nr_frames <= WALK_MAX_SWITCHES + 1);
	put(GO_STACK + 0x108, 0);
	walk_from(PC(TURNING), GO_STACK, GO_STACK + 0x100);
	check_stack(SONDE_STOP_BAD_RULE, PC(TURNING));
	walk_from(PC(TURNING), GO_STACK, 0);
	check_stack(SONDE_STOP_READ_FAULT, PC(TURNING));
}

/* A fault at any read ends the stack with a mark. If the walk retries the read in a smaller piece, nothing changes. */
static void every_read_may_fail(void **state)
{
	uint32_t nr_all;

	there_and_back(state);
	nr_all = nr_reads;
	for (uint32_t i = 1; i <= nr_all; i++) {
		faulty_read = i;
		walk_from(PC(PLAIN), GO_STACK + 0x100, 0);
		assert_true(w.stop == SONDE_STOP_READ_FAULT || (w.stop == SONDE_STOP_COMPLETE && w.nr_frames == 5));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_frame_pointer), cmocka_unit_test(by_goroutine),	   cmocka_unit_test(more_stack),
		cmocka_unit_test(machine_call),	    cmocka_unit_test(there_and_back),	   cmocka_unit_test(injected),
		cmocka_unit_test(no_way_out),	    cmocka_unit_test(every_read_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
