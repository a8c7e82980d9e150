// SPDX-License-Identifier: Apache-2.0
/* The walk of Ruby's stack (bpf/runtimes/ruby.h) and the names of its frames, over a made-up execution context in the test's own memory.
 * The true stacks of living programs are in tests/system/ruby.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "runtime/runtime.h"
#include "walk_host.h"

static struct runtime_walk r;

static struct runtime_walk *runtime_walk_of(WALK_REF ref)
{
	return &r;
}

#include "runtimes/ruby.h"

#define STACK_WORDS 4096
#define CFP_BYTES 64
#define MACHINE 18 /* word of the execution context */
#define STACK_START 0x7f0000100000ULL
#define STACK_BYTES 0x10000
#define CFP_WORDS (CFP_BYTES / 8)
#define MEMORY_WORDS 16384
#define CODE_WORDS 100

/* Flags of frames (vm_core.h). */
#define METHOD 0x11110001
#define BLOCK 0x22220001
#define TOP 0x44440001
#define IFUNC 0x66660001

static struct {
	uint64_t ec[24];
	uint64_t stack[STACK_WORDS];
	uint64_t heap[MEMORY_WORDS];
} memory __attribute__((aligned(4096))); /* blocks are read within a page */
static uint64_t ec_pointer;
static uint32_t heap_used, nr_values, nr_reads;
static struct walk w;
static struct sonde_ruby ruby;

