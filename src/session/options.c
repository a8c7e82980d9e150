// SPDX-License-Identifier: Apache-2.0
/* The options of a session: what is missing is filled in, what makes no sense is refused before anything starts. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "abi/unwind.h"
#include "base/number.h"
#include "session/session.h"

#define MAX_RATE_PATH "/proc/sys/kernel/perf_event_max_sample_rate"
#define ROOT_PID_NAMESPACE 0xEFFFFFFCu /* PROC_PID_INIT_INO, include/linux/proc_ns.h */
#define MAX_STACK_STORAGE (1u << 26)
#define MIN_CLOCK_PERIOD_NS 10000 /* what the kernel makes of a shorter one: perf_swevent_start_hrtimer, kernel/events/core.c */

/* 0 when the kernel does not say. */
static uint64_t max_rate_hz(void)
{
	CLEANUP(fclosep) FILE *file = fopen(MAX_RATE_PATH, "re");
	char text[32] = "";
	uint64_t hz;

	if (!file || !fgets(text, sizeof(text), file))
		return 0;
	text[strcspn(text, "\n")] = '\0';
	return number_u64(text, UINT64_MAX, &hz) ? 0 : hz;
}

static int check_rate(struct sonde_session *session)
{
	struct sonde_profile_options *o = &session->options;
	uint64_t max_hz = max_rate_hz();

	if (o->freq_hz && o->period)
		return diag_errno(&session->diag, EINVAL, "a rate and a period exclude each other");
	if (!o->freq_hz && !o->period)
		o->freq_hz = SONDE_DEFAULT_FREQ_HZ;
	if (max_hz && o->freq_hz > max_hz)
		return diag_errno(&session->diag, EINVAL, "this kernel samples at up to %" PRIu64 " Hertz; to allow more: sudo sysctl kernel.perf_event_max_sample_rate=%" PRIu64,
				  max_hz, o->freq_hz);
	if (session->event.is_clock && o->period && o->period < MIN_CLOCK_PERIOD_NS) {
		account_note(profile_account(session->profile), "the kernel samples a clock every %d ns at most: that is the period", MIN_CLOCK_PERIOD_NS);
		o->period = MIN_CLOCK_PERIOD_NS;
	}
	if (o->period >> 63)
		return diag_errno(&session->diag, EINVAL, "the period is too large");
	return 0;
}

static int check_sides(struct sonde_session *session)
{
	if (session->options.user_only && session->options.kernel_only)
		return diag_errno(&session->diag, EINVAL, "user stacks only and kernel stacks only exclude each other");
	if (session->options.lines && session->options.no_lines)
		return diag_errno(&session->diag, EINVAL, "with lines and without lines exclude each other");
	if (session->options.comm && (!*session->options.comm || strlen(session->options.comm) >= SONDE_COMM_BYTES))
		return diag_errno(&session->diag, EINVAL, "a name has 1 to %d characters, as the kernel keeps it: '%s'", SONDE_COMM_BYTES - 1,
				  session->options.comm);
	return 0;
}

/* The kernel side knows ids of the root namespace only; ours, and those in /proc, may be others. */
static bool in_root_pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) || st.st_ino == ROOT_PID_NAMESPACE;
}

static int check_whose(struct sonde_session *session)
{
	struct sonde_profile_options *o = &session->options;
	int err = 0;

	if (!in_root_pid_namespace()) {
		if (o->nr_tgids || o->nr_tids || o->command) {
			session_fail(session, SONDE_EXIT_FAILED, -EXDEV);
			return diag_errno(&session->diag, EXDEV, "process ids of a container mean others to the kernel: run sonde in the host's pid namespace");
		}
		account_note(profile_account(session->profile),
			     "run in a container's pid namespace: processes are not told apart rightly; run sonde in the host's");
	}

	if (!!o->nr_tgids + !!o->nr_tids + !!o->command > 1)
		return diag_errno(&session->diag, EINVAL, "process ids, thread ids and a command exclude each other");
	if (o->nr_tgids)
		err = targets_of_tgids(o->tgids, o->nr_tgids, &session->diag, &session->targets);
	else if (o->nr_tids)
		err = targets_of_tids(o->tids, o->nr_tids, &session->diag, &session->targets);
	if (err == -ESRCH)
		session_fail(session, SONDE_EXIT_FAILED, err);
	return err;
}

static int check_storage(struct sonde_session *session)
{
	if (!session->options.stack_storage)
		session->options.stack_storage = SONDE_DEFAULT_STACK_STORAGE;
	if (session->options.stack_storage > MAX_STACK_STORAGE)
		return diag_errno(&session->diag, EINVAL, "the stack storage holds up to %u stacks", MAX_STACK_STORAGE);
	if (!session->options.debuginfod_timeout_ns)
		session->options.debuginfod_timeout_ns = SONDE_DEFAULT_DEBUGINFOD_TIMEOUT_NS;
	if (!session->options.unwind_bytes)
		session->options.unwind_bytes = SONDE_DEFAULT_UNWIND_BYTES;
	if (session->options.unwind_bytes < SONDE_CHUNK_BYTES)
		return diag_errno(&session->diag, EINVAL, "unwind tables and mappings need %u bytes at least", SONDE_CHUNK_BYTES);
	return 0;
}

static void fill_sampling(struct sonde_session *session)
{
	const struct sonde_profile_options *o = &session->options;
	struct sonde_config *config = &session->sampling.config;

	config->filter_tgid = o->nr_tgids || o->command;
	config->filter_tid = o->nr_tids != 0;
	config->user_stacks = !o->kernel_only;
	config->kernel_stacks = !o->user_only;
	config->include_idle = o->idle;
	if (o->comm) {
		config->filter_comm = 1;
		memcpy(config->comm, o->comm, strlen(o->comm));
	}
	session->sampling.follow = o->command != NULL;
	session->sampling.config.audit_every = o->audit_every;
	session->sampling.stack_storage = o->stack_storage;
	session->sampling.event = &session->event;
	session->sampling.freq_hz = o->freq_hz;
	session->sampling.period = o->period;
	session->sampling.cpu = o->cpu;
	session->export = (struct export_options){
		.delimited = o->delimited,
		.annotate = o->annotate,
		.offsets = o->offsets,
		.threads = o->threads,
		.user_only = o->user_only,
		.kernel_only = o->kernel_only,
	};
}

int session_take_options(struct sonde_session *session, const struct sonde_profile_options *options)
{
	int err;

	if (options->size != sizeof(*options))
		return diag_errno(&session->diag, EINVAL, "the options are of another version of the library");
	session->options = *options;
	err = event_parse(options->event ? options->event : "cpu-clock", &session->diag, &session->event);
	if (!err)
		err = check_rate(session);
	if (!err)
		err = check_sides(session);
	if (!err)
		err = check_storage(session);
	if (!err)
		err = check_whose(session);
	if (!err)
		fill_sampling(session);
	return err;
}
