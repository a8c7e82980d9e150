// SPDX-License-Identifier: Apache-2.0
/* A changed list of modules changes the hash; nothing else does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "naming/kernel_modules.h"

#define ONE "alpha 4096 2 beta,gamma, Live 0xffffffffc0100000\n"
#define TWO "delta 8192 0 - Live 0xffffffffc0200000 (O)\n"

static char folder[64], list[96], alpha[96];

static int set_up(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/sonde-test-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(list, sizeof(list), "%s/modules", folder);
	snprintf(alpha, sizeof(alpha), "%s/alpha", folder);
	return mkdir(alpha, 0700);
}

static int tear_down(void **state)
{
	unlink(list);
	rmdir(alpha);
	return rmdir(folder);
}

static uint64_t hash_of(const char *text)
{
	FILE *file = fopen(list, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	return kernel_modules_hash(list, folder);
}

static void what_makes_a_module_another_counts(void **state)
{
	static const char *const others[] = {
		"alphb 4096 2 beta,gamma, Live 0xffffffffc0100000\n" TWO, /* name */
		"alpha 8192 2 beta,gamma, Live 0xffffffffc0100000\n" TWO, /* size */
		"alpha 4096 2 beta,gamma, Unloading 0xffffffffc0100000\n" TWO, /* state */
		"alpha 4096 2 beta,gamma, Live 0xffffffffc0110000\n" TWO, /* address */
		ONE, TWO, TWO ONE,
	};
	uint64_t hash = hash_of(ONE TWO);

	assert_true(hash);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_true(hash_of(others[i]) != hash);
}

static void who_uses_it_does_not(void **state)
{
	assert_true(hash_of(ONE TWO) == hash_of("alpha 4096 1 beta, Live 0xffffffffc0100000\n" TWO));
}

/* The list is the same to the byte, but the module was rebuilt and reloaded: only its directory shows it. */
static void a_module_that_is_loaded_anew_counts(void **state)
{
	char older[128];
	uint64_t hash = hash_of(ONE TWO);

	assert_true(hash_of(ONE TWO) == hash);
	snprintf(older, sizeof(older), "%s/older", folder);
	assert_int_equal(rename(alpha, older), 0);
	assert_int_equal(mkdir(alpha, 0700), 0);
	assert_true(hash_of(ONE TWO) != hash);
	assert_int_equal(rmdir(older), 0);
}

static void what_is_not_there_has_none(void **state)
{
	assert_true(!kernel_modules_hash("/nonexistent", folder));
	assert_true(hash_of(ONE TWO) && kernel_modules_hash(list, "/nonexistent"));
}

#define test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(what_makes_a_module_another_counts),
		test(who_uses_it_does_not),
		test(a_module_that_is_loaded_anew_counts),
		test(what_is_not_there_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
