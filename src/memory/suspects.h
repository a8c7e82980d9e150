/* SPDX-License-Identifier: Apache-2.0 */
/* suspects: stacks whose outstanding bytes grow steadily, by what was outstanding at each look. One thread. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "memory/outstanding.h"

/* A stack is a suspect when it grew between most of the looks since it was first seen, at least three times, and four times as often as it
 * shrank. A cache that fills up grows, too, until it is full: the rate is from the first look on, so it falls then. */
#define SUSPECT_MIN_GROWTHS 3
#define SUSPECT_GROWTHS_PER_FALL 4

struct suspects;
struct suspects *suspects_new(void); /* NULL: no memory */
void suspects_free(struct suspects *suspects); /* takes NULL */
/* Takes what is outstanding at that time (CLOCK_MONOTONIC), and fills in the growth of its suspects. 0 or -ENOMEM. */
MUST_CHECK int suspects_look(struct suspects *suspects, struct outstanding *outstanding, uint64_t now_ns);
