// SPDX-License-Identifier: Apache-2.0
/* Which labels a process has at which moment. The processes are real, the times of the side-band are made up, and where minutes pass, the
 * clock is put forward. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "process/allowance.h"
#include "process/identities.h"

#define PROGRAM "/bin/sleep"

static struct identities *identities;
static struct environment_names names;

static int set_up(void **state)
{
	names = (struct environment_names){ 0 };
	identities = identities_new(NULL, &names);
	return !identities;
}

static int tear_down(void **state)
{
	identities_free(identities);
	return 0;
}

static void wait_for_service(uint32_t tgid, const char *service)
{
	struct process_identity identity = { 0 };
	struct environment_values values;

	while (process_identity_read(tgid, &names, &identity, &values) || strcmp(identity.service, service) != 0)
		usleep(1000);
}

static uint32_t start(const char *service)
{
	char text[64];
	char *argv[] = { PROGRAM, "1000", NULL }, *environment[] = { text, NULL };
	pid_t pid = fork();

	snprintf(text, sizeof(text), "OTEL_SERVICE_NAME=%s", service);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execve(PROGRAM, argv, environment);
		_exit(127);
	}
	wait_for_service((uint32_t)pid, service);
	return (uint32_t)pid;
}

static void end(uint32_t tgid)
{
	kill((pid_t)tgid, SIGKILL);
	waitpid((pid_t)tgid, NULL, 0);
}

static const char *service_of(const struct process_labels *labels)
{
	for (uint32_t i = 0; labels && i < labels->nr; i++) {
		if (!strcmp(labels->list[i].key, "service.name"))
			return labels->list[i].text;
	}
	return labels ? "none" : "not known";
}

static const char *service_at(uint32_t tgid, uint64_t time_ns)
{
	return service_of(identities_at(identities, tgid, time_ns));
}

static const char *service_since(uint32_t tgid, uint64_t time_ns)
{
	return service_of(identities_since(identities, tgid, time_ns));
}

static void test_lives(void **state)
{
	uint32_t tgid = start("shop");
	uint64_t before_ns = clock_ns();

	assert_string_equal(service_at(tgid, before_ns), "not known");
	assert_int_equal(identities_meet(identities, tgid), 0);
	assert_string_equal(service_at(tgid, 1), "shop"); /* nothing is known of another program before */
	assert_string_equal(service_at(tgid, clock_ns()), "shop");
	end(tgid);
	assert_int_equal(identities_exit(identities, tgid, clock_ns()), 0);
	assert_string_equal(service_at(tgid, clock_ns()), "shop"); /* its last samples arrive later */
	identities_prune(identities, clock_ns() + 1);
	assert_int_equal(identities_nr(identities), 0);
	assert_int_equal(identities_bytes(identities), 0);
	assert_string_equal(service_at(tgid, clock_ns()), "not known");
}

/* An exec is seen after the process was read: by its time, what was read is of the program before it. */
static void test_exec_after(void **state)
{
	uint32_t tgid = start("old");
	uint64_t exec_ns;

	assert_int_equal(identities_meet(identities, tgid), 0);
	exec_ns = clock_ns();
	end(tgid); /* the new program cannot be read */
	assert_int_equal(identities_exec(identities, tgid, exec_ns), 0);
	assert_string_equal(service_at(tgid, exec_ns - 1), "old");
	assert_string_equal(service_at(tgid, exec_ns), "not known");
	identities_prune(identities, exec_ns + 1);
	assert_string_equal(service_at(tgid, exec_ns - 1), "not known");
	assert_int_equal(identities_nr(identities), 1);
}

/* An exec had happened before the process was read: what was read is of the new program, and samples from before it have none. */
static void test_exec_before(void **state)
{
	uint64_t exec_ns = clock_ns();
	uint32_t tgid = start("new");

	assert_int_equal(identities_meet(identities, tgid), 0);
	assert_int_equal(identities_exec(identities, tgid, exec_ns), 0);
	assert_string_equal(service_at(tgid, exec_ns - 1), "not known");
	assert_string_equal(service_at(tgid, exec_ns), "new");
	end(tgid);
}

/* A sample from before an exec arrives after it was seen. */
static void test_late_sample(void **state)
{
	uint64_t exec_ns = clock_ns();
	uint32_t tgid = start("new");

	assert_int_equal(identities_exec(identities, tgid, exec_ns), 0);
	assert_int_equal(identities_read_begun(identities), 0);
	assert_string_equal(service_at(tgid, exec_ns), "new");
	assert_int_equal(identities_meet(identities, tgid), 0);
	assert_string_equal(service_at(tgid, exec_ns - 1), "not known");
	end(tgid);
}

