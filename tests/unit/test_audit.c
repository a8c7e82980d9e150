// SPDX-License-Identifier: Apache-2.0
/* The audit on real stacks of this program: the registers from a signal handler and a copy of the stack, against two references: the return
 * addresses that the functions recorded themselves, and glibc's backtrace(). Then damaged stacks, damaged files, and every verdict. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "audit/audit.h"
#include "debug_frame.h"
#include "process/process_table.h"

#define MAX_NOTED   64
#define MAX_MODULES 64

static struct process_table *processes;
static struct audit *audit;
static struct audit_module modules[MAX_MODULES];
static struct audit_process process = { .modules = modules };
static struct {
	struct sonde_deferred_record head;
	uint8_t stack[SONDE_DEFERRED_MAX_BYTES] __attribute__((aligned(8)));
} raw;
static struct audit_stack stack;
static uint64_t walked[AUDIT_MAX_FRAMES]; /* the result of backtrace(), as frames */
static uint32_t nr_walked;
static uint64_t noted[MAX_NOTED];	  /* return addresses, outermost first */
static uint32_t nr_noted;
static bool from_handler;		  /* use the handler's own registers */
static volatile int keep;		  /* written after calls, so that they are no tail calls */

static int take_modules(void *arg, uint32_t tgid, uint32_t generation, const struct process_mapping *mappings, uint32_t nr)
{
	process.tgid = tgid;
	process.generation = generation;
	process.nr_modules = nr;
	assert_true(nr <= MAX_MODULES);
	for (uint32_t i = 0; i < nr; i++) {
		modules[i] = (struct audit_module){
			.start_pc = mappings[i].start_pc,
			.end_pc = mappings[i].end_pc,
			.load_bias = mappings[i].load_bias,
			.object = mappings[i].object,
		};
		if (mappings[i].object != OBJECT_NONE)
			modules[i].elf = object_table_at(process_table_objects(processes), mappings[i].object)->elf;
	}
	return 0;
}

static int set_up(void **state)
{
	processes = process_table_new(NULL);
	backtrace((void *[8]){ 0 }, 8); /* loads libgcc_s before a handler needs it */
	if (!processes || process_table_scan(processes, (uint32_t)getpid(), 1, NULL) ||
	    process_table_changes(processes, take_modules, NULL))
		return -1;
	return audit_new(NULL, &audit);
}

static int tear_down(void **state)
{
	audit_free(audit);
	process_table_free(processes);
	return 0;
}

/* --- taking a stack ------------------------------------------------------------------------------------------------------------------ */

/* Copies as the kernel side does: up to 16 KiB that can be read from the stack pointer on; whole pages except for the first. */
static void take_record(const ucontext_t *context)
{
	static const uint8_t numbers[16] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
					     REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };
	struct iovec local, remote;
	ssize_t got;

	raw.head = (struct sonde_deferred_record){ .type = SONDE_RECORD_DEFERRED, .tgid = (uint32_t)getpid(), .use = SONDE_DEFERRED_AUDIT };
	for (int i = 0; i < 16; i++)
		raw.head.regs[i] = (uint64_t)context->uc_mcontext.gregs[numbers[i]];
	raw.head.regs[SONDE_REG_PC] = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
	raw.head.stack_start = raw.head.regs[7] - SONDE_RED_ZONE_BYTES;
	local = (struct iovec){ raw.stack, sizeof(raw.stack) };
	remote = (struct iovec){ (void *)raw.head.stack_start, sizeof(raw.stack) };
	got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
	raw.head.stack_bytes = got < 0 ? 0 : (uint32_t)got;
}

