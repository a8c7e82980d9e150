// SPDX-License-Identifier: Apache-2.0
/* go_dump FILE lines: for each address on stdin (hexadecimal), the functions there, innermost first: "name file:line", separated by
 * tabs. go_dump FILE rows: the unwind rules of all functions, "address step CFA-OFFSET", "address switch KIND", or "address
 * end|signal|unsupported|none". */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pclntab/go_pclntab.h"

#define MAX_FRAMES 64

static void print_lines(const struct go_pclntab *table)
{
	char text[64];

	while (fgets(text, sizeof(text), stdin)) {
		struct go_frame frames[MAX_FRAMES];
		uint32_t nr = 0;

		if (go_pclntab_frames(table, strtoull(text, NULL, 16), frames, MAX_FRAMES, &nr))
			nr = 0;
		for (uint32_t i = 0; i < nr; i++)
			printf("%s%s %s:%u", i ? "\t" : "", frames[i].name, frames[i].file, frames[i].line);
		putchar('\n');
	}
}

static int print_row(void *arg, uint64_t start_vaddr, const struct sonde_rule *rule)
{
	static const char *const kinds[] = { "none", "end", "step", "signal", "unsupported", "switch" };

	if (!rule)
		printf("%" PRIx64 " none\n", start_vaddr);
	else if (rule->kind == SONDE_RULE_KIND_STEP)
		printf("%" PRIx64 " step %d\n", start_vaddr, rule->cfa_off);
	else
		printf("%" PRIx64 " %s %d\n", start_vaddr, kinds[rule->kind], rule->cfa_kind);
	return 0;
}

int main(int argc, char **argv)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(go_pclntab_freep) struct go_pclntab *table = NULL;
	struct diag diag = { 0 };
	struct cfi_stats stats;
	int fd = argc == 3 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0 || elf_file_open_fd(fd, &diag, &elf) || go_pclntab_read(elf, &diag, &table)) {
		fprintf(stderr, "go_dump: %s\n", diag.text);
		return 1;
	}
	if (!strcmp(argv[2], "lines")) {
		print_lines(table);
		return 0;
	}
	return go_pclntab_walk(table, print_row, NULL, &stats) ? 1 : 0;
}
