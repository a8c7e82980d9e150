// SPDX-License-Identifier: Apache-2.0
#include "proxy/credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/number.h"

#define MAX_GROUPS 65536 /* NGROUPS_MAX of the kernel */
/* Those that bypass file permissions. */
#define PASSING_CAPABILITIES ((uint64_t)1 << CAP_DAC_OVERRIDE | (uint64_t)1 << CAP_DAC_READ_SEARCH)

void credentials_init_nobody(struct credentials *credentials)
{
	*credentials = (struct credentials){ .uid = CREDENTIALS_NOBODY, .gid = CREDENTIALS_NOBODY };
}

void credentials_done(struct credentials *credentials)
{
	free(credentials->groups);
	credentials->groups = NULL;
}

/* Returns the next word of the text and terminates it there; NULL at the end. */
static const char *next_word(char **rest)
{
	char *word = *rest + strspn(*rest, " \t\n");
	char *end = word + strcspn(word, " \t\n");

	*rest = *end ? end + 1 : end;
	*end = '\0';
	return word[0] ? word : NULL;
}

/* "real effective saved filesystem": takes the last and sets *ret_mixed when they differ. False: not such a line. */
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

/* Reads all of them: a group may also take rights away. */
static int parse_groups(char *text, struct credentials *credentials)
{
	uint32_t *groups = calloc(strlen(text) / 2 + 1, sizeof(*groups)), nr = 0; /* a digit and a blank each */
	const char *word;
	char *rest = text;
	uint64_t value;

	if (!groups)
		return -ENOMEM;
	free(credentials->groups);
	credentials->groups = groups;
	while ((word = next_word(&rest))) {
		if (nr == MAX_GROUPS || number_u64(word, UINT32_MAX, &value))
			return -EINVAL;
		groups[nr++] = (uint32_t)value;
	}
	credentials->nr_groups = nr;
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
	if (number_hex(&text, text + strcspn(text, "\n"), ret_mask))
		return -EINVAL;
	*ret_mask &= PASSING_CAPABILITIES;
	return 0;
}

