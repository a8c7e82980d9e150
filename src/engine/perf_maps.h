/* SPDX-License-Identifier: Apache-2.0 */
/* perf_maps: has processes write perf maps as long as they are measured, those whose runtime can be asked for that: .NET 8 and newer. It
 * changes what they do and leaves files, so it is for those that the user named. One thread. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "engine/target.h"
#include "model/account.h"

struct proxy;
struct perf_maps;
/* Asks all of them at once and waits for the answers, 3 s for all, or until `stop_fd` is readable. What a process does not do is noted.
 * Borrows the proxy. 0 or -ENOMEM. */
MUST_CHECK int perf_maps_begin(struct proxy *proxy, const struct targets *targets, int stop_fd, struct account *account,
			       struct perf_maps **ret_maps);
/* Those that began to write for us end it; what they wrote stays. Waits for them, 1 s for all. Accepts NULL. */
void perf_maps_end(struct perf_maps *maps, struct account *account);
