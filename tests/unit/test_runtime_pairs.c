// SPDX-License-Identifier: Apache-2.0
/* Which activation of the interpreter's loop executes which run (bpf/runtimes/runtime.h). In the made-up native stacks 'L' is a frame of
 * the loop, leaf first; runs are numbered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "walk_host.h"

#include "runtimes/runtime.h"

#define LOOP_PC 0x1000
#define NATIVE_BYTES 0x100 /* of the stack, per frame */

static struct walk w;
static struct runtime_walk r;
static __u64 frames[SONDE_MAX_USER_FRAMES];

static void begin(const char *natives, enum sonde_stop stop)
{
	memset(&w, 0, sizeof(w));
	memset(&r, 0, sizeof(r));
	r.runtime = SONDE_RUNTIME_PHP;
	r.pairing = RUNTIME_PAIR_BETWEEN;
	r.nr_here = RUNTIME_ALL_HERE;
	r.min_ahead = -1;
	r.max_ahead = 1;
	r.ranges[0] = (struct sonde_code_range){ LOOP_PC, LOOP_PC + 16 };
	w.stop = stop;
	w.nr_frames = (__u32)strlen(natives);
	for (__u32 i = 0; i < w.nr_frames; i++) {
		/* the call was the range's last instruction */
		frames[i] = natives[i] == 'L' ? (LOOP_PC + 16) | SONDE_FRAME_RETURN : 0x9000;
		w.sps[i] = 0x100000 + i * NATIVE_BYTES;
		runtime_look_at_native(&r, frames, i);
	}
}

/* Where the runs are: numbers of native frames, '^' at the leaf, '-' nowhere. */
static const char *places(void)
{
	static char text[64];
	__u32 number = 0;

	text[0] = '\0';
	for (__u32 i = 0; i < r.nr_frames; i++) {
		__u64 where;

		if (!(r.frames[i].flags & SONDE_RUNTIME_ENTRY))
			continue;
		if (r.frames[i].where == RUNTIME_TO_COUNT)
			runtime_pair_one(&w, &r, &r.frames[i], number);
		number++;
		where = r.frames[i].where;
		text[number - 1] = where == SONDE_RUNTIME_UNPLACED ? '-' : where == SONDE_RUNTIME_AT_LEAF ? '^' : (char)('0' + where);
		text[number] = '\0';
	}
	return text;
}

/* Pairs `nr` runs by counting. The native stack ends after `nr_here` of them. */
static const char *count(const char *natives, enum sonde_stop stop, uint32_t nr, uint32_t nr_here)
{
	begin(natives, stop);
	for (uint32_t i = 0; i < nr; i++) {
		if (i == nr_here)
			runtime_leave_stack(&r);
		runtime_push(&r, i, 0, 0, 0);
		runtime_entry(&r);
	}
	return places();
}

static void test_from_the_root(void **state)
{
	assert_string_equal(count("cLcL", SONDE_STOP_COMPLETE, 2, 9), "13");
	assert_string_equal(count("cLcL", SONDE_STOP_COMPLETE, 3, 9), "^13"); /* about to enter the loop */
	assert_string_equal(count("LcLc", SONDE_STOP_COMPLETE, 1, 9), "2");   /* about to leave it */
	assert_string_equal(count("ccc", SONDE_STOP_COMPLETE, 1, 9), "^");
	assert_string_equal(count("LLL", SONDE_STOP_COMPLETE, 0, 9), "");
}

