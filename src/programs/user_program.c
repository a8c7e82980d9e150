// SPDX-License-Identifier: Apache-2.0
#include "programs/user_program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf/elf_file.h"

#define MAX_PATH_BYTES 4096

/* Opens it where a shell would find it. */
static int open_program(const char *path)
{
	const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK; /* it may be a FIFO */
	const char *folders = getenv("PATH");
	char full[MAX_PATH_BYTES];

	if (strchr(path, '/'))
		return open(path, flags);
	while (folders && *folders) {
		size_t size = strcspn(folders, ":");
		int fd;

		snprintf(full, sizeof(full), "%.*s/%s", (int)size, folders, path);
		fd = access(full, X_OK) ? -1 : open(full, flags);
		if (fd >= 0)
			return fd;
		folders += size + (folders[size] == ':');
	}
	errno = ENOENT;
	return -1;
}

/* libbpf divides by the size of an entry. */
static bool has_sound_symbols(const struct elf_file *elf)
{
	for (uint32_t i = 0; i < elf_file_nr_sections(elf); i++) {
		const struct elf_section *section = elf_file_section(elf, i);

		if ((section->type == SHT_SYMTAB || section->type == SHT_DYNSYM) && section->entry_size != sizeof(Elf64_Sym))
			return false;
	}
	return true;
}

static bool is_go(const struct elf_file *elf)
{
	static const char *const names[] = { ".gopclntab", ".data.rel.ro.gopclntab", ".go.buildinfo", ".note.go.buildid" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (elf_file_find_section(elf, names[i]))
			return true;
	}
	return false;
}

static int damaged(const char *path, struct diag *diag)
{
	return diag_errno(diag, ENOEXEC, "%.200s is a damaged ELF file", path);
}

int user_program_look(const char *path, struct diag *diag, struct user_program *ret_program)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	struct user_program program = { 0 };
	unsigned char ident[EI_NIDENT] = "";
	int fd = open_program(path), err;
	struct stat st;

	if (fd < 0 && errno == ENOENT && !strchr(path, '/')) {
		*ret_program = program;
		return 0;
	}
	if (fd < 0)
		return diag_errno(diag, errno, "cannot open %.200s: %s", path, strerror(errno));
	err = fstat(fd, &st) || !S_ISREG(st.st_mode) || pread(fd, ident, sizeof(ident), 0) != sizeof(ident) ||
		      memcmp(ident, ELFMAG, SELFMAG) != 0
		      ? diag_errno(diag, ENOEXEC, "%.200s is no program and no library (ELF file)", path)
		      : 0;
	if (!err && ident[EI_CLASS] == ELFCLASS64)
		err = elf_file_open_fd(fd, NULL, &elf) ? damaged(path, diag) : 0;
	if (!elf)
		close(fd);
	if (err)
		return err;
	if (elf && !has_sound_symbols(elf))
		return damaged(path, diag);
	program.moves_stacks = elf && is_go(elf);
	program.may_throw = elf && elf_file_find_section(elf, ".gcc_except_table");
	program.no_args = !elf ? "of 32-bit code" : program.moves_stacks ? "of Go" : NULL;
	*ret_program = program;
	return 0;
}
