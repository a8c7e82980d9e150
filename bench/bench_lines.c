// SPDX-License-Identifier: Apache-2.0
/* bench_lines FILE [-v] <ADDRESSES: source lines and inlined functions of a file with DWARF, for hexadecimal addresses (elf_vaddr), one a
 * line. -v: prints the answers as `llvm-symbolizer -i -f linkage` does, without columns. The last line has addresses, frames, seconds, CPU
 * seconds, peak RSS in KiB. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "dwarf/dwarf_lines.h"

#define MAX_FRAMES 64

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void print_frames(const struct dwarf_frame *frames, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		printf("%s\n%s:%u\n", *frames[i].name ? frames[i].name : "??", *frames[i].file ? frames[i].file : "??", frames[i].line);
	puts(nr ? "" : "??\n??:0\n");
}

int main(int argc, char **argv)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(dwarf_lines_freep) struct dwarf_lines *lines = NULL;
	CLEANUP(closep) int fd = argc > 1 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	bool is_verbose = argc > 2 && strcmp(argv[2], "-v") == 0;
	struct dwarf_frame frames[MAX_FRAMES];
	struct diag diag = { 0 };
	struct rusage usage;
	uint64_t nr_asked = 0, nr_frames = 0;
	double start = now();
	char text[32];

	if (fd < 0 || elf_file_open_fd(fd, &diag, &elf)) {
		fprintf(stderr, "bench_lines: %s\n", argc > 1 ? argv[1] : "which file?");
		return 1;
	}
	fd = -1;
	if (dwarf_lines_open(elf, NULL, &diag, &lines)) {
		fprintf(stderr, "bench_lines: %s has no DWARF that can be read: %s\n", argv[1], diag.text);
		return 1;
	}
	while (fgets(text, sizeof(text), stdin)) {
		uint32_t nr = 0;

		if (dwarf_lines_find(lines, strtoull(text, NULL, 16), frames, MAX_FRAMES, &nr))
			nr = 0;
		nr_asked++;
		nr_frames += nr;
		if (is_verbose)
			print_frames(frames, nr);
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("%" PRIu64 " %" PRIu64 " %.3f %.3f %ld\n", nr_asked, nr_frames, now() - start,
	       (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
	       usage.ru_maxrss);
	return 0;
}
