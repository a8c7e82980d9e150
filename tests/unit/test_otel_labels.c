// SPDX-License-Identifier: Apache-2.0
/* Threads' contexts: read on the host by the kernel side's code (bpf/labels/otel_labels.h), in memory made by hand; and as labels of a
 * profile (stacks/label_table). Real programs: tests/system/otel.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "walk_host.h"

#include "labels/otel_labels.h"
#include "stacks/label_table.h"

#define BASE	 0x7f0000000000ULL
#define TLS_BASE (BASE + 0x100)
#define CONTEXT	 (BASE + 0x1000)
#define TGID	 77

static const struct sonde_otel known = { .process.root = { .kind = SONDE_TLS_STATIC, .off = -8 } };

static uint8_t memory[0x4000];
static uint64_t unreadable;
static uint16_t nr_bytes;
static struct walk w;
static struct label_walk g;

static long read_memory(void *to, __u32 size, __u64 from)
{
	uint64_t off = from - BASE;

	if (off >= sizeof(memory) || size > sizeof(memory) - off || (unreadable >= from && unreadable < from + size))
		return -EFAULT;
	memcpy(to, memory + off, size);
	return 0;
}

static void put_word(uint64_t pc, uint64_t word)
{
	memcpy(memory + (pc - BASE), &word, sizeof(word));
}

static void put_attribute(uint8_t key, const char *text)
{
	uint8_t *to = memory + (CONTEXT - BASE) + SONDE_CONTEXT_PUBLISHED + nr_bytes;

	to[0] = key;
	to[1] = (uint8_t)strlen(text);
	memcpy(to + 2, text, strlen(text));
	nr_bytes += (uint16_t)(2 + strlen(text));
	memcpy(memory + (CONTEXT - BASE) + 26, &nr_bytes, sizeof(nr_bytes));
}

static void put_context(uint8_t number)
{
	uint8_t *to = memory + (CONTEXT - BASE);

	memset(memory, 0xee, sizeof(memory));
	memset(&g, 0x5a, sizeof(g));
	memset(to, 0, SONDE_CONTEXT_PUBLISHED);
	nr_bytes = 0;
	unreadable = 0;
	host_read = read_memory;
	host_tls_base = TLS_BASE;
	put_word(TLS_BASE - 8, CONTEXT);
	for (int i = 0; number && i < 24; i++)
		to[i] = (uint8_t)(number + i);
	to[24] = 1;
	to[25] = 0x03; /* sampled, random */
}

static int read_context(void)
{
	otel_begin(&w, &g, TGID);
	g.record.context_bytes = 0;
	return otel_labels(&w, &g, &known);
}

static void none(void **state)
{
	put_context(1);
	put_word(TLS_BASE - 8, 0);
	assert_int_equal(read_context(), OTEL_NONE);
	for (int valid = 0; valid < 256; valid++) {
		put_context(1);
		memory[CONTEXT - BASE + 24] = (uint8_t)valid;
		assert_int_equal(read_context(), valid == 1 ? OTEL_FOUND : OTEL_NONE);
	}
	put_context(0);
	assert_int_equal(read_context(), OTEL_NONE);
	put_attribute(0, "x");
	assert_int_equal(read_context(), OTEL_FOUND);
	host_tls_base = 0;
	assert_int_equal(read_context(), OTEL_LOST);
	put_context(1);
	unreadable = TLS_BASE - 8;
	assert_int_equal(read_context(), OTEL_LOST);
	for (uint64_t i = 0; i < SONDE_CONTEXT_PUBLISHED; i++) {
		put_context(1);
		unreadable = CONTEXT + i;
		assert_int_equal(read_context(), OTEL_LOST);
	}
}

/* Equal contexts have one hash, whatever was in the memory before, and whatever the flags of the trace. Others have another. */
static void hashes(void **state)
{
	uint64_t hash, other;

	put_context(1);
	put_attribute(3, "GET");
	assert_int_equal(read_context(), OTEL_FOUND);
	assert_int_equal(g.record.context_bytes, 40);
	hash = g.record.hash;
	memset(&g, 0xa5, sizeof(g));
	memory[CONTEXT - BASE + 25] = 0;
	assert_int_equal(read_context(), OTEL_FOUND);
	assert_int_equal(g.record.hash, hash);
	for (int i = 0; i < SONDE_CONTEXT_PUBLISHED + nr_bytes; i++) {
		if (i >= 24 && i < 28)
			continue;
		memory[CONTEXT - BASE + (uint64_t)i] ^= 1;
		assert_int_equal(read_context(), OTEL_FOUND);
		other = g.record.hash;
		memory[CONTEXT - BASE + (uint64_t)i] ^= 1;
		assert_int_not_equal(other, hash);
	}
	w.hash_begin++; /* another process */
	assert_int_equal(read_context(), OTEL_FOUND);
	assert_int_not_equal(g.record.hash, hash);
	w.hash_begin--;
	g.record.nr_labels = 2; /* of the language: the set is of both */
	g.record.hash = 1234;
	assert_int_equal(otel_labels(&w, &g, &known), OTEL_FOUND);
	assert_int_not_equal(g.record.hash, hash);
	assert_memory_equal(&g.labels[2], memory + (CONTEXT - BASE), 24);
}

