// SPDX-License-Identifier: Apache-2.0
#include "cli/whose.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/plain_text.h"

#define MAX_COMM_BYTES 15 /* the kernel's TASK_COMM_LEN without its NUL */

int whose_check(const struct whose *whose, char *const *command, struct diag *diag)
{
	if (whose->comm && strlen(whose->comm) > MAX_COMM_BYTES)
		return diag_errno(diag, EINVAL, "the kernel keeps %d bytes of a name: write -n '%.*s'", MAX_COMM_BYTES, MAX_COMM_BYTES, whose->comm);
	if (command && (whose->tgids.nr || whose->tids.nr))
		return diag_errno(diag, EINVAL, "-%c and a command exclude each other: the command's processes are what is measured", whose->tgids.nr ? 'p' : 'L');
	return 0;
}

static void id_list(const char *what, const struct option_ids *ids, struct buffer *buffer)
{
	buffer_text(buffer, what);
	for (uint32_t i = 0; i < ids->nr; i++)
		buffer_printf(buffer, "%s%" PRIu32, i ? "," : "", ids->ids[i]);
}

void whose_text(const struct whose *whose, char *const *command, struct buffer *buffer)
{
	if (whose->tgids.nr)
		id_list("PID ", &whose->tgids, buffer);
	else if (whose->tids.nr)
		id_list("TID ", &whose->tids, buffer);
	else if (command)
		plain_text(buffer, command[0], ';');
	else
		buffer_text(buffer, "all threads");
	if (whose->comm) {
		buffer_text(buffer, " named ");
		plain_text(buffer, whose->comm, ';');
	}
	if (whose->cgroup) {
		buffer_text(buffer, " in cgroup ");
		plain_text(buffer, whose->cgroup, ';');
	}
}
