// SPDX-License-Identifier: Apache-2.0
#include "track/tracker.h"

#include <errno.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/process_stat.h"
#include "base/u64_map.h"
#include "collect/sideband.h"
#include "track/account_common.h"
#include "track/process_scan.h"
#include "track/runtime_loader.h"
#include "track/table_loader.h"

#define PRUNE_NS  2000000000u /* mappings that ended longer ago are no longer needed */
#define RESCAN_NS 1000000000u /* at most this often after losses */
#define SCAN_NS 1000000000u   /* for one user, as in process_scan; twice as much for all */
#define NEXT_SCAN_NS 100000000u /* when samples are already waiting */
#define LACKING_BYTES_MAX (1u << 20)
#define ASKED_NS 200000000u   /* at the start, for reading other users' files */
#define ASKED_STEP_NS 10000000u
#define ASKED_AT_ONCE 128u
#define MANY_FILES 64         /* files that no process maps; beyond that, do not wait for tracker_prune */

struct tracker {
	struct sideband *sideband;
	struct process_table *processes;
	struct table_store *store;
	struct account *account;
	struct parser *parser;
	struct proxy *proxy;
	struct table_loader *loader;
	struct runtime_loader *runtimes; /* or NULL */
	struct table_cache *cache;     /* or NULL */
	struct identities *identities; /* likewise */
	struct sonde_mapping *scratch; /* mappings of the process that is being reported */
	uint32_t scratch_capacity;
	struct deferred_process known;      /* the contents of scratch, last looked up; tgid 0: nothing */
	uint64_t known_from_ns, known_until_ns; /* when these mappings were in place */
	uint64_t nr_known;             /* number of lookups */
	struct process_scan_left left;
	int stop_fd;
	struct u64_map only;           /* tgids */
	bool has_only, follows_children;
	struct u64_map leaderless;     /* tgids whose first thread has ended, but not all threads */
	struct u64_map asked;          /* objects that are being read: to be examined again */
	uint32_t next_asked;           /* the next slot of `asked` to look at */
	uint64_t asked_ns;             /* time of the last look */
	struct u64_map unmet;          /* mapped objects that were not examined yet */
	struct buffer lacking;         /* uint32_t each: tgids whose mappings found no room */
	bool has_yielded;              /* tables were evicted for them: a process that finds no room now gets none */
	bool processes_full;           /* noted once */
	uint64_t pruned_ns;
	uint64_t scanned_ns;           /* when /proc was last read */
	uint64_t known_ns;             /* the process table has all events up to then */
	bool has_losses;               /* side-band records were lost since the last scan */
	bool has_too_many;             /* noted once: a process has more mappings than the kernel side takes */
};

static int tell_all(void *arg);

static void tracker_freep(struct tracker **tracker)
{
	tracker_free(*tracker);
}

int tracker_new(const struct table_store_options *store, struct account *account, struct parser *parser, struct proxy *proxy,
		struct diag *diag, struct tracker **ret_tracker)
{
	CLEANUP(tracker_freep) struct tracker *tracker = calloc(1, sizeof(*tracker));
	int err;

	if (!tracker)
		return -ENOMEM;
	tracker->stop_fd = -1;
	tracker->account = account;
	tracker->parser = parser;
	tracker->proxy = proxy;
	tracker->lacking = BUFFER_INIT(LACKING_BYTES_MAX);
	tracker->pruned_ns = clock_ns();
	tracker->processes = process_table_new(proxy);
	if (!tracker->processes)
		return -ENOMEM;
	err = sideband_new(diag, &tracker->sideband);
	if (!err)
		err = table_store_new(store, diag, &tracker->store);
	if (err)
		return err;
	tracker->loader = table_loader_new(tracker->store, tracker->processes, account, parser, tell_all, tracker);
	if (!tracker->loader)
		return -ENOMEM;
	*ret_tracker = MOVE(tracker);
	return 0;
}

void tracker_free(struct tracker *tracker)
{
	if (!tracker)
		return;
	sideband_free(tracker->sideband);
	runtime_loader_free(tracker->runtimes);
	table_loader_free(tracker->loader);
	table_cache_free(tracker->cache);
	table_store_free(tracker->store);
	process_table_free(tracker->processes);
	u64_map_done(&tracker->only);
	u64_map_done(&tracker->leaderless);
	u64_map_done(&tracker->unmet);
	u64_map_done(&tracker->asked);
	buffer_done(&tracker->lacking);
	free(tracker->scratch);
	free(tracker);
}

