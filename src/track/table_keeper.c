// SPDX-License-Identifier: Apache-2.0
#include "track/table_keeper.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"

#define MAX_RELOADS 20           /* per second, of tables that stacks ask for: what is sampled may need more than there is room for */
#define HOT_NS 1000000000u       /* what was used within it makes no room for a table that a stack asks for: they would only take turns */
#define MANY_RULES 1300          /* no file that a compiler made needs more */
#define FILLED(max) ((max) / 8 * 7) /* up to this tables are filled; room is made down to it, so that it is not made for each file */

enum table_state {
	TABLE_UNKNOWN, /* the file was not looked at */
	TABLE_NONE,    /* it has none that is of use */
	TABLE_LOADED,
	TABLE_OUT,     /* it has, or may have, one */
	TABLE_ASKED,   /* the same: it is being read */
};

struct kept_table {
	struct table_place place;
	uint64_t used_ns;        /* when a stack came to it last; 0: none did */
	uint64_t bytes;          /* that it takes; 0: not known */
	uint32_t nr_rules;       /* that it needs; 0: not known */
	uint32_t owner;          /* of the file: whose the rules are */
	enum table_state state;
	bool is_waiting;         /* for room */
	bool was_loaded;
	bool is_victim;
};

/* What is told of at the end. */
struct culprit {
	char *path;              /* of the first; NULL: there is none */
	uint32_t nr, nr_rules, owner; /* how many; and of the first */
};

struct table_keeper {
	struct table_store *store;
	struct process_table *processes;
	struct account *account;
	struct parser *parser;
	table_keeper_tell_fn tell;
	void *tell_arg;
	struct kept_table *tables;        /* by object */
	uint32_t nr_tables;
	bool has_waiting;
	uint64_t reloads_from_ns;         /* of the second in which nr_reloads were made */
	uint32_t nr_reloads;
	uint64_t nr_evicted, nr_reloaded, nr_put_off, nr_cached;
	struct table_cache *cache;        /* or NULL */
	struct culprit greedy;            /* files that need more rules than a file may have */
	struct culprit crowded;           /* stacks that came to files for whose rules there was no room */
};

struct table_keeper *table_keeper_new(struct table_store *store, struct process_table *processes, struct account *account, struct parser *parser,
				      table_keeper_tell_fn tell, void *arg)
{
	struct table_keeper *keeper = calloc(1, sizeof(*keeper));

	if (keeper)
		*keeper = (struct table_keeper){ .store = store, .processes = processes, .account = account, .parser = parser, .tell = tell, .tell_arg = arg };
	return keeper;
}

void table_keeper_free(struct table_keeper *keeper)
{
	if (!keeper)
		return;
	for (uint32_t i = 0; i < keeper->nr_tables; i++)
		table_place_done(&keeper->tables[i].place);
	free(keeper->tables);
	free(keeper->greedy.path);
	free(keeper->crowded.path);
	free(keeper);
}

static struct kept_table *table_of(const struct table_keeper *keeper, uint32_t object)
{
	return object < keeper->nr_tables ? &keeper->tables[object] : NULL;
}

static int enter(struct table_keeper *keeper, uint32_t object, struct kept_table **ret_table)
{
	if (object >= keeper->nr_tables) {
		uint32_t nr = object + object / 2 + 64;
		struct kept_table *tables = reallocarray(keeper->tables, nr, sizeof(*tables));

		if (!tables)
			return -ENOMEM;
		memset(tables + keeper->nr_tables, 0, (nr - keeper->nr_tables) * sizeof(*tables));
		keeper->tables = tables;
		keeper->nr_tables = nr;
	}
	*ret_table = &keeper->tables[object];
	return 0;
}

static const struct object *object_at(const struct table_keeper *keeper, uint32_t object)
{
	return object_table_at(process_table_objects(keeper->processes), object);
}

static bool is_mapped(const struct table_keeper *keeper, uint32_t object)
{
	return object_table_is_mapped(process_table_objects(keeper->processes), object);
}

/* How much of the tables' part is taken when `bytes` more are loaded. */
static uint64_t bytes_with(const struct table_keeper *keeper, uint64_t bytes)
{
	return table_store_table_bytes(keeper->store) + bytes;
}

