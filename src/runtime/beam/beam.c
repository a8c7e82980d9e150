// SPDX-License-Identifier: Apache-2.0
/* beam: Erlang's BEAM with its JIT. docs/internals/beam.md. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <elf.h>

#include "elf/dynamic_symbol.h"
#include "runtime/beam/beam_private.h"
#include "runtime/tls_access.h"
#include "runtime/tls_code.h"
#include "runtime/words.h"

#define MAX_INSTRUCTIONS 16
#define SYSTEM_INFO_BYTES 128
#define LEA_RIP_BYTES 7

enum { CALL = 0xe8, MOV_R_RM = 0x8b };

/* Tried with Debian's. The facts about a module's header are compared with the file's code. */
static const struct beam_row rows[] = {
	{ 25, 0xa8, 0x58, 0x60, 0x48, 0 },
	{ 27, 0xa8, 0x58, 0x88, 0x48, 0 },
	{ 28, 0xa8, 0x58, 0x98, 0x48, 1 },
	{ 29, 0xa8, 0x58, 0x98, 0x48, 1 },
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

/* enif_thread_type calls erts_get_scheduler_data, which returns a thread's variable. */
static int find_scheduler(const struct elf_file *elf, struct sonde_tls *ret_tls)
{
	struct x86_instruction i;
	uint64_t at;

	if (find(elf, "enif_thread_type", &at))
		return -ENOENT;
	for (int nr = 0; nr < MAX_INSTRUCTIONS && !x86_instruction_next(elf, &at, &i); nr++) {
		if (i.opcode == CALL)
			return tls_code_follow(elf, at + (uint64_t)i.immediate, ret_tls);
	}
	return -ENOENT;
}

/* enif_get_atom_length looks into erts_atom_table. */
static int find_atoms(const struct elf_file *elf, uint64_t *ret_atoms)
{
	struct x86_instruction i;
	uint64_t at;

	if (find(elf, "enif_get_atom_length", &at))
		return -ENOENT;
	for (int nr = 0; nr < MAX_INSTRUCTIONS && !x86_instruction_next(elf, &at, &i); nr++) {
		if (i.opcode == MOV_R_RM && i.base == X86_RIP) {
			*ret_atoms = at + (uint64_t)i.displacement;
			return 0;
		}
	}
	return -ENOENT;
}

static int fill(const struct elf_file *elf, struct runtime_image *image)
{
	struct beam_naming *naming = RUNTIME_OWN(struct beam_naming, image->naming);
	struct sonde_beam *beam = RUNTIME_OWN(struct sonde_beam, image->known);
	const struct beam_row *row = beam_row_of(image->version[0]);
	int32_t has_jit = 0;
	uint64_t vaddr;

	if (elf_file_machine(elf) != EM_X86_64)
		return unsupported(image, "not known on this machine");
	if (!image->version[0])
		return unsupported(image, "its version is not known");
	if (!find(elf, "etp_beamasm", &vaddr) && (elf_file_read_vaddr(elf, vaddr, &has_jit, sizeof(has_jit)) || !has_jit))
		return unsupported(image, "an emulator without the JIT");
	if (!row)
		return unsupported(image, "no layout of this version is known");
	if (beam_lookup_find(elf, row, beam))
		return unsupported(image, "the table of its code is not found");
	if (beam_main_find(elf, beam, naming))
		return unsupported(image, "process_main's code is not found");
	if (find_atoms(elf, &naming->atoms) || find_scheduler(elf, &beam->process.root))
		return unsupported(image, "it is not found where its data are");
	beam->current_process = row->current_process;
	beam->functions = row->functions;
	beam->stop = row->stop;
	image->is_supported = 1;
	return 0;
}

/* "25"; 0: it is no release. */
static uint8_t release_at(const struct elf_file *elf, uint64_t vaddr)
{
	char text[3];

	if (elf_file_read_vaddr(elf, vaddr, text, sizeof(text)) || text[2])
		return 0;
	return text[0] >= '1' && text[0] <= '9' && text[1] >= '0' && text[1] <= '9' ? (uint8_t)((text[0] - '0') * 10 + text[1] - '0') : 0;
}

/* etp_otp_release is a char array. Files without it: driver_system_info returns that text, and takes its address with lea. */
static uint8_t read_version(const struct elf_file *elf)
{
	uint8_t code[SYSTEM_INFO_BYTES], release = 0;
	uint64_t at;

	if (!find(elf, "etp_otp_release", &at))
		return release_at(elf, at);
	if (find(elf, "driver_system_info", &at) || elf_file_read_vaddr(elf, at, code, sizeof(code)))
		return 0;
	for (uint32_t i = 0; i + LEA_RIP_BYTES <= sizeof(code) && !release; i++) {
		if (code[i] == 0x48 && code[i + 1] == 0x8d && (code[i + 2] & 0xc7) == 5)
			release = release_at(elf, at + i + LEA_RIP_BYTES + (uint64_t)(int64_t)(int32_t)u32_at(code, i + 3));
	}
	return release;
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
	image.version[0] = read_version(elf);
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
				   .main_function = beam->main_function,
				   .caller_frame = beam->caller_frame };

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
	struct beam_memory of = { .memory = memory, .beam = &beam, .row = beam_row_of(image->version[0]) };
	int err;

	if (tls_access_place(&image->known.process.root, load_bias, libc, &beam.process.root))
		return diag_errno(diag, EOPNOTSUPP, "it is unknown where its C library keeps a thread's data");
	beam.process.load_bias = load_bias;
	beam.ranges += load_bias;
	beam.active_index += load_bias;
	beam.main_function += load_bias;
	err = beam_main_read(&of, naming, &beam);
	if (err == -EOPNOTSUPP)
		return diag_errno(diag, EOPNOTSUPP, "process_main's code begins in another way");
	if (err)
		return err;
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
