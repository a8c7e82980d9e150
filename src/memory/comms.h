/* SPDX-License-Identifier: Apache-2.0 */
/* comms: the names of processes, also of those that have ended since they were asked for. One thread. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "base/interned.h"

struct comms {
	struct interned list; /* zeros at first */
};

void comms_done(struct comms *comms);
/* The name as it is now or, if the process has ended, as it was last; "": not known. Borrowed until the next call. */
const char *comms_read(struct comms *comms, uint32_t tgid);
