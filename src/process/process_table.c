// SPDX-License-Identifier: Apache-2.0
#include "process/process_table.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "base/order.h"
#include "base/u64_map.h"
#include "process/jitdump_path.h"
#include "process/mapping_set.h"
#include "process/maps_line.h"
#include "proxy/proxy.h"

/* Per process. Beyond these limits the oldest mappings are forgotten: a process that maps for ever must not end the run. */
#define MAX_LIVE (1u << 14)
#define MAX_PAST (1u << 14)
#define EXIT_NS 100000000u /* its last samples arrive after the kernel has reported its exit: its memory still exists */
/* Sets of mappings that a process shares with others, or shared: since it was forked, and before its last execs. */
#define MAX_SHARED 4
#define MAX_DUMPS 256 /* paths of ended processes' jitdumps */
#define MIN_RESCAN 512 /* live mappings from which on /proc is read again: the side-band does not report munmap */

struct process {
	uint32_t tgid;
	uint32_t generation;               /* changes whenever a pc may mean another file than before; unique over all processes */
	bool alive, changed;
	struct process_mapping *live;      /* sorted by start_pc, not overlapping; until_ns UINT64_MAX */
	struct process_mapping *past;      /* in the order of their ends */
	/* Room for MAX_SHARED, or NULL; in the order of their starts. The last may be live: then nr_live is 0. */
	struct shared_mappings *shared;
	uint32_t nr_shared;
	uint32_t nr_live, nr_past, live_capacity, past_capacity;
	uint32_t rescan_at;                /* nr_live at which /proc is read again */
	uint32_t nr_threads;               /* 0: not known */
	struct object_table *objects;      /* the table's */
	uint32_t *last_generation;         /* likewise */
	char *dump;                        /* path of the jitdump that was mapped when the process ended, or NULL */
};

struct process_table {
	struct process *processes;
	uint32_t *changed;                 /* indices of the processes whose `changed` is set; has room for all */
	uint32_t nr_processes, nr_changed, capacity, nr_alive, nr_dumps;
	uint32_t last_generation;          /* the last one handed out */
	struct u64_map by_tgid;
	struct object_table *objects;
	struct proxy *proxy;               /* NULL: none */
};

struct process_table *process_table_new(struct proxy *proxy)
{
	struct process_table *table = calloc(1, sizeof(*table));

	if (table && !(table->objects = object_table_new(proxy))) {
		free(table);
		return NULL;
	}
	if (table)
		table->proxy = proxy;
	return table;
}

/* Forgets the `nr` oldest. */
static void forget_shared(struct process *process, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		shared_mappings_done(&process->shared[i]);
	process->nr_shared -= nr;
	if (process->nr_shared)
		memmove(process->shared, process->shared + nr, process->nr_shared * sizeof(*process->shared));
}

void process_table_free(struct process_table *table)
{
	if (!table)
		return;
	for (uint32_t i = 0; i < table->nr_processes; i++) {
		free(table->processes[i].live);
		free(table->processes[i].past);
		free(table->processes[i].dump);
		forget_shared(&table->processes[i], table->processes[i].nr_shared);
		free(table->processes[i].shared);
	}
	free(table->processes);
	free(table->changed);
	u64_map_done(&table->by_tgid);
	object_table_free(table->objects);
	free(table);
}

const struct object_table *process_table_objects(const struct process_table *table)
{
	return table->objects;
}

uint32_t process_table_nr_processes(const struct process_table *table)
{
	return table->nr_alive;
}

static struct process *find_process(const struct process_table *table, uint32_t tgid)
{
	const uint32_t *i = u64_map_find(&table->by_tgid, tgid);

	return i ? &table->processes[*i] : NULL;
}

static void mark_changed(struct process_table *table, struct process *process)
{
	if (!process->changed)
		table->changed[table->nr_changed++] = (uint32_t)(process - table->processes);
	process->changed = true;
}

static int make_room(struct process_table *table)
{
	uint32_t capacity = table->capacity ? table->capacity * 2 : 64;
	struct process *processes = reallocarray(table->processes, capacity, sizeof(*processes));
	uint32_t *changed;

	if (!processes)
		return -ENOMEM;
	table->processes = processes;
	changed = reallocarray(table->changed, capacity, sizeof(*changed));
	if (!changed)
		return -ENOMEM;
	table->changed = changed;
	table->capacity = capacity;
	return 0;
}

