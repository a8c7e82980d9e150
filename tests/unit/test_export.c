// SPDX-License-Identifier: Apache-2.0
/* The golden files are in tests/golden/export. SONDE_GOLDEN_UPDATE=1 rewrites them; review the changes like code. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "codec/protobuf.h"
#include "base/reader.h"
#include "show/diff.h"
#include "output/export.h"
#include "show/show.h"
#include "golden.h"
#include "made_up_profile.h"
#include "small_profile.h"

/* With --wrap: counts down to the allocation that fails; negative: none. */
static long fails_after = -1;
static bool failed;

void *__real_malloc(size_t size);
void *__real_calloc(size_t nr, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t nr, size_t size);
void *__wrap_realloc(void *old, size_t size);

static bool fails_now(void)
{
	if (fails_after < 0 || fails_after-- > 0)
		return false;
	failed = true;
	return true;
}

void *__wrap_malloc(size_t size)
{
	return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t nr, size_t size)
{
	return fails_now() ? NULL : __real_calloc(nr, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails_now() ? NULL : __real_realloc(old, size);
}

static void the_layouts(void **state)
{
	static const struct {
		const char *name;
		enum export_format format;
		struct export_options options;
	} cases[] = {
		{ "plain.text", EXPORT_TEXT, { 0 } },
		{ "delimited-annotated.text", EXPORT_TEXT, { .delimited = true, .annotate = true } },
		{ "offsets.text", EXPORT_TEXT, { .offsets = true, .annotate = true } },
		{ "threads.text", EXPORT_TEXT, { .threads = true } },
		{ "plain.folded", EXPORT_FOLDED, { 0 } },
		{ "delimited-annotated.folded", EXPORT_FOLDED, { .delimited = true, .annotate = true } },
		{ "offsets.folded", EXPORT_FOLDED, { .offsets = true, .annotate = true } },
		{ "threads.folded", EXPORT_FOLDED, { .threads = true } },
		{ "profile.json", EXPORT_JSON, { 0 } },
		{ "profile.top", EXPORT_TOP, { 0 } },
	};
	CLEANUP(profile_freep) struct profile *profile = made_up_profile();

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(MAX_BYTES);

		write_ok(profile, cases[i].format, &cases[i].options, &buffer);
		check_golden(cases[i].name, buffer.data, buffer.size);
	}
}

