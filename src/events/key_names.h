/* SPDX-License-Identifier: Apache-2.0 */
/* key_names: the names that arrived for the keys of sums, each key's once an interval. A name that arrives while an interval is reported
 * may belong to the next one already, so names are kept for two. One thread. */
#pragma once
#include <stdint.h>

#include "base/interned.h"
#include "base/texts.h"

struct key_names {
	struct interned keys, older; /* the key, then a uint32_t: its text */
	struct texts texts, older_texts;
};

/* `key_bytes`: a multiple of 8. */
struct key_names key_names_new(uint32_t key_bytes);
void key_names_done(struct key_names *names);
void key_names_turn(struct key_names *names); /* an interval ends: forgets the names of the one before it */
/* Beyond 64 MiB of names, or without memory, the name is lost. */
void key_names_add(struct key_names *names, const void *key, const char *text);
/* The number of the key's text in `texts`, TEXTS_NONE: none arrived. */
uint32_t key_names_find(struct key_names *names, const void *key);
