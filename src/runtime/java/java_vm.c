// SPDX-License-Identifier: Apache-2.0
#include "runtime/java/java_vm.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/java/java_chunk.h"
#include "runtime/java/java_interpreter.h"

#define MAX_ENTRIES 4096
#define ENTRY_BYTES 48      /* VMStructEntry: typeName, fieldName, typeString, isStatic, offset, address */
#define TYPE_ENTRY_BYTES 40 /* VMTypeEntry: typeName, superclassName, isOopType, isIntegerType, isUnsigned, size */
#define PAGE_BYTES 4096
#define CACHE_PAGES 256
#define MAX_NAME_BYTES 96

/* Fields that are wanted; those whose names changed have several lines. */
enum wanted {
	HEAPS, HEAP_8, LIST_LENGTH, LIST_DATA, SPACE_LOW, SPACE_HIGH, HEAP_MEMORY, HEAP_SEGMAP, HEAP_SHIFT, BLOCK_USED,
	INTERPRETER, QUEUE_BUFFER, QUEUE_LIMIT, QUEUE_BEGIN, QUEUE_END, QUEUE_NUMBER, CODELET_SIZE, CODELET_DESCRIPTION,
	CALL_STUB_RETURN, CONTINUATION_RETURN,
	BLOB_NAME, BLOB_SIZE, BLOB_FRAME_SIZE, BLOB_COMPLETE, CODE_START, CODE_END, CODE_START_OFFSET, CODE_END_OFFSET,
	COMPILE_ID, ORIG_PC, STATE, DEOPT, DEOPT_MH, DEOPT_OFFSET, DEOPT_MH_OFFSET, NMETHOD_METHOD,
	SCOPES_ADDRESS, SCOPES_OFFSET, PCS_OFFSET, PCS_END, METADATA, IMMUTABLE, MUTABLE, RELOCATIONS,
	PC_DESC_SCOPE, METHOD_CONST, CONST_CONSTANTS, CONST_CODE_SIZE, CONST_NAME, CONST_SIGNATURE, CONST_FLAGS,
	POOL_HOLDER, POOL_LENGTH, POOL_SOURCE, KLASS_SOURCE, KLASS_NAME, SYMBOL_LENGTH, SYMBOL_BODY,
	EXCEPTION_PC, WRAPPER_ANCHOR, ANCHOR_SP, ANCHOR_PC, ANCHOR_FP,
	THREAD_OS, THREAD_ANCHOR, STACK_BASE, STACK_SIZE, OS_PTHREAD, THREADS, THREADS_LENGTH, THREADS_DATA, THREADS_8,
	CLASSES, VM_SYMBOLS, THREAD_VTHREAD, KLASS_SIZE, KLASS_CONSTANTS, KLASS_FIELDS, FLAGS, NR_FLAGS, FLAG_NAME, FLAG_VALUE, NARROW_BASE,
	NARROW_SHIFT, COLORS, BAD_MASK, COLOR_SHIFT, OLD_COLORS, OLD_BAD_MASK, THREAD_ENTRY,
	NR_WANTED,
	/* sizes of types */
	BLOCK_BYTES = 0, CONST_BYTES, POOL_BYTES, PC_DESC_BYTES, NMETHOD_BYTES, FLAG_BYTES, NR_SIZES,
};

struct wanted_field {
	const char *type, *field;
	enum wanted which;
};

