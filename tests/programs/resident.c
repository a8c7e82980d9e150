// SPDX-License-Identifier: Apache-2.0
/* Makes its resident memory grow, a kind in each function, after a byte on stdin (or at once with an argument), then prints its
 * /proc/self/status and waits for the end of stdin. Memory that is used again, and a child's, is not growth. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noipa))
#define MIB ((size_t)1 << 20)
#define HUGE (2 * MIB)
#define THREADS 4

static NOINLINE char *map(size_t bytes, int flags, int fd)
{
	char *region = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (region == MAP_FAILED)
		abort();
	return region;
}

static void touch(char *region, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += 4096)
		region[at] = 1;
}

static NOINLINE void grow_huge(void)
{
	char *region = map(34 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	region += HUGE - (size_t)region % HUGE;
	madvise(region, 32 * MIB, MADV_HUGEPAGE);
	touch(region, 32 * MIB);
}

static NOINLINE char *grow_anonymous(void)
{
	char *region = map(64 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	madvise(region, 64 * MIB, MADV_NOHUGEPAGE);
	touch(region, 64 * MIB);
	return region;
}

static NOINLINE void fill_again(char *region)
{
	for (int i = 0; i < 5; i++) {
		madvise(region, 64 * MIB, MADV_DONTNEED);
		touch(region, 64 * MIB);
	}
}

static NOINLINE void grow_shared(void)
{
	touch(map(16 * MIB, MAP_SHARED | MAP_ANONYMOUS, -1), 16 * MIB);
}

static NOINLINE void grow_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	if (fd < 0 || ftruncate(fd, 8 * MIB))
		abort();
	touch(map(8 * MIB, MAP_SHARED, fd), 8 * MIB);
}

static NOINLINE void *grow_in_thread(void *arg)
{
	char *region = map(8 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	madvise(region, 8 * MIB, MADV_NOHUGEPAGE);
	touch(region, 8 * MIB);
	return arg;
}

/* A child that writes to what it has from its parent, and then has more. */
static NOINLINE void grow_in_child(char *region)
{
	pid_t child = fork();

	if (!child) {
		touch(region, 64 * MIB);
		region = map(4 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1);
		madvise(region, 4 * MIB, MADV_NOHUGEPAGE);
		touch(region, 4 * MIB);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void say_status(void)
{
	char text[16384];
	int fd = open("/proc/self/status", O_RDONLY);
	ssize_t size = read(fd, text, sizeof(text));

	if (size <= 0 || write(1, text, (size_t)size) != size || write(1, "done\n", 5) != 5)
		_exit(1);
}

int main(int argc, char **argv __attribute__((unused)))
{
	char *before = map(24 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1), *region;
	pthread_t threads[THREADS];

	touch(before, 24 * MIB);
	if (write(1, "ready\n", 6) != 6 || (argc < 2 && read(0, &(char){ 0 }, 1) != 1))
		return 1;
	grow_huge();
	region = grow_anonymous();
	fill_again(region);
	grow_shared();
	grow_file(getenv("RESIDENT_FILE"));
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, grow_in_thread, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	grow_in_child(region);
	say_status();
	return argc < 2 && read(0, &(char){ 0 }, 1) == 1;
}
