// SPDX-License-Identifier: Apache-2.0
#include "collect/trigger.h"

#include <bpf/btf.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "abi/record.h"
#include "collect/uprobe_link.h"

#define EVENT_SOURCES "/sys/bus/event_source/devices/"
#define ENOTSUPP 524 /* linux/errno.h: the kernel returns it where it has no trampolines; user space does not know it */

static const struct kind {
	const char *text;
	const char *tracepoint; /* if there is only one */
	enum bpf_prog_type type;
	enum bpf_attach_type attach_type; /* for BPF_PROG_TYPE_TRACING */
	bool is_in_user;
	uint8_t nr_own_frames;
} kinds[] = {
	[TRIGGER_PERF_EVENT] = { "perf event", .type = BPF_PROG_TYPE_PERF_EVENT },
	[TRIGGER_TP_BTF] = { "tracepoint", .type = BPF_PROG_TYPE_TRACING, .attach_type = BPF_TRACE_RAW_TP,
			     .nr_own_frames = SONDE_TRACEPOINT_FRAMES },
	[TRIGGER_RAW_TRACEPOINT] = { "raw tracepoint", .type = BPF_PROG_TYPE_RAW_TRACEPOINT, .nr_own_frames = SONDE_TRACEPOINT_FRAMES },
	[TRIGGER_SYS_ENTER] = { "system call", "sys_enter", BPF_PROG_TYPE_RAW_TRACEPOINT, .nr_own_frames = SONDE_TRACEPOINT_FRAMES },
	[TRIGGER_SYS_EXIT] = { "system call's end", "sys_exit", BPF_PROG_TYPE_RAW_TRACEPOINT, .nr_own_frames = SONDE_TRACEPOINT_FRAMES },
	[TRIGGER_UPROBE] = { "uprobe", .type = BPF_PROG_TYPE_KPROBE, .is_in_user = true },
	[TRIGGER_URETPROBE] = { "uretprobe", .type = BPF_PROG_TYPE_KPROBE, .is_in_user = true },
	[TRIGGER_USDT] = { "USDT probe", .type = BPF_PROG_TYPE_KPROBE, .is_in_user = true },
	[TRIGGER_KPROBE] = { "kprobe", .type = BPF_PROG_TYPE_KPROBE },
	[TRIGGER_KRETPROBE] = { "kretprobe", .type = BPF_PROG_TYPE_KPROBE },
	[TRIGGER_FENTRY] = { "fentry", .type = BPF_PROG_TYPE_TRACING, .attach_type = BPF_TRACE_FENTRY,
			     .nr_own_frames = SONDE_TRACEPOINT_FRAMES },
	[TRIGGER_UPROBE_MULTI] = { "uprobe", .type = BPF_PROG_TYPE_KPROBE, .attach_type = UPROBE_LINK_MULTI, .is_in_user = true },
	[TRIGGER_UPROBE_SESSION] = { "uprobe", .type = BPF_PROG_TYPE_KPROBE, .attach_type = UPROBE_LINK_SESSION, .is_in_user = true },
	[TRIGGER_FEXIT] = { "fexit", .type = BPF_PROG_TYPE_TRACING, .attach_type = BPF_TRACE_FEXIT,
			    .nr_own_frames = SONDE_TRACEPOINT_FRAMES },
};

bool trigger_is_in_user(const struct trigger *trigger)
{
	return kinds[trigger->kind].is_in_user;
}

uint8_t trigger_nr_own_frames(const struct trigger *trigger)
{
	return kinds[trigger->kind].nr_own_frames;
}

static bool is_of_kprobes(enum trigger_kind kind)
{
	return kind == TRIGGER_KPROBE || kind == TRIGGER_KRETPROBE;
}

/* Works without tracefs, which need not be mounted. */
static int check_kernel(const struct trigger *trigger, struct diag *diag)
{
	if (is_of_kprobes(trigger->kind) && access(EVENT_SOURCES "kprobe/type", F_OK))
		return diag_errno(diag, EOPNOTSUPP,
				  "this kernel has no kprobes (CONFIG_KPROBES): ask for a tracepoint, or for another kernel");
	if (kinds[trigger->kind].is_in_user && access(EVENT_SOURCES "uprobe/type", F_OK))
		return diag_errno(
		    diag, EOPNOTSUPP,
		    "this kernel has no uprobes (CONFIG_UPROBE_EVENTS): ask for a system call or a tracepoint, or for another kernel");
	return 0;
}