static const struct wanted_field wanted_fields[] = {
	{ "CodeCache", "_heaps", HEAPS },
	{ "CodeCache", "_heap", HEAP_8 },
	{ "GrowableArrayBase", "_len", LIST_LENGTH },
	{ "GenericGrowableArray", "_len", LIST_LENGTH },
	{ "GrowableArray<int>", "_data", LIST_DATA },
	{ "VirtualSpace", "_low_boundary", SPACE_LOW },
	{ "VirtualSpace", "_high_boundary", SPACE_HIGH },
	{ "CodeHeap", "_memory", HEAP_MEMORY },
	{ "CodeHeap", "_segmap", HEAP_SEGMAP },
	{ "CodeHeap", "_log2_segment_size", HEAP_SHIFT },
	{ "HeapBlock::Header", "_used", BLOCK_USED },
	{ "AbstractInterpreter", "_code", INTERPRETER },
	{ "StubQueue", "_stub_buffer", QUEUE_BUFFER },
	{ "StubQueue", "_buffer_limit", QUEUE_LIMIT },
	{ "StubQueue", "_queue_begin", QUEUE_BEGIN },
	{ "StubQueue", "_queue_end", QUEUE_END },
	{ "StubQueue", "_number_of_stubs", QUEUE_NUMBER },
	{ "InterpreterCodelet", "_size", CODELET_SIZE },
	{ "InterpreterCodelet", "_description", CODELET_DESCRIPTION },
	{ "StubRoutines", "_call_stub_return_address", CALL_STUB_RETURN },
	{ "ContinuationEntry", "_return_pc", CONTINUATION_RETURN },
	{ "CodeBlob", "_name", BLOB_NAME },
	{ "CodeBlob", "_size", BLOB_SIZE },
	{ "CodeBlob", "_frame_size", BLOB_FRAME_SIZE },
	{ "CodeBlob", "_frame_complete_offset", BLOB_COMPLETE },
	{ "CodeBlob", "_code_begin", CODE_START },
	{ "CodeBlob", "_code_end", CODE_END },
	{ "CodeBlob", "_code_offset", CODE_START_OFFSET },
	{ "CodeBlob", "_data_offset", CODE_END_OFFSET },
	{ "nmethod", "_compile_id", COMPILE_ID },
	{ "nmethod", "_orig_pc_offset", ORIG_PC },
	{ "nmethod", "_state", STATE },
	{ "CompiledMethod", "_deopt_handler_begin", DEOPT },
	{ "CompiledMethod", "_deopt_mh_handler_begin", DEOPT_MH },
	{ "nmethod", "_deoptimize_offset", DEOPT_OFFSET },
	{ "nmethod", "_deopt_handler_offset", DEOPT_OFFSET },
	{ "nmethod", "_deopt_handler_entry_offset", DEOPT_OFFSET },
	{ "nmethod", "_deoptimize_mh_offset", DEOPT_MH_OFFSET },
	{ "nmethod", "_deopt_mh_handler_offset", DEOPT_MH_OFFSET },
	{ "nmethod", "_method", NMETHOD_METHOD },
	{ "CompiledMethod", "_method", NMETHOD_METHOD },
	{ "CompiledMethod", "_scopes_data_begin", SCOPES_ADDRESS },
	{ "nmethod", "_scopes_data_offset", SCOPES_OFFSET },
	{ "nmethod", "_scopes_pcs_offset", PCS_OFFSET },
	{ "nmethod", "_dependencies_offset", PCS_END },
	{ "nmethod", "_metadata_offset", METADATA },
	{ "nmethod", "_immutable_data", IMMUTABLE },
	{ "CodeBlob", "_mutable_data", MUTABLE },
	{ "CodeBlob", "_relocation_size", RELOCATIONS },
	{ "PcDesc", "_scope_decode_offset", PC_DESC_SCOPE },
	{ "Method", "_constMethod", METHOD_CONST },
	{ "ConstMethod", "_constants", CONST_CONSTANTS },
	{ "ConstMethod", "_code_size", CONST_CODE_SIZE },
	{ "ConstMethod", "_name_index", CONST_NAME },
	{ "ConstMethod", "_signature_index", CONST_SIGNATURE },
	{ "ConstMethod", "_flags", CONST_FLAGS },
	{ "ConstMethod", "_flags._flags", CONST_FLAGS },
	{ "ConstantPool", "_pool_holder", POOL_HOLDER },
	{ "ConstantPool", "_length", POOL_LENGTH },
	{ "ConstantPool", "_source_file_name_index", POOL_SOURCE },
	{ "InstanceKlass", "_source_file_name_index", KLASS_SOURCE },
	{ "Klass", "_name", KLASS_NAME },
	{ "Symbol", "_length", SYMBOL_LENGTH },
	{ "Symbol", "_body", SYMBOL_BODY },
	{ "Symbol", "_body[0]", SYMBOL_BODY },
	{ "JavaCallWrapper", "_anchor", WRAPPER_ANCHOR },
	{ "JavaFrameAnchor", "_last_Java_sp", ANCHOR_SP },
	{ "JavaFrameAnchor", "_last_Java_pc", ANCHOR_PC },
	{ "JavaFrameAnchor", "_last_Java_fp", ANCHOR_FP },
	{ "JavaThread", "_saved_exception_pc", EXCEPTION_PC },
	{ "Thread", "_osthread", THREAD_OS },
	{ "JavaThread", "_osthread", THREAD_OS },
	{ "JavaThread", "_anchor", THREAD_ANCHOR },
	{ "Thread", "_stack_base", STACK_BASE },
	{ "JavaThread", "_stack_base", STACK_BASE },
	{ "Thread", "_stack_size", STACK_SIZE },
	{ "JavaThread", "_stack_size", STACK_SIZE },
	{ "OSThread", "_pthread_id", OS_PTHREAD },
	{ "ThreadsSMRSupport", "_java_thread_list", THREADS },
	{ "ThreadsList", "_length", THREADS_LENGTH },
	{ "ThreadsList", "_threads", THREADS_DATA },
	{ "Threads", "_thread_list", THREADS_8 },
	{ "vmClasses", "_klasses[static_cast<int>(vmClassID::Object_klass_knum)]", CLASSES }, /* the first one */
	{ "Symbol", "_vm_symbols[0]", VM_SYMBOLS },
	{ "Klass", "_layout_helper", KLASS_SIZE },
	{ "InstanceKlass", "_constants", KLASS_CONSTANTS },
	{ "InstanceKlass", "_fieldinfo_stream", KLASS_FIELDS },
	{ "JVMFlag", "flags", FLAGS },
	{ "JVMFlag", "numFlags", NR_FLAGS },
	{ "JVMFlag", "_name", FLAG_NAME },
	{ "JVMFlag", "_addr", FLAG_VALUE },
	{ "CompressedOops", "_base", NARROW_BASE },
	{ "CompressedOops", "_narrow_oop._base", NARROW_BASE },
	{ "CompressedOops", "_shift", NARROW_SHIFT },
	{ "CompressedOops", "_narrow_oop._shift", NARROW_SHIFT },
	{ "ZGlobalsForVMStructs", "_instance_p", COLORS },
	{ "ZGlobalsForVMStructs", "_ZPointerLoadBadMask", BAD_MASK },
	{ "ZGlobalsForVMStructs", "_ZPointerLoadShift", COLOR_SHIFT },
	{ "XGlobalsForVMStructs", "_instance_p", OLD_COLORS },
	{ "XGlobalsForVMStructs", "_XAddressBadMask", OLD_BAD_MASK },
	{ "JavaThread", "_cont_entry", THREAD_ENTRY },
	{ "JavaThread", "_vthread", THREAD_VTHREAD },
};

