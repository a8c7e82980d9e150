// SPDX-License-Identifier: Apache-2.0
/* sonde reads what it writes without a change. Damaged files are refused with the position. */
#include "import_ways.h"

/* Writes a profile in a format and reads it back. In the format `as` both look the same. */
static void check_way(enum export_format through, enum export_format as)
{
	CLEANUP(profile_freep) struct profile *profile = made_up_profile();
	struct buffer written = write_as(profile, through);
	CLEANUP(profile_freep) struct profile *again = read_back(&written);

	check_same(profile, again, as);
	buffer_done(&written);
}

static void test_json_is_all_of_it(void **state)
{
	check_way(EXPORT_JSON, EXPORT_JSON);
}

static void test_json_keeps_waits(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = made_up_waits_profile();
	struct buffer written = write_as(profile, EXPORT_JSON);
	CLEANUP(profile_freep) struct profile *again = read_back(&written);
	uint32_t nr_types;

	check_same(profile, again, EXPORT_JSON);
	check_same(profile, again, EXPORT_TEXT);
	assert_int_equal(profile_nr_histograms(again), profile_nr_histograms(profile));
	assert_int_equal(profile_value_types(again, &nr_types)[3].fold, VALUE_MAX);
	buffer_done(&written);
}

/* Folds and ranges are checked, not trusted. */
static void test_json_of_waits_is_checked(void **state)
{
	static const struct {
		const char *text, *says; /* NULL: it is read */
	} cases[] = {
		{ "\"value_types\":[{\"type\":\"a\",\"unit\":\"b\",\"fold\":\"sum\"},{\"type\":\"c\",\"unit\":\"b\",\"fold\":\"max\"}]",
		  NULL },
		{ "\"value_types\":[{\"type\":\"a\",\"unit\":\"b\",\"fold\":\"mean\"}]", "values fold by sum, min or max" },
		{ "\"value_types\":[{\"type\":\"a\",\"unit\":\"b\",\"fold\":\"min\"},{\"type\":\"c\",\"unit\":\"b\"}]",
		  "that are sums stand before" },
		{ "\"histograms\":[{\"slots\":[{\"count\":3,\"high\":3,\"low\":2}],\"scale\":\"linear\",\"pid\":7}]", NULL },
		{ "\"histograms\":[{\"slots\":[{\"low\":2,\"high\":3,\"count\":3}],\"scale\":\"log2\"}]",
		  "a range is none of the histogram's" },
		{ "\"histograms\":[{\"slots\":[{\"low\":3,\"high\":4,\"count\":3}]}]", "a range is none of the histogram's" },
		{ "\"histograms\":[{\"slots\":[{\"low\":2,\"high\":4,\"count\":3},{\"low\":2,\"high\":4,\"count\":3}]}]",
		  "stands there twice" },
		{ "\"histograms\":[{\"slots\":[{\"low\":\"0x8000000000000000\",\"high\":null,\"count\":3}]}]", NULL },
		{ "\"histograms\":[{\"slots\":[{\"low\":2,\"high\":null,\"count\":3}]}]", "a range is none of the histogram's" },
		{ "\"histograms\":[{\"scale\":\"log10\"}]", "the scale of a histogram is log2 or linear" },
		{ "\"histograms\":[{\"user_stack\":1}]", "not in the list" },
		{ "\"histograms\":[{\"slots\":{}}]", "bad JSON" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(buffer_done) struct buffer text = BUFFER_INIT(MAX_BYTES);
		CLEANUP(profile_freep) struct profile *profile = NULL;
		struct diag diag = { 0 };
		int err;

		buffer_printf(&text, "{\"format\":\"sonde-profile\",\"version\":2,%s}", cases[i].text);
		err = try_read(text.data, text.size, &profile, &diag);
		assert_int_equal(err, cases[i].says ? -EBADMSG : 0);
		if (cases[i].says && !strstr(diag.text, cases[i].says))
			fail_msg("%s: %s", cases[i].text, diag.text);
		if (!cases[i].says && profile_nr_histograms(profile))
			assert_int_equal(histogram_count(&profile_histogram_at(profile, 0)->histogram), 3);
		if (!cases[i].says && profile_nr_histograms(profile)) /* without a stack: of no process */
			assert_int_equal(profile_histogram_at(profile, 0)->tgid, 0);
	}
}

static void test_pprof_keeps_stacks(void **state)
{
	check_way(EXPORT_PPROF, EXPORT_FOLDED);
	check_way(EXPORT_OTLP_PROTOBUF, EXPORT_FOLDED);
	check_way(EXPORT_OTLP_1_9, EXPORT_FOLDED);
	check_way(EXPORT_OTLP_1_8, EXPORT_FOLDED);
	check_way(EXPORT_OTLP_JSON, EXPORT_FOLDED);
}

/* The frame at the leaf end says what the kernel waited for. The frames after it keep their side. */
static void test_marks_of_waits_keep_sides(void **state)
{
	static const enum export_format formats[] = { EXPORT_PPROF, EXPORT_OTLP_PROTOBUF, EXPORT_OTLP_JSON, EXPORT_PERF_SCRIPT,
						      EXPORT_FOLDED };
	CLEANUP(profile_freep) struct profile *profile = made_up_waits_profile();

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		struct buffer written = write_as(profile, formats[i]);
		CLEANUP(profile_freep) struct profile *again = read_back(&written);
		struct buffer folded = write_as(again, EXPORT_FOLDED);

		assert_non_null(strstr(folded.data, ";__lll_lock_wait;-;do_syscall_64_[k];do_futex_[k];futex_wait_queue_[k];[futex] "));
		assert_non_null(strstr(folded.data, "worker;main;spin;[preempted] "));
		for (uint32_t k = 0; k < profile_nr_locations(again); k++) {
			const struct profile_location *at = profile_location_at(again, k);

			if (!strcmp(profile_string_text(again, profile_function_at(again, at->function)->name), "[futex]"))
				assert_int_equal(at->kind, FRAME_MARK);
		}
		buffer_done(&written);
		buffer_done(&folded);
	}
}

