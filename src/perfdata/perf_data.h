/* SPDX-License-Identifier: Apache-2.0 */
/* perf_data: reads what `perf record` writes, from a file or a stream (`perf record -o -`), record by record in order of time. Layouts:
 * linux, tools/perf/Documentation/perf.data-file-format.txt and include/uapi/linux/perf_event.h. The input is untrusted: lengths and counts
 * are checked against the bytes that are there, and the number of waiting records is limited. One thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "elf/elf_file.h"

#define PERF_DATA_MAX_EVENTS 1024
#define PERF_DATA_NO_CPU UINT32_MAX

struct perf_data_source {
	const void *bytes; /* borrowed: all of it or, with a descriptor, the bytes read so far */
	size_t nr_bytes;
	int fd;            /* -1: none. A pipe is read from its current position, a file from its start */
};

struct perf_data_event { /* as in perf_event_attr, unless stated */
	char name[128];              /* "cycles"; "event 2" if the recording has no name for it */
	uint32_t type;
	uint64_t config, sample_type, read_format, flags, sample_regs_user, branch_sample_type;
	uint64_t period_or_freq;
	uint32_t stack_bytes;        /* requested for each stack; 0: none */
	uint16_t max_stack;          /* frames of a call chain; 0: the system's default */
	bool is_freq;
};

struct perf_data_build_id { /* of a file, as perf found it when the recording ended */
	struct build_id id;
	const char *path;
};

struct perf_data_info { /* "" and 0: not in the recording */
	char host[64], kernel[64], arch[32], command_line[512];
	uint32_t nr_cpus, nr_events, nr_build_ids;
	const struct perf_data_event *events;
	const struct perf_data_build_id *build_ids;
	uint64_t first_ns, last_ns;      /* of its samples */
	bool has_clock;                  /* unix time = time + unix_offset_ns */
	uint64_t unix_offset_ns;
	bool is_stream;
	/* valid after perf_data_read */
	bool is_cut;                     /* the recording is cut off: all complete records were read */
	uint64_t nr_disordered;          /* records that arrived too late to be put in order */
	uint64_t nr_refused;             /* malformed records */
	uint64_t nr_unknown_event;       /* samples of an event that the recording does not have */
};

enum perf_data_kind {
	PERF_DATA_SAMPLE,
	PERF_DATA_MMAP,
	PERF_DATA_COMM,
	PERF_DATA_FORK,
	PERF_DATA_EXIT,
	PERF_DATA_LOST,
	PERF_DATA_LOST_SAMPLES,
	PERF_DATA_THROTTLE
};
enum perf_data_mode {
	PERF_DATA_MODE_UNKNOWN,
	PERF_DATA_MODE_KERNEL,
	PERF_DATA_MODE_USER,
	PERF_DATA_MODE_HV,
	PERF_DATA_MODE_GUEST_KERNEL,
	PERF_DATA_MODE_GUEST_USER
};

/* Values in a call chain from PERF_CONTEXT_MAX on give the mode of the frames that follow. */
#define PERF_DATA_CONTEXT_MAX ((uint64_t)-4095)
#define PERF_DATA_CONTEXT_KERNEL ((uint64_t)-128)
#define PERF_DATA_CONTEXT_USER ((uint64_t)-512)

struct perf_data_sample {
	uint32_t event; /* index into info.events */
	uint32_t cpu;
	uint64_t ip, period;
	bool has_ip, has_period;
	const uint8_t *callchain;    /* nr_callchain words of 8 bytes */
	uint64_t nr_callchain;
	/* regs_abi: 0: no registers; 1: of 32-bit code; 2: of 64-bit code. regs_mask: bits in the machine's own order (asm/perf_regs.h). */
	uint64_t regs_abi, regs_mask;
	const uint8_t *regs;         /* one word for each bit of the mask */
	const uint8_t *stack;        /* the bytes from the stack pointer on */
	uint32_t stack_bytes;
};

struct perf_data_mmap {
	uint64_t start_pc, size_bytes, file_off, inode;
	uint32_t device_major, device_minor;
	bool is_code;
	struct build_id build_id; /* size 0: not in this record */
	const char *path;
};

struct perf_data_record { /* all pointers are borrowed for the call */
	enum perf_data_kind kind;
	enum perf_data_mode mode;
	uint64_t time_ns;         /* 0: unknown, as in perf's records about processes that already ran */
	uint32_t tgid, tid;       /* UINT32_MAX: none; of a fork, the child */
	union {
		struct perf_data_sample sample;
		struct perf_data_mmap mmap;
		struct {
			const char *name;
			bool is_exec;
		} comm;
		struct {
			uint32_t tgid, tid;
		} parent;
		uint64_t nr_lost;
	};
};

static inline uint64_t perf_data_word(const uint8_t *words, uint64_t i)
{
	uint64_t word;

	memcpy(&word, words + i * sizeof(word), sizeof(word));
	return word;
}

/* Does the file or stream start as perf's do? */
bool perf_data_is(const void *bytes, size_t size);

struct perf_data;
/* Reads the header and, of a file, the events and the features after the records. Borrows the source for its life. 0; -ENOEXEC: not perf's;
 * -EBADMSG: damaged; -ENOTSUP: from a machine of the other byte order; -ESPIPE: a perf.data file through a pipe; -ENOMEM. */
MUST_CHECK int perf_data_open(const struct perf_data_source *source, struct diag *diag, struct perf_data **ret_data);
void perf_data_free(struct perf_data *data); /* takes NULL */
static inline void perf_data_freep(struct perf_data **data)
{
	perf_data_free(*data);
}
const struct perf_data_info *perf_data_info(const struct perf_data *data); /* of a stream: what was read so far */

/* Calls `fn` for each record, those with a time in order of time. Call it only once. 0; an error as of perf_data_open; or what `fn`
 * returned, if not 0: that ends it. */
typedef int (*perf_data_fn)(void *arg, const struct perf_data_record *record);
MUST_CHECK int perf_data_read(struct perf_data *data, perf_data_fn fn, void *arg, struct diag *diag);
