/* SPDX-License-Identifier: Apache-2.0 */
/* record: the types of records that the kernel side sends through the ring (abi/record.h, abi/wait.h, abi/runq.h), in one table. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* True if the type is known and `size` is the length that the record states. */
bool record_is_whole(const void *record, size_t size);
size_t record_bytes(const void *record); /* the record must be whole */
bool record_is_payload(const void *record); /* is it a payload, sent once per hash? */
/* Is it the sampler's own: a sample, or what a sample refers to? All others belong to the measurement that loaded their program. */
bool record_is_stacks(const void *record);
