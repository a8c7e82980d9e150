/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* opens: what bpf/files.bpf.c sends or sums: the calls that open files. */
#pragma once
#include "file.h"
#include "record.h"
#include "types.h"

#define SONDE_MAX_CALLS 512 /* numbers of system calls, each of 64 and 32 bits */

enum sonde_open_call {
	SONDE_OPEN_NONE,      /* another call */
	SONDE_OPEN_OPEN,      /* name, flags */
	SONDE_OPEN_CREAT,     /* name */
	SONDE_OPEN_OPENAT,    /* folder, name, flags */
	SONDE_OPEN_OPENAT2,   /* folder, name, struct open_how */
	SONDE_OPEN_BY_HANDLE, /* mount, handle, flags: there is no name */
};

struct sonde_opens_config {
	__u8 calls[2][SONDE_MAX_CALLS]; /* enum sonde_open_call by number, of 64 bits and of 32 */
	__u8 failed_only;
	__u8 sums; /* no records, but sums by the fields below */
	__u8 by_tgid, by_comm, by_path;
	__u8 pad[3]; /* zero */
};

/* Where the folders behind the name come from. */
enum sonde_open_from {
	SONDE_OPEN_ABSOLUTE, /* the name needs none */
	SONDE_OPEN_RELATIVE, /* the folders above the name follow, leaf first */
	SONDE_OPEN_OF_FILE,  /* there is no name, or it cannot be read: the parts of the file that was opened follow */
	SONDE_OPEN_NO_NAME,  /* as above, and no file was opened */
};

/* The key of a sum; what is not asked for is zero. */
struct sonde_open_key {
	__u64 text_hash[2]; /* of the text and of what says how it is read */
	__u32 tgid;
	__u32 pad; /* zero */
	char comm[SONDE_COMM_BYTES];
};
_Static_assert(sizeof(struct sonde_open_key) == 40, "layout changed: bump SONDE_ABI_VERSION");

struct sonde_open_sum {
	__u64 opens, failed;	     /* a failed one is no open */
	__s32 last_error;	     /* errno of the last one that failed */
	__u32 is_named;		     /* the record with its text was sent */
	char comm[SONDE_COMM_BYTES]; /* of the process, when it was first seen */
};

/* A struct sonde_file_text follows, and then its text: the name with its NUL, if there is one, and the parts of the folder or the file. */
struct sonde_open_record {
	__u64 time_ns;		   /* CLOCK_MONOTONIC, at the end of the call */
	struct sonde_open_key key; /* with sums */
	__s64 result;		   /* the descriptor, or -errno */
	__u64 flags;		   /* O_* */
	__u32 tgid, tid;
	char comm[SONDE_COMM_BYTES]; /* of the thread */
	__u32 name_bytes;	     /* with its NUL; 0: there is no name */
	__u8 from;		     /* enum sonde_open_from */
	__u8 pad[3];		     /* zero */
};
_Static_assert(sizeof(struct sonde_open_record) == 96, "layout changed: bump SONDE_ABI_VERSION");

/* One per CPU. calls = filtered + own + sent + lost + summed + keys_full */
struct sonde_open_counters {
	__u64 calls;	  /* that open files */
	__u64 filtered;	  /* of threads that were not asked for, or that succeeded */
	__u64 own;	  /* sonde's */
	__u64 sent, lost; /* lost: no room in the ring buffer */
	__u64 summed, keys_full;
	__u64 names_lost; /* of sums: no room in the ring buffer; sent again with the next call */
};
