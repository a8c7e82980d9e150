/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* io: what bpf/io.bpf.c sums: calls that read and write, by process and file. */
#pragma once
#include "file.h"
#include "record.h"
#include "types.h"

#define SONDE_MAX_CALLS	   512 /* numbers of system calls, each of 64 and 32 bits */
#define SONDE_IO_MAX_CALLS 64

enum sonde_io_kind {
	SONDE_IO_OTHER,	     /* not one of these calls */
	SONDE_IO_PLAIN,	     /* the result is the number of bytes */
	SONDE_IO_VECTOR,     /* the same; what was asked for is in the struct iovec of arguments 1 and 2 */
	SONDE_IO_MESSAGE,    /* the same; in the struct msghdr of argument 1 */
	SONDE_IO_MESSAGES,   /* the result is the number of the struct mmsghdr in argument 1 that were used; bytes are in them */
	SONDE_IO_SUBMIT,     /* requests to the kernel, which reads and writes later: only counted */
	SONDE_IO_MAP,	     /* mmap: counted where the program may write to the file through memory */
	SONDE_IO_SOCKETCALL, /* one of the others: its number is argument 0, its arguments are in memory */
};

struct sonde_io_call {
	__u8 kind;		/* enum sonde_io_kind */
	__u8 read_fd, write_fd; /* the argument that is this descriptor, from 1 on; 0: none */
	__u8 count;		/* SONDE_IO_PLAIN: the argument that says how many bytes, from 1 on */
	__u8 by_mode;		/* write_fd is read from, if it is open for reading only (vmsplice) */
};

struct sonde_io_config {
	__u8 calls[2][SONDE_MAX_CALLS]; /* index of `facts` by number, of 64 bits and of 32; 0: another call */
	__u8 socketcalls[32];		/* the same by the number of socketcall(2) */
	struct sonde_io_call facts[SONDE_IO_MAX_CALLS];
	__u8 by_tgid, by_comm, by_file, by_call;
	__u8 requested; /* sum what calls asked for */
	__u8 typed;	/* this kernel has bpf_rdonly_cast */
	__u8 pad[2];	/* zero */
};

/* A file: its directory entry, that one's parent, name and length, and the inode. One of these differs between two files, also when the
 * kernel reuses memory and numbers. All zero: the descriptor is not open. */
struct sonde_file_id {
	__u64 dentry, parent, hash_len, ino;
};

/* The key of a sum; what is not asked for is zero. */
struct sonde_io_key {
	struct sonde_file_id file;
	__u32 tgid;
	__u32 call; /* index of `facts` */
	char comm[SONDE_COMM_BYTES];
};
_Static_assert(sizeof(struct sonde_io_key) == 56, "layout changed: bump SONDE_ABI_VERSION");

struct sonde_io_side {
	__u64 calls, failed;	 /* calls: failed ones, too */
	__u64 bytes;		 /* transferred, or asked for */
	__u64 untimed, ns, max_ns; /* calls whose begin was not seen; how long the others took */
};

enum { SONDE_IO_READ, SONDE_IO_WRITE, SONDE_IO_SIDES };

struct sonde_io_sum {
	struct sonde_io_side sides[SONDE_IO_SIDES];
	__u32 is_named;		     /* the record with the file's name was sent */
	__u32 pad;		     /* zero */
	char comm[SONDE_COMM_BYTES]; /* of the process, when it was first seen */
};
_Static_assert(sizeof(struct sonde_io_sum) == 120, "layout changed: bump SONDE_ABI_VERSION");

/* A struct sonde_file_text follows, and then its text. */
struct sonde_io_name {
	struct sonde_io_key key;
};

/* One per CPU. calls = filtered + own + unseen + summed + keys_full, but a call that reads one file and writes another is two of the last
 * two. */
struct sonde_io_counters {
	__u64 calls;
	__u64 filtered, own; /* of threads that were not asked for; sonde's */
	__u64 summed, keys_full;
	__u64 untimed;		      /* calls that had begun before the recording */
	__u64 names_lost, names_gone; /* no room in the ring buffer; closed before its name was read. Tried again with the next call */
	__u64 unseen;		      /* calls that submit requests or map files */
	__u64 submitted;	      /* requests of io_uring_enter and io_submit */
	__u64 shared_maps;	      /* mappings of files made that the program may write to */
};