/* `kind`: a name in /proc/PID/ns. */
static bool in_our_namespace(int proc_fd, const char *kind)
{
	struct stat theirs, ours;
	char path[16], own[32];

	snprintf(path, sizeof(path), "ns/%s", kind);
	snprintf(own, sizeof(own), "/proc/self/%s", path);
	return !fstatat(proc_fd, path, &theirs, 0) && !stat(own, &ours) && theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

enum { SAW_UID = 1, SAW_GID = 2, SAW_GROUPS = 4, SAW_CAPABILITIES = 8, SAW_ALL = 15 };

static int parse_status_line(char *line, struct credentials *credentials, unsigned int *seen, bool *mixed)
{
	if (strncmp(line, "Uid:\t", 5) == 0) {
		*seen |= SAW_UID;
		return parse_ids(line + 5, &credentials->uid, mixed) ? 0 : -EINVAL;
	}
	if (strncmp(line, "Gid:\t", 5) == 0) {
		*seen |= SAW_GID;
		return parse_ids(line + 5, &credentials->gid, mixed) ? 0 : -EINVAL;
	}
	if (strncmp(line, "Groups:\t", 8) == 0) {
		*seen |= SAW_GROUPS;
		return parse_groups(line + 8, credentials);
	}
	if (strncmp(line, "CapEff:\t", 8) == 0) {
		*seen |= SAW_CAPABILITIES;
		return parse_capabilities(line + 8, &credentials->capabilities);
	}
	if (strncmp(line, "NSpid:\t", 7) == 0)
		return parse_last_number(line + 7, &credentials->inner_tgid);
	return 0;
}

/* False: the process has ended. */
static bool has_root(int proc_fd)
{
	char some;

	return readlinkat(proc_fd, "root", &some, 1) > 0;
}

int credentials_read(int proc_fd, struct credentials *ret_credentials)
{
	int fd = openat(proc_fd, "status", O_RDONLY | O_CLOEXEC), err = 0;
	CLEANUP(fclosep) FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
	CLEANUP(freep) char *line = NULL;
	unsigned int seen = 0;
	size_t capacity = 0;
	bool mixed = false;

	*ret_credentials = (struct credentials){ 0 };
	if (!file) {
		closep(&fd);
		return -ESRCH;
	}
	while (!err && getline(&line, &capacity, file) > 0)
		err = parse_status_line(line, ret_credentials, &seen, &mixed);
	if (err || seen != SAW_ALL) {
		credentials_done(ret_credentials);
		credentials_init_nobody(ret_credentials);
		return err == -ENOMEM ? err : -ESRCH;
	}
	ret_credentials->has_root = has_root(proc_fd);
	if (mixed) {
		ret_credentials->uid = ret_credentials->gid = CREDENTIALS_NOBODY;
		ret_credentials->nr_groups = 0;
	}
	/* Capabilities of another user namespace do not apply to our files. */
	if (mixed || !in_our_namespace(proc_fd, "user"))
		ret_credentials->capabilities = 0;
	return 0;
}

bool credentials_pass_all(const struct credentials *credentials)
{
	return !geteuid() && !credentials->uid && credentials->capabilities == PASSING_CAPABILITIES;
}

static int open_process(uint32_t tgid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%" PRIu32, tgid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

uint32_t credentials_uid(uint32_t tgid)
{
	CLEANUP(credentials_done) struct credentials credentials = { 0 };
	CLEANUP(closep) int fd = open_process(tgid);

	return fd < 0 || credentials_read(fd, &credentials) ? CREDENTIALS_GONE : credentials.uid;
}

uint32_t credentials_file_uid(uint32_t tgid)
{
	uint32_t uid = tgid ? credentials_uid(tgid) : CREDENTIALS_GONE;

	return uid == CREDENTIALS_GONE ? CREDENTIALS_NOBODY : uid;
}

/* Reads the link without following it: its target may not answer. */
bool credentials_see_our_files(int proc_fd)
{
	char root[2];

	return readlinkat(proc_fd, "root", root, sizeof(root)) == 1 && in_our_namespace(proc_fd, "mnt");
}

/* Most processes have our mounts, or such as root made: only the user of the others is read. */
uint32_t credentials_rank(uint32_t tgid, uint32_t owner)
{
	CLEANUP(credentials_done) struct credentials credentials = { 0 };
	CLEANUP(closep) int fd = open_process(tgid);

	if (fd < 0)
		return CREDENTIALS_GONE_RANK;
	if (credentials_see_our_files(fd))
		return CREDENTIALS_OUR_RANK;
	if (!has_root(fd))
		return CREDENTIALS_GONE_RANK;
	if (in_our_namespace(fd, "user"))
		return 3;
	if (credentials_read(fd, &credentials) || !credentials.has_root)
		return CREDENTIALS_GONE_RANK;
	return credentials.uid == owner ? 2 : CREDENTIALS_OWN_RANK;
}

/* Changes the calling thread only. Our permitted set stays: no foreign code runs in the thread. */
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

/* Uses the raw system calls: the C library's functions change all threads. */
int credentials_become(const struct credentials *credentials)
{
	if (credentials_pass_all(credentials))
		return 0;
	if (geteuid() != 0)
		return keep_capabilities(0);
	if (syscall(SYS_setgroups, (size_t)credentials->nr_groups, credentials->groups))
		return -errno;
	syscall(SYS_setfsgid, credentials->gid);
	syscall(SYS_setfsuid, credentials->uid);
	/* These two do not report failure: they refuse an invalid id and return the id in force. */
	if ((uint32_t)syscall(SYS_setfsgid, (gid_t)-1) != credentials->gid ||
	    (uint32_t)syscall(SYS_setfsuid, (uid_t)-1) != credentials->uid)
		return -EPERM;
	return keep_capabilities(credentials->capabilities);
}
