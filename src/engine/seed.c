// SPDX-License-Identifier: Apache-2.0
#include "engine/seed.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/u64_map.h"
#include "proxy/proxy.h"

#define MAX_COPIED_BYTES (64u << 20) /* of all stacks together; the others are read by the walk */
#define MAX_SEEDS (1u << 22)         /* the kernel's PID_MAX_LIMIT */
#ifdef SONDE_ARM64
#define REG_SP 31
#else
#define REG_SP 7
#endif

struct seed {
	uint64_t id;
	uint64_t read_ns; /* when the last of its memory was read */
};

struct seeds {
	struct proxy *proxy;
	struct seed *list;
	uint32_t nr, max;
	uint32_t nr_late;
	uint64_t copied_bytes;
	struct u64_map by_id;
	uint64_t record[(sizeof(struct sonde_raw_record) + SEED_STACK_BYTES) / sizeof(uint64_t)]; /* the one that is given */
};

struct seeds *seeds_new(struct proxy *proxy)
{
	struct seeds *seeds = calloc(1, sizeof(*seeds));

	if (seeds)
		seeds->proxy = proxy;
	return seeds;
}

void seeds_free(struct seeds *seeds)
{
	if (!seeds)
		return;
	free(seeds->list);
	u64_map_done(&seeds->by_id);
	free(seeds);
}

uint64_t seeds_id_of_registers(uint64_t id)
{
	return ~id;
}

static struct seed *find(const struct seeds *seeds, uint64_t id)
{
	const uint32_t *number = u64_map_find(&seeds->by_id, id);

	return number ? &seeds->list[*number] : NULL;
}

static int keep(struct seeds *seeds, uint64_t id)
{
	if (!array_grow(&seeds->list, seeds->nr, &seeds->max, sizeof(*seeds->list), 256, MAX_SEEDS))
		return -ENOMEM;
	seeds->list[seeds->nr] = (struct seed){ .id = id, .read_ns = clock_ns() };
	return u64_map_add(&seeds->by_id, id, seeds->nr++);
}

/* The red zone is there, too, unless the stack begins with a page that is not. */
static void copy_stack(struct seeds *seeds, struct sonde_raw_record *raw)
{
	uint64_t left = MAX_COPIED_BYTES - seeds->copied_bytes, sp = raw->regs[REG_SP];
	size_t max = left < SEED_STACK_BYTES ? (size_t)left : SEED_STACK_BYTES;

	raw->stack_start = sp - SONDE_RED_ZONE_BYTES;
	raw->stack_bytes = (uint32_t)proxy_read_memory_some(seeds->proxy, raw->tgid, raw->stack_start, raw + 1, max);
	if (!raw->stack_bytes) {
		raw->stack_start = sp;
		raw->stack_bytes = (uint32_t)proxy_read_memory_some(seeds->proxy, raw->tgid, sp, raw + 1, max);
	}
	seeds->copied_bytes += raw->stack_bytes;
}

int seeds_take(struct seeds *seeds, const struct sonde_seed_record *record, seeds_raw_fn fn, void *arg)
{
	struct sonde_raw_record *raw = (struct sonde_raw_record *)seeds->record;
	int err;

	*raw = (struct sonde_raw_record){ .type = SONDE_RECORD_RAW, .tgid = record->tgid, .time_ns = record->time_ns, .id = record->id, .hash_begin = record->id, .use = SONDE_RAW_SEED,
					  .compat = record->compat, .in_syscall = record->in_syscall };
	memcpy(raw->regs, record->regs, sizeof(raw->regs));
	copy_stack(seeds, raw);
	err = keep(seeds, record->id);
	if (!err)
		err = fn(arg, raw);
	raw->id = seeds_id_of_registers(record->id);
	raw->stack_bytes = 0;
	return err ? err : fn(arg, raw);
}

int seeds_read_on(struct seeds *seeds, uint64_t id, uint32_t tgid, uint64_t from, void *to, size_t size)
{
	struct seed *seed = find(seeds, id);
	int err = seed ? proxy_read_memory(seeds->proxy, tgid, from, to, size) : -EFAULT;

	if (!err)
		seed->read_ns = clock_ns();
	return err;
}

uint64_t seeds_stack(struct seeds *seeds, uint64_t id, uint64_t end_ns)
{
	const struct seed *seed = find(seeds, id);

	if (!seed || seed->read_ns <= end_ns)
		return id;
	seeds->nr_late++;
	return seeds_id_of_registers(id);
}

uint32_t seeds_nr(const struct seeds *seeds)
{
	return seeds->nr;
}

uint32_t seeds_nr_late(const struct seeds *seeds)
{
	return seeds->nr_late;
}
