// SPDX-License-Identifier: Apache-2.0
/* The kernel side's walk of CPython's frames (runtimes/python.h), compiled for the host, in stopped processes of every CPython found
 * here. Oracle: what the program prints of its threads' stacks with sys._current_frames(). The positions of the entries are checked
 * against the native walk of the same threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "elf/dynamic_symbol.h"
#include "runtime/libc_facts.h"
#include "runtime/python/python_layout.h"
#include "runtime/runtime.h"
#include "stopped_child.h"
#include "runtimes/python.h"

#define MAX_THREADS 32
#define MAX_EXPECTED 400
#define MAX_NAME 64

/* Threads with a stack each. The main thread is the last one; it prints all stacks, then all spin on or sleep. "T tid" begins a thread,
 * "name line" is a frame, leaf first. */
static const char program[] =
	"import sys, threading, time, os, functools\n"
	"ready = []\n"
	"tids = {}\n"
	"def spin():\n"
	"    x = 0\n"
	"    ready.append(1)\n"
	"    while True: x += 1\n"
	"def a(): b()\n"
	"def b(): c()\n"
	"def c(): spin()\n"
	"def inner_gen():\n"
	"    yield 1\n"
	"    spin()\n"
	"    yield 2\n"
	"def outer_gen(): yield from inner_gen()\n"
	"def generator():\n"
	"    for x in outer_gen(): pass\n"
	"def key(x): spin()\n"
	"def sort(): sorted([3, 1, 2], key=key)\n"
	"def recursion(n=200):\n"
	"    if n: recursion(n - 1)\n"
	"    else: spin()\n"
	"class Base:\n"
	"    def __init__(self, n):\n"
	"        self.n = n\n"
	"        if n == 39: spin()\n"
	"class Made(Base):\n"
	"    def __init__(self, n):\n"
	"        Base.__init__(self, n)\n"
	"def make():\n"
	"    for i in range(40): Made(i)\n"
	"async def co_inner(): spin()\n"
	"async def co_outer(): await co_inner()\n"
	"def coroutine(): co_outer().send(None)\n"
	"class Compared:\n"
	"    def __eq__(self, other): spin()\n"
	"    def __hash__(self): return 1\n"
	"def compare(): return [Compared()].index(5)\n"
	"def reduce(): functools.reduce(lambda x, y: [a() for z in (1,)], (1, 2))\n"
	"def text(): exec(compile('def in_text(): spin()\\nin_text()', 'text', 'exec'), globals())\n"
	"def sleep():\n"
	"    ready.append(1)\n"
	"    time.sleep(1000)\n"
	"def args(x, *y, z=1, **w): return spin()\n"
	"def call_args(): args(1, 2, 3, z=2, q=5)\n"
	"sys.setrecursionlimit(5000)\n"
	"sys.setswitchinterval(1e-4)\n"
	"work = [a, generator, sort, recursion, make, coroutine, compare, reduce, text, sleep, call_args]\n"
	"def start(f):\n"
	"    get = getattr(threading, 'get_native_id', None)\n"
	"    tids[threading.current_thread().ident] = get() if get else int(os.readlink('/proc/thread-self').split('/')[-1])\n"
	"    f()\n"
	"for f in work:\n"
	"    t = threading.Thread(target=start, args=(f,))\n"
	"    t.daemon = True\n"
	"    t.start()\n"
	"def show():\n"
	"    while len(ready) < len(work): time.sleep(0.001)\n"
	"    time.sleep(0.05)\n"
	"    out = []\n"
	"    for ident, frame in sys._current_frames().items():\n"
	"        if ident not in tids: tid, frame, main = os.getpid(), frame.f_back, 1\n"
	"        else: tid, main = tids[ident], 0\n"
	"        out.append('T %d' % tid)\n"
	"        while frame:\n"
	"            out.append('%s %d' % (frame.f_code.co_name, frame.f_lineno + main))\n"
	"            main = 0\n"
	"            frame = frame.f_back\n"
	"    out.append('E\\n')\n"
	"    os.write(1, '\\n'.join(out).encode())\n"
	"def main_leaf():\n"
	"    x = 0\n"
	"    show()\n"
	"    while True: x += 1\n"
	"def main(): list(map(lambda x: main_leaf(), (1,)))\n"
	"main()\n";

