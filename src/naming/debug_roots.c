// SPDX-License-Identifier: Apache-2.0
#include "naming/debug_roots.h"

#include "proxy/credentials.h"
#include "symbolize/debug_file.h"

struct best {
	uint32_t tgid, rank;
	bool is_wanted;
};

struct debug_roots {
	const struct object_table *objects;
	struct best *best; /* by object */
	uint32_t tgid, owner, rank; /* of the last call of rank_of */
};

void debug_asker_init(struct debug_asker *asker, struct proxy *proxy, uint32_t tgid, const struct object *object)
{
	*asker = (struct debug_asker){ .proxy = proxy, .tgid = tgid, .of = { .path = object->path, .device = object->device } };
	if (object->elf)
		asker->of.owner = elf_file_owner(object->elf);
}

int debug_asker_open(void *asker, const char *path)
{
	const struct debug_asker *who = asker;

	return proxy_open_debug(who->proxy, who->tgid, &who->of, path, DEBUG_FILE_MAX_BYTES);
}

static uint32_t rank_of(struct debug_roots *askers, uint32_t tgid, uint32_t owner)
{
	if (askers->tgid != tgid || askers->owner != owner)
		askers->rank = credentials_rank(tgid, owner);
	askers->tgid = tgid;
	askers->owner = owner;
	return askers->rank;
}

static void look_at(struct debug_roots *askers, uint32_t tgid, uint32_t object)
{
	struct best *best = object == OBJECT_NONE ? NULL : &askers->best[object];
	const struct object *file;
	uint32_t rank;

	if (!best || !best->is_wanted || best->rank == CREDENTIALS_OUR_RANK || best->tgid == tgid)
		return;
	file = object_table_at(askers->objects, object);
	rank = rank_of(askers, tgid, file->elf ? elf_file_owner(file->elf) : 0);
	if (rank > best->rank)
		*best = (struct best){ .tgid = tgid, .rank = rank, .is_wanted = true };
}

static int look_at_process(void *arg, uint32_t tgid, uint32_t generation, const struct process_mapping *mappings, uint32_t nr_mappings)
{
	(void)generation;
	for (uint32_t i = 0; i < nr_mappings; i++)
		look_at(arg, tgid, mappings[i].object);
	return 0;
}

struct debug_roots *debug_roots_new(const struct process_table *processes, bool (*is_wanted)(void *arg, uint32_t object), void *arg)
{
	const struct object_table *objects = process_table_objects(processes);
	uint32_t nr = object_table_nr(objects);
	CLEANUP(debug_roots_freep) struct debug_roots *askers = calloc(1, sizeof(*askers));

	if (!askers || !(askers->best = calloc(nr + 1, sizeof(*askers->best))))
		return NULL;
	askers->objects = objects;
	for (uint32_t i = 0; i < nr; i++)
		askers->best[i].is_wanted = is_wanted(arg, i);
	return process_table_living(processes, look_at_process, askers) ? NULL : MOVE(askers);
}

void debug_roots_free(struct debug_roots *askers)
{
	if (!askers)
		return;
	free(askers->best);
	free(askers);
}

uint32_t debug_roots_of(const struct debug_roots *askers, uint32_t object)
{
	return askers->best[object].tgid;
}

uint32_t debug_roots_rank(const struct debug_roots *askers, uint32_t object)
{
	return askers->best[object].rank;
}
