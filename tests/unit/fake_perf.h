/* SPDX-License-Identifier: Apache-2.0 */
/* fake_perf: a kernel that counts what a test sets. PMUs, tracepoints and CPUs are files below a temporary directory, and every call may
 * fail. The linker redirects the calls to it (--wrap, tests/unit/meson.build), by the names that they have with _FILE_OFFSET_BITS=64, which
 * meson sets. Include cmocka.h before it. */
#pragma once
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/poll.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

#define FAKE_MAX 512

struct fake_event {
	struct perf_event_attr attr;
	int fd, pid, cpu, group_fd, output_fd, bpf_fd;
	unsigned long flags;
	uint64_t value, enabled, running, lost;
	uint64_t cgroup_inode; /* of the cgroup whose descriptor is in pid */
	struct perf_event_mmap_page *page; /* the event's mapped ring */
	size_t page_size;
	bool on, is_over; /* is_over: pinned, without room on the PMU */
};

static struct fake_event fake_events[FAKE_MAX]; /* in the order of opening; closed ones stay */
static int fake_nr;
static int (*fake_refuse)(const struct perf_event_attr *attr, int pid, int cpu); /* an errno, or 0 */
static int fake_mount_errno = ENODEV;            /* of fsopen(2) */
static char fake_root[] = "/tmp/sonde-fake-XXXXXX";
static int fake_fail_at = -1, fake_nr_calls;     /* the number of the call that fails; -1: none */
static const char *fake_failed;
static pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;

/* Is it this call's turn to fail? */
static bool fake_fails(const char *call)
{
	bool fails;

	pthread_mutex_lock(&fake_lock);
	fails = fake_nr_calls++ == fake_fail_at;
	if (fails)
		fake_failed = call;
	pthread_mutex_unlock(&fake_lock);
	return fails;
}

static struct fake_event *fake_of(int fd)
{
	for (int i = 0; i < fake_nr; i++) {
		if (fake_events[i].fd == fd)
			return &fake_events[i];
	}
	return NULL;
}

static const char *fake_path(const char *path, char *room, size_t size)
{
	static const char *const faked[] = { "/sys/bus/", "/sys/kernel/", "/sys/devices/system/cpu", "/sys/fs/cgroup", "/proc/" };

	for (size_t i = 0; i < ARRAY_SIZE(faked); i++) {
		if (strncmp(path, faked[i], strlen(faked[i])))
			continue;
		snprintf(room, size, "%s%s", fake_root, path);
		return room;
	}
	return path;
}

/* Writes a file of the fake machine, and makes its directories. */
static void fake_file(const char *path, const char *text)
{
	char room[512], dir[512];
	FILE *file;

	fake_path(path, room, sizeof(room));
	for (char *slash = strchr(room + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - room), room);
		mkdir(dir, 0755);
	}
	file = fopen(room, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* --- the calls ------------------------------------------------------------------------------------------------------------------------ */

void *__real_malloc(size_t size);
void *__real_calloc(size_t nr, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t size);
int __real_vasprintf(char **text, const char *fmt, va_list args);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t nr, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t size);
int __wrap_vasprintf(char **text, const char *fmt, va_list args);
long __wrap_syscall(long number, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);
int __real_close(int fd);
int __wrap_close(int fd);
ssize_t __real_read(int fd, void *bytes, size_t size);
ssize_t __wrap_read(int fd, void *bytes, size_t size);
int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __real_openat64(int dir_fd, const char *path, int flags, ...);
int __wrap_openat64(int dir_fd, const char *path, int flags, ...);
DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
DIR *__real_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd);
FILE *__real_fopen64(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode);
int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
int __real_stat64(const char *path, struct stat *st);
int __wrap_stat64(const char *path, struct stat *st);
int __wrap_fstatfs64(int fd, struct statfs *fs);
void *__real_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t off);
void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t off);
int __wrap_poll(struct pollfd *polls, nfds_t nr, int timeout_ms);
int __real_faccessat(int dir_fd, const char *path, int mode, int flags);
int __wrap_faccessat(int dir_fd, const char *path, int mode, int flags);
char *__real_fgets(char *text, int size, FILE *file);
char *__wrap_fgets(char *text, int size, FILE *file);
int __real_fstat64(int fd, struct stat *st);
int __wrap_fstat64(int fd, struct stat *st);
int __real_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr);
int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr);
struct dirent *__real_readdir64(DIR *dir);
struct dirent *__wrap_readdir64(DIR *dir);
ssize_t __real_readlink(const char *path, char *target, size_t size);
ssize_t __wrap_readlink(const char *path, char *target, size_t size);
int __real_munmap(void *at, size_t size);
int __wrap_munmap(void *at, size_t size);

