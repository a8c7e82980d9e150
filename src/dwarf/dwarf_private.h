/* SPDX-License-Identifier: Apache-2.0 */
/* What dwarf_lines.c (files, memory, look-ups), dwarf_unit.c (a unit's tables) and dwarf_names.c share. */
#pragma once
#include <elfutils/libdw.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/u64_map.h"
#include "dwarf/dwarf_lines.h"
#include "dwarf/dwarf_spans.h"

#define DWARF_MAX_NAME ((size_t)16 << 10) /* of a function or path; longer ones count as missing */

struct dwarf_node { /* a function or an inlined one */
	Dwarf_Off die;
	/* The node it was inlined into, with a lower number. DWARF_NONE: it is a function of its own. */
	uint32_t parent;
	uint32_t facts;	 /* DWARF_NONE until first used */
};

struct dwarf_facts {
	const char *name, *call_file;
	uint64_t start_vaddr;
	uint32_t start_line, call_line;
};

struct dwarf_row {
	uint64_t vaddr;
	uint32_t line, file; /* index into the unit's files; DWARF_NONE: no code from here on */
};

struct dwarf_unit {
	Dwarf_Off die; /* of the unit, in the file itself */
	bool is_read, is_counted;
	uint64_t last_use;
	uint64_t nr_bytes; /* of the tables */
	struct dwarf_spans code;
	struct dwarf_node *nodes;
	struct dwarf_facts *facts;
	struct dwarf_row *rows;
	const char **files;
	uint32_t nr_nodes, max_nodes, nr_facts, max_facts, nr_rows, max_rows, nr_files;
};

struct dwarf_bytes { /* of a section; none when size is 0 */
	const void *at;
	size_t size;
};

struct dwarf_lines {
	const struct elf_file *file; /* borrowed */
	char *debug_dir;
	Elf *elf, *alt_elf;
	Dwarf *dwarf, *alt;
	struct elf_file *alt_file;
	void *mapping; /* of the file; NULL: it is in memory */
	size_t nr_mapped;
	bool is_compressed;
	struct dwarf_lines_limits limits;
	struct dwarf_bytes line_tables, line_texts, debug_texts; /* .debug_line, .debug_line_str, .debug_str, while libdw is open */
	struct dwarf_spans code;				 /* the owners are units */
	struct dwarf_unit *units;
	uint32_t nr_units, max_units;
	/* Size of our tables; about what libdw has allocated since it was opened. */
	uint64_t nr_bytes, nr_libdw_bytes;
	uint64_t nr_page_bytes;		   /* about what was read from the mapping */
	uint64_t nr_uses;
	struct dwarf_lines_counts counts;
	struct arena *texts;
	struct u64_map text_numbers; /* by hash */
	const char **text_list;
	uint32_t nr_texts, max_texts;
};

/* Grows an array of *capacity items to hold one more than `nr`, at most `max` items. NULL: no memory or too many; `items` stays. */
void *dwarf_grow(void *items, uint32_t nr, uint32_t *capacity, uint32_t max, size_t item_size);
/* Returns one copy of each text, kept until dwarf_lines_free. 0; -ENOMEM; -EFBIG: too many, or too long. */
MUST_CHECK int dwarf_text(struct dwarf_lines *lines, const char *text, const char **ret_text);
/* The same for a path. Its directory `between` (may be "") may be relative to the unit's directory `folder` (may be NULL), or be that
 * directory. If `folder` is relative, too, a path that starts with it counts as complete. Removes "./" and "//". */
MUST_CHECK int dwarf_path(struct dwarf_lines *lines, const char *folder, const char *between, const char *name, const char **ret_path);
/* Returns a text attribute of a DIE or of a DIE that it refers to; NULL: none, or empty. Borrowed from libdw. */
const char *dwarf_attr_text(Dwarf_Die *die, unsigned int attribute);

/* Adds the ranges that the unit's DIE covers to the file's. 0; -ENOMEM; -EFBIG. */
MUST_CHECK int dwarf_unit_ranges(struct dwarf_lines *lines, Dwarf_Die *unit, uint32_t number);
/* False for addresses of removed code: linkers leave that at 0 or the like. */
bool dwarf_is_code(const struct dwarf_lines *lines, uint64_t elf_vaddr);
/* Reads the unit's rows and files. 0; -EFBIG: something was left out; -ENOMEM. */
MUST_CHECK int dwarf_unit_rows(struct dwarf_lines *lines, struct dwarf_unit *unit, Dwarf_Die *die);
/* Adds one range, or all ranges of a DIE, as far as they are code; *nr counts them. 0; -ENOMEM; -EFBIG. */
MUST_CHECK int dwarf_add_range(struct dwarf_lines *lines, struct dwarf_spans *spans, uint64_t start, uint64_t end, uint32_t owner,
			       uint32_t *nr);
MUST_CHECK int dwarf_add_ranges(struct dwarf_lines *lines, struct dwarf_spans *spans, Dwarf_Die *die, uint32_t owner, uint32_t *nr);
/* Reads the unit's nodes and their ranges, from the DIEs below `root`. 0; -EFBIG: something was left out; -ENOMEM. */
MUST_CHECK int dwarf_unit_walk(struct dwarf_lines *lines, struct dwarf_unit *unit, Dwarf_Die *root);
/* Makes the tables; libdw must be open. Leaves out what is damaged or too large. 0 or -ENOMEM. */
MUST_CHECK int dwarf_unit_read(struct dwarf_lines *lines, struct dwarf_unit *unit);
void dwarf_unit_forget(struct dwarf_lines *lines, struct dwarf_unit *unit);
/* Returns the unit's DIE, and the one that has the functions: another one in split DWARF. False: not found. */
bool dwarf_unit_dies(struct dwarf_lines *lines, const struct dwarf_unit *unit, Dwarf_Die *ret_unit, Dwarf_Die *ret_code);
/* Borrowed until the next call for this unit. 0 or -ENOMEM. */
MUST_CHECK int dwarf_unit_facts(struct dwarf_lines *lines, struct dwarf_unit *unit, uint32_t node, const struct dwarf_facts **ret_facts);
/* Returns the name from a function's DIE: the linkage name, or the name with its scopes; "": none. 0 or -ENOMEM. */
MUST_CHECK int dwarf_name(struct dwarf_lines *lines, Dwarf_Die *unit, Dwarf_Die *die, const char **ret_name);
/* Opens the file that dwz moved common parts to, if one with the required build id is found. */
void dwarf_alt_open(struct dwarf_lines *lines);
void dwarf_alt_close(struct dwarf_lines *lines);
