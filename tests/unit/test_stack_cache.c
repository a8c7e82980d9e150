// SPDX-License-Identifier: Apache-2.0
/* The cache of walks (bpf/walk/stack_cache.h): a hit means that the walk would find the same stack. Each register and each word of the
 * stack is changed once; where the walk then finds another stack, there must be no hit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>

#include "walk_host.h"

#include "walk/stack_cache.h"

static const int walk_is_recorded = 1;

#define STACK_PC    0x7ffe00000000ULL
#define STACK_WORDS 1024 /* two pages */
#define CODE_PC     0x400000ULL
#define CODE_BYTES  0x10000ULL
#define JIT_PC      0x500000ULL /* mapped, without a table */
#define JIT_BYTES   0x1000ULL
#define FUNCTION(i) (CODE_PC + (i) * 0x100u)
#define RULE(i) (SONDE_RULE_FIRST_FREE + (i))
#define LEAF_REG 12
#define SP_AT 20 /* index of the word at the leaf's sp */
#define CHANGED 0x0001000000000010ULL

static __u64 stack[STACK_WORDS];
static __u64 start[SONDE_NR_REGS];
static struct walk w;
static __u64 frames[SONDE_MAX_USER_FRAMES];
static struct stack_cache cached;

static long read_made_up(void *to, __u32 size, __u64 from)
{
	if (from >= STACK_PC && from < STACK_PC + sizeof(stack) && size <= STACK_PC + sizeof(stack) - from) {
		memcpy(to, (const char *)stack + (from - STACK_PC), size);
		return 0;
	}
	return -14;
}

static uint64_t word_at(uint32_t i)
{
	return STACK_PC + i * 8;
}

static struct sonde_rule step(uint8_t cfa_kind, int32_t cfa_off)
{
	return (struct sonde_rule){ .kind = SONDE_RULE_KIND_STEP, .cfa_kind = cfa_kind, .cfa_off = cfa_off, .ra_off = -8 };
}

/* 0: CFA = r12 + 16; 1: CFA = sp + 32, rbp at CFA - 16, rbx at CFA - 24; 2: CFA = rbp + 16; 3: CFA = *(sp + 8) + 8; 4: CFA = rbx + 16; 5:
 * the end; 6: calls itself, CFA = sp + 8 */
static void set_up_code(void)
{
	struct sonde_mapping mappings[2] = { { .start_pc = CODE_PC, .end_pc = CODE_PC + CODE_BYTES, .base_pc = CODE_PC },
					     { .start_pc = JIT_PC, .end_pc = JIT_PC + JIT_BYTES } };
	struct sonde_rule rules[] = { step(SONDE_CFA_REG, 16),	   step(SONDE_CFA_SP, 32),  step(SONDE_CFA_BP, 16),
				      step(SONDE_CFA_DEREF_SP, 0), step(SONDE_CFA_REG, 16), { .kind = SONDE_RULE_KIND_END },
				      step(SONDE_CFA_SP, 8) };
	struct host_row rows[7];

	rules[0].cfa_reg = LEAF_REG;
	rules[1].bp_kind = SONDE_BP_CFA;
	rules[1].bp_off = -16;
	rules[1].rbx_off = -24;
	rules[3].cfa_add = 8;
	rules[3].cfa_off = 8;
	rules[4].cfa_reg = WALK_REG_BX;
	memset(&w, 0, sizeof(w));
	host_reset();
	for (uint32_t i = 0; i < 7; i++) {
		rows[i] = (struct host_row){ .rel = i * 0x100, .rule = RULE(i) };
		host_rules[RULE(i)] = rules[i];
	}
	host_table(rows, 7, 7 * 0x100, SONDE_MIN_BLOCK_SHIFT, &mappings[0]);
	nr_host_rules = RULE(7);
	host_process(&w, mappings, 2);
	w.serial = 7;
	w.hash_begin = 11;
	host_read = read_made_up;
}

