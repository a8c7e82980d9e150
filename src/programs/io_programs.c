// SPDX-License-Identifier: Apache-2.0
#include "programs/io_programs.h"

#include <errno.h>
#include <string.h>

#include "programs/call_numbers.h"
#include "io.skel.h"

#define RING_BYTES	(2u << 20) /* of names: some 20,000 new files between two readings */
#define SOCKETCALL_SEND 9 /* linux/net.h, up to SYS_SENDMMSG */

#define PLAIN(reads, writes, bytes) \
	{ \
		SONDE_IO_PLAIN, .read_fd = (reads), .write_fd = (writes), .count = (bytes) \
	}

static const struct {
	const char *name;
	struct sonde_io_call facts;
} calls[] = {
	/* from 1 on */
	{ NULL },
	{ "read", PLAIN(1, 0, 3) },
	{ "pread64", PLAIN(1, 0, 3) },
	{ "readv", { SONDE_IO_VECTOR, .read_fd = 1 } },
	{ "preadv", { SONDE_IO_VECTOR, .read_fd = 1 } },
	{ "preadv2", { SONDE_IO_VECTOR, .read_fd = 1 } },
	{ "write", PLAIN(0, 1, 3) },
	{ "pwrite64", PLAIN(0, 1, 3) },
	{ "writev", { SONDE_IO_VECTOR, .write_fd = 1 } },
	{ "pwritev", { SONDE_IO_VECTOR, .write_fd = 1 } },
	{ "pwritev2", { SONDE_IO_VECTOR, .write_fd = 1 } },
	{ "recv", PLAIN(1, 0, 3) },
	{ "recvfrom", PLAIN(1, 0, 3) },
	{ "recvmsg", { SONDE_IO_MESSAGE, .read_fd = 1 } },
	{ "recvmmsg", { SONDE_IO_MESSAGES, .read_fd = 1 } },
	{ "recvmmsg_time64", { SONDE_IO_MESSAGES, .read_fd = 1 } },
	{ "send", PLAIN(0, 1, 3) },
	{ "sendto", PLAIN(0, 1, 3) },
	{ "sendmsg", { SONDE_IO_MESSAGE, .write_fd = 1 } },
	{ "sendmmsg", { SONDE_IO_MESSAGES, .write_fd = 1 } },
	{ "sendfile", PLAIN(2, 1, 4) },
	{ "sendfile64", PLAIN(2, 1, 4) },
	{ "splice", PLAIN(1, 3, 5) },
	{ "tee", PLAIN(1, 2, 3) },
	{ "copy_file_range", PLAIN(1, 3, 5) },
	{ "vmsplice", { SONDE_IO_VECTOR, .write_fd = 1, .by_mode = 1 } },
	{ "io_uring_enter", { .kind = SONDE_IO_SUBMIT } },
	{ "io_submit", { .kind = SONDE_IO_SUBMIT } },
	{ "mmap", { .kind = SONDE_IO_MAP } },
	{ "mmap2", { .kind = SONDE_IO_MAP } },
	{ "socketcall", { .kind = SONDE_IO_SOCKETCALL } },
};
_Static_assert(ARRAY_SIZE(calls) <= SONDE_IO_MAX_CALLS, "there is no room for so many calls");

/* In the order of socketcall's numbers. */
static const char *const socketcalls[] = { "send", "recv",    "sendto",	 "recvfrom", NULL,	 NULL,
					   NULL,   "sendmsg", "recvmsg", NULL,	     "recvmmsg", "sendmmsg" };

const char *io_programs_call_name(uint32_t index)
{
	return index && index < ARRAY_SIZE(calls) ? calls[index].name : "?";
}

static bool is_name(const void *bytes, size_t size)
{
	const struct sonde_io_name *name = bytes;
	const struct sonde_file_text *file = (const void *)(name + 1);

	return size >= sizeof(*name) + sizeof(*file) && size == sizeof(*name) + sizeof(*file) + file->bytes;
}

static uint8_t index_of(const char *name)
{
	for (uint8_t i = 1; i < ARRAY_SIZE(calls); i++) {
		if (!strcmp(calls[i].name, name))
			return i;
	}
	return 0;
}

static void find_calls(struct sonde_io_config *config)
{
	for (uint8_t i = 1; i < ARRAY_SIZE(calls); i++) {
		config->facts[i] = calls[i].facts;
		for (int is_32_bit = 0; is_32_bit < 2; is_32_bit++) {
			uint32_t number = call_number(calls[i].name, is_32_bit);

			if (is_32_bit && !strcmp(calls[i].name, "mmap"))
				continue; /* of 32 bits it is an older call, whose arguments are in memory */
			if (number < SONDE_MAX_CALLS)
				config->calls[is_32_bit][number] = i;
		}
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(socketcalls); i++)
		config->socketcalls[SOCKETCALL_SEND + i] = socketcalls[i] ? index_of(socketcalls[i]) : 0;
}

static void destroy(void *skeleton)
{
	io_bpf__destroy(skeleton);
}

int io_programs_new(const struct call_options *options, const struct sonde_io_config *io, struct diag *diag,
		    struct call_programs **ret_programs)
{
	struct io_bpf *skeleton = io_bpf__open();
	struct sonde_io_config config = *io;

	if (!skeleton)
		return diag_errno(diag, errno, "cannot open our BPF object: %s", strerror(errno));
	find_calls(&config);
	config.typed = libbpf_find_vmlinux_btf_id("bpf_rdonly_cast", BPF_TRACE_FENTRY) > 0;
	memcpy((void *)&skeleton->rodata->io_cfg, &config, sizeof(config));
	return call_programs_new(&(struct call_object){ .opened = skeleton,
							.destroy = destroy,
							.skeleton = skeleton->skeleton,
							.config = &skeleton->rodata->cfg,
							.own_tgid = &skeleton->bss->own_tgid,
							.ring_bytes = RING_BYTES,
							.key_bytes = sizeof(struct sonde_io_key),
							.sum_bytes = sizeof(struct sonde_io_sum),
							.since = "5.12",
							.is_record = is_name },
				 options, diag, ret_programs);
}
