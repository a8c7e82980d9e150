// SPDX-License-Identifier: Apache-2.0
/* The line before sampling, as BCC's profile words it. */
#include "cli/profile.h"

#include <inttypes.h>

void profile_header(const struct profile_arguments *arguments, struct buffer *buffer)
{
	if (arguments->period)
		buffer_printf(buffer, "Sampling at every %" PRIu64 " events of ", arguments->period);
	else
		buffer_printf(buffer, "Sampling at %" PRIu64 " Hertz of ", arguments->freq_hz ? arguments->freq_hz : SONDE_DEFAULT_FREQ_HZ);
	whose_text(&arguments->recording.whose, arguments->recording.command, buffer);
	buffer_printf(buffer, " by %s stack", arguments->recording.user_only ? "user" : arguments->recording.kernel_only ? "kernel" : "user + kernel");
	if (arguments->cpu != PROFILE_ALL_CPUS)
		buffer_printf(buffer, " on CPU#%" PRIu64, arguments->cpu);
	recording_header_end(&arguments->recording, buffer);
}
