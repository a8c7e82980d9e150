// SPDX-License-Identifier: Apache-2.0
/* SkyWalking's messages: stacks as records, what a server answers, names by templates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "codec/protobuf.h"
#include "skywalking/sky_policy.h"
#include "skywalking/sky_stacks.h"
#include "skywalking/sky_tasks.h"

/* --- stacks --------------------------------------------------------------------------------------------------------------------------- */

#define MAX_RECORDS 16

struct taken {
	char text[MAX_RECORDS][512]; /* "kernel's names|user's names|count|duration" */
	uint32_t ids[MAX_RECORDS], nr;
};

static size_t append_names(char *text, size_t size, size_t room, const struct sky_side *side)
{
	const char *name = side->names;

	for (uint32_t i = 0; i < side->nr; i++) {
		size += (size_t)snprintf(text + size, room - size, "%s%.200s", i ? ";" : "", name);
		name += strlen(name) + 1;
	}
	return size + (size_t)snprintf(text + size, room - size, "|");
}

static int take(void *arg, const struct sky_record *record)
{
	struct taken *taken = arg;
	char *text = taken->text[taken->nr];
	size_t size = append_names(text, 0, sizeof(taken->text[0]), &record->kernel);

	size = append_names(text, size, sizeof(taken->text[0]), &record->user);
	snprintf(text + size, sizeof(taken->text[0]) - size, "%d|%lld", record->count, (long long)record->duration_ns);
	assert_int_equal(record->kernel.id, record->user.id);
	for (uint32_t i = 0; i < taken->nr; i++)
		assert_int_not_equal(taken->ids[i], record->user.id);
	taken->ids[taken->nr++] = record->user.id;
	return 0;
}

static struct taken records_of(const char *lines, uint64_t *ret_nr_without)
{
	struct sky_stacks stacks;
	struct taken taken = { .nr = 0 };

	assert_int_equal(sky_stacks_read(&stacks, lines, strlen(lines), NULL), 0);
	assert_int_equal(sky_stacks_records(&stacks, take, &taken), 0);
	if (ret_nr_without)
		*ret_nr_without = stacks.nr_without;
	sky_stacks_done(&stacks);
	return taken;
}

#define SAMPLES(nr)	 "\"values\":[{\"type\":\"samples\",\"unit\":\"count\",\"value\":" #nr "}]"
#define FRAME(name, kind) "{\"name\":\"" name "\",\"kind\":\"" kind "\",\"pc\":\"0x1\"}"
#define LINE(values, ...) "{\"record\":\"sample\",\"comm\":\"a;b\",\"pid\":1,\"tid\":1," values ",\"stack\":[" __VA_ARGS__ "]}\n"
#define ACCOUNT		 "{\"record\":\"account\",\"account\":{\"stack\":[1],\"values\":3}}\n"

#define MAIN FRAME("main", "native")
#define WAIT FRAME("wait", "native")

static void stacks_are_merged_by_name(void **state)
{
	uint64_t nr_without;
	struct taken taken = records_of(ACCOUNT LINE(SAMPLES(3), FRAME("leaf", "native") "," MAIN)
						LINE(SAMPLES(2), FRAME("read", "kernel") "," FRAME("entry", "kernel") "," MAIN)
						LINE(SAMPLES(4), FRAME("leaf", "native") "," MAIN)
						LINE(SAMPLES(1), FRAME("read", "native") "," FRAME("entry", "native") "," MAIN)
						LINE(SAMPLES(7), ) LINE(SAMPLES(0), FRAME("none", "native")),
					&nr_without);

	assert_int_equal(taken.nr, 3);
	assert_string_equal(taken.text[0], "|leaf;main|7|0");
	assert_string_equal(taken.text[1], "read;entry|main|2|0");
	assert_string_equal(taken.text[2], "|read;entry;main|1|0"); /* the same names on the other side are another stack */
	assert_int_equal(nr_without, 7);
}

static void sides(void **state)
{
	struct taken taken = records_of(LINE(SAMPLES(1), FRAME("[futex]", "mark") "," FRAME("schedule", "kernel") "," WAIT)
						LINE(SAMPLES(1), FRAME("[futex]", "mark") "," WAIT)
						LINE(SAMPLES(1), FRAME("[Missed Kernel Stack]", "missed") "," WAIT)
						LINE(SAMPLES(1), FRAME("tick", "kernel")),
					NULL);

	assert_int_equal(taken.nr, 4);
	assert_string_equal(taken.text[0], "[futex];schedule|wait|1|0");
	assert_string_equal(taken.text[1], "|[futex];wait|1|0");
	assert_string_equal(taken.text[2], "[Missed Kernel Stack]|wait|1|0");
	assert_string_equal(taken.text[3], "tick||1|0");
}

