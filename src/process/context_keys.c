// SPDX-License-Identifier: Apache-2.0
#include "process/context_keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/u64_map.h"
#include "process/allowance.h"

#define MAX_PROCESSES 1024 /* then all are forgotten, and read again: at most 9 MiB */
#define WAIT_NS	      (100 * NS_PER_MS) /* between two searches of a process that has none: twice as long each time */
#define MAX_WAIT_NS   (60 * NS_PER_S)
#define SHARE	      100 /* of a CPU's time: a process decides how often and how long it is read (65,530 mappings: 10 ms) */

struct entry {
	uint32_t generation, nr;
	uint64_t pc, published_ns;   /* as in struct process_context; pc 0: not found */
	uint64_t search_ns, wait_ns; /* not before that time */
	struct context_key *keys;    /* owned */
};

struct context_keys {
	struct proxy *proxy;
	struct u64_map by_tgid; /* number in `entries` */
	uint32_t nr;
	struct allowance allowance;
	struct entry entries[MAX_PROCESSES];
	struct process_context context; /* working memory: too large for a stack */
};

struct context_keys *context_keys_new(struct proxy *proxy)
{
	struct context_keys *keys = calloc(1, sizeof(*keys));

	if (!keys)
		return NULL;
	keys->proxy = proxy;
	keys->allowance = allowance_new(ALLOWANCE_FEW_NS);
	return keys;
}

static void forget_all(struct context_keys *keys)
{
	for (uint32_t i = 0; i < keys->nr; i++)
		free(keys->entries[i].keys);
	keys->nr = 0;
	u64_map_done(&keys->by_tgid);
	keys->by_tgid = (struct u64_map){ 0 };
}

void context_keys_free(struct context_keys *keys)
{
	if (!keys)
		return;
	forget_all(keys);
	free(keys);
}

static struct entry *enter(struct context_keys *keys, uint32_t tgid, uint32_t generation)
{
	const uint32_t *known = u64_map_find(&keys->by_tgid, tgid);
	struct entry *entry;

	if (!known && keys->nr == MAX_PROCESSES)
		forget_all(keys);
	if (!known && u64_map_add(&keys->by_tgid, tgid, keys->nr))
		return NULL;
	entry = &keys->entries[known ? *known : keys->nr++];
	if (!known || entry->generation != generation) {
		if (known)
			free(entry->keys);
		*entry = (struct entry){ .generation = generation, .wait_ns = WAIT_NS };
	}
	return entry;
}

static void take(struct entry *entry, const struct process_context *context)
{
	size_t size = context->nr_keys * sizeof(*context->keys);
	struct context_key *taken = malloc(size ? size : 1);

	if (!taken)
		return;
	memcpy(taken, context->keys, size);
	free(entry->keys);
	entry->keys = taken;
	entry->nr = context->nr_keys;
	entry->pc = context->pc;
	entry->published_ns = context->published_ns;
}

static void search(struct context_keys *keys, uint32_t tgid, struct entry *entry, uint64_t now_ns)
{
	if (now_ns < entry->search_ns)
		return;
	if (!process_context_find(keys->proxy, tgid, &keys->context))
		take(entry, &keys->context);
	entry->search_ns = now_ns + entry->wait_ns;
	entry->wait_ns = entry->wait_ns < MAX_WAIT_NS / 2 ? entry->wait_ns * 2 : MAX_WAIT_NS;
}

static void refresh(struct context_keys *keys, uint32_t tgid, struct entry *entry)
{
	uint64_t now_ns = clock_ns(), from_ns;
	int err = -ENOENT;

	if ((!entry->pc && now_ns < entry->search_ns) || !allowance_is_given(&keys->allowance, SHARE))
		return;
	from_ns = allowance_cpu_ns(keys->proxy);
	if (entry->pc) {
		keys->context.pc = entry->pc;
		keys->context.published_ns = entry->published_ns;
		err = process_context_renew(keys->proxy, tgid, &keys->context);
	}
	if (!err)
		take(entry, &keys->context);
	else if (err != -EALREADY && err != -EAGAIN)
		search(keys, tgid, entry, now_ns);
	allowance_charge(&keys->allowance, keys->proxy, from_ns, clock_ns() - now_ns);
}

static const struct context_key *key_of(const struct entry *entry, uint8_t number)
{
	return number < entry->nr && entry->keys[number].bytes ? &entry->keys[number] : NULL;
}

/* What was read while it ran. */
static const struct context_key *find_past(const struct context_keys *keys, uint32_t tgid, uint32_t generation, uint8_t number)
{
	const uint32_t *known = u64_map_find(&keys->by_tgid, tgid);

	return known && keys->entries[*known].generation == generation ? key_of(&keys->entries[*known], number) : NULL;
}

const struct context_key *context_keys_find(struct context_keys *keys, uint32_t tgid, uint32_t generation, uint8_t number, bool is_current)
{
	struct entry *entry;

	if (!is_current)
		return find_past(keys, tgid, generation, number);
	entry = enter(keys, tgid, generation);
	if (entry && number >= entry->nr)
		refresh(keys, tgid, entry);
	return entry ? key_of(entry, number) : NULL;
}
