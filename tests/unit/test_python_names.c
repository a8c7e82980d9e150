// SPDX-License-Identifier: Apache-2.0
/* test_python_names PROGRAM [PYTHON...]: the names of Python frames: the code objects of live processes. The program in them
 * (tests/programs/python_names.py) prints their names, files and lines. Runs /usr/bin/python3 and each Python that pyenv has, or the
 * ones given. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "runtime/python/python_names.h"
#include "runtime/python/python_text.h"

#define MAX_PYTHONS 32
#define RANDOM_ROUNDS 20000U

static const char *program;
static char *const *named;
static int nr_named;

/* From offsetof() with the headers of each version, independent of sonde's tables. */
static const struct offsets {
	uint16_t minor, argcount, kwonlyargcount, flags, firstlineno, filename, name, qualname, linetable, ascii_bytes, compact_bytes;
	enum python_lines lines;
} offsets[] = {
	{ 6, 16, 20, 32, 36, 96, 104, 0, 112, 48, 72, PYTHON_LINES_LNOTAB },
	{ 7, 16, 20, 32, 36, 96, 104, 0, 112, 48, 72, PYTHON_LINES_LNOTAB },
	{ 8, 16, 24, 36, 40, 104, 112, 0, 120, 48, 72, PYTHON_LINES_LNOTAB },
	{ 9, 16, 24, 36, 40, 104, 112, 0, 120, 48, 72, PYTHON_LINES_LNOTAB },
	{ 10, 16, 24, 36, 40, 104, 112, 0, 120, 48, 72, PYTHON_LINES_310 },
	{ 11, 56, 64, 48, 72, 112, 120, 128, 136, 48, 72, PYTHON_LINES_311 },
	{ 12, 52, 60, 48, 68, 112, 120, 128, 136, 40, 56, PYTHON_LINES_311 },
	{ 13, 52, 60, 48, 68, 112, 120, 128, 136, 40, 56, PYTHON_LINES_311 },
	{ 14, 52, 60, 48, 68, 112, 120, 128, 136, 40, 56, PYTHON_LINES_311 },
};

/* A Python that runs the program, and what is known of it. */
struct child {
	pid_t pid;
	int to; /* what the program waits on */
	FILE *from;
	unsigned int nr_reads;
	unsigned int failing_read; /* which read fails, from 1; 0: none */
	int failure;
	struct runtime_image image;
	struct sonde_python process;
};

static int child_read(void *arg, uint64_t from, void *to, size_t size)
{
	struct child *child = arg;
	struct iovec local = { to, size }, remote = { (void *)from, size };

	if (++child->nr_reads == child->failing_read)
		return child->failure;
	if (process_vm_readv(child->pid, &local, 1, &remote, 1, 0) == (ssize_t)size)
		return 0;
	return errno == ESRCH ? -ESRCH : -EFAULT;
}

static void child_start(struct child *child, const char *python)
{
	int to[2], from[2];

	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	child->pid = fork();
	if (!child->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(to[0], 0);
		dup2(from[1], 1);
		setenv("PYTHONUTF8", "1", 1);
		execl(python, python, program, NULL);
		_exit(127);
	}
	assert_true(child->pid > 0);
	close(to[0]);
	close(from[1]);
	child->to = to[1];
	child->from = fdopen(from[0], "r");
	assert_non_null(child->from);
}

static void child_stop(struct child *child)
{
	close(child->to);
	fclose(child->from);
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
}

/* The layout, with the type's address as the program printed it: half as linked, half as load bias. */
static void child_know(struct child *child, unsigned int minor, uint64_t code_type)
{
	struct python_layout *layout = RUNTIME_OWN(struct python_layout, child->image.naming);

	*layout = (struct python_layout){ .code_type_off = 8,
					  .unicode_length = 16,
					  .unicode_state = 32,
					  .bytes_size = 16,
					  .bytes_data = 32,
					  .code_type = code_type & 0xfffff };
	child->process.process.load_bias = code_type & ~0xfffffULL;
	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
		const struct offsets *o = &offsets[i];

		if (o->minor != minor)
			continue;
		layout->minor = (uint8_t)minor;
		layout->lines = (uint8_t)o->lines;
		layout->code_argcount = o->argcount;
		layout->code_kwonlyargcount = o->kwonlyargcount;
		layout->code_flags = o->flags;
		layout->code_firstlineno = o->firstlineno;
		layout->code_filename = o->filename;
		layout->code_name = o->name;
		layout->code_qualname = o->qualname;
		layout->code_linetable = o->linetable;
		layout->code_version = minor < 12 ? 0 : 92;
		layout->unicode_ascii_bytes = o->ascii_bytes;
		layout->unicode_compact_bytes = o->compact_bytes;
	}
	assert_int_equal(layout->minor, minor);
}