static void waits(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = made_up_waits_profile();
	static const struct {
		const char *name;
		enum export_format format;
		struct export_options options;
	} cases[] = {
		{ "waits.text", EXPORT_TEXT, { 0 } },
		{ "waits-threads.text", EXPORT_TEXT, { .threads = true, .delimited = true, .annotate = true } },
		{ "waits.folded", EXPORT_FOLDED, { .delimited = true } },
		{ "waits.json", EXPORT_JSON, { 0 } },
		{ "waits.top", EXPORT_TOP, { 0 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(MAX_BYTES);

		write_ok(profile, cases[i].format, &cases[i].options, &buffer);
		check_golden(cases[i].name, buffer.data, buffer.size);
	}
}

/* Output of sonde show, and of sonde diff with one more wait, longer than all. */
static void waits_in_a_terminal(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = made_up_waits_profile();
	CLEANUP(profile_freep) struct profile *after = made_up_waits_profile();
	CLEANUP(buffer_done) struct buffer summary = BUFFER_INIT(MAX_BYTES), changes = BUFFER_INIT(MAX_BYTES);
	CLEANUP(diff_done) struct diff diff = { 0 };
	const struct show_options options = { .width = 100 };
	struct profile_histogram longer = *profile_histogram_at(after, 0);

	memset(&longer.histogram, 0, sizeof(longer.histogram));
	histogram_add(&longer.histogram, 9000000, 1);
	assert_int_equal(profile_histogram(after, &longer), 0);
	assert_int_equal(show_summary(profile, &options, &summary), 0);
	check_golden("waits.show", summary.data, summary.size);
	assert_int_equal(diff_make(profile, after, "time", NULL, &diff), 0);
	show_diff(&diff, &options, &changes);
	check_golden("waits.diff", changes.data, changes.size);
}

/* A format that adds values up refuses the shortest and longest wait. */
static void only_sums_are_added_up(void **state)
{
	static const char *const names[] = { "count", "time", "shortest", "longest" };
	CLEANUP(profile_freep) struct profile *profile = made_up_waits_profile();
	struct profile_value_type types[PROFILE_MAX_VALUES];
	uint32_t nr_types;

	memcpy(types, profile_value_types(profile, &nr_types), sizeof(types));
	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(profile_find_value(profile, names[i]), i);
		profile_set_value_types(profile, types, nr_types, i);
		for (enum export_format format = 0; format < EXPORT_FORMAT_COUNT; format++) {
			CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(MAX_BYTES);
			bool takes_all =
			    format == EXPORT_TEXT || format == EXPORT_FOLDED || format == EXPORT_JSON || format == EXPORT_JSONL;
			struct diag diag = { 0 };

			assert_int_equal(export_write(profile, format, &(struct export_options){ 0 }, &buffer, &diag),
					 i < 2 || takes_all ? 0 : -EINVAL);
			assert_int_equal(!!strstr(diag.text, "is not a sum"), i >= 2 && !takes_all);
			if (format == EXPORT_FOLDED)
				assert_non_null(strstr(buffer.data, i == 0   ? ";[futex] 6\n"
								    : i == 1 ? ";[futex] 3084005\n"
								    : i == 2 ? ";[futex] 5\n"
									     : ";[futex] 3000000\n"));
		}
	}
	assert_int_equal(profile_find_value(profile, "samples"), PROFILE_NONE);
}

/* The shape of a protobuf message, to print it as text: the wire format does not say which fields are messages. */
struct shape {
	const char *path; /* field numbers: ".4.4" */
	char kind;	  /* m: message, p: packed numbers; else text */
};

static char shape_of(const char *path)
{
	static const struct shape shapes[] = { { ".1", 'm' }, { ".2", 'm' }, { ".2.1", 'p' }, { ".2.2", 'p' }, { ".2.3", 'm' },
					       { ".3", 'm' }, { ".4", 'm' }, { ".4.4", 'm' }, { ".5", 'm' },   { ".11", 'm' } };

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		if (!strcmp(path, shapes[i].path))
			return shapes[i].kind;
	}
	return 't';
}

static void dump_message(struct reader *r, const char *path, struct buffer *text)
{
	while (reader_left(r)) {
		uint64_t tag = reader_uleb(r);
		struct reader content;
		char field[64];

		snprintf(field, sizeof(field), "%s.%" PRIu64, path, tag >> 3);
		if ((tag & 7) == 0) {
			buffer_printf(text, " %s=%" PRIu64, field, reader_uleb(r));
			continue;
		}
		assert_int_equal(tag & 7, 2);
		content = reader_sub(r, reader_uleb(r));
		assert_false(r->bad);
		if (!*path)
			buffer_text(text, "\n");
		buffer_printf(text, " %s=", field);
		if (shape_of(field) == 'm') {
			buffer_text(text, "{");
			dump_message(&content, field, text);
			buffer_text(text, " }");
		} else if (shape_of(field) == 'p') {
			while (reader_left(&content))
				buffer_printf(text, "%" PRIu64 ",", reader_uleb(&content));
		} else {
			buffer_printf(text, "'%.*s'", (int)reader_left(&content), (const char *)content.pos);
		}
		assert_false(content.bad);
	}
}

static void gunzip(const struct buffer *from, struct buffer *to)
{
	z_stream stream = { .next_in = (Bytef *)from->data, .avail_in = (uInt)from->size };

	stream.next_out = buffer_reserve(to, MAX_BYTES / 2);
	stream.avail_out = MAX_BYTES / 2;
	assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	to->size -= stream.avail_out;
	assert_int_equal(stream.avail_in, 0);
	inflateEnd(&stream);
}

static void dump_pprof(const struct profile *profile, struct buffer *text)
{
	CLEANUP(buffer_done) struct buffer gzipped = BUFFER_INIT(MAX_BYTES), message = BUFFER_INIT(MAX_BYTES);
	struct reader r;

	write_ok(profile, EXPORT_PPROF, &(struct export_options){ 0 }, &gzipped);
	gunzip(&gzipped, &message);
	r = reader_of(message.data, message.size);
	dump_message(&r, "", text);
	assert_false(r.bad);
	buffer_text(text, "\n");
}

