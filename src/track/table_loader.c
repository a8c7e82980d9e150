// SPDX-License-Identifier: Apache-2.0
#include "track/table_loader.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"

#define MAX_RELOADS 20           /* per second, of tables that stacks need: the sampled programs may need more than there is room for */
#define BOUND_STEPS 16           /* of a bound: tables are evicted in such parts, until it is kept */
#define HOT_NS 1000000000u       /* tables used within this time stay when a stack needs another: they would only take turns */
#define MANY_RULES 1300          /* more than any compiler-made file needs */
#define FILLED(max) ((max) / 8 * 7) /* tables are loaded up to this, and room is made down to this, so that it is not made for each file */

enum table_state {
	TABLE_UNKNOWN, /* the file was not examined */
	TABLE_NONE,    /* it has no usable table */
	TABLE_LOADED,
	TABLE_OUT,     /* it has a table, or may have one */
	TABLE_ASKED,   /* the same; it is being read */
};

struct kept_table {
	struct table_location place;
	uint64_t used_ns;        /* when a stack last passed through it; 0: none did */
	uint64_t bytes;          /* its size; 0: not known */
	uint32_t nr_rules;       /* it needs; 0: not known */
	uint32_t owner;          /* of the file; the rules are charged to this user */
	enum table_state state;
	bool is_waiting;         /* for room */
	bool was_loaded;
	bool is_victim;
};

/* For a note at the end. */
struct culprit {
	char *path;              /* of the first file; NULL: none */
	uint32_t nr, nr_rules, owner; /* nr: how many; the others: of the first file */
};

struct table_loader {
	struct table_store *store;
	struct process_table *processes;
	struct account *account;
	struct parser *parser;
	table_loader_tell_fn tell;
	void *changed_arg;
	struct kept_table *tables;        /* by object */
	uint32_t nr_tables;
	bool has_waiting;
	uint64_t reloads_from_ns;         /* of the second in which nr_reloads were made */
	uint32_t nr_reloads;
	uint64_t nr_evicted, nr_reloaded, nr_put_off, nr_cached;
	struct table_cache *cache;        /* or NULL */
	struct culprit greedy;            /* files that need more rules than a file may have */
	struct culprit crowded;           /* stacks that reached files for whose rules there was no room */
};

struct table_loader *table_loader_new(struct table_store *store, struct process_table *processes, struct account *account,
				      struct parser *parser, table_loader_tell_fn tell, void *arg)
{
	struct table_loader *loader = calloc(1, sizeof(*loader));

	if (loader)
		*loader = (struct table_loader){
			.store = store, .processes = processes, .account = account, .parser = parser, .tell = tell, .changed_arg = arg
		};
	return loader;
}

void table_loader_free(struct table_loader *loader)
{
	if (!loader)
		return;
	for (uint32_t i = 0; i < loader->nr_tables; i++)
		table_location_done(&loader->tables[i].place);
	free(loader->tables);
	free(loader->greedy.path);
	free(loader->crowded.path);
	free(loader);
}

static struct kept_table *table_of(const struct table_loader *loader, uint32_t object)
{
	return object < loader->nr_tables ? &loader->tables[object] : NULL;
}

static int enter(struct table_loader *loader, uint32_t object, struct kept_table **ret_table)
{
	if (object >= loader->nr_tables) {
		uint32_t nr = object + object / 2 + 64;
		struct kept_table *tables = reallocarray(loader->tables, nr, sizeof(*tables));

		if (!tables)
			return -ENOMEM;
		memset(tables + loader->nr_tables, 0, (nr - loader->nr_tables) * sizeof(*tables));
		loader->tables = tables;
		loader->nr_tables = nr;
	}
	*ret_table = &loader->tables[object];
	return 0;
}

static const struct object *object_at(const struct table_loader *loader, uint32_t object)
{
	return object_table_at(process_table_objects(loader->processes), object);
}

static bool is_mapped(const struct table_loader *loader, uint32_t object)
{
	return object_table_is_mapped(process_table_objects(loader->processes), object);
}

/* Bytes of tables in the store once `bytes` more are loaded. */
static uint64_t bytes_with(const struct table_loader *loader, uint64_t bytes)
{
	return table_store_table_bytes(loader->store) + bytes;
}

