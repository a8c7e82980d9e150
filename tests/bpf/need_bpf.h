/* SPDX-License-Identifier: Apache-2.0 */
/* Without the right to create BPF maps these tests fail. With SONDE_TEST_NO_BPF=1, which says that this machine cannot, they are skipped
 * (77). */
#pragma once
#include <bpf/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void need_bpf(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "sonde_try", 4, 4, 1, NULL);
	const char *skip = getenv("SONDE_TEST_NO_BPF");

	if (fd >= 0) {
		close(fd);
		return;
	}
	fprintf(stderr, "no BPF here: %s\n", strerror(-fd));
	exit(skip && !strcmp(skip, "1") ? 77 : 1);
}
