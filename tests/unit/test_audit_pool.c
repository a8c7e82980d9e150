// SPDX-License-Identifier: Apache-2.0
/* The audit's workers: which worker gets whose files, and what happens when one fails. This program is its own worker: the tgid in a
 * request tells it how to misbehave. The frames of its answers count what it has received so far. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "audit/audit_serve.h"
#include "base/clock.h"
#include "parse/audit_pool.h"
#include "worker/serve.h"

enum { GOOD = 1000, CRASH = 2000, SPIN = 3000, WRONG = 4000, SHORT = 5000, HUNDRED = 100 }; /* tgids: each and the 99 after it */
enum { NR_QUESTIONS, NR_FILES, OWNERS, NR_FACTS }; /* frames of an answer; OWNERS: the sum of the uids of all files */

#define ANNA 1001u
#define BEN 1010u
#define CARL 1100u
#define LONG_NS (10 * NS_PER_S)
#define SHORT_NS (100 * NS_PER_MS)

/* --- the worker's side ---------------------------------------------------------------------------------------------------------------- */

static uint64_t facts[NR_FACTS];

static void take_files(const struct wire_fds *fds)
{
	for (uint32_t i = 0; i < fds->nr; i++) {
		struct stat st;

		facts[NR_FILES]++;
		facts[OWNERS] += fstat(fds->fds[i], &st) ? 1u << 31 : st.st_uid;
	}
}

static int answer(void *arg, uint32_t kind, struct wire_fds *fds, const void *body, size_t size, struct diag *diag, struct buffer *to)
{
	const struct audit_message *request = body;
	struct audit_stack stack = { .nr_frames = NR_FACTS, .end = AUDIT_END_ROOT };
	volatile bool forever = true;
	uint32_t what = request->tgid - request->tgid % HUNDRED;

	facts[NR_QUESTIONS]++;
	take_files(fds);
	if (what == CRASH)
		raise(SIGSEGV);
	while (what == SPIN && forever)
		;
	memcpy(stack.frames, facts, sizeof(facts));
	for (uint32_t i = what == SHORT; i < request->nr_stacks; i++) {
		audit_answers_append(to, &stack);
		if (what == WRONG)
			to->data[to->size - NR_FACTS * sizeof(uint64_t) - 1] = 1; /* an audit_end that does not exist */
	}
	return 0;
}

/* --- the owner's side ----------------------------------------------------------------------------------------------------------------- */

struct scene {
	struct object_table *objects;
	struct account account;
	struct audit_pool *pool;
	char folder[32];
	uint32_t ours, annas, bens, carls; /* files */
	uint32_t nr_answered, nr_refused[AUDIT_REASON_COUNT];
	uint64_t facts[NR_FACTS]; /* of the last answer */
	bool is_adding;
};

static struct {
	struct sonde_deferred_record head;
	uint8_t stack[SONDE_DEFERRED_MIN_PAGES * SONDE_DEFERRED_PAGE_BYTES];
} record;

static void take(void *arg, const struct audit_batch *batch, struct reader *answers, enum audit_reason reason)
{
	struct scene *scene = arg;

	assert_false(scene->is_adding); /* not while a stack is being added */
	for (uint32_t i = 0; i < batch->nr_stacks; i++) {
		struct audit_stack stack;

		if (answers) {
			audit_answers_next(answers, &stack);
			memcpy(scene->facts, stack.frames, sizeof(scene->facts));
			scene->nr_answered++;
		} else {
			scene->nr_refused[reason]++;
		}
	}
	assert_true(!answers || !reader_left(answers));
}

/* Makes an ELF file in the folder. As root, gives it to that user. */
static uint32_t make_file(struct scene *scene, const char *name, uint32_t uid)
{
	const Elf64_Ehdr header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
				    .e_type = ET_DYN,
				    .e_machine = EM_X86_64,
				    .e_version = EV_CURRENT,
				    .e_ehsize = sizeof(header) };
	CLEANUP(closep) int fd = -1;
	char path[64];
	uint32_t object;

	snprintf(path, sizeof(path), "%s/%s", scene->folder, name);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	assert_int_equal(write(fd, &header, sizeof(header)), sizeof(header));
	if (!geteuid())
		assert_int_equal(fchown(fd, uid, uid), 0);
	object = object_table_find(scene->objects, path);
	assert_true(object != OBJECT_NONE && object_table_at(scene->objects, object)->elf);
	object_table_hold(scene->objects, object);
	return object;
}