/* Can it be loaded without making room? An estimate: the file itself is not read. */
static bool may_fit(const struct table_loader *loader, const struct kept_table *table)
{
	uint64_t max = table_store_max_table_bytes(loader->store);

	return table->bytes ? bytes_with(loader, table->bytes) <= max : bytes_with(loader, 0) < FILLED(max);
}

static uint32_t needed_rules(const struct kept_table *table)
{
	uint32_t nr = table->nr_rules ? table->nr_rules : MANY_RULES;

	return nr < RULE_TABLE_MAX_OF_FILE ? nr : RULE_TABLE_MAX_OF_FILE;
}

static struct rule_room rule_room(const struct table_loader *loader, const struct kept_table *table)
{
	return rule_table_room(table_store_rules(loader->store), table->owner);
}

static bool lacks_rules(const struct table_loader *loader, const struct kept_table *table)
{
	struct rule_room room = rule_room(loader, table);
	uint32_t nr = needed_rules(table);

	return nr > room.of_user || nr > room.of_table;
}

static bool is_one(void *arg, uint32_t object)
{
	return object == *(const uint32_t *)arg;
}

static void loaded(struct table_loader *loader, struct kept_table *table, uint32_t object)
{
	table->state = TABLE_LOADED;
	table->bytes = (uint64_t)table->place.nr_words * 4;
	loader->nr_reloaded += table->was_loaded;
	table->was_loaded = true;
	table->is_waiting = false;
	process_table_renew_objects(loader->processes, is_one, &object);
}

void table_loader_use_cache(struct table_loader *loader, struct table_cache *cache)
{
	loader->cache = cache;
}

bool table_loader_is_asked(const struct table_loader *loader, uint32_t object)
{
	const struct kept_table *table = table_of(loader, object);

	return table && table->state == TABLE_ASKED;
}

static void add_culprit(const struct table_loader *loader, struct culprit *culprit, uint32_t object)
{
	const struct kept_table *table = table_of(loader, object);

	if (culprit->nr++)
		return;
	culprit->path = strdup(object_at(loader, object)->path); /* without memory there is no note */
	culprit->nr_rules = table->nr_rules;
	culprit->owner = table->owner;
}

static void note_rules(struct table_loader *loader, uint32_t object, uint32_t nr_rules)
{
	struct kept_table *table = table_of(loader, object);
	bool is_known = table->nr_rules > RULE_TABLE_MAX_OF_FILE;

	table->nr_rules = nr_rules;
	if (nr_rules > RULE_TABLE_MAX_OF_FILE && !is_known)
		add_culprit(loader, &loader->greedy, object);
}

/* Has the worker read the file. Stores the result on disk if it is complete. */
static int build_anew(struct table_loader *loader, uint32_t object, const struct object *file, struct diag *diag,
		      struct unwind_table **ret_table)
{
	struct rule_table *rules = table_store_rules(loader->store);
	int err = file->elf ? parser_table(loader->parser, object, file->elf, rules, diag, ret_table) : -ENODATA;

	if (!err && loader->cache && (*ret_table)->nr_rules <= RULE_TABLE_MAX_OF_FILE)
		table_cache_keep(loader->cache, file->elf, file->path, rules, *ret_table);
	return err;
}

/* Builds the file's table, or loads it from disk. NULL with 0: it has none. -EINPROGRESS: call again later; -EXFULL: no room for its
 * rules. */
static int build(struct table_loader *loader, uint32_t object, struct unwind_table **ret_table)
{
	const struct object *file = object_at(loader, object);
	struct rule_table *rules = table_store_rules(loader->store);
	struct diag diag = { 0 };
	bool is_asked = table_loader_is_asked(loader, object); /* then it was not found on disk before */
	int err =
	    file->elf && loader->cache && !is_asked ? table_cache_load(loader->cache, file->elf, file->path, rules, ret_table) : -ENOENT;

	loader->nr_cached += !err;
	if (err == -ENOENT)
		err = build_anew(loader, object, file, &diag, ret_table);
	if (err == -EXFULL)
		table_of(loader, object)->nr_rules = RULE_TABLE_MAX_OF_FILE; /* an estimate: more than most files have */
	if (!err)
		note_rules(loader, object, (*ret_table)->nr_rules);
	if (err == -ENOMEM || err == -EINPROGRESS || err == -EXFULL || !err)
		return err;
	if (err != -ENODATA && (err != -EDQUOT || diag.text[0])) /* -EDQUOT without text was noted before, once for each owner */
		account_note(loader->account, "unwind info of %s refused: %s", file->path, diag.text);
	return 0;
}

