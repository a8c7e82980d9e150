// SPDX-License-Identifier: Apache-2.0
#include "naming/kernel_lines.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/file.h"
#include "base/number.h"
#include "base/reader.h"
#include "elf/symbol_value.h"

#define NOTES_PATH    "/sys/kernel/notes"
#define KALLSYMS_PATH "/proc/kallsyms"
#define MAX_NOTES     (64u << 10)
#define BASE_SYMBOL   "_stext" /* the start of the kernel's text on all architectures */

struct kernel_lines {
	struct elf_file *elf;
	uint64_t shift; /* kaddr = elf_vaddr + shift */
	char path[PATH_MAX];
};

/* Size 0: the kernel has none or does not report it. */
static struct build_id running_build_id(void)
{
	CLEANUP(closep) int fd = open(NOTES_PATH, O_RDONLY | O_CLOEXEC);
	CLEANUP(freep) uint8_t *bytes = malloc(MAX_NOTES);
	struct build_id id = { 0 };
	struct reader reader;
	ssize_t size = fd >= 0 && bytes ? read(fd, bytes, MAX_NOTES) : 0;

	reader = reader_of(bytes, size > 0 ? (size_t)size : 0);
	while (reader_left(&reader) && !id.size) {
		uint32_t name_size = reader_u32(&reader), text_size = reader_u32(&reader), type = reader_u32(&reader);
		struct reader name = reader_sub(&reader, ((size_t)name_size + 3) & ~(size_t)3);
		struct reader text = reader_sub(&reader, ((size_t)text_size + 3) & ~(size_t)3);

		if (reader.bad)
			return id;
		if (type != NT_GNU_BUILD_ID || name_size != 4 || memcmp(name.pos, "GNU", 4) || text_size > BUILD_ID_MAX)
			continue;
		reader_copy(&text, id.bytes, text_size);
		id.size = (uint8_t)text_size;
	}
	return id;
}

/* Returns the address of a symbol in the running kernel. Fast only for one near the start of the list. */
static int find_in_kernel(const char *name, uint64_t *ret_kaddr)
{
	CLEANUP(fclosep) FILE *file = fopen(KALLSYMS_PATH, "re");
	CLEANUP(freep) char *line = NULL;
	size_t capacity = 0;

	while (file && getline(&line, &capacity, file) > 0) {
		const char *at = line, *symbol = strrchr(line, ' ');

		line[strcspn(line, "\n")] = '\0';
		if (!symbol || strcmp(symbol + 1, name) || number_hex(&at, line + strlen(line), ret_kaddr))
			continue;
		return *ret_kaddr ? 0 : -EACCES;
	}
	return file ? -ENOENT : -errno;
}

/* /lib/modules/R/build may lead into a user's directory, which may contain anything. */
static int open_file(const char *path, struct diag *diag)
{
	struct stat st;
	int fd = file_open_regular(path, &st);

	if (fd == -ENOEXEC)
		return diag_errno(diag, ENOEXEC, "%s is no file", path);
	return fd < 0 ? diag_errno(diag, -fd, "%s: %s", path, strerror(-fd)) : fd;
}

static int check(const struct kernel_lines *lines, const struct build_id *wanted, struct diag *diag)
{
	const struct build_id *id = elf_file_build_id(lines->elf);

	if (!wanted->size)
		return diag_errno(diag, ENODATA, "%s is not used: the kernel does not tell its build id", lines->path);
	if (id->size != wanted->size || memcmp(id->bytes, wanted->bytes, id->size))
		return diag_errno(diag, ESTALE, "%s is not used: it is of another kernel, its build id differs from that of " NOTES_PATH,
				  lines->path);
	if (!elf_file_find_section(lines->elf, ".debug_info"))
		return diag_errno(diag, ENODATA, "%s is not used: it has no debug info", lines->path);
	return 0;
}

