/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* file: what names a file: texts that bpf/lib/file_path.h takes in the kernel, and of which user space makes a name. */
#pragma once
#include "types.h"

#define SONDE_TEXT_BYTES     8192 /* of a name and of the folders above it, together */
#define SONDE_NAME_MAX_BYTES 4096 /* of a path in a system call: PATH_MAX, with its NUL */
#define SONDE_PART_BYTES     256  /* of one folder's name: NAME_MAX and its NUL */
#define SONDE_MAX_PARTS	     96	  /* folders of a path; above that the path is cut at its begin */

enum sonde_file_kind {
	SONDE_FILE_NONE,   /* there is no file: a descriptor that is not open */
	SONDE_FILE_PATH,   /* the parts of a path, leaf first, each with its NUL */
	SONDE_FILE_PIPE,   /* without a name */
	SONDE_FILE_ANON,   /* one part: the name of what has no folder: "[eventfd]", "memfd:x" */
	SONDE_FILE_SOCKET, /* a struct sonde_socket */
};

/* Of struct sonde_file_text. */
#define SONDE_FILE_DELETED 1 /* it has no name in its folder any more */
#define SONDE_FILE_CUT	   2 /* more folders than SONDE_MAX_PARTS, or more bytes than there is room for */

struct sonde_file_text {
	__u64 ino;
	__u32 bytes; /* of the text */
	__u8 kind;   /* enum sonde_file_kind */
	__u8 flags;  /* SONDE_FILE_* */
	__u8 pad[2]; /* zero */
};
_Static_assert(sizeof(struct sonde_file_text) == 16, "layout changed: bump SONDE_ABI_VERSION");

struct sonde_socket {
	__u16 family, type, protocol; /* AF_*, SOCK_*, IPPROTO_* */
	__u16 local_port, remote_port;
	__u16 path_bytes;	    /* AF_UNIX: of `path`, which may begin with a NUL (an abstract name); 0: it has none */
	__u8 local[16], remote[16]; /* addresses: AF_INET uses four bytes */
	char path[108];		    /* AF_UNIX: its own, or else its peer's */
	__u8 is_peers;		    /* `path` is the peer's */
	__u8 pad[3];		    /* zero */
};
_Static_assert(sizeof(struct sonde_socket) == 156, "layout changed: bump SONDE_ABI_VERSION");