/* Can it be loaded without making room, as far as can be told without looking at the file? */
static bool may_fit(const struct table_keeper *keeper, const struct kept_table *table)
{
	uint64_t max = table_store_max_table_bytes(keeper->store);

	return table->bytes ? bytes_with(keeper, table->bytes) <= max : bytes_with(keeper, 0) < FILLED(max);
}

static uint32_t needed_rules(const struct kept_table *table)
{
	uint32_t nr = table->nr_rules ? table->nr_rules : MANY_RULES;

	return nr < RULE_TABLE_MAX_OF_FILE ? nr : RULE_TABLE_MAX_OF_FILE;
}

static struct rule_room rule_room(const struct table_keeper *keeper, const struct kept_table *table)
{
	return rule_table_room(table_store_rules(keeper->store), table->owner);
}

static bool lacks_rules(const struct table_keeper *keeper, const struct kept_table *table)
{
	struct rule_room room = rule_room(keeper, table);
	uint32_t nr = needed_rules(table);

	return nr > room.of_user || nr > room.of_table;
}

static bool is_one(void *arg, uint32_t object)
{
	return object == *(const uint32_t *)arg;
}

static void loaded(struct table_keeper *keeper, struct kept_table *table, uint32_t object)
{
	table->state = TABLE_LOADED;
	table->bytes = (uint64_t)table->place.nr_words * 4;
	keeper->nr_reloaded += table->was_loaded;
	table->was_loaded = true;
	table->is_waiting = false;
	process_table_renew_objects(keeper->processes, is_one, &object);
}

void table_keeper_use_cache(struct table_keeper *keeper, struct table_cache *cache)
{
	keeper->cache = cache;
}

bool table_keeper_is_asked(const struct table_keeper *keeper, uint32_t object)
{
	const struct kept_table *table = table_of(keeper, object);

	return table && table->state == TABLE_ASKED;
}

static void add_culprit(const struct table_keeper *keeper, struct culprit *culprit, uint32_t object)
{
	const struct kept_table *table = table_of(keeper, object);

	if (culprit->nr++)
		return;
	culprit->path = strdup(object_at(keeper, object)->path); /* without memory nothing is told */
	culprit->nr_rules = table->nr_rules;
	culprit->owner = table->owner;
}

static void note_rules(struct table_keeper *keeper, uint32_t object, uint32_t nr_rules)
{
	struct kept_table *table = table_of(keeper, object);
	bool is_known = table->nr_rules > RULE_TABLE_MAX_OF_FILE;

	table->nr_rules = nr_rules;
	if (nr_rules > RULE_TABLE_MAX_OF_FILE && !is_known)
		add_culprit(keeper, &keeper->greedy, object);
}

/* Has the worker read the file. Keeps what it says on disk, if that is all of it. */
static int build_anew(struct table_keeper *keeper, uint32_t object, const struct object *file, struct diag *diag, struct unwind_table **ret_table)
{
	struct rule_table *rules = table_store_rules(keeper->store);
	int err = file->elf ? parser_table(keeper->parser, object, file->elf, rules, diag, ret_table) : -ENODATA;

	if (!err && keeper->cache && (*ret_table)->nr_rules <= RULE_TABLE_MAX_OF_FILE)
		table_cache_keep(keeper->cache, file->elf, file->path, rules, *ret_table);
	return err;
}

/* Builds the table of the file, or finds it on disk. NULL with 0: it has none. -EINPROGRESS: it comes later; -EXFULL: no room for its rules. */
static int build(struct table_keeper *keeper, uint32_t object, struct unwind_table **ret_table)
{
	const struct object *file = object_at(keeper, object);
	struct rule_table *rules = table_store_rules(keeper->store);
	struct diag diag = { 0 };
	bool is_asked = table_keeper_is_asked(keeper, object); /* then it was looked for on disk */
	int err = file->elf && keeper->cache && !is_asked ? table_cache_load(keeper->cache, file->elf, file->path, rules, ret_table) : -ENOENT;

	keeper->nr_cached += !err;
	if (err == -ENOENT)
		err = build_anew(keeper, object, file, &diag, ret_table);
	if (err == -EXFULL)
		table_of(keeper, object)->nr_rules = RULE_TABLE_MAX_OF_FILE; /* or fewer: more than most in any case */
	if (!err)
		note_rules(keeper, object, (*ret_table)->nr_rules);
	if (err == -ENOMEM || err == -EINPROGRESS || err == -EXFULL || !err)
		return err;
	if (err != -ENODATA && (err != -EDQUOT || diag.text[0])) /* that says so once for each owner */
		account_note(keeper->account, "unwind info of %s refused: %s", file->path, diag.text);
	return 0;
}

