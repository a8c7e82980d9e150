// SPDX-License-Identifier: Apache-2.0
#include "memory/estimate.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/interned.h"

#define MAX_BYTES ((uint64_t)256 << 20)
#define MAX_THREADS 4096 /* known by themselves; all others of a process are one */
#define MAX_PARTS 131072 /* then a thread's calls have no stacks */
#define GROUPS 16      /* of windows, for the error */
#define NEIGHBOURS 4   /* windows that follow each other are in one group: the next one may tell little that is new */
#define ENOUGH_WINDOWS 32
#define CLASSES 5      /* of windows of one thread, by the part of its CPU time that probes took */
#define FEW_WINDOWS 8  /* a thread that ran in fewer is taken together with others like it, and a class with its neighbour */
#define LEAST_OWN_NS 5 /* no program calls an allocator more often */
#define ALL_GROUPS GROUPS

struct cell { /* weighted */
	double objects, bytes, cpu_ns, cost_ns, trap_ns;
};

struct thread {
	uint32_t tgid, tid;             /* key */
	uint32_t nr_windows, nr_in_class[CLASSES];
	uint64_t cpu_ns;                /* in all */
	double paid_ns;                 /* of that, for probes */
	struct cell cells[CLASSES][GROUPS];
	double factors[CLASSES];        /* what a block that was seen stands for */
};

struct part { /* of a stack, by a thread in windows of one class */
	struct stack_ids ids;           /* the key, with the next two */
	uint32_t thread, class;
	double weight, objects, bytes;
	double sizes[SONDE_ALLOC_SIZES];
};

struct estimate {
	struct interned threads, parts;
	uint32_t nr_windows, group;
	double weight;
	uint64_t all_cpu_ns, nr_unknown;
};

struct estimate *estimate_new(void)
{
	struct estimate *estimate = calloc(1, sizeof(*estimate));

	if (!estimate)
		return NULL;
	estimate->threads = INTERNED_INIT(struct thread, offsetof(struct thread, nr_windows), MAX_BYTES);
	estimate->parts = INTERNED_INIT(struct part, offsetof(struct part, weight), MAX_BYTES);
	return estimate;
}

void estimate_free(struct estimate *estimate)
{
	if (!estimate)
		return;
	interned_done(&estimate->threads);
	interned_done(&estimate->parts);
	free(estimate);
}

static struct thread *thread_at(const struct estimate *estimate, uint32_t number)
{
	return interned_at(&estimate->threads, number);
}

static uint32_t thread_of(struct estimate *estimate, uint32_t tgid, uint32_t tid)
{
	struct thread empty = { .tgid = tgid, .tid = tid };
	uint32_t number = interned_find(&estimate->threads, &empty);

	if (number != INTERNED_NONE)
		return number;
	if (estimate->threads.nr >= MAX_THREADS && tid != ESTIMATE_BY_TIME)
		empty.tid = 0;
	return interned_add(&estimate->threads, &empty);
}

void estimate_begin(struct estimate *estimate)
{
	estimate->group = estimate->nr_windows++ / NEIGHBOURS % GROUPS;
}

/* By halves of what is left: 1/2, 3/4, 7/8, 15/16. Within a class calls come about as often, so its windows may be taken together: of
 * a single one the own CPU time is not known well enough where probes take nearly all. */
static uint32_t class_of(const struct estimate_window *window)
{
	double own = window->cpu_ns ? 1 - window->usual_cost_ns / (double)window->cpu_ns : 1;
	uint32_t class = 0;

	while (class < CLASSES - 1 && own < 0.5) {
		own *= 2;
		class++;
	}
	return class;
}

uint32_t estimate_add(struct estimate *estimate, const struct estimate_window *window)
{
	uint32_t number = thread_of(estimate, window->tgid, window->tid), class = class_of(window);
	struct thread *thread;
	struct cell *cell;

	if (number == INTERNED_NONE)
		return ESTIMATE_NONE;
	thread = thread_at(estimate, number);
	thread->nr_windows += window->cpu_ns > 0;
	thread->nr_in_class[class] += window->cpu_ns > 0;
	thread->paid_ns += window->cost_ns;
	cell = &thread->cells[class][estimate->group];
	cell->cpu_ns += window->weight * (double)window->cpu_ns;
	cell->cost_ns += window->weight * window->cost_ns;
	cell->trap_ns += window->weight * window->trap_ns;
	estimate->weight = window->weight;
	return number * CLASSES + class;
}