static void pprof_field_by_field(void **state)
{
	CLEANUP(buffer_done) struct buffer text = BUFFER_INIT(MAX_BYTES);
	CLEANUP(profile_freep) struct profile *profile = made_up_profile();

	dump_pprof(profile, &text);
	check_golden("profile.pprof.dump", text.data, text.size);
	profile_free(profile);
	profile = made_up_waits_profile();
	text.size = 0;
	dump_pprof(profile, &text);
	check_golden("waits.pprof.dump", text.data, text.size);
}

/* The numbers of pprof are signed: larger values become the largest one. Without a period there are only samples. */
static void pprof_values(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	CLEANUP(buffer_done) struct buffer counted = BUFFER_INIT(MAX_BYTES);
	struct profile_sample sample = { .user_stack = PROFILE_NONE, .kernel_stack = PROFILE_NONE, .values = { 1LL << 62 } };

	snprintf(profile_account(profile)->event, sizeof(profile_account(profile)->event), "page-faults");
	snprintf(profile_account(profile)->event_unit, sizeof(profile_account(profile)->event_unit), "count");
	assert_int_equal(profile_add(profile, &sample), 0);
	for (uint64_t period = 2; period <= 4; period += 2) { /* above INT64_MAX, above UINT64_MAX */
		CLEANUP(buffer_done) struct buffer clamped = BUFFER_INIT(MAX_BYTES);

		profile_account(profile)->period = period;
		dump_pprof(profile, &clamped);
		assert_non_null(strstr(clamped.data, ".2.2=4611686018427387904,9223372036854775807,"));
		assert_non_null(strstr(clamped.data, "'page-faults'"));
	}
	profile_account(profile)->period = 0;
	profile_account(profile)->freq_hz = 99;
	dump_pprof(profile, &counted);
	assert_non_null(strstr(counted.data, ".2.2=4611686018427387904, "));
	assert_null(strstr(counted.data, "'page-faults'"));
}

static void check_html_data(const struct profile *profile, bool threads, const char *golden)
{
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(MAX_BYTES);
	static const char begin[] = "<script type=\"application/json\" id=\"profile\">";
	char *data, *end;

	write_ok(profile, EXPORT_HTML, &(struct export_options){ .threads = threads }, &buffer);
	data = strstr(buffer.data, begin);
	assert_non_null(data);
	data += strlen(begin);
	end = strchr(data, '<'); /* the first one ends the element: nothing before it can */
	assert_non_null(end);
	assert_memory_equal(end, "</script>", 9);
	assert_null(memchr(data, '>', (size_t)(end - data)));
	assert_null(memchr(data, '&', (size_t)(end - data)));
	check_golden(golden, data, (size_t)(end - data));
}

static void html_data(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = made_up_profile();

	check_html_data(profile, false, "plain.html.json");
	check_html_data(profile, true, "threads.html.json");
	profile_free(profile);
	profile = made_up_waits_profile();
	check_html_data(profile, false, "waits.html.json");
}

/* The same samples, numbered in reverse. */
static struct profile *turned(const struct profile *from)
{
	struct profile *to = profile_new();

	for (uint32_t i = profile_nr_samples(from); i-- > 0;) {
		struct profile_sample sample = *profile_sample_at(from, i);

		for (int state = 0; state < 2; state++) {
			uint32_t *stack = state ? &sample.user_stack : &sample.kernel_stack, locations[64], nr_locations;
			const uint32_t *old;

			if (*stack == PROFILE_NONE)
				continue;
			old = profile_stack_at(from, *stack, &nr_locations);
			for (uint32_t j = 0; j < nr_locations; j++) {
				struct profile_location location = *profile_location_at(from, old[j]);
				struct profile_function function = *profile_function_at(from, location.function);

				function.name = profile_string(to, profile_string_text(from, function.name));
				function.file = profile_string(to, profile_string_text(from, function.file));
				function.system_name = 0;
				location.function = profile_function(to, &function);
				location.mapping = PROFILE_NONE;
				locations[j] = profile_location(to, &location);
			}
			*stack = profile_stack(to, locations, nr_locations);
		}
		sample.comm = profile_string(to, profile_string_text(from, sample.comm));
		assert_int_equal(profile_add(to, &sample), 0);
	}
	*profile_account(to) = *profile_account_of(from);
	return to;
}