static const struct wanted_field wanted_sizes[] = {
	{ "HeapBlock", "", BLOCK_BYTES }, { "ConstMethod", "", CONST_BYTES }, { "ConstantPool", "", POOL_BYTES },
	{ "PcDesc", "", PC_DESC_BYTES },  { "nmethod", "", NMETHOD_BYTES },	{ "JVMFlag", "", FLAG_BYTES },
};

/* A field: its offset, or the address if it is static. */
struct found {
	uint64_t fields[NR_WANTED];
	bool has[NR_WANTED];
	uint64_t sizes[NR_SIZES];
};

/* Pages with names, which are all in the VM's file: read once each. */
struct names {
	const struct runtime_memory *memory;
	uint64_t pages[CACHE_PAGES]; /* number + 1 */
	char bytes[CACHE_PAGES][PAGE_BYTES];
};

static int read_names(struct names *names, uint64_t page, const char **ret_bytes)
{
	uint64_t slot = page % CACHE_PAGES;
	int err = 0;

	if (names->pages[slot] != page + 1) {
		names->pages[slot] = 0;
		err = names->memory->read(names->memory->arg, page * PAGE_BYTES, names->bytes[slot], PAGE_BYTES);
		if (!err)
			names->pages[slot] = page + 1;
	}
	*ret_bytes = names->bytes[slot];
	return err;
}

/* Reads a name into `to`, cut to fit: 0 or what the read gave. */
static int read_name(struct names *names, uint64_t from, char to[MAX_NAME_BYTES])
{
	for (size_t i = 0; i < MAX_NAME_BYTES - 1; i++) {
		const char *bytes;
		int err = read_names(names, (from + i) / PAGE_BYTES, &bytes);

		if (err)
			return err;
		to[i] = bytes[(from + i) % PAGE_BYTES];
		if (!to[i])
			return 0;
	}
	to[MAX_NAME_BYTES - 1] = '\0';
	return 0;
}