/* Moves the table into the store. -ENOSPC: no room. */
static int load(struct table_loader *loader, uint32_t object, const struct unwind_table *built)
{
	struct kept_table *table = table_of(loader, object);
	int err = built ? table_store_load(loader->store, built, &table->place) : 0;

	if (err == -EFBIG)
		account_note(loader->account, "unwind info of %s refused: it has more rows than code can need",
			     object_at(loader, object)->path);
	if (!built || err == -EFBIG) {
		if (table->state == TABLE_OUT || table->state == TABLE_ASKED) /* the kernel must learn that there is none */
			process_table_renew_objects(loader->processes, is_one, &object);
		table->state = TABLE_NONE;
		return 0;
	}
	if (!err)
		loaded(loader, table, object);
	else
		table->bytes = table_store_bytes_of(built);
	return err;
}

/* Evicted: it is loaded again when a stack needs it. */
static bool is_given_up(const struct kept_table *table)
{
	return table->is_victim || (table->state == TABLE_OUT && table->was_loaded);
}

int table_loader_meet(struct table_loader *loader, uint32_t object)
{
	CLEANUP(unwind_table_freep) struct unwind_table *built = NULL;
	struct kept_table *table;
	int err = object == OBJECT_NONE ? 0 : enter(loader, object, &table);

	if (err || object == OBJECT_NONE || table->state == TABLE_LOADED || table->state == TABLE_NONE || is_given_up(table))
		return err;
	if (table->state == TABLE_UNKNOWN && object_at(loader, object)->elf)
		table->owner = elf_file_owner(object_at(loader, object)->elf);
	if (table->state == TABLE_ASKED || (may_fit(loader, table) && !lacks_rules(loader, table))) {
		err = build(loader, object, &built);
		if (err == -EINPROGRESS) {
			table->state = TABLE_ASKED;
			return 0;
		}
		if (!err)
			err = load(loader, object, built);
		if (err != -ENOSPC && err != -EXFULL)
			return err;
	}
	if (table->state == TABLE_UNKNOWN || table->state == TABLE_ASKED)
		table->is_waiting = loader->has_waiting = true;
	table->state = TABLE_OUT;
	return 0;
}

bool table_loader_is_met(const struct table_loader *loader, uint32_t object)
{
	const struct kept_table *table = table_of(loader, object);

	return object == OBJECT_NONE || (table && table->state != TABLE_UNKNOWN);
}

/* Has it, or may it have, a table that is not loaded? */
static bool may_come(const struct kept_table *table)
{
	return table->state == TABLE_OUT || table->state == TABLE_ASKED;
}

void table_loader_fill(const struct table_loader *loader, uint32_t object, uint64_t load_bias, struct sonde_mapping *mapping)
{
	const struct kept_table *table = table_of(loader, object);

	if (table && table->state == TABLE_LOADED) {
		mapping->base_pc = load_bias + table->place.base_vaddr;
		mapping->index_pos = table->place.index_pos;
		mapping->nr_blocks = table->place.nr_blocks;
		mapping->block_shift = table->place.block_shift;
	} else {
		mapping->base_pc = load_bias;
		mapping->index_pos = 0;
		mapping->nr_blocks = 0;
		mapping->block_shift = !table_loader_is_met(loader, object) || (table && may_come(table)) ? SONDE_NOT_LOADED : 0;
	}
}

/* One step of a majority vote (Boyer and Moore) in which each byte of code votes for its rule. */
static void vote(uint32_t rule, uint64_t bytes, uint32_t *winner, uint64_t *votes)
{
	if (rule == *winner)
		*votes += bytes;
	else if (*votes >= bytes)
		*votes -= bytes;
	else {
		*winner = rule;
		*votes = bytes - *votes;
	}
}

void table_loader_fill_compiled(const struct table_loader *loader, uint32_t object, const struct sonde_code_range *loop,
				struct sonde_mapping *mapping)
{
	const struct kept_table *table = table_of(loader, object);
	uint64_t at, next, votes = 0, bytes = 0;
	uint32_t winner = SONDE_RULE_NONE;

