// SPDX-License-Identifier: Apache-2.0
/* The verifier's work for our programs with every option on: start-up time is a feature. Counted in instructions, because time depends
 * more on the machine. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <sys/utsname.h>

#include "abi/config.h"
#include "abi/alloc.h"
#include "abi/kmem.h"
#include "abi/rss.h"
#include "abi/event.h"
#include "abi/probe.h"
#include "abi/io.h"
#include "abi/opens.h"
#include "abi/runq.h"
#include "abi/runtime_list.h"
#include "base/cpus.h"
#include "collect/trigger.h"
#include "alloc.skel.h"
#include "event.skel.h"
#include "files.skel.h"
#include "io.skel.h"
#include "need_bpf.h"
#include "profile.skel.h"
#include "kmem.skel.h"
#include "rss.skel.h"
#include "runq.skel.h"
#include "runtimes.skel.h"
#include "sched.skel.h"
#include "runqslower.skel.h"
#include "waking.skel.h"

#define MAX_INSTRUCTIONS 110000u /* Linux 6.1 needs most: 102,210 for the scheduler's */
#define MAX_RUNTIME_INSTRUCTIONS 60000u /* of one runtime's program */
#define MAX_OWNER_INSTRUCTIONS 210000u  /* with the native walk in it (V8: 199,319, 0.2 s); loaded when such a process is met */
#define MAX_PROGRAMS 8
#define LOG_BYTES 65536

static int no_print(enum libbpf_print_level level, const char *fmt, va_list args)
{
	return 0;
}

/* Returns the number behind `word` in the verifier's statistics; 0 if it is missing. */
static unsigned long number_after(const char *log, const char *word)
{
	const char *at = strstr(log, word);

	return at ? strtoul(at + strlen(word), NULL, 10) : 0;
}

static struct profile_bpf *open_full(uint32_t nr_cpus)
{
	struct profile_bpf *skeleton = profile_bpf__open();

	if (!skeleton)
		return NULL;
	memcpy((void *)&skeleton->rodata->cfg,
	       &(struct sonde_config){ .version = SONDE_ABI_VERSION,
				       .ring_wake_bytes = 1 << 19,
				       .filter_tgid = 1,
				       .filter_comm = 1,
				       .filter_cgroup = 1,
				       .user_stacks = 1,
				       .kernel_stacks = 1,
				       .more_levels = 3,
				       .comm = "test" },
	       sizeof(struct sonde_config));
	if (bpf_map__set_max_entries(skeleton->maps.sonde_ring, 1 << 20) ||
	    bpf_map__set_max_entries(skeleton->maps.sonde_rules, 1024) || bpf_map__set_max_entries(skeleton->maps.sonde_stacks, 1024) ||
	    bpf_map__set_max_entries(skeleton->maps.sonde_scratch, nr_cpus)) {
		profile_bpf__destroy(skeleton);
		return NULL;
	}
	return skeleton;
}

/* Loads an object and adds up its programs' instructions; 0: it does not load. */
static unsigned long load(struct bpf_object *object)
{
	static char logs[MAX_PROGRAMS][LOG_BYTES];
	struct bpf_program *program;
	unsigned long sum = 0;
	size_t nr = 0;
	int err;

	bpf_object__for_each_program(program, object) {
		logs[nr][0] = '\0';
		if (nr == MAX_PROGRAMS || bpf_program__set_log_level(program, 4) ||
		    bpf_program__set_log_buf(program, logs[nr++], LOG_BYTES))
			return 0;
	}
	err = bpf_object__load(object);
	nr = 0;
	bpf_object__for_each_program(program, object) {
		unsigned long instructions = number_after(logs[nr], "processed ");

		if (bpf_program__autoload(program))
			printf("%s %s: %lu instructions verified in %lu us, stack %lu\n", bpf_object__name(object),
			       bpf_program__name(program), instructions, number_after(logs[nr], "verification time "),
			       number_after(logs[nr], "stack depth "));
		if (err)
			fprintf(stderr, "%s\n", logs[nr]);
		sum += instructions;
		nr++;
	}
	if (err)
		fprintf(stderr, "%s does not load: %s\n", bpf_object__name(object), strerror(-err));
	return err ? 0 : sum;
}

