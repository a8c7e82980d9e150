/* SPDX-License-Identifier: Apache-2.0 */
/* v8_object: reads objects of V8's heap from a process. All bytes are untrusted. */
#pragma once
#include "runtime/v8/v8_layout.h"

/* A process's heap. */
struct v8_heap {
	const struct v8_process *process;
	const struct runtime_memory *memory;
};

static inline bool v8_is_object(uint64_t word)
{
	return (word & 3) == SONDE_V8_TAG && word >> 47 == 0 && word > 0xffff;
}

static inline bool v8_is_smi(uint64_t word)
{
	return !(word & 0xffffffff);
}

static inline int32_t v8_smi(uint64_t word)
{
	return (int32_t)(word >> 32);
}

/* Bytes of an object from an offset on. 0; -EBADMSG: it is no pointer to an object; or the error of the read. */
MUST_CHECK int v8_object_read(const struct v8_heap *heap, uint64_t object, uint32_t off, void *to, size_t size);
/* A word of an object, and the object's instance type. Same results. */
MUST_CHECK int v8_object_word(const struct v8_heap *heap, uint64_t object, uint32_t off, uint64_t *ret_word);
MUST_CHECK int v8_object_type(const struct v8_heap *heap, uint64_t object, uint16_t *ret_type);
/* An element of a FixedArray or the like; -EBADMSG: it has no such one. A weak pointer is made a strong one. */
MUST_CHECK int v8_object_element(const struct v8_heap *heap, uint64_t array, uint32_t index, uint64_t *ret_word);

/* True: the type is one of a string. */
bool v8_is_string(const struct v8_heap *heap, uint16_t type);
/* Writes a string as UTF-8, cut if it is too long. 0; -EBADMSG: it is none; or the error of the read. */
MUST_CHECK int v8_object_text(const struct v8_heap *heap, uint64_t string, char *text, size_t size);

/* The characters of a flat string, in the process's memory. */
struct v8_characters {
	uint64_t at;
	uint32_t nr;
	bool is_wide; /* two bytes each */
};

/* Same results; -EBADMSG also for one that is not in one piece. */
MUST_CHECK int v8_object_characters(const struct v8_heap *heap, uint64_t string, struct v8_characters *ret_characters);