/* backtrace() from the interrupted instruction on; with `from_handler`, from the handler on. */
static void take_witness(void **witness, uint32_t nr)
{
	uint32_t first = 0, restorer = 0;

	while (restorer < nr && (uint64_t)witness[restorer + 1] != (from_handler ? noted[nr_noted] : raw.head.regs[SONDE_REG_PC]))
		restorer++;
	if (!from_handler)
		first = restorer + 1;
	nr_walked = nr - first;
	for (uint32_t i = 0; i < nr_walked; i++)
		walked[i] = (uint64_t)witness[first + i] | SONDE_FRAME_RETURN;
	walked[0] = raw.head.regs[SONDE_REG_PC];
	if (from_handler)
		walked[restorer + 1] &= ~SONDE_FRAME_RETURN;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	void *witness[512];
	ucontext_t own;
	uint32_t nr = (uint32_t)backtrace(witness, ARRAY_SIZE(witness));

	noted[nr_noted] = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	getcontext(&own);
	take_record(from_handler ? &own : context);
	take_witness(witness, nr);
	keep = number;
}

static void take_signals(bool handler_too)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

	from_handler = handler_too;
	nr_noted = 0;
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
}

static void unwind(void)
{
	assert_int_equal(audit_unwind(audit, &raw.head, &process, &stack), 0);
}

static struct audit_finding compare(enum sonde_stop stop)
{
	return audit_compare(walked, nr_walked, stop, &stack);
}

static void assert_agrees(enum audit_end end)
{
	unwind();
	assert_int_equal(stack.end, end);
	assert_int_equal(compare(SONDE_STOP_COMPLETE).verdict, AUDIT_AGREES);
}

/* Checks that the recorded return addresses follow each other, innermost first. Returns the index of the innermost. */
static uint32_t assert_noted(void)
{
	uint32_t at = 0;

	while (at < stack.nr_frames && stack.frames[at] != (noted[nr_noted - 1] | SONDE_FRAME_RETURN))
		at++;
	assert_true(at + nr_noted <= stack.nr_frames);
	for (uint32_t i = 0; i < nr_noted; i++)
		assert_int_equal(stack.frames[at + i], noted[nr_noted - 1 - i] | SONDE_FRAME_RETURN);
	return at;
}

#define NOTE() (noted[nr_noted++] = (uintptr_t)__builtin_return_address(0))

/* --- functions with stacks of their own ----------------------------------------------------------------------------------------------- */

__attribute__((noinline)) static int leaf(int depth)
{
	NOTE();
	raise(SIGUSR1);
	return depth + keep;
}

static int (*volatile next[3])(int depth);

__attribute__((noinline)) static int plain(int depth)
{
	NOTE();
	keep = depth ? next[depth % 3](depth - 1) : leaf(depth);
	return keep + 1;
}

/* The size of its frame is known at run time only, so it needs rbp. */
__attribute__((noinline)) static int with_alloca(int depth)
{
	volatile char *room = __builtin_alloca((size_t)(depth % 100) + 1);

	NOTE();
	room[0] = 1;
	keep = depth ? next[depth % 3](depth - 1) : leaf(depth);
	return keep + room[0];
}

/* Aligned more strictly than the ABI guarantees, so the stack is realigned (DRAP or rbp). */
__attribute__((noinline)) static int realigned(int depth)
{
	volatile char room[64] __attribute__((aligned(64)));

	NOTE();
	room[depth & 63] = 1;
	keep = depth ? next[depth % 3](depth - 1) : leaf(depth);
	return keep + room[depth & 63];
}

static void take_stack(int depth)
{
	take_signals(false);
	next[0] = plain;
	next[1] = with_alloca;
	next[2] = realigned;
	plain(depth);
	assert_int_equal(nr_noted, depth + 2);
}

static void test_own_functions(void **state)
{
	for (int depth = 0; depth < 30; depth += 7) {
		take_stack(depth);
		assert_agrees(AUDIT_END_ROOT);
		assert_noted();
	}
}

