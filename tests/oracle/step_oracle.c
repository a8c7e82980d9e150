// SPDX-License-Identifier: Apache-2.0
/* step_oracle [--marked] [--except FILE] [--allow PER_THOUSAND] [--marks PER_THOUSAND] [--max STEPS] PROGRAM [ARGUMENT...]: runs a
 * program instruction by instruction, keeps its true chain of callers (shadow.h), and compares the unwinder's answer with it at each one.
 * Begins at the first instruction of the dynamic linker. With --marked it runs between two int3 of the program: the chain at the first is
 * the unwinder's, and only what happens on top of it is compared with the truth.
 *
 *   exact    every frame, and COMPLETE
 *   marked   the true leaf end, and a mark where it stops
 *   wrong    anything else. The first few are printed, with both chains. Wrong answers in FILE are counted separately, and may be 2 % of
 *            the instructions: while libgcc lands behind a catch, it has put the target's rbp where its own frame had saved its caller's
 *
 * --allow: in code that has neither tables nor frame pointers the walk guesses at the leaf, see docs/internals/unwinding.md.
 * --marks: at most so many marks.
 * Exit status: 1 when any answer was wrong, or more than allowed; 2 when the program could not be stepped through. */
#include <dirent.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/record.h"
#include "remote.h"
#include "shadow.h"

#define MAX_TOLD 8

struct oracle {
	pid_t child;
	struct user_regs_struct before, after;
	uint8_t code[16]; /* the bytes at before.rip */
	struct shadow shadow;
	uint64_t max_steps;
	uint64_t nr_steps, nr_exact, nr_marked, nr_wrong;
	uint64_t nr_stops[SONDE_STOP_COUNT];
	uint64_t nr_excepted;
	const char *except; /* a file whose wrong answers are counted separately */
	uint64_t per_thousand; /* allowed wrong answers */
	uint64_t max_marks;    /* likewise, allowed marks */
	bool is_marked;     /* begins and ends at int3 */
};

static uint64_t truth_at(const struct oracle *o, uint32_t frame)
{
	return frame ? o->shadow.entries[o->shadow.nr - frame].pc : o->after.rip;
}

static void tell_chain(const char *name, const struct oracle *o, const struct remote_stack *stack)
{
	uint32_t nr = stack ? stack->nr : o->shadow.nr + 1;
	char place[128];

	for (uint32_t i = 0; i < nr && i < 12; i++) {
		uint64_t frame = stack ? stack->frames[sonde_frame_slot(i)] : truth_at(o, i);

		remote_place(frame & ~SONDE_FRAME_RETURN, place, sizeof(place));
		printf("    %s %2" PRIu32 " %s%s\n", name, i, place, frame & SONDE_FRAME_RETURN ? "" : " (exact)");
	}
	printf("    %s: %" PRIu32 " frames%s", name, nr, stack ? "" : "\n");
	if (stack)
		printf(", stop %d\n", stack->stop);
}

static void tell(const struct oracle *o, const char *what, const struct remote_stack *stack)
{
	uint8_t code[12] = { 0 };
	char place[128];

	remote_place(o->after.rip, place, sizeof(place));
	(void)!remote_read(code, sizeof(code), o->after.rip);
	printf("  %s at step %" PRIu64 ", %s, rsp %#llx rbp %#llx, code", what, o->nr_steps, place, o->after.rsp, o->after.rbp);
	for (size_t i = 0; i < sizeof(code); i++)
		printf(" %02x", code[i]);
	printf("\n");
	tell_chain("true", o, NULL);
	tell_chain("ours", o, stack);
}

static bool is_excepted(const struct oracle *o)
{
	char place[128];

	remote_place(o->after.rip, place, sizeof(place));
	return o->except && !strncmp(place, o->except, strlen(o->except));
}

