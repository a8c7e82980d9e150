// SPDX-License-Identifier: Apache-2.0
/* python: finds CPython in a file, its version, and how the kernel side and the resolver find its data. docs/internals/python.md. */
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "elf/dynamic_symbol.h"
#include "runtime/python/python_counter.h"
#include "runtime/python/python_loops.h"
#include "runtime/python/python_names.h"
#include "runtime/python/python_tables.h"
#include "runtime/runtime.h"
#include "runtime/tls_access.h"

#define MIN_LOOP_BYTES 16384 /* of a loop that is in one piece: it has 25 KB and more */
#define KEY_IN_TSS 4 /* Py_tss_t: int _is_initialized; pthread_key_t _key */

__attribute__((format(printf, 2, 3))) static int unsupported(struct runtime_image *image, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(image->reason, sizeof(image->reason), fmt, args);
	va_end(args);
	image->is_supported = 0;
	return 0;
}

static bool exports(const struct elf_file *elf, const char *name)
{
	struct dynamic_symbol symbol;

	return dynamic_symbol_find(elf, name, &symbol) == 0;
}

/* 3.11 and newer export their version as a number. The minor version of an older one is known by the newest of the functions that it
 * exports. */
static void find_version(const struct elf_file *elf, uint8_t *version)
{
	static const struct {
		const char *function;
		uint8_t minor;
	} came[] = { { "PyIter_Send", 10 },
		     { "PyFrame_GetCode", 9 },
		     { "PyCode_NewWithPosOnlyArgs", 8 },
		     { "PyThread_tss_create", 7 },
		     { "_PyEval_EvalFrameDefault", 6 } };
	struct dynamic_symbol symbol;
	uint32_t number;

	version[0] = 3;
	if (dynamic_symbol_find(elf, "Py_Version", &symbol) == 0 &&
	    elf_file_read_vaddr(elf, symbol.elf_vaddr, &number, sizeof(number)) == 0) {
		version[0] = (uint8_t)(number >> 24);
		version[1] = (uint8_t)(number >> 16);
		version[2] = (uint8_t)(number >> 8);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(came) && !version[1]; i++) {
		if (exports(elf, came[i].function))
			version[1] = came[i].minor;
	}
}

/* For files without _PyEval_EvalFrameDefault. 0: the file has a CPython that we cannot walk; else -ENOENT. */
static int examine_other(const struct elf_file *elf, struct runtime_image *image)
{
	if (exports(elf, "PyEval_EvalFrameEx")) {
		image->version[0] = exports(elf, "PyString_Type") ? 2 : 3;
		return unsupported(image, "it is older than 3.%u", PYTHON_OLDEST_MINOR);
	}
	if (elf_file_find_section(elf, ".PyRuntime")) {
		image->version[0] = 3;
		return unsupported(image, "it does not export its functions");
	}
	return -ENOENT;
}

static uint64_t find_runtime(const struct elf_file *elf)
{
	const struct elf_section *section = elf_file_find_section(elf, ".PyRuntime");
	struct dynamic_symbol symbol;

	if (dynamic_symbol_find(elf, "_PyRuntime", &symbol) == 0)
		return symbol.elf_vaddr;
	return section ? section->vaddr : 0;
}

/* Finds the layout by the version. 0, or -EOPNOTSUPP: the image says why. */
static int find_table(const struct elf_file *elf, struct runtime_image *image, uint64_t runtime_vaddr, struct python_table *ret_table)
{
	uint32_t minor = image->version[1];
	const struct python_table *known = python_table_of(minor);
	int err = -ENOENT;

	if (image->version[0] != 3 || minor < PYTHON_OLDEST_MINOR || minor > PYTHON_NEWEST_MINOR) {
		unsupported(image, "known are 3.%u to 3.%u", PYTHON_OLDEST_MINOR, PYTHON_NEWEST_MINOR);
		return -EOPNOTSUPP;
	}
	if (known) {
		*ret_table = *known;
		image->is_supported = python_table_finish(ret_table);
		return image->is_supported ? 0 : -EOPNOTSUPP;
	}
	if (runtime_vaddr)
		err = python_offsets_read(elf, runtime_vaddr, minor, ret_table, image->reason, sizeof(image->reason));
	if (err == -ENOENT)
		unsupported(image, "it has no debug offsets");
	image->is_supported = !err;
	return err ? -EOPNOTSUPP : 0;
}