static void forget_dump(struct process_table *table, struct process *process)
{
	table->nr_dumps -= process->dump != NULL;
	free(MOVE(process->dump));
}

static void next_generation(struct process *process)
{
	process->generation = ++*process->last_generation;
}

/* Returns the process, alive and marked as changed; NULL: no memory. Borrowed until the next call. */
static struct process *enter_process(struct process_table *table, uint32_t tgid)
{
	struct process *process = find_process(table, tgid);

	if (!process) {
		if (table->nr_processes == table->capacity && make_room(table))
			return NULL;
		if (u64_map_add(&table->by_tgid, tgid, table->nr_processes))
			return NULL;
		process = &table->processes[table->nr_processes++];
		*process = (struct process){
			.tgid = tgid, .rescan_at = MIN_RESCAN, .objects = table->objects, .last_generation = &table->last_generation
		};
		next_generation(process);
	}
	table->nr_alive += !process->alive;
	forget_dump(table, process);
	process->alive = true;
	mark_changed(table, process);
	return process;
}

static int append(struct process_mapping **list, uint32_t *nr, uint32_t *capacity, const struct process_mapping *mapping)
{
	if (*nr == *capacity) {
		uint32_t bigger = *capacity ? *capacity * 2 : 16;
		struct process_mapping *grown = reallocarray(*list, bigger, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		*list = grown;
		*capacity = bigger;
	}
	(*list)[(*nr)++] = *mapping;
	return 0;
}

static void forget_last_shared(struct process *process)
{
	shared_mappings_done(&process->shared[--process->nr_shared]);
}

static int end_mapping(struct process *process, struct process_mapping mapping, uint64_t time_ns)
{
	int err;

	if (process->nr_past == MAX_PAST) {
		process->nr_past /= 2;
		for (uint32_t i = 0; i < MAX_PAST - process->nr_past; i++)
			object_table_release(process->objects, process->past[i].object);
		memmove(process->past, process->past + MAX_PAST - process->nr_past, process->nr_past * sizeof(mapping));
	}
	mapping.until_ns = time_ns;
	err = append(&process->past, &process->nr_past, &process->past_capacity, &mapping);
	if (!err)
		object_table_hold(process->objects, mapping.object);
	return err;
}

static bool shares_live(const struct process *process)
{
	return process->nr_shared && process->shared[process->nr_shared - 1].until_ns == UINT64_MAX;
}

/* Returns all live mappings, own or shared. Times and generations of shared ones are not the process's. */
static const struct process_mapping *live_of(const struct process *process, uint32_t *ret_nr)
{
	const struct mapping_set *set = shares_live(process) ? process->shared[process->nr_shared - 1].set : NULL;

	*ret_nr = set ? set->nr : process->nr_live;
	return set ? set->mappings : process->live;
}

static int share(struct process *process, struct mapping_set *set, uint64_t from_ns, uint32_t generation)
{
	if (!process->shared && !(process->shared = calloc(MAX_SHARED, sizeof(*process->shared))))
		return -ENOMEM;
	if (process->nr_shared == MAX_SHARED)
		forget_shared(process, 1);
	process->shared[process->nr_shared++] =
	    (struct shared_mappings){ .set = mapping_set_ref(set), .from_ns = from_ns, .until_ns = UINT64_MAX, .generation = generation };
	mapping_set_live(set);
	return 0;
}

static void clear_live(struct process *process)
{
	if (shares_live(process))
		forget_last_shared(process);
	for (uint32_t i = 0; i < process->nr_live; i++)
		object_table_unmap(process->objects, process->live[i].object);
	process->nr_live = 0;
	next_generation(process);
}

static int end_all(struct process *process, uint64_t time_ns)
{
	if (shares_live(process)) {
		struct shared_mappings *shared = &process->shared[process->nr_shared - 1];

		shared->until_ns = time_ns;
		mapping_set_end(shared->set);
	}
	for (uint32_t i = 0; i < process->nr_live; i++) {
		int err = end_mapping(process, process->live[i], time_ns);

		if (err)
			return err;
	}
	clear_live(process);
	return 0;
}

/* Inserts it in order. Mappings from one reading of /proc arrive in order: then nothing is moved. */
static int put_live(struct process *process, const struct process_mapping *mapping)
{
	struct process_mapping mine = *mapping;
	uint32_t i = mappings_upper_bound(process->live, process->nr_live, mine.start_pc), nr_behind = process->nr_live - i;
	int err = append(&process->live, &process->nr_live, &process->live_capacity, &mine);

	if (err)
		return err;
	memmove(&process->live[i + 1], &process->live[i], nr_behind * sizeof(mine));
	process->live[i] = mine;
	return 0;
}

static int insert_live(struct process *process, const struct process_mapping *mapping)
{
	struct process_mapping mine = *mapping;
	int err = 0;

	if (process->nr_live >= MAX_LIVE) { /* one more, when a mapping was split in two */
		err = end_all(process, mapping->from_ns);
		mine.generation = process->generation;
	}
	if (!err)
		err = put_live(process, &mine);
	if (!err)
		object_table_map(process->objects, mapping->object);
	return err;
}

/* Before the live mappings change: copies shared ones to the process's own list. */
static int unshare(struct process *process)
{
	const struct shared_mappings *shared;
	int err = 0;

	if (!shares_live(process))
		return 0;
	shared = &process->shared[process->nr_shared - 1];
	for (uint32_t i = 0; !err && i < shared->set->nr; i++) {
		struct process_mapping mapping = shared_mapping_at(shared, i);

		err = append(&process->live, &process->nr_live, &process->live_capacity, &mapping);
		if (!err)
			object_table_map(process->objects, mapping.object);
	}
	forget_last_shared(process);
	return err;
}

/* Moves the live mappings to a set that a child can share. */
static int share_live(struct process *process)
{
	struct mapping_set *set;
	int err;

	if (shares_live(process))
		return 0;
	set = mapping_set_new(process->objects, process->live, process->nr_live);
	err = set ? share(process, set, 0, 0) : -ENOMEM;
	mapping_set_unref(set); /* the process has its own reference */
	if (err)
		return err;
	for (uint32_t i = 0; i < process->nr_live; i++)
		object_table_unmap(process->objects, process->live[i].object);
	free(process->live);
	process->live = NULL;
	process->nr_live = process->live_capacity = 0;
	return 0;
}

static void remove_live(struct process *process, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		object_table_unmap(process->objects, process->live[i].object);
	memmove(&process->live[first], &process->live[end], (process->nr_live - end) * sizeof(*process->live));
	process->nr_live -= end - first;
}

/* Fills `rests` with the parts of a mapping that a new one leaves uncovered, and returns how many there are. */
static uint32_t uncovered(const struct process_mapping *old, uint64_t start_pc, uint64_t end_pc, struct process_mapping *rests)
{
	uint32_t nr = 0;

	if (old->start_pc < start_pc) {
		rests[nr] = *old;
		rests[nr++].end_pc = start_pc;
	}
	if (old->end_pc > end_pc) {
		rests[nr] = *old;
		rests[nr].file_off += end_pc - old->start_pc;
		rests[nr++].start_pc = end_pc;
	}
	return nr;
}

/* Ends the live mappings that a new one covers, and keeps their uncovered parts. Moves the list once, however many they are. */
static int cut_out(struct process *process, uint64_t start_pc, uint64_t end_pc, uint64_t time_ns)
{
	uint32_t first = mappings_upper_bound(process->live, process->nr_live, start_pc), end, nr_rests = 0;
	struct process_mapping rests[2]; /* before the first, and behind the last */
	int err = 0;

	if (first && process->live[first - 1].end_pc > start_pc)
		first--;
	for (end = first; !err && end < process->nr_live && process->live[end].start_pc < end_pc; end++) {
		nr_rests += uncovered(&process->live[end], start_pc, end_pc, rests + nr_rests);
		err = end_mapping(process, process->live[end], time_ns);
	}
	if (err || end == first)
		return err;
	next_generation(process);
	for (uint32_t i = 0; i < nr_rests; i++)
		object_table_map(process->objects, rests[i].object);
	remove_live(process, first, end);
	for (uint32_t i = 0; !err && i < nr_rests; i++)
		err = put_live(process, &rests[i]);
	return err;
}

/* The load bias of a mapping: elf_vaddr = pc - load_bias. */
static uint64_t load_bias(const struct elf_file *elf, const struct process_mapping *mapping)
{
	uint64_t elf_vaddr;

	if (!elf_file_off_to_vaddr(elf, mapping->file_off, &elf_vaddr))
		return mapping->start_pc - elf_vaddr;
	/* The mapping begins before the code segment and contains its start. */
	for (uint32_t i = 0; i < elf_file_nr_segments(elf); i++) {
		const struct elf_segment *segment = elf_file_segment(elf, i);

		if (segment->flags & 1 && segment->file_off - mapping->file_off < mapping->end_pc - mapping->start_pc) /* PF_X */
			return mapping->start_pc + (segment->file_off - mapping->file_off) - segment->vaddr;
	}
	return mapping->start_pc - mapping->file_off;
}

static bool is_file(const char *path)
{
	return (path[0] == '/' && path[1] != '/') || !strcmp(path, "[vdso]"); /* the side-band's name for anonymous memory is "//anon" */
}

static int add_mapping(struct process_table *table, struct process *process, const struct mapping_event *event)
{
	struct process_mapping mapping = {
		.start_pc = event->start_pc,
		.end_pc = event->start_pc + event->size_bytes,
		.file_off = event->file_off,
		.from_ns = event->time_ns,
		.until_ns = UINT64_MAX,
		.object = OBJECT_NONE,
	};
	int err;

	if (mapping.end_pc <= mapping.start_pc)
		return 0;
	if (is_file(event->path)) {
		mapping.object = object_table_met(table->objects, &(struct mapped_region){ event->tgid, mapping.start_pc, mapping.end_pc,
											   event->device, event->inode, event->path });
		if (mapping.object != OBJECT_NONE && object_table_at(table->objects, mapping.object)->elf)
			mapping.load_bias = load_bias(object_table_at(table->objects, mapping.object)->elf, &mapping);
	}
	err = unshare(process);
	if (!err)
		err = cut_out(process, mapping.start_pc, mapping.end_pc, event->time_ns);
	if (err)
		return err;
	mapping.generation = process->generation;
	return insert_live(process, &mapping);
}

int process_table_mmap(struct process_table *table, const struct mapping_event *event)
{
	struct process *process = enter_process(table, event->tgid);
	uint32_t nr = 0;

	if (process)
		live_of(process, &nr);
	if (nr >= MIN_RESCAN && nr >= process->rescan_at) {
		if (process_table_scan(table, event->tgid, event->time_ns, NULL) == -ENOMEM)
			return -ENOMEM;
		process = enter_process(table, event->tgid);
		process->rescan_at = process->nr_live > MIN_RESCAN / 2 ? process->nr_live * 2 : MIN_RESCAN;
	}
	return process ? add_mapping(table, process, event) : -ENOMEM;
}

int process_table_exec(struct process_table *table, uint32_t tgid, uint64_t time_ns)
{
	struct process *process = enter_process(table, tgid);

	if (process && process->nr_threads > 1) /* whose first thread has ended, and who has its number now? */
		process->nr_threads = 0;
	return process ? end_all(process, time_ns) : -ENOMEM;
}

int process_table_fork(struct process_table *table, uint32_t parent_tgid, uint32_t child_tgid, uint64_t time_ns)
{
	struct process *child = enter_process(table, child_tgid), *parent = find_process(table, parent_tgid);
	uint32_t nr = 0;
	int err = child ? end_all(child, time_ns) : -ENOMEM;

	if (child)
		child->nr_threads = 1;
	for (uint32_t i = child ? child->nr_past : 0; i-- > 0 && child->past[i].until_ns > time_ns;)
		child->past[i].until_ns = time_ns; /* of an earlier process with this id */
	for (uint32_t i = 0; child && i < child->nr_shared; i++)
		child->shared[i].until_ns = child->shared[i].until_ns < time_ns ? child->shared[i].until_ns : time_ns;
	if (!err && parent)
		live_of(parent, &nr);
	if (err || !nr)
		return err;
	err = share_live(parent);
	return err ? err : share(child, parent->shared[parent->nr_shared - 1].set, time_ns, child->generation);
}

static bool has_path(const char *const *paths, uint32_t nr, const char *path)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (!strcmp(paths[i], path))
			return true;
	}
	return false;
}

