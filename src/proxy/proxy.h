/* SPDX-License-Identifier: Apache-2.0 */
/* proxy: does for us what another process or its file server can keep waiting for ever: reading its memory (a page of it may be a FUSE
 * file's), the files of /proc that take the lock of its memory, finding and opening the files that it maps or names. It is a process of
 * ours with our rights. What does not come back within PROXY_DEADLINE_MS is given up: the process is killed and left (the kernel may keep
 * it until the file server ends, but not us), a new one is started, and what did not answer is not asked again: that process's memory, what
 * that process names, or that device; after four times nothing of a user whose processes' memory or mapped files these were (root's
 * excepted). Waiting for strangers has a budget: PROXY_TOTAL_MS together, in vain or not, then two milliseconds each time; root's
 * processes, and our user's, have one of their own. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "proxy/file_system.h"
#include "proxy/mapped_region.h"
#include "proxy/opener.h"

#define PROXY_DEADLINE_MS 100
#define PROXY_TOTAL_MS    200 /* a hundredth of the time that passes is given back */
#define PROXY_COPIES_MAX  ((uint64_t)256 << 20) /* bytes of copies of one user's files, in all the proxy's life; twice that of all users' */

struct proxy;
/* Starts it: this program once more (base/spawn.h). 0; as spawn_helper. */
MUST_CHECK int proxy_new(struct diag *diag, struct proxy **ret_proxy);
void proxy_free(struct proxy *proxy); /* takes NULL; does not wait */
static inline void proxy_freep(struct proxy **proxy)
{
	proxy_free(*proxy);
}
void proxy_set_nice(struct proxy *proxy, int nice); /* of the process, when there is one; takes NULL */

/* All of these: -ETIMEDOUT: it was waited for in vain; -EBUSY: not tried, as the like of it was waited for in vain before. A proxy of NULL:
 * it is done here, for as long as it takes; so is the reading of the memory and maps of root's processes and of our user's. Whom a file
 * belongs to is by the process that maps or names it. */

/* As process_memory_read and process_memory_read_some (base/process_memory.h). */
MUST_CHECK int proxy_read_memory(struct proxy *proxy, uint32_t tgid, uint64_t from, void *to, size_t size);
size_t proxy_read_memory_some(struct proxy *proxy, uint32_t tgid, uint64_t from, void *to, size_t size);
/* What stands in /proc/TGID/task/TID/maps now. 0; -EFBIG: more than 64 MiB; as open(2) and read(2). The caller closes it. */
MUST_CHECK int proxy_maps(struct proxy *proxy, uint32_t tgid, uint32_t tid, FILE **ret_file);

/* As mapped_file_locate and mapped_file_find (proxy/mapped_file.h): a descriptor of O_PATH, whose closing waits for nobody. */
MUST_CHECK int proxy_locate(struct proxy *proxy, const struct mapped_region *region);
MUST_CHECK int proxy_find(struct proxy *proxy, const char *path);
/* A descriptor for reading, of process `tgid`'s (0: nobody's) file on that device: of one on a foreign file system, of a copy in memory
 * that has its bytes as they are now; it belongs to the process's user. -EFBIG: copies would take more than PROXY_COPIES_MAX. */
MUST_CHECK int proxy_open(struct proxy *proxy, uint32_t tgid, int path_fd, uint64_t device, enum file_system_kind *ret_kind);
/* As opener_open_debug and opener_open_own (proxy/opener.h); copies likewise. A debug file is one of the file `of`, as the paths go
 * (proxy/debug_path.h), for who asks may be in a stranger's hands; else -EPERM. */
MUST_CHECK int proxy_open_debug(struct proxy *proxy, uint32_t tgid, const struct debugged *of, const char *path, uint64_t max_bytes);
MUST_CHECK int proxy_open_own(struct proxy *proxy, uint32_t tgid, bool is_ours, const char *path, uint64_t max_bytes);

struct proxy_counts {
	uint32_t nr_timed_out, nr_refused;
	uint32_t tgid, uid; /* of whom was waited for longest at a time; tgid 0: of no process's */
};
struct proxy_counts proxy_counts(const struct proxy *proxy); /* of NULL: none */
/* Is the process root's or our user's? These do not keep us waiting on purpose: their memory is read here. Without a proxy all are. */
bool proxy_trusts(struct proxy *proxy, uint32_t tgid);
uint64_t proxy_cpu_ns(const struct proxy *proxy); /* of the helper that works now; 0: there is none */

/* For main, by sonde_is_worker: is this process a proxy? Then it has done its work when this returns. */
bool serve_as_proxy(int argc, char **argv, int *ret_code);
