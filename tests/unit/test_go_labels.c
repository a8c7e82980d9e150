// SPDX-License-Identifier: Apache-2.0
/* Go's labels: read on the host by the kernel side's code (bpf/labels/go_labels.h), in memory made by hand; what a file says about them
 * (runtime/go); and their form in a profile (stacks/label_table). Real programs: tests/system/go_labels.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>

#include "walk_host.h"

struct label_walk;
static struct label_walk *label_walk_of(struct walk *w);
#include "labels/go_labels.h"
#include "runtime/go/go_offsets.h"
#include "stacks/label_table.h"

#define BASE	 0xc000000000ULL
#define TLS_BASE (BASE + 0x100)
#define G0	 (BASE + 0x200)
#define M	 (BASE + 0x400)
#define CURG	 (BASE + 0x600)
#define LABELS	 (BASE + 0x800)
#define MAP	 (BASE + 0x900)
#define LIST	 (BASE + 0x1000)
#define BUCKETS	 (BASE + 0x2000)
#define OLD	 (BASE + 0x6000)
#define OVERFLOW (BASE + 0x8000)
#define TEXTS	 (BASE + 0xa000)
#define TGID	 77

static const struct sonde_go list_form = {
	.process.root = { .kind = SONDE_TLS_STATIC, .off = -8 }, .m_curg = 184, .g_labels = 352, .labels = SONDE_GO_LABELS_LIST
};
static const struct sonde_go map_form = {
	.process.root = { .kind = SONDE_TLS_STATIC, .off = -8 }, .m_curg = 192, .g_labels = 344, .labels = SONDE_GO_LABELS_MAP
};

static uint8_t memory[0x10000];
static uint64_t next_text, unreadable;
static uint32_t nr_reads, faulty_read;
static struct walk w;
static struct label_walk g;

static struct label_walk *label_walk_of(struct walk *walk)
{
	return &g;
}

static long read_memory(void *to, __u32 size, __u64 from)
{
	uint64_t off = from - BASE;

	if (++nr_reads == faulty_read || off >= sizeof(memory) || size > sizeof(memory) - off ||
	    (unreadable >= from && unreadable < from + size))
		return -14;
	memcpy(to, memory + off, size);
	return 0;
}

static void put(uint64_t vaddr, uint64_t word)
{
	memcpy(memory + (vaddr - BASE), &word, sizeof(word));
}

static void put_text(uint64_t vaddr, const char *text)
{
	memcpy(memory + (next_text - BASE), text, strlen(text));
	put(vaddr, next_text);
	put(vaddr + 8, strlen(text));
	next_text += strlen(text);
}

static void setup_thread(const struct sonde_go *go)
{
	memset(memory, 0, sizeof(memory));
	memset(&g, 0x5a, sizeof(g));
	next_text = TEXTS;
	unreadable = faulty_read = nr_reads = 0;
	host_read = read_memory;
	host_tls_base = TLS_BASE;
	put(TLS_BASE - 8, G0); /* on the thread's own stack: the goroutine is m.curg */
	put(G0 + GO_G_M, M);
	put(M + go->m_curg, CURG);
	put(CURG + go->g_labels, LABELS);
}

static void put_list(uint32_t nr)
{
	char key[16];

	setup_thread(&list_form);
	put(LABELS, LIST);
	put(LABELS + 8, nr);
	for (uint32_t i = 0; i < nr; i++) {
		snprintf(key, sizeof(key), "key%02u", i);
		put_text(LIST + i * 32, key);
		put_text(LIST + i * 32 + 16, i % 2 ? "odd" : "even");
	}
}

static void put_cell(uint64_t bucket, uint32_t cell, uint8_t top, const char *key, const char *text)
{
	memory[bucket - BASE + cell] = top;
	put_text(bucket + 8 + cell * 16, key);
	put_text(bucket + 8 + 128 + cell * 16, text);
}

static void put_map(uint64_t nr, uint8_t flags, uint8_t shift, uint64_t old)
{
	setup_thread(&map_form);
	put(LABELS, MAP);
	put(MAP, nr);
	put(MAP + 8, flags | (uint64_t)shift << 8 | 0x1234567800000000ULL);
	put(MAP + 16, BUCKETS);
	put(MAP + 24, old);
}