static uint32_t mapped_dumps(const struct process_table *table, const struct process *process, uint32_t number, const char **ret_paths,
			     uint32_t max)
{
	uint32_t nr_live, nr = 0;
	const struct process_mapping *live = live_of(process, &nr_live);

	for (uint32_t i = 0; i < nr_live && nr < max; i++) {
		const char *path = live[i].object == OBJECT_NONE ? "" : object_table_at(table->objects, live[i].object)->path;

		if (jitdump_path_is_of(path, number) && !has_path(ret_paths, nr, path))
			ret_paths[nr++] = path;
	}
	return nr;
}

/* Its mappings are forgotten soon, long before the report. Without memory, no path is kept. */
static void keep_dump(struct process_table *table, struct process *process)
{
	const char *path;

	if (table->nr_dumps < MAX_DUMPS && mapped_dumps(table, process, process->tgid, &path, 1))
		process->dump = strdup(path);
	table->nr_dumps += process->dump != NULL;
}

uint32_t process_table_dumps(const struct process_table *table, uint32_t tgid, uint32_t number, const char **ret_paths, uint32_t max)
{
	const struct process *process = find_process(table, tgid);

	if (!process || process->alive)
		return process ? mapped_dumps(table, process, number, ret_paths, max) : 0;
	if (!process->dump || !jitdump_path_is_of(process->dump, number))
		return 0;
	ret_paths[0] = process->dump;
	return 1;
}

