/* SPDX-License-Identifier: Apache-2.0 */
/* allowance: CPU time that reading processes may take, in this thread and in the proxy: a share of the time that passes. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "proxy/proxy.h"

#define ALLOWANCE_FEW_NS (20 * NS_PER_MS)

struct allowance {
	int64_t left_ns;   /* less than 0: more was taken */
	int64_t max_ns;    /* of what was not taken */
	uint64_t given_ns; /* when it was last updated */
};

static inline struct allowance allowance_new(uint64_t max_ns)
{
	return (struct allowance){ (int64_t)max_ns, (int64_t)max_ns, clock_ns() };
}

/* May something be done now? It is given one part of `share`. */
static inline bool allowance_is_given(struct allowance *allowance, uint64_t share)
{
	uint64_t now_ns = clock_ns();

	allowance->left_ns += (int64_t)((now_ns - allowance->given_ns) / share);
	allowance->given_ns = now_ns;
	if (allowance->left_ns > allowance->max_ns)
		allowance->left_ns = allowance->max_ns;
	return allowance->left_ns > (int64_t)NS_PER_MS;
}

static inline uint64_t allowance_cpu_ns(const struct proxy *proxy)
{
	return clock_of_ns(CLOCK_THREAD_CPUTIME_ID) + proxy_cpu_ns(proxy);
}

/* It began at that CPU time; `took_ns` by the clock. */
static inline void allowance_charge(struct allowance *allowance, const struct proxy *proxy, uint64_t from_ns, uint64_t took_ns)
{
	uint64_t to_ns = allowance_cpu_ns(proxy);

	if (to_ns > from_ns) /* else the proxy was restarted */
		took_ns = to_ns - from_ns;
	allowance->left_ns -= (int64_t)took_ns;
}
