// SPDX-License-Identifier: Apache-2.0
/* paged SECONDS DEPTH: a thread other than main, whose stack is a file's memory, spins below DEPTH frames of three quarters of a page
 * each. The main thread keeps taking the pages of that stack out of memory, so that an interrupt cannot read them. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

#include "known.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21 /* Linux 5.4 */
#endif
#define STACK_BYTES (16u << 20)

static unsigned depth;

KNOWN static unsigned long paged_leaf(void)
{
	ENTER();
	known_print();
	known_ready();
	return known_spin();
}

KNOWN static unsigned long paged(unsigned left)
{
	volatile char room[3000];

	ENTER();
	room[77] = (char)left;
	return (left ? paged(left - 1) : paged_leaf()) + (unsigned)room[77];
}

KNOWN static void *paged_thread(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "paged");
	ENTER();
	return (void *)paged(depth);
}

int main(int argc, char **argv)
{
	pthread_attr_t attributes;
	pthread_t thread;
	FILE *file = tmpfile();
	void *stack;

	if (argc < 3 || !file || ftruncate(fileno(file), STACK_BYTES))
		return 2;
	depth = (unsigned)atoi(argv[2]);
	known_start(argv[1]);
	stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
	if (stack == MAP_FAILED || pthread_attr_init(&attributes) || pthread_attr_setstack(&attributes, stack, STACK_BYTES) ||
	    pthread_create(&thread, &attributes, paged_thread, NULL))
		return 3;
	while (!known_done) {
		madvise(stack, STACK_BYTES, MADV_PAGEOUT);
		usleep(1000);
	}
	pthread_join(thread, NULL);
	return 0;
}