static void compare(struct oracle *o)
{
	struct remote_stack stack = remote_walk(&o->after);
	uint32_t nr = o->shadow.nr + 1, same = 0;

	o->nr_steps++;
	o->nr_stops[stack.stop]++;
	while (same < nr && same < stack.nr && stack.frames[sonde_frame_slot(same)] == truth_at(o, same))
		same++;
	if (same == nr && stack.nr == nr && stack.stop == SONDE_STOP_COMPLETE) {
		o->nr_exact++;
	} else if (same == stack.nr && stack.stop != SONDE_STOP_COMPLETE) {
		o->nr_marked++;
	} else if (is_excepted(o)) {
		o->nr_excepted++;
	} else if (o->nr_wrong++ < MAX_TOLD) {
		tell(o, "WRONG", &stack);
	}
}

/* 1: stopped; 0: it ended; -1: error. */
static int resume(struct oracle *o, int how, int number, int *ret_signal)
{
	int status;

	if (ptrace(how, o->child, 0, (long)number) || waitpid(o->child, &status, 0) != o->child)
		return -1;
	if (!WIFSTOPPED(status)) {
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			printf("the program ended with status %#x\n", status);
		return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -1;
	}
	*ret_signal = WSTOPSIG(status);
	return ptrace(PTRACE_GETREGS, o->child, 0, &o->after) ? -1 : 1;
}

static bool changes_mappings(const struct oracle *o)
{
	return shadow_is_syscall(o->code) &&
	       (o->before.rax == SYS_mmap || o->before.rax == SYS_mprotect || o->before.rax == SYS_munmap || o->before.rax == SYS_mremap);
}

static void take_step(struct oracle *o, bool is_handler)
{
	uint64_t top = 0;

	(void)!remote_read(&top, sizeof(top), o->after.rsp);
	if (is_handler)
		shadow_signal(&o->shadow, &o->before, &o->after, top);
	else
		shadow_step(&o->shadow, &o->before, &o->after, o->code, top);
	if (changes_mappings(o))
		remote_refresh();
	compare(o);
}

/* Whether `number` reports a single step. A signal to the program is delivered with the next step. */
static bool is_step(const struct oracle *o, int number)
{
	siginfo_t info;

	if (number != SIGTRAP || ptrace(PTRACE_GETSIGINFO, o->child, 0, &info))
		return false;
	/* after an instruction, after a system call, at the start of a handler; an int3 of the program is SI_KERNEL */
	return info.si_code == TRAP_TRACE || info.si_code == TRAP_BRKPT || info.si_code == SIGTRAP;
}

static int step_through(struct oracle *o)
{
	int signal_number = 0, got, more;

	while (o->nr_steps < o->max_steps) {
		o->before = o->after;
		memset(o->code, 0, sizeof(o->code));
		if (remote_read(o->code, sizeof(o->code), o->before.rip))
			(void)!remote_read(o->code, 2, o->before.rip);
		if (o->is_marked && o->code[0] == 0xcc)
			return 0;
		more = resume(o, PTRACE_SINGLESTEP, signal_number, &got);
		if (more <= 0)
			return more;
		if (signal_number && is_step(o, got)) { /* the handler's first instruction has not run yet */
			signal_number = 0;
			take_step(o, true);
		} else if (is_step(o, got)) {
			take_step(o, false);
		} else {
			signal_number = got; /* stopped before the handler: at most a system call can have run */
			if (o->after.rip != o->before.rip)
				shadow_step(&o->shadow, &o->before, &o->after, o->code, 0);
		}
	}
	return 0;
}

/* Stops the other threads: a Go program's monitor would preempt the stepped thread, because it is so slow. */
static void stop_others(const struct oracle *o)
{
	char name[32];
	struct dirent *entry;
	DIR *tasks;

	snprintf(name, sizeof(name), "/proc/%d/task", (int)o->child);
	tasks = opendir(name);
	while (tasks && (entry = readdir(tasks))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid <= 0 || tid == o->child || ptrace(PTRACE_SEIZE, tid, 0, 0) || ptrace(PTRACE_INTERRUPT, tid, 0, 0))
			continue;
		waitpid(tid, NULL, __WALL);
	}
	if (tasks)
		closedir(tasks);
}

