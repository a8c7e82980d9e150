// SPDX-License-Identifier: Apache-2.0
/* PHP's stacks as the kernel side walks them (bpf/runtimes/php.h) and user space resolves them. A php is stopped again and again in a
 * known stack, and compared with what it printed of itself. Arguments: the script, then for each PHP its program, followed by "@ROOT" if
 * it lives in a root directory of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "walk_host.h"

struct runtime_walk;
static struct runtime_walk *runtime_walk_of(struct walk *walk);
#include "runtimes/php.h"

#include "elf/dynamic_symbol.h"
#include "runtime/php/php_private.h"

#define MAX_TEXT 65536
#define MAX_STEPS 4096
#define MAX_MAPPINGS 64
#define NR_STOPS 15
#define NR_SINGLE_STEPS 10000
#define MAX_TRIES 10000 /* of 1.5 ms: on a busy machine it gets little time between two stops */

static const char *script, *program, *root;
static struct walk w;
static struct runtime_walk r;
static struct runtime_image image;
static struct sonde_php php;
static pid_t child;
static uint32_t nr_reads, faulty_read;
static bool has_jit, is_in_file; /* of the pc */

static struct runtime_walk *runtime_walk_of(struct walk *walk)
{
	return &r;
}

static int read_child(void *arg, uint64_t from, void *to, size_t size)
{
	struct iovec local = { .iov_base = to, .iov_len = size }, remote = { .iov_base = (void *)(uintptr_t)from, .iov_len = size };
	ssize_t nr = process_vm_readv(child, &local, 1, &remote, 1, 0);

	if (nr < 0)
		return -errno;
	return (size_t)nr == size ? 0 : -EFAULT;
}

static const struct runtime_memory memory = { .read = read_child };

static long read_host(void *to, __u32 size, __u64 from)
{
	return ++nr_reads == faulty_read ? -1 : read_child(NULL, from, to, size);
}

/* Reads the script's output up to "ready". */
static void read_text(int fd, char text[MAX_TEXT])
{
	size_t used = 0;

	for (;;) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		ssize_t nr;

		if (poll(&ready, 1, 20000) != 1)
			fail_msg("%s says no more than: %.*s", program, (int)used, text);
		nr = read(fd, text + used, MAX_TEXT - 1 - used);
		if (nr <= 0)
			fail_msg("%s ended: %.*s", program, (int)used, text);
		used += (size_t)nr;
		text[used] = '\0';
		if (strstr(text, "ready\n"))
			return;
	}
}

static void run_php(const char *name, const char *const *options, int fd)
{
	const char *args[16] = { program };
	size_t nr = 1;

	while (*options)
		args[nr++] = *options++;
	args[nr++] = script;
	args[nr++] = name;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(fd, STDOUT_FILENO);
	if (root && (chroot(root) || chdir("/")))
		_exit(126);
	execvp(program, (char *const *)args);
	_exit(127);
}

/* The first mapping of the program: the compiler's memory may lie below it. */
static uint64_t load_bias(const struct elf_file *elf)
{
	char path[64], exe[512] = "", line[1024];
	unsigned long long start = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/exe", child);
	assert_true(readlink(path, exe, sizeof(exe) - 1) > 0);
	snprintf(path, sizeof(path), "/proc/%d/maps", child);
	maps = fopen(path, "re");
	assert_non_null(maps);
	while (!start && fgets(line, sizeof(line), maps)) {
		if (strstr(line, exe))
			assert_int_equal(sscanf(line, "%llx", &start), 1);
	}
	fclose(maps);
	assert_true(start);
	return elf_file_type(elf) == ET_EXEC ? 0 : start - (elf_file_segment(elf, 0)->vaddr & ~4095ULL);
}

