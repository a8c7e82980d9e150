// SPDX-License-Identifier: Apache-2.0
/* The tables of sonde show, against results worked out by hand; hostile names on a terminal; instructions and the functions they belong
 * to. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "show/annotation.h"
#include "show/diff.h"
#include "show/focus.h"
#include "show/show.h"
#include "small_profile.h"
#include "symbolize/code_listing.h"

static const struct show_options plain = { 0 };

/* Ten samples: spin 7 (one in a recursion), work 2, the kernel 1. */
static struct profile *ten(void)
{
	struct profile *profile = profile_new();

	assert_non_null(profile);
	small_add(profile, "worker", 10, "spin work main", NULL, 6);
	small_add(profile, "worker", 10, "work main", NULL, 2);
	small_add(profile, "worker", 20, "spin rec rec rec main", NULL, 1);
	small_add(profile, "other", 30, "read main", "sys_read", 1);
	return profile;
}

static void check_text(struct buffer *buffer, const char *want)
{
	assert_int_equal(buffer->err, 0);
	assert_string_equal(buffer->data, want);
	buffer_done(buffer);
	*buffer = BUFFER_INIT(1 << 20);
}

static void test_top(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = ten();
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(1 << 20);
	const struct show_options two = { .max_lines = 2 };

	assert_int_equal(show_top(profile, &plain, &buffer), 0);
	check_text(&buffer, "samples: 10 in all\n"
			    "      SELF     TOTAL         SELF  FUNCTION\n"
			    "   70.00 %   70.00 %            7  spin  app\n"
			    "   20.00 %   80.00 %            2  work  app\n"
			    "   10.00 %   10.00 %            1  sys_read  kernel\n"
			    "    0.00 %  100.00 %            0  main  app\n"
			    "    0.00 %   10.00 %            0  rec  app\n"
			    "    0.00 %   10.00 %            0  read  app\n");
	assert_int_equal(show_top(profile, &two, &buffer), 0);
	assert_non_null(strstr(buffer.data, "2 of 6 functions: 90.00 % of all (self)\n"));
}

static void test_tree(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = ten();
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(1 << 20);
	const struct show_options cut = { .min_percent = 15 };

	assert_int_equal(show_tree(profile, &plain, &buffer), 0);
	check_text(&buffer, "samples: 10 in all\n"
			    "     TOTAL      SELF  FUNCTION\n"
			    "  100.00 %    0.00 %  all\n"
			    "   90.00 %    0.00 %  - worker\n"
			    "   90.00 %    0.00 %    main  app\n"
			    "   80.00 %   20.00 %    - work  app\n"
			    "   60.00 %   60.00 %      spin  app\n"
			    "   10.00 %    0.00 %    - rec (calls itself, up to 3 deep)  app\n"
			    "   10.00 %   10.00 %      spin  app\n"
			    "   10.00 %    0.00 %  - other\n"
			    "   10.00 %    0.00 %    main  app\n"
			    "   10.00 %    0.00 %    read  app\n"
			    "   10.00 %   10.00 %    sys_read  kernel\n");
	assert_int_equal(show_tree(profile, &cut, &buffer), 0);
	assert_non_null(strstr(
	    buffer.data, "- work  app\n   60.00 %   60.00 %      spin  app\n2 branches below 15 % are not shown (--min 0 shows them)\n"));
}

static void test_callers_and_callees(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = ten();
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(1 << 20);
	struct diag diag = { 0 };

	assert_int_equal(show_callers(profile, "spin", &plain, &buffer, &diag), 0);
	assert_non_null(strstr(buffer.data, "   70.00 %   70.00 %  spin  app\n"
					    "   60.00 %   60.00 %  - work  app\n"
					    "   60.00 %   60.00 %    main  app\n"
					    "   10.00 %   10.00 %  - rec (calls itself, up to 3 deep)  app\n"));
	buffer.size = 0;
	assert_int_equal(show_callees(profile, "work", &plain, &buffer, &diag), 0);
	assert_non_null(strstr(buffer.data, "FUNCTION\n   80.00 %   20.00 %  work  app\n   60.00 %   60.00 %  spin  app\n"));
	buffer.size = 0;
	assert_int_equal(show_callers(profile, "work", &plain, &buffer, &diag), 0); /* 2 of its 8 are its own */
	assert_non_null(strstr(buffer.data, "   80.00 %   20.00 %  work  app\n   80.00 %   20.00 %  main  app\n"));
	assert_int_equal(show_callers(profile, "spi", &plain, &buffer, &diag), -ENOENT);
	assert_non_null(strstr(diag.text, "'spi'"));
}

