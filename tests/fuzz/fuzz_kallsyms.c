// SPDX-License-Identifier: Apache-2.0
/* Any bytes as the kernel's list: an answer covers the requested address, and its start gives the same name. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"
#include "symbolize/kallsyms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const void *table, uint64_t kaddr)
{
	const struct kallsyms *kallsyms = table;
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

	if (kallsyms_parse((const char *)data, size, &kallsyms))
		return 0;
	if (kallsyms_size(kallsyms) == 0)
		abort(); /* must be -ENODATA */
	ask_numbers((const char *)data, size, ask, kallsyms);
	return 0;
}