void tracker_use_cache(struct tracker *tracker, struct table_cache *cache)
{
	tracker->cache = cache;
	table_loader_use_cache(tracker->loader, cache);
}

int tracker_use_runtimes(struct tracker *tracker, struct sampler *sampler, uint32_t off)
{
	tracker->runtimes = runtime_loader_new(sampler, tracker->parser, tracker->proxy, tracker->processes, tracker->account);
	if (!tracker->runtimes)
		return -ENOMEM;
	runtime_loader_use_cache(tracker->runtimes, tracker->cache);
	runtime_loader_switch_off(tracker->runtimes, off);
	return 0;
}

void tracker_use_identities(struct tracker *tracker, struct identities *identities)
{
	tracker->identities = identities;
}

struct runtime_loader *tracker_runtimes(const struct tracker *tracker)
{
	return tracker->runtimes;
}

int tracker_only(struct tracker *tracker, const uint32_t *tgids, uint32_t nr_tgids, bool children)
{
	tracker->has_only = true;
	tracker->follows_children = children;
	for (uint32_t i = 0; i < nr_tgids; i++) {
		int err = u64_map_add(&tracker->only, tgids[i], 1);

		if (err)
			return err;
	}
	return 0;
}

void tracker_stops_by(struct tracker *tracker, int stop_fd)
{
	tracker->stop_fd = stop_fd;
}

static bool is_followed(const struct tracker *tracker, uint32_t tgid)
{
	return !tracker->has_only || u64_map_find(&tracker->only, tgid);
}

/* Writes tracker->scratch to the kernel. Lack of room is no failure: stacks are walked as far as possible, and marked. */
static int set_process(struct tracker *tracker, struct sonde_process process)
{
	int err;

	process.known_ns = tracker->known_ns;
	err = table_store_set_process(tracker->store, &process, tracker->scratch);
	if (err != -ENOSPC)
		return err;
	if (!tracker->has_yielded) {
		buffer_append(&tracker->lacking, &process.tgid, sizeof(process.tgid));
		return tracker->lacking.err == -ENOMEM ? -ENOMEM : 0;
	}
	if (!tracker->processes_full)
		account_note(tracker->account,
			     "no room for the mappings of more processes: from process %u on some stacks have their first frame only",
			     process.tgid);
	tracker->processes_full = true;
	return 0;
}

/* Examines a file, and loads its table. *ret_asked: it is still being read. */
static int look_into(struct tracker *tracker, uint32_t object, bool *ret_asked)
{
	int err = tracker->runtimes ? runtime_loader_meet(tracker->runtimes, object) : 0;
	bool is_asked = err == -EINPROGRESS;

	if (!err || is_asked)
		err = table_loader_meet(tracker->loader, object);
	*ret_asked = is_asked || table_loader_is_asked(tracker->loader, object);
	return err;
}

/* The same; a file that is still being read is examined again later. */
static int meet(struct tracker *tracker, uint32_t object)
{
	bool is_asked;
	int err = look_into(tracker, object, &is_asked);

	return err || !is_asked || u64_map_find(&tracker->asked, object) ? err : u64_map_add(&tracker->asked, object, 1);
}

static int meet_mapped(struct tracker *tracker, const struct process_mapping *mappings, uint32_t nr_mappings)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < nr_mappings; i++)
		err = meet(tracker, mappings[i].object);
	return err;
}

#define MAX_PIECES 3 /* of a mapping: a runtime owns a part in its middle */

