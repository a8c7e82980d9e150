/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_programs: the kernel side of the interpreters: loads a runtime's program when the first process needs it, and keeps what it knows of processes. One thread. */
#pragma once
#include <stdint.h>

#include <bpf/libbpf.h>

#include "abi/config.h"
#include "abi/runtime.h"
#include "base/cleanup.h"
#include "base/diag.h"

struct runtime_programs;
/* Borrows the sampler's object for its life: the runtimes' programs share its maps by their names. NULL: no memory. */
struct runtime_programs *runtime_programs_new(const struct bpf_object *sampler, const struct sonde_config *config);
void runtime_programs_free(struct runtime_programs *programs); /* takes NULL */
/* Says what the program is to know of a process: `process` is the runtime's own struct. Loads the program before the first. 0; -EOPNOTSUPP: it cannot be loaded, `diag` says why, now and
 * each time; -E2BIG: too many processes; -ENOMEM or what bpf(2) gave. */
MUST_CHECK int runtime_programs_set(struct runtime_programs *programs, enum sonde_runtime kind, uint32_t tgid, const void *process, struct diag *diag);
/* Of the map with what is known of processes; -1: the program is not loaded. */
int runtime_programs_fd(const struct runtime_programs *programs, enum sonde_runtime kind);
void runtime_programs_unset(struct runtime_programs *programs, enum sonde_runtime kind, uint32_t tgid);
