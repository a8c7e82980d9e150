// SPDX-License-Identifier: Apache-2.0
/* Files of viewers: sonde's own are read back with the same stacks and totals, and those of others as their makers describe them. */
#include "import_ways.h"
#include "show/show.h"
#include "viewers/viewers.h"

/* What a profile of one value per stack says: folded stacks, in any order. */
static void check_folded(const struct profile *profile, const char *want)
{
	struct buffer text = write_with(profile, EXPORT_FOLDED, &(struct export_options){ .annotate = true });

	sort_lines(&text);
	assert_string_equal(text.data, want);
	buffer_done(&text);
}

static void check_text(const char *file, enum import_format want_format, const char *folded)
{
	struct buffer text = { .data = (char *)file, .size = strlen(file) };
	CLEANUP(profile_freep) struct profile *profile = read_back(&text);
	enum import_format format;

	assert_int_equal(import_detect(text.data, text.size, NULL, &format), 0);
	assert_int_equal(format, want_format);
	check_folded(profile, folded);
}

static void check_refused(const char *file, const char *says)
{
	CLEANUP(profile_freep) struct profile *profile = NULL;
	struct diag diag = { 0 };

	assert_true(try_read(file, strlen(file), &profile, &diag) < 0);
	if (!strstr(diag.text, says))
		fail_msg("%s: %s", file, diag.text);
}

static struct buffer sorted_stacks(const struct profile *profile, bool annotate)
{
	struct buffer text = write_with(profile, EXPORT_FOLDED, &(struct export_options){ .annotate = annotate });

	sort_lines(&text);
	return text;
}

/* Writes a profile in a format and reads it back: its stacks are the same. Not all formats tell the kernel's frames apart. */
static void check_stacks(enum export_format through, bool has_sides)
{
	CLEANUP(profile_freep) struct profile *profile = made_up_profile();
	struct buffer written = write_as(profile, through);
	CLEANUP(profile_freep) struct profile *again = read_back(&written);
	struct buffer one = sorted_stacks(profile, has_sides), other = sorted_stacks(again, has_sides);

	assert_string_equal(one.data, other.data);
	buffer_done(&one);
	buffer_done(&other);
	buffer_done(&written);
}

static int64_t sum_of(const struct profile *profile, uint32_t value)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < profile_nr_samples(profile); i++)
		sum += profile_sample_at(profile, i)->values[value];
	return sum;
}

/* Waits have more than one value, and times. */
static void check_waits(enum export_format through, uint32_t waits, uint32_t blocked)
{
	CLEANUP(profile_freep) struct profile *profile = made_up_waits_profile();
	struct buffer written = write_as(profile, through);
	CLEANUP(profile_freep) struct profile *again = read_back(&written);

	if (waits != PROFILE_NONE)
		assert_int_equal(sum_of(again, waits), sum_of(profile, 0));
	assert_int_equal(sum_of(again, blocked), sum_of(profile, 1));
	buffer_done(&written);
}

static void test_own_files(void **state)
{
	check_stacks(EXPORT_HTML, true);
	check_stacks(EXPORT_JSONL, true);
	check_stacks(EXPORT_CPUPROFILE, false);
	check_waits(EXPORT_HTML, 0, 1);
	check_waits(EXPORT_JSONL, 0, 1);
	check_waits(EXPORT_SPEEDSCOPE, 0, 1);
	check_waits(EXPORT_FIREFOX, PROFILE_NONE, 0);
}

/* The page has the labels of samples: text and numbers, of some samples alone. */
static void test_labels_of_a_page(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = made_up_threads_profile();
	CLEANUP(buffer_done) struct buffer one = BUFFER_INIT(1 << 20), other = BUFFER_INIT(1 << 20);
	struct buffer written = write_as(profile, EXPORT_HTML);
	CLEANUP(profile_freep) struct profile *again = read_back(&written);

	assert_int_equal(show_table(profile, SHOW_BY_LABEL, &(struct show_options){ 0 }, &one), 0);
	assert_int_equal(show_table(again, SHOW_BY_LABEL, &(struct show_options){ 0 }, &other), 0);
	assert_non_null(strstr(one.data, "request=11 bytes"));
	assert_string_equal(one.data, other.data);
	buffer_done(&written);
	check_refused("<html>" PAGE_DATA_BEGINS ",\"version\":1,\"labels\":{\"labels\":[[\"key\"]]}}", "a label is a key and a text");
}

