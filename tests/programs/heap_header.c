// SPDX-License-Identifier: Apache-2.0
/* An allocator to be preloaded: puts a header of its own before each block of the C library's, as debugging ones do. */
#include <stddef.h>
#include <string.h>

#define HEADER 64

void *__libc_malloc(size_t bytes);
void __libc_free(void *block);
void *malloc(size_t bytes);
void *calloc(size_t nr, size_t bytes);
void *realloc(void *block, size_t bytes);
void free(void *block);
void free_sized(void *block, size_t bytes);

__attribute__((noipa)) void *malloc(size_t bytes)
{
	size_t *block = __libc_malloc(bytes + HEADER);

	if (!block)
		return NULL;
	*block = bytes;
	return (char *)block + HEADER;
}

__attribute__((noipa)) void free(void *block)
{
	if (block)
		__libc_free((char *)block - HEADER);
}

__attribute__((noipa)) void *calloc(size_t nr, size_t bytes)
{
	void *block = malloc(nr * bytes);

	return block ? memset(block, 0, nr * bytes) : NULL;
}

__attribute__((noipa)) void *realloc(void *block, size_t bytes)
{
	size_t *old = block ? (size_t *)((char *)block - HEADER) : NULL;
	void *moved = malloc(bytes);

	if (moved && old) {
		memcpy(moved, block, *old < bytes ? *old : bytes);
		free(block);
	}
	return moved;
}

__attribute__((noipa)) void free_sized(void *block, size_t bytes)
{
	if (block)
		__libc_free((char *)block - HEADER + 0 * bytes);
}
