/* SPDX-License-Identifier: Apache-2.0 */
/* io_programs: the kernel side of `io` (bpf/io.bpf.c): sums of calls that read and write. One thread. */
#pragma once
#include <stdint.h>

#include "abi/config.h"
#include "abi/io.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "collect/map_read.h"

struct io_programs_options {	    /* borrowed for the call */
	struct sonde_config config; /* the filters, and the command; the other fields are filled in */
	struct sonde_io_config io;  /* without calls and facts */
	const uint32_t *targets;    /* tgids or tids, by config.filter_tgid or filter_tid */
	uint32_t nr_targets;
};

struct io_programs;
/* Loads the programs. 0; -EPERM; -EOPNOTSUPP: this kernel cannot (diag says what is missing). */
MUST_CHECK int io_programs_new(const struct io_programs_options *options, struct diag *diag, struct io_programs **ret_programs);
void io_programs_free(struct io_programs *programs); /* takes NULL */
MUST_CHECK int io_programs_start(struct io_programs *programs, struct diag *diag);
void io_programs_stop(struct io_programs *programs); /* returns when no program runs any more */
/* `file`: with its text behind it; borrowed for the call. A negative result stops the reading. */
typedef int (*io_name_fn)(void *arg, const struct sonde_io_key *key, const struct sonde_file_text *file);
/* Passes on the names that have arrived. Returns 0 or what fn returned. */
MUST_CHECK int io_programs_names(struct io_programs *programs, io_name_fn fn, void *arg);
/* Begins new sums; the names of the old ones have arrived after that. *ret_fd: the map of the old ones, for map_read; the caller
 * closes it. 0 or -errno. */
MUST_CHECK int io_programs_turn(struct io_programs *programs, int *ret_fd);
/* The name of a call, by its index in a key; borrowed for ever. */
const char *io_programs_call_name(uint32_t index);
void io_programs_counters(const struct io_programs *programs, struct sonde_io_counters *ret_counters); /* summed over the CPUs */
