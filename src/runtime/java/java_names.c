// SPDX-License-Identifier: Apache-2.0
/* java_names: layouts from nmethod.hpp, codeBlob.hpp. An nmethod's debug information does not change. Its methods exist as long as it may
 * run: the state is checked before and after they are read. */
#include "runtime/java/java_names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "abi/reason.h"
#include "base/utf8.h"
#include "runtime/java/java_method.h"
#include "runtime/java/java_scopes.h"

#define MAX_PC_DESCS (1 << 16)
#define MAX_CODE_BYTES (1 << 30)
#define MAX_METADATA (1 << 20)
#define MAX_STUB_BYTES 96

struct nmethod {
	const struct java_process *process;
	uint64_t start;
	uint8_t bytes[SONDE_JAVA_HEADER_BYTES]; /* from the block's header on */
};

static uint64_t field(const struct nmethod *nmethod, uint16_t off, size_t size)
{
	size_t at = nmethod->process->java.block_bytes + off;
	uint64_t value = 0;

	if (at + size <= sizeof(nmethod->bytes))
		memcpy(&value, nmethod->bytes + at, size);
	return value;
}

static int read_header(const struct java_process *process, const struct runtime_memory *memory, uint64_t start, size_t size,
		       struct nmethod *ret_nmethod)
{
	int err;

	*ret_nmethod = (struct nmethod){ .process = process, .start = start };
	if (start % 8 || start < 4096)
		return -EBADMSG;
	err = memory->read(memory->arg, start - process->java.block_bytes, ret_nmethod->bytes, size);
	if (!err && !(ret_nmethod->bytes[process->java.block_used] & SONDE_JAVA_IS_USED))
		err = -ESTALE;
	return err;
}

/* 0; -ESTALE: another method's code is there, or its methods may be gone. */
static int read_nmethod(const struct java_process *process, const struct runtime_memory *memory, const struct sonde_runtime_frame *frame,
			struct nmethod *ret_nmethod)
{
	int err = read_header(process, memory, frame->code, process->java.header_bytes, ret_nmethod);
	int8_t state;

	if (err)
		return err;
	state = (int8_t)field(ret_nmethod, process->java.nmethod_state, 1);
	if ((uint32_t)field(ret_nmethod, process->java.nmethod_id, 4) != frame->cookie || state < 0 ||
	    state > process->layout.last_live_state)
		return -ESTALE;
	return 0;
}

static uint64_t offset_base(const struct nmethod *nmethod)
{
	uint16_t immutable = nmethod->process->layout.immutable_data;

	return immutable == JAVA_NONE ? nmethod->start : field(nmethod, immutable, 8);
}

static int method_of(const struct nmethod *nmethod, const struct runtime_memory *memory, uint32_t number, uint64_t *ret_method)
{
	const struct java_layout *layout = &nmethod->process->layout;
	uint64_t metadata;

	if (!number || number > MAX_METADATA)
		return -EBADMSG;
	if (layout->metadata != JAVA_NONE)
		metadata = nmethod->start + field(nmethod, layout->metadata, 4);
	else
		metadata = field(nmethod, layout->mutable_data, 8) + ((field(nmethod, layout->relocation_size, 4) + 7) & ~7ULL);
	return memory->read(memory->arg, metadata + (uint64_t)(number - 1) * 8, ret_method, sizeof(*ret_method));
}

/* 0; -EBADMSG. */
static int debug_info_of(const struct nmethod *nmethod, const struct runtime_memory *memory, struct java_debug_info *ret_info)
{
	const struct java_layout *layout = &nmethod->process->layout;
	const struct sonde_java *java = &nmethod->process->java;
	uint32_t first = (uint32_t)field(nmethod, layout->scopes_pcs, 4), end = (uint32_t)field(nmethod, layout->pcs_end, 4);
	uint64_t code_start = nmethod->start + field(nmethod, java->blob_code_start, 4);
	uint64_t code_end = nmethod->start + field(nmethod, java->blob_code_end, 4);

	if (java->has_addresses) {
		code_start = field(nmethod, java->blob_code_start, 8);
		code_end = field(nmethod, java->blob_code_end, 8);
	}
	if (end < first || (end - first) / sizeof(struct java_desc) > MAX_PC_DESCS || code_end < code_start)
		return -EBADMSG;
	*ret_info = (struct java_debug_info){
		.memory = memory,
		.descs = offset_base(nmethod) + first,
		.nr_descs = (end - first) / sizeof(struct java_desc), /* 0: the VM's own code, as Continuation.enterSpecial's */
		.scopes = layout->scopes_data_is_address ? field(nmethod, layout->scopes_data, 8)
							 : offset_base(nmethod) + field(nmethod, layout->scopes_data, 4),
		.is_sparse = layout->is_sparse,
		.code = code_start,
		.code_bytes = code_end - code_start < MAX_CODE_BYTES ? (uint32_t)(code_end - code_start) : MAX_CODE_BYTES,
	};
	return 0;
}

