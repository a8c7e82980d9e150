// SPDX-License-Identifier: Apache-2.0
#include "worker/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <seccomp.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <time.h>

#include "base/rights.h"
#include "base/spawn.h"

#define MAX_STACK_BYTES ((uint64_t)8 << 20) /* RLIMIT_DATA does not count stacks */

static void filter_freep(scmp_filter_ctx *filter)
{
	if (*filter)
		seccomp_release(*filter);
}

/* Reading open files at a given offset, memory, and exit. No call that moves a file's offset: the open file description is shared with
 * whoever passed the descriptor. */
static const int allowed[] = {
	SCMP_SYS(pread64), SCMP_SYS(close),	SCMP_SYS(fstat),   SCMP_SYS(newfstatat),      SCMP_SYS(munmap), SCMP_SYS(mremap),
	SCMP_SYS(brk),	   SCMP_SYS(getrandom), SCMP_SYS(sysinfo), SCMP_SYS(restart_syscall), SCMP_SYS(exit),	SCMP_SYS(exit_group),
};

/* Calls that libraries try, and can do without. */
static const int refused[] = {
	SCMP_SYS(readlink),
	SCMP_SYS(readlinkat),
	SCMP_SYS(access),
	SCMP_SYS(faccessat),
	SCMP_SYS(faccessat2),
	SCMP_SYS(stat),
	SCMP_SYS(lstat),
	SCMP_SYS(statx),
	SCMP_SYS(ioctl),
	SCMP_SYS(prlimit64),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	SCMP_SYS(sched_getaffinity),
};

struct condition { /* a condition on one argument of an allowed call; compares 64 bits, so garbage above bit 31 is refused */
	int call;
	struct scmp_arg_cmp argument;
};

static const struct condition conditions[] = {
	/* Messages to the owner only. */
	{ SCMP_SYS(recvmsg), SCMP_A0(SCMP_CMP_EQ, SPAWN_SOCKET) },
	{ SCMP_SYS(sendmsg), SCMP_A0(SCMP_CMP_EQ, SPAWN_SOCKET) },
	/* No locks, no status flags, no signals: others that have the file open would notice them. */
	{ SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_GETFD) },
	{ SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_GETFL) },
	{ SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_DUPFD_CLOEXEC) },
	/* Only between its own threads: shared futexes are keyed by file and offset, for all who map the file. */
	{ SCMP_SYS(futex), SCMP_A1(SCMP_CMP_MASKED_EQ, FUTEX_PRIVATE_FLAG, FUTEX_PRIVATE_FLAG) },
	/* What free() does. Not KSM: its timing reveals what other processes' memory holds. */
	{ SCMP_SYS(madvise), SCMP_A2(SCMP_CMP_EQ, MADV_DONTNEED) },
	{ SCMP_SYS(madvise), SCMP_A2(SCMP_CMP_EQ, MADV_NOHUGEPAGE) }, /* for AddressSanitizer */
	{ SCMP_SYS(madvise), SCMP_A2(SCMP_CMP_EQ, MADV_DONTDUMP) },
	/* No clocks of other processes. */
	{ SCMP_SYS(clock_gettime), SCMP_A0(SCMP_CMP_LE, CLOCK_TAI) },
	/* No new code. */
	{ SCMP_SYS(mprotect), SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0) },
};

/* No new code, and no memory that RLIMIT_DATA does not count. */
static int add_mmap(scmp_filter_ctx filter)
{
	return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
				SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_TYPE | MAP_GROWSDOWN | MAP_HUGETLB, MAP_PRIVATE));
}

static int add_rules(scmp_filter_ctx filter, bool ask)
{
	uint32_t open_action = ask ? SCMP_ACT_NOTIFY : SCMP_ACT_ERRNO(EPERM);
	int err = add_mmap(filter);

	for (size_t i = 0; !err && i < ARRAY_SIZE(allowed); i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	for (size_t i = 0; !err && i < ARRAY_SIZE(conditions); i++)
		err = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, conditions[i].call, 1, &conditions[i].argument);
	for (size_t i = 0; !err && i < ARRAY_SIZE(refused); i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOENT), refused[i], 0);
	if (!err)
		err = seccomp_rule_add(filter, open_action, SCMP_SYS(openat), 0);
	return err ? err : seccomp_rule_add(filter, open_action, SCMP_SYS(open), 0);
}

static int load_filter(bool ask, int *ret_asked_fd)
{
	CLEANUP(filter_freep) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int err;

	if (!filter)
		return -ENOMEM;
	err = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a tree instead of a list */
	if (!err)
		err = add_rules(filter, ask);
	if (!err)
		err = seccomp_load(filter);
	if (!err)
		*ret_asked_fd = ask ? seccomp_notify_fd(filter) : -1;
	return err;
}

static int set_limits(uint64_t max_bytes)
{
	int err = rights_limit(RLIMIT_CORE, 0);

	if (!err)
		err = rights_limit(RLIMIT_FSIZE, 0);
	if (!err)
		err = rights_limit(RLIMIT_STACK, MAX_STACK_BYTES);
#ifndef __SANITIZE_ADDRESS__ /* its shadow memory counts */
	if (!err)
		err = rights_limit(RLIMIT_DATA, max_bytes);
#endif
	return err;
}

int sandbox_enter(uint64_t max_bytes, int *ret_asked_fd)
{
	int err = set_limits(max_bytes);

	if (!err)
		err = rights_give_up();
	if (err)
		return err;
	return load_filter(true, ret_asked_fd) ? load_filter(false, ret_asked_fd) : 0;
}