	if (!table || table->state != TABLE_LOADED)
		return;
	for (at = loop->start_pc; at < loop->end_pc; at = next) { /* a rule with more than half of the votes wins */
		uint32_t rule = table_store_find(loader->store, &table->place, at, &next);

		vote(rule, next - at, &winner, &votes);
	}
	for (at = loop->start_pc; at < loop->end_pc; at = next) {
		uint32_t rule = table_store_find(loader->store, &table->place, at, &next);

		bytes += rule == winner ? next - at : 0;
	}
	if (bytes <= (loop->end_pc - loop->start_pc) / 2 || table_store_rule(loader->store, winner)->kind != SONDE_RULE_KIND_STEP)
		return;
	mapping->index_pos = winner;
	mapping->nr_blocks = 0;
	mapping->block_shift = SONDE_COMPILED;
}

/* --- room ---------------------------------------------------------------------------------------------------------------------------- */

struct candidate {
	uint32_t object;
	bool is_mapped;
	uint64_t used_ns, bytes;
	uint32_t nr_rules, owner;
};

static int by_worth(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->is_mapped != y->is_mapped)
		return x->is_mapped ? 1 : -1;
	return x->used_ns < y->used_ns ? -1 : x->used_ns > y->used_ns;
}

static bool is_victim(void *arg, uint32_t object)
{
	const struct table_loader *loader = arg;
	const struct kept_table *table = table_of(loader, object);

	return table && table->is_victim;
}

/* Informs the kernel before the tables' words are freed. */
static int evict(struct table_loader *loader, const struct candidate *victims, uint32_t nr)
{
	int err;

	for (uint32_t i = 0; i < nr; i++) {
		loader->tables[victims[i].object].is_victim = true;
		loader->tables[victims[i].object].state = victims[i].is_mapped ? TABLE_OUT : TABLE_UNKNOWN;
	}
	process_table_renew_objects(loader->processes, is_victim, loader);
	err = loader->tell(loader->changed_arg);
	for (uint32_t i = 0; i < nr; i++) {
		struct kept_table *table = &loader->tables[victims[i].object];

		table->is_victim = false;
		if (err)
			continue;
		table_store_unload(loader->store, &table->place);
	}
	return err;
}

/* The tables that may be evicted for one that was used at used_ns, least valuable first. used_ns 0: only those that no process maps. */
static uint32_t find_candidates(const struct table_loader *loader, uint64_t used_ns, struct candidate *to, uint64_t *ret_bytes)
{
	uint32_t nr = 0;

	*ret_bytes = 0;
	for (uint32_t i = 0; i < loader->nr_tables; i++) {
		const struct kept_table *table = &loader->tables[i];

		if (table->state != TABLE_LOADED || (is_mapped(loader, i) && table->used_ns >= used_ns))
			continue;
		to[nr++] = (struct candidate){ .object = i,
					       .is_mapped = is_mapped(loader, i),
					       .used_ns = table->used_ns,
					       .bytes = table->bytes,
					       .nr_rules = table->nr_rules,
					       .owner = table->owner };
		*ret_bytes += table->bytes;
	}
	qsort(to, nr, sizeof(*to), by_worth);
	return nr;
}

/* Tables that no process maps may take an eighth of the room: their files may be mapped again, and the tables cost nothing until others
 * need the room. */
int table_loader_trim(struct table_loader *loader)
{
	CLEANUP(freep) struct candidate *candidates = calloc(loader->nr_tables + 1, sizeof(*candidates));
	uint64_t total, max = table_store_max_table_bytes(loader->store) / 8;
	uint32_t nr, nr_victims = 0;

	if (!candidates)
		return -ENOMEM;
	nr = find_candidates(loader, 0, candidates, &total);
	for (; nr_victims < nr && total > max; nr_victims++) {
		total -= candidates[nr_victims].bytes;
		loader->tables[candidates[nr_victims].object].was_loaded = false; /* it was not evicted for lack of room */
	}
	return nr_victims ? evict(loader, candidates, nr_victims) : 0;
}

/* Evicts tables of `want` bytes, or of `must` bytes at least; otherwise none. 0; -ENOSPC; or an error that ends the run. */
static int give_up(struct table_loader *loader, uint64_t must, uint64_t want, uint64_t used_ns)
{
	CLEANUP(freep) struct candidate *candidates = calloc(loader->nr_tables + 1, sizeof(*candidates));
	uint64_t total, freed = 0;
	uint32_t nr, nr_victims = 0;

	if (!candidates)
		return -ENOMEM;
	nr = find_candidates(loader, used_ns, candidates, &total);
	if (!nr || total < must)
		return -ENOSPC;
	while (nr_victims < nr && freed < want)
		freed += candidates[nr_victims++].bytes;
	loader->nr_evicted += nr_victims;
	return evict(loader, candidates, nr_victims);
}

