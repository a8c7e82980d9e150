/* SPDX-License-Identifier: Apache-2.0 */
/* samples: a window's samples of an event. Equal ones but for their number are one. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/record.h"
#include "base/cleanup.h"
#include "stacks/stack_ids.h"

/* Zeroed before it is filled: it is hashed and compared whole. */
struct sample_key {
	struct stack_ids ids; /* its tgid is the sample's */
	uint32_t tid, cpu;
	uint64_t time_ns;         /* CLOCK_MONOTONIC; 0: those of all times are one */
	char comm[SONDE_COMM_BYTES];
};

struct sample {
	struct sample_key key;
	uint64_t count;
	uint64_t newest_ns; /* of those that were used */
	bool is_used;       /* since it was told of */
};

struct samples;
struct samples *samples_new(void); /* NULL: no memory */
void samples_free(struct samples *samples); /* takes NULL */
/* One more of these. Its number, or SAMPLES_NO_MEMORY. */
#define SAMPLES_NO_MEMORY UINT32_MAX
uint32_t samples_add(struct samples *samples, const struct sample_key *key);
uint32_t samples_nr(const struct samples *samples); /* of different ones */
uint64_t samples_count(const struct samples *samples); /* of all */
const struct sample *samples_at(const struct samples *samples, uint32_t number); /* borrowed until the next is added */
/* The sample was met at that time. True: for the first time since it was told of. */
bool samples_use(struct samples *samples, uint32_t number, uint64_t time_ns);
const struct sample *samples_report(struct samples *samples, uint32_t number);
size_t samples_bytes(const struct samples *samples);
