/* SPDX-License-Identifier: Apache-2.0 */
/* files_programs: the kernel side of `files` (bpf/files.bpf.c): each call that opens a file as a record, or sums of them. One thread. */
#pragma once
#include <stdint.h>

#include "abi/config.h"
#include "abi/opens.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "collect/map_read.h"

struct files_programs_options {		 /* borrowed for the call */
	struct sonde_config config;	 /* the filters, and the command; the other fields are filled in */
	struct sonde_opens_config opens; /* without `calls` */
	const uint32_t *targets;	 /* tgids or tids, by config.filter_tgid or filter_tid */
	uint32_t nr_targets;
};

struct files_programs;
/* Loads the programs. 0; -EPERM; -EOPNOTSUPP: this kernel cannot (diag says what is missing). */
MUST_CHECK int files_programs_new(const struct files_programs_options *options, struct diag *diag, struct files_programs **ret_programs);
void files_programs_free(struct files_programs *programs); /* takes NULL */
MUST_CHECK int files_programs_start(struct files_programs *programs, struct diag *diag);
void files_programs_stop(struct files_programs *programs); /* returns when no program runs any more */
/* `record`: with its texts behind it, `bytes` in all; borrowed for the call. A negative result stops the reading. */
typedef int (*open_record_fn)(void *arg, const struct sonde_open_record *record, size_t bytes);
/* Passes on the records that have arrived. Returns 0 or what fn returned. */
MUST_CHECK int files_programs_records(struct files_programs *programs, open_record_fn fn, void *arg);
/* Begins new sums; the records that name the old ones have arrived after that. *ret_fd: the map of the old ones, for map_read; the caller
 * closes it. 0 or -errno. */
MUST_CHECK int files_programs_turn(struct files_programs *programs, int *ret_fd);
/* Readable when many records have arrived; borrowed. */
int files_programs_wake_fd(const struct files_programs *programs);
void files_programs_counters(const struct files_programs *programs, struct sonde_open_counters *ret_counters); /* summed over the CPUs */
