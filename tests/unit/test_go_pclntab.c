// SPDX-License-Identifier: Apache-2.0
/* Go's own table, of programs made by hand: functions, lines and inlined calls, and the unwind rules at every instruction that matters.
 * Real programs are compared with Go's tools in tests/system/go.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "pclntab/go_pclntab.h"
#include "go_programs.h"

static struct bytes image;
static struct elf_file *elf;
static struct go_pclntab *table;

static void close_program(void)
{
	go_pclntab_free(table);
	elf_file_free(elf);
	table = NULL;
	elf = NULL;
}

/* Reads these bytes as the table of the program that was made last. Returns the reader's result. */
static int read_bytes(const void *bytes, size_t size)
{
	close_program();
	go_make_image(&image, bytes, size);
	assert_int_equal(elf_file_open_memory(image.data, image.size, NULL, &elf), 0);
	return go_pclntab_read(elf, NULL, &table);
}

static void open_program(const struct made_program *program)
{
	go_make_parts(program);
	assert_int_equal(read_bytes(go_table.data, go_table.size), 0);
}

static uint64_t vaddr_of(const char *name, uint32_t nth)
{
	for (uint32_t i = 0; i < go_pclntab_nr_functions(table); i++) {
		struct go_function function;

		assert_true(go_pclntab_function(table, i, &function));
		if (!strcmp(function.name, name) && !nth--)
			return function.start_vaddr;
	}
	fail_msg("no function %s", name);
	return 0;
}

/* --- rules --- */

struct asked {
	uint64_t vaddr;
	struct sonde_rule rule, candidate;
	bool is_covered;
	uint64_t start_vaddr, last_vaddr;
};

static int take_row(void *arg, uint64_t start_vaddr, const struct sonde_rule *rule)
{
	struct asked *asked = arg;

	if (!asked->start_vaddr)
		asked->start_vaddr = start_vaddr;
	else
		assert_true(start_vaddr > asked->last_vaddr);
	asked->last_vaddr = start_vaddr;
	if (!rule) {
		/* the first that covers it wins */
		if (asked->start_vaddr <= asked->vaddr && asked->vaddr < start_vaddr && !asked->is_covered) {
			asked->is_covered = true;
			asked->rule = asked->candidate;
		}
		asked->start_vaddr = 0;
	} else if (start_vaddr <= asked->vaddr) {
		asked->candidate = *rule;
	}
	return 0;
}

static struct sonde_rule rule_at(uint64_t vaddr)
{
	struct asked asked = { .vaddr = vaddr };
	struct cfi_stats stats;

	assert_int_equal(go_pclntab_walk(table, take_row, &asked, &stats), 0);
	assert_int_equal(stats.nr_bad_fdes, 0);
	return asked.rule;
}

#define EXPECT_STEP(at, cfa, bp_at) expect_step(__LINE__, at, cfa, bp_at)
static void expect_step(int line, uint64_t vaddr, int32_t cfa_off, int32_t bp_off)
{
	struct sonde_rule rule = rule_at(vaddr);

	if (rule.kind != SONDE_RULE_KIND_STEP || rule.cfa_kind != SONDE_CFA_SP || rule.cfa_off != cfa_off || rule.ra_off != -8 ||
	    rule.bp_kind != (bp_off ? SONDE_BP_CFA : SONDE_BP_SAME) || rule.bp_off != bp_off)
		fail_msg("line %d: kind %d, CFA %d, bp %d %d", line, rule.kind, rule.cfa_off, rule.bp_kind, rule.bp_off);
}

#define EXPECT_SWITCH(at, kind, cfa) expect_switch(__LINE__, at, kind, cfa)
static struct sonde_rule expect_switch(int line, uint64_t vaddr, enum sonde_switch_kind kind, int32_t cfa_off)
{
	struct sonde_rule rule = rule_at(vaddr);

	if (rule.kind != SONDE_RULE_KIND_SWITCH || rule.cfa_kind != kind || rule.cfa_off != cfa_off)
		fail_msg("line %d: kind %d %d, CFA %d", line, rule.kind, rule.cfa_kind, rule.cfa_off);
	return rule;
}

#define EXPECT_KIND(at, is) assert_int_equal(rule_at(at).kind, is)

