// SPDX-License-Identifier: Apache-2.0
#include "show/fold.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/interned.h"
#include "base/order.h"
#include "base/u64_map.h"
#include "frames/frame_source.h"
#include "frames/frame_text.h"
#include "frames/text_ranks.h"
#include "show/diff.h"
#include "show/histogram_text.h"

#define ENTRY_KEY_BYTES offsetof(struct fold_entry, values)

struct folder {
	const struct profile *profile;
	const struct export_options *options;
	bool by_tgid;
	uint32_t *sources;     /* frame_sources */
	uint32_t *name_ranks, *base_ranks; /* text_ranks */
	uint32_t *first_alike; /* by stack: the first one with the same text */
	struct u64_map index;  /* from a hash to an entry */
	const struct profile_value_type *types;
	uint32_t nr_types;
	struct fold fold;
};

/* The parts of a frame that are compared. The kind counts, because kinds differ in annotation and colour. */
struct frame_key {
	uint64_t off;
	uint32_t name, kind;
	/* source: frame_sources, of frames that show their source file; else PROFILE_NONE. pad: zero. */
	uint32_t source, pad;
};

static struct frame_key frame_key(const struct folder *folder, uint32_t location)
{
	const struct profile_location *at = profile_location_at(folder->profile, location);

	return (struct frame_key){
		.off = folder->options->offsets ? frame_offset(folder->profile, at) : 0,
		.name = profile_function_at(folder->profile, at->function)->name,
		.kind = at->kind,
		.source = frame_is_interpreted(at->kind) ? folder->sources[at->function] : PROFILE_NONE,
	};
}

static uint64_t hash_stack(const struct folder *folder, uint32_t stack)
{
	uint32_t nr_locations;
	const uint32_t *locations = profile_stack_at(folder->profile, stack, &nr_locations);
	uint64_t hash = nr_locations;

	for (uint32_t i = 0; i < nr_locations; i++) {
		struct frame_key key = frame_key(folder, locations[i]);

		hash = hash_bytes(&key, sizeof(key), hash);
	}
	return hash;
}

static bool read_alike(const struct folder *folder, uint32_t a, uint32_t b)
{
	uint32_t nr_a, nr_b;
	const uint32_t *as = profile_stack_at(folder->profile, a, &nr_a), *bs = profile_stack_at(folder->profile, b, &nr_b);

	if (nr_a != nr_b)
		return false;
	for (uint32_t i = 0; i < nr_a; i++) {
		struct frame_key key_a = frame_key(folder, as[i]), key_b = frame_key(folder, bs[i]);

		if (as[i] != bs[i] && memcmp(&key_a, &key_b, sizeof(key_a)))
			return false;
	}
	return true;
}

static uint32_t find_alike(const struct folder *folder, const struct u64_map *index, uint64_t hash, uint32_t stack)
{
	uint32_t cursor = 0, *found;

	while ((found = u64_map_each(index, hash, &cursor))) {
		if (read_alike(folder, *found, stack))
			return *found;
	}
	return stack;
}

static int find_all_alike(struct folder *folder)
{
	CLEANUP(u64_map_done) struct u64_map index = { 0 };
	uint32_t nr_stacks = profile_nr_stacks(folder->profile);

	folder->first_alike = calloc((size_t)nr_stacks + 1, sizeof(*folder->first_alike));
	folder->sources = frame_sources(folder->profile);
	if (!folder->first_alike || !folder->sources)
		return -ENOMEM;
	for (uint32_t stack = 0; stack < nr_stacks; stack++) {
		uint64_t hash = hash_stack(folder, stack);

		folder->first_alike[stack] = find_alike(folder, &index, hash, stack);
		if (folder->first_alike[stack] == stack && u64_map_add(&index, hash, stack))
			return -ENOMEM;
	}
	return 0;
}

/* The entry with this key, or NULL. */
static struct fold_entry *find_entry(const struct folder *folder, uint64_t hash, const struct fold_entry *wanted)
{
	uint32_t cursor = 0, *found;

	while ((found = u64_map_each(&folder->index, hash, &cursor))) {
		if (!memcmp(&folder->fold.entries[*found], wanted, ENTRY_KEY_BYTES))
			return &folder->fold.entries[*found];
	}
	return NULL;
}