/* Attributes of each number of bytes: what is too long is left out, and nothing is written behind it. */
static void sizes(void **state)
{
	for (uint32_t size = 0; size <= 1100; size++) {
		uint16_t published = (uint16_t)size;
		const uint8_t *end = (const uint8_t *)&g + sizeof(g);

		put_context(1);
		memcpy(memory + (CONTEXT - BASE) + 26, &published, sizeof(published));
		assert_int_equal(read_context(), OTEL_FOUND);
		assert_int_equal(g.record.context_bytes, size > SONDE_CONTEXT_ATTRIBUTES ? 32 : 32 + (size + 7) / 8 * 8);
		assert_memory_equal((uint8_t *)g.labels + 32, memory + (CONTEXT - BASE) + 28, size > SONDE_CONTEXT_ATTRIBUTES ? 0 : size);
		assert_true(((uint8_t *)g.labels + g.record.context_bytes) < end && ((uint8_t *)g.labels)[g.record.context_bytes] == 0x5a);
	}
	put_context(1);
	put_attribute(1, "text");
	unreadable = CONTEXT + SONDE_CONTEXT_PUBLISHED; /* the span is there */
	assert_int_equal(read_context(), OTEL_FOUND);
	assert_int_equal(g.record.context_bytes, 32);
	assert_int_equal(g.record.fault, CONTEXT + SONDE_CONTEXT_PUBLISHED);
}

/* --- labels --------------------------------------------------------------------------------------------------------------------------- */

static bool knows_names;

static uint32_t context_key(void *arg, uint32_t tgid, uint32_t generation, uint8_t number, char *key)
{
	static const char *const names[] = { "zone", "route", "a.name.of.forty.bytes.that.finds.no.room", "trace_id" };
	uint32_t size;

	assert_int_equal(tgid, TGID);
	if (!knows_names || number >= ARRAY_SIZE(names))
		return 0;
	size = (uint32_t)strlen(names[number]);
	memcpy(key, names[number], size < SONDE_LABEL_KEY_BYTES ? size : SONDE_LABEL_KEY_BYTES);
	return size;
}

static void touch(void *arg, uint32_t tgid, uint64_t pc)
{
	assert_int_equal(pc, CONTEXT + SONDE_CONTEXT_PUBLISHED);
}

static const struct stack_walker walker = { .context_key = context_key, .touch = touch };

/* The labels of the context in memory, as "key=text,...". */
static const char *labels_with(struct label_table *table, uint64_t hash)
{
	struct profile *profile = profile_new();
	const struct profile_label *labels;
	static char text[1024];
	uint32_t nr, at = 0;

	labels = profile_labels_at(profile, label_table_labels(table, hash, profile), &nr);
	text[0] = '\0';
	for (uint32_t i = 0; i < nr; i++)
		at += (uint32_t)(labels[i].is_number
				     ? snprintf(text + at, sizeof(text) - at, "%s=%d,", profile_string_text(profile, labels[i].key),
						(int)labels[i].number)
				     : snprintf(text + at, sizeof(text) - at, "%s=%s,", profile_string_text(profile, labels[i].key),
						profile_string_text(profile, labels[i].text)));
	profile_free(profile);
	return text;
}

static const char *labels_of(const struct stack_walker *of)
{
	struct label_table *table = label_table_new(1 << 20);
	const char *text;

	assert_int_equal(read_context(), OTEL_FOUND);
	assert_int_equal(label_table_record(table, &g.record, of), 0);
	text = labels_with(table, g.record.hash);
	label_table_free(table);
	return text;
}

#define IDS "span_id=1112131415161718,trace_id=0102030405060708090a0b0c0d0e0f10,"