/* Registers the files that code runs from, as if all had tables, and finds the one that the child is in. */
static void tell_mappings(void)
{
	struct sonde_mapping mappings[MAX_MAPPINGS] = { 0 };
	char path[64], line[1024], rights[8], file[512];
	uint32_t nr = 0;
	FILE *maps;

	is_in_file = false;
	host_reset();
	snprintf(path, sizeof(path), "/proc/%d/maps", child);
	maps = fopen(path, "re");
	assert_non_null(maps);
	while (nr < MAX_MAPPINGS && fgets(line, sizeof(line), maps)) {
		unsigned long long start, end;

		if (sscanf(line, "%llx-%llx %7s %*s %*s %*s %511s", &start, &end, rights, file) != 4 || rights[2] != 'x')
			continue;
		if (!strcmp(file, "/dev/zero")) {
			assert_true(runtime_php.owns_code(&image, &memory, start, end, &php));
			assert_false(runtime_php.owns_code(&image, &memory, start, end - 4096, &php));
			continue;
		}
		assert_false(runtime_php.owns_code(&image, &memory, start, end, &php));
		is_in_file |= w.pc - start < end - start;
		mappings[nr++] = (struct sonde_mapping){ .start_pc = start, .end_pc = end, .nr_blocks = 1 };
	}
	fclose(maps);
	host_process(&w, mappings, nr);
}

/* Waits for the child to stop and reads its registers. */
static void take_registers(void)
{
	struct user_regs_struct regs;
	int status;

	assert_int_equal(waitpid(child, &status, __WALL), child);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(ptrace(PTRACE_GETREGS, child, NULL, &regs), 0);
	memset(&w, 0, offsetof(struct walk, block));
	w.pc = regs.rip;
	w.sp = regs.rsp;
	w.regs[14] = regs.r14;
	w.regs[15] = regs.r15;
	walk_begin(&w);
}

/* Stops the child wherever it is. */
static void stop(void)
{
	struct timespec a_little = { .tv_nsec = 1500000 };

	nanosleep(&a_little, NULL);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, child, NULL, NULL), 0);
	take_registers();
	tell_mappings();
}

static void step_child(void)
{
	assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
	take_registers();
}

static void walk_php(void)
{
	memset(&r, 0, sizeof(r));
	r.runtime = SONDE_RUNTIME_PHP;
	r.pairing = RUNTIME_PAIR_BETWEEN;
	r.leaf_pc = w.pc;
	if (php_enter(&w, &r, &php) != RUNTIME_GOES_ON)
		return;
	for (int i = 0; i < MAX_STEPS && php_step(&w, &r, &php) == RUNTIME_GOES_ON; i++)
		;
}

/* Writes the frames in the script's format. */
static void write_frames(char text[MAX_TEXT])
{
	size_t used = 0;

	for (uint32_t i = 0; i < r.nr_frames; i++) {
		struct runtime_function function;

		if (r.frames[i].flags & SONDE_RUNTIME_ENTRY)
			continue;
		assert_int_equal(php_describe(&image, &php, &memory, &r.frames[i], &function), 0);
		used += (size_t)snprintf(text + used, MAX_TEXT - used, "%s\t%s\t%u\n", function.name, function.file, function.line);
		assert_true(used < MAX_TEXT);
		assert_true(!function.file[0] || function.start_line || !strcmp(function.name, "<main>"));
		assert_true(!function.line || function.start_line <= function.line);
	}
	used += (size_t)snprintf(text + used, MAX_TEXT - used, "entries %u\nready\n", r.nr_entries);
	assert_true(used < MAX_TEXT);
}

/* For the JIT's own code no line is known. */
static bool is_same(const char *have, const char *want)
{
	const char *line = strchr(strchr(want, '\t') + 1, '\t') + 1;
	size_t size = (size_t)(line - want);

	if (!strncmp(have, "hash\t", 5))
		have = strchr(have, '\n') + 1;
	if (has_jit && !is_in_file)
		return !strncmp(have, want, size) && !strncmp(have + size, "0\n", 2) && !strcmp(have + size + 1, strchr(line, '\n'));
	return !strcmp(have, want);
}

