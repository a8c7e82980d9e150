/* SPDX-License-Identifier: Apache-2.0 */
/* go_programs: two programs for go_image.h, with the instructions of Go's assembly that the reader of .gopclntab looks for: as Go 1.21 and
 * later write them (rbp is pushed), and as older versions did. */
#pragma once
#include "go_image.h"

#define CODE(bytes) bytes, sizeof(bytes) - 1
#define ASM 4
#define SP_WRITE 6 /* and ASM */
#define TOP_FRAME 5

#define PUSH_BP "\x55\x48\x89\xe5"		  /* push %rbp; mov %rsp,%rbp */
#define GET_G	"\x64\x48\x8b\x04\x25\xf8\xff\xff\xff" /* mov %fs:-8,%rax */
#define CMP_CURG "\x48\x3b\x83\xb8\x00\x00\x00"	  /* cmp 0xb8(%rbx),%rax */
#define TO_G0	"\x48\x8b\x62\x38"		  /* mov 0x38(%rdx),%rsp */
#define CALL_DI "\xff\xd7"
#define TO_CURG "\x48\x8b\x60\x38" /* mov 0x38(%rax),%rsp */

static const struct made_program new_program = {
	.magic = 0xfffffff1,
	.files = { "/src/plain.go", "/src/inlined.go" },
	.calls = { { "main.innermost", 12, 50 }, { "main.inner", 20, 60 } },
	.functions = {
		{ "runtime.systemstack", CODE(PUSH_BP GET_G CMP_CURG TO_G0 CALL_DI TO_CURG "\x5d\xc3"),
		  64, SP_WRITE, .sp = { { 1, 0 }, { 31, 8 }, { 32, 0 } } },
		/* push; mov; mov 0x38(%rsi),%rsp; mov %rdi,8(%rsp); mov %rdi,(%rsp); call; mov %rsi,%rsp; pop; ret; mov %rdx,(%rsp); call;
		 * mov %rsi,%rsp; pop; ret */
		{ "runtime.asmcgocall", CODE(PUSH_BP "\x48\x8b\x66\x38" "\x48\x89\x7c\x24\x08" "\x48\x89\x3c\x24" CALL_DI "\x48\x89\xf4"
		  "\x5d\xc3" "\x48\x89\x14\x24" CALL_DI
			"\x48\x89\xf4" "\x5d\xc3"), 64, SP_WRITE, .sp = { { 1, 0 }, { 23, 8 }, { 24, 0 }, { 34, 8 }, { 35, 0 } } },
		/* mov %rbp,0x60(%rdi); mov 0x38(%rbx),%rsp; call newstack */
		{ "runtime.morestack", CODE("\x48\x89\x6f\x60" "\x48\x8b\x63\x38" "\xe8\x00\x00\x00\x00" "\xc3"),
		  32, SP_WRITE, .sp = { { 14, 0 } } },
		/* push; mov; mov 0x38(%r14),%rsp; push %rax; call *%r12 */
		{ "runtime.mcall", CODE(PUSH_BP "\x49\x8b\x66\x38" "\x50" "\x41\xff\xd4"),
		  32, SP_WRITE, .sp = { { 1, 0 }, { 9, 8 }, { 12, 16 } } },
		{ "gogo", CODE("\x48\x8b\x23" "\xff\xe3"), 16, SP_WRITE, .sp = { { 5, 0 } } }, /* mov (%rbx),%rsp; jmp *%rbx */
		/* push; mov; sub $0x18,%rsp; mov %rdi,%rsp; call; mov 0x38(%rsi),%rsp; add $0x18,%rsp; pop; ret */
		{ "runtime.cgocallback", CODE(PUSH_BP "\x48\x83\xec\x18" "\x48\x89\xfc" CALL_DI "\x48\x8b\x66\x38" "\x48\x83\xc4\x18"
		  "\x5d\xc3"), 32, SP_WRITE,
			.sp = { { 1, 0 }, { 8, 8 }, { 21, 32 }, { 22, 8 }, { 23, 0 } } },
		{ "runtime.goexit", CODE("\x90\xe8\x00\x00\x00\x00"), 16, TOP_FRAME, .sp = { { 6, 0 } } },
		/* push; mov; sub $0x10,%rsp; mov 0x38(%rdx),%rsp; call; mov %r12,%rsp; add; pop; ret */
		{ "runtime.nanotime1", CODE(PUSH_BP "\x48\x83\xec\x10" TO_G0 CALL_DI "\x4c\x89\xe4" "\x48\x83\xc4\x10" "\x5d\xc3"),
		  32, SP_WRITE,
			.sp = { { 1, 0 }, { 8, 8 }, { 21, 24 }, { 22, 8 }, { 23, 0 } } },
		{ "runtime.schedule", CODE(PUSH_BP "\x48\x83\xec\x10" "\x0f\x0b"), 16, 0, .sp = { { 1, 0 }, { 8, 8 }, { 10, 24 } } },
		{ "runtime.sigpanic", CODE(PUSH_BP "\x48\x83\xec\x10" "\x0f\x0b"), 16, 0, .sp = { { 1, 0 }, { 8, 8 }, { 10, 24 } } },
		/* sub $0x30,%rsp; nop; mov %rbp,0x10(%rsp); call; add; ret: the kernel calls it, and it keeps C's registers */
		{ "runtime.sigtramp", CODE("\x48\x83\xec\x30" "\x90" "\x48\x89\x6c\x24\x10" CALL_DI "\x48\x83\xc4\x30" "\xc3"),
		  32, TOP_FRAME,
			.sp = { { 4, 0 }, { 16, 48 }, { 17, 0 } } },
		{ "runtime.sigreturn__sigaction", CODE("\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"), 16, ASM, .sp = { { 9, 0 } } },
		/* push; mov; sub $0x30,%rsp; mov %rbx,(%rsp); call; mov (%rsp),%rbx; add; pop; ret */
		{ "crosscall2", CODE(PUSH_BP "\x48\x83\xec\x30" "\x48\x89\x1c\x24" CALL_DI "\x48\x8b\x1c\x24" "\x48\x83\xc4\x30"
		  "\x5d\xc3"), 32, ASM,
			.sp = { { 1, 0 }, { 8, 8 }, { 22, 56 }, { 23, 8 }, { 24, 0 } } },
		/* nop; push; mov; sub $0x20,%rsp; call; add; pop; ret. Two calls were inlined: bytes 9 to 11 belong to innermost, called
		 * from inner at 12, which main.plain calls at 20 */
		{ "main.plain", CODE("\x90" PUSH_BP "\x48\x83\xec\x20" CALL_DI "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
		  "\x48\x83\xc4\x20" "\x5d\xc3"), 32, 0,
			.sp = { { 2, 0 }, { 9, 8 }, { 25, 40 }, { 26, 8 }, { 27, 0 } },
			.files = { { 9, 0 }, { 20, 1 }, { 27, 0 } },
			.lines = { { 9, 100 }, { 12, 51 }, { 20, 61 }, { 27, 102 } },
			.inlined = { { 9, -1 }, { 12, 0 }, { 20, 1 }, { 27, -1 } }, .start_line = 99 },
		{ "foreign", CODE("\xc3"), 16, 0 }, /* linked C code: not in the table */
		/* the compiler's wrapper between calling conventions */
		{ "runtime.asmcgocall", CODE(PUSH_BP "\x5d\xc3"), 16, 0, .sp = { { 1, 0 }, { 5, 8 }, { 6, 0 } } },
	},
	.nr_functions = 16,
};