struct expected {
	uint32_t tid, nr;
	struct {
		char name[MAX_NAME];
		uint32_t line;
	} frames[MAX_EXPECTED];
};

static struct expected expected[MAX_THREADS];
static uint32_t nr_expected;
static struct walk w;
static __u64 frames[SONDE_MAX_USER_FRAMES];
static struct runtime_walk r;

/* --- the program ---------------------------------------------------------------------------------------------------------------------- */

/* `root` is the prefix of the program's path: "" or a directory to chroot to. */
static void start_child(const char *root, const char *python)
{
	int out[2];
	FILE *in;
	char line[512];
	struct expected *thread = NULL;

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || dup2(out[1], 1) != 1 || (root[0] && (chroot(root) || chdir("/"))))
			_exit(126);
		execl(python, python, "-S", "-c", program, NULL);
		_exit(127);
	}
	close(out[1]);
	in = fdopen(out[0], "r");
	assert_non_null(in);
	nr_expected = 0;
	while (fgets(line, sizeof(line), in) && line[0] != 'E') {
		if (line[0] == 'T' && line[1] == ' ') {
			assert_true(nr_expected < MAX_THREADS);
			thread = &expected[nr_expected++];
			thread->nr = 0;
			thread->tid = (uint32_t)strtoul(line + 2, NULL, 10);
			continue;
		}
		assert_non_null(thread);
		assert_true(thread->nr < MAX_EXPECTED);
		assert_int_equal(sscanf(line, "%63s %u", thread->frames[thread->nr].name, &thread->frames[thread->nr].line), 2);
		thread->nr++;
	}
	fclose(in);
	assert_true(nr_expected > 10);
}

/* --- tables of what is mapped there --------------------------------------------------------------------------------------------------- */

static struct host_tables tables;
static struct runtime_image image;
static struct sonde_python python;
static struct libc_facts libc;
static uint64_t load_bias;

static void look_at_file(const struct elf_file *elf, uint64_t file_bias)
{
	struct runtime_image found;

	if (runtime_python.examine(elf, &found) == 0) {
		image = found;
		load_bias = file_bias;
	}
	if (!libc.is_known)
		(void)!libc_facts_read(elf, &libc);
}

static void load_tables(void)
{
	CLEANUP(freep) struct diag *diag = calloc(1, sizeof(*diag));

	assert_non_null(diag);
	memset(&libc, 0, sizeof(libc));
	memset(&image, 0, sizeof(image));
	host_tables_load(&tables, &w, child, look_at_file);
	host_read = read_child;
	assert_string_equal(image.reason, "");
	assert_true(image.is_supported);
	if (runtime_python.place(&image, load_bias, &libc, &memory, diag, &python))
		fail_msg("place: %s", diag->text);
}

/* --- walks ---------------------------------------------------------------------------------------------------------------------------- */

static void walk_thread(pid_t tid)
{
	struct user_regs_struct regs;

	assert_int_equal(ptrace(PTRACE_GETREGS, tid, NULL, &regs), 0);
	memset(w.cache, 0, sizeof(w.cache));
	memset(w.regs, 0, sizeof(w.regs));
	w.pc = regs.rip;
	w.sp = w.regs[WALK_REG_SP] = regs.rsp;
	w.bp = w.regs[WALK_REG_BP] = regs.rbp;
	w.regs[WALK_REG_BX] = regs.rbx;
	host_tls_base = regs.fs_base;
	host_walk(&w, frames);

	memset(&r, 0, sizeof(r));
	r.runtime = SONDE_RUNTIME_PYTHON;
	r.pairing = RUNTIME_PAIR_ONE;
	nr_reads = 0;
	if (python_enter(&w, &r, &python) != RUNTIME_GOES_ON)
		return;
	while (python_step(&w, &r, &python) == RUNTIME_GOES_ON)
		assert_true(nr_reads < 10000);
}

