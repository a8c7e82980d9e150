// SPDX-License-Identifier: Apache-2.0
/* The measurement of who allocates, estimated from short windows in which probes are armed (memory/arming.h). docs/internals/memory.md */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sized.h"
#include "engine/measurement.h"
#include "memory/allocator_probes.h"
#include "memory/arming.h"
#include "memory/comms.h"
#include "memory/heap_profile.h"
#include "memory/memory.h"
#include "programs/alloc_programs.h"

#define NAMES_NS NS_PER_S
#define SIGMAS 2 /* of the error that is shown: 95 of 100 are within */

struct alloc_windows {
	struct measurement base;
	struct sonde_leak_options options;
	char *object;                   /* of the options */
	uint32_t *tgids, nr_tgids, command_tgid; /* of the targets, and of the command */
	struct alloc_programs *programs;
	struct allocator_probes *probes;
	struct arming *arming;
	struct heap *cut;               /* of the window that was cut and is not closed yet; NULL: none */
	struct comms comms;
	uint64_t named_ns, start_ns, end_ns;
	double objects, bytes, objects_variance, bytes_variance; /* of all windows of the recording so far */
	double objects_shared, bytes_shared; /* of these, the deviation that all windows have in common */
	double unseen;                  /* of the last one */
	uint64_t nr_unknown;
	bool is_too_short;              /* in one of these the error is not known */
	bool is_noted;                  /* that it is an estimate */
};

static struct alloc_windows *windows_of(struct measurement *measurement)
{
	return (struct alloc_windows *)measurement;
}

static const struct alloc_windows *const_windows_of(const struct measurement *measurement)
{
	return (const struct alloc_windows *)measurement;
}

/* --- creation ------------------------------------------------------------------------------------------------------------------------- */

static int check(const struct sonde_leak_options *o, const struct sonde_session_options *common, struct diag *diag)
{
	if (!common->nr_tgids && !common->command)
		return diag_errno(diag, EINVAL, "allocations are seen in the processes that are asked for: -p PID, or -- command");
	if (common->nr_tids || common->comm || common->cgroup)
		return diag_errno(diag, EINVAL, "allocations are seen in whole processes: give their ids");
	if (o->sample_bytes || o->sample_rate > 1 || o->each || o->children || o->older_than_ns || o->max_live)
		return diag_errno(diag, EINVAL, "in windows no block is followed, and all calls are seen");
	return 0;
}

static int init(struct measurement *measurement, struct sampler_options *sampling, struct diag *diag)
{
	struct alloc_windows *windows = windows_of(measurement);
	const struct sonde_session_options *common = measurement->parts.options;
	int err = sized_options(&windows->options, sizeof(windows->options), common->leak, diag) ?: check(&windows->options, common, diag);

	if (err)
		return err;
	windows->object = windows->options.object ? strdup(windows->options.object) : NULL;
	if (windows->options.object && !windows->object)
		return -ENOMEM;
	windows->options.object = windows->object;
	sampling->config.kernel_stacks = 0;
	sampling->config.user_stacks = 1;
	sampling->config.more_levels = 7; /* as of `leak` */
	measurement->may_be_empty = true;
	measurement->has_histograms = windows->options.histograms;
	return 0;
}

static void done(struct measurement *measurement)
{
	struct alloc_windows *windows = windows_of(measurement);

	arming_free(windows->arming);
	allocator_probes_free(windows->probes);
	alloc_programs_free(windows->programs);
	heap_free(windows->cut);
	comms_done(&windows->comms);
	free(windows->tgids);
	free(windows->object);
}

static int load(struct measurement *measurement, const struct targets *targets, uint32_t command_tgid, struct diag *diag)
{
	struct alloc_windows *windows = windows_of(measurement);
	const struct alloc_options options = {
		.config = { .min_bytes = windows->options.min_bytes,
			    .max_bytes = windows->options.max_bytes,
			    .windows = 1,
			    .own_tgid = (uint32_t)getpid(),
			    .only_tgid = targets->nr == 1 ? targets->list[0].tgid : 0 },
		.max_blocks = 1,
	};
	const struct allocator_probes_options probing = { .targets = targets, .command_tgid = command_tgid, .is_estimate = true,
							 .object = windows->object };
	int err = alloc_programs_new(measurement->parts.engine->sampler, &options, diag, &windows->programs);

	if (err)
		return err;
	windows->command_tgid = command_tgid;
	windows->tgids = calloc(targets->nr + 1, sizeof(*windows->tgids));
	if (!windows->tgids)
		return -ENOMEM;
	for (uint32_t i = 0; i < targets->nr; i++)
		windows->tgids[windows->nr_tgids++] = targets->list[i].tgid;
	if (command_tgid)
		windows->tgids[windows->nr_tgids++] = command_tgid;
	windows->probes = allocator_probes_new(measurement->parts.engine, windows->programs, &probing);
	return windows->probes ? arming_new(windows->programs, windows->tgids, windows->nr_tgids, diag, &windows->arming) : -ENOMEM;
}