void process_table_exit(struct process_table *table, uint32_t tgid, uint64_t time_ns)
{
	struct process *process = find_process(table, tgid);

	if (!process || !process->alive)
		return;
	keep_dump(table, process);
	if (end_all(process, time_ns + EXIT_NS)) /* no memory to keep them: forget them */
		clear_live(process);
	process->alive = false;
	mark_changed(table, process);
	table->nr_alive--;
}

void process_table_thread(struct process_table *table, uint32_t tgid, bool has_begun)
{
	struct process *process = find_process(table, tgid);

	if (process && process->nr_threads)
		process->nr_threads += has_begun ? 1 : -1;
}

void process_table_lost(struct process_table *table)
{
	for (uint32_t i = 0; i < table->nr_processes; i++)
		table->processes[i].nr_threads = 0;
}

bool process_table_has_one_thread(const struct process_table *table, uint32_t tgid)
{
	const struct process *process = find_process(table, tgid);

	return process && process->nr_threads == 1;
}

/* Reads the maps of one thread of the process into the table. Returns the number of lines, 0 for a kernel thread or a thread that has
 * ended, or -errno. */
static int scan_thread(struct process_table *table, uint32_t tgid, uint64_t tid, uint64_t time_ns)
{
	CLEANUP(fclosep) FILE *file = NULL;
	CLEANUP(freep) char *line = NULL;
	size_t capacity = 0;
	struct process *process;
	uint64_t from_ns;
	int nr = 0, err = proxy_maps(table->proxy, tgid, (uint32_t)tid, &file);

	if (err)
		return err;
	process = enter_process(table, tgid);
	if (!process)
		return -ENOMEM;
	/* They may be older than this first reading, but no earlier times are looked up. */
	from_ns = process->nr_live || process->nr_past || process->nr_shared ? time_ns : 0;
	err = end_all(process, time_ns);
	/* More lines would end those that were read. */
	while (!err && process->nr_live < MAX_LIVE && getline(&line, &capacity, file) > 0) {
		struct mapping_event event;

		nr++;
		if (!maps_line_parse(line, &event))
			continue;
		event.tgid = tgid;
		event.time_ns = from_ns;
		err = add_mapping(table, process, &event);
	}
	return err ? err : nr;
}

