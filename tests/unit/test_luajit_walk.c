// SPDX-License-Identifier: Apache-2.0
/* The kernel side's walk of LuaJIT's frames (runtimes/luajit.h), compiled for the host, in a program that is stopped at random moments and
 * then goes on one instruction at a time. Oracle: what tests/programs/luajit_spin.lua prints of its stack, which the runtime itself
 * reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/luajit/luajit_private.h"
#include "stopped_child.h"
#include "stopped_thread.h"
#include "runtimes/runtime.h"

static struct runtime_walk r;

static struct runtime_walk *runtime_walk_of(WALK_REF ref)
{
	return &r;
}

#include "runtimes/luajit.h"

#define MAX_FRAMES 400
#define MAX_STEPS 32 /* functions that spin() calls */
#define STOPS 10
#define STEPS 400 /* instructions after each stop */

struct shown {
	uint32_t start_line, line;
};

static struct shown expected[MAX_FRAMES], got[MAX_FRAMES];
static uint32_t nr_expected, nr_got, step_lines[MAX_STEPS], nr_step_lines;
static struct walk w;
static __u64 frames[SONDE_MAX_USER_FRAMES];
static char script[512];

/* --- the program ---------------------------------------------------------------------------------------------------------------------- */

/* Leaf first. */
static void read_expected(FILE *in)
{
	char line[512], file[256];

	nr_expected = 0;
	while (fgets(line, sizeof(line), in) && strcmp(line, "E\n") != 0) {
		struct shown *frame = &expected[nr_expected];

		if (line[0] == 'T')
			continue;
		assert_int_equal(sscanf(line, "%u %255s %u", &frame->start_line, file, &frame->line), 3);
		assert_true(++nr_expected < MAX_FRAMES);
	}
	assert_true(nr_expected >= 3);
}

/* The lines of the functions that spin() calls are marked. */
static void read_steps(void)
{
	FILE *in = fopen(script, "r");
	uint32_t number = 0;
	char line[512];

	assert_non_null(in);
	nr_step_lines = 0;
	while (fgets(line, sizeof(line), in)) {
		number++;
		if (strstr(line, "-- STEP") && nr_step_lines < MAX_STEPS)
			step_lines[nr_step_lines++] = number;
	}
	fclose(in);
}

static void start_child(const char *scenario, const char *option)
{
	int out[2];
	FILE *in;

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || dup2(out[1], 1) != 1)
			_exit(126);
		execlp("luajit", "luajit", option, script, scenario, NULL);
		_exit(127);
	}
	close(out[1]);
	in = fdopen(out[0], "r");
	assert_non_null(in);
	read_expected(in);
	fclose(in);
}

/* --- tables of what is mapped there --------------------------------------------------------------------------------------------------- */

static struct host_tables tables;
static struct runtime_image image;
static union sonde_runtime_known known;
static const struct elf_file *of;

static void look_at_file(const struct elf_file *elf, uint64_t load_bias)
{
	struct sonde_luajit *luajit = (struct sonde_luajit *)&known;
	struct diag diag = { 0 };

	host_owned_part = (struct sonde_code_range){ 0 };
	if (!of && !runtime_luajit.examine(elf, &image)) {
		assert_string_equal(image.reason, "");
		assert_true(runtime_image_is_sound(&image));
		assert_int_equal(runtime_luajit.place(&image, load_bias, NULL, &memory, &diag, &known), 0);
		of = elf;
	}
	if (of == elf)
		host_owned_part = luajit->vm;
}

static void load_tables(void)
{
	memset(&image, 0, sizeof(image));
	host_owner = SONDE_RUNTIME_LUAJIT;
	host_read = read_child;
	of = NULL;
	host_tables_load(&tables, &w, child, look_at_file);
	assert_true(image.is_supported);
}

/* --- walks ---------------------------------------------------------------------------------------------------------------------------- */

static int take_step(void)
{
	int at = walk_step(&w, frames);

	if (at != WALK_AT_OWNER)
		return at;
	walk_leave_to_owner(&w);
	return luajit_frame(&w, &r, (const struct sonde_luajit *)&known);
}

static void walk_thread(void)
{
	memset(w.cache, 0, sizeof(w.cache));
	memset(&r, 0, sizeof(r));
	r.runtime = SONDE_RUNTIME_LUAJIT;
	take_registers(&w, child);
	nr_reads = 0;
	walk_enter(&w);
	while (take_step() == WALK_GOES_ON)
		assert_true(nr_reads < 50000);
}

/* --- comparison ----------------------------------------------------------------------------------------------------------------------- */

enum verdict { EXACT, IN_TRACE, MARKED, WRONG };
static uint32_t counts[4];
static char why[512];

static bool is_step(uint32_t start_line)
{
	for (uint32_t i = 0; i < nr_step_lines; i++) {
		if (step_lines[i] == start_line)
			return true;
	}
	return false;
}

