/* SPDX-License-Identifier: Apache-2.0 */
/* stopped_child: the process that a test of walks has started and stops; its memory, as the walk and the runtimes' readers take it. */
#pragma once
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "host_tables.h"
#include "runtime/runtime.h"

static pid_t child;
static uint32_t nr_reads;

static void stop_child(void)
{
	kill(child, SIGKILL);
	for (int status; waitpid(-1, &status, __WALL) > 0 || errno == EINTR;)
		;
}

static long read_child(void *to, __u32 size, __u64 from)
{
	nr_reads++;
	return host_read_process(child, to, size, from);
}

static int read_memory(void *arg, uint64_t from, void *to, size_t size)
{
	return read_child(to, (__u32)size, from) ? -EFAULT : 0;
}

static const struct runtime_memory memory = { .read = read_memory };