/* ASCII only. */
static void read_name(uint64_t code, char *to)
{
	const struct python_layout *layout = RUNTIME_OWN(const struct python_layout, image.naming);
	uint64_t name = 0, length = 0;

	memset(to, 0, MAX_NAME);
	assert_int_equal(read_child(&name, 8, code + layout->code_name), 0);
	assert_int_equal(read_child(&length, 8, name + layout->unicode_length), 0);
	assert_true(length < MAX_NAME);
	assert_int_equal(read_child(to, (__u32)length, name + layout->unicode_ascii_bytes), 0);
}

static bool is_loop(uint64_t pc)
{
	for (uint32_t i = 0; i < image.nr_loops; i++) {
		if (pc - load_bias >= image.loops[i].start_pc && pc - load_bias <= image.loops[i].end_pc)
			return true;
	}
	return false;
}

/* The counter's offset was found in the code of 3.13 and newer, and the counter is above the number of each code object. */
static void check_counter(void)
{
	const struct python_layout *layout = RUNTIME_OWN(const struct python_layout, image.naming);
	uint32_t version = 0;

#ifdef __x86_64__
	assert_int_equal(python.interpreter_made != 0, image.version[1] >= 13);
#endif
	if (!python.interpreter_made)
		return;
	assert_in_range(r.state[PYTHON_MADE], 100, 1000000);
	for (uint32_t i = 0; i < r.nr_frames; i++) {
		if (r.frames[i].flags & SONDE_RUNTIME_ENTRY)
			continue;
		assert_int_equal(read_child(&version, sizeof(version), r.frames[i].code + layout->code_version), 0);
		assert_in_range(version, 1, r.state[PYTHON_MADE] - 1);
	}
}

static void check_thread(const struct expected *want)
{
	uint32_t nr = 0, nr_native_loops = 0, nr_entries = 0;
	bool by_address = python.kind != SONDE_PYTHON_FRAMES || python.tstate_cframe != SONDE_PYTHON_NONE;
	uint64_t last_native = 0;

	for (uint32_t i = 0; i < r.nr_frames; i++) {
		char name[MAX_NAME];

		if (r.frames[i].flags & SONDE_RUNTIME_ENTRY) {
			nr_entries++;
			if (!by_address)
				continue;
			assert_true(r.frames[i].where < w.nr_frames);
			assert_true(nr_entries == 1 || r.frames[i].where > last_native);
			last_native = r.frames[i].where;
			if (!is_loop(frames[last_native] & ~SONDE_FRAME_RETURN))
				fail_msg("entry at native frame %llu, pc %llx", (unsigned long long)last_native,
					 (unsigned long long)(frames[last_native] - load_bias));
			continue;
		}
		read_name(r.frames[i].code, name);
		assert_true(nr < want->nr);
		assert_string_equal(name, want->frames[nr].name);
		nr++;
	}
	check_counter();
	assert_int_equal(r.record.stop, SONDE_RUNTIME_STOP_COMPLETE);
	assert_int_equal(nr, want->nr);
	assert_int_equal(w.stop, SONDE_STOP_COMPLETE);
	for (uint32_t i = 0; i < w.nr_frames; i++)
		nr_native_loops += is_loop(frames[i] & ~SONDE_FRAME_RETURN);
	assert_int_equal(nr_native_loops, nr_entries);
}

static void interrupt_child(void)
{
	for (uint32_t i = 0; i < nr_expected; i++) {
		assert_int_equal(ptrace(PTRACE_INTERRUPT, expected[i].tid, NULL, NULL), 0);
		assert_int_equal(waitpid((pid_t)expected[i].tid, NULL, __WALL), expected[i].tid);
	}
}

static bool is_ready(const struct expected *main_thread)
{
	char name[MAX_NAME];

	walk_thread((pid_t)main_thread->tid);
	if (!r.nr_frames)
		return false;
	read_name(r.frames[0].code, name);
	return strcmp(name, main_thread->frames[0].name) == 0;
}

static uint32_t nr_pythons;

