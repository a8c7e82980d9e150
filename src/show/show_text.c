// SPDX-License-Identifier: Apache-2.0
#include "show/show_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "frames/frame_text.h"

#define BOLD  "\033[1m"
#define DIM   "\033[2m"
#define RED   "\033[31m"
#define RESET "\033[0m"
#define HOT_PERCENT 5.0
#define COLD_PERCENT 0.5
#define SHARE_COLUMNS 10
#define QUANTITY_COLUMNS 13

static void coloured(struct buffer *buffer, const struct show_options *options, const char *colour, const char *text)
{
	buffer_text(buffer, options->colour ? colour : "");
	buffer_text(buffer, text);
	buffer_text(buffer, options->colour ? RESET : "");
}

void show_heading(struct buffer *buffer, const struct show_options *options, const char *text)
{
	size_t from = buffer->size;

	coloured(buffer, options, BOLD, text);
	show_line_end(buffer, options, from);
}

void show_share(struct buffer *buffer, const struct show_options *options, int64_t part, int64_t all)
{
	double percent = all ? 100.0 * (double)part / (double)all : 0;
	char text[64];

	snprintf(text, sizeof(text), "%8.2f %%", percent);
	if (fabs(percent) >= HOT_PERCENT)
		coloured(buffer, options, RED, text);
	else if (fabs(percent) < COLD_PERCENT)
		coloured(buffer, options, DIM, text);
	else
		buffer_text(buffer, text);
}

struct scale {
	const char *unit, *shown;
	double factor;
};

static const struct scale scales[] = { /* by unit, largest first */
	{ "nanoseconds", "s", 1e9 }, { "nanoseconds", "ms", 1e6 }, { "nanoseconds", "us", 1e3 }, { "nanoseconds", "ns", 1 },
	{ "microseconds", "s", 1e6 }, { "microseconds", "ms", 1e3 }, { "microseconds", "us", 1 },
	{ "milliseconds", "s", 1e3 }, { "milliseconds", "ms", 1 }, { "seconds", "s", 1 },
	{ "bytes", "GiB", 1 << 30 }, { "bytes", "MiB", 1 << 20 }, { "bytes", "KiB", 1 << 10 }, { "bytes", "B", 1 },
};

static const struct scale *scale_of(const char *unit, double value)
{
	const struct scale *smallest = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(scales); i++) {
		if (strcmp(scales[i].unit, unit) != 0)
			continue;
		smallest = &scales[i];
		if (fabs(value) >= smallest->factor)
			return smallest;
	}
	return smallest;
}

void show_quantity(struct buffer *buffer, const char *unit, int64_t value, int columns)
{
	const struct scale *scale = scale_of(unit, (double)value);
	char text[64];

	if (scale && scale->factor > 1)
		snprintf(text, sizeof(text), "%.3f %s", (double)value / scale->factor, scale->shown);
	else
		snprintf(text, sizeof(text), "%" PRId64 "%s%s", value, scale ? " " : "", scale ? scale->shown : "");
	buffer_printf(buffer, "%*s", columns, text);
}

/* The unit of the shown value: "count", "nanoseconds". */
static const char *show_unit(const struct profile *profile)
{
	uint32_t nr_types;

	return profile_string_text(profile, profile_value_types(profile, &nr_types)[profile_shown_value(profile)].unit);
}

/* --- parts ---------------------------------------------------------------------------------------------------------------------------- */

void show_part(struct buffer *buffer, const struct profile *profile, const struct show_options *options, int64_t part, int64_t all)
{
	if (profile_shown_fold(profile) == VALUE_SUM)
		show_share(buffer, options, part, all);
	else if (part)
		show_quantity(buffer, show_unit(profile), part, QUANTITY_COLUMNS);
	else
		buffer_printf(buffer, "%*s", QUANTITY_COLUMNS, "-");
}

void show_parts(struct buffer *buffer, const struct profile *profile, const struct show_options *options, int64_t first,
		const int64_t *second, int64_t all)
{
	show_part(buffer, profile, options, first, all);
	if (second)
		show_part(buffer, profile, options, *second, all);
	if (profile_shown_fold(profile) == VALUE_SUM)
		show_quantity(buffer, show_unit(profile), first, QUANTITY_COLUMNS);
	buffer_text(buffer, "  ");
}

