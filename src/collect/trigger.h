/* SPDX-License-Identifier: Apache-2.0 */
/* trigger: what a BPF program is run by: how it, and what it goes on to, is loaded for that, and how it is attached. */
#pragma once
#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/diag.h"

enum trigger_kind {
	TRIGGER_PERF_EVENT, /* attached to the events by who opens them (cpu_events.h) */
	TRIGGER_TP_BTF,     /* a tracepoint of the kernel whose arguments the verifier knows */
	TRIGGER_RAW_TRACEPOINT,
	TRIGGER_SYS_ENTER,
	TRIGGER_SYS_EXIT,
	TRIGGER_UPROBE,
	TRIGGER_URETPROBE,
	TRIGGER_USDT,
	TRIGGER_KPROBE,
	TRIGGER_KRETPROBE,
	TRIGGER_FENTRY,
	TRIGGER_FEXIT,
};

#define TRIGGER_ALL_PROCESSES (-1)

struct trigger { /* texts are borrowed as long as the trigger is in use */
	enum trigger_kind kind;
	const char *name;     /* of the tracepoint, of the function (UPROBE: NULL: `offset` alone), of the USDT probe */
	const char *path;     /* UPROBE, URETPROBE, USDT: the file */
	const char *provider; /* USDT */
	uint64_t offset;      /* UPROBE: in bytes behind the function, or in the file */
	pid_t tgid;           /* UPROBE, URETPROBE, USDT: of this process alone, or TRIGGER_ALL_PROCESSES */
};

/* Does it strike in user code, so that the kernel has no stack of its own there? */
bool trigger_is_in_user(const struct trigger *trigger);
/* Of the kernel stack's frames, how many at the leaf end are what runs the program. */
uint8_t trigger_nr_own_frames(const struct trigger *trigger);
/* Before the program is loaded: has it be one of that trigger, to be attached or gone on to. 0; -EOPNOTSUPP: this kernel does not have that
 * kind; or what libbpf gave: diag says what to do. */
MUST_CHECK int trigger_set_program(const struct trigger *trigger, struct bpf_program *program, struct diag *diag);
/* From now on the program runs, until the link is destroyed. 0; -ENOENT: there is no such place; -EINVAL: TRIGGER_PERF_EVENT; or what
 * libbpf gave: diag says what to do. */
MUST_CHECK int trigger_attach(const struct trigger *trigger, const struct bpf_program *program, struct diag *diag,
			      struct bpf_link **ret_link);
