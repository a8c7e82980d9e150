// SPDX-License-Identifier: Apache-2.0
#include "process/identities.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/small_file.h"
#include "base/u64_map.h"
#include "process/allowance.h"

#define MAX_PROCESSES  (1u << 17) /* more have no labels */
#define MAX_BYTES      (64u << 20) /* of labels; beyond that, processes have none */
#define MAX_PAST       4          /* execs of one process whose samples are still on their way */
#define MAX_BEGUN      64 /* more wait for their first sample */
#define NR_ENDS        65536
#define MAX_UNFINISHED 32 /* a process that hides its environment looks as if it were in an exec */
/* Reading after an exec may take half a hundredth of a CPU's time, so that short processes have labels; the others wait for their first
 * sample. */
#define EAGER_SHARE    200
/* Looking for what processes publish of themselves may take a thousandth. A service does so some time after its start, or never: each time
 * the wait until the next look is twice as long. */
#define LOOK_SHARE     1000
#define LOOK_FIRST_NS  NS_PER_S
#define LOOK_MAX_NS    (600 * NS_PER_S)
#define LOOK_AGAIN_NS  (10 * NS_PER_S) /* has it changed? That takes little */

struct past {
	uint64_t from_ns, until_ns;
	struct process_labels *labels;
};

struct entry {
	uint32_t tgid, nr_past;
	uint64_t from_ns;              /* of the program that it runs now */
	uint64_t others_ns;            /* until then another process may have had its id, or it another program */
	uint64_t read_ns, read_end_ns; /* when it was read */
	uint64_t exit_ns;              /* 0: it lives */
	struct process_labels *labels; /* NULL: not known */
	struct process_labels *own;    /* without what it publishes; NULL: it publishes nothing */
	uint64_t context_pc, context_ns; /* of what it publishes: as in struct process_context; 0: nothing */
	uint64_t look_ns, wait_ns;     /* for that: not before; until the next time */
	uint64_t bare_pages;           /* its size when it had no mapping for that; 0: not known */
	bool is_tried;                 /* it was read, or that failed for good */
	uint8_t nr_unfinished;         /* readings in the middle of an exec */
	struct past past[MAX_PAST];    /* oldest first */
};

struct identities {
	struct proxy *proxy;
	struct environment_names names;
	struct entry *entries;
	uint32_t nr, max;
	struct u64_map by_tgid;        /* index in entries */
	uint64_t known_ns;             /* events before that were lost */
	uint64_t bytes;
	uint32_t *ends; /* by tgid, modulo NR_ENDS: by what second the last one that is forgotten had ended */
	uint32_t begun[MAX_BEGUN], nr_begun; /* tgids: they execute another program, and are still to be read */
	struct allowance eager, looks; /* for reading after an exec; for looking at what processes publish */
	struct process_context context; /* working memory */
};

struct identities *identities_new(struct proxy *proxy, const struct environment_names *names)
{
	struct identities *identities = calloc(1, sizeof(*identities));

	if (!identities)
		return NULL;
	identities->ends = calloc(NR_ENDS, sizeof(*identities->ends));
	if (!identities->ends) {
		free(identities);
		return NULL;
	}
	identities->proxy = proxy;
	identities->names = *names;
	identities->eager = identities->looks = allowance_new(ALLOWANCE_FEW_NS);
	return identities;
}

static void drop(struct identities *identities, struct process_labels *labels)
{
	if (labels)
		identities->bytes -= labels->bytes;
	process_labels_unref(labels);
}

/* Forgets what the process published. */
static void drop_context(struct identities *identities, struct entry *entry)
{
	drop(identities, MOVE(entry->own));
	entry->context_pc = entry->look_ns = entry->wait_ns = entry->bare_pages = 0;
}

static void drop_past(struct identities *identities, struct entry *entry, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		drop(identities, entry->past[i].labels);
	entry->nr_past -= nr;
	memmove(entry->past, entry->past + nr, entry->nr_past * sizeof(*entry->past));
}