/* Writes one mapping to `to`: its number of pieces. */
static uint32_t fill_mapping(struct tracker *tracker, uint32_t tgid, const struct process_mapping *mapping, struct sonde_mapping *to)
{
	struct sonde_mapping whole = { .start_pc = mapping->start_pc, .end_pc = mapping->end_pc };
	struct sonde_code_range loop, part;
	uint32_t object, owner, nr = 0;
	bool is_file = false;

	table_loader_fill(tracker->loader, mapping->object, mapping->load_bias, &whole);
	if (tracker->runtimes && runtime_loader_compiled(tracker->runtimes, tgid, mapping->start_pc, &object, &loop))
		table_loader_fill_compiled(tracker->loader, object, &loop, &whole);
	owner = tracker->runtimes ? runtime_loader_owner(tracker->runtimes, tgid, mapping, &part, &is_file) : SONDE_RUNTIME_NONE;
	if (owner == SONDE_RUNTIME_NONE)
		part = (struct sonde_code_range){ whole.end_pc, whole.end_pc };
	if (whole.start_pc < part.start_pc) {
		to[nr] = whole;
		to[nr++].end_pc = part.start_pc;
	}
	if (part.start_pc < part.end_pc)
		to[nr++] = (struct sonde_mapping){ .start_pc = part.start_pc,
						   .end_pc = part.end_pc,
						   .base_pc = is_file ? part.start_pc : 0,
						   .index_pos = owner,
						   .block_shift = SONDE_OWNED };
	if (part.end_pc < whole.end_pc) {
		to[nr] = whole;
		to[nr++].start_pc = part.end_pc;
	}
	return nr;
}

/* Writes the mappings, with the tables of their files, to tracker->scratch. */
static int fill_mappings(struct tracker *tracker, uint32_t tgid, const struct process_mapping *mappings, uint32_t nr_mappings,
			 uint32_t *ret_nr)
{
	uint32_t nr = 0;

	if (nr_mappings > tracker->scratch_capacity) {
		struct sonde_mapping *scratch = reallocarray(tracker->scratch, nr_mappings, MAX_PIECES * sizeof(*scratch));

		if (!scratch)
			return -ENOMEM;
		tracker->scratch = scratch;
		tracker->scratch_capacity = nr_mappings;
	}
	for (uint32_t i = 0; i < nr_mappings; i++)
		nr += fill_mapping(tracker, tgid, &mappings[i], &tracker->scratch[nr]);
	*ret_nr = nr;
	return 0;
}

static int note_unmet(struct tracker *tracker, const struct process_mapping *mappings, uint32_t nr_mappings)
{
	for (uint32_t i = 0; i < nr_mappings; i++) {
		uint32_t object = mappings[i].object;
		int err = table_loader_is_met(tracker->loader, object) || u64_map_find(&tracker->unmet, object)
			      ? 0
			      : u64_map_add(&tracker->unmet, object, 1);

		if (err)
			return err;
	}
	return 0;
}

static int tell_kernel(void *arg, uint32_t tgid, uint32_t generation, const struct process_mapping *mappings, uint32_t nr_mappings)
{
	struct tracker *tracker = arg;
	struct sonde_process process = { .tgid = tgid, .generation = generation };
	int err =
	    tracker->runtimes ? runtime_loader_tell(tracker->runtimes, tgid, generation, mappings, nr_mappings, &process.runtimes) : 0;

	if (!err)
		err = note_unmet(tracker, mappings, nr_mappings);
	if (!err)
		err = fill_mappings(tracker, tgid, mappings, nr_mappings, &process.nr_mappings);
	if (err)
		return err;
	if (nr_mappings > SONDE_MAX_MAPPINGS && !tracker->has_too_many) {
		account_note(tracker->account,
			     "process %u maps more than %d pieces of code; only the first are known, and stacks end at the others", tgid,
			     SONDE_MAX_MAPPINGS);
		tracker->has_too_many = true;
	}
	return set_process(tracker, process);
}

static int tell_all(void *arg)
{
	struct tracker *tracker = arg;

	tracker->known = (struct deferred_process){ 0 }; /* its tables may have changed */
	return process_table_changes(tracker->processes, tell_kernel, tracker);
}

/* Evicts tables for processes that found no room: without its mappings, none of a process's stacks can be walked. */
static int help_lacking(struct tracker *tracker)
{
	const uint32_t *tgids;
	int err;

	if (!tracker->lacking.size)
		return 0;
	err = table_loader_yield(tracker->loader);
	tgids = (const uint32_t *)tracker->lacking.data; /* there may be more now */
	for (size_t i = 0; i < tracker->lacking.size / sizeof(*tgids); i++)
		process_table_renew(tracker->processes, tgids[i]);
	tracker->has_yielded = true;
	if (!err)
		err = tell_all(tracker);
	tracker->has_yielded = false;
	tracker->lacking.size = 0;
	return err;
}

