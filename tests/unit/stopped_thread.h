/* SPDX-License-Identifier: Apache-2.0 */
/* stopped_thread: stops a thread at a random moment and goes on one instruction at a time, for tests of walks. */
#pragma once
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "walk_host.h"

/* The registers of a stopped thread, as a walk begins with them. */
static inline void take_registers(struct walk *w, pid_t tid)
{
	struct user_regs_struct regs;

	assert_int_equal(ptrace(PTRACE_GETREGS, tid, NULL, &regs), 0);
	const uint64_t in_order[] = { regs.rax, regs.rdx, regs.rcx, regs.rbx, regs.rsi, regs.rdi, regs.rbp, regs.rsp,
				      regs.r8,	regs.r9,  regs.r10, regs.r11, regs.r12, regs.r13, regs.r14, regs.r15 };

	memcpy(w->regs, in_order, sizeof(in_order));
	w->pc = regs.rip;
	w->sp = regs.rsp;
	w->bp = regs.rbp;
	host_tls_base = regs.fs_base;
}

/* The signal that a stopped thread is about to get; 0: it has been stopped by us. */
static inline int signal_of(int status)
{
	if (!WIFSTOPPED(status))
		fail_msg("the thread has ended, status %#x", (unsigned int)status);
	return status >> 16 || WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
}

static inline int wait_stopped(pid_t tid)
{
	int status;

	assert_int_equal(waitpid(tid, &status, __WALL), tid);
	return signal_of(status);
}

/* Stops a thread that runs. Returns the signal that it was about to get, or 0. */
static inline int stop_thread(pid_t tid)
{
	assert_int_equal(ptrace(PTRACE_SEIZE, tid, NULL, NULL), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, tid, NULL, NULL), 0);
	return wait_stopped(tid);
}

/* Executes one instruction, with the signal or 0. As `stop_thread`. */
static inline int step_thread(pid_t tid, int signal)
{
	assert_int_equal(ptrace(PTRACE_SINGLESTEP, tid, NULL, (void *)(uintptr_t)signal), 0);
	return wait_stopped(tid);
}

static inline void release_thread(pid_t tid, int signal)
{
	assert_int_equal(ptrace(PTRACE_DETACH, tid, NULL, (void *)(uintptr_t)signal), 0);
}
