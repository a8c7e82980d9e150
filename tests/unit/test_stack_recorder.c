// SPDX-License-Identifier: Apache-2.0
/* Takes records of the kernel side and checks the profile made of them. */
#include "closed_window.h"
#include "engine/measurement.h"
#include "kernel_records.h"
#include "session/sampling.h"

static struct stack_recorder *recorder;
static struct process_table *processes;
static struct profile *profile;  /* the finished profile */
static struct account account;   /* the recording's account */

static int set_up(void **state)
{
	account = (struct account){ 0 };
	profile = NULL;
	recorder = stack_recorder_new(false, &account);
	processes = process_table_new(NULL);
	return !recorder || !processes;
}

static int tear_down(void **state)
{
	stack_recorder_free(recorder, processes);
	process_table_free(processes);
	profile_free(profile);
	return 0;
}

static void send_stack_of(uint32_t tgid, uint32_t generation, uint64_t hash, enum sonde_stop stop, uint16_t nr_frames,
			  const uint64_t *frames)
{
	send_stack_record(recorder, (struct sonde_stack_record){ .tgid = tgid,
								 .time_ns = 5,
								 .hash = hash,
								 .generation = generation,
								 .nr_frames = nr_frames,
								 .stop = (uint8_t)stop },
			  frames);
}

static void send_stack(uint32_t tgid, uint64_t hash, enum sonde_stop stop, uint16_t nr_frames, const uint64_t *frames)
{
	send_stack_of(tgid, 0, hash, stop, nr_frames, frames);
}

static void send_sample_of(uint32_t tgid, uint32_t generation, uint64_t user_stack, uint64_t runtime_stack)
{
	send_sample_record(recorder, (struct sonde_sample_record){ .user_stack = user_stack,
								   .runtime_stack = runtime_stack,
								   .tgid = tgid,
								   .tid = tgid,
								   .user_state = SONDE_STACK_STORED,
								   .runtime_state = runtime_stack ? SONDE_STACK_STORED : SONDE_STACK_NONE,
								   .generation = generation,
								   .comm = "worker" });
}

static void send_sample(enum sonde_stack_state user_state, uint64_t user_stack, enum sonde_stack_state kernel_state, uint64_t kernel_stack)
{
	send_sample_record(recorder, (struct sonde_sample_record){ .cpu = 1,
								   .user_stack = user_stack,
								   .kernel_stack = kernel_stack,
								   .tgid = TGID,
								   .tid = TGID + 1,
								   .user_state = (uint8_t)user_state,
								   .kernel_state = (uint8_t)kernel_state,
								   .comm = "worker" });
}

/* What runs in the interpreter: runs of frames. A frame's code is the letter it is named by. 0 ends a run whose native frame is `where`. */
static void send_runtime(uint64_t hash, uint64_t runtime_hash, enum sonde_runtime_stop stop, uint16_t nr_frames,
			 const struct sonde_runtime_frame *frames)
{
	struct {
		struct sonde_runtime_record header;
		struct sonde_runtime_frame frames[16];
	} record = { .header = { .type = SONDE_RECORD_RUNTIME,
				 .tgid = TGID,
				 .time_ns = 5,
				 .hash = runtime_hash,
				 .nr_frames = nr_frames,
				 .stop = (uint8_t)stop,
				 .stopped_runtime = SONDE_RUNTIME_PHP } };

	memcpy(record.frames, frames, nr_frames * sizeof(*frames));
	assert_int_equal(stack_recorder_record(recorder, &record), 0);
	send_sample_of(TGID, 0, hash, runtime_hash);
}

static uint64_t hidden;    /* code whose name cannot be read for now */
static uint32_t nr_hidden; /* number of attempts to read it */
static uint64_t reused;    /* code whose memory another function has now, with the same cookie */
static uint32_t nr_inlined; /* functions that the code 'i' is inlined into */

static enum runtime_answer describe(void *arg, uint32_t tgid, uint32_t generation, const struct sonde_runtime_frame *frame,
				    const struct sonde_code_record *copy, bool is_again, struct runtime_function *ret_function)
{
	bool is_hidden = frame->code == hidden && !copy;
	uint32_t level = ret_function->level;

	nr_hidden += is_hidden;
	*ret_function = (struct runtime_function){ .name = { is_hidden ? '?' : (char)frame->code }, .line = (uint32_t)frame->where };
	if (frame->code == reused)
		ret_function->name[0] = 'z';
	ret_function->is_lasting = frame->code != 'r';
	ret_function->is_refuted = frame->code == 'x';
	ret_function->has_caller = frame->code == 'i' && level < nr_inlined;
	return is_hidden ? RUNTIME_NOT_YET : RUNTIME_NAMED;
}

static uint64_t touched_pc;

static void touch(void *arg, uint32_t tgid, uint64_t pc)
{
	touched_pc = pc;
}

/* The walker: each deferred stack gets the frames in `walked`. */
static struct deferred_stack walked;
static uint32_t nr_walks;

static int walk(void *arg, const struct sonde_deferred_record *record, struct deferred_stack *ret_stack)
{
	assert_int_equal(record->stack_bytes, 5);
	assert_memory_equal(record + 1, "stack", 5);
	nr_walks++;
	*ret_stack = walked;
	return 0;
}

static const struct stack_walker walker = { .walk = walk, .describe = describe, .touch = touch };

static void finish(void)
{
	struct measurement measurement = { .type = &sampling_measurement };
	struct closed closed;
	uint32_t nr_skipped;

	assert_int_equal(stack_recorder_resolve(recorder, processes, &walker), 0);
	close_recorder(&closed, recorder, processes, &account);
	assert_int_equal(measurement_profile(&measurement, &closed.window, &closed.naming, &profile, &nr_skipped), 0);
	closed_done(&closed);
}

