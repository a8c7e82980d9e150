// SPDX-License-Identifier: Apache-2.0
#include "identity/process_identity.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "base/hex.h"
#include "base/plain_text.h"
#include "base/process_stat.h"
#include "base/small_file.h"
#include "base/suffix.h"
#include "identity/cgroup_owner.h"

#define CGROUP_BYTES (16u << 10) /* of all hierarchies */
#define SHORT_ID     12

#define PF_KTHREAD 0x00200000 /* the kernel's include/linux/sched.h */

/* The others have no file when they are ending, or have ended and nobody has waited for them: what they were is lost. */
static bool is_kernel_thread(int proc_fd)
{
	struct process_stat stat;

	return !process_stat_read_at(proc_fd, &stat) && (process_stat_number(&stat, PROCESS_STAT_FLAGS) & PF_KTHREAD);
}

/* Its environment was empty: because it is in the middle of an exec, or was a moment ago? */
static bool is_unfinished(int proc_fd)
{
	struct process_stat stat;
	uint64_t end;

	if (process_stat_read_at(proc_fd, &stat))
		return false;
	end = process_stat_number(&stat, PROCESS_STAT_ENV_END);
	return !end || end != process_stat_number(&stat, PROCESS_STAT_ENV_START);
}

static int read_executable(int proc_fd, struct process_identity *identity)
{
	char path[PATH_MAX];
	ssize_t size = readlinkat(proc_fd, "exe", path, sizeof(path));
	const char *name;

	if (size < 0 && (errno == EACCES || errno == EPERM))
		return 0;
	if (size < 0)
		return errno != ENOENT ? -errno : is_kernel_thread(proc_fd) ? 0 : -ESRCH;
	if (has_suffix(path, (size_t)size, " (deleted)"))
		size -= (ssize_t)strlen(" (deleted)");
	name = memrchr(path, '/', (size_t)size);
	name = name ? name + 1 : path;
	plain_copy(identity->executable, sizeof(identity->executable), name, (size_t)(path + size - name));
	return 0;
}

/* KEY=VALUE,KEY=VALUE, with %XX for what would be mistaken (OpenTelemetry's "Resource SDK", W3C Baggage). */
static void take_attribute(const char *attributes, struct process_identity *identity)
{
	static const char key[] = "service.name=";
	char value[sizeof(identity->service) + UINT8_MAX];
	size_t size = 0;

	attributes += strspn(attributes, " ");
	while (strncmp(attributes, key, sizeof(key) - 1) != 0) {
		attributes += strcspn(attributes, ",");
		if (!*attributes)
			return;
		attributes++;
		attributes += strspn(attributes, " ");
	}
	for (const char *c = attributes + sizeof(key) - 1; *c && *c != ',' && size < sizeof(value); c++) {
		int high = *c == '%' ? hex_digit(c[1]) : -1, low = high < 0 ? -1 : hex_digit(c[2]);

		value[size++] = low < 0 ? *c : (char)(high << 4 | low);
		c += low < 0 ? 0 : 2;
	}
	plain_copy(identity->service, sizeof(identity->service), value, size);
}

static void take_service(const struct environment *environment, struct process_identity *identity)
{
	const char *name = environment_find(environment, "OTEL_SERVICE_NAME"),
		   *attributes = environment_find(environment, "OTEL_RESOURCE_ATTRIBUTES");

	if (name && *name)
		plain_copy(identity->service, sizeof(identity->service), name, strlen(name));
	else if (attributes)
		take_attribute(attributes, identity);
}

static int read_environment(int proc_fd, const struct environment_names *names, struct process_identity *identity,
			    struct environment_values *values, bool *ret_is_empty)
{
	CLEANUP(environment_done) struct environment environment = { 0 };
	int err = environment_read(proc_fd, &environment);

	if (err && err != -EACCES && err != -EPERM && err != -ESRCH) /* -ESRCH: no memory. A kernel thread, or a zombie */
		return err;
	take_service(&environment, identity);
	environment_values_find(&environment, names, values);
	*ret_is_empty = (!err && !environment.bytes) || err == -ESRCH;
	return 0;
}

static int read_cgroup(int proc_fd, struct process_identity *identity)
{
	CLEANUP(freep) char *text = malloc(CGROUP_BYTES);
	struct cgroup_owner owner;
	int err = text ? small_file_read(proc_fd, "cgroup", text, CGROUP_BYTES) : -ENOMEM;

	if (err)
		return err;
	cgroup_owner_parse(text, &owner);
	memcpy(identity->container_id, owner.container_id, sizeof(identity->container_id));
	if (owner.container_id[0])
		kubelet_names_find(KUBELET_LOGS, owner.container_id, &identity->kubernetes);
	memcpy(identity->pod_uid, owner.pod_uid, sizeof(identity->pod_uid));
	memcpy(identity->unit, owner.unit, sizeof(identity->unit));
	memcpy(identity->cgroup, owner.cgroup, sizeof(identity->cgroup));
	return 0;
}

static void choose_service(struct process_identity *identity)
{
	char *to = identity->service;

	if (*to)
		return;
	if (*identity->unit)
		snprintf(to, sizeof(identity->service), "%s", identity->unit);
	else if (*identity->kubernetes.container)
		snprintf(to, sizeof(identity->service), "%s", identity->kubernetes.container);
	else if (*identity->container_id)
		snprintf(to, sizeof(identity->service), "%.*s", SHORT_ID, identity->container_id);
	else
		snprintf(to, sizeof(identity->service), "%s", identity->executable);
}

/* proc_fd: /proc/PID, or /proc/PID/task/TID. */
static int read_at(int proc_fd, const struct environment_names *names, struct process_identity *identity, struct environment_values *values)
{
	bool is_empty = false;
	int err = read_environment(proc_fd, names, identity, values, &is_empty);

	if (!err)
		err = read_cgroup(proc_fd, identity);
	if (!err)
		err = read_executable(proc_fd, identity); /* last: it tells that the process has not ended before */
	if (err)
		return err == -ENOENT ? -ESRCH : err;
	return is_empty && identity->executable[0] && is_unfinished(proc_fd) ? -EAGAIN : 0;
}

/* Its first thread may have ended, and others not. */
static int read_at_thread(int proc_fd, const struct environment_names *names, struct process_identity *identity,
			  struct environment_values *values)
{
	uint32_t thread = process_stat_thread(proc_fd);
	CLEANUP(closep) int thread_fd = -1;
	char path[32];

	snprintf(path, sizeof(path), "task/%" PRIu32, thread);
	thread_fd = thread ? openat(proc_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	return thread_fd < 0 ? -ESRCH : read_at(thread_fd, names, identity, values);
}

int process_identity_read(uint32_t pid, const struct environment_names *names, struct process_identity *ret_identity,
			  struct environment_values *ret_values)
{
	struct process_identity identity = { 0 };
	struct environment_values values = { 0 };
	CLEANUP(closep) int proc_fd = -1;
	char path[32];
	int err;

	snprintf(path, sizeof(path), "/proc/%" PRIu32, pid);
	proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC); /* of this process: not of a later one with its pid */
	if (proc_fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	err = read_at(proc_fd, names, &identity, &values);
	if (err == -ESRCH)
		err = read_at_thread(proc_fd, names, &identity, &values);
	if (err)
		return err;
	choose_service(&identity);
	*ret_identity = identity;
	*ret_values = values;
	return 0;
}