static void test_python(const char *root, const char *path)
{
	uint32_t main_thread = 0;

	start_child(root, path);
	for (uint32_t i = 0; i < nr_expected; i++) {
		assert_int_equal(ptrace(PTRACE_SEIZE, expected[i].tid, NULL, NULL), 0);
		if (expected[i].tid == (uint32_t)child)
			main_thread = i;
	}
	interrupt_child();
	load_tables();
	for (int turn = 0; turn < 200 && !is_ready(&expected[main_thread]); turn++) { /* it is still returning from the print */
		for (uint32_t i = 0; i < nr_expected; i++)
			assert_int_equal(ptrace(PTRACE_CONT, expected[i].tid, NULL, NULL), 0);
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
		interrupt_child();
	}
	for (uint32_t i = 0; i < nr_expected; i++) {
		walk_thread((pid_t)expected[i].tid);
		print_message("# %s%s %u.%u.%u thread %u: %u frames, %u native, %u reads\n", root, path, image.version[0], image.version[1],
			      image.version[2], i, r.nr_frames, w.nr_frames, nr_reads);
		check_thread(&expected[i]);
	}
	host_tables_free(&tables);
	stop_child();
	nr_pythons++;
}

static void test_installed(void **state)
{
	test_python("", "/usr/bin/python3");
}

/* The Pythons of pyenv, and those in SONDE_TEST_PYTHONS: ROOT:PROGRAM, separated by spaces. */
static void test_others(void **state)
{
	const char *home = getenv("HOME"), *more = getenv("SONDE_TEST_PYTHONS");
	char path[768], folder[256];
	DIR *dir;

	snprintf(folder, sizeof(folder), "%s/.pyenv/versions", home ? home : "");
	dir = opendir(folder);
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		if (strncmp(entry->d_name, "3.", 2) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s/bin/python3", folder, entry->d_name);
		if (access(path, X_OK) == 0)
			test_python("", path);
	}
	if (dir)
		closedir(dir);
	while (more && sscanf(more, " %255[^:]:%511s", folder, path) == 2) {
		test_python(folder, path);
		more = strchr(more + strspn(more, " "), ' ');
	}
	if (nr_pythons < 3)
		print_message("# SKIPPED: versions of CPython that are not installed here, only %u are\n", nr_pythons);
}

static struct elf_file *open_elf(const char *path)
{
	struct elf_file *elf = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0 && elf_file_open_fd(fd, NULL, &elf))
		close(fd);
	return elf;
}

/* A file that is no interpreter is recognized quickly, with one look at its hash table. */
static void test_other_files(void **state)
{
	static const char *const folders[] = { "/usr/bin", "/usr/lib/x86_64-linux-gnu", "/usr/lib" };
	uint32_t nr = 0, nr_found = 0;
	struct timespec start, end;
	uint64_t ns = 0;

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		DIR *dir = opendir(folders[i]);

		for (struct dirent *entry; dir && (entry = readdir(dir));) {
			CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
			struct runtime_image found;
			char path[512];
			int err;

			snprintf(path, sizeof(path), "%s/%s", folders[i], entry->d_name);
			elf = open_elf(path);
			if (!elf)
				continue;
			clock_gettime(CLOCK_MONOTONIC, &start);
			err = runtime_python.examine(elf, &found);
			clock_gettime(CLOCK_MONOTONIC, &end);
			assert_true(err == 0 || err == -ENOENT);
			nr_found += !err;
			nr += !!err;
			if (err)
				ns += (uint64_t)(end.tv_sec - start.tv_sec) * 1000000000u + (uint64_t)end.tv_nsec - (uint64_t)start.tv_nsec;
			else
				assert_non_null(strstr(path, "python"));
		}
		if (dir)
			closedir(dir);
	}
	assert_true(nr > 100 && nr_found);
	print_message("# %u files without, %u with: %.1f us each\n", nr, nr_found, (double)ns / nr / 1000);
}

static bool is_harmless(const struct runtime_image *found)
{
	const struct sonde_python *p = RUNTIME_OWN(const struct sonde_python, found->known);

	if (!found->is_supported)
		return found->reason[0];
	return p->frame_bytes <= SONDE_PYTHON_MAX_BYTES && p->code_bytes <= SONDE_PYTHON_MAX_BYTES &&
	       p->tstate_bytes <= SONDE_PYTHON_MAX_BYTES;
}