/* The names of a stack's functions, leaf first, separated by blanks. */
static const char *names_of(uint32_t stack)
{
	static char text[4096];
	const uint32_t *locations;
	uint32_t nr;

	text[0] = '\0';
	locations = profile_stack_at(profile, stack, &nr);
	for (uint32_t i = 0; i < nr; i++) {
		const struct profile_function *function =
		    profile_function_at(profile, profile_location_at(profile, locations[i])->function);

		if (i)
			strncat(text, " ", sizeof(text) - strlen(text) - 1);
		strncat(text, profile_string_text(profile, function->name), sizeof(text) - strlen(text) - 1);
	}
	return text;
}

static void check_user(uint32_t sample, const char *want)
{
	uint32_t stack = profile_sample_at(profile, sample)->user_stack;

	if (!want)
		assert_int_equal(stack, PROFILE_NONE);
	else
		assert_string_equal(names_of(stack), want);
}

static const uint64_t frames[] = { 0x1000, 0x2000 | SONDE_FRAME_RETURN, 0x3000 | SONDE_FRAME_RETURN };

static void test_complete(void **state)
{
	const struct profile_sample *sample;
	const uint32_t *locations;
	uint32_t nr;

	send_stack(TGID, 77, SONDE_STOP_COMPLETE, 3, frames);
	send_sample(SONDE_STACK_STORED, 77, SONDE_STACK_NONE, 0);
	finish();
	assert_int_equal(stack_recorder_nr_samples(recorder), 1);
	assert_int_equal(profile_nr_samples(profile), 1);
	sample = profile_sample_at(profile, 0);
	assert_true(sample->tgid == TGID && sample->tid == TGID + 1 && sample->cpu == 1 && sample->values[0] == 1);
	assert_string_equal(profile_string_text(profile, sample->comm), "worker");
	assert_int_equal(sample->kernel_stack, PROFILE_NONE);
	check_user(0, "[unknown] [unknown] [unknown]");
	locations = profile_stack_at(profile, sample->user_stack, &nr);
	assert_int_equal(profile_location_at(profile, locations[0])->pc, 0x1000);
	assert_int_equal(profile_location_at(profile, locations[2])->pc, 0x3000); /* without the mark of return addresses */
	assert_int_equal(profile_account(profile)->stopped[SONDE_STOP_COMPLETE], 1);
}

/* CPUs do not send in order: the sample may arrive before the stack that it refers to. */
static void test_sample_before_body(void **state)
{
	send_sample(SONDE_STACK_STORED, 77, SONDE_STACK_NONE, 0);
	assert_int_equal(stack_recorder_resolve(recorder, processes, &walker), 0);
	send_stack(TGID, 77, SONDE_STOP_COMPLETE, 1, frames);
	finish();
	check_user(0, "[unknown]");
	assert_int_equal(profile_account(profile)->missed_user, 0);
}

static void test_equal_samples_are_one(void **state)
{
	send_stack(TGID, 77, SONDE_STOP_COMPLETE, 1, frames);
	send_stack(TGID, 77, SONDE_STOP_COMPLETE, 1, frames); /* sent again after it was lost */
	for (int i = 0; i < 5; i++)
		send_sample(SONDE_STACK_STORED, 77, SONDE_STACK_NONE, 0);
	send_sample(SONDE_STACK_NONE, 0, SONDE_STACK_NONE, 0);
	finish();
	assert_int_equal(stack_recorder_nr_samples(recorder), 6);
	assert_int_equal(profile_nr_samples(profile), 2);
	assert_int_equal(profile_sample_at(profile, 0)->values[0], 5);
	assert_int_equal(profile_sample_at(profile, 1)->values[0], 1);
	check_user(1, NULL);
	assert_int_equal(profile_account(profile)->stopped[SONDE_STOP_COMPLETE], 5);
}

static void test_missed_sides(void **state)
{
	const struct account *of;

	for (uint64_t i = 0; i < 10; i++)
		send_sample(SONDE_STACK_FULL, i, SONDE_STACK_NONE, 0); /* whatever its hash: one sample */
	send_sample(SONDE_STACK_LOST, 0, SONDE_STACK_LOST, 0);
	send_sample(SONDE_STACK_NONE, 0, SONDE_STACK_FULL, 0);
	send_sample(SONDE_STACK_STORED, 4711, SONDE_STACK_NONE, 0); /* a payload that never arrived */
	finish();
	of = profile_account_of(profile);
	check_user(0, PROFILE_MISSED_USER);
	assert_int_equal(profile_sample_at(profile, 0)->values[0], 11); /* and the sample whose payload never arrived */
	assert_string_equal(names_of(profile_sample_at(profile, 1)->kernel_stack), PROFILE_MISSED_KERNEL);
	check_user(2, NULL);
	assert_int_equal(of->missed_user, 12);
	assert_int_equal(of->missed_kernel, 2);
	assert_int_equal(of->missed_full, 11);
	for (int stop = 0; stop < SONDE_STOP_COUNT; stop++)
		assert_int_equal(of->stopped[stop], 0);
	assert_int_equal(
	    profile_location_at(profile, *profile_stack_at(profile, profile_sample_at(profile, 0)->user_stack, &(uint32_t){ 0 }))->kind,
	    FRAME_MISSED);
}

/* Every way of stopping, except at the root, is marked at the root end. */
static void test_stop_marks(void **state)
{
	for (int stop = 0; stop < SONDE_STOP_COUNT; stop++) {
		send_stack(TGID, 100 + (uint64_t)stop, (enum sonde_stop)stop, 1, frames);
		send_sample(SONDE_STACK_STORED, 100 + (uint64_t)stop, SONDE_STACK_NONE, 0);
	}
	finish();
	check_user(SONDE_STOP_COMPLETE, "[unknown]");
	check_user(SONDE_STOP_DEPTH, "[unknown] [truncated]");
	check_user(SONDE_STOP_NO_ROW, "[unknown] [no unwind info: anonymous memory]");
	check_user(SONDE_STOP_COMPAT, "[unknown] [32-bit code]");
	for (int stop = 0; stop < SONDE_STOP_COUNT; stop++)
		assert_int_equal(profile_account(profile)->stopped[stop], 1);
}

