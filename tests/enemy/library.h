/* SPDX-License-Identifier: Apache-2.0 */
/* Interface between the enemy suite's `code` and its libraries. */
#pragma once

struct library_hooks {
	void (*note)(char what, const char *name);
};

/* Spins for that many turns in the last of its functions. */
typedef void (*library_fn)(const struct library_hooks *hooks, unsigned turns, unsigned seed);