static uint64_t at(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

static bool is_within(const void *start, size_t bytes, uint64_t from, size_t size)
{
	return from >= at(start) && size <= bytes && from - at(start) <= bytes - size;
}

static long read_made(void *to, __u32 size, __u64 from)
{
	nr_reads++;
	if (!is_within(&memory, sizeof(memory), from, size) && !is_within(&ec_pointer, sizeof(ec_pointer), from, size))
		return -EFAULT;
	memcpy(to, (const void *)(uintptr_t)from, size);
	return 0;
}

static int read_for_names(void *arg, uint64_t from, void *to, size_t size)
{
	return (int)read_made(to, (__u32)size, from);
}

static uint64_t *take(uint32_t nr_words)
{
	uint64_t *words = &memory.heap[heap_used];

	heap_used += nr_words;
	assert_true(heap_used <= MEMORY_WORDS);
	return words;
}

/* --- Ruby's objects ------------------------------------------------------------------------------------------------------------------- */

static uint64_t string(const char *text)
{
	uint64_t *object = take(8), length = strlen(text);

	assert_true(length < 40);
	object[0] = 5 | 1 << 13;
	object[2] = length;
	object[3] = at(&object[4]);
	memcpy(&object[4], text, length);
	return at(object);
}

static uint64_t short_string(const char *text)
{
	uint64_t *object = take(5);

	object[0] = 5 | strlen(text) << 14;
	memcpy(&object[2], text, strlen(text));
	return at(object);
}

/* The instructions at a position below 4 are of line 10, below 60 of line 11, the others of line 12. */
static uint64_t iseq(uint64_t label, uint64_t path)
{
	uint64_t *object = take(3), *body = take(24), *code = take(CODE_WORDS), *lines = take(6), *index = take(6 + 10);
	uint32_t entries[9] = { 10, 0, 0, 11, 0, 0, 12, 0, 0 };

	object[2] = at(body);
	body[1] = at(code);
	body[8] = path;
	body[10] = label;
	body[11] = 9 << 1 | 1; /* first line */
	body[15] = at(lines);
	body[17] = 3;
	body[18] = at(index);
	memcpy(lines, entries, sizeof(entries));
	for (uint32_t position = 0; position < 54; position++)
		index[position / 9] |= (uint64_t)(position < 4 ? 1 : 2) << position % 9 * 7;
	index[6] = 2;            /* rank: entries before position 54 */
	index[8] = 1ULL << 6;    /* one more from position 60 on */
	return at(object);
}

/* A method written in C; `id` is that of a symbol. */
static uint64_t c_method(uint64_t id)
{
	uint64_t *me = take(5), *def = take(6);

	me[0] = 0x1a | 6 << 12;
	me[2] = at(def);
	me[3] = id;
	def[4] = id;
	return at(me);
}

static uint64_t *frame_at(uint32_t number) /* 0: the outermost */
{
	return &memory.stack[STACK_WORDS - (number + 1) * CFP_WORDS];
}

static void begin(void)
{
	memset(&memory, 0, sizeof(memory));
	memset(&r, 0, sizeof(r));
	heap_used = nr_values = 0;
	ec_pointer = at(memory.ec);
	memory.ec[MACHINE] = STACK_START;
	memory.ec[MACHINE + 2] = STACK_BYTES;
	memory.ec[0] = at(memory.stack);
	memory.ec[1] = STACK_WORDS;
	memory.ec[2] = at(frame_at(0));
	host_read = read_made;
	ruby = (struct sonde_ruby){ .cfp_bytes = CFP_BYTES, .ec_machine = MACHINE * 8 };
	host_tls_base = at(&ec_pointer);
	ruby.process.root = (struct sonde_tls){ .kind = SONDE_TLS_STATIC };
}

/* Pushes a frame. `position`: of its pc among the instructions. */
static uint64_t *push(uint64_t code, uint32_t position, uint64_t me, uint64_t flags)
{
	uint64_t *frame = (uint64_t *)(uintptr_t)memory.ec[2] - CFP_WORDS, *values = &memory.stack[nr_values];

	nr_values += 4;
	values[1] = me;
	values[3] = flags;
	frame[0] = code ? ((uint64_t *)(uintptr_t)((uint64_t *)(uintptr_t)code)[2])[1] + 8ull * position : 0;
	frame[2] = code;
	frame[4] = at(&values[3]);
	memory.ec[2] = at(frame);
	return frame;
}

static void walk_at(uint64_t sp)
{
	uint32_t nr_cached = r.nr_cached, nr_wrong = r.nr_wrong;

	memset(&w, 0, sizeof(w));
	w.start.sp = sp;
	memset(&r, 0, offsetof(struct runtime_walk, places)); /* the caches outlive a walk */
	memset(&r.known_hash, 0, sizeof(r) - offsetof(struct runtime_walk, known_hash));
	r.nr_cached = nr_cached;
	r.nr_wrong = nr_wrong;
	r.runtime = SONDE_RUNTIME_RUBY;
	r.nr_here = RUNTIME_ALL_HERE;
	if (ruby_enter(&w, &r, &ruby) != RUNTIME_GOES_ON)
		return;
	for (int i = 0; i < 5000; i++) {
		if (ruby_step(&w, &r, &ruby) != RUNTIME_GOES_ON)
			return;
	}
	fail_msg("the walk does not end");
}

static void walk(void)
{
	walk_at(STACK_START - 0x100);
}

/* --- tests ---------------------------------------------------------------------------------------------------------------------------- */

static void runs_end_at_calls_from_c(void **state)
{
	uint64_t path, outer, inner, each;

	begin();
	path = string("a.rb");
	outer = iseq(string("outer"), path);
	inner = iseq(short_string("block in outer"), path);
	each = c_method(1);
	push(outer, 5, 0, TOP | SONDE_RUBY_FRAME_FINISH);
	push(0, 0, each, SONDE_RUBY_FRAME_CFUNC | SONDE_RUBY_FRAME_C);
	push(0, 0, 0, IFUNC | SONDE_RUBY_FRAME_C)[2] = at(take(3)); /* no frame */
	push(inner, 7, 0, BLOCK | SONDE_RUBY_FRAME_FINISH);
	push(outer, 9, 0, METHOD);
	walk();
	assert_int_equal(r.record.stop, SONDE_RUNTIME_STOP_COMPLETE);
	assert_int_equal(r.nr_frames, 6);
	assert_true(r.frames[0].code == outer && r.frames[0].where == 9 && !r.frames[0].flags);
	assert_true(r.frames[1].code == inner && r.frames[1].where == 7);
	assert_int_equal(r.frames[2].flags, SONDE_RUNTIME_ENTRY);
	assert_true(r.frames[3].code == (each | SONDE_RUBY_CODE_C));
	assert_true(r.frames[4].code == outer && r.frames[4].where == 5);
	assert_int_equal(r.frames[5].flags, SONDE_RUNTIME_ENTRY);
}

static void deep_stacks(void **state)
{
	uint64_t code;

	begin();
	code = iseq(string("deep"), string("a.rb"));
	for (uint32_t i = 0; i < 400; i++)
		push(code, i % CODE_WORDS, 0, METHOD | (i ? 0 : SONDE_RUBY_FRAME_FINISH));
	walk();
	assert_int_equal(r.record.stop, SONDE_RUNTIME_STOP_COMPLETE);
	assert_int_equal(r.nr_frames, 401);
	for (uint32_t i = 0; i < 400; i++)
		assert_int_equal(r.frames[i].where, (399 - i) % CODE_WORDS);
}

static void variables_hold_the_method(void **state)
{
	uint64_t *variables, me;

	begin();
	me = c_method(3);
	variables = take(5);
	variables[0] = 0x1a | 2 << 12;
	variables[1] = me;
	push(0, 0, at(variables), SONDE_RUBY_FRAME_CFUNC | SONDE_RUBY_FRAME_C);
	walk();
	assert_true(r.nr_frames == 1 && r.frames[0].code == (me | SONDE_RUBY_CODE_C));
}

/* What makes no sense ends the walk with a mark; nothing makes it go on for ever. */
static void torn(void **state)
{
	uint64_t code, *frame;

	begin();
	code = iseq(string("f"), string("a.rb"));
	push(code, 1, 0, METHOD | SONDE_RUBY_FRAME_FINISH)[0] += 3;
	walk();
	assert_int_equal(r.record.stop, SONDE_RUNTIME_STOP_TORN);

	begin();
	frame = push(iseq(string("f"), string("a.rb")), 1, 0, METHOD);
	*(uint64_t *)(uintptr_t)frame[4] = 0x5554; /* no flags */
	walk();
	assert_int_equal(r.record.stop, SONDE_RUNTIME_STOP_TORN);

	begin();
	push(0, 0, at(take(5)), SONDE_RUBY_FRAME_CFUNC | SONDE_RUBY_FRAME_C); /* no method entry */
	walk();
	assert_int_equal(r.record.stop, SONDE_RUNTIME_STOP_TORN);

	begin();
	memory.ec[2] = at(memory.stack) + sizeof(memory.stack) + 64;
	walk();
	assert_int_equal(r.record.stop, SONDE_RUNTIME_STOP_TORN);

	begin();
	memory.ec[1] = UINT64_MAX / 8;
	walk();
	assert_int_equal(r.record.stop, SONDE_RUNTIME_STOP_TORN);

	begin();
	frame = push(iseq(string("f"), string("a.rb")), 1, 0, METHOD);
	frame[4] = 0x1000;
	walk();
	assert_true(r.record.stop == SONDE_RUNTIME_STOP_READ_FAULT && r.record.fault < 0x1000);
}

/* The thread has its next fiber's execution context and is still on the stack of the other one. */
static void switching_fibers(void **state)
{
	static const uint64_t elsewhere[] = { STACK_START + 8, STACK_START - STACK_BYTES - 8, 0, UINT64_MAX };

	begin();
	push(iseq(string("f"), string("a.rb")), 1, 0, METHOD | SONDE_RUBY_FRAME_FINISH);
	for (uint32_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++) {
		walk_at(elsewhere[i]);
		assert_true(!r.nr_frames && r.record.stop == SONDE_RUNTIME_STOP_TORN);
	}
	walk_at(STACK_START - STACK_BYTES);
	assert_true(r.nr_frames == 2 && r.record.stop == SONDE_RUNTIME_STOP_COMPLETE);
}

/* Compiled code does not always store its pc: that of the innermost frame may be left from another one, or 0. */
static void compiled_code(void **state)
{
	static const uint64_t stale[] = { 0, 4, UINT64_MAX };
	uint64_t code, *leaf;

	begin();
	code = iseq(string("f"), string("a.rb"));
	ruby.cfp_jit_return = 56;
	push(code, 5, 0, METHOD | SONDE_RUBY_FRAME_FINISH)[7] = 0x1000;
	leaf = push(code, 7, 0, METHOD);
	walk();
	assert_true(r.frames[0].where == 7 && r.frames[1].where == 5);
	leaf[7] = 0x1000;
	for (uint32_t i = 0; i < sizeof(stale) / sizeof(stale[0]); i++) {
		leaf[0] = stale[i];
		walk();
		assert_true(r.nr_frames == 3 && r.frames[0].where == SONDE_RUBY_NO_POSITION && r.frames[1].where == 5);
	}
}

static uint32_t cookie_now(void)
{
	walk();
	assert_int_equal(r.record.stop, SONDE_RUNTIME_STOP_COMPLETE);
	return r.frames[0].cookie;
}

/* Makes other code of an iseq or a method entry, at the same address. */
static void replace(uint64_t *field)
{
	*field += 8;
}

/* What code says is kept until the collector runs again. While it marks, what is read is not kept. */
static void kept_until_the_collector_runs(void **state)
{
	/* none, sweeping; marking, compacting, sweeping that moves; and a bit of others */
	static const uint64_t modes[] = { 0x20, 0x22, 0x21, 0x23, 0x62 };
	uint64_t *count, *flags, code, method, *label, *id;
	uint32_t before;

	for (int is_method = 0; is_method < 2; is_method++) {
		begin();
		count = take(1);
		flags = take(1);
		code = iseq(string("f"), string("a.rb"));
		method = c_method(7);
		label = &((uint64_t *)(uintptr_t)((uint64_t *)(uintptr_t)code)[2])[10];
		id = is_method ? &((uint64_t *)(uintptr_t)method)[3] : label;
		push(is_method ? 0 : code, 5, method, is_method ? SONDE_RUBY_FRAME_CFUNC | SONDE_RUBY_FRAME_C : METHOD);
		ruby.gc_count = at(count);
		ruby.gc_flags = at(flags);
		*count = 1;
		for (uint32_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
			(*count)++;
			*flags = modes[i];
			before = cookie_now();
			replace(id);
			assert_true((cookie_now() == before) == (i < 2));
			(*count)++;
			assert_true(cookie_now() != before);
		}
		assert_int_equal(r.nr_wrong, 0);
		(*count)++;
		*flags = modes[0];
		before = cookie_now();
		replace(id);
		for (uint32_t i = 0; i < RUNTIME_CACHE_CHECK && cookie_now() == before; i++)
			;
		assert_int_equal(r.nr_wrong, 1); /* one of so many is read again */
		ruby.gc_count = 0;
		before = cookie_now();
		replace(id);
		assert_true(cookie_now() != before);
	}
}

/* A frame whose code is kept costs no read of its own. */
static void few_reads(void **state)
{
	uint64_t *gc, code;
	uint32_t first;

	begin();
	gc = take(2);
	code = iseq(string("f"), string("a.rb"));
	ruby.gc_count = at(&gc[0]);
	ruby.gc_flags = at(&gc[1]);
	for (uint32_t i = 0; i < 40; i++)
		push(code, i, 0, METHOD);
	walk();
	nr_reads = 0;
	r.nr_cached = 0;
	walk();
	first = nr_reads;
	assert_int_equal(r.nr_frames, 40);
	ruby.gc_count = 0;
	nr_reads = 0;
	walk();
	print_message("# 40 frames: %u reads, %u where nothing is kept\n", first, nr_reads);
	assert_true(nr_reads >= 80 && first < 24);
}

/* Up to 2.7 there is one variable for all threads: without the lock, a thread finds another one's context. */
static void without_the_lock(void **state)
{
	begin();
	push(iseq(string("f"), string("a.rb")), 1, 0, METHOD | SONDE_RUBY_FRAME_FINISH);
	ruby.process.root = (struct sonde_tls){ .kind = SONDE_TLS_GLOBAL, .pc = at(&ec_pointer) };
	walk_at(STACK_START + 8);
	assert_true(!r.nr_frames && !r.record.stop);
	walk_at(STACK_START - STACK_BYTES);
	assert_true(r.nr_frames == 2 && r.record.stop == SONDE_RUNTIME_STOP_COMPLETE);
}

static void no_ruby_runs(void **state)
{
	begin();
	walk();
	assert_true(!r.nr_frames && r.record.stop == SONDE_RUNTIME_STOP_COMPLETE);
	begin();
	memory.ec[0] = 0;
	walk();
	assert_true(!r.nr_frames && r.record.stop == SONDE_RUNTIME_STOP_COMPLETE);
	ec_pointer = 0;
	walk();
	assert_true(!r.nr_frames && !r.record.stop);
}

/* --- names ---------------------------------------------------------------------------------------------------------------------------- */

#define NUMBER 600 /* of a symbol: in the second array */

/* The table of symbols, with one name. Returns its address. */
static uint64_t symbols(const char *name)
{
	uint64_t *table = take(4), *arrays = take(5), *second = take(5), *items = take(1024);

	((uint32_t *)table)[0] = NUMBER;
	table[2] = at(arrays);
	arrays[0] = 7 | 1 << 13 | 3 << 15; /* embedded */
	arrays[3] = at(second);
	second[0] = 7;
	second[2] = 1024;
	second[4] = at(items);
	items[(NUMBER - 512) * 2] = string(name);
	return at(table);
}

static int describe(uint64_t table, const struct sonde_runtime_frame *frame, struct runtime_function *function)
{
	const struct runtime_memory names = { .read = read_for_names };
	struct runtime_image image = { .runtime = SONDE_RUNTIME_RUBY, .version = { 3, 1, 2 }, .naming = { table, 0xa9 } };

	memset(function, 0, sizeof(*function));
	return runtime_ruby.describe(&image, &ruby, &names, frame, function);
}

static void names_and_lines(void **state)
{
	static const struct {
		uint32_t position, line;
	} cases[] = { { 0, 10 }, { 4, 10 }, { 5, 11 }, { 54, 11 }, { 60, 11 }, { 61, 12 }, { 99, 12 } };
	struct runtime_function function;
	uint64_t code, table, *paths, *body;

	begin();
	table = symbols("each");
	paths = take(5);
	paths[0] = 7 | 1 << 13 | 1 << 15;
	paths[2] = string("lib/a.rb");
	code = iseq(string("block in run"), at(paths));
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memory.ec[2] = at(frame_at(0));
		push(code, cases[i].position, 0, METHOD | SONDE_RUBY_FRAME_FINISH);
		walk();
		assert_int_equal(describe(table, &r.frames[0], &function), 0);
		assert_string_equal(function.name, "block in run");
		assert_string_equal(function.file, "lib/a.rb");
		assert_int_equal(function.start_line, 9);
		assert_int_equal(function.line, cases[i].line);
	}
	body = (uint64_t *)(uintptr_t)((uint64_t *)(uintptr_t)iseq(string("<compiled>"), string("(eval)")))[2];
	body[0] = 6; /* what eval() compiled is a part of the code around it */
	body[21] = code;
	memory.ec[2] = at(frame_at(0));
	push(at(body - 3), 5, 0, METHOD | SONDE_RUBY_FRAME_FINISH);
	walk();
	assert_int_equal(describe(table, &r.frames[0], &function), 0);
	assert_string_equal(function.name, "block in run");
	assert_string_equal(function.file, "(eval)");
	body[21] = at(body - 3); /* that is around itself */
	assert_int_equal(describe(table, &r.frames[0], &function), -EBADMSG);
	memory.ec[2] = at(frame_at(0));
	push(0, 0, c_method((uint64_t)NUMBER << 4 | 8), SONDE_RUBY_FRAME_CFUNC | SONDE_RUBY_FRAME_C);
	walk();
	assert_int_equal(describe(table, &r.frames[0], &function), 0);
	assert_string_equal(function.name, "each");
	assert_string_equal(function.file, "");
}

