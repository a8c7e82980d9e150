// SPDX-License-Identifier: Apache-2.0
/* How fast the unwind tables of files are built: open, read, interpret, sort, merge, cut. The first pass over a file warms the page cache
 * and is not counted. Prints the best and the median of the others, because a shared machine disturbs some. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <time.h>

#include "unwind/unwind_table.h"

#define PASSES 25

struct figures {
	uint32_t nr_rows, nr_blocks, nr_rules, nr_unsupported, nr_bad_fdes;
	uint64_t ns;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int build_once(const char *path, struct figures *ret_figures)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(rule_table_freep) struct rule_table *rules = rule_table_new(SONDE_MAX_RULES);
	CLEANUP(unwind_table_freep) struct unwind_table *table = NULL; /* freed before its rules */
	struct diag diag = { 0 };
	uint64_t start_ns = now_ns();
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;

	err = fd < 0 || !rules ? diag_errno(&diag, fd < 0 ? errno : ENOMEM, "cannot open") : elf_file_open_fd(fd, &diag, &elf);
	if (err && fd >= 0)
		close(fd);
	if (!err)
		err = unwind_table_build(elf, rules, &diag, &table);
	if (!err) {
		*ret_figures = (struct figures){
			.nr_rows = table->nr_rows,
			.nr_blocks = table->nr_blocks,
			.nr_unsupported = table->nr_unsupported,
			.nr_bad_fdes = table->nr_bad_fdes,
			.ns = now_ns() - start_ns,
		};
		rule_table_rules(rules, &ret_figures->nr_rules);
	} else {
		printf("%s: %s (%d)\n", path, diag.text, err);
	}
	return err;
}

static int by_ns(const void *a, const void *b)
{
	const struct figures *left = a, *right = b;

	return (left->ns > right->ns) - (left->ns < right->ns);
}

int main(int argc, char **argv)
{
	int failed = 0;

	printf("%10s %8s %6s %6s %5s %9s %9s %8s %8s  file\n", "rows", "blocks", "rules", "unsup", "bad", "best ms", "median ms", "Mrows/s",
	       "B/row");
	for (int i = 1; i < argc; i++) {
		struct figures passes[PASSES + 1];
		const struct figures *median = &passes[1 + PASSES / 2];
		int pass = 0;

		while (pass <= PASSES && !build_once(argv[i], &passes[pass]))
			pass++;
		if (pass <= PASSES) {
			failed = 1;
			continue;
		}
		qsort(passes + 1, PASSES, sizeof(passes[0]), by_ns);
		printf("%10" PRIu32 " %8" PRIu32 " %6" PRIu32 " %6" PRIu32 " %5" PRIu32 " %9.2f %9.2f %8.1f %8.2f  %s\n", median->nr_rows,
		       median->nr_blocks, median->nr_rules, median->nr_unsupported, median->nr_bad_fdes, (double)passes[1].ns / 1e6,
		       (double)median->ns / 1e6, (double)median->nr_rows * 1e3 / (double)passes[1].ns,
		       (median->nr_rows * 4.0 + median->nr_blocks * 8.0) / median->nr_rows, argv[i]);
	}
	return failed;
}
