// SPDX-License-Identifier: Apache-2.0
#include "skywalking/sky_names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/utf8.h"

#define HASH_BYTES 18 /* of end_by_hash, with the NUL */

struct field {
	const char *name, *value;
};

/* The value of the field whose name begins at `at`; NULL: there is none. */
static const char *value_of(const struct field *fields, const char *at, size_t size)
{
	for (; fields->name; fields++) {
		if (strlen(fields->name) == size && !memcmp(fields->name, at, size))
			return fields->value;
	}
	return NULL;
}

/* Appends as many whole code points as fit. */
static void append(char *room, size_t room_bytes, size_t *size, const char *text, size_t length)
{
	const char *pos = text, *end = text + length;

	while (pos < end) {
		const char *from = pos;

		utf8_next(&pos, end);
		if (*size + (size_t)(pos - from) >= room_bytes)
			break;
		memcpy(room + *size, from, (size_t)(pos - from));
		*size += (size_t)(pos - from);
	}
	room[*size] = '\0';
}

/* So that names which differ only in what found no room are not one for the server. */
static void end_by_hash(char *room, size_t room_bytes, size_t size, uint64_t hash)
{
	size_t at = size < room_bytes - HASH_BYTES ? size : room_bytes - HASH_BYTES;

	while (at && (room[at] & 0xc0) == 0x80) /* the middle of a character */
		at--;
	snprintf(room + at, HASH_BYTES, "~%016" PRIx64, hash);
}

/* False: the template has a field that there is not; its name is at *ret_bad. */
static bool expand(const char *template, const struct field *fields, char *room, size_t room_bytes, const char **ret_bad)
{
	size_t size = 0, whole = 0;
	uint64_t hash = 0;

	*room = '\0';
	while (*template) {
		size_t length = strcspn(template, "{");
		const char *value, *close;

		append(room, room_bytes, &size, template, length);
		hash = hash_stable(template, length, hash);
		whole += length;
		template += length;
		if (!*template)
			break;
		close = strchr(template, '}');
		value = close ? value_of(fields, template + 1, (size_t)(close - template - 1)) : NULL;
		if (!value) {
			*ret_bad = template;
			return false;
		}
		append(room, room_bytes, &size, value, strlen(value));
		hash = hash_stable(value, strlen(value), hash);
		whole += strlen(value);
		template = close + 1;
	}
	if (whole >= room_bytes && room_bytes > HASH_BYTES)
		end_by_hash(room, room_bytes, size, hash);
	if (!size)
		snprintf(room, room_bytes, "unknown");
	return true;
}

static const char *name_or_id(const char *name, const char *id)
{
	return *name ? name : id;
}

#define FIELDS_OF(names, identity, pid) \
	{ { "service", (identity)->service }, \
	  { "executable", (identity)->executable }, \
	  { "container", name_or_id((identity)->kubernetes.container, (identity)->container_id) }, \
	  { "pod", name_or_id((identity)->kubernetes.pod, (identity)->pod_uid) }, \
	  { "namespace", (identity)->kubernetes.namespace }, \
	  { "unit", (identity)->unit }, \
	  { "host", (names)->host }, \
	  { "pid", (pid) }, \
	  { NULL, NULL } }

int sky_names_check(const struct sky_names *names, struct diag *diag)
{
	static const struct process_identity none = { 0 };
	const struct field fields[] = FIELDS_OF(names, &none, "");
	const char *const templates[] = { names->service, names->instance, names->process };
	char room[8];
	const char *bad;

	for (size_t i = 0; i < ARRAY_SIZE(templates); i++) {
		if (!expand(templates[i], fields, room, sizeof(room), &bad))
			return diag_errno(diag, EINVAL,
					  "'%.60s': the fields are {service}, {executable}, {container}, {pod}, {namespace}, {unit}, "
					  "{host}, {pid}",
					  bad);
	}
	return 0;
}

void sky_names_fill(const struct sky_names *names, uint32_t pid, const struct process_identity *identity, struct sky_entity *ret_entity)
{
	char digits[16];
	const struct field fields[] = FIELDS_OF(names, identity, digits);
	const char *bad;

	snprintf(digits, sizeof(digits), "%" PRIu32, pid);
	snprintf(ret_entity->layer, sizeof(ret_entity->layer), "%s", names->layer);
	snprintf(ret_entity->label, sizeof(ret_entity->label), "%s", identity->executable);
	expand(names->service, fields, ret_entity->service, sizeof(ret_entity->service), &bad);
	expand(names->instance, fields, ret_entity->instance, sizeof(ret_entity->instance), &bad);
	expand(names->process, fields, ret_entity->name, sizeof(ret_entity->name), &bad);
}
