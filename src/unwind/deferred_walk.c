// SPDX-License-Identifier: Apache-2.0
#include "unwind/deferred_walk.h"

#include <string.h>

/* The accessors for bpf/walk/unwind.h, defined below, where the walk's type is known. */
struct walk;
static const __u32 *chunk_at(const struct walk *w, __u32 pos);
static const struct sonde_rule *rule_at(const struct walk *w, __u32 number);
static long read_user(const struct walk *w, void *to, __u32 size, __u64 from);
static __u64 user_tls_base(const struct walk *w);
#define WALK_FUNCTION static
#include "walk/unwind.h"

#define PROCESS_CHUNK 0xffffu /* not a chunk of the pool: our own, with the mappings of the process */
#define PROCESS_POS (PROCESS_CHUNK << SONDE_CHUNK_SHIFT)
_Static_assert(PROCESS_CHUNK >= SONDE_MAX_CHUNKS, "the pool has that chunk");
_Static_assert(SONDE_MAX_MAPPINGS * sizeof(struct sonde_mapping) <= SONDE_CHUNK_BYTES, "the mappings do not fit");

struct deferred_walk {
	struct walk walk; /* first, as the accessors get a pointer to it */
	const struct table_store *store;
	uint64_t hash_seed;
	__u32 process[SONDE_CHUNK_WORDS];
	uint64_t process_serial;               /* of the mappings there */
	uint64_t frames[SONDE_MAX_USER_FRAMES];
	const struct sonde_deferred_record *record; /* of the current walk */
	deferred_code_fn code;
	void *code_arg;
	bool *is_beyond;                       /* the latest failed read was behind the copied stack */
};

static const struct deferred_walk *deferred_walk_of(const struct walk *w)
{
	return (const struct deferred_walk *)w;
}

static const __u32 *chunk_at(const struct walk *w, __u32 pos)
{
	const struct deferred_walk *walk = deferred_walk_of(w);

	return pos >> SONDE_CHUNK_SHIFT == PROCESS_CHUNK ? walk->process : table_store_chunk(walk->store, pos);
}

static const struct sonde_rule *rule_at(const struct walk *w, __u32 number)
{
	return table_store_rule(deferred_walk_of(w)->store, number);
}

/* The record has no memory but the stack, so there is nothing to find. */
static __u64 user_tls_base(const struct walk *w)
{
	return 0;
}

/* Reads from the copy of the stack; for other memory, mostly code, calls the caller's function. Like bpf_probe_read_user: if not all can be
 * read, zeroes the target. */
static long read_user(const struct walk *w, void *to, __u32 size, __u64 from)
{
	const struct deferred_walk *walk = deferred_walk_of(w);
	const struct sonde_deferred_record *record = walk->record;
	uint64_t off = from - record->stack_start;

	if (sonde_deferred_has(record, off, size)) {
		memcpy(to, (const uint8_t *)(record + 1) + off, size);
		return 0;
	}
	if (!walk->code(walk->code_arg, from, to, size))
		return 0;
	memset(to, 0, size);
	*walk->is_beyond = off >= record->stack_bytes;
	return -1;
}

struct deferred_walk *deferred_walk_new(const struct table_store *store, uint64_t hash_seed)
{
	struct deferred_walk *walk = calloc(1, sizeof(*walk));

	if (walk) {
		walk->store = store;
		walk->hash_seed = hash_seed;
	}
	return walk;
}

void deferred_walk_free(struct deferred_walk *walk)
{
	free(walk);
}

static void enter(struct deferred_walk *walk, const struct sonde_deferred_record *record, const struct deferred_process *process)
{
	uint32_t nr = process->nr_mappings < SONDE_MAX_MAPPINGS ? process->nr_mappings : SONDE_MAX_MAPPINGS;
	struct walk *w = &walk->walk;

	if (nr && (!process->serial || process->serial != walk->process_serial)) {
		memcpy(walk->process, process->mappings, nr * sizeof(*process->mappings));
		walk->process_serial = process->serial;
	}
	memcpy(w->regs, record->regs, sizeof(w->regs));
	w->pc = record->regs[SONDE_REG_PC];
	w->sp = record->regs[WALK_REG_SP];
	w->bp = record->regs[WALK_REG_BP];
	w->compat = record->compat;
	w->in_syscall = record->in_syscall;
	w->hash = nr ? hash_process(walk->hash_seed, process->tgid, process->generation, 0) : record->hash_begin;
	w->process_pos = nr ? PROCESS_POS : 0;
	w->nr_mappings = nr;
	w->serial++; /* cache entries of another process are not valid */
	if (!w->serial)
		w->serial = 1;
	walk_enter(w);
}

void deferred_walk_run(struct deferred_walk *walk, const struct sonde_deferred_record *record, const struct deferred_process *process,
		       deferred_code_fn code, void *arg, struct deferred_stack *ret_stack)
{
	struct walk *w = &walk->walk;
	uint32_t nr_before = 0;
	bool is_beyond = false;

	walk->is_beyond = &is_beyond;
	walk->record = record;
	walk->code = code;
	walk->code_arg = arg;
	enter(walk, record, process);
	for (uint32_t turn = 0; turn < WALK_MAX_TURNS && walk_step(w, (__u64 *)walk->frames) == WALK_GOES_ON; turn++) {
		if (!w->nr_switches)
			nr_before = w->nr_frames;
	}
	if (w->stop == SONDE_STOP_READ_FAULT && record->is_cut && is_beyond)
		w->stop = SONDE_STOP_DEPTH;
	*ret_stack = (struct deferred_stack){
		.frames = walk->frames,
		.hash = walk_hash(w, (const __u64 *)walk->frames),
		.last_pc = w->pc,
		.nr_walked = w->nr_frames,
		.generation = process->nr_mappings ? process->generation : 0,
		.switch_frame = w->nr_switches ? nr_before + 1 : 0,
		.nr_frames = (uint16_t)(w->nr_frames < SONDE_MAX_USER_FRAMES ? w->nr_frames : SONDE_MAX_USER_FRAMES),
		.stop = w->stop,
	};
}