static struct elf_file *open_program(void)
{
	struct elf_file *elf = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", child);
	assert_int_equal(elf_file_open_fd(open(path, O_RDONLY | O_CLOEXEC), NULL, &elf), 0);
	return elf;
}

static void start_case(const char *name, const char *const *options, char text[MAX_TEXT])
{
	struct elf_file *elf;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		run_php(name, options, fds[1]);
	close(fds[1]);
	read_text(fds[0], text);
	close(fds[0]);
	elf = open_program();
	if (!image.is_supported)
		assert_int_equal(runtime_php.examine(elf, &image), 0);
	assert_string_equal(image.reason, "");
	assert_true(image.is_supported);
	assert_int_equal(runtime_php.place(&image, load_bias(elf), NULL, &memory, NULL, &php), 0);
	elf_file_free(elf);
	assert_int_equal(ptrace(PTRACE_SEIZE, child, NULL, NULL), 0);
}

static void end_child(void)
{
	int status = 0;

	kill(child, SIGKILL);
	while (waitpid(child, &status, __WALL) == child && !WIFSIGNALED(status))
		;
}

static void check_case(const char *name, const char *const *options)
{
	static char text[MAX_TEXT], have[MAX_TEXT];
	int nr_same = 0, nr_tries = 0;
	const char *want;

	start_case(name, options, text);
	want = strstr(text, "spin"); /* after any warnings of PHP */
	assert_non_null(want);
	for (int i = 0; i < NR_STOPS; i += nr_same > 0) { /* it may still be printing */
		stop();
		walk_php();
		assert_int_equal(r.record.stop, SONDE_RUNTIME_STOP_COMPLETE);
		write_frames(have);
		nr_same += is_same(have, want);
		if (nr_same ? nr_same <= i : ++nr_tries == MAX_TRIES)
			break;
		assert_int_equal(ptrace(PTRACE_CONT, child, NULL, NULL), 0);
	}
	end_child();
	if (nr_same != NR_STOPS)
		fail_msg("%s %s: %d of %d; the last:\n%s--- and not\n%s", program, name, nr_same, NR_STOPS, have, want);
}

static const char *const cases[] = {
	"plain", "c",	     "empty",	  "static",  "magic", "closure",   "arrow",    "anonymous", "usort",
	"map",	 "call",     "offset",	  "string",  "get",   "iterator",  "destruct", "autoload",  "generator",
	"next",	 "delegate", "delegates", "include", "eval",  "recursion", "mixed",    "shutdown",
};
static const char *const fiber_cases[] = { "fiber", "resumed", "fiber_generator" }; /* PHP 8.1 and newer */

static const char *const jit_cases[] = { "plain", "c", "usort", "closure", "delegates", "include", "eval", "recursion", "mixed" };
static const char *const no_options[] = { "-n", NULL };
static const char *const jit_options[] = {
	"-n",
	"-d",
	"zend_extension=opcache",
	"-d",
	"opcache.enable_cli=1",
	"-d",
	"opcache.jit=tracing",
	"-d",
	"opcache.jit_buffer_size=16M",
	NULL,
};

static void test_stacks(void **state)
{
	has_jit = false;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check_case(cases[i], no_options);
	for (size_t i = 0; i < sizeof(fiber_cases) / sizeof(fiber_cases[0]) && image.version[0] * 100 + image.version[1] >= 801; i++)
		check_case(fiber_cases[i], no_options);
}

static void test_stacks_of_the_jit(void **state)
{
	has_jit = true;
	for (size_t i = 0; i < sizeof(jit_cases) / sizeof(jit_cases[0]); i++)
		check_case(jit_cases[i], jit_options);
}

/* At each instruction of a program that resumes generators all the time: a generator is listed before its callers, or the stack is
 * marked. */