static void test_from_the_leaf(void **state)
{
	assert_string_equal(count("cLcL", SONDE_STOP_NO_ROW, 3, 9), "13-");
	assert_string_equal(count("LcLc", SONDE_STOP_NO_ROW, 1, 9), "-"); /* one activation more than runs: which one is extra is unknown */
	begin("cLcLL", SONDE_STOP_COMPLETE);
	for (int i = 0; i < 2; i++)
		runtime_entry(&r);
	runtime_stop(&r, SONDE_RUNTIME_STOP_DEPTH);
	assert_string_equal(places(), "13"); /* there are more runs than the known ones */
	begin("cLcL", SONDE_STOP_COMPLETE);
	for (int i = 0; i < 3; i++)
		runtime_entry(&r);
	runtime_stop(&r, SONDE_RUNTIME_STOP_DEPTH);
	assert_string_equal(places(), "13-");
	begin("cLcL", SONDE_STOP_COMPLETE);
	for (int i = 0; i < 3; i++)
		runtime_entry(&r);
	r.record.stop = SONDE_RUNTIME_STOP_DEPTH; /* another runtime's record */
	r.record.stopped_runtime = SONDE_RUNTIME_PYTHON;
	assert_string_equal(places(), "^13");
}

/* What the runtime reports of the leaf limits by how many the activations may outnumber the runs. */
static const char *count_between(__s32 min_ahead, __s32 max_ahead, const char *natives, enum sonde_stop stop, uint32_t nr, uint32_t nr_here)
{
	begin(natives, stop);
	r.min_ahead = min_ahead;
	r.max_ahead = max_ahead;
	for (uint32_t i = 0; i < nr; i++) {
		if (i == nr_here)
			runtime_leave_stack(&r);
		runtime_entry(&r);
	}
	return places();
}

static void test_what_does_not_pair(void **state)
{
	assert_string_equal(count_between(0, 0, "cLcL", SONDE_STOP_COMPLETE, 2, 9), "13");
	assert_string_equal(count_between(0, 0, "cLcL", SONDE_STOP_COMPLETE, 3, 9), "---");
	assert_string_equal(count_between(-1, 0, "LcLcL", SONDE_STOP_COMPLETE, 2, 9), "--"); /* a destructor, called by an ended run */
	assert_string_equal(count_between(0, 1, "LcLcL", SONDE_STOP_COMPLETE, 2, 9), "24");
	assert_string_equal(count_between(-1, 1, "LcLcL", SONDE_STOP_COMPLETE, 1, 9), "-");
	assert_string_equal(count_between(1, 0, "LcL", SONDE_STOP_COMPLETE, 2, 9), "--"); /* no pairing is possible */
	assert_string_equal(count_between(0, 1, "LcLc", SONDE_STOP_NO_ROW, 2, 1), "2-");  /* a fiber's stack */
	assert_string_equal(count_between(-1, 0, "cLc", SONDE_STOP_NO_ROW, 3, 2), "---");
}

static void test_other_stacks(void **state)
{
	assert_string_equal(count("cLcL", SONDE_STOP_COMPLETE, 4, 2), "13--");
	assert_string_equal(count("cLcL", SONDE_STOP_COMPLETE, 4, 3), "^13-");
	assert_string_equal(count("LcL", SONDE_STOP_COMPLETE, 3, 1), "2--");
	assert_string_equal(count("c", SONDE_STOP_COMPLETE, 2, 0), "--");
	begin("L", SONDE_STOP_COMPLETE); /* with nested fibers the first one decides */
	runtime_entry(&r);
	for (int i = 0; i < 2; i++) {
		runtime_leave_stack(&r);
		runtime_entry(&r);
	}
	assert_string_equal(places(), "0--");
}

static __u64 in_frame(int i)
{
	return 0x100000 + i * NATIVE_BYTES + 8;
}

static void test_by_address(void **state)
{
	begin("abcd", SONDE_STOP_COMPLETE);
	runtime_entry_at(&w, &r, in_frame(1));
	runtime_entry_at(&w, &r, in_frame(3));
	runtime_entry_at(&w, &r, in_frame(2)); /* out of order */
	assert_string_equal(places(), "13-");
	begin("abcd", SONDE_STOP_COMPLETE);
	runtime_entry_at(&w, &r, in_frame(-1)); /* its frame was not found */
	runtime_entry_at(&w, &r, in_frame(0));
	assert_string_equal(places(), "^0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_from_the_root), cmocka_unit_test(test_from_the_leaf), cmocka_unit_test(test_what_does_not_pair),
		cmocka_unit_test(test_other_stacks),  cmocka_unit_test(test_by_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
