// SPDX-License-Identifier: Apache-2.0
#include "skywalking/sky_processes.h"

#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/dir.h"
#include "base/number.h"
#include "base/plain_text.h"

#define FIRST_PROCESSES 64

int sky_processes_init(struct sky_processes *processes, struct diag *diag)
{
	return proxy_new(diag, &processes->proxy);
}

void sky_processes_done(struct sky_processes *processes)
{
	proxy_free(processes->proxy);
	free(processes->all);
	*processes = (struct sky_processes){ 0 };
}

static struct sky_known *find(const struct sky_processes *processes, uint32_t pid, const struct sky_program *program)
{
	for (uint32_t i = 0; i < processes->nr; i++) {
		if (processes->all[i].process.pid == pid && sky_program_is(&processes->all[i].program, program))
			return &processes->all[i];
	}
	return NULL;
}

static bool is_old_enough(uint64_t start_ns, uint64_t min_age_ns)
{
	return clock_of_ns(CLOCK_BOOTTIME) >= start_ns + min_age_ns;
}

static void read_path(uint32_t thread, char path[SKY_PATH_BYTES])
{
	char link[32];
	ssize_t size;

	snprintf(link, sizeof(link), "/proc/%" PRIu32 "/exe", thread);
	size = readlink(link, path, SKY_PATH_BYTES - 1);
	path[size > 0 ? size : 0] = '\0';
	plain_make(path);
}

/* False: not now. */
static bool read_process(struct proxy *proxy, const struct sky_names *names, uint32_t pid, const struct sky_program *program,
			 struct sky_known *ret_known)
{
	static const struct environment_names none;
	struct sky_known known = { .program = *program, .is_there = true, .process = { .pid = pid } };
	struct process_identity identity;
	struct environment_values values;

	if (proxy_identity(proxy, pid, &none, &identity, &values) || !*identity.executable)
		return false;
	read_path(program->thread, known.process.executable);
	sky_names_fill(names, pid, &identity, &known.process.entity);
	*ret_known = known;
	return true;
}

static void add(struct sky_processes *processes, const struct sky_names *names, uint32_t pid, const struct sky_program *program)
{
	struct sky_known known;

	if (!read_process(processes->proxy, names, pid, program, &known))
		return;
	if (array_grow(&processes->all, processes->nr, &processes->max, sizeof(*processes->all), FIRST_PROCESSES, SKY_MAX_PROCESSES))
		processes->all[processes->nr++] = known;
	else
		processes->nr_left_out++;
}

static void remove_ended(struct sky_processes *processes)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < processes->nr; i++) {
		if (processes->all[i].is_there)
			processes->all[nr++] = processes->all[i];
	}
	processes->nr = nr;
}

void sky_processes_look(struct sky_processes *processes, const struct sky_names *names, uint64_t min_age_ns)
{
	CLEANUP(closedirp) DIR *proc = opendir("/proc");
	const struct dirent *entry;
	int err;

	if (!proc)
		return; /* no descriptor, or no memory: what is known stays */
	processes->nr_left_out = 0;
	for (uint32_t i = 0; i < processes->nr; i++)
		processes->all[i].is_there = false;
	while ((entry = dir_next(proc, &err))) {
		struct sky_program program;
		struct sky_known *known;
		uint64_t pid;

		if (number_u64(entry->d_name, INT32_MAX, &pid) || pid == (uint64_t)getpid() || !sky_program_read((uint32_t)pid, &program))
			continue;
		known = find(processes, (uint32_t)pid, &program);
		if (known)
			known->is_there = true;
		else if (program.stack && program.path && is_old_enough(program.start_ns, min_age_ns))
			add(processes, names, (uint32_t)pid, &program);
	}
	remove_ended(processes);
}

int sky_processes_ask_again(struct sky_processes *processes, struct diag *diag)
{
	struct proxy *proxy = NULL;
	int err = proxy_counts(processes->proxy).nr_timed_out ? proxy_new(diag, &proxy) : 0;

	if (proxy) {
		proxy_free(processes->proxy);
		processes->proxy = proxy;
	}
	return err;
}

const struct sky_known *sky_processes_find(const struct sky_processes *processes, const char *id)
{
	for (uint32_t i = 0; i < processes->nr; i++) {
		if (*id && !strcmp(processes->all[i].process.id, id))
			return &processes->all[i];
	}
	return NULL;
}
