// SPDX-License-Identifier: Apache-2.0
/* Any bytes as the kernel's list: an answer covers its question, and its start is answered by the same name. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/kallsyms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct kallsyms *kallsyms, uint64_t kaddr)
{
	const char *name = NULL, *again = NULL;
	uint64_t start = 0, start_again = 0;

	if (kallsyms_find(kallsyms, kaddr, &name, &start))
		return;
	if (start > kaddr || kaddr - start >= KALLSYMS_MAX_FUNCTION_BYTES || strchr(name, '\n'))
		abort();
	if (kallsyms_find(kallsyms, start, &again, &start_again) || start_again != start || again != name)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(kallsyms_freep) struct kallsyms *kallsyms = NULL;
	const char *at = (const char *)data;

	if (kallsyms_parse(at, size, &kallsyms))
		return 0;
	if (kallsyms_size(kallsyms) == 0)
		abort(); /* that is -ENODATA */
	ask(kallsyms, 0);
	ask(kallsyms, UINT64_MAX);
	for (size_t i = 0; i + 16 <= size && i < 65536; i += 3) { /* numbers as they stand in the lines */
		char text[17] = { 0 };
		uint64_t kaddr;

		memcpy(text, at + i, 16);
		kaddr = strtoull(text, NULL, 16);
		ask(kallsyms, kaddr);
		ask(kallsyms, kaddr + 1);
	}
	return 0;
}