static void set_up_stack(void)
{
	for (uint32_t i = 0; i < STACK_WORDS; i++)
		stack[i] = 0xdead000000000000ULL + i;
	for (uint32_t i = 0; i < SONDE_NR_REGS; i++)
		start[i] = 0xbeef000000000000ULL + i;
	start[SONDE_REG_PC] = FUNCTION(0) + 4;
	start[WALK_REG_SP] = word_at(SP_AT);
	start[WALK_REG_BP] = word_at(900);
	start[LEAF_REG] = word_at(30);
	stack[31] = FUNCTION(1) + 5;   /* at r12 + 8; sp is word 32 */
	stack[33] = word_at(60);       /* rbx at CFA - 24, CFA is word 36 */
	stack[34] = word_at(40);       /* rbp at CFA - 16 */
	stack[35] = FUNCTION(2) + 5;
	stack[41] = FUNCTION(3) + 5;   /* at rbp + 8; sp is word 42 */
	stack[43] = word_at(50);       /* CFA = word 51 */
	stack[50] = FUNCTION(4) + 5;   /* sp is word 51 */
	stack[61] = FUNCTION(5) + 5;   /* at rbx + 8 */
}

static void enter(void)
{
	for (uint32_t i = 0; i < WALK_NR_REGS; i++)
		w.regs[i] = start[i];
	w.pc = start[SONDE_REG_PC];
	w.sp = start[WALK_REG_SP];
	w.bp = start[WALK_REG_BP];
	w.hash = w.hash_begin;
}

/* Does the whole walk and returns its hash. */
static uint64_t walk_now(void)
{
	enter();
	memset(w.cache, 0, sizeof(w.cache));
	host_walk(&w, frames);
	return walk_hash(&w, frames);
}

/* Both ways of comparing the words agree. */
static bool hits(void)
{
	bool is_same;

	enter();
	if (!stack_cache_fits(&cached, &w))
		return false;
	stack_cache_fetch(&cached, &w);
	is_same = stack_cache_same(&cached, &w);
	if (cached.near_bytes) {
		assert_int_equal(read_made_up(w.block, cached.near_bytes, cached.at[0]), 0);
		assert_int_equal(stack_cache_same_near(&cached, &w), is_same);
		w.block_limit = 0;
	}
	return is_same;
}

static uint64_t keep(void)
{
	uint64_t hash = walk_now();

	stack_cache_keep(&cached, &w, start, hash);
	assert_false(hits()); /* the interpreters were not checked */
	cached.is_bare = 1;
	return hash;
}

static int set_up(void **state)
{
	set_up_code();
	set_up_stack();
	memset(&cached, 0, sizeof(cached));
	host_tls_base = 0x1000;
	return 0;
}

static void the_same_is_a_hit(void **state)
{
	uint64_t hash;

	assert_false(hits());
	hash = keep();
	assert_int_equal(w.stop, SONDE_STOP_COMPLETE);
	assert_int_equal(w.nr_frames, 6);
	assert_int_equal(cached.hash, hash);
	assert_int_equal(cached.near_bytes, 31 * 8); /* from word 31 to word 61 */
	assert_true(hits());
	assert_int_equal(walk_now(), hash);
	assert_true(hits()); /* a second time */
}

/* Words that cannot be read in one go are compared one by one. */
static void words_that_are_not_near(void **state)
{
	const uint64_t elsewhere[] = { STACK_PC, STACK_PC + STACK_WORDS * 8, word_at(40) + 4, 0, UINT64_MAX };

	keep();
	for (uint32_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++) {
		for (uint32_t word = 1; word < cached.nr_words; word++) {
			uint64_t at = cached.at[word];

			cached.at[word] = elsewhere[i];
			assert_int_equal(stack_cache_near(&cached), 0);
			cached.at[word] = at;
		}
	}
	cached.nr_words = 0;
	assert_int_equal(stack_cache_near(&cached), 0);
}