/* The pid of a process that has ended is another's. */
static void test_pid_again(void **state)
{
	uint32_t tgid = start("shop");
	uint64_t exit_ns, fork_ns;

	assert_int_equal(identities_meet(identities, tgid), 0);
	exit_ns = clock_ns();
	end(tgid);
	fork_ns = clock_ns();
	assert_int_equal(identities_exit(identities, tgid, exit_ns), 0);
	assert_int_equal(identities_fork(identities, tgid, fork_ns), 0);
	assert_string_equal(service_at(tgid, exit_ns), "shop");
	assert_string_equal(service_at(tgid, fork_ns), "not known");
	assert_int_equal(identities_meet(identities, tgid), 0); /* it has ended, too */
	assert_string_equal(service_at(tgid, fork_ns), "not known");
}

/* A time in which a process ran two programs has the labels of neither; one in which it was started has its labels. */
static void test_since(void **state)
{
	uint64_t begin_ns = clock_ns(), exec_ns;
	uint32_t tgid = start("shop");

	assert_int_equal(identities_fork(identities, tgid, begin_ns + 1), 0);
	assert_string_equal(service_since(tgid, begin_ns), "not known");
	assert_int_equal(identities_meet(identities, tgid), 0);
	assert_string_equal(service_since(tgid, begin_ns), "shop");
	exec_ns = clock_ns();
	assert_int_equal(identities_exec(identities, tgid, exec_ns), 0);
	assert_int_equal(identities_meet(identities, tgid), 0);
	assert_string_equal(service_since(tgid, begin_ns), "not known");
	assert_string_equal(service_since(tgid, exec_ns), "shop");
	assert_int_equal(identities_exit(identities, tgid, clock_ns()), 0);
	assert_string_equal(service_since(tgid, exec_ns), "shop");
	assert_int_equal(identities_fork(identities, tgid, clock_ns()), 0); /* its id is another's */
	assert_string_equal(service_since(tgid, exec_ns), "not known");
	end(tgid);
}

/* The same of a process that ended before anybody asked for it; and after events were lost, when nobody knows. */
static void test_since_pid_again(void **state)
{
	uint64_t begin_ns = clock_ns(), exit_ns;
	uint32_t tgid = start("shop");

	exit_ns = clock_ns();
	assert_int_equal(identities_exit(identities, tgid, exit_ns), 0); /* of the process before */
	assert_int_equal(identities_fork(identities, tgid, exit_ns + 1), 0);
	assert_int_equal(identities_meet(identities, tgid), 0);
	assert_string_equal(service_since(tgid, begin_ns), "not known");
	assert_string_equal(service_since(tgid, exit_ns + 1), "shop");
	identities_lost(identities, exit_ns);
	assert_int_equal(identities_fork(identities, tgid, exit_ns + 1), 0);
	assert_int_equal(identities_meet(identities, tgid), 0);
	assert_string_equal(service_since(tgid, begin_ns), "not known");
	assert_string_equal(service_since(tgid, exit_ns), "shop");
	end(tgid);
}

/* That process was forgotten long before, but not before the time that is asked for began. */
static void test_since_pid_again_later(void **state)
{
	uint64_t begin_ns = clock_ns(), exit_ns;
	uint32_t tgid = start("shop");

	exit_ns = clock_ns();
	assert_int_equal(identities_exit(identities, tgid, exit_ns), 0); /* of the process before */
	identities_prune(identities, exit_ns + 1);
	assert_int_equal(identities_nr(identities), 0);
	assert_int_equal(identities_fork(identities, tgid, exit_ns + NS_PER_S), 0);
	assert_int_equal(identities_meet(identities, tgid), 0);
	assert_string_equal(service_since(tgid, begin_ns), "not known");
	assert_string_equal(service_since(tgid, exit_ns + NS_PER_S), "shop");
	end(tgid);
}

static void test_many_execs(void **state)
{
	uint32_t tgid = start("shop");
	uint64_t exec_ns[20];

	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(identities_meet(identities, tgid), 0);
		exec_ns[i] = clock_ns();
		assert_int_equal(identities_exec(identities, tgid, exec_ns[i]), 0);
	}
	assert_string_equal(service_at(tgid, exec_ns[0] - 1), "not known"); /* forgotten */
	assert_string_equal(service_at(tgid, exec_ns[19] - 1), "shop");
	end(tgid);
}