static void test_resumed_generators(void **state)
{
	static char text[MAX_TEXT], have[MAX_TEXT];
	uint32_t nr_generators = 0, nr_marked = 0;

	has_jit = false;
	start_case("resume", no_options, text);
	stop();
	for (int i = 0; i < NR_SINGLE_STEPS; i++) {
		walk_php();
		if (r.record.stop == SONDE_RUNTIME_STOP_COMPLETE && r.nr_frames > r.nr_entries) {
			write_frames(have);
			assert_non_null(strstr(have, "<main>"));
			nr_generators += strstr(have, "count_up") != NULL;
		}
		nr_marked += r.record.stop == SONDE_RUNTIME_STOP_TORN;
		step_child();
	}
	end_child();
	assert_in_range(nr_generators, NR_SINGLE_STEPS / 100, NR_SINGLE_STEPS);
	assert_in_range(nr_marked, 1, NR_SINGLE_STEPS / 10);
}

/* Each read in turn fails, as if its page were not present. */
static void test_faults(void **state)
{
	static struct sonde_runtime_frame all[SONDE_MAX_RUNTIME_FRAMES];
	static char text[MAX_TEXT];
	uint32_t nr_all, nr_marked = 0, nr_all_reads;

	start_case("delegates", no_options, text);
	stop();
	nr_reads = 0;
	walk_php();
	assert_int_equal(r.record.stop, SONDE_RUNTIME_STOP_COMPLETE);
	nr_all = r.nr_frames;
	memcpy(all, r.frames, sizeof(all));
	nr_all_reads = nr_reads;
	for (uint32_t i = 1; i <= nr_all_reads; i++) {
		faulty_read = nr_reads + i;
		walk_php();
		faulty_read = 0;
		for (uint32_t j = 0; j < r.nr_frames; j++) {
			assert_int_equal(r.frames[j].code, all[j].code);
			assert_int_equal(r.frames[j].cookie, all[j].cookie);
		}
		if (r.record.stop == SONDE_RUNTIME_STOP_COMPLETE) { /* only a line is missing */
			assert_int_equal(r.nr_frames, nr_all);
			continue;
		}
		nr_marked++;
		assert_true(r.nr_frames < nr_all && (r.record.stop == SONDE_RUNTIME_STOP_TORN ||
						     (r.record.stop == SONDE_RUNTIME_STOP_READ_FAULT && r.record.fault)));
	}
	assert_true(nr_marked > nr_all);
	end_child();
}

/* Memory holds other data than expected. */
static void test_damage(void **state)
{
	static char text[MAX_TEXT];
	struct runtime_function function;
	struct runtime_image other;
	struct sonde_runtime_frame frame;
	struct diag diag = { 0 };
	struct sonde_php damaged;

	start_case("usort", no_options, text);
	stop();
	walk_php();
	frame = r.frames[0];
	assert_true(runtime_image_is_sound(&image));
	other = image;
	/* as a compromised worker might send it: such an image is not used at all */
	RUNTIME_OWN(struct sonde_php, other.known)->op_array_filename = 0xfff0;
	assert_false(runtime_image_is_sound(&other));
	other = image;
	RUNTIME_OWN(struct sonde_php, other.known)->op_array_line_start = SONDE_PHP_OP_ARRAY_BYTES - 3;
	assert_false(runtime_image_is_sound(&other));
	other = image;
	other.known.process.root.kind = SONDE_TLS_KEY + 1;
	assert_false(runtime_image_is_sound(&other));
	other = image;
	other.nr_loops = SONDE_MAX_LOOPS + 1;
	assert_false(runtime_image_is_sound(&other));
	frame.cookie++;
	assert_int_equal(php_describe(&image, &php, &memory, &frame, &function), -ESTALE);
	frame.code = php.process.root.pc; /* a pointer with some low byte */
	assert_true(php_describe(&image, &php, &memory, &frame, &function) < 0);
	frame.code = 8;
	assert_int_equal(php_describe(&image, &php, &memory, &frame, &function), -EFAULT);
	other = image;
	other.known.process.root.pc = php.loops[0].start_pc; /* instructions */
	assert_int_equal(runtime_php.place(&other, 0, NULL, &memory, &diag, &damaged), -EOPNOTSUPP);
	assert_non_null(strstr(diag.text, "not laid out"));
	damaged = php;
	damaged.process.root.pc = php.loops[0].start_pc;
	assert_int_equal(php_enter(&w, &r, &damaged), RUNTIME_GOES_ON);
	assert_int_equal(php_step(&w, &r, &damaged), RUNTIME_ENDED);
	assert_true(r.record.stop == SONDE_RUNTIME_STOP_READ_FAULT || r.record.stop == SONDE_RUNTIME_STOP_TORN);
	end_child();
}