static void waits(void **state)
{
	struct taken taken = records_of(LINE("\"values\":[{\"type\":\"waits\",\"unit\":\"count\",\"value\":6},"
					     "{\"type\":\"shortest\",\"unit\":\"nanoseconds\",\"fold\":\"min\",\"value\":5},"
					     "{\"type\":\"blocked\",\"unit\":\"nanoseconds\",\"value\":9000}]",
					     WAIT),
					NULL);

	assert_int_equal(taken.nr, 1);
	assert_string_equal(taken.text[0], "|wait|6|9000");
}

static void names_of_interpreters(void **state)
{
	struct taken taken = records_of(LINE(SAMPLES(1), "{\"name\":\"main\",\"kind\":\"python\",\"file\":\"/srv/app.py\",\"line\":7},"
					     "{\"name\":\"run\",\"kind\":\"native\",\"file\":\"/src/run.c\"},"
					     "{\"name\":\"x\",\"kind\":\"java\",\"file\":\"\"}"),
					NULL);

	assert_string_equal(taken.text[0], "|main (app.py);run;x|1|0");
}

/* A count is an int32, and the server drops a record that is another's with the same count. */
static void large_counts(void **state)
{
	struct taken taken = records_of(LINE("\"values\":[{\"unit\":\"count\",\"value\":6442450941},"
					     "{\"unit\":\"nanoseconds\",\"value\":600}]",
					     FRAME("f", "native")),
					NULL);

	assert_int_equal(taken.nr, 4);
	assert_string_equal(taken.text[0], "|f|2147483647|200");
	assert_string_equal(taken.text[1], "|f|2147483646|199");
	assert_string_equal(taken.text[2], "|f|2147483645|200");
	assert_string_equal(taken.text[3], "|f|3|1");
}

/* Names are cut between characters: the server refuses a message that is not UTF-8. */
static void long_names(void **state)
{
	char line[4096];
	size_t size = (size_t)snprintf(line, sizeof(line), "{\"record\":\"sample\"," SAMPLES(1) ",\"stack\":[{\"name\":\"");
	struct sky_stacks stacks;

	for (int i = 0; i < 1000; i++)
		size += (size_t)snprintf(line + size, sizeof(line) - size, "\xe2\x82\xac");
	snprintf(line + size, sizeof(line) - size, "\",\"kind\":\"native\"}]}\n");
	assert_int_equal(sky_stacks_read(&stacks, line, strlen(line), NULL), 0);
	assert_int_equal(strlen(stacks.names.data), 1023); /* 341 of three bytes */
	sky_stacks_done(&stacks);
}

static void no_profile(void **state)
{
	static const char *const texts[] = { "{", "nonsense", "[]", LINE(SAMPLES(1), "3"), "{\"record\":\"sample\",\"stack\":7}" };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct sky_stacks stacks;
		struct diag diag = { 0 };

		assert_int_equal(sky_stacks_read(&stacks, texts[i], strlen(texts[i]), &diag), -EBADMSG);
		assert_non_null(strstr(diag.text, "cannot be read"));
		sky_stacks_done(&stacks);
	}
}

/* --- what a server says --------------------------------------------------------------------------------------------------------------- */

static void answer_with(struct buffer *buffer, const char *id, uint32_t pid, const struct sky_entity *entity)
{
	const char *const texts[] = { entity->layer, entity->service, entity->instance, entity->name, entity->label };
	size_t process = protobuf_open(buffer, 1), host, of_entity;

	protobuf_bytes(buffer, 1, id, strlen(id));
	host = protobuf_open(buffer, 2);
	protobuf_u64(buffer, 1, pid);
	of_entity = protobuf_open(buffer, 2);
	for (uint32_t i = 0; i < ARRAY_SIZE(texts); i++)
		protobuf_bytes(buffer, i + 1, texts[i], strlen(texts[i]));
	protobuf_close(buffer, of_entity);
	protobuf_close(buffer, host);
	protobuf_close(buffer, process);
}

