// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_cost.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/process_stat.h"
#include "base/small_file.h"

#define MAX_PROCESSES 256
#define MAX_PROGRAMS  512
#define CHILDREN_BYTES 4096

/* --- processes ------------------------------------------------------------------------------------------------------------------------ */

struct processes {
	uint64_t ids[MAX_PROCESSES];
	uint32_t nr;
};

/* Adds the children of a thread. */
static void add_children(uint64_t pid, const char *tid, struct processes *processes)
{
	char path[64], text[CHILDREN_BYTES], *rest = text, *word;

	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/task/%.10s/children", pid, tid);
	if (small_file_read(AT_FDCWD, path, text, sizeof(text)))
		return;
	while ((word = strsep(&rest, " \n")) && processes->nr < MAX_PROCESSES) {
		if (*word && !number_u64(word, UINT32_MAX, &processes->ids[processes->nr]))
			processes->nr++;
	}
}

static void add_descendants(struct processes *processes)
{
	for (uint32_t i = 0; i < processes->nr; i++) {
		CLEANUP(closedirp) DIR *threads = NULL;
		const struct dirent *entry;
		char path[64];

		snprintf(path, sizeof(path), "/proc/%" PRIu64 "/task", processes->ids[i]);
		threads = opendir(path);
		while (threads && (entry = readdir(threads))) {
			if (*entry->d_name != '.')
				add_children(processes->ids[i], entry->d_name, processes);
		}
	}
}

/* User and system time of a process so far, with those of its children that it has waited for; and its memory. */
static void add_process(uint32_t pid, struct agent_cost *cost)
{
	struct process_stat stat;

	if (process_stat_read(pid, &stat))
		return;
	cost->cpu_ns += process_stat_ns(&stat, PROCESS_STAT_UTIME) + process_stat_ns(&stat, PROCESS_STAT_STIME) +
			process_stat_ns(&stat, PROCESS_STAT_CUTIME) + process_stat_ns(&stat, PROCESS_STAT_CSTIME);
	cost->rss_bytes += process_stat_rss_bytes(&stat);
}

/* --- BPF programs --------------------------------------------------------------------------------------------------------------------- */

struct program {
	uint64_t id, ns;
};

struct programs {
	struct program list[MAX_PROGRAMS];
	uint32_t nr;
};

struct agent_cost_reader {
	pthread_mutex_t lock;  /* for all below */
	struct programs known; /* as they were read last */
	uint64_t bpf_ns;       /* of all so far */
};

static const struct program *find(const struct programs *programs, uint64_t id)
{
	for (uint32_t i = 0; i < programs->nr; i++) {
		if (programs->list[i].id == id)
			return &programs->list[i];
	}
	return NULL;
}

/* A descriptor of a program says its id and its run time. That of a link has the id alone. */
static void read_fd(const char *fd, struct programs *programs)
{
	char path[64], text[1024], *rest = text, *line;
	struct program program = { 0 };
	bool has_time = false;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%.10s", fd);
	if (small_file_read(AT_FDCWD, path, text, sizeof(text)))
		return;
	while ((line = strsep(&rest, "\n"))) {
		if (!strncmp(line, "prog_id:\t", 9) && number_u64(line + 9, UINT32_MAX, &program.id))
			return;
		if (!strncmp(line, "run_time_ns:\t", 13))
			has_time = !number_u64(line + 13, UINT64_MAX, &program.ns);
	}
	if (has_time && programs->nr < MAX_PROGRAMS && !find(programs, program.id))
		programs->list[programs->nr++] = program;
}

/* With the lock. Programs come and go with their sessions; what they took until they were read last stays counted. */
static void read_programs(struct agent_cost_reader *reader)
{
	CLEANUP(closedirp) DIR *fds = opendir("/proc/self/fdinfo");
	struct programs now = { 0 };
	const struct dirent *entry;

	while (fds && (entry = readdir(fds)))
		read_fd(entry->d_name, &now);
	for (uint32_t i = 0; i < now.nr; i++) {
		const struct program *before = find(&reader->known, now.list[i].id);

		reader->bpf_ns += now.list[i].ns - (before ? before->ns : 0);
	}
	reader->known = now;
}

int agent_cost_count_bpf(struct diag *diag, int *ret_fd)
{
	union bpf_attr attributes = { .enable_stats.type = BPF_STATS_RUN_TIME };
	int fd = (int)syscall(SYS_bpf, BPF_ENABLE_STATS, &attributes, sizeof(attributes));

	if (fd < 0)
		return diag_errno(diag, errno, "the kernel does not count the cost of BPF programs: %s", strerror(errno));
	*ret_fd = fd;
	return 0;
}

int agent_cost_reader_new(struct agent_cost_reader **ret_reader)
{
	struct agent_cost_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return -ENOMEM;
	pthread_mutex_init(&reader->lock, NULL);
	*ret_reader = reader;
	return 0;
}

void agent_cost_reader_free(struct agent_cost_reader *reader)
{
	if (reader)
		pthread_mutex_destroy(&reader->lock);
	free(reader);
}

void agent_cost_read(struct agent_cost_reader *reader, struct agent_cost *ret_cost)
{
	struct processes processes = { .ids = { (uint64_t)getpid() }, .nr = 1 };

	pthread_mutex_lock(&reader->lock);
	read_programs(reader);
	*ret_cost = (struct agent_cost){ .bpf_ns = reader->bpf_ns };
	pthread_mutex_unlock(&reader->lock);
	add_descendants(&processes);
	for (uint32_t i = 0; i < processes.nr; i++)
		add_process((uint32_t)processes.ids[i], ret_cost);
}
