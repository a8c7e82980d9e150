/* SPDX-License-Identifier: Apache-2.0 */
/* samples: a window's samples of an event. Equal samples are one entry with a count. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/record.h"
#include "base/cleanup.h"
#include "process/process_labels.h"
#include "stacks/stack_ids.h"

/* Zero it before filling it: it is hashed and compared as bytes. */
struct sample_key {
	struct stack_ids ids; /* its tgid is the sample's */
	uint32_t tid, cpu;
	uint64_t time_ns;         /* CLOCK_MONOTONIC; 0: samples of all times are one */
	char comm[SONDE_COMM_BYTES];
	struct process_labels *labels; /* of its process; a reference, held once for all equal samples; NULL: not known, or not requested */
};

struct sample {
	struct sample_key key;
	uint64_t count;
	uint64_t newest_ns; /* time of the newest use */
	bool is_used;       /* since samples_report */
};

struct samples;
struct samples *samples_new(void); /* NULL: no memory */
void samples_free(struct samples *samples); /* takes NULL */
/* Adds one sample; takes a reference to its labels if it needs one. Returns its number, or SAMPLES_NO_MEMORY. */
#define SAMPLES_NO_MEMORY UINT32_MAX
uint32_t samples_add(struct samples *samples, const struct sample_key *key);
uint32_t samples_nr(const struct samples *samples); /* of distinct samples */
uint64_t samples_count(const struct samples *samples); /* of all samples */
const struct sample *samples_at(const struct samples *samples, uint32_t number); /* borrowed until the next is added */
/* Records a use of the sample at that time. True: the first since samples_report. */
bool samples_use(struct samples *samples, uint32_t number, uint64_t time_ns);
const struct sample *samples_report(struct samples *samples, uint32_t number);
size_t samples_bytes(const struct samples *samples);
