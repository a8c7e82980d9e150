// SPDX-License-Identifier: Apache-2.0
#include "process/object_table.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "base/u64_map.h"
#include "process/region_cache.h"
#include "proxy/credentials.h"
#include "proxy/mapped_file.h"
#include "proxy/proxy.h"

#define MAX_OBJECTS (1u << 20)
#define MAX_IDLE 64 /* files that nobody maps and that could be found again: this many stay open */
#define VDSO_BYTES_MAX (64u << 10)
/* Files of one size and build id that differ: where somebody has made this many, no more of them are read for comparison. */
#define MAX_SAME_ID 4
/* For the section headers and names of all open files; most files have a few KiB. Beyond that they are dropped: whoever parses a file
 * has opened it himself. */
#define SECTION_BYTES_MAX (32u << 20)
#define SAME_BYTES_MAX (32u << 20) /* larger files are not compared: each copy is a file of its own */

struct entry {
	struct object object;
	struct file_identity identity; /* all zero: not known */
	enum file_system_kind file_system;
	uint32_t nr_mapped, nr_held;
	uint64_t idle_order;        /* grows with the time when nr_mapped became 0 */
	bool is_used;               /* else its number is free */
	bool is_closed;             /* an ELF file that is opened again on demand */
	bool is_hung;               /* its path leads to a file server that does not answer */
	bool is_path_settled;       /* no other path is better */
	uint32_t owner;             /* uid; for a copy in memory: of the user it was made for */
};

struct object_table {
	struct entry *entries;
	uint32_t nr_entries, capacity, nr_free;
	uint32_t nr_met, nr_refused, nr_lost, nr_left, nr_hung;
	char *first_hung;           /* path, or NULL */
	size_t section_bytes;       /* of the files that are open */
	struct proxy *proxy;        /* NULL: none */
	uint64_t order;
	uint64_t seed;              /* random, so that nobody can make a file that is taken for another */
	struct u64_map by_identity; /* hash of struct file_identity -> object */
	struct u64_map by_inode;    /* hash of device and inode -> object whose own file has or had them */
	struct u64_map by_build_id; /* hash of build id, size and owner -> object */
	struct u64_map by_path;     /* hash of the path -> object, for files that could not be opened */
	struct region_cache regions; /* -> object */
};

struct object_table *object_table_new(struct proxy *proxy)
{
	struct object_table *table = calloc(1, sizeof(*table));

	if (table && getrandom(&table->seed, sizeof(table->seed), 0) < 0) {
		free(table);
		return NULL;
	}
	if (table)
		table->proxy = proxy;
	return table;
}

/* Adds the size of a newly opened file's section table to the total. Beyond SECTION_BYTES_MAX this file's table is dropped instead. */
static void count_sections(struct object_table *table, const struct entry *entry)
{
	if (!entry->object.elf)
		return;
	if (table->section_bytes + elf_file_section_bytes(entry->object.elf) > SECTION_BYTES_MAX)
		elf_file_forget_sections(entry->object.elf);
	table->section_bytes += elf_file_section_bytes(entry->object.elf);
}

static void close_entry(struct object_table *table, struct entry *entry)
{
	if (entry->object.elf)
		table->section_bytes -= elf_file_section_bytes(entry->object.elf);
	elf_file_free(MOVE(entry->object.elf));
}

static void forget_entry(struct object_table *table, struct entry *entry)
{
	close_entry(table, entry);
	if (entry->is_used)
		free((char *)entry->object.path);
	*entry = (struct entry){ .object.path = "" };
}

void object_table_free(struct object_table *table)
{
	if (!table)
		return;
	for (uint32_t i = 0; i < table->nr_entries; i++)
		forget_entry(table, &table->entries[i]);
	free(table->entries);
	free(table->first_hung);
	u64_map_done(&table->by_identity);
	u64_map_done(&table->by_inode);
	u64_map_done(&table->by_build_id);
	u64_map_done(&table->by_path);
	free(table);
}

uint32_t object_table_nr_refused(const struct object_table *table)
{
	return table->nr_refused;
}

uint32_t object_table_nr_lost(const struct object_table *table)
{
	return table->nr_lost;
}

uint32_t object_table_nr_hung(const struct object_table *table, const char **ret_path)
{
	*ret_path = table->first_hung ? table->first_hung : "";
	return table->nr_hung;
}

uint32_t object_table_nr(const struct object_table *table)
{
	return table->nr_entries;
}

uint32_t object_table_nr_met(const struct object_table *table)
{
	return table->nr_met;
}

