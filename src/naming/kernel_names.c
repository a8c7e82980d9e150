// SPDX-License-Identifier: Apache-2.0
#include "naming/kernel_names.h"

#include <errno.h>

#include "base/clock.h"
#include "naming/bpf_code.h"
#include "naming/kernel_modules.h"

#define MODULES_LIST   "/proc/modules"
#define MODULES_FOLDER "/sys/module"

struct kernel_names {
	struct symbolizer *symbolizer;
	struct kernel_code *programs; /* BPF programs, borrowed by the symbolizer */
	uint32_t nr_programs;
	uint64_t modules;             /* kernel_modules_hash of them */
};

struct kernel_names *kernel_names_new(void)
{
	struct kernel_names *names = calloc(1, sizeof(*names));

	if (names && kernel_names_refresh(names)) {
		kernel_names_free(names);
		return NULL;
	}
	return names;
}

void kernel_names_free(struct kernel_names *names)
{
	if (!names)
		return;
	symbolizer_free(names->symbolizer);
	free(names->programs);
	free(names);
}

/* Load times are exact to some microseconds. */
static bool is_same_time(uint64_t a, uint64_t b)
{
	return a - b < NS_PER_MS || b - a < NS_PER_MS;
}

static bool are_same(const struct kernel_names *names, const struct kernel_code *programs, uint32_t nr)
{
	for (uint32_t i = 0; i < nr && nr == names->nr_programs; i++) {
		const struct kernel_code *a = &names->programs[i], *b = &programs[i];

		if (a->start != b->start || a->size_bytes != b->size_bytes || !is_same_time(a->since_ns, b->since_ns))
			return false;
	}
	return nr == names->nr_programs;
}

int kernel_names_refresh(struct kernel_names *names)
{
	CLEANUP(freep) struct kernel_code *programs = NULL;
	struct symbolizer *symbolizer;
	uint64_t modules = kernel_modules_hash(MODULES_LIST, MODULES_FOLDER);
	uint32_t nr = 0;

	if (bpf_code_read(&programs, &nr))
		return -ENOMEM;
	if (names->symbolizer && modules == names->modules && are_same(names, programs, nr))
		return 0;
	symbolizer = symbolizer_new(&(struct symbolizer_options){ .programs = programs, .nr_programs = nr });
	if (!symbolizer)
		return -ENOMEM;
	symbolizer_free(names->symbolizer);
	free(names->programs);
	*names = (struct kernel_names){ .symbolizer = symbolizer, .programs = MOVE(programs), .nr_programs = nr, .modules = modules };
	return 0;
}

struct symbolizer *kernel_names_symbolizer(const struct kernel_names *names)
{
	return names->symbolizer;
}

bool kernel_names_know_programs(const struct kernel_names *names)
{
	return names->nr_programs;
}
