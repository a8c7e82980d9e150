/* SPDX-License-Identifier: Apache-2.0 */
/* account_common: the parts that the accounts of sessions, run queues and recordings share. */
#pragma once
#include "model/account.h"
#include "process/process_table.h"
#include "proxy/proxy.h"

/* Fills in this machine's name, its kernel, and the command line (may be NULL). */
void account_begin(struct account *account, const char *command_line);
/* Fills in the number of processes and files, and notes the files that could not be read. */
void account_processes(struct account *account, const struct process_table *processes);
void account_proxy(struct account *account, const struct proxy *proxy); /* notes timeouts */
