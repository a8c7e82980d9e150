// SPDX-License-Identifier: Apache-2.0
/* luajit: LuaJIT 2.1 with 64-bit references (GC64). docs/internals/luajit.md. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <elf.h>

#include "elf/dynamic_symbol.h"
#include "runtime/luajit/luajit_private.h"

static int unsupported(struct runtime_image *image, const char *why)
{
	snprintf(image->reason, sizeof(image->reason), "%s", why);
	return 0;
}

/* Is lua_State as with 64-bit references? lua_gettop: mov 40(%rdi),%rax; sub 32(%rdi),%rax. */
static bool is_gc64(const struct elf_file *elf)
{
	static const uint8_t gettop[] = { 0x48, 0x8b, 0x47, 0x28, 0x48, 0x2b, 0x47, 0x20 }, endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint8_t code[sizeof(gettop) + sizeof(endbr)];
	struct dynamic_symbol symbol;

	if (dynamic_symbol_find(elf, "lua_gettop", &symbol) || elf_file_read_vaddr(elf, symbol.elf_vaddr, code, sizeof(code)))
		return false;
	return !memcmp(code + (memcmp(code, endbr, sizeof(endbr)) ? 0 : sizeof(endbr)), gettop, sizeof(gettop));
}

static int fill(const struct elf_file *elf, struct runtime_image *image)
{
	struct dynamic_symbol symbol;
	int err;

	image->version[0] = 2;
	if (dynamic_symbol_find(elf, "luaJIT_profile_start", &symbol))
		return unsupported(image, "no layout of this version is known");
	image->version[1] = 1;
	if (elf_file_machine(elf) != EM_X86_64)
		return unsupported(image, "not known on this machine");
	if (!is_gc64(elf))
		return unsupported(image, "it is built with 32-bit references");
	err = luajit_code_find(elf, RUNTIME_OWN(struct sonde_luajit, image->known));
	if (err)
		return err == -ENOMEM ? err : unsupported(image, "its interpreter is not found");
	image->is_supported = 1;
	return 0;
}

static int luajit_examine(const struct elf_file *elf, struct runtime_image *ret_image)
{
	struct dynamic_symbol symbol;
	struct runtime_image image;

	memset(&image, 0, sizeof(image));
	image.runtime = SONDE_RUNTIME_LUAJIT;
	if (dynamic_symbol_find(elf, "luaJIT_setmode", &symbol))
		return -ENOENT;
	if (fill(elf, &image))
		return -ENOMEM;
	*ret_image = image;
	return 0;
}

static bool luajit_is_sound(const struct runtime_image *image)
{
	const struct sonde_luajit *luajit = RUNTIME_OWN(const struct sonde_luajit, image->known);
	struct sonde_luajit made = { .vm = luajit->vm, .begun = luajit->begun, .cur_l = luajit->cur_l, .vmstate = luajit->vmstate };

	memcpy(made.entries, luajit->entries, sizeof(made.entries));
	memcpy(made.chained, luajit->chained, sizeof(made.chained));
	memcpy(made.left, luajit->left, sizeof(made.left));
	return !image->nr_loops && luajit->vm.start_pc < luajit->vm.end_pc && !memcmp(&made, luajit, sizeof(made));
}

static int luajit_place(const struct runtime_image *image, uint64_t load_bias, const struct libc_facts *libc,
			const struct runtime_memory *memory, struct diag *diag, void *ret_process)
{
	struct sonde_luajit luajit = *RUNTIME_OWN(const struct sonde_luajit, image->known);

	luajit.process.load_bias = load_bias;
	luajit.vm.start_pc += load_bias;
	luajit.vm.end_pc += load_bias;
	for (int i = 0; i < SONDE_LUAJIT_ENTRIES; i++)
		luajit.entries[i] += load_bias;
	luajit.chained[0] += load_bias;
	luajit.chained[1] += load_bias;
	luajit.left[0] += load_bias;
	luajit.left[1] += load_bias;
	luajit.begun += load_bias;
	memcpy(ret_process, &luajit, sizeof(luajit));
	return 0;
}

/* Whether code in memory without a file is a trace is seen at each frame. */
static bool luajit_owns_code(const struct runtime_image *image, const struct runtime_memory *memory, uint64_t start_pc, uint64_t end_pc,
			     void *process)
{
	return true;
}

static bool luajit_owns_part(void *process, uint64_t load_bias, uint64_t start_pc, uint64_t end_pc, struct sonde_code_range *ret_part)
{
	const struct sonde_luajit *luajit = process;

	if (luajit->vm.start_pc < start_pc || luajit->vm.end_pc > end_pc)
		return false;
	*ret_part = luajit->vm;
	return true;
}

const struct runtime runtime_luajit = {
	.examine = luajit_examine,
	.is_sound = luajit_is_sound,
	.place = luajit_place,
	.owns_code = luajit_owns_code,
	.owns_part = luajit_owns_part,
	.own_heap = "LuaJIT has an allocator of its own, so only native code is seen; collectgarbage(\"count\") tells its size",
	.describe = luajit_describe,
	.layout = "what its own code shows, and the layout of 2.1 with 64-bit references",
};
