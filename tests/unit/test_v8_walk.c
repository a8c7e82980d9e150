// SPDX-License-Identifier: Apache-2.0
/* The kernel side's walk of V8's frames (runtimes/v8.h), compiled for the host, in a thread that is stopped at random moments and then
 * goes on one instruction at a time. Oracle: tests/programs/node_maze.js calls itself at random, but a function of layer i mod 4 calls
 * those of the next layer alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <time.h>
#include <unistd.h>

#include "runtime/v8/v8_layout.h"
#include "runtime/v8/v8_names.h"
#include "stopped_child.h"
#include "stopped_thread.h"
#include "runtimes/v8.h"

#define STOPS 32 /* of each way to run the program */
#define STEPS 30 /* instructions after each */
#define WARM_UP_NS 900000000
#define LAYERS 4
#define MAX_NAMES 256
#define MAX_NAME 64

static struct walk w;
static __u64 frames[SONDE_MAX_USER_FRAMES];
static struct runtime_walk r;
static char addon[64];

/* --- the program ---------------------------------------------------------------------------------------------------------------------- */

/* `options` ends with NULL. */
static void start_child(const char *node, const char *const *options)
{
	const char *argv[16] = { node };
	char script[512], first;
	uint32_t nr = 1;
	int out[2];

	snprintf(script, sizeof(script), "%s/node_maze.js", getenv("SONDE_TEST_PROGRAMS"));
	while (*options)
		argv[nr++] = *options++;
	argv[nr++] = script;
	argv[nr++] = addon;
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || dup2(out[1], 1) != 1)
			_exit(126);
		execv(node, (char *const *)argv);
		_exit(127);
	}
	close(out[1]);
	if (read(out[0], &first, 1) != 1) /* it has begun */
		fail_msg("%s has ended", node);
	close(out[0]);
	nanosleep(&(struct timespec){ .tv_nsec = WARM_UP_NS }, NULL);
}

/* --- tables of what is mapped there --------------------------------------------------------------------------------------------------- */

static struct host_tables tables;
static struct runtime_image image;
static struct v8_process process;
static const struct elf_file *file; /* that has V8 */

static struct sonde_code_range builtins_at(uint64_t load_bias)
{
	uint64_t start_pc = load_bias + process.layout.builtins;

	return (struct sonde_code_range){ start_pc, start_pc + process.layout.builtins_bytes };
}

static void look_at_file(const struct elf_file *elf, uint64_t load_bias)
{
	struct diag diag = { 0 };

	host_owned_part = (struct sonde_code_range){ 0 };

	if (elf != file) {
		if (image.is_supported || runtime_v8.examine(elf, &image))
			return;
		assert_string_equal(image.reason, "");
		assert_true(runtime_image_is_sound(&image));
		assert_int_equal(runtime_v8.place(&image, load_bias, NULL, &memory, &diag, &process), 0);
		process.v8.process.serial = (uint32_t)child;
		process.v8.builtins[0] = builtins_at(load_bias);
		file = elf;
	}
	host_owned_part = builtins_at(load_bias); /* V8 maps them again near the heap's code */
}

static void load_tables(void)
{
	memset(&image, 0, sizeof(image));
	host_owner = SONDE_RUNTIME_V8;
	file = NULL;
	host_read = read_child;
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
	return v8_frame(&w, &r, &process.v8);
}

static void walk_thread(void)
{
	memset(w.cache, 0, sizeof(w.cache));
	memset(&r, 0, sizeof(r));
	r.runtime = SONDE_RUNTIME_V8;
	take_registers(&w, child);
	nr_reads = 0;
	walk_enter(&w);
	while (take_step() == WALK_GOES_ON)
		assert_true(nr_reads < 200000);
}

/* --- comparison ----------------------------------------------------------------------------------------------------------------------- */

enum verdict { EXACT, MARKED, WRONG };

static char names[MAX_NAMES][MAX_NAME]; /* the maze's functions, leaf first */
static uint32_t nr_names;
static char why[256];

static void take_name(const struct runtime_function *function)
{
	const char *name = strncmp(function->name, "get ", 4) ? function->name : function->name + 4;

	if (strcmp(name, "run") && !(name[0] && strchr("fkmgcp", name[0]) && name[1] >= '0' && name[1] <= '9'))
		return;
	assert_true(nr_names < MAX_NAMES);
	snprintf(names[nr_names++], MAX_NAME, "%.60s", name);
}

/* False: a frame is a mark, or cannot be named. */
static bool name_frames(void)
{
	nr_names = 0;
	for (uint32_t i = 0; i < r.nr_frames; i++) {
		struct runtime_function function = { 0 };

		for (uint32_t level = 0; !level || function.has_caller; level++) {
			int err;

			function = (struct runtime_function){ .level = level };
			err = v8_describe(&image, &process, &memory, &r.frames[i], &function);
			if (err || function.is_mark) {
				snprintf(why, sizeof(why), "frame %u: %d %.100s; code %llx where %llx", i, err, function.name,
					 (unsigned long long)r.frames[i].code, (unsigned long long)r.frames[i].where);
				return false;
			}
			take_name(&function);
		}
	}
	return true;
}

