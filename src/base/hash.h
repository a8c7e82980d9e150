/* SPDX-License-Identifier: Apache-2.0 */
/* hash: 64-bit hashes of bytes. Untrusted input (names, stacks, paths) is hashed with a key that differs in each process, so that nobody
 * can make a file whose entries all collide. Output must not depend on a keyed hash, neither its values nor its order. Any thread. */
#pragma once
#include <stdint.h>

/* SipHash-1-3 with the process's key, for tables. `seed` is a previous hash to continue from, or any number that keeps uses apart. */
uint64_t hash_bytes(const void *bytes, uint64_t size, uint64_t seed);
/* A random number that is constant in this process for each `which`. */
uint64_t hash_number(uint64_t which);
/* The same in every process, so no protection against an adversary. For file names, checksums, colours. */
uint64_t hash_stable(const void *bytes, uint64_t size, uint64_t seed);
/* SipHash-1-3 (Aumasson and Bernstein, 2012) of the eight bytes of `first` and the bytes that follow. */
uint64_t siphash13(const uint64_t key[2], uint64_t first, const void *bytes, uint64_t size);