static int read_u64(const struct runtime_memory *memory, uint64_t from, void *ret_value)
{
	return memory->read(memory->arg, from, ret_value, sizeof(uint64_t));
}

static int read_u32(const struct runtime_memory *memory, uint64_t from, uint32_t *ret_value)
{
	return memory->read(memory->arg, from, ret_value, sizeof(*ret_value));
}

/* The table that the variable at `variable` leads to, whose entries must be of the size that is known here. */
static int find_table(const struct runtime_memory *memory, uint64_t variable, uint64_t stride_variable, uint64_t bytes,
		      struct diag *diag, uint64_t *ret_table)
{
	uint64_t stride;

	if (read_u64(memory, variable, ret_table) || read_u64(memory, stride_variable, &stride) || !*ret_table)
		return -EAGAIN;
	return stride == bytes ? 0 : diag_errno(diag, EOPNOTSUPP, "its tables (vmStructs) have another form");
}

static int take_field(struct names *names, const uint64_t entry[ENTRY_BYTES / 8], struct found *found)
{
	char type[MAX_NAME_BYTES], field[MAX_NAME_BYTES];
	int err = read_name(names, entry[0], type);

	if (!err)
		err = read_name(names, entry[1], field);
	for (size_t i = 0; !err && i < ARRAY_SIZE(wanted_fields); i++) {
		const struct wanted_field *wanted = &wanted_fields[i];

		if (strcmp(type, wanted->type) || strcmp(field, wanted->field))
			continue;
		found->fields[wanted->which] = (uint32_t)entry[3] ? entry[5] : entry[4];
		found->has[wanted->which] = true;
	}
	return err;
}

static int take_type(struct names *names, const uint64_t entry[TYPE_ENTRY_BYTES / 8], struct found *found)
{
	char type[MAX_NAME_BYTES];
	int err = read_name(names, entry[0], type);

	for (size_t i = 0; !err && i < ARRAY_SIZE(wanted_sizes); i++) {
		if (!strcmp(type, wanted_sizes[i].type))
			found->sizes[wanted_sizes[i].which] = entry[4];
	}
	return err;
}

typedef int (*take_fn)(struct names *names, const uint64_t *entry, struct found *found);

static int read_table(struct names *names, uint64_t table, size_t entry_bytes, take_fn take, struct found *found)
{
	uint64_t entries[16 * ENTRY_BYTES / 8];

	for (uint32_t first = 0; first < MAX_ENTRIES; first += 16) {
		size_t nr = 16;
		int err = names->memory->read(names->memory->arg, table + first * entry_bytes, entries, nr * entry_bytes);

		if (err) /* the table's end may be near the end of what is mapped */
			nr = 1;
		if (err && names->memory->read(names->memory->arg, table + first * entry_bytes, entries, entry_bytes))
			return err;
		for (size_t i = 0; i < nr; i++) {
			const uint64_t *entry = entries + i * entry_bytes / 8;

			if (!entry[0])
				return 0;
			err = take(names, entry, found);
			if (err)
				return err;
		}
		first -= (uint32_t)(16 - nr);
	}
	return 0;
}

/* 0; -EAGAIN: it cannot be read yet. */
static int read_tables(const struct java_image *image, uint64_t load_bias, const struct runtime_memory *memory, struct diag *diag,
		       struct found *found)
{
	CLEANUP(freep) struct names *names = calloc(1, sizeof(*names));
	uint64_t structs, types;
	int err;

	if (!names)
		return -EAGAIN;
	names->memory = memory;
	err = find_table(memory, load_bias + image->structs, load_bias + image->structs_stride, ENTRY_BYTES, diag, &structs);
	if (!err)
		err = find_table(memory, load_bias + image->types, load_bias + image->types_stride, TYPE_ENTRY_BYTES, diag, &types);
	if (err)
		return err;
	if (read_table(names, structs, ENTRY_BYTES, take_field, found) || read_table(names, types, TYPE_ENTRY_BYTES, take_type, found))
		return -EAGAIN;
	return 0;
}

/* --- offsets -------------------------------------------------------------------------------------------------------------------------- */