static void drop_all(struct identities *identities)
{
	for (uint32_t i = 0; i < identities->nr; i++) {
		drop_past(identities, &identities->entries[i], identities->entries[i].nr_past);
		drop_context(identities, &identities->entries[i]);
		drop(identities, identities->entries[i].labels);
	}
	identities->nr = 0;
	u64_map_done(&identities->by_tgid);
	identities->by_tgid = (struct u64_map){ 0 };
}

void identities_free(struct identities *identities)
{
	if (!identities)
		return;
	drop_all(identities);
	free(identities->entries);
	free(identities->ends);
	free(identities);
}

static struct entry *find(const struct identities *identities, uint32_t tgid)
{
	const uint32_t *i = u64_map_find(&identities->by_tgid, tgid);

	return i ? &identities->entries[*i] : NULL;
}

/* *ret_entry: NULL if there are too many. */
static int enter(struct identities *identities, uint32_t tgid, struct entry **ret_entry)
{
	struct entry *entry = find(identities, tgid);
	int err;

	*ret_entry = entry;
	if (entry || identities->nr == MAX_PROCESSES)
		return 0;
	if (!array_grow(&identities->entries, identities->nr, &identities->max, sizeof(*entry), 64, MAX_PROCESSES))
		return -ENOMEM;
	err = u64_map_add(&identities->by_tgid, tgid, identities->nr);
	if (err)
		return err;
	*ret_entry = &identities->entries[identities->nr++];
	**ret_entry = (struct entry){ .tgid = tgid, .from_ns = identities->known_ns, .others_ns = identities->known_ns };
	return 0;
}

static int read_process(struct identities *identities, struct entry *entry)
{
	struct process_identity identity;
	struct environment_values values;
	int err;

	entry->read_ns = clock_ns();
	err = proxy_identity(identities->proxy, entry->tgid, &identities->names, &identity, &values);
	entry->read_end_ns = clock_ns();
	entry->nr_unfinished += err == -EAGAIN;
	entry->is_tried = (err != -EAGAIN || entry->nr_unfinished == MAX_UNFINISHED) && err != -ECHILD;
	if (err || identities->bytes > MAX_BYTES)
		return err == -ENOMEM ? err : 0;
	entry->labels = process_labels_new(&identity, &identities->names, &values);
	if (!entry->labels)
		return -ENOMEM;
	identities->bytes += entry->labels->bytes;
	return 0;
}

/* It was published, or published anew. */
static int take_context(struct identities *identities, struct entry *entry)
{
	struct process_labels *joined;

	if (!entry->own)
		entry->own = MOVE(entry->labels);
	else
		drop(identities, MOVE(entry->labels));
	joined = process_labels_join(entry->own, &identities->context);
	if (!joined)
		return -ENOMEM;
	entry->labels = joined;
	entry->context_pc = identities->context.pc;
	entry->context_ns = identities->context.published_ns;
	entry->read_end_ns = clock_ns(); /* an exec before that makes all of it doubtful */
	identities->bytes += joined->bytes;
	return 0;
}

/* Returns the process's size. The kernel takes no lock of its memory for that. 0: not known. */
static uint64_t pages_of(uint32_t tgid)
{
	char path[32], text[128];
	uint64_t pages;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/statm", tgid);
	if (small_file_read(AT_FDCWD, path, text, sizeof(text)))
		return 0;
	text[strcspn(text, " ")] = '\0';
	return number_u64(text, UINT64_MAX, &pages) ? 0 : pages;
}

/* Publishing adds a mapping: while the process has the size that it had without one, its maps are not read. But it may have unmapped as
 * much, or named a mapping that it had: so they are read at each look after the longest wait. */