/* Samples without a time that end in the same place are one only if they have the same labels. */
static void test_labels_keep_samples_apart(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	struct profile_function function = { .name = profile_string(profile, "f"), .system_name = profile_string(profile, "f") };
	struct profile_location location = { .mapping = PROFILE_NONE,
					     .function = profile_function(profile, &function),
					     .kind = FRAME_NATIVE };
	uint32_t frame = profile_location(profile, &location);

	for (int64_t i = 0; i < 4; i++) {
		struct profile_label label = { .key = profile_string(profile, "k"), .number = i % 2, .is_number = 1 };
		struct profile_sample sample = { .user_stack = profile_stack(profile, &frame, 1),
						 .kernel_stack = PROFILE_NONE,
						 .cpu = (uint32_t)i, /* of which the page knows nothing without times */
						 .comm = function.name,
						 .labels = profile_labels(profile, &label, 1),
						 .values = { 1 << i } };

		assert_int_equal(profile_add(profile, &sample), 0);
	}
	struct buffer written = write_as(profile, EXPORT_HTML);
	CLEANUP(profile_freep) struct profile *again = read_back(&written);

	assert_int_equal(profile_nr_samples(again), 2);
	assert_int_equal(profile_sample_at(again, 0)->values[0], 1 + 4);
	assert_int_equal(profile_sample_at(again, 1)->values[0], 2 + 8);
	buffer_done(&written);
}

/* Numbers that lead nowhere: the samples have no such label. */
static void test_forged_labels_of_a_page(void **state)
{
	static const char page[] = "<html>" PAGE_DATA_BEGINS
	    ",\"version\":1,\"shown\":0,\"value_types\":[[\"samples\",\"count\"]],\"kinds\":[\"native\"],\"strings\":[\"f\"],"
	    "\"frames\":{\"name\":[0],\"path\":[0],\"kind\":[0],\"file\":[0],\"line\":[0]},\"nodes\":{\"up\":[0],"
	    "\"frame\":[0],\"lines\":[]},"
	    "\"threads\":{\"comm\":[0],\"tgid\":[1],\"tid\":[1]},\"samples\":{\"node\":[0,0,0],\"thread\":[0,0,0],\"values\":[[1,2,4]],"
	    "\"untimed\":3},\"labels\":{\"labels\":[[\"a\",\"b\"]],\"sets\":[[],[0,7,-1]],\"of_sample\":[1,99,-3]}}";
	struct buffer text = { .data = (char *)page, .size = sizeof(page) - 1 };
	CLEANUP(profile_freep) struct profile *profile = read_back(&text);
	CLEANUP(buffer_done) struct buffer table = BUFFER_INIT(1 << 20);

	assert_int_equal(show_table(profile, SHOW_BY_LABEL, &(struct show_options){ 0 }, &table), 0);
	assert_non_null(strstr(table.data, "a=b"));
	assert_non_null(strstr(table.data, "85.71 %")); /* [no label] */
}

/* Lines lose nothing but histograms, and the line where a function begins. */
static void test_lines_settle(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = made_up_profile();
	struct buffer written = write_as(profile, EXPORT_JSONL);
	CLEANUP(profile_freep) struct profile *again = read_back(&written);

	check_same(profile, again, EXPORT_JSONL);
	buffer_done(&written);
}

