// SPDX-License-Identifier: Apache-2.0
/* Requests that the caller does not wait for, and their budget. This program is its own worker. */
#include <errno.h>
#include <linux/futex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "parse/background.h"
#include "parse/file_budget.h"
#include "worker/serve.h"

enum { HELLO, SPIN, SLEEP };

#define LONG_NS (60 * NS_PER_S)
#define SHORT_NS NS_PER_S /* CPU time; the limit by the clock is three times that */

static const struct file_owner anna = { .uid = 1000, .is_local = true }, ben = { .uid = 1001, .is_local = true };

static int answer(void *arg, uint32_t kind, struct wire_fds *fds, const void *body, size_t size, struct diag *diag, struct buffer *to)
{
	volatile bool forever = true;
	uint32_t word = 0;

	while (kind == SPIN && forever)
		;
	if (kind == SLEEP)
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL); /* nobody wakes it */
	buffer_text(to, "hello");
	return 0;
}

/* --- the owner's side ----------------------------------------------------------------------------------------------------------------- */

static int ask(struct background *background, uint32_t object, struct file_owner owner, uint32_t kind, uint64_t max_cpu_ns,
	       uint64_t *ret_cost_ns)
{
	CLEANUP(buffer_done) struct buffer to = BUFFER_INIT(0);
	struct background_request asked = {
		.object = object, .owner = owner, .request = { .kind = kind, .max_cpu_ns = max_cpu_ns }, .max_answer_bytes = 100
	};
	int err = background_ask(background, &asked, NULL, &to);

	if (!err)
		assert_string_equal(to.data, "hello");
	if (ret_cost_ns)
		*ret_cost_ns = asked.cost_ns;
	return err;
}

static int ask_until_answered(struct background *background, uint32_t object, struct file_owner owner, uint32_t kind, uint64_t *ret_cost_ns)
{
	int err;

	do {
		err = ask(background, object, owner, kind, LONG_NS, ret_cost_ns);
		usleep(1000);
	} while (err == -EINPROGRESS);
	return err;
}

/* Anna's file takes all the time that it may. Ben's is read meanwhile; Anna's other requests wait for their turn. */
static void one_slow_file_keeps_nobody_else_waiting(void **state)
{
	struct background *background = background_new("/proc/self/exe", 128u << 20);
	uint64_t cost_ns = 0;

	assert_non_null(background);
	assert_int_equal(ask_until_answered(background, 1, anna, HELLO, NULL), 0); /* her worker has started */
	assert_int_equal(ask(background, 2, anna, SPIN, SHORT_NS, NULL), -EINPROGRESS);
	assert_true(background_has(background, 2, SPIN));
	assert_int_equal(ask(background, 3, anna, HELLO, LONG_NS, NULL), -EINPROGRESS);
	assert_false(background_has(background, 3, HELLO));
	assert_int_equal(ask_until_answered(background, 4, ben, HELLO, NULL), 0);
	assert_int_equal(ask_until_answered(background, 2, anna, SPIN, &cost_ns), -ETIMEDOUT);
	assert_true(cost_ns > 0);
	assert_int_equal(ask_until_answered(background, 3, anna, HELLO, NULL), 0);
	background_free(background);
}

static void a_file_that_is_forgotten_is_read_no_more(void **state)
{
	struct background *background = background_new("/proc/self/exe", 128u << 20);

	assert_int_equal(ask(background, 1, anna, SPIN, LONG_NS, NULL), -EINPROGRESS);
	background_forget(background, 1);
	assert_false(background_has(background, 1, SPIN));
	assert_int_equal(ask_until_answered(background, 2, anna, HELLO, NULL), 0);
	background_free(background);
}

/* All requests together may wait 200 ms at once. After that, background_may_wait() says no. */
static void waiting_ends(void **state)
{
	struct background *background = background_new("/proc/self/exe", 128u << 20);
	uint32_t nr = 0;

	while (nr < 1000 && background_may_wait(background)) {
		assert_int_equal(ask(background, 1, anna, SPIN, LONG_NS, NULL), -EINPROGRESS);
		nr++;
	}
	assert_in_range(nr, 1, 999);
	background_free(background);
}

