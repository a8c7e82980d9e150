/* SPDX-License-Identifier: Apache-2.0 */
/* map_read: reads what BPF programs have counted, completely. */
#pragma once
#include <bpf/libbpf.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

/* A negative result stops the reading. */
typedef int (*map_element_fn)(void *arg, const void *key, const void *value);
/* Calls `fn` for each element of a hash map that nobody writes to. Returns 0, -ENOMEM, or what bpf(2) or fn returned. */
MUST_CHECK int map_read(int map_fd, uint32_t key_bytes, uint32_t value_bytes, map_element_fn fn, void *arg);
/* The same, and deletes the elements. After an error some are lost. */
MUST_CHECK int map_take(int map_fd, uint32_t key_bytes, uint32_t value_bytes, map_element_fn fn, void *arg);
/* Sums an element of a per-CPU array of 64-bit numbers over the CPUs; all zeros if it cannot be read. */
void map_sum_cpus(int map_fd, uint32_t key, uint32_t nr_possible_cpus, uint64_t *ret_words, uint32_t nr_words);
/* Waits until every program run that had started before the call, at events with interrupts off (as the scheduler's), has finished. It does
 * not wait for RCU: its readers may be preempted, and then wait for a CPU like any thread. That took 25 s at load 13, with threads of nice
 * 10. */
void map_settle(void);
/* One item written by an iterator's program; borrowed for the call. A negative result stops the reading. */
typedef int (*map_bytes_fn)(void *arg, const void *bytes);
/* Runs an iterator's program once for each thread. `fn` gets its output, `nr_bytes` at a time; NULL: there is no output. Returns 0,
 * -ENOMEM, or what bpf(2) or fn returned. */
MUST_CHECK int map_each_thread(const struct bpf_program *program, uint32_t nr_bytes, map_bytes_fn fn, void *arg, struct diag *diag);