/* Moves it into the store. -ENOSPC: no room. */
static int load(struct table_keeper *keeper, uint32_t object, const struct unwind_table *built)
{
	struct kept_table *table = table_of(keeper, object);
	int err = built ? table_store_load(keeper->store, built, &table->place) : 0;

	if (err == -EFBIG)
		account_note(keeper->account, "unwind info of %s refused: more rows than code can need", object_at(keeper, object)->path);
	if (!built || err == -EFBIG) {
		if (table->state == TABLE_OUT || table->state == TABLE_ASKED) /* that there is none is news to the kernel */
			process_table_renew_objects(keeper->processes, is_one, &object);
		table->state = TABLE_NONE;
		return 0;
	}
	if (!err)
		loaded(keeper, table, object);
	else
		table->bytes = table_store_bytes_of(built);
	return err;
}

/* It comes back when a stack asks for it. */
static bool is_given_up(const struct kept_table *table)
{
	return table->is_victim || (table->state == TABLE_OUT && table->was_loaded);
}

int table_keeper_meet(struct table_keeper *keeper, uint32_t object)
{
	CLEANUP(unwind_table_freep) struct unwind_table *built = NULL;
	struct kept_table *table;
	int err = object == OBJECT_NONE ? 0 : enter(keeper, object, &table);

	if (err || object == OBJECT_NONE || table->state == TABLE_LOADED || table->state == TABLE_NONE || is_given_up(table))
		return err;
	if (table->state == TABLE_UNKNOWN && object_at(keeper, object)->elf)
		table->owner = elf_file_owner(object_at(keeper, object)->elf);
	if (table->state == TABLE_ASKED || (may_fit(keeper, table) && !lacks_rules(keeper, table))) {
		err = build(keeper, object, &built);
		if (err == -EINPROGRESS) {
			table->state = TABLE_ASKED;
			return 0;
		}
		if (!err)
			err = load(keeper, object, built);
		if (err != -ENOSPC && err != -EXFULL)
			return err;
	}
	if (table->state == TABLE_UNKNOWN || table->state == TABLE_ASKED)
		table->is_waiting = keeper->has_waiting = true;
	table->state = TABLE_OUT;
	return 0;
}

bool table_keeper_is_met(const struct table_keeper *keeper, uint32_t object)
{
	const struct kept_table *table = table_of(keeper, object);

	return object == OBJECT_NONE || (table && table->state != TABLE_UNKNOWN);
}

/* Has it, or may it have, a table that is not there? */
static bool may_come(const struct kept_table *table)
{
	return table->state == TABLE_OUT || table->state == TABLE_ASKED;
}

void table_keeper_fill(const struct table_keeper *keeper, uint32_t object, uint64_t load_bias, struct sonde_mapping *mapping)
{
	const struct kept_table *table = table_of(keeper, object);

	if (table && table->state == TABLE_LOADED) {
		mapping->base_pc = load_bias + table->place.base_vaddr;
		mapping->index_pos = table->place.index_pos;
		mapping->nr_blocks = table->place.nr_blocks;
		mapping->block_shift = table->place.block_shift;
	} else {
		mapping->base_pc = load_bias;
		mapping->index_pos = 0;
		mapping->nr_blocks = 0;
		mapping->block_shift = !table_keeper_is_met(keeper, object) || (table && may_come(table)) ? SONDE_NOT_LOADED : 0;
	}
}

/* A rule's number, once for every byte of the code that it is for. */
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

