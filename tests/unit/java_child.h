/* SPDX-License-Identifier: Apache-2.0 */
/* java_child: a JVM that a test has started, and the kernel side's walk of HotSpot's frames (runtimes/java.h), compiled for the host, in
 * its threads while they are stopped. */
#pragma once
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "runtime/java/java_names.h"
#include "runtime/java/java_vm.h"
#include "runtime/runtime.h"
#include "stopped_child.h"
#include "stopped_thread.h"
static __u64 host_java_row(__u64 start, __u32 serial, __u32 id, __u32 off);
#define JAVA_ROW_AT host_java_row
#include "runtimes/java.h"
#include "runtime/java/java_rows.h"

/* The kernel side's map of rows. */
#define HOST_JAVA_ROWS (1u << 14)

struct host_java_rows {
	struct sonde_java_rows_key key;
	struct sonde_java_rows rows;
	bool is_used;
};

static struct host_java_rows host_java_rows[HOST_JAVA_ROWS];
static uint32_t nr_host_java_rows;

static inline struct host_java_rows *host_java_slot(const struct sonde_java_rows_key *key)
{
	uint32_t i = (uint32_t)((key->start * 31 + key->id + key->part * 7919ull) * 0x9e3779b97f4a7c15 >> 40) % HOST_JAVA_ROWS;

	while (host_java_rows[i].is_used && memcmp(&host_java_rows[i].key, key, sizeof(*key)) != 0)
		i = (i + 1) % HOST_JAVA_ROWS;
	return &host_java_rows[i];
}

static inline int host_java_get(void *arg, const void *key, void *ret_rows)
{
	const struct host_java_rows *slot = host_java_slot(key);

	if (!slot->is_used)
		return -ENOENT;
	memcpy(ret_rows, &slot->rows, sizeof(slot->rows));
	return 0;
}

static inline void host_java_set(void *arg, const void *key, const void *rows)
{
	struct host_java_rows *slot;

	if (nr_host_java_rows > HOST_JAVA_ROWS / 2) { /* as the map: something must go */
		memset(host_java_rows, 0, sizeof(host_java_rows));
		nr_host_java_rows = 0;
	}
	slot = host_java_slot(key);
	nr_host_java_rows += !slot->is_used;
	slot->is_used = true;
	memcpy(&slot->key, key, sizeof(slot->key));
	memcpy(&slot->rows, rows, sizeof(slot->rows));
}

/* As java_row_at (java_rows.h). */
static inline __u64 host_java_row(__u64 start, __u32 serial, __u32 id, __u32 off)
{
	struct sonde_java_rows_key key = { .start = start, .serial = serial, .id = id };
	struct sonde_java_rows rows;
	uint32_t at = 0;

	if (host_java_get(NULL, &key, &rows))
		return 0;
	if (!rows.nr) {
		key.part = (off >> rows.shift) + 1;
		off &= (1u << rows.shift) - 1;
		if (host_java_get(NULL, &key, &rows))
			return 0;
	}
	while (at + 1 < rows.nr && rows.rows[at + 1].off <= off)
		at++;
	return java_row_word(&rows.rows[at]);
}

static struct walk w;
static __u64 frames[SONDE_MAX_USER_FRAMES];
static struct runtime_walk r;

/* --- the program ---------------------------------------------------------------------------------------------------------------------- */

/* Into a directory, with a /proc of its own there: the program reads its threads' ids. 0 or -1. */
static inline int enter_root(const char *root)
{
	char proc[300];

	snprintf(proc, sizeof(proc), "%s/proc", root);
	return unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("proc", proc, "proc", 0, NULL) ||
		       chroot(root) || chdir("/")
		   ? -1
		   : 0;
}

/* The folder with the program's classes, in that root. */
static inline void remove_java_folder(const char *root, const char *folder)
{
	char command[600];

	snprintf(command, sizeof(command), "rm -r %s%s", root, folder);
	assert_int_equal(system(command), 0);
}