static void prologues(void **state)
{
	uint64_t at;

	open_program(&new_program);
	at = vaddr_of("main.plain", 0);
	EXPECT_STEP(at, 8, 0);
	EXPECT_STEP(at + 1, 8, 0);
	EXPECT_STEP(at + 2, 16, -16); /* rbp was pushed */
	EXPECT_STEP(at + 9, 48, -16);
	EXPECT_STEP(at + 25, 16, -16);
	EXPECT_STEP(at + 26, 8, 0);
	EXPECT_KIND(at + 27, SONDE_RULE_KIND_NONE); /* padding */
	EXPECT_KIND(vaddr_of("foreign", 0), SONDE_RULE_KIND_NONE);
	assert_int_equal(rule_at(at).rbx_off, SONDE_RBX_LOST);
	open_program(&old_program);
	at = vaddr_of("main.plain", 0);
	EXPECT_STEP(at + 4, 8, 0);
	EXPECT_STEP(at + 5, 32, 0); /* stack allocated, rbp not saved yet */
	EXPECT_STEP(at + 9, 32, 0);
	EXPECT_STEP(at + 10, 32, -16);
	EXPECT_STEP(at + 22, 32, -16);
	EXPECT_STEP(at + 26, 8, 0);
}

static void switches_by_frame(void **state)
{
	struct sonde_rule rule;
	uint64_t at;

	open_program(&new_program);
	at = vaddr_of("runtime.systemstack", 0);
	EXPECT_STEP(at + 3, 16, -16);
	EXPECT_SWITCH(at + 26, SONDE_SWITCH_BY_BP, 16); /* the call returns here */
	EXPECT_STEP(at + 31, 8, 0);
	at = vaddr_of("runtime.asmcgocall", 0);
	EXPECT_SWITCH(at + 8, SONDE_SWITCH_BY_BP, 16);
	rule = EXPECT_SWITCH(at + 19, SONDE_SWITCH_ASMCGOCALL, 16);
	assert_int_equal(rule.g_slot, 8);
	assert_int_equal(rule.depth_slot, 0);
	assert_int_equal(rule.bp_kind, SONDE_BP_CFA);
	EXPECT_SWITCH(at + 22, SONDE_SWITCH_BY_BP, 16);
	EXPECT_SWITCH(at + 30, SONDE_SWITCH_ASMCGOCALL, 16);
	EXPECT_STEP(vaddr_of("runtime.asmcgocall", 1) + 4, 16, -16);
	at = vaddr_of("runtime.nanotime1", 0);
	EXPECT_SWITCH(at + 14, SONDE_SWITCH_BY_BP, 16);
	EXPECT_STEP(at + 22, 8, 0);
	at = vaddr_of("runtime.morestack", 0);
	EXPECT_STEP(at + 4, 8, 0);
	rule = EXPECT_SWITCH(at + 12, SONDE_SWITCH_MORESTACK, 0);
	assert_int_equal(rule.tls_off, -8);
	assert_int_equal(rule.curg_off, 0xb8);
	assert_int_equal(rule.sched_bp, 0x60);
	at = vaddr_of("runtime.cgocallback", 0);
	EXPECT_STEP(at + 8, 40, -16);
	rule = EXPECT_SWITCH(at + 12, SONDE_SWITCH_CGOCALLBACK, 40);
	assert_int_equal(rule.tls_off, -8);
	EXPECT_STEP(at + 17, 40, -16);
	EXPECT_SWITCH(vaddr_of("runtime.sigpanic", 0) + 9, SONDE_SWITCH_INJECTED, 32);
}

static void switches_without_frame(void **state)
{
	struct sonde_rule rule;
	uint64_t at;

	open_program(&old_program);
	at = vaddr_of("runtime.systemstack", 0);
	EXPECT_STEP(at + 16, 8, 0);
	rule = EXPECT_SWITCH(at + 20, SONDE_SWITCH_TO_CURG, 8);
	assert_int_equal(rule.curg_off, 0xb8);
	EXPECT_STEP(at + 25, 8, 0);
	at = vaddr_of("runtime.asmcgocall", 0);
	EXPECT_KIND(at + 5, SONDE_RULE_KIND_UNSUPPORTED);
	rule = EXPECT_SWITCH(at + 16, SONDE_SWITCH_ASMCGOCALL, 8);
	assert_int_equal(rule.g_slot, 0x30);
	assert_int_equal(rule.depth_slot, 0x28);
	assert_int_equal(rule.bp_kind, SONDE_BP_SAME);
	EXPECT_STEP(at + 20, 8, 0);
	EXPECT_KIND(at + 25, SONDE_RULE_KIND_UNSUPPORTED);
	EXPECT_SWITCH(at + 31, SONDE_SWITCH_ASMCGOCALL, 8);
	at = vaddr_of("runtime.nanotime1", 0);
	EXPECT_STEP(at + 9, 32, -16);
	EXPECT_SWITCH(at + 20, SONDE_SWITCH_BY_BP, 16);
	EXPECT_STEP(at + 28, 32, 0); /* rbp is the caller's again */
	EXPECT_STEP(at + 32, 8, 0);
	EXPECT_STEP(vaddr_of("runtime.sigfwd", 0) + 3, 8, 0);
	EXPECT_KIND(vaddr_of("runtime.sigfwd", 0) + 8, SONDE_RULE_KIND_UNSUPPORTED);
	at = vaddr_of("runtime.cgocallback", 0);
	EXPECT_SWITCH(at + 18, SONDE_SWITCH_CGOCALLBACK, 32);
	EXPECT_STEP(at + 23, 32, -16);
}