#define SUB_OLD "\x48\x83\xec\x18\x48\x89\x6c\x24\x10\x48\x8d\x6c\x24\x10" /* sub $0x18,%rsp; mov %rbp,0x10(%rsp); lea 0x10(%rsp),%rbp */
#define ADD_OLD "\x48\x8b\x6c\x24\x10\x48\x83\xc4\x18\xc3"		   /* mov 0x10(%rsp),%rbp; add $0x18,%rsp; ret */

#define OLD_FUNCTIONS \
	{ "runtime.systemstack", CODE(GET_G CMP_CURG "\x48\x89\xdc" CALL_DI TO_CURG "\xc3"), 32, SP_WRITE, .sp = { { 26, 0 } } }, \
	/* mov 0x38(%rsi),%rsp; mov %rdi,0x30(%rsp); mov %rdi,0x28(%rsp); call; mov %rsi,%rsp; ret; sub $0x40,%rsp; \
	   mov %rdx,0x28(%rsp); call; mov %rsi,%rsp; ret */ \
	{ "runtime.asmcgocall", CODE("\x90\x48\x8b\x66\x38" "\x48\x89\x7c\x24\x30" "\x48\x89\x7c\x24\x28" CALL_DI "\x48\x89\xf4\xc3" \
	  "\x48\x83\xec\x40" \
		"\x48\x89\x54\x24\x28" CALL_DI "\x48\x89\xf4\xc3"), 64, SP_WRITE, .sp = { { 36, 0 } } }, \
	{ "runtime.nanotime1", CODE(SUB_OLD TO_G0 CALL_DI "\x4c\x89\xe4" ADD_OLD), \
	  64, SP_WRITE, .sp = { { 4, 0 }, { 32, 24 }, { 33, 0 } } }, \
	{ "runtime.sigfwd", CODE("\x48\x89\xe3" "\x48\x83\xe4\xf0" "\xff\xd0" "\x48\x89\xdc\xc3"), 16, SP_WRITE, .sp = { { 13, 0 } } }, \
	{ "runtime.cgocallback", CODE(SUB_OLD "\x48\x89\xfc" CALL_DI "\x48\x8b\x66\x38" ADD_OLD), \
	  64, SP_WRITE, .sp = { { 4, 0 }, { 32, 24 }, { 33, 0 } } }, \
	{ "main.plain", CODE("\x90" SUB_OLD CALL_DI ADD_OLD), 32, 0, .sp = { { 5, 0 }, { 26, 24 }, { 27, 0 } }, .files = { { 27, 0 } }, \
		.lines = { { 10, 7 }, { 27, 8 } }, .inlined = { { 10, -1 }, { 15, 0 }, { 27, -1 } } }

static const struct made_program old_program = {
	.magic = 0xfffffff0,
	.files = { "/src/old.go" },
	.calls = { { "main.inner", 20, 0 } },
	.functions = { OLD_FUNCTIONS },
	.nr_functions = 6,
};

static const struct made_program oldest_program = { .magic = 0xfffffffa, .files = { "/src/old.go" }, .functions = { OLD_FUNCTIONS },
  .nr_functions = 6 };