static int find_shift(struct kernel_lines *lines, struct diag *diag)
{
	uint64_t kaddr, elf_vaddr;
	int err = symbol_value(lines->elf, BASE_SYMBOL, diag, &elf_vaddr);

	if (err)
		return diag_errno(diag, EBADMSG, "%s is not used: it does not tell where " BASE_SYMBOL " is", lines->path);
	err = find_in_kernel(BASE_SYMBOL, &kaddr);
	if (err)
		return diag_errno(diag, EACCES,
				  "%s is not used: the kernel does not tell where it is (CAP_SYSLOG, or kernel.kptr_restrict=0)",
				  lines->path);
	lines->shift = kaddr - elf_vaddr;
	return 0;
}

static int open_one(const char *path, const struct build_id *wanted, struct diag *diag, struct kernel_lines **ret_lines)
{
	CLEANUP(kernel_lines_freep) struct kernel_lines *lines = calloc(1, sizeof(*lines));
	CLEANUP(closep) int fd = -1;
	int err;

	if (!lines)
		return -ENOMEM;
	fd = open_file(path, diag);
	if (fd < 0)
		return fd;
	snprintf(lines->path, sizeof(lines->path), "%s", path);
	err = elf_file_open_fd(fd, diag, &lines->elf);
	if (err)
		return err;
	fd = -1; /* lines->elf owns it now */
	err = check(lines, wanted, diag);
	if (!err)
		err = find_shift(lines, diag);
	if (!err)
		*ret_lines = MOVE(lines);
	return err;
}

/* Searches where perf does. A file of another kernel does not end the search; it is reported if no other file fits. */
static int look_for(const struct build_id *wanted, struct diag *diag, struct kernel_lines **ret_lines)
{
	static const char *const locations[][2] = { { "/usr/lib/debug/boot/vmlinux-", "" }, { "/usr/lib/debug/lib/modules/", "/vmlinux" },
						 { "/lib/modules/", "/build/vmlinux" }, { "/boot/vmlinux-", "" } };
	char path[PATH_MAX], hex[2 * BUILD_ID_MAX + 1];
	struct diag first = { 0 };
	struct utsname system;
	int first_err = 0, err;

	if (uname(&system))
		return -errno;
	build_id_text(wanted, hex);
	for (uint32_t i = 0; i <= ARRAY_SIZE(locations); i++) {
		struct diag why = { 0 };

		if (i < ARRAY_SIZE(locations))
			snprintf(path, sizeof(path), "%s%s%s", locations[i][0], system.release, locations[i][1]);
		else
			snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + (wanted->size ? 2 : 0));
		err = open_one(path, wanted, &why, ret_lines);
		if (!err || err == -ENOMEM)
			return err;
		if (err != -ENOENT && err != -ENOTDIR && !first_err) {
			first_err = err;
			first = why;
		}
	}
	return first_err ? diag_errno(diag, -first_err, "%s", first.text) : -ENOENT;
}

int kernel_lines_open(const char *path, struct diag *diag, struct kernel_lines **ret_lines)
{
	struct build_id wanted = running_build_id();

	return path ? open_one(path, &wanted, diag, ret_lines) : look_for(&wanted, diag, ret_lines);
}

void kernel_lines_free(struct kernel_lines *lines)
{
	if (!lines)
		return;
	elf_file_free(lines->elf);
	free(lines);
}

const char *kernel_lines_path(const struct kernel_lines *lines)
{
	return lines->path;
}

uint64_t kernel_lines_kaddr(const struct kernel_lines *lines, uint64_t elf_vaddr)
{
	return elf_vaddr + lines->shift;
}

int kernel_lines_ask(const struct kernel_lines *lines, struct parser *parser, const uint64_t *kaddrs, uint32_t nr, worker_open_fn open,
		     void *open_arg, struct diag *diag, struct buffer *answers)
{
	CLEANUP(freep) uint64_t *elf_vaddrs = calloc(nr + 1, sizeof(*elf_vaddrs));
	struct parser_names request = { .elf = lines->elf, .path = lines->path, .elf_vaddrs = elf_vaddrs, .nr = nr, .lines = true,
					 .open = open, .open_arg = open_arg };

	if (!elf_vaddrs)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++)
		elf_vaddrs[i] = kaddrs[i] - lines->shift;
	return parser_names(parser, &request, diag, answers);
}
