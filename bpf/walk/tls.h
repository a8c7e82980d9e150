/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads a thread's variable as abi/runtime.h describes it, for the thread whose stack is walked. Compiles for BPF and for the host: a file
 * that includes this first defines read_user and user_tls_base, as for walk/unwind.h. Layouts: "ELF Handling For Thread-Local Storage",
 * glibc's nptl/descr.h and sysdeps/generic/dl-dtv.h, musl's src/internal/pthread_impl.h. */
#pragma once
#include "../abi/runtime.h"

#ifndef barrier_var /* of libbpf's bpf_helpers.h: the compiler forgets what it knows of a number */
#define barrier_var(var) asm volatile("" : "+r"(var))
#endif

#define TLS_READ 0
#define TLS_NONE 1 /* this thread has none (yet) */

#define TLS_MAX_KEYS 1024	 /* PTHREAD_KEYS_MAX of glibc; musl has 128 */
#define TLS_MUSL_MAX_KEYS 128
#define TLS_MAX_MODULES (1u << 20)
#define TLS_MIN_POINTER \
	0x400000 /* an unresolved TLSDESC holds a pointer, a larger number: offsets are negative (x86-64) or small (arm64) */

/* A library that is loaded with its program has its variables a little below the thread pointer (x86-64), at the same distance in all
 * threads. Those of other libraries are allocated elsewhere. */
#define TLS_STATIC_BYTES 4096

/* TLS_READ: the word is in *ret_value; TLS_NONE: it is 0; -1: it cannot be read. */
static __always_inline int tls_word(struct walk *w, __u64 at, __u64 *ret_value)
{
	if (read_user(w, ret_value, sizeof(*ret_value), at))
		return -1;
	return *ret_value ? TLS_READ : TLS_NONE;
}

/* Finds the address of a variable. `pair` is the address of {module, offset}. The number of the dtv's entries is before its first (glibc)
 * or in it (musl); modules beyond it were not used by this thread yet. */
static __always_inline int tls_find_module(struct walk *w, const struct sonde_tls *tls, __u64 base, __u64 pair, __u64 *ret_at)
{
	__u64 module[2], dtv, nr, stride = tls->dtv_stride, block;
	int err;

	if (!stride || read_user(w, module, sizeof(module), pair))
		return -1;
	if (!module[0]) /* the dynamic linker has not filled it in yet */
		return TLS_NONE;
	if (module[0] > TLS_MAX_MODULES)
		return -1;
	err = tls_word(w, base + (__u64)(__s64)(__s32)tls->dtv_off, &dtv);
	if (err)
		return err;
	if (read_user(w, &nr, sizeof(nr), stride == 16 ? dtv - stride : dtv))
		return -1;
	if (module[0] > nr)
		return TLS_NONE;
	err = tls_word(w, dtv + module[0] * stride, &block);
	if (err || block == ~0ULL)
		return err ? err : TLS_NONE;
	*ret_at = block + module[1] + (__u64)tls->off;
	return TLS_READ;
}

static __always_inline int tls_read_module(struct walk *w, const struct sonde_tls *tls, __u64 base, __u64 pair, __u64 *ret)
{
	__u64 at;
	int err = tls_find_module(w, tls, base, pair, &at);

	return err ? err : tls_word(w, at, ret);
}

static __always_inline int tls_read_key(struct walk *w, const struct sonde_tls *tls, __u64 base, __u64 *ret)
{
	__u64 at = base + (__u64)(__s64)(__s32)tls->keys_off, table;
	__u32 key, block = tls->key_block;
	int err;

	if (read_user(w, &key, sizeof(key), tls->pc))
		return -1;
	if (key >= (block ? TLS_MAX_KEYS : TLS_MUSL_MAX_KEYS)) /* -1 in many programs: not created yet */
		return TLS_NONE;
	if (block)
		at += 8 * (__u64)(key / block);
	err = tls_word(w, at, &table);
	if (err)
		return err;
	return tls_word(w, block ? table + 16 * (__u64)(key % block) + 8 : table + 8 * (__u64)key, ret);
}

static __always_inline int tls_read_offset(struct walk *w, const struct sonde_tls *tls, __u64 base, __u64 *ret)
{
	__u64 off;

	if (read_user(w, &off, sizeof(off), tls->pc))
		return -1;
	if ((__s64)off >= TLS_MIN_POINTER)
		return tls_read_module(w, tls, base, off, ret);
	return tls_word(w, base + off + (__u64)tls->off, ret);
}

/* Reads the word of the variable. TLS_READ: it is not 0; TLS_NONE: it is 0; -1: it cannot be read. *ret is set only for TLS_READ. */
static __always_inline int tls_read(struct walk *w, const struct sonde_tls *tls, __u64 *ret)
{
	__u64 base = 0, value = 0;
	int err;

	if (tls->kind != SONDE_TLS_GLOBAL) {
		base = user_tls_base(w);
		if (!base)
			return -1;
	}
	switch (tls->kind) {
	case SONDE_TLS_GLOBAL:
		err = tls_word(w, tls->pc, &value);
		break;
	case SONDE_TLS_STATIC:
		err = tls_word(w, base + (__u64)tls->off, &value);
		break;
	case SONDE_TLS_OFFSET:
		err = tls_read_offset(w, tls, base, &value);
		break;
	case SONDE_TLS_MODULE:
		err = tls_read_module(w, tls, base, tls->pc, &value);
		break;
	case SONDE_TLS_KEY:
		err = tls_read_key(w, tls, base, &value);
		break;
	default:
		return -1;
	}
	if (!err)
		*ret = value;
	return err;
}
