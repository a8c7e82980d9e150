// SPDX-License-Identifier: Apache-2.0
#include "dwarf/dwarf_places.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct opened {
	int fd;
	Dwarf *dwarf;
};

static void opened_done(struct opened *opened)
{
	if (opened->dwarf)
		dwarf_end(opened->dwarf);
	if (opened->fd >= 0)
		close(opened->fd);
}

static int open_dwarf(const char *path, struct opened *opened)
{
	opened->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	opened->dwarf = opened->fd >= 0 && elf_version(EV_CURRENT) != EV_NONE ? dwarf_begin(opened->fd, DWARF_C_READ) : NULL;
	return opened->dwarf ? 0 : -ENODATA;
}

/* --- lines ---------------------------------------------------------------------------------------------------------------------------- */

static int file_off_of(Dwarf *dwarf, uint64_t elf_vaddr, uint64_t *ret_file_off)
{
	Elf *elf = dwarf_getelf(dwarf);
	GElf_Phdr segment;
	size_t nr = 0;

	if (elf_getphdrnum(elf, &nr))
		return -EBADMSG;
	for (size_t i = 0; i < nr; i++) {
		if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_LOAD && elf_vaddr >= segment.p_vaddr &&
		    elf_vaddr - segment.p_vaddr < segment.p_filesz) {
			*ret_file_off = elf_vaddr - segment.p_vaddr + segment.p_offset;
			return 0;
		}
	}
	return -EBADMSG;
}

/* Is this the source, by its last folders? */
static bool is_source(const char *full, const char *source)
{
	size_t full_size = strlen(full), size = strlen(source);

	return full_size >= size && !strcmp(full + full_size - size, source) && (full_size == size || full[full_size - size - 1] == '/');
}

struct place {
	Dwarf_Off scope; /* the DIE of the function, or of the inlined copy */
	uint64_t elf_vaddr;
	bool is_aside; /* in another part of the function than its begin is: what a compiler thinks is seldom run */
};

struct nearest {
	struct place places[DWARF_MAX_PLACES]; /* of the line that was asked for */
	uint32_t nr;
	int line; /* the next one with code; 0: none */
	bool has_source, is_full;
};

static bool is_aside(Dwarf_Die *scope, uint64_t elf_vaddr)
{
	Dwarf_Addr base, begin, end, entry = 0;
	ptrdiff_t at = 0;

	if (dwarf_entrypc(scope, &entry))
		return false;
	while ((at = dwarf_ranges(scope, at, &base, &begin, &end)) > 0) {
		if (elf_vaddr >= begin && elf_vaddr < end)
			return entry < begin || entry >= end;
	}
	return false;
}

/* The innermost function around an address, inlined or not. Without one, the address is its own. */
static struct place place_at(Dwarf_Die *unit, uint64_t elf_vaddr)
{
	struct place place = { .elf_vaddr = elf_vaddr, .scope = elf_vaddr };
	Dwarf_Die *scopes = NULL;
	int nr = dwarf_getscopes(unit, elf_vaddr, &scopes);

	for (int i = 0; i < nr; i++) {
		int tag = dwarf_tag(&scopes[i]);

		if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
			continue;
		place.scope = dwarf_dieoffset(&scopes[i]);
		place.is_aside = is_aside(&scopes[i], elf_vaddr);
		break;
	}
	free(scopes);
	return place;
}

static bool is_before(const struct place *a, const struct place *b)
{
	return a->is_aside != b->is_aside ? b->is_aside : a->elf_vaddr < b->elf_vaddr;
}

/* Keeps the first place of each function. */
static void add_place(struct nearest *nearest, struct place place)
{
	uint32_t i = 0;

	while (i < nearest->nr && nearest->places[i].scope != place.scope)
		i++;
	if (i == DWARF_MAX_PLACES) {
		nearest->is_full = true;
		return;
	}
	if (i == nearest->nr)
		nearest->places[nearest->nr++] = place;
	else if (is_before(&place, &nearest->places[i]))
		nearest->places[i] = place;
}

static void look_at(Dwarf_Die *unit, Dwarf_Line *line, const char *source, uint32_t wanted, struct nearest *nearest)
{
	const char *name = dwarf_linesrc(line, NULL, NULL);
	Dwarf_Addr elf_vaddr = 0;
	bool begins = false, ends = true;
	int number = 0;

	if (!name || !is_source(name, source))
		return;
	nearest->has_source = true;
	if (dwarf_lineno(line, &number) || dwarf_lineaddr(line, &elf_vaddr) || dwarf_linebeginstatement(line, &begins) ||
	    dwarf_lineendsequence(line, &ends) || !begins || ends || !elf_vaddr || number < (int)wanted)
		return;
	if ((uint32_t)number == wanted)
		add_place(nearest, place_at(unit, elf_vaddr));
	if (!nearest->line || number < nearest->line)
		nearest->line = number;
}

