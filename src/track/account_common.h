/* SPDX-License-Identifier: Apache-2.0 */
/* account_common: what the accounts of sessions, run queues and recordings say alike. */
#pragma once
#include "model/account.h"
#include "process/process_table.h"
#include "proxy/proxy.h"

/* This machine's name, its kernel, and the command line (may be NULL). */
void account_begin(struct account *account, const char *command_line);
/* How many processes and files there were, and which of these could not be read. */
void account_processes(struct account *account, const struct process_table *processes);
void account_proxy(struct account *account, const struct proxy *proxy); /* who did not answer */
