// SPDX-License-Identifier: Apache-2.0
/* The counts of a set, as sonde stat writes them. */
#include <errno.h>

#include "codec/count_json.h"
#include "counter/set.h"

#define MAX_BYTES (1u << 24) /* four times the size of 1,024 events whose names and reasons need an escape for each byte */

static struct count_json_event event_of(const struct counter *counter, const struct sonde_count *count)
{
	const struct spec *spec = &counter->spec;

	return (struct count_json_event){
		.name = spec->event.name,
		.json_name = spec->json[0] ? spec->json : NULL,
		.error = spec->err ? spec->diag.text : count_absence(count->err, count->enabled_ns, count->running_ns),
		.value = count->value,
		.enabled_ns = count->enabled_ns,
		.running_ns = count->running_ns,
		.is_scaled = count->scaled,
		.is_user_only = counter->is_user_only && !spec->err,
	};
}

int sonde_counters_json(struct sonde_counters *set, const struct sonde_count *counts, uint64_t duration_ns, char **ret_text)
{
	struct buffer buffer = BUFFER_INIT(MAX_BYTES);
	CLEANUP(freep) struct count_json_event *events = NULL;
	int err;

	if (!set || !counts)
		return -EINVAL;
	events = calloc(set->nr + 1, sizeof(*events));
	if (!events)
		return -ENOMEM;
	for (uint32_t i = 0; i < set->nr; i++)
		events[i] = event_of(&set->counters[i], &counts[i]);
	count_json(&(struct count_json){ .events = events, .nr = set->nr, .duration_ns = duration_ns }, &buffer);
	err = buffer.err;
	if (err)
		buffer_done(&buffer);
	else
		*ret_text = buffer.data;
	return err;
}