static void look_for(Dwarf *dwarf, const char *source, uint32_t line, struct nearest *nearest)
{
	Dwarf_Off at = 0, next;
	size_t header, nr;

	for (; !dwarf_nextcu(dwarf, at, &next, &header, NULL, NULL, NULL); at = next) {
		Dwarf_Lines *lines;
		Dwarf_Die unit;

		if (!dwarf_offdie(dwarf, at + header, &unit) || dwarf_getsrclines(&unit, &lines, &nr))
			continue;
		for (size_t i = 0; i < nr; i++)
			look_at(&unit, dwarf_onesrcline(lines, i), source, line, nearest);
	}
}

static int file_offs_of(Dwarf *dwarf, const struct nearest *nearest, uint64_t *ret_file_offs, uint32_t *ret_nr)
{
	uint32_t nr = 0;
	int err = 0;

	for (uint32_t i = 0; !err && i < nearest->nr; i++)
		err = file_off_of(dwarf, nearest->places[i].elf_vaddr, &ret_file_offs[nr++]);
	if (!err)
		*ret_nr = nr;
	return err;
}

int dwarf_line_places(const char *path, const char *source, uint32_t line, struct diag *diag, uint64_t *ret_file_offs, uint32_t *ret_nr)
{
	CLEANUP(opened_done) struct opened opened = { .fd = -1 };
	struct nearest nearest = { 0 };

	if (open_dwarf(path, &opened))
		return diag_errno(diag, ENODATA, "%.200s has no source lines (DWARF) in it: build it with -g, or give a function", path);
	look_for(opened.dwarf, source, line, &nearest);
	if (!nearest.has_source)
		return diag_errno(diag, ENOENT, "%.120s is not made of a source '%.80s'", path, source);
	if (!nearest.nr && nearest.line)
		return diag_errno(diag, ENOENT, "there is no code at line %u of %.80s: the next is line %d", line, source, nearest.line);
	if (!nearest.nr)
		return diag_errno(diag, ENOENT, "there is no code at or behind line %u of %.80s", line, source);
	if (nearest.is_full)
		return diag_errno(diag, E2BIG, "line %u of %.80s has code in more than %d functions and inlined copies", line, source,
				  DWARF_MAX_PLACES);
	return file_offs_of(opened.dwarf, &nearest, ret_file_offs, ret_nr)
		   ? diag_errno(diag, EBADMSG, "line %u of %.80s is in no segment of %.80s", line, source, path)
		   : 0;
}

/* --- arguments ------------------------------------------------------------------------------------------------------------------------ */

static bool type_of(Dwarf_Die *die, Dwarf_Die *ret_type)
{
	Dwarf_Attribute attribute;

	return dwarf_attr_integrate(die, DW_AT_type, &attribute) && dwarf_formref_die(&attribute, ret_type);
}

/* The type without its qualifiers and names. */
static bool plain_type(Dwarf_Die *die, Dwarf_Die *ret_plain)
{
	Dwarf_Die type;

	return type_of(die, &type) && !dwarf_peel_type(&type, ret_plain);
}

static bool is_text(Dwarf_Die *pointer)
{
	Dwarf_Die to;
	Dwarf_Word encoding = 0;
	Dwarf_Attribute attribute;

	if (dwarf_tag(pointer) != DW_TAG_pointer_type || !plain_type(pointer, &to) || dwarf_tag(&to) != DW_TAG_base_type ||
	    !dwarf_attr_integrate(&to, DW_AT_encoding, &attribute) || dwarf_formudata(&attribute, &encoding))
		return false;
	return encoding == DW_ATE_signed_char || (encoding == DW_ATE_unsigned_char && dwarf_bytesize(&to) == 1);
}

static void write_type(Dwarf_Die *die, char *text, size_t size)
{
	Dwarf_Die type;
	bool is_pointer = false;

	for (int depth = 0; depth < 8 && type_of(die, &type); depth++, die = &type) {
		int tag = dwarf_tag(&type);

		if (dwarf_diename(&type)) {
			snprintf(text, size, "%s%s", dwarf_diename(&type), is_pointer ? " *" : " ");
			return;
		}
		is_pointer |= tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type;
	}
	snprintf(text, size, "%s", is_pointer ? "void *" : "");
}

