// SPDX-License-Identifier: Apache-2.0
/* beam: Erlang's BEAM with its JIT. docs/internals/beam.md. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <elf.h>

#include "elf/dynamic_symbol.h"
#include "runtime/beam/beam_private.h"
#include "runtime/tls_access.h"
#include "runtime/x86_instruction.h"

#define MAX_INSTRUCTIONS 48

enum { CALL = 0xe8, LEA = 0x8d, MOV_R_RM = 0x8b, RET = 0xc3 };

/* Tried with Debian's. The facts about a module's header are compared with the file's code. */
static const struct beam_row rows[] = {
	{ 25, 0xa8, 0x58, 0x60, 0x48, 120 },
	{ 27, 0xa8, 0x58, 0x88, 0x48, 120 },
};

const struct beam_row *beam_row_of(uint32_t release)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].release == release)
			return &rows[i];
	}
	return NULL;
}

static int unsupported(struct runtime_image *image, const char *why)
{
	snprintf(image->reason, sizeof(image->reason), "%s", why);
	return 0;
}

static int find(const struct elf_file *elf, const char *name, uint64_t *ret_vaddr)
{
	struct dynamic_symbol symbol;
	int err = dynamic_symbol_find(elf, name, &symbol);

	if (!err)
		*ret_vaddr = symbol.elf_vaddr;
	return err;
}

/* find_range (beam_ranges.c), which erts_lookup_function_info calls first: it reads the_active_code_index, and takes r[]'s address. */
static int find_ranges(const struct elf_file *elf, uint64_t at, uint64_t active_index, uint64_t *ret_ranges)
{
	struct x86_instruction i;
	uint64_t ranges = 0;
	bool has_index = false;

	for (int nr = 0; nr < MAX_INSTRUCTIONS && !x86_instruction_next(elf, &at, &i); nr++) {
		if (i.opcode == LEA && i.base == X86_RIP && !ranges)
			ranges = at + (uint64_t)i.displacement;
		else if (i.opcode == MOV_R_RM && i.base == X86_RIP)
			has_index |= at + (uint64_t)i.displacement == active_index;
		if (ranges && has_index) {
			*ret_ranges = ranges;
			return 0;
		}
	}
	return -ENOENT;
}

/* Does erts_lookup_function_info read a module's header as the row says? */
static int check_row(const struct elf_file *elf, uint64_t at, const struct beam_row *row, uint64_t active_index, uint64_t *ret_ranges)
{
	bool has_functions = false, has_lines = false;
	struct x86_instruction i;
	uint64_t called = 0;

	for (int nr = 0; nr < MAX_INSTRUCTIONS && !x86_instruction_next(elf, &at, &i); nr++) {
		if (i.opcode == CALL && !called)
			called = at + (uint64_t)i.immediate;
		has_functions |= i.opcode == LEA && i.base != X86_RSP && i.displacement == row->functions;
		has_lines |= i.opcode == MOV_R_RM && i.base != X86_RSP && i.displacement == row->line_table;
	}
	return has_functions && has_lines && called ? find_ranges(elf, called, active_index, ret_ranges) : -ENOENT;
}

static int fill(const struct elf_file *elf, struct runtime_image *image)
{
	struct beam_naming *naming = RUNTIME_OWN(struct beam_naming, image->naming);
	struct sonde_beam *beam = RUNTIME_OWN(struct sonde_beam, image->known);
	const struct beam_row *row = beam_row_of(image->version[0]);
	uint64_t lookup, vaddr, active_index, ranges, main_function;
	int32_t has_jit = 0;

	if (elf_file_machine(elf) != EM_X86_64)
		return unsupported(image, "not known on this machine");
	if (!image->version[0])
		return unsupported(image, "its version is not known: it exports no etp_otp_release");
	if (find(elf, "etp_beamasm", &vaddr) || elf_file_read_vaddr(elf, vaddr, &has_jit, sizeof(has_jit)) || !has_jit)
		return unsupported(image, "an emulator without the JIT");
	if (!row)
		return unsupported(image, "no layout of this version is known");
	if (find(elf, "the_active_code_index", &active_index) || find(elf, "erts_lookup_function_info", &lookup) ||
	    check_row(elf, lookup, row, active_index, &ranges))
		return unsupported(image, "the table of its code is not found");
	if (find(elf, "process_main", &main_function) || beam_main_find(elf, main_function, naming))
		return unsupported(image, "process_main's code is not found");
	beam->active_index = active_index;
	beam->ranges = ranges;
	beam->main_function = main_function;
	if (find(elf, "erts_atom_table", &naming->atoms) || find(elf, "beam_normal_exit", &naming->normal_exit) ||
	    find(elf, "erts_frame_layout", &naming->frame_layout) ||
	    tls_access_decode(elf, "erts_get_scheduler_data", &beam->process.root))
		return unsupported(image, "it does not export where its data are");
	beam->current_process = row->current_process;
	beam->functions = row->functions;
	beam->stop = row->stop;
	image->is_supported = 1;
	return 0;
}

