// SPDX-License-Identifier: Apache-2.0
#include "naming/bpf_code.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bpf/bpf.h>

#include "base/buffer.h"

#define MAX_FUNCTIONS 256 /* per program: BPF_MAX_SUBPROGS of include/linux/bpf_verifier.h */
#define MAX_BYTES     ((size_t)4 << 20) /* of the list for all programs */

static int by_start(const void *left, const void *right)
{
	const struct kernel_code *a = left, *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

/* How far CLOCK_BOOTTIME, the clock of a program's load time, is ahead of CLOCK_MONOTONIC. */
static uint64_t suspended_ns(void)
{
	struct timespec boot, monotonic;

	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	clock_gettime(CLOCK_BOOTTIME, &boot);
	return (uint64_t)(boot.tv_sec - monotonic.tv_sec) * 1000000000u + (uint64_t)boot.tv_nsec - (uint64_t)monotonic.tv_nsec;
}

/* Adds the functions of one program. Those that the kernel does not report are left out. */
static void add_program(struct buffer *code, uint64_t ahead_ns, int fd)
{
	uint64_t starts[MAX_FUNCTIONS] = { 0 };
	uint32_t sizes[MAX_FUNCTIONS] = { 0 };
	struct bpf_prog_info info = { .jited_ksyms = (uintptr_t)starts,
				      .jited_func_lens = (uintptr_t)sizes,
				      .nr_jited_ksyms = MAX_FUNCTIONS,
				      .nr_jited_func_lens = MAX_FUNCTIONS };
	uint32_t info_size = sizeof(info);
	struct kernel_code function;

	if (bpf_obj_get_info_by_fd(fd, &info, &info_size))
		return;
	for (uint32_t i = 0; i < MAX_FUNCTIONS && starts[i] && sizes[i]; i++) {
		function = (struct kernel_code){ .start = starts[i],
						 .size_bytes = sizes[i],
						 .since_ns = info.load_time - (info.load_time > ahead_ns ? ahead_ns : 0) };
		buffer_append(code, &function, sizeof(function));
	}
}

int bpf_code_read(struct kernel_code **ret_code, uint32_t *ret_nr)
{
	CLEANUP(buffer_done) struct buffer code = BUFFER_INIT(MAX_BYTES + MAX_FUNCTIONS * sizeof(struct kernel_code));
	uint64_t ahead_ns = suspended_ns();
	uint32_t id = 0;

	while (!code.err && code.size < MAX_BYTES && !bpf_prog_get_next_id(id, &id)) {
		CLEANUP(closep) int fd = bpf_prog_get_fd_by_id(id);

		if (fd >= 0)
			add_program(&code, ahead_ns, fd);
	}
	if (code.err)
		return code.err;
	*ret_nr = (uint32_t)(code.size / sizeof(struct kernel_code));
	*ret_code = (struct kernel_code *)(void *)MOVE(code.data);
	if (*ret_nr)
		qsort(*ret_code, *ret_nr, sizeof(struct kernel_code), by_start);
	return 0;
}
