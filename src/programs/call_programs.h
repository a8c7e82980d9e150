/* SPDX-License-Identifier: Apache-2.0 */
/* call_programs: programs at system calls (`files`, `io`) that send records and sum by keys: how they are loaded, attached and read,
 * whichever object they are in. One thread. */
#pragma once
#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi/config.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "collect/map_read.h"

struct call_options { /* borrowed for the call */
	struct sonde_config config; /* the filters, and the command; the other fields are filled in */
	const uint32_t *targets;    /* tgids or tids, by config.filter_tgid or filter_tid */
	uint32_t nr_targets;
};

/* A BPF object that is open and has the owner's configuration. It has the maps `targets`, `ring`, `counters` and, if it sums, `sums`. */
struct call_object {
	void *opened; /* the skeleton's struct */
	void (*destroy)(void *opened);
	struct bpf_object_skeleton *skeleton;
	const volatile void *config; /* struct sonde_config in its .rodata */
	volatile uint32_t *own_tgid; /* in its .bss */
	uint32_t ring_bytes;
	uint32_t key_bytes, sum_bytes; /* sum_bytes 0: there are no sums */
	const char *since;	       /* the Linux that it needs */
	bool (*is_record)(const void *record, size_t bytes); /* are its sizes right? */
};

struct call_programs;
/* Loads the programs; takes `object`, also after a failure. 0; -EPERM; -EOPNOTSUPP: this kernel cannot (diag says what is missing). */
MUST_CHECK int call_programs_new(const struct call_object *object, const struct call_options *options, struct diag *diag,
				 struct call_programs **ret_programs);
void call_programs_free(struct call_programs *programs); /* takes NULL */
MUST_CHECK int call_programs_start(struct call_programs *programs, struct diag *diag);
void call_programs_stop(struct call_programs *programs); /* returns when no program runs any more */
/* `record`: borrowed for the call. A negative result stops the reading. */
typedef int (*call_record_fn)(void *arg, const void *record, size_t bytes);
/* Passes on the records that have arrived. Returns 0 or what fn returned. */
MUST_CHECK int call_programs_records(struct call_programs *programs, call_record_fn fn, void *arg);
/* Begins new sums; the records that name the old ones have arrived after that. *ret_fd: the map of the old ones, for map_read; the caller
 * closes it. 0 or -errno. */
MUST_CHECK int call_programs_turn(struct call_programs *programs, int *ret_fd);
/* Readable when many records have arrived; borrowed. */
int call_programs_wake_fd(const struct call_programs *programs);
/* Its counters, summed over the CPUs: `nr` numbers. */
void call_programs_counters(const struct call_programs *programs, uint64_t *ret_counters, uint32_t nr);