static bool number_of(Dwarf_Die *die, unsigned int name, Dwarf_Word *ret_value)
{
	Dwarf_Attribute attribute;

	return dwarf_attr_integrate(die, name, &attribute) && !dwarf_formudata(&attribute, ret_value);
}

static bool is_signed_encoding(Dwarf_Word encoding)
{
	return encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
}

/* By the type below it, which C++ and newer compilers name, else by its values. */
static bool is_signed_enum(Dwarf_Die *type)
{
	Dwarf_Die below, child;
	Dwarf_Attribute attribute;
	Dwarf_Word encoding = 0;
	Dwarf_Sword value;

	if (plain_type(type, &below) && number_of(&below, DW_AT_encoding, &encoding))
		return is_signed_encoding(encoding);
	for (int more = dwarf_child(type, &child); !more; more = dwarf_siblingof(&child, &child)) {
		if (dwarf_attr(&child, DW_AT_const_value, &attribute) && !dwarf_formsdata(&attribute, &value) && value < 0)
			return true;
	}
	return false;
}

/* How the argument is passed: in a general register, in one of floating point, or otherwise (then what follows is not known either). */
enum passed { PASSED_GENERAL, PASSED_FLOAT, PASSED_OTHERWISE };

static enum passed how_passed(Dwarf_Die *type, bool *ret_is_signed)
{
	Dwarf_Word encoding = 0;
	int tag = dwarf_tag(type);

	*ret_is_signed = tag == DW_TAG_enumeration_type && is_signed_enum(type);
	if (tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type ||
	    tag == DW_TAG_enumeration_type)
		return PASSED_GENERAL;
	if (tag != DW_TAG_base_type || !number_of(type, DW_AT_encoding, &encoding) || dwarf_bytesize(type) > 8)
		return PASSED_OTHERWISE;
	*ret_is_signed = is_signed_encoding(encoding);
	switch (encoding) {
	case DW_ATE_float:
	case DW_ATE_complex_float: /* both halves of a small one are in one register */
	case DW_ATE_imaginary_float:
	case DW_ATE_decimal_float:
		return PASSED_FLOAT;
	default:
		return PASSED_GENERAL;
	}
}

/* --- what a function returns ------------------------------------------------------------------------------------------------------ */

#ifdef SONDE_ARM64
#define LARGE_RESULT 0 /* its address is in x8, which has no argument */
#else
#define LARGE_RESULT 1
#endif
#define LARGEST_IN_REGISTERS 16 /* bytes of a struct: System V ABI for x86-64 3.2.3, AAPCS64 6.9 */

/* C and its kin: other languages have rules of their own for what is in which register. */
static bool has_c_calls(int language)
{
	switch (language) {
	case DW_LANG_C:
	case DW_LANG_C89:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_ObjC:
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case DW_LANG_ObjC_plus_plus:
	case DW_LANG_Rust: /* of numbers and addresses */
		return true;
	default:
		return language >= 0x2b && language <= 0x2d; /* C++17, C++20, C17: dwarfstd.org, newer than our header */
	}
}

/* Which register has the first argument: one more, if the first has the address of a large result. -1: that is not known. */
static int first_general(Dwarf_Die *function, int language, Dwarf_Die *result)
{
	Dwarf_Word passed = 0, call = 0;
	int tag = dwarf_tag(result), size = dwarf_bytesize(result);

	if (number_of(function, DW_AT_calling_convention, &call) && call != DW_CC_normal)
		return -1; /* DW_CC_nocall: the compiler has changed it */
	if (tag == DW_TAG_base_type)
		return size <= LARGEST_IN_REGISTERS ? 0 : -1;
	if (tag != DW_TAG_structure_type && tag != DW_TAG_class_type && tag != DW_TAG_union_type)
		return tag == DW_TAG_array_type || tag == DW_TAG_unspecified_type ? -1 : 0;
	if (language == DW_LANG_Rust || size < 0)
		return -1;
	if (number_of(result, DW_AT_calling_convention, &passed) && passed == DW_CC_pass_by_reference)
		return LARGE_RESULT;
	return size <= LARGEST_IN_REGISTERS ? 0 : LARGE_RESULT;
}