static int describe(struct child *child, const struct sonde_runtime_frame *frame, struct runtime_function *ret_function)
{
	struct runtime_memory memory = { child_read, child };

	child->nr_reads = 0;
	return python_describe(&child->image, &child->process, &memory, frame, ret_function);
}

static void assert_text(const char *text, const char *hex, const char *what, const char *line)
{
	char encoded[2 * RUNTIME_FILE_BYTES + 1] = "-";

	for (size_t i = 0; text[i]; i++)
		snprintf(encoded + 2 * i, 3, "%02x", (uint8_t)text[i]);
	if (strcmp(encoded, hex) != 0)
		fail_msg("%s is \"%s\", not as in: %s", what, text, line);
}

/* A damaged or unreadable code object is not resolved. */
static void check_refusals(struct child *child, const struct sonde_runtime_frame *frame)
{
	struct python_layout *layout = RUNTIME_OWN(struct python_layout, child->image.naming);
	struct sonde_runtime_frame other = *frame;
	struct runtime_function function;
	unsigned int nr_reads = child->nr_reads;

	for (child->failing_read = 1; child->failing_read <= nr_reads; child->failing_read++) {
		child->failure = child->failing_read & 1 ? -EFAULT : -ESRCH;
		assert_int_equal(describe(child, frame, &function), child->failure);
	}
	child->failing_read = 0;
	other.cookie++;
	assert_int_equal(describe(child, &other, &function), -ESTALE);
	other.cookie--;
	other.code += 16; /* in its middle */
	assert_int_equal(describe(child, &other, &function), -EBADMSG);
	other.code = 0x1000;
	assert_int_equal(describe(child, &other, &function), -EFAULT);
	for (other.code = 0; other.code < 0x1000; other.code += 8)
		assert_int_equal(describe(child, &other, &function), -EBADMSG);
	child->process.process.load_bias ^= 0x1000000;
	assert_int_equal(describe(child, frame, &function), -EBADMSG);
	child->process.process.load_bias ^= 0x1000000;
	layout->code_filename ^= layout->code_linetable; /* the bytes are no str */
	assert_true(describe(child, frame, &function) < 0);
	layout->code_filename ^= layout->code_linetable;
	layout->code_linetable ^= 0x8000; /* a worker's answer is not trusted */
	assert_int_equal(describe(child, frame, &function), -EBADMSG);
	layout->code_linetable ^= 0x8000;
}

/* Reads one frame and compares; its line is the last one. False: the program has no more output. */
static bool check_frame(struct child *child, char **line, size_t *size, struct sonde_runtime_frame *frame)
{
	const struct python_layout *layout = RUNTIME_OWN(const struct python_layout, child->image.naming);
	struct runtime_function function = { 0 };
	uint32_t start_line, in_line;
	struct sonde_python_code code = { 0 };
	uint64_t co_name;
	char name[2048], file[4096];

	assert_true(getline(line, size, child->from) > 0);
	if (strcmp(*line, "end\n") == 0)
		return false;
	assert_int_equal(sscanf(*line, "code %llx %x %llx %" SCNu32 " %" SCNu32 " %2047s %4095s", &frame->code, &frame->cookie,
				&frame->where, &start_line, &in_line, name, file),
			 7);
	assert_int_equal(child_read(child, frame->code + layout->code_linetable, &code.linetable, sizeof(code.linetable)), 0);
	assert_int_equal(child_read(child, frame->code + layout->code_filename, &code.filename, sizeof(code.filename)), 0);
	assert_int_equal(child_read(child, frame->code + (layout->code_qualname ? layout->code_qualname : layout->code_name), &code.name,
				    sizeof(code.name)),
			 0);
	if (!layout->code_version) {
		assert_int_equal(child_read(child, frame->code + layout->code_name, &co_name, sizeof(co_name)), 0);
		assert_int_equal(child_read(child, co_name + 24, &code.name_hash, sizeof(code.name_hash)), 0);
	}
	if (layout->code_version)
		assert_int_equal(child_read(child, frame->code + layout->code_version, &code.version, sizeof(code.version)), 0);
	frame->cookie ^= sonde_python_cookie(&code);
	if (describe(child, frame, &function))
		fail_msg("not described: %s", *line);
	assert_text(function.name, name, "the name", *line);
	assert_text(function.file, file, "the file", *line);
	if (function.start_line != start_line || function.line != in_line)
		fail_msg("%s %s: line %u of function at %u, not %u, %u at %llx", function.name, function.file, function.line,
			 function.start_line, in_line, start_line, frame->where);
	return true;
}

