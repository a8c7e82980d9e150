// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "shell.h"
#include "symbolize/symbolizer.h"

/* Functions of this program that the tests look up; only .symtab has them. */
int plain_function(int) __attribute__((noinline, visibility("hidden")));
int mangled_function(int) __asm__("_ZN5space12MangledClass6methodEi") __attribute__((noinline, visibility("hidden")));

int plain_function(int x)
{
	return x * 3 + 1;
}

int mangled_function(int x)
{
	return x * 5 + 2;
}

static void symbolizer_freep(struct symbolizer **symbolizer)
{
	symbolizer_free(*symbolizer);
}

static struct elf_file *open_elf(const char *path)
{
	struct elf_file *elf = NULL;
	struct diag diag = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || elf_file_open_fd(fd, &diag, &elf))
		fail_msg("%s: %s", path, diag.text);
	return elf;
}

/* The linked address of a function of this program, from its mapping. */
static uint64_t linked_at(const struct elf_file *elf, uintptr_t pc)
{
	CLEANUP(fclosep) FILE *maps = fopen("/proc/self/maps", "re");
	uint64_t start, end, file_off, elf_vaddr = 0;
	char line[1024];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &file_off) == 3 && pc >= start && pc < end) {
			assert_int_equal(elf_file_off_to_vaddr(elf, file_off + pc - start, &elf_vaddr), 0);
			return elf_vaddr;
		}
	}
	fail_msg("no mapping at %#lx", pc);
	return 0;
}

static void own_functions_have_names(void **state)
{
	CLEANUP(symbolizer_freep) struct symbolizer *symbolizer = symbolizer_new(NULL);
	CLEANUP(elf_file_freep) struct elf_file *elf = open_elf("/proc/self/exe");
	uint64_t plain = linked_at(elf, (uintptr_t)plain_function), mangled = linked_at(elf, (uintptr_t)mangled_function);
	struct symbol_name name, again;
	uint32_t nr;

	assert_non_null(symbolizer);
	assert_int_equal(symbolizer_object(symbolizer, 7, elf, "/proc/self/exe", plain + 1, &name, 1, &nr), 0);
	assert_string_equal(name.name, "plain_function");
	assert_ptr_equal(name.name, name.system_name);
	assert_true(name.start == plain);
	assert_int_equal(symbolizer_object(symbolizer, 7, elf, NULL, mangled, &name, 1, &nr), 0);
	assert_string_equal(name.name, "space::MangledClass::method(int)");
	assert_string_equal(name.system_name, "_ZN5space12MangledClass6methodEi");
	assert_int_equal(symbolizer_object(symbolizer, 7, elf, NULL, mangled + 1, &again, 1, &nr), 0);
	assert_ptr_equal(again.name, name.name); /* demangled once */
	assert_int_equal(symbolizer_object(symbolizer, 7, elf, NULL, 1, &name, 1, &nr), -ENOENT);
}

/* The size of the mapping at `at`, from /proc/self/maps. */
static size_t mapping_size(uintptr_t at)
{
	CLEANUP(fclosep) FILE *maps = fopen("/proc/self/maps", "re");
	uint64_t start, end;
	char line[1024];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && start == at)
			return end - start;
	}
	return 0;
}

static void the_vdso_has_names(void **state)
{
	CLEANUP(symbolizer_freep) struct symbolizer *symbolizer = symbolizer_new(NULL);
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
	unsigned int nr_vdso_names = 0;
	struct symbol_name name;
	uint32_t nr;

	if (!vdso) {
		print_message("SKIPPED: no vdso\n");
		skip();
	}
	assert_int_equal(elf_file_open_memory((void *)vdso, mapping_size(vdso), NULL, &elf), 0);
	for (uint64_t vaddr = 0; vaddr < mapping_size(vdso); vaddr += 16) {
		if (symbolizer_object(symbolizer, 0, elf, "[vdso]", vaddr, &name, 1, &nr) == 0)
			nr_vdso_names += strstr(name.name, "clock_gettime") != NULL;
	}
	assert_true(nr_vdso_names > 0);
}

