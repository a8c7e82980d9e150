// SPDX-License-Identifier: Apache-2.0
/* perl: the interpreter of Perl 5, as a program or as libperl.so. Sources: perl.h, intrpvar.h, util.c of 5.32 to 5.42. */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "elf/dynamic_symbol.h"
#include "runtime/perl/perl_names.h"
#include "runtime/perl/perl_tables.h"
#include "runtime/runtime.h"
#include "runtime/tls_access.h"

#define PERL_MAJOR 5
#define PAD_LEAVEMY_BYTES 1024 /* of its code are examined; 5.36 has 400 */

static int unsupported(struct runtime_image *image, const char *reason)
{
	snprintf(image->reason, sizeof(image->reason), "%s", reason);
	return 0;
}

/* PL_revision, PL_version and PL_subversion are one byte each. */
static int read_version(const struct elf_file *elf, uint8_t version[3])
{
	static const char *const names[] = { "PL_revision", "PL_version", "PL_subversion" };
	struct dynamic_symbol symbol;

	for (int i = 0; i < 3; i++) {
		if (dynamic_symbol_find(elf, names[i], &symbol) || symbol.type != STT_OBJECT ||
		    elf_file_read_vaddr(elf, symbol.elf_vaddr, &version[i], 1))
			return -ENOENT;
	}
	return 0;
}

static void add_loop(const struct elf_file *elf, const char *name, struct runtime_image *image)
{
	struct dynamic_symbol symbol;

	if (dynamic_symbol_find(elf, name, &symbol) || symbol.type != STT_FUNC || !symbol.size_bytes ||
	    symbol.elf_vaddr > UINT64_MAX - symbol.size_bytes)
		return;
	image->loops[image->nr_loops++] = (struct sonde_code_range){ symbol.elf_vaddr, symbol.elf_vaddr + symbol.size_bytes };
}

/* With threads: PL_current_context if the program itself has it (from 5.36 on), else the key PL_thr_key, which all have. */
static int find_root(const struct elf_file *elf, struct sonde_tls *ret_root)
{
	struct dynamic_symbol key;

	if (!tls_access_symbol(elf, "PL_current_context", ret_root))
		return 0;
	if (dynamic_symbol_find(elf, "PL_thr_key", &key))
		return -ENOENT;
	*ret_root = (struct sonde_tls){ .kind = SONDE_TLS_KEY, .pc = key.elf_vaddr };
	return 0;
}

static int find_globals(const struct elf_file *elf, struct sonde_perl *perl)
{
	struct dynamic_symbol op, curcop, curstackinfo, top_env;

	if (dynamic_symbol_find(elf, "PL_op", &op) || dynamic_symbol_find(elf, "PL_curcop", &curcop) ||
	    dynamic_symbol_find(elf, "PL_curstackinfo", &curstackinfo) || dynamic_symbol_find(elf, "PL_top_env", &top_env))
		return -ENOENT;
	perl->op_pc = op.elf_vaddr;
	perl->curcop_pc = curcop.elf_vaddr;
	perl->curstackinfo_pc = curstackinfo.elf_vaddr;
	perl->top_env_pc = top_env.elf_vaddr;
	return 0;
}

/* True if Perl_pad_leavemy, which makes PL_cop_seqmax grow (pad.c), uses that offset in struct interpreter. Builds with other options may
 * have it elsewhere. In x86-64 the offset is a part of the instruction. */
static bool is_seqmax(const struct elf_file *elf, uint32_t off)
{
	uint8_t code[PAD_LEAVEMY_BYTES];
	struct dynamic_symbol symbol;
	size_t size;

	if (elf_file_machine(elf) != EM_X86_64 || dynamic_symbol_find(elf, "Perl_pad_leavemy", &symbol) || symbol.type != STT_FUNC)
		return false;
	size = symbol.size_bytes < sizeof(code) ? (size_t)symbol.size_bytes : sizeof(code);
	return !elf_file_read_vaddr(elf, symbol.elf_vaddr, code, size) && memmem(code, size, &off, sizeof(off));
}