/* The offsets that CPython 3.13 publishes, each with bits flipped: refused with a reason, or nothing reads outside of the buffer. */
static void test_damaged_offsets(void **state)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	const struct elf_section *section;
	CLEANUP(freep) uint8_t *bytes = NULL;
	struct runtime_image found;
	uint32_t nr_refused = 0;
	char path[512];

	snprintf(path, sizeof(path), "%s/.pyenv/versions/3.13.0/lib/libpython3.13.so.1.0", getenv("HOME") ? getenv("HOME") : "");
	elf = open_elf(path);
	if (!elf) {
		print_message("# SKIPPED: no CPython 3.13\n");
		skip();
	}
	section = elf_file_find_section(elf, ".PyRuntime");
	bytes = malloc(elf_file_size(elf));
	assert_true(section && bytes && elf_file_read_at(elf, 0, bytes, elf_file_size(elf)) == 0);
	for (uint32_t word = 0; word < 71; word++) {
		CLEANUP(elf_file_freep) struct elf_file *damaged = NULL;
		uint8_t *at = bytes + section->file_off + word * 8 + word % 3;

		*at ^= (uint8_t)(1u << (word % 7 + 1));
		assert_int_equal(elf_file_open_memory(bytes, elf_file_size(elf), NULL, &damaged), 0);
		assert_int_equal(runtime_python.examine(damaged, &found), 0);
		assert_true(is_harmless(&found));
		nr_refused += !found.is_supported;
		*at ^= (uint8_t)(1u << (word % 7 + 1));
	}
	print_message("# %u of 71 refused\n", nr_refused);
	assert_in_range(nr_refused, 15, 50);
}

#define MADE_UP_PC 0x10000

static uint64_t made_up_bytes; /* of readable memory from MADE_UP_PC on; each word holds its address */

static long read_made_up(void *to, __u32 size, __u64 from)
{
	nr_reads++;
	if (from < MADE_UP_PC || from + size > MADE_UP_PC + made_up_bytes)
		return -EFAULT;
	for (__u32 i = 0; i < size; i += 8)
		*(uint64_t *)((uint8_t *)to + i) = from + i;
	return 0;
}

/* Data within the block is read once; data not wholly within it is read again. Outside of the page only the requested bytes are read. */
static void test_block(void **state)
{
	static const struct {
		uint64_t from, bytes, offset;
		uint32_t nr_reads; /* 0: the read fails */
	} steps[] = {
		{ MADE_UP_PC + 8, 8192, 8, 1 },              /* the page before is not present */
		{ MADE_UP_PC + 3000, 8192, 1968, 2 },        /* 2048 - 80: at the block's end */
		{ MADE_UP_PC + 1032, 8192, 0, 2 },           /* the block's first byte */
		{ MADE_UP_PC + 1024, 8192, 1024, 3 },        /* one word lower: the block begins at the page's start */
		{ MADE_UP_PC + 2000, 8192, 1968, 4 },        /* not wholly in the block */
		{ MADE_UP_PC + 2003, 8192, 1968, 5 },        /* not aligned to the block's words */
		{ MADE_UP_PC + 4096 - 40, 4096 + 40, 1968, 6 }, /* crosses into another page */
		{ MADE_UP_PC + 4096, 8192, 0, 7 },
		{ MADE_UP_PC - 8, 8192, 0, 0 },
		{ MADE_UP_PC + 4096, 8192, 0, 9 },           /* after a failed read the block is empty */
	};

	host_read = read_made_up;
	memset(&r, 0, sizeof(r));
	nr_reads = 0;
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		__s64 at;

		made_up_bytes = steps[i].bytes;
		at = runtime_block(&w, &r, steps[i].from, 80);
		if (!steps[i].nr_reads) {
			assert_int_equal(at, -1);
			assert_int_equal(r.record.stop, SONDE_RUNTIME_STOP_READ_FAULT);
			continue;
		}
		assert_int_equal(at, steps[i].offset);
		assert_int_equal(nr_reads, steps[i].nr_reads);
		assert_int_equal(r.block[at / 8], steps[i].from);
	}
}