static void ends(void **state)
{
	uint64_t at;

	open_program(&new_program);
	EXPECT_KIND(vaddr_of("runtime.goexit", 0) + 1, SONDE_RULE_KIND_END);
	at = vaddr_of("runtime.mcall", 0);
	EXPECT_STEP(at + 4, 16, -16);
	EXPECT_KIND(at + 8, SONDE_RULE_KIND_UNSUPPORTED); /* the goroutine is not yet on the stack */
	assert_int_equal(EXPECT_SWITCH(at + 11, SONDE_SWITCH_MCALL, 0).sched_bp, 0x60);
	EXPECT_SWITCH(vaddr_of("runtime.schedule", 0) + 9, SONDE_SWITCH_SCHEDULER, 32);
	at = vaddr_of("gogo", 0);
	EXPECT_STEP(at, 8, 0);
	EXPECT_KIND(at + 3, SONDE_RULE_KIND_UNSUPPORTED);
	at = vaddr_of("runtime.sigtramp", 0);
	EXPECT_STEP(at + 5, 56, 0);
	EXPECT_STEP(at + 10, 56, -40);
	at = vaddr_of("runtime.sigreturn__sigaction", 0);
	EXPECT_KIND(at, SONDE_RULE_KIND_SIGNAL);
	EXPECT_KIND(at - 1, SONDE_RULE_KIND_SIGNAL); /* a return address is looked up at the byte before it */
	EXPECT_KIND(at - 2, SONDE_RULE_KIND_NONE);
	at = vaddr_of("crosscall2", 0);
	EXPECT_STEP(at + 12, 64, -16);
	assert_int_equal(rule_at(at + 8).rbx_off, 0); /* still in the register */
	assert_int_equal(rule_at(at + 12).rbx_off, -64);
}

/* --- names --- */

static void expect_frame(const struct go_frame *frame, const char *name, const char *file, uint32_t line, uint32_t start_line)
{
	assert_string_equal(frame->name, name);
	assert_string_equal(frame->file, file);
	assert_int_equal(frame->line, line);
	assert_int_equal(frame->start_line, start_line);
}

static void lines_and_inlined_calls(void **state)
{
	struct go_frame frames[4];
	uint64_t at;
	uint32_t nr;

	open_program(&new_program);
	at = vaddr_of("main.plain", 0);
	assert_int_equal(go_pclntab_frames(table, at + 8, frames, 4, &nr), 0);
	assert_int_equal(nr, 1);
	expect_frame(&frames[0], "main.plain", "/src/plain.go", 100, 99);
	assert_int_equal(go_pclntab_frames(table, at + 10, frames, 4, &nr), 0);
	assert_int_equal(nr, 3);
	expect_frame(&frames[0], "main.innermost", "/src/inlined.go", 51, 50);
	expect_frame(&frames[1], "main.inner", "/src/inlined.go", 61, 60);
	expect_frame(&frames[2], "main.plain", "/src/plain.go", 102, 99);
	assert_true(frames[0].start_vaddr == at);
	assert_int_equal(go_pclntab_frames(table, at + 10, frames, 2, &nr), 0); /* the outermost is kept */
	assert_int_equal(nr, 2);
	assert_string_equal(frames[1].name, "main.plain");
	assert_int_equal(go_pclntab_frames(table, GO_TEXT_VADDR - 1, frames, 4, &nr), -ENOENT);
	assert_int_equal(go_pclntab_frames(table, GO_TEXT_VADDR + go_text.size, frames, 4, &nr), -ENOENT);
	assert_int_equal(go_pclntab_frames(table, vaddr_of("runtime.sigreturn__sigaction", 0) - 1, frames, 4, &nr), 0);
	assert_string_equal(frames[0].name, "runtime.sigreturn__sigaction");
}

static bool says_the_same(const struct go_frame *a, const struct go_frame *b)
{
	return !strcmp(a->name, b->name) && !strcmp(a->file, b->file) && a->line == b->line && a->start_line == b->start_line &&
	       a->start_vaddr == b->start_vaddr;
}