static void test_folded_keeps_stacks(void **state)
{
	const struct export_options plain = { 0 };
	CLEANUP(profile_freep) struct profile *profile = made_up_profile();
	struct buffer written = write_with(profile, EXPORT_FOLDED, &plain);
	CLEANUP(profile_freep) struct profile *read = read_back(&written);
	struct buffer again = write_with(read, EXPORT_FOLDED, &plain);

	sort_lines(&written);
	sort_lines(&again);
	assert_string_equal(written.data, again.data);
	buffer_done(&written);
	buffer_done(&again);
}

/* A profile read from pprof stays the same when it is written and read again. */
static void test_pprof_settles(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = made_up_profile();
	struct buffer first = write_as(profile, EXPORT_PPROF);
	CLEANUP(profile_freep) struct profile *once = read_back(&first);
	struct buffer second = write_as(once, EXPORT_PPROF);
	CLEANUP(profile_freep) struct profile *twice = read_back(&second);

	assert_int_equal(profile_nr_samples(profile), profile_nr_samples(once));
	check_same(once, twice, EXPORT_JSON);
	buffer_done(&first);
	buffer_done(&second);
}

static void test_folded_of_others(void **state)
{
	static const struct {
		const char *text, *again;
	} cases[] = {
		{ "sh;main;work 3\nsh;main 1\n", "sh;main 1\nsh;main;work 3\n" },
		{ "_start;main;work 3\n", "_start;main;work 3\n" },			    /* no thread's name in front */
		{ "<module> (a.py:1);f (a.py:2) 7\n", "<module> (a.py);f (a.py) 7\n" }, /* py-spy */
		{ "main.f (a.go:12);operator() (int);g (b:) 7\n", "main.f;operator() (int);g (b:) 7\n" },
		{ "java-12/34;java/lang/Thread.run;f_[j] 2\n", "java;java/lang/Thread.run;f 2\n" },
		{ "sh;main;read_[k];vfs_[k] 2\n", "sh;main;-;read_[k];vfs_[k] 2\n" },
		{ "sh;main;-;read 2\nsh;main;--;read 3\n", "sh;main;-;read_[k] 5\n" },
		{ "# remark\n\nsh;a b c 2.5\nnonsense\n", "sh;a b c 2\n" },
		{ "kworker/0:1;work_[k] 2\nmain;work 1\n",
		  "main;work 1\nkworker/0:1;-;work_[k] 2\n" }, /* one line starts with no name: so none does, "main" is a user frame */
		{ "sh 9\n", "sh 9\n" },
		{ "sh;a;;b 9\r\n", "sh;a;[unknown];b 9\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct buffer text = { .data = (char *)cases[i].text, .size = strlen(cases[i].text) };
		CLEANUP(profile_freep) struct profile *profile = read_back(&text);
		struct buffer again = write_as(profile, EXPORT_FOLDED);

		assert_string_equal(again.data, cases[i].again);
		buffer_done(&again);
	}
}

/* The same in OTLP's two encodings: JSON with both kinds of field names, and with fields that a reader must skip. */
static void test_otlp_json(void **state)
{
	static const char text[] =
	    "{ \"dictionary\": {\"stringTable\": [\"\", \"samples\", \"count\", \"f\\u00fc\", \"m\", \"/bin/a\", \"cpu.logical_number\", "
	    "\"thread.id\", \"x\"], \"linkTable\": [{}],"
	    " \"mappingTable\": [{}, {\"memoryStart\": \"4096\", \"memoryLimit\": 18446744073709551615, \"filenameStrindex\": 5}], "
	    "\"functionTable\": [{}, {\"nameStrindex\": 3,"
	    " \"startLine\": \"7\"}, {\"nameStrindex\": 4}], \"location_table\": [{}, {\"mapping_index\": 1, \"address\": \"5000\", "
	    "\"line\": [{\"functionIndex\": 1, \"line\": \"9\"}]},"
	    " {\"lines\": [{\"functionIndex\": 2}], \"address\": \"18446744071562067968\"}], \"stackTable\": [{}, {\"locationIndices\": "
	    "[2, 1]}], \"attributeTable\": [{}, "
	    "{\"keyStrindex\": 6, \"value\": {\"intValue\": \"0\"}}, {\"keyStrindex\": 7, \"value\": {\"intValue\": 12}}, "
	    "{\"keyStrindex\": 8, \"value\": {\"boolValue\": false}}]},"
	    " \"resourceProfiles\": [{\"future\": [{\"a\": [1.5e3]}], \"resource\": null, \"scopeProfiles\": [{\"profiles\": "
	    "[{\"sampleType\": {\"typeStrindex\": 1,"
	    " \"unitStrindex\": 2}, \"timeUnixNano\": \"1700000000000000001\", \"profileId\": \"AAAA\", \"samples\": [{\"stackIndex\": 1, "
	    "\"attributeIndices\": [1, 2, 3],"
	    " \"values\": [\"-3\", 5], \"timestampsUnixNano\": [\"1700000000000000005\", \"1700000000000000006\"]}]}]}]}]}";
	struct buffer whole = { .data = (char *)text, .size = sizeof(text) - 1 };
	CLEANUP(profile_freep) struct profile *profile = read_back(&whole);
	const struct profile_sample *sample = profile_sample_at(profile, 0);
	const struct profile_location *location;
	uint32_t nr;

	assert_int_equal(profile_nr_samples(profile), 2);
	assert_true(sample->values[0] == -3 && sample->time_ns == 1700000000000000005 && sample->tid == 12 && sample->cpu == 0);
	assert_int_equal(profile_sample_at(profile, 1)->values[0], 5);
	assert_string_equal(profile_string_text(profile, profile_labels_at(profile, sample->labels, &nr)->text), "false");
	assert_int_equal(nr, 1);
	location = profile_location_at(profile, *profile_stack_at(profile, sample->user_stack, &nr));
	assert_true(nr == 1 && location->pc == 5000 && location->line == 9);
	assert_string_equal(profile_string_text(profile, profile_function_at(profile, location->function)->name), "f\u00fc");
	assert_int_equal(profile_function_at(profile, location->function)->line, 7);
	assert_true(profile_mapping_at(profile, location->mapping)->end_pc == UINT64_MAX);
	location = profile_location_at(profile, *profile_stack_at(profile, sample->kernel_stack, &nr));
	assert_true(nr == 1 && location->kind == FRAME_KERNEL);
	assert_true(profile_account_of(profile)->start_unix_ns == 1700000000000000001);
}

/* Makes one sample of these frames, leaf first. */
static struct profile *of_frames(const struct profile_location *frames, const char *const *files, uint32_t nr)
{
	struct profile *profile = profile_new();
	struct profile_sample sample = { .kernel_stack = PROFILE_NONE, .cpu = PROFILE_NONE, .values = { 1 } };
	uint32_t locations[16];

	assert_true(profile && nr <= ARRAY_SIZE(locations));
	for (uint32_t i = 0; i < nr; i++) {
		struct profile_function function = { .name = profile_string(profile, "f"),
						     .system_name = profile_string(profile, "f"),
						     .file = profile_string(profile, files[i]) };
		struct profile_location location = frames[i];

		location.mapping = PROFILE_NONE;
		location.function = profile_function(profile, &function);
		locations[i] = profile_location(profile, &location);
	}
	sample.user_stack = profile_stack(profile, locations, nr);
	assert_int_equal(profile_add(profile, &sample), 0);
	return profile;
}

static void check_kinds(const struct profile *profile, const uint32_t *kinds, uint32_t nr_kinds)
{
	uint32_t nr;
	const uint32_t *stack = profile_stack_at(profile, profile_sample_at(profile, 0)->user_stack, &nr);

	assert_int_equal(nr, nr_kinds);
	for (uint32_t i = 0; i < nr; i++) {
		const struct profile_location *at = profile_location_at(profile, stack[i]);

		assert_int_equal(at->kind, kinds[i]);
		if (frame_is_interpreted(at->kind))
			assert_true(!at->pc && !at->elf_vaddr && at->mapping == PROFILE_NONE && !at->is_inlined);
	}
}

/* If a format states the runtime of a frame, that counts. pprof and perf show it by the source file, and only where there is no address. */
static void test_what_interpreters_run(void **state)
{
	static const struct profile_location frames[] = { { .kind = FRAME_PERL, .line = 7 },
							  { .kind = FRAME_PYTHON, .line = 3 },
							  { .kind = FRAME_PYTHON },
							  { .kind = FRAME_PHP },
							  { .kind = FRAME_NATIVE, .pc = 0x1000 },
							  { .kind = FRAME_NATIVE },
							  { .kind = FRAME_PHP },
							  { .kind = FRAME_PYTHON },
							  { .kind = FRAME_NATIVE },
							  { .kind = FRAME_NATIVE } };
	static const char *const files[] = { "/lib/A.pm", "/a b.py", "<frozen os>", "a.php", "a.py",
					     "a.tcl",	  "a.inc",   "<stdin>",	    ".py",   "<frozen" };
	static const uint32_t all[] = { FRAME_PERL,   FRAME_PYTHON, FRAME_PYTHON, FRAME_PHP,	FRAME_NATIVE,
					FRAME_NATIVE, FRAME_PHP,    FRAME_PYTHON, FRAME_NATIVE, FRAME_NATIVE };
	static const uint32_t sure[] = { FRAME_PERL,   FRAME_PYTHON, FRAME_PYTHON, FRAME_PHP,	 FRAME_NATIVE,
					 FRAME_NATIVE, FRAME_NATIVE, FRAME_PYTHON, FRAME_NATIVE, FRAME_NATIVE };
	static const struct {
		enum export_format format;
		const uint32_t *kinds;
	} ways[] = { { EXPORT_JSON, all },
		     { EXPORT_OTLP_PROTOBUF, all },
		     { EXPORT_OTLP_JSON, all },
		     { EXPORT_PPROF, sure },
		     { EXPORT_PERF_SCRIPT, sure } };
	CLEANUP(profile_freep) struct profile *profile = of_frames(frames, files, ARRAY_SIZE(frames));

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct buffer written = write_as(profile, ways[i].format);
		CLEANUP(profile_freep) struct profile *again = read_back(&written);

		check_kinds(again, ways[i].kinds, ARRAY_SIZE(frames));
		buffer_done(&written);
	}
}