static void order_does_not_depend_on_numbers(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = made_up_profile();
	CLEANUP(profile_freep) struct profile *other = turned(profile);

	for (unsigned int bits = 0; bits < 4; bits++) {
		struct export_options options = { .threads = bits & 1, .offsets = bits & 2 };

		for (enum export_format format = EXPORT_TEXT; format <= EXPORT_FOLDED; format++) {
			CLEANUP(buffer_done) struct buffer a = BUFFER_INIT(MAX_BYTES), b = BUFFER_INIT(MAX_BYTES);

			write_ok(profile, format, &options, &a);
			write_ok(other, format, &options, &b);
			assert_string_equal(a.data, b.data);
		}
	}
}

/* No delimiter if one side was not requested. */
static void one_side_needs_no_delimiter(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = made_up_profile();
	static const struct export_options all[] = {
		{ .delimited = true },
		{ .delimited = true, .user_only = true },
		{ .delimited = true, .kernel_only = true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		CLEANUP(buffer_done) struct buffer text = BUFFER_INIT(MAX_BYTES), folded = BUFFER_INIT(MAX_BYTES);

		write_ok(profile, EXPORT_TEXT, &all[i], &text);
		write_ok(profile, EXPORT_FOLDED, &all[i], &folded);
		assert_int_equal(!!strstr(text.data, "\n    --\n"), i == 0);
		assert_int_equal(!!strstr(folded.data, ";-;"), i == 0);
	}
}

static void an_empty_profile_is_a_report(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	static const char *const begins[] = { "\n",
					      "",
					      "{\"format\":\"sonde-profile\",\"version\":2,",
					      "\x1f\x8b\x08",
					      "<!doctype html>",
					      "",
					      "{\"record\":\"account\",",
					      "{\"$schema\":",
					      "{\"meta\":",
					      "{\"nodes\":",
					      "# ========\n",
					      "{\n\"resourceProfiles\":",
					      "\x12",
					      "\x12",
					      "\x12",
					      "<?xml" };

	for (enum export_format format = 0; format < EXPORT_FORMAT_COUNT; format++) {
		CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(MAX_BYTES);

		write_ok(profile, format, &(struct export_options){ 0 }, &buffer);
		assert_true(buffer.size >= strlen(begins[format]));
		assert_memory_equal(buffer.size ? buffer.data : "", begins[format], strlen(begins[format]));
		if (format <= EXPORT_FOLDED)
			assert_int_equal(buffer.size, strlen(begins[format]));
	}
}

static void equal_profiles_give_equal_bytes(void **state)
{
	CLEANUP(profile_freep) struct profile *a = made_up_profile(), *b = made_up_profile();

	for (enum export_format format = 0; format < EXPORT_FORMAT_COUNT; format++) {
		CLEANUP(buffer_done) struct buffer from_a = BUFFER_INIT(MAX_BYTES), from_b = BUFFER_INIT(MAX_BYTES);

		write_ok(a, format, &(struct export_options){ 0 }, &from_a);
		write_ok(b, format, &(struct export_options){ 0 }, &from_b);
		assert_int_equal(from_a.size, from_b.size);
		assert_memory_equal(from_a.data, from_b.data, from_a.size);
	}
}

static void formats_have_names(void **state)
{
	static const struct {
		const char *path;
		enum export_format format;
	} paths[] = { { "x.txt", EXPORT_TEXT },	 { "a/b.folded", EXPORT_FOLDED }, { "b.collapsed", EXPORT_FOLDED },
		      { "p.json", EXPORT_JSON }, { "p.pb.gz", EXPORT_PPROF },	  { "./p.pprof", EXPORT_PPROF },
		      { "p.html", EXPORT_HTML }, { "p.htm", EXPORT_HTML },
		      { "p.top", EXPORT_TOP },	 { "p.jsonl", EXPORT_JSONL },	  { "p.speedscope.json", EXPORT_SPEEDSCOPE },
		      { "speedscope.json", EXPORT_JSON }, { "a.firefox.json", EXPORT_FIREFOX }, { "x.cpuprofile", EXPORT_CPUPROFILE },
		      { "out.perf", EXPORT_PERF_SCRIPT }, { "a.otlp.json", EXPORT_OTLP_JSON },
		      { "a.otlp.pb", EXPORT_OTLP_PROTOBUF }, { "a.svg", EXPORT_SVG } };
	enum export_format format = EXPORT_FORMAT_COUNT;
	struct diag diag = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		assert_int_equal(export_format_by_path(paths[i].path, NULL, &format), 0);
		assert_int_equal(format, paths[i].format);
	}
	assert_int_equal(export_format_by_path("profile.gz", &diag, &format), -EINVAL);
	assert_string_equal(diag.text,
			    "no format matches the name 'profile.gz'; known suffixes: .txt .folded .collapsed .json .pb.gz .pprof "
			    ".html .htm .top .jsonl .ndjson .speedscope.json .firefox.json .cpuprofile .perf "
			    ".otlp.json .otlp.pb .otlp .1.9.otlp .1.8.otlp .svg (or say --format)");
	assert_int_equal(export_format_by_path(".html", NULL, &format), -EINVAL);
	assert_int_equal(export_format_by_path("", NULL, &format), -EINVAL);
	assert_int_equal(export_format_by_name("pprof", NULL, &format), 0);
	assert_int_equal(format, EXPORT_PPROF);
	diag = (struct diag){ 0 };
	assert_int_equal(export_format_by_name("pdf", &diag, &format), -EINVAL);
	assert_string_equal(diag.text,
			    "unknown format 'pdf'; there are: text folded json pprof html top jsonl speedscope firefox cpuprofile perf "
			    "otlp-json otlp otlp-1.9 otlp-1.8 svg");
	for (format = 0; format < EXPORT_FORMAT_COUNT; format++)
		assert_int_equal(export_format_by_name(export_format_name(format), NULL, &format), 0);
}

