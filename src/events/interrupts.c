// SPDX-License-Identifier: Apache-2.0
#include "events/interrupts.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST	  "/proc/interrupts"
#define MAX_LINES 512 /* more devices have interrupts only on very large machines; those beyond are not compared */

struct interrupt {
	unsigned long number;
	uint64_t count; /* on all CPUs */
	char name[64];
};

struct interrupts {
	struct interrupt list[MAX_LINES];
	uint32_t nr;
};

/* The last word of the line: the device or its driver. */
static void take_name(const char *text, char *name, size_t size)
{
	size_t end = strlen(text), begin;

	while (end && isspace((unsigned char)text[end - 1]))
		end--;
	begin = end;
	while (begin && !isspace((unsigned char)text[begin - 1]))
		begin--;
	snprintf(name, size, "%.*s", (int)(end - begin), text + begin);
}

/* " 24:   100   5   PCI-MSIX-0000:00:03.0   0-edge      virtio0-input": a number for each CPU. Others, without a number before the colon,
 * are of the processor itself. */
static bool parse(const char *line, struct interrupt *interrupt)
{
	char *at;

	*interrupt = (struct interrupt){ .number = strtoul(line, &at, 10) };
	if (*at++ != ':')
		return false;
	for (;;) {
		char *end;
		unsigned long long count = strtoull(at, &end, 10);

		if (end == at || (*end && !isspace((unsigned char)*end)))
			break;
		interrupt->count += count;
		at = end;
	}
	take_name(at, interrupt->name, sizeof(interrupt->name));
	return true;
}

struct interrupts *interrupts_read(void)
{
	struct interrupts *interrupts = calloc(1, sizeof(*interrupts));
	FILE *file = interrupts ? fopen(LIST, "re") : NULL;
	char *line = NULL;
	size_t size = 0;

	while (file && interrupts->nr < MAX_LINES && getline(&line, &size, file) > 0)
		interrupts->nr += parse(line, &interrupts->list[interrupts->nr]);
	free(line);
	if (file)
		fclose(file);
	return interrupts;
}

void interrupts_free(struct interrupts *interrupts)
{
	free(interrupts);
}

static uint64_t count_of(const struct interrupts *interrupts, unsigned long number)
{
	for (uint32_t i = 0; i < interrupts->nr; i++) {
		if (interrupts->list[i].number == number)
			return interrupts->list[i].count;
	}
	return 0;
}

void interrupts_difference(const struct interrupts *before, const struct interrupts *after, struct buffer *text)
{
	size_t begin = text->size;

	for (uint32_t i = 0; i < after->nr; i++) {
		uint64_t more = after->list[i].count - count_of(before, after->list[i].number);

		if (more)
			buffer_printf(text, "%s%lu %s +%" PRIu64, text->size > begin ? ", " : "", after->list[i].number,
				      after->list[i].name, more);
	}
	if (text->size == begin)
		buffer_text(text, "none");
}
