// SPDX-License-Identifier: Apache-2.0
#include "cfi/code_rows.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cfi/code_frames.h"
#include "cfi/code_window.h"
#include "cfi/native_image.h"
#include "elf/dynamic_section.h"

#define MAX_SYMBOL_BYTES   ((size_t)64 << 20)
#define MAX_FUNCTIONS	   (1u << 18)
#define READ_STEPS	   (2u << 10)  /* work to read a window */
#define ROW_STEPS	   8
#define PEEK_STEPS	   64
#define PEEK_BYTES	   512
#define NR_KNOWN_CALLS	   1024 /* a power of two */
#define MAX_ENDLESS	   32
#define START_BYTES	   48
#define MAX_UNSIZED_BYTES  (32u << 10)
#define WINDOW_BYTES	   (256u << 10)

enum progress { WAITS, MAY_BE, SETTLED };

struct function {
	uint64_t vaddr;
	uint32_t size;	  /* 0: not known */
	uint8_t progress; /* MAY_BE: read, but not proved */
	bool is_called;	  /* something proved leads here, or may: it is exported */
	bool is_start;
	bool starts_thread; /* its address is passed to what starts threads */
};

struct known_call {
	uint64_t vaddr;
	bool keeps_sp, is_clone;
};

struct walk {
	const struct elf_file *elf;
	const struct code_gap *gaps;
	size_t nr_gaps;
	struct function *functions;
	uint32_t *slots;	 /* by a hash of the address: number + 1; 0: empty */
	uint32_t *queue;	 /* numbers that were added or proved since */
	uint32_t nr_functions, max_functions, nr_queue;
	struct code_window window;
	struct code_frames *frames;
	struct known_call known_calls[NR_KNOWN_CALLS]; /* by the address */
	uint64_t endless[MAX_ENDLESS];			/* functions that never return, as far as it matters */
	size_t nr_endless;
};

static void walk_done(struct walk *walk)
{
	free(walk->functions);
	free(walk->slots);
	free(walk->queue);
	code_window_done(&walk->window);
	code_frames_free(walk->frames);
}

/* The gap that contains an address; NULL: none. */
static const struct code_gap *gap_of(const struct walk *walk, uint64_t vaddr)
{
	uint32_t nr = array_count_starts(walk->gaps, (uint32_t)walk->nr_gaps, sizeof(*walk->gaps), vaddr);

	return nr && vaddr < walk->gaps[nr - 1].end_vaddr ? &walk->gaps[nr - 1] : NULL;
}

static uint32_t *slot_of(const struct walk *walk, uint64_t vaddr)
{
	uint32_t mask = walk->max_functions * 2 - 1, i = (uint32_t)(vaddr * 0x9e3779b97f4a7c15ULL >> 40) & mask;

	while (walk->slots[i] && walk->functions[walk->slots[i] - 1].vaddr != vaddr) {
		i = (i + 1) & mask;
		code_frames_add_work(walk->frames, 1);
	}
	return &walk->slots[i];
}

static bool is_function(void *arg, uint64_t vaddr)
{
	return *slot_of(arg, vaddr);
}

/* Something proved leads to this address, or a program starts there. */
static void add_called(struct walk *walk, uint64_t vaddr)
{
	uint32_t *slot = slot_of(walk, vaddr);

	if (!*slot) {
		if (walk->nr_functions == walk->max_functions)
			return;
		walk->functions[walk->nr_functions] = (struct function){ .vaddr = vaddr, .is_called = true };
		walk->queue[walk->nr_queue++] = walk->nr_functions;
		*slot = ++walk->nr_functions;
	} else if (!walk->functions[*slot - 1].is_called) {
		walk->functions[*slot - 1].is_called = true;
		if (walk->functions[*slot - 1].progress == MAY_BE)
			walk->queue[walk->nr_queue++] = *slot - 1;
	}
}

static int append(struct walk *walk, const struct function *function)
{
	if (walk->nr_functions == walk->max_functions) {
		uint32_t max = walk->max_functions ? walk->max_functions * 2 : 1024;
		struct function *more = realloc(walk->functions, max * sizeof(*more));

		if (!more)
			return -ENOMEM;
		walk->functions = more;
		walk->max_functions = max;
	}
	walk->functions[walk->nr_functions++] = *function;
	return 0;
}