static void check_by(const struct profile *profile, enum show_by by, const char *want)
{
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(1 << 20);

	assert_int_equal(show_table(profile, by, &plain, &buffer), 0);
	check_text(&buffer, want);
}

static void test_by(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = ten();
	struct diag diag = { 0 };
	enum show_by by;

	check_by(profile, SHOW_BY_PROCESS, "samples: 10 in all\n     SHARE        VALUE  PROCESS  (hottest function)\n"
					   "   80.00 %            8  worker 10  (75 % spin)\n"
					   "   10.00 %            1  worker 20  (100 % spin)\n"
					   "   10.00 %            1  other 30  (100 % sys_read)\n");
	check_by(profile, SHOW_BY_FILE, "samples: 10 in all\n      SELF     TOTAL         SELF  FILE  (hottest function)\n"
					"   90.00 %  100.00 %            9  /opt/app  (78 % spin)\n"
					"   10.00 %   10.00 %            1  [kernel]  (100 % sys_read)\n");
	check_by(profile, SHOW_BY_CPU, "samples: 10 in all\n     SHARE        VALUE  CPU  (hottest function)\n"
				       "  100.00 %           10  not known  (70 % spin)\n");
	check_by(profile, SHOW_BY_LANGUAGE, "samples: 10 in all\n      SELF     TOTAL         SELF  LANGUAGE  (hottest function)\n"
					    "   90.00 %  100.00 %            9  native  (78 % spin)\n"
					    "   10.00 %   10.00 %            1  kernel  (100 % sys_read)\n");
	assert_int_equal(show_by_name("thread", &diag, &by), 0);
	assert_int_equal(by, SHOW_BY_THREAD);
	assert_int_equal(show_by_name("moon", &diag, &by), -EINVAL);
}

static uint32_t run_by(struct profile *profile, const char *name, const char *file, uint32_t start_line, uint32_t line, uint32_t kind)
{
	struct profile_function function = { .name = profile_string(profile, name),
					     .system_name = profile_string(profile, name),
					     .file = profile_string(profile, file),
					     .line = start_line };
	struct profile_location location = {
		.function = profile_function(profile, &function), .mapping = PROFILE_NONE, .kind = kind, .line = line
	};

	return profile_location(profile, &location);
}

/* Processes of one name are one command; a thread's process is called as its main thread, or as its threads are. */
static void test_commands(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = ten();
	struct profile_sample thread = {
		.tgid = 30, .tid = 31, .user_stack = PROFILE_NONE, .kernel_stack = PROFILE_NONE, .cpu = PROFILE_NONE, .values = { 4 }
	};

	thread.comm = profile_string(profile, "pool");
	assert_int_equal(profile_add(profile, &thread), 0);
	thread.tgid = 40;
	assert_int_equal(profile_add(profile, &thread), 0);
	check_by(profile, SHOW_BY_COMM, "samples: 18 in all\n     SHARE        VALUE  COMMAND  (hottest function)\n"
					"   50.00 %            9  worker (2 processes)  (78 % spin)\n"
					"   27.78 %            5  other 30  (20 % sys_read)\n"
					"   22.22 %            4  pool 40\n");
}

static void test_labels(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = ten();
	struct profile_label labels[2] = { { .key = profile_string(profile, "route"), .text = profile_string(profile, "/a") },
					   { .key = profile_string(profile, "size"), .number = -5, .is_number = 1,
					     .unit = profile_string(profile, "bytes") } };
	struct profile_sample sample = {
		.tgid = 30, .tid = 31, .user_stack = PROFILE_NONE, .kernel_stack = PROFILE_NONE, .cpu = PROFILE_NONE, .values = { 5 }
	};

	sample.labels = profile_labels(profile, labels, 2);
	assert_int_equal(profile_add(profile, &sample), 0);
	check_by(profile, SHOW_BY_LABEL, "samples: 15 in all\n     SHARE        VALUE  LABEL  (hottest function)\n"
					 "   66.67 %           10  [no label]  (70 % spin)\n"
					 "   33.33 %            5  route=/a\n"
					 "   33.33 %            5  size=-5 bytes\n");
}

