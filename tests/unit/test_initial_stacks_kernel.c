// SPDX-License-Identifier: Apache-2.0
/* The iterator's entry for a thread that has waited since before the start, while the thread gets a CPU: bpf/sched.bpf.c compiled for the
 * host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

static void *host_lookup(void *map, const void *key);
static uint64_t host_now(void);
static long host_read(void *to, uint32_t size, const void *from);

#define bpf_map_lookup_elem host_lookup
#define bpf_ktime_get_ns host_now
#define bpf_get_smp_processor_id() 0
#define bpf_probe_read_kernel host_read
#define bpf_task_pt_regs(task) 0
#define __builtin_preserve_access_index(expression) (expression)
#undef bpf_core_field_exists
#define bpf_core_field_exists(...) 1
#undef bpf_core_enum_value_exists
#define bpf_core_enum_value_exists(...) 0
#undef SEC
#define SEC(name) __attribute__((unused))
#include "../../bpf/sched.bpf.c"

#define OWN_STACK 42

static struct scratch scratch;
static struct thread waiting;
static bool gets_cpu; /* while the iterator reads it */

static void *host_lookup(void *map, const void *key)
{
	return map == &scratches ? &scratch : NULL;
}

static long host_read(void *to, uint32_t size, const void *from)
{
	memset(to, 0, size);
	return -1;
}

/* When the iterator reads the clock, the thread's wait is over, and it is in the next one. */
static uint64_t host_now(void)
{
	if (gets_cpu) {
		waiting.is = THREAD_OFF;
		waiting.key.user_stack = OWN_STACK;
	}
	return 1000;
}

static void send_one(bool meanwhile)
{
	struct task_struct task = { .pid = 7, .tgid = 7 };

	gets_cpu = meanwhile;
	memset(&waiting, 0, sizeof(waiting));
	add_initial_stack(&task, &task, &waiting);
	assert_int_equal(scratch.run, 0); /* given back */
	assert_int_equal(scratch.nr_users, 0);
	take_initial_stack(&waiting);
}

static void what_waits_still_is_known(void **state)
{
	send_one(false);
	assert_int_equal(waiting.is, THREAD_OFF);
	assert_int_equal(waiting.key.tgid, 7);
}

static void what_got_a_cpu_meanwhile_keeps_its_own_wait(void **state)
{
	send_one(true);
	assert_int_equal(waiting.is, THREAD_OFF);
	assert_int_equal(waiting.key.user_stack, OWN_STACK);
	assert_int_equal(waiting.key.tgid, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_waits_still_is_known),
		cmocka_unit_test(what_got_a_cpu_meanwhile_keeps_its_own_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
