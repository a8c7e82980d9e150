/* SPDX-License-Identifier: Apache-2.0 */
/* What dwarf_lines.c (files, memory, questions), dwarf_unit.c (a unit's tables) and dwarf_names.c share. */
#pragma once
#include <elfutils/libdw.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/u64_map.h"
#include "dwarf/dwarf_lines.h"
#include "dwarf/dwarf_spans.h"

#define DWARF_MAX_NAME ((size_t)16 << 10) /* of one function or path; longer ones count as missing */

struct dwarf_node { /* a function, or one that was inlined */
	Dwarf_Off die;
	uint32_t parent; /* what it was inlined into; DWARF_NONE: it is a function of its own. Less than the node's own number */
	uint32_t facts;	 /* DWARF_NONE until somebody asks */
};

struct dwarf_facts {
	const char *name, *call_file;
	uint64_t start_vaddr;
	uint32_t start_line, call_line;
};

struct dwarf_row {
	uint64_t vaddr;
	uint32_t line, file; /* number in the unit's files; DWARF_NONE: no code from here on */
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
	struct dwarf_spans code;				 /* whose owners are units */
	struct dwarf_unit *units;
	uint32_t nr_units, max_units;
	uint64_t nr_bytes, nr_libdw_bytes; /* in our tables; about what libdw holds since it was opened */
	uint64_t nr_page_bytes;		   /* about what was read of the mapping */
	uint64_t nr_uses;
	struct dwarf_lines_counts counts;
	struct arena *texts;
	struct u64_map text_numbers; /* by hash */
	const char **text_list;
	uint32_t nr_texts, max_texts;
};

/* Grows an array of *capacity items to hold one more than `nr`, at most `max` items. NULL: no memory or too many; `items` stays. */
void *dwarf_grow(void *items, uint32_t nr, uint32_t *capacity, uint32_t max, size_t item_size);
/* One copy of each text, kept until dwarf_lines_free. 0; -ENOMEM; -EFBIG when there are too many. */
MUST_CHECK int dwarf_text(struct dwarf_lines *lines, const char *text, const char **ret_text);
/* The same of a path, whose directory (`between`, may be "") may itself count from the unit's (`folder`, may be NULL) or be that one: where
 * the unit's is relative as well, a path that starts with it is taken for one in it. Without "./" and "//". */
MUST_CHECK int dwarf_path(struct dwarf_lines *lines, const char *folder, const char *between, const char *name, const char **ret_path);
/* A DIE's text, its own or that of what it refers to; NULL: none, or an empty one. Borrowed from libdw. */
const char *dwarf_attr_text(Dwarf_Die *die, unsigned int attribute);

/* Adds what the unit's DIE says that it covers to the file's ranges. 0; -ENOMEM; -EFBIG. */
MUST_CHECK int dwarf_unit_ranges(struct dwarf_lines *lines, Dwarf_Die *unit, uint32_t number);
/* Linkers leave what they removed at 0 or the like; that is no code. */
bool dwarf_is_code(const struct dwarf_lines *lines, uint64_t elf_vaddr);
/* The unit's rows and files. 0; -EFBIG when something was left out; -ENOMEM. */
MUST_CHECK int dwarf_unit_rows(struct dwarf_lines *lines, struct dwarf_unit *unit, Dwarf_Die *die);
/* One range, or all that a DIE has, as far as they are code, counted in *nr. 0; -ENOMEM; -EFBIG. */
MUST_CHECK int dwarf_add_range(struct dwarf_lines *lines, struct dwarf_spans *spans, uint64_t start, uint64_t end, uint32_t owner,
			       uint32_t *nr);
MUST_CHECK int dwarf_add_ranges(struct dwarf_lines *lines, struct dwarf_spans *spans, Dwarf_Die *die, uint32_t owner, uint32_t *nr);
/* The unit's nodes and their ranges, from the DIEs below `root`. 0; -EFBIG when something was left out; -ENOMEM. */
MUST_CHECK int dwarf_unit_walk(struct dwarf_lines *lines, struct dwarf_unit *unit, Dwarf_Die *root);
/* Makes the tables; libdw must be open. What is damaged or too large is left out. 0 or -ENOMEM. */
MUST_CHECK int dwarf_unit_read(struct dwarf_lines *lines, struct dwarf_unit *unit);
void dwarf_unit_forget(struct dwarf_lines *lines, struct dwarf_unit *unit);
/* The unit's DIE, and the one that has the functions: of split DWARF another. False: they cannot be had. */
bool dwarf_unit_dies(struct dwarf_lines *lines, const struct dwarf_unit *unit, Dwarf_Die *ret_unit, Dwarf_Die *ret_code);
/* Borrowed until the unit's next. 0 or -ENOMEM. */
MUST_CHECK int dwarf_unit_facts(struct dwarf_lines *lines, struct dwarf_unit *unit, uint32_t node, const struct dwarf_facts **ret_facts);
/* Name of a function's DIE: linked, or with its scopes. "" when it has none. 0 or -ENOMEM. */
MUST_CHECK int dwarf_name(struct dwarf_lines *lines, Dwarf_Die *unit, Dwarf_Die *die, const char **ret_name);
/* The file that dwz moved common parts to, with the build id that is asked for. Nothing happens when there is none. */
void dwarf_alt_open(struct dwarf_lines *lines);
void dwarf_alt_close(struct dwarf_lines *lines);