static void test_through_the_signal_frame(void **state)
{
	take_signals(true);
	next[0] = next[1] = next[2] = plain;
	plain(9);
	unwind();
	assert_noted();
	/* the return addresses of getcontext and backtrace differ, but both are in the handler */
	assert_int_equal(stack.nr_frames, nr_walked - (walked[1] == stack.frames[1] ? 0 : 1));
	for (uint32_t i = 1; i < stack.nr_frames; i++)
		assert_int_equal(stack.frames[i], walked[nr_walked - stack.nr_frames + i]);
	assert_int_equal(stack.end, AUDIT_END_ROOT);
	assert_int_equal(stack.frames[2], noted[nr_noted]); /* handler, restorer, interrupted function */
}

static int before_debug_frame(int value)
{
	NOTE();
	keep = leaf(value);
	return keep + 1;
}

static void test_debug_frame(void **state)
{
	take_signals(false);
	nr_noted = 0;
	keep = call_with_debug_frame(before_debug_frame, 5);
	unwind();
	assert_noted();
	assert_int_equal(stack.end, AUDIT_END_ROOT);
}

/* --- every instruction of a call into the vdso: single steps by the trap flag --------------------------------------------------------- */

static volatile uint32_t nr_steps, nr_good, nr_in_vdso; /* declarations say that clock_gettime does not call back */

static bool is_in_vdso(uint64_t pc)
{
	for (uint32_t i = 0; i < process.nr_modules; i++) {
		if (pc >= modules[i].start_pc && pc < modules[i].end_pc && modules[i].elf)
			return elf_file_bytes(modules[i].elf);
	}
	return false;
}

static void on_trap(int number, siginfo_t *info, void *context)
{
	uint32_t at = 0;

	take_record(context);
	nr_steps++;
	nr_in_vdso += is_in_vdso(raw.head.regs[SONDE_REG_PC]);
	if (audit_unwind(audit, &raw.head, &process, &stack) || stack.end != AUDIT_END_ROOT)
		return;
	while (at < stack.nr_frames && stack.frames[at] != (noted[0] | SONDE_FRAME_RETURN))
		at++;
	nr_good += at < stack.nr_frames;
}

__attribute__((noinline)) static int stepped(int depth)
{
	struct timespec now;

	NOTE();
	clock_gettime(CLOCK_MONOTONIC, &now); /* resolves the symbol: libdw fails in the dynamic linker (docs/internals/audit.md) */
	__asm__ volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc");
	clock_gettime(CLOCK_MONOTONIC, &now);
	__asm__ volatile("pushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq" ::: "memory", "cc");
	return depth + (int)now.tv_sec;
}

static void test_every_instruction(void **state)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	assert_int_equal(sigaction(SIGTRAP, &action, NULL), 0);
	nr_noted = nr_steps = nr_good = nr_in_vdso = 0;
	keep = stepped(1);
	signal(SIGTRAP, SIG_DFL);
	print_message("%u instructions, %u in the vdso\n", nr_steps, nr_in_vdso);
	assert_true(nr_in_vdso > 10);
	/* the pushes and pops of the assembler statement move the stack, but the table does not say so: its last two steps */
	assert_true(nr_steps - nr_good <= 2);
}

/* --- stacks that are short or wrong --------------------------------------------------------------------------------------------------- */

/* Replaces every occurrence: what a function left below its own frame may be equal. */
static void replace_word(uint64_t from, uint64_t to)
{
	uint64_t *words = (uint64_t *)raw.stack;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < raw.head.stack_bytes / 8; i++) {
		if (words[i] == from) {
			words[i] = to;
			nr++;
		}
	}
	assert_true(nr);
}

