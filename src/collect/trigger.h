/* SPDX-License-Identifier: Apache-2.0 */
/* trigger: the kind of event that runs a BPF program: how the program and those it tail-calls are loaded for it, and how it is attached. */
#pragma once
#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/diag.h"

enum trigger_kind {
	TRIGGER_PERF_EVENT, /* attached by the owner of the events (cpu_events.h) */
	TRIGGER_TP_BTF,     /* a kernel tracepoint with arguments that the verifier knows */
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
	TRIGGER_UPROBE_MULTI,   /* both attached by their owner (uprobe_link.h) */
	TRIGGER_UPROBE_SESSION,
};

#define TRIGGER_ALL_PROCESSES (-1)
#define TRIGGER_MAX_PLACES    64

struct trigger { /* texts are borrowed for the trigger's life */
	enum trigger_kind kind;
	const char *name;     /* tracepoint, function (UPROBE: NULL: `offset` alone) or USDT probe */
	const char *path;     /* UPROBE, URETPROBE, USDT: the file */
	const char *provider; /* USDT */
	uint64_t offset;      /* UPROBE: in bytes from the function, or in the file */
	const uint64_t *places; /* UPROBE: offsets in the file, instead of that one; NULL: there is one */
	uint32_t nr_places;	/* TRIGGER_MAX_PLACES at most */
	pid_t tgid;           /* UPROBE, URETPROBE, USDT: this process alone, or TRIGGER_ALL_PROCESSES */
};

/* Does it fire in user code, so that there is no kernel stack? */
bool trigger_is_in_user(const struct trigger *trigger);
/* Number of frames at the leaf end of the kernel stack that belong to what runs the program. */
uint8_t trigger_nr_own_frames(const struct trigger *trigger);
/* Call it before the program is loaded: sets the type it needs for that trigger, whether it is attached or tail-called. 0; -EOPNOTSUPP:
 * this kernel does not have that kind; or what libbpf returned. diag says what to do. */
MUST_CHECK int trigger_set_program(const struct trigger *trigger, struct bpf_program *program, struct diag *diag);
struct trigger_links { /* zeros: not attached */
	struct bpf_link *list[TRIGGER_MAX_PLACES];
	uint32_t nr;
};
/* Runs the program from now on, until trigger_detach. 0; -ENOENT: there is no such function or probe; -EINVAL: TRIGGER_PERF_EVENT; or what
 * libbpf returned: then it is attached nowhere. diag says what to do. */
MUST_CHECK int trigger_attach(const struct trigger *trigger, const struct bpf_program *program, struct diag *diag,
			      struct trigger_links *links);
void trigger_detach(struct trigger_links *links);