static void too_large_is_said(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = made_up_profile();

	for (enum export_format format = 0; format < EXPORT_FORMAT_COUNT; format++) {
		CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(100);
		struct diag diag = { 0 };

		assert_int_equal(export_write(profile, format, &(struct export_options){ 0 }, &buffer, &diag), -EFBIG);
		assert_int_equal(diag.err, EFBIG);
	}
}

/* Makes reports longer than a window. */
static void add_many(struct profile *profile)
{
	char names[64];

	for (int i = 0; i < 3000; i++) {
		snprintf(names, sizeof(names), "leaf_%d step_%d work_%d main", i, i % 7, i % 211);
		small_add(profile, i % 3 ? "one" : "", 1 + i % 5, names, i % 2 ? "do_work entry" : NULL, 1 + i % 9);
	}
}

static int collect(void *all, const void *bytes, size_t size)
{
	buffer_append(all, bytes, size);
	return 0;
}

static int refuse(void *nr_calls, const void *bytes, size_t size)
{
	++*(int *)nr_calls;
	return -ENOSPC;
}

/* Writing in windows gives the same bytes, and keeps no more of them than a window and a piece. */
static void what_leaves_as_it_is_made_is_the_same(void **state)
{
	static const enum export_format whole[] = { EXPORT_PPROF, EXPORT_OTLP_PROTOBUF, EXPORT_TOP };
	CLEANUP(profile_freep) struct profile *profile = made_up_profile();

	add_many(profile);
	for (enum export_format format = 0; format < EXPORT_FORMAT_COUNT; format++) {
		CLEANUP(buffer_done) struct buffer kept = BUFFER_INIT(MAX_BYTES);
		CLEANUP(buffer_done) struct buffer all = BUFFER_INIT(MAX_BYTES);
		CLEANUP(buffer_done) struct buffer window = BUFFER_INIT(MAX_BYTES);
		const struct export_options options = { .threads = format % 2, .delimited = true };
		bool is_whole = false;

		for (size_t i = 0; i < ARRAY_SIZE(whole); i++)
			is_whole |= format == whole[i];
		window.take = collect;
		window.taker = &all;
		write_ok(profile, format, &options, &kept);
		write_ok(profile, format, &options, &window);
		if (!is_whole)
			assert_in_range(window.capacity, 1, 4 * BUFFER_WINDOW_BYTES);
		buffer_give(&window);
		assert_int_equal(all.size, kept.size);
		assert_memory_equal(all.data, kept.data, kept.size);
		assert_int_equal(window.max, MAX_BYTES - all.size);
	}
}