/* Runs to the marker and takes the chain above it from the unwinder. */
static int run_to_marker(struct oracle *o)
{
	struct remote_stack stack;
	int got = 0, more = resume(o, PTRACE_CONT, 0, &got);

	while (more > 0 && got != SIGTRAP)
		more = resume(o, PTRACE_CONT, got, &got);
	if (more <= 0 || !remote_refresh())
		return -1;
	stop_others(o);
	stack = remote_walk(&o->after);
	if (stack.stop != SONDE_STOP_COMPLETE || stack.nr > 100) {
		tell(o, "the marker's chain is not complete", &stack);
		return -1;
	}
	for (uint32_t i = stack.nr; i-- > 1;)
		o->shadow.entries[o->shadow.nr++] = (struct shadow_entry){ .pc = stack.frames[sonde_frame_slot(i)], .at = SHADOW_NOWHERE };
	return 0;
}

/* Twice as fast: no step waits for another processor to wake up. */
static void stay_on_one_cpu(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

static int start(struct oracle *o, char **argv)
{
	int status;

	stay_on_one_cpu();
	o->child = fork();
	if (o->child < 0)
		return -1;
	if (!o->child) {
		personality(ADDR_NO_RANDOMIZE);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execv(argv[0], argv);
		_exit(127);
	}
	if (waitpid(o->child, &status, 0) != o->child || !WIFSTOPPED(status) || ptrace(PTRACE_SETOPTIONS, o->child, 0, PTRACE_O_EXITKILL) ||
	    ptrace(PTRACE_GETREGS, o->child, 0, &o->after))
		return -1;
	remote_begin(o->child);
	if (!remote_refresh())
		return -1;
	return o->is_marked ? run_to_marker(o) : 0;
}

static void report(const struct oracle *o, const char *name)
{
	printf("%s: %" PRIu64 " instructions, %" PRIu64 " exact (%.3f %%), %" PRIu64 " marked, %" PRIu64 " wrong", name, o->nr_steps,
	       o->nr_exact, o->nr_steps ? 100.0 * (double)o->nr_exact / (double)o->nr_steps : 0.0, o->nr_marked, o->nr_wrong);
	for (int i = 0; i < SONDE_STOP_COUNT; i++) {
		if (o->nr_stops[i] && i != SONDE_STOP_COMPLETE)
			printf(", stop %d: %" PRIu64, i, o->nr_stops[i]);
	}
	if (o->except)
		printf(", %" PRIu64 " excepted in %s", o->nr_excepted, o->except);
	printf("\n");
}

int main(int argc, char **argv)
{
	static struct oracle o = { .max_steps = 1000000, .max_marks = 1000 };
	int at = 1, err;

	for (; at < argc && argv[at][0] == '-'; at++) {
		if (!strcmp(argv[at], "--marked"))
			o.is_marked = true;
		else if (!strcmp(argv[at], "--allow") && at + 1 < argc)
			o.per_thousand = strtoull(argv[++at], NULL, 10);
		else if (!strcmp(argv[at], "--marks") && at + 1 < argc)
			o.max_marks = strtoull(argv[++at], NULL, 10);
		else if (!strcmp(argv[at], "--except") && at + 1 < argc)
			o.except = argv[++at];
		else if (!strcmp(argv[at], "--max") && at + 1 < argc)
			o.max_steps = strtoull(argv[++at], NULL, 10);
	}
	if (at >= argc) {
		fprintf(stderr,
			"usage: step_oracle [--marked] [--except FILE] [--allow PER_THOUSAND] [--marks PER_THOUSAND] [--max STEPS] PROGRAM "
			"[ARGUMENT...]\n");
		return 2;
	}
	err = start(&o, argv + at);
	if (!err)
		err = step_through(&o);
	if (o.child > 0) {
		kill(o.child, SIGKILL);
		while (waitpid(-1, NULL, __WALL) > 0)
			; /* with its other threads */
	}
	report(&o, argv[at]);
	return err || !o.nr_steps ? 2
				  : o.nr_wrong * 1000 > o.per_thousand * o.nr_steps || o.nr_marked * 1000 > o.max_marks * o.nr_steps ||
					    o.nr_excepted > o.nr_steps / 50;
}