static void test_lost(void **state)
{
	uint32_t tgid = start("shop");
	uint64_t lost_ns;

	assert_int_equal(identities_meet(identities, tgid), 0);
	lost_ns = clock_ns();
	identities_lost(identities, lost_ns);
	assert_int_equal(identities_bytes(identities), 0);
	assert_int_equal(identities_meet(identities, tgid), 0);
	assert_string_equal(service_at(tgid, lost_ns - 1), "not known");
	assert_string_equal(service_at(tgid, lost_ns), "shop");
	end(tgid);
}

/* Labels outlive the table: a window's samples hold them. */
static void test_reference(void **state)
{
	uint32_t tgid = start("shop");
	struct process_labels *labels;

	assert_int_equal(identities_meet(identities, tgid), 0);
	labels = process_labels_ref(identities_at(identities, tgid, clock_ns()));
	identities_lost(identities, clock_ns());
	assert_int_equal(labels->nr > 0, 1);
	for (uint32_t i = 1; i < labels->nr; i++)
		assert_true(strcmp(labels->list[i - 1].key, labels->list[i].key) < 0);
	process_labels_unref(labels);
	end(tgid);
}

static void test_many_processes(void **state)
{
	for (uint32_t tgid = 1u << 30; tgid < (1u << 30) + 1000; tgid++)
		assert_int_equal(identities_fork(identities, tgid, tgid), 0);
	assert_int_equal(identities_nr(identities), 1000);
	for (uint32_t tgid = 1u << 30; tgid < (1u << 30) + 1000; tgid += 2)
		assert_int_equal(identities_exit(identities, tgid, tgid), 0);
	identities_prune(identities, UINT64_MAX);
	assert_int_equal(identities_nr(identities), 500);
	for (uint32_t tgid = 1u << 30; tgid < (1u << 30) + 1000; tgid++)
		assert_int_equal(identities_exit(identities, tgid, tgid), 0);
	identities_prune(identities, UINT64_MAX);
	assert_int_equal(identities_nr(identities), 0);
	assert_int_equal(identities_meet(identities, 0), 0); /* idle CPUs have no process */
	assert_int_equal(identities_nr(identities), 0);
}

/* --- what processes publish of themselves --------------------------------------------------------------------------------------------- */

#define PAGE 4096
#define MAPS_NS (1623 * NS_PER_S) /* after 1, 2, 4, ... 512 and 600 seconds maps are read in any case */

static uint64_t ahead_ns;
static uint32_t nr_maps; /* readings of maps */

int __real_clock_gettime(clockid_t clock, struct timespec *ret_time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	int err = __real_clock_gettime(clock, ret_time);

	if (clock == CLOCK_MONOTONIC)
		ret_time->tv_sec += (time_t)(ahead_ns / NS_PER_S);
	return err;
}

int __real_proxy_maps(struct proxy *proxy, uint32_t tgid, uint32_t tid, FILE **ret_file);
int __wrap_proxy_maps(struct proxy *proxy, uint32_t tgid, uint32_t tid, FILE **ret_file);
int __wrap_proxy_maps(struct proxy *proxy, uint32_t tgid, uint32_t tid, FILE **ret_file)
{
	nr_maps++;
	return __real_proxy_maps(proxy, tgid, tid, ret_file);
}

struct publisher {
	uint32_t tgid;
	int orders, answers;
};

/* As the specification has it. */
static void publish(void)
{
	static const char payload[] = "\x0a\x1c\x0a\x1a\x0a\x0cservice.name\x12\x0a\x0a\x08"
				      "checkout";
	struct {
		char signature[8];
		uint32_t version, size;
		uint64_t published_ns;
		const char *payload;
	} const header = { "OTEL_CTX", 2, sizeof(payload) - 1, 1, payload };
	int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
	void *mapped = fd < 0 || ftruncate(fd, PAGE) ? MAP_FAILED : mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (mapped == MAP_FAILED)
		_exit(1);
	memcpy(mapped, &header, sizeof(header));
}

static void obey(int orders, int answers)
{
	void *spare = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char order = ' ';

	do {
		if (order == 'u')
			munmap(spare, PAGE);
		if (order == 'p')
			publish();
	} while (write(answers, &order, 1) == 1 && read(orders, &order, 1) == 1);
	_exit(0);
}

