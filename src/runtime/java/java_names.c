// SPDX-License-Identifier: Apache-2.0
/* java_names: layouts from nmethod.hpp, codeBlob.hpp. An nmethod's debug information does not change. Its methods exist as long as it may
 * run: the state is checked before and after they are read. */
#include "runtime/java/java_names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "abi/reason.h"
#include "base/utf8.h"
#include "runtime/java/java_blob.h"
#include "runtime/java/java_method.h"
#include "runtime/java/java_scopes.h"

#define MAX_PC_DESCS (1 << 16)
#define MAX_CODE_BYTES (1 << 30)
#define MAX_METADATA (1 << 20)
#define MAX_STUB_BYTES 96

static uint64_t offset_base(const struct java_blob_header *nmethod)
{
	uint16_t immutable = nmethod->process->layout.immutable_data;

	return immutable == JAVA_NONE ? nmethod->start : java_blob_field(nmethod, immutable, 8);
}

static int method_of(const struct java_blob_header *nmethod, const struct runtime_memory *memory, uint32_t number, uint64_t *ret_method)
{
	const struct java_layout *layout = &nmethod->process->layout;
	uint64_t metadata;

	if (!number || number > MAX_METADATA)
		return -EBADMSG;
	if (layout->metadata != JAVA_NONE)
		metadata = nmethod->start + java_blob_field(nmethod, layout->metadata, 4);
	else
		metadata = java_blob_field(nmethod, layout->mutable_data, 8) +
			   ((java_blob_field(nmethod, layout->relocation_size, 4) + 7) & ~7ULL);
	return memory->read(memory->arg, metadata + (uint64_t)(number - 1) * 8, ret_method, sizeof(*ret_method));
}

/* 0; -EBADMSG. */
static int debug_info_of(const struct java_blob_header *nmethod, const struct runtime_memory *memory, struct java_debug_info *ret_info)
{
	const struct java_layout *layout = &nmethod->process->layout;
	uint32_t first = (uint32_t)java_blob_field(nmethod, layout->scopes_pcs, 4);
	uint32_t end = (uint32_t)java_blob_field(nmethod, layout->pcs_end, 4);
	struct sonde_code_range code = java_blob_code(nmethod);

	if (end < first || (end - first) / sizeof(struct java_desc) > MAX_PC_DESCS || code.end_pc < code.start_pc)
		return -EBADMSG;
	*ret_info = (struct java_debug_info){
		.memory = memory,
		.descs = offset_base(nmethod) + first,
		.nr_descs = (end - first) / sizeof(struct java_desc), /* 0: the VM's own code, as Continuation.enterSpecial's */
		.scopes = layout->scopes_data_is_address ? java_blob_field(nmethod, layout->scopes_data, 8)
							 : offset_base(nmethod) + java_blob_field(nmethod, layout->scopes_data, 4),
		.is_sparse = layout->is_sparse,
		.code = code.start_pc,
		.code_bytes = code.end_pc - code.start_pc < MAX_CODE_BYTES ? (uint32_t)(code.end_pc - code.start_pc) : MAX_CODE_BYTES,
	};
	return 0;
}

static int describe_scopes(const struct java_blob_header *nmethod, const struct runtime_memory *memory, uint32_t where,
			   struct runtime_function *function)
{
	uint64_t method = java_blob_field(nmethod, nmethod->process->layout.nmethod_method, 8);
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
	struct java_blob_header nmethod, again;
	int err = java_blob_read_nmethod(process, memory, frame, &nmethod);

	if (!err)
		err = describe_scopes(&nmethod, memory, (uint32_t)frame->where, &function);
	if (!err)
		err = java_blob_read_nmethod(process, memory, frame, &again);
	if (!err)
		*ret_function = function;
	return err;
}

/* The VM's own name of a piece of its code. */
static int describe_stub(const struct java_process *process, const struct runtime_memory *memory, const struct sonde_runtime_frame *frame,
			 struct runtime_function *function)
{
	char text[MAX_STUB_BYTES + 1] = "";
	struct java_blob_header blob;
	uint64_t name;
	size_t in_page;
	int err;

	if (frame->code == process->java.interpreter_start) {
		snprintf(function->name, sizeof(function->name), "[interpreter]");
		function->is_mark = true;
		return 0;
	}
	err = java_blob_read_stub(process, memory, frame, &blob, &name);
	if (err)
		return err;
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
