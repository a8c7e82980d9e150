// SPDX-License-Identifier: Apache-2.0
#include "symbolize/symbolizer.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/u64_map.h"
#include "pclntab/go_pclntab.h"
#include "symbolize/debug_file.h"
#include "symbolize/demangle.h"
#include "symbolize/kallsyms.h"

#define MAX_GO_FRAMES	 64
#define MAX_DWARF_FRAMES 256
#define MAX_STUB_BYTES	 4096 /* of BPF code other than programs: trampolines and dispatchers take at most a page */

/* What was found for a key; NULL: nothing, do not look again. Owns the items. */
struct cache {
	struct u64_map numbers;
	void **items;
	uint32_t nr, capacity;
};

/* A file's function names. */
struct names {
	struct go_pclntab *go;	      /* NULL: not a Go file */
	struct symbol_table *symbols; /* NULL: it has none */
	bool symbols_read;	      /* set when a look-up misses in Go's table */
	struct dwarf_lines *lines;    /* NULL: it has none, or lines are not enabled */
	struct elf_file *debug;	      /* the file they are read from; NULL: the file itself */
	bool lines_read;
};

struct symbolizer {
	char *kallsyms_path, *debug_dir;
	struct kallsyms *kallsyms;
	const struct kernel_code *programs; /* borrowed from the caller */
	uint32_t nr_programs;
	bool lines;
	const struct elf_file *fetched; /* NULL: none */
	const struct symbol_addresses *addresses; /* NULL: all */
	int kernel_err;	      /* 0: not read yet, or read */
	struct cache objects; /* by the caller's object number: struct names */
	struct cache texts;   /* by the address of the linked name in its table: the demangled name */
};

static bool cache_find(const struct cache *cache, uint64_t key, void **ret_item)
{
	const uint32_t *number = u64_map_find(&cache->numbers, key);

	if (number)
		*ret_item = cache->items[*number];
	return number;
}

/* Takes over `item` on success. 0 or -ENOMEM. */
static int cache_add(struct cache *cache, uint64_t key, void *item)
{
	int err;

	if (cache->nr == cache->capacity) {
		uint32_t capacity = cache->capacity ? cache->capacity * 2 : 64;
		void **items = capacity > cache->capacity ? reallocarray(cache->items, capacity, sizeof(*items)) : NULL;

		if (!items)
			return -ENOMEM;
		cache->items = items;
		cache->capacity = capacity;
	}
	err = u64_map_add(&cache->numbers, key, cache->nr);
	if (!err)
		cache->items[cache->nr++] = item;
	return err;
}

static void cache_done(struct cache *cache, void (*free_item)(void *item))
{
	for (uint32_t i = 0; i < cache->nr; i++)
		free_item(cache->items[i]);
	free(cache->items);
	u64_map_done(&cache->numbers);
}

static void free_names(void *item)
{
	struct names *names = item;

	if (!names)
		return;
	go_pclntab_free(names->go);
	symbol_table_free(names->symbols);
	dwarf_lines_free(names->lines);
	elf_file_free(names->debug);
	free(names);
}

static char *copy_or(const char *text, const char *fallback)
{
	return strdup(text ? text : fallback);
}

struct symbolizer *symbolizer_new(const struct symbolizer_options *options)
{
	struct symbolizer *symbolizer = calloc(1, sizeof(*symbolizer));

	if (!symbolizer)
		return NULL;
	symbolizer->kallsyms_path = copy_or(options ? options->kallsyms_path : NULL, "/proc/kallsyms");
	symbolizer->debug_dir = copy_or(options ? options->debug_dir : NULL, "/usr/lib/debug");
	symbolizer->lines = options && options->lines;
	symbolizer->programs = options ? options->programs : NULL;
	symbolizer->nr_programs = options ? options->nr_programs : 0;
	symbolizer->fetched = options ? options->fetched : NULL;
	symbolizer->addresses = options ? options->addresses : NULL;
	if (!symbolizer->kallsyms_path || !symbolizer->debug_dir) {
		symbolizer_free(symbolizer);
		return NULL;
	}
	return symbolizer;
}