/* At each address, damaged or not, what is said is said in all of its extent. */
static void assert_extents(void)
{
	for (uint64_t vaddr = GO_TEXT_VADDR - 1; vaddr <= GO_TEXT_VADDR + go_text.size; vaddr++) {
		struct go_frame frames[4], others[4];
		uint64_t start, end;
		uint32_t nr = 0, nr_others = 0;
		int err = go_pclntab_frames(table, vaddr, frames, 4, &nr);

		if (!go_pclntab_extent(table, vaddr, &start, &end)) {
			assert_int_equal(err, -ENOENT);
			continue;
		}
		assert_in_range(vaddr, start, end - 1);
		for (uint64_t at = start; at < end; at++) {
			assert_int_equal(go_pclntab_frames(table, at, others, 4, &nr_others), err);
			assert_int_equal(nr_others, nr);
			for (uint32_t i = 0; i < nr; i++)
				assert_true(says_the_same(&frames[i], &others[i]));
		}
	}
}

static void an_extent_says_one_thing(void **state)
{
	uint64_t at, start, end;

	open_program(&oldest_program);
	assert_extents();
	open_program(&new_program);
	assert_extents();
	at = vaddr_of("main.plain", 0);
	assert_true(go_pclntab_extent(table, at + 8, &start, &end));
	assert_true(end - start > 1);
}

static void older_layouts(void **state)
{
	struct go_frame frames[4];
	uint32_t nr;

	open_program(&old_program);
	assert_int_equal(go_pclntab_frames(table, vaddr_of("main.plain", 0) + 12, frames, 4, &nr), 0);
	assert_int_equal(nr, 2);
	expect_frame(&frames[0], "main.inner", "/src/old.go", 8, 0);
	expect_frame(&frames[1], "main.plain", "/src/old.go", 8, 0);
	open_program(&oldest_program);
	assert_int_equal(go_pclntab_nr_functions(table), 6);
	assert_int_equal(go_pclntab_frames(table, vaddr_of("main.plain", 0) + 12, frames, 4, &nr), 0);
	assert_int_equal(nr, 1);
	expect_frame(&frames[0], "main.plain", "/src/old.go", 8, 0);
	EXPECT_STEP(vaddr_of("main.plain", 0) + 10, 32, -16);
	EXPECT_SWITCH(vaddr_of("runtime.systemstack", 0) + 20, SONDE_SWITCH_TO_CURG, 8);
}

/* --- damage --- */

static int count_row(void *arg, uint64_t start_vaddr, const struct sonde_rule *rule)
{
	(*(uint32_t *)arg)++;
	return 0;
}

/* Reads everything, so that the sanitizers check it. */
static void ask_all(void)
{
	struct cfi_stats stats;
	uint32_t nr_rows = 0, nr;

	assert_int_equal(go_pclntab_walk(table, count_row, &nr_rows, &stats), 0);
	for (uint64_t vaddr = GO_TEXT_VADDR; vaddr < GO_TEXT_VADDR + go_text.size; vaddr += 3) {
		struct go_frame frames[3];

		if (!go_pclntab_frames(table, vaddr, frames, 3, &nr))
			assert_true(nr >= 1 && nr <= 3 && frames[nr - 1].name[0]);
	}
	assert_extents();
}

static void truncated(void **state)
{
	static struct bytes whole;

	go_make_parts(&new_program);
	whole = go_table;
	for (size_t size = 0; size < whole.size; size += 5) {
		if (!read_bytes(whole.data, size))
			ask_all();
	}
}

static void damaged(void **state)
{
	static struct bytes broken;

	go_make_parts(&new_program);
	for (size_t at = 0; at < go_table.size; at += 3) {
		broken = go_table;
		broken.data[at] ^= 0xff;
		if (!read_bytes(broken.data, broken.size))
			ask_all();
	}
}

static void refused(void **state)
{
	static struct bytes broken;
	uint64_t index;

	go_make_parts(&new_program);
	memcpy(&index, go_table.data + 64, sizeof(index));
	broken = go_table;
	broken.data[0] = 0xfb; /* Go 1.2 to 1.15 */
	assert_int_equal(read_bytes(broken.data, broken.size), -ENODATA);
	broken = go_table;
	broken.data[index + 8 + 1] = 1; /* the second function after the third */
	assert_int_equal(read_bytes(broken.data, broken.size), -EBADMSG);
	broken = go_table;
	broken.data[index + 16 * 8 + 2] = 1; /* the last function ends after the file's code */
	assert_int_equal(read_bytes(broken.data, broken.size), -EBADMSG);
	broken = go_table;
	broken.data[10] = 0xff; /* more functions than the table can hold */
	assert_int_equal(read_bytes(broken.data, broken.size), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prologues),   cmocka_unit_test(switches_by_frame),	      cmocka_unit_test(switches_without_frame),
		cmocka_unit_test(ends),	       cmocka_unit_test(lines_and_inlined_calls), cmocka_unit_test(an_extent_says_one_thing),
		cmocka_unit_test(older_layouts), cmocka_unit_test(truncated), cmocka_unit_test(damaged),
		cmocka_unit_test(refused),
	};
	int nr_failed = cmocka_run_group_tests(tests, NULL, NULL);

	close_program();
	return nr_failed;
}