static int tell_changes(struct tracker *tracker, struct diag *diag)
{
	int err = tell_all(tracker);

	if (!err && tracker->runtimes && runtime_loader_load(tracker->runtimes))
		err = tell_all(tracker);
	if (!err)
		err = table_loader_settle(tracker->loader);
	if (!err)
		err = help_lacking(tracker);
	return err ? diag_errno(diag, -err, "cannot tell the kernel what is mapped: %s", strerror(-err)) : 0;
}

static bool is_object(void *arg, uint32_t object)
{
	return object == *(const uint32_t *)arg;
}

/* Examines a file of `unmet`, and reports the processes that map it. */
static int meet_unmet(struct tracker *tracker, uint32_t object, struct diag *diag)
{
	int err;

	u64_map_remove(&tracker->unmet, object, 1);
	process_table_renew_objects(tracker->processes, is_object, &object);
	err = meet(tracker, object);
	return err ? diag_errno(diag, -err, "cannot load the unwind tables: %s", strerror(-err)) : tell_changes(tracker, diag);
}

/* One at a time: the others wait for the next reading, or until a stack needs them. */
static int meet_next(struct tracker *tracker, struct diag *diag)
{
	const struct u64_slot *slot = tracker->unmet.slots;

	if (!tracker->unmet.nr_used)
		return 0;
	while (!slot->used)
		slot++;
	return meet_unmet(tracker, (uint32_t)slot->key, diag);
}

/* Looks whether files of `asked` were read; a few at a time, since other users may cause any number. */
static int meet_asked(struct tracker *tracker, struct diag *diag)
{
	for (uint32_t i = 0; i < ASKED_AT_ONCE && i < tracker->asked.nr_slots; i++) {
		const struct u64_slot *slot = &tracker->asked.slots[tracker->next_asked % tracker->asked.nr_slots];
		uint32_t object = (uint32_t)slot->key;
		bool is_asked = true;
		int err = slot->used ? look_into(tracker, object, &is_asked) : 0;

		if (err)
			return diag_errno(diag, -err, "cannot load the unwind tables: %s", strerror(-err));
		if (is_asked) {
			tracker->next_asked++;
			continue;
		}
		u64_map_remove(&tracker->asked, object, 1); /* another object may have its slot now */
		process_table_renew_objects(tracker->processes, is_object, &object);
	}
	return 0;
}

/* Waits a little at the start: until a file's table is loaded, stacks that reach its code end there. */
static int await_asked(struct tracker *tracker, struct diag *diag)
{
	uint64_t end_ns = clock_ns() + ASKED_NS;
	int err = 0;

	while (!err && tracker->asked.nr_used && parser_may_wait(tracker->parser) && clock_ns() < end_ns)
		err = meet_asked(tracker, diag);
	return err;
}

bool tracker_has_more(const struct tracker *tracker)
{
	return tracker->unmet.nr_used > 0;
}

/* Loads the tables of all files known so far before any process is reported: their chunks then become visible together. */
static int load_all(struct tracker *tracker, struct diag *diag)
{
	const struct object_table *objects = process_table_objects(tracker->processes);

	for (uint32_t object = 0; object < object_table_nr(objects); object++) {
		int err = object_table_is_mapped(objects, object) ? meet(tracker, object) : 0;

		if (err)
			return diag_errno(diag, -err, "cannot load the unwind tables: %s", strerror(-err));
	}
	return 0;
}

/* An interpreter that an earlier recording met: its table and its program are loaded before a process runs it. */
static int expect_interpreter(void *arg, const char *path)
{
	struct tracker *tracker = arg;
	uint32_t object = process_table_expect_object(tracker->processes, path);
	int err = meet(tracker, object);

	if (!err)
		runtime_loader_expect(tracker->runtimes, object);
	return err;
}

uint32_t tracker_expect(struct tracker *tracker, const char *path)
{
	return process_table_expect_object(tracker->processes, path);
}

/* Only if processes may start that run one. */
static int expect_interpreters(struct tracker *tracker, struct diag *diag)
{
	int err;

	if (!tracker->cache || !tracker->runtimes || (tracker->has_only && !tracker->follows_children))
		return 0;
	err = table_cache_interpreters(tracker->cache, expect_interpreter, tracker);
	return err ? diag_errno(diag, -err, "cannot load the unwind tables: %s", strerror(-err)) : 0;
}