void symbolizer_free(struct symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	cache_done(&symbolizer->objects, free_names);
	cache_done(&symbolizer->texts, free);
	kallsyms_free(symbolizer->kallsyms);
	free(symbolizer->kallsyms_path);
	free(symbolizer->debug_dir);
	free(symbolizer);
}

static int answer(struct symbolizer *symbolizer, const char *system_name, uint64_t start, struct symbol_name *ret_name)
{
	void *text = NULL;

	if (demangle_is_candidate(system_name) && !cache_find(&symbolizer->texts, (uintptr_t)system_name, &text)) {
		int err;

		text = demangle(system_name);
		err = cache_add(&symbolizer->texts, (uintptr_t)system_name, text);
		if (err) {
			free(text);
			return err;
		}
	}
	*ret_name = (struct symbol_name){ .name = text ? text : system_name, .system_name = system_name, .start = start, .file = "" };
	return 0;
}

static bool is_bpf(const char *name)
{
	const char *module = strrchr(name, ' ');

	return module && strcmp(module, " [bpf]") == 0;
}

static int compare_starts(const void *key, const void *item)
{
	uint64_t start = *(const uint64_t *)key, other = ((const struct kernel_code *)item)->start;

	return start < other ? -1 : start > other;
}

const struct kernel_code *symbolizer_program(const struct symbolizer *symbolizer, uint64_t start)
{
	if (!symbolizer->nr_programs)
		return NULL;
	return bsearch(&start, symbolizer->programs, symbolizer->nr_programs, sizeof(*symbolizer->programs), compare_starts);
}

static uint64_t bpf_size(const struct symbolizer *symbolizer, uint64_t start)
{
	const struct kernel_code *code = symbolizer_program(symbolizer, start);

	return code ? code->size_bytes : MAX_STUB_BYTES;
}

/* Reads it once. 0 or an error of symbolizer_kernel. */
static int read_kallsyms(struct symbolizer *symbolizer)
{
	int err;

	if (!symbolizer->kallsyms && !symbolizer->kernel_err) {
		err = kallsyms_read(symbolizer->kallsyms_path, &symbolizer->kallsyms);
		if (err)
			symbolizer->kernel_err = err == -EACCES ? err : -ENOENT;
	}
	return symbolizer->kernel_err;
}

bool symbolizer_is_scheduler(struct symbolizer *symbolizer, uint64_t kaddr)
{
	return !read_kallsyms(symbolizer) && kallsyms_is_scheduler(symbolizer->kallsyms, kaddr);
}

int symbolizer_kernel(struct symbolizer *symbolizer, uint64_t kaddr, struct symbol_name *ret_name)
{
	const char *name;
	uint64_t start;
	int err = read_kallsyms(symbolizer);

	if (err)
		return err;
	err = kallsyms_find(symbolizer->kallsyms, kaddr, &name, &start);
	if (!err && is_bpf(name) && kaddr - start >= bpf_size(symbolizer, start))
		err = -ENOENT;
	return err ? err : answer(symbolizer, name, start, ret_name);
}

uint64_t symbolizer_kernel_call(struct symbolizer *symbolizer, uint64_t kaddr)
{
	struct symbol_name name;

	if (symbolizer_kernel(symbolizer, kaddr - 1, &name))
		return kaddr - 1;
	return strncmp(name.name, "__pfx_", 6) == 0 || strncmp(name.name, "__cfi_", 6) == 0 ? kaddr : kaddr - 1;
}

/* Returns the best symbol table: the file's own .symtab, the debug file's, the fetched one's, or the file's .dynsym and .gnu_debugdata.
 * NULL: none. */
static struct symbol_table *read_object(const struct symbolizer *symbolizer, const struct elf_file *elf, const char *path)
{
	CLEANUP(elf_file_freep) struct elf_file *debug = NULL;
	struct symbol_table *own = NULL, *better = NULL;