/* A wait belongs to the function that waited; what it waited for is a state. Frames of the waker are not the thread's. */
static void test_states(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(1 << 20);
	const uint32_t wait = run_by(profile, "[futex]", "", 0, 0, FRAME_MARK), end = run_by(profile, "--", "", 0, 0, FRAME_MARK),
		       name = run_by(profile, "waker", "", 0, 0, FRAME_MARK), post = run_by(profile, "post", "", 0, 0, FRAME_NATIVE),
		       take = run_by(profile, "take", "", 0, 0, FRAME_NATIVE), cut = run_by(profile, "[truncated]", "", 0, 0, FRAME_MARK);
	struct profile_sample sample = { .tgid = 40, .tid = 40, .kernel_stack = PROFILE_NONE, .cpu = PROFILE_NONE };

	sample.user_stack = profile_stack(profile, (const uint32_t[]){ name, post, end, wait, take, cut }, 6);
	sample.values[0] = 3;
	assert_int_equal(profile_add(profile, &sample), 0);
	sample.user_stack = profile_stack(profile, (const uint32_t[]){ take, cut }, 2);
	sample.values[0] = 1;
	assert_int_equal(profile_add(profile, &sample), 0);
	check_by(profile, SHOW_BY_STATE, "samples: 4 in all\n     SHARE        VALUE  STATE  (hottest function)\n"
					 "   75.00 %            3  [futex]  (100 % take)\n"
					 "   25.00 %            1  [no state]  (100 % take)\n");
	assert_int_equal(show_top(profile, &(struct show_options){ .max_lines = 2, .sort_total = true }, &buffer), 0);
	check_text(&buffer, "samples: 4 in all\n      SELF     TOTAL         SELF  FUNCTION\n"
			    "  100.00 %  100.00 %            4  take\n"
			    "    0.00 %  100.00 %            0  [truncated]\n"
			    "2 of 6 functions: 100.00 % of all (self)\n");
}

static void test_focus(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = ten();
	struct diag diag = { 0 };

	assert_int_equal(focus_samples(profile, "(", NULL, &diag), -EINVAL);
	assert_non_null(strstr(diag.text, "no regular expression"));
	assert_int_equal(focus_samples(profile, "^(spin|read)$", "^rec$", &diag), 0);
	check_by(profile, SHOW_BY_COMM, "samples: 7 in all\n     SHARE        VALUE  COMMAND  (hottest function)\n"
					"   85.71 %            6  worker 10  (100 % spin)\n"
					"   14.29 %            1  other 30  (100 % sys_read)\n");
}

/* Functions of one name in two files, or at two first lines, are separate. The lines of calls do not separate functions. */
static struct profile *of_python(void)
{
	struct profile *profile = ten();
	const uint32_t frames[] = { run_by(profile, "get", "/app/a.py", 10, 12, FRAME_PYTHON),
				    run_by(profile, "get", "/app/a.py", 10, 11, FRAME_PYTHON),
				    run_by(profile, "get", "/app/a.py", 20, 22, FRAME_PYTHON),
				    run_by(profile, "get", "/app/b.py", 10, 12, FRAME_PYTHON),
				    run_by(profile, "[python: frames left out]", "", 0, 0, FRAME_MARK),
				    run_by(profile, "{main}", "", 0, 0, FRAME_PHP) };
	struct profile_sample sample = {
		.tgid = 40, .tid = 40, .kernel_stack = PROFILE_NONE, .cpu = PROFILE_NONE, .comm = profile_string(profile, "py")
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(frames); i++) {
		sample.user_stack = profile_stack(profile, (const uint32_t[]){ frames[i], frames[4], frames[3] }, 3);
		sample.values[0] = i + 1;
		assert_int_equal(profile_add(profile, &sample), 0);
	}
	return profile;
}