/* The file name in a mark is that of the outermost frame. Locations in files are shared by all processes, others are not. */
static void test_places(void **state)
{
	const struct mapping_event event = {
		.tgid = TGID, .start_pc = 0x2000, .size_bytes = 0x2000, .file_off = 0x800, .time_ns = 1, .path = "/no/such/libfoo.so"
	};

	assert_int_equal(process_table_mmap(processes, &event), 0);
	send_stack(TGID, 1, SONDE_STOP_NO_ROW, 3, frames);
	send_sample(SONDE_STACK_STORED, 1, SONDE_STACK_NONE, 0);
	send_stack(TGID + 1, 2, SONDE_STOP_COMPLETE, 1, frames);
	send_sample_of(TGID + 1, 0, 2, 0);
	finish();
	check_user(0, "[unknown] [unknown] [libfoo.so+0x1800] [no unwind info: libfoo.so]");
	assert_int_equal(profile_nr_locations(profile), 4); /* 0x1000 of the other process is equal: only its pc is known */
}

static void test_kernel_stack(void **state)
{
	const uint64_t kaddrs[] = { 0xffffffff81000010, 0xffffffff81000020 };

	send_stack(0, 9, SONDE_STOP_COMPLETE, 2, kaddrs);
	send_sample(SONDE_STACK_NONE, 0, SONDE_STACK_STORED, 9);
	finish();
	assert_int_equal(profile_nr_samples(profile), 1);
	assert_int_not_equal(profile_sample_at(profile, 0)->kernel_stack, PROFILE_NONE);
	assert_int_equal(
	    profile_location_at(profile, *profile_stack_at(profile, profile_sample_at(profile, 0)->kernel_stack, &(uint32_t){ 0 }))->kind,
	    FRAME_KERNEL);
	for (int stop = 0; stop < SONDE_STOP_COUNT; stop++)
		assert_int_equal(profile_account(profile)->stopped[stop], 0); /* counts user stacks only */
}

static void test_deep_and_empty(void **state)
{
	static uint64_t deep[SONDE_MAX_USER_FRAMES];
	uint32_t nr;

	for (uint32_t i = 0; i < SONDE_MAX_USER_FRAMES; i++)
		deep[i] = 0x1000 + i;
	send_stack(TGID, 1, SONDE_STOP_DEPTH, SONDE_MAX_USER_FRAMES, deep);
	send_stack(TGID, 2, SONDE_STOP_READ_FAULT, 0, deep);
	send_sample(SONDE_STACK_STORED, 1, SONDE_STACK_NONE, 0);
	send_sample(SONDE_STACK_STORED, 2, SONDE_STACK_NONE, 0);
	finish();
	profile_stack_at(profile, profile_sample_at(profile, 0)->user_stack, &nr);
	assert_int_equal(nr, SONDE_MAX_USER_FRAMES + 1);
	check_user(1, "[stack not readable]");
}

/* Samples with deferred stacks equal those whose stacks the kernel side walked. */
static void test_raw(void **state)
{
	walked = (struct deferred_stack){ .frames = frames, .hash = 77, .nr_walked = 3, .nr_frames = 3, .stop = SONDE_STOP_COMPLETE };
	nr_walks = 0;
	send_stack(TGID, 77, SONDE_STOP_COMPLETE, 3, frames);
	send_sample(SONDE_STACK_STORED, 77, SONDE_STACK_NONE, 0);
	send_deferred_record(recorder, 1000);
	send_sample(SONDE_STACK_DEFERRED, 1000, SONDE_STACK_NONE, 0);
	send_deferred_record(recorder, 1001);
	assert_int_equal(stack_recorder_resolve(recorder, processes, &walker), 0);
	send_sample(SONDE_STACK_DEFERRED, 1001, SONDE_STACK_NONE, 0); /* in the next reading */
	send_sample(SONDE_STACK_DEFERRED, 1002, SONDE_STACK_NONE, 0); /* its stack never arrived */
	finish();
	assert_int_equal(nr_walks, 2);
	assert_int_equal(stack_recorder_nr_samples(recorder), 4);
	assert_int_equal(profile_nr_samples(profile), 2);
	assert_int_equal(profile_sample_at(profile, 0)->values[0], 3);
	check_user(0, "[unknown] [unknown] [unknown]");
	check_user(1, PROFILE_MISSED_USER);
	assert_int_equal(profile_account(profile)->stopped[SONDE_STOP_COMPLETE], 3);
}

/* A thread sends its stack itself, after its sample, when the kernel could not read it. */
static void test_raw_comes_later(void **state)
{
	walked = (struct deferred_stack){ .frames = frames, .hash = 77, .nr_walked = 3, .nr_frames = 3, .stop = SONDE_STOP_COMPLETE };
	send_sample(SONDE_STACK_DEFERRED, 1000, SONDE_STACK_NONE, 0);
	assert_int_equal(stack_recorder_resolve(recorder, processes, &walker), 0);
	assert_int_equal(stack_recorder_resolve(recorder, processes, &walker), 0);
	assert_int_equal(stack_recorder_nr_samples(recorder), 0);
	send_deferred_record(recorder, 1000);
	assert_int_equal(stack_recorder_resolve(recorder, processes, &walker), 0);
	finish();
	assert_int_equal(stack_recorder_nr_samples(recorder), 1);
	check_user(0, "[unknown] [unknown] [unknown]");
}