	if (symbol_table_read(elf, symbolizer->addresses, NULL, &own))
		own = NULL;
	if (own && !symbol_table_is_dynamic(own))
		return own;
	if (debug_file_open(elf, path, symbolizer->debug_dir, &debug) ||
	    symbol_table_read_debug(elf, debug, symbolizer->addresses, NULL, &better)) {
		if (!symbolizer->fetched || symbol_table_read_debug(elf, symbolizer->fetched, symbolizer->addresses, NULL, &better))
			return own;
	}
	symbol_table_free(own);
	return better;
}

static int find_names(struct symbolizer *symbolizer, uint32_t object, const struct elf_file *elf, struct names **ret_names)
{
	struct names *names;
	void *found;
	int err;

	if (cache_find(&symbolizer->objects, object, &found)) {
		*ret_names = found;
		return 0;
	}
	names = calloc(1, sizeof(*names));
	if (!names)
		return -ENOMEM;
	if (go_pclntab_read(elf, NULL, &names->go))
		names->go = NULL;
	err = cache_add(&symbolizer->objects, object, names);
	if (err)
		free_names(names);
	else
		*ret_names = names;
	return err;
}

/* Names are borrowed from the table, which lives as long as the symbolizer. */
static int go_names(struct symbolizer *symbolizer, const struct go_pclntab *go, uint64_t elf_vaddr, struct symbol_name *names,
		    uint32_t max_names, uint32_t *ret_nr)
{
	struct go_frame frames[MAX_GO_FRAMES];
	uint32_t nr;
	int err = go_pclntab_frames(go, elf_vaddr, frames, max_names < MAX_GO_FRAMES ? max_names : MAX_GO_FRAMES, &nr);

	for (uint32_t i = 0; i < nr && !err; i++) {
		err = answer(symbolizer, frames[i].name, frames[i].start_vaddr, &names[i]);
		if (err)
			break;
		names[i].file = frames[i].file;
		names[i].line = frames[i].line;
		names[i].start_line = frames[i].start_line;
	}
	if (!err)
		*ret_nr = nr;
	return err;
}

static void read_lines(const struct symbolizer *symbolizer, struct names *known, const struct elf_file *elf, const char *path)
{
	known->lines_read = true;
	if (dwarf_lines_open(elf, symbolizer->debug_dir, NULL, &known->lines) == 0)
		return;
	known->lines = NULL;
	if (debug_file_open(elf, path, symbolizer->debug_dir, &known->debug) == 0 &&
	    dwarf_lines_open(known->debug, symbolizer->debug_dir, NULL, &known->lines) == 0)
		return;
	known->lines = NULL;
	if (symbolizer->fetched && dwarf_lines_open(symbolizer->fetched, symbolizer->debug_dir, NULL, &known->lines))
		known->lines = NULL;
}

static bool has_section(const struct elf_file *elf, const char *name)
{
	const struct elf_section *section = elf_file_find_section(elf, name);

	return section && section->type != SHT_NOBITS && section->size;
}

bool symbolizer_wants_debug(const struct symbolizer *symbolizer, const struct elf_file *elf, const char *path)
{
	CLEANUP(elf_file_freep) struct elf_file *debug = NULL;
	bool symbols = has_section(elf, ".symtab"),
	     lines = !symbolizer->lines || has_section(elf, ".debug_info") || has_section(elf, ".zdebug_info");

	if ((symbols && lines) || has_section(elf, ".gopclntab") || has_section(elf, ".data.rel.ro.gopclntab"))
		return false;
	if (debug_file_open(elf, path, symbolizer->debug_dir, &debug))
		return true;
	return !(symbols || has_section(debug, ".symtab")) ||
	       !(lines || has_section(debug, ".debug_info") || has_section(debug, ".zdebug_info"));
}