void table_keeper_fill_compiled(const struct table_keeper *keeper, uint32_t object, const struct sonde_code_range *loop, struct sonde_mapping *mapping)
{
	const struct kept_table *table = table_of(keeper, object);
	uint64_t at, next, votes = 0, bytes = 0;
	uint32_t winner = SONDE_RULE_NONE;

	if (!table || table->state != TABLE_LOADED)
		return;
	for (at = loop->start_pc; at < loop->end_pc; at = next) { /* who has more than half of the votes has won */
		uint32_t rule = table_store_find(keeper->store, &table->place, at, &next);

		vote(rule, next - at, &winner, &votes);
	}
	for (at = loop->start_pc; at < loop->end_pc; at = next) {
		uint32_t rule = table_store_find(keeper->store, &table->place, at, &next);

		bytes += rule == winner ? next - at : 0;
	}
	if (bytes <= (loop->end_pc - loop->start_pc) / 2 || table_store_rule(keeper->store, winner)->kind != SONDE_RULE_KIND_STEP)
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
	const struct table_keeper *keeper = arg;
	const struct kept_table *table = table_of(keeper, object);

	return table && table->is_victim;
}

/* The kernel hears of it before the words are given back. */
static int evict(struct table_keeper *keeper, const struct candidate *victims, uint32_t nr)
{
	int err;

	for (uint32_t i = 0; i < nr; i++) {
		keeper->tables[victims[i].object].is_victim = true;
		keeper->tables[victims[i].object].state = victims[i].is_mapped ? TABLE_OUT : TABLE_UNKNOWN;
	}
	process_table_renew_objects(keeper->processes, is_victim, keeper);
	err = keeper->tell(keeper->tell_arg);
	for (uint32_t i = 0; i < nr; i++) {
		struct kept_table *table = &keeper->tables[victims[i].object];

		table->is_victim = false;
		if (err)
			continue;
		table_store_unload(keeper->store, &table->place);
	}
	return err;
}

/* Which tables may be given up for one that was used at used_ns, the least worth first; 0: only those that nobody maps. */
static uint32_t find_candidates(const struct table_keeper *keeper, uint64_t used_ns, struct candidate *to, uint64_t *ret_bytes)
{
	uint32_t nr = 0;

	*ret_bytes = 0;
	for (uint32_t i = 0; i < keeper->nr_tables; i++) {
		const struct kept_table *table = &keeper->tables[i];

		if (table->state != TABLE_LOADED || (is_mapped(keeper, i) && table->used_ns >= used_ns))
			continue;
		to[nr++] = (struct candidate){ .object = i, .is_mapped = is_mapped(keeper, i), .used_ns = table->used_ns, .bytes = table->bytes,
					       .nr_rules = table->nr_rules, .owner = table->owner };
		*ret_bytes += table->bytes;
	}
	qsort(to, nr, sizeof(*to), by_worth);
	return nr;
}

/* Of those that nobody maps, an eighth of the room may be taken: they may come back, and cost nothing until others need it. */
int table_keeper_trim(struct table_keeper *keeper)
{
	CLEANUP(freep) struct candidate *candidates = calloc(keeper->nr_tables + 1, sizeof(*candidates));
	uint64_t total, max = table_store_max_table_bytes(keeper->store) / 8;
	uint32_t nr, nr_victims = 0;

	if (!candidates)
		return -ENOMEM;
	nr = find_candidates(keeper, 0, candidates, &total);
	for (; nr_victims < nr && total > max; nr_victims++) {
		total -= candidates[nr_victims].bytes;
		keeper->tables[candidates[nr_victims].object].was_loaded = false; /* it did not make room for others */
	}
	return nr_victims ? evict(keeper, candidates, nr_victims) : 0;
}

/* Gives up tables of `want` bytes, or at least `must`: else none. 0; -ENOSPC; or an error that ends the run. */
static int give_up(struct table_keeper *keeper, uint64_t must, uint64_t want, uint64_t used_ns)
{
	CLEANUP(freep) struct candidate *candidates = calloc(keeper->nr_tables + 1, sizeof(*candidates));
	uint64_t total, freed = 0;
	uint32_t nr, nr_victims = 0;

	if (!candidates)
		return -ENOMEM;
	nr = find_candidates(keeper, used_ns, candidates, &total);
	if (!nr || total < must)
		return -ENOSPC;
	while (nr_victims < nr && freed < want)
		freed += candidates[nr_victims++].bytes;
	keeper->nr_evicted += nr_victims;
	return evict(keeper, candidates, nr_victims);
}

