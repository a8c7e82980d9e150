// SPDX-License-Identifier: Apache-2.0
/* Any bytes as a perf map: an answer covers the requested address, and its start gives an answer too. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"
#include "symbolize/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const void *table, uint64_t pc)
{
	const struct perf_map *map = table;
	const char *name = NULL;
	uint64_t start = 0;

	if (perf_map_find(map, pc, &name, &start))
		return;
	if (!name[0] || start > pc || pc - start > UINT32_MAX || perf_map_find(map, start, &name, &start))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(perf_map_freep) struct perf_map *map = NULL;

	if (perf_map_parse((const char *)data, size, &map))
		return 0;
	if (perf_map_size(map) == 0)
		abort(); /* must be -ENODATA */
	ask_numbers((const char *)data, size, ask, map);
	return 0;
}
