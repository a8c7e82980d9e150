/* SPDX-License-Identifier: Apache-2.0 */
/* sized: structs of the public interface that begin with `size_t size`, filled by an older, newer or careless caller. */
#pragma once
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/diag.h"

#define SIZED_MAX_BYTES 4096 /* no version of these structs will be larger */

/* Copies the caller's struct; fields that the caller does not know are zero. 0; -EINVAL: the size is invalid; -E2BIG: a field that we do
 * not know is set. */
MUST_CHECK static inline int sized_copy(void *ours, size_t our_bytes, const void *theirs)
{
	size_t their_bytes;

	memset(ours, 0, our_bytes);
	memcpy(&their_bytes, theirs, sizeof(their_bytes));
	if (their_bytes < sizeof(their_bytes))
		return -EINVAL;
	if (their_bytes > SIZED_MAX_BYTES)
		return -E2BIG;
	for (size_t i = our_bytes; i < their_bytes; i++) {
		if (((const unsigned char *)theirs)[i])
			return -E2BIG;
	}
	memcpy(ours, theirs, their_bytes < our_bytes ? their_bytes : our_bytes);
	memcpy(ours, &our_bytes, sizeof(our_bytes));
	return 0;
}

/* The same for options, with a message in diag. NULL: all zeros. */
MUST_CHECK static inline int sized_options(void *ours, size_t our_bytes, const void *theirs, struct diag *diag)
{
	int err = theirs ? sized_copy(ours, our_bytes, theirs) : 0;

	if (!theirs) {
		memset(ours, 0, our_bytes);
		memcpy(ours, &our_bytes, sizeof(our_bytes));
	}
	if (err == -E2BIG)
		return diag_errno(diag, E2BIG, "the options ask for what this version of the library does not know");
	return err ? diag_errno(diag, -err, "the options do not say their size") : 0;
}

/* Fills the caller's struct, which has its size set, with the fields the caller knows. -EINVAL: the size is invalid. */
MUST_CHECK static inline int sized_fill(void *theirs, const void *ours, size_t our_bytes)
{
	size_t their_bytes;

	memcpy(&their_bytes, theirs, sizeof(their_bytes));
	if (their_bytes < sizeof(their_bytes) || their_bytes > SIZED_MAX_BYTES)
		return -EINVAL;
	memset(theirs, 0, their_bytes);
	memcpy(theirs, ours, their_bytes < our_bytes ? their_bytes : our_bytes);
	memcpy(theirs, &their_bytes, sizeof(their_bytes));
	return 0;
}