/* For a table of so many bytes, and some more. */
static int make_room(struct table_keeper *keeper, uint64_t bytes, uint64_t used_ns)
{
	uint64_t max = table_store_max_table_bytes(keeper->store), with = bytes_with(keeper, bytes);

	return bytes > max ? -ENOSPC : give_up(keeper, with > max ? with - max : 1, with > FILLED(max) ? with - FILLED(max) : 1, used_ns);
}

static int by_rules(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->nr_rules > y->nr_rules ? -1 : x->nr_rules < y->nr_rules;
}

/* Root's files take from all others, those of a user from users; where his own share is what is short, from his own. */
static bool gives_way(const struct candidate *candidate, uint32_t owner, bool is_of_user)
{
	return candidate->nr_rules && (!owner || (is_of_user ? candidate->owner == owner : candidate->owner));
}

/* Gives up tables of as many rules as the file lacks, those with the most first. */
static int give_up_rules(struct table_keeper *keeper, const struct kept_table *table, uint64_t used_ns)
{
	CLEANUP(freep) struct candidate *candidates = calloc(keeper->nr_tables + 1, sizeof(*candidates));
	struct rule_room room = rule_room(keeper, table);
	uint32_t nr, nr_rivals = 0, nr_victims = 0, needed = needed_rules(table), freed = 0;
	bool is_of_user = needed > room.of_user;
	uint64_t bytes;

	if (!candidates)
		return -ENOMEM;
	nr = find_candidates(keeper, used_ns, candidates, &bytes);
	for (uint32_t i = 0; i < nr; i++) {
		if (gives_way(&candidates[i], table->owner, is_of_user))
			candidates[nr_rivals++] = candidates[i];
	}
	qsort(candidates, nr_rivals, sizeof(*candidates), by_rules);
	for (needed -= is_of_user ? room.of_user : room.of_table; nr_victims < nr_rivals && freed < needed; nr_victims++)
		freed += candidates[nr_victims].nr_rules;
	keeper->nr_evicted += nr_victims;
	return nr_victims ? evict(keeper, candidates, nr_victims) : -EXFULL;
}

/* For the file's rules. 0; -EXFULL; or an error that ends the run. */
static int make_rule_room(struct table_keeper *keeper, const struct kept_table *table, uint64_t used_ns)
{
	int err = lacks_rules(keeper, table) ? table_store_settle_rules(keeper->store) : 0;

	while (!err && lacks_rules(keeper, table)) { /* other files may have the same rules */
		err = give_up_rules(keeper, table, used_ns);
		if (!err)
			err = table_store_settle_rules(keeper->store);
	}
	return err;
}

static int build_with_room(struct table_keeper *keeper, uint32_t object, uint64_t used_ns, struct unwind_table **ret_table)
{
	const struct kept_table *table = table_of(keeper, object);
	int err = make_rule_room(keeper, table, used_ns);

	if (!err)
		err = build(keeper, object, ret_table);
	if (err != -EXFULL || !lacks_rules(keeper, table))
		return err;
	err = make_rule_room(keeper, table, used_ns); /* it needs more than most */
	return err ? err : build(keeper, object, ret_table);
}

/* Builds and loads it, and makes room for it. 0; -ENOSPC or, for its rules, -EXFULL; -EINPROGRESS; or an error that ends the run. */
static int load_with_room(struct table_keeper *keeper, uint32_t object, uint64_t used_ns)
{
	CLEANUP(unwind_table_freep) struct unwind_table *built = NULL;
	struct kept_table *table = table_of(keeper, object);
	int err = may_fit(keeper, table) ? 0 : make_room(keeper, table->bytes, used_ns);

	if (!err)
		err = build_with_room(keeper, object, used_ns, &built);
	if (err == -EINPROGRESS) {
		table->state = TABLE_ASKED;
		table->is_waiting = keeper->has_waiting = true;
	}
	if (!err)
		err = load(keeper, object, built);
	while (err == -ENOSPC && built) { /* what is free may be too scattered */
		err = make_room(keeper, table_store_bytes_of(built), used_ns);
		if (err)
			return err;
		err = load(keeper, object, built);
	}
	return err;
}

