// SPDX-License-Identifier: Apache-2.0
/* The kernel side's walk of HotSpot's frames (runtimes/java.h), compiled for the host, in threads that are stopped at random moments and,
 * in interpreted code, then go on one instruction at a time. Oracle: what tests/programs/JavaSpin.java prints of its threads' stacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "java_child.h"
#include "runtime/java/java_class.h"
#include "runtime/java/java_lines.h"

#define MAX_THREADS 16
#define MAX_EXPECTED 1300
#define MAX_NAME 128
#define STOPS 100 /* of all threads together, of each way to run the program */
#define STEPS 12  /* instructions after each, in interpreted code and stubs only: compiled code saves the flag that makes it step */
/* Of the scenarios for stubs, which hardly run other code. Not where each walk takes ten times as long: there a JVM once ended under it. */
#ifdef __SANITIZE_ADDRESS__
#define STUB_STEPS 0
#else
#define STUB_STEPS 100
#endif

struct shown {
	char name[MAX_NAME], file[64];
	int line; /* below 1: none */
};

struct expected {
	pid_t tid;
	char scenario[32];
	uint32_t nr;
	struct shown frames[MAX_EXPECTED];
};

static struct expected expected[MAX_THREADS];
static uint32_t nr_expected;
static char folder[256]; /* with the classes and the library */

/* --- the program ---------------------------------------------------------------------------------------------------------------------- */

static void read_expected(FILE *in, uint32_t nr_threads)
{
	char line[512];
	struct expected *thread = NULL;

	nr_expected = 0;
	while (nr_expected < nr_threads || thread) {
		if (!fgets(line, sizeof(line), in))
			fail_msg("the program has ended");
		if (line[0] == 'T' && line[1] == ' ') {
			thread = &expected[nr_expected++];
			thread->nr = 0;
			assert_int_equal(sscanf(line, "T %d %31s", &thread->tid, thread->scenario), 2);
		} else if (line[0] == 'E' && line[1] == '\n') {
			thread = NULL;
		} else if (thread) {
			struct shown *frame = &thread->frames[thread->nr++];

			assert_true(thread->nr < MAX_EXPECTED);
			assert_int_equal(sscanf(line, "%127s %63s %d", frame->name, frame->file, &frame->line), 3);
		}
	}
}

/* `root` is the prefix of the program's path: "" or a directory to chroot to. `options` ends with NULL. */
static void start_child(const char *root, const char *java, const char *const *options, const char *const *scenarios)
{
	const char *argv[64] = { java };
	char library[300];
	uint32_t nr = 1, nr_threads = 0;
	FILE *in;

	snprintf(library, sizeof(library), "%s/library.so", folder);
	while (*options)
		argv[nr++] = *options++;
	argv[nr++] = "-cp";
	argv[nr++] = folder;
	argv[nr++] = "JavaSpin";
	argv[nr++] = library;
	while (scenarios[nr_threads])
		argv[nr++] = scenarios[nr_threads++];
	in = fdopen(start_java(root, argv, -1), "r");
	assert_non_null(in);
	read_expected(in, nr_threads);
	fclose(in);
}

/* --- comparison ----------------------------------------------------------------------------------------------------------------------- */

enum verdict { EXACT, MARKED, WRONG };

static struct shown got[MAX_EXPECTED + 64];
static uint32_t nr_got, nr_gaps;
static char why[512];

/* Names the frames: false: one is a mark, or cannot be named. */
static bool name_frames(void)
{
	nr_got = nr_gaps = 0;
	for (uint32_t i = 0; i < r.nr_frames; i++) {
		struct runtime_function function = { 0 };

		if (r.frames[i].flags & SONDE_RUNTIME_ENTRY)
			continue;
		for (uint32_t level = 0; !level || function.has_caller; level++) {
			int err;

			function = (struct runtime_function){ .level = level };
			err = java_describe(&image, &process, &memory, &r.frames[i], &function);
			if (!err && function.is_mark && !strcmp(function.name, SONDE_GAP_MARK)) {
				nr_gaps++;
				break;
			}
			if (err || function.is_mark) {
				snprintf(why, sizeof(why), "frame %u: %d %s", i, err, function.name);
				return false;
			}
			if (is_hidden(function.name))
				continue;
			assert_true(nr_got < ARRAY_SIZE(got));
			snprintf(got[nr_got].name, sizeof(got[0].name), "%s", function.name);
			snprintf(got[nr_got].file, sizeof(got[0].file), "%.60s", function.file);
			got[nr_got++].line = (int)function.line;
		}
	}
	return true;
}

