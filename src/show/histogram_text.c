// SPDX-License-Identifier: Apache-2.0
#include "show/histogram_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "frames/frame_text.h"

#define BAR "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@"
#define BAR_COLUMNS   ((int)sizeof(BAR) - 1)
#define RANGE_COLUMNS 16
#define COUNT_COLUMNS 8

/* Only exact multiples are shortened: 1025 stays. */
void histogram_bound(char room[HISTOGRAM_BOUND_BYTES], uint64_t bound)
{
	static const char suffixes[] = "KMGTPE";
	int suffix = -1;

	while (bound && bound % 1024 == 0) {
		bound /= 1024;
		suffix++;
	}
	snprintf(room, HISTOGRAM_BOUND_BYTES, "%" PRIu64 "%.1s", bound, suffix < 0 ? "" : &suffixes[suffix]);
}

void histogram_range(char room[HISTOGRAM_RANGE_BYTES], enum histogram_scale scale, uint32_t slot)
{
	uint64_t low, high;
	char from[HISTOGRAM_BOUND_BYTES], to[HISTOGRAM_BOUND_BYTES] = "...";

	histogram_bounds(scale, slot, &low, &high);
	histogram_bound(from, low);
	if (high != UINT64_MAX)
		histogram_bound(to, high);
	snprintf(room, HISTOGRAM_RANGE_BYTES, "[%s, %s)", from, to);
}

static uint64_t fullest(const struct histogram *histogram)
{
	uint64_t most = 0;

	for (uint32_t slot = 0; slot < HISTOGRAM_SLOTS; slot++)
		most = histogram->slots[slot] > most ? histogram->slots[slot] : most;
	return most;
}

void histogram_cell(struct buffer *buffer, const struct histogram *histogram, uint32_t slot, int bar_columns)
{
	uint64_t most = fullest(histogram);
	int columns = most ? (int)((double)histogram->slots[slot] / (double)most * bar_columns) : 0;

	buffer_printf(buffer, " %*" PRIu64 " |%-*.*s|", COUNT_COLUMNS, histogram->slots[slot], bar_columns, columns, BAR);
}

void histogram_row(struct buffer *buffer, const struct histogram *histogram, uint32_t slot, int bar_columns)
{
	char range[HISTOGRAM_RANGE_BYTES];

	histogram_range(range, (enum histogram_scale)histogram->scale, slot);
	buffer_printf(buffer, "%-*s", RANGE_COLUMNS, range);
	histogram_cell(buffer, histogram, slot, bar_columns);
}

void histogram_print(struct buffer *buffer, const struct histogram *histogram, const char *indent)
{
	uint32_t last = histogram_last(histogram);

	for (uint32_t slot = histogram_first(histogram); last < HISTOGRAM_SLOTS && slot <= last; slot++) {
		buffer_text(buffer, indent);
		histogram_row(buffer, histogram, slot, BAR_COLUMNS);
		buffer_text(buffer, "\n");
	}
}

void histogram_heading(struct buffer *buffer, const char *name, const char *key, const char *unit, const struct histogram *histogram)
{
	uint64_t count = histogram_count(histogram);

	plain_text(buffer, name, ';');
	buffer_text(buffer, *key ? ", " : "");
	plain_text(buffer, key, ';');
	if (*unit) {
		buffer_text(buffer, " (");
		plain_text(buffer, unit, ';');
		buffer_text(buffer, ")");
	}
	buffer_printf(buffer, ": %" PRIu64 " in all", count);
	if (count)
		buffer_printf(buffer, ", average %.1f", (double)histogram->sum / (double)count);
	buffer_text(buffer, "\n");
}

void histogram_print_one(struct buffer *buffer, const struct profile *profile, const struct profile_histogram *histogram,
			 const char *indent)
{
	buffer_text(buffer, indent);
	histogram_heading(buffer, profile_string_text(profile, histogram->name), profile_string_text(profile, histogram->key),
			  profile_string_text(profile, histogram->unit), &histogram->histogram);
	histogram_print(buffer, &histogram->histogram, indent);
}

void histogram_print_whole(struct buffer *buffer, const struct profile *profile)
{
	for (uint32_t i = 0; i < profile_nr_histograms(profile); i++) {
		const struct profile_histogram *entry = profile_histogram_at(profile, i);

		if (histogram_has_stack(entry))
			continue;
		histogram_print_one(buffer, profile, entry, "");
		buffer_text(buffer, "\n");
	}
}