/* A process that ends before the estimate is read keeps its name. */
static void read_names(struct alloc_windows *windows, uint64_t now_ns)
{
	bool is_early = windows->command_tgid && now_ns - windows->start_ns < NAMES_NS;

	if (now_ns - windows->named_ns < NAMES_NS && !is_early)
		return;
	windows->named_ns = now_ns;
	for (uint32_t i = 0; i < windows->nr_tgids; i++)
		comms_read(&windows->comms, windows->tgids[i]);
}

static int start(struct measurement *measurement, struct diag *diag, uint64_t *ret_start_ns)
{
	struct alloc_windows *windows = windows_of(measurement);
	int err = allocator_probes_look(windows->probes, diag);

	*ret_start_ns = windows->start_ns = clock_ns();
	read_names(windows, *ret_start_ns);
	return err ?: arming_start(windows->arming);
}

static int step(struct measurement *measurement, uint64_t now_ns, struct diag *diag)
{
	struct alloc_windows *windows = windows_of(measurement);
	struct arming_counts counts;

	read_names(windows, now_ns);
	arming_get_counts(windows->arming, &counts);
	if (counts.err)
		return diag_errno(diag, -counts.err, "cannot estimate what is allocated: %s", strerror(-counts.err));
	return allocator_probes_look(windows->probes, diag);
}

/* --- windows -------------------------------------------------------------------------------------------------------------------------- */

static int take_sums(struct alloc_windows *windows, const struct estimate *estimate)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < estimate_nr(estimate); i++) {
		struct sonde_alloc_sum sum;
		struct stack_ids ids;

		if (estimate_at(estimate, i, &ids, &sum))
			err = allocated_put(windows->cut->allocated, &ids, &sum, comms_read(&windows->comms, ids.tgid));
	}
	return err;
}

/* The error of a trap's cost is the same in all windows: their sum has the sum of it, not of its squares. */
static void add_shared(double *sum, double *variance, double shared)
{
	*variance += 2 * *sum * shared;
	*sum += shared;
}

static void note_result(struct alloc_windows *windows, const struct estimate_result *result)
{
	windows->objects += result->objects;
	windows->bytes += result->bytes;
	windows->objects_variance += result->objects_error * result->objects_error;
	windows->bytes_variance += result->bytes_error * result->bytes_error;
	add_shared(&windows->objects_shared, &windows->objects_variance, result->objects_shared);
	add_shared(&windows->bytes_shared, &windows->bytes_variance, result->bytes_shared);
	windows->unseen = result->unseen;
	windows->nr_unknown += result->nr_unknown;
	windows->is_too_short |= result->objects_error < 0;
}

static double percent_of(double value, double variance)
{
	return value > 0 ? 100 * SIGMAS * sqrt(variance) / value : 0;
}

/* For files, which have no summary. Of intervals the first is written when the error of all is not known yet. */
static void note_estimate(struct alloc_windows *windows)
{
	struct account *account = windows->base.parts.account;

	if (windows->is_noted)
		return;
	windows->is_noted = true;
	if (windows->end_ns && !windows->is_too_short)
		account_note(account, "the values are an estimate: bytes +- %.1f %%, allocations +- %.1f %%",
			     percent_of(windows->bytes, windows->bytes_variance), percent_of(windows->objects, windows->objects_variance));
	else
		account_note(account, "the values are an estimate, from too few windows to tell in a file how wrong it may be");
}

static int cut(struct measurement *measurement, struct diag *diag)
{
	struct alloc_windows *windows = windows_of(measurement);
	struct estimate_result result;
	struct estimate *estimate;
	int err = heap_renew(&windows->cut, false) ?: arming_take(windows->arming, &estimate);

	if (err)
		return err;
	windows->cut->is_estimate = true;
	estimate_finish(estimate, &result);
	note_result(windows, &result);
	note_estimate(windows);
	err = take_sums(windows, estimate);
	estimate_free(estimate);
	return err;
}

