/* SPDX-License-Identifier: Apache-2.0 */
/* luajit_private: the parts of LuaJIT's folder. */
#pragma once
#include "abi/luajit.h"
#include "base/cleanup.h"
#include "runtime/runtime.h"

/* Finds the interpreter and what its instructions say about it; all as linked. 0, -ENOENT or -ENOMEM. */
MUST_CHECK int luajit_code_find(const struct elf_file *elf, struct sonde_luajit *ret_luajit);
/* As struct runtime's `describe`. */
MUST_CHECK int luajit_describe(const struct runtime_image *image, const void *process, const struct runtime_memory *memory,
			       const struct sonde_runtime_frame *frame, struct runtime_function *ret_function);