/* A directory with `stripped` (a copy of this program without symbols, with a link to program.debug) and `program.debug`. */
struct place {
	char dir[64], path[PATH_MAX];
	struct elf_file *elf;
	uint64_t elf_vaddr;
};

static void place_init(struct place *place)
{
	struct elf_file *self = open_elf("/proc/self/exe");

	place->elf_vaddr = linked_at(self, (uintptr_t)plain_function);
	elf_file_free(self);
	snprintf(place->dir, sizeof(place->dir), "/tmp/test_symbolizer.%d", getpid());
	assert_int_equal(mkdir(place->dir, 0700), 0);
	run("cp /proc/%d/exe %s/program && cd %s && mkdir bin debug && objcopy --only-keep-debug program program.debug &&"
	    " objcopy --strip-all --add-gnu-debuglink=program.debug program bin/stripped",
	    getpid(), place->dir, place->dir);
	snprintf(place->path, sizeof(place->path), "%s/bin/stripped", place->dir);
	place->elf = open_elf(place->path);
}

static void place_done(struct place *place)
{
	elf_file_free(place->elf);
	run("rm -rf %s", place->dir);
}

/* Whether the stripped program's function is resolved. */
static bool is_found(const struct place *place, const char *path)
{
	char debug_dir[PATH_MAX];
	struct symbolizer_options options = { .debug_dir = debug_dir };
	struct symbolizer *symbolizer;
	struct symbol_name name;
	uint32_t nr;
	bool found;

	snprintf(debug_dir, sizeof(debug_dir), "%s/debug", place->dir);
	symbolizer = symbolizer_new(&options);
	found = symbolizer_object(symbolizer, 1, place->elf, path, place->elf_vaddr, &name, 1, &nr) == 0 &&
		strcmp(name.name, "plain_function") == 0;
	symbolizer_free(symbolizer);
	return found;
}

static bool no_objcopy(void)
{
	if (system("objcopy --version >/dev/null 2>&1") == 0)
		return false;
	print_message("SKIPPED: objcopy is not installed\n");
	return true;
}

static void debug_links_are_followed(void **state)
{
	CLEANUP(place_done) struct place place = { 0 };

	if (no_objcopy())
		skip();
	place_init(&place);
	assert_false(is_found(&place, place.path));
	run("cd %s && cp program.debug bin/", place.dir);
	assert_true(is_found(&place, place.path));
	assert_false(is_found(&place, NULL));
	assert_int_equal(chdir(place.dir), 0);
	assert_false(is_found(&place, "bin/stripped")); /* relative to an unknown directory */
	assert_int_equal(chdir("/"), 0);
	run("cd %s && mkdir bin/.debug && mv bin/program.debug bin/.debug/", place.dir);
	assert_true(is_found(&place, place.path));
	run("cd %s && mkdir -p debug%s/bin && mv bin/.debug/program.debug debug%s/bin/", place.dir, place.dir, place.dir);
	assert_true(is_found(&place, place.path));
	run("cd %s && cp program.debug bin/ && printf x >> bin/program.debug && rm -r debug", place.dir); /* not the file that was linked */
	assert_false(is_found(&place, place.path));
	run("cd %s/bin && rm program.debug && mkfifo program.debug", place.dir); /* does not block */
	assert_false(is_found(&place, place.path));
}