static enum verdict wrong(const char *what, const struct shown *a, const struct shown *b)
{
	snprintf(why, sizeof(why), "%s: %s %s:%d, not %s %s:%d", what, a ? a->name : "nothing", a ? a->file : "", a ? a->line : 0,
		 b ? b->name : "nothing", b ? b->file : "", b ? b->line : 0);
	return WRONG;
}

/* The calls above `spin`, root end first. */
static const char *const chain[] = { "JavaSpin.c1", "JavaSpin.c2", "JavaSpin.c3", "JavaSpin.c4", "JavaSpin$", "JavaSpin.c5",
				     "JavaSpin.c6", "JavaSpin.c7", "JavaSpin.c8", "JavaSpin.c9" };

/* The root of a virtual thread's stack, in its carrier: some of the frames there. */
static const char *const carrier[] = { "java.util.concurrent.ForkJoinWorkerThread.run", "java.util.concurrent.ForkJoinPool.runWorker",
				       "java.lang.VirtualThread.runContinuation", "jdk.internal.vm.Continuation.run",
				       "jdk.internal.vm.Continuation.enterSpecial" };

/* Drops the carrier's frames and the VM's own first frames of a virtual thread, down to the one that the thread's own trace begins with. */
static bool drop_carrier(const struct expected *want)
{
	size_t nr_found = 0;

	while (nr_got && nr_found < ARRAY_SIZE(carrier))
		nr_found += !strcmp(got[--nr_got].name, carrier[nr_found]);
	while (nr_got && strcmp(got[nr_got - 1].name, want->frames[want->nr - 1].name))
		nr_got--;
	return nr_got;
}

/* Of the scenarios with native code that breaks the chain. */
static uint32_t wanted_gaps(const struct expected *want)
{
	return !strcmp(want->scenario, "broken") ? 10 : !strcmp(want->scenario, "stuck") ? 11 : 0;
}

#define NR_FALLS 19
#define MAX_INLINED 6 /* an interrupted instruction may be shown as those of the next call nearby */

/* Above `thrown`: fall1, fall2, fall3, fall1 and so on, and at the leaf end frames of the library. */
static enum verdict compare_falls(uint32_t nr_above)
{
	uint32_t nr_library = 0, nr_falls;

	while (nr_library < nr_above && strncmp(got[nr_library].name, "java.lang.", 10) == 0)
		nr_library++;
	nr_falls = nr_above - nr_library;
	if (nr_falls > NR_FALLS + MAX_INLINED)
		return wrong("too many", &got[0], NULL);
	for (uint32_t i = 0; i < nr_falls; i++) {
		char called[] = "JavaSpin.fall1";

		called[13] = (char)('1' + i % 3);
		if (strcmp(got[nr_above - 1 - i].name, called))
			return wrong(called, &got[nr_above - 1 - i], NULL);
	}
	return EXACT;
}

static enum verdict compare(const struct expected *want)
{
	bool is_proved = is_walk_proved();
	uint32_t nr_above, nr_library = 0;

	if (w.stop != SONDE_STOP_COMPLETE || r.record.stop != SONDE_RUNTIME_STOP_COMPLETE) {
		snprintf(why, sizeof(why), "stop %u, runtime %u", w.stop, r.record.stop);
		return MARKED;
	}
	if (!name_frames())
		return MARKED;
	if (!is_proved) {
		snprintf(why, sizeof(why), "refuted");
		return MARKED;
	}
	if ((!strcmp(want->scenario, "virtual") || !strcmp(want->scenario, "resumed")) && !drop_carrier(want))
		return wrong("not the carrier", NULL, NULL);
	if (nr_got < want->nr || nr_gaps != wanted_gaps(want))
		return wrong("too few, or other gaps", NULL, NULL);
	nr_above = nr_got - want->nr;
	for (uint32_t i = 0; i < want->nr; i++) {
		const struct shown *a = &got[nr_above + i], *b = &want->frames[i];

		if (strcmp(a->name, b->name) || strcmp(a->file, b->file))
			return wrong("another method", a, b);
		if (!i && !a->line && !(frames[0] >> 63)) /* the compiler says nothing about some instructions */
			continue;
		if (i ? a->line != (b->line < 0 ? 0 : b->line) : a->line < b->line || a->line > b->line + 3)
			return wrong("another line", a, b);
	}
	if (!strcmp(want->scenario, "stuck"))
		return nr_above == 1 && !strcmp(got[0].name, "JavaSpin.breakChain") ? EXACT : wrong("not the native method", &got[0], NULL);
	if (!strcmp(want->scenario, "thrown"))
		return compare_falls(nr_above);
	while (nr_library < nr_above &&
	       (strncmp(got[nr_library].name, "java.lang.", 10) == 0 || strncmp(got[nr_library].name, "jdk.internal.", 13) == 0))
		nr_library++;
	if (nr_above - nr_library > ARRAY_SIZE(chain) || (nr_library && nr_above - nr_library != 8 && nr_above != nr_library))
		return wrong("not of the chain", &got[0], &got[nr_library]);
	for (uint32_t i = nr_library; i < nr_above; i++) {
		const char *called = chain[nr_above - 1 - i];

		if (strncmp(got[i].name, called, strlen(called)) || strcmp(got[i].file, "JavaSpin.java") ||
		    (got[i].line < 1 && (i || frames[0] >> 63)))
			return wrong(called, &got[i], NULL);
	}
	return EXACT;
}