static const char *text_of(const char *key)
{
	static char text[SONDE_LABEL_TEXT_BYTES + 1];

	for (uint32_t i = 0; i < g.record.nr_labels; i++) {
		if (g.labels[i].key_bytes == strlen(key) && !memcmp(g.labels[i].key, key, strlen(key))) {
			snprintf(text, sizeof(text), "%.*s", (int)g.labels[i].text_bytes, g.labels[i].text);
			return text;
		}
	}
	return NULL;
}

static void check_labels(const struct sonde_go *go, uint32_t nr, uint32_t nr_left)
{
	assert_int_equal(go_labels(&w, &g, go, TGID), GO_LABELS_FOUND);
	assert_int_equal(g.record.type, SONDE_RECORD_LABELS);
	assert_int_equal(g.record.tgid, TGID);
	assert_int_equal(g.record.nr_labels, nr);
	assert_int_equal(g.record.nr_left, nr_left);
}

static void sorted_list(void **state)
{
	uint64_t hash;

	put_list(3);
	check_labels(&list_form, 3, 0);
	assert_string_equal(text_of("key00"), "even");
	assert_string_equal(text_of("key01"), "odd");
	assert_string_equal(text_of("key02"), "even");
	hash = g.record.hash;
	memset(&g, 0xa5, sizeof(g));
	check_labels(&list_form, 3, 0);
	assert_int_equal(g.record.hash, hash);
	w.hash_begin++; /* another process */
	assert_int_equal(go_labels(&w, &g, &list_form, TGID + 1), GO_LABELS_FOUND);
	assert_int_not_equal(g.record.hash, hash);
	w.hash_begin--;
	put_text(LIST + 16, "Even");
	check_labels(&list_form, 3, 0);
	assert_int_not_equal(g.record.hash, hash);
	put_list(12);
	check_labels(&list_form, 8, 4);
	assert_non_null(text_of("key07"));
	put_list(8);
	hash = g.record.hash;
	check_labels(&list_form, 8, 0);
	assert_int_not_equal(g.record.hash, hash);
	put_list(0);
	assert_int_equal(go_labels(&w, &g, &list_form, TGID), GO_LABELS_NONE);
}

/* No goroutine, no labels, or a pointer on the way to them is missing. */
static void nothing_there(void **state)
{
	put_list(2);
	put(CURG + list_form.g_labels, 0);
	assert_int_equal(go_labels(&w, &g, &list_form, TGID), GO_LABELS_NONE);
	put(M + list_form.m_curg, 0);
	assert_int_equal(go_labels(&w, &g, &list_form, TGID), GO_LABELS_NONE);
	put(G0 + GO_G_M, 0);
	assert_int_equal(go_labels(&w, &g, &list_form, TGID), GO_LABELS_LOST);
	put(TLS_BASE - 8, 0);
	assert_int_equal(go_labels(&w, &g, &list_form, TGID), GO_LABELS_NONE);
	host_tls_base = 0;
	assert_int_equal(go_labels(&w, &g, &list_form, TGID), GO_LABELS_LOST);
	put_list(2);
	put(LABELS + 8, 1ull << 40);
	assert_int_equal(go_labels(&w, &g, &list_form, TGID), GO_LABELS_LOST);
	put_map(1, 0, 0, 0);
	put(LABELS, 0);
	assert_int_equal(go_labels(&w, &g, &map_form, TGID), GO_LABELS_NONE);
	put_map(0, 0, 0, 0);
	put(MAP + 16, 0);
	assert_int_equal(go_labels(&w, &g, &map_form, TGID), GO_LABELS_NONE);
	put(MAP, ~0ull);
	assert_int_equal(go_labels(&w, &g, &map_form, TGID), GO_LABELS_LOST);
}

/* Each read fails in turn. A label that cannot be read is left out and counted; without what leads to the labels, all of them are lost. */
static void each_fault(void **state)
{
	uint32_t nr_lost = 0, nr_short = 0;

	put_list(3);
	check_labels(&list_form, 3, 0);
	assert_int_equal(g.record.fault, 0);
	for (uint32_t i = 1, last = nr_reads; i <= last; i++) {
		int result;

		put_list(3);
		faulty_read = i;
		result = go_labels(&w, &g, &list_form, TGID);
		if (result == GO_LABELS_LOST) {
			nr_lost++;
			continue;
		}
		assert_int_equal(result, GO_LABELS_FOUND);
		assert_int_equal(g.record.nr_labels, 2);
		assert_int_equal(g.record.nr_left, 1);
		assert_true(g.record.fault >= TEXTS && g.record.fault < next_text);
		nr_short++;
	}
	assert_int_equal(nr_lost, 6);
	assert_int_equal(nr_short, 6);
}

