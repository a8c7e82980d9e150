// SPDX-License-Identifier: Apache-2.0
/* php: PHP 7.4 to 8.5 without threads (NTS): php, php-fpm, libphp of Apache. Recognised by the symbols that it exports to extensions. Its
 * root is a global variable, so processes differ in the load bias alone. */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <elf.h>

#include "elf/dynamic_symbol.h"
#include "runtime/php/php_private.h"

#define CHECK_TRIES 16  /* the process runs during the check */
#define CHECK_FRAMES 16
#define OPLINE_REG_X86 15
/* From this size on, execute_ex contains the whole interpreter, and JIT code runs on its frame. A smaller execute_ex is a loop that makes
 * calls, and so does its JIT code. */
#define MIN_HYBRID_BYTES 32768

__attribute__((format(printf, 2, 3))) static int unsupported(struct runtime_image *image, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(image->reason, sizeof(image->reason), fmt, args);
	va_end(args);
	return 0;
}

static void image_fill(struct runtime_image *image, const struct php_layout *layout, uint64_t executor_globals, uint64_t sapi,
		       uint16_t machine)
{
	struct sonde_php *php = RUNTIME_OWN(struct sonde_php, image->known);

	php->sapi_pc = sapi;
	php->fn_closure = layout->major < 8 ? 1u << 20 : layout->minor < 2 ? 0 : 1u << 22;
	php->process.root.kind = SONDE_TLS_GLOBAL;
	php->process.root.pc = executor_globals + layout->current_execute_data;
	memcpy(php->loops, image->loops, sizeof(php->loops));
	php->op_array_last = layout->op_array_last;
	php->op_array_opcodes = layout->op_array_opcodes;
	php->op_array_filename = layout->op_array_filename;
	php->op_array_line_start = layout->op_array_line_start;
	php->generator_execute_data = layout->generator_execute_data;
	php->generator_parent = layout->generator_parent;
	php->generator_fake = layout->generator_fake;
	php->generator_flags = layout->generator_flags;
	php->opline_reg = machine == EM_X86_64 ? OPLINE_REG_X86 : 28; /* ZEND_VM_IP_GLOBAL_REG: r15, x28 (Zend/zend_execute.c) */
	php->frame_reg = machine == EM_X86_64 ? 14 : 27;  /* ZEND_VM_FP_GLOBAL_REG */
	image->is_supported = 1;
}

static int php_examine(const struct elf_file *elf, struct runtime_image *ret_image)
{
	struct runtime_image image = { .runtime = SONDE_RUNTIME_PHP };
	const struct php_layout *layout;
	struct dynamic_symbol globals, sapi = { 0 };
	int nr, err;

	nr = php_loops_find(elf, image.loops);
	if (nr < 0)
		return nr;
	image.nr_loops = (uint32_t)nr;
	err = php_version_read(elf, image.version);
	if (err == -ENOMEM)
		return err;
	layout = php_layout_of(image.version[0], image.version[1]);
	if (dynamic_symbol_find(elf, "executor_globals", &globals))
		unsupported(&image, dynamic_symbol_find(elf, "executor_globals_offset", &globals) ? "executor_globals is not exported"
												  : "built for threads (ZTS)");
	else if (err)
		unsupported(&image, "its version is not known");
	else if (!layout)
		unsupported(&image, "no layout of PHP %u.%u is known", image.version[0], image.version[1]);
	else if (php_layout_check(layout, elf, globals.elf_vaddr))
		unsupported(&image, "its data are not laid out as those of PHP %u.%u", image.version[0], image.version[1]);
	else
		image_fill(&image, layout, globals.elf_vaddr, dynamic_symbol_find(elf, "sapi_module", &sapi) ? 0 : sapi.elf_vaddr,
			   elf_file_machine(elf));
	*ret_image = image;
	return 0;
}

static bool php_is_sound(const struct runtime_image *image)
{
	const struct php_layout *layout = php_layout_of(image->version[0], image->version[1]);
	struct runtime_image made = { .nr_loops = image->nr_loops };
	const struct sonde_php *php = RUNTIME_OWN(const struct sonde_php, image->known);

	if (!layout || !image->nr_loops)
		return false;
	memcpy(made.loops, image->loops, sizeof(made.loops));
	image_fill(&made, layout, php->process.root.pc - layout->current_execute_data, php->sapi_pc,
		   php->opline_reg == OPLINE_REG_X86 ? EM_X86_64 : EM_AARCH64);
	return !memcmp(php, &made.known, sizeof(*php));
}