/* Makes room for a table of so many bytes, and some more. */
static int make_room(struct table_loader *loader, uint64_t bytes, uint64_t used_ns)
{
	uint64_t max = table_store_max_table_bytes(loader->store), with = bytes_with(loader, bytes);

	return bytes > max ? -ENOSPC : give_up(loader, with > max ? with - max : 1, with > FILLED(max) ? with - FILLED(max) : 1, used_ns);
}

static int by_rules(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->nr_rules > y->nr_rules ? -1 : x->nr_rules < y->nr_rules;
}

/* Root's files take rules from all files, a user's from those of users. If the user's own share is exhausted: only from that user's
 * files. */
static bool gives_way(const struct candidate *candidate, uint32_t owner, bool is_of_user)
{
	return candidate->nr_rules && (!owner || (is_of_user ? candidate->owner == owner : candidate->owner));
}

/* Evicts tables with as many rules as the file lacks, those with the most rules first. */
static int give_up_rules(struct table_loader *loader, const struct kept_table *table, uint64_t used_ns)
{
	CLEANUP(freep) struct candidate *candidates = calloc(loader->nr_tables + 1, sizeof(*candidates));
	struct rule_room room = rule_room(loader, table);
	uint32_t nr, nr_rivals = 0, nr_victims = 0, needed = needed_rules(table), freed = 0;
	bool is_of_user = needed > room.of_user;
	uint64_t bytes;

	if (!candidates)
		return -ENOMEM;
	nr = find_candidates(loader, used_ns, candidates, &bytes);
	for (uint32_t i = 0; i < nr; i++) {
		if (gives_way(&candidates[i], table->owner, is_of_user))
			candidates[nr_rivals++] = candidates[i];
	}
	qsort(candidates, nr_rivals, sizeof(*candidates), by_rules);
	for (needed -= is_of_user ? room.of_user : room.of_table; nr_victims < nr_rivals && freed < needed; nr_victims++)
		freed += candidates[nr_victims].nr_rules;
	loader->nr_evicted += nr_victims;
	return nr_victims ? evict(loader, candidates, nr_victims) : -EXFULL;
}

/* Makes room for the file's rules. 0; -EXFULL; or an error that ends the run. */
static int make_rule_room(struct table_loader *loader, const struct kept_table *table, uint64_t used_ns)
{
	int err = lacks_rules(loader, table) ? table_store_settle_rules(loader->store) : 0;

	while (!err && lacks_rules(loader, table)) { /* other files may share the freed rules */
		err = give_up_rules(loader, table, used_ns);
		if (!err)
			err = table_store_settle_rules(loader->store);
	}
	return err;
}

static int build_with_room(struct table_loader *loader, uint32_t object, uint64_t used_ns, struct unwind_table **ret_table)
{
	const struct kept_table *table = table_of(loader, object);
	int err = make_rule_room(loader, table, used_ns);

	if (!err)
		err = build(loader, object, ret_table);
	if (err != -EXFULL || !lacks_rules(loader, table))
		return err;
	err = make_rule_room(loader, table, used_ns); /* it needs more than most */
	return err ? err : build(loader, object, ret_table);
}

/* Builds and loads the table, and makes room for it. 0; -ENOSPC or, for its rules, -EXFULL; -EINPROGRESS; or an error that ends the run. */
static int load_with_room(struct table_loader *loader, uint32_t object, uint64_t used_ns)
{
	CLEANUP(unwind_table_freep) struct unwind_table *built = NULL;
	struct kept_table *table = table_of(loader, object);
	int err = may_fit(loader, table) ? 0 : make_room(loader, table->bytes, used_ns);

	if (!err)
		err = build_with_room(loader, object, used_ns, &built);
	if (err == -EINPROGRESS) {
		table->state = TABLE_ASKED;
		table->is_waiting = loader->has_waiting = true;
	}
	if (!err)
		err = load(loader, object, built);
	while (err == -ENOSPC && built) { /* the free room may be too fragmented */
		err = make_room(loader, table_store_bytes_of(built), used_ns);
		if (err)
			return err;
		err = load(loader, object, built);
	}
	return err;
}