/* The root end of a stack that is too deep was kept in a ring. */
static void test_cut(void **state)
{
	static uint64_t kept[SONDE_MAX_USER_FRAMES];
	const uint32_t nr_walked = SONDE_MAX_USER_FRAMES + 700;
	const uint32_t *locations;
	uint32_t nr;

	for (uint32_t i = 0; i < nr_walked; i++)
		kept[sonde_frame_slot(i)] = 0x1000 + i;
	walked = (struct deferred_stack){
		.frames = kept, .hash = 77, .nr_walked = nr_walked, .nr_frames = SONDE_MAX_USER_FRAMES, .stop = SONDE_STOP_COMPLETE
	};
	send_deferred_record(recorder, 1);
	send_sample(SONDE_STACK_DEFERRED, 1, SONDE_STACK_NONE, 0);
	finish();
	locations = profile_stack_at(profile, profile_sample_at(profile, 0)->user_stack, &nr);
	assert_int_equal(nr, SONDE_MAX_USER_FRAMES + 1);
	for (uint32_t i = 0; i < SONDE_LEAF_FRAMES; i++)
		assert_int_equal(profile_location_at(profile, locations[i])->pc, 0x1000 + i);
	assert_int_equal(profile_location_at(profile, locations[SONDE_LEAF_FRAMES])->kind, FRAME_MARK);
	for (uint32_t i = 0; i < SONDE_ROOT_FRAMES; i++)
		assert_int_equal(profile_location_at(profile, locations[SONDE_LEAF_FRAMES + 1 + i])->pc,
				 0x1000 + nr_walked - SONDE_ROOT_FRAMES + i);
}

static void test_nothing(void **state)
{
	finish();
	assert_int_equal(profile_nr_samples(profile), 0);
	stack_recorder_free(NULL, NULL);
}

#define test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

#define FRAME(letter) { .code = letter, .runtime = SONDE_RUNTIME_PHP }
#define ENTRY(native) { .where = native, .runtime = SONDE_RUNTIME_PHP, .flags = SONDE_RUNTIME_ENTRY }

/* Each run takes the place of its native frame. Frames of the native stack have no names here: all are equal. */
static void test_runs_take_their_places(void **state)
{
	const uint64_t native[] = { 0x1000, 0x2000 | SONDE_FRAME_RETURN, 0x3000 | SONDE_FRAME_RETURN, 0x4000 | SONDE_FRAME_RETURN };
	const struct sonde_runtime_frame middle[] = { FRAME('a'), FRAME('b'), ENTRY(1) },
					 twice[] = { FRAME('a'), ENTRY(0), FRAME('b'), ENTRY(2) };
	const struct sonde_runtime_frame at_leaf[] = { FRAME('a'), ENTRY(SONDE_RUNTIME_AT_LEAF), FRAME('b'), ENTRY(3) };
	const struct sonde_runtime_frame empty[] = { FRAME('a'), ENTRY(0), ENTRY(2), FRAME('b'), ENTRY(3) };

	send_stack(TGID, 7, SONDE_STOP_COMPLETE, 4, native);
	send_runtime(7, 70, SONDE_RUNTIME_STOP_COMPLETE, 3, middle);
	send_runtime(7, 71, SONDE_RUNTIME_STOP_COMPLETE, 4, twice);
	send_runtime(7, 72, SONDE_RUNTIME_STOP_COMPLETE, 4, at_leaf);
	send_runtime(7, 73, SONDE_RUNTIME_STOP_COMPLETE, 5, empty);
	finish();
	assert_string_equal(names_of(profile_sample_at(profile, 0)->user_stack), "[unknown] a b [unknown] [unknown]");
	assert_string_equal(names_of(profile_sample_at(profile, 1)->user_stack), "a [unknown] b [unknown]");
	assert_string_equal(names_of(profile_sample_at(profile, 2)->user_stack), "a [unknown] [unknown] [unknown] b");
	assert_string_equal(names_of(profile_sample_at(profile, 3)->user_stack), "a [unknown] b");
	assert_int_equal(profile_account(profile)->runtime_stopped[SONDE_RUNTIME_STOP_COMPLETE], 4);
}

/* A name that could not be read is requested again. Then all stacks have it, also the earlier ones. The number of attempts is limited. */
static void test_names_come_later(void **state)
{
	const uint64_t native[] = { 0x1000 };
	const struct sonde_runtime_frame first[] = { FRAME('a'), FRAME('b'), ENTRY(0) }, second[] = { FRAME('b'), FRAME('c'), ENTRY(0) };
	uint32_t nr_before;

	hidden = 'b';
	send_stack(TGID, 7, SONDE_STOP_COMPLETE, 1, native);
	send_runtime(7, 70, SONDE_RUNTIME_STOP_COMPLETE, 3, first);
	assert_int_equal(stack_recorder_resolve(recorder, processes, &walker), 0);
	send_runtime(7, 71, SONDE_RUNTIME_STOP_COMPLETE, 3, second);
	assert_int_equal(stack_recorder_resolve(recorder, processes, &walker), 0);
	hidden = 0;
	finish();
	assert_string_equal(names_of(profile_sample_at(profile, 0)->user_stack), "a b");
	assert_string_equal(names_of(profile_sample_at(profile, 1)->user_stack), "b c");
	hidden = 'd';
	send_runtime(7, 72, SONDE_RUNTIME_STOP_COMPLETE, 2, (const struct sonde_runtime_frame[]){ FRAME('d'), ENTRY(0) });
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(stack_recorder_resolve(recorder, processes, &walker), 0);
	nr_before = nr_hidden;
	assert_int_equal(stack_recorder_resolve(recorder, processes, &walker), 0);
	assert_int_equal(nr_hidden, nr_before);
	hidden = 0;
}