/* As other profilers write it: the position in the code as the address, a mapping, several functions. perf's own names of Python's
 * functions are symbols. */
static void test_interpreters_of_others(void **state)
{
	static const char otlp[] =
	    "{\"dictionary\": {\"stringTable\": [\"\", \"samples\", \"count\", \"f\", \"profile.frame.type\", \"cpython\", "
	    "\"/bin/python3\"], \"linkTable\": [{}],"
	    " \"mappingTable\": [{}, {\"memoryLimit\": 4096, \"filenameStrindex\": 6}], \"functionTable\": [{}, {\"nameStrindex\": 3}],"
	    " \"locationTable\": [{}, {\"mappingIndex\": 1, \"address\": 77, \"lines\": [{\"functionIndex\": 1, \"line\": 2}, "
	    "{\"functionIndex\": 1, \"line\": 9}],"
	    " \"attributeIndices\": [1]}], \"stackTable\": [{}, {\"locationIndices\": [1]}], \"attributeTable\": [{}, {\"keyStrindex\": 4, "
	    "\"value\": {\"stringValue\": \"cpython\"}}]},"
	    " \"resourceProfiles\": [{\"scopeProfiles\": [{\"profiles\": [{\"sampleType\": {\"typeStrindex\": 1, \"unitStrindex\": 2},"
	    " \"samples\": [{\"stackIndex\": 1, \"values\": [5]}]}]}]}]}";
	static const char perf[] = "python3 7 1.5: 1 cycles: \n\t7f00aa py::main:/a.py (/tmp/perf-7.map)\n\t40aa _start (/bin/python3)\n\n";
	struct buffer texts[] = { { .data = (char *)otlp, .size = sizeof(otlp) - 1 }, { .data = (char *)perf, .size = sizeof(perf) - 1 } };
	CLEANUP(profile_freep) struct profile *from_otlp = read_back(&texts[0]);
	CLEANUP(profile_freep) struct profile *from_perf = read_back(&texts[1]);

	check_kinds(from_otlp, (const uint32_t[]){ FRAME_PYTHON, FRAME_PYTHON }, 2);
	check_kinds(from_perf, (const uint32_t[]){ FRAME_NATIVE, FRAME_NATIVE }, 2);
}

