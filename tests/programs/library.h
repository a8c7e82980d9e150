/* SPDX-License-Identifier: Apache-2.0 */
/* library: what the program `library`, its library and its plugin share. */
#pragma once
#include "known.h"

struct known_calls {
	void (*push)(const char *name);
	void (*leaf_starts)(void);
	volatile sig_atomic_t *done;
};

void known_push(const char *name);
void known_leaf_starts(void);
unsigned lib_relay(unsigned (*callback)(void), void (*push)(const char *name));
unsigned plugin_entry(const struct known_calls *calls);
