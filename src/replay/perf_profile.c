// SPDX-License-Identifier: Apache-2.0
#include "replay/perf_profile.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file_limit.h"
#include "replay/perf_profile_private.h"

#define KERNEL_MAPPING "[kernel.kallsyms]" /* followed by the symbol at its start */
#define KERNEL_TGID UINT32_MAX
#define MAX_THREADS (1u << 22) /* with a stored name */

static void perf_import_freep(struct perf_import **import)
{
	struct perf_import *it = *import;

	if (!it)
		return;
	perf_walk_free(it->walk);
	perf_stacks_free(it->stacks);
	process_table_free(it->processes);
	perf_files_free(it->files);
	parser_free(it->parser);
	proxy_free(it->proxy);
	perf_data_free(it->data);
	u64_map_done(&it->comm_by_tid);
	free(it);
}

/* --- process events ------------------------------------------------------------------------------------------------------------------- */

static int set_comm(struct perf_import *import, uint32_t tid, uint32_t comm)
{
	uint32_t *known = u64_map_find(&import->comm_by_tid, tid);

	if (comm == PROFILE_NONE)
		return -ENOMEM;
	if (!known && import->comm_by_tid.nr_used < MAX_THREADS)
		return u64_map_add(&import->comm_by_tid, tid, comm);
	if (known)
		*known = comm;
	return 0;
}

static void take_kernel_mapping(struct perf_import *import, const struct perf_data_mmap *mmap)
{
	if (!strncmp(mmap->path, KERNEL_MAPPING, strlen(KERNEL_MAPPING)) && !import->kernel_base)
		import->kernel_base = mmap->file_off; /* kallsyms has the modules' symbols, too */
}

/* Each kernel has its own vdso. */
static bool is_vdso_ours(struct perf_import *import)
{
	if (!import->knows_vdso)
		import->has_vdso = perf_import_is_same_kernel(import);
	import->knows_vdso = true;
	return import->has_vdso;
}

static int take_mmap(struct perf_import *import, const struct perf_data_record *record)
{
	const struct perf_data_mmap *mmap = &record->mmap;
	struct mapping_event event = {
		.tgid = record->tgid | RECORDED_TGID,
		.start_pc = mmap->start_pc,
		.size_bytes = mmap->size_bytes,
		.file_off = mmap->file_off,
		.time_ns = record->time_ns,
		.path = mmap->path,
	};
	struct perf_file file;
	int err;

	if (record->mode == PERF_DATA_MODE_KERNEL || record->tgid == KERNEL_TGID)
		take_kernel_mapping(import, mmap);
	if (record->tgid == KERNEL_TGID || record->mode != PERF_DATA_MODE_USER || !mmap->is_code ||
	    mmap->size_bytes > UINT64_MAX - mmap->start_pc)
		return 0;
	if (mmap->path[0] == '/' && mmap->path[1] != '/') {
		err = perf_files_find(import->files, mmap, &file);
		if (err)
			return err;
		event.path = file.path;
		event.inode = file.inode;
	} else if (!strcmp(mmap->path, "[vdso]") && !is_vdso_ours(import)) {
		event.path = "";
	}
	perf_walk_changed(import->walk);
	return process_table_mmap(import->processes, &event);
}

static int take_comm(struct perf_import *import, const struct perf_data_record *record)
{
	int err = set_comm(import, record->tid, profile_string(import->profile, record->comm.name));

	if (err || !record->comm.is_exec)
		return err;
	perf_walk_changed(import->walk);
	return process_table_exec(import->processes, record->tgid | RECORDED_TGID, record->time_ns);
}

static int take_fork(struct perf_import *import, const struct perf_data_record *record)
{
	const uint32_t *known = u64_map_find(&import->comm_by_tid, record->parent.tid);
	int err = known ? set_comm(import, record->tid, *known) : 0;

	if (err || record->tgid == record->parent.tgid) /* a thread */
		return err;
	if (!record->time_ns) /* a process that existed before; perf then reports all its mappings */
		return 0;
	perf_walk_changed(import->walk);
	return process_table_fork(import->processes, record->parent.tgid | RECORDED_TGID, record->tgid | RECORDED_TGID, record->time_ns);
}

