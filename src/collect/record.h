/* SPDX-License-Identifier: Apache-2.0 */
/* record: what the kernel side sends through the ring (abi/record.h, abi/wait.h, abi/runq.h), by its type: one table of what there is. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* Has a record of so many bytes a type that is known, and is it as long as it says itself? */
bool record_is_whole(const void *record, size_t size);
size_t record_bytes(const void *record); /* of one that is whole */
bool record_is_payload(const void *record); /* is it of a kind that is sent once for each hash? */
bool record_is_stacks(const void *record);  /* is it the sampler's own: a sample or what one names? All else is of the measurement that has
					       loaded what sends it */
