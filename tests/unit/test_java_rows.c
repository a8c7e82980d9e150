// SPDX-License-Identifier: Apache-2.0
/* Where the CFA is in made-up code of HotSpot's kinds (java_code), and what user space says of the walk's assumptions (java_rows). The code
 * is assembled here and never runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/java/java_code.h"
#include "runtime/java/java_rows.h"

/* CODE(name, text): the bytes from name to name_end. AT(label) within. */
#define CODE(name, text) \
	__asm__(".pushsection .rodata\n.balign 64\n" #name ":\n" text "\n" #name "_end: .popsection\n"); \
	extern const uint8_t name[], name##_end[]
#define LABEL(label) extern const uint8_t label[]

#define FRAME 48 /* bytes of the nmethods here, with the return address and rbp */
#define ENTER "mov %eax, -0x14000(%rsp); push %rbp; sub $32, %rsp\n"
#define LEAVE "add $32, %rsp; pop %rbp; ret\n"

static struct java_code *code;
static const uint8_t *base;

static void read_code(const uint8_t *start, const uint8_t *end, uint32_t frame_bytes)
{
	java_code_free(code);
	code = NULL;
	base = start;
	assert_int_equal(java_code_read(&(struct java_code_blob){ .code = start,
								  .size = (uint32_t)(end - start),
								  .pc = (uint64_t)(uintptr_t)start,
								  .frame_bytes = frame_bytes },
					&code),
			 0);
}

static void expect_at(const uint8_t *at, bool is_return, uint8_t cfa, uint8_t reg, int words, int bp)
{
	struct sonde_java_row row = java_code_find(code, (uint32_t)(at - base) - is_return); /* of a return address that of the call */

	if (row.cfa != cfa || row.at != reg || row.words != words || row.bp != bp)
		fail_msg("at %td: cfa %u at %u words %d bp %d", at - base, row.cfa, row.at, row.words, row.bp);
}

static void expect(const uint8_t *at, uint8_t cfa, uint8_t reg, int words, int bp)
{
	expect_at(at, false, cfa, reg, words, bp);
}

#define SP(at, words, bp) expect(at, SONDE_JAVA_CFA_SP, 0, words, bp)
#define RETURN(at, words, bp) expect_at(at, true, SONDE_JAVA_CFA_SP, 0, words, bp)

/* --- nmethods ------------------------------------------------------------------------------------------------------------------------- */

CODE(plain, "cmp %eax, 8(%rsi); jne . + 100000\n" ENTER "plain_in: mov %rdi, 8(%rsp); call . + 70000; plain_ret: nop\n"
	    "sub %rsp, %rax\n" /* reads sp only */
	    "plain_out: add $32, %rsp; plain_bp: pop %rbp; plain_poll: cmp 0x28(%r15), %rsp; ja plain_slow; plain_return: ret\n"
	    "plain_slow: lea plain_poll(%rip), %r10; mov %r10, 0x450(%r15); jmp . + 80000\n"
	    "plain_handler: mov %rax, (%rsp); jmp plain_out\n");
LABEL(plain_in);
LABEL(plain_ret);
LABEL(plain_out);
LABEL(plain_bp);
LABEL(plain_poll);
LABEL(plain_return);
LABEL(plain_slow);
LABEL(plain_handler);

static void a_frame_from_begin_to_end(void **state)
{
	read_code(plain, plain_end, FRAME);
	SP(plain, 1, 0);
	SP(plain_in, FRAME / 8, 2);
	SP(plain_ret, FRAME / 8, 2);
	SP(plain_out, FRAME / 8, 2);
	SP(plain_bp, 2, 2);
	SP(plain_poll, 1, 0);
	SP(plain_return, 1, 0);
	SP(plain_slow, 1, 0);
	SP(plain_handler, FRAME / 8, 2); /* no path leads there */
}

/* C2's String.indexOf: a string near the end of a page is copied to the stack, so sp is not the same on both ways. */
CODE(indexof, ENTER "mov %rsp, %rcx; indexof_in: test %rdi, %rdi; jne 1f\n"
		    "sub $16, %rsp; indexof_copy: mov %rdx, (%rsp)\n"
		    "1: indexof_either: cmp %rsi, %rdi; push %rcx; indexof_saved: push %rdx; push %rsi\n"
		    "indexof_deep: dec %rsi; jne indexof_deep\n"
		    "add $16, %rsp; indexof_again: pop %rsp; indexof_out: add $32, %rsp; pop %rbp; ret\n");
LABEL(indexof_in);
LABEL(indexof_copy);
LABEL(indexof_either);
LABEL(indexof_saved);
LABEL(indexof_deep);
LABEL(indexof_again);
LABEL(indexof_out);

static void sp_that_differs_by_the_way(void **state)
{
	read_code(indexof, indexof_end, FRAME);
	SP(indexof_in, FRAME / 8, 2);
	SP(indexof_copy, FRAME / 8 + 2, 2);
	expect(indexof_either, SONDE_JAVA_CFA_REG, 2, FRAME / 8, 2); /* rcx */
	expect(indexof_saved, SONDE_JAVA_CFA_SLOT, 0, FRAME / 8, 2);
	expect(indexof_deep, SONDE_JAVA_CFA_SLOT, 2, FRAME / 8, 2);
	expect(indexof_again, SONDE_JAVA_CFA_SLOT, 0, FRAME / 8, 2);
	SP(indexof_out, FRAME / 8, 2);
}

/* C1 passes two words to a stub on the stack. A barrier saves registers, and calls. A word is moved. */
CODE(pushes, ENTER "push %rsi; push %rdi; pushes_call: call . + 5000; pushes_ret: pop %rdi; pop %rsi\n"
		   "push 8(%rsp); pushes_moving: pop 16(%rsp)\n"
		   "test %eax, %eax; je pushes_barrier; pushes_on:" LEAVE
		   "pushes_barrier: sub $128, %rsp; vmovdqu %ymm0, (%rsp); call . + 9000\n"
		   "pushes_barrier_ret: vmovdqu (%rsp), %ymm0; add $128, %rsp; jmp pushes_on\n");
LABEL(pushes_call);
LABEL(pushes_ret);
LABEL(pushes_moving);
LABEL(pushes_on);
LABEL(pushes_barrier);
LABEL(pushes_barrier_ret);

static void words_below_the_frame(void **state)
{
	read_code(pushes, pushes_end, FRAME);
	SP(pushes_call, FRAME / 8 + 2, 2);
	SP(pushes_ret, FRAME / 8 + 2, 2);
	SP(pushes_moving, FRAME / 8 + 1, 2);
	SP(pushes_on, FRAME / 8, 2);
	SP(pushes_barrier, FRAME / 8, 2);
	SP(pushes_barrier_ret, FRAME / 8 + 16, 2);
}

/* A call that throws is followed by code that is entered elsewhere. */
CODE(noreturn, ENTER "test %eax, %eax; je 1f; noreturn_out:" LEAVE "1: noreturn_in: call . + 4000\n"
		     "noreturn_entry: cmp %eax, 8(%rsi); jmp . + 3000\n");
LABEL(noreturn_in);
LABEL(noreturn_out);
LABEL(noreturn_entry);
CODE(shared, "jmp shared_slow; nop; nop; nop\n" ENTER "test %eax, %eax; jne 1f\n" LEAVE "1: call . + 4000\n"
	     "shared_slow: mov %rsp, %rax; jmp . + 6000\n");
LABEL(shared_slow);

static void calls_that_do_not_return(void **state)
{
	read_code(noreturn, noreturn_end, FRAME);
	SP(noreturn_in, FRAME / 8, 2);
	SP(noreturn_out, FRAME / 8, 2);
	RETURN(noreturn_entry, FRAME / 8, 2);
	read_code(shared, shared_end, FRAME);
	SP(shared_slow, 1, 0); /* from the entry, not behind the call */
	RETURN(shared_slow, FRAME / 8, 2);
}

/* C1 and C2 put the slow path of the poll before a return behind the last call that throws: its begin is that call's return address. */
CODE(throws, ENTER "cmp %ecx, 12(%rdx); jbe throws_stub; throws_out: add $32, %rsp; pop %rbp\n"
	     "throws_poll: cmp 0x28(%r15), %rsp; ja throws_slow; ret\n"
	     "throws_stub: mov %rcx, %r10; throws_call: call . + 4000\n"
	     "throws_slow: lea throws_poll(%rip), %r10; throws_jump: mov %r10, 0x450(%r15); jmp . + 80000; hlt\n");
LABEL(throws_poll);
LABEL(throws_call);
LABEL(throws_slow);
LABEL(throws_jump);

static void a_call_that_throws_before_the_poll(void **state)
{
	read_code(throws, throws_end, FRAME);
	SP(throws_call, FRAME / 8, 2);
	RETURN(throws_slow, FRAME / 8, 2);
	SP(throws_slow, 1, 0);
	SP(throws_jump, 1, 0);
	RETURN(throws_jump, 1, 0);
}

/* C1 has replaced the first bytes of a longer instruction: zeros are left of it. */
CODE(patched, ENTER "patched_site: .byte 0xe9; .long patched_stub - . - 4; .byte 0, 0, 0, 0, 0\n"
		    "patched_next: mov 0xa8(%rsp), %rax; xor %rcx, %rcx; patched_out:" LEAVE
		    "patched_stub: call . + 4000; jmp patched_site\n");
LABEL(patched_site);
LABEL(patched_next);
LABEL(patched_out);

static void instructions_that_are_yet_to_come(void **state)
{
	read_code(patched, patched_end, FRAME);
	SP(patched_site, FRAME / 8, 2);
	SP(patched_next, FRAME / 8, 2);
	SP(patched_out, FRAME / 8, 2);
}

/* The begin was replaced by a jump, and nothing returns: it throws, or loops for ever. */
CODE(stopped, "cmp %eax, 8(%rsi); jne . + 100000; .byte 0xe9, 0, 0, 1, 0, 0xfe, 0xff; push %rbp; stopped_pushed: sub $32, %rsp\n"
	      "stopped_in: test %eax, %eax; jne 1f; call . + 4000; 1: dec %eax; jne 2f; stopped_loop: mov %rax, (%rsp); jmp stopped_loop\n"
	      "2: add $32, %rsp; stopped_bp: pop %rbp; jmp . + 5000\n");
CODE(stopped_linked, ".byte 0xe9, 0, 0, 1, 0, 0xfe, 0xff; push %rbp; mov %rsp, %rbp; sub $32, %rsp\n"
		     "stopped_linked_loop: mov %rax, (%rsp); jmp stopped_linked_loop\n");
CODE(stopped_small, "nop; .byte 0xe9, 0, 0, 1, 0, 0x89, 0x6c, 0x24, 0x20; stopped_small_in: test %eax, %eax\n"
		    "1: dec %eax; jne 1b; add $32, %rsp; pop %rbp; ret\n");
LABEL(stopped_small_in);
LABEL(stopped_pushed);
LABEL(stopped_in);
LABEL(stopped_loop);
LABEL(stopped_bp);
LABEL(stopped_linked_loop);

static void code_that_is_not_entered_any_more(void **state)
{
	read_code(stopped, stopped_end, FRAME);
	SP(stopped_pushed, 2, 2);
	SP(stopped_in, FRAME / 8, 2);
	SP(stopped_loop, FRAME / 8, 2);
	SP(stopped_bp, 2, 2);
	read_code(stopped_linked, stopped_linked_end, FRAME);
	SP(stopped_linked_loop, FRAME / 8, 2);
	read_code(stopped_small, stopped_small_end, FRAME);
	SP(stopped_small_in, FRAME / 8, 2);
}

/* A native method's wrapper aligns its stack for C, and keeps sp in r12. OSR code begins with a call. */
CODE(wrapper, "call . + 1000; nop; nop\n" ENTER "mov %rsp, %rbp\nmov %rsp, %r12; sub $0, %rsp; and $-16, %rsp\n"
	      "wrapper_aligned: call . + 700000\n"
	      "wrapper_ret: mov %r12, %rsp; wrapper_out:" LEAVE);
LABEL(wrapper_aligned);
LABEL(wrapper_ret);
LABEL(wrapper_out);

static void an_aligned_stack(void **state)
{
	read_code(wrapper, wrapper_end, FRAME);
	expect(wrapper_aligned, SONDE_JAVA_CFA_BP, 0, FRAME / 8, 2);
	expect(wrapper_ret, SONDE_JAVA_CFA_BP, 0, FRAME / 8, 2);
	SP(wrapper_out, FRAME / 8, 2);
}

/* Nothing is claimed where two ways leave nothing in common, or the return address is gone. */
CODE(lost, ENTER "test %eax, %eax; je 1f; sub $16, %rsp; 1: lost_either: mov %eax, 4(%rsp); lost_jump: jmp *%rax\n");
LABEL(lost_either);
LABEL(lost_jump);
CODE(released, "pop %rdx; released_in: push %rax; jmp *%rdx\n");
LABEL(released_in);

static void what_is_not_known(void **state)
{
	read_code(lost, lost_end, FRAME);
	expect(lost_either, SONDE_JAVA_CFA_UNKNOWN, 0, 0, 0);
	expect(lost_jump, SONDE_JAVA_CFA_UNKNOWN, 0, 0, 0);
	read_code(released, released_end, FRAME);
	expect(released_in, SONDE_JAVA_CFA_UNKNOWN, 0, 0, 0);
}

/* --- stubs ---------------------------------------------------------------------------------------------------------------------------- */

/* Constants, a copy that jumps into the next one, and one that keeps sp in an aligned frame, as SHA-512 does. */
CODE(stubs, ".balign 16; .quad 0x0102030405060708, 0xffffffffffffffff\n"
	    "stubs_first: push %rbp; mov %rsp, %rbp; stubs_linked: mov (%rdi), %rax; jmp stubs_tail; hlt\n"
	    ".balign 16; stubs_second: push %rbp; mov %rsp, %rbp; stubs_tail: mov %rax, (%rsi); leave; stubs_ret: ret\n"
	    ".balign 16; stubs_sha: push %rbx; push %rbp; push %r12; mov %rsp, %rax; sub $200, %rsp; and $-32, %rsp; mov %rax, 0x98(%rsp)\n"
	    "stubs_loop: dec %rdx; mov $1, %rbp; jne stubs_loop; mov 0x98(%rsp), %rsp; stubs_pops: pop %r12; pop %rbp; pop %rbx; ret\n");
LABEL(stubs_first);
LABEL(stubs_linked);
LABEL(stubs_second);
LABEL(stubs_tail);
LABEL(stubs_ret);
LABEL(stubs_sha);
LABEL(stubs_loop);
LABEL(stubs_pops);

static void several_stubs(void **state)
{
	read_code(stubs, stubs_end, 0);
	SP(stubs_first, 1, 0);
	SP(stubs_linked, 2, 2);
	SP(stubs_second, 1, 0);
	SP(stubs_tail, 2, 2);
	SP(stubs_ret, 1, 0);
	SP(stubs_sha, 1, 0);
	expect(stubs_loop, SONDE_JAVA_CFA_SLOT, 0x98 / 8, 4, 3);
	SP(stubs_pops, 4, 3);
}

/* C1's stubs that throw jump to another blob with their frame on the stack. Their middle is no stub; nor is that of one without
 * sense. */
CODE(thrower, "push %rbp; mov %rsp, %rbp; sub $0x80, %rsp; thrower_in: mov %rax, 0x78(%rsp); mov %rcx, 0x70(%rsp); mov %rdx, 0x68(%rsp)\n"
	      ".balign 16, 0x90; thrower_aligned: mov %r15, (%rsp); sub $0x400, %rsp; thrower_deep: call . + 70000\n"
	      "thrower_ret: mov 8(%r15), %rax; jmp . + 80000\n"
	      ".balign 16; thrower_senseless: push %rbp; mov %rsp, %rbp; mov %rax, (%rdi); mov %rcx, 8(%rdi); mov %rcx, 16(%rdi)\n"
	      ".balign 16, 0x90; thrower_second: mov %rcx, 32(%rdi); ret\n");
LABEL(thrower_in);
LABEL(thrower_aligned);
LABEL(thrower_deep);
LABEL(thrower_ret);
LABEL(thrower_second);

static void stubs_that_do_not_return(void **state)
{
	read_code(thrower, thrower_end, 0);
	SP(thrower_in, 18, 2);
	SP(thrower_aligned, 18, 2);
	SP(thrower_deep, 18 + 128, 2);
	SP(thrower_ret, 18 + 128, 2);
	expect(thrower_second, SONDE_JAVA_CFA_UNKNOWN, 0, 0, 0);
}

/* --- parts ---------------------------------------------------------------------------------------------------------------------------- */

/* As the kernel side finds it (java_row_at in bpf/runtimes/java/java_rows.h). */
static struct sonde_java_row find_in_parts(uint32_t off)
{
	struct sonde_java_rows part;
	uint32_t i;

	assert_true(java_code_part(code, 0, &part));
	if (!part.nr) {
		uint32_t shift = part.shift;

		assert_true(java_code_part(code, (off >> shift) + 1, &part));
		off &= (1u << shift) - 1;
	}
	assert_in_range(part.nr, 1, SONDE_JAVA_MAX_ROWS);
	assert_int_equal(part.rows[0].off, 0);
	for (i = 1; i < part.nr && part.rows[i].off <= off; i++)
		assert_true(part.rows[i].off > part.rows[i - 1].off);
	part.rows[i - 1].off = 0;
	return part.rows[i - 1];
}

/* Code whose every fourth byte moves sp. */
static void fill(uint8_t *bytes, uint32_t size, uint32_t stride)
{
	memset(bytes, 0x90, size);
	for (uint32_t at = 0; at + stride < size; at += 2 * stride) {
		bytes[at] = 0x50;	   /* push rax */
		bytes[at + stride] = 0x58; /* pop rax */
	}
	bytes[size - 1] = 0xc3;
}

static void all_rows_are_found_in_their_parts(void **state)
{
	static const uint32_t sizes[] = { 40, 200, 5000, 65536, 65537, 250000 };

	for (uint32_t i = 0; i < ARRAY_SIZE(sizes) * 3; i++) {
		uint32_t size = sizes[i / 3], stride = i % 3 == 0 ? 4 : i % 3 == 1 ? 60 : 4000;
		CLEANUP(freep) uint8_t *bytes = malloc(size);
		struct sonde_java_rows part;

		assert_non_null(bytes);
		fill(bytes, size, stride);
		read_code(bytes, bytes + size, 0);
		for (uint32_t off = 0; off < size; off += 1 + off % 7) {
			struct sonde_java_row want = java_code_find(code, off), got = find_in_parts(off);

			/* where rows are closer than parts can hold, nothing is said */
			if (memcmp(&want, &got, sizeof(want)) != 0)
				assert_int_equal(got.cfa, SONDE_JAVA_CFA_UNKNOWN);
			else if (stride > 4 && stride < size && got.cfa != SONDE_JAVA_CFA_SP)
				fail_msg("size %u stride %u off %u", size, stride, off);
		}
		for (uint32_t nr = 0; java_code_part(code, nr, &part); nr++)
			assert_true(nr < 2048);
	}
}

static void any_bytes(void **state)
{
	uint8_t bytes[700];
	uint32_t seed = 1;

	for (uint32_t i = 0; i < 600; i++) {
		for (uint32_t k = 0; k < sizeof(bytes); k++) {
			seed = seed * 1664525 + 1013904223;
			bytes[k] = (uint8_t)(seed >> 24) & (i % 2 ? 0xff : 0x5f); /* many pushes and pops */
		}
		read_code(bytes, bytes + sizeof(bytes), i % 3 ? FRAME : 0);
		for (uint32_t off = 0; off < sizeof(bytes); off++) {
			struct sonde_java_row want = java_code_find(code, off), got = find_in_parts(off);

			assert_true(!memcmp(&want, &got, sizeof(want)) || got.cfa == SONDE_JAVA_CFA_UNKNOWN);
		}
	}
	assert_int_equal(java_code_read(&(struct java_code_blob){ .code = bytes, .size = JAVA_CODE_MAX_BYTES + 1 }, &code), -EFBIG);
}

/* --- proofs --------------------------------------------------------------------------------------------------------------------------- */

#define HEADER 64 /* of the block that holds the nmethod, made up here, in front of its code */
#define ID 77

static struct {
	uint8_t header[HEADER];
	uint8_t code[400];
} memory;
static const struct java_process process = { .java = { .blob_frame_size = 8, .blob_code_start = 12, .blob_code_end = 16, .nmethod_id = 20,
						       .nmethod_state = 24, .header_bytes = HEADER, .block_bytes = 8, .block_used = 4,
						       .process = { .serial = 5 } },
					     .layout = { .last_live_state = 2 } };
static struct {
	struct sonde_java_rows_key key;
	struct sonde_java_rows rows;
} kept[16];
static uint32_t nr_kept;

static int read_memory(void *arg, uint64_t from, void *to, size_t size)
{
	uint64_t off = from - (uint64_t)(uintptr_t)&memory;

	if (off > sizeof(memory) || size > sizeof(memory) - off)
		return -EFAULT;
	memcpy(to, (const uint8_t *)&memory + off, size);
	return 0;
}

static int get_rows(void *arg, const void *key, void *ret_rows)
{
	for (uint32_t i = 0; i < nr_kept; i++) {
		if (!memcmp(&kept[i].key, key, sizeof(kept[i].key))) {
			*(struct sonde_java_rows *)ret_rows = kept[i].rows;
			return 0;
		}
	}
	return -ENOENT;
}

static void set_rows(void *arg, const void *key, const void *rows)
{
	assert_true(nr_kept < ARRAY_SIZE(kept));
	kept[nr_kept].key = *(const struct sonde_java_rows_key *)key;
	kept[nr_kept++].rows = *(const struct sonde_java_rows *)rows;
}

static void put_u32(uint32_t off, uint32_t value)
{
	memcpy(memory.header + 8 + off, &value, sizeof(value));
}

/* Puts the code of `pushes` where an nmethod is. */
static uint64_t make_nmethod(void)
{
	memset(&memory, 0, sizeof(memory));
	memory.header[4] = SONDE_JAVA_IS_USED;
	put_u32(8, FRAME / 8);
	put_u32(12, HEADER - 8);
	put_u32(16, HEADER - 8 + (uint32_t)(pushes_end - pushes));
	put_u32(20, ID);
	memcpy(memory.code, pushes, (size_t)(pushes_end - pushes));
	nr_kept = 0;
	return (uint64_t)(uintptr_t)&memory + 8;
}

static int prove(uint64_t nmethod, const uint8_t *at, uint64_t words, uint64_t flags, bool *ret_is_true)
{
	const struct runtime_memory of = { .read = read_memory };
	const struct runtime_rows rows = { .get = get_rows, .set = set_rows };
	const struct sonde_runtime_frame frame = { .code = nmethod,
						   .cookie = ID,
						   .runtime = SONDE_RUNTIME_JAVA,
						   .where = (uint64_t)(at - pushes + !!(flags & SONDE_JAVA_CLAIM_EXACT)) |
							    words << SONDE_JAVA_CLAIM_SHIFT | flags | SONDE_RUNTIME_CLAIM |
							    (uint64_t)SONDE_JAVA_COMPILED << SONDE_JAVA_CODE_SHIFT };

	return java_prove(NULL, &process, &of, &frame, &rows, ret_is_true);
}

static void what_the_walk_assumed(void **state)
{
	uint64_t nmethod = make_nmethod();
	bool is_true = false;

	assert_int_equal(prove(nmethod, pushes_on, FRAME / 8, SONDE_JAVA_CLAIM_EXACT, &is_true), 0);
	assert_true(is_true);
	assert_int_equal(nr_kept, 1);
	assert_int_equal(kept[0].key.start, nmethod);
	assert_int_equal(kept[0].key.id, ID);
	assert_int_equal(kept[0].key.serial, 5);
	memset(memory.code, 0xc3, sizeof(memory.code)); /* is not read again */
	assert_int_equal(prove(nmethod, pushes_ret, FRAME / 8, 0, &is_true), 0);
	assert_false(is_true);
	assert_int_equal(prove(nmethod, pushes_ret, FRAME / 8 + 2, 0, &is_true), 0);
	assert_true(is_true);
	assert_int_equal(prove(nmethod, pushes_on, FRAME / 8, SONDE_JAVA_CLAIM_BP_KEPT, &is_true), 0);
	assert_false(is_true);
	assert_int_equal(prove(nmethod, pushes_on, 0, 0, &is_true), 0); /* proved by the walk itself */
	assert_true(is_true);
	assert_int_equal(nr_kept, 1);
}

static void code_that_is_gone(void **state)
{
	uint64_t nmethod = make_nmethod();
	bool is_true;

	put_u32(20, ID + 1);
	assert_int_equal(prove(nmethod, pushes_on, FRAME / 8, 0, &is_true), -ESTALE);
	put_u32(20, ID);
	put_u32(16, 1 << 30);
	assert_int_equal(prove(nmethod, pushes_on, FRAME / 8, 0, &is_true), -EFBIG);
	put_u32(16, 0);
	assert_int_equal(prove(nmethod, pushes_on, FRAME / 8, 0, &is_true), -EBADMSG);
	put_u32(16, HEADER + 4000);
	assert_int_equal(prove(nmethod, pushes_on, FRAME / 8, 0, &is_true), -EFAULT);
	assert_int_equal(nr_kept, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frame_from_begin_to_end),
		cmocka_unit_test(sp_that_differs_by_the_way),
		cmocka_unit_test(words_below_the_frame),
		cmocka_unit_test(calls_that_do_not_return),
		cmocka_unit_test(a_call_that_throws_before_the_poll),
		cmocka_unit_test(instructions_that_are_yet_to_come),
		cmocka_unit_test(code_that_is_not_entered_any_more),
		cmocka_unit_test(an_aligned_stack),
		cmocka_unit_test(what_is_not_known),
		cmocka_unit_test(several_stubs),
		cmocka_unit_test(stubs_that_do_not_return),
		cmocka_unit_test(all_rows_are_found_in_their_parts),
		cmocka_unit_test(any_bytes),
		cmocka_unit_test(what_the_walk_assumed),
		cmocka_unit_test(code_that_is_gone),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	java_code_free(code);
	return failed;
}
