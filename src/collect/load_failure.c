// SPDX-License-Identifier: Apache-2.0
#include "collect/load_failure.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"

#define NR_DESCRIPTORS 64 /* maps and programs, an event per CPU, files */

static bool can_make_map(uint32_t nr_pages)
{
	CLEANUP(closep) int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "sonde_try", sizeof(uint32_t), 4096, nr_pages, NULL);

	return fd >= 0;
}

/* Tests the permission without creating anything. For invalid BTF the kernel returns EINVAL only after it has checked the caller's rights
 * (EPERM). */
static bool may_use_bpf(void)
{
	CLEANUP(closep) int fd = bpf_btf_load("", 1, NULL);

	return fd == -EINVAL;
}

bool load_can_make_maps(void)
{
	/* where maps count as locked memory, none may be left: this user's other processes use it, or it is not freed yet after a run */
	return can_make_map(1) || may_use_bpf();
}

int load_check_descriptors(struct diag *diag)
{
	int fds[NR_DESCRIPTORS], nr = 0, err;

	while (nr < NR_DESCRIPTORS && (fds[nr] = nr ? fcntl(fds[0], F_DUPFD_CLOEXEC, 0) : eventfd(0, EFD_CLOEXEC)) >= 0)
		nr++;
	err = nr < NR_DESCRIPTORS ? errno : 0;
	for (int i = 0; i < nr; i++)
		close(fds[i]);
	return err ? diag_errno(diag, err, "no %d more descriptors: %s", NR_DESCRIPTORS, strerror(err)) : 0;
}

int load_failed(int err, bool can_make_maps, const char *oldest_kernel, struct diag *diag)
{
	struct utsname kernel = { .release = "?" };

	if (err == -EPERM && can_make_maps && !can_make_map(4096))
		return diag_errno(
		    diag, ENOMEM,
		    "the limit of locked memory is too low for BPF maps, and this process may not raise it: ulimit -l unlimited");
	if (err == -EPERM || (err == -EACCES && !can_make_maps)) /* the verifier also rejects with EACCES */
		return diag_errno(diag, EPERM, "the kernel does not permit BPF programs to this user");
	if (err == -ENOMEM)
		return diag_errno(diag, ENOMEM, "no memory for the BPF maps");
	if (access("/sys/kernel/btf/vmlinux", F_OK))
		return diag_errno(diag, EOPNOTSUPP, "this kernel is built without type information of itself (CONFIG_DEBUG_INFO_BTF)");
	uname(&kernel);
	return diag_errno(diag, EOPNOTSUPP,
			  "this kernel (%s; %s or newer is needed) cannot load our BPF programs (%s): 'sonde doctor' says what it lacks",
			  kernel.release, oldest_kernel, strerror(-err));
}
