/* SPDX-License-Identifier: Apache-2.0 */
/* proxy: does for us what another process or its file server can block for ever: reads a process's memory (a page may be of a FUSE file),
 * reads the files of /proc that lock its memory, finds and opens the files that it maps or refers to. It is a helper process with our
 * rights. A request that takes longer than PROXY_DEADLINE_MS is given up. The helper is killed and left (the kernel may keep it until the
 * file server ends, but does not keep us), and a new one is started. What did not answer is not requested again: that process's memory,
 * what that process refers to, or that device. After four timeouts on memory or mapped files of one user's processes, nothing of that user
 * is requested (root excepted). Waiting for other users has a budget: PROXY_TOTAL_MS in all, timeouts or not, then two milliseconds each
 * time. Processes of root and our user have a budget of their own. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "identity/process_identity.h"
#include "proxy/file_system.h"
#include "proxy/mapped_region.h"
#include "proxy/opener.h"

#define PROXY_DEADLINE_MS 100
#define PROXY_TOTAL_MS    200 /* one hundredth of the time that passes is given back */
/* Bytes of copies of one user's files, over the proxy's life; twice that for all users together. */
#define PROXY_COPIES_MAX  ((uint64_t)256 << 20)

struct proxy;
/* Starts the helper: this program once more (base/spawn.h). 0; else as spawn_helper. */
MUST_CHECK int proxy_new(struct diag *diag, struct proxy **ret_proxy);
void proxy_free(struct proxy *proxy); /* accepts NULL; does not wait */
static inline void proxy_freep(struct proxy **proxy)
{
	proxy_free(*proxy);
}
void proxy_set_nice(struct proxy *proxy, int nice); /* of the helper, if there is one; accepts NULL */

/* All of these return -ETIMEDOUT: no answer in time; -EBUSY: not tried, as a similar request timed out before. With a proxy of NULL, the
 * request is performed here, however long it takes. So is reading the memory and maps of processes of root and our user. A file is charged
 * to the user of the process that maps it or refers to it. */

/* The memory of one process, for reads in a row, of which only the first opens that of a trusted process. It stays what it was then: when
 * the process has executed another program, reads give -ESRCH. */
struct proxy_memory {
	struct proxy *proxy;
	uint32_t tgid;
	int fd; /* below 0: not open */
};
#define PROXY_MEMORY_OF(of_proxy, of_tgid) ((struct proxy_memory){ .proxy = (of_proxy), .tgid = (of_tgid), .fd = -1 })
/* As process_memory_read (base/process_memory.h). */
MUST_CHECK int proxy_memory_read(struct proxy_memory *memory, uint64_t from, void *to, size_t size);
void proxy_memory_done(struct proxy_memory *memory);

/* As process_memory_read and process_memory_read_some (base/process_memory.h). */
MUST_CHECK int proxy_read_memory(struct proxy *proxy, uint32_t tgid, uint64_t from, void *to, size_t size);
size_t proxy_read_memory_some(struct proxy *proxy, uint32_t tgid, uint64_t from, void *to, size_t size);
/* Opens the current contents of /proc/TGID/task/TID/maps. 0; -EFBIG: more than 64 MiB; else as open(2) and read(2). The caller closes
 * it. */
MUST_CHECK int proxy_maps(struct proxy *proxy, uint32_t tgid, uint32_t tid, FILE **ret_file);
/* As process_identity_read (identity/process_identity.h); by the helper for all processes, as one that is trusted when the reading
 * begins may be another user's when it ends. */
MUST_CHECK int proxy_identity(struct proxy *proxy, uint32_t tgid, const struct environment_names *names,
			      struct process_identity *ret_identity, struct environment_values *ret_values);

/* As mapped_file_locate and mapped_file_find (proxy/mapped_file.h): an O_PATH descriptor. Closing it never blocks. */
MUST_CHECK int proxy_locate(struct proxy *proxy, const struct mapped_region *region);
MUST_CHECK int proxy_find(struct proxy *proxy, const char *path);
/* Opens for reading a file of process `tgid` (0: of no process) on that device. For a file on a foreign file system, the descriptor is of a
 * copy in memory with its present bytes; the process's user owns the copy. -EFBIG: copies would exceed PROXY_COPIES_MAX. */
MUST_CHECK int proxy_open(struct proxy *proxy, uint32_t tgid, int path_fd, uint64_t device, enum file_system_kind *ret_kind);
/* As opener_open_debug and opener_open_own (proxy/opener.h); copies as above. A debug file must have a path for the file `of`
 * (proxy/debug_path.h), as an untrusted file may control the caller; else -EPERM. */
MUST_CHECK int proxy_open_debug(struct proxy *proxy, uint32_t tgid, const struct debugged *of, const char *path, uint64_t max_bytes);
MUST_CHECK int proxy_open_own(struct proxy *proxy, uint32_t tgid, bool is_ours, const char *path, uint64_t max_bytes);
MUST_CHECK int proxy_connect_own(struct proxy *proxy, uint32_t tgid, const char *path); /* as opener_connect_own */

struct proxy_counts {
	uint32_t nr_timed_out, nr_refused;
	uint32_t tgid, uid; /* of the longest single wait; tgid 0: of no process */
};
struct proxy_counts proxy_counts(const struct proxy *proxy); /* all 0 for NULL */
/* Is the process root's or our user's? These do not block us on purpose, so their memory is read here. Without a proxy, all are. */
bool proxy_trusts(struct proxy *proxy, uint32_t tgid);
uint64_t proxy_cpu_ns(const struct proxy *proxy); /* of the current helper; 0: there is none */

/* For main, by sonde_is_worker: is this process a proxy? Then its work is done when this returns. */
bool serve_as_proxy(int argc, char **argv, int *ret_code);
