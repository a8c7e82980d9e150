// SPDX-License-Identifier: Apache-2.0
/* What this process is permitted: capabilities, kernel addresses, other processes. */
#include "doctor/doctor.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"

enum doctor_grant doctor_grant(uint32_t capability)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &header, data) == 0 && data[capability / 32].effective >> capability % 32 & 1)
		return DOCTOR_GRANT_EFFECTIVE;
	return prctl(PR_CAPBSET_READ, capability, 0, 0, 0) == 1 ? DOCTOR_GRANT_BOUND : DOCTOR_GRANT_NONE;
}

bool doctor_no_new_privs(void)
{
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
}

void doctor_capability(const struct doctor_check *check, struct doctor_finding *finding)
{
	switch (doctor_grant(check->number)) {
	case DOCTOR_GRANT_EFFECTIVE:
		doctor_say(finding, DOCTOR_YES, "%s", "");
		break;
	case DOCTOR_GRANT_BOUND:
		doctor_say(finding, DOCTOR_DENIED, "not given to this process");
		break;
	case DOCTOR_GRANT_NONE:
		doctor_say(finding, DOCTOR_DENIED, "taken from this process and all it can start");
		break;
	}
}

/* Hidden addresses read as zero. */
void doctor_kallsyms(const struct doctor_check *check, struct doctor_finding *finding)
{
	CLEANUP(fclosep) FILE *file = fopen(check->path, "re");
	char *line = NULL;
	size_t room = 0;
	bool seen = false;

	if (!file) {
		doctor_say(finding, errno == ENOENT ? DOCTOR_NO : DOCTOR_DENIED, "%s: %s", check->path, strerror(errno));
		return;
	}
	for (int i = 0; !seen && i < 64 && getline(&line, &room, file) > 0; i++)
		seen = strspn(line, "0") < strcspn(line, " "); /* the first per-CPU symbols are at 0 anyway */
	free(line);
	if (seen)
		doctor_say(finding, DOCTOR_YES, "%s", "");
	else
		doctor_say(finding, DOCTOR_DENIED, "the kernel hides its addresses from this process");
}

/* Looking into a child that is not dumpable takes the same right as looking into another user's process. */
static pid_t start_guarded_child(int ready_fd)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (write(ready_fd, "", 1) == 1)
		pause();
	_exit(0);
}

static int read_maps_of(pid_t pid)
{
	char path[64], byte;
	CLEANUP(closep) int fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 || read(fd, &byte, 1) < 0 ? -errno : 0;
}

void doctor_other_processes(const struct doctor_check *check, struct doctor_finding *finding)
{
	int pipe_fds[2], err = 0;
	char byte;
	pid_t pid;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0) {
		doctor_say(finding, DOCTOR_NO, "%s", strerror(errno));
		return;
	}
	pid = start_guarded_child(pipe_fds[1]);
	close(pipe_fds[1]);
	if (pid < 0)
		err = -errno;
	else if (read(pipe_fds[0], &byte, 1) == 1)
		err = read_maps_of(pid);
	close(pipe_fds[0]);
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	if (err)
		doctor_say(finding, DOCTOR_DENIED, "%s", strerror(-err));
	else
		doctor_say(finding, DOCTOR_YES, "%s", "");
}

/* Opens a file through a mapping of it: one page of this program. */
void doctor_map_files(const struct doctor_check *check, struct doctor_finding *finding)
{
	CLEANUP(closep) int program_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	CLEANUP(closep) int fd = -1;
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, page_bytes, PROT_READ, MAP_PRIVATE, program_fd, 0);
	char path[128];

	if (page == MAP_FAILED) {
		doctor_say(finding, DOCTOR_NO, "%s", strerror(errno));
		return;
	}
	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)page, (unsigned long)page + page_bytes);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		doctor_say(finding, errno == EPERM || errno == EACCES ? DOCTOR_DENIED : DOCTOR_NO, "%s", strerror(errno));
	else
		doctor_say(finding, DOCTOR_YES, "%s", "");
	munmap(page, page_bytes);
}
