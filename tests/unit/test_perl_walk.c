// SPDX-License-Identifier: Apache-2.0
/* The walk of Perl's stack (bpf/runtimes/perl.h) and the names of its frames, on the host, over a stopped perl. Oracle: what the script
 * prints of its own stack with caller() (tests/programs/perl_stacks.pl). The native stack checks that each activation of runops is one
 * run. Arguments: the script, then the perl and the command that starts it. */
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
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "elf/dynamic_symbol.h"
#include "process/process_table.h"
#include "runtime/runtime.h"
#include "unwind/unwind_table.h"
#include "walk_host.h"

static struct runtime_walk runtime;

static struct runtime_walk *runtime_walk_of(WALK_REF ref)
{
	return &runtime;
}

#include "runtimes/perl.h"

#define MAX_OBJECTS 64
#define MAX_TEXT 65536
#define NR_BUSY_STOPS 60
#define MAX_WAITS 500

static char **perl_command; /* from the command line */
static const char *script;
static struct walk w;
static __u64 frames[SONDE_MAX_USER_FRAMES];
static pid_t perl_pid;
static int perl_output;

static int read_perl(void *arg, uint64_t from, void *to, size_t size)
{
	struct iovec local = { to, size }, remote = { (void *)from, size };

	return process_vm_readv(perl_pid, &local, 1, &remote, 1, 0) == (ssize_t)size ? 0 : -EFAULT;
}

static long read_for_walk(void *to, __u32 size, __u64 from)
{
	return read_perl(NULL, from, to, size);
}

static const struct runtime_memory memory = { .read = read_perl };

/* --- the perl ------------------------------------------------------------------------------------------------------------------------- */

/* Starts the script from standard input: it may run in another root. */
static void start_perl(const char *name)
{
	char *argv[16];
	int output[2], nr = 0;

	assert_int_equal(pipe2(output, O_CLOEXEC), 0);
	for (; perl_command[nr]; nr++)
		argv[nr] = perl_command[nr];
	argv[nr++] = (char *)"-";
	argv[nr++] = (char *)name;
	argv[nr] = NULL;
	perl_pid = fork();
	assert_true(perl_pid >= 0);
	if (!perl_pid) {
		int input = open(script, O_RDONLY);

		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || input < 0 || dup2(input, 0) < 0 || dup2(output[1], 1) < 0)
			_exit(126);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(output[1]);
	perl_output = output[0];
}

static void end_perl(void)
{
	kill(perl_pid, SIGKILL);
	waitpid(perl_pid, NULL, 0);
	close(perl_output);
}

/* Reads the script's output up to the line "." */
static void read_says(char *text)
{
	size_t used = 0;

	for (;;) {
		ssize_t nr = read(perl_output, text + used, MAX_TEXT - 1 - used);

		if (nr <= 0)
			fail_msg("perl ended after: %.*s", (int)used, text);
		used += (size_t)nr;
		text[used] = '\0';
		if (used >= 2 && !strcmp(text + used - 2, ".\n") && (used == 2 || text[used - 3] == '\n'))
			break;
	}
	text[used - 2] = '\0';
}

/* Returns the youngest thread. */
static pid_t last_thread(void)
{
	char path[64];
	struct dirent *entry;
	pid_t last = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", perl_pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid > last)
			last = tid;
	}
	closedir(dir);
	return last;
}

/* --- what is known of it -------------------------------------------------------------------------------------------------------------- */

static struct process_table *processes;
static struct rule_table *rules;
static struct runtime_image image;
static struct libc_facts libc;
static uint64_t image_bias;
static struct sonde_perl perl;

static void load_table(const struct elf_file *elf, const struct process_mapping *mapping, struct sonde_mapping *place)
{
	CLEANUP(unwind_table_freep) struct unwind_table *table = NULL;
	CLEANUP(freep) struct host_row *rows = NULL;

	if (unwind_table_build(elf, rules, NULL, &table))
		return;
	rows = calloc(table->nr_rows, sizeof(*rows));
	assert_non_null(rows);
	for (uint32_t block = 0; block < table->nr_blocks; block++) {
		for (uint32_t i = table->blocks[block]; i < table->blocks[block + 1]; i++)
			rows[i] = (struct host_row){ .rel = ((uint64_t)block << table->block_shift) + table->rows[i].low,
						     .rule = table->rows[i].rule };
	}
	host_table(rows, table->nr_rows - 1, rows[table->nr_rows - 1].rel, table->block_shift, place);
	place->base_pc = mapping->load_bias + table->base_vaddr;
}

