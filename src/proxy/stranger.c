// SPDX-License-Identifier: Apache-2.0
#include "proxy/stranger.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/number.h"

#define MAX_GROUPS 65536 /* NGROUPS_MAX of the kernel */

void stranger_init_nobody(struct stranger *stranger)
{
	*stranger = (struct stranger){ .uid = STRANGER_NOBODY, .gid = STRANGER_NOBODY };
}

void stranger_done(struct stranger *stranger)
{
	free(stranger->groups);
	stranger->groups = NULL;
}

/* The next word of the text, which is cut off there; NULL at the end. */
static const char *next_word(char **rest)
{
	char *word = *rest + strspn(*rest, " \t\n");
	char *end = word + strcspn(word, " \t\n");

	*rest = *end ? end + 1 : end;
	*end = '\0';
	return word[0] ? word : NULL;
}

/* "real effective saved filesystem": the last, or nobody's when they differ. False: not such a line. */
static bool parse_ids(char *text, uint32_t *ret_id, bool *ret_mixed)
{
	uint64_t first, value;
	const char *word;
	char *rest = text;

	for (int i = 0; i < 4; i++) {
		word = next_word(&rest);
		if (!word || number_u64(word, UINT32_MAX, &value))
			return false;
		if (i == 0)
			first = value;
		*ret_mixed |= value != first;
	}
	*ret_id = (uint32_t)value;
	return true;
}

/* All of them: a group may also take rights away. */
static int parse_groups(char *text, struct stranger *stranger)
{
	uint32_t *groups = calloc(MAX_GROUPS, sizeof(*groups)), nr = 0;
	const char *word;
	char *rest = text;
	uint64_t value;

	if (!groups)
		return -ENOMEM;
	free(stranger->groups);
	stranger->groups = groups;
	while ((word = next_word(&rest))) {
		if (nr == MAX_GROUPS || number_u64(word, UINT32_MAX, &value))
			return -EINVAL;
		groups[nr++] = (uint32_t)value;
	}
	stranger->nr_groups = nr;
	return 0;
}

static int parse_last_number(char *text, uint32_t *ret_number)
{
	const char *word;
	char *rest = text;
	uint64_t value = 0;

	while ((word = next_word(&rest)))
		if (number_u64(word, UINT32_MAX, &value))
			return -EINVAL;
	*ret_number = (uint32_t)value;
	return 0;
}

static int parse_capabilities(const char *text, uint64_t *ret_mask)
{
	uint64_t passing = (uint64_t)1 << CAP_DAC_OVERRIDE | (uint64_t)1 << CAP_DAC_READ_SEARCH;

	if (number_hex(&text, text + strcspn(text, "\n"), ret_mask))
		return -EINVAL;
	*ret_mask &= passing;
	return 0;
}

