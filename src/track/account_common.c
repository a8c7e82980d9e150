// SPDX-License-Identifier: Apache-2.0
#include "track/account_common.h"

#include <stdio.h>
#include <sys/utsname.h>

void account_begin(struct account *account, const char *command_line)
{
	struct utsname name;

	if (command_line)
		snprintf(account->command_line, sizeof(account->command_line), "%s", command_line);
	if (uname(&name))
		return;
	snprintf(account->host, sizeof(account->host), "%.63s", name.nodename);
	snprintf(account->kernel, sizeof(account->kernel), "%.63s", name.release);
}

void account_processes(struct account *account, const struct process_table *processes)
{
	const struct object_table *objects = process_table_objects(processes);
	const char *hung;
	uint32_t nr_hung = object_table_nr_hung(objects, &hung);

	account->nr_processes = process_table_nr_processes(processes);
	account->nr_objects = object_table_nr_met(objects);
	if (object_table_nr_refused(objects))
		account_note(account, "%u files were not read, for lack of file descriptors: raise the limit (ulimit -n)",
			     object_table_nr_refused(objects));
	if (nr_hung)
		account_note(account,
			     "%u files were not read: their file system does not answer, or they are too large to copy: %s%s",
			     nr_hung, hung, nr_hung > 1 ? ", ..." : "");
}
void account_proxy(struct account *account, const struct proxy *proxy)
{
	const struct proxy_counts counts = proxy_counts(proxy);

	if (counts.nr_timed_out)
		account_note(account,
			     "%u times a file server or a process's memory did not answer, longest for process %u of user %u: its files "
			     "are not read, nor those of %u more",
			     counts.nr_timed_out, counts.tgid, counts.uid, counts.nr_refused);
}
