// SPDX-License-Identifier: Apache-2.0
#include "collect/record.h"

#include <stdint.h>
#include <string.h>

#include "abi/event.h"
#include "abi/probe.h"
#include "abi/record.h"
#include "abi/rss.h"
#include "abi/runq.h"
#include "abi/wait.h"
#include "base/cleanup.h"

struct kind {
	uint32_t bytes;                         /* 0: unknown type */
	/* Items that follow: offset and size of their count, and the size of one; 0: nothing follows. */
	uint32_t count_at, count_bytes, item_bytes;
	uint32_t more_at; /* offset of a uint32_t: bytes behind the items; 0: none */
	bool is_payload, is_stacks;
};

#define FOLLOWED_BY(type, count, item) \
	.bytes = sizeof(type), .count_at = offsetof(type, count), .count_bytes = sizeof(((type *)0)->count), .item_bytes = (item)

static const struct kind kinds[] = {
	[SONDE_RECORD_SAMPLE] = { .bytes = sizeof(struct sonde_sample_record), .is_stacks = true },
	[SONDE_RECORD_STACK] = { FOLLOWED_BY(struct sonde_stack_record, nr_frames, sizeof(uint64_t)), .is_payload = true,
				 .is_stacks = true },
	[SONDE_RECORD_DEFERRED] = { FOLLOWED_BY(struct sonde_deferred_record, stack_bytes, 1), .is_stacks = true },
	[SONDE_RECORD_RUNTIME] = { FOLLOWED_BY(struct sonde_runtime_record, nr_frames, sizeof(struct sonde_runtime_frame)),
				   .is_payload = true, .is_stacks = true },
	[SONDE_RECORD_LABELS] = { FOLLOWED_BY(struct sonde_labels_record, nr_labels, sizeof(struct sonde_label)),
				  .more_at = offsetof(struct sonde_labels_record, context_bytes), .is_payload = true, .is_stacks = true },
	[SONDE_RECORD_CODE] = { .bytes = sizeof(struct sonde_code_record), .is_stacks = true },
	[SONDE_RECORD_WAKER] = { .bytes = sizeof(struct sonde_waker_record), .is_payload = true },
	[SONDE_RECORD_INITIAL_STACK] = { .bytes = sizeof(struct sonde_initial_stack_record) },
	[SONDE_RECORD_SWITCH] = { .bytes = sizeof(struct sonde_switch_record) },
	[SONDE_RECORD_WAKEUP] = { .bytes = sizeof(struct sonde_wakeup_record) },
	[SONDE_RECORD_EVENT] = { .bytes = sizeof(struct sonde_event_record) },
	[SONDE_RECORD_HIT] = { .bytes = sizeof(struct sonde_probe_stacks_record) },
	[SONDE_RECORD_RSS] = { .bytes = sizeof(struct sonde_rss_record) },
	[SONDE_RECORD_RUNQSLOWER] = { .bytes = sizeof(struct sonde_runqslower_record) },
};

static const struct kind *kind_of(const void *record)
{
	uint32_t type = *(const uint32_t *)record;

	return type < ARRAY_SIZE(kinds) ? &kinds[type] : &kinds[0];
}

size_t record_bytes(const void *record)
{
	const struct kind *kind = kind_of(record);
	uint32_t count = 0, more = 0; /* little-endian, like all our targets */

	memcpy(&count, (const char *)record + kind->count_at, kind->count_bytes);
	if (kind->more_at)
		memcpy(&more, (const char *)record + kind->more_at, sizeof(more));
	return kind->bytes + (size_t)count * kind->item_bytes + more;
}

bool record_is_whole(const void *record, size_t size)
{
	return size >= sizeof(uint32_t) && kind_of(record)->bytes && size >= kind_of(record)->bytes && size == record_bytes(record);
}

bool record_is_payload(const void *record)
{
	return kind_of(record)->is_payload;
}

bool record_is_stacks(const void *record)
{
	return kind_of(record)->is_stacks;
}