static int find_context(struct identities *identities, struct entry *entry)
{
	uint64_t pages = pages_of(entry->tgid);
	int err;

	if (pages && pages == entry->bare_pages && entry->wait_ns < LOOK_MAX_NS)
		return -ENOENT;
	err = process_context_find(identities->proxy, entry->tgid, &identities->context);
	entry->bare_pages = err == -ENOENT ? pages : 0;
	return err;
}

static int read_context(struct identities *identities, struct entry *entry)
{
	int err;

	if (!entry->context_pc)
		return find_context(identities, entry);
	identities->context.pc = entry->context_pc;
	identities->context.published_ns = entry->context_ns;
	err = process_context_renew(identities->proxy, entry->tgid, &identities->context);
	if (err && err != -EALREADY && err != -EAGAIN)
		entry->context_pc = 0; /* it is somewhere else, or nowhere: what it said stays until then */
	return err;
}

static int look_at_context(struct identities *identities, struct entry *entry)
{
	uint64_t now_ns = clock_ns(), from_ns;
	int err;

	if (!entry->labels || !entry->labels->nr || now_ns < entry->look_ns || identities->bytes > MAX_BYTES ||
	    !allowance_is_given(&identities->looks, LOOK_SHARE))
		return 0;
	from_ns = allowance_cpu_ns(identities->proxy);
	err = read_context(identities, entry);
	allowance_charge(&identities->looks, identities->proxy, from_ns, clock_ns() - now_ns);
	entry->wait_ns = entry->wait_ns ? 2 * entry->wait_ns : LOOK_FIRST_NS;
	if (entry->wait_ns > LOOK_MAX_NS)
		entry->wait_ns = LOOK_MAX_NS;
	if (!err || err == -EALREADY)
		entry->wait_ns = LOOK_AGAIN_NS;
	entry->look_ns = now_ns + entry->wait_ns;
	if (!err)
		err = take_context(identities, entry);
	return err == -ENOMEM ? err : 0;
}

int identities_meet(struct identities *identities, uint32_t tgid)
{
	struct entry *entry;
	int err = tgid ? enter(identities, tgid, &entry) : 0;

	if (err || !tgid || !entry)
		return err;
	if (!entry->is_tried)
		err = read_process(identities, entry);
	return err ? err : look_at_context(identities, entry);
}

/* From that time on the process runs another program. What was read after that is of the new one. What was read while it happened may be of
 * either. */
static void begin(struct identities *identities, struct entry *entry, uint64_t time_ns)
{
	bool is_new = entry->is_tried && entry->read_ns >= time_ns, is_old = entry->read_end_ns <= time_ns;

	if (entry->labels && is_old) {
		if (entry->nr_past == MAX_PAST)
			drop_past(identities, entry, 1);
		entry->past[entry->nr_past++] =
		    (struct past){ .from_ns = entry->from_ns, .until_ns = time_ns, .labels = MOVE(entry->labels) };
	}
	drop_context(identities, entry);
	if (!is_new) {
		drop(identities, MOVE(entry->labels));
		entry->is_tried = false;
		entry->nr_unfinished = 0;
	}
	entry->from_ns = time_ns;
	entry->exit_ns = 0;
}

int identities_fork(struct identities *identities, uint32_t tgid, uint64_t time_ns)
{
	struct entry *entry;
	int err = enter(identities, tgid, &entry);
	uint64_t end_ns;

	if (err || !entry)
		return err;
	end_ns = entry->exit_ns ? entry->exit_ns : identities->ends[tgid % NR_ENDS] * NS_PER_S;
	entry->others_ns = end_ns > identities->known_ns ? end_ns : identities->known_ns;
	begin(identities, entry, time_ns);
	return 0;
}

static void read_later(struct identities *identities, const struct entry *entry)
{
	if (identities->nr_begun < MAX_BEGUN)
		identities->begun[identities->nr_begun++] = entry->tgid;
}

