// SPDX-License-Identifier: Apache-2.0
/* Makes one pass over a unit's DIEs, for the ranges of its functions and inlined functions. Most DIEs are types and variables, of which
 * only the size matters. So each abbreviation is turned once per unit into steps over the DIE's bytes. libdw looks up the abbreviation
 * again for each attribute of each DIE, and takes three times as long. It still reads the abbreviations, and range lists. */
#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <string.h>

#include "base/reader.h"
#include "dwarf/dwarf_private.h"

#define MAX_DEPTH 256		       /* of DIEs; the deepest seen from compilers have some dozens */
#define MAX_NODES (1u << 22)	       /* per unit */
#define MAX_DIES  ((uint32_t)1 << 26)  /* per unit, DIEs read */
#define MAX_CODES ((uint32_t)1 << 16)  /* of abbreviations; compilers number them from 1 */
#define MAX_STEPS ((uint32_t)1 << 20)  /* of all abbreviations */

enum role { ROLE_OTHER, ROLE_SCOPE, ROLE_FUNCTION, ROLE_INLINED };
enum step_kind { STEP_FIXED, STEP_LEB, STEP_TEXT, STEP_BLOCK, STEP_BLOCK_LEB, STEP_ADDRESS, STEP_REF_ADDR, STEP_OFFSET };
enum step_use { USE_NONE, USE_SIBLING, USE_LOW, USE_HIGH, USE_COUNT };

struct step {
	uint8_t kind, use;
	uint16_t nr_bytes; /* for STEP_FIXED; for STEP_BLOCK: of the count */
};

struct shape { /* of the DIEs with one abbreviation */
	uint32_t first_step, nr_steps;
	uint8_t role;
	bool is_known, has_children, is_declaration;
	bool has_low, has_high; /* an address, and a number of bytes from there: one range */
	bool has_ranges;	/* in another form */
};

struct walk {
	struct dwarf_lines *lines;
	struct dwarf_unit *unit;
	Dwarf *dwarf;
	Dwarf_Off root_offset, unit_offset;
	const uint8_t *root, *end;
	uint8_t address_size, offset_size;
	uint16_t version;
	bool enter_types; /* only C and C++ are known to have no code inside of types */
	struct shape *shapes;
	struct step *steps;
	uint32_t max_shapes, nr_steps, max_steps;
	uint32_t nodes[MAX_DEPTH]; /* the node around the children at this depth */
};

static void walk_done(struct walk *walk)
{
	free(walk->shapes);
	free(walk->steps);
}

static bool code_is_outside_of_types(int language)
{
	switch (language) {
	case DW_LANG_C:
	case DW_LANG_C89:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
		return true;
	default:
		return false;
	}
}

static enum role role_of(int tag, bool enter_types)
{
	switch (tag) {
	case DW_TAG_subprogram:
		return ROLE_FUNCTION;
	case DW_TAG_inlined_subroutine:
		return ROLE_INLINED;
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
		return ROLE_SCOPE;
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_variant_part:
	case DW_TAG_interface_type:
		return enter_types ? ROLE_SCOPE : ROLE_OTHER;
	default:
		return ROLE_OTHER;
	}
}

