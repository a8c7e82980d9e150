/* SPDX-License-Identifier: Apache-2.0 */
/* export_options: what the writers of all formats are told. */
#pragma once
#include <stdbool.h>

struct export_options {
	bool delimited;      /* text, folded: a line between kernel and user */
	bool annotate;       /* text, folded: _[k] behind kernel frames */
	bool offsets;        /* text, folded: function+0x12, and one line per address stack */
	bool threads;        /* one line per thread; else threads of a process with equal stacks and names are one */
	bool of_tids;        /* threads were asked for by their ids: text has a line for each, and its id, without `threads`, too */
	bool user_only, kernel_only; /* the side that was asked for: no delimiter then */
};