static int add_entry(struct folder *folder, const struct fold_entry *entry)
{
	uint64_t hash = hash_bytes(entry, ENTRY_KEY_BYTES, 0);
	struct fold_entry *old = find_entry(folder, hash, entry);

	for (uint32_t i = 0; old && i < folder->nr_types; i++)
		old->values[i] = value_fold(folder->types[i].fold, old->values[i], entry->values[i]);
	if (old)
		return 0;
	folder->fold.entries[folder->fold.nr_entries] = *entry;
	return u64_map_add(&folder->index, hash, folder->fold.nr_entries++);
}

/* The key of the entry for a sample, or for something that belongs to one. */
static struct fold_entry entry_of(const struct folder *folder, uint32_t user_stack, uint32_t kernel_stack, uint32_t comm, uint32_t tgid,
				  uint32_t tid)
{
	return (struct fold_entry){
		.user_stack = user_stack == PROFILE_NONE ? PROFILE_NONE : folder->first_alike[user_stack],
		.kernel_stack = kernel_stack == PROFILE_NONE ? PROFILE_NONE : folder->first_alike[kernel_stack],
		.comm = comm,
		.tgid = folder->by_tgid ? tgid : 0,
		.tid = folder->options->threads ? tid : 0,
		.first_histogram = PROFILE_NONE,
	};
}

/* Links each histogram of a stack to the entry of its samples. A histogram without such an entry is not linked. */
static int add_histograms(struct folder *folder)
{
	uint32_t nr = profile_nr_histograms(folder->profile);

	folder->fold.next_histogram = calloc((size_t)nr + 1, sizeof(*folder->fold.next_histogram));
	if (!folder->fold.next_histogram)
		return -ENOMEM;
	for (uint32_t i = nr; i-- > 0;) {
		const struct profile_histogram *at = profile_histogram_at(folder->profile, i);
		struct fold_entry wanted = entry_of(folder, at->user_stack, at->kernel_stack, at->comm, at->tgid, at->tid);
		struct fold_entry *entry =
		    histogram_has_stack(at) ? find_entry(folder, hash_bytes(&wanted, ENTRY_KEY_BYTES, 0), &wanted) : NULL;

		folder->fold.next_histogram[i] = entry ? entry->first_histogram : PROFILE_NONE;
		if (entry)
			entry->first_histogram = i;
	}
	return 0;
}

static int add_samples(struct folder *folder)
{
	uint32_t nr_samples = profile_nr_samples(folder->profile);
	bool is_diff = diff_is(folder->profile);
	int err = 0;

	folder->fold.entries = calloc((size_t)nr_samples + 1, sizeof(*folder->fold.entries));
	if (!folder->fold.entries)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr_samples && !err; i++) {
		const struct profile_sample *sample = profile_sample_at(folder->profile, i);
		struct fold_entry entry =
		    entry_of(folder, sample->user_stack, sample->kernel_stack, sample->comm, sample->tgid, sample->tid);

		memcpy(entry.values, sample->values, sizeof(entry.values));
		if (entry.values[folder->fold.shown] || (is_diff && entry.values[0]))
			err = add_entry(folder, &entry);
	}
	return err;
}

static uint32_t source_rank(const struct folder *folder, const struct frame_key *key)
{
	return key->source == PROFILE_NONE ? folder->base_ranks[PROFILE_EMPTY_STRING]
					   : folder->base_ranks[profile_function_at(folder->profile, key->source)->file];
}

static int order_frames(const struct folder *folder, uint32_t a, uint32_t b)
{
	struct frame_key key_a, key_b;
	int by;

	if (a == b)
		return 0;
	key_a = frame_key(folder, a);
	key_b = frame_key(folder, b);
	by = order(folder->name_ranks[key_a.name], folder->name_ranks[key_b.name]);
	if (!by)
		by = order(source_rank(folder, &key_a), source_rank(folder, &key_b));
	if (!by)
		by = order(key_a.off, key_b.off);
	return by ? by : order(key_a.kind, key_b.kind);
}

/* PROFILE_NONE sorts last. */
static int order_stacks(const struct folder *folder, uint32_t a, uint32_t b)
{
	const uint32_t *as, *bs;
	uint32_t nr_a, nr_b;

	if (a == b || a == PROFILE_NONE || b == PROFILE_NONE)
		return order(a, b);
	as = profile_stack_at(folder->profile, a, &nr_a);
	bs = profile_stack_at(folder->profile, b, &nr_b);
	for (uint32_t i = 1; i <= nr_a && i <= nr_b; i++) {
		int by = order_frames(folder, as[nr_a - i], bs[nr_b - i]);

		if (by)
			return by;
	}
	return order(nr_a, nr_b);
}