static bool is_good(unsigned long instructions, unsigned long max)
{
	if (instructions > max)
		fprintf(stderr, "%lu instructions to verify, more than %lu\n", instructions, max);
	return instructions && instructions <= max;
}

struct part {
	const char *name;
	const void *(*bytes)(size_t *);
	unsigned long max_instructions;
};

/* Opens a part alone, with maps of its own. */
static struct bpf_object *open_part(const struct part *part)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = part->name);
	size_t size = 0;
	const void *elf = part->bytes(&size);
	struct bpf_object *object = bpf_object__open_mem(elf, size, &options);

	if (object && bpf_map__set_max_entries(bpf_object__find_map_by_name(object, "sonde_ring"), 1 << 20)) {
		bpf_object__close(object);
		return NULL;
	}
	return object;
}

/* Checks a runtime's program, for a tick or for a tracepoint. */
static bool check_runtime(const struct part *part, const char *tracepoint)
{
	struct bpf_object *object = open_part(part);
	struct bpf_program *program = object ? bpf_object__next_program(object, NULL) : NULL;
	bool good = object != NULL;

	if (good && tracepoint) {
		bpf_program__set_type(program, BPF_PROG_TYPE_TRACING);
		bpf_program__set_expected_attach_type(program, BPF_TRACE_RAW_TP);
		good = !bpf_program__set_attach_target(program, 0, tracepoint);
	}
	good = good && is_good(load(object), part->max_instructions);
	bpf_object__close(object);
	return good;
}

/* Checks a trigger's own program, which several kinds of trigger use. */
static bool check_event(const struct trigger *trigger)
{
	struct event_bpf *skeleton = event_bpf__open();
	bool good = false;

	if (skeleton) {
		memcpy((void *)&skeleton->rodata->cfg,
		       &(struct sonde_config){ .version = SONDE_ABI_VERSION,
					       .filter_tgid = 1,
					       .filter_comm = 1,
					       .filter_cgroup = 1,
					       .user_stacks = 1,
					       .kernel_stacks = 1,
					       .more_levels = 3,
					       .comm = "test" },
		       sizeof(struct sonde_config));
		memcpy((void *)&skeleton->rodata->event_cfg,
		       &(struct sonde_event_config){ .syscall = 1, .in_user = trigger_is_in_user(trigger) },
		       sizeof(struct sonde_event_config));
		good = !bpf_map__set_max_entries(skeleton->maps.sonde_ring, 1 << 20) &&
		       !trigger_set_program(trigger, skeleton->progs.sonde_event, NULL) &&
		       !trigger_set_program(trigger, skeleton->progs.sonde_event_end, NULL) &&
		       is_good(load(skeleton->obj), MAX_INSTRUCTIONS);
	}
	event_bpf__destroy(skeleton);
	return good;
}

/* Checks every option, as this kernel supports it. */
static bool check_scheduler(const struct part *part)
{
	struct sonde_config all = { .version = SONDE_ABI_VERSION,
				    .ring_wake_bytes = 1 << 19,
				    .filter_tgid = 1,
				    .filter_comm = 1,
				    .filter_cgroup = 1,
				    .user_stacks = 1,
				    .kernel_stacks = 1,
				    .more_levels = 1,
				    .command_tgid = 1,
				    .comm = "test",
				    .max_off_ns = 1,
				    .state = 1,
				    .wake = 1,
				    .histograms = 1,
				    .wall = 1,
				    .events = 1,
				    .has_prev_state = 1 };
	bool good = false;

	for (int turn = 0; turn < 2 && !good; turn++, all.has_prev_state = 0) { /* Linux 5.18 has it */
		struct bpf_object *object = open_part(part);
		struct bpf_map *knobs = object ? bpf_object__find_map_by_name(object, ".rodata") : NULL;
		size_t size = 0;
		void *value = knobs ? (void *)bpf_map__initial_value(knobs, &size) : NULL;

		if (value && size >= sizeof(all)) /* the first variable in it */
			memcpy(value, &all, sizeof(all));
		good = value && is_good(load(object), MAX_INSTRUCTIONS);
		bpf_object__close(object);
	}
	return good;
}

