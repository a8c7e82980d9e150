// SPDX-License-Identifier: Apache-2.0
#include "show/diff_histogram.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/interned.h"
#include "show/histogram_text.h"
#include "show/show_text.h"

#define BAR_COLUMNS 18
#define UNIT_COLUMNS 16
#define TAIL_PERCENT 99
#define KEY_BYTES 512

enum { BEFORE, AFTER };

bool diff_has_histograms(const struct profile *profile)
{
	for (uint32_t i = 0; i < profile_nr_histograms(profile); i++) {
		if (!histogram_has_stack(profile_histogram_at(profile, i)))
			return true;
	}
	return false;
}

/* Finds or adds the pair of a histogram. NULL: no memory. */
static struct diff_histogram *pair_of(struct interned *pairs, const struct profile *from, const struct profile_histogram *at,
				      struct profile *to)
{
	struct diff_histogram wanted = { .name = profile_string(to, profile_string_text(from, at->name)),
					 .key = profile_string(to, profile_string_text(from, at->key)),
					 .unit = profile_string(to, profile_string_text(from, at->unit)),
					 .scale = at->histogram.scale };
	uint32_t number;

	if (wanted.name == PROFILE_NONE || wanted.key == PROFILE_NONE || wanted.unit == PROFILE_NONE)
		return NULL;
	wanted.histograms[BEFORE].scale = wanted.histograms[AFTER].scale = wanted.scale;
	number = interned_add(pairs, &wanted);
	return number == INTERNED_NONE ? NULL : interned_at(pairs, number);
}

static int add_side(const struct profile *from, struct profile *to, int side, struct interned *pairs)
{
	for (uint32_t i = 0; i < profile_nr_histograms(from); i++) {
		const struct profile_histogram *at = profile_histogram_at(from, i);
		struct diff_histogram *pair;

		if (histogram_has_stack(at))
			continue;
		pair = pair_of(pairs, from, at, to);
		if (!pair)
			return -ENOMEM;
		pair->has[side] = true;
		pair->histograms[side] = at->histogram;
	}
	return 0;
}

int diff_histograms(const struct profile *before, const struct profile *after, struct profile *to, struct diff_histogram **ret_pairs,
		    uint32_t *ret_nr)
{
	CLEANUP(interned_done)
	struct interned pairs = INTERNED_INIT(struct diff_histogram, offsetof(struct diff_histogram, has), UINT64_MAX);
	int err = add_side(before, to, BEFORE, &pairs);

	if (!err)
		err = add_side(after, to, AFTER, &pairs);
	if (err)
		return err;
	*ret_nr = pairs.nr;
	*ret_pairs = (struct diff_histogram *)MOVE(pairs.entries);
	return 0;
}

static int keep_side(struct profile *profile, const struct diff_histogram *pair, int side)
{
	static const char *const names[] = { "before", "after" };
	struct profile_histogram kept = { .name = pair->name,
					  .unit = pair->unit,
					  .user_stack = PROFILE_NONE,
					  .kernel_stack = PROFILE_NONE,
					  .histogram = pair->histograms[side] };
	const char *key = profile_string_text(profile, pair->key);
	char text[KEY_BYTES];

	snprintf(text, sizeof(text), "%.*s%s%s", (int)sizeof(text) - 16, key, key[0] ? ", " : "", names[side]);
	kept.key = profile_string(profile, text);
	return kept.key == PROFILE_NONE || profile_histogram(profile, &kept) == PROFILE_NONE ? -ENOMEM : 0;
}

int diff_keep_histograms(struct profile *profile, const struct diff_histogram *pairs, uint32_t nr)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < nr; i++) {
		for (int side = BEFORE; !err && side <= AFTER; side++)
			err = pairs[i].has[side] ? keep_side(profile, &pairs[i], side) : 0;
	}
	return err;
}

/* The slot below whose upper end this percentage of the values lies. The histogram is not empty. */
static uint32_t slot_of_percent(const struct histogram *histogram, uint32_t percent)
{
	double wanted = (double)histogram_count(histogram) * percent / 100, seen = 0;
	uint32_t last = histogram_last(histogram);

	for (uint32_t slot = 0; slot < last; slot++) {
		seen += (double)histogram->slots[slot];
		if (seen >= wanted)
			return slot;
	}
	return last;
}

static void write_high(const struct histogram *histogram, uint32_t slot, const char *unit, struct buffer *buffer)
{
	char room[HISTOGRAM_BOUND_BYTES];
	uint64_t low, high;

	histogram_bounds((enum histogram_scale)histogram->scale, slot, &low, &high);
	if (high == UINT64_MAX) {
		buffer_text(buffer, "no bound");
		return;
	}
	histogram_bound(room, high);
	buffer_text(buffer, room);
	buffer_text(buffer, *unit ? " " : "");
	show_name(buffer, unit);
}