static int take_mappings(void *arg, uint32_t tgid, uint32_t generation, const struct process_mapping *mappings, uint32_t nr)
{
	CLEANUP(freep) struct sonde_mapping *list = calloc(nr, sizeof(*list));

	assert_non_null(list);
	for (uint32_t i = 0; i < nr; i++) {
		const struct object *object =
		    mappings[i].object == OBJECT_NONE ? NULL : object_table_at(process_table_objects(processes), mappings[i].object);
		struct runtime_image found;
		struct libc_facts facts;

		list[i] = (struct sonde_mapping){ .start_pc = mappings[i].start_pc, .end_pc = mappings[i].end_pc };
		if (!object || !object->elf)
			continue;
		load_table(object->elf, &mappings[i], &list[i]);
		if (!libc_facts_read(object->elf, &facts))
			libc = facts;
		if (runtime_perl.examine(object->elf, &found))
			continue;
		assert_int_equal(image.runtime, SONDE_RUNTIME_NONE); /* there is only one perl */
		image = found;
		image_bias = mappings[i].load_bias;
	}
	host_process(&w, list, nr);
	return 0;
}

static void learn(void)
{
	const struct sonde_rule *all;
	struct diag diag = { 0 };
	uint32_t nr;

	host_reset();
	memset(&w, 0, sizeof(w));
	memset(&image, 0, sizeof(image));
	memset(&libc, 0, sizeof(libc));
	host_read = read_for_walk;
	rules = rule_table_new(16384);
	processes = process_table_new(NULL);
	assert_non_null(rules);
	assert_non_null(processes);
	assert_int_equal(process_table_scan(processes, (uint32_t)perl_pid, 1, NULL), 0);
	assert_int_equal(process_table_changes(processes, take_mappings, NULL), 0);
	all = rule_table_rules(rules, &nr);
	memcpy(host_rules, all, nr * sizeof(*all));
	nr_host_rules = nr;
	assert_int_equal(image.runtime, SONDE_RUNTIME_PERL);
	assert_string_equal(image.reason, "");
	assert_true(image.is_supported);
	if (runtime_perl.place(&image, image_bias, &libc, &memory, &diag, &perl))
		fail_msg("%s", diag.text);
}

static void forget(void)
{
	process_table_free(processes);
	rule_table_free(rules);
}

/* --- walks ---------------------------------------------------------------------------------------------------------------------------- */

static void begin_native(const struct user_regs_struct *regs)
{
	uint32_t process_pos = w.process_pos, nr_mappings = w.nr_mappings;

	memset(&w, 0, sizeof(w));
	w.process_pos = process_pos;
	w.nr_mappings = nr_mappings;
	w.pc = regs->rip;
	w.sp = regs->rsp;
	w.bp = regs->rbp;
	w.exact = WALK_EXACT;
	w.regs[0] = regs->rax, w.regs[1] = regs->rdx, w.regs[2] = regs->rcx, w.regs[3] = regs->rbx;
	w.regs[4] = regs->rsi, w.regs[5] = regs->rdi, w.regs[6] = regs->rbp, w.regs[7] = regs->rsp;
	w.regs[8] = regs->r8, w.regs[9] = regs->r9, w.regs[10] = regs->r10, w.regs[11] = regs->r11;
	w.regs[12] = regs->r12, w.regs[13] = regs->r13, w.regs[14] = regs->r14, w.regs[15] = regs->r15;
	host_tls_base = regs->fs_base;
}

/* Finds the native frames that are activations of the loop. */
static void find_loops(void)
{
	for (uint32_t i = 0; i < w.nr_frames && i < SONDE_MAX_USER_FRAMES; i++) {
		uint64_t pc = frames[i] & ~SONDE_FRAME_RETURN;

		for (int k = 0; k < SONDE_MAX_LOOPS; k++) {
			if (pc - (frames[i] & SONDE_FRAME_RETURN ? 1 : 0) - perl.loops[k].start_pc <
			    perl.loops[k].end_pc - perl.loops[k].start_pc)
				runtime.loops[runtime.nr_loops++] = (uint16_t)i;
		}
	}
}

/* Walks both stacks of a thread, which is stopped for it. */
static void walk_thread(pid_t tid)
{
	struct user_regs_struct regs;
	int status;

	assert_int_equal(ptrace(PTRACE_SEIZE, tid, NULL, NULL), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, tid, NULL, NULL), 0);
	assert_int_equal(waitpid(tid, &status, __WALL), tid);
	assert_int_equal(ptrace(PTRACE_GETREGS, tid, NULL, &regs), 0);
	begin_native(&regs);
	host_walk(&w, frames);
	memset(&runtime, 0, sizeof(runtime));
	runtime.runtime = SONDE_RUNTIME_PERL;
	find_loops();
	if (perl_enter(&w, &runtime, &perl) == RUNTIME_GOES_ON) {
		for (int i = 0; i < 4096 && perl_step(&w, &runtime, &perl) == RUNTIME_GOES_ON; i++)
			;
	}
}

static void go_on(pid_t tid)
{
	assert_int_equal(ptrace(PTRACE_DETACH, tid, NULL, NULL), 0);
}