static void long_texts(void **state)
{
	char text[200];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	put_list(1);
	put_text(LIST, text);
	put_text(LIST + 16, text + 135); /* 64 bytes: fits */
	check_labels(&list_form, 1, 0);
	assert_int_equal(g.labels[0].key_bytes, 199);
	assert_int_equal(g.labels[0].text_bytes, 64);
	assert_memory_equal(g.labels[0].key, text, SONDE_LABEL_KEY_BYTES);
	assert_memory_equal(g.labels[0].text, text, SONDE_LABEL_TEXT_BYTES);
	put(LIST, TEXTS);
	put(LIST + 8, 1ull << 40); /* the length is invalid, the start is readable */
	check_labels(&list_form, 1, 0);
	assert_int_equal(g.labels[0].key_bytes, UINT32_MAX);
}

static void one_bucket(void **state)
{
	uint64_t hash;

	put_map(2, 0, 0, 0);
	put_cell(BUCKETS, 0, 200, "tenant", "acme");
	put_cell(BUCKETS, 1, 1, "gone", "x"); /* emptyOne */
	put_cell(BUCKETS, 5, 5, "path", "/index");
	check_labels(&map_form, 2, 0);
	assert_string_equal(text_of("tenant"), "acme");
	assert_string_equal(text_of("path"), "/index");
	hash = g.record.hash;
	put_map(2, 0, 0, 0); /* the same set in another order */
	put_cell(BUCKETS, 0, 7, "path", "/index");
	put_cell(BUCKETS, 1, 255, "tenant", "acme");
	check_labels(&map_form, 2, 0);
	assert_int_equal(g.record.hash, hash);
	put_map(2, 0, 0, 0);
	put_cell(BUCKETS, 0, 7, "tenant", "/index");
	put_cell(BUCKETS, 1, 255, "path", "acme");
	check_labels(&map_form, 2, 0);
	assert_int_not_equal(g.record.hash, hash);
}

static void put_twelve(bool other_order)
{
	char key[16], text[16];

	put_map(12, 0, 1, 0);
	put(BUCKETS + 264, OVERFLOW);
	for (uint32_t i = 0; i < 12; i++) {
		uint32_t at = other_order ? 11 - i : i * 5 % 12;

		snprintf(key, sizeof(key), "key%02u", i);
		snprintf(text, sizeof(text), "text%u", i);
		put_cell(at < 4 ? BUCKETS : at < 9 ? OVERFLOW : BUCKETS + 272, at % 4 + (at == 8) * 4, (uint8_t)(100 + i), key, text);
	}
}

/* More labels than there is room for, in buckets with overflow: the labels with the smallest keys are kept, in any order. */
static void overflow_buckets(void **state)
{
	char key[16];
	uint64_t hash;

	for (int order = 0; order < 2; order++) {
		put_twelve(order);
		check_labels(&map_form, 8, 4);
		for (uint32_t i = 0; i < 12; i++) {
			snprintf(key, sizeof(key), "key%02u", i);
			if (i < 8)
				assert_non_null(text_of(key));
			else
				assert_null(text_of(key));
		}
		if (order)
			assert_int_equal(g.record.hash, hash);
		hash = g.record.hash;
	}
	unreadable = OVERFLOW + 9; /* the bucket is unreadable: which labels were found before is random */
	check_labels(&map_form, 0, 12);
	put_twelve(false);
	put(OVERFLOW + 264, OVERFLOW); /* a cycle */
	check_labels(&map_form, 0, 12);
	put_map(4, 0, 8, 0); /* 256 buckets for 4 labels: Go never makes such a map */
	check_labels(&map_form, 0, 4);
}