/* Reads it before it has a sample. */
static int read_early(struct identities *identities, struct entry *entry)
{
	uint64_t from_ns;
	int err;

	if (entry->is_tried || entry->exit_ns || !allowance_is_given(&identities->eager, EAGER_SHARE))
		return 0;
	from_ns = allowance_cpu_ns(identities->proxy);
	err = read_process(identities, entry);
	allowance_charge(&identities->eager, identities->proxy, from_ns, entry->read_end_ns - entry->read_ns);
	if (!entry->is_tried)
		read_later(identities, entry);
	return err;
}

int identities_exec(struct identities *identities, uint32_t tgid, uint64_t time_ns)
{
	struct entry *entry;
	int err = enter(identities, tgid, &entry);

	if (err || !entry)
		return err;
	begin(identities, entry, time_ns);
	entry->others_ns = time_ns;
	read_later(identities, entry);
	return 0;
}

bool identities_have_begun(const struct identities *identities)
{
	return identities->nr_begun;
}

int identities_read_begun(struct identities *identities)
{
	uint32_t nr = identities->nr_begun, begun[MAX_BEGUN];
	int err = 0;

	memcpy(begun, identities->begun, sizeof(begun));
	identities->nr_begun = 0;
	for (uint32_t i = 0; !err && i < nr; i++) {
		struct entry *entry = find(identities, begun[i]);

		err = entry ? read_early(identities, entry) : 0;
	}
	return err;
}

int identities_exit(struct identities *identities, uint32_t tgid, uint64_t time_ns)
{
	struct entry *entry;
	int err = enter(identities, tgid, &entry); /* its id may soon be another's */

	if (!err && entry)
		entry->exit_ns = time_ns;
	return err;
}

void identities_lost(struct identities *identities, uint64_t time_ns)
{
	drop_all(identities);
	identities->known_ns = time_ns;
}

struct process_labels *identities_at(const struct identities *identities, uint32_t tgid, uint64_t time_ns)
{
	const struct entry *entry = find(identities, tgid);

	if (entry && time_ns >= entry->from_ns)
		return entry->labels;
	for (uint32_t i = 0; entry && i < entry->nr_past; i++) {
		if (time_ns >= entry->past[i].from_ns && time_ns < entry->past[i].until_ns)
			return entry->past[i].labels;
	}
	return NULL;
}

struct process_labels *identities_since(const struct identities *identities, uint32_t tgid, uint64_t time_ns)
{
	const struct entry *entry = find(identities, tgid);

	if (!entry || entry->others_ns > time_ns)
		return NULL;
	return entry->nr_past && entry->past[entry->nr_past - 1].until_ns > time_ns ? NULL : entry->labels;
}

/* The last one takes its place. */
static void remove_entry(struct identities *identities, uint32_t i)
{
	struct entry *entry = &identities->entries[i];
	uint32_t *end = &identities->ends[entry->tgid % NR_ENDS];

	drop_past(identities, entry, entry->nr_past);
	drop_context(identities, entry);
	drop(identities, entry->labels);
	if (*end < entry->exit_ns / NS_PER_S + 1)
		*end = (uint32_t)(entry->exit_ns / NS_PER_S + 1);
	u64_map_remove(&identities->by_tgid, entry->tgid, i);
	identities->nr--;
	if (i == identities->nr)
		return;
	*entry = identities->entries[identities->nr];
	*u64_map_find(&identities->by_tgid, entry->tgid) = i;
}

void identities_prune(struct identities *identities, uint64_t time_ns)
{
	for (uint32_t i = 0; i < identities->nr;) {
		struct entry *entry = &identities->entries[i];
		uint32_t nr = 0;

		while (nr < entry->nr_past && entry->past[nr].until_ns < time_ns)
			nr++;
		drop_past(identities, entry, nr);
		if (entry->exit_ns && entry->exit_ns < time_ns)
			remove_entry(identities, i);
		else
			i++;
	}
}

uint64_t identities_bytes(const struct identities *identities)
{
	return identities->bytes + identities->nr * sizeof(*identities->entries);
}

uint32_t identities_nr(const struct identities *identities)
{
	return identities->nr;
}