/* Waits of 3 and 9, and one of 30 below them. A function has the minimum and the maximum of the waits that it is in. */
static void test_folds(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(1 << 20);
	const struct { const char *user; int64_t us; } waits[] = { { "lock main", 3 }, { "lock main", 9 }, { "lock other main", 30 } };
	struct profile_value_type types[] = { { .fold = VALUE_SUM }, { .fold = VALUE_SUM }, { .fold = VALUE_MIN }, { .fold = VALUE_MAX } };
	static const char *const names[] = { "waits", "blocked", "shortest", "longest" };
	struct diag diag = { 0 };

	for (int i = 0; i < 4; i++) {
		types[i].type = profile_string(profile, names[i]);
		types[i].unit = profile_string(profile, i ? "microseconds" : "count");
	}
	profile_set_value_types(profile, types, 4, 3);
	for (size_t i = 0; i < ARRAY_SIZE(waits); i++) {
		struct profile_sample sample = { .tgid = 1,
						 .tid = 1,
						 .cpu = PROFILE_NONE,
						 .kernel_stack = PROFILE_NONE,
						 .values = { 1, waits[i].us, waits[i].us, waits[i].us } };

		sample.comm = profile_string(profile, "app");
		sample.user_stack = small_stack(profile, waits[i].user, FRAME_NATIVE);
		assert_int_equal(profile_add(profile, &sample), 0);
	}
	assert_int_equal(show_top(profile, &plain, &buffer), 0);
	check_text(&buffer, "longest: 30 us of all; also (--value): waits, blocked, shortest\n"
			    "         SELF        TOTAL  FUNCTION\n"
			    "        30 us        30 us  lock  app\n"
			    "            -        30 us  main  app\n"
			    "            -        30 us  other  app\n");
	check_by(profile, SHOW_BY_PROCESS, "longest: 30 us of all; also (--value): waits, blocked, shortest\n"
					   "        VALUE  PROCESS  (hottest function)\n"
					   "        30 us  app 1  (lock)\n");
	profile_set_value_types(profile, types, 4, 2);
	assert_int_equal(show_tree(profile, &plain, &buffer), 0);
	check_text(&buffer, "shortest: 3 us of all; also (--value): waits, blocked, longest\n"
			    "        TOTAL         SELF  FUNCTION\n"
			    "         3 us            -  all\n"
			    "         3 us            -  app\n"
			    "         3 us            -  main  app\n"
			    "        30 us            -  - other  app\n"
			    "        30 us        30 us    lock  app\n"
			    "         3 us         3 us  - lock  app\n");
	check_by(profile, SHOW_BY_FILE, "shortest: 3 us of all; also (--value): waits, blocked, longest\n"
					"         SELF        TOTAL  FILE\n"
					"         3 us         3 us  /opt/app\n");
	assert_int_equal(annotation_make(profile, "lock", &diag, &(struct annotation){ 0 }), -EINVAL);
	assert_non_null(strstr(diag.text, "is not a sum"));
}

static void test_interpreted(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = of_python();
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(1 << 20);
	CLEANUP(annotation_done) struct annotation annotation = { 0 };
	struct diag diag = { 0 };

	assert_int_equal(show_top(profile, &(struct show_options){ .max_lines = 7 }, &buffer), 0);
	check_text(&buffer, "samples: 31 in all\n"
			    "      SELF     TOTAL         SELF  FUNCTION\n"
			    "   22.58 %   22.58 %            7  spin  app\n"
			    "   19.35 %   19.35 %            6  {main}\n"
			    "   16.13 %   67.74 %            5  [python: frames left out]\n"
			    "   12.90 %   67.74 %            4  get  b.py:10\n"
			    "    9.68 %    9.68 %            3  get  a.py:10\n"
			    "    9.68 %    9.68 %            3  get  a.py:20\n"
			    "    6.45 %   25.81 %            2  work  app\n"
			    "7 of 11 functions: 96.77 % of all (self)\n");
	check_by(profile, SHOW_BY_FILE, "samples: 31 in all\n      SELF     TOTAL         SELF  FILE  (hottest function)\n"
					"   29.03 %   32.26 %            9  /opt/app  (78 % spin)\n"
					"   19.35 %   19.35 %            6  [no file]  (100 % {main})\n"
					"   19.35 %   19.35 %            6  /app/a.py  (50 % get)\n"
					"   16.13 %   67.74 %            5  [not known]  (100 % [python: frames left out])\n"
					"   12.90 %   67.74 %            4  /app/b.py  (100 % get)\n"
					"    3.23 %    3.23 %            1  [kernel]  (100 % sys_read)\n");
	assert_int_equal(annotation_make(profile, "get", &diag, &annotation), 0);
	assert_int_equal(annotation.nr_places, 3);
	assert_int_equal(annotation.nr_addresses, 0);
	assert_int_equal(annotation.nr_lines, 4);
	assert_string_equal(profile_string_text(profile, annotation.places[0].path), "/app/b.py");
	assert_int_equal(annotation.places[0].total, 21);
}