void *__wrap_malloc(size_t size)
{
	return fake_fails("malloc") ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t nr, size_t size)
{
	return fake_fails("calloc") ? NULL : __real_calloc(nr, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fake_fails("realloc") ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *text)
{
	return fake_fails("strdup") ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t size)
{
	return fake_fails("strndup") ? NULL : __real_strndup(text, size);
}

int __wrap_vasprintf(char **text, const char *fmt, va_list args)
{
	return fake_fails("vasprintf") ? -1 : __real_vasprintf(text, fmt, args);
}

/* Writes the value and the fields after it. */
static uint64_t fake_put_value(const struct fake_event *event, const struct fake_event *leader, uint64_t *to)
{
	to[0] = event->value;
	if (!(leader->attr.read_format & PERF_FORMAT_LOST))
		return 1;
	to[1] = event->lost;
	return 2;
}

static int fake_error(int err)
{
	errno = err;
	return -1;
}

static long fake_perf_event_open(va_list args)
{
	const struct perf_event_attr *attr = va_arg(args, const struct perf_event_attr *);
	int pid = va_arg(args, int), cpu = va_arg(args, int), group_fd = va_arg(args, int), err;
	struct fake_event *event = &fake_events[fake_nr];

	assert_int_equal(attr->size, sizeof(*attr));
	if (fake_fails("perf_event_open"))
		return fake_error(EMFILE);
	err = fake_refuse ? fake_refuse(attr, pid, cpu) : 0;
	if (err)
		return fake_error(err);
	assert_true(fake_nr < FAKE_MAX);
	*event = (struct fake_event){ .attr = *attr, .pid = pid, .cpu = cpu, .group_fd = group_fd, .output_fd = -1, .bpf_fd = -1,
				      .flags = (unsigned long)va_arg(args, int), .on = !attr->disabled };
	if (event->flags & PERF_FLAG_PID_CGROUP) {
		struct stat st;

		assert_int_equal(__real_fstat64(pid, &st), 0);
		event->cgroup_inode = st.st_ino;
	}
	event->fd = __real_open64("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(event->fd >= 0);
	fake_nr++;
	return event->fd;
}

long __wrap_syscall(long number, ...)
{
	va_list args;
	long result = -1;

	va_start(args, number);
	if (number == SYS_perf_event_open)
		result = fake_perf_event_open(args);
	else if (fake_fails("syscall") || fake_mount_errno)
		result = fake_error(fake_mount_errno ? fake_mount_errno : EIO);
	else /* fsopen, fsconfig, fsmount of a tracefs */
		result = number == SYS_fsconfig
			     ? 0
			     : __real_open64(fake_path("/sys/kernel/own", (char[512]){ 0 }, 512), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	va_end(args);
	return result;
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	struct fake_event *event = fake_of(fd);
	unsigned long argument;
	va_list args;

	va_start(args, request);
	argument = va_arg(args, unsigned long);
	va_end(args);
	assert_non_null(event);
	if (fake_fails("ioctl"))
		return fake_error(EIO);
	switch (request) {
	case PERF_EVENT_IOC_ENABLE:
	case PERF_EVENT_IOC_DISABLE:
		event->on = request == PERF_EVENT_IOC_ENABLE;
		break;
	case PERF_EVENT_IOC_SET_OUTPUT:
		event->output_fd = (int)argument;
		break;
	case PERF_EVENT_IOC_SET_BPF:
		event->bpf_fd = (int)argument;
		break;
	case PERF_EVENT_IOC_ID:
		*(uint64_t *)argument = 1000 + (uint64_t)(event - fake_events);
		break;
	default:
		fail_msg("ioctl %lx", request);
	}
	return 0;
}

ssize_t __wrap_read(int fd, void *bytes, size_t size)
{
	struct fake_event *event = fake_of(fd);
	uint64_t to[3 + 2 * FAKE_MAX] = { 0 }, nr = 3;

	if (fake_fails("read"))
		return fake_error(EIO);
	if (!event || size < 3 * sizeof(*to))
		return __real_read(fd, bytes, size);
	if (event->is_over)
		return 0;
	pthread_mutex_lock(&fake_lock);
	if (event->attr.read_format & PERF_FORMAT_GROUP) {
		to[1] = event->enabled;
		to[2] = event->running;
		for (int i = 0; i < fake_nr; i++) {
			if (&fake_events[i] != event && (fake_events[i].fd < 0 || fake_events[i].group_fd != fd || &fake_events[i] < event))
				continue;
			to[0]++;
			nr += fake_put_value(&fake_events[i], event, &to[nr]);
		}
	} else {
		memcpy(to, (uint64_t[]){ event->value, event->enabled, event->running, event->lost }, 4 * sizeof(*to));
		nr += event->attr.read_format & PERF_FORMAT_LOST ? 1 : 0;
	}
	pthread_mutex_unlock(&fake_lock);
	if (size != nr * sizeof(*to))
		fail_msg("%zu bytes are read, and there are %zu", size, (size_t)nr * sizeof(*to));
	memcpy(bytes, to, size);
	return (ssize_t)size;
}

int __wrap_close(int fd)
{
	struct fake_event *event = fake_of(fd);

	if (event) {
		assert_null(event->page); /* unmapped before */
		event->fd = -1;
	}
	return __real_close(fd);
}

int __wrap_open64(const char *path, int flags, ...)
{
	char room[512];

	return fake_fails("open") ? fake_error(EMFILE) : __real_open64(fake_path(path, room, sizeof(room)), flags);
}

int __wrap_openat64(int dir_fd, const char *path, int flags, ...)
{
	char room[512];

	return fake_fails("openat") ? fake_error(EMFILE) : __real_openat64(dir_fd, fake_path(path, room, sizeof(room)), flags);
}

DIR *__wrap_opendir(const char *path)
{
	char room[512];

	if (fake_fails("opendir")) {
		errno = EMFILE;
		return NULL;
	}
	return __real_opendir(fake_path(path, room, sizeof(room)));
}

DIR *__wrap_fdopendir(int fd)
{
	if (fake_fails("fdopendir")) {
		errno = ENOMEM;
		return NULL;
	}
	return __real_fdopendir(fd);
}

FILE *__wrap_fopen64(const char *path, const char *mode)
{
	char room[512];

	if (fake_fails("fopen")) {
		errno = EMFILE;
		return NULL;
	}
	return __real_fopen64(fake_path(path, room, sizeof(room)), mode);
}

int __wrap_access(const char *path, int mode)
{
	char room[512];

	return fake_fails("access") ? fake_error(EACCES) : __real_access(fake_path(path, room, sizeof(room)), mode);
}

int __wrap_stat64(const char *path, struct stat *st)
{
	char room[512];

	return fake_fails("stat") ? fake_error(EACCES) : __real_stat64(fake_path(path, room, sizeof(room)), st);
}

int __wrap_faccessat(int dir_fd, const char *path, int mode, int flags)
{
	return fake_fails("faccessat") ? fake_error(EIO) : __real_faccessat(dir_fd, path, mode, flags);
}

int __wrap_fstat64(int fd, struct stat *st)
{
	return fake_fails("fstat") ? fake_error(EIO) : __real_fstat64(fd, st);
}

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
	return fake_fails("pthread_mutex_init") ? ENOMEM : __real_pthread_mutex_init(mutex, attr);
}

char *__wrap_fgets(char *text, int size, FILE *file)
{
	return fake_fails("fgets") ? NULL : __real_fgets(text, size, file);
}

/* A failed readdir looks like the end of the directory, except for errno. */
struct dirent *__wrap_readdir64(DIR *dir)
{
	if (!fake_fails("readdir"))
		return __real_readdir64(dir);
	errno = EIO;
	return NULL;
}

ssize_t __wrap_readlink(const char *path, char *target, size_t size)
{
	char room[512];

	return fake_fails("readlink") ? fake_error(EIO) : __real_readlink(fake_path(path, room, sizeof(room)), target, size);
}

int __wrap_fstatfs64(int fd, struct statfs *fs)
{
	if (fake_fails("fstatfs"))
		return fake_error(EIO);
	*fs = (struct statfs){ .f_type = CGROUP2_SUPER_MAGIC };
	return 0;
}

void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t off)
{
	struct fake_event *event = fake_of(fd);

	if (!event)
		return __real_mmap64(at, size, protection, flags, fd, off);
	if (fake_fails("mmap")) {
		errno = EPERM;
		return MAP_FAILED;
	}
	event->page = __real_mmap64(at, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	event->page_size = size;
	return event->page;
}

int __wrap_munmap(void *at, size_t size)
{
	for (int i = 0; i < fake_nr; i++) {
		if (fake_events[i].page == at) {
			assert_int_equal(fake_events[i].page_size, size);
			fake_events[i].page = NULL;
		}
	}
	return __real_munmap(at, size);
}

static int (*fake_poll)(struct pollfd *polls, nfds_t nr);
static int fake_poll_timeout_ms; /* of the last one */

int __wrap_poll(struct pollfd *polls, nfds_t nr, int timeout_ms)
{
	if (fake_fails("poll"))
		return fake_error(EINTR);
	fake_poll_timeout_ms = timeout_ms;
	return fake_poll ? fake_poll(polls, nr) : 0;
}

/* --- the machine ---------------------------------------------------------------------------------------------------------------------- */

#define FAKE_DEVICES "/sys/bus/event_source/devices/"

static void fake_pmu(const char *name, const char *file, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), FAKE_DEVICES "%s/%s", name, file);
	fake_file(path, text);
}

