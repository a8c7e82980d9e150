// SPDX-License-Identifier: Apache-2.0
/* Any bytes as a linker name: the result is bounded in size and (by libFuzzer's -timeout) in time. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbolize/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(freep) char *name = malloc(size + 1);
	CLEANUP(freep) char *text = NULL;

	if (!name)
		return 0;
	memcpy(name, data, size);
	name[size] = '\0';
	text = demangle(name);
	if (text && (!text[0] || strlen(text) > DEMANGLE_MAX_TEXT || !demangle_is_candidate(name)))
		abort();
	return 0;
}