/* Sets what all files of a version have in common. */
static void take_row(const struct perl_row *row, const struct sonde_code_range loops[SONDE_MAX_LOOPS], struct sonde_perl *perl)
{
	perl->interpreter_op = row->op;
	perl->interpreter_curcop = row->curcop;
	perl->interpreter_curstackinfo = row->curstackinfo;
	perl->interpreter_top_env = row->top_env;
	perl->op_nextstate = row->op_nextstate;
	perl->interpreter_cop_seqmax = row->cop_seqmax;
	perl->interpreter_bytes = row->bytes;
	perl->pad = 0;
	memcpy(perl->loops, loops, sizeof(perl->loops));
}

static int fill(const struct elf_file *elf, struct runtime_image *image)
{
	const struct perl_row *row = perl_row_of(image->version[1]);
	struct sonde_perl *perl = RUNTIME_OWN(struct sonde_perl, image->known);

	if (!row)
		return unsupported(image, image->version[1] % 2 ? "a development version" : "no layout of this version is known");
	if (find_root(elf, &perl->process.root) && find_globals(elf, perl))
		return unsupported(image, "its interpreter is not found: neither PL_thr_key nor PL_curstackinfo");
	add_loop(elf, "Perl_runops_standard", image);
	add_loop(elf, "Perl_runops_debug", image);
	if (!image->nr_loops)
		return unsupported(image, "Perl_runops_standard is not exported");
	take_row(row, image->loops, perl);
	if (!is_seqmax(elf, row->cop_seqmax))
		perl->interpreter_cop_seqmax = 0;
	image->is_supported = 1;
	return 0;
}

static bool is_sound(const struct runtime_image *image)
{
	const struct perl_row *row = perl_row_of(image->version[1]);
	struct sonde_perl made = *RUNTIME_OWN(const struct sonde_perl, image->known);

	if (!row || image->version[0] != PERL_MAJOR || !image->nr_loops)
		return false;
	take_row(row, image->loops, &made);
	if (!RUNTIME_OWN(const struct sonde_perl, image->known)->interpreter_cop_seqmax)
		made.interpreter_cop_seqmax = 0;
	return !memcmp(&made, &image->known, sizeof(made));
}

static int examine(const struct elf_file *elf, struct runtime_image *ret_image)
{
	struct runtime_image image;

	memset(&image, 0, sizeof(image));
	image.runtime = SONDE_RUNTIME_PERL;
	if (read_version(elf, image.version) || image.version[0] != PERL_MAJOR)
		return -ENOENT;
	fill(elf, &image);
	*ret_image = image;
	return 0;
}

static uint64_t placed(uint64_t elf_vaddr, uint64_t load_bias)
{
	return elf_vaddr ? elf_vaddr + load_bias : 0;
}

static int place(const struct runtime_image *image, uint64_t load_bias, const struct libc_facts *libc, const struct runtime_memory *memory,
		 struct diag *diag, void *ret_process)
{
	struct sonde_perl perl = *RUNTIME_OWN(const struct sonde_perl, image->known);

	if (perl.process.root.kind != SONDE_TLS_NONE && tls_access_place(&image->known.process.root, load_bias, libc, &perl.process.root))
		return diag_errno(diag, EOPNOTSUPP, "it is unknown where its C library keeps a thread's data");
	perl.process.load_bias = load_bias;
	perl.op_pc = placed(perl.op_pc, load_bias);
	perl.curcop_pc = placed(perl.curcop_pc, load_bias);
	perl.curstackinfo_pc = placed(perl.curstackinfo_pc, load_bias);
	perl.top_env_pc = placed(perl.top_env_pc, load_bias);
	for (int i = 0; i < SONDE_MAX_LOOPS; i++) {
		perl.loops[i].start_pc = placed(perl.loops[i].start_pc, load_bias);
		perl.loops[i].end_pc = placed(perl.loops[i].end_pc, load_bias);
	}
	memcpy(ret_process, &perl, sizeof(perl));
	return 0;
}

const struct runtime runtime_perl = {
	.examine = examine,
	.is_sound = is_sound,
	.place = place,
	.describe = perl_describe,
	.layout = "a table of versions, and what its own code shows",
};
