/* SPDX-License-Identifier: Apache-2.0 */
/* What the libraries of the enemy suite's `code` have in common with it. */
#pragma once

struct library_hooks {
	void (*note)(char what, const char *name);
};

/* Spins for so many turns in the last of its functions. */
typedef void (*library_fn)(const struct library_hooks *hooks, unsigned turns, unsigned seed);