static void test_damaged_stack(void **state)
{
	uint32_t at;

	take_stack(2); /* no function twice */
	assert_agrees(AUDIT_END_ROOT);
	at = assert_noted();
	for (uint32_t i = 0; i < nr_noted; i++) {
		uint64_t value = noted[nr_noted - 1 - i];
		struct audit_finding finding;

		replace_word(value, value + 16);
		unwind();
		finding = compare(SONDE_STOP_COMPLETE);
		assert_int_equal(finding.verdict, AUDIT_DIFFERS);
		assert_int_equal(finding.frame, at + i);
		replace_word(value + 16, value);
	}
	replace_word(noted[nr_noted - 1], 0x1000); /* no code: no frame, and no verdict on the walk's frame there */
	unwind();
	assert_int_equal(stack.end, AUDIT_END_NO_CODE);
	assert_int_equal(stack.nr_frames, at);
	replace_word(0x1000, 0); /* libdw takes it for the root, the walk did not */
	unwind();
	assert_int_equal(stack.end, AUDIT_END_ROOT);
	assert_int_equal(compare(SONDE_STOP_COMPLETE).verdict, AUDIT_DIFFERS);
	assert_int_equal(compare(SONDE_STOP_COMPLETE).frame, at);
}

static void test_short_copy(void **state)
{
	uint32_t whole, nr_ends = 0, prev = 0;

	take_stack(12);
	whole = raw.head.stack_bytes;
	for (uint32_t bytes = 0; bytes <= whole; bytes += 24) {
		raw.head.stack_bytes = bytes;
		unwind();
		assert_true(stack.nr_frames >= 1 && stack.nr_frames >= prev);
		prev = stack.nr_frames;
		if (stack.end == AUDIT_END_ROOT)
			break;
		assert_int_equal(stack.end, AUDIT_END_COPY);
		nr_ends++;
		if (stack.nr_frames >= 2) {
			assert_int_equal(compare(SONDE_STOP_COMPLETE).verdict, AUDIT_AGREES);
			assert_int_equal(compare(SONDE_STOP_DEPTH).verdict, AUDIT_AGREES);
		} else {
			assert_int_equal(compare(SONDE_STOP_COMPLETE).verdict, AUDIT_NOT_COMPARABLE);
			assert_int_equal(compare(SONDE_STOP_COMPLETE).reason, AUDIT_REASON_COPY);
		}
	}
	assert_true(nr_ends > 10);
	assert_int_equal(stack.end, AUDIT_END_ROOT);
}

static void test_code_without_cfi(void **state)
{
	const struct elf_file *own = NULL;
	uint32_t i;

	take_stack(3);
	for (i = 0; i < process.nr_modules && !own; i++)
		own = noted[0] >= modules[i].start_pc && noted[0] < modules[i].end_pc ? modules[i].elf : NULL;
	modules[i - 1].elf = NULL;
	unwind(); /* raise is in the C library, its caller in this program */
	assert_int_equal(stack.end, AUDIT_END_NO_CFI);
	assert_true(stack.nr_frames >= 2 && stack.nr_frames < nr_walked);
	assert_int_equal(compare(SONDE_STOP_COMPLETE).verdict, AUDIT_AGREES);
	for (uint32_t j = 0; j < process.nr_modules; j++)
		modules[j].elf = NULL;
	unwind();
	assert_int_equal(stack.nr_frames, 1);
	assert_int_equal(compare(SONDE_STOP_COMPLETE).reason, AUDIT_REASON_NO_CFI);
}

/* A page of the copy that was not in memory is not read, whatever the copy contains there. */
static void test_absent_pages(void **state)
{
	take_stack(12);
	unwind();
	assert_true(stack.nr_frames > 12);
	for (uint32_t page = 0; page < SONDE_DEFERRED_MAX_PAGES; page++)
		raw.head.absent[page / 64] |= 1ull << page % 64;
	unwind();
	assert_int_equal(stack.nr_frames, 1);
	assert_int_equal(stack.end, AUDIT_END_COPY);
	raw.head.absent[0] &= ~1ull;
	raw.head.stack_bytes = 2 * SONDE_DEFERRED_PAGE_BYTES;
	assert_true(sonde_deferred_has(&raw.head, SONDE_DEFERRED_PAGE_BYTES - 8, 8));
	assert_false(sonde_deferred_has(&raw.head, SONDE_DEFERRED_PAGE_BYTES - 8, 9));
	assert_false(sonde_deferred_has(&raw.head, SONDE_DEFERRED_PAGE_BYTES, 1));
	raw.head.absent[0] = 0;
	assert_true(sonde_deferred_has(&raw.head, 0, 2 * SONDE_DEFERRED_PAGE_BYTES));
	assert_false(sonde_deferred_has(&raw.head, 1, 2 * SONDE_DEFERRED_PAGE_BYTES));
	assert_false(sonde_deferred_has(&raw.head, UINT64_MAX - 3, 8));
}