/* `symbol_err` is 0 if `symbol` is valid. It gives the name of the function that the code belongs to, the same name as without lines. */
static int line_names(struct symbolizer *symbolizer, struct dwarf_lines *lines, uint64_t elf_vaddr, int symbol_err,
		      const struct symbol_name *symbol, struct symbol_name *names, uint32_t max_names, uint32_t *ret_nr)
{
	struct dwarf_frame frames[MAX_DWARF_FRAMES];
	uint32_t nr = 0, nr_frames;
	int err = dwarf_lines_find(lines, elf_vaddr, frames, max_names < MAX_DWARF_FRAMES ? max_names : MAX_DWARF_FRAMES, &nr_frames);

	if (err)
		return err;
	for (uint32_t i = 0; i < nr_frames; i++) {
		bool is_symbol = !symbol_err && i == nr_frames - 1;

		if (is_symbol)
			names[nr] = *symbol;
		else if (!*frames[i].name)
			continue;
		else
			err = answer(symbolizer, frames[i].name, symbol_err ? frames[i].start_vaddr : symbol->start, &names[nr]);
		if (err)
			return err;
		names[nr].file = frames[i].file;
		names[nr].line = frames[i].line;
		names[nr++].start_line = frames[i].start_line;
	}
	if (!nr)
		return -ENOENT;
	*ret_nr = nr;
	return 0;
}

int symbolizer_object(struct symbolizer *symbolizer, uint32_t object, const struct elf_file *elf, const char *path, uint64_t elf_vaddr,
		      struct symbol_name *names, uint32_t max_names, uint32_t *ret_nr)
{
	struct symbol_name own = { 0 };
	struct symbol symbol;
	struct names *known;
	int err = find_names(symbolizer, object, elf, &known), symbol_err;

	if (err)
		return err;
	if (known->go) {
		err = go_names(symbolizer, known->go, elf_vaddr, names, max_names, ret_nr);
		if (err != -ENOENT)
			return err;
	}
	if (!known->symbols_read) {
		known->symbols = read_object(symbolizer, elf, path);
		known->symbols_read = true;
	}
	if (symbolizer->lines && !known->lines_read)
		read_lines(symbolizer, known, elf, path);
	symbol_err = known->symbols ? symbol_table_find(known->symbols, elf_vaddr, &symbol) : -ENODATA;
	if (!symbol_err)
		symbol_err = answer(symbolizer, symbol.name, symbol.elf_vaddr, &own);
	if (symbol_err == -ENOMEM)
		return symbol_err;
	err = known->lines ? line_names(symbolizer, known->lines, elf_vaddr, symbol_err, &own, names, max_names, ret_nr) : -ENOENT;
	if (err != -ENOENT || symbol_err)
		return err == -ENOENT ? symbol_err : err;
	names[0] = own;
	*ret_nr = 1;
	return 0;
}

struct symbol_extent symbolizer_extent(const struct symbolizer *symbolizer, uint32_t object, uint64_t elf_vaddr)
{
	struct symbol_extent extent = { .start = elf_vaddr, .end = elf_vaddr + 1 };
	const struct names *known;
	void *found;

	if (!cache_find(&symbolizer->objects, object, &found))
		return extent;
	known = found;
	if (known->go) {
		go_pclntab_extent(known->go, elf_vaddr, &extent.start, &extent.end);
		return extent;
	}
	extent = (struct symbol_extent){ .end = UINT64_MAX };
	if (known->symbols)
		symbol_table_extent(known->symbols, elf_vaddr, &extent.start, &extent.end);
	if (known->lines)
		dwarf_lines_narrow(known->lines, elf_vaddr, &extent.start, &extent.end);
	return extent;
}

struct dwarf_lines_counts symbolizer_lines_counts(const struct symbolizer *symbolizer)
{
	struct dwarf_lines_counts sum = { 0 };

	for (uint32_t i = 0; i < symbolizer->objects.nr; i++) {
		const struct names *names = symbolizer->objects.items[i];

		if (names->lines) {
			struct dwarf_lines_counts counts = dwarf_lines_counts(names->lines);

			sum.nr_missing_dwo += counts.nr_missing_dwo;
			sum.nr_cut += counts.nr_cut;
			sum.nr_packed += counts.nr_packed;
		}
	}
	return sum;
}

int symbolizer_jit(struct symbolizer *symbolizer, const struct jit_names *jit, uint64_t pc, struct symbol_name *ret_name)
{
	struct jitdump_place place;
	int err = jit_names_find(jit, pc, &place);

	if (!err)
		err = answer(symbolizer, place.name, place.start, ret_name);
	if (err)
		return err;
	ret_name->file = place.file;
	ret_name->line = place.line;
	return 0;
}
