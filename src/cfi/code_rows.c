// SPDX-License-Identifier: Apache-2.0
#include "cfi/code_rows.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cfi/code_frames.h"
#include "elf/dynamic_section.h"

#define MAX_SYMBOL_BYTES   ((size_t)64 << 20)
#define MAX_FUNCTIONS	   (1u << 18)
#define READ_STEPS	   (2u << 10)  /* work to read a window */
#define ROW_STEPS	   8
#define PEEK_STEPS	   64
#define PEEK_BYTES	   512
#define NR_KNOWN_CALLS	   1024 /* a power of two */
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
};

struct known_call {
	uint64_t vaddr;
	bool keeps_sp;
};

struct walk {
	const struct elf_file *elf;
	const struct code_gap *gaps;
	size_t nr_gaps;
	struct function *functions;
	uint32_t *slots;	 /* by a hash of the address: number + 1; 0: empty */
	uint32_t *queue;	 /* numbers that were added or proved since */
	uint32_t nr_functions, max_functions, nr_queue;
	uint8_t *window;	 /* the code that was read last */
	uint64_t window_vaddr, window_size;
	struct code_frames *frames;
	struct known_call known_calls[NR_KNOWN_CALLS]; /* by the address */
};

static void walk_done(struct walk *walk)
{
	free(walk->functions);
	free(walk->slots);
	free(walk->queue);
	free(walk->window);
	code_frames_free(walk->frames);
}

/* The gap that contains an address; NULL: none. */
static const struct code_gap *gap_of(const struct walk *walk, uint64_t vaddr)
{
	size_t low = 0, high = walk->nr_gaps;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (walk->gaps[mid].start_vaddr <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low && vaddr < walk->gaps[low - 1].end_vaddr ? &walk->gaps[low - 1] : NULL;
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

/* Adds the functions of a symbol table that are in gaps. */
static int append_symbols(struct walk *walk, const char *table)
{
	const struct elf_section *section = elf_file_find_section(walk->elf, table);
	bool is_dynamic = !strcmp(table, ".dynsym");
	CLEANUP(freep) void *bytes = NULL;
	size_t size;
	int err;

	if (!section || section->type == SHT_NOBITS)
		return 0;
	err = elf_file_read_section(walk->elf, section, MAX_SYMBOL_BYTES, NULL, &bytes, &size);
	if (err)
		return err == -ENOMEM ? err : 0;
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
	walk->window = malloc(WINDOW_BYTES);
	if (!walk->slots || !walk->queue || !walk->window)
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
	uint64_t in_window = vaddr - walk->window_vaddr;

	if (in_window < walk->window_size && *size <= walk->window_size - in_window) /* vaddr may be near 2^64 */
		return walk->window + in_window;
	for (uint32_t i = 0; i < elf_file_nr_segments(walk->elf); i++) {
		const struct elf_segment *segment = elf_file_segment(walk->elf, i);
		uint64_t off = vaddr - segment->vaddr, start, wanted;

		if (vaddr < segment->vaddr || off >= segment->file_size)
			continue;
		if (*size > segment->file_size - off)
			*size = segment->file_size - off;
		start = *size > WINDOW_BYTES / 2 ? off : off & ~(uint64_t)(WINDOW_BYTES / 2 - 1); /* the next read is often just before */
		wanted = segment->file_size - start < WINDOW_BYTES ? segment->file_size - start : WINDOW_BYTES;
		walk->window_size = 0;
		code_frames_add_work(walk->frames, READ_STEPS);
		if (*size > wanted || elf_file_read_at(walk->elf, segment->file_off + start, walk->window, wanted))
			return NULL;
		walk->window_vaddr = segment->vaddr + start;
		walk->window_size = wanted;
		return walk->window + (off - start);
	}
	return NULL;
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

static bool keeps_sp(void *arg, uint64_t vaddr)
{
	struct walk *walk = arg;
	struct known_call *known = &walk->known_calls[(vaddr ^ vaddr >> 10) & (NR_KNOWN_CALLS - 1)];
	uint8_t code[PEEK_BYTES];

	if (known->vaddr != vaddr)
		*known = (struct known_call){ .vaddr = vaddr,
					      .keeps_sp = code_frames_is_plain(walk->frames, code, peek(walk, vaddr, code, sizeof(code))) };
	return known->keeps_sp;
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
	if (err || !walk->nr_functions)
		return err;
	sort_functions(walk);
	return index_functions(walk);
}

static int read_function(struct walk *walk, struct function *function, cfi_row_fn row, void *arg, struct cfi_stats *stats)
{
	const struct code_gap *gap = gap_of(walk, function->vaddr);
	uint64_t left = gap ? gap->end_vaddr - function->vaddr : MAX_UNSIZED_BYTES,
		 size = function->size ? function->size : MAX_UNSIZED_BYTES;
	struct code_function code = { .vaddr = function->vaddr,
				      .is_sized = function->size,
				      .is_start = function->is_start,
				      .is_other = is_function,
				      .keeps_sp = keeps_sp,
				      .arg = walk };
	const uint64_t *targets;
	size_t nr_targets;
	uint64_t nr_rows;
	int verdict, err;

	function->progress = SETTLED;
	size = size < left ? size : left;
	code.code = code_at(walk, code.vaddr, &size);
	code.size = size;
	if (!code.code)
		return 0;
	verdict = code_frames_read(walk->frames, &code);
	if (verdict < 0 || verdict == CODE_CONTRADICTS)
		return verdict < 0 ? verdict : 0;
	if (verdict == CODE_MAY_BE && !function->is_called) {
		function->progress = MAY_BE;
		return 0;
	}
	targets = code_frames_targets(walk->frames, &nr_targets);
	for (size_t i = 0; i < nr_targets; i++) {
		if (gap_of(walk, targets[i]) || function->is_start) /* what the start calls may have rows, while what that calls has none */
			add_called(walk, targets[i]);
	}
	if (!gap)
		return 0;
	stats->nr_fdes++;
	nr_rows = stats->nr_rows;
	err = code_frames_rows(walk->frames, false, row, arg, stats);
	code_frames_add_work(walk->frames, (stats->nr_rows - nr_rows) * ROW_STEPS + size / 8);
	return err;
}

int code_rows_walk(const struct elf_file *elf, const struct code_gap *gaps, size_t nr_gaps, cfi_row_fn row, void *arg,
		   struct cfi_stats *ret_stats)
{
	CLEANUP(walk_done) struct walk walk = { .elf = elf, .gaps = gaps, .nr_gaps = nr_gaps };
	struct cfi_stats stats = { 0 };
	int err;

	if (!nr_gaps || elf_file_machine(elf) != EM_X86_64)
		return 0;
	walk.frames = code_frames_new();
	err = walk.frames ? find_functions(&walk) : -ENOMEM;
	if (err)
		return err;
	for (uint32_t i = 0; !err && i < walk.nr_queue && !code_frames_is_spent(walk.frames); i++)
		err = read_function(&walk, &walk.functions[walk.queue[i]], row, arg, &stats);
	*ret_stats = stats;
	return err;
}
