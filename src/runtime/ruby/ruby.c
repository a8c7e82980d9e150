// SPDX-License-Identifier: Apache-2.0
/* ruby: CRuby, in its library or in the program. Recognised by the symbols that it exports to extensions. Debian's files are stripped. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <elf.h>

#include "elf/dynamic_symbol.h"
#include "runtime/ruby/ruby_private.h"
#include "runtime/tls_access.h"

/* 2.7, 3.1, 3.3 and 3.4: tried with Debian's. 3.0 and 3.2: by their headers alone, as rbspy's ruby-structs have them, which agree with the
 * others; none was at hand to be run. */
static const struct ruby_row rows[] = {
	{ 2, 7, 56, 0, 152, 88, 120, 136, 144, 168, 8, 32, false },   { 3, 0, 56, 0, 152, 88, 120, 136, 144, 168, 8, 32, false },
	{ 3, 1, 64, 56, 144, 88, 120, 136, 144, 168, 12, 32, false }, { 3, 2, 64, 56, 152, 88, 112, 128, 136, 160, 12, 32, true },
	{ 3, 3, 56, 48, 152, 88, 112, 128, 136, 160, 12, 32, true },  { 3, 4, 56, 48, 144, 88, 112, 128, 136, 160, 12, 32, true },
};

const struct ruby_row *ruby_row_of(uint32_t major, uint32_t minor)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].major == major && rows[i].minor == minor)
			return &rows[i];
	}
	return NULL;
}

static int unsupported(struct runtime_image *image, const char *why)
{
	snprintf(image->reason, sizeof(image->reason), "%s", why);
	return 0;
}

/* ruby_api_version: three int; the last is 0. ruby_version is a text: "3.1.2". */
static int read_version(const struct elf_file *elf, uint8_t version[3])
{
	struct dynamic_symbol symbol;
	unsigned int parts[3];
	char text[16] = "";

	if (dynamic_symbol_find(elf, "ruby_version", &symbol) || elf_file_read_vaddr(elf, symbol.elf_vaddr, text, 6))
		return -ENOENT;
	if (sscanf(text, "%u.%u.%u", &parts[0], &parts[1], &parts[2]) != 3)
		return -ENOENT;
	for (int i = 0; i < 3; i++)
		version[i] = (uint8_t)(parts[i] < 255 ? parts[i] : 255);
	return 0;
}

static void take_row(const struct ruby_row *row, const struct sonde_code_range loops[SONDE_MAX_LOOPS], struct sonde_ruby *ruby)
{
	memcpy(ruby->loops, loops, sizeof(ruby->loops));
	ruby->cfp_bytes = row->cfp_bytes;
	ruby->cfp_jit_return = row->cfp_jit_return;
	ruby->ec_machine = row->ec_machine;
}

static int fill(const struct elf_file *elf, struct runtime_image *image)
{
	const struct ruby_row *row = ruby_row_of(image->version[0], image->version[1]);
	struct sonde_ruby *ruby = RUNTIME_OWN(struct sonde_ruby, image->known);
	struct ruby_naming *naming = RUNTIME_OWN(struct ruby_naming, image->naming);
	int err;

	if (elf_file_machine(elf) != EM_X86_64)
		return unsupported(image, "not known on this machine");
	if (!row)
		return unsupported(image, "no layout of this version is known");
	err = ruby_loops_find(elf, &image->loops[0], &ruby->core);
	if (err)
		return err == -ENOMEM ? err : unsupported(image, "its interpreter, rb_vm_exec, is not found");
	image->nr_loops = 1;
	if (ruby_root_find(elf, &ruby->process.root))
		return unsupported(image, "it is not found where its threads keep their state");
	if (ruby_symbols_find(elf, naming))
		return unsupported(image, "the table of its symbols is not found");
	ruby_gc_find(elf, naming);
	take_row(row, image->loops, ruby);
	image->is_supported = 1;
	return 0;
}

static int ruby_examine(const struct elf_file *elf, struct runtime_image *ret_image)
{
	struct runtime_image image;
	struct dynamic_symbol symbol;

	memset(&image, 0, sizeof(image));
	image.runtime = SONDE_RUNTIME_RUBY;
	if (dynamic_symbol_find(elf, "ruby_run_node", &symbol) || read_version(elf, image.version))
		return -ENOENT;
	if (fill(elf, &image))
		return -ENOMEM;
	*ret_image = image;
	return 0;
}

static bool ruby_is_sound(const struct runtime_image *image)
{
	const struct ruby_row *row = ruby_row_of(image->version[0], image->version[1]);
	struct sonde_ruby made = *RUNTIME_OWN(const struct sonde_ruby, image->known);

	if (!row || !image->nr_loops)
		return false;
	take_row(row, image->loops, &made);
	made.gc_count = made.gc_flags = 0;
	return !memcmp(&made, &image->known, sizeof(made));
}

/* The objspace is made before any code runs, and stays. */
static int place_gc(const struct ruby_naming *naming, const struct runtime_memory *memory, struct sonde_ruby *ruby)
{
	uint64_t at = naming->vm + ruby->process.load_bias;
	int err = 0;

	if (!naming->vm)
		return 0;
	for (uint32_t i = 0; i < naming->is_pointer + 1 && !err; i++)
		err = memory->read(memory->arg, at, &at, sizeof(at));
	if (!err && at)
		err = memory->read(memory->arg, at + naming->vm_objspace, &at, sizeof(at));
	if (err)
		return err;
	if (!at)
		return -EAGAIN;
	ruby->gc_count = at + naming->count;
	ruby->gc_flags = at + naming->flags;
	return 0;
}

static int ruby_place(const struct runtime_image *image, uint64_t load_bias, const struct libc_facts *libc,
		      const struct runtime_memory *memory, struct diag *diag, void *ret_process)
{
	struct sonde_ruby ruby = *RUNTIME_OWN(const struct sonde_ruby, image->known);
	int err;

	if (tls_access_place(&image->known.process.root, load_bias, libc, &ruby.process.root))
		return diag_errno(diag, EOPNOTSUPP, "it is unknown where its C library keeps a thread's data");
	ruby.process.load_bias = load_bias;
	for (uint32_t i = 0; i < SONDE_MAX_LOOPS && ruby.loops[i].end_pc; i++) {
		ruby.loops[i].start_pc += load_bias;
		ruby.loops[i].end_pc += load_bias;
	}
	ruby.core.start_pc += ruby.core.end_pc ? load_bias : 0;
	ruby.core.end_pc += ruby.core.end_pc ? load_bias : 0;
	err = place_gc(RUNTIME_OWN(const struct ruby_naming, image->naming), memory, &ruby);
	if (err)
		return err;
	memcpy(ret_process, &ruby, sizeof(ruby));
	return 0;
}

const struct runtime runtime_ruby = {
	.examine = ruby_examine,
	.is_sound = ruby_is_sound,
	.place = ruby_place,
	.describe = ruby_describe,
	.layout = "a table of versions, and what its own code shows",
};
