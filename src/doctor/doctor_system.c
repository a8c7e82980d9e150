// SPDX-License-Identifier: Apache-2.0
/* What the kernel's files say. */
#include "doctor/doctor.h"

#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/utsname.h>

#include "base/small_file.h"

#define ROOT_PID_NAMESPACE 0xEFFFFFFC /* PROC_PID_INIT_INO of the kernel's proc_ns.h, fixed since 3.8 */

void doctor_release(const struct doctor_check *check, struct doctor_finding *finding)
{
	struct utsname name;

	if (uname(&name) < 0)
		doctor_say(finding, DOCTOR_NO, "%s", strerror(errno));
	else
		doctor_say(finding, DOCTOR_INFO, "%s %s", name.release, name.machine);
}

void doctor_btf(const struct doctor_check *check, struct doctor_finding *finding)
{
	struct stat st;

	if (stat(check->path, &st) < 0)
		doctor_say(finding, DOCTOR_NO, "no %s: the kernel is built without CONFIG_DEBUG_INFO_BTF", check->path);
	else if (access(check->path, R_OK) < 0)
		doctor_say(finding, DOCTOR_DENIED, "%s: %s", check->path, strerror(errno));
	else
		doctor_say(finding, DOCTOR_YES, "%s, %.1f MiB", check->path, (double)st.st_size / (1 << 20));
}

void doctor_setting(const struct doctor_check *check, struct doctor_finding *finding)
{
	char text[160];
	int err = small_file_read(AT_FDCWD, check->path, text, sizeof(text));

	if (err < 0)
		doctor_say(finding, DOCTOR_INFO, "%s", err == -ENOENT ? "not in this kernel" : strerror(-err));
	else
		doctor_say(finding, DOCTOR_INFO, "%s", text);
}

void doctor_present(const struct doctor_check *check, struct doctor_finding *finding)
{
	if (access(check->path, F_OK) == 0)
		doctor_say(finding, DOCTOR_YES, "%s", "");
	else
		doctor_say(finding, errno == ENOENT ? DOCTOR_NO : DOCTOR_DENIED, "%s", errno == ENOENT ? "" : strerror(errno));
}

/* sonde mounts it for itself. */
void doctor_tracefs(const struct doctor_check *check, struct doctor_finding *finding)
{
	doctor_say(finding, DOCTOR_INFO, "%s", access(check->path, F_OK) == 0 ? "mounted" : "not mounted (not needed)");
}

void doctor_cgroups(const struct doctor_check *check, struct doctor_finding *finding)
{
	struct statfs root, unified;

	if (statfs("/sys/fs/cgroup", &root) < 0)
		doctor_say(finding, DOCTOR_INFO, "none mounted");
	else if (root.f_type == CGROUP2_SUPER_MAGIC)
		doctor_say(finding, DOCTOR_INFO, "v2");
	else if (statfs("/sys/fs/cgroup/unified", &unified) == 0 && unified.f_type == CGROUP2_SUPER_MAGIC)
		doctor_say(finding, DOCTOR_INFO, "v1, and v2 at /sys/fs/cgroup/unified");
	else
		doctor_say(finding, DOCTOR_INFO, "v1");
}

void doctor_pid_namespace(const struct doctor_check *check, struct doctor_finding *finding)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) < 0)
		doctor_say(finding, DOCTOR_NO, "/proc/self/ns/pid: %s", strerror(errno));
	else if (st.st_ino != ROOT_PID_NAMESPACE)
		doctor_say(finding, DOCTOR_NO, "this is a nested one (a container)");
	else
		doctor_say(finding, DOCTOR_YES, "%s", "");
}

static void limit_text(rlim_t limit, char text[24])
{
	if (limit == RLIM_INFINITY)
		snprintf(text, 24, "unlimited");
	else
		snprintf(text, 24, "%" PRIu64, (uint64_t)limit);
}

void doctor_limit(const struct doctor_check *check, struct doctor_finding *finding)
{
	struct rlimit limit;
	char soft[24], hard[24];

	if (getrlimit((__rlimit_resource_t)check->number, &limit) < 0) {
		doctor_say(finding, DOCTOR_INFO, "%s", strerror(errno));
		return;
	}
	limit_text(limit.rlim_cur, soft);
	limit_text(limit.rlim_max, hard);
	doctor_say(finding, DOCTOR_INFO, "%s, at most %s", soft, hard);
}