/* DWARF 5 section 7.5.6. 0 bytes: none, or given by the unit's header. */
static const struct form {
	bool is_known;
	uint8_t kind, nr_bytes;
} forms[] = {
	[DW_FORM_flag_present] = { true, STEP_FIXED, 0 }, [DW_FORM_implicit_const] = { true, STEP_FIXED, 0 },
	[DW_FORM_data1] = { true, STEP_FIXED, 1 },	  [DW_FORM_ref1] = { true, STEP_FIXED, 1 },
	[DW_FORM_flag] = { true, STEP_FIXED, 1 },	  [DW_FORM_strx1] = { true, STEP_FIXED, 1 },
	[DW_FORM_addrx1] = { true, STEP_FIXED, 1 },	  [DW_FORM_data2] = { true, STEP_FIXED, 2 },
	[DW_FORM_ref2] = { true, STEP_FIXED, 2 },	  [DW_FORM_strx2] = { true, STEP_FIXED, 2 },
	[DW_FORM_addrx2] = { true, STEP_FIXED, 2 },	  [DW_FORM_strx3] = { true, STEP_FIXED, 3 },
	[DW_FORM_addrx3] = { true, STEP_FIXED, 3 },	  [DW_FORM_data4] = { true, STEP_FIXED, 4 },
	[DW_FORM_ref4] = { true, STEP_FIXED, 4 },	  [DW_FORM_strx4] = { true, STEP_FIXED, 4 },
	[DW_FORM_addrx4] = { true, STEP_FIXED, 4 },	  [DW_FORM_ref_sup4] = { true, STEP_FIXED, 4 },
	[DW_FORM_data8] = { true, STEP_FIXED, 8 },	  [DW_FORM_ref8] = { true, STEP_FIXED, 8 },
	[DW_FORM_ref_sig8] = { true, STEP_FIXED, 8 },	  [DW_FORM_ref_sup8] = { true, STEP_FIXED, 8 },
	[DW_FORM_data16] = { true, STEP_FIXED, 16 },	  [DW_FORM_addr] = { true, STEP_ADDRESS, 0 },
	[DW_FORM_ref_addr] = { true, STEP_REF_ADDR, 0 },  [DW_FORM_strp] = { true, STEP_OFFSET, 0 },
	[DW_FORM_line_strp] = { true, STEP_OFFSET, 0 },	  [DW_FORM_sec_offset] = { true, STEP_OFFSET, 0 },
	[DW_FORM_strp_sup] = { true, STEP_OFFSET, 0 },	  [DW_FORM_string] = { true, STEP_TEXT, 0 },
	[DW_FORM_block1] = { true, STEP_BLOCK, 1 },	  [DW_FORM_block2] = { true, STEP_BLOCK, 2 },
	[DW_FORM_block4] = { true, STEP_BLOCK, 4 },	  [DW_FORM_block] = { true, STEP_BLOCK_LEB, 0 },
	[DW_FORM_exprloc] = { true, STEP_BLOCK_LEB, 0 },  [DW_FORM_udata] = { true, STEP_LEB, 0 },
	[DW_FORM_sdata] = { true, STEP_LEB, 0 },	  [DW_FORM_ref_udata] = { true, STEP_LEB, 0 },
	[DW_FORM_strx] = { true, STEP_LEB, 0 },		  [DW_FORM_addrx] = { true, STEP_LEB, 0 },
	[DW_FORM_loclistx] = { true, STEP_LEB, 0 },	  [DW_FORM_rnglistx] = { true, STEP_LEB, 0 },
};

/* False: unknown form, or the form is stored with the value. */
static bool step_of(const struct walk *walk, unsigned int number, struct step *ret_step)
{
	struct form form = { 0 };

	if (number == DW_FORM_GNU_addr_index || number == DW_FORM_GNU_str_index)
		number = DW_FORM_udata;
	else if (number == DW_FORM_GNU_strp_alt || number == DW_FORM_GNU_ref_alt)
		number = DW_FORM_sec_offset;
	if (number < ARRAY_SIZE(forms))
		form = forms[number];
	if (form.kind == STEP_ADDRESS || (form.kind == STEP_REF_ADDR && walk->version == 2))
		form = (struct form){ true, STEP_FIXED, walk->address_size };
	else if (form.kind == STEP_OFFSET || form.kind == STEP_REF_ADDR)
		form = (struct form){ true, STEP_FIXED, walk->offset_size };
	*ret_step = (struct step){ .kind = form.kind, .nr_bytes = form.nr_bytes };
	return form.is_known;
}

static uint8_t use_of(const struct step *step, unsigned int name, unsigned int form)
{
	bool is_number =
	    (step->kind == STEP_FIXED && step->nr_bytes >= 1 && step->nr_bytes <= 8) || form == DW_FORM_udata || form == DW_FORM_ref_udata;

	switch (name) {
	case DW_AT_sibling:
		return is_number && form != DW_FORM_ref_addr ? USE_SIBLING : USE_NONE;
	case DW_AT_low_pc:
		return form == DW_FORM_addr ? USE_LOW : USE_NONE;
	case DW_AT_high_pc:
		return form == DW_FORM_data1 || form == DW_FORM_data2 || form == DW_FORM_data4 || form == DW_FORM_data8 ||
			       form == DW_FORM_udata
			   ? USE_HIGH
			   : USE_NONE;
	default:
		return USE_NONE;
	}
}

struct learning {
	struct walk *walk;
	struct shape *shape;
	int err;
};

/* Callback for dwarf_getattrs. */
static int add_step(Dwarf_Attribute *attribute, void *argument)
{
	struct learning *learning = argument;
	struct walk *walk = learning->walk;
	struct shape *shape = learning->shape;
	unsigned int name = dwarf_whatattr(attribute), form = dwarf_whatform(attribute);
	struct step step;

	learning->err = step_of(walk, form, &step) ? 0 : -EFBIG;
	if (learning->err)
		return DWARF_CB_ABORT;
	step.use = use_of(&step, name, form);
	shape->is_declaration |= name == DW_AT_declaration;
	shape->has_low |= step.use == USE_LOW;
	shape->has_high |= step.use == USE_HIGH;
	shape->has_ranges |= name == DW_AT_ranges || (step.use == USE_NONE && (name == DW_AT_low_pc || name == DW_AT_high_pc));
	if (shape->nr_steps && step.kind == STEP_FIXED && step.use == USE_NONE) {
		struct step *last = &walk->steps[walk->nr_steps - 1];

		if (last->kind == STEP_FIXED && last->use == USE_NONE && last->nr_bytes <= UINT16_MAX - 16) {
			last->nr_bytes = (uint16_t)(last->nr_bytes + step.nr_bytes);
			return DWARF_CB_OK;
		}
	}
	if (walk->nr_steps == walk->max_steps) {
		void *grown = dwarf_grow(walk->steps, walk->nr_steps, &walk->max_steps, MAX_STEPS, sizeof(*walk->steps));

		learning->err = grown ? 0 : walk->nr_steps < MAX_STEPS ? -ENOMEM : -EFBIG;
		if (!grown)
			return DWARF_CB_ABORT;
		walk->steps = grown;
	}
	walk->steps[walk->nr_steps++] = step;
	shape->nr_steps++;
	return DWARF_CB_OK;
}