/* etp_otp_release: "25", a char array. */
static void read_version(const struct elf_file *elf, uint8_t version[3])
{
	uint64_t vaddr;
	char text[2];

	if (find(elf, "etp_otp_release", &vaddr) || elf_file_read_vaddr(elf, vaddr, text, sizeof(text)))
		return;
	if (text[0] >= '1' && text[0] <= '9' && text[1] >= '0' && text[1] <= '9')
		version[0] = (uint8_t)((text[0] - '0') * 10 + text[1] - '0');
}

static int beam_examine(const struct elf_file *elf, struct runtime_image *ret_image)
{
	struct runtime_image image;
	uint64_t vaddr;

	memset(&image, 0, sizeof(image));
	image.runtime = SONDE_RUNTIME_BEAM;
	/* what each emulator exports to native functions */
	if (find(elf, "enif_schedule_nif", &vaddr) || find(elf, "enif_make_new_binary", &vaddr))
		return -ENOENT;
	read_version(elf, image.version);
	if (fill(elf, &image))
		return -ENOMEM;
	*ret_image = image;
	return 0;
}

static bool beam_is_sound(const struct runtime_image *image)
{
	const struct sonde_beam *beam = RUNTIME_OWN(const struct sonde_beam, image->known);
	const struct beam_row *row = beam_row_of(image->version[0]);
	struct sonde_beam made = { .process.root = beam->process.root,
				   .ranges = beam->ranges,
				   .active_index = beam->active_index,
				   .main_function = beam->main_function };

	if (!row || image->nr_loops)
		return false;
	made.current_process = row->current_process;
	made.functions = row->functions;
	made.stop = row->stop;
	return !memcmp(&made, beam, sizeof(made));
}

static int beam_place(const struct runtime_image *image, uint64_t load_bias, const struct libc_facts *libc,
		      const struct runtime_memory *memory, struct diag *diag, void *ret_process)
{
	const struct beam_naming *naming = RUNTIME_OWN(const struct beam_naming, image->naming);
	struct sonde_beam beam = *RUNTIME_OWN(const struct sonde_beam, image->known);
	int32_t layout;
	int err;

	if (tls_access_place(&image->known.process.root, load_bias, libc, &beam.process.root))
		return diag_errno(diag, EOPNOTSUPP, "it is unknown where its C library keeps a thread's data");
	beam.process.load_bias = load_bias;
	beam.ranges += load_bias;
	beam.active_index += load_bias;
	beam.main_function += load_bias;
	err = beam_main_read(naming, load_bias, memory, &beam);
	if (!err)
		err = memory->read(memory->arg, naming->normal_exit + load_bias, &beam.normal_exit, sizeof(beam.normal_exit));
	if (!err)
		err = memory->read(memory->arg, naming->frame_layout + load_bias, &layout, sizeof(layout));
	if (!err && !beam.normal_exit) /* it is just starting */
		err = -EAGAIN;
	if (err == -EOPNOTSUPP)
		return diag_errno(diag, EOPNOTSUPP, "process_main's code begins in another way");
	if (err)
		return err;
	beam.has_frames = layout != 0;
	memcpy(ret_process, &beam, sizeof(beam));
	return 0;
}

/* The JIT is the only one that makes code in this program; that of native functions is in files. */
static bool beam_owns_code(const struct runtime_image *image, const struct runtime_memory *memory, uint64_t start_pc, uint64_t end_pc,
			   void *process)
{
	return true;
}

const struct runtime runtime_beam = {
	.examine = beam_examine,
	.is_sound = beam_is_sound,
	.place = beam_place,
	.owns_code = beam_owns_code,
	.own_heap = "Erlang's processes have heaps of their own, so only native code is seen; erlang:memory() shows them",
	.describe = beam_describe,
	.layout = "a table of versions, and what its own code shows",
};
