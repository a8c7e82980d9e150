// SPDX-License-Identifier: Apache-2.0
#include "naming/kernel_modules.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/small_file.h"

#define LIST_ROOM (256u << 10) /* four times the size on a desktop */

/* "name size users dependents state address", optionally followed by taints: kernel/module/procfs.c, m_show. */
enum { FIELD_NAME, FIELD_SIZE, FIELD_USERS, FIELD_DEPENDENTS, FIELD_STATE };

static bool is_passing(int field)
{
	return field == FIELD_USERS || field == FIELD_DEPENDENTS;
}

/* The inode number of a module's directory is never reused (fs/kernfs/dir.c, kernfs_ino). It tells the module from an earlier one of the
 * same name, size and address. */
static uint64_t hash_directory(int folder_fd, const char *name, size_t length, uint64_t hash)
{
	char path[256];
	struct stat st;

	if (length >= sizeof(path))
		return hash;
	memcpy(path, name, length);
	path[length] = '\0';
	if (folder_fd < 0 || fstatat(folder_fd, path, &st, 0))
		return hash;
	return hash_bytes(&st.st_ino, sizeof(st.st_ino), hash);
}

static uint64_t hash_line(int folder_fd, const char *line, size_t length, uint64_t hash)
{
	const char *end = line + length;

	for (int field = FIELD_NAME; line < end; field++) {
		const char *blank = memchr(line, ' ', (size_t)(end - line));
		size_t size = (size_t)((blank ? blank : end) - line);

		if (!is_passing(field))
			hash = hash_bytes(line, size, hash);
		if (field == FIELD_NAME)
			hash = hash_directory(folder_fd, line, size, hash);
		line += size + 1;
	}
	return hash;
}

uint64_t kernel_modules_hash(const char *list, const char *folder)
{
	CLEANUP(freep) char *text = malloc(LIST_ROOM);
	CLEANUP(closep) int folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	uint64_t hash = 0;

	if (!text || small_file_read(AT_FDCWD, list, text, LIST_ROOM))
		return 0;
	for (const char *line = text; *line;) {
		size_t length = strcspn(line, "\n");

		hash = hash_line(folder_fd, line, length, hash);
		line += length + (line[length] == '\n');
	}
	return hash;
}
