// SPDX-License-Identifier: Apache-2.0
/* go_labels_dump PID TIMES: reads the labels of a Go program's threads with the kernel side's code (bpf/labels/go_labels.h), each
 * thread stopped by ptrace. TIMES times, prints a line "FUNCTION KEY=VALUE,..." for each thread that runs a goroutine's function of
 * package main. The labels are sorted; "-" for none, a trailing "+N" for N omitted labels. FUNCTION is the innermost such function that
 * is not main.leaf or main.work, by the chain of frame pointers. `FUNCTION lost` when the labels cannot be read. */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit/walk_host.h"

struct label_walk;
static struct label_walk *label_walk_of(struct walk *w);
#include "labels/go_labels.h"
#include "base/number.h"
#include "pclntab/go_pclntab.h"
#include "runtime/runtime.h"

#define MAX_FRAMES 64

static struct label_walk labels;
static struct walk native;
static pid_t pid;

static struct label_walk *label_walk_of(struct walk *w)
{
	return &labels;
}

static long read_memory(void *to, __u32 size, __u64 from)
{
	struct iovec local = { to, size }, remote = { (void *)from, size };

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)size ? 0 : -1;
}

/* The goroutine's own function; "" when there is none. */
static const char *function_of(const struct go_pclntab *table, const struct user_regs_struct *regs)
{
	uint64_t pc = regs->rip, frame[2] = { regs->rbp, 0 };
	struct go_function function;

	for (int i = 0; i < MAX_FRAMES; i++) {
		if (go_pclntab_find(table, pc, &function))
			function.name = "";
		if (!strcmp(function.name, "runtime.mcall")) /* the thread has left the goroutine, which may run elsewhere */
			break;
		if (!strncmp(function.name, "main.", 5) && strcmp(function.name, "main.leaf") && strcmp(function.name, "main.work"))
			return function.name;
		if (read_memory(frame, sizeof(frame), frame[0]))
			break;
		pc = frame[1] - 1;
	}
	return "";
}

static int by_key(const void *a, const void *b)
{
	return memcmp(((const struct sonde_label *)a)->key, ((const struct sonde_label *)b)->key, SONDE_LABEL_KEY_BYTES);
}

static uint32_t shown(uint32_t bytes, uint32_t max)
{
	return bytes < max ? bytes : max;
}

static void print_labels(const char *function, const struct sonde_go *go)
{
	int result = go_labels(&native, &labels, go, (uint32_t)pid);

	printf("%s ", function);
	if (result != GO_LABELS_FOUND) {
		puts(result == GO_LABELS_NONE ? "-" : "lost");
		return;
	}
	qsort(labels.labels, labels.record.nr_labels, sizeof(*labels.labels), by_key);
	for (uint32_t i = 0; i < labels.record.nr_labels; i++) {
		const struct sonde_label *label = &labels.labels[i];

		printf("%s%.*s=%.*s", i ? "," : "", (int)shown(label->key_bytes, sizeof(label->key)), label->key,
		       (int)shown(label->text_bytes, sizeof(label->text)), label->text);
	}
	if (labels.record.nr_left)
		printf("+%u", labels.record.nr_left);
	putchar('\n');
}

static void look_at(pid_t tid, const struct go_pclntab *table, const struct sonde_go *go)
{
	struct user_regs_struct regs;
	int status;

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
		return;
	if (!ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) && waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status) &&
	    !ptrace(PTRACE_GETREGS, tid, NULL, &regs)) {
		const char *function = function_of(table, &regs);

		host_tls_base = regs.fs_base;
		if (*function)
			print_labels(function, go);
	}
	ptrace(PTRACE_DETACH, tid, NULL, NULL);
}

static void look_at_all(const struct go_pclntab *table, const struct sonde_go *go)
{
	char path[64];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] != '.')
			look_at((pid_t)strtol(entry->d_name, NULL, 10), table, go);
	}
	if (dir)
		closedir(dir);
}

int main(int argc, char **argv)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(go_pclntab_freep) struct go_pclntab *table = NULL;
	static struct runtime_image image;
	struct diag diag = { 0 };
	struct sonde_go go;
	char path[64];
	int fd;

	if (argc != 3)
		return 1;
	pid = (pid_t)strtol(argv[1], NULL, 10);
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || elf_file_open_fd(fd, &diag, &elf) || go_pclntab_read(elf, &diag, &table) || runtime_go.examine(elf, &image) ||
	    runtime_go.place(&image, 0, &(struct libc_facts){ 0 }, &(struct runtime_memory){ 0 }, &diag, &go)) {
		fprintf(stderr, "go_labels_dump: %s\n", diag.text);
		return 1;
	}
	host_read = read_memory;
	for (long i = strtol(argv[2], NULL, 10); i > 0; i--) {
		look_at_all(table, &go);
		usleep(2000);
	}
	return 0;
}