static struct entry *entry_at(const struct object_table *table, uint32_t object)
{
	return object == OBJECT_NONE ? NULL : &table->entries[object];
}

void object_table_map(struct object_table *table, uint32_t object)
{
	struct entry *entry = entry_at(table, object);

	if (entry)
		entry->nr_mapped++;
}

void object_table_unmap(struct object_table *table, uint32_t object)
{
	struct entry *entry = entry_at(table, object);

	if (!entry || --entry->nr_mapped)
		return;
	entry->idle_order = ++table->order;
	table->nr_left++;
}

uint32_t object_table_nr_left(const struct object_table *table)
{
	return table->nr_left;
}

void object_table_hold(struct object_table *table, uint32_t object)
{
	struct entry *entry = entry_at(table, object);

	if (entry)
		entry->nr_held++;
}

void object_table_release(struct object_table *table, uint32_t object)
{
	struct entry *entry = entry_at(table, object);

	if (entry)
		entry->nr_held--;
}

bool object_table_is_mapped(const struct object_table *table, uint32_t object)
{
	return object != OBJECT_NONE && table->entries[object].nr_mapped;
}

/* Returns a free number or a new one; OBJECT_NONE: no memory. */
static uint32_t take_number(struct object_table *table)
{
	for (uint32_t i = 0; table->nr_free && i < table->nr_entries; i++) {
		if (!table->entries[i].is_used) {
			table->nr_free--;
			return i;
		}
	}
	if (table->nr_entries == table->capacity) {
		uint32_t capacity = table->capacity ? table->capacity * 2 : 64;
		struct entry *entries = capacity > MAX_OBJECTS ? NULL : reallocarray(table->entries, capacity, sizeof(*entries));

		if (!entries)
			return OBJECT_NONE;
		table->entries = entries;
		table->capacity = capacity;
	}
	return table->nr_entries++;
}

/* Takes over `elf` in any case. */
static uint32_t add_object(struct object_table *table, struct elf_file *elf, const char *path)
{
	CLEANUP(elf_file_freep) struct elf_file *owned = elf;
	CLEANUP(freep) char *copy = strdup(path);
	uint32_t object = copy ? take_number(table) : OBJECT_NONE;

	if (object == OBJECT_NONE)
		return OBJECT_NONE;
	table->nr_met++;
	table->entries[object] =
	    (struct entry){ .object = { .elf = MOVE(owned), .path = MOVE(copy), .serial = table->nr_met }, .is_used = true };
	count_sections(table, &table->entries[object]);
	return object;
}

/* Counts a file that could not be opened, for the messages at the end. */
static void count_failure(struct object_table *table, int err, const char *path)
{
	table->nr_refused += err == -EMFILE;
	if (err != -ETIMEDOUT && err != -EBUSY && err != -EFBIG)
		return;
	table->nr_hung++;
	if (!table->first_hung)
		table->first_hung = strdup(path);
}

static bool has_identity(int fd, const struct file_identity *identity)
{
	struct file_identity found;

	return fd >= 0 && !mapped_file_identify(fd, &found) && !memcmp(&found, identity, sizeof(found));
}

/* Finds the file again in our root, by the path under which it was first found. Negative when the path now leads to another file or to
 * none. */
static int find_again(struct object_table *table, struct entry *entry)
{
	CLEANUP(closep) int fd = -ENOENT;

	if (entry->identity.inode && entry->object.path[0] == '/' && !entry->is_hung)
		fd = proxy_find(table->proxy, entry->object.path);
	entry->is_hung |= fd == -ETIMEDOUT;
	return fd >= 0 && !has_identity(fd, &entry->identity) ? -ENOENT : MOVE_FD(fd);
}

/* Opens it for process `tgid` (0: no process). */
static int open_elf(struct object_table *table, uint32_t tgid, int path_fd, uint64_t device, enum file_system_kind *ret_kind,
		    struct elf_file **ret_elf)
{
	CLEANUP(closep) int fd = proxy_open(table->proxy, tgid, path_fd, device, ret_kind);
	int err = fd < 0 ? fd : elf_file_open_fd(fd, NULL, ret_elf);

	if (!err)
		fd = -1; /* the ELF file owns it */
	return err;
}

static void open_again(struct object_table *table, struct entry *entry)
{
	CLEANUP(closep) int fd = find_again(table, entry);

	if (fd < 0 || open_elf(table, 0, fd, entry->identity.device, &entry->file_system, &entry->object.elf))
		table->nr_lost++;
	count_sections(table, entry);
	entry->is_closed = false;
	entry->idle_order = ++table->order;
}