/* Nothing is written after a full disk is reported, and nothing is retried. */
static void what_cannot_leave_ends_the_report(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = made_up_profile();
	CLEANUP(buffer_done) struct buffer window = BUFFER_INIT(MAX_BYTES);
	CLEANUP(buffer_done) struct buffer small = BUFFER_INIT(BUFFER_WINDOW_BYTES + 100);
	CLEANUP(buffer_done) struct buffer all = BUFFER_INIT(MAX_BYTES);
	struct diag diag = { 0 };
	int nr_calls = 0;

	add_many(profile);
	window.take = refuse;
	window.taker = &nr_calls;
	assert_int_equal(export_write(profile, EXPORT_JSONL, &(struct export_options){ 0 }, &window, NULL), -ENOSPC);
	assert_int_equal(nr_calls, 1);
	small.take = collect;
	small.taker = &all;
	assert_int_equal(export_write(profile, EXPORT_JSONL, &(struct export_options){ 0 }, &small, &diag), -EFBIG); /* every byte counts */
	assert_string_equal(diag.text, "the jsonl report is larger than 262244 bytes");
}

/* Whichever allocation fails: -ENOMEM, and no leak. */
static void check_no_memory(const struct profile *profile)
{
	for (enum export_format format = 0; format < EXPORT_FORMAT_COUNT; format++) {
		long nr_allocations = 0;

		do {
			CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(MAX_BYTES);
			int err;

			failed = false;
			fails_after = nr_allocations++;
			err = export_write(profile, format, &(struct export_options){ 0 }, &buffer, NULL);
			fails_after = -1;
			assert_int_equal(err, failed ? -ENOMEM : 0);
		} while (failed);
		assert_in_range(nr_allocations, 3, 1000);
	}
}

static void every_allocation_may_fail(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = made_up_profile();
	CLEANUP(profile_freep) struct profile *waits_profile = made_up_waits_profile();

	check_no_memory(profile);
	check_no_memory(waits_profile);
}

static void every_allocation_of_a_difference_may_fail(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = made_up_waits_profile();
	long nr_allocations = 0;

	do {
		CLEANUP(diff_done) struct diff diff = { 0 };
		int err;

		failed = false;
		fails_after = nr_allocations++;
		err = diff_make(profile, profile, NULL, NULL, &diff);
		fails_after = -1;
		assert_int_equal(err, failed ? -ENOMEM : 0);
	} while (failed);
	assert_in_range(nr_allocations, 10, 1000);
}

static void every_allocation_of_a_profile_may_fail(void **state)
{
	long nr_allocations = 0;

	do {
		CLEANUP(profile_freep) struct profile *profile = NULL;

		failed = false;
		fails_after = nr_allocations++;
		profile = profile_new();
		for (uint32_t i = 0; i < 200 && profile; i++) {
			char text[32];
			struct profile_location location = { .pc = i };
			struct profile_sample sample = { .tid = i };
			uint32_t string;

			snprintf(text, sizeof(text), "%u", i);
			string = profile_string(profile, text);
			if (string == PROFILE_NONE || profile_location(profile, &location) == PROFILE_NONE ||
			    profile_stack(profile, &i, 1) == PROFILE_NONE || profile_add(profile, &sample))
				break;
			assert_string_equal(profile_string_text(profile, string), text);
		}
		fails_after = -1;
	} while (failed);
	assert_in_range(nr_allocations, 20, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_layouts),
		cmocka_unit_test(waits),
		cmocka_unit_test(waits_in_a_terminal),
		cmocka_unit_test(only_sums_are_added_up),
		cmocka_unit_test(pprof_field_by_field),
		cmocka_unit_test(pprof_values),
		cmocka_unit_test(html_data),
		cmocka_unit_test(order_does_not_depend_on_numbers),
		cmocka_unit_test(one_side_needs_no_delimiter),
		cmocka_unit_test(an_empty_profile_is_a_report),
		cmocka_unit_test(equal_profiles_give_equal_bytes),
		cmocka_unit_test(formats_have_names),
		cmocka_unit_test(too_large_is_said),
		cmocka_unit_test(what_leaves_as_it_is_made_is_the_same),
		cmocka_unit_test(what_cannot_leave_ends_the_report),
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(every_allocation_of_a_difference_may_fail),
		cmocka_unit_test(every_allocation_of_a_profile_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