/* As deep as HotSpot inlines all are there; where they are more than are kept, a mark says so. */
static void test_functions_inlined_deeply(void **state)
{
	const uint64_t native[] = { 0x1000, 0x2000 };
	const struct sonde_runtime_frame hundred[] = { FRAME('i'), ENTRY(0) },
					 thousand[] = { { .code = 'i', .where = 1, .runtime = SONDE_RUNTIME_PHP }, ENTRY(0) };

	nr_inlined = 100;
	send_stack(TGID, 7, SONDE_STOP_COMPLETE, 2, native);
	send_runtime(7, 70, SONDE_RUNTIME_STOP_COMPLETE, 2, hundred);
	assert_int_equal(stack_recorder_resolve(recorder, processes, &walker), 0);
	nr_inlined = 1000;
	send_runtime(7, 71, SONDE_RUNTIME_STOP_COMPLETE, 2, thousand);
	finish();
	assert_int_equal(strlen(names_of(profile_sample_at(profile, 0)->user_stack)), strlen("i ") * 101 + strlen("[unknown]"));
	assert_non_null(strstr(names_of(profile_sample_at(profile, 1)->user_stack), "i i [php: frames left out] [unknown]"));
}

/* The same in a window whose first samples arrived before their payload was sent again. */
static void test_names_come_in_a_later_window(void **state)
{
	const uint64_t native[] = { 0x1000 };
	const struct sonde_runtime_frame only[] = { FRAME('b'), ENTRY(0) };
	struct closed_window first;

	hidden = 'b';
	send_stack(TGID, 7, SONDE_STOP_COMPLETE, 1, native);
	send_runtime(7, 70, SONDE_RUNTIME_STOP_COMPLETE, 2, only); /* its sample: at 0 */
	assert_int_equal(stack_recorder_resolve(recorder, processes, &walker), 0);
	assert_int_equal(stack_recorder_cut(recorder, 0), 0);
	send_runtime(7, 70, SONDE_RUNTIME_STOP_COMPLETE, 2, only); /* of the next window, with this one's payloads */
	assert_int_equal(stack_recorder_resolve(recorder, processes, &walker), 0);
	assert_int_equal(stack_recorder_close(recorder, processes, &first), 0);
	stack_recorder_done(recorder, first.store, processes);
	samples_free(first.samples);
	send_runtime(7, 70, SONDE_RUNTIME_STOP_COMPLETE, 2, only);
	send_runtime(7, 71, SONDE_RUNTIME_STOP_COMPLETE, 3, (const struct sonde_runtime_frame[]){ FRAME('b'), FRAME('c'), ENTRY(0) });
	assert_int_equal(stack_recorder_resolve(recorder, processes, &walker), 0);
	hidden = 0;
	finish();
	assert_string_equal(names_of(profile_sample_at(profile, 0)->user_stack), "b");
	assert_string_equal(names_of(profile_sample_at(profile, 1)->user_stack), "b c");
}

static void end_window(void)
{
	struct closed_window window;

	assert_int_equal(stack_recorder_resolve(recorder, processes, &walker), 0);
	assert_int_equal(stack_recorder_cut(recorder, 0), 0);
	assert_int_equal(stack_recorder_close(recorder, processes, &window), 0);
	stack_recorder_done(recorder, window.store, processes);
	samples_free(window.samples);
}

/* A process is read once for all windows, also for those that come after one without its frames. What could not be read is asked for. */
static void test_names_outlive_windows(void **state)
{
	const uint64_t native[] = { 0x1000 };
	const struct sonde_runtime_frame known[] = { FRAME('b'), ENTRY(0) }, unknown[] = { FRAME('c'), ENTRY(0) };

	hidden = 'c';
	send_stack(TGID, 7, SONDE_STOP_COMPLETE, 1, native);
	send_runtime(7, 70, SONDE_RUNTIME_STOP_COMPLETE, 2, known);
	send_runtime(7, 71, SONDE_RUNTIME_STOP_COMPLETE, 2, unknown);
	end_window();
	end_window();
	hidden = 'b';
	send_stack(TGID, 7, SONDE_STOP_COMPLETE, 1, native);
	send_runtime(7, 70, SONDE_RUNTIME_STOP_COMPLETE, 2, known);
	send_runtime(7, 71, SONDE_RUNTIME_STOP_COMPLETE, 2, unknown);
	finish();
	hidden = 0;
	assert_string_equal(names_of(profile_sample_at(profile, 0)->user_stack), "b");
	assert_string_equal(names_of(profile_sample_at(profile, 1)->user_stack), "c");
}

/* Where the cookie proves nothing, the memory may be another function's by then. */
static void test_names_without_proof_are_asked_for_again(void **state)
{
	const uint64_t native[] = { 0x1000 };
	const struct sonde_runtime_frame frames[] = { FRAME('r'), ENTRY(0) };

	send_stack(TGID, 7, SONDE_STOP_COMPLETE, 1, native);
	send_runtime(7, 70, SONDE_RUNTIME_STOP_COMPLETE, 2, frames);
	end_window();
	end_window();
	reused = 'r';
	send_stack(TGID, 7, SONDE_STOP_COMPLETE, 1, native);
	send_runtime(7, 70, SONDE_RUNTIME_STOP_COMPLETE, 2, frames);
	finish();
	reused = 0;
	assert_string_equal(names_of(profile_sample_at(profile, 0)->user_stack), "z");
}

/* An earlier copy names its own code, and no other code at the same address. */
static void test_names_by_copies(void **state)
{
	const uint64_t native[] = { 0x1000 };
	const struct sonde_code_record copy = { .type = SONDE_RECORD_CODE, .tgid = TGID, .code = 'b', .cookie = 5 };
	const struct sonde_runtime_frame copied[] = { { .code = 'b', .cookie = 5, .runtime = SONDE_RUNTIME_PYTHON }, ENTRY(0) },
					 other[] = { FRAME('b'), ENTRY(0) };

	hidden = 'b';
	send_stack(TGID, 7, SONDE_STOP_COMPLETE, 1, native);
	assert_int_equal(stack_recorder_record(recorder, &copy), 0);
	send_runtime(7, 70, SONDE_RUNTIME_STOP_COMPLETE, 2, copied);
	send_runtime(7, 71, SONDE_RUNTIME_STOP_COMPLETE, 2, other);
	finish();
	assert_string_equal(names_of(profile_sample_at(profile, 0)->user_stack), "b");
	assert_string_equal(names_of(profile_sample_at(profile, 1)->user_stack), "?");
	hidden = 0;
}