const struct object *object_table_at(const struct object_table *table, uint32_t object)
{
	struct entry *entry = &table->entries[object];

	if (entry->is_closed)
		open_again((struct object_table *)table, entry); /* to the caller it was open all along */
	return &entry->object;
}

/* Can it stand for a copy with this owner on this kind of file system? The owner must be the same, as he may write other bytes into it
 * later. */
static bool may_have_copies(const struct entry *entry, uint32_t owner, enum file_system_kind kind)
{
	return kind != FILE_SYSTEM_NETWORK && entry->file_system == kind && entry->owner == owner;
}

/* A build id is only a claim, and a container may claim anything: only files with the same bytes are the same. */
static uint32_t find_copy(struct object_table *table, uint64_t key, const struct elf_file *elf, enum file_system_kind kind)
{
	uint32_t cursor = 0, nr = 0, *known;

	while (nr < MAX_SAME_ID && u64_map_each(&table->by_build_id, key, &cursor))
		nr++;
	if (nr == MAX_SAME_ID || elf_file_size(elf) > SAME_BYTES_MAX || kind == FILE_SYSTEM_NETWORK)
		return OBJECT_NONE;
	cursor = 0;
	while ((known = u64_map_each(&table->by_build_id, key, &cursor))) {
		const struct elf_file *other = object_table_at(table, *known)->elf;

		if (other && may_have_copies(&table->entries[*known], elf_file_owner(elf), kind) && mapped_file_is_same(other, elf))
			return *known;
	}
	return OBJECT_NONE;
}

/* A file that could not be opened may be on any file system. It never counts as another user's file. */
static uint32_t add_unopened(struct object_table *table, uint32_t tgid, const char *path)
{
	uint32_t object = add_object(table, NULL, path);

	if (object == OBJECT_NONE)
		return OBJECT_NONE;
	table->entries[object].file_system = FILE_SYSTEM_FOREIGN;
	table->entries[object].owner = credentials_file_uid(tgid);
	return object;
}

static uint64_t build_id_key(const struct object_table *table, const struct elf_file *elf)
{
	const struct build_id *id = elf_file_build_id(elf);
	const uint64_t rest[] = { elf_file_size(elf), elf_file_owner(elf) };

	return hash_bytes(id->bytes, id->size, hash_bytes(rest, sizeof(rest), table->seed));
}

/* Opens the ELF file that process `tgid` maps, or finds an object with the same bytes. */
static uint32_t open_object(struct object_table *table, uint32_t tgid, int path_fd, uint64_t device, const char *path)
{
	enum file_system_kind kind = FILE_SYSTEM_LOCAL;
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	uint32_t object, owner;
	uint64_t key;
	bool has_id;
	int err = open_elf(table, tgid, path_fd, device, &kind, &elf);

	if (err) {
		count_failure(table, err, path);
		return add_unopened(table, tgid, path);
	}
	has_id = elf_file_build_id(elf)->size;
	key = build_id_key(table, elf);
	object = has_id ? find_copy(table, key, elf, kind) : OBJECT_NONE;
	if (object != OBJECT_NONE)
		return object;
	owner = elf_file_owner(elf);
	object = add_object(table, MOVE(elf), path);
	if (object == OBJECT_NONE || (has_id && u64_map_add(&table->by_build_id, key, object)))
		return OBJECT_NONE;
	table->entries[object].file_system = kind;
	table->entries[object].owner = owner;
	return object;
}

static uint32_t met_unreadable(struct object_table *table, const char *path, int err)
{
	uint64_t key = hash_bytes(path, strlen(path), 0);
	uint32_t object, *known = u64_map_find(&table->by_path, key);

	if (known)
		return *known;
	count_failure(table, err, path);
	object = add_object(table, NULL, path);
	if (object != OBJECT_NONE && u64_map_add(&table->by_path, key, object))
		return OBJECT_NONE;
	return object;
}

/* The vdso has no file, but its image is the same in all 64-bit processes: uses ours. */
static uint32_t met_vdso(struct object_table *table)
{
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
	uint64_t key = hash_bytes("[vdso]", 6, 0);
	struct elf_file *elf = NULL;
	uint32_t object, *known = u64_map_find(&table->by_path, key);
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);

	if (known)
		return *known;
	for (size_t size = VDSO_BYTES_MAX; image && !elf && size >= page_bytes; size -= page_bytes) {
		CLEANUP(freep) unsigned char *pages = calloc(1, size / page_bytes);

		/* mincore fails unless the whole range is mapped: that finds the image's size without reading past it */
		if (pages && !mincore((void *)image, size, pages) && elf_file_open_memory(image, size, NULL, &elf))
			elf = NULL;
	}
	object = add_object(table, elf, "[vdso]");
	if (object != OBJECT_NONE && u64_map_add(&table->by_path, key, object))
		return OBJECT_NONE;
	return object;
}

