// SPDX-License-Identifier: Apache-2.0
/* Reads a function's name and lines from its DIE and the DIEs that it refers to. Those may be in other units, or in dwz's common file. */
#include <dwarf.h>
#include <errno.h>
#include <string.h>

#include "dwarf/dwarf_private.h"

#define MAX_REFERENCES	 16	    /* from a DIE to the one it is an instance of */
#define FACTS_PAGE_BYTES 16384	    /* what reading a function's names and references brings in */
#define MAX_SCOPES	 32	    /* around a function */
#define MAX_STEPS	 (1u << 20) /* DIEs passed to find a function's scopes */

const char *dwarf_attr_text(Dwarf_Die *die, unsigned int attribute)
{
	Dwarf_Attribute found;
	const char *text = dwarf_attr_integrate(die, attribute, &found) ? dwarf_formstring(&found) : NULL;

	return text && *text ? text : NULL;
}

static uint32_t number_of(Dwarf_Attribute *attribute)
{
	Dwarf_Word number;

	return attribute && !dwarf_formudata(attribute, &number) && number <= UINT32_MAX ? (uint32_t)number : 0;
}

/* Languages whose names without a linkage name need their scopes. The others have none, or write them into the name. */
static bool has_scopes(int language)
{
	switch (language) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case DW_LANG_Rust:
		return true;
	default:
		return false;
	}
}

static bool is_scope(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_class_type || tag == DW_TAG_structure_type || tag == DW_TAG_union_type ||
	       tag == DW_TAG_enumeration_type || tag == DW_TAG_subprogram;
}

/* Returns the DIE that is where the source has the function: the declaration in its class. */
static Dwarf_Die declaration_of(Dwarf_Die die)
{
	static const unsigned int references[] = { DW_AT_abstract_origin, DW_AT_specification };
	Dwarf_Attribute attribute;

	for (unsigned int i = 0; i < MAX_REFERENCES; i++) {
		Dwarf_Die next;
		size_t k = 0;

		while (k < ARRAY_SIZE(references) && !(dwarf_attr(&die, references[k], &attribute) && dwarf_formref_die(&attribute, &next)))
			k++;
		if (k == ARRAY_SIZE(references))
			break;
		die = next;
	}
	return die;
}

static bool add_part(char *name, size_t *length, const char *part)
{
	size_t size = strlen(part), colons = *length ? 2 : 0;

	if (size > DWARF_MAX_NAME - 1 - *length - colons)
		return false;
	memcpy(name + *length, "::", colons);
	memcpy(name + *length + colons, part, size + 1);
	*length += colons + size;
	return true;
}

/* Finds the child whose bytes contain the DIE at `offset`: the last one to start at or before it. */
static bool child_around(Dwarf_Die *parent, Dwarf_Off offset, unsigned int *steps, Dwarf_Die *ret_child)
{
	Dwarf_Die child;
	bool found = false;

	for (int end = dwarf_child(parent, &child); end == 0 && *steps && dwarf_dieoffset(&child) <= offset;
	     end = dwarf_siblingof(&child, &child)) {
		*ret_child = child;
		found = true;
		(*steps)--;
	}
	return found && *steps;
}

/* False: the scopes were not found, or the name gets too long. */
static bool write_scopes(Dwarf_Die die, const char *own, char *name)
{
	Dwarf_Off offset = dwarf_dieoffset(&die);
	unsigned int steps = MAX_STEPS;
	size_t length = 0;
	Dwarf_Die at;

	if (!dwarf_cu_die(die.cu, &at, NULL, NULL, NULL, NULL, NULL, NULL))
		return false;
	for (unsigned int i = 0; i < MAX_SCOPES; i++) {
		Dwarf_Die child;
		const char *part;

		if (!child_around(&at, offset, &steps, &child))
			return false;
		if (dwarf_dieoffset(&child) == offset)
			return add_part(name, &length, own);
		part = is_scope(dwarf_tag(&child)) ? dwarf_attr_text(&child, DW_AT_name) : "";
		if (!part && dwarf_tag(&child) == DW_TAG_namespace)
			part = "(anonymous namespace)";
		if (part && *part && !add_part(name, &length, part))
			return false;
		at = child;
	}
	return false;
}