/* By pid and whole entity; an id that is too long is none. */
static void ids(void **state)
{
	const struct sky_entity entity = { "OS_LINUX", "s", "i", "n", "l" }, other = { "OS_LINUX", "s", "i", "n", "m" };
	struct sky_process a = { .entity = entity, .pid = 7 }, b = { .entity = other, .pid = 8 }, c = { .entity = entity, .pid = 9 };
	struct sky_process *const processes[] = { &a, &b, &c };
	struct buffer buffer = BUFFER_INIT(65536);
	char long_id[SKY_ID_BYTES + 1];

	memset(long_id, 'x', SKY_ID_BYTES);
	long_id[SKY_ID_BYTES] = '\0';
	answer_with(&buffer, "of b's entity", 7, &other);
	answer_with(&buffer, "a", 7, &entity);
	answer_with(&buffer, "nobody", 1000, &entity);
	answer_with(&buffer, long_id, 8, &other);
	assert_int_equal(buffer.err, 0);
	assert_true(sky_read_ids(reader_of(buffer.data, buffer.size), processes, 3));
	assert_false(sky_read_ids(reader_of("\xff\xff\xff", 3), processes, 3));
	assert_string_equal(a.id, "a");
	assert_string_equal(b.id, "");
	assert_string_equal(c.id, "");
	buffer_done(&buffer);
}

static void periods(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns; /* 0: refused */
	} cases[] = { { "9ms", 9000000 },	 { "1500us", 1500000 },	  { "2s", 2000000000 }, { "1m", 60000000000 }, { "1ms", 1000000 },
		      { "3600s", 3600000000000 }, { "", 0 },		  { "9x", 0 },		{ "9", 0 },	       { "ms", 0 },
		      { "500us", 0 },		 { "0ms", 0 },		  { "-9ms", 0 },	{ "9 ms", 0 },	       { "9msx", 0 },
		      { "1.5s", 0 },		 { "61m", 0 },		  { "99999999999999999999s", 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t ns = 0;

		assert_int_equal(sky_period_parse(cases[i].text, &ns), cases[i].ns ? 0 : -EINVAL);
		assert_int_equal(ns, cases[i].ns);
	}
}

#define POLICY(service, uuid, checks) "{\"ServiceName\":\"" service "\",\"UUID\":\"" uuid "\",\"Profiling\":{" checks "}}"

static void policies(void **state)
{
	static const char json[] = "[" POLICY("a", "1", "\"ON_CPU\":{\"PROCESS_CPU\":{\"Threshold\":\"80\",\"Period\":10,\"Count\":5}},"
						 "\"OFF_CPU\":{\"SYSTEM_LOAD\":{\"Threshold\":\"1.5\",\"Period\":3,\"Count\":3}}") ","
			POLICY("b", "2", "\"ON_CPU\":{\"PROCESS_CPU\":{\"Threshold\":\"80\",\"Period\":10,\"Count\":11},"
					 "\"HTTP_ERROR_RATE\":{\"Threshold\":\"1\",\"Period\":1,\"Count\":1}},\"NETWORK\":{}") "]",
			  again[] = "[" POLICY("a", "3", "") "]";
	struct sky_policy_list all = { 0 };

	assert_int_equal(sky_policy_read(&all, json, strlen(json), NULL), 0);
	assert_int_equal(all.nr, 2);
	assert_int_equal(all.all[0].nr, 2);
	assert_true(all.all[0].checks[0].threshold == 80 && all.all[0].checks[0].count == 5 && !all.all[0].checks[0].is_off_cpu);
	assert_true(all.all[0].checks[1].threshold == 1.5 && all.all[0].checks[1].is_off_cpu);
	assert_int_equal(all.all[1].nr, 0); /* more than its period; not measured; not profiled */
	assert_int_equal(sky_policy_read(&all, again, strlen(again), NULL), 0);
	assert_int_equal(all.nr, 2);
	assert_int_equal(all.all[0].nr, 0);
	assert_int_equal(sky_policy_read(&all, again, strlen(again), NULL), 0);
	assert_int_equal(sky_policy_read(&all, "[{\"ServiceName\":3", 17, NULL), -EBADMSG);
	sky_policy_list_done(&all);
}

static uint32_t nr_left_out;

static void count_left_out(const char *service, const char *what)
{
	nr_left_out += strstr(what, "no room") != NULL;
}

