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

#define MAX_STACK_BYTES ((uint64_t)8 << 20) /* which RLIMIT_DATA does not count */

static void filter_freep(scmp_filter_ctx *filter)
{
	if (*filter)
		seccomp_release(*filter);
}

/* Reading what is open at a place that the call tells, memory, and the end. No call that moves a file's offset: its description is shared
 * with whoever handed it on. */
static const int allowed[] = {
	SCMP_SYS(pread64), SCMP_SYS(close),	SCMP_SYS(fstat),   SCMP_SYS(newfstatat),      SCMP_SYS(munmap), SCMP_SYS(mremap),
	SCMP_SYS(brk),	   SCMP_SYS(getrandom), SCMP_SYS(sysinfo), SCMP_SYS(restart_syscall), SCMP_SYS(exit),	SCMP_SYS(exit_group),
};

/* What libraries try, and can do without. */
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

struct condition { /* which argument of an allowed call must be what; what is compared has 64 bits, so dirt above 32 is refused */
	int call;
	struct scmp_arg_cmp argument;
};

static const struct condition conditions[] = {
	/* Messages to the owner alone. */
	{ SCMP_SYS(recvmsg), SCMP_A0(SCMP_CMP_EQ, SPAWN_SOCKET) },
	{ SCMP_SYS(sendmsg), SCMP_A0(SCMP_CMP_EQ, SPAWN_SOCKET) },
	/* No locks, no flags of the description, no signals: whoever opens the same file would see them. */
	{ SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_GETFD) },
	{ SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_GETFL) },
	{ SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_DUPFD_CLOEXEC) },
	/* Only among its own threads: the others are counted by file and offset, for all who map it. */
	{ SCMP_SYS(futex), SCMP_A1(SCMP_CMP_MASKED_EQ, FUTEX_PRIVATE_FLAG, FUTEX_PRIVATE_FLAG) },
	/* What free() does; not KSM, which tells by its time what other processes hold. */
	{ SCMP_SYS(madvise), SCMP_A2(SCMP_CMP_EQ, MADV_DONTNEED) },
	{ SCMP_SYS(madvise), SCMP_A2(SCMP_CMP_EQ, MADV_NOHUGEPAGE) }, /* AddressSanitizer's */
	{ SCMP_SYS(madvise), SCMP_A2(SCMP_CMP_EQ, MADV_DONTDUMP) },
	/* No other process's. */
	{ SCMP_SYS(clock_gettime), SCMP_A0(SCMP_CMP_LE, CLOCK_TAI) },
	/* No code is made. */
	{ SCMP_SYS(mprotect), SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0) },
};

/* No code, and nothing that RLIMIT_DATA does not count. */
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
#ifndef __SANITIZE_ADDRESS__ /* whose shadow counts as memory */
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
