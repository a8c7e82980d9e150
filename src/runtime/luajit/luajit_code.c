// SPDX-License-Identifier: Apache-2.0
/* The interpreter's code (vm_x64.dasc), which has no symbols: one entry of PT_GNU_EH_FRAME. lua_call leads to lj_vm_call,
 * one of four functions that begin alike, in this order: lj_vm_resume, lj_vm_pcall, lj_vm_call, lj_vm_cpcall. Where
 * global_State has what is needed is in their instructions. */
#include <errno.h>
#include <string.h>

#include "elf/dynamic_symbol.h"
#include "runtime/fde_index.h"
#include "runtime/luajit/luajit_private.h"
#include "runtime/words.h"

#define MAX_VM_BYTES (256 << 10)
#define MAX_CALL_BYTES 512
#define CALL 0xe8
#define JMP 0xe9
#define CALL_BYTES 5
#define MAX_GLOBAL_BYTES 65536

struct code {
	uint8_t *bytes; /* owned */
	size_t size;
	uint64_t vaddr;
};

static void code_done(struct code *code)
{
	free(code->bytes);
}

/* push %rbp; push %rbx; push %r15; push %r14; sub $40,%rsp: CFRAME_SIZE is 80. */
static const uint8_t begins[] = { 0x55, 0x53, 0x41, 0x57, 0x41, 0x56, 0x48, 0x83, 0xec, 0x28 };
static const uint8_t chains[] = { 0x48, 0x89, 0x65, 0x50 };   /* mov %rsp,80(%rbp): L->cframe */
static const uint8_t looks[] = { 0x48, 0x8b, 0x69, 0xf0 };    /* mov -16(%rcx),%rbp: the function to be called */
static const uint8_t leaves[] = { 0x48, 0x83, 0xe3, 0xf8, 0x48, 0x29, 0xd3, 0x48, 0xf7, 0xdb }; /* and $-8; sub %rdx; neg: %rbx */
static const uint8_t unchains[] = { 0x48, 0x89, 0x4d, 0x50 }; /* mov %rcx,80(%rbp): L->cframe */
static const uint8_t dispatch[] = { 0x49, 0x81, 0xc6 };       /* add $GG_G2DISP,%r14 */
static const uint8_t sets_l[] = { 0x49, 0x89, 0xae };         /* mov %rbp,cur_L(%r14) */
static const uint8_t sets_vmstate[] = { 0x41, 0xc7, 0x86 };   /* movl $~LJ_VMST_INTERP,vmstate(%r14) */

/* The offset of the first such bytes from `from` on; the code's size: none. */
static size_t find(const struct code *code, size_t from, const uint8_t *bytes, size_t size)
{
	const uint8_t *found = from < code->size ? memmem(code->bytes + from, code->size - from, bytes, size) : NULL;

	return found ? (size_t)(found - code->bytes) : code->size;
}

/* The number behind such bytes. */
static int find_number(const struct code *code, size_t from, const uint8_t *bytes, size_t size, int32_t *ret_number)
{
	size_t off = find(code, from, bytes, size);

	if (off + size + sizeof(*ret_number) > code->size)
		return -ENOENT;
	*ret_number = (int32_t)u32_at(code->bytes, off + size);
	return 0;
}

