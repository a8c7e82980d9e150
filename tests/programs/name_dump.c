// SPDX-License-Identifier: Apache-2.0
/* name_dump FILE DEBUG_DIR: for each address of the file on stdin (hexadecimal, one a line), prints the symbolizer's "START NAME", or
 * "-". */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "symbolize/symbolizer.h"

int main(int argc, char **argv)
{
	struct symbolizer_options options = { .debug_dir = argc == 3 ? argv[2] : NULL };
	struct symbolizer *symbolizer = symbolizer_new(&options);
	struct elf_file *elf = NULL;
	struct diag diag = { 0 };
	char line[64];

	if (argc != 3 || !symbolizer || elf_file_open_fd(open(argv[1], O_RDONLY | O_CLOEXEC), &diag, &elf)) {
		fprintf(stderr, "name_dump: %s\n", diag.text);
		return 1;
	}
	while (fgets(line, sizeof(line), stdin)) {
		struct symbol_name names[64];
		uint32_t nr = 0;

		if (symbolizer_object(symbolizer, 1, elf, argv[1], strtoull(line, NULL, 16), names, 64, &nr))
			puts("-");
		else
			printf("%" PRIx64 " %s\n", names[nr - 1].start, names[nr - 1].system_name);
	}
	symbolizer_free(symbolizer);
	elf_file_free(elf);
	return 0;
}