int table_keeper_settle(struct table_keeper *keeper)
{
	int err = 0;

	if (!keeper->has_waiting)
		return 0;
	keeper->has_waiting = false;
	for (uint32_t i = 0; !err && i < keeper->nr_tables; i++) {
		if (!keeper->tables[i].is_waiting)
			continue;
		keeper->tables[i].is_waiting = false;
		if (!is_mapped(keeper, i) || !may_come(&keeper->tables[i]))
			continue;
		err = load_with_room(keeper, i, 0);
		if (err == -ENOSPC || err == -EXFULL || err == -EINPROGRESS)
			err = 0;
	}
	return err ? err : keeper->tell(keeper->tell_arg);
}

void table_keeper_used(struct table_keeper *keeper, uint32_t object, uint64_t time_ns)
{
	struct kept_table *table = table_of(keeper, object);

	if (table && table->used_ns < time_ns)
		table->used_ns = time_ns;
}

/* Have there been enough in this second? */
static bool is_too_often(struct table_keeper *keeper)
{
	uint64_t now = clock_ns();

	if (now - keeper->reloads_from_ns > NS_PER_S) {
		keeper->reloads_from_ns = now;
		keeper->nr_reloads = 0;
	}
	return keeper->nr_reloads >= MAX_RELOADS;
}

int table_keeper_need(struct table_keeper *keeper, uint32_t object, uint64_t time_ns, bool *ret_loaded)
{
	const struct kept_table *table = table_of(keeper, object);
	int err;

	*ret_loaded = table && !may_come(table);
	if (!table || !may_come(table))
		return 0;
	table_keeper_used(keeper, object, time_ns);
	err = is_too_often(keeper) ? -ENOSPC : load_with_room(keeper, object, time_ns > HOT_NS ? time_ns - HOT_NS : 0);
	keeper->nr_put_off += err == -ENOSPC;
	if (err == -EXFULL)
		add_culprit(keeper, &keeper->crowded, object);
	if (err == -ENOSPC || err == -EINPROGRESS || err == -EXFULL)
		return 0;
	keeper->nr_reloads++;
	if (!err)
		err = keeper->tell(keeper->tell_arg);
	*ret_loaded = !err;
	return err;
}

int table_keeper_yield(struct table_keeper *keeper)
{
	int err = give_up(keeper, 1, table_store_max_table_bytes(keeper->store) / 8, clock_ns());

	return err == -ENOSPC ? 0 : err;
}

void table_keeper_forget(void *arg, uint32_t object)
{
	struct table_keeper *keeper = arg;
	struct kept_table *table = table_of(keeper, object);

	if (!table)
		return;
	parser_forget(keeper->parser, object);
	table_store_unload(keeper->store, &table->place);
	*table = (struct kept_table){ 0 };
}

void table_keeper_account(const struct table_keeper *keeper, struct account *account)
{
	account->unwind_rows = table_store_rows(keeper->store);
	account->unwind_bytes = table_store_table_bytes(keeper->store);
	account->unwind_evicted = keeper->nr_evicted;
	account->unwind_reloaded = keeper->nr_reloaded;
	account->unwind_cached = keeper->nr_cached;
	if (keeper->nr_put_off)
		account_note(account, "%" PRIu64 " stacks found no room for the unwind table of a file: --unwind-memory is too small for what is sampled",
			     keeper->nr_put_off);
	if (keeper->greedy.path)
		account_note(account, "%u files need more unwind rules than the %u that a file may have, the first %u: stacks end where it needs others: %s%s", keeper->greedy.nr,
			     RULE_TABLE_MAX_OF_FILE, keeper->greedy.nr_rules, keeper->greedy.path, keeper->greedy.nr > 1 ? ", ..." : "");
	if (keeper->crowded.path)
		account_note(account, "%u stacks found no room for the unwind rules of a file: all files of user %u need too many: %s%s", keeper->crowded.nr, keeper->crowded.owner,
			     keeper->crowded.path, keeper->crowded.nr > 1 ? ", ..." : "");
}