/* A growing map has its entries in the old buckets, and those that were moved in the new ones. */
static void growing_map(void **state)
{
	put_map(3, 0, 1, OLD);
	put_cell(BUCKETS, 0, 99, "moved", "1");
	put_cell(BUCKETS + 272, 0, 98, "moved_too", "2");
	put_cell(OLD, 0, 2, "moved", "old"); /* evacuatedX */
	put_cell(OLD, 1, 3, "moved_too", "old"); /* evacuatedY */
	put_cell(OLD, 2, 40, "still_here", "3");
	check_labels(&map_form, 3, 0);
	assert_string_equal(text_of("moved"), "1");
	assert_string_equal(text_of("moved_too"), "2");
	assert_string_equal(text_of("still_here"), "3");
	put_map(2, GO_MAP_SAME_SIZE, 1, OLD); /* as many old buckets */
	put_cell(OLD, 7, 99, "first", "1");
	put_cell(OLD + 272, 7, 99, "second", "2");
	check_labels(&map_form, 2, 0);
	assert_string_equal(text_of("second"), "2");
	put_map(1, 0, 1, OLD); /* more entries than the count */
	put_cell(OLD, 7, 99, "first", "1");
	put_cell(BUCKETS, 7, 99, "second", "2");
	check_labels(&map_form, 0, 1);
}