/* Between two versions lines move and folders change. The file's base name separates functions of one name. */
static void test_diff_of_interpreted(void **state)
{
	CLEANUP(profile_freep) struct profile *before = profile_new(), *after = profile_new();
	CLEANUP(diff_done) struct diff diff = { 0 };
	struct profile *both[] = { before, after };
	struct diag diag = { 0 };

	for (uint32_t side = 0; side < 2; side++) {
		struct profile_sample sample = { .kernel_stack = PROFILE_NONE, .cpu = PROFILE_NONE, .values = { 10 } };
		uint32_t frame = run_by(both[side], "get", side ? "/v2/a.py" : "/v1/a.py", 10 + side, 12, FRAME_PYTHON);

		sample.user_stack = profile_stack(both[side], &frame, 1);
		assert_int_equal(profile_add(both[side], &sample), 0);
		frame = run_by(both[side], "get", "/v1/b.py", 10, 12, FRAME_PYTHON);
		sample.user_stack = profile_stack(both[side], &frame, 1);
		assert_int_equal(profile_add(both[side], &sample), 0);
	}
	assert_int_equal(diff_make(before, after, NULL, &diag, &diff), 0);
	assert_int_equal(diff.nr_rows, 2);
	assert_true(diff.rows[0].self[0] == 10 && diff.rows[0].self[1] == 10);
}

/* However hostile and long the names: no byte that could drive a terminal, no line longer than the terminal. */
static void check_tame(const struct buffer *buffer, size_t max_columns)
{
	size_t columns = 0;

	for (size_t i = 0; i < buffer->size; i++) {
		unsigned char byte = (unsigned char)buffer->data[i];

		assert_true(byte == '\n' || (byte >= ' ' && byte != 0x7f));
		assert_true(byte != 0xc2 || (unsigned char)buffer->data[i + 1] >= 0xa0); /* C1 */
		columns = byte == '\n' ? 0 : columns + ((byte & 0xc0) != 0x80);
		assert_true(columns <= max_columns);
	}
	assert_null(strstr(buffer->data, "\xe2\x80\xae")); /* right to left from here */
}

static void test_hostile_names(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(64 << 20);
	CLEANUP(freep) char *huge = calloc(1, (4u << 20) + 1);
	const struct show_options narrow = { .width = 60 };

	assert_non_null(huge);
	memset(huge, 'x', 4u << 20);
	small_add(profile, "\033[2Jcomm\n", 1, "\033]0;title\007 \xe2\x80\xaeturned \xc2\x9b", "ker\rnel", 3);
	small_add(profile, huge, 2, huge, huge, 4);
	assert_int_equal(show_summary(profile, &narrow, &buffer), 0);
	assert_int_equal(show_tree(profile, &narrow, &buffer), 0);
	assert_int_equal(show_table(profile, SHOW_BY_THREAD, &narrow, &buffer), 0);
	assert_int_equal(show_callers(profile, "ker\rnel", &narrow, &buffer, NULL), 0);
	assert_int_equal(buffer.err, 0);
	check_tame(&buffer, 60);
	assert_non_null(strstr(buffer.data, "?[2Jcomm?"));
	assert_non_null(strstr(buffer.data, "xxx\xe2\x80\xa6\n"));
}