int trigger_set_program(const struct trigger *trigger, struct bpf_program *program, struct diag *diag)
{
	const struct kind *kind = &kinds[trigger->kind];
	int err = check_kernel(trigger, diag);

	if (err)
		return err;
	bpf_program__set_type(program, kind->type);
	bpf_program__set_expected_attach_type(program, kind->attach_type);
	if (kind->type != BPF_PROG_TYPE_TRACING)
		return 0;
	err = bpf_program__set_attach_target(program, 0, trigger->name);
	if (err == -ENOENT || err == -ESRCH)
		return diag_errno(diag, ENOENT, "this kernel has no %s at '%s': /sys/kernel/btf/vmlinux does not have that name",
				  kind->text, trigger->name);
	return err ? diag_errno(diag, -err, "%s at '%s': %s", kind->text, trigger->name, strerror(-err)) : 0;
}

static struct bpf_link *attach_uprobe(const struct trigger *trigger, const struct bpf_program *program)
{
	LIBBPF_OPTS(bpf_uprobe_opts, options, .retprobe = trigger->kind == TRIGGER_URETPROBE, .func_name = trigger->name);

	return bpf_program__attach_uprobe_opts(program, trigger->tgid, trigger->path, trigger->offset, &options);
}

static struct bpf_link *attach(const struct trigger *trigger, const struct bpf_program *program)
{
	const struct kind *kind = &kinds[trigger->kind];

	if (trigger->kind == TRIGGER_USDT)
		return bpf_program__attach_usdt(program, trigger->tgid, trigger->path, trigger->provider, trigger->name, NULL);
	if (kind->is_in_user)
		return attach_uprobe(trigger, program);
	if (is_of_kprobes(trigger->kind))
		return bpf_program__attach_kprobe(program, trigger->kind == TRIGGER_KRETPROBE, trigger->name);
	if (kind->type == BPF_PROG_TYPE_TRACING)
		return bpf_program__attach_trace(program);
	if (kind->type == BPF_PROG_TYPE_RAW_TRACEPOINT)
		return bpf_program__attach_raw_tracepoint(program, kind->tracepoint ? kind->tracepoint : trigger->name);
	errno = EINVAL;
	return NULL;
}

static int attach_once(const struct trigger *trigger, const struct bpf_program *program, struct diag *diag, struct bpf_link **ret_link)
{
	const char *text = kinds[trigger->kind].text, *name = trigger->name ? trigger->name : "",
		   *path = trigger->path ? trigger->path : "the kernel";
	struct bpf_link *link = attach(trigger, program);
	int err = link ? 0 : errno;

	if (err == ENOENT)
		return diag_errno(diag, ENOENT, "no %s '%s' in %s: is its name right, and is it in this file?", text, name, path);
	if (err == LIBBPF_ERRNO__FORMAT && kinds[trigger->kind].is_in_user)
		return diag_errno(diag, ENOENT, "there are several functions '%s' in %s: give the offset of one, %s:FILE:0xOFFSET", name,
				  path, text);
	if (err == EPERM || err == EACCES)
		return diag_errno(diag, EPERM, "no permission for a %s: root, or CAP_BPF and CAP_PERFMON, may", text);
	if ((err == ENOTSUPP || err == EOPNOTSUPP) && kinds[trigger->kind].is_in_user)
		return diag_errno(diag, ENOENT, "no %s can be at '%s' in %s, offset 0x%" PRIx64 ": is an instruction's begin there?", text,
				  name, path, trigger->offset);
	if (err == ENOTSUPP || err == EOPNOTSUPP)
		return diag_errno(diag, EOPNOTSUPP, "this kernel has no %s: ask for a tracepoint, or for another kernel", text);
	if (err == EINVAL && is_of_kprobes(trigger->kind))
		return diag_errno(diag, EOPNOTSUPP, "this kernel lets no %s be at '%s': it has functions that must not be probed", text,
				  name);
	if (err == EADDRNOTAVAIL)
		return diag_errno(diag, ENOENT, "there are several functions '%s' in the kernel, and a %s is at one", name, text);
	if (err)
		return diag_errno(diag, err, "%s '%s' in %s: %s", text, name, path, strerror(err));
	*ret_link = link;
	return 0;
}

int trigger_attach(const struct trigger *trigger, const struct bpf_program *program, struct diag *diag, struct trigger_links *links)
{
	struct trigger once = *trigger;
	int err = 0;

	if (!trigger->places) {
		err = attach_once(trigger, program, diag, &links->list[0]);
		links->nr = !err;
		return err;
	}
	for (uint32_t i = 0; !err && i < trigger->nr_places; i++) {
		once.offset = trigger->places[i];
		err = attach_once(&once, program, diag, &links->list[i]);
		links->nr += !err;
	}
	if (err)
		trigger_detach(links);
	return err;
}

void trigger_detach(struct trigger_links *links)
{
	while (links->nr)
		bpf_link__destroy(links->list[--links->nr]);
}