static uint16_t offset_of(const struct found *found, enum wanted which)
{
	return found->has[which] && found->fields[which] < JAVA_NONE ? (uint16_t)found->fields[which] : JAVA_NONE;
}

static void take_blob(const struct found *found, struct sonde_java *java)
{
	java->has_addresses = found->has[CODE_START];
	java->blob_name = offset_of(found, BLOB_NAME);
	java->blob_size = offset_of(found, BLOB_SIZE);
	java->blob_frame_size = offset_of(found, BLOB_FRAME_SIZE);
	java->blob_complete = offset_of(found, BLOB_COMPLETE);
	java->blob_code_start = offset_of(found, java->has_addresses ? CODE_START : CODE_START_OFFSET);
	java->blob_code_end = offset_of(found, java->has_addresses ? CODE_END : CODE_END_OFFSET);
	java->nmethod_id = offset_of(found, COMPILE_ID);
	java->nmethod_orig_pc = offset_of(found, ORIG_PC);
	java->nmethod_state = offset_of(found, STATE);
	java->nmethod_deopt = offset_of(found, java->has_addresses ? DEOPT : DEOPT_OFFSET);
	java->nmethod_deopt_mh = offset_of(found, java->has_addresses ? DEOPT_MH : DEOPT_MH_OFFSET);
	java->block_bytes = (uint8_t)found->sizes[BLOCK_BYTES];
	java->block_used = (uint8_t)found->fields[BLOCK_USED];
	java->is_complete_short = java->blob_complete % 4 != 0; /* an int16_t since 23, behind another one */
	java->header_bytes = (uint16_t)(found->sizes[NMETHOD_BYTES] + found->sizes[BLOCK_BYTES]);
}

static void take_method(const struct found *found, struct sonde_java *java)
{
	java->method_const = offset_of(found, METHOD_CONST);
	java->const_constants = offset_of(found, CONST_CONSTANTS);
	java->const_code_size = offset_of(found, CONST_CODE_SIZE);
	java->const_name = offset_of(found, CONST_NAME);
	java->const_signature = offset_of(found, CONST_SIGNATURE);
	java->const_bytes = (uint16_t)found->sizes[CONST_BYTES];
	java->pool_holder = offset_of(found, POOL_HOLDER);
	java->pool_bytes = (uint16_t)found->sizes[POOL_BYTES];
	java->klass_name = offset_of(found, KLASS_NAME);
}

static void take_layout(const struct found *found, uint64_t major, struct java_layout *layout)
{
	*layout = (struct java_layout){
		.nmethod_method = offset_of(found, NMETHOD_METHOD),
		.scopes_data = offset_of(found, found->has[SCOPES_ADDRESS] ? SCOPES_ADDRESS : SCOPES_OFFSET),
		.scopes_pcs = offset_of(found, PCS_OFFSET),
		.pcs_end = offset_of(found, found->has[IMMUTABLE] ? SCOPES_OFFSET : PCS_END),
		.immutable_data = offset_of(found, IMMUTABLE),
		.metadata = offset_of(found, METADATA),
		.mutable_data = offset_of(found, MUTABLE),
		.relocation_size = offset_of(found, RELOCATIONS),
		.pc_desc_bytes = (uint16_t)found->sizes[PC_DESC_BYTES],
		.pc_desc_scope = offset_of(found, PC_DESC_SCOPE),
		.const_flags = offset_of(found, CONST_FLAGS),
		.pool_length = offset_of(found, POOL_LENGTH),
		.pool_source_file = offset_of(found, POOL_SOURCE),
		.klass_source_file = offset_of(found, KLASS_SOURCE),
		.symbol_length = offset_of(found, SYMBOL_LENGTH),
		.symbol_body = offset_of(found, SYMBOL_BODY),
		.scopes_data_is_address = found->has[SCOPES_ADDRESS],
		.is_sparse = major >= 20,
		.last_live_state = major >= 9 ? 2 : 1, /* not_entrant; from 9 on behind not_used (compiledMethod.hpp) */
	};
}