int dwarf_name(struct dwarf_lines *lines, Dwarf_Die *unit, Dwarf_Die *die, const char **ret_name)
{
	const char *name = dwarf_attr_text(die, DW_AT_linkage_name);
	char scoped[DWARF_MAX_NAME];
	int err;

	if (!name)
		name = dwarf_attr_text(die, DW_AT_MIPS_linkage_name);
	if (!name) {
		name = dwarf_attr_text(die, DW_AT_name);
		if (name && has_scopes(dwarf_srclang(unit)) && write_scopes(declaration_of(*die), name, scoped))
			name = scoped;
	}
	*ret_name = "";
	err = name ? dwarf_text(lines, name, ret_name) : 0;
	return err == -EFBIG ? 0 : err;
}

/* A .dwo numbers the files by its own list, which has no rows. */
static int call_file(struct dwarf_lines *lines, const struct dwarf_unit *unit, Dwarf_Die *unit_die, Dwarf_Die *code, uint32_t number,
		     const char **ret_path)
{
	Dwarf_Files *files;
	size_t nr_files;
	const char *path;

	if (code->addr == unit_die->addr) {
		*ret_path = number < unit->nr_files ? unit->files[number] : "";
		return 0;
	}
	path = dwarf_getsrcfiles(code, &files, &nr_files) ? NULL : dwarf_filesrc(files, number, NULL, NULL);
	return path ? dwarf_path(lines, dwarf_attr_text(unit_die, DW_AT_comp_dir), "", path, ret_path) : 0;
}

static int read_facts(struct dwarf_lines *lines, const struct dwarf_unit *unit, const struct dwarf_node *node, struct dwarf_facts *facts)
{
	Dwarf_Die unit_die, code, die;
	Dwarf_Attribute attribute;
	int err;

	if (!dwarf_unit_dies(lines, unit, &unit_die, &code) || !dwarf_offdie(dwarf_cu_getdwarf(code.cu), node->die, &die))
		return 0;
	facts->start_line = number_of(dwarf_attr_integrate(&die, DW_AT_decl_line, &attribute));
	err = dwarf_name(lines, &code, &die, &facts->name);
	if (err || node->parent == DWARF_NONE)
		return err || dwarf_entrypc(&die, &facts->start_vaddr) == 0 ? err : 0;
	facts->call_line = number_of(dwarf_attr(&die, DW_AT_call_line, &attribute));
	if (dwarf_attr(&die, DW_AT_call_file, &attribute))
		err = call_file(lines, unit, &unit_die, &code, number_of(&attribute), &facts->call_file);
	return err == -EFBIG ? 0 : err;
}

int dwarf_unit_facts(struct dwarf_lines *lines, struct dwarf_unit *unit, uint32_t node, const struct dwarf_facts **ret_facts)
{
	uint32_t *number = &unit->nodes[node].facts;

	if (*number == DWARF_NONE) {
		struct dwarf_facts facts = { .name = "", .call_file = "" };
		int err = read_facts(lines, unit, &unit->nodes[node], &facts);

		if (err)
			return err;
		if (unit->nr_facts == unit->max_facts) {
			void *grown = dwarf_grow(unit->facts, unit->nr_facts, &unit->max_facts, unit->nr_nodes, sizeof(facts));

			if (!grown)
				return -ENOMEM;
			unit->facts = grown;
		}
		unit->nr_bytes += sizeof(facts);
		lines->nr_page_bytes += FACTS_PAGE_BYTES;
		lines->nr_bytes += sizeof(facts);
		unit->facts[unit->nr_facts] = facts;
		*number = unit->nr_facts++;
	}
	*ret_facts = &unit->facts[*number];
	return 0;
}
