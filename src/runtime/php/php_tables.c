// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <elf.h>

#include "elf/dynamic_symbol.h"
#include "runtime/php/php_private.h"

#define MAX_TEXT_BYTES ((size_t)64 << 20) /* limit for .rodata; PHP 8.5 has 5 MB */
#define CODE_BYTES 256

/* Printed by tools/php_layout.c from the headers of Debian's php7.4-dev, php8.2-dev, php8.4-dev and php8.5-dev. 8.0, 8.1 and 8.3 were taken
 * from Zend/zend_compile.h and Zend/zend_generators.h of their source. */
static const struct php_layout layouts[] = {
	{ 7, 4, 488, 60, 64, 136, 144, 64, 160, 200, 272 },
	{ 8, 0, 488, 68, 72, 144, 152, 56, 152, 184, 264 },
	{ 8, 1, 488, 68, 72, 144, 152, 56, 152, 184, 264 },
	{ 8, 2, 488, 80, 88, 152, 160, 56, 152, 184, 264 },
	{ 8, 3, 488, 76, 80, 144, 152, 56, 152, 184, 264 },
	{ 8, 4, 488, 96, 104, 168, 176, 56, 152, 184, 264 },
	{ 8, 5, 512, 96, 104, 168, 176, 56, 152, 184, 264 },
};

const struct php_layout *php_layout_of(uint32_t major, uint32_t minor)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		if (layouts[i].major == major && layouts[i].minor == minor)
			return &layouts[i];
	}
	return NULL;
}

static uint32_t word_at(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

/* True: an instruction in the code has `off` as its offset, or reads at `vaddr`. x86-64: a displacement of four bytes; Arm: LDR
 * (immediate), 8 bytes (Arm ARM C6.2). */
static bool code_uses(uint16_t machine, const uint8_t *code, size_t size, uint64_t code_vaddr, uint32_t off, uint64_t vaddr)
{
	for (size_t i = 0; i + 4 <= size; i += machine == EM_X86_64 ? 1 : 4) {
		uint32_t word = word_at(code + i);

		if (machine == EM_X86_64) {
			if (word == off || code_vaddr + i + 4 + (uint64_t)(int64_t)(int32_t)word == vaddr)
				return true;
		} else if ((word & 0xffc00000) == 0xf9400000 && (word >> 10 & 0xfff) * 8 == off) {
			return true;
		}
	}
	return false;
}

static int function_uses(const struct elf_file *elf, const char *name, uint32_t off, uint64_t vaddr)
{
	uint8_t code[CODE_BYTES];
	struct dynamic_symbol function;
	size_t size = sizeof(code);

	if (dynamic_symbol_find(elf, name, &function))
		return -ENOENT;
	if (function.size_bytes && function.size_bytes < size)
		size = (size_t)function.size_bytes;
	if (elf_file_read_vaddr(elf, function.elf_vaddr, code, size))
		return -ENOENT;
	return code_uses(elf_file_machine(elf), code, size, function.elf_vaddr, off, vaddr) ? 0 : -EBADMSG;
}

int php_layout_check(const struct php_layout *layout, const struct elf_file *elf, uint64_t executor_globals)
{
	int err =
	    function_uses(elf, "zend_get_executed_lineno", layout->current_execute_data, executor_globals + layout->current_execute_data);

	return err ? err : function_uses(elf, "zend_get_executed_filename_ex", layout->op_array_filename, 0);
}

static bool take_number(const char **pos, const char *end, uint8_t *ret_number)
{
	uint32_t number = 0;
	const char *start = *pos;

	for (; *pos < end && **pos >= '0' && **pos <= '9'; (*pos)++) {
		number = number * 10 + (uint32_t)(**pos - '0');
		if (number > UINT8_MAX)
			return false;
	}
	*ret_number = (uint8_t)number;
	return *pos > start;
}

int php_version_read(const struct elf_file *elf, uint8_t ret_version[3])
{
	static const char header[] = "X-Powered-By: PHP/"; /* main/main.c */
	const struct elf_section *section = elf_file_find_section(elf, ".rodata");
	CLEANUP(freep) void *bytes = NULL;
	const char *pos, *end;
	uint8_t version[3];
	size_t size;
	int err;

	if (!section)
		return -ENOENT;
	err = elf_file_read_section(elf, section, MAX_TEXT_BYTES, NULL, &bytes, &size);
	if (err)
		return err == -ENOMEM ? err : -ENOENT;
	pos = memmem(bytes, size, header, sizeof(header) - 1);
	if (!pos)
		return -ENOENT;
	end = (const char *)bytes + size;
	pos += sizeof(header) - 1;
	for (int i = 0; i < 3; i++) {
		if ((i && (pos >= end || *pos++ != '.')) || !take_number(&pos, end, &version[i]))
			return -ENOENT;
	}
	memcpy(ret_version, version, sizeof(version));
	return 0;
}