/* Learns an abbreviation from the first DIE that has it. 0; -EFBIG: libdw or we do not understand it; -ENOMEM. */
static int learn(struct walk *walk, uint64_t code, Dwarf_Off offset)
{
	struct shape shape = { .first_step = walk->nr_steps, .is_known = true };
	struct learning learning = { .walk = walk, .shape = &shape };
	Dwarf_Die die;

	if (code >= MAX_CODES)
		return -EFBIG;
	while (walk->max_shapes <= code) {
		uint32_t before = walk->max_shapes;
		void *grown = dwarf_grow(walk->shapes, before, &walk->max_shapes, MAX_CODES, sizeof(*walk->shapes));

		if (!grown)
			return -ENOMEM;
		walk->shapes = grown;
		memset(walk->shapes + before, 0, (walk->max_shapes - before) * sizeof(*walk->shapes));
	}
	if (!dwarf_offdie(walk->dwarf, offset, &die))
		return -EFBIG;
	shape.role = (uint8_t)role_of(dwarf_tag(&die), walk->enter_types);
	shape.has_children = dwarf_haschildren(&die) > 0;
	if (dwarf_getattrs(&die, add_step, &learning, 0) != 1)
		return learning.err ? learning.err : -EFBIG;
	walk->shapes[code] = shape;
	return 0;
}

static uint64_t fixed_number(const uint8_t *bytes, size_t nr)
{
	uint64_t number = 0;

	memcpy(&number, bytes, nr);
	return number;
}

/* Steps over a DIE's attributes; `used` receives the values that are needed. */
static void take_steps(const struct walk *walk, const struct shape *shape, struct reader *r, uint64_t used[USE_COUNT])
{
	const struct step *step = walk->steps + shape->first_step, *end = step + shape->nr_steps;

	for (; step < end; step++) {
		const uint8_t *at = r->pos;

		switch (step->kind) {
		case STEP_FIXED:
			reader_skip(r, step->nr_bytes);
			if (step->use && !r->bad)
				used[step->use] = fixed_number(at, step->nr_bytes);
			break;
		case STEP_LEB:
			used[step->use] = reader_uleb(r);
			break;
		case STEP_TEXT:
			(void)reader_text(r);
			break;
		case STEP_BLOCK:
			reader_skip(r, step->nr_bytes);
			if (!r->bad)
				reader_skip(r, (size_t)fixed_number(at, step->nr_bytes));
			break;
		default:
			reader_skip(r, (size_t)reader_uleb(r));
			break;
		}
	}
}

/* Adds a node for the DIE if it has code. *node is the one around the DIE, and becomes the one around its children. */
static int add_node(struct walk *walk, const struct shape *shape, Dwarf_Off offset, const uint64_t used[USE_COUNT], uint32_t *node)
{
	struct dwarf_unit *unit = walk->unit;
	uint32_t nr = 0, parent = shape->role == ROLE_INLINED ? *node : DWARF_NONE;
	Dwarf_Die die;
	int err = 0;

	*node = parent;
	if (unit->nr_nodes == unit->max_nodes) {
		void *grown = dwarf_grow(unit->nodes, unit->nr_nodes, &unit->max_nodes, MAX_NODES, sizeof(*unit->nodes));

		if (!grown)
			return unit->max_nodes >= MAX_NODES ? -EFBIG : -ENOMEM;
		unit->nodes = grown;
	}
	if (shape->has_low && shape->has_high)
		err = dwarf_add_range(walk->lines, &unit->code, used[USE_LOW], used[USE_LOW] + used[USE_HIGH], unit->nr_nodes, &nr);
	else if (shape->has_ranges && dwarf_offdie(walk->dwarf, offset, &die))
		err = dwarf_add_ranges(walk->lines, &unit->code, &die, unit->nr_nodes, &nr);
	if (err || !nr)
		return err;
	unit->nodes[unit->nr_nodes] = (struct dwarf_node){ .die = offset, .parent = parent, .facts = DWARF_NONE };
	*node = unit->nr_nodes++;
	return 0;
}

