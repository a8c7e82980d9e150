// SPDX-License-Identifier: Apache-2.0
#include "programs/kernel_functions.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "collect/load_failure.h"

#define LIST	   "/proc/kallsyms"
#define OF_FENTRY  "register_ftrace_direct" /* linux/ftrace.h: what calls a BPF program at a function; with "_multi" before Linux 6.4 */
#define FOR_TRIAL  "vfs_read"
#define MAX_BYTES  512			    /* KSYM_NAME_LEN of linux/kallsyms.h */
#define MAX_MODULE 128

/* A line: "ffffffff81000000 T name\t[module]". False: no function. */
static bool parse(char *line, char name[MAX_BYTES], char module[MAX_MODULE], uint64_t *ret_kaddr)
{
	const char *at = line;
	char type = 0;
	size_t size;

	*name = *module = '\0';
	if (sscanf(line, "%*s %c %511s [%127s", &type, name, module) < 2 || !strchr("tTwW", type))
		return false;
	size = strlen(module);
	if (size && module[size - 1] == ']')
		module[size - 1] = '\0';
	if (number_hex(&at, line + strcspn(line, " "), ret_kaddr))
		*ret_kaddr = 0;
	return true;
}

/* What the kernel shows in the list as of a module, but is code that it has made: BPF programs, trampolines. */
static bool is_made_at_run_time(const char *module)
{
	return !strcmp(module, "bpf") || !strncmp(module, "__builtin__", strlen("__builtin__"));
}

/* --- what cannot be probed ------------------------------------------------------------------------------------------------------------ */

#define MAX_RANGES 5

struct forbidden { /* ranges of addresses */
	struct {
		uint64_t start, end;
	} ranges[MAX_RANGES];
};

/* Sections of asm-generic/sections.h: entry code, code without instrumentation, that of kprobes itself, and what ran once and is gone. */
static void find_forbidden(struct forbidden *forbidden)
{
	static const char *const bounds[MAX_RANGES][2] = { { "__entry_text_start", "__entry_text_end" },
							   { "__noinstr_text_start", "__noinstr_text_end" },
							   { "__kprobes_text_start", "__kprobes_text_end" },
							   { "__cpuidle_text_start", "__cpuidle_text_end" },
							   { "_sinittext", "_einittext" } };
	FILE *file = fopen(LIST, "re");
	char *line = NULL, name[MAX_BYTES], module[MAX_MODULE];
	size_t size = 0;
	uint64_t kaddr;

	*forbidden = (struct forbidden){ 0 };
	while (file && getline(&line, &size, file) > 0) {
		bool is_code = parse(line, name, module, &kaddr) && !*module;

		for (int i = 0; is_code && i < MAX_RANGES; i++) {
			if (!strcmp(name, bounds[i][0]))
				forbidden->ranges[i].start = kaddr;
			if (!strcmp(name, bounds[i][1]))
				forbidden->ranges[i].end = kaddr;
		}
	}
	free(line);
	if (file)
		fclose(file);
}

/* "__pfx_": the bytes before a function that are never run. */
static bool is_forbidden(const struct forbidden *forbidden, const char *name, uint64_t kaddr)
{
	for (int i = 0; kaddr && i < MAX_RANGES; i++) {
		if (kaddr >= forbidden->ranges[i].start && kaddr < forbidden->ranges[i].end)
			return true;
	}
	return !strncmp(name, "__pfx_", strlen("__pfx_"));
}

int kernel_functions_each(kernel_function_fn fn, void *arg)
{
	FILE *file = fopen(LIST, "re");
	char name[MAX_BYTES], module[MAX_MODULE];
	struct kernel_function function = { .name = name, .module = module };
	struct forbidden forbidden;
	char *line = NULL;
	size_t size = 0;
	int err = file ? 0 : -errno;

	find_forbidden(&forbidden);
	while (!err && getline(&line, &size, file) > 0) {
		if (!parse(line, name, module, &function.kaddr) || is_made_at_run_time(module))
			continue;
		function.is_forbidden = is_forbidden(&forbidden, name, function.kaddr);
		err = fn(arg, &function);
	}
	free(line);
	if (file)
		fclose(file);
	return err;
}

struct wanted {
	const char *name;
	uint64_t kaddr;
};

static int is_wanted(void *arg, const struct kernel_function *function)
{
	struct wanted *wanted = arg;

	if (strcmp(wanted->name, function->name) != 0)
		return 0;
	wanted->kaddr = function->kaddr;
	return 1;
}

bool kernel_functions_find(const char *name, uint64_t *ret_kaddr)
{
	struct wanted wanted = { .name = name };

	if (kernel_functions_each(is_wanted, &wanted) <= 0)
		return false;
	*ret_kaddr = wanted.kaddr;
	return true;
}

bool kernel_functions_have_kprobes(void)
{
	return !access("/sys/bus/event_source/devices/kprobe/type", F_OK);
}

/* Some kernels have all that it takes, and refuse the program; to users without rights they refuse others as well. */
static bool may_load_fentry(void)
{
	static const struct bpf_insn nothing[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K }, { .code = BPF_JMP | BPF_EXIT } };
	int id = libbpf_find_vmlinux_btf_id(FOR_TRIAL, BPF_TRACE_FENTRY), fd;
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = BPF_TRACE_FENTRY, .attach_btf_id = (uint32_t)id);

	if (id <= 0)
		return false;
	fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "sonde_trial", "GPL", nothing, ARRAY_SIZE(nothing), &options);
	if (fd >= 0)
		close(fd);
	return fd >= 0 || !load_can_make_maps();
}

bool kernel_functions_have_fentry(void)
{
	uint64_t kaddr;

	return (kernel_functions_find(OF_FENTRY, &kaddr) || kernel_functions_find(OF_FENTRY "_multi", &kaddr)) && may_load_fentry();
}
