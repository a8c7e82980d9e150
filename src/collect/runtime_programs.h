/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_programs: the kernel side of the interpreters. Loads a runtime's program when the first process needs it, and stores the process
 * data that the program uses. One thread. */
#pragma once
#include <stdint.h>

#include <bpf/libbpf.h>

#include "abi/config.h"
#include "abi/runtime.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "collect/trigger.h"

struct runtime_programs;
struct runtime_programs *runtime_programs_new(const struct sonde_config *config); /* NULL: no memory */
void runtime_programs_free(struct runtime_programs *programs); /* takes NULL */
/* Adds a trigger; call it before the first runtime_programs_set. The runtimes' programs share the maps of `object` by name. `object`
 * tail-calls them through its map `runtime_programs`; `last` is the program that runs after them. `object` and the trigger's texts are
 * borrowed for life. 0, -ENOMEM or what bpf(2) returned. */
MUST_CHECK int runtime_programs_add(struct runtime_programs *programs, const struct bpf_object *object, const struct trigger *trigger,
				    const struct bpf_program *last);
/* Loads the program. The verifier takes a tenth of a second or more. runtime_programs_set reports a failure. Without a trigger nobody walks
 * user stacks: this and runtime_programs_set do nothing then. */
void runtime_programs_load(struct runtime_programs *programs, enum sonde_runtime kind);
/* Passes a process's data to the program; `process` is the runtime's own struct. 0; -EAGAIN: not loaded yet; -EOPNOTSUPP: cannot be loaded
 * (diag says why, each time); -E2BIG: too many processes; -ENOMEM or what bpf(2) returned. */
MUST_CHECK int runtime_programs_set(struct runtime_programs *programs, enum sonde_runtime kind, uint32_t tgid, const void *process,
				    struct diag *diag);
/* Descriptor of the map of processes; -1: the program is not loaded. */
int runtime_programs_fd(const struct runtime_programs *programs, enum sonde_runtime kind);
void runtime_programs_unset(struct runtime_programs *programs, enum sonde_runtime kind, uint32_t tgid);
/* What user space has read of the runtime's code (struct runtime_rows). 0, -ENOENT or what bpf(2) returned. */
MUST_CHECK int runtime_programs_get_rows(const struct runtime_programs *programs, enum sonde_runtime kind, const void *key,
					 void *ret_rows);
void runtime_programs_set_rows(const struct runtime_programs *programs, enum sonde_runtime kind, const void *key, const void *rows);
/* Descriptor of the map of that; -1: there is none. */
int runtime_programs_rows_fd(const struct runtime_programs *programs, enum sonde_runtime kind);
