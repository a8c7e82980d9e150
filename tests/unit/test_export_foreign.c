// SPDX-License-Identifier: Apache-2.0
/* The formats of other programs. The golden files are in tests/golden/export. SONDE_GOLDEN_UPDATE=1 rewrites them; review the changes like
 * code. */
#include "golden.h"
#include "made_up_profile.h"

static const struct {
	const char *suffix; /* of the golden file */
	enum export_format format;
} formats[] = {
	{ "jsonl", EXPORT_JSONL },	     { "speedscope.json", EXPORT_SPEEDSCOPE }, { "firefox.json", EXPORT_FIREFOX },
	{ "cpuprofile", EXPORT_CPUPROFILE }, { "perf", EXPORT_PERF_SCRIPT },
	{ "otlp.json", EXPORT_OTLP_JSON },   { "svg", EXPORT_SVG },
};

static void check_formats(const char *which, const struct profile *profile)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(MAX_BYTES);
		char name[64];

		snprintf(name, sizeof(name), "%s.%s", which, formats[i].suffix);
		write_ok(profile, formats[i].format, &(struct export_options){ 0 }, &buffer);
		check_golden(name, buffer.data, buffer.size);
	}
}

static void hostile_names(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = made_up_profile();

	check_formats("profile", profile);
}

static void threads_with_times(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = made_up_threads_profile();

	check_formats("threads", profile);
}

static void waits(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = made_up_waits_profile();

	check_formats("waits", profile);
}

static void several_values(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = made_up_heap_profile();

	check_formats("heap", profile);
}

/* One thread with times: cpuprofile's time line shows its pause. Two threads: one after the other. */
static void one_thread_has_a_time_line(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	struct profile_sample sample = { .user_stack = PROFILE_NONE, .kernel_stack = PROFILE_NONE, .tgid = 1, .tid = 1, .values = { 1 } };

	profile_account(profile)->freq_hz = 100;
	snprintf(profile_account(profile)->event_unit, sizeof(profile_account(profile)->event_unit), "nanoseconds");
	for (int i = 0; i < 3; i++) {
		sample.time_ns = 1000000000 + (uint64_t)(i == 2 ? 50 : i * 10) * 1000000 + (uint64_t)i * 1000;
		assert_int_equal(profile_add(profile, &sample), 0);
	}
	for (uint32_t threads = 1; threads <= 2; threads++) {
		CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(MAX_BYTES);

		sample.tid = threads;
		sample.values[0] = threads - 1; /* zero in the first round */
		assert_int_equal(profile_add(profile, &sample), 0);
		write_ok(profile, EXPORT_CPUPROFILE, &(struct export_options){ 0 }, &buffer);
		if (threads == 1)
			assert_non_null(strstr(buffer.data, "\"samples\":[3,3,2,3,2],\n\"timeDeltas\":[0,10000,10000,30002,10000]"));
		else
			assert_non_null(strstr(buffer.data, "\"samples\":[3,3,3,4,2],\n\"timeDeltas\":[0,10000,10000,10000,10000]"));
	}
}

static void a_difference_has_its_colours(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = made_up_profile();
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(MAX_BYTES), threads = BUFFER_INIT(MAX_BYTES);
	struct profile_value_type types[] = { { .type = profile_string(profile, "before"), .unit = profile_string(profile, "count") },
					      { .type = profile_string(profile, "after"), .unit = profile_string(profile, "count") } };
	struct profile_sample sample = { .user_stack = PROFILE_NONE, .kernel_stack = PROFILE_NONE, .tid = 4711, .values = { 0, 60 } };

	profile_set_value_types(profile, types, 2, 1);
	sample.comm = profile_string(profile, "new");
	assert_int_equal(profile_add(profile, &sample), 0);
	sample = *profile_sample_at(profile, 0);
	sample.values[1] = sample.values[0] / 3;
	sample.values[0] = 0;
	assert_int_equal(profile_add(profile, &sample), 0);
	write_ok(profile, EXPORT_SVG, &(struct export_options){ 0 }, &buffer);
	assert_non_null(strstr(buffer.data, "<title>new (60 count, 85.71%; before 0)</title>"));
	assert_non_null(strstr(buffer.data, "fill=\"rgb(255,45,45)\""));
	assert_non_null(strstr(buffer.data, "<title>spin (10 count, 14.29%; before 47)</title>"));
	assert_non_null(strstr(buffer.data, ",255)\""));
	assert_null(strstr(buffer.data, "thread 4711"));
	write_ok(profile, EXPORT_SVG, &(struct export_options){ .threads = true }, &threads);
	assert_non_null(strstr(threads.data, "<title>thread 4711 ("));
}

