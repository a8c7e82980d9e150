// SPDX-License-Identifier: Apache-2.0
/* Stacks of waiting threads, read from their memory: here our own memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/initial_stacks.h"

#define PAGE 4096
#define NR_PAGES 8
#define REG_SP 7
#define ID 0x1234567890abcdefULL

static struct initial_stacks *initial_stacks;
static char *stack; /* NR_PAGES of them; the pages before and after are unmapped */

/* The deferred stacks received. */
static struct {
	struct sonde_deferred_record header;
	char bytes[INITIAL_STACK_BYTES];
} deferred[2];
static uint32_t nr_deferred;
static int answer;

static int take(void *arg, const struct sonde_deferred_record *record)
{
	assert_ptr_equal(arg, deferred);
	assert_true(nr_deferred < 2);
	memcpy(&deferred[nr_deferred++], record, sizeof(*record) + record->stack_bytes);
	return answer;
}

static int set_up(void **state)
{
	initial_stacks = initial_stacks_new(NULL);
	stack = mmap(NULL, (NR_PAGES + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!initial_stacks || stack == MAP_FAILED)
		return -1;
	stack += PAGE;
	if (mprotect(stack, NR_PAGES * PAGE, PROT_READ | PROT_WRITE) || munmap(stack - PAGE, PAGE) || munmap(stack + NR_PAGES * PAGE, PAGE))
		return -1;
	for (int i = 0; i < NR_PAGES * PAGE; i++)
		stack[i] = (char)(i * 7 + i / PAGE);
	answer = 0;
	nr_deferred = 0;
	return 0;
}

static int tear_down(void **state)
{
	initial_stacks_free(initial_stacks);
	return munmap(stack, NR_PAGES * PAGE);
}

static int send(uint64_t id, size_t sp)
{
	struct sonde_initial_stack_record record = {
		.type = SONDE_RECORD_INITIAL_STACK, .tgid = (uint32_t)getpid(), .tid = 5, .time_ns = 99, .id = id, .in_syscall = 1
	};

	for (uint64_t i = 0; i < SONDE_NR_REGS; i++)
		record.regs[i] = 100 + i;
	record.regs[REG_SP] = (uint64_t)stack + sp;
	nr_deferred = 0;
	return initial_stacks_take(initial_stacks, &record, take, deferred);
}

static void check_raw(uint32_t number, uint64_t id, size_t start, size_t size)
{
	const struct sonde_deferred_record *got = &deferred[number].header;

	assert_int_equal(got->type, SONDE_RECORD_DEFERRED);
	assert_int_equal(got->use, SONDE_DEFERRED_INITIAL);
	assert_int_equal(got->tgid, getpid());
	assert_int_equal(got->time_ns, 99);
	assert_int_equal(got->in_syscall, 1);
	assert_int_equal(got->id, id);
	assert_int_equal(got->regs[0], 100);
	assert_int_equal(got->regs[SONDE_REG_PC], 100 + SONDE_REG_PC);
	assert_int_equal(got->stack_bytes, size);
	if (size)
		assert_int_equal(got->stack_start, (uint64_t)stack + start);
	assert_memory_equal(deferred[number].bytes, stack + start, size);
}

static void test_copies(void **state)
{
	assert_int_equal(send(ID, 1000), 0); /* as much as a deferred stack holds */
	assert_int_equal(nr_deferred, 2);
	check_raw(0, ID, 1000 - SONDE_RED_ZONE_BYTES, INITIAL_STACK_BYTES);
	check_raw(1, ~ID, 0, 0);
	assert_int_equal(send(ID + 1, NR_PAGES * PAGE - 1000), 0); /* up to the end of the mapping */
	check_raw(0, ID + 1, NR_PAGES * PAGE - 1000 - SONDE_RED_ZONE_BYTES, 1000 + SONDE_RED_ZONE_BYTES);
	assert_int_equal(send(ID + 2, 0), 0); /* the red zone is not mapped */
	check_raw(0, ID + 2, 0, INITIAL_STACK_BYTES);
	assert_int_equal(send(ID + 3, NR_PAGES * PAGE + 2000), 0); /* nothing is mapped */
	check_raw(0, ID + 3, 0, 0);
	check_raw(1, ~(ID + 3), 0, 0);
	assert_int_equal(initial_stacks_nr(initial_stacks), 4);
	answer = -EIO;
	assert_int_equal(send(ID + 4, 0), -EIO);
	assert_int_equal(nr_deferred, 1);
}

/* Only a wait that ended after the last read has the stack that was read. */
static void test_late(void **state)
{
	uint64_t before_ns = clock_ns(), after_ns;
	char bytes[8];

	assert_int_equal(send(ID, 1000), 0);
	after_ns = clock_ns();
	assert_true(initial_stacks_stack(initial_stacks, ID, after_ns) == ID);
	assert_int_equal(initial_stacks_nr_late(initial_stacks), 0);
	assert_true(initial_stacks_stack(initial_stacks, ID, before_ns) == ~ID);
	assert_int_equal(initial_stacks_nr_late(initial_stacks), 1);
	while (clock_ns() == after_ns)
		;
	assert_int_equal(initial_stacks_read_on(initial_stacks, ID, (uint32_t)getpid(), (uint64_t)stack + 77, bytes, sizeof(bytes)), 0);
	assert_memory_equal(bytes, stack + 77, sizeof(bytes));
	assert_true(initial_stacks_stack(initial_stacks, ID, after_ns) == ~ID); /* not all of the stack was read by then */
	assert_true(initial_stacks_stack(initial_stacks, ID, clock_ns()) == ID);
	assert_true(initial_stacks_stack(initial_stacks, ID + 7, before_ns) == ID + 7); /* not one of our ids: another deferred stack */
}

static void test_failed_reading_is_none(void **state)
{
	uint64_t after_ns;
	char bytes[8];

	assert_int_equal(send(ID, 1000), 0);
	after_ns = clock_ns();
	while (clock_ns() == after_ns)
		;
	assert_int_equal(initial_stacks_read_on(initial_stacks, ID, (uint32_t)getpid(), (uint64_t)stack - 8, bytes, sizeof(bytes)),
			 -EFAULT);
	/* registers only: walked without memory */
	assert_int_equal(initial_stacks_read_on(initial_stacks, ~ID, (uint32_t)getpid(), (uint64_t)stack, bytes, sizeof(bytes)), -EFAULT);
	assert_true(initial_stacks_stack(initial_stacks, ID, after_ns) == ID);
}

/* All copies together are limited; beyond that the walk reads the stacks itself. */
static void test_limit(void **state)
{
	uint64_t copied = 0;
	uint32_t nr = 0;

	do {
		assert_int_equal(send(ID + nr++, 1000), 0);
		copied += deferred[0].header.stack_bytes;
		assert_int_equal(nr_deferred, 2);
	} while (deferred[0].header.stack_bytes);
	assert_int_equal(copied, 64 << 20);
	assert_int_equal(initial_stacks_nr(initial_stacks), nr);
}

#define test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = { test(test_copies), test(test_late), test(test_failed_reading_is_none), test(test_limit) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