static int order_entries(const void *left, const void *right, void *arg)
{
	const struct folder *folder = arg;
	const struct fold_entry *a = left, *b = right;
	int64_t value_a = a->values[folder->fold.shown], value_b = b->values[folder->fold.shown];
	int by = value_a < value_b ? -1 : value_a > value_b;

	if (!by)
		by = order(folder->name_ranks[a->comm], folder->name_ranks[b->comm]);
	if (!by)
		by = order_stacks(folder, a->user_stack, b->user_stack);
	if (!by)
		by = order_stacks(folder, a->kernel_stack, b->kernel_stack);
	if (!by)
		by = order(a->tgid, b->tgid);
	return by ? by : order(a->tid, b->tid);
}

static void folder_done(struct folder *folder)
{
	free(folder->first_alike);
	free(folder->sources);
	free(folder->name_ranks);
	free(folder->base_ranks);
	u64_map_done(&folder->index);
	fold_done(&folder->fold);
}

bool fold_is_of_waits(const struct profile *profile)
{
	uint32_t nr_types, nr_sums;

	profile_value_types(profile, &nr_types);
	profile_sum_types(profile, &nr_sums);
	return nr_sums < nr_types;
}

int64_t fold_number(const struct fold *fold, const struct fold_entry *entry)
{
	return entry->values[fold->shown] / fold->divisor;
}

int fold_profile(const struct profile *profile, const struct export_options *options, bool by_tgid, struct fold *ret_fold)
{
	CLEANUP(folder_done)
	struct folder folder = {
		.profile = profile, .options = options, .by_tgid = by_tgid, .fold = { .shown = profile_shown_value(profile), .divisor = 1 }
	};
	int err = find_all_alike(&folder);

	folder.types = profile_value_types(profile, &folder.nr_types);
	if ((fold_is_of_waits(profile) || profile_account_of(profile)->has_waits) &&
	    !strcmp(profile_string_text(profile, folder.types[folder.fold.shown].unit), "nanoseconds"))
		folder.fold.divisor = 1000;
	if (!err)
		err = add_samples(&folder);
	if (!err)
		err = add_histograms(&folder);
	folder.name_ranks = text_ranks(profile, false);
	folder.base_ranks = text_ranks(profile, true);
	if (!err && (!folder.name_ranks || !folder.base_ranks))
		err = -ENOMEM;
	if (err)
		return err;
	qsort_r(folder.fold.entries, folder.fold.nr_entries, sizeof(*folder.fold.entries), order_entries, &folder);
	*ret_fold = folder.fold;
	folder.fold = (struct fold){ 0 };
	return 0;
}

void fold_done(struct fold *fold)
{
	free(fold->entries);
	free(fold->next_histogram);
	*fold = (struct fold){ 0 };
}

static bool is_missed(const struct profile *profile, uint32_t stack)
{
	uint32_t nr_locations;
	const uint32_t *locations = profile_stack_at(profile, stack, &nr_locations);

	return nr_locations && profile_location_at(profile, locations[0])->kind == FRAME_MISSED;
}

bool wants_delimiter(const struct profile *profile, const struct export_options *options, uint32_t user_stack, uint32_t kernel_stack)
{
	if (!options->delimited || options->user_only || options->kernel_only)
		return false;
	if (user_stack == PROFILE_NONE || kernel_stack == PROFILE_NONE)
		return false;
	return !is_missed(profile, user_stack) && !is_missed(profile, kernel_stack);
}

int fold_print_histograms(struct buffer *buffer, const struct profile *profile, const struct fold *fold, const struct fold_entry *entry)
{
	CLEANUP(interned_done)
	struct interned kinds = INTERNED_INIT(struct profile_histogram, offsetof(struct profile_histogram, histogram.slots), UINT64_MAX);

	for (uint32_t i = entry->first_histogram; i != PROFILE_NONE; i = fold->next_histogram[i]) {
		const struct profile_histogram *at = profile_histogram_at(profile, i);
		const struct profile_histogram of_kind = { .name = at->name, .unit = at->unit, .key = at->key, .histogram = at->histogram };
		uint32_t nr_before = kinds.nr, kind = interned_add(&kinds, &of_kind);

		if (kind == INTERNED_NONE)
			return -ENOMEM;
		if (kind != nr_before)
			histogram_merge(&((struct profile_histogram *)interned_at(&kinds, kind))->histogram, &at->histogram);
	}
	for (uint32_t i = 0; i < kinds.nr; i++)
		histogram_print_one(buffer, profile, interned_at(&kinds, i), "        ");
	return 0;
}
