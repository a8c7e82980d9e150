// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <string.h>
#include <sys/auxv.h>

struct sip {
	uint64_t v0, v1, v2, v3;
};

static inline uint64_t rotate(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v1 = rotate(s->v1, 13) ^ s->v0;
	s->v0 = rotate(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = rotate(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = rotate(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = rotate(s->v1, 17) ^ s->v2;
	s->v2 = rotate(s->v2, 32);
}

static inline void sip_word(struct sip *s, uint64_t word)
{
	s->v3 ^= word;
	sip_round(s);
	s->v0 ^= word;
}

uint64_t siphash13(const uint64_t key[2], uint64_t first, const void *bytes, uint64_t size)
{
	struct sip s = { key[0] ^ 0x736f6d6570736575ULL, key[1] ^ 0x646f72616e646f6dULL, key[0] ^ 0x6c7967656e657261ULL,
			 key[1] ^ 0x7465646279746573ULL };
	uint64_t word, last = (size + sizeof(first)) << 56;
	const uint8_t *at = bytes;

	sip_word(&s, first);
	for (; size >= sizeof(word); size -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		sip_word(&s, word);
	}
	word = 0;
	memcpy(&word, at, size);
	sip_word(&s, word | last);
	s.v2 ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

/* The key is the 16 random bytes that the kernel gives each program at its start: no state to keep, no system call. */
uint64_t hash_bytes(const void *bytes, uint64_t size, uint64_t seed)
{
	uint64_t key[2];

	memcpy(key, (const void *)getauxval(AT_RANDOM), sizeof(key)); /* since Linux 2.6.29 */
	return siphash13(key, seed, bytes, size);
}

uint64_t hash_number(uint64_t which)
{
	return hash_bytes("a number", 8, which);
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	x ^= x >> 32;
	return x;
}

uint64_t hash_stable(const void *bytes, uint64_t size, uint64_t seed)
{
	const uint8_t *at = bytes;
	uint64_t hash = seed ^ size * 0x9e3779b97f4a7c15ULL, word;

	for (; size >= 8; size -= 8, at += 8) {
		memcpy(&word, at, 8);
		hash = mix(hash ^ word) * 0x9e3779b97f4a7c15ULL;
	}
	word = 0;
	memcpy(&word, at, size);
	return mix(mix(hash ^ word) * 0x9e3779b97f4a7c15ULL);
}