/* What was assumed of the frame in the middle was not true: neither native frames nor those of other runtimes behind it are shown. */
static void test_refuted(void **state)
{
	const uint64_t native[] = { 0x1000, 0x2000 | SONDE_FRAME_RETURN, 0x3000 | SONDE_FRAME_RETURN, 0x4000 | SONDE_FRAME_RETURN };
	const struct sonde_runtime_frame placed[] = {
		{ .code = 'a', .runtime = SONDE_RUNTIME_JAVA, .flags = SONDE_RUNTIME_PLACED, .native = 0 },
		{ .code = 'x', .runtime = SONDE_RUNTIME_JAVA, .flags = SONDE_RUNTIME_PLACED, .native = 2 },
		{ .code = 'b', .runtime = SONDE_RUNTIME_JAVA, .flags = SONDE_RUNTIME_PLACED, .native = 3 },
		FRAME('c'),
		ENTRY(3),
	};

	for (int window = 0; window < 3; window++) { /* names are remembered, and so is this */
		send_stack(TGID, 7, SONDE_STOP_COMPLETE, 4, native);
		send_runtime(7, 70, SONDE_RUNTIME_STOP_COMPLETE, 5, placed);
		if (window < 2)
			end_window();
	}
	finish();
	assert_string_equal(names_of(profile_sample_at(profile, 0)->user_stack), "a [unknown] x [java: stack makes no sense]");
	assert_int_equal(profile_account(profile)->stopped[SONDE_STOP_COMPLETE], 0);
	assert_int_equal(profile_account(profile)->stopped[SONDE_STOP_NO_ROW], 1);
	assert_int_equal(profile_account(profile)->runtime_stopped[SONDE_RUNTIME_STOP_TORN], 1);
}

/* A run without a place is still shown, with a mark. */
static void test_runs_without_place(void **state)
{
	const uint64_t native[] = { 0x1000, 0x2000 | SONDE_FRAME_RETURN };
	const struct sonde_runtime_frame unplaced[] = { FRAME('a'), ENTRY(SONDE_RUNTIME_UNPLACED) },
					 cut[] = { FRAME('a'), ENTRY(0), FRAME('b') };
	const struct sonde_runtime_frame fiber[] = { FRAME('a'), ENTRY(0),
						     FRAME('b'), ENTRY(SONDE_RUNTIME_UNPLACED),
						     FRAME('c'), ENTRY(SONDE_RUNTIME_UNPLACED) };
	const struct sonde_runtime_frame backwards[] = { FRAME('a'), ENTRY(1), FRAME('b'), ENTRY(0), FRAME('c'), ENTRY(99) };

	send_stack(TGID, 7, SONDE_STOP_TABLE, 2, native);
	send_stack(TGID, 8, SONDE_STOP_COMPLETE, 2, native);
	send_runtime(7, 70, SONDE_RUNTIME_STOP_COMPLETE, 2, unplaced);
	send_runtime(8, 71, SONDE_RUNTIME_STOP_COMPLETE, 2, unplaced);
	send_runtime(8, 72, SONDE_RUNTIME_STOP_DEPTH, 3, cut);
	send_runtime(8, 73, SONDE_RUNTIME_STOP_COMPLETE, 6, backwards);
	send_runtime(8, 74, SONDE_RUNTIME_STOP_COMPLETE, 6, fiber);
	finish();
	assert_string_equal(names_of(profile_sample_at(profile, 0)->user_stack), "[unknown] [unknown] [unwind table damaged] a");
	assert_string_equal(names_of(profile_sample_at(profile, 1)->user_stack), "[unknown] [unknown] [native frames not known] a");
	assert_string_equal(names_of(profile_sample_at(profile, 2)->user_stack),
			    "a [unknown] [native frames not known] b [php: frames left out]");
	assert_string_equal(names_of(profile_sample_at(profile, 3)->user_stack), "[unknown] a b [native frames not known] c");
	assert_string_equal(names_of(profile_sample_at(profile, 4)->user_stack), "a [unknown] [native frames not known] b c");
	assert_int_equal(profile_account(profile)->runtime_stopped[SONDE_RUNTIME_STOP_DEPTH], 1);
}

/* Two stacks with one hash: a sample shows its own process's stack, or counts as missed. */
static void test_hash_of_two_processes(void **state)
{
	send_stack_of(TGID, 3, 77, SONDE_STOP_COMPLETE, 3, frames);
	send_stack_of(TGID + 1, 4, 77, SONDE_STOP_COMPLETE, 2, frames);
	send_stack_of(TGID, 5, 77, SONDE_STOP_COMPLETE, 2, frames); /* the same id, another program */
	send_stack(0, 77, SONDE_STOP_COMPLETE, 1, &(uint64_t){ 0xffffffff81000010 });
	send_sample_of(TGID, 3, 77, 0);
	send_sample_of(TGID + 1, 4, 77, 0);
	send_sample_of(TGID, 5, 77, 0);
	send_sample_of(TGID, 0, 77, 0);
	send_sample(SONDE_STACK_NONE, 0, SONDE_STACK_STORED, 77);
	finish();
	check_user(0, "[unknown] [unknown] [unknown]");
	check_user(1, PROFILE_MISSED_USER);
	check_user(2, PROFILE_MISSED_USER); /* two samples */
	assert_string_equal(names_of(profile_sample_at(profile, 3)->kernel_stack), PROFILE_MISSED_KERNEL);
	assert_int_equal(profile_account_of(profile)->missed_collided, 4);
	assert_int_equal(profile_account_of(profile)->missed_user, 3);
	assert_int_equal(profile_account_of(profile)->missed_kernel, 1);
	assert_int_equal(profile_account_of(profile)->stopped[SONDE_STOP_COMPLETE], 1);
}

