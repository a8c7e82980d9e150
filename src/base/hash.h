/* SPDX-License-Identifier: Apache-2.0 */
/* hash: 64-bit hashes of bytes. What strangers choose (names, stacks, paths) is hashed under a key that each process has of its own, so
 * that nobody can make a file whose entries all fall together. Nothing that is written anywhere, neither a value nor an order, may come of
 * a keyed hash. Any thread. */
#pragma once
#include <stdint.h>

/* SipHash-1-3 under the process's key, going on from another hash, or from any number that keeps uses apart: for tables. */
uint64_t hash_bytes(const void *bytes, uint64_t size, uint64_t seed);
/* Random numbers of the process: for `which` always the same one. */
uint64_t hash_number(uint64_t which);
/* The same in each process, and so no help against an adversary: for names of files, checksums, colours. */
uint64_t hash_stable(const void *bytes, uint64_t size, uint64_t seed);
/* SipHash-1-3 (Aumasson and Bernstein, 2012) of the eight bytes of `first` and of what follows. */
uint64_t siphash13(const uint64_t key[2], uint64_t first, const void *bytes, uint64_t size);
