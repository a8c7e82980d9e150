/* SPDX-License-Identifier: Apache-2.0 */
/* audit_process: libdw's data of the processes audited last: their modules, and their call frame information as far as it was needed. One
 * thread. */
#pragma once
#include "audit/audit.h"
#include "audit/audit_file.h"

#define AUDIT_MAX_PROCESSES 8

struct known_process {
	Dwfl *dwfl; /* NULL: free */
	uint32_t tgid, generation;
	uint64_t modules_hash; /* of the modules as reported to libdw */
	uint64_t last_use;
};

struct audit_processes {
	struct audit_files files;
	struct known_process known[AUDIT_MAX_PROCESSES];
	uint64_t nr_uses;
	/* for starting a new one; set by the owner */
	Elf *machine; /* of this machine's kind */
	const Dwfl_Callbacks *file_callbacks;
	const Dwfl_Thread_Callbacks *thread_callbacks;
	void *arg; /* passed to both */
};

/* Returns libdw's view of the process with its current modules; borrowed until the next call. 0 or -ENOMEM. */
MUST_CHECK int audit_processes_get(struct audit_processes *processes, const struct audit_process *process, Dwfl **ret_dwfl);
/* Where libdw's module of this file begins. libdw takes the difference to the file's own address for the load bias. */
uint64_t audit_low_pc(const struct audit_module *module);
void audit_processes_done(struct audit_processes *processes);