/* `root` is the prefix of the program's path: "" or a directory to chroot to. `argv` ends with NULL; `in`: its stdin, or -1: this
 * program's. Returns what reads its stdout. */
static inline int start_java(const char *root, const char *const *argv, int in)
{
	int out[2];

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || (in >= 0 && dup2(in, 0)) || dup2(out[1], 1) != 1 || (root[0] && enter_root(root)))
			_exit(126);
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	close(out[1]);
	return out[0];
}

/* --- tables of what is mapped there --------------------------------------------------------------------------------------------------- */

static struct host_tables tables;
static struct runtime_image image;
static struct java_process process;
static uint64_t load_bias;

static inline void look_at_file(const struct elf_file *elf, uint64_t file_bias)
{
	struct runtime_image found;

	if (runtime_java.examine(elf, &found))
		return;
	image = found;
	load_bias = file_bias;
}

static inline void load_tables(void)
{
	CLEANUP(freep) struct diag *diag = calloc(1, sizeof(*diag));
	int err;

	assert_non_null(diag);
	memset(&image, 0, sizeof(image));
	memset(&process, 0, sizeof(process));
	memset(host_java_rows, 0, sizeof(host_java_rows));
	nr_host_java_rows = 0;
	host_tables_load(&tables, &w, child, look_at_file);
	host_read = read_child;
	assert_string_equal(image.reason, "");
	assert_true(image.is_supported);
	assert_true(runtime_image_is_sound(&image));
	err = runtime_java.place(&image, load_bias, NULL, &memory, diag, &process);
	if (err)
		fail_msg("place: %d %s", err, diag->text);
	process.java.process.serial = (uint32_t)child;
}

/* --- walks ---------------------------------------------------------------------------------------------------------------------------- */

static inline int take_step(void)
{
	__u32 i = w.nr_frames;

	if (java_heap_of(&process.java, w.pc) >= SONDE_JAVA_MAX_HEAPS) {
		int at = walk_step(&w, frames);

		return at == WALK_ENDED && walk_is_broken(&w) ? java_bridge(&w, &r, &process.java) : at;
	}
	if (i >= SONDE_LEAF_FRAMES)
		return walk_stop(&w, SONDE_STOP_DEPTH);
	frames[i] = w.exact ? w.pc : w.pc | SONDE_FRAME_RETURN;
	w.sps[i] = w.sp;
	w.nr_frames = i + 1;
	return java_frame(&w, &r, &process.java);
}

static inline void walk_thread(pid_t tid)
{
	memset(w.cache, 0, sizeof(w.cache));
	memset(&r.record, 0, sizeof(r.record));
	r.nr_frames = r.nr_entries = 0;
	r.block_bytes = 0;
	r.runtime = SONDE_RUNTIME_JAVA;
	take_registers(&w, tid);
	nr_reads = 0;
	walk_enter(&w);
	while (take_step() == WALK_GOES_ON)
		assert_true(nr_reads < 50000);
}

/* Does what the walk assumed of code that was not read before hold, for all frames? Gives the walk the rows of that code. */
static inline bool is_walk_proved(void)
{
	const struct runtime_rows rows = { .get = host_java_get, .set = host_java_set };
	bool is_proved = true;

	for (uint32_t i = 0; i < r.nr_frames; i++) {
		bool is_true = false;

		if (!(r.frames[i].flags & SONDE_RUNTIME_ENTRY) && r.frames[i].where & SONDE_RUNTIME_CLAIM &&
		    (java_prove(&image, &process, &memory, &r.frames[i], &rows, &is_true) || !is_true))
			is_proved = false;
	}
	return is_proved;
}

/* The java.lang.invoke frames that Java itself does not show. */
static inline bool is_hidden(const char *name)
{
	return strstr(name, "$$Lambda") || strncmp(name, "java.lang.invoke.", 17) == 0 || !strcmp(name, "java.lang.Thread.runWith") ||
	       strncmp(name, "[stub: ", 7) == 0;
}