static int read_entries(const struct code *code, uint64_t call, struct sonde_luajit *luajit)
{
	size_t off = 0, first = 0, chained[2], begun, cpcall, left, unchained;
	int32_t to_dispatch = 0, cur_l = 0, vmstate = 0;
	int err;

	for (int i = 0; i < SONDE_LUAJIT_ENTRIES; i++, off++) {
		off = find(code, off, begins, sizeof(begins));
		luajit->entries[i] = code->vaddr + off;
		first = i ? first : off;
	}
	if (find(code, off, begins, sizeof(begins)) != code->size || luajit->entries[2] != call)
		return -ENOENT;
	cpcall = luajit->entries[3] - code->vaddr;
	chained[0] = find(code, call - code->vaddr, chains, sizeof(chains));
	chained[1] = find(code, cpcall, chains, sizeof(chains));
	begun = find(code, chained[0], looks, sizeof(looks));
	if (chained[0] >= begun || begun >= cpcall || chained[1] == code->size)
		return -ENOENT;
	left = find(code, 0, leaves, sizeof(leaves));
	unchained = find(code, left, unchains, sizeof(unchains));
	if (unchained >= code->size)
		return -ENOENT;
	luajit->left[0] = code->vaddr + left + sizeof(leaves);
	luajit->left[1] = code->vaddr + unchained + sizeof(unchains);
	luajit->chained[0] = code->vaddr + chained[0] + sizeof(chains);
	luajit->chained[1] = code->vaddr + chained[1] + sizeof(chains);
	luajit->begun = code->vaddr + begun;
	err = find_number(code, first, dispatch, sizeof(dispatch), &to_dispatch);
	if (!err)
		err = find_number(code, chained[0], sets_l, sizeof(sets_l), &cur_l);
	if (!err)
		err = find_number(code, chained[0], sets_vmstate, sizeof(sets_vmstate), &vmstate);
	if (err)
		return err;
	luajit->cur_l = (uint32_t)to_dispatch + (uint32_t)cur_l;
	luajit->vmstate = (uint32_t)to_dispatch + (uint32_t)vmstate;
	return luajit->cur_l < MAX_GLOBAL_BYTES && luajit->vmstate < MAX_GLOBAL_BYTES ? 0 : -ENOENT;
}

/* The interpreter, where one of lua_call's calls leads to lj_vm_call. */
static int read_vm(const struct elf_file *elf, const struct fde_index *index, uint64_t call, struct sonde_luajit *luajit)
{
	CLEANUP(code_done) struct code code = { 0 };
	uint32_t fde = fde_index_find(index, call);
	uint64_t end;

	if (fde == index->nr || fde_index_end(elf, index, fde, &end))
		return -ENOENT;
	code.vaddr = fde_index_pc(index, fde);
	if (end - code.vaddr > MAX_VM_BYTES || call < code.vaddr || call >= end)
		return -ENOENT;
	code.size = (size_t)(end - code.vaddr);
	code.bytes = malloc(code.size);
	if (!code.bytes)
		return -ENOMEM;
	if (elf_file_read_vaddr(elf, code.vaddr, code.bytes, code.size) ||
	    memcmp(code.bytes + (call - code.vaddr), begins, sizeof(begins) < end - call ? sizeof(begins) : (size_t)(end - call)) != 0)
		return -ENOENT;
	luajit->vm = (struct sonde_code_range){ code.vaddr, end };
	return read_entries(&code, call, luajit);
}

int luajit_code_find(const struct elf_file *elf, struct sonde_luajit *ret_luajit)
{
	CLEANUP(fde_index_done) struct fde_index index = { 0 };
	struct sonde_luajit luajit = { 0 };
	uint8_t code[MAX_CALL_BYTES];
	struct dynamic_symbol symbol;
	int err = fde_index_read(elf, &index);
	size_t size;

	if (!err)
		err = dynamic_symbol_find(elf, "lua_call", &symbol);
	if (err)
		return err == -ENOMEM ? err : -ENOENT;
	size = symbol.size_bytes < sizeof(code) ? (size_t)symbol.size_bytes : sizeof(code);
	if (elf_file_read_vaddr(elf, symbol.elf_vaddr, code, size))
		return -ENOENT;
	for (size_t i = 0; i + CALL_BYTES <= size; i++) {
		if (code[i] != CALL && code[i] != JMP)
			continue;
		err = read_vm(elf, &index, symbol.elf_vaddr + i + CALL_BYTES + (uint64_t)(int64_t)(int32_t)u32_at(code, i + 1), &luajit);
		if (!err)
			*ret_luajit = luajit;
		if (err != -ENOENT)
			return err;
	}
	return -ENOENT;
}