/* In pprof the mapping marks the kernel's frames, also where no address is known. */
static void test_kernel_without_addresses(void **state)
{
	static const enum export_format ways[] = { EXPORT_PPROF, EXPORT_PPROF, EXPORT_OTLP_PROTOBUF, EXPORT_OTLP_JSON, EXPORT_JSON };
	struct buffer text = { .data = (char *)"sh;main;-;entry_[k];read_[k] 3\n", .size = 31 };
	struct profile *profile = read_back(&text);

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct buffer written = write_as(profile, ways[i]);

		profile_free(profile);
		profile = read_back(&written);
		assert_true(profile_sample_at(profile, 0)->kernel_stack != PROFILE_NONE);
		buffer_done(&written);
		written = write_as(profile, EXPORT_FOLDED);
		assert_string_equal(written.data, text.data);
		buffer_done(&written);
	}
	profile_free(profile);
}

static void append_locations(struct buffer *message, int way)
{
	size_t opened;

	if (way == 1) { /* one field per number, as in proto2 */
		protobuf_u64(message, 1, 1);
		protobuf_u64(message, 1, 2);
		return;
	}
	opened = protobuf_open(message, 1);
	protobuf_varint(message, 1);
	if (way == 2) { /* two lists */
		protobuf_close(message, opened);
		opened = protobuf_open(message, 1);
	}
	protobuf_varint(message, 2);
	protobuf_close(message, opened);
}