/* Is each offset that is used in range? The walk reads whole headers into buffers of SONDE_JAVA_HEADER_BYTES. */
static bool is_known(const struct java_process *process)
{
	const struct sonde_java *java = &process->java;
	const struct java_layout *layout = &process->layout;
	const uint16_t in_blob[] = { java->blob_name, java->blob_size, java->blob_frame_size, java->blob_complete, java->blob_code_start,
				     java->blob_code_end, java->nmethod_id, java->nmethod_orig_pc, java->nmethod_deopt,
				     layout->nmethod_method, layout->scopes_data, layout->scopes_pcs, layout->pcs_end };
	const uint16_t in_const[] = { java->const_constants, java->const_code_size, java->const_name, java->const_signature,
				      layout->const_flags };

	if (java->header_bytes >= SONDE_JAVA_HEADER_BYTES || java->header_bytes < 64 ||
	    java->nmethod_state + java->block_bytes >= java->header_bytes || (java->block_bytes != 8 && java->block_bytes != 16) ||
	    java->block_used >= java->block_bytes || (layout->metadata == JAVA_NONE && layout->mutable_data == JAVA_NONE))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(in_blob); i++) {
		if (in_blob[i] + java->block_bytes + 8 > java->header_bytes)
			return false;
	}
	if (java->nmethod_deopt_mh != JAVA_NONE && java->nmethod_deopt_mh + java->block_bytes + 8 > java->header_bytes)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(in_const); i++) {
		if (in_const[i] > 56 || in_const[i] % 2)
			return false;
	}
	return java->method_const < 512 && java->const_bytes && java->const_bytes < 256 && java->pool_holder < 512 &&
	       java->klass_name < 512 && layout->pc_desc_bytes == 16 && layout->pc_desc_scope == 4 && java->pool_bytes &&
	       java->pool_bytes < 512 && layout->pool_length < 512 && layout->symbol_length < 16 && layout->symbol_body < 32 &&
	       (layout->pool_source_file < 512 || layout->klass_source_file < 1024);
}

/* --- values --------------------------------------------------------------------------------------------------------------------------- */

static int read_heap(const struct found *found, const struct runtime_memory *memory, uint64_t heap, struct sonde_java *java,
		     struct sonde_java_heap *ret_heap)
{
	uint64_t code = heap + found->fields[HEAP_MEMORY], segmap = heap + found->fields[HEAP_SEGMAP];
	uint32_t shift;

	if (read_u64(memory, code + found->fields[SPACE_LOW], &ret_heap->start_pc) ||
	    read_u64(memory, code + found->fields[SPACE_HIGH], &ret_heap->end_pc) ||
	    read_u64(memory, segmap + found->fields[SPACE_LOW], &ret_heap->segmap) ||
	    read_u32(memory, heap + found->fields[HEAP_SHIFT], &shift))
		return -EAGAIN;
	if (ret_heap->start_pc >= ret_heap->end_pc || !ret_heap->segmap || shift < 3 || shift > 16 ||
	    (java->segment_shift && java->segment_shift != shift))
		return -EAGAIN;
	java->segment_shift = (uint8_t)shift;
	return 0;
}

static int read_heaps(const struct found *found, const struct runtime_memory *memory, struct sonde_java *java)
{
	uint64_t list, data, heaps[SONDE_JAVA_MAX_HEAPS] = { 0 };
	uint32_t nr = 1;
	int err = 0;

	if (found->has[HEAP_8]) {
		if (read_u64(memory, found->fields[HEAP_8], &heaps[0]) || !heaps[0])
			return -EAGAIN;
	} else {
		if (read_u64(memory, found->fields[HEAPS], &list) || !list || read_u32(memory, list + found->fields[LIST_LENGTH], &nr) ||
		    !nr || nr > SONDE_JAVA_MAX_HEAPS || read_u64(memory, list + found->fields[LIST_DATA], &data) || !data ||
		    memory->read(memory->arg, data, heaps, nr * sizeof(*heaps)))
			return -EAGAIN;
	}
	for (uint32_t i = 0; !err && i < nr; i++)
		err = read_heap(found, memory, heaps[i], java, &java->heaps[i]);
	return err;
}

static int read_interpreter(const struct found *found, const struct runtime_memory *memory, struct diag *diag, struct sonde_java *java)
{
	const struct java_queue_layout layout = {
		.buffer = found->fields[QUEUE_BUFFER], .limit = found->fields[QUEUE_LIMIT], .begin = found->fields[QUEUE_BEGIN],
		.end = found->fields[QUEUE_END], .number = found->fields[QUEUE_NUMBER], .size = found->fields[CODELET_SIZE],
		.description = found->fields[CODELET_DESCRIPTION]
	};
	uint64_t queue;

	if (read_u64(memory, found->fields[INTERPRETER], &queue) || !queue)
		return -EAGAIN;
	return java_interpreter_read(&layout, queue, memory, diag, java);
}