static void test_hash_of_two_stacks(void **state)
{
	const uint64_t event[] = { 1, 2, 3, 0xffffffff81000010 }, other_event[] = { 4, 5, 6, 0xffffffff81000010 };

	send_stack_of(TGID, 3, 77, SONDE_STOP_COMPLETE, 3, frames);
	send_sample_of(TGID, 3, 77, 0);
	send_stack_of(TGID, 3, 77, SONDE_STOP_COMPLETE, 2, frames);
	send_stack_of(TGID, 3, 78, SONDE_STOP_COMPLETE, 2, frames);
	send_stack_of(TGID, 3, 78, SONDE_STOP_COMPLETE, 2, frames); /* sent again unchanged */
	send_sample_of(TGID, 3, 78, 0);
	send_stack(0, 79, SONDE_STOP_COMPLETE, 4, event);
	send_stack(0, 79, SONDE_STOP_COMPLETE, 4, other_event); /* fields outside of the hash may differ */
	send_sample(SONDE_STACK_NONE, 0, SONDE_STACK_STORED, 79);
	finish();
	check_user(0, PROFILE_MISSED_USER);
	check_user(1, "[unknown] [unknown]");
	assert_int_equal(profile_account(profile)->missed_collided, 1);
	assert_int_equal(profile_account(profile)->missed_kernel, 0);
}

/* The same with a deferred stack. */
static void test_raw_hash_of_two_processes(void **state)
{
	struct sonde_sample_record sample = { .user_stack = 99, .tgid = TGID, .user_state = SONDE_STACK_DEFERRED, .comm = "worker" };

	walked = (struct deferred_stack){
		.frames = frames, .hash = 77, .nr_walked = 2, .nr_frames = 2, .generation = 3, .stop = SONDE_STOP_COMPLETE
	};
	send_deferred_record(recorder, 99);
	send_sample_record(recorder, sample);
	sample.tgid++;
	send_deferred_record(recorder, 98);
	sample.user_stack = 98; /* its record is another process's */
	send_sample_record(recorder, sample);
	send_stack_of(TGID + 2, 4, 78, SONDE_STOP_COMPLETE, 3, frames);
	assert_int_equal(stack_recorder_resolve(recorder, processes, &walker), 0);
	walked.hash = 78;
	send_deferred_record(recorder, 97);
	sample.tgid = TGID;
	sample.user_stack = 97;
	send_sample_record(recorder, sample);
	finish();
	check_user(0, "[unknown] [unknown]");
	assert_int_equal(profile_nr_samples(profile), 3);
	check_user(1, PROFILE_MISSED_USER);
	check_user(2, PROFILE_MISSED_USER);
	assert_true(profile_account(profile)->missed_collided >= 2);
	assert_int_equal(profile_account(profile)->missed_user, 2);
}

static void map_file(const char *path, uint64_t start_pc, uint64_t time_ns)
{
	const struct mapping_event event = {
		.tgid = TGID, .start_pc = start_pc, .size_bytes = 0x1000, .time_ns = time_ns, .inode = time_ns, .path = path
	};

	assert_int_equal(process_table_mmap(processes, &event), 0);
}

/* The kernel side keeps using that hash for the stack until it learns of the change. */
static void test_mapping_changed_under_a_hash(void **state)
{
	const uint64_t native[] = { 0x7010, 0x1020 | SONDE_FRAME_RETURN, 0x7020 | SONDE_FRAME_RETURN }, elsewhere[] = { 0x1010 };
	struct sonde_sample_record sample = { .user_stack = 7, .tgid = TGID, .user_state = SONDE_STACK_STORED, .time_ns = 15 };
	struct mappings_at then;

	map_file("/nothing/program", 0x7000, 1);
	map_file("/nothing/a", 0x1000, 2);
	assert_int_equal(process_table_at(processes, TGID, 15, &then), 0);
	sample.generation = then.generation;
	free(then.list);
	map_file("/nothing/b", 0x1000, 20);
	send_stack_of(TGID, sample.generation, 7, SONDE_STOP_COMPLETE, 3, native);
	send_sample_record(recorder, sample);
	sample.time_ns = 25;
	send_sample_record(recorder, sample);
	send_stack_of(TGID, sample.generation, 8, SONDE_STOP_COMPLETE, 1, elsewhere);
	sample.user_stack = 8;
	send_sample_record(recorder, sample);
	map_file("/nothing/c", 0x7000, 30); /* no longer on the stack's path at 25 */
	finish();
	check_user(0, "[program+0x10] [a+0x20] [program+0x20]");
	check_user(1, "[program+0x10] [mapping changed]");
	check_user(2, "[mapping changed]");
}

static void test_runtime_hash_of_two(void **state)
{
	const uint64_t native[] = { 0x1000 };
	const struct sonde_runtime_frame a[] = { FRAME('a'), ENTRY(0) }, b[] = { FRAME('b'), ENTRY(0) };

	send_stack(TGID, 7, SONDE_STOP_COMPLETE, 1, native);
	send_stack_of(TGID + 1, 1, 8, SONDE_STOP_COMPLETE, 1, native);
	send_runtime(7, 70, SONDE_RUNTIME_STOP_COMPLETE, 2, a);
	send_sample_of(TGID + 1, 1, 8, 70);
	send_runtime(7, 71, SONDE_RUNTIME_STOP_COMPLETE, 2, a);
	send_runtime(7, 71, SONDE_RUNTIME_STOP_COMPLETE, 2, b);
	finish();
	check_user(0, "a");
	check_user(1, "[unknown]");
	check_user(2, "[unknown]");
	assert_int_equal(profile_account(profile)->missed_collided, 3);
	assert_int_equal(profile_account(profile)->runtime_missed, 3);
}

