// SPDX-License-Identifier: Apache-2.0
#include "proxy/trusted.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/caller.h"
#include "base/cleanup.h"
#include "proxy/credentials.h"

#define SYS_PIDFD_OPEN 434 /* old headers lack it */

/* include/uapi/linux/pidfd.h, as of Linux 6.13 */
struct pidfd_info {
	uint64_t mask, cgroup_id;
	uint32_t pid, tgid, parent_tgid, uid, gid, effective_uid, effective_gid, saved_uid, saved_gid, file_uid, file_gid;
	int32_t exit_code;
};
#define PIDFD_GET_INFO _IOWR(0xff, 11, struct pidfd_info)
#define INFO_IDS       (1u << 1)

void trusted_init(struct trusted *trusted)
{
	for (uint32_t i = 0; i < TRUSTED_MAX; i++)
		trusted->processes[i].fd = -1;
}

void trusted_done(struct trusted *trusted)
{
	for (uint32_t i = 0; i < TRUSTED_MAX; i++)
		closep(&trusted->processes[i].fd);
}

/* Same rule as credentials_uid. */
static uint32_t uid_of(const struct pidfd_info *info)
{
	bool is_one =
	    info->mask & INFO_IDS && info->uid == info->effective_uid && info->uid == info->saved_uid && info->uid == info->file_uid;

	return is_one ? info->uid : CREDENTIALS_NOBODY;
}

/* CREDENTIALS_GONE: the process has ended, and another may have its number. */
static uint32_t ask(const struct trusted_process *process)
{
	struct pidfd_info info = { .mask = INFO_IDS };

	if (!ioctl(process->fd, PIDFD_GET_INFO, &info))
		return uid_of(&info);
	return errno == ESRCH ? CREDENTIALS_GONE : credentials_uid(process->tgid);
}

uint32_t trusted_uid(struct trusted *trusted, uint32_t tgid)
{
	struct trusted_process *process = &trusted->processes[tgid % TRUSTED_MAX];
	uint32_t uid = process->fd >= 0 && process->tgid == tgid ? ask(process) : CREDENTIALS_GONE;

	if (uid == CREDENTIALS_GONE) {
		closep(&process->fd);
		*process = (struct trusted_process){ .tgid = tgid, .fd = (int)syscall(SYS_PIDFD_OPEN, tgid, 0) };
		uid = process->fd >= 0 ? ask(process) : CREDENTIALS_GONE;
	}
	return uid;
}

bool trusted_is(struct trusted *trusted, uint32_t tgid)
{
	return caller_is_us(trusted_uid(trusted, tgid));
}
