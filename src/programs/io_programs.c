// SPDX-License-Identifier: Apache-2.0
#include "programs/io_programs.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cpus.h"
#include "base/hold_signals.h"
#include "programs/call_numbers.h"
#include "collect/load_failure.h"
#include "programs/sums_map.h"
#include "collect/target_map.h"
#include "io.skel.h"

#define RING_BYTES	(2u << 20) /* of names: some 20,000 new files between two readings */
#define MAX_SUMS	65536u
#define SOCKETCALL_SEND 9 /* linux/net.h, up to SYS_SENDMMSG */

struct io_programs {
	struct io_bpf *skeleton;
	struct ring_buffer *ring;
	struct sums_map sums;
	uint32_t nr_possible_cpus;
	io_name_fn fn; /* valid during io_programs_names */
	void *arg;
};

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

static int on_name(void *arg, void *bytes, size_t size)
{
	struct io_programs *programs = arg;
	const struct sonde_io_name *name = bytes;
	const struct sonde_file_text *file = (const void *)(name + 1);

	if (size < sizeof(*name) + sizeof(*file) || size != sizeof(*name) + sizeof(*file) + file->bytes)
		return -EBADMSG;
	return programs->fn(programs->arg, &name->key, file);
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

static int set_up(struct io_bpf *skeleton, const struct io_programs_options *options)
{
	struct sonde_io_config io = options->io;
	struct sonde_config config = options->config;

	find_calls(&io);
	config.version = SONDE_ABI_VERSION;
	memcpy((void *)&skeleton->rodata->cfg, &config, sizeof(config));
	memcpy((void *)&skeleton->rodata->io_cfg, &io, sizeof(io));
	skeleton->bss->own_tgid = (uint32_t)getpid();
	bpf_program__set_autoload(skeleton->progs.on_fork, config.command_tgid);
	bpf_program__set_autoload(skeleton->progs.on_exec, config.command_tgid);
	bpf_program__set_autoload(skeleton->progs.on_process_exit, config.command_tgid);
	return bpf_map__set_max_entries(skeleton->maps.ring, RING_BYTES);
}

static int load(struct io_programs *programs, const struct io_programs_options *options, struct diag *diag)
{
	bool can_make_maps = load_can_make_maps();
	int err;

	programs->skeleton = io_bpf__open();
	if (!programs->skeleton)
		return diag_errno(diag, errno, "cannot open our BPF object: %s", strerror(errno));
	err = set_up(programs->skeleton, options);
	if (err)
		return diag_errno(diag, -err, "cannot size the BPF maps: %s", strerror(-err));
	err = io_bpf__load(programs->skeleton);
	if (err)
		return load_failed(err, can_make_maps, "5.12", diag);
	err = target_map_fill(programs->skeleton->maps.targets, options->targets, options->nr_targets, diag);
	if (!err)
		err = sums_map_init(&programs->sums, programs->skeleton->maps.sums, sizeof(struct sonde_io_key),
				    sizeof(struct sonde_io_sum), MAX_SUMS, diag);
	if (err)
		return err;
	programs->ring = ring_buffer__new(bpf_map__fd(programs->skeleton->maps.ring), on_name, programs, NULL);
	return programs->ring ? 0 : diag_errno(diag, errno, "cannot map the ring buffer: %s", strerror(errno));
}

static void io_programs_freep(struct io_programs **programs)
{
	io_programs_free(*programs);
}

int io_programs_new(const struct io_programs_options *options, struct diag *diag, struct io_programs **ret_programs)
{
	CLEANUP(io_programs_freep) struct io_programs *programs = calloc(1, sizeof(*programs));
	HOLD_SIGNALS();
	int err;

	if (!programs)
		return -ENOMEM;
	programs->sums = (struct sums_map)SUMS_MAP_NONE;
	libbpf_set_print(NULL); /* its warnings are reported in diag */
	err = cpus_nr_possible(diag, &programs->nr_possible_cpus) ?: load(programs, options, diag);
	if (err)
		return err;
	*ret_programs = MOVE(programs);
	return 0;
}

void io_programs_free(struct io_programs *programs)
{
	if (!programs)
		return;
	ring_buffer__free(programs->ring);
	sums_map_done(&programs->sums);
	io_bpf__destroy(programs->skeleton);
	free(programs);
}

int io_programs_start(struct io_programs *programs, struct diag *diag)
{
	int err = io_bpf__attach(programs->skeleton);

	return err ? diag_errno(diag, -err, "cannot follow system calls: %s", strerror(-err)) : 0;
}

void io_programs_stop(struct io_programs *programs)
{
	io_bpf__detach(programs->skeleton);
	map_settle();
}

int io_programs_names(struct io_programs *programs, io_name_fn fn, void *arg)
{
	int nr;

	programs->fn = fn;
	programs->arg = arg;
	nr = ring_buffer__consume(programs->ring);
	return nr < 0 ? nr : 0;
}

int io_programs_turn(struct io_programs *programs, int *ret_fd)
{
	return sums_map_turn(&programs->sums, ret_fd);
}

void io_programs_counters(const struct io_programs *programs, struct sonde_io_counters *ret_counters)
{
	map_sum_cpus(bpf_map__fd(programs->skeleton->maps.counters), 0, programs->nr_possible_cpus, (uint64_t *)ret_counters,
		     sizeof(*ret_counters) / sizeof(uint64_t));
}