/* pprof samples with one stack, written in three ways, the first way twice. The second value of the last sample is `last` more than ten
 * times the first. */
static struct buffer pprof_of_one_stack(uint64_t last)
{
	static const char *const strings[] = { "", "samples", "count", "cpu", "nanoseconds", "f", "g" };
	struct buffer message = BUFFER_INIT(MAX_BYTES);
	size_t opened, packed;

	for (uint32_t i = 0; i < 4; i++) {
		opened = protobuf_open(&message, 2);
		append_locations(&message, (int)(i % 3));
		packed = protobuf_open(&message, 2);
		protobuf_varint(&message, i + 1);
		protobuf_varint(&message, 10 * (i + 1) + (i == 3 ? last : 0));
		protobuf_close(&message, packed);
		protobuf_close(&message, opened);
	}
	for (uint32_t i = 0; i < 6; i++) { /* two kinds of values, two locations, two functions */
		opened = protobuf_open(&message, (const uint32_t[]){ 1, 1, 4, 4, 5, 5 }[i]);
		protobuf_u64(&message, 1, i < 2 ? 2 * i + 1 : i % 2 + 1);
		if (i == 2 || i == 3) {
			packed = protobuf_open(&message, 4);
			protobuf_u64(&message, 1, i - 1);
			protobuf_close(&message, packed);
		} else {
			protobuf_u64(&message, 2, i < 2 ? 2 * i + 2 : i + 1);
		}
		protobuf_close(&message, opened);
	}
	opened = protobuf_open(&message, 11);
	protobuf_u64(&message, 1, 3);
	protobuf_u64(&message, 2, 4);
	protobuf_close(&message, opened);
	protobuf_u64(&message, 12, 10);
	for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
		protobuf_bytes(&message, 6, strings[i], strlen(strings[i]));
	return message;
}