static int require(const struct found *found, enum wanted first, enum wanted last)
{
	for (enum wanted which = first; which <= last; which++) {
		if (!found->has[which])
			return -EOPNOTSUPP;
	}
	return 0;
}

/* --- threads -------------------------------------------------------------------------------------------------------------------------- */

#define BELOW_THREAD 4096 /* bytes below the thread pointer with the variables of libraries that are loaded early */
#define ABOVE_THREAD 2048 /* glibc: struct pthread, with the values of the first keys */

/* The first Java thread that the VM lists: 0; -EAGAIN: none yet. */
static int first_thread(const struct found *found, const struct runtime_memory *memory, uint64_t *ret_thread)
{
	uint64_t list, threads;
	uint32_t nr;

	*ret_thread = 0;
	if (!found->has[THREADS])
		return read_u64(memory, found->fields[THREADS_8], ret_thread) || !*ret_thread ? -EAGAIN : 0;
	if (read_u64(memory, found->fields[THREADS], &list) || !list || read_u32(memory, list + found->fields[THREADS_LENGTH], &nr) ||
	    !nr || read_u64(memory, list + found->fields[THREADS_DATA], &threads) || read_u64(memory, threads, ret_thread) ||
	    !*ret_thread)
		return -EAGAIN;
	return 0;
}

static bool find_word(const struct runtime_memory *memory, uint64_t from, uint64_t nr_bytes, bool from_end, uint64_t word, uint64_t *ret_at)
{
	uint64_t words[BELOW_THREAD / 8];
	uint64_t nr = nr_bytes / 8;

	if (memory->read(memory->arg, from, words, nr_bytes))
		return false;
	for (uint64_t n = 0; n < nr; n++) {
		uint64_t i = from_end ? nr - 1 - n : n;

		if (words[i] == word) {
			*ret_at = from + 8 * i;
			return true;
		}
	}
	return false;
}

/* Where threads have their JavaThread, as a distance from the thread pointer: HotSpot keeps it as the value of one of the first pthread
 * keys (all versions) and in a variable of its own, without an exported name (9 and newer). Either is in the same place in all threads. So
 * the place where one thread has it is taken; the walk proves what it finds there. 0, with kind NONE if it is not found; -EAGAIN: there is
 * no thread yet. */
static int find_root(const struct found *found, const struct runtime_memory *memory, struct sonde_tls *ret_root)
{
	uint64_t thread, os, pthread, at;

	if (first_thread(found, memory, &thread))
		return -EAGAIN;
	if (read_u64(memory, thread + found->fields[THREAD_OS], &os) || read_u64(memory, os + found->fields[OS_PTHREAD], &pthread) ||
	    !pthread)
		return -EAGAIN;
	if (find_word(memory, pthread, ABOVE_THREAD, false, thread, &at) ||
	    find_word(memory, pthread - BELOW_THREAD, BELOW_THREAD, true, thread, &at))
		*ret_root = (struct sonde_tls){ .kind = SONDE_TLS_STATIC, .off = (int64_t)(at - pthread) };
	return 0;
}

/* What is needed where native code breaks the chain; a VM without it is walked all the same. 0 or -EAGAIN. */
static int take_anchors(const struct found *found, const struct runtime_memory *memory, struct sonde_java *java)
{
	java->wrapper_anchor = JAVA_NONE;
	java->thread_exception_pc = offset_of(found, EXCEPTION_PC);
	java->anchor_sp = offset_of(found, ANCHOR_SP);
	java->anchor_pc = offset_of(found, ANCHOR_PC);
	java->anchor_fp = offset_of(found, ANCHOR_FP);
	if (java->anchor_sp == JAVA_NONE || java->anchor_pc == JAVA_NONE || java->anchor_fp == JAVA_NONE)
		return 0;
	java->wrapper_anchor = offset_of(found, WRAPPER_ANCHOR);
	if (require(found, THREAD_OS, OS_PTHREAD) || (!found->has[THREADS_8] && require(found, THREADS, THREADS_DATA)))
		return 0;
	java->thread_os = offset_of(found, THREAD_OS);
	java->thread_anchor = offset_of(found, THREAD_ANCHOR);
	java->thread_stack_base = offset_of(found, STACK_BASE);
	java->thread_stack_size = offset_of(found, STACK_SIZE);
	java->os_pthread = offset_of(found, OS_PTHREAD);
	return find_root(found, memory, &java->process.root);
}

