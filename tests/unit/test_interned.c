// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/interned.h"

struct entry {
	uint32_t a, b; /* the key */
	uint64_t value;
};

#define KEY_BYTES offsetof(struct entry, value)
#define MANY 5000

static struct entry *at(const struct interned *list, uint32_t number)
{
	return interned_at(list, number);
}

static void each_stands_once(void **state)
{
	CLEANUP(interned_done) struct interned list = INTERNED_INIT(struct entry, KEY_BYTES, UINT64_MAX);

	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < MANY; i++) {
			uint32_t number = interned_add(&list, &(struct entry){ .a = i % 7, .b = i, .value = (uint64_t)round });

			assert_int_equal(number, i);
			at(&list, number)->value += 10;
		}
	}
	assert_int_equal(list.nr, MANY);
	assert_int_equal(interned_bytes(&list), MANY * sizeof(struct entry));
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(at(&list, i)->b, i);
		assert_int_equal(at(&list, i)->value, 20); /* the first entry was kept, both were counted */
		assert_int_equal(interned_find(&list, &(struct entry){ .a = i % 7, .b = i }), i);
	}
	assert_int_equal(interned_find(&list, &(struct entry){ .a = 7, .b = 7 }), INTERNED_NONE);
}

static void limits(void **state)
{
	CLEANUP(interned_done) struct interned list = INTERNED_INIT(struct entry, KEY_BYTES, 100 * sizeof(struct entry) + 1);

	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(interned_add(&list, &(struct entry){ .a = i }), i);
	assert_int_equal(interned_add(&list, &(struct entry){ .a = 100 }), INTERNED_NONE);
	assert_int_equal(interned_add(&list, &(struct entry){ .a = 99, .value = 1 }), 99);
	assert_int_equal(interned_find(&list, &(struct entry){ .a = 100 }), INTERNED_NONE);
	assert_int_equal(list.nr, 100);
}

/* Several entries with one hash; the caller tells them apart. */
static void hashes_of_the_caller(void **state)
{
	CLEANUP(interned_done) struct interned list = INTERNED_INIT(struct entry, KEY_BYTES, UINT64_MAX);
	uint32_t cursor = 0, *number, sum = 0;

	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(interned_append(&list, i % 2, &(struct entry){ .a = i }), i);
	while ((number = u64_map_each(&list.index, 1, &cursor)))
		sum += at(&list, *number)->a;
	assert_int_equal(sum, 1 + 3 + 5 + 7 + 9);
}

/* A closed list keeps its entries and accepts no new ones. */
static void closed(void **state)
{
	CLEANUP(interned_done) struct interned list = INTERNED_INIT(struct entry, KEY_BYTES, UINT64_MAX);
	CLEANUP(interned_done) struct interned empty = INTERNED_INIT(struct entry, KEY_BYTES, UINT64_MAX);

	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(interned_add(&list, &(struct entry){ .a = i }), i);
	interned_close(&list);
	interned_close(&empty);
	assert_int_equal(list.capacity, MANY);
	assert_int_equal(interned_add(&list, &(struct entry){ .a = MANY }), INTERNED_NONE);
	assert_int_equal(interned_add(&empty, &(struct entry){ .a = 1 }), INTERNED_NONE);
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(at(&list, i)->a, i);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(each_stands_once), cmocka_unit_test(limits),
					    cmocka_unit_test(hashes_of_the_caller), cmocka_unit_test(closed) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