static void each_register(void **state)
{
	uint64_t hash = keep();
	uint32_t nr_missed = 0;

	for (uint32_t i = 0; i < SONDE_NR_REGS; i++) {
		start[i] ^= CHANGED;
		if (!hits())
			nr_missed++;
		else if (walk_now() != hash)
			fail_msg("another register %u is another stack, and a hit", i);
		start[i] ^= CHANGED;
		assert_true(hits());
	}
	assert_true(nr_missed >= 4 && nr_missed <= 5); /* pc, sp, rbp, r12, and rbx, which the walk needs */
}

static void each_word(void **state)
{
	uint64_t hash = keep();
	uint32_t nr_missed = 0, nr_others = 0;

	for (uint32_t i = 0; i < STACK_WORDS; i++) {
		bool is_hit;

		stack[i] ^= CHANGED;
		is_hit = hits();
		nr_missed += !is_hit;
		if (walk_now() != hash) {
			nr_others++;
			if (is_hit)
				fail_msg("another word %u is another stack, and a hit", i);
		}
		stack[i] ^= CHANGED;
	}
	assert_true(hits());
	assert_true(nr_others >= 8 && nr_missed >= nr_others && nr_missed <= nr_others + 2);
}

/* Words may also become return addresses of other functions. */
static void random_changes(void **state)
{
	uint64_t hash = keep(), seed = 1;
	uint32_t nr_hits = 0, nr_misses = 0;

	for (uint32_t turn = 0; turn < 20000; turn++) {
		uint32_t at, which;

		set_up_stack();
		for (uint32_t change = 0; change < 2; change++) {
			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			at = SP_AT + (uint32_t)(seed >> 33) % 50;
			which = (uint32_t)(seed >> 40) % 8;
			stack[at] = which < 7 ? FUNCTION(which) + 5 : word_at(SP_AT + (uint32_t)(seed >> 50) % 50);
		}
		if (hits()) {
			nr_hits++;
			assert_int_equal(walk_now(), hash);
		} else {
			nr_misses++;
		}
	}
	assert_true(nr_hits > 1000 && nr_misses > 1000); /* else the test proves nothing */
}

static void another_process(void **state)
{
	keep();
	w.serial++;
	assert_false(hits());
	w.serial--;
	w.hash_begin++;
	assert_false(hits());
	w.hash_begin--;
	assert_true(hits());
	w.process_pos = 0;
	assert_false(hits());
}

/* A walk that read the thread's own variables is valid for that thread only. */
static void another_thread_pointer(void **state)
{
	keep();
	cached.tls_base = host_tls_base;
	assert_true(hits());
	host_tls_base++;
	assert_false(hits());
}

/* A walk is not kept if it looks at code, does not reach the end or uses too many words. */
static void what_is_not_kept(void **state)
{
	start[SONDE_REG_PC] = JIT_PC + 5;
	keep();
	assert_int_equal(cached.hash, 0);
	set_up_stack();
	stack[50] = 0x1234; /* leads to no code, until user space reports a mapping */
	keep();
	assert_int_equal(w.stop, SONDE_STOP_NO_MAPPING);
	assert_int_not_equal(cached.hash, 0);
	assert_false(hits());
	set_up_stack();
	start[SONDE_REG_PC] = FUNCTION(6) + 1;
	for (uint32_t i = 0; i < WALK_TRAIL_WORDS; i++)
		stack[SP_AT + i] = FUNCTION(6) + 1;
	stack[SP_AT + WALK_TRAIL_WORDS - 1] = FUNCTION(5) + 1;
	keep();
	assert_int_equal(w.stop, SONDE_STOP_COMPLETE);
	assert_true(hits());
	stack[SP_AT + WALK_TRAIL_WORDS - 1] = FUNCTION(6) + 1;
	stack[SP_AT + WALK_TRAIL_WORDS] = FUNCTION(5) + 1;
	keep();
	assert_int_equal(w.stop, SONDE_STOP_COMPLETE);
	assert_false(hits());
}

#define test(function) cmocka_unit_test_setup(function, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = { test(the_same_is_a_hit),	  test(words_that_are_not_near),
					    test(each_register),	  test(each_word),
					    test(random_changes),	  test(another_process),
					    test(another_thread_pointer), test(what_is_not_kept) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
