// SPDX-License-Identifier: Apache-2.0
#include "worker/opening.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "base/hold_signals.h"
#include "base/process_memory.h"

#define PAGE_SIZE_MIN 4096u

/* Reads a path from the worker's memory, page by page: memory behind its end may not be mapped. */
static int read_path(uint32_t tgid, uint64_t pc, char to[PATH_MAX])
{
	CLEANUP(closep) int fd = process_memory_open(tgid);
	size_t at = 0;

	if (fd < 0)
		return fd;
	while (at < PATH_MAX) {
		size_t size = PAGE_SIZE_MIN - (pc + at) % PAGE_SIZE_MIN;
		int err;

		if (size > PATH_MAX - at)
			size = PATH_MAX - at;
		err = process_memory_read(fd, pc + at, to + at, size);
		if (err)
			return err;
		if (memchr(to + at, '\0', size))
			return 0;
		at += size;
	}
	return -ENAMETOOLONG;
}

static int open_asked(int asked_fd, const struct seccomp_notif *asked, worker_open_fn open_file, void *arg)
{
	bool is_openat = asked->data.nr == SYS_openat;
	uint64_t flags = asked->data.args[is_openat ? 2 : 1];
	char path[PATH_MAX];
	int err;

	if (!open_file || (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)))
		return -EPERM;
	err = read_path(asked->pid, asked->data.args[is_openat ? 1 : 0], path);
	if (err)
		return err;
	if (ioctl(asked_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &asked->id)) /* else it may have been another process's memory */
		return -ESRCH;
	return path[0] == '/' ? open_file(arg, path) : -EPERM;
}

/* `fd`: a descriptor or a negative errno. A signal would interrupt either call; the first waits until the worker runs. */
static void answer_with(int asked_fd, uint64_t id, int fd)
{
	HOLD_SIGNALS();
	struct seccomp_notif_resp answer = { .id = id };

	if (fd >= 0) {
		struct seccomp_notif_addfd given = { .id = id, .srcfd = (uint32_t)fd, .newfd_flags = O_CLOEXEC };
		int number = ioctl(asked_fd, SECCOMP_IOCTL_NOTIF_ADDFD, &given);

		if (number >= 0)
			answer.val = number;
		else
			answer.error = -errno;
	} else {
		answer.error = fd;
	}
	ioctl(asked_fd, SECCOMP_IOCTL_NOTIF_SEND, &answer); /* fails if the worker has ended */
}

void opening_answer(int asked_fd, worker_open_fn open_file, void *arg)
{
	struct seccomp_notif asked = { 0 };
	CLEANUP(closep) int fd = -1;

	if (ioctl(asked_fd, SECCOMP_IOCTL_NOTIF_RECV, &asked))
		return;
	fd = open_asked(asked_fd, &asked, open_file, arg);
	answer_with(asked_fd, asked.id, fd);
}