static void check_python(const char *python)
{
	struct sonde_runtime_frame frame = { .runtime = SONDE_RUNTIME_PYTHON };
	struct runtime_function function;
	CLEANUP(freep) char *line = NULL;
	unsigned int minor, nr = 0, nr_usual = 0, max_reads = 0;
	struct child child = { 0 };
	uint64_t code_type;
	size_t size = 0;

	child_start(&child, python);
	if (getline(&line, &size, child.from) <= 0 || sscanf(line, "python %u %" SCNx64, &minor, &code_type) != 2)
		fail_msg("%s: %s", python, line ? line : "says nothing");
	child_know(&child, minor, code_type);
	while (check_frame(&child, &line, &size, &frame)) {
		nr++;
		nr_usual += child.nr_reads <= (minor < 12 ? 8 : 6); /* with the hash of the name, twice */
		max_reads = child.nr_reads > max_reads ? child.nr_reads : max_reads;
	}
	print_message("%s: %u frames of 3.%u, %u of them by few reads, others by up to %u\n", python, nr, minor, nr_usual, max_reads);
	assert_true(nr > 90 && nr_usual > nr / 2);
	describe(&child, &frame, &function);
	check_refusals(&child, &frame);
	child_stop(&child);
	assert_int_equal(describe(&child, &frame, &function), -ESRCH);
}

static void live_code_objects_have_their_names(void **state)
{
	CLEANUP(globfree) glob_t found = { 0 };
	const char *home = getenv("HOME");
	char pattern[512];

	for (int i = 0; i < nr_named; i++)
		check_python(named[i]);
	if (nr_named)
		return;
	check_python("/usr/bin/python3");
	snprintf(pattern, sizeof(pattern), "%s/.pyenv/versions/3.*/bin/python3", home ? home : "");
	if (glob(pattern, 0, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc && i < MAX_PYTHONS; i++)
			check_python(found.gl_pathv[i]);
}

/* Reads one page of memory, whatever its address. */
static int copy_read(void *arg, uint64_t from, void *to, size_t size)
{
	if (from % PYTHON_PAGE_BYTES + size > PYTHON_PAGE_BYTES)
		return -EFAULT;
	memcpy(to, (const uint8_t *)arg + from % PYTHON_PAGE_BYTES, size);
	return 0;
}

/* A free-threaded build's str, from a word `state` and the bytes that follow it; then once more at the page's end. */
static void assert_free_threaded(uint32_t state, size_t header_bytes, const void *units, size_t size, const char *want)
{
	const struct python_layout layout = {
		.unicode_length = 32, .unicode_state = 48, .unicode_ascii_bytes = 56, .unicode_compact_bytes = 72
	};
	uint8_t page[PYTHON_PAGE_BYTES] = { 0 };
	struct runtime_memory memory = { copy_read, page };
	size_t end = PYTHON_PAGE_BYTES - header_bytes - size;
	char text[32];

	page[32] = 2;
	memcpy(page + 48, &state, sizeof(state));
	memcpy(page + header_bytes, units, size);
	assert_int_equal(python_text_read(&layout, &memory, PYTHON_PAGE_BYTES, text, sizeof(text)), 0);
	assert_string_equal(text, want);
	memcpy(page + end, page, header_bytes + size);
	assert_int_equal(python_text_read(&layout, &memory, PYTHON_PAGE_BYTES + end, text, sizeof(text)), 0);
	assert_string_equal(text, want);
}

/* Include/cpython/unicodeobject.h of 3.14 with Py_GIL_DISABLED: `interned` is a byte. */
static void free_threaded_strings(void **state)
{
	for (uint32_t interned = 0; interned < 4; interned++) {
		assert_free_threaded(interned | 0x19 << 8, 56, "ab", 2, "ab");
		assert_free_threaded(interned | 0x09 << 8, 72, "a\xdf", 2, "a\xc3\x9f");
		assert_free_threaded(interned | 0x0a << 8, 72, u"a\u6f22", 4, "a\u6f22");
		assert_free_threaded(interned | 0x2c << 8, 72, U"a\U00020000", 8, "a\U00020000");
	}
}

/* Words as objects hold them: 0, small numbers, addresses, the state of a str, anything. */
#define RANDOM_CODE 0x10000
#define RANDOM_TABLE 0x7f0000001230ULL
#define RANDOM_HASH_BYTES 65536 /* a layout says where */

struct random_memory {
	uint32_t seed;
	uint16_t cookie_off; /* in the code object, the two words that its cookie is made of: 0, then RANDOM_TABLE */
};

static int random_read(void *arg, uint64_t from, void *to, size_t size)
{
	struct random_memory *memory = arg;
	uint32_t *seed = &memory->seed;

	for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
		uint64_t words[6] = { 0 };

		*seed = *seed * 1664525 + 1013904223;
		words[1] = *seed >> 20;
		words[2] = 0x7f0000000000 | *seed >> 4;
		words[3] = 0x60 | (4U << (*seed >> 28) % 3);
		words[4] = 0x20 | (4U << (*seed >> 28) % 3);
		words[5] = *seed * 0x9e3779b97f4a7c15;
		memcpy((uint8_t *)to + i, &words[(*seed >> 10) % ARRAY_SIZE(words)],
		       size - i < sizeof(uint64_t) ? size - i : sizeof(uint64_t));
	}
	if (from == RANDOM_CODE && memory->cookie_off + 2 * sizeof(uint64_t) <= size)
		memcpy((uint8_t *)to + memory->cookie_off, (const uint64_t[]){ 0, RANDOM_TABLE }, 2 * sizeof(uint64_t));
	if (size == sizeof(uint64_t) && from - RANDOM_TABLE < RANDOM_HASH_BYTES) /* the hash of the name, which is in the cookie, too */
		memset(to, 0, size);
	return *seed >> 28 ? 0 : -EFAULT;
}

