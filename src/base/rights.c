// SPDX-License-Identifier: Apache-2.0
#include "base/rights.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* systemd's uid range for services with a temporary user (DynamicUser=): it has no accounts. */
#define FIRST_FREE_UID 61184
#define NR_FREE_UIDS   4336

int rights_limit(__rlimit_resource_t resource, rlim_t max)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		return -errno;
	limit.rlim_max = limit.rlim_max < max ? limit.rlim_max : max;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(resource, &limit) ? -errno : 0;
}

int rights_keep(uint64_t kept)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data))
		return -errno;
	/* else root's next execve(2), of a worker, would gain them again */
	for (uint32_t i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++) {
		if (!(kept & RIGHT(i)) && data[0].effective & RIGHT(CAP_SETPCAP) && prctl(PR_CAPBSET_DROP, i, 0, 0, 0))
			return -errno;
	}
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].permitted &= (uint32_t)(kept >> 32 * i);
		data[i].effective &= data[i].permitted;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &header, data) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
}

int rights_give_up(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };
	uid_t uid = FIRST_FREE_UID + (uid_t)getpid() % NR_FREE_UIDS;

	if (!geteuid() && (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
		return -errno;
	if (syscall(SYS_capset, &header, none))
		return -errno;
	/* a change of user clears the signal */
	return prctl(PR_SET_PDEATHSIG, SIGKILL) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
}
