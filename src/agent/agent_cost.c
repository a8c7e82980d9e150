// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_cost.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/process_stat.h"
#include "base/small_file.h"
#include "base/u64_map.h"

#define MAX_PROCESSES 256
#define MAX_PROGRAMS  512
#define CHILDREN_BYTES 4096
#define STATUS_BYTES   4096
#define RECENT_NS      NS_PER_S

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

/* A worker shares its program with this process. */
static uint64_t anonymous_bytes(uint32_t pid)
{
	char path[64], text[STATUS_BYTES], *at;
	uint64_t kib;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	at = small_file_read(AT_FDCWD, path, text, sizeof(text)) ? NULL : strstr(text, "\nRssAnon:");
	if (!at)
		return 0;
	at += strcspn(at, "0123456789");
	at[strspn(at, "0123456789")] = '\0';
	return number_u64(at, UINT32_MAX, &kib) ? 0 : kib << 10;
}

/* User and system time of a process so far, with those of its children that it has waited for; and its memory. */
static void add_process(uint32_t pid, bool is_own, struct agent_cost *cost)
{
	struct process_stat stat;

	if (process_stat_read(pid, &stat))
		return;
	cost->cpu_ns += process_stat_ns(&stat, PROCESS_STAT_UTIME) + process_stat_ns(&stat, PROCESS_STAT_STIME) +
			process_stat_ns(&stat, PROCESS_STAT_CUTIME) + process_stat_ns(&stat, PROCESS_STAT_CSTIME);
	cost->rss_bytes += process_stat_rss_bytes(&stat);
	cost->memory_bytes += is_own ? process_stat_rss_bytes(&stat) : anonymous_bytes(pid);
}

/* --- BPF programs and maps ------------------------------------------------------------------------------------------------------------ */

struct program {
	uint64_t id, ns, nr_runs;
	char name[BPF_OBJ_NAME_LEN];
};

struct programs {
	struct program list[MAX_PROGRAMS];
	uint32_t nr;
};

struct maps {
	struct u64_map ids; /* those that were counted */
	uint64_t bytes;
};

static void maps_done(struct maps *maps)
{
	u64_map_done(&maps->ids);
}

struct agent_cost_reader {
	pthread_mutex_t lock;  /* for all below */
	struct programs known; /* as they were read last */
	uint64_t bpf_ns;       /* of all so far */
	struct agent_cost last;
	uint64_t last_ns;      /* when it was read; 0: never */
};

static const struct program *find(const struct programs *programs, uint64_t id)
{
	for (uint32_t i = 0; i < programs->nr; i++) {
		if (programs->list[i].id == id)
			return &programs->list[i];
	}
	return NULL;
}

static int read_name(int fd, struct program *program)
{
	struct bpf_prog_info info = { 0 };
	union bpf_attr attributes = { .info = { .bpf_fd = (uint32_t)fd, .info_len = sizeof(info), .info = (uintptr_t)&info } };

	if (syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attributes, sizeof(attributes)))
		return -errno;
	memcpy(program->name, info.name, sizeof(program->name));
	return 0;
}

static void add_program(struct programs *programs, const struct program *program)
{
	if (programs->nr < MAX_PROGRAMS)
		programs->list[programs->nr++] = *program;
}

/* Several descriptors may be of one map. */
static void add_map(struct maps *maps, uint64_t id, uint64_t bytes)
{
	if (!u64_map_find(&maps->ids, id) && !u64_map_add(&maps->ids, id, 0))
		maps->bytes += bytes;
}

/* A descriptor of a program says its id and its run time. That of a link has the id alone. */
static void read_fd(const char *fd, struct programs *programs, struct maps *maps)
{
	char path[64], text[1024], *rest = text, *line;
	struct program program = { 0 };
	bool has_time = false, has_bytes = false;
	uint64_t map_id = 0, bytes = 0, number;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%.10s", fd);
	if (small_file_read(AT_FDCWD, path, text, sizeof(text)))
		return;
	while ((line = strsep(&rest, "\n"))) {
		number_of_field(line, "prog_id", &program.id);
		number_of_field(line, "map_id", &map_id);
		has_time |= number_of_field(line, "run_time_ns", &program.ns);
		number_of_field(line, "run_cnt", &program.nr_runs);
		has_bytes |= number_of_field(line, "memlock", &bytes);
	}
	if (has_time && !find(programs, program.id) && !number_u64(fd, INT_MAX, &number) && !read_name((int)number, &program))
		add_program(programs, &program);
	if (map_id && has_bytes)
		add_map(maps, map_id, bytes);
}

/* With the lock. Programs come and go with their sessions; what they took until they were read last stays counted. */
static void read_fds(struct agent_cost_reader *reader, struct agent_cost *cost)
{
	CLEANUP(closedirp) DIR *fds = opendir("/proc/self/fdinfo");
	CLEANUP(maps_done) struct maps maps = { 0 };
	struct programs now = { 0 };
	const struct dirent *entry;

	while (fds && (entry = readdir(fds)))
		read_fd(entry->d_name, &now, &maps);
	for (uint32_t i = 0; i < now.nr; i++) {
		const struct program *before = find(&reader->known, now.list[i].id);

		reader->bpf_ns += now.list[i].ns - (before ? before->ns : 0);
	}
	reader->known = now;
	*cost = (struct agent_cost){ .bpf_ns = reader->bpf_ns, .map_bytes = maps.bytes, .memory_bytes = maps.bytes };
}

/* With the lock. */
static void read_all(struct agent_cost_reader *reader)
{
	struct processes processes = { .ids = { (uint64_t)getpid() }, .nr = 1 };

	read_fds(reader, &reader->last);
	add_descendants(&processes);
	for (uint32_t i = 0; i < processes.nr; i++)
		add_process((uint32_t)processes.ids[i], !i, &reader->last);
	reader->last_ns = clock_ns();
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

static struct agent_program *place_of(const char *name, struct agent_program *programs, uint32_t *nr, uint32_t max_programs)
{
	for (uint32_t i = 0; i < *nr; i++) {
		if (!strcmp(programs[i].name, name))
			return &programs[i];
	}
	if (*nr == max_programs)
		return NULL;
	programs[*nr] = (struct agent_program){ 0 };
	snprintf(programs[*nr].name, sizeof(programs[*nr].name), "%s", name);
	return &programs[(*nr)++];
}

uint32_t agent_cost_programs(struct agent_cost_reader *reader, struct agent_program *programs, uint32_t max_programs)
{
	uint32_t nr = 0;

	pthread_mutex_lock(&reader->lock);
	for (uint32_t i = 0; i < reader->known.nr; i++) {
		const struct program *program = &reader->known.list[i];
		struct agent_program *place = place_of(program->name, programs, &nr, max_programs);

		if (!place)
			continue;
		place->nr_programs++;
		place->nr_runs += program->nr_runs;
		place->ns += program->ns;
	}
	pthread_mutex_unlock(&reader->lock);
	return nr;
}

void agent_cost_read(struct agent_cost_reader *reader, struct agent_cost *ret_cost)
{
	pthread_mutex_lock(&reader->lock);
	read_all(reader);
	*ret_cost = reader->last;
	pthread_mutex_unlock(&reader->lock);
}

void agent_cost_recent(struct agent_cost_reader *reader, struct agent_cost *ret_cost)
{
	pthread_mutex_lock(&reader->lock);
	if (!reader->last_ns || clock_ns() - reader->last_ns > RECENT_NS)
		read_all(reader);
	*ret_cost = reader->last;
	pthread_mutex_unlock(&reader->lock);
}
