// SPDX-License-Identifier: Apache-2.0
/* Estimates of what simulated threads allocate: one computes and calls at two rates by turns, one sleeps most of the time, one does little
 * but call. Probes slow them down in windows. The truth is known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "memory/estimate.h"

#define COST_NS 2000.0 /* of a call that is probed; half of it known from elsewhere */
#define WINDOW_NS 2e6
#define CYCLE_NS 100e6
#define RUNS 200

static uint32_t seed = 1;

static uint32_t random_u32(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return seed;
}

static double chance(void)
{
	return (random_u32() + 0.5) / 4294967296.0;
}

struct kind { /* of thread */
	double fast_ns, slow_ns;    /* own CPU time between two calls, in the two phases */
	double fast_part;           /* of the time in the first */
	double runs;                /* part of the time in which it runs */
	uint64_t bytes;
};

static const struct kind kinds[] = {
	{ .fast_ns = 1500, .slow_ns = 20000, .fast_part = 0.4, .runs = 1, .bytes = 100 },
	{ .fast_ns = 5000, .slow_ns = 5000, .fast_part = 1, .runs = 0.1, .bytes = 5000 },
	{ .fast_ns = 300, .slow_ns = 300, .fast_part = 1, .runs = 1, .bytes = 50 },
};

static double true_calls(const struct kind *kind, double cpu_ns)
{
	return cpu_ns * (kind->fast_part / kind->fast_ns + (1 - kind->fast_part) / kind->slow_ns);
}

/* A thread that sleeps is asleep or awake for the whole of a window. Awake it works till the window's end. Returns its cost. */
static double simulate_thread(struct estimate *estimate, uint32_t tid, const struct kind *kind, double weight, double length,
			      double wrong)
{
	double trap_ns = COST_NS / 2, measured_ns = COST_NS + wrong * trap_ns;
	double own_ns = chance() < kind->fast_part ? kind->fast_ns : kind->slow_ns;
	uint32_t nr = (uint32_t)(length * WINDOW_NS / (own_ns + COST_NS) + chance());
	struct estimate_window window = { .tgid = 1, .tid = tid, .weight = weight, .cpu_ns = (uint64_t)(length * WINDOW_NS),
					  .cost_ns = nr * measured_ns, .usual_cost_ns = nr * measured_ns, .trap_ns = nr * trap_ns };
	const struct stack_ids ids = { .ids.user_stack = tid, .tgid = 1 };
	uint32_t number;

	if (chance() >= kind->runs)
		return 0;
	number = estimate_add(estimate, &window);
	assert_int_not_equal(number, ESTIMATE_NONE);
	for (uint32_t i = 0; i < nr; i++)
		assert_int_equal(estimate_hit(estimate, number, &ids, kind->bytes), 0);
	return nr * COST_NS;
}

/* `wrong`: the cost of traps was measured by this part too high. Longer windows are as likely in a fast as in a slow phase; their weight
 * says how long they are. */
static struct estimate *simulate(uint32_t nr_windows, const struct kind *list, uint32_t nr, double wrong, double *ret_bytes)
{
	struct estimate *estimate = estimate_new();
	double paid_ns[3] = { 0 }, all_ns = 0, time_ns = nr_windows * CYCLE_NS;

	assert_non_null(estimate);
	for (uint32_t i = 0; i < nr_windows; i++) {
		double length = i % 4 ? 1 : 4;

		estimate_begin(estimate);
		for (uint32_t k = 0; k < nr; k++)
			paid_ns[k] += simulate_thread(estimate, k + 1, &list[k], CYCLE_NS / WINDOW_NS / length, length, wrong);
	}
	*ret_bytes = 0;
	for (uint32_t k = 0; k < nr; k++) {
		double cpu_ns = time_ns * list[k].runs;

		assert_int_equal(estimate_cpu(estimate, 1, k + 1, (uint64_t)cpu_ns), 0);
		all_ns += cpu_ns;
		*ret_bytes += true_calls(&list[k], cpu_ns - paid_ns[k]) * (double)list[k].bytes;
	}
	estimate_all_cpu(estimate, (uint64_t)all_ns);
	return estimate;
}

/* The estimate is right in the mean, and the error that it says is that which it has. */
static void check_kinds(const struct kind *list, uint32_t nr)
{
	double sum = 0, sum_z2 = 0;

	for (int run = 0; run < RUNS; run++) {
		struct estimate_result result;
		double bytes, z;
		struct estimate *estimate = simulate(100, list, nr, 0, &bytes);

		estimate_finish(estimate, &result);
		sum += result.bytes / bytes / RUNS;
		z = (result.bytes - bytes) / result.bytes_error;
		sum_z2 += z * z / RUNS;
		estimate_free(estimate);
	}
	if (fabs(sum - 1) > 0.01 || sqrt(sum_z2) > 1.5)
		fail_msg("%.3f of the truth in the mean; off by %.2f times the error that it says", sum, sqrt(sum_z2));
}

