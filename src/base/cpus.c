// SPDX-License-Identifier: Apache-2.0
#include "base/cpus.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/number.h"
#include "base/small_file.h"

void cpus_done(struct cpus *cpus)
{
	free(cpus->ids);
	*cpus = (struct cpus){ 0 };
}

static int add_range(const char *range, struct cpus *cpus)
{
	char first_text[16] = "";
	const char *dash = strchr(range, '-');
	size_t first_size = dash ? (size_t)(dash - range) : strlen(range);
	uint64_t first, last;

	if (first_size >= sizeof(first_text))
		return -EBADMSG;
	memcpy(first_text, range, first_size);
	if (number_u64(first_text, CPUS_MAX - 1, &first))
		return -EBADMSG;
	last = first;
	if (dash && number_u64(dash + 1, CPUS_MAX - 1, &last))
		return -EBADMSG;
	if (last < first || (cpus->nr && first <= cpus->ids[cpus->nr - 1]))
		return -EBADMSG;
	for (uint64_t id = first; id <= last; id++)
		cpus->ids[cpus->nr++] = (uint32_t)id; /* ascending and below CPUS_MAX, so there is room */
	return 0;
}

int cpus_parse(const char *text, struct cpus *ret_cpus)
{
	CLEANUP(cpus_done) struct cpus cpus = { .ids = calloc(CPUS_MAX, sizeof(uint32_t)) };
	CLEANUP(freep) char *copy = strdup(text);
	char *rest = copy, *range;

	if (!cpus.ids || !copy)
		return -ENOMEM;
	copy[strcspn(copy, "\n")] = '\0';
	while ((range = strsep(&rest, ","))) {
		int err = add_range(range, &cpus);

		if (err)
			return err;
	}
	*ret_cpus = cpus;
	cpus.ids = NULL;
	return 0;
}

int cpus_read(const char *which, struct diag *diag, struct cpus *ret_cpus)
{
	char path[64], text[4096];
	int err;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/%s", which);
	err = small_file_read(AT_FDCWD, path, text, sizeof(text));
	if (err)
		return diag_errno(diag, -err, "cannot read %s: %s", path, strerror(-err));
	err = cpus_parse(text, ret_cpus);
	return err == -EBADMSG ? diag_errno(diag, EBADMSG, "%s makes no sense: '%.60s'", path, text) : err;
}

void cpus_watch_done(struct cpus_watch *watch)
{
	if (watch->is_open)
		closep(&watch->fd);
	cpus_done(&watch->online);
	*watch = (struct cpus_watch){ 0 };
}

int cpus_watch_look(struct cpus_watch *watch, const struct cpus **ret_online)
{
	struct cpus online = { 0 };
	char text[4096];
	uint64_t hash;
	ssize_t size;
	int err;

	if (!watch->is_open) {
		watch->fd = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);
		if (watch->fd < 0)
			return -errno;
		watch->is_open = true;
	}
	size = pread(watch->fd, text, sizeof(text) - 1, 0);
	if (size < 0)
		return -errno;
	text[size] = '\0';
	hash = hash_bytes(text, (size_t)size, 0);
	if (!watch->online.nr || hash != watch->hash) {
		err = cpus_parse(text, &online);
		if (err)
			return err;
		cpus_done(&watch->online);
		watch->online = online;
		watch->hash = hash;
	}
	*ret_online = &watch->online;
	return 0;
}

int cpus_nr_possible(struct diag *diag, uint32_t *ret_nr)
{
	CLEANUP(cpus_done) struct cpus possible = { 0 };
	int err = cpus_read("possible", diag, &possible);

	if (err)
		return err;
	*ret_nr = possible.ids[possible.nr - 1] + 1;
	return 0;
}

bool cpus_has(const struct cpus *cpus, uint32_t cpu)
{
	for (uint32_t i = 0; i < cpus->nr; i++) {
		if (cpus->ids[i] == cpu)
			return true;
	}
	return false;
}
