/* SPDX-License-Identifier: Apache-2.0 */
/* probe_spec: what `trace` is asked for, as text: probes ("syscall:openat", "uprobe:/bin/bash:readline"), fields of their hits ("prev.pid",
 * "str(arg1)"), and comparisons ("fd > 2 && comm ^= \"ng\""). One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/probe.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "collect/trigger.h"
#include "programs/kernel_types.h"

struct probe_spec {
	struct trigger trigger, end; /* end: of a time, if has_end */
	bool has_end;
	enum sonde_probe_context context, end_context;
	uint32_t call, compat_call; /* of system calls: their numbers of 64 and of 32 bits, or CALL_UNKNOWN */
	uint32_t result_word, end_result_word;
	struct kernel_args args; /* by BTF; none: arg0 to arg5 */
	bool is_thrown_through;	 /* an exception that passes the function would meet a return probe, which ends the program */
	bool is_handler;	 /* of an interrupt, in the kernel */
	bool in_user;		 /* texts are in the program's memory */
	struct dwarf_args *user_args; /* of a user function: what args borrows from at its entry, and its result; NULL: nothing */
	const char *no_args;	      /* why no argument is known: "at the return", "of Go"; NULL: some are */
	uint64_t *places;	 /* of a source line: what the trigger borrows; NULL: nothing */
	char *text, *copy;	 /* as it was typed; the parts that the triggers point to */
};

/* The kind of probe that the word before the first ':' names ("tracepoint" for "t"), and the bytes of that word with the colon; NULL: it
 * names none. */
const char *probe_spec_kind(const char *text, size_t *ret_size);
/* `size`: of the text. `latency`: the end is wanted, too. 0; -EINVAL, -ENOENT, -EOPNOTSUPP with what to do; -ENOMEM. */
MUST_CHECK int probe_spec_parse(const char *text, size_t size, bool latency, struct kernel_types *types, struct diag *diag,
				struct probe_spec *ret_spec);
void probe_spec_done(struct probe_spec *spec);
/* Is it a field of every hit: pid, tid, cpu or comm? An argument of that name goes by its number. */
bool probe_spec_is_common(const char *name);
/* Is it at the end of a call, where there is a result? */
bool probe_spec_is_end(const struct probe_spec *spec);
/* 0; -EINVAL with what there is. */
MUST_CHECK int probe_spec_field(const struct probe_spec *spec, struct kernel_types *types, const char *text, struct diag *diag,
				struct sonde_probe_field *ret_field, bool *ret_is_address);
/* Fills in the comparisons, `max` at most. 0; -EINVAL. */
MUST_CHECK int probe_spec_filter(const struct probe_spec *spec, struct kernel_types *types, const char *text, struct diag *diag,
				 struct sonde_probe_filter *ret_filters, uint32_t max, uint32_t *ret_nr);
