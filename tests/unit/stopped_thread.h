/* SPDX-License-Identifier: Apache-2.0 */
/* stopped_thread: stops a thread at a random moment and goes on one instruction at a time, for tests of walks. */
#pragma once
#include <errno.h>
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

#define STOPPED_TRAP_FLAG 0x100

/* pushf and popf, which a stepped thread must not execute itself. pushf would save the trap flag that makes it step, for a popf to come. A
 * popf has the kernel no longer know whose the flag is (arch/x86/kernel/step.c: enable_single_step), so that after some steps more and
 * PTRACE_DETACH the thread still has it, and SIGTRAP ends its process. False: the thread is at another instruction. */
static inline bool step_flags(pid_t tid)
{
	struct user_regs_struct regs;
	long code, word;

	assert_int_equal(ptrace(PTRACE_GETREGS, tid, NULL, &regs), 0);
	errno = 0;
	code = ptrace(PTRACE_PEEKTEXT, tid, (void *)regs.rip, NULL) & 0xff;
	if (errno || (code != 0x9c && code != 0x9d))
		return false;
	if (code == 0x9c) {
		regs.rsp -= 8;
		word = (long)(regs.eflags & ~(unsigned long)STOPPED_TRAP_FLAG);
		assert_int_equal(ptrace(PTRACE_POKEDATA, tid, (void *)regs.rsp, (void *)word), 0);
	} else {
		word = ptrace(PTRACE_PEEKDATA, tid, (void *)regs.rsp, NULL);
		assert_int_equal(errno, 0);
		regs.eflags = (unsigned long)word & ~(unsigned long)STOPPED_TRAP_FLAG;
		regs.rsp += 8;
	}
	regs.rip++;
	assert_int_equal(ptrace(PTRACE_SETREGS, tid, NULL, &regs), 0);
	return true;
}

/* Executes one instruction, with the signal or 0. As `stop_thread`. */
static inline int step_thread(pid_t tid, int signal)
{
	if (!signal && step_flags(tid))
		return 0;
	assert_int_equal(ptrace(PTRACE_SINGLESTEP, tid, NULL, (void *)(uintptr_t)signal), 0);
	return wait_stopped(tid);
}

static inline void release_thread(pid_t tid, int signal)
{
	assert_int_equal(ptrace(PTRACE_DETACH, tid, NULL, (void *)(uintptr_t)signal), 0);
}