static void test_records(void **state)
{
	take_stack(1);
	raw.head.compat = 1;
	unwind();
	assert_int_equal(stack.nr_frames, 0);
	assert_int_equal(compare(SONDE_STOP_COMPAT).reason, AUDIT_REASON_COMPAT);
	raw.head.compat = 0;
	raw.head.stack_bytes = SONDE_DEFERRED_MAX_BYTES + 1;
	assert_int_equal(audit_unwind(audit, &raw.head, &process, &stack), -EINVAL);
	raw.head.stack_bytes = 8;
	raw.head.regs[7] = UINT64_MAX - 3; /* a stack that wraps around */
	unwind();
	raw.head.regs[7] = 0;
	unwind();
	raw.head.regs[SONDE_REG_PC] = 0;
	unwind();
	assert_int_equal(stack.end, AUDIT_END_NO_CFI);
}

/* --- files that are damaged ----------------------------------------------------------------------------------------------------------- */

static uint32_t own_module(void)
{
	for (uint32_t i = 0; i < process.nr_modules; i++) {
		if (noted[0] >= modules[i].start_pc && noted[0] < modules[i].end_pc)
			return i;
	}
	fail();
	return 0;
}

/* Unwinds with the program's own file replaced by these bytes. Any result is fine, but the frames below remain and nothing crashes. */
static void unwind_with(uint8_t *bytes, size_t size, uint32_t number, bool is_file)
{
	uint32_t own = own_module();
	struct audit_module saved = modules[own];
	struct audit_process other = {
		.tgid = 1000000 + number % 11, .generation = number, .modules = modules, .nr_modules = process.nr_modules
	};
	struct elf_file *elf;
	int fd = -1;

	if (is_file) {
		fd = memfd_create("damaged", MFD_CLOEXEC);
		assert_int_equal(write(fd, bytes, size), size);
	}
	if (is_file ? elf_file_open_fd(fd, NULL, &elf) : elf_file_open_memory(bytes, size, NULL, &elf)) {
		closep(&fd);
		return;
	}
	if (is_file)
		assert_int_equal(ftruncate(fd, (off_t)(size / (2 + number % 7))), 0); /* the file shrinks while it is open */
	modules[own].elf = elf;
	modules[own].object = 100000 + number;
	assert_int_equal(audit_unwind(audit, &raw.head, &other, &stack), 0);
	assert_true(stack.nr_frames >= 2);
	modules[own] = saved;
	elf_file_free(elf);
}

static uint8_t *read_own_file(size_t *ret_size)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st;
	uint8_t *bytes;

	assert_true(fd >= 0 && !fstat(fd, &st));
	bytes = malloc((size_t)st.st_size);
	assert_true(bytes && read(fd, bytes, (size_t)st.st_size) == st.st_size);
	closep(&fd);
	*ret_size = (size_t)st.st_size;
	return bytes;
}

static uint64_t random_word(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return *seed >> 33;
}

/* Changes bytes of one section, or of the headers when `name` is NULL. */
static void damage(uint8_t *bytes, const struct elf_file *elf, const char *name, uint64_t *seed)
{
	const struct elf_section *section = name ? elf_file_find_section(elf, name) : NULL;
	uint64_t off = section ? section->file_off : 16, size = section ? section->size : 48 + 56 * 12;

	assert_true(!name || section);
	for (uint64_t nr = 1 + random_word(seed) % 64; nr; nr--)
		bytes[off + random_word(seed) % size] = (uint8_t)random_word(seed);
}

