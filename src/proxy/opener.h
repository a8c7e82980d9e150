/* SPDX-License-Identifier: Apache-2.0 */
/* opener: opens, for reading, the files that a process's own data refer to (perf map, jitdump, debug link), and connects to its socket. It
 * opens them exactly as that process could: in its root, with its user, groups and capabilities. Otherwise whoever writes such a path could
 * make a profiler that runs as root read a file for him. A file is opened in a thread of its own, which gives up its rights, unless the
 * process has all of ours (credentials_pass_all); the call takes as long as the file system does (proxy/proxy.h). When we are not root, we
 * open as ourselves without capabilities, in the process's root.
 *
 * Opens only regular files, none of procfs (where "self" is us). Any thread. Side effect: the first thread that changes its user makes the
 * whole process not dumpable (no core files, no ptrace by its own user): see the kernel's commit_creds(). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

/* The file whose debug information is looked for. */
struct debugged {
	const char *path; /* NULL: none */
	uint64_t device;  /* where the file was first found; 0: not known */
	uint32_t owner;   /* uid */
};

/* Opens a debug file whose path was checked (proxy/debug_path.h). It determines what other users' profiles show. So its owner must be root
 * (and the file not writable by all), somebody who may do as root does (base/caller.h), or the owner of the file that it describes. On a
 * file system that any user may serve, it must be on that file's device. Else -EPERM. Returns a descriptor, or: -EACCES: the process could
 * not read it; -ENOEXEC: no regular file, or not ELF; -EFBIG: larger than max_bytes; -EINVAL: no absolute path; -ENOENT and others of
 * open(2). For a process that has ended (and tgid 0), opens in our root as nobody, only below DEBUG_PATH_PREFIX. Does the same when the
 * process has other mounts or another root than we have, and the file cannot be opened there. */
MUST_CHECK int opener_open_debug(uint32_t tgid, const struct debugged *of, const char *path, uint64_t max_bytes);

/* The same for a file that the process itself must have written, in a directory where others may write, too. Its owner must be the
 * process's user or root, it must be no symbolic link, and it must have one name only: a second one could be a link that somebody made to a
 * file that they cannot read. Else -EPERM (-ELOOP or -ENOEXEC for a link). For a process that has ended, opens in our root, below /tmp/ and
 * as nobody, when the file's owner is our user or root; as ourselves and anywhere when `is_ours` says that we started the process. For one
 * that has ended but is not reaped yet, opens as its user. */
MUST_CHECK int opener_open_own(uint32_t tgid, bool is_ours, const char *path, uint64_t max_bytes);

/* Connects to the Unix stream socket at `path`, as the process itself could. Its owner must be the process's user, and the process itself
 * must listen there: others may create sockets in the same directory. Nothing was sent. Returns a descriptor that does not block, or:
 * -EPERM: another process listens there, or another user owns it; -ENOTSOCK; -EAGAIN: too many wait there; -ECONNREFUSED: nobody listens;
 * -ESRCH: the process has ended. */
MUST_CHECK int opener_connect_own(uint32_t tgid, const char *path);