/* Reads the maps of another thread, when the first has ended: /proc/TGID no longer shows the memory then. */
static int scan_other_threads(struct process_table *table, uint32_t tgid, uint64_t time_ns)
{
	char path[64];
	CLEANUP(closedirp) DIR *threads = NULL;
	const struct dirent *entry;
	int nr = 0;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task", tgid);
	threads = opendir(path);
	while (!nr && threads && (entry = readdir(threads))) {
		uint64_t tid;

		if (number_u64(entry->d_name, UINT32_MAX, &tid) || tid == tgid)
			continue;
		nr = scan_thread(table, tgid, tid, time_ns);
		if (nr < 0 && nr != -ENOMEM)
			nr = 0; /* has ended, too */
	}
	return nr;
}

int process_table_scan(struct process_table *table, uint32_t tgid, uint64_t time_ns, struct diag *diag)
{
	int nr = scan_thread(table, tgid, tgid, time_ns);

	if (!nr || nr == -ESRCH)
		nr = scan_other_threads(table, tgid, time_ns);
	if (nr < 0)
		return diag_errno(diag, -nr, "cannot read /proc/%" PRIu32 "/maps: %s", tgid, strerror(-nr));
	return 0;
}

void process_table_renew(struct process_table *table, uint32_t tgid)
{
	struct process *process = find_process(table, tgid);

	if (process && process->alive)
		mark_changed(table, process);
}