/* Checks that PyCode_Type has the expected size of a code object. Builds with other structs (Py_TRACE_REFS, patches) do not. */
static int check_sizes(const struct elf_file *elf, struct runtime_image *image, const struct python_table *table)
{
	struct dynamic_symbol type;
	uint64_t size;

	if (dynamic_symbol_find(elf, "PyCode_Type", &type) ||
	    elf_file_read_vaddr(elf, type.elf_vaddr + table->type_basicsize, &size, sizeof(size))) {
		unsupported(image, "it does not tell the size of its code objects");
		return -EOPNOTSUPP;
	}
	if (size != table->code_basicsize) {
		unsupported(image, "its code objects have %llu bytes, not %u: built with other structs (a debug build, or patched)",
			    (unsigned long long)size, table->code_basicsize);
		return -EOPNOTSUPP;
	}
	RUNTIME_OWN(struct python_layout, image->naming)->code_type = type.elf_vaddr;
	RUNTIME_OWN(struct sonde_python, image->known)->code_type = type.elf_vaddr;
	return 0;
}

/* True: the first instructions of the function use the field of _PyRuntime at this offset. They compute its address from _PyRuntime's and
 * the offset, or have it directly, absolute or relative to the instruction. */
static bool leads_to(const struct elf_file *elf, const char *name, uint64_t runtime_vaddr, uint32_t off)
{
	struct dynamic_symbol function;
	uint8_t code[64];

	if (elf_file_machine(elf) != EM_X86_64 || dynamic_symbol_find(elf, name, &function) ||
	    elf_file_read_vaddr(elf, function.elf_vaddr, code, sizeof(code)))
		return false;
	for (uint32_t at = 0; at + 4 <= sizeof(code); at++) {
		uint64_t next = function.elf_vaddr + at + 4, variable = runtime_vaddr + off;
		int32_t number;

		memcpy(&number, code + at, sizeof(number));
		if ((uint32_t)number == off || next + (uint64_t)(int64_t)number == variable || (uint64_t)(uint32_t)number == variable)
			return true;
	}
	return false;
}

/* Up to 3.11: finds the PyThreadState that holds the GIL, in struct _gilstate_runtime_state: tstate_current, in older versions getframe,
 * autoInterpreterState, the key. */
static void find_current(const struct elf_file *elf, const struct python_table *table, uint64_t runtime_vaddr,
			 struct sonde_tls *ret_current)
{
	static const uint32_t before_key[] = { 16, 24 };

	*ret_current = (struct sonde_tls){ .kind = SONDE_TLS_NONE };
	if (!table->runtime_key || !runtime_vaddr)
		return;
	for (uint32_t i = 0; i < ARRAY_SIZE(before_key); i++) {
		uint32_t off = table->runtime_key - KEY_IN_TSS - before_key[i];

		if (!leads_to(elf, "_PyThreadState_UncheckedGet", runtime_vaddr, off))
			continue;
		*ret_current = (struct sonde_tls){ .kind = SONDE_TLS_GLOBAL, .pc = runtime_vaddr + off };
		return;
	}
}

#define MAX_RUNTIME_BYTES (1u << 20) /* limit for struct _PyRuntimeState: 3.14 has 317 KiB */

/* Finds the key without a table: `cmpl $0` on _is_initialized in _PyRuntime, whose address is then passed in rdi (3.14 as a program that is
 * not relocated). 0: not found. */