int table_loader_settle(struct table_loader *loader)
{
	int err = 0;

	if (!loader->has_waiting)
		return 0;
	loader->has_waiting = false;
	for (uint32_t i = 0; !err && i < loader->nr_tables; i++) {
		if (!loader->tables[i].is_waiting)
			continue;
		loader->tables[i].is_waiting = false;
		if (!is_mapped(loader, i) || !may_come(&loader->tables[i]))
			continue;
		err = load_with_room(loader, i, 0);
		if (err == -ENOSPC || err == -EXFULL || err == -EINPROGRESS)
			err = 0;
	}
	return err ? err : loader->tell(loader->changed_arg);
}

void table_loader_used(struct table_loader *loader, uint32_t object, uint64_t time_ns)
{
	struct kept_table *table = table_of(loader, object);

	if (table && table->used_ns < time_ns)
		table->used_ns = time_ns;
}

/* Were there enough reloads in this second? */
static bool is_too_often(struct table_loader *loader)
{
	uint64_t now = clock_ns();

	if (now - loader->reloads_from_ns > NS_PER_S) {
		loader->reloads_from_ns = now;
		loader->nr_reloads = 0;
	}
	return loader->nr_reloads >= MAX_RELOADS;
}

int table_loader_need(struct table_loader *loader, uint32_t object, uint64_t time_ns, bool *ret_loaded)
{
	const struct kept_table *table = table_of(loader, object);
	int err;

	*ret_loaded = table && !may_come(table);
	if (!table || !may_come(table))
		return 0;
	table_loader_used(loader, object, time_ns);
	err = is_too_often(loader) ? -ENOSPC : load_with_room(loader, object, time_ns > HOT_NS ? time_ns - HOT_NS : 0);
	loader->nr_put_off += err == -ENOSPC;
	if (err == -EXFULL)
		add_culprit(loader, &loader->crowded, object);
	if (err == -ENOSPC || err == -EINPROGRESS || err == -EXFULL)
		return 0;
	loader->nr_reloads++;
	if (!err)
		err = loader->tell(loader->changed_arg);
	*ret_loaded = !err;
	return err;
}

int table_loader_yield(struct table_loader *loader)
{
	int err = give_up(loader, 1, table_store_max_table_bytes(loader->store) / 8, clock_ns());

	return err == -ENOSPC ? 0 : err;
}

int table_loader_bound(struct table_loader *loader, uint64_t max_bytes)
{
	int err = 0;

	while (!err && table_store_bytes(loader->store) > max_bytes) {
		err = give_up(loader, 1, max_bytes / BOUND_STEPS, UINT64_MAX);
		if (!err)
			err = table_store_settle(loader->store);
	}
	table_store_bound(loader->store, max_bytes);
	return err == -ENOSPC ? 0 : err;
}

void table_loader_forget(void *arg, uint32_t object)
{
	struct table_loader *loader = arg;
	struct kept_table *table = table_of(loader, object);

	if (!table)
		return;
	parser_forget(loader->parser, object);
	table_store_unload(loader->store, &table->place);
	*table = (struct kept_table){ 0 };
}

void table_loader_account(const struct table_loader *loader, struct account *account)
{
	account->unwind_rows = table_store_rows(loader->store);
	account->unwind_bytes = table_store_table_bytes(loader->store);
	account->unwind_evicted = loader->nr_evicted;
	account->unwind_reloaded = loader->nr_reloaded;
	account->unwind_cached = loader->nr_cached;
	if (loader->nr_put_off)
		account_note(account,
			     "%" PRIu64
			     " stacks found no room for the unwind table of a file: --unwind-memory, of an agent --max-memory, is too "
			     "small for what is sampled",
			     loader->nr_put_off);
	if (loader->greedy.path)
		account_note(account,
			     "%u files need more unwind rules than the %u that a file may have, the first %u: stacks end where it needs "
			     "others: %s%s",
			     loader->greedy.nr, RULE_TABLE_MAX_OF_FILE, loader->greedy.nr_rules, loader->greedy.path,
			     loader->greedy.nr > 1 ? ", ..." : "");
	if (loader->crowded.path)
		account_note(account, "%u stacks found no room for the unwind rules of a file: all files of user %u need too many: %s%s",
			     loader->crowded.nr, loader->crowded.owner, loader->crowded.path, loader->crowded.nr > 1 ? ", ..." : "");
}