static uint64_t inode_key(const struct object_table *table, uint64_t device, uint64_t inode)
{
	const uint64_t both[] = { device, inode };

	return hash_bytes(both, sizeof(both), table->seed);
}

/* Finds the object whose open file this is. While it is open, no other file gets its inode. Never finds files on file systems whose stat(2)
 * shows other numbers than the kernel reports (btrfs, whose inodes are unique only in a subvolume, and overlayfs). */
static uint32_t find_open(const struct object_table *table, const struct mapped_region *region)
{
	uint64_t key = inode_key(table, region->device, region->inode);
	const uint32_t *object;
	uint32_t cursor = 0;

	while (region->inode && (object = u64_map_each(&table->by_inode, key, &cursor))) {
		const struct entry *entry = &table->entries[*object];
		struct file_identity identity;

		if (!entry->object.elf || elf_file_fd(entry->object.elf) < 0 || entry->identity.device != region->device ||
		    entry->identity.inode != region->inode)
			continue;
		if (!mapped_file_identify(elf_file_fd(entry->object.elf), &identity) &&
		    !memcmp(&identity, &entry->identity, sizeof(identity)))
			return *object;
	}
	return OBJECT_NONE;
}

/* Makes this the object's own file, unless it has one: then the file is a copy of that. 0 or -ENOMEM. */
static int take_identity(struct object_table *table, uint32_t object, const struct file_identity *identity)
{
	struct entry *entry = &table->entries[object];

	if (entry->identity.inode)
		return 0;
	entry->identity = *identity;
	entry->object.device = identity->device;
	return u64_map_add(&table->by_inode, inode_key(table, identity->device, identity->inode), object);
}

/* Does the path lead to that file in our root? */
static bool leads_to(struct object_table *table, const char *path, const struct file_identity *identity)
{
	CLEANUP(closep) int fd = path[0] == '/' ? proxy_find(table->proxy, path) : -ENOENT;

	return has_identity(fd, identity);
}

/* A user may have mounted everybody's file under a name of his own. So a path that leads to the file in our root replaces one that does
 * not. `identity`: of the file with this path. */
static void settle_path(struct object_table *table, struct entry *entry, const struct file_identity *identity, const char *path)
{
	char *copy;

	if (entry->is_path_settled || !strcmp(entry->object.path, path))
		return;
	entry->is_path_settled = leads_to(table, entry->object.path, &entry->identity);
	if (entry->is_path_settled || !leads_to(table, path, identity) || !(copy = strdup(path)))
		return;
	free((char *)entry->object.path);
	entry->object.path = copy;
	entry->is_path_settled = true;
}

/* A copy in memory of a served file is valid only for the user it was made for: another file system may have the device number by now. */
static bool stands_for(const struct entry *entry, uint32_t tgid)
{
	return entry->file_system != FILE_SYSTEM_FOREIGN || entry->owner == credentials_file_uid(tgid);
}

/* Returns the object of a file that process `tgid` (0: no process) maps. */
static uint32_t met_file(struct object_table *table, uint32_t tgid, int path_fd, const struct file_identity *identity, const char *path)
{
	uint64_t key = hash_bytes(identity, sizeof(*identity), table->seed);
	uint32_t cursor = 0, object, *known;

	while ((known = u64_map_each(&table->by_identity, key, &cursor))) {
		if (!stands_for(&table->entries[*known], tgid))
			continue;
		settle_path(table, &table->entries[*known], identity, path);
		return *known;
	}
	object = open_object(table, tgid, path_fd, identity->device, path);
	if (object == OBJECT_NONE || u64_map_add(&table->by_identity, key, object) || take_identity(table, object, identity))
		return OBJECT_NONE;
	return object;
}

/* Is the object's own file unchanged? True when it cannot be checked: it is no ELF file that we opened, or a copy. */
static bool is_unchanged(const struct entry *entry)
{
	return !entry->object.elf || entry->file_system == FILE_SYSTEM_FOREIGN ||
	       has_identity(elf_file_fd(entry->object.elf), &entry->identity);
}