static void show_walk(const struct expected *thread)
{
	__u64 last = frames[w.nr_frames ? w.nr_frames - 1 : 0] & ~SONDE_FRAME_RETURN;
	__u8 code[40] = { 0 };

	read_child(code, sizeof(code), last - 24);
	print_message("# last %llx:", (unsigned long long)last);
	for (int i = 0; i < 40; i++)
		print_message("%s%02x", i == 24 ? " | " : " ", code[i]);
	print_message("\n");
	print_message("# %s: %s\n", thread->scenario, why);
	for (uint32_t i = 0; i < w.nr_frames && i < 12; i++)
		print_message("#   %2u %llx sp %llx\n", i, (unsigned long long)frames[i], (unsigned long long)w.sps[i]);
	for (uint32_t i = 0; i < r.nr_frames && i < 4; i++)
		print_message("#   code %llx where %llx cookie %x\n", (unsigned long long)r.frames[i].code,
			      (unsigned long long)r.frames[i].where, r.frames[i].cookie);
	for (uint32_t i = 0; i < nr_got && i < 14; i++)
		print_message("#   %s %s:%d\n", got[i].name, got[i].file, got[i].line);
}

/* Executes the instruction that the last walk began at. False: the thread waits for another one, or got too many signals.
 * *signal: as of stop_thread. HotSpot uses SIGSEGV itself. */
static bool step(pid_t tid, int *signal)
{
	int status;

	if (!*signal && step_flags(tid))
		return true;
	for (int turn = 0; turn < 20; turn++) {
		pid_t stopped = 0;

		assert_int_equal(ptrace(PTRACE_SINGLESTEP, tid, NULL, (void *)(uintptr_t)*signal), 0);
		for (int n = 0; !stopped && n < 200; n++) {
			stopped = waitpid(tid, &status, __WALL | WNOHANG);
			if (!stopped)
				nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
		}
		if (!stopped) {
			assert_int_equal(ptrace(PTRACE_INTERRUPT, tid, NULL, NULL), 0);
			assert_int_equal(waitpid(tid, &status, __WALL), tid);
		}
		*signal = signal_of(status);
		if (!*signal)
			return stopped;
	}
	return false;
}

static uint32_t counts[3], nr_shown;

static void look(const struct expected *thread)
{
	enum verdict verdict;

	why[0] = '\0';
	nr_got = 0;
	walk_thread(thread->tid);
	verdict = compare(thread);
	counts[verdict]++;
	if (verdict != EXACT && nr_shown++ < (verdict == WRONG ? 20 : 6))
		show_walk(thread);
}

static void look_at_steps(const struct expected *thread, int nr_steps)
{
	int signal;

	nanosleep(&(struct timespec){ .tv_nsec = rand() % 3000000 }, NULL);
	signal = stop_thread(thread->tid);
	look(thread);
	for (int n = 0; n < nr_steps && step(thread->tid, &signal); n++)
		look(thread);
	release_thread(thread->tid, signal);
}

static const char *const one[] = { "spin", NULL };
static const char *const virtuals[] = { "virtual", "resumed", NULL };
static const char *const stubs[] = { "moves", "thrown", NULL };
static const char *const few[] = { "spin", "mixed", "compare", "monitor", "deoptimized", "handle", "copies", "broken", "stuck", NULL };

