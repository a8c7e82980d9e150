// SPDX-License-Identifier: Apache-2.0
/* trial PID HZ LEVELS TRIGGER...: a measurement that takes a stack at each hit of these triggers in process PID, and at HZ ticks a
 * second (0: none), with LEVELS more levels of working memory. Prints "attached" when it has begun, and ends at input on stdin. Then
 * prints a line of counters for each trigger and the ticks, an empty line, and the folded stacks: of ticks under the name `tick`, of the
 * first trigger under `hit0`, and so on.
 *   uprobe,FILE,FUNCTION[+OFFSET]  uretprobe,FILE,FUNCTION  usdt,FILE,PROVIDER,NAME  sys_enter,NUMBER  sys_exit,NUMBER  tp_btf,NAME
 *                                  raw_tp,NAME
 *   kprobe,FUNCTION  kretprobe,FUNCTION  fentry,FUNCTION  fexit,FUNCTION */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sonde/sonde.h>

#include "abi/event.h"
#include "base/number.h"
#include "base/clock.h"
#include "collect/event_programs.h"
#include "output/export.h"
#include "engine/engine.h"
#include "engine/measurement.h"
#include "engine/window.h"
#include "session/sampling.h"

#define MAX_TRIGGERS 16
#define MAX_WORDS 4
#define MAX_REPORT_BYTES (64u << 20)
#define STEP_MS 20
#define LAST_STEPS 10 /* hits still under way when the triggers are removed arrive late */

struct trial {
	struct account account;
	struct engine engine;
	struct event event;
	struct sampler_options sampling;
	uint32_t nr_triggers;
	struct trigger triggers[MAX_TRIGGERS];
	uint32_t syscalls[MAX_TRIGGERS];
	struct event_programs *programs[MAX_TRIGGERS];
};

static const struct {
	const char *name;
	enum trigger_kind kind;
} kinds[] = {
	{ "uprobe", TRIGGER_UPROBE },	      { "uretprobe", TRIGGER_URETPROBE }, { "usdt", TRIGGER_USDT },
	{ "sys_enter", TRIGGER_SYS_ENTER },   { "sys_exit", TRIGGER_SYS_EXIT },	  { "tp_btf", TRIGGER_TP_BTF },
	{ "raw_tp", TRIGGER_RAW_TRACEPOINT }, { "kprobe", TRIGGER_KPROBE },	  { "kretprobe", TRIGGER_KRETPROBE },
	{ "fentry", TRIGGER_FENTRY },	      { "fexit", TRIGGER_FEXIT },
};

static bool parse_kind(const char *name, enum trigger_kind *ret_kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!strcmp(kinds[i].name, name)) {
			*ret_kind = kinds[i].kind;
			return true;
		}
	}
	return false;
}

/* Cuts the text. */
static bool parse_trigger(char *text, int tgid, struct trigger *trigger, uint32_t *ret_syscall)
{
	char *words[MAX_WORDS] = { NULL }, *offset;
	uint64_t number = SONDE_EVENT_ANY_SYSCALL;
	bool is_of_file;

	for (int nr = 0; nr < MAX_WORDS && (words[nr] = strsep(&text, ",")); nr++)
		;
	if (!parse_kind(words[0], &trigger->kind) || !words[1])
		return false;
	is_of_file = trigger_is_in_user(trigger);
	trigger->tgid = tgid;
	trigger->path = is_of_file ? words[1] : NULL;
	trigger->name = trigger->kind == TRIGGER_USDT ? words[3] : is_of_file ? words[2] : words[1];
	trigger->provider = words[2];
	if ((trigger->kind == TRIGGER_SYS_ENTER || trigger->kind == TRIGGER_SYS_EXIT) && number_u64(words[1], UINT32_MAX, &number))
		return false;
	offset = trigger->name ? strchr(trigger->name, '+') : NULL;
	if (offset && number_u64(offset + 1, UINT32_MAX, &trigger->offset))
		return false;
	if (offset)
		*offset = '\0';
	*ret_syscall = (uint32_t)number;
	return trigger->name != NULL;
}

