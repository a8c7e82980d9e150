/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's types between a file descriptor and its name, as kernel.h. Field names: linux/fs.h, linux/dcache.h, fs/mount.h,
 * linux/fdtable.h, linux/fs_struct.h, net/sock.h, net/af_unix.h. */
#pragma once
#include "../abi/types.h"

#include <linux/types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct qstr {
	__u64 hash_len; /* hash of the name, and its length */
	const unsigned char *name;
};

struct hlist_bl_node {
	struct hlist_bl_node *next, **pprev; /* pprev NULL: in no list */
};

struct inode;

struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent; /* itself: a root */
	struct qstr d_name;
	struct inode *d_inode;
};

struct super_block {
	unsigned int s_dev;
	unsigned long s_magic;
};

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent; /* itself: the root of a mount namespace, or attached nowhere */
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	unsigned int f_mode; /* FMODE_* */
	struct inode *f_inode;
	struct path f_path;
	void *private_data; /* of a socket: its struct socket */
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct fs_struct {
	struct path root, pwd;
};

struct thread_info {
	__u32 status; /* x86: TS_COMPAT */
};

struct task_struct___files {
	struct thread_info thread_info;
	struct files_struct *files;
	struct fs_struct *fs;
};

struct in6_addr___words {
	union {
		__u32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	unsigned short skc_family;
	__u32 skc_daddr, skc_rcv_saddr;
	__u16 skc_dport; /* big-endian */
	__u16 skc_num;	 /* the local port */
	struct in6_addr___words skc_v6_daddr, skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
};

struct socket {
	short type;
	struct sock *sk;
};

struct sockaddr_un {
	unsigned short sun_family;
	char sun_path[108];
};

struct unix_address {
	int len;
	struct sockaddr_un name[];
};

struct unix_sock {
	struct unix_address *addr; /* NULL: it has no name */
	struct sock *peer;
};

#pragma clang attribute pop

#define TS_COMPAT    2		/* asm/thread_info.h of x86: the thread is in a 32-bit system call */
#define FMODE_WRITE  2		/* linux/fs.h */
#define PIPEFS_MAGIC 0x50495045 /* linux/magic.h */
