// SPDX-License-Identifier: Apache-2.0
#include "session/runtime_list.h"

#include <errno.h>
#include <string.h>

#include <sonde/sonde.h>

#include "abi/runtime.h"
#include "base/buffer.h"
#include "runtime/runtime.h"

#define ALL ((1u << SONDE_RUNTIME_COUNT) - 1)

const char *sonde_runtime_name(uint32_t i)
{
	static const char *const names[] = {
#define X(id, name, ...) #name,
		SONDE_RUNTIME_LIST(X, X, X)
#undef X
	};

	return i < ARRAY_SIZE(names) ? names[i] : NULL;
}

const char *sonde_runtime_alias(uint32_t i)
{
	const struct runtime *runtime = runtime_of(SONDE_RUNTIME_NONE + 1 + i);

	return runtime ? runtime->tracer : NULL;
}

static bool is_word(const char *known, const char *name, size_t size)
{
	return known && strlen(known) == size && !strncmp(known, name, size);
}

/* SONDE_RUNTIME_NONE: there is none of that name. */
static uint32_t kind_of(const char *name, size_t size)
{
	for (uint32_t i = 0; sonde_runtime_name(i); i++) {
		if (is_word(sonde_runtime_name(i), name, size) || is_word(sonde_runtime_alias(i), name, size))
			return SONDE_RUNTIME_NONE + 1 + i;
	}
	return SONDE_RUNTIME_NONE;
}

static int unknown(const char *name, size_t size, struct diag *diag)
{
	CLEANUP(buffer_done) struct buffer names = BUFFER_INIT(256);

	for (uint32_t i = 0; sonde_runtime_name(i); i++)
		buffer_printf(&names, "%s, ", sonde_runtime_name(i));
	return diag_errno(diag, EINVAL, "there is no runtime '%.*s': it is one of %snone stands alone", size < 40 ? (int)size : 40, name,
			  names.data ? names.data : "");
}

int runtime_list_parse(const char *list, struct diag *diag, uint32_t *ret_off)
{
	uint32_t on = 0;

	*ret_off = list && !strcmp(list, "none") ? ALL : 0;
	if (!list || !strcmp(list, "all") || *ret_off)
		return 0;
	for (const char *name = list;; name++) {
		size_t size = strcspn(name, ",");
		uint32_t kind = kind_of(name, size);

		if (kind == SONDE_RUNTIME_NONE)
			return unknown(name, size, diag);
		on |= 1u << kind;
		name += size;
		if (!*name)
			break;
	}
	*ret_off = ALL & ~on;
	return 0;
}