static int set_up(struct trial *trial, struct diag *diag)
{
	const struct engine_options options = { .sampling = &trial->sampling,
						.account = &trial->account,
						.unwind_bytes = SONDE_DEFAULT_UNWIND_BYTES,
						.renews_payloads = true };
	struct engine *engine = &trial->engine;
	int err = engine_init(engine, &options, diag);

	for (uint32_t i = 0; i < trial->nr_triggers && !err; i++)
		err = event_programs_new(
		    engine->sampler, &(struct event_options){ .trigger = &trial->triggers[i], .number = i, .syscall = trial->syscalls[i] },
		    diag, &trial->programs[i]);
	if (!err && !trial->sampling.no_ticks)
		err = sampler_open_events(engine->sampler, &trial->sampling, diag);
	return err ?: tracker_only(engine->tracker, trial->sampling.targets, 1, false) ?: tracker_scan(engine->tracker, diag);
}

static int take_record(void *arg, const void *record)
{
	struct trial *trial = arg;
	const struct sonde_event_record *event = record;
	struct sonde_sample_record sample;

	if (event->type != SONDE_RECORD_SAMPLE && event->type != SONDE_RECORD_EVENT)
		return stack_recorder_record(trial->engine.recorder, record);
	sample = event->type == SONDE_RECORD_EVENT ? event->sample : *(const struct sonde_sample_record *)record;
	memset(sample.comm, 0, sizeof(sample.comm));
	if (event->type == SONDE_RECORD_EVENT)
		snprintf(sample.comm, sizeof(sample.comm), "hit%" PRIu32, event->trigger);
	else
		memcpy(sample.comm, "tick", sizeof("tick"));
	return stack_recorder_record(trial->engine.recorder, &sample);
}

static int collect(struct trial *trial, struct diag *diag)
{
	int err;

	do
		err = engine_read(&trial->engine, UINT64_MAX, take_record, trial, diag) ?: engine_step(&trial->engine, clock_ns(), diag);
	while (!err && tracker_has_more(trial->engine.tracker));
	return err;
}

/* Loads what is known of the process before the triggers can hit. */
static int observe(struct trial *trial, struct diag *diag)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	int err = collect(trial, diag);

	for (uint32_t i = 0; i < trial->nr_triggers && !err; i++)
		err = event_programs_start(trial->programs[i], diag);
	if (!err && !trial->sampling.no_ticks)
		err = sampler_start(trial->engine.sampler, diag);
	if (err)
		return err;
	puts("attached");
	fflush(stdout);
	while (!err && poll(&input, 1, STEP_MS) <= 0)
		err = collect(trial, diag);
	for (uint32_t i = 0; i < trial->nr_triggers; i++)
		event_programs_stop(trial->programs[i]);
	sampler_stop(trial->engine.sampler);
	for (int i = 0; i < LAST_STEPS && !err; i++) {
		usleep(STEP_MS * 1000);
		err = collect(trial, diag);
	}
	return err;
}

static void print_counters(const struct trial *trial)
{
	struct sonde_counters ticks;

	for (uint32_t i = 0; i < trial->nr_triggers; i++) {
		struct sonde_event_counters count;

		event_programs_counters(trial->programs[i], &count);
		printf("hit%u hits %llu recorded %llu filtered %llu no_scratch %llu ring_full %llu left_out %llu\n", i, count.hits,
		       count.recorded, count.filtered[SONDE_FILTER_TARGET] + count.filtered[SONDE_FILTER_IDLE],
		       count.dropped[SONDE_DROP_NO_SCRATCH], count.dropped[SONDE_DROP_RING_FULL],
		       (unsigned long long)event_programs_nr_left_out(trial->programs[i]));
	}
	sampler_counters(trial->engine.sampler, &ticks);
	printf("tick hits %llu recorded %llu filtered %llu no_scratch %llu ring_full %llu left_out 0\n\n", ticks.ticks, ticks.recorded,
	       ticks.filtered[SONDE_FILTER_TARGET] + ticks.filtered[SONDE_FILTER_IDLE], ticks.dropped[SONDE_DROP_NO_SCRATCH],
	       ticks.dropped[SONDE_DROP_RING_FULL]);
}

