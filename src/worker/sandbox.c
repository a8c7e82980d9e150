// SPDX-License-Identifier: Apache-2.0
#include "worker/sandbox.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_FREE_UID 61184 /* systemd's range for services that have a user only while they run (DynamicUser=): no account is in it */
#define NR_FREE_UIDS   4336

static void filter_freep(scmp_filter_ctx *filter)
{
	if (*filter)
		seccomp_release(*filter);
}

/* Reading what is open, memory, and the end. */
static const int allowed[] = {
	SCMP_SYS(read), SCMP_SYS(pread64), SCMP_SYS(readv), SCMP_SYS(lseek), SCMP_SYS(close), SCMP_SYS(fstat), SCMP_SYS(newfstatat), SCMP_SYS(fcntl),
	SCMP_SYS(recvmsg), SCMP_SYS(sendmsg), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(brk), SCMP_SYS(madvise), SCMP_SYS(futex),
	SCMP_SYS(clock_gettime), SCMP_SYS(getrandom), SCMP_SYS(sysinfo), SCMP_SYS(rt_sigreturn), SCMP_SYS(restart_syscall), SCMP_SYS(exit), SCMP_SYS(exit_group),
};

/* What libraries try, and can do without. */
static const int refused[] = {
	SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(stat), SCMP_SYS(lstat), SCMP_SYS(statx),
	SCMP_SYS(ioctl), SCMP_SYS(prlimit64), SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(sched_getaffinity),
};

static int add_rules(scmp_filter_ctx filter, bool ask)
{
	uint32_t open_action = ask ? SCMP_ACT_NOTIFY : SCMP_ACT_ERRNO(EPERM);
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_SIZE(allowed); i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	for (size_t i = 0; !err && i < ARRAY_SIZE(refused); i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOENT), refused[i], 0);
	if (!err) /* no code is made */
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
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

static int set_limit(__rlimit_resource_t resource, rlim_t max)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		return -errno;
	limit.rlim_max = limit.rlim_max < max ? limit.rlim_max : max;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(resource, &limit) ? -errno : 0;
}

static int set_limits(uint64_t max_bytes)
{
	int err = set_limit(RLIMIT_CORE, 0);

	if (!err)
		err = set_limit(RLIMIT_FSIZE, 0);
#ifndef __SANITIZE_ADDRESS__ /* whose shadow counts as memory */
	if (!err)
		err = set_limit(RLIMIT_DATA, max_bytes);
#endif
	return err;
}

/* Root becomes somebody. Others stay who they are, but what the program's file may give them (setcap(8)) goes. */
static int change_user(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };
	uid_t uid = FIRST_FREE_UID + (uid_t)getpid() % NR_FREE_UIDS;

	if (!geteuid() && (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
		return -errno;
	return syscall(SYS_capset, &header, none) ? -errno : 0;
}

int sandbox_enter(uint64_t max_bytes, int *ret_asked_fd)
{
	int err = set_limits(max_bytes);

	if (!err)
		err = change_user();
	if (!err && (prctl(PR_SET_PDEATHSIG, SIGKILL) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))) /* the signal is forgotten when the user changes */
		err = -errno;
	if (err)
		return err;
	return load_filter(true, ret_asked_fd) ? load_filter(false, ret_asked_fd) : 0;
}