/* Handles a DIE whose abbreviation is known. *ret_enter: its children are needed; they have *node around them. */
static int visit(struct walk *walk, const struct shape *shape, Dwarf_Off offset, const uint64_t used[USE_COUNT], uint32_t *node,
		 bool *ret_enter)
{
	*ret_enter = shape->role != ROLE_OTHER && !(shape->role == ROLE_FUNCTION && shape->is_declaration);
	if (!*ret_enter || shape->role == ROLE_SCOPE)
		return 0;
	return add_node(walk, shape, offset, used, node);
}

/* Skips a DIE's unneeded children, if the DIE gives their end. False: they must be stepped over. */
static bool jump(const struct walk *walk, struct reader *r, uint64_t sibling)
{
	uint64_t size = (uint64_t)(walk->end - walk->root) + (walk->root_offset - walk->unit_offset);
	const uint8_t *unit = walk->root - (walk->root_offset - walk->unit_offset);

	if (!sibling || sibling >= size || unit + sibling < r->pos)
		return false;
	r->pos = unit + sibling;
	return true;
}

/* 0; -EFBIG: something was left out; -ENOMEM. */
static int walk_dies(struct walk *walk)
{
	struct reader r = { .pos = walk->root, .end = walk->end };
	uint32_t depth = 0, nr_over = 0; /* levels of DIEs that are only stepped over */
	int cut = 0;

	for (uint32_t nr_dies = 0; r.pos < r.end; nr_dies++) {
		Dwarf_Off offset = walk->root_offset + (Dwarf_Off)(r.pos - walk->root);
		uint64_t code = reader_uleb(&r), used[USE_COUNT] = { 0 };
		uint32_t node = walk->nodes[depth];
		const struct shape *shape;
		bool enter = false;
		int err = 0;

		if (!code) {
			if (nr_over)
				nr_over--;
			else if (depth-- <= 1)
				return cut;
			continue;
		}
		if (code >= walk->max_shapes || !walk->shapes[code].is_known)
			err = nr_dies < MAX_DIES ? learn(walk, code, offset) : -EFBIG;
		if (err)
			return err;
		shape = &walk->shapes[code];
		take_steps(walk, shape, &r, used);
		if (r.bad)
			return -EFBIG;
		if (!nr_dies)
			enter = true; /* the unit's own DIE */
		else if (!nr_over)
			err = visit(walk, shape, offset, used, &node, &enter);
		if (err)
			return err;
		if (!shape->has_children) {
			if (!depth)
				return 0;
			continue;
		}
		if (enter && depth + 1 == MAX_DEPTH) {
			cut = -EFBIG;
			enter = false;
		}
		if (enter)
			walk->nodes[++depth] = node;
		else if (!jump(walk, &r, used[USE_SIBLING]))
			nr_over++;
	}
	return -EFBIG;
}

/* Returns the end of the section's bytes, as libdw read it, that the DIE is in. */
static const uint8_t *end_of_section(Dwarf *dwarf, const uint8_t *within)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(dwarf_getelf(dwarf), section))) {
		GElf_Shdr header;
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_PROGBITS)
			continue;
		data = elf_getdata(section, NULL);
		if (data && data->d_buf && (uintptr_t)within >= (uintptr_t)data->d_buf &&
		    (uintptr_t)within - (uintptr_t)data->d_buf < data->d_size)
			return (const uint8_t *)data->d_buf + data->d_size;
	}
	return NULL;
}

int dwarf_unit_walk(struct dwarf_lines *lines, struct dwarf_unit *unit, Dwarf_Die *root)
{
	CLEANUP(walk_done) struct walk walk = { .lines = lines, .unit = unit, .dwarf = dwarf_cu_getdwarf(root->cu), .root = root->addr };
	Dwarf_Off next;
	size_t header;
	Dwarf_Die again;
	uint64_t left;

	walk.root_offset = dwarf_dieoffset(root);
	walk.unit_offset = walk.root_offset - dwarf_cuoffset(root);
	walk.end = end_of_section(walk.dwarf, walk.root);
	if (!walk.end || !dwarf_cu_die(root->cu, &again, &walk.version, NULL, &walk.address_size, &walk.offset_size, NULL, NULL) ||
	    dwarf_next_unit(walk.dwarf, walk.unit_offset, &next, &header, NULL, NULL, NULL, NULL, NULL, NULL) || next <= walk.root_offset)
		return -EFBIG;
	left = next - walk.root_offset;
	if (left < (uint64_t)(walk.end - walk.root))
		walk.end = walk.root + left;
	walk.nodes[0] = DWARF_NONE;
	walk.enter_types = !code_is_outside_of_types(dwarf_srclang(root));
	return walk_dies(&walk);
}