static int nr_steps(bool is_stubs, const char *const *options)
{
	if (is_stubs)
		return STUB_STEPS;
	return nr_expected == 1 && options[0] && !strcmp(options[0], "-Xint") ? STEPS : 0;
}

static void test_program(const char *root, const char *java, const char *const *options, const char *const *scenarios)
{
	bool is_stubs = scenarios == stubs;
	/* Once ZGC moves objects, those that the thread does not use are not found. */
	bool is_marked_later = scenarios == virtuals && options[0] && !strcmp(options[0], "-XX:+UseZGC");

	start_child(root, java, options, scenarios);
	load_tables();
	memset(counts, 0, sizeof(counts));
	nr_shown = 0;
	for (uint32_t n = 0; n < STOPS; n++)
		look_at_steps(&expected[n % nr_expected], nr_steps(is_stubs, options));
	print_message("# %s%s %u.%u.%u %s: %u exact, %u marked, %u wrong; %u reads\n", root, java, image.version[0], image.version[1],
		      image.version[2], options[0] ? options[0] : "default", counts[EXACT], counts[MARKED], counts[WRONG], nr_reads);
	host_tables_free(&tables);
	stop_child();
	assert_int_equal(counts[WRONG], 0);
	/* 0.6 to 1.2 % are in the instructions of [interpreter]: of 100 stops more than 6 once in thousands of runs. A stop in code that is
	 * marked has a hundred steps there. */
	assert_true(counts[MARKED] <= 4 + counts[EXACT] / 50 || (is_marked_later && counts[EXACT]));
}

/* Compiles the program; `root`: as the program sees the folder, after chroot. False: there is no compiler. */
static bool make_program(const char *root)
{
	const char *sources = getenv("SONDE_TEST_PROGRAMS");
	char command[2048];

	snprintf(folder, sizeof(folder), "%s/tmp/java-walk-XXXXXX", root);
	assert_non_null(mkdtemp(folder));
	snprintf(command, sizeof(command),
		 "javac -nowarn -Xlint:-options --release 8 -d %s %s/JavaSpin.java 2>%s/errors && "
		 "cc -shared -fPIC -O2 -o %s/library.so %s/java_callback.c",
		 folder, sources, folder, folder, sources);
	if (system(command) != 0)
		return false;
	memmove(folder, folder + strlen(root), strlen(folder + strlen(root)) + 1);
	return true;
}

static uint32_t nr_javas;

#define FIRST_WITH_VIRTUAL_THREADS 21