static void versions(void **state)
{
	static const struct {
		const char *text;
		uint32_t major, minor, patch;
	} cases[] = { { "go1.22.12", 1, 22, 12 },
		      { "go1.9", 1, 9, 0 },
		      { "go1.24.3 X:boringcrypto", 1, 24, 3 },
		      { "devel go1.28-0123456 Mon", 1, 28, 0 },
		      { "go1.25rc2", 1, 25, 0 },
		      { "devel +0123456789", 0, 0, 0 },
		      { "", 0, 0, 0 },
		      { "unknown", 0, 0, 0 },
		      { "go1", 1, 0, 0 },
		      { "go99999999999.1", 999999, 0, 0 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct go_version version = { .major = 9 };

		snprintf(version.text, sizeof(version.text), "%s", cases[i].text);
		go_version_parse(&version);
		assert_int_equal(version.major, cases[i].major);
		assert_int_equal(version.minor, cases[i].minor);
		assert_int_equal(version.patch, cases[i].patch);
	}
}

#define WRITTEN(bytes) go_labels_written((const uint8_t *)(bytes), sizeof(bytes) - 1)

static void setter(void **state)
{
	/* 1.16: mov 0x10(%rsp),%rcx; mov %rcx,0x158(%rax); mov (%rsp),%rbp */
	assert_int_equal(WRITTEN("\x48\x8b\x4c\x24\x10\x48\x89\x88\x58\x01\x00\x00\x48\x8b\x2c\x24"), 0x158);
	/* 1.18 and 1.20: cmpl; jne; mov %rax,0x168(%r14); jmp */
	assert_int_equal(WRITTEN("\x83\x3d\x17\x61\x11\x00\x00\x75\x09\x49\x89\x86\x68\x01\x00\x00\xeb\x0f"), 0x168);
	/* 1.26: mov %r14,(%rsp); mov 0x160(%r14),%rcx; call; mov %rax,(%r11); mov %rcx,8(%r11); mov (%rsp),%rcx; mov %rax,0x160(%rcx) */
	assert_int_equal(WRITTEN("\x4c\x89\x34\x24\x49\x8b\x8e\x60\x01\x00\x00\xe8\x00\x00\x00\x00\x49\x89\x03\x49\x89\x4b\x08\x48\x8b\x0c"
				 "\x24\x48\x89\x81\x60\x01\x00\x00\x5d\xc3"),
			 0x160);
	assert_int_equal(WRITTEN("\x48\x89\x81\x60\x01\x00\x00\x48\x89\x81\x68\x01\x00\x00"), 0); /* two */
	assert_int_equal(WRITTEN("\x48\x89\x81\x61\x01\x00\x00"), 0);
	assert_int_equal(WRITTEN("\x48\x89\x81\x60\x01\x01\x00"), 0);
	assert_int_equal(WRITTEN("\x48\x89\x81\x60\x01\x00"), 0);
	assert_int_equal(WRITTEN("\xc3"), 0);
}

/* Labels in the profile. */

static struct {
	struct sonde_labels_record record;
	struct sonde_label labels[SONDE_MAX_LABELS];
} sent;

static uint32_t touched_tgid;
static uint64_t touched_address;

static void touch(void *arg, uint32_t tgid, uint64_t address)
{
	touched_tgid = tgid;
	touched_address = address;
}

static const struct stack_walker toucher = { .touch = touch };

static void set_label(uint32_t i, const char *key, const char *text)
{
	struct sonde_label *label = &sent.labels[i];

	*label = (struct sonde_label){ .key_bytes = (uint32_t)strlen(key), .text_bytes = (uint32_t)strlen(text) };
	memcpy(label->key, key, strlen(key) < sizeof(label->key) ? strlen(key) : sizeof(label->key));
	memcpy(label->text, text, strlen(text) < sizeof(label->text) ? strlen(text) : sizeof(label->text));
}

static void check_label(const struct profile *profile, uint32_t labels, uint32_t i, const char *key, const char *text)
{
	const struct profile_label *label;
	uint32_t nr;

	label = profile_labels_at(profile, labels, &nr);
	assert_true(i < nr);
	assert_string_equal(profile_string_text(profile, label[i].key), key);
	assert_string_equal(profile_string_text(profile, label[i].text), text);
	assert_int_equal(label[i].is_number, 0);
}

static void recorder(void **state)
{
	struct label_table *labels = label_table_new(1 << 20);
	struct profile *profile = profile_new();
	const struct profile_label *label;
	uint32_t number, nr;

	assert_non_null(labels);
	assert_non_null(profile);
	assert_int_equal(label_table_labels(labels, 1, profile), PROFILE_NO_LABELS);
	sent.record = (struct sonde_labels_record){ .hash = 1, .nr_labels = 3 };
	set_label(0, "zone", "eu");
	set_label(1, "a_key_that_is_longer_than_its_field", "0123456789012345678901234567890123456789012345678901234567890123456789");
	/* 61 bytes, then a whole € */
	set_label(2, "b", "0123456789012345678901234567890123456789012345678901234567890\xe2\x82\xac\xe2\x82\xac");
	assert_int_equal(label_table_record(labels, &sent.record, &toucher), 0);
	number = label_table_labels(labels, 1, profile);
	check_label(profile, number, 0, "a_key_that_is_longer_than_its_fi…",
		    "0123456789012345678901234567890123456789012345678901234567890123…");
	check_label(profile, number, 1, "b", "0123456789012345678901234567890123456789012345678901234567890€…");
	check_label(profile, number, 2, "zone", "eu");
	assert_int_equal(label_table_labels(labels, 1, profile), number);
	set_label(0, "zone", "us"); /* a hash refers to one set */
	assert_int_equal(label_table_record(labels, &sent.record, &toucher), 0);
	assert_int_equal(label_table_labels(labels, 1, profile), number);
	sent.record = (struct sonde_labels_record){ .hash = 2, .nr_labels = 2, .nr_left = 5 };
	set_label(0, "bad\xff", "one\ntwo\x1b");
	sent.labels[0].text_bytes = 9; /* includes a NUL */
	set_label(1, "cut", "012345678901234567890123456789012345678901234567890123456789012€"); /* cut within a character */
	assert_int_equal(label_table_record(labels, &sent.record, &toucher), 0);
	number = label_table_labels(labels, 2, profile);
	check_label(profile, number, 0, "bad\xef\xbf\xbd", "one\xef\xbf\xbdtwo\xef\xbf\xbd\xef\xbf\xbd");
	check_label(profile, number, 1, "cut", "012345678901234567890123456789012345678901234567890123456789012…");
	label = profile_labels_at(profile, number, &nr);
	assert_int_equal(nr, 3);
	assert_string_equal(profile_string_text(profile, label[2].key), LABEL_TABLE_LEFT_KEY);
	assert_int_equal(label[2].is_number, 1);
	assert_int_equal(label[2].number, 5);
	sent.record = (struct sonde_labels_record){ .hash = 3, .nr_labels = SONDE_MAX_LABELS + 1 };
	assert_int_equal(label_table_record(labels, &sent.record, &toucher), -74); /* EBADMSG */
	assert_int_equal(touched_address, 0);
	sent.record = (struct sonde_labels_record){ .hash = 4, .nr_left = 1, .tgid = 77, .fault = 0x1234 };
	assert_int_equal(label_table_record(labels, &sent.record, &toucher), 0);
	assert_true(touched_address == 0x1234 && touched_tgid == 77);
	label_table_free(labels);
	profile_free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sorted_list), cmocka_unit_test(nothing_there), cmocka_unit_test(each_fault),
		cmocka_unit_test(long_texts),  cmocka_unit_test(one_bucket),	cmocka_unit_test(overflow_buckets),
		cmocka_unit_test(growing_map), cmocka_unit_test(versions),	cmocka_unit_test(setter),
		cmocka_unit_test(recorder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
