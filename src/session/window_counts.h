/* SPDX-License-Identifier: Apache-2.0 */
/* window_counts: the counts of a window's account under names, for struct sonde_window. */
#pragma once
#include <sonde/sonde.h>

#include "model/account.h"
#include "runtime/runtime.h"

#define WINDOW_COUNTS_OTHERS 16 /* room for those without a list of reasons */
#define WINDOW_MAX_COUNTS (WINDOW_COUNTS_OTHERS + SONDE_FILTER_COUNT + SONDE_DROP_COUNT + SONDE_STOP_COUNT + SONDE_RUNTIME_COUNT)

struct window_counts {
	struct sonde_window_count list[WINDOW_MAX_COUNTS];
	uint32_t nr;
};

void window_counts_fill(const struct account *account, struct window_counts *ret_counts);
