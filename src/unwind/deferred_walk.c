// SPDX-License-Identifier: Apache-2.0
#include "unwind/deferred_walk.h"

#include <string.h>

#include "base/u64_map.h"

/* The accessors for bpf/walk/unwind.h, defined below, where the walk's type is known. */
struct walk;
static const __u32 *chunk_at(const struct walk *w, __u32 pos);
static const struct sonde_rule *rule_at(const struct walk *w, __u32 number);
static long read_user(const struct walk *w, void *to, __u32 size, __u64 from);
static __u64 user_tls_base(const struct walk *w);
struct runtime_walk;
static struct runtime_walk *runtime_walk_of(struct walk *w);
#define WALK_FUNCTION static
#include "walk/unwind.h"
#include "runtimes/runtime.h"
#include "owner_steps.inc.h"

#define PROCESS_CHUNK 0xffffu /* not a chunk of the pool: our own, with the mappings of the process */
#define PROCESS_POS (PROCESS_CHUNK << SONDE_CHUNK_SHIFT)
_Static_assert(PROCESS_CHUNK >= SONDE_MAX_CHUNKS, "the pool has that chunk");
_Static_assert(SONDE_MAX_MAPPINGS * sizeof(struct sonde_mapping) <= SONDE_CHUNK_BYTES, "the mappings do not fit");

struct deferred_walk {
	struct walk walk; /* first, as the accessors get a pointer to it */
	struct runtime_walk runtime;
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

static struct runtime_walk *runtime_walk_of(struct walk *w)
{
	return &((struct deferred_walk *)w)->runtime;
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

/* From the current frame, in a runtime's code, to its caller: as the runtime's program does (bpf/lib/owner_main.h). */
static int owned_frame(struct walk *w, struct runtime_walk *r, const union sonde_runtime_known *known)
{
	r->runtime = (__u8)w->owner;
	walk_leave_to_owner(w);
	switch (r->runtime) {
#define X(id, name, ...) case SONDE_RUNTIME_##id: return name##_frame(w, r, (const struct sonde_##name *)known);
		SONDE_RUNTIME_LIST(SONDE_NO_RUNTIME, X, SONDE_NO_RUNTIME)
#undef X
	default: return walk_stop(w, SONDE_STOP_NO_ROW);
	}
}

/* One turn. WALK_GOES_ON; else the walk has ended. */
static int turn(struct deferred_walk *walk, const struct deferred_process *process)
{
	struct walk *w = &walk->walk;
	int at = walk_step(w, (__u64 *)walk->frames);

	return at == WALK_AT_OWNER && process->known[w->owner] ? owned_frame(w, &walk->runtime, process->known[w->owner]) : at;
}

/* What the runtimes run, as the kernel side would send it; NULL: nothing. */
static const struct sonde_runtime_record *end_runtimes(struct deferred_walk *walk, const struct deferred_process *process)
{
	struct runtime_walk *r = &walk->runtime;

	if (!r->nr_frames && !r->record.stop)
		return NULL;
	r->record.type = SONDE_RECORD_RUNTIME;
	r->record.tgid = process->tgid;
	r->record.generation = process->generation;
	r->record.time_ns = walk->record->time_ns;
	r->record.nr_frames = (uint16_t)r->nr_frames;
	r->record.hash = hash_step(walk_hash(&walk->walk, (const __u64 *)walk->frames),
				   hash_bytes(r->frames, r->nr_frames * sizeof(r->frames[0]), r->record.stop));
	return &r->record;
}

void deferred_walk_run(struct deferred_walk *walk, const struct sonde_deferred_record *record, const struct deferred_process *process,
		       deferred_code_fn code, void *arg, struct deferred_stack *ret_stack)
{
	struct walk *w = &walk->walk;
	const struct sonde_runtime_record *runtime;
	uint32_t nr_before = 0;
	bool is_beyond = false;

	walk->is_beyond = &is_beyond;
	walk->record = record;
	walk->code = code;
	walk->code_arg = arg;
	enter(walk, record, process);
	walk->runtime.nr_frames = 0;
	walk->runtime.record.stop = SONDE_RUNTIME_STOP_COMPLETE;
	walk->runtime.record.fault = 0;
	for (uint32_t nr_turns = 0; nr_turns < WALK_MAX_TURNS && turn(walk, process) == WALK_GOES_ON; nr_turns++) {
		if (!w->nr_switches)
			nr_before = w->nr_frames;
	}
	if (w->stop == SONDE_STOP_READ_FAULT && record->is_cut && is_beyond)
		w->stop = SONDE_STOP_DEPTH;
	runtime = end_runtimes(walk, process);
	*ret_stack = (struct deferred_stack){
		.frames = walk->frames,
		.runtime = runtime,
		.hash = runtime ? runtime->hash : walk_hash(w, (const __u64 *)walk->frames),
		.last_pc = w->pc,
		.nr_walked = w->nr_frames,
		.generation = process->nr_mappings ? process->generation : 0,
		.switch_frame = w->nr_switches ? nr_before + 1 : 0,
		.nr_frames = (uint16_t)(w->nr_frames < SONDE_MAX_USER_FRAMES ? w->nr_frames : SONDE_MAX_USER_FRAMES),
		.stop = w->stop,
	};
}