static int take_record(void *arg, const struct perf_data_record *record)
{
	struct perf_import *import = arg;

	switch (record->kind) {
	case PERF_DATA_SAMPLE:
		return perf_import_sample(import, record);
	case PERF_DATA_MMAP:
		return take_mmap(import, record);
	case PERF_DATA_COMM:
		return take_comm(import, record);
	case PERF_DATA_FORK:
		return take_fork(import, record);
	case PERF_DATA_EXIT: /* of a thread; its last samples follow. The process's mappings stay until its id is used again */
		break;
	case PERF_DATA_LOST:
		import->nr_lost += record->nr_lost;
		break;
	case PERF_DATA_LOST_SAMPLES:
		import->nr_lost_samples += record->nr_lost;
		break;
	case PERF_DATA_THROTTLE:
		import->nr_throttled++;
		break;
	}
	return 0;
}

/* --- the recording -------------------------------------------------------------------------------------------------------------------- */

/* Returns when the recording was last written; 0 for a stream. */
static int64_t recorded_ns(const struct perf_data_source *source)
{
	struct stat st;

	if (source->fd < 0 || fstat(source->fd, &st) || !S_ISREG(st.st_mode))
		return 0;
	return (int64_t)clock_timespec_ns(st.st_mtim);
}

/* Starts the second only when the first has shown that this program can run as a helper. */
static int start_helpers(struct perf_import *import, struct diag *diag)
{
	int err = parser_new(diag, &import->parser);

	if (!err)
		err = parser_ready(import->parser, diag);
	return err ? err : proxy_new(diag, &import->proxy);
}

static int open_all(struct perf_import *import, const struct perf_data_source *source, struct diag *diag)
{
	int err = perf_data_open(source, diag, &import->data);

	if (err)
		return err;
	file_limit_raise();
	import->info = perf_data_info(import->data);
	import->account = profile_account(import->profile);
	err = start_helpers(import, diag);
	if (err)
		return err;
	import->processes = process_table_new(import->proxy);
	import->files = perf_files_new(import->info, recorded_ns(source));
	import->stacks = import->processes ? perf_stacks_new(import->processes) : NULL;
	if (!import->files || !import->stacks)
		return -ENOMEM;
	err = perf_walk_new(import->processes, import->account, import->parser, diag, &import->walk);
	return err ? err : set_comm(import, 0, profile_string(import->profile, "swapper"));
}

static int make_profile(struct perf_import *import)
{
	CLEANUP(kernel_names_freep) struct kernel_names *kernel = kernel_names_new();
	struct perf_naming naming = {
		.naming = { .parser = import->parser, .proxy = import->proxy, .lines = import->options.lines, .kernel = kernel },
		.kernel_base = import->kernel_base,
		.unix_offset_ns = import->info->has_clock ? import->info->unix_offset_ns : 0,
	};
	const char *why;

	if (!kernel)
		return -ENOMEM;
	naming.has_kernel = perf_import_has_kernel(import, &why);
	if (!naming.has_kernel && perf_stacks_has_kernel(import->stacks))
		account_note(import->account, "functions of the recorded kernel have no names: %s", why);
	return perf_stacks_profile(import->stacks, &naming, import->profile);
}

int perf_profile_read(const struct perf_data_source *source, const struct perf_profile_options *options, struct profile *profile,
		      struct diag *diag)
{
	CLEANUP(perf_import_freep) struct perf_import *import = calloc(1, sizeof(*import));
	int err;

	if (!import)
		return diag_errno(diag, ENOMEM, "no memory");
	import->options = *options;
	import->profile = profile;
	err = open_all(import, source, diag);
	if (!err)
		err = perf_data_read(import->data, take_record, import, diag);
	if (!err && import->nr_columns_known != import->info->nr_events)
		err = perf_import_columns(import);
	if (!err)
		err = make_profile(import);
	if (err)
		return diag_errno(diag, -err, "cannot read the perf.data file: %s", strerror(-err));
	perf_import_account(import);
	return 0;
}