void show_parts_heading(struct buffer *buffer, const struct profile *profile, const struct show_options *options, const char *first,
			const char *second, const char *quantity, const char *rest)
{
	bool is_sum = profile_shown_fold(profile) == VALUE_SUM;
	int columns = is_sum ? SHARE_COLUMNS : QUANTITY_COLUMNS;
	char text[160];

	snprintf(text, sizeof(text), "%*s%*s%*s  %s", columns, first, second ? columns : 0, second ? second : "",
		 quantity && is_sum ? QUANTITY_COLUMNS : 0, quantity && is_sum ? quantity : "", rest);
	show_heading(buffer, options, text);
}

void show_name(struct buffer *buffer, const char *text)
{
	plain_text(buffer, text, ';');
}

void show_dim(struct buffer *buffer, const struct show_options *options, const char *text)
{
	if (!*text)
		return;
	buffer_text(buffer, "  ");
	buffer_text(buffer, options->colour ? DIM : "");
	plain_text(buffer, text, ';');
	buffer_text(buffer, options->colour ? RESET : "");
}

/* Chinese, Japanese and Korean characters and pictographs take two columns (Unicode standard annex 11: wide, in blocks). */
static uint32_t columns_of(uint32_t code)
{
	static const uint32_t wide[][2] = { { 0x1100, 0x115f }, { 0x2e80, 0xa4cf }, { 0xac00, 0xd7a3 },	  { 0xf900, 0xfaff },
					    { 0xfe30, 0xfe6f }, { 0xff00, 0xff60 }, { 0x1f300, 0x1faff }, { 0x20000, 0x3fffd } };

	for (size_t i = 0; i < ARRAY_SIZE(wide); i++) {
		if (code >= wide[i][0] && code <= wide[i][1])
			return 2;
	}
	return 1;
}

/* Where to cut the line so that an ellipsis fits, or `end` if the whole line fits. */
static const char *cut_of(const char *at, const char *end, uint32_t width)
{
	const char *cut = at;
	uint32_t column = 0;

	while (at < end) {
		if (*at == '\033') { /* our own: names have none */
			while (at < end && *at++ != 'm')
				;
			continue;
		}
		if (column < width)
			cut = at;
		column += columns_of(utf8_next(&at, end));
		if (column > width)
			return cut;
	}
	return end;
}

void show_line_end(struct buffer *buffer, const struct show_options *options, size_t from)
{
	const char *cut;

	while (buffer->size > from && buffer->data[buffer->size - 1] == ' ')
		buffer->size--;
	if (!buffer->err && options->width && buffer->size > from) {
		cut = cut_of(buffer->data + from, buffer->data + buffer->size, options->width);
		if (cut < buffer->data + buffer->size) {
			buffer->size = (size_t)(cut - buffer->data);
			buffer_text(buffer, "\xe2\x80\xa6");
			buffer_text(buffer, options->colour ? RESET : "");
		}
	}
	buffer_text(buffer, "\n");
}

void show_title(struct buffer *buffer, const struct profile *profile, const struct show_options *options, int64_t all)
{
	uint32_t nr_types, shown = profile_shown_value(profile);
	const struct profile_value_type *types = profile_value_types(profile, &nr_types);
	size_t from = buffer->size;

	show_name(buffer, profile_string_text(profile, types[shown].type));
	buffer_text(buffer, ": ");
	show_quantity(buffer, show_unit(profile), all, 0);
	buffer_text(buffer, types[shown].fold == VALUE_SUM ? " in all" : " of all");
	for (uint32_t i = 0; i < nr_types; i++) {
		if (i == shown)
			continue;
		buffer_text(buffer, i == 0 || (i == 1 && shown == 0) ? "; also (--value): " : ", ");
		show_name(buffer, profile_string_text(profile, types[i].type));
	}
	show_line_end(buffer, options, from);
}
