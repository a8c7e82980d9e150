// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "probe/allocators.h"
#include "probe/placement.h"

#define NO_PLACE (-2)
#define ENTRY 0x1000
#define SIZE 0x400

static int off_of(const char *code, size_t size)
{
	uint8_t bytes[PLACEMENT_MAX_BYTES + 16];
	uint32_t off = 0;

	memset(bytes, 0xcc, sizeof(bytes));
	memcpy(bytes, code, size);
	return placement_x86(bytes, sizeof(bytes), &off) ? NO_PLACE : (int)off;
}
#define OFF_OF(code) off_of(code, sizeof(code) - 1)

static void finds_first_emulated(void **state)
{
	assert_int_equal(OFF_OF("\x41\x54\x55\x53"), 0);                         /* glibc's malloc: push %r12 */
	assert_int_equal(OFF_OF("\x48\x85\xff\x0f\x84\xbf\x00\x00\x00\x55"), 3); /* glibc's free: test %rdi,%rdi; je */
	assert_int_equal(OFF_OF("\x80\x3d\x01\x02\x14\x00\x00\x41\x54"), 7);     /* posix_memalign: cmpb $0x0,(%rip); push %r12 */
	assert_int_equal(OFF_OF("\xf3\x0f\x1e\xfa\x55"), 4);                     /* endbr64; push %rbp */
	assert_int_equal(OFF_OF("\x41\x89\xca\x41\xf7\xc1\xff\x0f\x00\x00\x75\x14"), 10); /* mmap: mov %ecx,%r10d; test; jne */
	assert_int_equal(OFF_OF("\x66\x0f\x1f\x44\x00\x00\xeb\x10"), 6);         /* nopw; jmp */
	assert_int_equal(OFF_OF("\x90"), 0);
	assert_int_equal(OFF_OF("\xe9\x00\x01\x00\x00"), 0);
}

static void stops_where_something_changes(void **state)
{
	assert_int_equal(OFF_OF("\x48\x83\xec\x10\x55"), NO_PLACE); /* sub $0x10,%rsp: the return address is elsewhere then */
	assert_int_equal(OFF_OF("\x48\x89\xfb\x53"), NO_PLACE);     /* mov %rdi,%rbx */
	assert_int_equal(OFF_OF("\x48\x89\xf7\x53"), NO_PLACE);     /* mov %rsi,%rdi: an argument */
	assert_int_equal(OFF_OF("\x31\xff\x53"), NO_PLACE);         /* xor %edi,%edi */
	assert_int_equal(OFF_OF("\x48\x8d\x7f\x10\x53"), NO_PLACE); /* lea 0x10(%rdi),%rdi */
	assert_int_equal(OFF_OF("\x89\x07\x53"), NO_PLACE);         /* mov %eax,(%rdi): memory */
	assert_int_equal(OFF_OF("\x48\xf7\xe6\x53"), NO_PLACE);     /* mul %rsi: rdx */
	assert_int_equal(OFF_OF("\x83\xc7\x01\x53"), NO_PLACE);     /* add $1,%edi: the same opcode as cmp */
	assert_int_equal(OFF_OF("\xf7\xdf\x53"), NO_PLACE);         /* neg %edi: the same opcode as test */
	assert_int_equal(OFF_OF("\xb8\x0b\x00\x00\x00\x0f\x05"), NO_PLACE); /* munmap: mov $0xb,%eax; syscall */
	assert_int_equal(OFF_OF("\x66\x55"), NO_PLACE);             /* pushw */
	assert_int_equal(OFF_OF("\xc3"), NO_PLACE);
	assert_int_equal(OFF_OF("\x0f\xff"), NO_PLACE);
}

/* --- branches that land there --------------------------------------------------------------------------------------------------------- */

static struct {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	uint8_t pad[ENTRY - sizeof(Elf64_Ehdr) - sizeof(Elf64_Phdr)];
	uint8_t code[SIZE];
} image;

/* A file whose code at ENTRY is that of glibc's free. */
static struct elf_file *open_image(void)
{
	struct elf_file *elf;

