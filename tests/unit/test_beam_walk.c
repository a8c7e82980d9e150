// SPDX-License-Identifier: Apache-2.0
/* The kernel side's walk of Erlang's frames (runtimes/beam.h), compiled for the host, in a scheduler that is stopped at random moments and
 * then goes on one instruction at a time. Oracle: what tests/programs/beam_spin.erl prints of its process's stack, which the runtime itself
 * reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
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

#include "runtime/beam/beam_private.h"
#include "runtime/libc_facts.h"
#include "stopped_child.h"
#include "stopped_thread.h"
#include "runtimes/beam.h"

#define MAX_FRAMES 64
#define MAX_NAME 128
#define STOPS 12
#define STEPS 150 /* instructions after each stop */

struct shown {
	char name[MAX_NAME];
	int line;
};

static struct shown expected[MAX_FRAMES], got[MAX_FRAMES];
static uint32_t nr_expected, nr_got;
static pid_t scheduler;
static struct walk w;
static __u64 frames[SONDE_MAX_USER_FRAMES];
static struct runtime_walk r;
static char folder[64];

/* --- the program ---------------------------------------------------------------------------------------------------------------------- */

/* Leaf first. */
static void read_expected(FILE *in)
{
	char line[512], file[256];

	nr_expected = 0;
	while (fgets(line, sizeof(line), in) && strcmp(line, "READY\n") != 0) {
		struct shown *frame = &expected[nr_expected];

		if (line[1] == ' ' || line[1] == '\n') /* T, E */
			continue;
		assert_int_equal(sscanf(line, "%127s %255s %d", frame->name, file, &frame->line), 3);
		assert_true(++nr_expected < MAX_FRAMES);
	}
	assert_true(nr_expected >= 2);
}

/* The only scheduler's thread. */
static pid_t find_scheduler(void)
{
	char path[300], name[32] = "";
	pid_t found = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", child);
	tasks = opendir(path);
	assert_non_null(tasks);
	for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/task/%.20s/comm", child, task->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fgets(name, sizeof(name), file) && (!strcmp(name, "1_scheduler\n") || !strcmp(name, "erts_sched_1\n")))
			found = atoi(task->d_name);
		fclose(file);
	}
	closedir(tasks);
	assert_true(found > 0);
	return found;
}

static void start_child(const char *scenario, const char *const *options)
{
	const char *argv[32] = { "erl", "-noshell", "-noinput", "+S", "1:1", "-pa", folder };
	uint32_t nr = 7;
	int out[2];
	FILE *in;

	while (*options)
		argv[nr++] = *options++;
	argv[nr++] = "-run";
	argv[nr++] = "beam_spin";
	argv[nr++] = "main";
	argv[nr++] = "none";
	argv[nr++] = scenario;
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || dup2(out[1], 1) != 1)
			_exit(126);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	close(out[1]);
	in = fdopen(out[0], "r");
	assert_non_null(in);
	read_expected(in);
	fclose(in);
	scheduler = find_scheduler();
}

/* --- tables of what is mapped there --------------------------------------------------------------------------------------------------- */

static struct host_tables tables;
static struct runtime_image image;
static struct sonde_beam beam;
static struct libc_facts libc;
static uint64_t load_bias;

static void look_at_file(const struct elf_file *elf, uint64_t file_bias)
{
	struct libc_facts facts;
	struct runtime_image found;

	if (!libc_facts_read(elf, &facts) && facts.is_known)
		libc = facts;
	if (runtime_beam.examine(elf, &found))
		return;
	image = found;
	load_bias = file_bias;
}

static void load_tables(void)
{
	CLEANUP(freep) struct diag *diag = calloc(1, sizeof(*diag));
	union sonde_runtime_known known = { 0 };

	assert_non_null(diag);
	memset(&image, 0, sizeof(image));
	host_owner = SONDE_RUNTIME_BEAM;
	host_tables_load(&tables, &w, child, look_at_file);
	host_read = read_child;
	assert_string_equal(image.reason, "");
	assert_true(image.is_supported && runtime_image_is_sound(&image));
	assert_int_equal(runtime_beam.place(&image, load_bias, &libc, &memory, diag, &known), 0);
	memcpy(&beam, &known, sizeof(beam));
}

/* --- walks ---------------------------------------------------------------------------------------------------------------------------- */

static int take_step(void)
{
	int at = walk_step(&w, frames);

	if (at != WALK_AT_OWNER)
		return at;
	walk_leave_to_owner(&w);
	return beam_frame(&w, &r, &beam);
}

static void walk_scheduler(void)
{
	memset(w.cache, 0, sizeof(w.cache));
	memset(&r, 0, sizeof(r));
	r.runtime = SONDE_RUNTIME_BEAM;
	take_registers(&w, scheduler);
	nr_reads = 0;
	walk_enter(&w);
	while (take_step() == WALK_GOES_ON)
		assert_true(nr_reads < 50000);
}

/* --- comparison ----------------------------------------------------------------------------------------------------------------------- */

enum verdict { EXACT, MARKED, WRONG };
static uint32_t counts[3], nr_erlang, nr_shared; /* shared: in code that all modules share */
static char why[512];

/* Leaf first; process_main last. False: no Erlang process runs, or a frame has no name. */
static bool name_frames(void)
{
	bool is_in_main = false;

	nr_got = 0;
	for (uint32_t i = 0; i < r.nr_frames && nr_got < MAX_FRAMES; i++) {
		struct runtime_function function = { 0 };

		assert_int_equal(beam_describe(&image, &beam, &memory, &r.frames[i], &function), 0);
		if (!strcmp(function.name, "$global")) {
			nr_shared += !i && r.frames[i].where & SONDE_BEAM_EXACT;
			continue;
		}
		is_in_main = !strcmp(function.name, "process_main");
		if (is_in_main)
			continue;
		snprintf(got[nr_got].name, sizeof(got[0].name), "%.127s", function.name);
		got[nr_got++].line = (int)function.line;
	}
	return is_in_main;
}

