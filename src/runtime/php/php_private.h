/* SPDX-License-Identifier: Apache-2.0 */
/* php_private: declarations shared by the files of the PHP runtime. */
#pragma once
#include <stdbool.h>

#include "abi/php.h"
#include "runtime/runtime.h"

/* The layout of one minor version, where versions differ: byte offsets, the same for all patch levels. */
struct php_layout {
	uint8_t major, minor;
	uint16_t current_execute_data; /* in zend_executor_globals */
	uint16_t op_array_last, op_array_opcodes, op_array_filename, op_array_line_start;
	uint16_t generator_execute_data, generator_parent, generator_fake, generator_flags;
};

/* NULL: unknown version. */
const struct php_layout *php_layout_of(uint32_t major, uint32_t minor);
/* Checks that the file's own code uses these offsets. 0; -EBADMSG: it does not; -ENOENT: it has no such code. */
MUST_CHECK int php_layout_check(const struct php_layout *layout, const struct elf_file *elf, uint64_t executor_globals);
/* Reads the version from the file: 0; -ENOENT; -ENOMEM. */
MUST_CHECK int php_version_read(const struct elf_file *elf, uint8_t ret_version[3]);
/* Finds the code of execute_ex, and the parts of it that the compiler moved elsewhere: their number, at least 1; -ENOENT; -ENOMEM. */
MUST_CHECK int php_loops_find(const struct elf_file *elf, struct sonde_code_range ret_loops[SONDE_MAX_LOOPS]);

int php_describe(const struct runtime_image *image, const void *process, const struct runtime_memory *memory,
		 const struct sonde_runtime_frame *frame, struct runtime_function *ret_function);