static int describe_scopes(const struct nmethod *nmethod, const struct runtime_memory *memory, uint32_t where,
			   struct runtime_function *function)
{
	uint64_t method = field(nmethod, nmethod->process->layout.nmethod_method, 8);
	const struct java_scope *scope = &(struct java_scope){ .bci = SONDE_JAVA_NO_BCI };
	struct java_debug_info info;
	struct java_scopes scopes;
	int err = debug_info_of(nmethod, memory, &info);

	if (!err)
		err = java_scopes_find(&info, where, &scopes);
	if (!err && function->level && function->level >= scopes.nr)
		err = -EBADMSG;
	if (!err && scopes.nr) {
		scope = &scopes.scopes[scopes.nr - 1 - function->level];
		err = method_of(nmethod, memory, scope->method, &method);
	}
	if (!err)
		err = java_method_describe(nmethod->process, memory, method, scope->bci, NULL, function);
	function->has_caller = !err && function->level + 1 < scopes.nr;
	return err;
}

static int describe_compiled(const struct java_process *process, const struct runtime_memory *memory,
			     const struct sonde_runtime_frame *frame, struct runtime_function *ret_function)
{
	struct runtime_function function = *ret_function;
	struct nmethod nmethod, again;
	int err = read_nmethod(process, memory, frame, &nmethod);

	if (!err)
		err = describe_scopes(&nmethod, memory, (uint32_t)frame->where, &function);
	if (!err)
		err = read_nmethod(process, memory, frame, &again);
	if (!err)
		*ret_function = function;
	return err;
}

/* The VM's own name of a piece of its code. */
static int describe_stub(const struct java_process *process, const struct runtime_memory *memory, const struct sonde_runtime_frame *frame,
			 struct runtime_function *function)
{
	char text[MAX_STUB_BYTES + 1] = "";
	struct nmethod blob;
	uint64_t name;
	size_t in_page;
	int err;

	if (frame->code == process->java.interpreter_start) {
		snprintf(function->name, sizeof(function->name), "[interpreter]");
		function->is_mark = true;
		return 0;
	}
	err = read_header(process, memory, frame->code, 64 + process->java.block_bytes + 48, &blob);
	if (err)
		return err;
	name = field(&blob, process->java.blob_name, 8);
	if ((uint32_t)(name ^ name >> 32) != frame->cookie)
		return -ESTALE;
	in_page = 4096 - name % 4096;
	err = memory->read(memory->arg, name, text, in_page < MAX_STUB_BYTES ? in_page : MAX_STUB_BYTES);
	if (err)
		return err;
	for (char *at = text; *at; at++) {
		if (*at < ' ' || *at > '~')
			return -EBADMSG;
	}
	snprintf(function->name, sizeof(function->name), "[stub: %s]", text);
	return 0;
}

int java_describe(const struct runtime_image *image, const void *of, const struct runtime_memory *memory,
		  const struct sonde_runtime_frame *frame, struct runtime_function *ret_function)
{
	const struct java_process *process = of;
	struct runtime_function function = { .level = ret_function->level, .is_lasting = true };
	int err = -EBADMSG;

	switch (frame->where >> SONDE_JAVA_CODE_SHIFT) {
	case SONDE_JAVA_METHOD:
		err = java_method_describe(process, memory, frame->code, (uint32_t)frame->where & 0xffff, &frame->cookie, &function);
		break;
	case SONDE_JAVA_COMPILED:
		err = describe_compiled(process, memory, frame, &function);
		break;
	case SONDE_JAVA_STUB:
		err = describe_stub(process, memory, frame, &function);
		break;
	case SONDE_JAVA_GAP:
		snprintf(function.name, sizeof(function.name), SONDE_GAP_MARK);
		function.is_mark = true;
		err = 0;
		break;
	case SONDE_JAVA_PARKED:
		snprintf(function.name, sizeof(function.name), "[java: frames on the heap]");
		function.is_mark = true;
		err = 0;
		break;
	}
	if (!err)
		*ret_function = function;
	return err;
}