static enum verdict compare(void)
{
	if (w.stop != SONDE_STOP_COMPLETE || r.record.stop != SONDE_RUNTIME_STOP_COMPLETE) {
		snprintf(why, sizeof(why), "stop %u, runtime %u", w.stop, r.record.stop);
		return MARKED;
	}
	if (!name_frames() || !nr_got || strncmp(got[nr_got - 1].name, "beam_spin:", 10) != 0)
		return EXACT; /* the scheduler itself, or another process of the runtime's */
	nr_erlang++;
	snprintf(why, sizeof(why), "%u frames, not %u", nr_got, nr_expected);
	if (nr_got + 1 < nr_expected || nr_got > nr_expected + 1)
		return WRONG;
	for (uint32_t i = 1; i < nr_expected; i++) { /* from the root; not the innermost one */
		const struct shown *a = &got[nr_got - i], *b = &expected[nr_expected - i];

		snprintf(why, sizeof(why), "%s line %d, not %s line %d", a->name, a->line, b->name, b->line);
		if (strcmp(a->name, b->name) || (i < nr_got && a->line != b->line))
			return WRONG;
	}
	return EXACT;
}

static void show_walk(void)
{
	__u64 last = w.start.pc;
	__u8 code[32] = { 0 };

	read_child(code, sizeof(code), last);
	print_message("# at %llx:", (unsigned long long)last);
	for (int i = 0; i < 32; i++)
		print_message(" %02x", code[i]);
	print_message("\n# %s: %s\n", expected[nr_expected - 1].name, why);
	for (uint32_t i = 0; i < w.nr_frames && i < 8; i++)
		print_message("#   %2u %llx sp %llx\n", i, (unsigned long long)frames[i], (unsigned long long)w.sps[i]);
	for (uint32_t i = 0; i < nr_got && i < 8; i++)
		print_message("#   %s:%d\n", got[i].name, got[i].line);
}

static void look(void)
{
	static uint32_t nr_shown;
	enum verdict verdict;

	nr_got = 0;
	walk_scheduler();
	verdict = compare();
	counts[verdict]++;
	if (verdict == WRONG && nr_shown++ < 6)
		show_walk();
}

/* --- stops ---------------------------------------------------------------------------------------------------------------------------- */

/* The process gives up the CPU where it calls a function next: there is no reduction left. BeamAsm counts them in r14. */
static void end_turn(void)
{
	struct user_regs_struct regs;

	assert_int_equal(ptrace(PTRACE_GETREGS, scheduler, NULL, &regs), 0);
	regs.r14 = 0;
	assert_int_equal(ptrace(PTRACE_SETREGS, scheduler, NULL, &regs), 0);
}

/* Interrupts it, and follows it through some instructions; in a system call it may wait. */
static void look_at_steps(bool ends_turn)
{
	int signal;

	nanosleep(&(struct timespec){ .tv_nsec = 1000000 + rand() % 3000000 }, NULL);
	signal = stop_thread(scheduler);
	look();
	if (ends_turn && nr_got && r.frames[0].where & SONDE_BEAM_EXACT)
		end_turn();
	for (int n = 0; n < STEPS; n++) {
		__u8 code[2] = { 0 };

		if (read_child(code, sizeof(code), w.start.pc) || (code[0] == 0x0f && code[1] == 0x05))
			break;
		signal = step_thread(scheduler, signal);
		look();
	}
	release_thread(scheduler, signal);
}

static void test_scenario(const char *scenario, const char *const *options)
{
	start_child(scenario, options);
	load_tables();
	memset(counts, 0, sizeof(counts));
	nr_erlang = nr_shared = 0;
	for (int n = 0; n < STOPS; n++)
		look_at_steps(n % 4 == 3);
	print_message("# %s %s: %u exact, %u marked, %u wrong; %u of Erlang code, %u of shared code\n", scenario,
		      options[0] ? "with frame pointers" : "", counts[EXACT], counts[MARKED], counts[WRONG], nr_erlang, nr_shared);
	host_tables_free(&tables);
	stop_child();
	assert_int_equal(counts[WRONG], 0);
	assert_true(nr_erlang > 100);
	assert_true(nr_shared > 0);
	/* All steps behind one stop may be in a piece of code that is marked. How many samples are, tests/system/beam.py limits. */
	assert_true(counts[MARKED] * 3 < counts[EXACT]);
}

static void test_scenarios(const char *const *options)
{
	static const char *const scenarios[] = { "plain", "guarded", "closure", "binaries", "floats", "receiver" };

	for (size_t i = 0; i < ARRAY_SIZE(scenarios); i++)
		test_scenario(scenarios[i], options);
}

static void test_default(void **state)
{
	static const char *const none[] = { NULL };

	test_scenarios(none);
}

static void test_frame_pointers(void **state)
{
	static const char *const with[] = { "+JPperf", "true", NULL };

	test_scenarios(with);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_default), cmocka_unit_test(test_frame_pointers) };
	char command[512];
	int failed;

	snprintf(folder, sizeof(folder), "/tmp/beam-walk-XXXXXX");
	if (!mkdtemp(folder))
		return 1;
	snprintf(command, sizeof(command), "erlc -o %s %s/beam_spin.erl 2>%s/errors", folder, getenv("SONDE_TEST_PROGRAMS"), folder);
	if (system(command) != 0) {
		printf("# SKIPPED: no erlc\n");
		return 77;
	}
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command) || failed;
}
