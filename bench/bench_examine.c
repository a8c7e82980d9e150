// SPDX-License-Identifier: Apache-2.0
/* How long it takes to examine files for interpreters, as sonde does with each file that a process maps: by a direct call, and by a
 * request to the worker. Best of the passes; the page cache is warm. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "parse/parser.h"
#include "sonde/sonde.h"

#define PASSES 7
#define NR_WORST 5

struct examined {
	const char *path;
	double call_us, worker_us;
	uint32_t nr_images;
};

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static double call_us(const struct elf_file *elf, uint32_t *ret_nr)
{
	static struct runtime_image images[FILE_RUNTIMES_MAX];
	struct libc_facts libc;
	double start = now_us();
	int nr = runtimes_examine(elf, images, FILE_RUNTIMES_MAX);

	(void)!libc_facts_read(elf, &libc);
	*ret_nr = nr > 0 ? (uint32_t)nr : 0;
	return now_us() - start;
}

static double worker_us(struct parser *parser, const struct elf_file *elf)
{
	struct file_runtimes runtimes;
	double start = now_us();

	(void)!parser_runtimes(parser, 0, elf, NULL, &runtimes);
	return now_us() - start;
}

/* False: not an ELF file. */
static bool examine(struct parser *parser, struct examined *file)
{
	for (int pass = 0; pass < PASSES; pass++) {
		CLEANUP(elf_file_freep) struct elf_file *elf = NULL; /* opened again in each pass: it caches what it has read */
		int fd = open(file->path, O_RDONLY | O_CLOEXEC);
		double us;

		if (fd < 0 || elf_file_open_fd(fd, NULL, &elf))
			return false;
		us = worker_us(parser, elf);
		if (!pass || us < file->worker_us)
			file->worker_us = us;
		us = call_us(elf, &file->nr_images);
		if (!pass || us < file->call_us)
			file->call_us = us;
	}
	return true;
}

static int by_call(const void *a, const void *b)
{
	const struct examined *x = a, *y = b;

	return x->call_us < y->call_us ? 1 : x->call_us > y->call_us ? -1 : 0;
}

int main(int argc, char **argv)
{
	CLEANUP(freep) struct examined *files = calloc((size_t)argc, sizeof(*files));
	CLEANUP(parser_freep) struct parser *parser = NULL;
	struct diag diag = { 0 };
	double calls = 0, asked = 0;
	uint32_t nr = 0, nr_held = 0;
	int code;

	if (sonde_is_worker(argc, argv, &code))
		return code;
	if (!files || parser_new(&diag, &parser)) {
		fprintf(stderr, "%s\n", diag.text);
		return 1;
	}
	for (int i = 1; i < argc; i++) {
		files[nr] = (struct examined){ .path = argv[i] };
		if (!examine(parser, &files[nr]))
			continue;
		calls += files[nr].call_us;
		asked += files[nr].worker_us;
		nr_held += files[nr++].nr_images;
	}
	printf("  %" PRIu32 " files, %" PRIu32
	       " interpreters: %.0f us by calls, %.0f us by the worker, %.1f and %.1f us a file. The longest:\n",
	       nr, nr_held, calls, asked, nr ? calls / nr : 0, nr ? asked / nr : 0);
	qsort(files, nr, sizeof(*files), by_call);
	for (uint32_t i = 0; i < nr && i < NR_WORST; i++)
		printf("%10.1f %10.1f  %s%s\n", files[i].call_us, files[i].worker_us, files[i].path,
		       files[i].nr_images ? ", an interpreter" : "");
	return 0;
}