static bool is_linux(int min_major, int min_minor)
{
	struct utsname kernel;
	int major = 0, minor = 0;

	return !uname(&kernel) && sscanf(kernel.release, "%d.%d", &major, &minor) == 2 &&
	       (major > min_major || (major == min_major && minor >= min_minor));
}

/* Before Linux 5.12 the scheduler's events cannot be traced. */
static bool has_task_storage(void)
{
	return is_linux(5, 12);
}

/* Checks the allocators' programs for one way of probing. */
static bool check_allocators(enum trigger_kind kind)
{
	const struct trigger trigger = { .kind = kind };
	bool is_session = kind == TRIGGER_UPROBE_SESSION, good = false;
	struct alloc_bpf *skeleton = alloc_bpf__open();

	if (skeleton) {
		memcpy((void *)&skeleton->rodata->cfg,
		       &(struct sonde_config){ .version = SONDE_ABI_VERSION,
					       .filter_tgid = 1,
					       .filter_comm = 1,
					       .filter_cgroup = 1,
					       .more_levels = 7,
					       .comm = "test" },
		       sizeof(struct sonde_config));
		memcpy((void *)&skeleton->rodata->alloc_cfg,
		       &(struct sonde_alloc_config){
			   .min_bytes = 1, .max_bytes = 2, .sample_rate = 3, .sample_bytes = 4, .held_tgid = 1, .sums = 1 },
		       sizeof(struct sonde_alloc_config));
		bpf_program__set_autoload(skeleton->progs.sonde_mem_both, is_session);
		bpf_program__set_autoload(skeleton->progs.sonde_mem_entry, !is_session);
		bpf_program__set_autoload(skeleton->progs.sonde_mem_end, !is_session);
		good = !bpf_map__set_max_entries(skeleton->maps.sonde_ring, 1 << 20) &&
		       !trigger_set_program(&trigger, skeleton->progs.sonde_mem_both, NULL) &&
		       !trigger_set_program(&trigger, skeleton->progs.sonde_mem_count, NULL) &&
		       !trigger_set_program(&trigger, skeleton->progs.sonde_mem_entry, NULL) &&
		       !trigger_set_program(&trigger, skeleton->progs.sonde_mem_end, NULL) &&
		       !trigger_set_program(&trigger, skeleton->progs.sonde_mem_stack, NULL) &&
		       is_good(load(skeleton->obj), MAX_INSTRUCTIONS);
	}
	alloc_bpf__destroy(skeleton);
	return good;
}

/* Checks the run queue's programs; without task storage only those that do not need it. */
static bool check_run_queue(bool stacks)
{
	struct runq_bpf *skeleton = runq_bpf__open();
	bool good = false;

	if (skeleton) {
		memcpy((void *)&skeleton->rodata->cfg,
		       &(struct sonde_config){
			   .version = SONDE_ABI_VERSION, .filter_tgid = 1, .filter_comm = 1, .filter_cgroup = 1, .comm = "test" },
		       sizeof(struct sonde_config));
		memcpy((void *)&skeleton->rodata->runq_cfg,
		       &(struct sonde_runq_config){ .unit_ns = 1000, .histogram = 1, .key = SONDE_RUNQ_KEY_CGROUP, .stacks = stacks },
		       sizeof(struct sonde_runq_config));
		bpf_program__set_autoload(skeleton->progs.sonde_wait_end, has_task_storage());
		bpf_program__set_autoload(skeleton->progs.sonde_wakeup, has_task_storage());
		bpf_program__set_autoload(skeleton->progs.sonde_wake_new, has_task_storage());
		bpf_program__set_autoload(skeleton->progs.sonde_birth, has_task_storage());
		bpf_program__set_autoload(skeleton->progs.sonde_thread, has_task_storage());
		good =
		    !bpf_map__set_autocreate(skeleton->maps.sonde_threads, has_task_storage()) &&
		    is_good(load(skeleton->obj), MAX_INSTRUCTIONS);
	}
	runq_bpf__destroy(skeleton);
	return good;
}