static void test_damaged_files(void **state)
{
	static const char *const sections[] = { ".eh_frame", ".eh_frame_hdr", ".debug_frame", NULL };
	size_t size;
	CLEANUP(freep) uint8_t *whole = read_own_file(&size);
	CLEANUP(freep) uint8_t *bytes = malloc(size);
	const struct elf_file *elf;
	uint64_t seed = 7;

	assert_non_null(bytes);
	take_signals(false);
	keep = call_with_debug_frame(before_debug_frame, 5);
	elf = modules[own_module()].elf;
	for (uint32_t i = 0; i < 240; i++) {
		memcpy(bytes, whole, size);
		if (i >= 8)
			damage(bytes, elf, sections[i % 4], &seed);
		unwind_with(bytes, size, i, i % 16 == 0);
		if (i == 1)
			assert_noted(); /* the undamaged bytes in memory still work */
	}
	unwind();
	assert_noted(); /* and so do the files themselves, after all the others were evicted */
	assert_int_equal(stack.end, AUDIT_END_ROOT);
}

/* More files and processes than are kept, each file with bytes of its own (the ELF header's e_ident has unused ones). */
static void test_files_come_and_go(void **state)
{
	size_t size;
	CLEANUP(freep) uint8_t *bytes = read_own_file(&size);

	take_stack(2);
	for (uint32_t number = 0; number < 150; number++) {
		bytes[15] = (uint8_t)number;
		unwind_with(bytes, size, number, false);
		assert_int_equal(stack.end, AUDIT_END_ROOT);
		assert_noted();
	}
}

/* The same process again: in another generation, with another file under the same number; in the same generation, with one more mapping. */
static void test_a_process_changes(void **state)
{
	size_t size;
	CLEANUP(freep) uint8_t *bytes = read_own_file(&size);
	const struct elf_section *section;
	CLEANUP(elf_file_freep) struct elf_file *without = NULL;
	struct audit_process saved = process;
	const struct elf_file *first;
	struct audit_module *own;

	take_stack(2);
	own = &modules[own_module()];
	section = elf_file_find_section(own->elf, ".eh_frame");
	assert_non_null(section);
	assert_agrees(AUDIT_END_ROOT);
	memset(bytes + section->file_off, 0, section->size);
	assert_int_equal(elf_file_open_memory(bytes, size, NULL, &without), 0);
	first = own->elf;
	own->elf = without;
	process.generation++;
	unwind();
	assert_int_equal(stack.end, AUDIT_END_NO_CFI);
	own->elf = NULL;
	process.generation++;
	unwind();
	assert_int_equal(stack.end, AUDIT_END_NO_CFI);
	own->elf = first;
	assert_agrees(AUDIT_END_ROOT);
	process = saved;
}

/* --- the verdicts --------------------------------------------------------------------------------------------------------------------- */

#define ANY 99

