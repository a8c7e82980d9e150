// SPDX-License-Identifier: Apache-2.0
#include "session/bpf_code.h"

#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "base/buffer.h"

#define MAX_FUNCTIONS 256 /* of a program: BPF_MAX_SUBPROGS of include/linux/bpf_verifier.h */
#define MAX_BYTES     ((size_t)4 << 20) /* of what is kept of all programs */

static int by_start(const void *left, const void *right)
{
	const struct kernel_code *a = left, *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

/* The functions of one program. What the kernel does not tell is left out. */
static void add_program(struct buffer *code, int fd)
{
	uint64_t starts[MAX_FUNCTIONS] = { 0 };
	uint32_t sizes[MAX_FUNCTIONS] = { 0 };
	struct bpf_prog_info info = { .jited_ksyms = (uintptr_t)starts,
				      .jited_func_lens = (uintptr_t)sizes,
				      .nr_jited_ksyms = MAX_FUNCTIONS,
				      .nr_jited_func_lens = MAX_FUNCTIONS };
	uint32_t info_size = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &info_size))
		return;
	for (uint32_t i = 0; i < MAX_FUNCTIONS && starts[i] && sizes[i]; i++)
		buffer_append(code, &(struct kernel_code){ .start = starts[i], .size_bytes = sizes[i] }, sizeof(struct kernel_code));
}

int bpf_code_read(struct kernel_code **ret_code, uint32_t *ret_nr)
{
	CLEANUP(buffer_done) struct buffer code = BUFFER_INIT(MAX_BYTES + MAX_FUNCTIONS * sizeof(struct kernel_code));
	uint32_t id = 0;

	while (!code.err && code.size < MAX_BYTES && !bpf_prog_get_next_id(id, &id)) {
		CLEANUP(closep) int fd = bpf_prog_get_fd_by_id(id);

		if (fd >= 0)
			add_program(&code, fd);
	}
	if (code.err)
		return code.err;
	*ret_nr = (uint32_t)(code.size / sizeof(struct kernel_code));
	*ret_code = (struct kernel_code *)(void *)MOVE(code.data);
	if (*ret_nr)
		qsort(*ret_code, *ret_nr, sizeof(struct kernel_code), by_start);
	return 0;
}