/* A root that cannot be read is reported. A thread without a state is no error. */
static void test_root_that_is_not_there(void **state)
{
	const struct sonde_python gone = { .process.root = { .kind = SONDE_TLS_GLOBAL, .pc = MADE_UP_PC - 8 } },
				  none = { .process.root = { .kind = SONDE_TLS_NONE } };

	host_read = read_made_up;
	made_up_bytes = 4096;
	memset(&r, 0, sizeof(r));
	assert_int_equal(python_enter(&w, &r, &none), RUNTIME_ENDED);
	assert_int_equal(r.record.stop, SONDE_RUNTIME_STOP_COMPLETE);
	assert_int_equal(python_enter(&w, &r, &gone), RUNTIME_ENDED);
	assert_int_equal(r.record.stop, SONDE_RUNTIME_STOP_READ_FAULT);
}

/* --- the cache of cookies ------------------------------------------------------------------------------------------------------------- */

/* A thread with one frame, in made-up memory. Numbers are indexes of words. */
enum made_up {
	MADE_CURRENT,
	MADE_TSTATE = 8,
	MADE_INTERPRETER = 64,
	MADE_FRAME = 128,
	MADE_SHIM = 136,
	MADE_CODE = 256,
	MADE_VERSION = MADE_CODE + 4,
	MADE_NAME = MADE_CODE + 6,
	MADE_WORDS = 512,
};
#define MADE_ADDRESS(word) (MADE_UP_PC + 8 * (uint64_t)(word))
#define MADE_TYPE 0x7777

static uint64_t made[MADE_WORDS];

static const struct sonde_python made_python = {
	.current = { .kind = SONDE_TLS_GLOBAL, .pc = MADE_ADDRESS(MADE_CURRENT) },
	.code_type = MADE_TYPE,
	.tstate_frame = 32,
	.tstate_cframe = SONDE_PYTHON_NONE,
	.tstate_thread_id = 24,
	.tstate_bytes = 40,
	.cframe_frame = SONDE_PYTHON_NONE,
	.frame_back = 8,
	.frame_position = 16,
	.frame_owner = 24,
	.frame_tlbc = SONDE_PYTHON_NONE,
	.frame_bytes = 32,
	.code_type_off = 8,
	.code_flags = 16,
	.code_firstlineno = 20,
	.code_argcount = 24,
	.code_kwonlyargcount = 28,
	.code_version = 32,
	.code_linetable = 40,
	.code_name = 48,
	.code_filename = 56,
	.code_code = 96,
	.code_bytes = 64,
	.kind = SONDE_PYTHON_SHIMS,
	.position = SONDE_PYTHON_ADDRESS,
	.shim_owner = 3,
	.interpreter_made = 8,
};

static long read_made(void *to, __u32 size, __u64 from)
{
	nr_reads++;
	if (from < MADE_UP_PC || from + size > MADE_UP_PC + sizeof(made))
		return -EFAULT;
	memcpy(to, (const uint8_t *)made + (from - MADE_UP_PC), size);
	return 0;
}

/* The cookie of the one frame. The cache is kept from walk to walk. */
static uint32_t walk_made(void)
{
	r.nr_frames = r.nr_entries = r.nr_hits = r.nr_checked = r.nr_wrong = 0;
	r.record.stop = 0;
	nr_reads = 0;
	assert_int_equal(python_enter(&w, &r, &made_python), RUNTIME_GOES_ON);
	while (python_step(&w, &r, &made_python) == RUNTIME_GOES_ON)
		assert_true(nr_reads < 100);
	assert_int_equal(r.record.stop, SONDE_RUNTIME_STOP_COMPLETE);
	assert_int_equal(r.nr_frames, 2);
	assert_int_equal(r.frames[0].code, MADE_ADDRESS(MADE_CODE));
	return r.frames[0].cookie;
}

/* Other code at the same address, as the interpreter makes it: numbered from the counter. */
static void make_code(uint64_t name)
{
	made[MADE_NAME] = name;
	made[MADE_VERSION] = made[MADE_INTERPRETER + 1]++;
}