static void test_verdicts(void **state)
{
	static const struct {
		uint32_t nr_walked;
		enum sonde_stop stop;
		uint32_t nr, differs_at; /* differs_at is ANY: nowhere */
		enum audit_end end;
		enum audit_verdict verdict;
		uint32_t detail; /* the reason, or the frame */
	} cases[] = {
		{ 5, SONDE_STOP_COMPLETE, 5, ANY, AUDIT_END_ROOT, AUDIT_AGREES, 0 },
		{ 1, SONDE_STOP_COMPLETE, 1, ANY, AUDIT_END_ROOT, AUDIT_AGREES, 0 },
		{ 5, SONDE_STOP_COMPLETE, 5, 3, AUDIT_END_ROOT, AUDIT_DIFFERS, 3 },
		{ 5, SONDE_STOP_NO_ROW, 5, 0, AUDIT_END_COPY, AUDIT_DIFFERS, 0 },
		{ 5, SONDE_STOP_COMPLETE, 9, ANY, AUDIT_END_ROOT, AUDIT_DIFFERS, 5 },
		{ 5, SONDE_STOP_COMPLETE, 6, ANY, AUDIT_END_COPY, AUDIT_DIFFERS, 5 },
		{ 5, SONDE_STOP_COMPLETE, 4, ANY, AUDIT_END_ROOT, AUDIT_DIFFERS, 4 },
		{ 5, SONDE_STOP_NO_ROW, 4, ANY, AUDIT_END_ROOT, AUDIT_DIFFERS, 4 },
		{ 5, SONDE_STOP_NO_ROW, 9, ANY, AUDIT_END_ROOT, AUDIT_NOT_COMPARABLE, AUDIT_REASON_MARKED },
		{ 5, SONDE_STOP_NO_ROW, 5, ANY, AUDIT_END_ROOT, AUDIT_NOT_COMPARABLE, AUDIT_REASON_MARKED },
		{ 5, SONDE_STOP_NO_ROW, 5, ANY, AUDIT_END_NO_CFI, AUDIT_AGREES, 0 },
		{ 5, SONDE_STOP_COMPLETE, 5, ANY, AUDIT_END_NO_CFI, AUDIT_AGREES, 0 },
		{ 5, SONDE_STOP_COMPLETE, 2, ANY, AUDIT_END_COPY, AUDIT_AGREES, 0 },
		{ 5, SONDE_STOP_COMPLETE, 2, 1, AUDIT_END_COPY, AUDIT_DIFFERS, 1 },
		{ 5, SONDE_STOP_COMPLETE, 1, ANY, AUDIT_END_COPY, AUDIT_NOT_COMPARABLE, AUDIT_REASON_COPY },
		{ 1, SONDE_STOP_COMPLETE, 1, ANY, AUDIT_END_NO_CFI, AUDIT_NOT_COMPARABLE, AUDIT_REASON_NO_CFI },
		{ 5, SONDE_STOP_NO_ROW, 5, ANY, AUDIT_END_NO_CODE, AUDIT_AGREES, 0 },
		{ 5, SONDE_STOP_COMPLETE, 1, ANY, AUDIT_END_LIBDW, AUDIT_NOT_COMPARABLE, AUDIT_REASON_LIBDW },
		{ 1, SONDE_STOP_COMPAT, 0, ANY, AUDIT_END_COMPAT, AUDIT_NOT_COMPARABLE, AUDIT_REASON_COMPAT },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct audit_finding finding;

		for (uint32_t frame = 0; frame < 10; frame++)
			stack.frames[frame] = walked[frame] = 0x1000 * (frame + 1);
		if (cases[i].differs_at != ANY)
			stack.frames[cases[i].differs_at]++;
		stack.nr_frames = cases[i].nr;
		stack.end = cases[i].end;
		finding = audit_compare(walked, cases[i].nr_walked, cases[i].stop, &stack);
		if (finding.verdict != cases[i].verdict || (finding.verdict == AUDIT_DIFFERS && finding.frame != cases[i].detail) ||
		    (finding.verdict == AUDIT_NOT_COMPARABLE && finding.reason != cases[i].detail))
			fail_msg("case %zu: verdict %d, reason %d, frame %u", i, finding.verdict, finding.reason, finding.frame);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_functions),	  cmocka_unit_test(test_through_the_signal_frame),
		cmocka_unit_test(test_debug_frame),	  cmocka_unit_test(test_every_instruction),
		cmocka_unit_test(test_damaged_stack),	  cmocka_unit_test(test_short_copy),
		cmocka_unit_test(test_absent_pages),	  cmocka_unit_test(test_records),
		cmocka_unit_test(test_damaged_files),	  cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_files_come_and_go), cmocka_unit_test(test_a_process_changes),
		cmocka_unit_test(test_code_without_cfi), /* last: it removes the files from the modules */
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