static void test_lost_runtime_stacks_are_counted(void **state)
{
	const uint64_t native[] = { 0x1000 };
	struct sonde_sample_record sample = {
		.user_stack = 7, .tgid = TGID, .user_state = SONDE_STACK_STORED, .runtime_state = SONDE_STACK_FULL
	};

	send_stack(TGID, 7, SONDE_STOP_COMPLETE, 1, native);
	send_sample_record(recorder, sample);
	sample.runtime_stack = 70; /* a payload that never arrived */
	sample.runtime_state = SONDE_STACK_STORED;
	send_sample_record(recorder, sample);
	finish();
	assert_int_equal(profile_account(profile)->runtime_missed, 2);
	assert_string_equal(names_of(profile_sample_at(profile, 0)->user_stack), "[unknown]");
}

static void send_labels(uint64_t hash, const char *text)
{
	struct {
		struct sonde_labels_record header;
		struct sonde_label labels[2];
	} record = { .header = { .type = SONDE_RECORD_LABELS, .tgid = TGID, .time_ns = 5, .hash = hash, .nr_labels = 2, .fault = 0x4000 },
		     .labels = { { .key_bytes = 4, .text_bytes = (uint32_t)strlen(text), .key = "turn" },
				 { .key_bytes = 1, .text_bytes = 1, .key = "a", .text = "b" } } };

	strncpy(record.labels[0].text, text, sizeof(record.labels[0].text));
	assert_int_equal(stack_recorder_record(recorder, &record), 0);
}

static void send_labelled(enum sonde_stack_state labels_state, uint64_t labels, uint64_t raw_id)
{
	send_sample_record(recorder, (struct sonde_sample_record){ .user_stack = raw_id ? raw_id : 7,
								   .labels = labels,
								   .tgid = TGID,
								   .user_state = raw_id ? SONDE_STACK_DEFERRED : SONDE_STACK_STORED,
								   .labels_state = (uint8_t)labels_state });
}

/* Each label as "key=text". */
static const char *labels_of(uint32_t sample)
{
	static char text[256];
	uint32_t nr;
	const struct profile_label *labels = profile_labels_at(profile, profile_sample_at(profile, sample)->labels, &nr);

	text[0] = '\0';
	for (uint32_t i = 0; i < nr; i++) {
		size_t length = strlen(text);

		snprintf(text + length, sizeof(text) - length, "%s%s=%s", i ? " " : "", profile_string_text(profile, labels[i].key),
			 profile_string_text(profile, labels[i].text));
	}
	return text;
}

/* Samples equal but for their labels are separate, also with deferred stacks. */
static void test_labels(void **state)
{
	const uint64_t native[] = { 0x1000 };

	walked = (struct deferred_stack){ .frames = frames, .hash = 77, .nr_walked = 3, .nr_frames = 3, .stop = SONDE_STOP_COMPLETE };
	touched_pc = 0;
	send_stack(TGID, 7, SONDE_STOP_COMPLETE, 1, native);
	send_labels(70, "first");
	send_labels(71, "second");
	send_deferred_record(recorder, 1000); /* between them: each record is as long as it states */
	for (int i = 0; i < 3; i++)
		send_labelled(SONDE_STACK_STORED, 70, 0);
	send_labelled(SONDE_STACK_STORED, 71, 0);
	send_labelled(SONDE_STACK_NONE, 0, 0);
	send_labelled(SONDE_STACK_STORED, 71, 1000);
	finish();
	assert_int_equal(profile_nr_samples(profile), 4);
	assert_int_equal(profile_sample_at(profile, 0)->values[0], 3);
	assert_string_equal(labels_of(0), "a=b turn=first");
	assert_string_equal(labels_of(1), "a=b turn=second");
	assert_string_equal(labels_of(2), "");
	assert_string_equal(labels_of(3), "a=b turn=second");
	assert_int_equal(profile_sample_at(profile, 0)->user_stack, profile_sample_at(profile, 2)->user_stack);
	assert_int_equal(profile_account(profile)->labels_missed, 0);
	assert_int_equal(touched_pc, 0x4000);
}

static void test_lost_labels_are_counted(void **state)
{
	const uint64_t native[] = { 0x1000 };

	send_stack(TGID, 7, SONDE_STOP_COMPLETE, 1, native);
	send_labelled(SONDE_STACK_LOST, 1, 0);
	send_labelled(SONDE_STACK_LOST, 2, 0);
	send_labelled(SONDE_STACK_FULL, 3, 0);
	send_labelled(SONDE_STACK_STORED, 70, 0); /* a payload that never arrived */
	send_labelled(SONDE_STACK_NONE, 0, 0);
	finish();
	assert_int_equal(profile_account(profile)->labels_missed, 4);
	assert_int_equal(profile_nr_samples(profile), 1); /* in the profile they are equal */
	assert_int_equal(profile_sample_at(profile, 0)->values[0], 5);
	assert_string_equal(labels_of(0), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_complete),
		test(test_sample_before_body),
		test(test_equal_samples_are_one),
		test(test_missed_sides),
		test(test_stop_marks),
		test(test_places),
		test(test_kernel_stack),
		test(test_deep_and_empty),
		test(test_raw),
		test(test_raw_comes_later),
		test(test_cut),
		test(test_nothing),
		test(test_runs_take_their_places),
		test(test_names_come_later),
		test(test_functions_inlined_deeply),
		test(test_names_come_in_a_later_window),
		test(test_names_outlive_windows),
		test(test_names_without_proof_are_asked_for_again), test(test_names_by_copies), test(test_refuted),
		test(test_runs_without_place),
		test(test_lost_runtime_stacks_are_counted),
		test(test_hash_of_two_processes),
		test(test_hash_of_two_stacks),
		test(test_raw_hash_of_two_processes),
		test(test_mapping_changed_under_a_hash),
		test(test_runtime_hash_of_two),
		test(test_labels),
		test(test_lost_labels_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