static uint32_t size_slot(uint64_t bytes)
{
	uint32_t slot = bytes ? 63 - (uint32_t)__builtin_clzll(bytes) : 0; /* as bpf/lib/log2.h */

	return slot < SONDE_ALLOC_SIZES ? slot : SONDE_ALLOC_SIZES - 1;
}

int estimate_hit(struct estimate *estimate, uint32_t number, const struct stack_ids *ids, uint64_t bytes)
{
	struct part empty = { .ids = *ids, .thread = number / CLASSES, .class = number % CLASSES };
	struct cell *cell = &thread_at(estimate, empty.thread)->cells[empty.class][estimate->group];
	uint32_t at = interned_find(&estimate->parts, &empty);
	struct part *part;

	if (at == INTERNED_NONE && estimate->parts.nr >= MAX_PARTS) {
		empty.ids = (struct stack_ids){ .tgid = ids->tgid, .ids.user_state = SONDE_STACK_LOST };
		estimate->nr_unknown++;
	}
	if (at == INTERNED_NONE)
		at = interned_add(&estimate->parts, &empty);
	if (at == INTERNED_NONE)
		return -ENOMEM;
	part = interned_at(&estimate->parts, at);
	part->objects += estimate->weight;
	part->bytes += estimate->weight * (double)bytes;
	part->sizes[size_slot(bytes)] += estimate->weight;
	cell->objects += estimate->weight;
	cell->bytes += estimate->weight * (double)bytes;
	return 0;
}

int estimate_cpu(struct estimate *estimate, uint32_t tgid, uint32_t tid, uint64_t cpu_ns)
{
	uint32_t number = thread_of(estimate, tgid, tid);

	if (number == INTERNED_NONE)
		return -ENOMEM;
	thread_at(estimate, number)->cpu_ns += cpu_ns;
	return 0;
}

void estimate_all_cpu(struct estimate *estimate, uint64_t cpu_ns)
{
	estimate->all_cpu_ns += cpu_ns;
}

/* --- the result ----------------------------------------------------------------------------------------------------------------------- */

struct way { /* one of computing it */
	uint32_t without;        /* this group; ALL_GROUPS: with all */
	double wrong;            /* the traps have cost this part more than was measured */
};

static void add_cells(struct cell *sum, const struct cell *cells, uint32_t without)
{
	for (uint32_t group = 0; group < GROUPS; group++) {
		if (group == without)
			continue;
		sum->objects += cells[group].objects;
		sum->bytes += cells[group].bytes;
		sum->cpu_ns += cells[group].cpu_ns;
		sum->cost_ns += cells[group].cost_ns;
		sum->trap_ns += cells[group].trap_ns;
	}
}

/* How much more often the thread would have called. */
static double slow_down(const struct cell *sum, double wrong)
{
	double least_ns = sum->objects * LEAST_OWN_NS;
	double own_ns = fmax(sum->cpu_ns - sum->cost_ns, least_ns); /* then what is wrong: it counts where nothing is left, too */

	own_ns = fmax(own_ns - wrong * sum->trap_ns, least_ns);
	return sum->cpu_ns > 0 ? fmax(sum->cpu_ns / own_ns, 1) : 1;
}

/* For each class; returns the thread's CPU time in windows. A class of few windows would be one of accidents: an interrupt in a probe is
 * charged to it, and seems to leave no time at all. So it is taken together with the next one below. */
static double slow_downs(const struct thread *thread, const struct way *way, struct cell *sums, double *ret_factors)
{
	uint32_t nr = 0, last = CLASSES, rest = thread->nr_windows;
	struct cell together = { 0 };
	double cpu_ns = 0;

	for (uint32_t class = CLASSES; class--;) {
		sums[class] = (struct cell){ 0 };
		add_cells(&sums[class], thread->cells[class], way->without);
		add_cells(&together, thread->cells[class], way->without);
		cpu_ns += sums[class].cpu_ns;
		nr += thread->nr_in_class[class];
		rest -= thread->nr_in_class[class];
		if (class && (nr < FEW_WINDOWS || rest < FEW_WINDOWS))
			continue;
		for (uint32_t i = class; i < last; i++)
			ret_factors[i] = slow_down(&together, way->wrong);
		last = class;
		nr = 0;
		together = (struct cell){ 0 };
	}
	return cpu_ns;
}

