/* SPDX-License-Identifier: Apache-2.0 */
/* opener: opens, for reading, the files that a process's own data name (perf map, jitdump, debug link), exactly as that process could:
 * in its root, with its user, groups and capabilities. Whoever writes such a name could otherwise make a profiler that runs as root read a
 * file to him. Each is opened in a thread of its own, which gives up its rights for it; for as long as the file system takes
 * (proxy/proxy.h). When we are not root, we open as ourselves, in the process's root.
 *
 * Only regular files, none of procfs (where "self" is us). Any thread. Side effect: the first thread that changes its user
 * makes the whole process not dumpable (no core files, no ptrace by its own user), as the kernel's commit_creds() has it. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

/* The file whose debug information is looked for. */
struct debugged {
	const char *path; /* NULL: none */
	uint64_t device;  /* that it was met on; 0: not known */
	uint32_t owner;   /* uid */
};

/* A debug file, whose path was looked at (proxy/debug_path.h). It says what others' processes run, so it belongs to root and is not
 * writable by all, to who may do as root does (base/caller.h) or to the owner of that file; what somebody may serve counts only when it is
 * on that file's device: else -EPERM. A descriptor, or: -EACCES: the process could not read it; -ENOEXEC: no regular file, or not ELF;
 * -EFBIG: above max_bytes; -EINVAL: no absolute path; -ENOENT and others of open(2). For a process that is gone (and tgid 0): in our root
 * as nobody, only below DEBUG_PATH_PREFIX. So also for what is not to be had there by mounts or a root that are not ours. */
MUST_CHECK int opener_open_debug(uint32_t tgid, const struct debugged *of, const char *path, uint64_t max_bytes);

/* The same for a file that the process itself is to have written, where others may write too: it belongs to the process's user or to
 * root, is no symbolic link and has one name only (a second one could be a link that somebody made to a file that they cannot read), else
 * -EPERM
 * (-ELOOP or -ENOEXEC for a link). Of a process that is gone: in our root, below /tmp/ and as nobody, when it belongs to us or to
 * root; as ourselves and anywhere when `is_ours` says that we started the process. Of one that has ended and is not waited for yet: as its
 * user. */
MUST_CHECK int opener_open_own(uint32_t tgid, bool is_ours, const char *path, uint64_t max_bytes);
