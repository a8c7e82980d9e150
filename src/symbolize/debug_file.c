// SPDX-License-Identifier: Apache-2.0
#include "symbolize/debug_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>


#define CHUNK_BYTES ((size_t)256 << 10)

struct debug_link {
	char name[NAME_MAX + 1]; /* has no slash */
	uint32_t crc;
};

static bool same_build_id(const struct elf_file *a, const struct elf_file *b)
{
	const struct build_id *id_a = elf_file_build_id(a), *id_b = elf_file_build_id(b);

	return id_a->size == id_b->size && memcmp(id_a->bytes, id_b->bytes, id_a->size) == 0;
}

/* In a worker the worker's owner opens the file, and has checked it. Returns a descriptor or a negative errno. */
static int open_regular(const char *path, uint64_t max_bytes)
{
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	return (uint64_t)st.st_size > max_bytes ? -EFBIG : MOVE_FD(fd);
}

/* Takes over `fd`. */
static int open_elf(int fd, struct elf_file **ret_elf)
{
	int err = elf_file_open_fd(fd, NULL, ret_elf);

	if (err)
		close(fd);
	return err;
}

static int open_by_build_id(const struct elf_file *elf, const char *debug_dir, struct elf_file **ret_debug)
{
	CLEANUP(elf_file_freep) struct elf_file *debug = NULL;
	const struct build_id *id = elf_file_build_id(elf);
	char text[2 * BUILD_ID_MAX + 1], path[PATH_MAX];
	int fd, err;

	if (id->size < 2)
		return -ENOENT;
	build_id_text(id, text);
	if (snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", debug_dir, text, text + 2) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open_regular(path, DEBUG_FILE_MAX_BYTES);
	if (fd < 0)
		return fd;
	err = open_elf(fd, &debug);
	if (err)
		return err;
	if (!same_build_id(elf, debug))
		return -ENOENT;
	*ret_debug = MOVE(debug);
	return 0;
}

/* The section has a name, its NUL, zeroes up to a multiple of 4, and a CRC-32 of the file. */
static int read_debug_link(const struct elf_file *elf, struct debug_link *ret_link)
{
	const struct elf_section *section = elf_file_find_section(elf, ".gnu_debuglink");
	CLEANUP(freep) void *bytes = NULL;
	size_t size, name_size, crc_at;
	int err;

	if (!section)
		return -ENOENT;
	err = elf_file_read_section(elf, section, sizeof(*ret_link) + 8, NULL, &bytes, &size);
	if (err)
		return err;
	name_size = strnlen(bytes, size);
	crc_at = (name_size + 4) & ~(size_t)3;
	if (name_size == 0 || name_size > NAME_MAX || crc_at + 4 > size || memchr(bytes, '/', name_size))
		return -EBADMSG;
	memcpy(ret_link->name, bytes, name_size + 1);
	memcpy(&ret_link->crc, (char *)bytes + crc_at, sizeof(ret_link->crc));
	return 0;
}

static int file_crc(int fd, uint32_t *ret_crc)
{
	CLEANUP(freep) void *chunk = malloc(CHUNK_BYTES);
	uint64_t at = 0;
	uLong crc = crc32(0, NULL, 0);

	if (!chunk)
		return -ENOMEM;
	while (at <= DEBUG_LINK_MAX_BYTES) {
		ssize_t got = pread(fd, chunk, CHUNK_BYTES, (off_t)at);

		if (got < 0)
			return -errno;
		if (got == 0) {
			*ret_crc = (uint32_t)crc;
			return 0;
		}
		crc = crc32(crc, chunk, (uInt)got);
		at += (uint64_t)got;
	}
	return -EFBIG; /* the file grew */
}

static int open_linked(const struct elf_file *elf, const char *path, uint32_t want_crc, struct elf_file **ret_debug)
{
	CLEANUP(elf_file_freep) struct elf_file *debug = NULL;
	CLEANUP(closep) int fd = open_regular(path, DEBUG_LINK_MAX_BYTES);
	uint32_t crc = 0;
	int err;

	if (fd < 0)
		return fd;
	err = file_crc(fd, &crc);
	if (err)
		return err;
	if (crc != want_crc)
		return -ENOENT;
	err = open_elf(MOVE_FD(fd), &debug);
	if (err)
		return err;
	/* A file's build id may have been stripped; a different one means the wrong file. */
	if (elf_file_build_id(elf)->size && elf_file_build_id(debug)->size && !same_build_id(elf, debug))
		return -ENOENT;
	*ret_debug = MOVE(debug);
	return 0;
}

static int open_by_link(const struct elf_file *elf, const char *path, const char *debug_dir, struct elf_file **ret_debug)
{
	const struct {
		const char *before, *behind;
	} places[] = { { "", "" }, { "", "/.debug" }, { debug_dir, "" } };
	char candidate[PATH_MAX];
	struct debug_link link;
	int dir_size, err;

	if (!path || path[0] != '/' || strlen(path) >= PATH_MAX)
		return -ENOENT;
	err = read_debug_link(elf, &link);
	if (err)
		return err;
	dir_size = (int)(strrchr(path, '/') - path);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		int size =
		    snprintf(candidate, sizeof(candidate), "%s%.*s%s/%s", places[i].before, dir_size, path, places[i].behind, link.name);

		if (size < (int)sizeof(candidate) && strcmp(candidate, path) != 0 && open_linked(elf, candidate, link.crc, ret_debug) == 0)
			return 0;
	}
	return -ENOENT;
}

int debug_file_open(const struct elf_file *elf, const char *path, const char *debug_dir, struct elf_file **ret_debug)
{
	if (open_by_build_id(elf, debug_dir, ret_debug) == 0 || open_by_link(elf, path, debug_dir, ret_debug) == 0)
		return 0;
	return -ENOENT;
}

int debug_file_take(const struct elf_file *elf, int fd, struct elf_file **ret_debug)
{
	CLEANUP(elf_file_freep) struct elf_file *debug = NULL;
	int err = open_elf(fd, &debug);

	if (err)
		return err;
	if (!elf_file_build_id(elf)->size || !same_build_id(elf, debug))
		return -ENOENT;
	if (!elf_file_find_section(debug, ".symtab") && !elf_file_find_section(debug, ".debug_info"))
		return -ENODATA;
	*ret_debug = MOVE(debug);
	return 0;
}