static int close_window(struct trial *trial, struct window *window)
{
	const struct location_files_parts parts = { .processes = engine_processes(&trial->engine),
						    .proxy = trial->engine.proxy,
						    .runtimes = tracker_runtimes(trial->engine.tracker) };
	struct closed_window closed;
	int err = stack_recorder_give_up(trial->engine.recorder, parts.processes) ?:
		stack_recorder_cut(trial->engine.recorder, UINT64_MAX) ?: engine_close_window(&trial->engine, &closed);

	if (err)
		return err;
	*window = (struct window){ .store = closed.store,
				   .samples = closed.samples,
				   .files = location_files_new(&parts, stack_table_locations(closed.store->stacks)),
				   .account = trial->account };
	return window->files ? 0 : -ENOMEM;
}

static int report(struct trial *trial, struct diag *diag)
{
	struct measurement measurement = { .type = &sampling_measurement };
	const struct export_options options = { .annotate = true };
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(MAX_REPORT_BYTES);
	CLEANUP(kernel_names_freep) struct kernel_names *kernel = kernel_names_new();
	const struct naming naming = { .parser = trial->engine.parser, .proxy = trial->engine.proxy, .kernel = kernel };
	CLEANUP(window_freep) struct window *window = calloc(1, sizeof(*window));
	CLEANUP(profile_freep) struct profile *profile = NULL;
	uint32_t nr_skipped;
	int err = kernel && window ? close_window(trial, window) : -ENOMEM;

	print_counters(trial);
	if (!err)
		err = measurement_profile(&measurement, window, &naming, &profile, &nr_skipped)
			  ?: export_write(profile, EXPORT_FOLDED, &options, &buffer, diag);
	if (!err && buffer.size && fwrite(buffer.data, buffer.size, 1, stdout) != 1)
		err = -EIO;
	return err;
}

static void done(struct trial *trial)
{
	for (uint32_t i = 0; i < trial->nr_triggers; i++)
		event_programs_free(trial->programs[i]);
	engine_done(&trial->engine);
}

int main(int argc, char **argv)
{
	struct trial trial = { .sampling = { .config = { .filter_tgid = 1, .user_stacks = 1, .kernel_stacks = 1 },
					     .cpu = -1,
					     .stack_storage = SONDE_DEFAULT_STACK_STORAGE,
					     .nr_targets = 1 } };
	uint64_t tgid, hz, levels;
	struct diag diag = { 0 };
	uint32_t target;
	int err;

	if (sonde_is_worker(argc, argv, &err))
		return err;
	if (argc < 5 || argc > 4 + MAX_TRIGGERS || number_u64(argv[1], UINT32_MAX, &tgid) || number_u64(argv[2], 100000, &hz) ||
	    number_u64(argv[3], 7, &levels))
		return 2;
	target = (uint32_t)tgid;
	trial.sampling.targets = &target;
	trial.sampling.freq_hz = hz;
	trial.sampling.no_ticks = !hz;
	trial.sampling.config.more_levels = (uint8_t)levels;
	trial.sampling.event = &trial.event;
	for (int i = 4; i < argc; i++) {
		if (!parse_trigger(argv[i], (int)tgid, &trial.triggers[trial.nr_triggers], &trial.syscalls[trial.nr_triggers]))
			return 2;
		trial.nr_triggers++;
	}
	err = event_parse("cpu-clock", &diag, &trial.event) ?: set_up(&trial, &diag) ?: observe(&trial, &diag) ?: report(&trial, &diag);
	if (err)
		fprintf(stderr, "trial: %s\n", diag.err ? diag.text : strerror(-err));
	done(&trial);
	return err ? 1 : 0;
}