/* *ret_bytes is owned by the caller; *ret_size: 0 where there is no such section, or it cannot be read. 0 or -ENOMEM. */
static int read_section(const struct walk *walk, const char *name, void **ret_bytes, size_t *ret_size)
{
	const struct elf_section *section = elf_file_find_section(walk->elf, name);
	int err = 0;

	*ret_size = 0;
	if (section && section->type != SHT_NOBITS)
		err = elf_file_read_section(walk->elf, section, MAX_SYMBOL_BYTES, NULL, ret_bytes, ret_size);
	if (err)
		*ret_size = 0;
	return err == -ENOMEM ? err : 0;
}

/* Adds the functions of a symbol table that are in gaps. */
static int append_symbols(struct walk *walk, const char *table)
{
	bool is_dynamic = !strcmp(table, ".dynsym");
	CLEANUP(freep) void *bytes = NULL;
	size_t size;
	int err = read_section(walk, table, &bytes, &size);

	for (size_t at = 0; !err && size - at >= sizeof(Elf64_Sym) && walk->nr_functions < MAX_FUNCTIONS; at += sizeof(Elf64_Sym)) {
		Elf64_Sym symbol;

		memcpy(&symbol, (const uint8_t *)bytes + at, sizeof(symbol));
		if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF || !symbol.st_size ||
		    symbol.st_size > UINT32_MAX || !gap_of(walk, symbol.st_value))
			continue;
		err = append(walk, &(struct function){ .vaddr = symbol.st_value,
						       .size = (uint32_t)symbol.st_size,
						       .is_called = is_dynamic && ELF64_ST_BIND(symbol.st_info) != STB_LOCAL });
	}
	return err;
}

/* Adds what a native image's own table of the C functions that it calls leads to, if it is linked to a fixed address. */
static int append_pointers(struct walk *walk)
{
	CLEANUP(freep) void *bytes = NULL;
	size_t size;
	int err;

	if (!native_image_is(walk->elf) || elf_file_type(walk->elf) != ET_EXEC)
		return 0;
	err = read_section(walk, ".data", &bytes, &size);
	for (size_t at = 0; !err && size - at >= sizeof(uint64_t) && walk->nr_functions < MAX_FUNCTIONS; at += sizeof(uint64_t)) {
		uint64_t vaddr;

		memcpy(&vaddr, (const uint8_t *)bytes + at, sizeof(vaddr));
		if (gap_of(walk, vaddr))
			err = append(walk, &(struct function){ .vaddr = vaddr });
	}
	return err;
}

static int compare_functions(const void *a, const void *b)
{
	const struct function *left = a, *right = b;

	return (left->vaddr > right->vaddr) - (left->vaddr < right->vaddr);
}

/* Sorts by address, so code is read in large pieces; removes duplicates. */
static void sort_functions(struct walk *walk)
{
	uint32_t nr = 0;

	qsort(walk->functions, walk->nr_functions, sizeof(*walk->functions), compare_functions);
	for (uint32_t i = 0; i < walk->nr_functions; i++) {
		struct function *last = nr ? &walk->functions[nr - 1] : NULL, *next = &walk->functions[i];

		if (!last || last->vaddr != next->vaddr) {
			walk->functions[nr++] = *next;
			continue;
		}
		last->size = last->size > next->size ? last->size : next->size;
		last->is_called |= next->is_called;
		last->is_start |= next->is_start;
	}
	walk->nr_functions = nr;
}

/* Makes the index, with room for functions without a symbol. */
static int index_functions(struct walk *walk)
{
	struct function *functions;
	uint32_t max = 4096;

	while (max < walk->nr_functions * 2)
		max *= 2;
	functions = realloc(walk->functions, max * sizeof(*functions));
	if (!functions)
		return -ENOMEM;
	walk->functions = functions;
	walk->max_functions = max;
	walk->slots = calloc((size_t)max * 2, sizeof(*walk->slots));
	walk->queue = malloc((size_t)max * 2 * sizeof(*walk->queue)); /* each is added at most twice */
	if (!walk->slots || !walk->queue)
		return -ENOMEM;
	code_frames_add_work(walk->frames, walk->nr_functions); /* includes the sort */
	for (uint32_t i = 0; i < walk->nr_functions && !code_frames_is_spent(walk->frames); i++) {
		*slot_of(walk, walk->functions[i].vaddr) = i + 1;
		walk->queue[walk->nr_queue++] = i;
	}
	return 0;
}