static void begin(struct scene *scene, uint64_t max_cpu_ns)
{
	*scene = (struct scene){ .objects = object_table_new(NULL), .folder = "/tmp/audit_pool_XXXXXX" };
	assert_non_null(scene->objects);
	assert_non_null(mkdtemp(scene->folder));
	scene->ours = make_file(scene, "ours", 0);
	assert_int_equal(audit_pool_new(&(struct audit_pool_options){ .program = "/proc/self/exe",
								      .max_cpu_ns = max_cpu_ns,
								      .objects = scene->objects,
								      .account = &scene->account,
								      .done = take,
								      .arg = scene },
					NULL, &scene->pool),
			 0);
}

static void begin_with_strangers(struct scene *scene)
{
	if (geteuid())
		skip();
	begin(scene, LONG_NS);
	scene->annas = make_file(scene, "annas", ANNA);
	scene->bens = make_file(scene, "bens", BEN);
	scene->carls = make_file(scene, "carls", CARL);
}

static void end(struct scene *scene)
{
	CLEANUP(closedirp) DIR *folder = opendir(scene->folder);

	audit_pool_free(scene->pool);
	object_table_free(scene->objects);
	for (struct dirent *entry; folder && (entry = readdir(folder));)
		unlinkat(dirfd(folder), entry->d_name, 0);
	rmdir(scene->folder);
}

static int add(struct scene *scene, uint32_t tgid, const uint32_t *files, uint32_t nr_files)
{
	const struct audit_message_module module = { .start_pc = 0x1000, .end_pc = 0x2000, .object = scene->ours };
	const uint64_t walked[] = { 0x1000, 0x1100 };
	int err;

	record.head = (struct sonde_deferred_record){ .type = SONDE_RECORD_DEFERRED, .tgid = tgid, .stack_bytes = sizeof(record.stack) };
	scene->is_adding = true;
	err = audit_pool_add(scene->pool, &(struct audit_request){ .record = &record.head,
								   .generation = 1,
								   .modules = &module,
								   .nr_modules = 1,
								   .files = files,
								   .nr_files = nr_files,
								   .walked = walked,
								   .nr_walked = 2 });
	scene->is_adding = false;
	return err;
}

static int add_one(struct scene *scene, uint32_t tgid, uint32_t file)
{
	return add(scene, tgid, &file, 1);
}

static void finish(struct scene *scene)
{
	assert_int_equal(audit_pool_finish(scene->pool, LONG_NS), 0);
}

static void a_worker_keeps_its_files(void **state)
{
	struct scene scene;

	begin(&scene, LONG_NS);
	for (uint32_t i = 0; i < 3 * AUDIT_BATCH_STACKS; i++)
		assert_int_equal(add_one(&scene, GOOD + i % 3, scene.ours), 0);
	finish(&scene);
	assert_int_equal(scene.nr_answered, 3 * AUDIT_BATCH_STACKS);
	assert_int_equal(scene.facts[NR_QUESTIONS], 3); /* stacks of one process share a request */
	assert_int_equal(scene.facts[NR_FILES], 1);
	end(&scene);
}

/* When a worker would hold more files than it may, a new one starts. */
static void a_worker_keeps_so_many_files(void **state)
{
	struct scene scene;

	begin(&scene, LONG_NS);
	for (uint32_t i = 0; i < AUDIT_SERVE_MAX_FILES + 10; i++) {
		char name[16];

		snprintf(name, sizeof(name), "file%u", i);
		assert_int_equal(add_one(&scene, GOOD, make_file(&scene, name, 0)), 0);
		if (i % 32 == 31)
			finish(&scene);
	}
	finish(&scene);
	assert_int_equal(scene.nr_answered, AUDIT_SERVE_MAX_FILES + 10);
	assert_int_equal(scene.facts[NR_FILES], 10);
	assert_int_equal(scene.facts[NR_QUESTIONS], 1);
	end(&scene);
}