static double used_ns(const struct thread *thread)
{
	return fmax((double)thread->cpu_ns - thread->paid_ns, 0);
}

struct pool { /* of threads */
	double used_ns, seen_ns, paid_ns;
};

struct pools {
	struct pool all, few;        /* of all threads that were seen in windows; of those that were seen in few or none */
	struct thread few_together;  /* these as one: alone, what one of them was slowed down by would be an accident */
	double factors[CLASSES];     /* of that one */
	double by_time;              /* part of the calls that were made by threads whose CPU time is not known */
};

static bool is_by_time(const struct thread *thread)
{
	return thread->tid == ESTIMATE_BY_TIME;
}

static void add_few(struct thread *sum, const struct thread *thread)
{
	sum->nr_windows += thread->nr_windows;
	for (uint32_t class = 0; class < CLASSES; class++) {
		sum->nr_in_class[class] += thread->nr_in_class[class];
		for (uint32_t group = 0; group < GROUPS; group++) {
			struct cell *to = &sum->cells[class][group];
			const struct cell *from = &thread->cells[class][group];

			to->objects += from->objects;
			to->bytes += from->bytes;
			to->cpu_ns += from->cpu_ns;
			to->cost_ns += from->cost_ns;
			to->trap_ns += from->trap_ns;
		}
	}
}

static double objects_of(const struct cell *sums)
{
	double objects = 0;

	for (uint32_t class = 0; class < CLASSES; class++)
		objects += sums[class].objects;
	return objects;
}

static void fill_pools(const struct estimate *estimate, const struct way *way, struct pools *pools)
{
	double factors[CLASSES], objects = 0, by_time = 0, few_ns;
	struct cell sums[CLASSES];

	for (uint32_t i = 0; i < estimate->threads.nr; i++) {
		const struct thread *thread = thread_at(estimate, i);
		double seen_ns = slow_downs(thread, way, sums, factors);

		objects += objects_of(sums);
		by_time += is_by_time(thread) ? objects_of(sums) : 0;
		pools->all.used_ns += used_ns(thread);
		pools->all.paid_ns += thread->paid_ns;
		pools->all.seen_ns += seen_ns;
		if (thread->nr_windows >= FEW_WINDOWS)
			continue;
		pools->few.used_ns += used_ns(thread);
		add_few(&pools->few_together, thread);
	}
	pools->by_time = objects > 0 ? by_time / objects : 0;
	few_ns = slow_downs(&pools->few_together, way, sums, pools->factors);
	pools->few.seen_ns = few_ns;
	if (few_ns <= 0) /* nothing is known of these: as the others */
		pools->all.used_ns -= pools->few.used_ns;
}

/* CPU time of which no thread is known, since threads end between two looks, counts like the others'; but where calls count by time it is
 * the time of these. */
static double rest_of(const struct estimate *estimate, const struct pools *pools)
{
	double rest = pools->all.used_ns > 0 ? ((double)estimate->all_cpu_ns - pools->all.paid_ns) / pools->all.used_ns : 1;

	return 1 + fmax(rest - 1, 0) * (1 - pools->by_time);
}

/* What stands for the CPU time of all: of the thread's, of the others' that are seen as seldom, or of all, which is known of a process that
 * ended before its threads were looked at. */
static double part_of(const struct estimate *estimate, const struct pools *pools, const struct thread *thread, double seen_ns)
{
	if (is_by_time(thread))
		return 1;
	if (pools->all.used_ns <= 0)
		return pools->all.seen_ns > 0 ? fmax((double)estimate->all_cpu_ns - pools->all.paid_ns, 0) / pools->all.seen_ns : 0;
	if (thread->nr_windows >= FEW_WINDOWS)
		return seen_ns > 0 ? used_ns(thread) / seen_ns : 0;
	return pools->few.seen_ns > 0 ? pools->few.used_ns / pools->few.seen_ns : 0;
}