/* Checks the programs of `files` and of `io`, by everything. */
static bool check_calls(void)
{
	const struct sonde_config filters = {
		.version = SONDE_ABI_VERSION, .filter_tgid = 1, .filter_comm = 1, .filter_cgroup = 1, .command_tgid = 1, .comm = "test"
	};
	struct files_bpf *files = files_bpf__open();
	struct io_bpf *io = io_bpf__open();
	bool good = files && io;

	if (good) {
		struct sonde_opens_config *opens = (void *)&files->rodata->opens_cfg;
		struct sonde_io_config *transfers = (void *)&io->rodata->io_cfg;

		memcpy((void *)&files->rodata->cfg, &filters, sizeof(filters));
		memcpy((void *)&io->rodata->cfg, &filters, sizeof(filters));
		opens->sums = opens->by_tgid = opens->by_comm = opens->by_path = 1;
		transfers->by_tgid = transfers->by_comm = transfers->by_file = transfers->by_call = transfers->requested = 1;
		memset(opens->calls, SONDE_OPEN_OPENAT, sizeof(opens->calls));
		good = is_good(load(files->obj), MAX_INSTRUCTIONS) && (!has_task_storage() || is_good(load(io->obj), MAX_INSTRUCTIONS));
	}
	files_bpf__destroy(files);
	io_bpf__destroy(io);
	return good;
}

int main(void)
{
	static const struct part scheduler[] = { { "sched", sched_bpf__elf_bytes, MAX_INSTRUCTIONS },
						 { "kmem", kmem_bpf__elf_bytes, MAX_INSTRUCTIONS },
						 { "rss", rss_bpf__elf_bytes, MAX_INSTRUCTIONS },
						 { "waking", waking_bpf__elf_bytes, MAX_INSTRUCTIONS },
						 { "runqslower", runqslower_bpf__elf_bytes, MAX_INSTRUCTIONS } };
#define X(id, name, ...) { #name, name##_bpf__elf_bytes, MAX_RUNTIME_INSTRUCTIONS },
#define OWNER(id, name, ...) { #name, name##_bpf__elf_bytes, MAX_OWNER_INSTRUCTIONS },
	static const struct part runtimes[] = { SONDE_RUNTIME_LIST(X, OWNER, X) };
#undef X
#undef OWNER
	static const struct trigger triggers[] = { { .kind = TRIGGER_UPROBE },
						   { .kind = TRIGGER_SYS_ENTER },
						   { .kind = TRIGGER_TP_BTF, .name = "sched_switch" } };
	CLEANUP(cpus_done) struct cpus possible = { 0 };
	struct profile_bpf *skeleton;
	bool good;

	need_bpf();
	libbpf_set_print(no_print);
	if (cpus_read("possible", NULL, &possible) || !(skeleton = open_full(possible.ids[possible.nr - 1] + 1)))
		return 1;
	good = is_good(load(skeleton->obj), MAX_INSTRUCTIONS);
	if (!good) { /* before Linux 6.18; before 6.1 maps must be preallocated */
		profile_bpf__destroy(skeleton);
		skeleton = open_full(possible.ids[possible.nr - 1] + 1);
		if (!skeleton)
			return 1;
		bpf_program__set_autoload(skeleton->progs.sonde_retry, false);
		bpf_map__set_autocreate(skeleton->maps.sonde_retries, false);
		if (bpf_map__set_map_flags(skeleton->maps.sonde_processes, 0) || bpf_map__set_map_flags(skeleton->maps.sonde_targets, 0))
			return 1;
		good = is_good(load(skeleton->obj), MAX_INSTRUCTIONS);
	}
	profile_bpf__destroy(skeleton);
	good = check_run_queue(false) && check_run_queue(true) && good;
	good = check_calls() && good;
	for (size_t i = 0; i < ARRAY_SIZE(scheduler) && has_task_storage(); i++)
		good = check_scheduler(&scheduler[i]) && good;
	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++) {
		good = check_runtime(&runtimes[i], NULL) && good;
		if (has_task_storage())
			good = check_runtime(&runtimes[i], "sched_switch") && check_runtime(&runtimes[i], "sched_waking") && good;
	}
	for (size_t i = 0; i < ARRAY_SIZE(triggers); i++)
		good = check_event(&triggers[i]) && good;
	if (is_linux(6, 2))
		good = check_allocators(TRIGGER_UPROBE) && good;
	if (is_linux(6, 13))
		good = check_allocators(TRIGGER_UPROBE_SESSION) && good;
	return !good;
}