/* p: publishes; u: unmaps as much as that maps. */
static void order(const struct publisher *publisher, char what)
{
	char answer;

	assert_int_equal(write(publisher->orders, &what, 1), 1);
	assert_int_equal(read(publisher->answers, &answer, 1), 1);
}

static struct publisher start_publisher(void)
{
	int orders[2], answers[2];
	struct publisher publisher;
	char ready;

	assert_int_equal(pipe2(orders, O_CLOEXEC) || pipe2(answers, O_CLOEXEC), 0);
	publisher = (struct publisher){ .tgid = (uint32_t)fork(), .orders = orders[1], .answers = answers[0] };
	if (publisher.tgid == 0) {
		close(orders[1]);
		obey(orders[0], answers[1]);
	}
	close(orders[0]);
	close(answers[1]);
	assert_int_equal(read(publisher.answers, &ready, 1), 1);
	ahead_ns = nr_maps = 0;
	return publisher;
}

static void end_publisher(struct publisher *publisher)
{
	closep(&publisher->orders);
	closep(&publisher->answers);
	end(publisher->tgid);
}

static void meet_at(uint32_t tgid, uint64_t at_ns)
{
	ahead_ns = at_ns;
	assert_int_equal(identities_meet(identities, tgid), 0);
}

/* Meets it each second until that time. */
static void meet_until(uint32_t tgid, uint64_t until_ns)
{
	while (ahead_ns < until_ns)
		meet_at(tgid, ahead_ns + NS_PER_S);
}

static void test_published_later(void **state)
{
	struct publisher publisher = start_publisher();

	meet_at(publisher.tgid, 0);
	meet_until(publisher.tgid, 4 * NS_PER_S);
	order(&publisher, 'p');
	meet_until(publisher.tgid, 6 * NS_PER_S);
	assert_string_not_equal(service_at(publisher.tgid, clock_ns()), "checkout");
	meet_until(publisher.tgid, 8 * NS_PER_S);
	assert_string_equal(service_at(publisher.tgid, clock_ns()), "checkout");
	assert_int_equal(nr_maps, 2);
	end_publisher(&publisher);
}

/* Maps of a process that stays as it is are read once, then every ten minutes; and of each program that it executes. */
static void test_unchanged(void **state)
{
	struct publisher publisher = start_publisher();

	meet_at(publisher.tgid, 0);
	meet_until(publisher.tgid, MAPS_NS - 2 * NS_PER_S);
	assert_int_equal(nr_maps, 1);
	meet_until(publisher.tgid, MAPS_NS + 599 * NS_PER_S);
	assert_int_equal(nr_maps, 2);
	meet_until(publisher.tgid, MAPS_NS + 602 * NS_PER_S);
	assert_int_equal(nr_maps, 3);
	assert_int_equal(identities_exec(identities, publisher.tgid, clock_ns()), 0);
	meet_at(publisher.tgid, ahead_ns);
	assert_int_equal(nr_maps, 4);
	end_publisher(&publisher);
}

/* It has the size that it had. */
static void test_published_for_another_mapping(void **state)
{
	struct publisher publisher = start_publisher();

	meet_at(publisher.tgid, 0);
	order(&publisher, 'u');
	order(&publisher, 'p');
	meet_until(publisher.tgid, MAPS_NS - 2 * NS_PER_S);
	assert_string_not_equal(service_at(publisher.tgid, clock_ns()), "checkout");
	meet_until(publisher.tgid, MAPS_NS + NS_PER_S);
	assert_string_equal(service_at(publisher.tgid, clock_ns()), "checkout");
	end_publisher(&publisher);
}

/* A reading that took far more than was left is paid back. */
static void test_allowance(void **state)
{
	struct allowance allowance = allowance_new(ALLOWANCE_FEW_NS);

	assert_true(allowance_is_given(&allowance, 1));
	allowance_charge(&allowance, NULL, UINT64_MAX, 1000 * NS_PER_S);
	usleep(10000);
	assert_false(allowance_is_given(&allowance, 1));
	allowance.given_ns -= 1001 * NS_PER_S;
	assert_true(allowance_is_given(&allowance, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lives, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_exec_after, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_since, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_since_pid_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_since_pid_again_later, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_exec_before, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_late_sample, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_pid_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many_execs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lost, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reference, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many_processes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_published_later, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_unchanged, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_published_for_another_mapping, set_up, tear_down),
		cmocka_unit_test(test_allowance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
