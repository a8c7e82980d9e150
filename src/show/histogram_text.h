/* SPDX-License-Identifier: Apache-2.0 */
/* histogram_text: a histogram as rows: half-open range, count, and a bar as wide as the row's share of the fullest row. */
#pragma once
#include "base/buffer.h"
#include "model/histogram.h"
#include "model/profile.h"

#define HISTOGRAM_BOUND_BYTES 24
#define HISTOGRAM_RANGE_BYTES (2 * HISTOGRAM_BOUND_BYTES)

/* 8192: "8K". */
void histogram_bound(char room[HISTOGRAM_BOUND_BYTES], uint64_t bound);
/* "[8K, 16K)", K = 1024; "[8E, ...)" if there is no upper end. */
void histogram_range(char room[HISTOGRAM_RANGE_BYTES], enum histogram_scale scale, uint32_t slot);
/* Write a slot's range, count and bar, or only count and bar. */
void histogram_row(struct buffer *buffer, const struct histogram *histogram, uint32_t slot, int bar_columns);
void histogram_cell(struct buffer *buffer, const struct histogram *histogram, uint32_t slot, int bar_columns);
/* Writes the rows from the first to the last slot that is not empty, each after `indent`. Nothing if all are empty. */
void histogram_print(struct buffer *buffer, const struct histogram *histogram, const char *indent);
/* Writes "run queue latency, pid 185 (us): 12 in all, average 34.5" and a newline; leaves out parts that are "". */
void histogram_heading(struct buffer *buffer, const char *name, const char *key, const char *unit, const struct histogram *histogram);
/* Writes heading and rows, each after `indent`. */
void histogram_print_one(struct buffer *buffer, const struct profile *profile, const struct profile_histogram *histogram,
			 const char *indent);
/* Writes heading and rows of the profile's histograms that belong to no stack, with a blank line after each. */
void histogram_print_whole(struct buffer *buffer, const struct profile *profile);
