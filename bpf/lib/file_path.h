/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From a descriptor of the current thread to its file, and from that to what names it. The text holds the parts of a path from the leaf up
 * to the root of the process, each with its NUL: user space turns them round. Nothing is locked: where a file is renamed while it is read,
 * parts of both names may meet. */
#pragma once
#include <stdbool.h>

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "../abi/file.h"
#include "../compat/files.h"
#include "../compat/kernel.h"

#define FUNCTION __attribute__((noinline)) /* verified once, by itself; kernels before 5.12 allow only numbers as arguments */
#define MODE_TYPE     0170000 /* linux/stat.h */
#define MODE_PIPE     0010000
#define MODE_SOCKET   0140000
#define ADDRESS_INET  2 /* linux/socket.h */
#define ADDRESS_INET6 10
#define ADDRESS_UNIX  1

struct file_text { /* in a map: too large for the stack */
	struct sonde_file_text of;
	char text[SONDE_TEXT_BYTES];
};

static __always_inline struct file_text *file_text(void); /* the program's, for path_append and take_file */

/* NULL: the descriptor is not open. */
static __always_inline struct file *file_of(struct task_struct *task, __u32 fd)
{
	struct fdtable *table = BPF_CORE_READ((struct task_struct___files *)task, files, fdt);
	struct file *file = 0, **list;

	if (!table || fd >= BPF_CORE_READ(table, max_fds))
		return 0;
	list = BPF_CORE_READ(table, fd);
	bpf_probe_read_kernel(&file, sizeof(file), list + fd);
	return file;
}

/* One step from `at` to the root; false: there is none. Appends the part's name, or leaves a mount. */
static __always_inline bool path_step(struct file_text *to, struct path *at, const struct path *root)
{
	struct dentry *parent;
	struct mount *mount;
	const void *name;
	__u32 bytes = to->of.bytes;
	long size;

	if (at->dentry == root->dentry && at->mnt == root->mnt)
		return false;
	if (at->dentry == BPF_CORE_READ(at->mnt, mnt_root)) {
		mount = (void *)at->mnt - bpf_core_field_offset(struct mount, mnt);
		if (BPF_CORE_READ(mount, mnt_parent) == mount)
			return false;
		at->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		at->mnt = (void *)BPF_CORE_READ(mount, mnt_parent) + bpf_core_field_offset(struct mount, mnt);
		return true;
	}
	parent = BPF_CORE_READ(at->dentry, d_parent);
	name = BPF_CORE_READ(at->dentry, d_name.name);
	if (parent == at->dentry || bytes > SONDE_TEXT_BYTES - SONDE_PART_BYTES) {
		to->of.flags |= parent == at->dentry ? 0 : SONDE_FILE_CUT;
		return false;
	}
	size = bpf_probe_read_kernel_str(to->text + bytes, SONDE_PART_BYTES, name);
	if (size > 0)
		to->of.bytes = bytes + size;
	at->dentry = parent;
	return true;
}

/* Appends the parts of a path to the program's text. A function of its own, verified once, as it has several callers. */
FUNCTION int path_append(__u64 mnt, __u64 dentry)
{
	struct task_struct___files *task = (void *)bpf_get_current_task();
	struct path root = {}, at = { .mnt = (void *)mnt, .dentry = (void *)dentry };
	struct file_text *to = file_text();

	if (!to)
		return 0; /* there is always one */
	BPF_CORE_READ_INTO(&root, task, fs, root);
	for (int i = 0; i < SONDE_MAX_PARTS; i++) {
		if (!path_step(to, &at, &root))
			return 0;
	}
	to->of.flags |= SONDE_FILE_CUT;
	return 0;
}

static __always_inline void read_path(struct path *to, const struct path *from)
{
	to->mnt = BPF_CORE_READ(from, mnt);
	to->dentry = BPF_CORE_READ(from, dentry);
}

static __always_inline void take_unix_name(struct sonde_socket *to, struct sock *sk)
{
	struct unix_address *address = BPF_CORE_READ((struct unix_sock *)sk, addr);
	__u32 bytes;

	if (!address) {
		sk = BPF_CORE_READ((struct unix_sock *)sk, peer);
		address = sk ? BPF_CORE_READ((struct unix_sock *)sk, addr) : 0;
		to->is_peers = 1;
	}
	if (!address)
		return;
	bytes = BPF_CORE_READ(address, len) - sizeof(__u16); /* without the family */
	to->path_bytes = bytes < sizeof(to->path) ? bytes : sizeof(to->path);
	bpf_probe_read_kernel(to->path, sizeof(to->path),
			      (void *)address + bpf_core_field_offset(struct unix_address, name) + sizeof(__u16));
}

/* Bytes of the path behind its own are zero, so that equal sockets are equal. */
static __always_inline void take_socket(struct file_text *to, struct file *file)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sk = BPF_CORE_READ(socket, sk);
	struct sonde_socket *s = (void *)to->text;

	__builtin_memset(s, 0, sizeof(*s));
	to->of.kind = SONDE_FILE_SOCKET;
	to->of.bytes = sizeof(*s);
	s->type = BPF_CORE_READ(socket, type);
	if (!sk)
		return;
	s->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	s->protocol = BPF_CORE_READ(sk, sk_protocol);
	if (s->family == ADDRESS_UNIX)
		take_unix_name(s, sk);
	if (s->family != ADDRESS_INET && s->family != ADDRESS_INET6)
		return;
	s->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	s->remote_port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (s->family == ADDRESS_INET6) {
		BPF_CORE_READ_INTO(&s->local, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&s->remote, sk, __sk_common.skc_v6_daddr);
		return;
	}
	bpf_core_read(s->local, 4, &sk->__sk_common.skc_rcv_saddr);
	bpf_core_read(s->remote, 4, &sk->__sk_common.skc_daddr);
}

/* Without a folder: what the kernel keeps for itself (anon_inode, memfd, ...) is a root without a parent, or lies in a mount of its own. */
static __always_inline void take_file_path(struct file_text *to, struct file *file)
{
	struct path at;
	struct dentry *dentry;

	read_path(&at, &file->f_path);
	dentry = at.dentry;
	if (BPF_CORE_READ(dentry, d_parent) == dentry && dentry != BPF_CORE_READ(at.mnt, mnt_root)) {
		long size = bpf_probe_read_kernel_str(to->text, SONDE_PART_BYTES, BPF_CORE_READ(dentry, d_name.name));

		to->of.kind = SONDE_FILE_ANON;
		to->of.bytes = size > 0 ? size : 0;
		return;
	}
	to->of.kind = SONDE_FILE_PATH;
	if (BPF_CORE_READ(dentry, d_parent) != dentry && !BPF_CORE_READ(dentry, d_hash.pprev))
		to->of.flags |= SONDE_FILE_DELETED;
	path_append((__u64)at.mnt, (__u64)at.dentry);
}

/* Fills in what names the file. NULL: it is not open. `to`: file_text(). */
static __always_inline void take_file(struct file_text *to, struct file *file)
{
	__u32 type;

	to->of = (struct sonde_file_text){};
	if (!file)
		return;
	to->of.ino = BPF_CORE_READ(file, f_inode, i_ino);
	type = BPF_CORE_READ(file, f_inode, i_mode) & MODE_TYPE;
	if (type == MODE_SOCKET)
		take_socket(to, file);
	else if (type == MODE_PIPE && BPF_CORE_READ(file, f_inode, i_sb, s_magic) == PIPEFS_MAGIC)
		to->of.kind = SONDE_FILE_PIPE;
	else
		take_file_path(to, file);
}