static void test_instructions_have_their_own(void **state)
{
	struct shown_instruction code[] = {
		{ 0x10, 2, "nop", 0, 0 }, { 0x12, 5, "callq 0x40", 0, 0 }, { 0x17, 2, "syscall", 0, 0 }, { 0x19, 1, "retq", 0, 0 }
	};
	const struct annotated_address addresses[] = {
		{ .elf_vaddr = 0x12, .class = ADDRESS_LEAF, .self = 1, .total = 1 },  /* at a call */
		{ .elf_vaddr = 0x17, .class = ADDRESS_CALL, .self = 0, .total = 20 }, /* the return address is behind the call */
		{ .elf_vaddr = 0x17, .class = ADDRESS_LEAF, .self = 300, .total = 300 },
		{ .elf_vaddr = 0x19, .class = ADDRESS_ENTRY, .self = 0, .total = 4000 },  /* in the kernel by the system call */
		{ .elf_vaddr = 0x17, .class = ADDRESS_ENTRY, .self = 0, .total = 50000 }, /* in the kernel by an interrupt */
		{ .elf_vaddr = 0x1a,
		  .class = ADDRESS_CALL,
		  .self = 0,
		  .total = 600000 }, /* a call that does not return is the last instruction */
		{ .elf_vaddr = 0x1b, .class = ADDRESS_LEAF, .self = 9, .total = 9 },
		{ .elf_vaddr = 0x10, .class = ADDRESS_CALL, .self = 9, .total = 9 },
	};

	assert_int_equal(annotation_give(addresses, ARRAY_SIZE(addresses), code, ARRAY_SIZE(code)), 2);
	assert_int_equal(code[0].total, 0);
	assert_int_equal(code[1].self, 1);
	assert_int_equal(code[1].total, 21);
	assert_int_equal(code[2].self, 300);
	assert_int_equal(code[2].total, 54300);
	assert_int_equal(code[3].total, 600000);
}

static void test_source(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = ten();
	CLEANUP(annotation_done) struct annotation annotation = { 0 };
	CLEANUP(buffer_done) struct buffer buffer = BUFFER_INIT(1 << 20);
	CLEANUP(code_rows_done) struct code_rows rows = { 0 };
	static const char text[] = "1\n2\n3\n4\n5\n\tsix\033\n7\n8\n9\n10\n11";
	const struct annotated_line lines[] = { { .line = 6, .self = 2, .total = 4 }, { .line = 4000000000u, .total = 1 } };

	assert_int_equal(annotation_make(profile, "spi", NULL, &annotation), 0); /* a part of the name */
	assert_int_equal(annotation.nr_places, 1);
	assert_int_equal(annotation.places[0].total, 7);
	annotation.places[0].total = 8;
	assert_int_equal(annotation_source(lines, 2, text, sizeof(text) - 1, 3, &rows), 0);
	show_code_rows(&rows, annotation.places[0].total, &plain, &buffer);
	assert_null(strstr(buffer.data, " 2  2"));
	assert_non_null(strstr(buffer.data, "      3  3\n"));
	assert_non_null(strstr(buffer.data, "   25.00 %   50.00 %      6          six?\n"));
	assert_non_null(strstr(buffer.data, "      9  9\n"));
	assert_null(strstr(buffer.data, "10  10"));
	assert_non_null(strstr(buffer.data, "4000000000  [the file has no such line]\n"));
}

static struct code_row *add_row(struct code_rows *rows, enum code_row_kind kind, uint64_t number, int64_t self)
{
	assert_int_equal(code_rows_add_text(rows, kind, number, kind == CODE_ROW_LINE ? "line" : "code"), 0);
	rows->list[rows->nr - 1].self = self;
	return &rows->list[rows->nr - 1];
}

/* A page keeps what is around the hottest row of the source and of the instructions, and sums up the rest. */
static void test_rows_are_cut(void **state)
{
	CLEANUP(code_rows_done) struct code_rows rows = { 0 };
	size_t nr_bytes;

	add_row(&rows, CODE_ROW_FILE, 0, 0);
	for (uint32_t i = 1; i <= 50; i++)
		add_row(&rows, CODE_ROW_LINE, i, i == 30 ? 100 : 1);
	add_row(&rows, CODE_ROW_CODE, 0, 0);
	add_row(&rows, CODE_ROW_INSTRUCTION, 0x10, 7);
	add_row(&rows, CODE_ROW_INSTRUCTION_GAP, 5, 0);
	nr_bytes = code_rows_bytes(&rows);
	code_rows_cut(&rows, 60); /* that is room for all */
	assert_int_equal(rows.nr, 54);
	assert_int_equal(code_rows_bytes(&rows), nr_bytes);
	code_rows_cut(&rows, 10);
	assert_int_equal(rows.nr, 1 + 1 + 10 + 1 + 3);
	assert_int_equal(rows.list[0].kind, CODE_ROW_FILE);
	assert_int_equal(rows.list[1].kind, CODE_ROW_LINE_GAP);
	assert_int_equal(rows.list[1].number, 24);
	assert_int_equal(rows.list[1].self, 24);
	assert_string_equal(code_row_text(&rows, 1), "");
	assert_int_equal(rows.list[2].number, 25);
	assert_int_equal(rows.list[7].self, 100);
	assert_int_equal(rows.list[12].kind, CODE_ROW_LINE_GAP);
	assert_int_equal(rows.list[12].number, 16);
	assert_int_equal(rows.list[13].kind, CODE_ROW_CODE);
	assert_int_equal(rows.list[14].number, 0x10);
	assert_string_equal(code_row_text(&rows, 14), "code");
	code_rows_cut(&rows, 1); /* a gap in what is summed up counts its rows */
	assert_int_equal(rows.list[1].number, 29);
	assert_int_equal(rows.list[2].self, 100);
	assert_int_equal(rows.list[3].number, 20);
	assert_int_equal(rows.list[rows.nr - 1].number, 5);
	rows.nr = 0;
	code_rows_cut(&rows, 1);
	assert_int_equal(rows.nr, 0);
}