/* `kind`: as in /proc/PID/ns. */
static bool in_our_namespace(int proc_fd, const char *kind)
{
	struct stat theirs, ours;
	char path[16], own[32];

	snprintf(path, sizeof(path), "ns/%s", kind);
	snprintf(own, sizeof(own), "/proc/self/%s", path);
	return !fstatat(proc_fd, path, &theirs, 0) && !stat(own, &ours) && theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

enum { SAW_UID = 1, SAW_GID = 2, SAW_GROUPS = 4, SAW_CAPABILITIES = 8, SAW_ALL = 15 };

static int parse_status_line(char *line, struct stranger *stranger, unsigned int *seen, bool *mixed)
{
	if (strncmp(line, "Uid:\t", 5) == 0) {
		*seen |= SAW_UID;
		return parse_ids(line + 5, &stranger->uid, mixed) ? 0 : -EINVAL;
	}
	if (strncmp(line, "Gid:\t", 5) == 0) {
		*seen |= SAW_GID;
		return parse_ids(line + 5, &stranger->gid, mixed) ? 0 : -EINVAL;
	}
	if (strncmp(line, "Groups:\t", 8) == 0) {
		*seen |= SAW_GROUPS;
		return parse_groups(line + 8, stranger);
	}
	if (strncmp(line, "CapEff:\t", 8) == 0) {
		*seen |= SAW_CAPABILITIES;
		return parse_capabilities(line + 8, &stranger->capabilities);
	}
	if (strncmp(line, "NSpid:\t", 7) == 0)
		return parse_last_number(line + 7, &stranger->inner_tgid);
	return 0;
}

int stranger_read(int proc_fd, struct stranger *ret_stranger)
{
	int fd = openat(proc_fd, "status", O_RDONLY | O_CLOEXEC), err = 0;
	CLEANUP(fclosep) FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
	CLEANUP(freep) char *line = NULL;
	unsigned int seen = 0;
	size_t capacity = 0;
	bool mixed = false;
	char some;

	*ret_stranger = (struct stranger){ 0 };
	if (!file) {
		closep(&fd);
		return -ESRCH;
	}
	while (!err && getline(&line, &capacity, file) > 0)
		err = parse_status_line(line, ret_stranger, &seen, &mixed);
	if (err || seen != SAW_ALL) {
		stranger_done(ret_stranger);
		stranger_init_nobody(ret_stranger);
		return err == -ENOMEM ? err : -ESRCH;
	}
	ret_stranger->has_root = readlinkat(proc_fd, "root", &some, 1) > 0;
	if (mixed) {
		ret_stranger->uid = ret_stranger->gid = STRANGER_NOBODY;
		ret_stranger->nr_groups = 0;
	}
	if (mixed || !in_our_namespace(proc_fd, "user")) /* there they are none over our files */
		ret_stranger->capabilities = 0;
	return 0;
}

static int open_process(uint32_t tgid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%" PRIu32, tgid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

uint32_t stranger_uid(uint32_t tgid)
{
	CLEANUP(stranger_done) struct stranger stranger = { 0 };
	CLEANUP(closep) int fd = open_process(tgid);

	return fd < 0 || stranger_read(fd, &stranger) ? STRANGER_GONE : stranger.uid;
}

uint32_t stranger_file_uid(uint32_t tgid)
{
	uint32_t uid = tgid ? stranger_uid(tgid) : STRANGER_GONE;

	return uid == STRANGER_GONE ? STRANGER_NOBODY : uid;
}

/* The link is read and not followed: what is there may not answer. */
bool stranger_sees_our_files(int proc_fd)
{
	char root[2];

	return readlinkat(proc_fd, "root", root, sizeof(root)) == 1 && in_our_namespace(proc_fd, "mnt");
}

uint32_t stranger_rank(uint32_t tgid, uint32_t owner)
{
	CLEANUP(stranger_done) struct stranger stranger = { 0 };
	CLEANUP(closep) int fd = open_process(tgid);

	if (fd < 0 || stranger_read(fd, &stranger) || !stranger.has_root)
		return STRANGER_GONE_RANK;
	if (stranger_sees_our_files(fd))
		return STRANGER_OUR_RANK;
	return in_our_namespace(fd, "user") ? 3 : stranger.uid == owner ? 2 : STRANGER_OWN_RANK;
}

/* The calling thread's. What is permitted to us stays permitted: nobody else's code runs in the thread. */
static int keep_capabilities(uint64_t mask)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -errno;
	data[0].effective = data[0].permitted & (uint32_t)mask;
	data[1].effective = data[1].permitted & (uint32_t)(mask >> 32);
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

/* The system calls themselves: the C library's functions change all threads. */
int stranger_become(const struct stranger *stranger)
{
	if (geteuid() != 0)
		return keep_capabilities(0);
	if (syscall(SYS_setgroups, (size_t)stranger->nr_groups, stranger->groups))
		return -errno;
	syscall(SYS_setfsgid, stranger->gid);
	syscall(SYS_setfsuid, stranger->uid);
	/* These say nothing of failure; an id that cannot be is refused and answered by the one in force. */
	if ((uint32_t)syscall(SYS_setfsgid, (gid_t)-1) != stranger->gid || (uint32_t)syscall(SYS_setfsuid, (uid_t)-1) != stranger->uid)
		return -EPERM;
	return keep_capabilities(stranger->capabilities);
}