/* A format that repeats a line per sample ends at the limit, for any number of samples. */
static void no_end_of_samples_is_too_large(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(MAX_BYTES);
	struct profile_sample sample = { .user_stack = PROFILE_NONE, .kernel_stack = PROFILE_NONE, .values = { 1 << 20 } };

	assert_int_equal(profile_add(profile, &sample), 0);
	assert_int_equal(export_write(profile, EXPORT_PERF_SCRIPT, &(struct export_options){ 0 }, &buffer, NULL), -EFBIG);
	assert_true(buffer.capacity < MAX_BYTES / 16); /* before the buffer is filled */
	sample.values[0] = INT64_MAX;
	assert_int_equal(profile_add(profile, &sample), 0);
	assert_int_equal(export_write(profile, EXPORT_PERF_SCRIPT, &(struct export_options){ 0 }, &buffer, NULL), -E2BIG);
}

/* A sample of process 7 with up to two labels of its process and one of its own. */
static void add_labelled(struct profile *profile, const char *service, const char *container, const char *route)
{
	const char *const keys[] = { "container.id", "service.name", "route" }, *const texts[] = { container, service, route };
	struct profile_label labels[ARRAY_SIZE(keys)] = { 0 };
	struct profile_sample sample = { .user_stack = PROFILE_NONE, .kernel_stack = PROFILE_NONE, .tgid = 7, .tid = 7, .values = { 1 } };
	uint32_t nr = 0;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (!texts[i])
			continue;
		labels[nr].key = profile_string(profile, keys[i]);
		labels[nr].text = profile_string(profile, texts[i]);
		labels[nr++].unit = PROFILE_EMPTY_STRING;
	}
	sample.labels = profile_labels(profile, labels, nr);
	assert_int_equal(profile_add(profile, &sample), 0);
}

static uint32_t count(const char *text, const char *what)
{
	uint32_t nr = 0;

	for (; (text = strstr(text, what)); text++)
		nr++;
	return nr;
}

/* OTLP: a resource for each set of labels of a process, whatever labels its samples have beside these. */
static void resources(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(MAX_BYTES);

	add_labelled(profile, "old", NULL, "/a");
	add_labelled(profile, "new", "c", "/a");
	add_labelled(profile, "old", NULL, "/b");
	add_labelled(profile, "new", NULL, NULL);
	add_labelled(profile, NULL, NULL, "/a");
	add_labelled(profile, NULL, NULL, NULL);
	add_labelled(profile, "new", "c", "/b");
	write_ok(profile, EXPORT_OTLP_JSON, &(struct export_options){ 0 }, &buffer);
	assert_int_equal(count(buffer.data, "\"resource\":"), 4);
	assert_int_equal(count(buffer.data, "\"stringValue\":\"old\""), 1);
	assert_int_equal(count(buffer.data, "\"stringValue\":\"new\""), 2);
	assert_int_equal(count(buffer.data, "\"key\":\"container.id\""), 1);
	assert_int_equal(count(buffer.data, "\"key\":\"route\""), 0); /* of a sample: by the dictionary */
	assert_int_equal(count(buffer.data, "\"values\":"), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile_names),
		cmocka_unit_test(threads_with_times),
		cmocka_unit_test(several_values),
		cmocka_unit_test(waits),
		cmocka_unit_test(one_thread_has_a_time_line),
		cmocka_unit_test(resources),
		cmocka_unit_test(a_difference_has_its_colours),
		cmocka_unit_test(no_end_of_samples_is_too_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
