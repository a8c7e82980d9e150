// SPDX-License-Identifier: Apache-2.0
#include "engine/initial_stacks.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/u64_map.h"
#include "proxy/proxy.h"

#define MAX_COPIED_BYTES (64u << 20) /* of all stacks together; the walk reads the rest */
#define MAX_INITIAL_STACKS (1u << 22)         /* the kernel's PID_MAX_LIMIT */
#ifdef SONDE_ARM64
#define REG_SP 31
#else
#define REG_SP 7
#endif

struct initial_stack {
	uint64_t id;
	uint64_t read_ns; /* when its memory was last read */
};

struct initial_stacks {
	struct proxy *proxy;
	struct initial_stack *list;
	uint32_t nr, max;
	uint32_t nr_late;
	uint64_t copied_bytes;
	struct u64_map by_id;
	uint64_t record[(sizeof(struct sonde_deferred_record) + INITIAL_STACK_BYTES) / sizeof(uint64_t)]; /* passed to the callback */
};

struct initial_stacks *initial_stacks_new(struct proxy *proxy)
{
	struct initial_stacks *initial_stacks = calloc(1, sizeof(*initial_stacks));

	if (initial_stacks)
		initial_stacks->proxy = proxy;
	return initial_stacks;
}

void initial_stacks_free(struct initial_stacks *initial_stacks)
{
	if (!initial_stacks)
		return;
	free(initial_stacks->list);
	u64_map_done(&initial_stacks->by_id);
	free(initial_stacks);
}

uint64_t initial_stacks_id_of_registers(uint64_t id)
{
	return ~id;
}

static struct initial_stack *find(const struct initial_stacks *initial_stacks, uint64_t id)
{
	const uint32_t *number = u64_map_find(&initial_stacks->by_id, id);

	return number ? &initial_stacks->list[*number] : NULL;
}

static int keep(struct initial_stacks *initial_stacks, uint64_t id)
{
	if (!array_grow(&initial_stacks->list, initial_stacks->nr, &initial_stacks->max, sizeof(*initial_stacks->list), 256,
			MAX_INITIAL_STACKS))
		return -ENOMEM;
	initial_stacks->list[initial_stacks->nr] = (struct initial_stack){ .id = id, .read_ns = clock_ns() };
	return u64_map_add(&initial_stacks->by_id, id, initial_stacks->nr++);
}

/* Copies the red zone, too, unless the stack begins at a page whose predecessor is not mapped. */
static void copy_stack(struct initial_stacks *initial_stacks, struct sonde_deferred_record *deferred)
{
	uint64_t left = MAX_COPIED_BYTES - initial_stacks->copied_bytes, sp = deferred->regs[REG_SP];
	size_t max = left < INITIAL_STACK_BYTES ? (size_t)left : INITIAL_STACK_BYTES;

	deferred->stack_start = sp - SONDE_RED_ZONE_BYTES;
	deferred->stack_bytes =
	    (uint32_t)proxy_read_memory_some(initial_stacks->proxy, deferred->tgid, deferred->stack_start, deferred + 1, max);
	if (!deferred->stack_bytes) {
		deferred->stack_start = sp;
		deferred->stack_bytes = (uint32_t)proxy_read_memory_some(initial_stacks->proxy, deferred->tgid, sp, deferred + 1, max);
	}
	initial_stacks->copied_bytes += deferred->stack_bytes;
}

int initial_stacks_take(struct initial_stacks *initial_stacks, const struct sonde_initial_stack_record *record,
			initial_stacks_deferred_fn fn, void *arg)
{
	struct sonde_deferred_record *deferred = (struct sonde_deferred_record *)initial_stacks->record;
	int err;

	*deferred = (struct sonde_deferred_record){ .type = SONDE_RECORD_DEFERRED,
						    .tgid = record->tgid,
						    .time_ns = record->time_ns,
						    .id = record->id,
						    .hash_begin = record->id,
						    .use = SONDE_DEFERRED_INITIAL,
						    .compat = record->compat,
						    .in_syscall = record->in_syscall };
	memcpy(deferred->regs, record->regs, sizeof(deferred->regs));
	copy_stack(initial_stacks, deferred);
	err = keep(initial_stacks, record->id);
	if (!err)
		err = fn(arg, deferred);
	deferred->id = initial_stacks_id_of_registers(record->id);
	deferred->stack_bytes = 0;
	return err ? err : fn(arg, deferred);
}

int initial_stacks_read_on(struct initial_stacks *initial_stacks, uint64_t id, uint32_t tgid, uint64_t from, void *to, size_t size)
{
	struct initial_stack *initial_stack = find(initial_stacks, id);
	int err = initial_stack ? proxy_read_memory(initial_stacks->proxy, tgid, from, to, size) : -EFAULT;

	if (!err)
		initial_stack->read_ns = clock_ns();
	return err;
}

uint64_t initial_stacks_stack(struct initial_stacks *initial_stacks, uint64_t id, uint64_t end_ns)
{
	const struct initial_stack *initial_stack = find(initial_stacks, id);

	if (!initial_stack || initial_stack->read_ns <= end_ns)
		return id;
	initial_stacks->nr_late++;
	return initial_stacks_id_of_registers(id);
}

uint32_t initial_stacks_nr(const struct initial_stacks *initial_stacks)
{
	return initial_stacks->nr;
}

uint32_t initial_stacks_nr_late(const struct initial_stacks *initial_stacks)
{
	return initial_stacks->nr_late;
}