static void build_ids_are_followed(void **state)
{
	CLEANUP(place_done) struct place place = { 0 };
	char id[2 * BUILD_ID_MAX + 1];

	if (no_objcopy())
		skip();
	place_init(&place);
	build_id_text(elf_file_build_id(place.elf), id);
	assert_true(strlen(id) >= 16); /* the compiler's default, else this test proves nothing */
	run("cd %s/debug && mkdir -p .build-id/%.2s && cp ../program.debug .build-id/%.2s/%s.debug", place.dir, id, id, id + 2);
	assert_true(is_found(&place, place.path));
	assert_true(is_found(&place, NULL));
	run("cd %s/debug/.build-id/%.2s && objcopy --remove-section .note.gnu.build-id %s.debug", place.dir, id, id + 2);
	assert_false(is_found(&place, NULL));
}

static void the_kernel_is_read_once(void **state)
{
	static const char text[] = "ffffffff81000000 T start_kernel\nffffffff81000100 T _RNvC6_123foo3bar\nffffffff81000200 T _etext\n"
				   "ffffffffc0000000 t init\t[ext4]\nffffffffc0000100 t _RNvC6_123foo4init\t[rusty]\n";
	CLEANUP(symbolizer_freep) struct symbolizer *symbolizer = NULL;
	int fd = memfd_create("kallsyms", MFD_CLOEXEC);
	struct symbolizer_options options = { 0 };
	struct symbol_name name;
	char path[64];

	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	options.kallsyms_path = path;
	symbolizer = symbolizer_new(&options);
	assert_int_equal(symbolizer_kernel(symbolizer, 0xffffffff81000010, &name), 0);
	close(fd); /* later requests need no file */
	assert_string_equal(name.name, "start_kernel");
	assert_true(name.start == 0xffffffff81000000);
	assert_int_equal(symbolizer_kernel(symbolizer, 0xffffffff81000110, &name), 0);
	assert_string_equal(name.name, "123foo::bar");
	assert_string_equal(name.system_name, "_RNvC6_123foo3bar");
	assert_int_equal(symbolizer_kernel(symbolizer, 0xffffffffc0000000, &name), 0);
	assert_string_equal(name.name, "init [ext4]");
	assert_int_equal(symbolizer_kernel(symbolizer, 0xffffffffc0000100, &name), 0);
	assert_string_equal(name.name, "123foo::init [rusty]");
	assert_int_equal(symbolizer_kernel(symbolizer, 0xffffffff81000210, &name), -ENOENT);
}

/* Their symbols have no sizes. A program that has ended leaves a hole between others. */
static void bpf_programs_end(void **state)
{
	static const char text[] =
	    "ffffffffc0000000 t bpf_prog_1_a\t[bpf]\nffffffffc0000400 t bpf_prog_2_b\t[bpf]\nffffffffc0001000 t bpf_trampoline_7\t[bpf]\n";
	static const struct kernel_code programs[] = { { 0xffffffffc0000000, 0x40, 0 }, { 0xffffffffc0000400, 0x20, 0 } };
	static const struct {
		uint64_t kaddr;
		const char *name;
	} cases[] = { { 0xffffffffc000003f, "bpf_prog_1_a [bpf]" },	{ 0xffffffffc0000040, NULL },
		      { 0xffffffffc0000400, "bpf_prog_2_b [bpf]" },	{ 0xffffffffc0000420, NULL },
		      { 0xffffffffc0001fff, "bpf_trampoline_7 [bpf]" }, { 0xffffffffc0002000, NULL } };
	CLEANUP(symbolizer_freep) struct symbolizer *symbolizer = NULL;
	CLEANUP(closep) int fd = memfd_create("kallsyms", MFD_CLOEXEC);
	struct symbolizer_options options = { .programs = programs, .nr_programs = ARRAY_SIZE(programs) };
	struct symbol_name name;
	char path[64];

	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	options.kallsyms_path = path;
	symbolizer = symbolizer_new(&options);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(symbolizer_kernel(symbolizer, cases[i].kaddr, &name), cases[i].name ? 0 : -ENOENT);
		if (cases[i].name)
			assert_string_equal(name.name, cases[i].name);
	}
}