static int stop(struct measurement *measurement, struct diag *diag, uint64_t *ret_end_ns)
{
	struct alloc_windows *windows = windows_of(measurement);

	windows->end_ns = *ret_end_ns = clock_ns();
	arming_end(windows->arming);
	if (!allocator_probes_nr(windows->probes))
		account_note(measurement->parts.account,
			     "no allocator was found in the process: its malloc has no symbol, or it has none");
	return cut(measurement, diag);
}

static int close_window(struct measurement *measurement, const struct process_table *processes, struct window *window)
{
	return heap_close(&windows_of(measurement)->cut, measurement->parts.engine->recorder, processes, window);
}

static int make_profile(struct measurement *measurement, struct window *window, struct stack_builder *builder, struct profile *profile)
{
	return heap_profile_of_sums(window->own, const_windows_of(measurement)->options.histograms, builder, profile);
}

/* --- the account ---------------------------------------------------------------------------------------------------------------------- */

static uint64_t nr(const struct measurement *measurement)
{
	struct arming_counts counts;

	arming_get_counts(const_windows_of(measurement)->arming, &counts);
	return counts.nr_hits;
}

static void write_error(struct buffer *lines, const struct alloc_windows *windows, double value, double variance)
{
	double percent = percent_of(value, variance);

	if (windows->is_too_short)
		buffer_text(lines, " (too few windows to tell the error)");
	else
		buffer_printf(lines, " +- %.1f %%%s", percent, percent > 100 ? " (calls too close to each other to tell)" : "");
}

static void summary(const struct measurement *measurement, struct buffer *lines)
{
	const struct alloc_windows *windows = const_windows_of(measurement);
	uint64_t end_ns = windows->end_ns ?: clock_ns();
	struct sonde_alloc_counters c;
	struct arming_counts a;

	alloc_programs_counters(windows->programs, &c);
	arming_get_counts(windows->arming, &a);
	buffer_printf(lines, "estimated: %.0f bytes allocated", windows->bytes);
	write_error(lines, windows, windows->bytes, windows->bytes_variance);
	buffer_printf(lines, ", in %.0f allocations", windows->objects);
	write_error(lines, windows, windows->objects, windows->objects_variance);
	buffer_printf(lines,
		      "\nwindows: %" PRIu64 ", %.1f ms in the mean, armed for %.2f %% of the time; %" PRIu64
		      " calls seen, %.1f ms spent in probes\n",
		      a.nr_windows, a.nr_windows ? (double)a.open_ns / (double)a.nr_windows / (double)NS_PER_MS : 0,
		      end_ns > windows->start_ns ? 100 * (double)a.armed_ns / (double)(end_ns - windows->start_ns) : 0, a.nr_hits,
		      (double)a.paid_ns / (double)NS_PER_MS);
	if (windows->unseen >= 0.01)
		buffer_printf(lines, "%.0f %% of the CPU time was used by threads that no window saw run: they count like the others\n",
			      100 * windows->unseen);
	if (a.is_wide)
		buffer_text(lines, "the first thread of a process has ended: probes were in all processes, and the error is larger\n");
	memory_write_count(lines, a.nr_untimed, "calls by threads that began in a window or ended: they count by its time alone");
	memory_write_count(lines, a.nr_left_out, "calls left out, of threads beyond 256 in a window: those drawn at random stand for them");
	memory_write_count(lines, a.nr_failed, "allocations failed");
	memory_write_count(lines, a.nr_lost, "calls lost: too many in one window");
	memory_write_count(lines, windows->nr_unknown, "calls without a stack: too many different ones");
	memory_write_count(lines, c.left_out, "allocations left out, by size");
	memory_write_count(lines, c.no_storage, "calls lost: the kernel had no memory for them");
	memory_write_count(lines, c.overtaken, "calls lost: more at a time than a thread should have");
	memory_write_count(lines, c.no_scratch, "calls without a stack: too many threads were in a probe at a time");
	memory_write_count(lines, alloc_programs_nr_left_out(windows->programs), "events that the kernel did not pass on");
}

const struct measurement_type alloc_windows_measurement = {
	.bytes = sizeof(struct alloc_windows),
	.init = init,
	.done = done,
	.load = load,
	.start = start,
	.step = step,
	.stop = stop,
	.cut = cut,
	.close = close_window,
	.profile = make_profile,
	.nr = nr,
	.summary = summary,
};
