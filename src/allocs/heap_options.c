// SPDX-License-Identifier: Apache-2.0
#include "allocs/heap_options.h"

#include <errno.h>
#include <inttypes.h>

int heap_options_check_recording(struct heap_options *heap, char *const *command, struct diag *diag)
{
	struct recording *recording = &heap->recording;

	recording->command = command;
	recording->duration_s = heap->nr_intervals <= RECORDING_MAX_DURATION_S ? heap->nr_intervals * recording->every_s : 0;
	return recording_check(recording, diag);
}

int heap_options_check(struct heap_options *heap, char *const *command, struct diag *diag)
{
	const struct recording *recording = &heap->recording;

	if (!command && !recording->targets.tgids.nr)
		return diag_errno(diag, EINVAL, "say which process: -p PID, or -- command");
	if (recording->targets.tids.nr)
		return diag_errno(diag, EINVAL, "a block belongs to a process, not to a thread: -p PID instead of -L");
	if (heap->children && !command)
		return diag_errno(diag, EINVAL, "--children is for a command: give the children's ids to -p");
	if (heap->max_bytes && heap->max_bytes < heap->min_bytes)
		return diag_errno(diag, EINVAL, "no block has at least %" PRIu64 " and at most %" PRIu64
				  " bytes: --max-size is below --min-size",
				  heap->min_bytes, heap->max_bytes);
	return heap_options_check_recording(heap, command, diag);
}

struct sonde_leak_options heap_options_leak(const struct heap_options *heap)
{
	return (struct sonde_leak_options){
		.size = sizeof(struct sonde_leak_options),
		.min_bytes = heap->min_bytes,
		.max_bytes = heap->max_bytes,
		.max_live = (uint32_t)heap->max_live,
		.children = heap->children,
		.object = heap->object,
	};
}