/* The code at an address, *size bytes or as many as there are. NULL: cannot be read. */
static const uint8_t *code_at(struct walk *walk, uint64_t vaddr, uint64_t *size)
{
	if (!code_window_has(&walk->window, vaddr, *size))
		code_frames_add_work(walk->frames, READ_STEPS);
	return code_window_at(&walk->window, vaddr, size);
}

/* Reads a few bytes of code elsewhere, while the window is in use. Returns their number. */
static uint64_t peek(struct walk *walk, uint64_t vaddr, uint8_t *to, uint64_t size)
{
	uint64_t left;

	for (uint32_t i = 0; i < elf_file_nr_segments(walk->elf); i++) {
		const struct elf_segment *segment = elf_file_segment(walk->elf, i);

		if (vaddr < segment->vaddr || vaddr - segment->vaddr >= segment->file_size)
			continue;
		left = segment->file_size - (vaddr - segment->vaddr);
		size = size < left ? size : left;
		code_frames_add_work(walk->frames, PEEK_STEPS);
		return elf_file_read_at(walk->elf, segment->file_off + (vaddr - segment->vaddr), to, size) ? 0 : size;
	}
	return 0;
}

static const struct known_call *known_call(struct walk *walk, uint64_t vaddr)
{
	struct known_call *known = &walk->known_calls[(vaddr ^ vaddr >> 10) & (NR_KNOWN_CALLS - 1)];
	uint8_t code[PEEK_BYTES];
	uint64_t size;

	if (known->vaddr != vaddr) {
		size = peek(walk, vaddr, code, sizeof(code));
		*known = (struct known_call){ .vaddr = vaddr,
					      .keeps_sp = code_frames_is_plain(walk->frames, code, size),
					      .is_clone = code_frames_is_clone(code, size) };
	}
	return known;
}

static bool keeps_sp(void *arg, uint64_t vaddr)
{
	return known_call(arg, vaddr)->keeps_sp;
}

static bool is_clone(void *arg, uint64_t vaddr)
{
	return known_call(arg, vaddr)->is_clone;
}

static bool never_returns(void *arg, uint64_t vaddr)
{
	const struct walk *walk = arg;

	for (size_t i = 0; i < walk->nr_endless; i++) {
		if (walk->endless[i] == vaddr)
			return true;
	}
	return false;
}

static bool is_code(void *arg, uint64_t vaddr)
{
	return gap_of(arg, vaddr);
}

/* Is the entry point a program's start? Every ELF file may have one; a library's may be a function that others call. It is a start in a
 * file that cannot be loaded as a library, and where the code treats its stack as having no caller (dynamic linkers are libraries, too). */
static bool is_start(struct walk *walk, uint64_t entry)
{
	struct dynamic_section dynamic;
	uint8_t code[START_BYTES];

	if (elf_file_type(walk->elf) == ET_EXEC || (!dynamic_section_read(walk->elf, &dynamic) && dynamic.flags_1 & DF_1_PIE))
		return true;
	return code_frames_is_start(code, peek(walk, entry, code, sizeof(code)));
}

static int find_functions(struct walk *walk)
{
	uint64_t entry = elf_file_entry(walk->elf);
	int err = 0;

	if (entry && gap_of(walk, entry) && is_start(walk, entry))
		err = append(walk, &(struct function){ .vaddr = entry, .is_called = true, .is_start = true });
	if (!err)
		err = append_symbols(walk, ".dynsym");
	if (!err)
		err = append_symbols(walk, ".symtab");
	if (!err)
		err = append_pointers(walk);
	if (err || !walk->nr_functions)
		return err;
	sort_functions(walk);
	return index_functions(walk);
}

