// SPDX-License-Identifier: Apache-2.0
#include "runtime/java/java_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/java/java_blob.h"
#include "runtime/java/java_code.h"

#define PUSH_BX 0x53

/* The frame's blob, and where the frame's pc is in its code. */
struct place {
	struct java_blob_header header;
	struct sonde_code_range code;
	uint32_t off;
	bool is_nmethod, is_safepoint, is_adapter;
	uint32_t frame_bytes; /* of a RuntimeStub, too; buffers of several stubs have no frame size (CodeBlob::frame_size) */
};

/* 0; -ESTALE: another blob is there. */
static int place_read(const struct java_process *process, const struct runtime_memory *memory, const struct sonde_runtime_frame *frame,
		      struct place *ret_place)
{
	uint32_t where = (uint32_t)frame->where;
	char text[8] = "";
	uint64_t name;
	int err;

	ret_place->is_nmethod = frame->where >> SONDE_JAVA_CODE_SHIFT == SONDE_JAVA_COMPILED;
	err = ret_place->is_nmethod ? java_blob_read_nmethod(process, memory, frame, &ret_place->header)
				    : java_blob_read_stub(process, memory, frame, &ret_place->header, &name);
	if (!err && !ret_place->is_nmethod)
		err = memory->read(memory->arg, name, text, sizeof(text));
	if (err)
		return err;
	ret_place->is_safepoint = !memcmp(text, "SafepointBlob", sizeof(text));
	ret_place->frame_bytes = (uint32_t)java_blob_field(&ret_place->header, process->java.blob_frame_size, 4) * 8;
	ret_place->is_adapter = !memcmp(text, "I2C/C2I adapters", sizeof(text));
	ret_place->code = java_blob_code(&ret_place->header);
	if (ret_place->code.start_pc < frame->code || ret_place->code.end_pc < ret_place->code.start_pc)
		return -EBADMSG;
	if (ret_place->is_nmethod)
		ret_place->off = where - !!where; /* an interrupted instruction, or in the call before a return address */
	else
		ret_place->off = (uint32_t)(frame->code + where - ret_place->code.start_pc);
	return 0;
}

static int read_code(const struct runtime_memory *memory, const struct place *place, struct java_code **ret_code)
{
	uint64_t size = place->code.end_pc - place->code.start_pc;
	CLEANUP(freep) uint8_t *bytes = NULL;
	int err;

	if (!size || size > JAVA_CODE_MAX_BYTES)
		return -EFBIG;
	bytes = malloc(size);
	if (!bytes)
		return -ENOMEM;
	err = memory->read(memory->arg, place->code.start_pc, bytes, size);
	if (err)
		return err;
	return java_code_read(
	    &(struct java_code_blob){
		.code = bytes,
		.size = (uint32_t)size,
		.pc = place->code.start_pc,
		.frame_bytes = place->is_nmethod ? place->frame_bytes : 0,
		.stub_bytes = place->is_nmethod ? 0 : place->frame_bytes,
		.is_adapter = place->is_adapter,
		.is_interrupting = place->is_safepoint && bytes[0] == PUSH_BX,
	    },
	    ret_code);
}

/* Reads the code, and gives its rows to the kernel side. */
static int rows_make(const struct java_process *process, const struct runtime_memory *memory, const struct sonde_runtime_frame *frame,
		     const struct place *place, struct sonde_java_rows_key key, const struct runtime_rows *rows,
		     struct sonde_java_row *ret_row)
{
	CLEANUP(java_code_freep) struct java_code *code = NULL;
	struct sonde_java_rows part;
	struct place again;
	int err = read_code(memory, place, &code);

	if (!err)
		err = place_read(process, memory, frame, &again);
	if (err)
		return err;
	for (key.part = 0; java_code_part(code, key.part, &part); key.part++)
		rows->set(rows->arg, &key, &part);
	*ret_row = java_code_find(code, place->off);
	return 0;
}

/* The row, from those that the kernel side has: -ENOENT: it has none. */
static int rows_find(struct sonde_java_rows_key key, uint32_t off, const struct runtime_rows *rows, struct sonde_java_row *ret_row)
{
	struct sonde_java_rows part;
	int err = rows->get(rows->arg, &key, &part);
	uint32_t i;

	if (!err && !part.nr) {
		key.part = (off >> part.shift) + 1;
		off &= (1u << part.shift) - 1;
		err = rows->get(rows->arg, &key, &part);
	}
	if (err || !part.nr || part.nr > SONDE_JAVA_MAX_ROWS)
		return -ENOENT;
	for (i = part.nr; i > 1 && part.rows[i - 1].off > off;)
		i--;
	*ret_row = part.rows[i - 1];
	return 0;
}

/* Was the CFA where the walk looked? Of stubs it assumes nothing. */
static bool is_as_claimed(const struct sonde_runtime_frame *frame, const struct sonde_java_row *row)
{
	uint32_t words = frame->where >> SONDE_JAVA_CLAIM_SHIFT & SONDE_JAVA_CLAIM_WORDS;
	bool is_kept = frame->where & SONDE_JAVA_CLAIM_BP_KEPT;

	if (!words)
		return true;
	return row->cfa == SONDE_JAVA_CFA_SP && row->words == (int64_t)words && row->bp == (is_kept ? 0 : 2);
}

int java_prove(const struct runtime_image *image, const void *of, const struct runtime_memory *memory,
	       const struct sonde_runtime_frame *frame, const struct runtime_rows *rows, bool *ret_is_true)
{
	const struct java_process *process = of;
	struct sonde_java_rows_key key = { .start = frame->code, .serial = process->java.process.serial };
	struct sonde_java_row row;
	struct place place;
	int err;

	(void)image;
	err = place_read(process, memory, frame, &place);
	key.id = place.is_nmethod ? frame->cookie : 0;
	if (!err && rows_find(key, place.off, rows, &row))
		err = rows_make(process, memory, frame, &place, key, rows, &row);
	if (!err)
		*ret_is_true = is_as_claimed(frame, &row);
	return err;
}
