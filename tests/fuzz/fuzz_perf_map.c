// SPDX-License-Identifier: Apache-2.0
/* Any bytes as a perf map: an answer covers its question, and its start is answered too. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct perf_map *map, uint64_t pc)
{
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
	const char *at = (const char *)data;

	if (perf_map_parse(at, size, &map))
		return 0;
	if (perf_map_size(map) == 0)
		abort(); /* that is -ENODATA */
	ask(map, 0);
	ask(map, UINT64_MAX);
	for (size_t i = 0; i + 16 <= size && i < 65536; i += 3) { /* numbers as they stand in the lines */
		char text[17] = { 0 };
		uint64_t pc;

		memcpy(text, at + i, 16);
		pc = strtoull(text, NULL, 16);
		ask(map, pc);
		ask(map, pc + 1);
	}
	return 0;
}