static void test_pprof_stacks_and_ticks(void **state)
{
	for (uint64_t last = 0; last < 2; last++) {
		struct buffer message = pprof_of_one_stack(last), again;
		CLEANUP(profile_freep) struct profile *profile = read_back(&message);
		const struct profile_sample *sample = profile_sample_at(profile, 0);
		uint32_t nr_types;

		profile_value_types(profile, &nr_types);
		assert_int_equal(nr_types, last ? 2 : 1);
		assert_int_equal(profile_nr_samples(profile), 1);
		assert_true(sample->values[0] == 10 && sample->values[1] == (last ? 101 : 0));
		again = write_as(profile, EXPORT_FOLDED);
		assert_string_equal(again.data, last ? "g;f 101\n" : "g;f 10\n");
		buffer_done(&message);
		buffer_done(&again);
	}
}

static void test_losses_are_told(void **state)
{
	struct buffer text = { .data = (char *)"sh;main 1\nnonsense\n", .size = 19 };
	CLEANUP(profile_freep) struct profile *profile = read_back(&text);
	const struct account *account = profile_account_of(profile);

	assert_int_equal(account->nr_notes, 1);
	assert_non_null(strstr(account->notes[0], "1 lines are no stack"));
}

/* A stack that is far too deep: both ends are kept. */
static void test_deep_stack(void **state)
{
	struct buffer text = BUFFER_INIT(MAX_BYTES), again;
	struct profile *profile;

	buffer_text(&text, "sh;first");
	for (int i = 0; i < 40000; i++)
		buffer_printf(&text, ";f%d", i);
	buffer_text(&text, ";last 5\n");
	profile = read_back(&text);
	again = write_as(profile, EXPORT_FOLDED);
	assert_memory_equal(again.data, "sh;first;f0;f1;", 15);
	assert_non_null(strstr(again.data, ";" PROFILE_CUT ";"));
	assert_string_equal(again.data + again.size - 16, "9998;f39999;last 5\n" + 3);
	assert_int_equal(profile_account_of(profile)->nr_notes, 1);
	profile_free(profile);
	buffer_done(&text);
	buffer_done(&again);
}