/* Four CPUs, one of them offline; a core PMU, two memory controllers and the like; a process of three threads. */
static int fake_machine(void **state)
{
	char room[512];

	assert_non_null(mkdtemp(fake_root));
	fake_pmu("cpu", "type", "4\n");
	fake_pmu("cpu", "format/event", "config:0-7,32-35\n");
	fake_pmu("cpu", "format/umask", "config:8-15\n");
	fake_pmu("cpu", "format/edge", "config:18\n");
	fake_pmu("cpu", "format/offcore", "config1:0-63\n");
	fake_pmu("cpu", "format/strange", "attr:0-3\n");
	fake_pmu("cpu", "events/cpu-cycles", "event=0x3c\n");
	fake_pmu("cpu", "events/mem-loads", "event=0xcd,umask=0x1,offcore=3\n");
	fake_pmu("cpu", "events/of-core", "event=0x7,umask=?\n");
	fake_pmu("power", "type", "21\n");
	fake_pmu("power", "cpumask", "0\n");
	fake_pmu("power", "format/event", "config:0-7\n");
	fake_pmu("power", "events/energy-pkg", "event=0x02\n");
	fake_pmu("power", "events/energy-pkg.unit", "Joules\n");
	fake_pmu("power", "events/energy-pkg.scale", "2.5e-10\n");
	fake_pmu("power", "events/bad", "event=0x02\n");
	fake_pmu("power", "events/bad.scale", "many\n");
	fake_pmu("uncore_imc_0", "type", "30\n");
	fake_pmu("uncore_imc_1", "type", "31\n");
	for (int i = 0; i < 2; i++) {
		char name[] = "uncore_imc_0";

		name[11] = (char)('0' + i);
		fake_pmu(name, "cpumask", "0,2\n");
		fake_pmu(name, "format/event", "config:0-7\n");
	}
	fake_pmu("software", "type", "1\n");
	fake_pmu("broken", "type", "many\n");
	fake_file("/sys/devices/system/cpu/online", "0-2\n");
	fake_file("/sys/kernel/tracing/events/sched/sched_switch/id", "318\n");
	fake_file("/sys/kernel/tracing/events/sched/sched_wakeup/id", "320\n");
	fake_file("/sys/kernel/tracing/events/sched/enable", "0\n");
	fake_file("/sys/kernel/tracing/events/irq/irq_handler_entry/id", "7\n");
	fake_file("/sys/kernel/tracing/available_tracers", "blk function nop\n");
	fake_file("/sys/kernel/tracing/current_tracer", "nop\n");
	fake_file("/sys/kernel/own/events/net/net_dev_xmit/id", "9\n");
	fake_file("/proc/sys/kernel/perf_event_paranoid", "2\n");
	fake_file("/proc/self/mountinfo",
		  "22 27 0:21 / /proc rw - proc proc rw\n30 27 0:26 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
	fake_file("/sys/fs/cgroup/unified/a.slice/cgroup.procs", "");
	for (const char *tid = "567"; *tid; tid++) {
		snprintf(room, sizeof(room), "/proc/5/task/%c/comm", *tid);
		fake_file(room, "x\n");
	}
	fake_file("/proc/6/task/end", ""); /* a process whose threads have ended */
	return 0;
}

/* Replaces `cpu` by kinds of cores: CPUs 0 and 1 are of one kind, CPU 2 is of the other. `kinds`: how many of the two exist. */
static inline void fake_kinds(int kinds)
{
	char here[512], there[512], command[2048];

	fake_path(FAKE_DEVICES "cpu", here, sizeof(here));
	fake_path("/sys/kernel/cpu", there, sizeof(there));
	snprintf(command, sizeof(command), "rm -rf '%s_core' '%s_atom'", here, here);
	assert_int_equal(system(command), 0);
	if (!kinds) {
		assert_int_equal(rename(there, here), 0);
		return;
	}
	if (!__real_access(here, F_OK))
		assert_int_equal(rename(here, there), 0);
	fake_pmu("cpu_core", "type", "4\n");
	fake_pmu("cpu_core", "cpus", "0-1\n");
	fake_pmu("cpu_core", "format/event", "config:0-7\n");
	if (kinds == 1)
		return;
	fake_pmu("cpu_atom", "type", "10\n");
	fake_pmu("cpu_atom", "cpus", "2\n");
	fake_pmu("cpu_atom", "format/event", "config:0-7\n");
	fake_pmu("cpu_atom", "events/cpu-cycles", "event=0x3c\n");
}

static int fake_machine_gone(void **state)
{
	char command[256];

	snprintf(command, sizeof(command), "rm -rf %s", fake_root);
	return system(command);
}

static int fake_reset(void **state)
{
	fake_nr = fake_nr_calls = 0;
	fake_fail_at = -1;
	fake_refuse = NULL;
	fake_poll = NULL;
	fake_mount_errno = ENODEV;
	return 0;
}

/* The id of a.slice as users write it. */
static inline const char *fake_cgroup_id(char text[24])
{
	char room[512];
	struct stat st;

	assert_int_equal(__real_stat64(fake_path("/sys/fs/cgroup/unified/a.slice", room, sizeof(room)), &st), 0);
	snprintf(text, 24, "%llu", (unsigned long long)st.st_ino);
	return text;
}

static inline int nr_open_fds(void)
{
	DIR *dir = __real_opendir("/proc/self/fd");
	int nr = 0;

	while (__real_readdir64(dir))
		nr++;
	closedir(dir);
	return nr;
}