static void an_interrupted_instruction_is_no_call(void **state)
{
	static const char text[] =
	    "ffffffff81000000 t ends_with_a_call\nffffffff81000020 t next\nffffffff81000040 t __pfx_padded\nffffffff81000050 t padded\n"
	    "ffffffff81000060 t __cfi_checked\nffffffff81000070 t checked\n";
	static const uint64_t looked_for[][2] = { { 0xffffffff81000010, 0xffffffff8100000f }, { 0xffffffff81000020, 0xffffffff8100001f },
						  { 0xffffffff81000050, 0xffffffff81000050 }, { 0xffffffff81000054, 0xffffffff81000053 },
						  { 0xffffffff81000070, 0xffffffff81000070 }, { 0x1000, 0xfff } };
	CLEANUP(symbolizer_freep) struct symbolizer *symbolizer = NULL;
	CLEANUP(closep) int fd = memfd_create("kallsyms", MFD_CLOEXEC);
	struct symbolizer_options options = { 0 };
	char path[64];

	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	options.kallsyms_path = path;
	symbolizer = symbolizer_new(&options);
	for (size_t i = 0; i < ARRAY_SIZE(looked_for); i++)
		assert_true(symbolizer_kernel_call(symbolizer, looked_for[i][0]) == looked_for[i][1]);
}

static void a_hidden_kernel_says_so(void **state)
{
	CLEANUP(symbolizer_freep) struct symbolizer *symbolizer = NULL;
	CLEANUP(symbolizer_freep) struct symbolizer *nowhere = NULL;
	CLEANUP(closep) int fd = memfd_create("kallsyms", MFD_CLOEXEC);
	struct symbolizer_options options = { 0 };
	struct symbol_name name;
	char path[64];

	assert_int_equal(write(fd, "0000000000000000 T a\n", 21), 21);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	options.kallsyms_path = path;
	symbolizer = symbolizer_new(&options);
	assert_int_equal(symbolizer_kernel(symbolizer, 0xffffffff81000010, &name), -EACCES);
	assert_int_equal(symbolizer_kernel(symbolizer, 0xffffffff81000010, &name), -EACCES);
	options.kallsyms_path = "/nonexistent/kallsyms";
	nowhere = symbolizer_new(&options);
	assert_int_equal(symbolizer_kernel(nowhere, 0xffffffff81000010, &name), -ENOENT);
}

static void jit_names_freep(struct jit_names **jit)
{
	jit_names_free(*jit);
}

static void jit_code_has_names(void **state)
{
	CLEANUP(symbolizer_freep) struct symbolizer *symbolizer = symbolizer_new(NULL);
	CLEANUP(jit_names_freep) struct jit_names *jit = jit_names_new();
	CLEANUP(fclosep) FILE *file = tmpfile();
	struct symbol_name name;

	assert_non_null(file);
	fprintf(file, "1000 10 _ZN3foo3barEv\n2000 10 js function\n");
	rewind(file);
	assert_int_equal(jit_names_read_fd(jit, fileno(file)), 0);
	assert_int_equal(symbolizer_jit(symbolizer, jit, 0x1004, &name), 0);
	assert_string_equal(name.name, "foo::bar()");
	assert_int_equal(symbolizer_jit(symbolizer, jit, 0x2000, &name), 0);
	assert_string_equal(name.name, "js function");
	assert_true(name.start == 0x2000);
	assert_int_equal(symbolizer_jit(symbolizer, jit, 0x3000, &name), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_functions_have_names), cmocka_unit_test(the_vdso_has_names),
		cmocka_unit_test(debug_links_are_followed), cmocka_unit_test(build_ids_are_followed),
		cmocka_unit_test(the_kernel_is_read_once),  cmocka_unit_test(a_hidden_kernel_says_so),
		cmocka_unit_test(bpf_programs_end),	    cmocka_unit_test(an_interrupted_instruction_is_no_call),
		cmocka_unit_test(jit_code_has_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
