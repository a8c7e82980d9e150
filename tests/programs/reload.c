// SPDX-License-Identifier: Apache-2.0
/* reload SECONDS MILLISECONDS LIBRARY0 LIBRARY1: opens the two in turn, spins in each for that long, closes it. Meanwhile the thread is
 * called lib-0 or lib-1, so that each sample shows which library is right. Prints at the end `same N of M`: how often a library got the
 * address of the previous one. */
#include <dlfcn.h>
#include <stdint.h>
#include <time.h>

#include "known.h"

typedef unsigned long (*entry_fn)(unsigned long n, volatile sig_atomic_t *done);

static volatile sig_atomic_t slice_done;
static volatile unsigned long sink;
static timer_t slice_timer;

static void on_slice(int signo)
{
	(void)signo;
	slice_done = 1;
}

KNOWN static void *visit(const char *path, unsigned which, const struct itimerspec *slice)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	entry_fn entry = library ? (entry_fn)dlsym(library, "reload_entry") : NULL;

	if (!entry)
		_exit(2);
	slice_done = 0;
	timer_settime(slice_timer, 0, slice, NULL);
	prctl(PR_SET_NAME, which ? "lib-1" : "lib-0");
	sink = entry(which, &slice_done);
	prctl(PR_SET_NAME, "reload");
	if (dlclose(library))
		_exit(2);
	return (void *)((uintptr_t)entry & ~(uintptr_t)4095);
}

KNOWN static void reload_loop(char **paths, const struct itimerspec *slice)
{
	unsigned nr = 0, nr_same = 0;
	void *last = NULL;

	puts("chain lib-0 main;reload_loop;visit;reload_entry;red_middle;red_leaf");
	puts("chain lib-1 main;reload_loop;visit;reload_entry;blue_middle;blue_leaf");
	known_ready();
	for (; !known_done; nr++) {
		void *page = visit(paths[nr % 2], nr % 2, slice);

		nr_same += page == last;
		last = page;
	}
	printf("same %u of %u\n", nr_same, nr);
}

int main(int argc, char **argv)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec slice = {{0, 0}, {0, 0}};

	if (argc < 5 || timer_create(CLOCK_MONOTONIC, &event, &slice_timer))
		return 2;
	slice.it_value.tv_nsec = strtol(argv[2], NULL, 10) * 1000000;
	signal(SIGUSR1, on_slice);
	known_start(argv[1]);
	reload_loop(argv + 3, &slice);
	return 0;
}
