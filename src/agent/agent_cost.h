/* SPDX-License-Identifier: Apache-2.0 */
/* agent_cost: what the agent costs: this process, the processes that work for it, and its BPF programs. Any thread. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

struct agent_cost {
	uint64_t cpu_ns;    /* of all its processes, those that have ended included */
	uint64_t rss_bytes; /* of those that live; what they share counts in each */
	uint64_t bpf_ns;    /* of its programs, while the kernel counts it */
	uint64_t map_bytes; /* kernel memory of its BPF maps */
	uint64_t memory_bytes; /* of this process, what the others have for themselves, and maps; mapped parts of maps count twice */
};

#define AGENT_MAX_PROGRAMS 64

struct agent_program { /* all that have this name: of several sessions, or triggers */
	char name[16];
	uint64_t nr_programs, nr_runs, ns; /* of those that agent_cost_read saw last; runs and time while the kernel counts */
};

struct agent_cost_reader;
MUST_CHECK int agent_cost_reader_new(struct agent_cost_reader **ret_reader);
void agent_cost_reader_free(struct agent_cost_reader *reader); /* takes NULL */
/* Call it before programs are unloaded, too: what they took since the last call is not known afterwards. Takes some milliseconds. */
void agent_cost_read(struct agent_cost_reader *reader, struct agent_cost *ret_cost);
/* The last one, if it is at most a second old. */
void agent_cost_recent(struct agent_cost_reader *reader, struct agent_cost *ret_cost);
/* Returns their number. */
uint32_t agent_cost_programs(struct agent_cost_reader *reader, struct agent_program *programs, uint32_t max_programs);
/* Has the kernel count the run time of BPF programs while *ret_fd is open, which costs about 20 ns for each run. 0 or a negative errno. */
MUST_CHECK int agent_cost_count_bpf(struct diag *diag, int *ret_fd);
