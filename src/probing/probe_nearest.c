// SPDX-License-Identifier: Apache-2.0
#include "probing/probe_nearest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "programs/call_numbers.h"
#include "programs/kernel_functions.h"

/* Is this word, up to '_', one of the name's? */
static bool has_word(const char *name, const char *word, size_t size)
{
	while (name) {
		if (strcspn(name, "_") == size && !strncmp(name, word, size))
			return true;
		name = strchr(name, '_');
		name += name != NULL;
	}
	return false;
}

/* Bytes of the words that both have, less a bit for each word that only `name` has. */
static int likeness(const char *function, const char *name)
{
	const char *word = name;
	int same = 0, others = 0;

	while (word) {
		size_t size = strcspn(word, "_");

		if (size > 1 && has_word(function, word, size))
			same += 4 * (int)size;
		else
			others++;
		word = strchr(word, '_');
		word += word != NULL;
	}
	return same ? same - others : 0;
}

/* Puts the tracepoint or system call whose name has most in common with the function's into `ret_name`. */
static void find_nearest(const struct kernel_types *types, const char *function, char *ret_name, size_t size)
{
	struct kernel_cursor cursor = { 0 };
	const char *name;
	int best = 0, like;

	for (const struct call_number *call = call_numbers_64; call->name; call++) {
		like = likeness(function, call->name);
		if (like > best) {
			best = like;
			snprintf(ret_name, size, "syscall:%s", call->name);
		}
	}
	while ((name = kernel_types_next_tracepoint(types, &cursor)) != NULL) {
		like = likeness(function, name);
		if (like > best) {
			best = like;
			snprintf(ret_name, size, "tracepoint:%s", name);
		}
	}
}

/* A handler's hits are those of irq_handler_entry with its address; people know the name of the interrupt. */
static void offer_handler(const char *function, char *text, size_t size)
{
	uint64_t kaddr = 0;
	char exact[64] = "";

	if (kernel_functions_find(function, &kaddr) && kaddr)
		snprintf(exact, sizeof(exact), ", exactly: --filter 'action.handler == 0x%" PRIx64 "'", kaddr);
	snprintf(text, size, "irq_handler_entry --filter 'action.name == \"NAME\"', with a NAME of the last column of /proc/interrupts%s",
		 exact);
}

int probe_refuse(struct kernel_types *types, const char *function, bool is_handler, const char *way, struct diag *diag)
{
	char nearest[256] = "";

	if (is_handler || strstr(function, "intr") || strstr(function, "irq"))
		offer_handler(function, nearest, sizeof(nearest));
	else
		find_nearest(types, function, nearest, sizeof(nearest));
	return diag_errno(diag, EOPNOTSUPP, "this kernel cannot probe its functions by %s: '%.80s' is not traced%s%s", way, function,
			  *nearest ? "; the nearest that it can trace is " : "", nearest);
}
