// SPDX-License-Identifier: Apache-2.0
/* Unwind rules of Go's functions. The table of frame sizes (pcsp) gives the CFA. Go's own tracebacks and stack copying depend on it, so it
 * is exact at every instruction, except where code writes the stack pointer. Those functions are few; go_switch.c handles them. */
#include <errno.h>
#include <string.h>

#include "pclntab/go_rows.h"

#define WINDOW_BYTES 65536u
#define MAX_FRAME_BYTES (1 << 30)

struct walk {
	const struct go_pclntab *table;
	struct go_thread thread;
	cfi_row_fn row;
	void *arg;
	struct cfi_stats *stats;
	uint8_t *window; /* code around the last function */
	uint64_t window_vaddr;
	size_t window_size;
};

/* Reads at most the first GO_CODE_BYTES of a function. Functions are requested in order of address. */
static void read_code(struct walk *walk, struct go_code *code)
{
	uint64_t size = code->function.end_vaddr - code->function.start_vaddr, off = code->function.start_vaddr - walk->window_vaddr;

	if (size > GO_CODE_BYTES)
		size = GO_CODE_BYTES;
	code->nr = (uint32_t)size;
	if (off > walk->window_size || size > walk->window_size - off) {
		uint64_t file_off, left;

		walk->window_size = 0;
		if (go_file_off(walk->table->elf, code->function.start_vaddr, &file_off, &left))
			left = 0;
		if (left > WINDOW_BYTES)
			left = WINDOW_BYTES;
		if (left < size || elf_file_read_at(walk->table->elf, file_off, walk->window, (size_t)left)) {
			code->nr = 0;
			return;
		}
		walk->window_vaddr = code->function.start_vaddr;
		walk->window_size = (size_t)left;
		off = 0;
	}
	code->bytes = walk->window + off;
}

static int give(struct walk *walk, uint64_t vaddr, const struct sonde_rule *rule)
{
	walk->stats->nr_rows++;
	walk->stats->nr_unsupported += rule->kind == SONDE_RULE_KIND_UNSUPPORTED;
	return walk->row(walk->arg, vaddr, rule);
}

static struct sonde_rule rule_at(const struct go_code *code, uint64_t vaddr, int32_t delta)
{
	for (uint32_t i = 0; i < code->nr_exceptions; i++) {
		if (vaddr >= code->exceptions[i].from && vaddr < code->exceptions[i].to)
			return code->exceptions[i].rule;
	}
	if (delta < 0 || delta > MAX_FRAME_BYTES)
		return (struct sonde_rule){ .kind = SONDE_RULE_KIND_UNSUPPORTED };
	return go_code_rule(code, vaddr, delta);
}

static void lower(uint64_t *next, uint64_t vaddr, uint64_t bound)
{
	if (bound > vaddr && bound < *next)
		*next = bound;
}

/* Returns the next address after `vaddr` where the rule may change. */
static uint64_t next_change(const struct go_code *code, uint64_t vaddr, uint64_t end)
{
	uint64_t next = end;

	lower(&next, vaddr, code->bp_saved_from);
	lower(&next, vaddr, code->bp_set_from);
	lower(&next, vaddr, code->rbx_saved_from);
	for (uint32_t i = 0; i < code->nr_exceptions; i++) {
		lower(&next, vaddr, code->exceptions[i].from);
		lower(&next, vaddr, code->exceptions[i].to);
	}
	return next;
}

/* Finds where the function's frame is complete. */
static void find_frame(struct walk *walk, struct go_code *code)
{
	struct go_pcvalue values = go_pcvalue_of(walk->table, &code->function, code->function.pcsp);
	uint64_t start;

	code->bp_saved_from = code->bp_set_from = code->rbx_saved_from = UINT64_MAX;
	while (go_pcvalue_next(&values, &start)) {
		if (values.value > 0) {
			go_code_find_frame(code, start, values.vaddr, values.value);
			return;
		}
	}
}

static int walk_function(struct walk *walk, struct go_code *code)
{
	struct go_pcvalue values = go_pcvalue_of(walk->table, &code->function, code->function.pcsp);
	uint64_t end = code->function.start_vaddr, vaddr;
	int err = 0;

	while (!err && go_pcvalue_next(&values, &vaddr)) {
		for (end = values.vaddr; !err && vaddr < end; vaddr = next_change(code, vaddr, end)) {
			struct sonde_rule rule = rule_at(code, vaddr, values.value);

			err = give(walk, vaddr, &rule);
		}
	}
	if (err || end == code->function.start_vaddr) /* no frame sizes: foreign code */
		return err;
	walk->stats->nr_fdes++;
	return walk->row(walk->arg, end, NULL);
}

/* The kernel sets the start of this function as a signal handler's return address. A return address is looked up one byte before. */
static int walk_signal_return(struct walk *walk, const struct go_function *function)
{
	static const struct sonde_rule rule = { .kind = SONDE_RULE_KIND_SIGNAL };
	int err = give(walk, function->start_vaddr - 1, &rule);

	walk->stats->nr_fdes++;
	return err ? err : walk->row(walk->arg, function->end_vaddr, NULL);
}

static int walk_one(struct walk *walk, const struct go_function *function, const struct go_function *next)
{
	struct go_code code = { .function = *function, .has_flags = walk->table->layout != GO_LAYOUT_116 };
	int err = 0;

	if (next && go_is_signal_return(next->name))
		err = walk_signal_return(walk, next);
	if (err || go_is_signal_return(function->name) || !function->pcsp)
		return err;
	read_code(walk, &code);
	find_frame(walk, &code);
	go_code_find_exceptions(&code, &walk->thread);
	return walk_function(walk, &code);
}

/* Finds out how this program stores the current goroutine. */
static void find_thread(struct walk *walk)
{
	for (uint32_t i = 0; i < walk->table->nr_functions && !(walk->thread.is_known && walk->thread.sched_bp); i++) {
		struct go_code code = { 0 };

		if (!go_pclntab_function(walk->table, i, &code.function) || strncmp(code.function.name, "runtime.", 8))
			continue;
		if (!strcmp(code.function.name, "runtime.systemstack")) {
			read_code(walk, &code);
			go_thread_read_systemstack(&code, &walk->thread);
		} else if (!strcmp(code.function.name, "runtime.morestack")) {
			read_code(walk, &code);
			go_thread_read_morestack(&code, &walk->thread);
		}
	}
}

int go_pclntab_walk(const struct go_pclntab *table, cfi_row_fn row, void *arg, struct cfi_stats *ret_stats)
{
	struct walk walk = { .table = table, .row = row, .arg = arg, .stats = ret_stats };
	CLEANUP(freep) uint8_t *window = malloc(WINDOW_BYTES);
	struct go_function function, next;
	bool has_function, has_next;
	int err = 0;

	*ret_stats = (struct cfi_stats){ 0 };
	if (!window)
		return -ENOMEM;
	walk.window = window;
	find_thread(&walk);
	has_function = go_pclntab_function(table, 0, &function);
	for (uint32_t i = 0; i < table->nr_functions && !err; i++) {
		has_next = i + 1 < table->nr_functions && go_pclntab_function(table, i + 1, &next);
		if (has_function)
			err = walk_one(&walk, &function, has_next ? &next : NULL);
		else
			ret_stats->nr_bad_fdes++;
		has_function = has_next;
		function = next;
	}
	return err;
}