static void test_one_kind(void **state)
{
	check_kinds(&kinds[0], 1);
	check_kinds(&kinds[1], 1);
	check_kinds(&kinds[2], 1);
}

static void test_mixed(void **state)
{
	check_kinds(kinds, 3);
}

/* Threads that no window saw: their CPU time counts like that of the others. */
static void test_unseen(void **state)
{
	struct estimate_result result;
	double bytes;
	struct estimate *estimate = simulate(100, &kinds[2], 1, 0, &bytes);

	assert_int_equal(estimate_cpu(estimate, 1, 77, (uint64_t)(100 * CYCLE_NS)), 0);
	estimate_all_cpu(estimate, (uint64_t)(100 * CYCLE_NS));
	estimate_finish(estimate, &result);
	assert_true(fabs(result.bytes / bytes / 2 - 1) < 0.05);
	assert_true(fabs(result.unseen - 0.5) < 0.01);
	estimate_free(estimate);
}

/* Too few windows: no error is said. The sums of the stacks are the whole. */
static void test_few(void **state)
{
	struct sonde_alloc_sum sum;
	struct estimate_result result;
	struct stack_ids ids;
	double bytes, all = 0;
	struct estimate *estimate = simulate(5, &kinds[2], 1, 0, &bytes);

	estimate_finish(estimate, &result);
	assert_true(result.bytes_error < 0);
	for (uint32_t i = 0; i < estimate_nr(estimate); i++) {
		if (estimate_at(estimate, i, &ids, &sum))
			all += (double)sum.bytes;
	}
	assert_true(fabs(all / result.bytes - 1) < 0.001);
	estimate_free(estimate);
}

/* An interrupt in a probe is charged to it: in a window with few calls no time seems to be left. */
static void test_accident(void **state)
{
	const struct stack_ids ids = { .ids.user_stack = 1, .tgid = 1 };
	const struct estimate_window accident = { .tgid = 1, .tid = 1, .weight = CYCLE_NS / WINDOW_NS, .cpu_ns = 20000,
						  .cost_ns = 25000, .usual_cost_ns = 25000, .trap_ns = 4000 };
	struct estimate_result result;
	double bytes;
	struct estimate *estimate = simulate(100, &kinds[1], 1, 0, &bytes);
	uint32_t number;

	estimate_begin(estimate);
	number = estimate_add(estimate, &accident);
	for (int i = 0; i < 4; i++)
		assert_int_equal(estimate_hit(estimate, number, &ids, kinds[1].bytes), 0);
	estimate_finish(estimate, &result);
	if (fabs(result.bytes / bytes - 1) > 0.2)
		fail_msg("%.0f bytes, true %.0f", result.bytes, bytes);
	estimate_free(estimate);
}

/* A server with a thread for each request: more threads than are known by themselves, each seen once, and each with a stack of its own. */
static void test_many_threads(void **state)
{
	enum { THREADS = 200000 };
	struct estimate *estimate = estimate_new();
	struct estimate_result result;
	struct sonde_alloc_sum sum;
	struct stack_ids ids;
	double all = 0;

	for (uint32_t tid = 1; tid <= THREADS; tid++) {
		const struct estimate_window window = { .tgid = 1, .tid = tid, .weight = 50, .cpu_ns = 100000, .cost_ns = 2000 };
		const struct stack_ids of_thread = { .ids.user_stack = tid, .tgid = 1 };

		estimate_begin(estimate);
		assert_int_equal(estimate_hit(estimate, estimate_add(estimate, &window), &of_thread, 100), 0);
		assert_int_equal(estimate_cpu(estimate, 1, tid, 98000), 0);
	}
	estimate_all_cpu(estimate, (uint64_t)(50 * 98000.0 * THREADS));
	estimate_finish(estimate, &result);
	for (uint32_t i = 0; i < estimate_nr(estimate); i++) {
		if (estimate_at(estimate, i, &ids, &sum))
			all += (double)sum.bytes;
	}
	assert_true(estimate_nr(estimate) < THREADS && result.nr_unknown > 0);
	if (fabs(all / (50.0 * 100 * THREADS) - 1) > 0.05)
		fail_msg("%.3f of the truth", all / (50.0 * 100 * THREADS));
	estimate_free(estimate);
}

