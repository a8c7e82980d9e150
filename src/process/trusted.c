// SPDX-License-Identifier: Apache-2.0
#include "process/trusted.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#define SYS_PIDFD_OPEN 434 /* as old headers have not */

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

/* 0; -ESRCH: it has ended, and its number may be another's. */
static int ask(int fd, bool *ret_is_trusted)
{
	struct pidfd_info info = { .mask = INFO_IDS };

	*ret_is_trusted = false;
	if (ioctl(fd, PIDFD_GET_INFO, &info))
		return -errno;
	*ret_is_trusted = info.mask & INFO_IDS && info.uid == info.effective_uid && info.uid == info.saved_uid && info.uid == info.file_uid && (!info.uid || info.uid == geteuid());
	return 0;
}

bool trusted_is(struct trusted *trusted, uint32_t tgid)
{
	struct trusted_process *process = &trusted->processes[tgid % TRUSTED_MAX];
	bool is_trusted = false;

	if (process->fd >= 0 && process->tgid == tgid && ask(process->fd, &is_trusted) != -ESRCH)
		return is_trusted;
	closep(&process->fd);
	*process = (struct trusted_process){ .tgid = tgid, .fd = (int)syscall(SYS_PIDFD_OPEN, tgid, 0) };
	return process->fd >= 0 && !ask(process->fd, &is_trusted) && is_trusted;
}
