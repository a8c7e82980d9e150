/* SPDX-License-Identifier: Apache-2.0 */
/* constant_pages: pages of large constants in the program's file. They count as its memory once they were read. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* They will hardly be read again: unmaps the whole pages of a constant. Reading them brings them back from the file. */
static inline void constant_pages_drop(const void *bytes, size_t size)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = ((uintptr_t)bytes + page - 1) / page * page,
		  end = ((uintptr_t)bytes + size) / page * page;

	if (start < end)
		madvise((void *)start, end - start, MADV_DONTNEED);
}
