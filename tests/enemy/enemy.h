/* SPDX-License-Identifier: Apache-2.0 */
/* The log of the enemy suite's programs: when each thread's stack changed. Each process writes records to a file of its own in
 * $SONDE_ENEMY_LOG. The file is a shared mapping, so the records survive the process. tests/enemy/oracle.py reads them and documents the
 * letters. */
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ENEMY_MAX_RECORDS 4000000
#define ENEMY_MAX_DEPTH 256
#define ENEMY_KEPT __attribute__((noipa))

struct enemy_record {
	uint64_t time_ns;
	uint32_t tid;
	char what;
	char name[27];
};

struct enemy_log {
	uint64_t nr;
	struct enemy_record records[ENEMY_MAX_RECORDS];
};

static struct enemy_log *enemy_log;
static __thread uint32_t enemy_tid;
static __thread uint64_t enemy_random_state;
static __thread unsigned enemy_depth;
static __thread char enemy_trail[ENEMY_MAX_DEPTH][27]; /* for a child forked here: it continues at its parent's position */
static uint64_t enemy_end_ns;

static inline __attribute__((always_inline)) uint64_t enemy_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline __attribute__((always_inline)) void enemy_copy(char to[27], const char *name)
{
	unsigned i = 0;

	for (; i < 26 && name[i]; i++)
		to[i] = name[i];
	to[i] = '\0';
}

ENEMY_KEPT static void enemy_note(char what, const char *name)
{
	uint64_t number = __atomic_fetch_add(&enemy_log->nr, 1, __ATOMIC_RELAXED);
	struct enemy_record *record = &enemy_log->records[number];

	if (number >= ENEMY_MAX_RECORDS)
		_exit(9); /* from here on its stack cannot be checked */
	record->tid = enemy_tid;
	enemy_copy(record->name, name);
	record->time_ns = enemy_now();
	__atomic_store_n(&record->what, what, __ATOMIC_RELEASE);
}

/* The stack has one frame more, now or from the next instructions on: 'm' for a function entered by code that cannot log, 'E' for one
 * that logs. */
static inline __attribute__((always_inline)) void enemy_push(char what, const char *name)
{
	if (enemy_depth < ENEMY_MAX_DEPTH)
		enemy_copy(enemy_trail[enemy_depth], name);
	enemy_depth++;
	enemy_note(what, name);
}

#define ENEMY_ENTER() enemy_push('E', __func__)
#define ENEMY_LEAVE() enemy_note('L', "")
#define ENEMY_CALL() enemy_note('C', "")

/* The call has returned: that many frames fewer. */
static inline __attribute__((always_inline)) void enemy_back(unsigned nr)
{
	char text[12];

	enemy_depth -= nr;
	snprintf(text, sizeof(text), "%u", nr);
	enemy_note('B', text);
}

/* One frame fewer, without formatting. */
static inline __attribute__((always_inline)) void enemy_back_one(void)
{
	enemy_depth--;
	enemy_note('B', "1");
}

static void enemy_seed(void)
{
	enemy_tid = (uint32_t)syscall(SYS_gettid);
	enemy_random_state = enemy_now() * 2654435761 + enemy_tid;
}

/* For the first thread of an image or of a forked process: starts a file of its own, with the stack of the trail. */
static void enemy_begin(void)
{
	char path[256];
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	enemy_seed();
	snprintf(path, sizeof(path), "%s/%d.%llu.bin", getenv("SONDE_ENEMY_LOG"), (int)getpid(), (unsigned long long)enemy_now());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0 || ftruncate(fd, sizeof(struct enemy_log))) {
		perror(path);
		exit(2);
	}
	enemy_log = mmap(NULL, sizeof(*enemy_log), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (enemy_log == MAP_FAILED)
		exit(2);
	enemy_note('R', "");
	for (unsigned i = 0; i < enemy_depth; i++)
		enemy_note('m', enemy_trail[i]);
	if (enemy_depth)
		enemy_note('S', "");
}

static inline __attribute__((always_inline)) unsigned enemy_random(unsigned below)
{
	enemy_random_state ^= enemy_random_state << 13;
	enemy_random_state ^= enemy_random_state >> 7;
	enemy_random_state ^= enemy_random_state << 17;
	return (unsigned)(enemy_random_state >> 11) % below;
}

static inline __attribute__((always_inline)) int enemy_is_over(void)
{
	return enemy_now() >= enemy_end_ns;
}

/* Calls nothing, so that its caller is the leaf. */
static inline __attribute__((always_inline)) void enemy_spin(unsigned turns)
{
	for (volatile unsigned i = 0; i < turns; i++)
		;
}