/* A sleeping worker hangs, a computing one does not. */
static void hanging_is_told_from_being_slow(void **state)
{
	CLEANUP(buffer_done) struct buffer to = BUFFER_INIT(100);
	struct worker *worker;

	assert_int_equal(worker_new("/proc/self/exe", 128u << 20, NULL, &worker), 0);
	assert_int_equal(
	    worker_ask(worker, &(struct worker_request){ .kind = SLEEP, .max_cpu_ns = LONG_NS, .max_idle_ns = 100 * NS_PER_MS }, NULL, &to),
	    -ETIME);
	assert_int_equal(worker_ask(worker,
				    &(struct worker_request){ .kind = SPIN, .max_cpu_ns = 300 * NS_PER_MS, .max_idle_ns = 50 * NS_PER_MS },
				    NULL, &to),
			 -ETIMEDOUT);
	assert_int_equal(
	    worker_ask(worker, &(struct worker_request){ .kind = HELLO, .max_cpu_ns = LONG_NS, .max_idle_ns = 10 * NS_PER_S }, NULL, &to),
	    0);
	worker_free(worker);
}

static void everybody_pays_for_his_own(void **state)
{
	const struct file_owner root = { .is_trusted = true, .is_local = true }, many = { .uid = 5, .is_local = true };
	struct file_budget *budget = file_budget_new((struct file_budget_limits){ .owner_ns = 100, .total_ns = 250 });
	struct diag diag = { 0 };

	file_budget_spend(budget, &root, 1000000);
	assert_true(file_budget_left(budget, &root, &diag) == UINT64_MAX);
	file_budget_spend(budget, &anna, 60);
	assert_int_equal(file_budget_left(budget, &anna, &diag), 40);
	assert_int_equal(file_budget_left(budget, &ben, &diag), 100);
	file_budget_spend(budget, &anna, 70);
	assert_false(diag.err);
	assert_int_equal(file_budget_left(budget, &anna, &diag), 0);
	assert_non_null(strstr(diag.text, "user 1000"));
	diag = (struct diag){ 0 };
	assert_int_equal(file_budget_left(budget, &anna, &diag), 0);
	assert_false(diag.err); /* one message is enough */
	file_budget_spend(budget, &ben, 90);
	assert_int_equal(file_budget_left(budget, &many, &diag), 30); /* what is left of the total */
	file_budget_free(budget);
}

/* A FUSE server may report any uid and serve any number of file systems: once one hangs, none of them is read. Of root's file systems only
 * the one that hangs is avoided. */
static void what_hangs_is_left_alone(void **state)
{
	const struct file_owner fuse = { .device = 7, .is_users = true }, other_fuse = { .device = 8, .is_users = true };
	const struct file_owner nfs = { .device = 9, .is_trusted = true }, other_nfs = { .device = 10, .is_trusted = true };
	struct file_budget *budget = file_budget_new((struct file_budget_limits){ .owner_ns = 100, .total_ns = 250 });
	struct diag diag = { 0 };

	file_budget_spend(budget, &fuse, 60);
	assert_int_equal(file_budget_left(budget, &other_fuse, &diag), 100);
	file_budget_hang(budget, &nfs);
	assert_int_equal(file_budget_left(budget, &nfs, &diag), 0);
	assert_string_equal(diag.text, "its file system does not answer");
	assert_true(file_budget_left(budget, &other_nfs, NULL) == UINT64_MAX);
	assert_int_equal(file_budget_left(budget, &other_fuse, NULL), 100);
	file_budget_hang(budget, &fuse);
	assert_int_equal(file_budget_left(budget, &other_fuse, NULL), 0);
	assert_int_equal(file_budget_left(budget, &anna, NULL), 100);
	file_budget_free(budget);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_slow_file_keeps_nobody_else_waiting),
		cmocka_unit_test(a_file_that_is_forgotten_is_read_no_more),
		cmocka_unit_test(waiting_ends),
		cmocka_unit_test(hanging_is_told_from_being_slow),
		cmocka_unit_test(everybody_pays_for_his_own),
		cmocka_unit_test(what_hangs_is_left_alone),
	};
	int code;

	return serve_as_worker(argc, argv, answer, NULL, &code) ? code : cmocka_run_group_tests(tests, NULL, NULL);
}
