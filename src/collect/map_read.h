/* SPDX-License-Identifier: Apache-2.0 */
/* map_read: what BPF programs have counted, and what it takes to read that whole. */
#pragma once
#include <bpf/libbpf.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

/* A negative result ends the reading. */
typedef int (*map_element_fn)(void *arg, const void *key, const void *value);
/* Calls `fn` for each element of a hash map that nobody writes to. 0, -ENOMEM, what bpf(2) or fn gave. */
MUST_CHECK int map_read(int map_fd, uint32_t key_bytes, uint32_t value_bytes, map_element_fn fn, void *arg);
/* The same, and takes them away. After an error some are lost. */
MUST_CHECK int map_take(int map_fd, uint32_t key_bytes, uint32_t value_bytes, map_element_fn fn, void *arg);
/* The element of a per-CPU array, nothing but 64-bit numbers, summed over the CPUs; zeros when it cannot be read. */
void map_sum_cpus(int map_fd, uint32_t key, uint32_t nr_possible_cpus, uint64_t *ret_words, uint32_t nr_words);
/* Waits until no program runs any more that ran when this was called, at events with interrupts off, as the scheduler's are. Not for RCU,
 * whose readers may be preempted, and then wait for a CPU as any thread: 25 s at load 13, with threads of nice 10 among them. */
void map_settle(void);
/* What an iterator's program has written: borrowed for the call. A negative result ends the reading. */
typedef int (*map_bytes_fn)(void *arg, const void *bytes);
/* Has an iterator's program look at each thread, once. `fn` gets what it writes, so many bytes at a time; NULL: it writes nothing. 0,
 * -ENOMEM, what bpf(2) or fn gave. */
MUST_CHECK int map_each_thread(const struct bpf_program *program, uint32_t nr_bytes, map_bytes_fn fn, void *arg, struct diag *diag);
