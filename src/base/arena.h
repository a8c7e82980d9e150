/* SPDX-License-Identifier: Apache-2.0 */
/* arena: allocations that are freed together. One thread. */
#pragma once
#include <stddef.h>

struct arena;
struct arena *arena_new(size_t max_bytes); /* NULL: no memory */
void arena_free(struct arena *arena);
/* Aligned for any type, not zeroed, valid until arena_free. NULL when memory or max_bytes is used up. */
void *arena_alloc(struct arena *arena, size_t size);