/* Scans the selected processes. One that has ended is skipped; one that may not be read is sampled all the same. */
static int scan_only(struct tracker *tracker, uint64_t now, struct diag *diag)
{
	for (uint32_t i = 0; i < tracker->only.nr_slots; i++) {
		uint32_t tgid = (uint32_t)tracker->only.slots[i].key;
		struct diag cause = { 0 };
		int err;

		if (!tracker->only.slots[i].used)
			continue;
		err = process_table_scan(tracker->processes, tgid, now, &cause);
		if (err == -EACCES || err == -EPERM)
			account_note(tracker->account, "%s: user stacks of process %u end at their innermost frame", cause.text, tgid);
		else if (err && err != -ENOENT && err != -ESRCH)
			return diag_errno(diag, -err, "%s", cause.text);
	}
	return 0;
}

static int scan_all(struct tracker *tracker, bool is_first, uint64_t now, struct diag *diag)
{
	const uint64_t user_ns = is_first ? SCAN_NS : NEXT_SCAN_NS;

	return process_scan_run(&(struct process_scan){ tracker->processes, tracker->proxy, tracker->stop_fd, user_ns, 2 * user_ns }, now,
				&tracker->left, diag);
}

int tracker_scan(struct tracker *tracker, struct diag *diag)
{
	bool is_first = !tracker->scanned_ns;
	uint64_t now = tracker->scanned_ns = tracker->known_ns = clock_ns();
	int err = tracker->has_only ? scan_only(tracker, now, diag) : scan_all(tracker, is_first, now, diag);

	process_table_lost(tracker->processes); /* threads may have begun meanwhile, or on CPUs that were not followed */
	tracker->has_losses = false;
	if (!err)
		err = load_all(tracker, diag);
	if (!err && is_first)
		err = expect_interpreters(tracker, diag) ?: await_asked(tracker, diag);
	if (!err)
		err = tell_changes(tracker, diag);
	while (!err && tracker->runtimes && runtime_loader_load(tracker->runtimes))
		err = tell_changes(tracker, diag);
	return err;
}

/* The first thread ends. Has the process other threads, or has one of them executed a program, and is the first thread now? Then it
 * continues. */
static bool goes_on(uint32_t tgid)
{
	struct process_stat stat;

	if (process_stat_read(tgid, &stat))
		return false;
	return process_stat_number(&stat, PROCESS_STAT_THREADS) > 1 || !strchr("ZX", process_stat_char(&stat, PROCESS_STAT_STATE));
}

static int end_process(struct tracker *tracker, uint32_t tgid, uint64_t time_ns)
{
	process_table_exit(tracker->processes, tgid, time_ns);
	u64_map_remove(&tracker->leaderless, tgid, 1);
	if (tracker->follows_children)
		u64_map_remove(&tracker->only, tgid, 1);
	return tracker->identities ? identities_exit(tracker->identities, tgid, time_ns) : 0;
}

/* When a whole process ends, its first thread's end may be seen before the others have ended, or before it is a zombie. So those that go on
 * are checked again. */
static int on_first_thread_exit(struct tracker *tracker, const struct sideband_event *event)
{
	if (process_table_has_one_thread(tracker->processes, event->tgid) || !goes_on(event->tgid))
		return end_process(tracker, event->tgid, event->time_ns);
	return u64_map_find(&tracker->leaderless, event->tgid) ? 0 : u64_map_add(&tracker->leaderless, event->tgid, 1);
}

static int end_leaderless(struct tracker *tracker)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < tracker->leaderless.nr_slots;) {
		const struct u64_slot *slot = &tracker->leaderless.slots[i];

		if (slot->used && !goes_on((uint32_t)slot->key)) {
			err = end_process(tracker, (uint32_t)slot->key, clock_ns());
			i = 0; /* removing moves others */
		} else {
			i++;
		}
	}
	return err;
}

