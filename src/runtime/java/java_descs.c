// SPDX-License-Identifier: Apache-2.0
#include "runtime/java/java_descs.h"

#include <errno.h>
#include <string.h>

#include "abi/java.h"
#include "base/reader.h"
#include "runtime/java/java_lines.h"

#define MAX_SCOPES_BYTES (16 << 20)
#define SCOPE_BYTES 30 /* six numbers: the scope of the caller, the method, the bci; where the locals, the stack and the monitors are */
#define PAGE_BYTES 4096

static int descs_read(const struct java_debug_info *info, struct java_descs *descs, uint32_t first, uint32_t nr)
{
	int err = info->memory->read(info->memory->arg, info->descs + (uint64_t)first * sizeof(descs->descs[0]), descs->descs,
				     nr * sizeof(descs->descs[0]));

	descs->first = first;
	descs->nr = err ? 0 : nr;
	return err;
}

int java_descs_at(const struct java_debug_info *info, struct java_descs *descs, uint32_t number, struct java_desc *ret_desc)
{
	int err = 0;

	if (number >= info->nr_descs)
		return -EBADMSG;
	if (number - descs->first >= descs->nr) {
		uint32_t first = number > JAVA_DESCS_READ / 4 ? number - JAVA_DESCS_READ / 4 : 0, left = info->nr_descs - first;

		err = descs_read(info, descs, first, left < JAVA_DESCS_READ ? left : JAVA_DESCS_READ);
	}
	if (!err)
		*ret_desc = descs->descs[number - descs->first];
	return err;
}

int java_descs_find(const struct java_debug_info *info, struct java_descs *descs, uint32_t off, uint32_t *ret_number)
{
	uint32_t low = 0, high = info->nr_descs - 1; /* they are sorted, and that one is in [low, high] */

	if (descs->nr && descs->descs[0].pc < (int64_t)off && descs->descs[descs->nr - 1].pc >= (int64_t)off) {
		low = descs->first + 1;
		high = descs->first + descs->nr - 1;
	}
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		struct java_desc desc;
		int err;

		/* the far ones one by one: what else would be read beside them is of no use */
		if (high - low > JAVA_DESCS_READ)
			err = info->memory->read(info->memory->arg, info->descs + (uint64_t)middle * sizeof(desc), &desc, sizeof(desc));
		else
			err = java_descs_at(info, descs, middle, &desc);
		if (err)
			return err;
		if (desc.pc < (int64_t)off)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_number = low;
	return 0;
}

/* Reads the bytes of the scope at an offset, with those before it. */
static int scope_bytes(const struct java_debug_info *info, struct java_descs *descs, uint32_t offset, struct reader *ret_reader)
{
	uint32_t start = offset > JAVA_SCOPES_READ - SCOPE_BYTES ? offset - (JAVA_SCOPES_READ - SCOPE_BYTES) : 0;
	uint32_t nr = offset + SCOPE_BYTES - start, in_page = PAGE_BYTES - (info->scopes + offset) % PAGE_BYTES;
	int err = 0;

	if (offset > MAX_SCOPES_BYTES)
		return -EBADMSG;
	if (offset < descs->scopes_start || offset + SCOPE_BYTES > descs->scopes_start + descs->nr_scopes) {
		err = info->memory->read(info->memory->arg, info->scopes + start, descs->scopes, nr);
		if (err && in_page < SCOPE_BYTES) { /* the last scope may be shorter, and the next page not there */
			nr = offset + in_page - start;
			err = info->memory->read(info->memory->arg, info->scopes + start, descs->scopes, nr);
		}
		descs->scopes_start = start;
		descs->nr_scopes = err ? 0 : nr;
	}
	if (!err)
		*ret_reader = reader_of(descs->scopes + (offset - descs->scopes_start), descs->scopes_start + descs->nr_scopes - offset);
	return err;
}

static int scope_read(const struct java_debug_info *info, struct java_descs *descs, uint32_t offset, uint32_t *ret_sender,
		      struct java_scope *ret_scope, bool *has_values)
{
	struct reader reader;
	int err = scope_bytes(info, descs, offset, &reader);

	if (err)
		return err;
	*ret_sender = java_number(&reader, info->is_sparse);
	ret_scope->method = java_number(&reader, info->is_sparse);
	ret_scope->bci = java_number(&reader, info->is_sparse) - 1; /* InvocationEntryBci is -1 */
	if (ret_scope->bci > UINT16_MAX)
		ret_scope->bci = ret_scope->bci == UINT32_MAX ? 0 : SONDE_JAVA_NO_BCI;
	for (int i = 0; i < 3; i++)
		*has_values |= java_number(&reader, info->is_sparse) != 0;
	return reader.bad ? -EBADMSG : 0;
}

int java_scopes_read(const struct java_debug_info *info, struct java_descs *descs, uint32_t scope, struct java_scopes *ret_scopes)
{
	uint32_t nr = 0, sender;
	bool has_values = false;

	for (uint32_t at = scope; at; at = sender) {
		struct java_scope read;
		int err = nr < JAVA_MAX_LEVELS ? scope_read(info, descs, at, &sender, &read, &has_values) : -EBADMSG;

		if (!err && sender >= at) /* callers are written first */
			err = -EBADMSG;
		if (err)
			return err;
		ret_scopes->scopes[nr++] = read;
	}
	for (uint32_t i = 0; i < nr / 2; i++) {
		struct java_scope swapped = ret_scopes->scopes[i];

		ret_scopes->scopes[i] = ret_scopes->scopes[nr - 1 - i];
		ret_scopes->scopes[nr - 1 - i] = swapped;
	}
	ret_scopes->nr = nr;
	ret_scopes->has_values = has_values;
	return 0;
}