/* Memory that changes at each read, and layouts as a compromised worker would send them. */
static void random_memory(void **state)
{
	struct runtime_image image = { 0 };
	struct python_layout *layout = RUNTIME_OWN(struct python_layout, image.naming);
	struct sonde_python process = { 0 };
	struct random_memory bytes = { .seed = 1 };
	uint32_t nr_named_so = 0;
	struct runtime_memory memory = { random_read, &bytes };

	for (unsigned int round = 0; round < RANDOM_ROUNDS; round++) {
		struct sonde_runtime_frame frame = { .code = RANDOM_CODE, .where = round % 4000 };
		struct runtime_function function;
		struct child child = { 0 };

		child_know(&child, 6 + round % 9, 0);
		*layout = *RUNTIME_OWN(struct python_layout, child.image.naming);
		if (round & 1)
			random_read(&bytes, 0, layout, sizeof(*layout));
		layout->code_type = 0;
		for (int i = 0; i < 8; i++)
			((uint16_t *)layout)[i] &= 0x1ff;
		layout->code_argcount = layout->code_kwonlyargcount = layout->code_flags = layout->code_firstlineno;
		layout->code_linetable = layout->code_firstlineno + 8;
		bytes.cookie_off = layout->code_firstlineno;
		layout->code_name = layout->code_qualname = layout->code_filename = layout->code_linetable;
		layout->code_version = 0;
		frame.cookie = sonde_python_cookie(
		    &(struct sonde_python_code){ .linetable = RANDOM_TABLE, .name = RANDOM_TABLE, .filename = RANDOM_TABLE });
		if (python_describe(&image, &process, &memory, &frame, &function) == 0) {
			assert_true(function.name[0] && strnlen(function.name, sizeof(function.name)) < sizeof(function.name));
			assert_true(strnlen(function.file, sizeof(function.file)) < sizeof(function.file));
			nr_named_so++;
		}
	}
	print_message("%u of %u were named\n", nr_named_so, RANDOM_ROUNDS);
	assert_true(nr_named_so > 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(live_code_objects_have_their_names),
		cmocka_unit_test(free_threaded_strings),
		cmocka_unit_test(random_memory),
	};

	if (argc < 2)
		return 2;
	program = argv[1];
	named = argv + 2;
	nr_named = argc - 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