static uint64_t compared_key(const struct elf_file *elf, uint64_t runtime_vaddr)
{
	struct dynamic_symbol function;
	uint64_t tss = 0;
	uint8_t code[64];
	int32_t number;

	if (elf_file_machine(elf) != EM_X86_64 || dynamic_symbol_find(elf, "PyGILState_GetThisThreadState", &function) ||
	    elf_file_read_vaddr(elf, function.elf_vaddr, code, sizeof(code)))
		return 0;
	for (uint32_t at = 0; at + 7 <= sizeof(code); at++) {
		uint64_t next = function.elf_vaddr + at + 7;

		memcpy(&number, code + at + 2, sizeof(number));
		if (!tss && code[at] == 0x83 && code[at + 1] == 0x3d && code[at + 6] == 0) {
			tss = next + (uint64_t)(int64_t)number;
			continue;
		}
		memcpy(&number, code + at + 1, sizeof(number)); /* mov $tss, %edi */
		if (tss && code[at] == 0xbf && (uint64_t)(uint32_t)number == tss)
			return tss - runtime_vaddr < MAX_RUNTIME_BYTES ? tss + 4 : 0;
		memcpy(&number, code + at + 3, sizeof(number)); /* lea tss(%rip), %rdi */
		if (tss && memcmp(code + at, "\x48\x8d\x3d", 3) == 0 && next + (uint64_t)(int64_t)number == tss)
			return tss - runtime_vaddr < MAX_RUNTIME_BYTES ? tss + 4 : 0;
	}
	return 0;
}

/* Finds where a thread's PyThreadState is: by the code of the functions that return it. If that code is not simple enough, the key is found
 * by the table or by compared_key. */
static int find_roots(const struct elf_file *elf, struct runtime_image *image, const struct python_table *table, uint64_t runtime_vaddr)
{
	struct sonde_tls *root = &image->known.process.root, *current = &RUNTIME_OWN(struct sonde_python, image->known)->current;

	if (table->minor < 12) /* on arm64 thread_id is not the thread pointer; leads_to finds nothing there */
		find_current(elf, table, runtime_vaddr, current);
	else if (tls_access_decode(elf, "_PyThreadState_GetCurrent", current))
		*current = (struct sonde_tls){ .kind = SONDE_TLS_NONE };
	if (tls_access_decode(elf, "PyGILState_GetThisThreadState", root)) {
		*root = (struct sonde_tls){ .kind = SONDE_TLS_NONE };
		if (table->runtime_key && runtime_vaddr &&
		    leads_to(elf, "PyGILState_GetThisThreadState", runtime_vaddr, table->runtime_key - KEY_IN_TSS))
			*root = (struct sonde_tls){ .kind = SONDE_TLS_KEY, .pc = runtime_vaddr + table->runtime_key };
		else if (runtime_vaddr && compared_key(elf, runtime_vaddr))
			*root = (struct sonde_tls){ .kind = SONDE_TLS_KEY, .pc = compared_key(elf, runtime_vaddr) };
	}
	if (root->kind != SONDE_TLS_NONE)
		return 0;
	/* with `current` alone, threads that do not hold the GIL would be lost silently */
	unsupported(image, "where its threads keep their state was not found");
	return -EOPNOTSUPP;
}

/* True: the cold parts of the loop are needed. Up to 3.9 frames are paired with native frames by counting, so cold parts count, too. Later
 * they are needed for marks, which matters when nearly all of the loop is in a cold part (Debian's 3.14 and 3.15: 1 KB of 80 has the
 * symbol). Finding them takes 30 ms. */
static bool needs_cold_parts(const struct sonde_python *python, const struct dynamic_symbol *loop)
{
	return (python->kind == SONDE_PYTHON_FRAMES && python->tstate_cframe == SONDE_PYTHON_NONE) || loop->size_bytes < MIN_LOOP_BYTES;
}

