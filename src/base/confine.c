// SPDX-License-Identifier: Apache-2.0
#include "base/confine.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/cleanup.h"

/* From include/uapi/linux/landlock.h; older headers lack some of it. */
#define SYS_CREATE_RULESET 444
#define SYS_ADD_RULE	   445
#define SYS_RESTRICT_SELF  446
#define ASK_VERSION	   1
#define RULE_PATH_BENEATH  1
#define EXECUTE		   (1ULL << 0)
#define WRITE_FILE	   (1ULL << 1)
#define READ_FILE	   (1ULL << 2)
#define READ_DIR	   (1ULL << 3)
#define REMOVE_FILE	   (1ULL << 5)
#define MAKE_REG	   (1ULL << 8)
#define TRUNCATE	   (1ULL << 14)
#define WRITING		   (0x1ff0 | WRITE_FILE) /* includes creating and removing files of all kinds */
#define TCP		   3 /* bind, connect */
#define SCOPES		   3 /* abstract sockets, signals */
#define VERSION_TRUNCATE   3
#define VERSION_TCP	   4
#define VERSION_SCOPES	   6

struct ruleset {
	uint64_t files, net, scopes;
};

struct path_rule {
	uint64_t allowed;
	int32_t fd;
};

static struct ruleset ruleset_of(long version)
{
	return (struct ruleset){
		.files = WRITING | (version >= VERSION_TRUNCATE ? TRUNCATE : 0),
		.net = version >= VERSION_TCP ? TCP : 0,
		.scopes = version >= VERSION_SCOPES ? SCOPES : 0,
	};
}

static size_t bytes_of(const struct ruleset *rules)
{
	return rules->scopes ? sizeof(*rules) : rules->net ? offsetof(struct ruleset, scopes) : offsetof(struct ruleset, net);
}

/* Finds the path to allow for an output: the directory of a regular file; else the output itself (a device, a FIFO, or a file that was
 * unlinked). Returns true if it is a directory. */
static bool place_of(const char *output, char place[PATH_MAX])
{
	struct stat st, named;
	bool is_there = !stat(output, &st), is_named = realpath(output, place) && !stat(place, &named) && is_there &&
						       named.st_dev == st.st_dev && named.st_ino == st.st_ino;
	char *slash;

	if (!is_named)
		snprintf(place, PATH_MAX, "%s", output);
	if (is_there && (!is_named || !S_ISREG(st.st_mode)))
		return false;
	slash = strrchr(place, '/');
	if (slash)
		slash[slash == place] = '\0';
	else
		snprintf(place, PATH_MAX, ".");
	return true;
}

/* A path that cannot be opened is skipped: its later use fails and reports the error. */
static void allow(int ruleset, const char *path, uint64_t allowed)
{
	CLEANUP(closep) int fd = open(path, O_PATH | O_CLOEXEC);
	const struct path_rule rule = { .allowed = allowed, .fd = fd };

	if (fd >= 0 && syscall(SYS_ADD_RULE, ruleset, RULE_PATH_BENEATH, &rule, 0))
		return; /* a pipe is in no file system */
}

static void allow_output(int ruleset, const char *output, uint64_t handled)
{
	char place[PATH_MAX];
	bool is_folder = place_of(output, place);

	allow(ruleset, place, (WRITE_FILE | TRUNCATE | (is_folder ? MAKE_REG | REMOVE_FILE : 0)) & handled);
}

static int make_ruleset(const struct ruleset *rules)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -1 : (int)syscall(SYS_CREATE_RULESET, rules, bytes_of(rules), 0);
}

static void restrict_by(int ruleset)
{
	if (syscall(SYS_RESTRICT_SELF, ruleset, 0))
		return; /* the kernel's limit of 16 layers is reached: those must do */
}

void confine_writing(const char *const *outputs, uint32_t nr_outputs)
{
	struct ruleset rules = ruleset_of(syscall(SYS_CREATE_RULESET, NULL, 0, ASK_VERSION));
	CLEANUP(closep) int ruleset = make_ruleset(&rules);

	if (ruleset < 0)
		return;
	allow_output(ruleset, "/dev/null", rules.files); /* helpers have it as standard input and output */
	for (uint32_t i = 0; i < nr_outputs; i++)
		allow_output(ruleset, outputs[i], rules.files);
	restrict_by(ruleset);
}

void confine_reading(const char *const *inputs, uint32_t nr_inputs)
{
	const struct ruleset rules = { .files = EXECUTE | READ_FILE | READ_DIR };
	CLEANUP(closep) int ruleset = make_ruleset(&rules);

	if (ruleset < 0)
		return;
	for (uint32_t i = 0; i < nr_inputs; i++)
		allow(ruleset, inputs[i], READ_FILE);
	restrict_by(ruleset);
}