/* Checks that the process has a PHP stack. 0: it has, or runs no PHP code now. */
static int check_stack(const struct sonde_php *php, const struct runtime_memory *memory)
{
	uint64_t ex, head[SONDE_PHP_EX_BYTES / 8];
	int err = memory->read(memory->arg, php->process.root.pc, &ex, sizeof(ex));

	for (int i = 0; !err && ex && i < CHECK_FRAMES; i++) {
		uint64_t fn;
		uint8_t type = SONDE_PHP_USER;

		err = memory->read(memory->arg, ex, head, sizeof(head));
		if (err)
			break;
		fn = head[SONDE_PHP_EX_FUNC / 8];
		ex = head[SONDE_PHP_EX_PREV / 8];
		if (fn)
			err = memory->read(memory->arg, fn, &type, sizeof(type));
		if (!err && type != SONDE_PHP_INTERNAL && type != SONDE_PHP_USER && type != SONDE_PHP_EVAL)
			err = -EBADMSG;
	}
	return err;
}

/* Does the process run a script from the command line (sapi/cli)? Other servers of requests give back what they compiled, after each. */
static bool is_command_line(uint64_t sapi_pc, const struct runtime_memory *memory)
{
	uint64_t name = 0;
	char text[4] = "";

	return sapi_pc && !memory->read(memory->arg, sapi_pc, &name, sizeof(name)) && name &&
	       !memory->read(memory->arg, name, text, sizeof(text)) && !memcmp(text, "cli", sizeof(text));
}

static int php_place(const struct runtime_image *image, uint64_t load_bias, const struct libc_facts *libc,
		     const struct runtime_memory *memory, struct diag *diag, void *ret_process)
{
	struct sonde_php php = *RUNTIME_OWN(const struct sonde_php, image->known);
	int err = 0;

	php.process.root.pc += load_bias;
	for (uint32_t i = 0; i < SONDE_MAX_LOOPS && php.loops[i].end_pc; i++) {
		php.loops[i].start_pc += load_bias;
		php.loops[i].end_pc += load_bias;
	}
	for (int i = 0; i < CHECK_TRIES; i++) {
		err = check_stack(&php, memory);
		if (err != -EFAULT && err != -EBADMSG)
			break;
	}
	if (err == -EFAULT || err == -EBADMSG)
		return diag_errno(diag, EOPNOTSUPP, "its stack is not laid out as that of PHP %u.%u", image->version[0], image->version[1]);
	if (err)
		return err;
	if (php.sapi_pc)
		php.sapi_pc += load_bias;
	php.is_one_request = is_command_line(php.sapi_pc, memory);
	memcpy(ret_process, &php, sizeof(php));
	return 0;
}

/* The last two words of opcache's code buffer say up to where it is filled and, from PHP 8.1 on, where the part that all processes share
 * ends (dasm_ptr, ext/opcache/jit/zend_jit.c). */
static bool php_owns_code(const struct runtime_image *image, const struct runtime_memory *memory, uint64_t start_pc, uint64_t end_pc,
			  void *process)
{
	const struct sonde_code_range *loop = &image->loops[0];
	struct sonde_php *php = process;
	uint32_t nr = image->nr_loops;
	uint64_t ends[2];

	if (loop->end_pc - loop->start_pc < MIN_HYBRID_BYTES || nr >= SONDE_MAX_LOOPS || end_pc - start_pc <= sizeof(ends) ||
	    memory->read(memory->arg, end_pc - sizeof(ends), ends, sizeof(ends)))
		return false;
	if (ends[1] <= start_pc || ends[1] >= end_pc || (ends[0] && (ends[0] < ends[1] || ends[0] >= end_pc)))
		return false;
	php->compiled = php->loops[nr] = (struct sonde_code_range){ start_pc, end_pc };
	return true;
}

const struct runtime runtime_php = {
	.examine = php_examine,
	.is_sound = php_is_sound,
	.place = php_place,
	.owns_code = php_owns_code,
	.describe = php_describe,
	.layout = "a table of versions, and what its own code shows",
};
