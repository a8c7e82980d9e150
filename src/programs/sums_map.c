// SPDX-License-Identifier: Apache-2.0
#include "programs/sums_map.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* The kernel returns once no program uses the map that was there before (map_update_elem of arrays of maps waits for RCU). */
static int put_new(const struct sums_map *sums, int *ret_fd)
{
	uint32_t zero = 0;
	int fd = bpf_map_create(BPF_MAP_TYPE_HASH, "sonde_new_sums", sums->key_bytes, sums->value_bytes, sums->max, NULL), err;

	if (fd < 0)
		return fd;
	err = bpf_map_update_elem(sums->outer_fd, &zero, &fd, BPF_ANY);
	if (err) {
		close(fd);
		return err;
	}
	*ret_fd = fd;
	return 0;
}

int sums_map_init(struct sums_map *sums, const struct bpf_map *outer, uint32_t key_bytes, uint32_t value_bytes, uint32_t max,
		  struct diag *diag)
{
	int err;

	*sums =
	    (struct sums_map){ .fd = -1, .outer_fd = bpf_map__fd(outer), .key_bytes = key_bytes, .value_bytes = value_bytes, .max = max };
	err = put_new(sums, &sums->fd);
	return err ? diag_errno(diag, -err, "cannot make a map for the sums: %s", strerror(-err)) : 0;
}

void sums_map_done(struct sums_map *sums)
{
	if (sums->fd >= 0)
		close(sums->fd);
	sums->fd = -1;
}

int sums_map_turn(struct sums_map *sums, int *ret_fd)
{
	int fd = -1, err = put_new(sums, &fd);

	if (err)
		return err;
	*ret_fd = sums->fd;
	sums->fd = fd;
	return 0;
}