/* Reads code; its end is not known if `size` is 0. *ret_size: how much could be its own. -ENOMEM or enum code_verdict. */
static int read_code(struct walk *walk, const struct function *function, uint64_t *ret_size)
{
	const struct code_gap *gap = gap_of(walk, function->vaddr);
	uint64_t left = gap ? gap->end_vaddr - function->vaddr : MAX_UNSIZED_BYTES,
		 size = function->size ? function->size : MAX_UNSIZED_BYTES;
	struct code_function code = { .vaddr = function->vaddr,
				      .is_sized = function->size,
				      .is_start = function->is_start,
				      .is_other = is_function,
				      .keeps_sp = keeps_sp,
				      .never_returns = never_returns,
				      .is_clone = is_clone,
				      .is_code = is_code,
				      .arg = walk };

	size = size < left ? size : left;
	code.code = code_at(walk, code.vaddr, &size);
	code.size = *ret_size = size;
	return code.code ? code_frames_read(walk->frames, &code) : CODE_CONTRADICTS;
}

/* A thread's first function ends in a call of one that ends the thread. Learns which of those that were called just now never return. */
static int learn_endless(struct walk *walk)
{
	size_t nr;
	const uint64_t *targets = code_frames_targets(walk->frames, &nr);
	uint64_t callees[MAX_ENDLESS], size;
	int verdict = 0;

	nr = nr < MAX_ENDLESS ? nr : MAX_ENDLESS;
	memcpy(callees, targets, nr * sizeof(*callees));
	for (size_t i = 0; verdict >= 0 && i < nr && walk->nr_endless < MAX_ENDLESS; i++) {
		verdict = read_code(walk, &(struct function){ .vaddr = callees[i] }, &size);
		if (verdict == CODE_MAY_BE && code_frames_never_returns(walk->frames) && !never_returns(walk, callees[i]))
			walk->endless[walk->nr_endless++] = callees[i];
	}
	return verdict < 0 ? verdict : 0;
}

/* Where the function that was just read leads. */
static void take_targets(struct walk *walk, bool is_start)
{
	size_t nr;
	const uint64_t *targets = code_frames_targets(walk->frames, &nr);

	for (size_t i = 0; i < nr; i++) {
		if (gap_of(walk, targets[i]) || is_start) /* what the start calls may have rows, while what that calls has none */
			add_called(walk, targets[i]);
	}
	targets = code_frames_thread_starts(walk->frames, &nr);
	for (size_t i = 0; i < nr; i++) {
		uint32_t *slot;

		add_called(walk, targets[i]);
		slot = slot_of(walk, targets[i]);
		if (*slot)
			walk->functions[*slot - 1].starts_thread = true;
	}
}

static int read_function(struct walk *walk, struct function *function, cfi_row_fn row, void *arg, struct cfi_stats *stats)
{
	uint64_t nr_rows = stats->nr_rows, size;
	int verdict = read_code(walk, function, &size), err = 0;

	function->progress = SETTLED;
	if (verdict == CODE_CONTRADICTS && function->starts_thread) {
		err = learn_endless(walk);
		verdict = err ? err : read_code(walk, function, &size);
	}
	if (verdict < 0 || verdict == CODE_CONTRADICTS)
		return verdict < 0 ? verdict : 0;
	if (verdict == CODE_MAY_BE && !function->is_called) {
		function->progress = MAY_BE;
		return 0;
	}
	take_targets(walk, function->is_start);
	if (!gap_of(walk, function->vaddr))
		return 0;
	stats->nr_fdes++;
	err = code_frames_rows(walk->frames, false, row, arg, stats);
	code_frames_add_work(walk->frames, (stats->nr_rows - nr_rows) * ROW_STEPS + size / 8);
	return err;
}

int code_rows_walk(const struct elf_file *elf, const struct code_gap *gaps, size_t nr_gaps, cfi_row_fn row, void *arg,
		   struct cfi_stats *ret_stats)
{
	CLEANUP(walk_done) struct walk walk = {
		.elf = elf, .gaps = gaps, .nr_gaps = nr_gaps, .window = { .elf = elf, .max_bytes = WINDOW_BYTES }
	};
	struct cfi_stats stats = { 0 };
	int err;

	if (!nr_gaps || elf_file_machine(elf) != EM_X86_64)
		return 0;
	walk.frames = code_frames_new(CODE_FRAMES_MAX_STEPS);
	err = walk.frames ? find_functions(&walk) : -ENOMEM;
	if (err)
		return err;
	for (uint32_t i = 0; !err && i < walk.nr_queue && !code_frames_is_spent(walk.frames); i++)
		err = read_function(&walk, &walk.functions[walk.queue[i]], row, arg, &stats);
	*ret_stats = stats;
	return err;
}