/* What is needed to walk a virtual thread's frames that are on the heap, below the anchors, which tell when the VM is about to change them.
 * Threads come after the classes that are looked for. */
static void take_chunks(const struct found *found, const struct runtime_memory *memory, struct sonde_java *java)
{
	const struct java_chunk_layout layout = {
		.classes = { .classes = found->fields[CLASSES],
			     .symbols = found->fields[VM_SYMBOLS],
			     .name = java->klass_name,
			     .size = offset_of(found, KLASS_SIZE),
			     .constants = offset_of(found, KLASS_CONSTANTS),
			     .fields = offset_of(found, KLASS_FIELDS),
			     .pool_bytes = java->pool_bytes,
			     .symbol_length = offset_of(found, SYMBOL_LENGTH),
			     .symbol_body = offset_of(found, SYMBOL_BODY) },
		.flags = found->fields[FLAGS],
		.nr_flags = found->fields[NR_FLAGS],
		.narrow_base = found->fields[NARROW_BASE],
		.narrow_shift = found->fields[NARROW_SHIFT],
		.colors = found->fields[COLORS],
		.flag_name = offset_of(found, FLAG_NAME),
		.flag_value = offset_of(found, FLAG_VALUE),
		.flag_bytes = (uint16_t)found->sizes[FLAG_BYTES],
		.bad_mask = offset_of(found, BAD_MASK),
		.shift = offset_of(found, COLOR_SHIFT),
		.old_colors = found->fields[OLD_COLORS],
		.old_bad_mask = offset_of(found, OLD_BAD_MASK),
		.thread_entry = offset_of(found, THREAD_ENTRY),
		.thread_vthread = offset_of(found, THREAD_VTHREAD)
	};

	if (java->process.root.kind == SONDE_TLS_STATIC && java->continuation_return && !require(found, CLASSES, NARROW_SHIFT))
		java_chunk_read(&layout, memory, &java->chunk);
}

int java_vm_read(const struct java_image *image, uint64_t load_bias, const struct runtime_memory *memory, struct diag *diag,
		 struct java_process *ret_process)
{
	CLEANUP(freep) struct found *found = calloc(1, sizeof(*found));
	struct java_process process = { 0 };
	struct sonde_java *java = &process.java;
	int err;

	if (!found)
		return -EAGAIN;
	err = read_tables(image, load_bias, memory, diag, found);
	if (err)
		return err;
	if ((!found->has[HEAP_8] && (!found->has[HEAPS] || require(found, LIST_LENGTH, LIST_DATA))) ||
	    require(found, SPACE_LOW, CALL_STUB_RETURN) || require(found, BLOB_NAME, BLOB_COMPLETE))
		return diag_errno(diag, EOPNOTSUPP, "its tables (vmStructs) lack fields that are needed");
	take_blob(found, java);
	take_method(found, java);
	take_layout(found, image->major, &process.layout);
	if (!is_known(&process))
		return diag_errno(diag, EOPNOTSUPP, "its tables (vmStructs) have values that are not known here");
	java->bcp_slot = image->major == 8 ? 7 : 8;
	java->symbol_mask = process.layout.symbol_length == 0 ? ~0xffff0000ULL : ~0xffffULL;
	if (read_u64(memory, found->fields[CALL_STUB_RETURN], &java->call_stub_return) || !java->call_stub_return)
		return -EAGAIN;
	if (found->has[CONTINUATION_RETURN])
		java->continuation_return = found->fields[CONTINUATION_RETURN];
	else if (image->continuation_return)
		java->continuation_return = load_bias + image->continuation_return;
	err = read_heaps(found, memory, java);
	if (!err)
		err = read_interpreter(found, memory, diag, java);
	if (!err)
		err = take_anchors(found, memory, java);
	if (!err)
		take_chunks(found, memory, java);
	if (!err)
		*ret_process = process;
	return err;
}