static void test_speedscope_of_others(void **state)
{
	check_text("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"profiles\":[{\"type\":\"sampled\","
		   "\"name\":\"Thread 1\","
		   "\"unit\":\"seconds\",\"startValue\":0,\"endValue\":0.03,\"samples\":[[0,1],[0],[],[0,1]],"
		   "\"weights\":[0.01,1e-2,5,0.01]}],"
		   "\"shared\":{\"frames\":[{\"name\":\"<module>\",\"file\":\"a.py\",\"line\":3},{\"name\":\"work\"}]},"
		   "\"exporter\":\"py-spy\"}",
		   IMPORT_SPEEDSCOPE, "Thread 1;<module> (a.py) 10000000\nThread 1;<module> (a.py);work 20000000\n");
	check_text("{\"shared\":{\"frames\":[{\"name\":\"a\"},{\"name\":\"b\"}]},\"profiles\":[{\"type\":\"evented\","
		   "\"name\":\"t (3/4)\",\"unit\":"
		   "\"milliseconds\",\"startValue\":0,\"endValue\":9,\"events\":[{\"type\":\"O\",\"frame\":0,\"at\":0},{\"type\":\"O\","
		   "\"frame\":1,"
		   "\"at\":2.5},{\"type\":\"C\",\"frame\":1,\"at\":4},{\"type\":\"C\",\"frame\":0,\"at\":9}]}]}",
		   IMPORT_SPEEDSCOPE, "t;a 7500000\nt;a;b 1500000\n");
	check_text("{\"shared\":{\"frames\":[{\"name\":\"a\"}]},\"profiles\":[{\"name\":\"t\",\"unit\":\"none\",\"samples\":[[0],[0]]}]}",
		   IMPORT_SPEEDSCOPE, "t;a 2\n"); /* without weights */
	check_refused("{\"shared\":{\"frames\":[]},\"profiles\":[{\"unit\":\"none\",\"samples\":[[0]],"
		   "\"weights\":[1]}]}", "not in the list");
	check_refused("{\"shared\":{\"frames\":[{\"name\":\"a\"}]},\"profiles\":[{\"events\":[{\"type\":\"C\",\"frame\":0,\"at\":1}]}]}",
		      "not the innermost");
}

static void test_cpuprofile_of_others(void **state)
{
	check_text("{\"nodes\":[{\"id\":7,\"callFrame\":{\"functionName\":\"(root)\",\"url\":\"\",\"lineNumber\":-1},\"hitCount\":0,"
		   "\"children\":[9,8]},{\"id\":8,\"callFrame\":{\"functionName\":\"\",\"url\":\"file:///a.js\",\"lineNumber\":0},"
		   "\"hitCount\":2},"
		   "{\"id\":9,\"callFrame\":{\"functionName\":\"(idle)\"},\"hitCount\":1}],\"startTime\":100,\"endTime\":200,"
		   "\"samples\":[8,9,8],"
		   "\"timeDeltas\":[10,20,30]}",
		   IMPORT_CPUPROFILE, "(anonymous) (a.js) 2\n(idle) 1\n");
	check_text("{\"startTime\":100,\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"(root)\"},\"children\":[2]},{\"id\":2,"
		   "\"callFrame\":{\"functionName\":\"f\"}}],\"samples\":[2,2,2]}",
		   IMPORT_CPUPROFILE, "f 3\n"); /* neither hits nor times */
	check_refused("{\"startTime\":1,\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"a\"},\"hitCount\":1,"
		   "\"children\":[1]}]}", "calls itself");
	check_refused("{\"startTime\":1,\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"a\"},"
		   "\"children\":[2]}]}", "no node with this id");
}

/* The times of a thread that V8 sampled: a sample lasts until the next one, the last one to the end. */
static void test_cpuprofile_times(void **state)
{
	static const char text[] = "{\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"f\"},\"hitCount\":2},{\"id\":2,\"callFrame\":"
				   "{\"functionName\":\"g\"},\"hitCount\":1}],\"startTime\":100,\"endTime\":200,\"samples\":[1,2,1],"
				   "\"timeDeltas\":[10,20,30]}";
	CLEANUP(profile_freep) struct profile *profile = NULL;
	struct diag diag = { 0 };
	uint32_t nr_types;

	assert_int_equal(try_read(text, strlen(text), &profile, &diag), 0);
	profile_value_types(profile, &nr_types);
	assert_int_equal(nr_types, 2);
	assert_int_equal(profile_nr_samples(profile), 2);
	assert_int_equal(profile_sample_at(profile, 0)->values[1], 20000 + 40000);
	assert_int_equal(profile_sample_at(profile, 1)->values[1], 30000);
}