	assert_int_equal(elf_file_open_memory(&image, sizeof(image), NULL, &elf), 0);
	return elf;
}

static void make_image(void)
{
	memset(&image, 0, sizeof(image));
	memcpy(image.header.e_ident, ELFMAG "\x02\x01\x01", 7);
	image.header.e_type = ET_DYN;
	image.header.e_machine = EM_X86_64;
	image.header.e_version = EV_CURRENT;
	image.header.e_ehsize = sizeof(image.header);
	image.header.e_phoff = offsetof(__typeof__(image), segment);
	image.header.e_phentsize = sizeof(image.segment);
	image.header.e_phnum = 1;
	image.segment = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_X | PF_R, .p_offset = ENTRY, .p_vaddr = ENTRY, .p_filesz = SIZE,
				      .p_memsz = SIZE, .p_align = 0x1000 };
	memset(image.code, 0xcc, SIZE);
	memcpy(image.code, "\x48\x85\xff\x0f\x84\xbf\x00\x00\x00\x55", 10);
}

static uint64_t probe_after(const char *code, size_t size, uint32_t at)
{
	struct placement placement = { .entry = ENTRY, .probe = ENTRY };
	struct elf_file *elf;

	make_image();
	memcpy(image.code + at, code, size);
	elf = open_image();
	assert_int_equal(placement_improve(elf, &placement, 1), 0);
	elf_file_free(elf);
	return placement.probe - ENTRY;
}
#define PROBE_AFTER(code, at) probe_after(code, sizeof(code) - 1, at)

static void refuses_landings(void **state)
{
	assert_int_equal(PROBE_AFTER("", 0), 3);
	assert_int_equal(PROBE_AFTER("\xeb\xdf", 0x20), 0);                      /* jmp to +1 */
	assert_int_equal(PROBE_AFTER("\x74\xe1", 0x20), 0);                      /* je to +3 */
	assert_int_equal(PROBE_AFTER("\xe2\xe1", 0x20), 0);                      /* loop to +3 */
	assert_int_equal(PROBE_AFTER("\xeb\xde", 0x20), 3);                      /* jmp to the entry itself: a call like any */
	assert_int_equal(PROBE_AFTER("\xeb\xe2", 0x20), 3);                      /* jmp to +4, behind the probe */
	assert_int_equal(PROBE_AFTER("\xe9\xfe\xfe\xff\xff", 0x100), 0);         /* jmp to +3, from afar */
	assert_int_equal(PROBE_AFTER("\xe8\xfe\xfe\xff\xff", 0x100), 0);         /* call +3 */
	assert_int_equal(PROBE_AFTER("\x0f\x85\xfc\xfe\xff\xff", 0x101), 0);     /* jne to +3 */
	assert_int_equal(PROBE_AFTER("\x00\xe9\xfd\xfe\xff\xff", 0x100), 0);     /* the same within what may be another instruction */
}

/* --- what the worker sends ------------------------------------------------------------------------------------------------------------ */

static void checks_answers(void **state)
{
	struct allocators made = { .nr = 1, .functions = { { .entry_off = 16, .probe_off = 19, .call = SONDE_ALLOC_FREE } } }, got;

	assert_int_equal(allocators_read(&made, sizeof(made), 64, &got), 0);
	assert_int_equal(got.functions[0].probe_off, 19);
	assert_int_equal(allocators_read(&made, sizeof(made) - 1, 64, &got), -EBADMSG);
	assert_int_equal(allocators_read(&made, sizeof(made), 19, &got), -EBADMSG);
	made.functions[0].call = SONDE_ALLOC_COUNT;
	assert_int_equal(allocators_read(&made, sizeof(made), 64, &got), -EBADMSG);
	made.nr = ALLOCATORS_MAX + 1;
	assert_int_equal(allocators_read(&made, sizeof(made), 64, &got), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_first_emulated),
		cmocka_unit_test(stops_where_something_changes),
		cmocka_unit_test(refuses_landings),
		cmocka_unit_test(checks_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
