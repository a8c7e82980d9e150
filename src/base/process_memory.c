// SPDX-License-Identifier: Apache-2.0
#include "base/process_memory.h"

#include <errno.h>
#include <sys/types.h>
#include <sys/uio.h>

#define PAGE_BYTES_MIN 4096u
#define MAX_PIECES 64 /* of a call */

int process_memory_read(uint32_t tgid, uint64_t from, void *to, size_t size)
{
	struct iovec local = { to, size }, remote = { (void *)from, size }; /* NOLINT: another process's address */
	ssize_t nr = process_vm_readv((pid_t)tgid, &local, 1, &remote, 1, 0);

	return nr == (ssize_t)size ? 0 : nr < 0 && errno != EPERM ? -errno : -EFAULT;
}

size_t process_memory_read_some(uint32_t tgid, uint64_t from, void *to, size_t size)
{
	size_t done = 0;

	while (done < size) {
		struct iovec local = { (char *)to + done, 0 }, pieces[MAX_PIECES];
		unsigned long nr = 0;
		ssize_t got;

		for (; nr < MAX_PIECES && done + local.iov_len < size; nr++) { /* a piece that is not there does not take one that is with it */
			uint64_t start = from + done + local.iov_len;
			size_t bytes = PAGE_BYTES_MIN - start % PAGE_BYTES_MIN, left = size - done - local.iov_len;

			pieces[nr] = (struct iovec){ (void *)start, bytes < left ? bytes : left }; /* NOLINT: another process's address */
			local.iov_len += pieces[nr].iov_len;
		}
		got = process_vm_readv((pid_t)tgid, &local, 1, pieces, nr, 0);
		done += got > 0 ? (size_t)got : 0;
		if (got != (ssize_t)local.iov_len)
			break;
	}
	return done;
}
