// SPDX-License-Identifier: Apache-2.0
/* Does a known amount of work: counted SECONDS PAGES SLEEPS CHILDREN THREADS CPU_MS, then waits for SECONDS. Each of CHILDREN touches
 * PAGES pages as well; each of THREADS uses CPU_MS of CPU time. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long cpu_ms;

static void touch(long pages)
{
	long page_bytes = sysconf(_SC_PAGESIZE);
	volatile char *memory = mmap(NULL, (size_t)(pages * page_bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise((void *)memory, (size_t)(pages * page_bytes), MADV_NOHUGEPAGE);
	for (long i = 0; i < pages; i++)
		memory[i * page_bytes] = 1;
}

static void *spin(void *arg)
{
	struct timespec now = { 0 };
	volatile unsigned long turns = 0;

	(void)arg;
	while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < cpu_ms) {
		for (int i = 0; i < 10000; i++)
			turns++;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long numbers[6] = { 0 };
	pthread_t threads[16];

	for (int i = 1; i < argc && i <= 6; i++)
		numbers[i - 1] = atol(argv[i]);
	cpu_ms = numbers[5];
	touch(numbers[1]);
	for (long i = 0; i < numbers[2]; i++)
		usleep(1000);
	for (long i = 0; i < numbers[3]; i++) {
		if (fork() == 0) {
			touch(numbers[1]);
			_exit(0);
		}
		wait(NULL);
	}
	for (long i = 0; i < numbers[4] && i < 16; i++)
		pthread_create(&threads[i], NULL, spin, NULL);
	if (numbers[0]) {
		printf("pid %d\nready\n", getpid());
		fflush(stdout);
	}
	for (long i = 0; i < numbers[4] && i < 16; i++)
		pthread_join(threads[i], NULL);
	sleep((unsigned int)numbers[0]);
	return 0;
}
