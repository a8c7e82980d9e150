// SPDX-License-Identifier: Apache-2.0
/* The line before sampling, as BCC's profile words it. */
#include "cli/profile.h"

#include <inttypes.h>

static void id_list(const char *what, const struct option_ids *ids, struct buffer *buffer)
{
	buffer_text(buffer, what);
	for (uint32_t i = 0; i < ids->nr; i++)
		buffer_printf(buffer, "%s%" PRIu32, i ? "," : "", ids->ids[i]);
}

void profile_header(const struct profile_arguments *arguments, struct buffer *buffer)
{
	if (arguments->period)
		buffer_printf(buffer, "Sampling at every %" PRIu64 " events of ", arguments->period);
	else
		buffer_printf(buffer, "Sampling at %" PRIu64 " Hertz of ", arguments->freq_hz ? arguments->freq_hz : SONDE_DEFAULT_FREQ_HZ);
	if (arguments->tgids.nr)
		id_list("PID ", &arguments->tgids, buffer);
	else if (arguments->tids.nr)
		id_list("TID ", &arguments->tids, buffer);
	else if (arguments->command)
		buffer_printf(buffer, "%s", arguments->command[0]);
	else
		buffer_text(buffer, "all threads");
	if (arguments->comm)
		buffer_printf(buffer, " named %s", arguments->comm);
	buffer_printf(buffer, " by %s stack", arguments->user_only ? "user" : arguments->kernel_only ? "kernel" : "user + kernel");
	if (arguments->cpu != PROFILE_ALL_CPUS)
		buffer_printf(buffer, " on CPU#%" PRIu64, arguments->cpu);
	if (arguments->duration_s)
		buffer_printf(buffer, " for %" PRIu64 " secs.\n", arguments->duration_s);
	else
		buffer_text(buffer, "... Hit Ctrl-C to end.\n");
}
