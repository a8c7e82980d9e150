// SPDX-License-Identifier: Apache-2.0
/* A thread that was stepped over pushf and popf goes on afterwards, and keeps its flags. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "stopped_thread.h"

/* Counts; ends with 3 where the carry flag is lost. */
static void count(volatile uint64_t *counter)
{
	for (;;) {
		uint64_t kept = 0;

		__asm__ volatile("lea -128(%%rsp), %%rsp; stc; pushfq; add $1, %0; popfq; setc %b0; lea 128(%%rsp), %%rsp" /* red zone */
				 : "+r"(kept)
				 :
				 : "cc", "memory");
		if (kept != 1)
			_exit(3);
		++*counter;
	}
}

static void test_flags(void **state)
{
	volatile uint64_t counter = 0;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		count(&counter);
	for (int stop = 0; stop < 100; stop++) {
		int signal = stop_thread(child);

		for (int n = 0; n < 3 + stop % 20; n++)
			signal = step_thread(child, signal);
		release_thread(child, signal);
		nanosleep(&(struct timespec){ .tv_nsec = 300000 }, NULL);
	}
	assert_int_equal(waitpid(child, NULL, WNOHANG), 0); /* it lives */
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_flags) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
