// SPDX-License-Identifier: Apache-2.0
#include "collect/map_read.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cpus.h"

#define BATCH 1024 /* map elements read at a time */

struct batch {
	void *keys, *values;
};

static void batch_done(struct batch *batch)
{
	free(batch->keys);
	free(batch->values);
}

typedef int (*batch_fn)(int map_fd, void *in, void *out, void *keys, void *values, __u32 *count, const struct bpf_map_batch_opts *options);

static int read_batches(int map_fd, batch_fn next, uint32_t key_bytes, uint32_t value_bytes, map_element_fn fn, void *arg)
{
	CLEANUP(batch_done) struct batch batch = { calloc(BATCH, key_bytes), calloc(BATCH, value_bytes) };
	uint32_t in = 0, out = 0, nr = BATCH, capacity = BATCH;
	bool is_first = true;
	int err = 0, result = 0;

	if (!batch.keys || !batch.values)
		return -ENOMEM;
	do {
		nr = capacity;
		err = next(map_fd, is_first ? NULL : &in, &out, batch.keys, batch.values, &nr, NULL);
		if (err && err != -ENOENT)
			return err;
		for (uint32_t i = 0; i < nr && result >= 0; i++)
			result =
			    fn(arg, (const char *)batch.keys + (size_t)i * key_bytes, (const char *)batch.values + (size_t)i * value_bytes);
		in = out;
		is_first = false;
	} while (!err && result >= 0);
	return result;
}

int map_read(int map_fd, uint32_t key_bytes, uint32_t value_bytes, map_element_fn fn, void *arg)
{
	return read_batches(map_fd, bpf_map_lookup_batch, key_bytes, value_bytes, fn, arg);
}

int map_take(int map_fd, uint32_t key_bytes, uint32_t value_bytes, map_element_fn fn, void *arg)
{
	return read_batches(map_fd, bpf_map_lookup_and_delete_batch, key_bytes, value_bytes, fn, arg);
}

void map_sum_cpus(int map_fd, uint32_t key, uint32_t nr_possible_cpus, uint64_t *ret_words, uint32_t nr_words)
{
	CLEANUP(freep) uint64_t *of_cpus = calloc((size_t)nr_possible_cpus * nr_words, sizeof(*of_cpus));

	memset(ret_words, 0, nr_words * sizeof(*ret_words));
	if (!of_cpus || bpf_map_lookup_elem(map_fd, &key, of_cpus))
		return;
	for (size_t i = 0; i < (size_t)nr_possible_cpus * nr_words; i++)
		ret_words[i % nr_words] += of_cpus[i];
}

/* Opening an event on a CPU runs a call on that CPU, which it answers once its interrupts are on. So a thread switch that was in progress
 * there has finished. An event opened as `disabled` needs no such call. */
static int call_cpu(uint32_t cpu)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY };
	CLEANUP(closep) int fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 && errno != ENODEV ? -errno : 0; /* ENODEV: it went offline since the list was read */
}

static int call_all_cpus(void)
{
	CLEANUP(cpus_done) struct cpus online = { 0 };
	int err = cpus_read("online", NULL, &online);

	for (uint32_t i = 0; i < online.nr && !err; i++)
		err = call_cpu(online.ids[i]);
	return err;
}

void map_settle(void)
{
	if (call_all_cpus() && syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0)) /* waits for RCU */
		usleep(10000);
}

#define READ_BYTES 65536u

/* A read may end anywhere, also within an item. */
static int read_iterator(int fd, uint32_t nr_bytes, map_bytes_fn fn, void *arg)
{
	CLEANUP(freep) char *bytes = malloc(READ_BYTES);
	size_t nr = 0, off;
	ssize_t got;
	int err = 0;

	if (!bytes)
		return -ENOMEM;
	for (;;) {
		got = read(fd, bytes + nr, READ_BYTES - nr);
		if (!got || (got < 0 && errno != EAGAIN && errno != EINTR))
			return got ? -errno : 0;
		nr += got > 0 ? (size_t)got : 0;
		for (off = 0; fn && err >= 0 && nr - off >= nr_bytes; off += nr_bytes)
			err = fn(arg, bytes + off);
		if (err < 0)
			return err;
		nr = fn ? nr - off : 0;
		memmove(bytes, bytes + off, nr);
	}
}

int map_each_thread(const struct bpf_program *program, uint32_t nr_bytes, map_bytes_fn fn, void *arg, struct diag *diag)
{
	struct bpf_link *link = bpf_program__attach_iter(program, NULL);
	CLEANUP(closep) int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -errno;
	int err = fd < 0 ? fd : read_iterator(fd, nr_bytes, fn, arg);

	bpf_link__destroy(link);
	return err ? diag_errno(diag, -err, "cannot go through the threads: %s", strerror(-err)) : 0;
}
