// SPDX-License-Identifier: Apache-2.0
#include "identity/environment.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "base/plain_text.h"

#define FIRST_BYTES (8u << 10) /* most are smaller: read by one call */

/* Reads up to ENVIRONMENT_MAX_BYTES, in a block that grows. */
static int read_all(int fd, struct environment *environment)
{
	uint32_t room = 0;
	ssize_t nr = 1;

	while (nr > 0 && environment->bytes < ENVIRONMENT_MAX_BYTES) {
		if (environment->bytes == room) {
			char *grown = realloc(environment->text, (room = room ? room * 2 : FIRST_BYTES) + 1);

			if (!grown)
				return -ENOMEM;
			environment->text = grown;
		}
		nr = read(fd, environment->text + environment->bytes, room - environment->bytes);
		if (nr < 0)
			return -errno;
		environment->bytes += (uint32_t)nr;
	}
	return 0;
}

/* Leaves out the last variable if it was not read to its end. */
static void end_text(struct environment *environment)
{
	bool is_cut = environment->bytes == ENVIRONMENT_MAX_BYTES;

	while (is_cut && environment->bytes && environment->text[environment->bytes - 1])
		environment->bytes--;
	environment->text[environment->bytes] = '\0'; /* the process may have written over the last NUL */
}

int environment_read(int proc_fd, struct environment *ret_environment)
{
	CLEANUP(closep) int fd = openat(proc_fd, "environ", O_RDONLY | O_CLOEXEC);
	CLEANUP(environment_done) struct environment environment = { 0 };
	int err = fd < 0 ? -errno : read_all(fd, &environment);

	if (err)
		return err;
	end_text(&environment);
	*ret_environment = environment;
	environment.text = NULL;
	return 0;
}

void environment_done(struct environment *environment)
{
	free(environment->text);
}

const char *environment_find(const struct environment *environment, const char *name)
{
	size_t size = strlen(name);
	const char *text = environment->text, *end = text + environment->bytes;

	for (; text < end; text += strlen(text) + 1) {
		if (!strncmp(text, name, size) && text[size] == '=')
			return text + size + 1;
	}
	return NULL;
}

int environment_names_add(struct environment_names *names, const char *name)
{
	size_t size = strlen(name);

	if (!size || size >= ENVIRONMENT_NAME_BYTES)
		return -EINVAL;
	for (const char *c = name; *c; c++) {
		if (!isalnum((unsigned char)*c) && !strchr("_.-", *c))
			return -EINVAL;
	}
	for (uint32_t i = 0; i < names->nr; i++) {
		if (!strcmp(names->names[i], name))
			return 0;
	}
	if (names->nr == ENVIRONMENT_MAX_NAMES)
		return -E2BIG;
	memcpy(names->names[names->nr++], name, size + 1);
	return 0;
}

void environment_values_find(const struct environment *environment, const struct environment_names *names,
			     struct environment_values *ret_values)
{
	for (uint32_t i = 0; i < ENVIRONMENT_MAX_NAMES; i++) {
		const char *value = i < names->nr ? environment_find(environment, names->names[i]) : NULL;

		plain_copy(ret_values->values[i], sizeof(ret_values->values[i]), value ? value : "", value ? strlen(value) : 0);
	}
}