static void test_damaged(void **state)
{
	damage(EXPORT_PPROF, true);
	damage(EXPORT_JSON, false);
	damage(EXPORT_OTLP_JSON, false);
}

static void test_gunzip(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = made_up_profile();
	struct buffer packed = write_as(profile, EXPORT_PPROF), whole = BUFFER_INIT(MAX_BYTES), twice = BUFFER_INIT(MAX_BYTES),
		      small = BUFFER_INIT(1000);
	struct diag diag = { 0 };
	size_t size = packed.size;

	assert_int_equal(gunzip(packed.data, size, &whole, &diag), 0);
	assert_int_equal(gunzip(packed.data, size, &small, &diag), -EFBIG);
	assert_int_equal(gunzip(packed.data, size - 1, &twice, NULL), -EBADMSG);
	twice.size = 0;
	memcpy(buffer_reserve(&packed, size), packed.data, size);
	buffer_append(&packed, "\0\0", 2);
	assert_int_equal(gunzip(packed.data, packed.size, &twice, NULL), 0);
	assert_int_equal(twice.size, 2 * whole.size);
	packed.data[size / 2] ^= 0x55;
	assert_int_equal(gunzip(packed.data, size, &twice, NULL), -EBADMSG);
	buffer_done(&packed);
	buffer_done(&whole);
	buffer_done(&twice);
	buffer_done(&small);
}

static void test_detect(void **state)
{
	static const char *const refused[] = { "",
					       "{}",
					       "{\"format\":\"other\"}",
					       "{\"a\":[1,2",
					       "\x7f"
					       "ELF\1\1",
					       "\n\x0b\xff\xff\xff\xff" };

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		enum import_format format;
		struct diag diag = { 0 };

		assert_int_equal(import_detect(refused[i], strlen(refused[i]), &diag, &format), -EINVAL);
		assert_true(diag.text[0] != 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json_keeps_waits),
		cmocka_unit_test(test_marks_of_waits_keep_sides),
		cmocka_unit_test(test_json_of_waits_is_checked),
		cmocka_unit_test(test_json_is_all_of_it),
		cmocka_unit_test(test_pprof_keeps_stacks),
		cmocka_unit_test(test_folded_keeps_stacks),
		cmocka_unit_test(test_pprof_settles),
		cmocka_unit_test(test_folded_of_others),
		cmocka_unit_test(test_losses_are_told),
		cmocka_unit_test(test_deep_stack),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_gunzip),
		cmocka_unit_test(test_detect),
		cmocka_unit_test(test_otlp_json),
		cmocka_unit_test(test_kernel_without_addresses),
		cmocka_unit_test(test_what_interpreters_run),
		cmocka_unit_test(test_interpreters_of_others),
		cmocka_unit_test(test_pprof_stacks_and_ticks),
	};

	return cmocka_run_group_tests_name("import", tests, NULL, NULL);
}