static int python_examine(const struct elf_file *elf, struct runtime_image *ret_image)
{
	struct runtime_image image = { .runtime = SONDE_RUNTIME_PYTHON, .is_supported = 1 };
	struct dynamic_symbol loop;
	struct python_table table;
	uint64_t runtime_vaddr;
	int nr = 0;

	if (dynamic_symbol_find(elf, "_PyEval_EvalFrameDefault", &loop)) {
		int err = examine_other(elf, &image);

		if (!err)
			*ret_image = image;
		return err;
	}
	image.loops[0] = (struct sonde_code_range){ loop.elf_vaddr, loop.elf_vaddr + loop.size_bytes };
	image.nr_loops = 1;
	find_version(elf, image.version);
	runtime_vaddr = find_runtime(elf);
	if (find_table(elf, &image, runtime_vaddr, &table) == 0) {
		if (table.layout.code_version)
			table.python.interpreter_made = python_counter_find(elf, table.layout.code_version);
		*RUNTIME_OWN(struct sonde_python, image.known) = table.python;
		*RUNTIME_OWN(struct python_layout, image.naming) = table.layout;
		if (check_sizes(elf, &image, &table) == 0 && find_roots(elf, &image, &table, runtime_vaddr) == 0 &&
		    needs_cold_parts(&table.python, &loop)) {
			nr = python_loops_find(elf, image.loops);
			if (nr < 0)
				return nr;
			image.nr_loops = (uint32_t)nr;
		}
	}
	*ret_image = image;
	return 0;
}

static bool python_is_sound(const struct runtime_image *image)
{
	static const struct sonde_code_range none[SONDE_MAX_LOOPS];
	const struct sonde_python *python = RUNTIME_OWN(const struct sonde_python, image->known);

	return image->version[0] == 3 && python->process.root.kind != SONDE_TLS_NONE && tls_access_is_sound(&python->current) &&
	       !memcmp(python->loops, none, sizeof(none)) &&
	       python_tables_have(image->version[1], python, RUNTIME_OWN(const struct python_layout, image->naming));
}

/* Self-test of the layout: checks that PyCode_Type is where the process must have it. */
static int check_process(const struct sonde_python *python, const struct python_layout *layout, const struct runtime_memory *memory,
			 struct diag *diag)
{
	uint64_t size_at = python->code_type + (layout->minor >= 13 ? layout->bytes_size : 16) + 16, size;
	int err = memory->read(memory->arg, size_at, &size, sizeof(size));

	if (err == -EFAULT)
		return -EAGAIN; /* the file is just being mapped */
	if (err)
		return err;
	if (size != (layout->minor >= 11 ? python->code_code : size) || !size)
		return diag_errno(diag, EOPNOTSUPP, "its code objects have %llu bytes", (unsigned long long)size);
	return 0;
}

static int place_tls(struct sonde_tls *tls, uint64_t load_bias, const struct libc_facts *libc)
{
	struct sonde_tls placed;
	int err;

	if (tls->kind == SONDE_TLS_NONE)
		return 0;
	err = tls_access_place(tls, load_bias, libc, &placed);
	if (err)
		return err;
	*tls = placed;
	return 0;
}

static int python_place(const struct runtime_image *image, uint64_t load_bias, const struct libc_facts *libc,
			const struct runtime_memory *memory, struct diag *diag, void *ret_process)
{
	struct sonde_python python = *RUNTIME_OWN(const struct sonde_python, image->known);
	int err = place_tls(&python.process.root, load_bias, libc);

	if (!err)
		err = place_tls(&python.current, load_bias, libc);
	if (err)
		return diag_errno(diag, -err, "it is unknown where its threads keep their state with this C library");
	python.process.load_bias = load_bias;
	python.code_type += load_bias;
	python.process.load_bias = load_bias;
	for (uint32_t i = 0; i < SONDE_MAX_LOOPS && i < image->nr_loops; i++) {
		python.loops[i].start_pc = image->loops[i].start_pc + load_bias;
		python.loops[i].end_pc = image->loops[i].end_pc + load_bias;
	}
	err = check_process(&python, RUNTIME_OWN(const struct python_layout, image->naming), memory, diag);
	if (err)
		return err;
	memcpy(ret_process, &python, sizeof(python));
	return 0;
}

const struct runtime runtime_python = {
	.examine = python_examine,
	.is_sound = python_is_sound,
	.place = python_place,
	.describe = python_describe,
	.trampoline = "py::", /* python -X perf */
	.layout = "from 3.13 on its own description (_Py_DebugOffsets), before that a table of versions",
};