/* Finds the file through the mapping itself. */
static uint32_t met_located(struct object_table *table, const struct mapped_region *region)
{
	CLEANUP(closep) int path_fd = proxy_locate(table->proxy, region);
	struct file_identity identity;
	int err = path_fd < 0 ? path_fd : mapped_file_identify(path_fd, &identity);

	return err ? met_unreadable(table, region->path, err) : met_file(table, region->tgid, path_fd, &identity, region->path);
}

uint32_t object_table_met(struct object_table *table, const struct mapped_region *region)
{
	uint32_t object;

	if (!strcmp(region->path, "[vdso]"))
		return met_vdso(table);
	object = find_open(table, region);
	if (object != OBJECT_NONE) {
		settle_path(table, &table->entries[object], &table->entries[object].identity, region->path);
		return object;
	}
	if (region_cache_find(&table->regions, region, &object) && object != OBJECT_NONE && is_unchanged(&table->entries[object]))
		return object;
	object = met_located(table, region);
	region_cache_keep(&table->regions, region, object);
	return object;
}

uint32_t object_table_find(struct object_table *table, const char *path)
{
	CLEANUP(closep) int path_fd = proxy_find(table->proxy, path);
	struct file_identity identity;

	return path_fd < 0 || mapped_file_identify(path_fd, &identity) ? OBJECT_NONE : met_file(table, 0, path_fd, &identity, path);
}

/* Is it open, and mapped by nobody? Then it can be closed. The vdso cannot. */
static bool is_idle(const struct entry *entry)
{
	return entry->is_used && !entry->nr_mapped && entry->object.elf && elf_file_fd(entry->object.elf) >= 0;
}

static int by_order(const void *a, const void *b)
{
	const struct entry *const *x = a, *const *y = b;

	return (*x)->idle_order < (*y)->idle_order ? -1 : (*x)->idle_order > (*y)->idle_order;
}

/* Closes the oldest files that can be found again, until MAX_IDLE are open. While idle files take more than half of the descriptor limit,
 * closes those that cannot be found again, too. */
static void close_idle(struct object_table *table, struct entry **idle, uint32_t nr_idle)
{
	struct rlimit limit;
	rlim_t max_idle = getrlimit(RLIMIT_NOFILE, &limit) ? MAX_IDLE : limit.rlim_cur / 2;
	uint32_t nr_open = nr_idle;

	qsort(idle, nr_idle, sizeof(struct entry *), by_order);
	for (uint32_t i = 0; i < nr_idle && nr_open > MAX_IDLE; i++) {
		CLEANUP(closep) int fd = find_again(table, idle[i]);

		if (fd < 0 && nr_open <= max_idle)
			continue;
		table->nr_lost += fd < 0;
		idle[i]->is_closed = fd >= 0;
		close_entry(table, idle[i]);
		nr_open--;
	}
}

/* Rebuilds the map without the numbers that are not in use. */
static int sweep_map(const struct object_table *table, struct u64_map *map)
{
	struct u64_map kept = { 0 };

	for (uint32_t i = 0; i < map->nr_slots; i++) {
		const struct u64_slot *slot = &map->slots[i];

		if (!slot->used || !table->entries[slot->value].is_used)
			continue;
		if (u64_map_add(&kept, slot->key, slot->value)) {
			u64_map_done(&kept);
			return -ENOMEM;
		}
	}
	u64_map_done(map);
	*map = kept;
	return 0;
}

int object_table_sweep(struct object_table *table, object_forgotten_fn fn, void *arg)
{
	CLEANUP(freep) struct entry **idle = calloc(table->nr_entries + 1, sizeof(struct entry *));
	uint32_t nr_idle = 0, nr_free = table->nr_free;
	int err;

	if (!idle)
		return -ENOMEM;
	table->nr_left = 0;
	region_cache_forget(&table->regions);
	for (uint32_t i = 0; i < table->nr_entries; i++) {
		struct entry *entry = &table->entries[i];

		if (entry->is_used && !entry->nr_mapped && !entry->nr_held) {
			fn(arg, i);
			forget_entry(table, entry);
			table->nr_free++;
		}
		if (is_idle(entry))
			idle[nr_idle++] = entry;
	}
	close_idle(table, idle, nr_idle);
	if (table->nr_free == nr_free)
		return 0;
	err = sweep_map(table, &table->by_identity);
	if (!err)
		err = sweep_map(table, &table->by_inode);
	if (!err)
		err = sweep_map(table, &table->by_build_id);
	return err ? err : sweep_map(table, &table->by_path);
}