static void labels(void **state)
{
	char twenty[21] = "xxxxxxxxxxxxxxxxxxxx", many[1024] = IDS;
	static const struct stack_walker nameless = { .touch = touch };

	knows_names = true;
	put_context(1);
	assert_string_equal(labels_of(&walker), IDS);
	put_attribute(1, "/cart");
	put_attribute(0, "eu");
	put_attribute(1, "/checkout"); /* the last one counts */
	assert_string_equal(labels_of(&walker), "route=/checkout," IDS "zone=eu,");
	put_attribute(2, "y");
	assert_string_equal(labels_of(&walker), "a.name.of.forty.bytes.that.finds…=y,route=/checkout," IDS "zone=eu,");
	put_attribute(9, "no name");
	assert_string_equal(labels_of(&walker), "a.name.of.forty.bytes.that.finds…=y,route=/checkout," IDS "zone=eu,labels_left_out=1,");
	assert_string_equal(labels_of(&nameless), IDS "labels_left_out=4,");
	put_context(1);
	put_attribute(3, "zzz"); /* would hide the id */
	assert_string_equal(labels_of(&walker), IDS "labels_left_out=1,");
	put_context(1);
	put_attribute(0, "eu");
	memory[CONTEXT - BASE + 28 + 1] = 200; /* longer than all of them: no whole one */
	assert_string_equal(labels_of(&walker), IDS);
	put_context(1);
	put_attribute(0, "a\nb\xff");
	assert_string_equal(labels_of(&walker), IDS "zone=a\xef\xbf\xbd" "b\xef\xbf\xbd,");
	put_context(1); /* half an id is none */
	memset(memory + (CONTEXT - BASE) + 16, 0, 8);
	put_attribute(0, "eu");
	assert_string_equal(labels_of(&walker), "zone=eu,");
	put_context(1);
	for (int i = 0; i < 44; i++)
		put_attribute(0, twenty);
	put_attribute(0, "last");
	assert_true(nr_bytes <= SONDE_CONTEXT_ATTRIBUTES);
	assert_string_equal(labels_of(&walker), IDS "zone=last,");
	put_context(1);
	nr_bytes = SONDE_CONTEXT_ATTRIBUTES + 1;
	memcpy(memory + (CONTEXT - BASE) + 26, &nr_bytes, sizeof(nr_bytes));
	strcat(many, "labels_left_out=1,");
	assert_string_equal(labels_of(&walker), many);
}

/* Names that are published later. */
static void later(void **state)
{
	struct label_table *table = label_table_new(1 << 20);

	knows_names = false;
	put_context(1);
	put_attribute(0, "eu");
	put_attribute(7, "never");
	assert_int_equal(read_context(), OTEL_FOUND);
	assert_int_equal(label_table_record(table, &g.record, &walker), 0);
	assert_string_equal(labels_with(table, g.record.hash), IDS "labels_left_out=2,");
	assert_int_equal(label_table_ask_again(table, &walker), 0);
	assert_string_equal(labels_with(table, g.record.hash), IDS "labels_left_out=2,");
	knows_names = true;
	for (int i = 0; i < 8; i++)
		assert_int_equal(label_table_ask_again(table, &walker), 0);
	assert_string_equal(labels_with(table, g.record.hash), IDS "zone=eu,labels_left_out=1,");
	assert_int_equal(label_table_record(table, &g.record, &walker), 0); /* again: the same */
	assert_false(label_table_owner(table, g.record.hash)->is_disputed);
	g.labels[0].key_bytes ^= 1; /* in the trace */
	assert_int_equal(label_table_record(table, &g.record, &walker), 0);
	assert_true(label_table_owner(table, g.record.hash)->is_disputed);
	label_table_free(table);
}

/* More sets than are tried again. */
static void many_later(void **state)
{
	struct label_table *table = label_table_new(1 << 20);

	knows_names = false;
	for (uint32_t i = 0; i < 1000; i++) {
		put_context(1);
		memcpy(memory + (CONTEXT - BASE), &i, sizeof(i));
		put_attribute(0, "eu");
		assert_int_equal(read_context(), OTEL_FOUND);
		assert_int_equal(label_table_record(table, &g.record, &walker), 0);
	}
	assert_int_equal(label_table_ask_again(table, &walker), 0);
	label_table_free(table);
}

/* More than there is room for are lost, and are no reason to end. */
static void full(void **state)
{
	struct label_table *table = label_table_new(10000);
	uint32_t nr_kept = 0;

	knows_names = false;
	for (uint32_t i = 0; i < 1000; i++) {
		put_context(1);
		memcpy(memory + (CONTEXT - BASE), &i, sizeof(i));
		put_attribute(0, "eu");
		assert_int_equal(read_context(), OTEL_FOUND);
		assert_int_equal(label_table_record(table, &g.record, &walker), 0);
		nr_kept += label_table_owner(table, g.record.hash) != NULL;
	}
	assert_in_range(nr_kept, 10, 999);
	knows_names = true;
	for (int i = 0; i < 8; i++)
		assert_int_equal(label_table_ask_again(table, &walker), 0);
	assert_in_range(label_table_bytes(table), 9000, 10000);
	label_table_free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(none),	  cmocka_unit_test(hashes), cmocka_unit_test(sizes),
		cmocka_unit_test(labels), cmocka_unit_test(later),  cmocka_unit_test(many_later),
		cmocka_unit_test(full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