/* A process whose stacks made a worker fail is not tried again. All others are, by a new worker that gets its files again. */
static void check_failure(uint32_t tgid, uint64_t max_cpu_ns)
{
	struct scene scene;

	begin(&scene, max_cpu_ns);
	assert_int_equal(add_one(&scene, GOOD, scene.ours), 0);
	finish(&scene);
	assert_int_equal(add_one(&scene, tgid, scene.ours), 0);
	finish(&scene);
	assert_int_equal(scene.nr_refused[AUDIT_REASON_NO_ANSWER], 1);
	assert_int_equal(scene.account.nr_notes, 1);
	assert_non_null(strstr(scene.account.notes[0], scene.folder));
	assert_int_equal(add_one(&scene, tgid, scene.ours), -EPERM);
	assert_int_equal(add_one(&scene, GOOD + 1, scene.ours), 0);
	finish(&scene);
	assert_int_equal(scene.nr_answered, 2);
	assert_int_equal(scene.facts[NR_QUESTIONS], 1);
	assert_int_equal(scene.facts[NR_FILES], 1);
	end(&scene);
}

static void a_crash(void **state)
{
	check_failure(CRASH, LONG_NS);
}

static void a_question_that_takes_long(void **state)
{
	check_failure(SPIN, SHORT_NS);
}

static void answers_that_are_not_sound(void **state)
{
	check_failure(WRONG, LONG_NS);
	check_failure(SHORT, LONG_NS);
}

/* After a failure the worker's stacks wait a while: repeated crashes do not start workers all the time. */
static void a_worker_that_failed_rests(void **state)
{
	struct scene scene;
	bool is_busy = true;

	begin(&scene, LONG_NS);
	assert_int_equal(add_one(&scene, CRASH, scene.ours), 0);
	while (!scene.nr_refused[AUDIT_REASON_NO_ANSWER])
		assert_int_equal(audit_pool_step(scene.pool, &is_busy), 0);
	assert_int_equal(add_one(&scene, GOOD, scene.ours), 0);
	assert_int_equal(audit_pool_step(scene.pool, &is_busy), 0);
	assert_false(is_busy);
	finish(&scene);
	assert_int_equal(scene.nr_answered, 1);
	end(&scene);
}

/* Missing answers are counted; the queue and the wait are bounded. */
static void the_queue_has_a_bound(void **state)
{
	struct scene scene;
	uint32_t nr = 0;
	int err;

	begin(&scene, LONG_NS);
	do
		err = add_one(&scene, SPIN + nr % 50, scene.ours);
	while (!err && ++nr < 100000);
	assert_int_equal(err, -EAGAIN);
	assert_in_range(nr, 100, (8 << 20) / sizeof(record));
	assert_int_equal(audit_pool_finish(scene.pool, NS_PER_MS), 0);
	assert_int_equal(scene.nr_refused[AUDIT_REASON_NO_ANSWER], nr);
	assert_int_equal(add_one(&scene, GOOD, scene.ours), 0);
	finish(&scene);
	assert_int_equal(scene.nr_answered, 1);
	end(&scene);
}