/* Can the function call that one? Its other functions (a sort's, a getter, ...) have its number, and call the next layer. */
static bool may_call(const char *caller, const char *callee)
{
	int from = atoi(caller + 1), to = atoi(callee + 1);

	if (!strcmp(caller, "run"))
		return callee[0] == 'f';
	if (callee[0] == 'f')
		return to % LAYERS == (from + 1) % LAYERS;
	return caller[0] == 'f' && strchr("kmgcp", callee[0]) && to == from;
}

static enum verdict compare(void)
{
	uint32_t root = 0;

	if (w.stop != SONDE_STOP_COMPLETE || r.record.stop != SONDE_RUNTIME_STOP_COMPLETE) {
		snprintf(why, sizeof(why), "stop %u, runtime %u", w.stop, r.record.stop);
		return MARKED;
	}
	if (!name_frames())
		return MARKED;
	while (root < nr_names && strcmp(names[root], "run"))
		root++;
	if (root == nr_names) {
		snprintf(why, sizeof(why), "no root");
		return WRONG;
	}
	for (uint32_t i = 0; i < root; i++) {
		if (may_call(names[i + 1], names[i]))
			continue;
		snprintf(why, sizeof(why), "%.60s does not call %.60s", names[i + 1], names[i]);
		return WRONG;
	}
	return EXACT;
}

static void show_walk(void)
{
	__u8 code[48] = { 0 };

	print_message("# %s; pc %llx sp %llx bp %llx\n", why, (unsigned long long)w.start.pc, (unsigned long long)w.start.sp,
		      (unsigned long long)w.start.bp);
	read_child(code, sizeof(code), w.start.pc - 24);
	print_message("#  ");
	for (int i = 0; i < 48; i++)
		print_message("%s%02x", i == 24 ? " | " : " ", code[i]);
	print_message("\n");
	for (uint32_t i = 0; i < r.nr_frames && i < 4; i++) {
		struct runtime_function function = { 0 };

		if (!v8_describe(&image, &process, &memory, &r.frames[i], &function))
			print_message("#   %s", function.name);
		print_message(" code %llx where %llx\n", (unsigned long long)r.frames[i].code, (unsigned long long)r.frames[i].where);
	}
}

static uint32_t counts[3], nr_shown;
static __u64 looked_at;

/* Steps of native code below the same frames count once: a thread that waits would be all of them. */
static void look(void)
{
	enum verdict verdict;

	walk_thread();
	verdict = compare();
	counts[verdict] += verdict == WRONG || r.record.hash != looked_at;
	looked_at = r.record.hash;
	if (verdict == WRONG || (verdict == MARKED && nr_shown++ < 6))
		show_walk();
}

static void look_at_steps(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = rand() % 3000000 }, NULL);
	stop_thread(child);
	look();
	for (int n = 0; n < STEPS; n++) {
		step_thread(child, 0);
		look();
	}
	release_thread(child, 0);
}

static void test_program(const char *node, const char *const *options)
{
	start_child(node, options);
	load_tables();
	memset(counts, 0, sizeof(counts));
	nr_shown = 0;
	looked_at = 0;
	for (uint32_t n = 0; n < STOPS; n++)
		look_at_steps();
	print_message("# %s %s (V8 %u.%u): %u exact, %u marked, %u wrong\n", node, options[0] ? options[0] : "default", image.version[0],
		      image.version[1], counts[EXACT], counts[MARKED], counts[WRONG]);
	host_tables_free(&tables);
	stop_child();
	assert_int_equal(counts[WRONG], 0);
	assert_true(counts[MARKED] * 5 < counts[EXACT]); /* instruction by instruction through calls: they are rarer in samples */
}

static void test_node(const char *node)
{
	static const char *const modes[][3] = { { NULL },
						{ "--no-opt", "--no-sparkplug", NULL },
						{ "--no-opt", "--always-sparkplug", NULL } };

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		test_program(node, modes[i]);
}

/* The one that is installed, or those in SONDE_TEST_NODES, separated by spaces. */
static void test_installed(void **state)
{
	const char *nodes = getenv("SONDE_TEST_NODES");
	char node[256], command[1024];
	int used;

	if (!nodes && access("/usr/bin/node", X_OK)) {
		print_message("# SKIPPED: no node\n");
		skip();
	}
	snprintf(addon, sizeof(addon), "/tmp/v8-walk-%d.node", getpid());
	snprintf(command, sizeof(command), "cc -shared -fPIC -O2 -o %s %s/node_addon.c", addon, getenv("SONDE_TEST_PROGRAMS"));
	assert_int_equal(system(command), 0);
	for (const char *next = nodes ? nodes : "/usr/bin/node"; sscanf(next, "%255s%n", node, &used) == 1; next += used)
		test_node(node);
	unlink(addon);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_installed) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