/* Services come and go: those that are gone make room, and what finds none is no failure. */
static void more_policies_than_room(void **state)
{
	CLEANUP(buffer_done) struct buffer json = BUFFER_INIT((size_t)1 << 20);
	struct sky_policy_list all = { .left_out = count_left_out };
	char text[128];

	for (int i = 0; i < SKY_MAX_POLICIES + 3; i++) {
		snprintf(text, sizeof(text), "%c" POLICY("s%d", "u", ""), i ? ',' : '[', i);
		buffer_append(&json, text, strlen(text));
	}
	buffer_append(&json, "]", 1);
	for (int i = 1; i <= 2; i++) {
		assert_int_equal(sky_policy_read(&all, json.data, json.size, NULL), 0);
		assert_int_equal(all.nr, SKY_MAX_POLICIES);
		assert_int_equal(nr_left_out, 3 * i);
	}
	sky_policy_keep_wanted(&all);
	assert_int_equal(all.nr, SKY_MAX_POLICIES);
	assert_string_equal(sky_policy_want(&all, "s7"), "u");
	assert_string_equal(sky_policy_want(&all, "s2000"), "");
	sky_policy_keep_wanted(&all);
	assert_int_equal(all.nr, 1);
	assert_string_equal(all.all[0].service, "s7");
	sky_policy_list_done(&all);
}

static void periods_beyond_32_bits(void **state)
{
	static const char json[] = "[" POLICY("a", "1", "\"ON_CPU\":{\"PROCESS_CPU\":{\"Threshold\":\"80\",\"Period\":4294967306,"
						 "\"Count\":4294967301}}") "]";
	struct sky_policy_list all = { 0 };

	assert_int_equal(sky_policy_read(&all, json, strlen(json), NULL), 0);
	assert_int_equal(all.all[0].nr, 0);
	sky_policy_list_done(&all);
}

/* --- names ---------------------------------------------------------------------------------------------------------------------------- */

static void templates(void **state)
{
	const struct process_identity identity = { .service = "shop", .executable = "nginx" };
	struct sky_names names = { "OS_LINUX", "{service}", "{host}", "{executable} {pid}{container}", "h1" };
	struct sky_entity entity;
	struct diag diag = { 0 };

	assert_int_equal(sky_names_check(&names, &diag), 0);
	sky_names_fill(&names, 42, &identity, &entity);
	assert_string_equal(entity.service, "shop");
	assert_string_equal(entity.instance, "h1");
	assert_string_equal(entity.name, "nginx 42");
	assert_string_equal(entity.label, "nginx");
	names.service = "{container}";
	sky_names_fill(&names, 42, &identity, &entity);
	assert_string_equal(entity.service, "unknown");
	names.service = "{nothing}";
	assert_int_equal(sky_names_check(&names, &diag), -EINVAL);
	assert_non_null(strstr(diag.text, "'{nothing}'"));
	names.service = "{pid";
	assert_int_equal(sky_names_check(&names, NULL), -EINVAL);
}

/* Names that differ only in what finds no room are two. */
static void names_that_are_cut(void **state)
{
	struct process_identity identity = { .executable = "nginx" };
	const struct sky_names names = { "OS_LINUX", "{service}", "{host}", "{service}/{service}/{pid}", "h1" };
	struct sky_entity a, b;

	memset(identity.service, 'x', sizeof(identity.service) - 1);
	sky_names_fill(&names, 1, &identity, &a);
	sky_names_fill(&names, 2, &identity, &b);
	assert_int_equal(strlen(a.name), sizeof(a.name) - 1);
	assert_string_not_equal(a.name, b.name);
	assert_memory_equal(a.name, b.name, sizeof(a.name) - 18);
	assert_int_equal(strlen(a.service), sizeof(a.service) - 1); /* it has just room */
	assert_null(strchr(a.service, '~'));
	sky_names_fill(&names, 1, &identity, &b);
	assert_string_equal(a.name, b.name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_are_merged_by_name), cmocka_unit_test(sides),	  cmocka_unit_test(waits),
		cmocka_unit_test(names_of_interpreters),     cmocka_unit_test(large_counts), cmocka_unit_test(long_names),
		cmocka_unit_test(no_profile),		     cmocka_unit_test(ids),	  cmocka_unit_test(periods),
		cmocka_unit_test(policies),		     cmocka_unit_test(templates),	  cmocka_unit_test(more_policies_than_room),
		cmocka_unit_test(periods_beyond_32_bits),    cmocka_unit_test(names_that_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