static int on_fork(struct tracker *tracker, const struct sideband_event *event)
{
	int err = 0;

	if (event->tgid == event->parent_tgid) { /* a thread */
		process_table_thread(tracker->processes, event->tgid, true);
		return 0;
	}
	u64_map_remove(&tracker->leaderless, event->tgid, 1); /* an ended process's id is reused */
	if (tracker->has_only) {
		if (!tracker->follows_children || !is_followed(tracker, event->parent_tgid))
			return 0;
		err = u64_map_add(&tracker->only, event->tgid, 1);
	}
	if (!err && tracker->identities)
		err = identities_fork(tracker->identities, event->tgid, event->time_ns);
	return err ? err : process_table_fork(tracker->processes, event->parent_tgid, event->tgid, event->time_ns);
}

static int on_exec(struct tracker *tracker, const struct sideband_event *event)
{
	u64_map_remove(&tracker->leaderless, event->tgid, 1); /* its only thread is the first one now */
	return (tracker->identities ? identities_exec(tracker->identities, event->tgid, event->time_ns) : 0)
		   ?: process_table_exec(tracker->processes, event->tgid, event->time_ns);
}

static int on_event(void *arg, const struct sideband_event *event)
{
	struct tracker *tracker = arg;

	if (event->type == SIDEBAND_LOST) {
		tracker->account->lost_sideband += event->nr_lost;
		tracker->has_losses = true;
		process_table_lost(tracker->processes);
		if (tracker->identities)
			identities_lost(tracker->identities, clock_ns());
		return 0;
	}
	if (event->type == SIDEBAND_FORK)
		return on_fork(tracker, event);
	if (!is_followed(tracker, event->tgid))
		return 0;
	switch (event->type) {
	case SIDEBAND_EXEC:
		return on_exec(tracker, event);
	case SIDEBAND_EXIT:
		if (event->tid == event->tgid)
			return on_first_thread_exit(tracker, event);
		process_table_thread(tracker->processes, event->tgid, false);
		return 0;
	case SIDEBAND_MMAP:
		return process_table_mmap(tracker->processes, &(struct mapping_event){
								      .tgid = event->tgid,
								      .start_pc = event->start_pc,
								      .size_bytes = event->size_bytes,
								      .file_off = event->file_off,
								      .time_ns = event->time_ns,
								      .device = event->device,
								      .inode = event->inode,
								      .path = event->path,
							      });
	default:
		return 0;
	}
}

static void forget(void *arg, uint32_t object)
{
	struct tracker *tracker = arg;

	u64_map_remove(&tracker->unmet, object, 1);
	u64_map_remove(&tracker->asked, object, 1);
	table_loader_forget(tracker->loader, object);
	if (tracker->runtimes)
		runtime_loader_forget(tracker->runtimes, object);
}

/* Call once the kernel knows all changes. */
static int sweep(struct tracker *tracker)
{
	int err = process_table_sweep(tracker->processes, forget, tracker);

	return err ? err : table_loader_trim(tracker->loader);
}

/* An exec while a process is read is known before its labels are asked for. */
static int read_begun(struct tracker *tracker)
{
	if (!tracker->identities || !identities_have_begun(tracker->identities))
		return 0;
	return identities_read_begun(tracker->identities) ?: sideband_read(tracker->sideband, on_event, tracker, &tracker->known_ns);
}

int tracker_read(struct tracker *tracker, struct diag *diag)
{
	int err = sideband_read(tracker->sideband, on_event, tracker, &tracker->known_ns) ?: read_begun(tracker) ?: end_leaderless(tracker);

	tracker->known = (struct deferred_process){ 0 };
	if (err)
		return diag_errno(diag, -err, "cannot follow the processes: %s", strerror(-err));
	if (tracker->runtimes)
		runtime_loader_retry(tracker->runtimes);
	if (tracker->has_losses && clock_ns() - tracker->scanned_ns > RESCAN_NS)
		return tracker_scan(tracker, diag); /* lost events can only be recovered by a scan */
	if (clock_ns() - tracker->asked_ns > ASKED_STEP_NS) {
		err = meet_asked(tracker, diag);
		tracker->asked_ns = clock_ns();
	}
	if (!err)
		err = tell_changes(tracker, diag);
	if (!err)
		err = meet_next(tracker, diag);
	return err || object_table_nr_left(process_table_objects(tracker->processes)) < MANY_FILES ? err : sweep(tracker);
}