#define FIREFOX_TABLES \
	"\"stackTable\":{\"frame\":[0,1],\"prefix\":[null,0],\"length\":2}," \
	"\"frameTable\":{\"func\":[0,1],\"line\":[null,7],\"category\":[0,1]}," \
	"\"funcTable\":{\"name\":[0,1],\"resource\":[-1,0],\"fileName\":[null,null],\"lineNumber\":[null,null]}," \
	"\"resourceTable\":{\"lib\":[0]}," \
	"\"stringArray\":[\"main\",\"do_read\"]"
#define FIREFOX_META \
	"\"meta\":{\"startTime\":1000.5,\"preprocessedProfileVersion\":58,\"categories\":[{\"name\":\"Other\"},{\"name\":\"Kernel\"}]}," \
	"\"libs\":" \
	"[{\"name\":\"libx.so\",\"path\":\"/lib/libx.so\"}]"

static void test_firefox_of_others(void **state)
{
	check_text("{" FIREFOX_META ",\"threads\":[{\"name\":\"t\",\"pid\":\"12.1\",\"tid\":13," FIREFOX_TABLES
		   ",\"samples\":{\"stack\":[1,null,0],\"time\":[1,2,3],\"length\":3}}]}",
		   IMPORT_FIREFOX, "t;main 1\nt;main;do_read_[k] 1\n");
	check_text("{" FIREFOX_META ",\"shared\":{" FIREFOX_TABLES "},\"threads\":[{\"name\":\"t\",\"samples\":{\"stack\":[1],"
		   "\"timeDeltas\":[1],"
		   "\"weight\":[2.5],\"weightType\":\"tracing-ms\"}},{\"name\":\"u\",\"samples\":{\"stack\":[0],\"timeDeltas\":[1]}}]}",
		   IMPORT_FIREFOX, "t;main;do_read_[k] 2500000\nu;main 1\n");
	check_refused("{" FIREFOX_META ",\"threads\":[{\"name\":\"t\",\"stackTable\":{\"frame\":[0],\"prefix\":[0]},"
		   "\"frameTable\":{\"func\":[0]},"
		      "\"samples\":{\"stack\":[0]}}]}",
		      "a caller that does not stand before it");
	check_refused("{" FIREFOX_META ",\"threads\":[{\"name\":\"t\",\"samples\":{\"stack\":[0]}}]}", "not in the list");
}

static void test_strangers_have_names(void **state)
{
	check_refused("FLR\1 ........", "Flight Recorder");
	check_refused("{\"traceEvents\":[]}", "trace events");
	check_refused("{\"snapshot\":{},\"nodes\":[]}", "heap snapshot");
	check_refused("<html></html>", "no profile of sonde");
	check_refused("Nettrace....", ".NET trace");
	check_refused("go 1.22 trace...", "execution trace of Go");
	check_refused("# callgrind format\nevents: Ir\n", "callgrind");
}

static void test_damaged(void **state)
{
	damage(EXPORT_SPEEDSCOPE, false);
	damage(EXPORT_CPUPROFILE, false);
	damage(EXPORT_FIREFOX, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_labels_of_a_page),     cmocka_unit_test(test_forged_labels_of_a_page),
		cmocka_unit_test(test_labels_keep_samples_apart),
		cmocka_unit_test(test_own_files),	     cmocka_unit_test(test_lines_settle),
		cmocka_unit_test(test_speedscope_of_others), cmocka_unit_test(test_cpuprofile_of_others),
		cmocka_unit_test(test_cpuprofile_times),     cmocka_unit_test(test_firefox_of_others),
		cmocka_unit_test(test_strangers_have_names), cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