/* Writes the frames in the script's format. */
static void describe_all(char *text)
{
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < runtime.nr_frames; i++) {
		struct runtime_function function;

		if (runtime.frames[i].flags & SONDE_RUNTIME_ENTRY)
			continue;
		assert_int_equal(runtime_perl.describe(&image, &perl, &memory, &runtime.frames[i], &function), 0);
		used += (size_t)snprintf(text + used, MAX_TEXT - used, "%s %s:%u\n", function.name, function.file, function.line);
		assert_true(used < MAX_TEXT);
		if (function.start_line)
			assert_true(function.start_line <= function.line || !strcmp(function.file, "(eval)"));
	}
}

static void check_case(const char *name)
{
	static char want[MAX_TEXT], got[MAX_TEXT];
	pid_t tid;

	start_perl(name);
	read_says(want);
	learn();
	tid = last_thread();
	for (int i = 0; i < MAX_WAITS; i++) { /* the output is done, the script is on its way into its loop */
		walk_thread(tid);
		describe_all(got);
		go_on(tid);
		if (!strncmp(want, got, strcspn(want, "\n") + 1))
			break;
		usleep(10000);
	}
	if (strcmp(want, got))
		fail_msg("%s: caller() says\n%sthe walk\n%s(stop %d)", name, want, got, runtime.record.stop);
	assert_int_equal(runtime.record.stop, SONDE_RUNTIME_STOP_COMPLETE);
	assert_int_equal(w.stop, SONDE_STOP_COMPLETE);
	if (runtime.nr_entries != runtime.nr_loops)
		fail_msg("%s: %u runs, %u activations of runops", name, runtime.nr_entries, runtime.nr_loops);
	forget();
	end_perl();
}

static void test_stacks_are_what_caller_says(void **state)
{
	static char names[MAX_TEXT];
	ssize_t nr;
	size_t used = 0;

	start_perl("all");
	while ((nr = read(perl_output, names + used, sizeof(names) - 1 - used)) > 0)
		used += (size_t)nr;
	end_perl();
	assert_true(used > 10);
	for (char *name = strtok(names, " \n"); name; name = strtok(NULL, " \n"))
		check_case(name);
}

/* A file name that was freed, and a glob whose memory holds another value, give no name. */
static void test_what_is_gone_has_no_name(void **state)
{
	static char says[MAX_TEXT];
	struct runtime_function function;
	struct sonde_runtime_frame frame;

	start_perl("nested");
	read_says(says);
	learn();
	walk_thread(perl_pid);
	assert_true(runtime.nr_frames > 2);
	frame = runtime.frames[1];
	assert_int_equal(runtime_perl.describe(&image, &perl, &memory, &frame, &function), 0);
	assert_string_equal(function.file, "-");
	frame.cookie ^= 1U << 24;
	assert_int_equal(runtime_perl.describe(&image, &perl, &memory, &frame, &function), 0);
	assert_string_equal(function.file, "");
	frame.code = w.sp & ~7ULL;
	assert_int_not_equal(runtime_perl.describe(&image, &perl, &memory, &frame, &function), 0);
	frame.code |= SONDE_PERL_CODE_CV;
	assert_int_not_equal(runtime_perl.describe(&image, &perl, &memory, &frame, &function), 0);
	frame.code = 4096;
	assert_int_equal(runtime_perl.describe(&image, &perl, &memory, &frame, &function), -EFAULT);
	go_on(perl_pid);
	forget();
	end_perl();
}

/* A stop at any moment may find a call that C has begun and runops has not, or the other way round. */
static void check_busy(const char *name)
{
	static char text[MAX_TEXT];
	uint32_t nr_equal = 0, nr_complete = 0;

	start_perl(name);
	read_says(text);
	usleep(50000);
	learn();
	for (int i = 0; i < NR_BUSY_STOPS; i++) {
		walk_thread(perl_pid);
		nr_complete += runtime.record.stop == SONDE_RUNTIME_STOP_COMPLETE;
		nr_equal += runtime.nr_entries == runtime.nr_loops;
		go_on(perl_pid);
		usleep(1000 + (useconds_t)(i * 37 % 100) * 10);
	}
	forget();
	end_perl();
	print_message("%s: of %d stops %u complete, %u with as many runs as activations\n", name, NR_BUSY_STOPS, nr_complete, nr_equal);
	assert_true(nr_complete >= NR_BUSY_STOPS * 90 / 100);
	assert_true(nr_equal >= NR_BUSY_STOPS * 80 / 100);
}

static void test_runs_are_paired_at_any_moment(void **state)
{
	check_busy("busy_sort");
	check_busy("busy_compare");
	check_busy("busy_first");
	check_busy("busy_calls");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks_are_what_caller_says),
		cmocka_unit_test(test_what_is_gone_has_no_name),
		cmocka_unit_test(test_runs_are_paired_at_any_moment),
	};

	if (argc < 3)
		return 77; /* skipped: no perl */
	script = argv[1];
	perl_command = argv + 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
