/* SPDX-License-Identifier: Apache-2.0 */
/* runq_watch: how many of the waits for a CPU were longer than a limit: so, whether their 99th percentile is, exactly, without a histogram.
 * A session of `runq --slower` tells of each long one, and counts all. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

struct runq_watch;
/* 0; or an error with a line: they cannot be watched. */
MUST_CHECK int runq_watch_start(uint64_t limit_ns, struct diag *diag, struct runq_watch **ret_watch);
/* Since it began. Any thread. */
void runq_watch_read(struct runq_watch *watch, uint64_t *ret_nr_long, uint64_t *ret_nr);
void runq_watch_end(struct runq_watch *watch); /* takes NULL */