int tracker_follow_cpus(struct tracker *tracker, const struct cpus *online, struct diag *diag)
{
	int nr_new = sideband_follow(tracker->sideband, online, diag);
	/* events on these CPUs before they were followed can only be recovered by a scan */
	int err = nr_new > 0 ? tracker_scan(tracker, diag) : 0;

	return err < 0 ? err : nr_new;
}

int tracker_fd(const struct tracker *tracker)
{
	return sideband_fd(tracker->sideband);
}

/* Writes tracker->scratch and tracker->known. */
static int know_process(struct tracker *tracker, uint32_t tgid, uint64_t time_ns)
{
	struct mappings_at then = { .from_ns = time_ns, .until_ns = time_ns };
	int err = process_table_at(tracker->processes, tgid, time_ns, &then);
	CLEANUP(freep) struct process_mapping *mappings = then.list;
	uint32_t nr_pieces = 0;

	if (err && err != -ENOENT)
		return err;
	err = meet_mapped(tracker, mappings, then.nr); /* may update the kernel */
	if (!err)
		err = fill_mappings(tracker, tgid, mappings, then.nr, &nr_pieces);
	if (err)
		return err;
	tracker->known_from_ns = then.from_ns;
	tracker->known_until_ns = then.until_ns;
	tracker->known = (struct deferred_process){ .tgid = tgid,
						    .generation = then.generation,
						    .mappings = tracker->scratch,
						    .nr_mappings = nr_pieces,
						    .serial = ++tracker->nr_known };
	for (uint32_t kind = 0; tracker->runtimes && kind < SONDE_RUNTIME_COUNT; kind++) {
		if ((uint32_t)SONDE_RUNTIMES_THAT_OWN_CODE >> kind & 1)
			tracker->known.known[kind] = runtime_loader_known(tracker->runtimes, tgid, then.generation, kind);
	}
	return 0;
}

int tracker_process_at(struct tracker *tracker, uint32_t tgid, uint64_t time_ns, struct deferred_process *ret_process)
{
	bool is_known = tracker->known.tgid == tgid && time_ns >= tracker->known_from_ns && time_ns <= tracker->known_until_ns;
	int err = is_known ? 0 : know_process(tracker, tgid, time_ns);

	*ret_process = tracker->known;
	return err;
}

void tracker_disbelieved(struct tracker *tracker, uint32_t tgid, uint64_t time_ns)
{
	if (table_store_known_ns(tracker->store, tgid) < time_ns)
		process_table_renew(tracker->processes, tgid);
}

const struct table_store *tracker_tables(const struct tracker *tracker)
{
	return tracker->store;
}

const struct process_table *tracker_processes(const struct tracker *tracker)
{
	return tracker->processes;
}

void tracker_used(struct tracker *tracker, uint32_t object, uint64_t time_ns)
{
	table_loader_used(tracker->loader, object, time_ns);
}

int tracker_need(struct tracker *tracker, uint32_t object, uint64_t time_ns, bool *ret_loaded)
{
	struct diag diag = { 0 };
	int err = u64_map_find(&tracker->unmet, object) ? meet_unmet(tracker, object, &diag) : 0;

	*ret_loaded = false;
	return err ? err : table_loader_need(tracker->loader, object, time_ns, ret_loaded);
}

int tracker_prune(struct tracker *tracker, uint64_t now_ns)
{
	if (now_ns - tracker->pruned_ns <= PRUNE_NS)
		return 0;
	tracker->pruned_ns = now_ns;
	tracker->known = (struct deferred_process){ 0 };
	process_table_prune(tracker->processes, now_ns - PRUNE_NS);
	if (tracker->identities)
		identities_prune(tracker->identities, now_ns - PRUNE_NS);
	return sweep(tracker);
}

int tracker_bound(struct tracker *tracker, uint64_t max_bytes)
{
	return table_loader_bound(tracker->loader, max_bytes);
}

void tracker_account(const struct tracker *tracker, struct account *account)
{
	const struct object_table *objects = process_table_objects(tracker->processes);

	account_processes(account, tracker->processes);
	account_proxy(account, tracker->proxy);
	process_scan_account(&tracker->left, account);
	if (object_table_nr_lost(objects))
		account_note(account, "%u files are gone and have no names: [file+0x...]", object_table_nr_lost(objects));
	table_loader_account(tracker->loader, account);
	account->bpf_map_bytes += table_store_bytes(tracker->store);
}