static void write_side(const struct diff_histogram *pair, int side, const char *unit, struct buffer *buffer)
{
	const struct histogram *histogram = &pair->histograms[side];
	uint64_t count = histogram_count(histogram);

	buffer_printf(buffer, "%s %" PRIu64 " in all", side ? "after: " : "before:", count);
	if (count) {
		buffer_printf(buffer, ", average %.1f, half below ", (double)histogram->sum / (double)count);
		write_high(histogram, slot_of_percent(histogram, 50), unit, buffer);
		buffer_printf(buffer, ", %d %% below ", TAIL_PERCENT);
		write_high(histogram, slot_of_percent(histogram, TAIL_PERCENT), unit, buffer);
		buffer_text(buffer, ", all below ");
		write_high(histogram, histogram_last(histogram), unit, buffer);
	}
	buffer_text(buffer, "\n");
}

/* Writes how many values of the side with the longer tail are beyond the other side's end. */
static void write_beyond(const struct diff_histogram *pair, int side, const char *unit, struct buffer *buffer)
{
	const struct histogram *histogram = &pair->histograms[side];
	uint64_t count = histogram_count(histogram), nr = 0;
	uint32_t end = histogram_last(&pair->histograms[!side]);

	for (uint32_t slot = end + 1; slot < HISTOGRAM_SLOTS; slot++)
		nr += histogram->slots[slot];
	buffer_printf(buffer, "%" PRIu64 " of %" PRIu64 " (%.2f %%) %s not below ", nr, count, 100.0 * (double)nr / (double)count,
		      side ? "are" : "were");
	write_high(histogram, end, unit, buffer);
}

/* Compares the tails by their last slots, then by where the last hundredth begins. */
static void write_tail(const struct diff_histogram *pair, const char *unit, struct buffer *buffer)
{
	const struct histogram *before = &pair->histograms[BEFORE], *after = &pair->histograms[AFTER];
	uint32_t last[2] = { histogram_last(before), histogram_last(after) };
	uint32_t most[2] = { slot_of_percent(before, TAIL_PERCENT), slot_of_percent(after, TAIL_PERCENT) };

	if (last[AFTER] < last[BEFORE]) {
		buffer_text(buffer, "the tail is gone: ");
		write_beyond(pair, BEFORE, unit, buffer);
		buffer_text(buffer, " before, none is after\n");
	} else if (most[AFTER] < most[BEFORE]) {
		buffer_text(buffer, "the tail is thinner, but not gone\n");
	} else if (last[AFTER] > last[BEFORE]) {
		buffer_text(buffer, "the tail is longer: ");
		write_beyond(pair, AFTER, unit, buffer);
		buffer_text(buffer, " after, none was before\n");
	} else if (most[AFTER] > most[BEFORE]) {
		buffer_text(buffer, "the tail is thicker, but not longer\n");
	} else {
		buffer_text(buffer, "the tail is as long as before\n");
	}
}

static void write_rows(const struct diff_histogram *pair, struct buffer *buffer)
{
	const struct histogram *before = &pair->histograms[BEFORE], *after = &pair->histograms[AFTER];
	uint32_t first[2] = { histogram_first(before), histogram_first(after) },
		 last[2] = { histogram_last(before), histogram_last(after) };

	for (uint32_t slot = first[0] < first[1] ? first[0] : first[1]; slot <= (last[0] > last[1] ? last[0] : last[1]); slot++) {
		histogram_row(buffer, before, slot, BAR_COLUMNS);
		histogram_cell(buffer, after, slot, BAR_COLUMNS);
		buffer_text(buffer, "\n");
	}
}

static void write_heading(const char *unit, struct buffer *buffer)
{
	size_t from = buffer->size, size;

	show_name(buffer, unit);
	size = buffer->size - from;
	buffer_printf(buffer, "%*s %8s %*s %8s\n", size < UNIT_COLUMNS ? (int)(UNIT_COLUMNS - size) : 0, "", "BEFORE", BAR_COLUMNS + 2, "",
		      "AFTER");
}

void show_diff_histogram(const struct diff_histogram *pair, const struct profile *profile, struct buffer *buffer)
{
	const char *unit = profile_string_text(profile, pair->unit);
	bool has_both = histogram_count(&pair->histograms[BEFORE]) && histogram_count(&pair->histograms[AFTER]);

	show_name(buffer, profile_string_text(profile, pair->name));
	buffer_text(buffer, *profile_string_text(profile, pair->key) ? ", " : "");
	show_name(buffer, profile_string_text(profile, pair->key));
	if (!pair->has[BEFORE] || !pair->has[AFTER])
		buffer_text(buffer, pair->has[BEFORE] ? ": only before" : ": only after");
	buffer_text(buffer, "\n");
	for (int side = BEFORE; side <= AFTER; side++) {
		if (pair->has[side])
			write_side(pair, side, unit, buffer);
	}
	if (has_both) {
		write_tail(pair, unit, buffer);
		write_heading(unit, buffer);
		write_rows(pair, buffer);
	} else {
		histogram_print(buffer, &pair->histograms[pair->has[AFTER] && histogram_count(&pair->histograms[AFTER]) ? AFTER : BEFORE],
				"");
	}
}