int process_table_changes(struct process_table *table, process_changed_fn fn, void *arg)
{
	while (table->nr_changed) {
		struct process *process = &table->processes[table->changed[--table->nr_changed]];
		const struct process_mapping *live;
		uint32_t nr;
		int err;

		process->changed = false;
		live = live_of(process, &nr);
		err = fn(arg, process->tgid, process->generation, live, nr);
		if (err)
			return err;
	}
	return 0;
}

int process_table_living(const struct process_table *table, process_changed_fn fn, void *arg)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < table->nr_processes; i++) {
		const struct process *process = &table->processes[i];
		uint32_t nr;
		const struct process_mapping *live = live_of(process, &nr);

		err = process->alive ? fn(arg, process->tgid, process->generation, live, nr) : 0;
	}
	return err;
}

const struct process_mapping *process_table_find(const struct process_table *table, uint32_t tgid, uint64_t time_ns, uint64_t pc)
{
	const struct process *process = find_process(table, tgid);
	const struct process_mapping *found;
	uint32_t i;

	if (!process)
		return NULL;
	i = mappings_upper_bound(process->live, process->nr_live, pc);
	if (i && pc < process->live[i - 1].end_pc && process->live[i - 1].from_ns <= time_ns)
		return &process->live[i - 1];
	for (i = process->nr_shared, found = NULL; i-- > 0 && !found;)
		found = shared_mappings_find(&process->shared[i], time_ns, pc);
	if (found)
		return found;
	for (i = process->nr_past; i-- > 0;) {
		const struct process_mapping *mapping = &process->past[i];

		if (pc >= mapping->start_pc && pc < mapping->end_pc && mapping->from_ns <= time_ns && time_ns <= mapping->until_ns)
			return mapping;
	}
	return NULL;
}

bool process_table_is_current(const struct process_table *table, uint32_t tgid, uint32_t generation)
{
	const struct process *process = find_process(table, tgid);

	return process && process->alive && process->generation == generation;
}

/* Returns when the first mapping of a later generation began. */
uint64_t process_table_generation_end(const struct process_table *table, uint32_t tgid, uint32_t generation)
{
	const struct process *process = find_process(table, tgid);
	uint64_t end_ns = UINT64_MAX;

	if (!process || process->generation == generation)
		return end_ns;
	for (uint32_t i = 0; i < process->nr_live; i++) {
		if (process->live[i].generation > generation && process->live[i].from_ns < end_ns)
			end_ns = process->live[i].from_ns;
	}
	for (uint32_t i = 0; i < process->nr_past; i++) {
		if (process->past[i].generation > generation && process->past[i].from_ns < end_ns)
			end_ns = process->past[i].from_ns;
	}
	for (uint32_t i = 0; i < process->nr_shared; i++) {
		uint64_t from_ns = shared_mappings_since(&process->shared[i], generation);

		end_ns = from_ns < end_ns ? from_ns : end_ns;
	}
	return end_ns;
}

static int compare_starts(const void *a, const void *b)
{
	const struct process_mapping *x = a, *y = b;

	if (x->start_pc != y->start_pc)
		return x->start_pc < y->start_pc ? -1 : 1;
	return x->from_ns > y->from_ns ? -1 : x->from_ns < y->from_ns; /* of two at a moment of change, the newer first */
}

static uint32_t nr_of_shared(const struct process *process)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < process->nr_shared; i++)
		nr += process->shared[i].set->nr;
	return nr;
}

/* Did the mapping exist then? Narrows the period for which the answer holds. */
static bool is_there(const struct process_mapping *mapping, uint64_t time_ns, struct mappings_at *then)
{
	if (mapping->from_ns > time_ns) {
		then->until_ns = smaller(then->until_ns, mapping->from_ns - 1);
		return false;
	}
	if (mapping->until_ns < time_ns) {
		then->from_ns = larger(then->from_ns, mapping->until_ns + 1);
		return false;
	}
	then->from_ns = larger(then->from_ns, mapping->from_ns);
	then->until_ns = smaller(then->until_ns, mapping->until_ns);
	return true;
}

