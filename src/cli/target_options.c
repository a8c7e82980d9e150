// SPDX-License-Identifier: Apache-2.0
#include "cli/target_options.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/plain_text.h"

#define MAX_COMM_BYTES 15 /* the kernel's TASK_COMM_LEN without its NUL */

int target_options_check(const struct target_options *targets, char *const *command, struct diag *diag)
{
	if (targets->comm && strlen(targets->comm) > MAX_COMM_BYTES)
		return diag_errno(diag, EINVAL, "the kernel keeps %d bytes of a name: write -n '%.*s'", MAX_COMM_BYTES, MAX_COMM_BYTES,
				  targets->comm);
	if (command && (targets->tgids.nr || targets->tids.nr))
		return diag_errno(diag, EINVAL, "-%c and a command exclude each other: the command's processes are what is measured",
				  targets->tgids.nr ? 'p' : 'L');
	return 0;
}

static void id_list(const char *what, const struct option_ids *ids, struct buffer *buffer)
{
	buffer_text(buffer, what);
	for (uint32_t i = 0; i < ids->nr; i++)
		buffer_printf(buffer, "%s%" PRIu32, i ? "," : "", ids->ids[i]);
}

void target_options_text(const struct target_options *targets, char *const *command, struct buffer *buffer)
{
	if (targets->tgids.nr)
		id_list("PID ", &targets->tgids, buffer);
	else if (targets->tids.nr)
		id_list("TID ", &targets->tids, buffer);
	else if (command)
		plain_text(buffer, command[0], ';');
	else
		buffer_text(buffer, "all threads");
	if (targets->comm) {
		buffer_text(buffer, " named ");
		plain_text(buffer, targets->comm, ';');
	}
	if (targets->cgroup) {
		buffer_text(buffer, " in cgroup ");
		plain_text(buffer, targets->cgroup, ';');
	}
}