static void strangers_have_workers_of_their_own(void **state)
{
	struct scene scene;

	begin_with_strangers(&scene);
	assert_int_equal(add(&scene, GOOD, (uint32_t[]){ scene.annas, scene.bens }, 2), -EPERM);
	assert_int_equal(add(&scene, GOOD, (uint32_t[]){ scene.annas, scene.ours }, 2), 0);
	finish(&scene);
	assert_int_equal(scene.facts[NR_FILES], 2);
	assert_int_equal(scene.facts[OWNERS], ANNA);
	assert_int_equal(add_one(&scene, GOOD, scene.bens), 0);
	finish(&scene);
	assert_int_equal(scene.facts[OWNERS], BEN);
	assert_int_equal(add_one(&scene, GOOD, scene.ours), 0);
	finish(&scene);
	assert_int_equal(scene.facts[OWNERS], 0);
	assert_int_equal(scene.facts[NR_QUESTIONS], 1);
	assert_int_equal(add_one(&scene, GOOD, scene.annas), 0); /* her worker still runs */
	finish(&scene);
	assert_int_equal(scene.facts[OWNERS], ANNA);
	assert_int_equal(scene.facts[NR_QUESTIONS], 2);
	end(&scene);
}

/* A third user waits until one of the two workers is idle and was another user's for a while. Then it is a new process. */
static void workers_change_hands(void **state)
{
	struct scene scene;
	uint64_t begin_ns;
	int err;

	begin_with_strangers(&scene);
	begin_ns = clock_ns();
	assert_int_equal(add_one(&scene, GOOD, scene.annas), 0);
	assert_int_equal(add_one(&scene, GOOD, scene.bens), 0);
	assert_int_equal(add_one(&scene, GOOD, scene.carls), -EAGAIN);
	finish(&scene);
	err = add_one(&scene, GOOD, scene.carls);
	assert_true(err == -EAGAIN || clock_ns() - begin_ns > 200 * NS_PER_MS);
	for (int turn = 0; err && turn < 100; turn++) {
		usleep(50000);
		err = add_one(&scene, GOOD, scene.carls);
	}
	assert_int_equal(err, 0);
	finish(&scene);
	assert_int_equal(scene.facts[OWNERS], CARL);
	assert_int_equal(scene.facts[NR_QUESTIONS], 1);
	end(&scene);
}

/* Each process of a user crashes a worker: when the crashes have cost too much, none of that user's processes is tried any more. */
static void failures_are_charged(void **state)
{
	struct scene scene;
	uint32_t i;

	begin_with_strangers(&scene);
	for (i = 0; i < HUNDRED && !scene.nr_refused[AUDIT_REASON_NOT_ASKED]; i++) {
		assert_int_equal(add_one(&scene, CRASH + i, scene.annas), 0);
		finish(&scene);
	}
	assert_in_range(i, 2, 31);
	assert_non_null(strstr(scene.account.notes[scene.account.nr_notes - 1], "annas"));
	assert_int_equal(add_one(&scene, GOOD, scene.ours), 0);
	assert_int_equal(add_one(&scene, GOOD, scene.bens), 0);
	finish(&scene);
	assert_int_equal(scene.nr_answered, 2);
	end(&scene);
}

/* Root owned the file when it was opened, another user owns it at the request. */
static void a_file_that_was_given_away_is_not_handed_on(void **state)
{
	struct scene scene;
	char path[64];

	begin_with_strangers(&scene);
	snprintf(path, sizeof(path), "%s/ours", scene.folder);
	assert_int_equal(chown(path, ANNA, ANNA), 0);
	assert_int_equal(add_one(&scene, GOOD, scene.ours), 0);
	finish(&scene);
	assert_int_equal(scene.nr_answered, 1);
	assert_int_equal(scene.facts[NR_FILES], 0);
	end(&scene);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_worker_keeps_its_files),
		cmocka_unit_test(a_worker_keeps_so_many_files),
		cmocka_unit_test(a_crash),
		cmocka_unit_test(a_question_that_takes_long),
		cmocka_unit_test(answers_that_are_not_sound),
		cmocka_unit_test(a_worker_that_failed_rests),
		cmocka_unit_test(the_queue_has_a_bound),
		cmocka_unit_test(strangers_have_workers_of_their_own),
		cmocka_unit_test(workers_change_hands),
		cmocka_unit_test(failures_are_charged),
		cmocka_unit_test(a_file_that_was_given_away_is_not_handed_on),
	};
	int code;

	return serve_as_worker(argc, argv, answer, NULL, &code) ? code : cmocka_run_group_tests(tests, NULL, NULL);
}
