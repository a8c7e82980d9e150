// SPDX-License-Identifier: Apache-2.0
/* Lists of the events, PMUs and tracepoints of this machine. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

#include <sonde/counter.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/dir.h"
#include "base/event.h"
#include "base/small_file.h"
#include "counter/pmu.h"
#include "base/tracefs.h"

#define MAX_NAMES (1u << 20)

struct sonde_names {
	char **texts;
	uint32_t nr, max;
	struct diag diag;
};

void sonde_names_free(struct sonde_names *names)
{
	if (!names)
		return;
	for (uint32_t i = 0; i < names->nr; i++)
		free(names->texts[i]);
	free(names->texts);
	free(names);
}

const char *sonde_names_at(const struct sonde_names *names, uint32_t i)
{
	return names && i < names->nr ? names->texts[i] : NULL;
}

const char *sonde_names_error(const struct sonde_names *names)
{
	return names ? names->diag.text : strerror(ENOMEM);
}

__attribute__((format(printf, 2, 3))) static int add(struct sonde_names *names, const char *fmt, ...)
{
	va_list args;
	char *text;
	int size;

	if (!array_grow(&names->texts, names->nr, &names->max, sizeof(*names->texts), 64, MAX_NAMES))
		return -ENOMEM;
	va_start(args, fmt);
	size = vasprintf(&text, fmt, args);
	va_end(args);
	if (size < 0)
		return -ENOMEM;
	names->texts[names->nr++] = text;
	return 0;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_from(struct sonde_names *names, uint32_t first)
{
	if (names->nr > first)
		qsort(names->texts + first, names->nr - first, sizeof(*names->texts), compare);
}

/* Opens `path` relative to dir_fd. NULL with errno. */
static DIR *open_dir(int dir_fd, const char *path)
{
	int fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

/* Adds the entries of a directory, each between `before` and `after`. With `folders` only folders. Else only names without a dot: the
 * files of an alias's unit and scale have one. */
static int add_dir(struct sonde_names *names, int dir_fd, const char *path, const char *before, const char *after, bool folders)
{
	CLEANUP(closedirp) DIR *dir = open_dir(dir_fd, path);
	const struct dirent *entry;
	int err = 0;

	if (!dir)
		return -errno;
	while (!err && (entry = dir_next(dir, &err))) {
		if (entry->d_name[0] != '.' && (folders ? entry->d_type != DT_REG : !strchr(entry->d_name, '.')))
			err = add(names, "%s%s%s", before, entry->d_name, after);
	}
	return err;
}

static int add_pmus(struct sonde_names *names)
{
	int err = add_dir(names, AT_FDCWD, PMU_DEVICES, "", "", false);

	return err ? diag_errno(&names->diag, -err, "cannot read %s: %s", PMU_DEVICES, strerror(-err)) : 0;
}

/* Some PMUs have no aliases. */
static int add_aliases(struct sonde_names *names, const char *pmu)
{
	char path[512], before[PMU_NAME_BYTES + 2];
	int err;

	if (strchr(pmu, '/') || *pmu == '.' || (size_t)snprintf(before, sizeof(before), "%s/", pmu) >= sizeof(before))
		return diag_errno(&names->diag, EINVAL, "'%.60s' is no name of a PMU", pmu);
	snprintf(path, sizeof(path), PMU_DEVICES "/%s", pmu);
	if (access(path, F_OK))
		return diag_errno(&names->diag, errno, "this machine has no PMU '%s'", pmu);
	snprintf(path, sizeof(path), PMU_DEVICES "/%s/events", pmu);
	err = add_dir(names, AT_FDCWD, path, before, "/", false);
	return err == -ENOENT ? 0 : err;
}

static int add_all_events(struct sonde_names *names)
{
	struct sonde_names pmus = { 0 };
	struct event event;
	uint32_t first;
	int err = 0;

	for (size_t i = 0; !err && event_at(i, &event); i++)
		err = add(names, "%s", event.name);
	sort_from(names, 0);
	first = names->nr;
	if (!err)
		err = add_pmus(&pmus);
	if (err == -ENOENT)
		err = 0; /* without sysfs there are no PMUs to list */
	for (uint32_t i = 0; !err && i < pmus.nr; i++)
		err = add_aliases(names, pmus.texts[i]);
	for (uint32_t i = 0; i < pmus.nr; i++)
		free(pmus.texts[i]);
	free(pmus.texts);
	sort_from(names, first);
	return err;
}

static int add_events(struct sonde_names *names, const char *pmu)
{
	int err;

	if (!pmu)
		return add_all_events(names);
	err = add_aliases(names, pmu);
	sort_from(names, 0);
	return err;
}

static int add_subsystem(struct sonde_names *names, int tracefs_fd, const char *subsystem)
{
	char path[300], before[260];
	int err;

	if (strchr(subsystem, '/') || *subsystem == '.' || (size_t)snprintf(before, sizeof(before), "%s:", subsystem) >= sizeof(before))
		return diag_errno(&names->diag, EINVAL, "'%.60s' is no name of a subsystem", subsystem);
	snprintf(path, sizeof(path), "events/%s", subsystem);
	err = add_dir(names, tracefs_fd, path, before, "", true);
	return err == -ENOENT ? diag_errno(&names->diag, ENOENT, "this kernel has no tracepoints of '%s'", subsystem) : err;
}

static int add_tracepoints(struct sonde_names *names, int tracefs_fd)
{
	struct sonde_names subsystems = { 0 };
	int err = add_dir(&subsystems, tracefs_fd, "events", "", "", true);

	for (uint32_t i = 0; !err && i < subsystems.nr; i++)
		err = add_subsystem(names, tracefs_fd, subsystems.texts[i]);
	for (uint32_t i = 0; i < subsystems.nr; i++)
		free(subsystems.texts[i]);
	free(subsystems.texts);
	return err;
}

/* Adds the words of a file. */
static int add_words(struct sonde_names *names, int tracefs_fd, const char *file)
{
	char text[1024], *rest = text, *word;
	int err = small_file_read(tracefs_fd, file, text, sizeof(text));

	if (err)
		return diag_errno(&names->diag, -err, "cannot read %s in tracefs: %s", file, strerror(-err));
	while (!err && (word = strsep(&rest, " \n"))) {
		if (*word)
			err = add(names, "%s", word);
	}
	return err;
}

static int add_of_tracefs(struct sonde_names *names, enum sonde_list_kind kind, const char *within)
{
	CLEANUP(closep) int fd = -1;
	const char *where;
	int err = tracefs_open(&names->diag, &fd, &where);

	if (err)
		return err;
	if (kind == SONDE_LIST_SUBSYSTEMS)
		err = add_dir(names, fd, "events", "", "", true);
	else if (kind == SONDE_LIST_TRACEPOINTS)
		err = within ? add_subsystem(names, fd, within) : add_tracepoints(names, fd);
	else
		err = add_words(names, fd, kind == SONDE_LIST_TRACERS ? "available_tracers" : "current_tracer");
	sort_from(names, 0);
	return err ? diag_errno(&names->diag, -err, "cannot read tracefs: %s", strerror(-err)) : 0;
}

static int fill(struct sonde_names *names, enum sonde_list_kind kind, const char *within)
{
	int err;

	switch (kind) {
	case SONDE_LIST_PMUS:
		err = add_pmus(names);
		sort_from(names, 0);
		return err;
	case SONDE_LIST_EVENTS:
		return add_events(names, within);
	case SONDE_LIST_SUBSYSTEMS:
	case SONDE_LIST_TRACEPOINTS:
	case SONDE_LIST_TRACERS:
	case SONDE_LIST_TRACER:
		return add_of_tracefs(names, kind, within);
	}
	return diag_errno(&names->diag, EINVAL, "there is no such list");
}

int sonde_list(enum sonde_list_kind kind, const char *within, struct sonde_names **ret_names)
{
	struct sonde_names *names = calloc(1, sizeof(*names));
	int err = names ? fill(names, kind, within) : -ENOMEM;

	if (err == -ENOMEM) {
		sonde_names_free(names);
		names = NULL;
	}
	*ret_names = names;
	return err;
}