/* The layout of another version is refused, because of the program's own code. */
static void test_layouts(void **state)
{
	static char text[MAX_TEXT];
	struct php_layout layout = *php_layout_of(image.version[0], image.version[1]);
	struct dynamic_symbol globals;
	struct elf_file *elf;

	start_case("plain", no_options, text);
	elf = open_program();
	assert_int_equal(dynamic_symbol_find(elf, "executor_globals", &globals), 0);
	assert_int_equal(php_layout_check(&layout, elf, globals.elf_vaddr), 0);
	layout.current_execute_data += 24;
	assert_int_equal(php_layout_check(&layout, elf, globals.elf_vaddr), -EBADMSG);
	layout.current_execute_data -= 24;
	layout.op_array_filename += 8;
	assert_int_equal(php_layout_check(&layout, elf, globals.elf_vaddr), -EBADMSG);
	assert_null(php_layout_of(7, 3));
	assert_null(php_layout_of(8, 99));
	assert_int_equal(image.nr_loops, 2); /* in all of Debian's builds GCC splits off a part of execute_ex */
	assert_true(image.loops[1].end_pc < image.loops[0].start_pc && image.loops[1].end_pc - image.loops[1].start_pc > 1000);
	elf_file_free(elf);
	end_child();
}

/* Builds of PHP that sonde does not know. */
static void test_strange(void **state)
{
	static const struct {
		const char *name, *reason;
	} libraries[] = {
		{ "zts", "built for threads (ZTS)" },
		{ "new", "no layout of PHP 9.1 is known" },
		{ "other", "its data are not laid out as those of PHP 8.2" },
		{ "damaged", "its version is not known" },
		{ "silent", "its version is not known" },
	};

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		struct runtime_image strange = { .is_supported = 1 };
		struct elf_file *elf = NULL;
		char path[1024];

		snprintf(path, sizeof(path), "%s/libphp_strange_%s.so", getenv("PHP_STRANGE"), libraries[i].name);
		assert_int_equal(elf_file_open_fd(open(path, O_RDONLY | O_CLOEXEC), NULL, &elf), 0);
		assert_int_equal(runtime_php.examine(elf, &strange), 0);
		assert_string_equal(strange.reason, libraries[i].reason);
		assert_false(strange.is_supported);
		assert_int_equal(strange.runtime, SONDE_RUNTIME_PHP);
		elf_file_free(elf);
	}
}

static int run_tests_of(char *name)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks), cmocka_unit_test(test_stacks_of_the_jit), cmocka_unit_test(test_faults),
		cmocka_unit_test(test_damage), cmocka_unit_test(test_layouts), cmocka_unit_test(test_resumed_generators),
	};

	root = strchr(name, '@');
	if (root)
		*(char *)root++ = '\0';
	program = name;
	memset(&image, 0, sizeof(image));
	return cmocka_run_group_tests_name(program, tests, NULL, NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_strange) };
	int nr_failed = getenv("PHP_STRANGE") ? cmocka_run_group_tests_name("strange", tests, NULL, NULL) : 0;

	host_read = read_host;
	script = argc > 1 ? argv[1] : "";
	for (int i = 2; i < argc; i++)
		nr_failed += run_tests_of(argv[i]);
	return argc > 2 || nr_failed ? nr_failed : 77; /* skipped */
}