/* Most of the frames of `resumed` are on the heap: with each way to store references there, and each way to store frames. */
static void test_virtual(const char *root, const char *java)
{
	static const char *const modes[][5] = {
		{ NULL },
		{ "-Xint", NULL },
		{ "-Xcomp", "-XX:CompileCommand=quiet", "-XX:CompileCommand=compileonly,JavaSpin::descend", NULL },
		{ "-XX:-UseCompressedOops", NULL },
		{ "-XX:+UseZGC", NULL },
		{ "-XX:+UseZGC", "-XX:+IgnoreUnrecognizedVMOptions", "-XX:+ZGenerational", NULL },
		{ "-XX:+UseSerialGC", "-XX:+PreserveFramePointer", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		test_program(root, java, modes[i], virtuals);
}

static void test_java(const char *root, const char *java)
{
	static const char *const modes[][4] = {
		{ NULL },
		{ "-Xint", NULL },
		{ "-XX:TieredStopAtLevel=1", NULL },
		{ "-XX:-TieredCompilation", "-XX:+PreserveFramePointer", NULL },
	};

	if (!make_program(root)) {
		print_message("# SKIPPED: no javac\n");
		skip();
	}
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		test_program(root, java, modes[i], one);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		test_program(root, java, modes[i], few);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i += 2) /* the compilers' */
		test_program(root, java, modes[i], stubs);
	if (image.version[0] >= FIRST_WITH_VIRTUAL_THREADS)
		test_virtual(root, java);
	remove_java_folder(root, folder);
	nr_javas++;
}

static void test_installed(void **state)
{
	if (access("/usr/bin/java", X_OK)) {
		print_message("# SKIPPED: no java\n");
		skip();
	}
	test_java("", "/usr/bin/java");
}

/* Those in SONDE_TEST_JAVAS: ROOT:PROGRAM, separated by spaces. */
static void test_others(void **state)
{
	const char *more = getenv("SONDE_TEST_JAVAS");
	char root[256], path[512];

	while (more && sscanf(more, " %255[^:]:%511s", root, path) == 2) {
		test_java(root, path);
		more = strchr(more + strspn(more, " "), ' ');
	}
}

static void test_lines(void **state)
{
	/* bci 0 line 10; bci 5 line 12; bci 300 line 9 (escaped: 295 and -3, as numbers with signs) */
	static const uint8_t table[] = { 0xff, 0, 20, 5 << 3 | 2, 0xff, 0xce, 6, 5, 0 };
	uint32_t line, start;

	assert_true(java_line_of(table, sizeof(table), false, 0, &line, &start));
	assert_int_equal(line, 10);
	assert_true(java_line_of(table, sizeof(table), false, 6, &line, &start));
	assert_int_equal(line, 12);
	assert_int_equal(start, 10);
	for (size_t size = 0; size < sizeof(table); size++)
		assert_false(java_line_of(table, size, false, 6, &line, &start));
}

/* --- a class's fields ----------------------------------------------------------------------------------------------------------------- */

#define AT 0x10000 /* address of fake_memory */

static uint8_t fake_memory[4096];

static int read_fake(void *arg, uint64_t from, void *to, size_t size)
{
	if (from < AT || from - AT > sizeof(fake_memory) || size > sizeof(fake_memory) - (from - AT))
		return -EFAULT;
	memcpy(to, fake_memory + (from - AT), size);
	return 0;
}

static uint64_t put_symbol(size_t at, const char *text)
{
	fake_memory[at] = (uint8_t)strlen(text);
	memcpy(fake_memory + at + 2, text, strlen(text));
	return AT + at;
}

static void put_word(size_t at, uint64_t word)
{
	memcpy(fake_memory + at, &word, sizeof(word));
}

static void test_fields(void **state)
{
	/* As a byte, a number is one more than it is. A static field; one with three numbers behind its flags; one that the VM adds. */
	static const uint8_t stream[] = { 1 + 2, 1 + 1, 1 + 3, 1, 1 + 40, 1 + 8,  1, 1 + 3, 1,	  1 + 24,
					  1,	 1 + 21, 9,	9, 9,	   1 + 2, 1, 1 + 28, 1, 1 + 2 };
	const struct java_class_layout layout = {
		.classes = AT + 1024, .symbols = AT + 128, .size = 8, .constants = 16, .fields = 24, .pool_bytes = 8, .symbol_body = 2
	};
	const struct runtime_memory fake = { .read = read_fake };
	uint64_t class = AT + 64, found;
	uint32_t bytes;
	uint16_t off;

	memset(fake_memory, 0, sizeof(fake_memory));
	put_word(1024 + 8, class); /* the second of the VM's classes */
	put_word(64, put_symbol(300, "a/Class"));
	put_word(72, 49);
	put_word(80, AT + 200);
	put_word(88, AT + 400);
	put_word(128 + 2 * 8, put_symbol(320, "added"));
	put_word(200 + 8 + 3 * 8, put_symbol(340, "field"));
	put_word(400, sizeof(stream));
	memcpy(fake_memory + 404, stream, sizeof(stream));
	assert_int_equal(java_class_find(&layout, &fake, "a/Class", &found), 0);
	assert_int_equal(found, class);
	assert_int_equal(java_class_find(&layout, &fake, "a/Clas", &found), -ENOENT);
	assert_int_equal(java_class_bytes(&layout, &fake, class, &bytes), 0);
	assert_int_equal(bytes, 48);
	assert_int_equal(java_class_field(&layout, &fake, class, "field", &off), 0);
	assert_int_equal(off, 24);
	assert_int_equal(java_class_field(&layout, &fake, class, "added", &off), 0);
	assert_int_equal(off, 28);
	assert_int_equal(java_class_field(&layout, &fake, class, "other", &off), -ENOENT);
	for (uint32_t size = 0; size < sizeof(stream); size++) {
		put_word(400, size);
		memcpy(fake_memory + 404, stream, sizeof(stream));
		assert_int_equal(java_class_field(&layout, &fake, class, "other", &off), -EBADMSG);
	}
	put_word(400, UINT32_MAX);
	assert_int_equal(java_class_field(&layout, &fake, class, "field", &off), -EBADMSG);
}

/* Argument: which tests to run, as "*others". */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines), cmocka_unit_test(test_fields), cmocka_unit_test(test_installed), cmocka_unit_test(test_others)
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