static void begin_made(void)
{
	host_read = read_made;
	host_tls_base = 0x5000;
	memset(&w, 0, sizeof(w));
	memset(&r, 0, sizeof(r));
	memset(made, 0, sizeof(made));
	w.hash_begin = 17;
	made[MADE_CURRENT] = MADE_ADDRESS(MADE_TSTATE);
	made[MADE_TSTATE + 2] = MADE_ADDRESS(MADE_INTERPRETER);
	made[MADE_TSTATE + 3] = host_tls_base;
	made[MADE_TSTATE + 4] = MADE_ADDRESS(MADE_FRAME);
	made[MADE_INTERPRETER + 1] = 100;
	made[MADE_FRAME] = MADE_ADDRESS(MADE_CODE);
	made[MADE_FRAME + 1] = MADE_ADDRESS(MADE_SHIM);
	made[MADE_FRAME + 2] = MADE_ADDRESS(MADE_CODE) + 96;
	made[MADE_SHIM + 3] = 3;
	made[MADE_CODE + 1] = MADE_TYPE;
	make_code(0x1000);
}

/* Code that was freed, with other code at its address: the counter tells them apart, and so do the process (fork) and the interpreter. */
static void test_cache_is_exact(void **state)
{
	uint32_t cookie, first_reads;

	begin_made();
	cookie = walk_made();
	first_reads = nr_reads;
	for (uint32_t i = 1; i < RUNTIME_CACHE_CHECK; i++) {
		assert_int_equal(walk_made(), cookie);
		assert_int_equal(nr_reads, first_reads - 1);
		assert_int_equal(r.nr_hits, 1);
		assert_int_equal(r.nr_checked, 0);
	}
	for (uint64_t name = 0x2000; name < 0x3000; name += 0x100) {
		uint32_t earlier = cookie;

		make_code(name);
		cookie = walk_made();
		assert_int_not_equal(cookie, earlier);
		assert_int_equal(r.nr_hits, 0);
	}
	w.hash_begin = 18; /* a child, with its own code at the same address and the same counter */
	made[MADE_NAME] = 0x4000;
	assert_int_not_equal(walk_made(), cookie);
	w.hash_begin = 17;
	made[MADE_NAME] = 0x2f00;
	assert_int_equal(walk_made(), cookie);
	assert_int_equal(r.nr_hits, 1);
	made[MADE_TSTATE + 2] = MADE_ADDRESS(MADE_INTERPRETER + 8);
	made[MADE_INTERPRETER + 9] = made[MADE_INTERPRETER + 1];
	made[MADE_NAME] = 0x5000;
	assert_int_not_equal(walk_made(), cookie);
}

/* Without a counter, with one that has run out, or with one that cannot be the code's, nothing is cached. What a wrong counter leads to is
 * counted, and corrected. */
static void test_cache_without_a_proof(void **state)
{
	uint32_t cookie, nr_wrong = 0;

	begin_made();
	made[MADE_INTERPRETER + 1] = 0;
	for (int i = 0; i < 3; i++) {
		walk_made();
		assert_int_equal(r.nr_hits, 0);
	}
	made[MADE_INTERPRETER + 1] = made[MADE_VERSION]; /* the code's own number is not given out yet */
	for (int i = 0; i < 3; i++) {
		walk_made();
		assert_int_equal(r.nr_hits, 0);
	}
	begin_made();
	cookie = walk_made();
	made[MADE_NAME] = 0x2000;
	for (int i = 0; i < RUNTIME_CACHE_CHECK; i++) {
		walk_made();
		nr_wrong += r.nr_wrong;
	}
	assert_int_equal(nr_wrong, 1);
	assert_int_not_equal(walk_made(), cookie);
	assert_int_equal(r.nr_wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cache_is_exact), cmocka_unit_test(test_cache_without_a_proof),
		cmocka_unit_test(test_block), cmocka_unit_test(test_root_that_is_not_there),
		cmocka_unit_test(test_installed),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_other_files),
		cmocka_unit_test(test_damaged_offsets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
