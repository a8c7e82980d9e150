// SPDX-License-Identifier: Apache-2.0
/* Any bytes as what a process publishes of itself: what is taken is bounded, not empty and plain. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain_text.h"
#include "process/process_context.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text, size_t room)
{
	char plain[PROCESS_CONTEXT_TEXT];

	if (!text[0] || strlen(text) >= room)
		abort();
	memcpy(plain, text, strlen(text) + 1);
	plain_make(plain);
	if (strcmp(plain, text) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct process_context context;

	if (size > PROCESS_CONTEXT_BYTES || process_context_parse(data, size, &context))
		return 0;
	if (context.nr_attributes > PROCESS_CONTEXT_ATTRIBUTES || context.nr_keys > PROCESS_CONTEXT_KEYS)
		abort();
	for (uint32_t i = 0; i < context.nr_attributes; i++) {
		check_text(context.attributes[i].key, sizeof(context.attributes[i].key));
		check_text(context.attributes[i].text, sizeof(context.attributes[i].text));
		for (uint32_t k = 0; k < i; k++) {
			if (!strcmp(context.attributes[i].key, context.attributes[k].key))
				abort();
		}
	}
	for (uint32_t i = 0; i < context.nr_keys; i++) {
		if (context.keys[i].bytes > size)
			abort();
	}
	return 0;
}
