/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* java_chunk: what the kernel side knows about the objects that hold a virtual thread's frames while it is parked
 * (jdk.internal.vm.StackChunk). The offsets of their fields are from their classes' own lists of fields
 * (src/runtime/java/java_chunk.c). */
#pragma once
#include "types.h"

struct sonde_java_chunk {
	__u64 narrow_base;         /* of references of 4 bytes */
	/* ZGC: the variables with the bits that no good reference has, and (with generations) by how many bits an address is shifted in
	 * one; else 0. */
	__u64 bad_mask, shift;
	__u16 thread_entry;        /* JavaThread._cont_entry, or SONDE_JAVA_NONE */
	__u16 thread_vthread;      /* ZGC: JavaThread._vthread */
	__u16 vthread_cont;        /* ZGC: VirtualThread.cont */
	__u16 tail;                /* Continuation.tail */
	__u16 parent, cont, sp, bottom, flags; /* StackChunk */
	__u16 words;               /* where its frames are; 0: chunks are not walked */
	__u8 narrow_shift;
	__u8 oop_bytes;            /* 4 or 8 */
	__u8 pad[2];               /* zero */
};
_Static_assert(sizeof(struct sonde_java_chunk) == 48, "layout changed: bump SONDE_ABI_VERSION");
