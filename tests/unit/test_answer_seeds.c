// SPDX-License-Identifier: Apache-2.0
/* The seeds of tests/fuzz/fuzz_answers.c are answers of this build: one that is refused at once shows the fuzzer nothing. Argument: their
 * folder. After a change of an answer's layout: answer_dump KIND FILE, the kind is a seed's first byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "audit/audit_message.h"
#include "runtime/file_runtimes.h"
#include "symbolize/code_listing.h"
#include "symbolize/name_answers.h"

#define MAX_BYTES 65536

static const char *folder;

/* The answer, and what it answers at its end. */
static int open_it(uint8_t kind, const uint8_t *bytes, size_t size)
{
	struct file_runtimes runtimes;
	struct name_answers names;
	struct code_listing listing;
	struct reader stacks;
	uint32_t nr;

	if (kind == 0) /* the memory of a process may follow */
		return size < sizeof(runtimes) || file_runtimes_read(bytes, sizeof(runtimes), &runtimes) ||
		       (!runtimes.nr_images && !runtimes.libc.is_known);
	if (kind == 3)
		return code_listing_open(bytes, size, &listing);
	assert_true(size >= sizeof(nr));
	memcpy(&nr, bytes + size - sizeof(nr), sizeof(nr));
	size -= sizeof(nr);
	return kind == 2 ? name_answers_open(bytes, size, nr, &names) : audit_answers_open(bytes, size, nr, &stacks);
}

static void test_seeds(void **state)
{
	static uint8_t bytes[MAX_BYTES];
	struct dirent *entry;
	uint32_t nr = 0;
	DIR *all = opendir(folder);

	assert_non_null(all);
	while ((entry = readdir(all))) {
		char path[1024];
		size_t size;
		FILE *file;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		file = fopen(path, "re");
		assert_non_null(file);
		size = fread(bytes, 1, sizeof(bytes), file);
		fclose(file);
		assert_in_range(size, 2, sizeof(bytes) - 1);
		if (bytes[0] != 1 && open_it(bytes[0], bytes + 1, size - 1)) /* 1: a table, which the fuzzer seals itself */
			fail_msg("%s is not an answer of this build", path);
		nr++;
	}
	closedir(all);
	assert_true(nr >= 10);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_seeds) };

	if (argc != 2)
		return 77;
	folder = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
