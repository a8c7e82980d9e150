// SPDX-License-Identifier: Apache-2.0
/* java_names: layouts from nmethod.hpp, pcDesc.hpp, scopeDesc.cpp (ScopeDesc::decode_body), debugInfoRec.cpp. An nmethod's debug
 * information does not change. Its methods exist as long as it may run: the state is checked before and after they are read. */
#include "runtime/java/java_names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "abi/reason.h"
#include "base/reader.h"
#include "base/utf8.h"
#include "runtime/java/java_blob.h"
#include "runtime/java/java_lines.h"
#include "runtime/java/java_method.h"

#define MAX_PC_DESCS (1 << 16)
#define PC_DESCS_STEP 256
#define MAX_SCOPES_BYTES (16 << 20)
#define MAX_METADATA (1 << 20)
#define SCOPE_HEAD_BYTES 15 /* three numbers: the scope of the caller, the method, the bci */
#define MAX_LEVELS 256
#define MAX_STUB_BYTES 96
#define WHERE_MASK UINT32_MAX

static uint64_t offset_base(const struct java_blob_header *nmethod)
{
	uint16_t immutable = nmethod->process->layout.immutable_data;

	return immutable == JAVA_NONE ? nmethod->start : java_blob_field(nmethod, immutable, 8);
}

/* Finds the first PcDesc that is not below `where`, and in it the scope: *ret_scope 0: there is no debug information. */
static int find_scope(const struct java_blob_header *nmethod, const struct runtime_memory *memory, uint64_t where, uint32_t *ret_scope)
{
	const struct java_layout *layout = &nmethod->process->layout;
	uint32_t first = (uint32_t)java_blob_field(nmethod, layout->scopes_pcs, 4), end = (uint32_t)java_blob_field(nmethod, layout->pcs_end, 4), nr;
	uint64_t descs_at = offset_base(nmethod) + first;
	uint32_t low = 0, high;
	int err;
	struct {
		int32_t pc, scope, object, flags;
	} descs[PC_DESCS_STEP];

	*ret_scope = 0;
	nr = (end - first) / sizeof(descs[0]);
	if (end < first || nr > MAX_PC_DESCS)
		return -EBADMSG;
	if (!nr) /* a native method's code that the VM itself generates, as Continuation.enterSpecial's */
		return 0;
	high = nr;
	while (high - low > PC_DESCS_STEP) { /* they are sorted; that one is in [low, high) */
		uint32_t middle = low + (high - low) / 2;

		err = memory->read(memory->arg, descs_at + middle * sizeof(descs[0]), descs, sizeof(descs[0]));
		if (err)
			return err;
		if (descs[0].pc < (int64_t)where)
			low = middle + 1;
		else
			high = middle + 1;
	}
	err = memory->read(memory->arg, descs_at + low * sizeof(descs[0]), descs, (high - low) * sizeof(descs[0]));
	for (uint32_t i = low; !err && i < high; i++) {
		if (descs[i - low].pc < (int64_t)where)
			continue;
		*ret_scope = i + 1 == nr ? 0 : (uint32_t)descs[i - low].scope; /* the last one is behind all code */
		return 0;
	}
	return err;
}

struct scope {
	uint32_t sender; /* offset of the caller's scope; 0: none */
	uint32_t method; /* number in the metadata, from 1 on; 0: none */
	uint32_t bci;
};

static int read_scope(const struct java_blob_header *nmethod, const struct runtime_memory *memory, uint32_t offset, struct scope *ret_scope)
{
	const struct java_layout *layout = &nmethod->process->layout;
	uint64_t base = layout->scopes_data_is_address ? java_blob_field(nmethod, layout->scopes_data, 8)
						       : offset_base(nmethod) + java_blob_field(nmethod, layout->scopes_data, 4);
	uint8_t bytes[SCOPE_HEAD_BYTES];
	struct reader reader = reader_of(bytes, sizeof(bytes));
	int err;

	if (offset > MAX_SCOPES_BYTES)
		return -EBADMSG;
	err = memory->read(memory->arg, base + offset, bytes, sizeof(bytes));
	if (err)
		return err;
	ret_scope->sender = java_number(&reader, layout->is_sparse);
	ret_scope->method = java_number(&reader, layout->is_sparse);
	ret_scope->bci = java_number(&reader, layout->is_sparse) - 1; /* InvocationEntryBci is -1 */
	if (ret_scope->bci > UINT16_MAX)
		ret_scope->bci = ret_scope->bci == UINT32_MAX ? 0 : SONDE_JAVA_NO_BCI;
	return reader.bad ? -EBADMSG : 0;
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
		metadata = java_blob_field(nmethod, layout->mutable_data, 8) + ((java_blob_field(nmethod, layout->relocation_size, 4) + 7) & ~7ULL);
	return memory->read(memory->arg, metadata + (uint64_t)(number - 1) * 8, ret_method, sizeof(*ret_method));
}

static int describe_scopes(const struct java_blob_header *nmethod, const struct runtime_memory *memory, uint64_t where,
			   struct runtime_function *function)
{
	uint64_t method = java_blob_field(nmethod, nmethod->process->layout.nmethod_method, 8);
	struct scope scope = { .bci = SONDE_JAVA_NO_BCI };
	uint32_t offset;
	int err = find_scope(nmethod, memory, where, &offset);

	if (!err && offset) {
		err = read_scope(nmethod, memory, offset, &scope);
		for (uint32_t level = 0; !err && level < function->level; level++) {
			if (!scope.sender || scope.sender >= offset || level >= MAX_LEVELS) /* callers are written first */
				return -EBADMSG;
			offset = scope.sender;
			err = read_scope(nmethod, memory, offset, &scope);
		}
		if (!err)
			err = method_of(nmethod, memory, scope.method, &method);
	} else if (!err && function->level) {
		return -EBADMSG;
	}
	if (!err)
		err = java_method_describe(nmethod->process, memory, method, scope.bci, NULL, function);
	function->has_caller = !err && scope.sender;
	return err;
}

static int describe_compiled(const struct java_process *process, const struct runtime_memory *memory,
			     const struct sonde_runtime_frame *frame, struct runtime_function *ret_function)
{
	struct runtime_function function = *ret_function;
	struct java_blob_header nmethod, again;
	int err = java_blob_read_nmethod(process, memory, frame, &nmethod);

	if (!err)
		err = describe_scopes(&nmethod, memory, frame->where & WHERE_MASK, &function);
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