static void take_result(Dwarf_Die *result, struct dwarf_args *args)
{
	bool is_signed = false;
	bool is_general = how_passed(result, &is_signed) == PASSED_GENERAL;
	int bytes = is_general ? dwarf_bytesize(result) : 0;

	args->result_is_address = dwarf_tag(result) != DW_TAG_base_type && dwarf_tag(result) != DW_TAG_enumeration_type;
	if (is_general && args->result_is_address)
		args->result_bytes = sizeof(uint64_t);
	else if (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8)
		args->result_bytes = (uint8_t)bytes;
	args->result_is_signed = is_signed;
}

/* False: the arguments from here on are not known. */
static bool take_arg(Dwarf_Die *parameter, struct dwarf_args *args, uint8_t *general)
{
	Dwarf_Die type;
	const char *name = dwarf_diename(parameter);
	bool is_signed;
	enum passed passed = plain_type(parameter, &type) ? how_passed(&type, &is_signed) : PASSED_OTHERWISE;
	int bytes = passed == PASSED_GENERAL ? dwarf_bytesize(&type) : 0;

	if (passed == PASSED_FLOAT)
		return true;
	if (passed == PASSED_OTHERWISE || *general == DWARF_ARGS)
		return false;
	snprintf(args->list[args->nr].name, DWARF_ARG_BYTES, "%s", name ? name : "?");
	write_type(parameter, args->list[args->nr].type, DWARF_ARG_BYTES);
	args->list[args->nr].number = (*general)++;
	args->list[args->nr].bytes = bytes == 1 || bytes == 2 || bytes == 4 ? (uint8_t)bytes : 8;
	args->list[args->nr].is_signed = is_signed;
	args->list[args->nr++].is_text = is_text(&type);
	return true;
}

struct wanted {
	const char *name;
	struct dwarf_args *args;
	int language; /* of the unit */
	uint32_t nr_found;
	Dwarf_Addr elf_vaddr; /* of the last one */
};

static void take_args(Dwarf_Die *function, int language, struct dwarf_args *args)
{
	int first = 0;
	uint8_t general;
	Dwarf_Die child, result;

	if (!has_c_calls(language))
		return;
	if (plain_type(function, &result)) {
		take_result(&result, args);
		first = first_general(function, language, &result);
	}
	if (first < 0 || dwarf_child(function, &child))
		return;
	general = (uint8_t)first;
	do {
		if (dwarf_tag(&child) == DW_TAG_formal_parameter && !take_arg(&child, args, &general))
			break;
	} while (!dwarf_siblingof(&child, &child));
}

static int take_function(Dwarf_Die *function, void *arg)
{
	struct wanted *wanted = arg;
	const char *name = dwarf_diename(function), *linked;
	Dwarf_Addr elf_vaddr = 0;
	Dwarf_Attribute attribute;

	linked = dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute) ? dwarf_formstring(&attribute) : NULL;
	if ((!name || strcmp(name, wanted->name) != 0) && (!linked || strcmp(linked, wanted->name) != 0))
		return DWARF_CB_OK;
	if (!dwarf_hasattr_integrate(function, DW_AT_low_pc) && !dwarf_hasattr_integrate(function, DW_AT_ranges))
		return DWARF_CB_OK; /* only declared, or inlined everywhere */
	if (dwarf_entrypc(function, &elf_vaddr) || !elf_vaddr || elf_vaddr == wanted->elf_vaddr)
		return DWARF_CB_OK; /* a copy in another unit that the linker has left out */
	wanted->elf_vaddr = elf_vaddr;
	if (!wanted->nr_found++)
		take_args(function, wanted->language, wanted->args);
	return DWARF_CB_OK;
}

int dwarf_function_args(const char *path, const char *function, struct dwarf_args *ret_args)
{
	CLEANUP(opened_done) struct opened opened = { .fd = -1 };
	struct dwarf_args args = { 0 };
	struct wanted wanted = { .name = function, .args = &args };
	Dwarf_Off at = 0, next;
	size_t header;
	int err = open_dwarf(path, &opened);

	for (; !err && !dwarf_nextcu(opened.dwarf, at, &next, &header, NULL, NULL, NULL); at = next) {
		Dwarf_Die unit;

		if (!dwarf_offdie(opened.dwarf, at + header, &unit))
			continue;
		wanted.language = dwarf_srclang(&unit);
		dwarf_getfuncs(&unit, take_function, &wanted, 0);
	}
	if (!wanted.nr_found)
		return -ENODATA;
	*ret_args = wanted.nr_found == 1 ? args : (struct dwarf_args){ 0 };
	return 0;
}
