/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_programs: the kernel side of the interpreters: loads a runtime's program when the first process needs it, and keeps what it knows
 * of processes. One thread. */
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
/* Another trigger, before the first process is told of: the runtimes' programs share the maps of its object by their names, and it goes on
 * to them by its map `runtime_programs`; `last` is the program that comes after them. Object and the trigger's texts are borrowed for life.
 * 0, -ENOMEM or what bpf(2) gave. */
MUST_CHECK int runtime_programs_add(struct runtime_programs *programs, const struct bpf_object *object, const struct trigger *trigger,
				    const struct bpf_program *last);
/* Loads the program, which takes the verifier a tenth of a second and more. A failure is told by runtime_programs_set. */
void runtime_programs_load(struct runtime_programs *programs, enum sonde_runtime kind);
/* Says what the program is to know of a process: `process` is the runtime's own struct. 0; -EAGAIN: it was not loaded yet; -EOPNOTSUPP: it
 * cannot be loaded, `diag` says why, now and each time; -E2BIG: too many processes; -ENOMEM or what bpf(2) gave. */
MUST_CHECK int runtime_programs_set(struct runtime_programs *programs, enum sonde_runtime kind, uint32_t tgid, const void *process,
				    struct diag *diag);
/* Of the map with what is known of processes; -1: the program is not loaded. */
int runtime_programs_fd(const struct runtime_programs *programs, enum sonde_runtime kind);
void runtime_programs_unset(struct runtime_programs *programs, enum sonde_runtime kind, uint32_t tgid);