/* Leaf first. True: it is in a trace. */
static bool name_frames(void)
{
	bool is_in_trace = false;

	nr_got = 0;
	for (uint32_t i = 0; i < r.nr_frames && nr_got < MAX_FRAMES; i++) {
		struct runtime_function function = { 0 };

		if (r.frames[i].flags & SONDE_RUNTIME_ENTRY)
			continue;
		assert_int_equal(luajit_describe(&image, &known, &memory, &r.frames[i], &function), 0);
		is_in_trace |= function.is_mark;
		if (!function.is_mark && !(r.frames[i].code & SONDE_LUAJIT_BUILTIN))
			got[nr_got++] = (struct shown){ function.start_line, function.line };
	}
	return is_in_trace;
}

static enum verdict compare(void)
{
	bool is_in_trace;

	if (w.stop != SONDE_STOP_COMPLETE || r.record.stop != SONDE_RUNTIME_STOP_COMPLETE) {
		snprintf(why, sizeof(why), "stop %u, runtime %u", w.stop, r.record.stop);
		return MARKED;
	}
	is_in_trace = name_frames();
	snprintf(why, sizeof(why), "%u frames, not %u", nr_got, nr_expected);
	if (nr_got < nr_expected)
		return WRONG;
	for (uint32_t i = 1; i <= nr_got; i++) { /* from the root */
		const struct shown *a = &got[nr_got - i], *b = i <= nr_expected ? &expected[nr_expected - i] : NULL;

		snprintf(why, sizeof(why), "%u:%u, not %u:%u", a->start_line, a->line, b ? b->start_line : 0, b ? b->line : 0);
		if (b ? a->start_line != b->start_line || (i < nr_expected && a->line != b->line) : !is_step(a->start_line))
			return WRONG;
	}
	return is_in_trace ? IN_TRACE : EXACT;
}

static void show_walk(void)
{
	__u64 last = w.start.pc;
	__u8 code[16] = { 0 };

	read_child(code, sizeof(code), last);
	print_message("# wrong: %s; at %llx:", why,
		      (unsigned long long)(last - known.process.load_bias));
	for (int i = 0; i < 16; i++)
		print_message(" %02x", code[i]);
	print_message("\n#  ");
	for (uint32_t i = 0; i < w.nr_frames && i < 12; i++)
		print_message(" %llx", (unsigned long long)(frames[i] - known.process.load_bias) & ~SONDE_FRAME_RETURN);
	print_message("\n#  ");
	for (uint32_t i = 0; i < nr_got && i < 12; i++)
		print_message(" %u:%u", got[i].start_line, got[i].line);
	print_message("\n");
}

static void look(void)
{
	static uint32_t nr_shown;
	enum verdict verdict;

	nr_got = 0;
	walk_thread();
	verdict = compare();
	counts[verdict]++;
	if (verdict == WRONG && nr_shown++ < 6)
		show_walk();
}

/* --- stops ---------------------------------------------------------------------------------------------------------------------------- */

static void look_at_steps(void)
{
	int signal;

	nanosleep(&(struct timespec){ .tv_nsec = 1000000 + rand() % 3000000 }, NULL);
	signal = stop_thread(child);
	host_tables_free(&tables); /* traces may be in memory that is new */
	load_tables();
	look();
	for (int n = 0; n < STEPS; n++) {
		__u8 code[2] = { 0 };

		if (read_child(code, sizeof(code), w.start.pc) || (code[0] == 0x0f && code[1] == 0x05))
			break;
		signal = step_thread(child, signal);
		look();
	}
	release_thread(child, signal);
}

static void test_scenario(const char *scenario, const char *option)
{
	start_child(scenario, option);
	load_tables();
	memset(counts, 0, sizeof(counts));
	for (int n = 0; n < STOPS; n++)
		look_at_steps();
	print_message("# %s %s: %u exact, %u in traces, %u marked, %u wrong\n", scenario, option, counts[EXACT], counts[IN_TRACE],
		      counts[MARKED], counts[WRONG]);
	host_tables_free(&tables);
	stop_child();
	assert_int_equal(counts[WRONG], 0);
}

static void test_scenarios(const char *option)
{
	static const char *const scenarios[] = { "plain", "vararg",   "pcall", "index",	    "concat", "gsub",
						 "sort",  "callback", "gc",    "coroutine", "wrap" };

	uint32_t nr_in_traces = 0;

	for (size_t i = 0; i < ARRAY_SIZE(scenarios); i++) {
		test_scenario(scenarios[i], option);
		assert_true(counts[MARKED] * 20 < counts[EXACT] + counts[IN_TRACE]);
		nr_in_traces += counts[IN_TRACE];
	}
	assert_true(!nr_in_traces == !strcmp(option, "-joff"));
}

static void test_interpreter(void **state)
{
	test_scenarios("-joff");
}

static void test_traces(void **state)
{
	test_scenarios("-jon");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_interpreter), cmocka_unit_test(test_traces) };

	if (system("luajit -v >/dev/null 2>&1") != 0) {
		printf("# SKIPPED: no luajit\n");
		return 77;
	}
	snprintf(script, sizeof(script), "%s/luajit_spin.lua", getenv("SONDE_TEST_PROGRAMS"));
	read_steps();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
