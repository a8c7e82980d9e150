// SPDX-License-Identifier: Apache-2.0
#include "memory/comms.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "abi/record.h"
#include "base/small_file.h"

#define MAX_BYTES ((uint64_t)4 << 20)

struct comm {
	uint64_t tgid; /* key */
	char text[SONDE_COMM_BYTES];
};

void comms_done(struct comms *comms)
{
	interned_done(&comms->list);
}

const char *comms_read(struct comms *comms, uint32_t tgid)
{
	struct comm comm = { .tgid = tgid }, *kept;
	char path[64], text[64];
	uint32_t number;

	if (!comms->list.entry_bytes)
		comms->list = INTERNED_INIT(struct comm, sizeof(comm.tgid), MAX_BYTES);
	number = interned_add(&comms->list, &comm);
	if (number == INTERNED_NONE)
		return "";
	kept = interned_at(&comms->list, number);
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/comm", tgid);
	if (!small_file_read(AT_FDCWD, path, text, sizeof(text)))
		snprintf(kept->text, sizeof(kept->text), "%.*s", (int)sizeof(kept->text) - 1, text);
	return kept->text;
}