/* Other code at the address, and symbols that are not there. */
static void no_wrong_names(void **state)
{
	struct runtime_function function;
	struct sonde_runtime_frame frame;
	uint64_t code, table;

	begin();
	table = symbols("each");
	code = iseq(string("f"), string("a.rb"));
	push(code, 1, 0, METHOD);
	walk();
	frame = r.frames[0];
	((uint64_t *)(uintptr_t)((uint64_t *)(uintptr_t)code)[2])[10] = string("g");
	assert_int_equal(describe(table, &frame, &function), -ESTALE);
	for (uint64_t id = 0; id < 2; id++) {
		begin();
		table = symbols("each");
		push(0, 0, c_method(id ? (NUMBER + 1ull) << 4 : 0), SONDE_RUBY_FRAME_CFUNC | SONDE_RUBY_FRAME_C);
		walk();
		assert_int_equal(describe(table, &r.frames[0], &function), -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_end_at_calls_from_c), cmocka_unit_test(deep_stacks), cmocka_unit_test(variables_hold_the_method),
		cmocka_unit_test(torn),			    cmocka_unit_test(without_the_lock), cmocka_unit_test(no_ruby_runs),
		cmocka_unit_test(names_and_lines),	    cmocka_unit_test(no_wrong_names),	cmocka_unit_test(switching_fibers),
		cmocka_unit_test(compiled_code),	    cmocka_unit_test(kept_until_the_collector_runs), cmocka_unit_test(few_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
