// SPDX-License-Identifier: Apache-2.0
#include "identity/cgroup_owner.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/plain_text.h"
#include "base/suffix.h"

#define ID_DIGITS  64
#define UID_BYTES  36 /* 8-4-4-4-12 */
#define UID_DIGITS 32 /* of a static pod: a hash of its file */

struct name {
	const char *text; /* not terminated */
	size_t size;
};

static bool is_hex(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (!isdigit((unsigned char)text[i]) && (text[i] < 'a' || text[i] > 'f'))
			return false;
	}
	return true;
}

static bool begins(struct name name, const char *with)
{
	return name.size >= strlen(with) && !memcmp(name.text, with, strlen(with));
}

static struct name without_suffix(struct name name, const char *suffix)
{
	if (has_suffix(name.text, name.size, suffix))
		name.size -= strlen(suffix);
	return name;
}

/* ID, RUNTIME-ID.scope, or kubepods-...slice:cri-containerd:ID. The process of the runtime that watches a container is not in it. */
static bool find_container(struct name name, struct cgroup_owner *owner)
{
	const char *id;
	struct name runtime;

	name = without_suffix(name, ".scope");
	if (name.size < ID_DIGITS)
		return false;
	id = name.text + name.size - ID_DIGITS;
	runtime = (struct name){ name.text, name.size - ID_DIGITS };
	if (!is_hex(id, ID_DIGITS) || (runtime.size && id[-1] != '-' && id[-1] != ':') || has_suffix(runtime.text, runtime.size, "conmon-"))
		return false;
	memcpy(owner->container_id, id, ID_DIGITS);
	owner->container_id[ID_DIGITS] = '\0';
	if (!begins(runtime, "libpod-")) /* Podman runs under the unit of its container, the others under one of their own */
		owner->unit[0] = '\0';
	return true;
}

static bool take_uid(const char *text, size_t size, char uid[UID_BYTES + 1])
{
	bool has_dashes = size == UID_BYTES;

	if (!has_dashes && (size != UID_DIGITS || !is_hex(text, size)))
		return false;
	for (size_t i = 0; has_dashes && i < size; i++) {
		bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (is_dash ? text[i] != '-' && text[i] != '_' : !is_hex(&text[i], 1))
			return false;
	}
	for (size_t i = 0; i < size; i++)
		uid[i] = text[i] == '_' ? '-' : text[i];
	uid[size] = '\0';
	return true;
}

/* cgroupfs: podUID, below kubepods; systemd: kubepods-burstable-podUID.slice, whose dashes are underscores. */
static void find_pod(struct name name, bool is_in_kubepods, struct cgroup_owner *owner)
{
	const char *colon = memchr(name.text, ':', name.size), *pod = NULL;

	if (colon)
		name.size = (size_t)(colon - name.text);
	name = without_suffix(name, ".slice");
	if (is_in_kubepods && begins(name, "pod"))
		pod = name.text;
	for (size_t i = name.size; !pod && memmem(name.text, name.size, "kubepods", 8) && i-- > 0;) {
		if (begins((struct name){ name.text + i, name.size - i }, "-pod"))
			pod = name.text + i + 1;
	}
	if (pod)
		take_uid(pod + 3, name.size - (size_t)(pod + 3 - name.text), owner->pod_uid);
}

/* systemd puts an underscore before a name that the kernel might use: cgroup_escape in systemd's basic/cgroup-util.c. */
static void find_unit(struct name name, struct cgroup_owner *owner)
{
	if (name.size > 1 && *name.text == '_') {
		name.text++;
		name.size--;
	}
	if (has_suffix(name.text, name.size, ".service") && !begins(name, "user@"))
		plain_copy(owner->unit, sizeof(owner->unit), name.text, name.size);
}

static void parse_path(struct name path, struct cgroup_owner *owner)
{
	bool is_in_kubepods = false;

	while (path.size) {
		const char *slash = memchr(path.text, '/', path.size);
		struct name name = { path.text, slash ? (size_t)(slash - path.text) : path.size };

		path.text += name.size + (slash != NULL);
		path.size -= name.size + (slash != NULL);
		if (!find_container(name, owner))
			find_unit(name, owner);
		find_pod(name, is_in_kubepods, owner);
		is_in_kubepods |= memmem(name.text, name.size, "kubepods", 8) != NULL;
	}
}

/* The part behind the second colon of a line ID:CONTROLLERS:PATH; cgroup v2 has the id 0 and no controllers. False: it is no such line. */
static bool split(struct name line, struct name *ret_controllers, struct name *ret_path)
{
	const char *first = memchr(line.text, ':', line.size), *end = line.text + line.size,
		   *second = first ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;

	if (!second || second[1] != '/')
		return false;
	*ret_controllers = (struct name){ first + 1, (size_t)(second - first - 1) };
	*ret_path = without_suffix((struct name){ second + 1, (size_t)(end - second - 1) }, " (deleted)");
	return true;
}

/* How well a hierarchy tells what a process belongs to: cgroup v2, then those of v1 that somebody uses for that. 0: not at all. */
static uint32_t rank_of(struct name controllers)
{
	static const char *const named[] = { "memory", "cpu,cpuacct", "cpu", "name=systemd", "" };

	for (uint32_t i = ARRAY_SIZE(named); i > 0; i--) {
		if (controllers.size == strlen(named[i - 1]) && !memcmp(controllers.text, named[i - 1], controllers.size))
			return i;
	}
	return 0;
}

/* Takes from the better hierarchies first. With version 1 beside version 2 a process may be in the root of one, and in its container in the
 * other. */
static void take_ranked(const char *text, uint32_t rank, struct cgroup_owner *owner)
{
	struct name controllers, path;

	for (const char *at = text; *at;) {
		struct name line = { at, strcspn(at, "\n") };
		struct cgroup_owner found = { 0 };

		at += line.size + (at[line.size] != '\0');
		if (!split(line, &controllers, &path) || rank_of(controllers) != rank)
			continue;
		parse_path(path, &found);
		if (!owner->cgroup[0] || !strcmp(owner->cgroup, "/"))
			plain_copy(owner->cgroup, sizeof(owner->cgroup), path.text, path.size);
		if (!owner->container_id[0] && !owner->unit[0])
			memcpy(owner->unit, found.unit, sizeof(owner->unit));
		if (!owner->container_id[0])
			memcpy(owner->container_id, found.container_id, sizeof(owner->container_id));
		if (!owner->pod_uid[0])
			memcpy(owner->pod_uid, found.pod_uid, sizeof(owner->pod_uid));
	}
}

void cgroup_owner_parse(const char *text, struct cgroup_owner *ret_owner)
{
	struct cgroup_owner owner = { 0 };

	for (uint32_t rank = 5; rank > 0; rank--)
		take_ranked(text, rank, &owner);
	*ret_owner = owner;
}