/* The page's functions are those with the largest values of their own, not marks. */
static void test_hottest(void **state)
{
	CLEANUP(profile_freep) struct profile *profile = ten();
	CLEANUP(annotation_done) struct annotation annotation = { 0 };

	assert_int_equal(annotation_make_hottest(profile, NULL, &annotation), 0);
	assert_true(annotation.nr_places > 0);
	for (uint32_t i = 0; i < annotation.nr_places; i++) {
		assert_true(annotation_has_code(annotation.places[i].kind));
		assert_true(annotation.places[i].self > 0);
		assert_int_not_equal(annotation.places[i].kind, FRAME_KERNEL); /* without lines */
	}
}

extern const char __executable_start; /* defined by the linker: where the file's first byte is mapped */

/* Lists the function at that address of this program's file. */
static struct buffer list_self(uint64_t elf_vaddr, int *ret_err)
{
	struct buffer answer = BUFFER_INIT(1 << 20);
	struct elf_file *elf = NULL;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct code_request request = { .elf_vaddr = elf_vaddr };

	assert_int_equal(elf_file_open_fd(fd, NULL, &elf), 0);
	code_listing_preload();
	*ret_err = code_listing_write(elf, NULL, &request, NULL, &answer);
	elf_file_free(elf);
	return answer;
}

static void test_listing(void **state)
{
	struct code_listing listing;
	struct code_line line = { 0 };
	uint32_t nr = 0;
	int err;
	struct buffer answer = list_self((uint64_t)((uintptr_t)test_source - (uintptr_t)&__executable_start), &err);

	assert_int_equal(err, 0);
	assert_int_equal(code_listing_open(answer.data, answer.size, &listing), 0);
	for (uint64_t next = listing.start; code_listing_next(&listing, &line); nr++) {
		assert_int_equal(line.elf_vaddr, next); /* no gap */
		next += line.nr_bytes;
	}
	assert_false(listing.lines.bad);
	assert_true(nr > 30);
	assert_int_equal(line.elf_vaddr + line.nr_bytes, listing.end);
	/* what a compromised worker could send */
	for (size_t size = 0; size < answer.size; size++) {
		if (!code_listing_open(answer.data, size, &listing)) {
			while (code_listing_next(&listing, &line))
				;
			assert_true(line.elf_vaddr < listing.end);
		}
	}
	assert_int_equal(code_listing_open(answer.data, answer.size, &listing), 0);
	answer.data[24]++; /* the first line's address: after the start */
	assert_int_equal(code_listing_open(answer.data, answer.size, &listing), 0);
	assert_false(code_listing_next(&listing, &line));
	assert_true(listing.lines.bad);
	buffer_done(&answer);
	answer = list_self(0x7fffffffff000, &err);
	assert_int_equal(err, -ENOENT);
	buffer_done(&answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_top),
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_callers_and_callees),
		cmocka_unit_test(test_folds),
		cmocka_unit_test(test_by),
		cmocka_unit_test(test_commands),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_focus),
		cmocka_unit_test(test_interpreted),
		cmocka_unit_test(test_diff_of_interpreted),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_instructions_have_their_own),
		cmocka_unit_test(test_source), cmocka_unit_test(test_rows_are_cut), cmocka_unit_test(test_hottest),
		cmocka_unit_test(test_listing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
