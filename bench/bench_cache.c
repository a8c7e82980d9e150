// SPDX-License-Identifier: Apache-2.0
/* What the cache of unwind tables saves: compares compiling a file's table with reading it from a cache in a new directory below $TMPDIR.
 * Best of the passes; the page cache is warm. Only files that the cache accepts: root's, on a local file system. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <time.h>

#include "unwind/table_cache.h"

#define PASSES 15

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* Returns the milliseconds of one pass, or -1: the cache does not have the file. `cache` NULL: compiles. `keep`: stores the table there. */
static double pass_ms(const char *path, struct table_cache *cache, struct table_cache *keep, uint32_t *ret_rows)
{
	CLEANUP(rule_table_freep) struct rule_table *rules = rule_table_new(SONDE_MAX_RULES);
	CLEANUP(unwind_table_freep) struct unwind_table *table = NULL; /* freed before its rules */
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	double start = now_ms(), ms;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || !rules || elf_file_open_fd(fd, NULL, &elf))
		return -1;
	if (cache ? table_cache_load(cache, elf, path, rules, &table) : unwind_table_build(elf, rules, NULL, &table))
		return -1;
	ms = now_ms() - start;
	*ret_rows = table->nr_rows;
	if (keep)
		table_cache_keep(keep, elf, path, rules, table);
	return ms;
}

static double best_ms(const char *path, struct table_cache *cache, struct table_cache *keep, uint32_t *ret_rows)
{
	double best = -1;

	for (int pass = 0; pass < PASSES; pass++) {
		double ms = pass_ms(path, cache, pass ? NULL : keep, ret_rows);

		if (best < 0 || ms < best)
			best = ms;
	}
	return best;
}

static void remove_directory(const char *path)
{
	CLEANUP(closedirp) DIR *dir = opendir(path);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(dir), entry->d_name, 0);
	}
	rmdir(path);
}

int main(int argc, char **argv)
{
	char path[] = "/tmp/bench-cache-XXXXXX";
	struct diag diag = { 0 };
	struct table_cache *cache;

	if (!mkdtemp(path) || table_cache_open(path, TABLE_CACHE_MAX_BYTES, &diag, &cache)) {
		fprintf(stderr, "%s\n", diag.text);
		return 1;
	}
	printf("%10s %11s %9s %6s  file\n", "rows", "compiled ms", "cached ms", "ratio");
	for (int i = 1; i < argc; i++) {
		uint32_t nr_rows = 0;
		double compiled = best_ms(argv[i], NULL, cache, &nr_rows), cached = best_ms(argv[i], cache, NULL, &nr_rows);

		if (cached < 0)
			printf("%10" PRIu32 " %11.2f %9s %6s  %s\n", nr_rows, compiled, "-", "-", argv[i]);
		else
			printf("%10" PRIu32 " %11.2f %9.2f %6.1f  %s\n", nr_rows, compiled, cached, compiled / cached, argv[i]);
	}
	table_cache_free(cache);
	remove_directory(path);
	return 0;
}
