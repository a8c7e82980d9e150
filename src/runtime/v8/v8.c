// SPDX-License-Identifier: Apache-2.0
/* v8: the JavaScript engine of Node.js. docs/internals/v8.md. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <elf.h>

#include "elf/dynamic_symbol.h"
#include "runtime/v8/v8_builtins.h"
#include "runtime/v8/v8_layout.h"
#include "runtime/v8/v8_names.h"

#define VERSION "_ZN2v88internal7Version"

static int unsupported(struct runtime_image *image, const char *why)
{
	snprintf(image->reason, sizeof(image->reason), "%s", why);
	return 0;
}

static int read_version(const struct v8_file *file, uint8_t version[3])
{
	static const char *const parts[] = { VERSION "6major_E", VERSION "6minor_E", VERSION "6build_E" };

	for (int i = 0; i < 3; i++) {
		int32_t value;

		if (v8_file_constant(file, parts[i], &value))
			return -ENOENT;
		version[i] = value >= 0 && value < 256 ? (uint8_t)value : 255;
	}
	return 0;
}

static int examine_file(const struct v8_file *file, struct runtime_image *image)
{
	struct v8_process *process = RUNTIME_OWN(struct v8_process, image->known);
	const char *why;
	int err;

	if (read_version(file, image->version))
		return -ENOENT;
	if (elf_file_machine(file->elf) != EM_X86_64)
		return unsupported(image, "not known on this machine");
	image->known.process.root.kind = SONDE_TLS_NONE;
	if (v8_layout_read(file, image->version, process, &why))
		return unsupported(image, why);
	err = v8_builtins_find(file, process);
	if (err == -ENOMEM)
		return err;
	if (err)
		return unsupported(image, "its builtins are not found");
	image->is_supported = 1;
	return 0;
}

static int v8_examine(const struct elf_file *elf, struct runtime_image *ret_image)
{
	struct runtime_image image = { .runtime = SONDE_RUNTIME_V8 };
	struct dynamic_symbol version;
	struct v8_file file;
	int err;

	if (dynamic_symbol_find(elf, VERSION "6major_E", &version)) /* which is fast: most files have no V8 */
		return -ENOENT;
	err = v8_file_read(elf, &file);
	if (!err)
		err = examine_file(&file, &image);
	v8_file_done(&file);
	if (!err)
		*ret_image = image;
	return err;
}

static bool v8_is_sound(const struct runtime_image *image)
{
	const struct v8_process *process = RUNTIME_OWN(const struct v8_process, image->known);
	uint32_t stride = process->v8.table_stride;

	return !image->nr_loops && v8_layout_is_sound(process) && process->v8.nr_builtins >= 1 && process->v8.nr_builtins <= 8192 &&
	       (stride == 12 || stride == 16 || stride == 28 || stride == 32) && process->layout.builtins_bytes < 1 << 30;
}

static int v8_place(const struct runtime_image *image, uint64_t load_bias, const struct libc_facts *libc,
		    const struct runtime_memory *memory, struct diag *diag, void *ret_process)
{
	struct v8_process *process = ret_process;

	*process = *RUNTIME_OWN(const struct v8_process, image->known);
	process->v8.process.load_bias = load_bias;
	process->v8.table += load_bias;
	process->layout.metadata += load_bias;
	return 0;
}

/* Any memory without a file: whether V8 made what is there is seen at each frame. */
static bool v8_owns_code(const struct runtime_image *image, const struct runtime_memory *memory, uint64_t start_pc, uint64_t end_pc,
			 void *process)
{
	return true;
}

/* The builtins are in a gap of the file's code. V8 may map them again near the code of a heap, of which each worker has one:
 * those that are not recorded the kernel side finds by their mappings. */
static bool v8_owns_part(void *of, uint64_t load_bias, uint64_t start_pc, uint64_t end_pc, struct sonde_code_range *ret_part)
{
	struct v8_process *process = of;
	struct sonde_code_range builtins = { load_bias + process->layout.builtins,
					     load_bias + process->layout.builtins + process->layout.builtins_bytes };
	struct sonde_code_range *copies = process->v8.builtins;

	if (builtins.start_pc < start_pc || builtins.end_pc > end_pc)
		return false;
	*ret_part = builtins;
	for (int i = 0; i < SONDE_V8_COPIES; i++) {
		if (copies[i].start_pc != builtins.start_pc && copies[i].end_pc)
			continue;
		copies[i] = builtins;
		break;
	}
	return true;
}

const struct runtime runtime_v8 = {
	.examine = v8_examine,
	.is_sound = v8_is_sound,
	.place = v8_place,
	.owns_code = v8_owns_code,
	.owns_part = v8_owns_part,
	.own_heap = "V8's heap does not use malloc, so only native code is seen; node --heap-prof shows the heap",
	.describe = v8_describe,
	.layout = "its own description (v8dbg_ symbols), and a table of versions",
};