/* Of many threads each is seen in few windows, and some of these were accidents, which left it no time. */
static void test_many_seldom(void **state)
{
	enum { THREADS = 500, SEEN = 4, CALLS = 10 };
	const double own_ns = 500;
	struct estimate *estimate = estimate_new();
	struct estimate_result result;

	for (uint32_t i = 0; i < 40; i++) {
		estimate_begin(estimate);
		for (uint32_t tid = 1; tid <= THREADS; tid++) {
			const struct stack_ids ids = { .ids.user_stack = 1, .tgid = 1 };
			const double cost_ns = CALLS * COST_NS, measured_ns = cost_ns * (0.7 + 0.6 * chance());
			const struct estimate_window window = { .tgid = 1, .tid = tid, .weight = 50,
								.cpu_ns = (uint64_t)(CALLS * own_ns + cost_ns),
								.cost_ns = measured_ns, .usual_cost_ns = cost_ns };
			uint32_t number;

			if (tid % (40 / SEEN) != i % (40 / SEEN))
				continue;
			number = estimate_add(estimate, &window);
			for (int call = 0; call < CALLS; call++)
				assert_int_equal(estimate_hit(estimate, number, &ids, 100), 0);
		}
	}
	for (uint32_t tid = 1; tid <= THREADS; tid++)
		assert_int_equal(estimate_cpu(estimate, 1, tid, (uint64_t)(1e6 * own_ns)), 0);
	estimate_all_cpu(estimate, (uint64_t)(THREADS * 1e6 * own_ns));
	estimate_finish(estimate, &result);
	if (fabs(result.objects / (THREADS * 1e6) - 1) > 0.1)
		fail_msg("%.3f of the truth", result.objects / (THREADS * 1e6));
	estimate_free(estimate);
}

/* Threads whose CPU time in windows is not known count by the time, and what is left of all CPU time is theirs; that of a process whose
 * threads were never looked at is all that is known. */
static void test_by_time(void **state)
{
	const struct stack_ids ids = { .ids.user_stack = 1, .tgid = 1 };
	struct estimate *estimate = estimate_new(), *ended = estimate_new();
	struct estimate_result result;

	for (uint32_t i = 0; i < 40; i++) {
		const struct estimate_window main_thread = { .tgid = 1, .tid = 1, .weight = 50, .cpu_ns = 1000000 };
		const struct estimate_window others = { .tgid = 1, .tid = ESTIMATE_BY_TIME, .weight = 50 };
		uint32_t number;

		estimate_begin(estimate);
		assert_int_not_equal(estimate_add(estimate, &main_thread), ESTIMATE_NONE);
		number = estimate_add(estimate, &others);
		for (int call = 0; call < 10; call++)
			assert_int_equal(estimate_hit(estimate, number, &ids, 100), 0);
		estimate_begin(ended);
		assert_int_equal(estimate_hit(ended, estimate_add(ended, &main_thread), &ids, 100), 0);
	}
	assert_int_equal(estimate_cpu(estimate, 1, 1, 2000000000), 0);
	estimate_all_cpu(estimate, 5000000000);
	estimate_finish(estimate, &result);
	assert_true(fabs(result.objects - 40 * 10 * 50) < 1);
	estimate_all_cpu(ended, 4000000000);
	estimate_finish(ended, &result);
	assert_true(fabs(result.objects - 4000) < 1); /* one in a million ns */
	estimate_free(estimate);
	estimate_free(ended);
}

/* Calls that come so close to each other that the cost of the probes hides what is between them: the error says so, also where more was
 * measured than there was. */
static void test_close(void **state)
{
	const struct kind kind = { .fast_ns = 15, .slow_ns = 15, .fast_part = 1, .runs = 1, .bytes = 50 };

	for (double wrong = -0.1; wrong < 0.2; wrong += 0.01) {
		struct estimate_result result;
		double bytes;
		struct estimate *estimate = simulate(100, &kind, 1, wrong, &bytes);

		estimate_finish(estimate, &result);
		if (fabs(result.bytes - bytes) > 4 * result.bytes_error)
			fail_msg("measured by %.2f wrong: %.0f bytes +- %.0f, true %.0f", wrong, result.bytes, result.bytes_error, bytes);
		estimate_free(estimate);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_kind),
		cmocka_unit_test(test_mixed),
		cmocka_unit_test(test_unseen),
		cmocka_unit_test(test_few),
		cmocka_unit_test(test_accident),
		cmocka_unit_test(test_many_threads),
		cmocka_unit_test(test_many_seldom),
		cmocka_unit_test(test_by_time),
		cmocka_unit_test(test_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
