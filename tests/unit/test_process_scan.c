// SPDX-License-Identifier: Apache-2.0
/* The cost of reading the mappings of all processes: users whose processes have many mappings, and a stop request. This program is its
 * own proxy. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stop_fd.h"
#include "track/process_scan.h"

#define USER 12347
#define OTHER 12348
#define NR_EACH 4
#define MAPPINGS 20000 /* with as many others between them: takes longer than the 5 ms per user here, plus what is free */

struct scene {
	struct process_table *table;
	struct proxy *proxy;
	pid_t users[NR_EACH], others[NR_EACH];
};

/* Runs in the child. */
static void live_of_mappings(uid_t uid, uint32_t nr_mappings, int ready_fd)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, nr_mappings * 2 * page_bytes + page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	for (uint32_t i = 0; pages != MAP_FAILED && i < nr_mappings; i++) {
		if (mprotect(pages + 2 * i * page_bytes, page_bytes, PROT_READ | PROT_EXEC))
			_exit(1);
	}
	if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid) || prctl(PR_SET_PDEATHSIG, SIGKILL) ||
	    write(ready_fd, "x", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static pid_t start(uid_t uid, uint32_t nr_mappings)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid)
		live_of_mappings(uid, nr_mappings, ready[1]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void scene_init(struct scene *scene)
{
	*scene = (struct scene){ 0 };
	if (geteuid() != 0) {
		print_message("SKIPPED: nobody else can be made\n");
		skip();
	}
	for (uint32_t i = 0; i < NR_EACH; i++) {
		scene->users[i] = start(USER, MAPPINGS);
		scene->others[i] = start(OTHER, 1);
	}
	assert_int_equal(proxy_new(NULL, &scene->proxy), 0);
	scene->table = process_table_new(scene->proxy);
	assert_non_null(scene->table);
}

static void scene_done(struct scene *scene)
{
	for (uint32_t i = 0; i < NR_EACH && scene->users[i] > 0; i++) {
		kill(scene->users[i], SIGKILL);
		waitpid(scene->users[i], NULL, 0);
		kill(scene->others[i], SIGKILL);
		waitpid(scene->others[i], NULL, 0);
	}
	process_table_free(scene->table);
	proxy_free(scene->proxy);
}

static struct process_scan_left scan(const struct scene *scene, uint64_t user_ns, int stop_fd)
{
	const struct process_scan scan = { scene->table, scene->proxy, stop_fd, user_ns, UINT64_MAX };
	struct process_scan_left left = { 0 };

	assert_int_equal(process_scan_run(&scan, clock_ns(), &left, NULL), 0);
	return left;
}

static bool is_known(const struct scene *scene, pid_t pid)
{
	/* they are forks of this program */
	return process_table_find(scene->table, (uint32_t)pid, UINT64_MAX - 1, (uintptr_t)is_known) != NULL;
}

static uint32_t nr_known(const struct scene *scene, const pid_t pids[NR_EACH])
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < NR_EACH; i++)
		nr += is_known(scene, pids[i]);
	return nr;
}

/* One process uses up its user's whole share. Nobody else misses anything. */
static void a_user_has_his_share(void **state)
{
	CLEANUP(scene_done) struct scene scene;
	struct process_scan_left left;

	scene_init(&scene);
	left = scan(&scene, 5 * NS_PER_MS, -1);
	assert_true(is_known(&scene, getpid()));
	assert_int_equal(nr_known(&scene, scene.others), NR_EACH);
	assert_int_equal(nr_known(&scene, scene.users), 1);
	assert_true(left.nr >= NR_EACH - 1); /* the machine may run others */
	assert_int_not_equal(left.uid, 0);
}

static void an_ordinary_share_is_enough(void **state)
{
	CLEANUP(scene_done) struct scene scene;

	scene_init(&scene);
	assert_int_equal(scan(&scene, 1000 * NS_PER_S, -1).nr, 0);
	assert_int_equal(nr_known(&scene, scene.others), NR_EACH);
	assert_int_equal(nr_known(&scene, scene.users), NR_EACH);
}

static void a_stop_ends_it(void **state)
{
	CLEANUP(closep) int stop_fd = stop_fd_new();
	CLEANUP(scene_done) struct scene scene;

	scene_init(&scene);
	stop_fd_set(stop_fd);
	assert_int_equal(scan(&scene, 1000 * NS_PER_S, stop_fd).nr, 0);
	assert_int_equal(process_table_nr_processes(scene.table), 0);
	assert_true(stop_fd_take(stop_fd)); /* for the loop that follows */
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_has_his_share),
		cmocka_unit_test(an_ordinary_share_is_enough),
		cmocka_unit_test(a_stop_ends_it),
	};
	int code;

	return serve_as_proxy(argc, argv, &code) ? code : cmocka_run_group_tests(tests, NULL, NULL);
}
