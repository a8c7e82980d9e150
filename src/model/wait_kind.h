/* SPDX-License-Identifier: Apache-2.0 */
/* wait_kind: what a thread waits for, derived from its state, its system call and the functions of its kernel stack. The rules are in
 * wait_rules.c. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* X(id, name, text) */
#define WAIT_KIND_LIST(X) \
	X(OTHER, "other", "none of those below") \
	X(PREEMPTED, "preempted", "it could have gone on: another thread took the CPU") \
	X(YIELD, "yield", "it gave the CPU away by sched_yield") \
	X(FUTEX, "futex", "a lock, condition or join of the program's own") \
	X(SLEEP, "sleep", "a time") \
	X(DISK, "disk", "reading or writing a block device or a file system") \
	X(PAGE_FAULT, "page fault", "memory that was not there yet") \
	X(LOCK, "lock", "a lock of the kernel, or something that another thread in it has to finish") \
	X(PIPE, "pipe", "a pipe or FIFO") \
	X(SOCKET, "socket", "a socket") \
	X(EPOLL, "epoll", "epoll") \
	X(POLL, "poll", "poll or ppoll") \
	X(SELECT, "select", "select or pselect") \
	X(CHILDREN, "children", "a child to change its state") \
	X(VFORK, "vfork", "a child to start its program") \
	X(SIGNAL, "signal", "a signal") \
	X(TTY, "tty", "a terminal") \
	X(INOTIFY, "inotify", "inotify or fanotify") \
	X(IO_URING, "io_uring", "completions of io_uring") \
	X(AIO, "aio", "completions of io_submit") \
	X(EVENTFD, "eventfd", "an eventfd") \
	X(TIMERFD, "timerfd", "a timerfd") \
	X(FILE_LOCK, "file lock", "flock, fcntl or a lease") \
	X(SEMAPHORE, "semaphore", "System V semaphores") \
	X(MESSAGE_QUEUE, "message queue", "System V or POSIX message queues") \
	X(STOPPED, "stopped", "stopped by a signal or a debugger") \
	X(FROZEN, "frozen", "the freezer of its cgroup, or of the machine") \
	X(FUSE, "fuse", "a file system in user space") \
	X(NETWORK_FS, "network fs", "a file system of another machine") \
	X(MEMORY, "memory", "memory to become free") \
	X(RCU, "rcu", "all CPUs to pass a quiet state, or to be told something") \
	X(EXEC, "exec", "starting a program") \
	X(EXIT, "exit", "ending") \
	X(SECCOMP, "seccomp", "who supervises its system calls") \
	X(KVM, "kvm", "a virtual CPU with nothing to do") \
	X(DEVICE, "device", "a device") \
	X(KERNEL_THREAD, "kernel thread", "a thread of the kernel, for its work")

#define X(id, name, text) WAIT_KIND_##id,
enum wait_kind { WAIT_KIND_LIST(X) WAIT_KIND_COUNT };
#undef X

struct wait_facts {
	uint16_t state;   /* as in struct sonde_wait_key (abi/wait.h) */
	uint16_t syscall;
	/* Returns the i-th function of the kernel stack, leaf first; NULL ends. */
	const char *(*function_at)(const void *functions, uint32_t i);
	const void *functions;
};

enum wait_kind wait_kind_of(const struct wait_facts *facts);
const char *wait_kind_name(enum wait_kind kind); /* "page fault" */
/* The kind of this name ("page fault"), which has `size` bytes. WAIT_KIND_COUNT: there is none. */
enum wait_kind wait_kind_by_name(const char *name, size_t size);