/* The sums; also sets the factors of the threads. */
static void compute(struct estimate *estimate, const struct way *way, struct cell *ret_sum, double *ret_unseen)
{
	struct pools pools = { 0 };
	double rest;

	fill_pools(estimate, way, &pools);
	rest = rest_of(estimate, &pools);
	*ret_sum = (struct cell){ 0 };
	for (uint32_t i = 0; i < estimate->threads.nr; i++) {
		struct thread *thread = thread_at(estimate, i);
		struct cell sums[CLASSES];
		double seen_ns = slow_downs(thread, way, sums, thread->factors), part = part_of(estimate, &pools, thread, seen_ns);

		for (uint32_t class = 0; class < CLASSES; class++) {
			if (thread->nr_windows < FEW_WINDOWS && !is_by_time(thread))
				thread->factors[class] = pools.factors[class];
			thread->factors[class] *= is_by_time(thread) ? 1 : part * rest;
			ret_sum->objects += sums[class].objects * thread->factors[class];
			ret_sum->bytes += sums[class].bytes * thread->factors[class];
		}
	}
	*ret_unseen = pools.few.seen_ns > 0 || !estimate->all_cpu_ns ? 0 : pools.few.used_ns / (double)estimate->all_cpu_ns;
}

static double error_of(const double *without, double systematic)
{
	double mean = 0, sum = 0;

	for (uint32_t group = 0; group < GROUPS; group++)
		mean += without[group] / GROUPS;
	for (uint32_t group = 0; group < GROUPS; group++)
		sum += (without[group] - mean) * (without[group] - mean);
	return sqrt(sum * (GROUPS - 1) / GROUPS + systematic * systematic);
}

/* Of results that are two standard deviations away: what comes out need not be as far below as above. */
static double wrong_by(double less, double value, double more)
{
	return fmax(more - value, value - less) / 2;
}

void estimate_finish(struct estimate *estimate, struct estimate_result *ret_result)
{
	struct way way = { .without = ALL_GROUPS };
	double objects[GROUPS], bytes[GROUPS], unseen;
	struct cell sum, more, less;

	for (way.without = 0; way.without < GROUPS; way.without++) {
		compute(estimate, &way, &sum, &unseen);
		objects[way.without] = sum.objects;
		bytes[way.without] = sum.bytes;
	}
	way.wrong = 2 * ESTIMATE_TRAP_ERROR;
	compute(estimate, &way, &more, &unseen);
	way.wrong = -2 * ESTIMATE_TRAP_ERROR;
	compute(estimate, &way, &less, &unseen);
	way.wrong = 0;
	compute(estimate, &way, &sum, &unseen); /* the factors that stay */
	*ret_result = (struct estimate_result){
		.objects = sum.objects,
		.bytes = sum.bytes,
		.objects_error = error_of(objects, wrong_by(less.objects, sum.objects, more.objects)),
		.bytes_error = error_of(bytes, wrong_by(less.bytes, sum.bytes, more.bytes)),
		.objects_shared = wrong_by(less.objects, sum.objects, more.objects),
		.bytes_shared = wrong_by(less.bytes, sum.bytes, more.bytes),
		.unseen = unseen,
		.nr_unknown = estimate->nr_unknown,
	};
	if (estimate->nr_windows < ENOUGH_WINDOWS)
		ret_result->objects_error = ret_result->bytes_error = -1;
}

uint32_t estimate_nr(const struct estimate *estimate)
{
	return estimate->parts.nr;
}

bool estimate_at(const struct estimate *estimate, uint32_t i, struct stack_ids *ret_ids, struct sonde_alloc_sum *ret_sum)
{
	const struct part *part = interned_at(&estimate->parts, i);
	double factor = thread_at(estimate, part->thread)->factors[part->class];

	*ret_ids = part->ids;
	*ret_sum = (struct sonde_alloc_sum){ .nr = (uint64_t)llround(part->objects * factor),
					     .bytes = (uint64_t)llround(part->bytes * factor) };
	for (uint32_t slot = 0; slot < SONDE_ALLOC_SIZES; slot++)
		ret_sum->sizes[slot] = (uint64_t)llround(part->sizes[slot] * factor);
	return ret_sum->nr || ret_sum->bytes;
}
