/* SPDX-License-Identifier: Apache-2.0 */
/* sampler: the kernel side of `profile`. Loads the BPF programs, opens the perf events, reads the ring buffer. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/config.h"
#include "abi/runtime.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/event.h"
#include "collect/cpu_events.h"

#define SAMPLER_MAX_RULES 32768 /* the 1,365 files of a developer's machine need 7,403 */

struct sampler_options { /* borrowed for the call */
	struct sonde_config config; /* version and ring_wake_bytes are filled in */
	const uint32_t *targets;    /* tgids or tids, by config.filter_tgid or filter_tid */
	uint32_t nr_targets;
	uint64_t stack_storage;     /* how many different stacks the kernel remembers as sent */
	const struct event *event;
	uint64_t freq_hz, period;   /* one of the two */
	int64_t cpu;                /* -1: all online CPUs */
	bool no_ticks;              /* load only what other triggers need (sched_programs.h); no event is opened */
};

struct sampler_fds { /* maps that the unwinder fills; borrowed until sampler_free */
	int chunks, rules, processes, table_generation;
};

struct bpf_object;
struct bpf_program;
struct sampler;
struct trigger;
/* Loads the programs. 0; -EPERM; -EOPNOTSUPP: this kernel cannot (diag says what is missing). */
MUST_CHECK int sampler_new(const struct sampler_options *options, struct diag *diag, struct sampler **ret_sampler);
void sampler_free(struct sampler *sampler);
/* Opens the events, disabled. -ENOENT, -EOPNOTSUPP, -ENODEV or -EINVAL: this machine does not have the event; another may be tried. */
MUST_CHECK int sampler_open_events(struct sampler *sampler, const struct sampler_options *options, struct diag *diag);
MUST_CHECK int sampler_start(struct sampler *sampler, struct diag *diag);
void sampler_stop(struct sampler *sampler);

/* One record (abi/record.h, abi/wait.h, abi/runq.h), whole and of a known type. Borrowed for the call. A negative result stops the
 * reading. */
typedef int (*sampler_record_fn)(void *arg, const void *record);
/* Calls `fn` for the records that are there, up to max_records: at the highest rates there is always one more. Returns 0 or what fn
 * returned. */
MUST_CHECK int sampler_read(struct sampler *sampler, uint64_t max_records, sampler_record_fn fn, void *arg);
/* The stack with this hash arrived as a deferred stack, and user space found no more frames than the kernel did. From now on samples refer
 * to it by its hash. */
void sampler_settle(struct sampler *sampler, uint64_t hash);
/* As runtime_programs_load, _set, _unset, _get_rows and _set_rows. */
void sampler_load_runtime(struct sampler *sampler, enum sonde_runtime kind);
MUST_CHECK int sampler_set_runtime(struct sampler *sampler, enum sonde_runtime kind, uint32_t tgid, const void *process, struct diag *diag);
void sampler_unset_runtime(struct sampler *sampler, enum sonde_runtime kind, uint32_t tgid);
MUST_CHECK int sampler_get_rows(const struct sampler *sampler, enum sonde_runtime kind, const void *key, void *ret_rows);
void sampler_set_rows(struct sampler *sampler, enum sonde_runtime kind, const void *key, const void *rows);
/* Begins a new window: payloads sent in the old one are sent again. 0 or what bpf(2) returned. */
MUST_CHECK int sampler_next_window(struct sampler *sampler);
/* Once the kernel's table of payloads sent is half full, clears it, so that they are sent again. 0, -ENOMEM or what bpf(2) returned. */
MUST_CHECK int sampler_renew_payloads(struct sampler *sampler);
int sampler_wake_fd(const struct sampler *sampler); /* readable when the ring fills up; for epoll, borrowed */

struct sampler_fds sampler_fds(const struct sampler *sampler);
uint32_t sampler_nr_cpus(const struct sampler *sampler); /* the most CPUs that had an event at one time */
void sampler_counters(const struct sampler *sampler, struct sonde_counters *ret_counters); /* summed over the CPUs */
struct cpu_events_total sampler_events(const struct sampler *sampler);
/* As cpu_events_set_rate. */
MUST_CHECK int sampler_set_rate(struct sampler *sampler, uint64_t freq_hz);
/* As cpu_events_follow. */
MUST_CHECK int sampler_follow_cpus(struct sampler *sampler, const struct cpus *online, struct diag *diag);
uint64_t sampler_map_bytes(const struct sampler *sampler); /* kernel memory of all maps, without chunks */
/* For programs of other triggers: the configuration, and the object whose maps they share by name; both are borrowed for the sampler's
 * life. The last one is as runtime_programs_add. */
const struct sonde_config *sampler_config(const struct sampler *sampler);
const struct bpf_object *sampler_object(const struct sampler *sampler);
MUST_CHECK int sampler_add_trigger(struct sampler *sampler, const struct bpf_object *object, const struct trigger *trigger,
				   const struct bpf_program *last);