/* Collects the mappings that existed then, in no order. Some may overlap at a moment of change. The list has room for all. */
static void collect_at(const struct process *process, uint64_t time_ns, struct mappings_at *then)
{
	for (uint32_t i = 0; i < process->nr_live; i++) {
		if (is_there(&process->live[i], time_ns, then))
			then->list[then->nr++] = process->live[i];
	}
	for (uint32_t i = 0; i < process->nr_past; i++) {
		if (is_there(&process->past[i], time_ns, then))
			then->list[then->nr++] = process->past[i];
	}
	for (uint32_t i = 0; i < process->nr_shared; i++) {
		for (uint32_t j = 0; j < process->shared[i].set->nr; j++) {
			struct process_mapping mapping = shared_mapping_at(&process->shared[i], j);

			if (is_there(&mapping, time_ns, then))
				then->list[then->nr++] = mapping;
		}
	}
}

int process_table_at(const struct process_table *table, uint32_t tgid, uint64_t time_ns, struct mappings_at *ret_mappings)
{
	const struct process *process = find_process(table, tgid);
	uint32_t nr = process ? process->nr_live + process->nr_past + nr_of_shared(process) : 0, nr_kept = 0;
	struct mappings_at then = { .until_ns = UINT64_MAX };

	if (!nr)
		return -ENOENT;
	then.list = calloc(nr, sizeof(*then.list));
	if (!then.list)
		return -ENOMEM;
	collect_at(process, time_ns, &then);
	qsort(then.list, then.nr, sizeof(*then.list), compare_starts);
	for (uint32_t i = 0; i < then.nr; i++) {
		if (!nr_kept || then.list[i].start_pc >= then.list[nr_kept - 1].end_pc)
			then.list[nr_kept++] = then.list[i];
	}
	then.nr = nr_kept;
	/* The newest mapping of that time began its generation. */
	for (uint32_t i = 0; i < nr_kept; i++) {
		if (then.generation < then.list[i].generation)
			then.generation = then.list[i].generation;
	}
	*ret_mappings = then;
	return 0;
}

/* The last one takes its place. */
static void forget_process(struct process_table *table, uint32_t number)
{
	struct process *process = &table->processes[number];

	free(process->live);
	free(process->past);
	free(process->shared);
	u64_map_remove(&table->by_tgid, process->tgid, number);
	*process = table->processes[--table->nr_processes];
	if (number < table->nr_processes)
		*u64_map_find(&table->by_tgid, process->tgid) = number;
}

/* Has the process ended, and is nobody interested in it any more? */
static bool is_over(const struct process_table *table, const struct process *process)
{
	return !process->alive && !process->nr_past && !process->nr_shared && !process->dump && !table->nr_changed;
}

void process_table_prune(struct process_table *table, uint64_t time_ns)
{
	for (uint32_t i = table->nr_processes; i-- > 0;) { /* from the end: one that takes another's place was looked at */
		struct process *process = &table->processes[i];
		uint32_t nr_kept = 0;

		for (uint32_t j = 0; j < process->nr_past; j++) {
			if (process->past[j].until_ns >= time_ns)
				process->past[nr_kept++] = process->past[j];
			else
				object_table_release(process->objects, process->past[j].object);
		}
		process->nr_past = nr_kept;
		while (process->nr_shared && process->shared[0].until_ns < time_ns)
			forget_shared(process, 1);
		if (is_over(table, process))
			forget_process(table, i);
	}
}

int process_table_sweep(struct process_table *table, object_forgotten_fn fn, void *arg)
{
	return object_table_sweep(table->objects, fn, arg);
}

void process_table_hold_object(const struct process_table *table, uint32_t object)
{
	object_table_hold(table->objects, object);
}

void process_table_release_object(const struct process_table *table, uint32_t object)
{
	object_table_release(table->objects, object);
}

uint32_t process_table_expect_object(struct process_table *table, const char *path)
{
	uint32_t object = object_table_find(table->objects, path);

	object_table_hold(table->objects, object);
	return object;
}

void process_table_renew_objects(struct process_table *table, bool (*is_one)(void *arg, uint32_t object), void *arg)
{
	for (uint32_t i = 0; i < table->nr_processes; i++) {
		struct process *process = &table->processes[i];
		const struct process_mapping *live;
		bool maps_one = false;
		uint32_t nr;

		live = live_of(process, &nr);
		for (uint32_t j = 0; j < nr && !maps_one; j++)
			maps_one = live[j].object != OBJECT_NONE && is_one(arg, live[j].object);
		if (process->alive && maps_one)
			mark_changed(table, process);
	}
}
