// SPDX-License-Identifier: Apache-2.0
#include "dwarf/dwarf_places.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
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

struct nearest {
	uint64_t elf_vaddr; /* of the line that was asked for; 0: not found */
	int line;	    /* the next one with code; 0: none */
	bool has_source;
};

static void look_at(Dwarf_Line *line, const char *source, uint32_t wanted, struct nearest *nearest)
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
	if ((uint32_t)number == wanted && (!nearest->elf_vaddr || elf_vaddr < nearest->elf_vaddr))
		nearest->elf_vaddr = elf_vaddr;
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
			look_at(dwarf_onesrcline(lines, i), source, line, nearest);
	}
}

int dwarf_line_place(const char *path, const char *source, uint32_t line, struct diag *diag, uint64_t *ret_file_off)
{
	CLEANUP(opened_done) struct opened opened = { .fd = -1 };
	struct nearest nearest = { 0 };

	if (open_dwarf(path, &opened))
		return diag_errno(diag, ENODATA, "%.200s has no source lines (DWARF) in it: build it with -g, or give a function", path);
	look_for(opened.dwarf, source, line, &nearest);
	if (!nearest.has_source)
		return diag_errno(diag, ENOENT, "%.120s is not made of a source '%.80s'", path, source);
	if (!nearest.elf_vaddr && nearest.line)
		return diag_errno(diag, ENOENT, "there is no code at line %u of %.80s: the next is line %d", line, source, nearest.line);
	if (!nearest.elf_vaddr)
		return diag_errno(diag, ENOENT, "there is no code at or behind line %u of %.80s", line, source);
	return file_off_of(opened.dwarf, nearest.elf_vaddr, ret_file_off)
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

/* How the argument is passed: in a general register, in one of floating point, or otherwise (then what follows is not known either). */
enum passed { PASSED_GENERAL, PASSED_FLOAT, PASSED_OTHERWISE };

static enum passed how_passed(Dwarf_Die *type, bool *ret_is_signed)
{
	Dwarf_Attribute attribute;
	Dwarf_Word encoding = 0;
	int tag = dwarf_tag(type);

	*ret_is_signed = false;
	if (tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type ||
	    tag == DW_TAG_enumeration_type)
		return PASSED_GENERAL;
	if (tag != DW_TAG_base_type || !dwarf_attr_integrate(type, DW_AT_encoding, &attribute) || dwarf_formudata(&attribute, &encoding) ||
	    dwarf_bytesize(type) > 8)
		return PASSED_OTHERWISE;
	*ret_is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
	return encoding == DW_ATE_float ? PASSED_FLOAT : PASSED_GENERAL;
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
	bool found;
};

static int take_function(Dwarf_Die *function, void *arg)
{
	struct wanted *wanted = arg;
	const char *name = dwarf_diename(function), *linked;
	Dwarf_Attribute attribute;
	uint8_t general = 0;
	Dwarf_Die child;

	linked = dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute) ? dwarf_formstring(&attribute) : NULL;
	if ((!name || strcmp(name, wanted->name) != 0) && (!linked || strcmp(linked, wanted->name) != 0))
		return DWARF_CB_OK;
	if (!dwarf_hasattr_integrate(function, DW_AT_low_pc) && !dwarf_hasattr_integrate(function, DW_AT_ranges))
		return DWARF_CB_OK; /* only declared, or inlined everywhere */
	wanted->found = true;
	if (dwarf_child(function, &child))
		return DWARF_CB_ABORT;
	do {
		if (dwarf_tag(&child) == DW_TAG_formal_parameter && !take_arg(&child, wanted->args, &general))
			break;
	} while (!dwarf_siblingof(&child, &child));
	return DWARF_CB_ABORT;
}

int dwarf_function_args(const char *path, const char *function, struct dwarf_args *ret_args)
{
	CLEANUP(opened_done) struct opened opened = { .fd = -1 };
	struct dwarf_args args = { 0 };
	struct wanted wanted = { .name = function, .args = &args };
	Dwarf_Off at = 0, next;
	size_t header;
	int err = open_dwarf(path, &opened);

	for (; !err && !wanted.found && !dwarf_nextcu(opened.dwarf, at, &next, &header, NULL, NULL, NULL); at = next) {
		Dwarf_Die unit;

		if (dwarf_offdie(opened.dwarf, at + header, &unit))
			dwarf_getfuncs(&unit, take_function, &wanted, 0);
	}
	if (!wanted.found)
		return -ENODATA;
	*ret_args = args;
	return 0;
}
