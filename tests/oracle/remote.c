// SPDX-License-Identifier: Apache-2.0
#include "remote.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../unit/walk_host.h"
#include "base/cleanup.h"
#include "elf/elf_file.h"
#include "unwind/unwind_table.h"

#define MAX_FILES    64
#define MAX_MAPPINGS 256
#define MAX_VDSO     65536
#define MAX_RULES    60000

struct known_file {
	char path[256];
	struct elf_file *elf;
	struct sonde_mapping place; /* nr_blocks 0: no table */
	uint64_t base_vaddr;
};

static pid_t child;
static struct walk w;
static __u64 frames[SONDE_MAX_USER_FRAMES];
static struct rule_table *rules;
static struct known_file files[MAX_FILES];
static uint32_t nr_files;
static struct sonde_mapping mappings[MAX_MAPPINGS];
static uint32_t file_of[MAX_MAPPINGS];
static uint32_t nr_mappings;
static uint8_t vdso[MAX_VDSO];

int remote_read(void *to, size_t size, uint64_t from)
{
	struct iovec local = { to, size }, remote = { (void *)from, size };

	return process_vm_readv(child, &local, 1, &remote, 1, 0) == (ssize_t)size ? 0 : -EFAULT;
}

static long read_child(void *to, __u32 size, __u64 from)
{
	return remote_read(to, size, from);
}

void remote_begin(pid_t pid)
{
	child = pid;
	host_reset();
	host_read = read_child;
	rules = rule_table_new(MAX_RULES);
	memset(&w, 0, sizeof(w));
}

static void load_table(struct known_file *file)
{
	CLEANUP(unwind_table_freep) struct unwind_table *table = NULL;
	CLEANUP(freep) struct host_row *rows = NULL;
	const struct sonde_rule *all;
	uint32_t nr;

	if (unwind_table_build(file->elf, rules, NULL, &table))
		return;
	rows = calloc(table->nr_rows, sizeof(*rows));
	if (!rows)
		return;
	for (uint32_t block = 0; block < table->nr_blocks; block++) {
		for (uint32_t i = table->blocks[block]; i < table->blocks[block + 1]; i++)
			rows[i] = (struct host_row){ .rel = ((uint64_t)block << table->block_shift) + table->rows[i].low,
						     .rule = table->rows[i].rule };
	}
	host_table(rows, table->nr_rows - 1, rows[table->nr_rows - 1].rel, table->block_shift, &file->place);
	file->base_vaddr = table->base_vaddr;
	all = rule_table_rules(rules, &nr);
	memcpy(host_rules, all, nr * sizeof(*all));
	nr_host_rules = nr;
	table->rules = NULL; /* the walk uses them after the table is freed */
}

static void open_file(struct known_file *file, uint64_t start, uint64_t end)
{
	int fd;

	if (!strcmp(file->path, "[vdso]")) {
		if (end - start > sizeof(vdso) || remote_read(vdso, end - start, start) ||
		    elf_file_open_memory(vdso, end - start, NULL, &file->elf))
			return;
	} else {
		fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd >= 0 && elf_file_open_fd(fd, NULL, &file->elf)) {
			close(fd);
			return;
		}
	}
	if (file->elf)
		load_table(file);
}

/* Returns the number of the file behind a mapping, nr_files when there is no room. */
static uint32_t find_file(const char *path, uint64_t start, uint64_t end)
{
	uint32_t i = 0;

	while (i < nr_files && strcmp(files[i].path, path) != 0)
		i++;
	if (i == nr_files && nr_files < MAX_FILES) {
		snprintf(files[i].path, sizeof(files[i].path), "%s", path);
		nr_files++;
		open_file(&files[i], start, end);
	}
	return i;
}

static void add_mapping(uint64_t start, uint64_t end, uint64_t file_off, const char *path)
{
	struct sonde_mapping *mapping = &mappings[nr_mappings];
	uint64_t elf_vaddr;
	const struct known_file *file;

	if (nr_mappings == MAX_MAPPINGS)
		return;
	*mapping = (struct sonde_mapping){ .start_pc = start, .end_pc = end };
	file_of[nr_mappings++] = MAX_FILES;
	if (*path != '/' && strcmp(path, "[vdso]") != 0)
		return;
	file_of[nr_mappings - 1] = find_file(path, start, end);
	if (file_of[nr_mappings - 1] >= nr_files)
		return;
	file = &files[file_of[nr_mappings - 1]];
	if (!file->elf || !file->place.nr_blocks || elf_file_off_to_vaddr(file->elf, file_off, &elf_vaddr))
		return;
	mapping->index_pos = file->place.index_pos;
	mapping->nr_blocks = file->place.nr_blocks;
	mapping->block_shift = file->place.block_shift;
	mapping->base_pc = start - elf_vaddr + file->base_vaddr;
}

bool remote_refresh(void)
{
	char name[32], line[512];
	FILE *maps;

	snprintf(name, sizeof(name), "/proc/%d/maps", (int)child);
	maps = fopen(name, "re");
	if (!maps)
		return false;
	nr_mappings = 0;
	while (fgets(line, sizeof(line), maps)) {
		uint64_t start, end, file_off;
		char access[8], path[256] = "";

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %255s", &start, &end, access, &file_off, path) >= 4 &&
		    access[2] == 'x' && strcmp(path, "[vsyscall]") != 0)
			add_mapping(start, end, file_off, path);
	}
	fclose(maps);
	host_process(&w, mappings, nr_mappings);
	w.serial++;
	return true;
}

struct remote_stack remote_walk(const struct user_regs_struct *regs)
{
	const uint64_t by_number[WALK_NR_REGS] = { regs->rax, regs->rdx, regs->rcx, regs->rbx, regs->rsi, regs->rdi, regs->rbp, regs->rsp,
						   regs->r8,  regs->r9,	 regs->r10, regs->r11, regs->r12, regs->r13, regs->r14, regs->r15 };

	for (int i = 0; i < WALK_NR_REGS; i++)
		w.regs[i] = by_number[i];
	w.pc = regs->rip;
	w.sp = regs->rsp;
	w.bp = regs->rbp;
	host_tls_base = regs->fs_base;
	host_walk(&w, frames);
	return (struct remote_stack){ .frames = (const uint64_t *)frames, .nr = w.nr_frames, .stop = w.stop };
}

void remote_place(uint64_t pc, char *to, size_t size)
{
	for (uint32_t i = 0; i < nr_mappings; i++) {
		if (pc < mappings[i].start_pc || pc >= mappings[i].end_pc)
			continue;
		if (file_of[i] < nr_files && mappings[i].nr_blocks)
			snprintf(to, size, "%s+%#" PRIx64,
				 strrchr(files[file_of[i]].path, '/') ? strrchr(files[file_of[i]].path, '/') + 1 : files[file_of[i]].path,
				 (uint64_t)(pc - mappings[i].base_pc + files[file_of[i]].base_vaddr));
		else
			snprintf(to, size, "%s:%#" PRIx64, file_of[i] < nr_files ? files[file_of[i]].path : "?", pc);
		return;
	}
	snprintf(to, size, "?:%#" PRIx64, pc);
}
