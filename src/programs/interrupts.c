// SPDX-License-Identifier: Apache-2.0
#include "programs/interrupts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#define LIST	  "/proc/interrupts"
#define MAX_LINES 512 /* more devices have interrupts only on very large machines; those beyond are not compared */

struct interrupt {
	uint64_t number;
	uint64_t count; /* on all CPUs */
	char name[64];
};

struct interrupts {
	struct interrupt list[MAX_LINES];
	uint32_t nr;
};

/* The next word of the line, cut off. NULL: there are no more. */
static char *next_word(char **at)
{
	char *word = *at + strspn(*at, " \t\n");

	*at = word + strcspn(word, " \t\n");
	if (**at)
		*(*at)++ = '\0';
	return *word ? word : NULL;
}

/* " 24:   100   5   PCI-MSIX-0000:00:03.0   0-edge      virtio0-input": a number for each CPU; the last word is the device or its driver.
 * Lines without a number before the colon are of the processor itself. */
static bool parse(char *line, struct interrupt *interrupt)
{
	char *word = next_word(&line), *colon = word ? strchr(word, ':') : NULL;
	bool are_counts = true;
	uint64_t count;

	*interrupt = (struct interrupt){ 0 };
	if (!colon || colon[1])
		return false;
	*colon = '\0';
	if (number_u64(word, UINT32_MAX, &interrupt->number))
		return false;
	while ((word = next_word(&line)) != NULL) {
		are_counts = are_counts && !number_u64(word, UINT64_MAX, &count);
		if (are_counts)
			interrupt->count += count;
		snprintf(interrupt->name, sizeof(interrupt->name), "%s", are_counts ? "" : word);
	}
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

static uint64_t count_of(const struct interrupts *interrupts, uint64_t number)
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
			buffer_printf(text, "%s%" PRIu64 " %s +%" PRIu64, text->size > begin ? ", " : "", after->list[i].number,
				      after->list[i].name, more);
	}
	if (text->size == begin)
		buffer_text(text, "none");
}
