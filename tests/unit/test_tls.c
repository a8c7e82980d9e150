// SPDX-License-Identifier: Apache-2.0
/* Thread-local variables: how code accesses them, and whether the kernel side's header reads them as the threads do. The program and its
 * libraries have variables of each model (tests/programs/tls_models.c). The reference is what the threads put there. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "elf/dynamic_symbol.h"
#include "elf_image.h"
#include "runtime/libc_facts.h"
#include "runtime/tls_access.h"
#include "runtime/tls_code.h"
#include "walk_host.h"

#include "walk/tls.h"

#define CODE_PC 0x1000

static struct bytes image;

static struct elf_file *open_code(const void *code, size_t size)
{
	const Elf64_Phdr phdr = { .p_type = PT_LOAD,
				  .p_flags = PF_R | PF_X,
				  .p_offset = IMAGE_CONTENT_OFF,
				  .p_vaddr = CODE_PC,
				  .p_filesz = size,
				  .p_memsz = size };
	const struct image_section section = { ".text", SHT_PROGBITS, CODE_PC, code, size };
	struct elf_file *elf;

	image_make(&image, &phdr, 1, &section, 1);
	assert_int_equal(elf_file_open_memory(image.data, image.size, NULL, &elf), 0);
	return elf;
}

#define CODE(...) { __VA_ARGS__ }, sizeof((uint8_t[]){ __VA_ARGS__ })
#define LOAD_FS(off) 0x64, 0x48, 0x8b, 0x04, 0x25, off, 0xff, 0xff, 0xff /* mov %fs:off,%rax */
#define LOAD_TP 0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0
#define REFUSED SONDE_TLS_NONE

static const struct {
	uint8_t code[64];
	size_t size;
	uint8_t kind;
	uint64_t pc;
	int64_t off;
} functions[] = {
	{ CODE(LOAD_FS(0xe8), 0xc3), SONDE_TLS_STATIC, 0, -24 },
	/* endbr64; push %rbp; mov %rsp,%rbp; sub $16,%rsp; mov; leave; ret */
	{ CODE(0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, LOAD_FS(0xe8), 0xc9, 0xc3), SONDE_TLS_STATIC, 0,
	  -24 },
	/* lea -16(%rax),%rax; mov 8(%rax),%rax */
	{ CODE(LOAD_TP, 0x48, 0x8d, 0x80, 0xf0, 0xff, 0xff, 0xff, 0x48, 0x8b, 0x40, 0x08, 0xc3), SONDE_TLS_STATIC, 0, -8 },
	/* mov $-8,%rax; mov %fs:(%rax),%rax */
	{ CODE(0x48, 0xc7, 0xc0, 0xf8, 0xff, 0xff, 0xff, 0x64, 0x48, 0x8b, 0x00, 0xc3), SONDE_TLS_STATIC, 0, -8 },
	/* mov 0x100(%rip),%rax; mov %fs:(%rax),%rax */
	{ CODE(0x48, 0x8b, 0x05, 0, 1, 0, 0, 0x64, 0x48, 0x8b, 0x00, 0xc3), SONDE_TLS_OFFSET, CODE_PC + 7 + 0x100, 0 },
	/* mov 0x100(%rip),%r8; mov %fs:8(%r8),%r9; mov %r9,%rax */
	{ CODE(0x4c, 0x8b, 0x05, 0, 1, 0, 0, 0x64, 0x4d, 0x8b, 0x48, 0x08, 0x4c, 0x89, 0xc8, 0xc3), SONDE_TLS_OFFSET, CODE_PC + 7 + 0x100,
	  8 },
	/* mov %fs:0,%rax; add 0x100(%rip),%rax; mov 16(%rax),%rax */
	{ CODE(LOAD_TP, 0x48, 0x03, 0x05, 0, 1, 0, 0, 0x48, 0x8b, 0x40, 0x10, 0xc3), SONDE_TLS_OFFSET, CODE_PC + 16 + 0x100, 16 },
	/* call 1f; ret; 1: ... */
	{ CODE(0xe8, 1, 0, 0, 0, 0xc3, LOAD_FS(0xe8), 0xc3), SONDE_TLS_STATIC, 0, -24 },
	/* cmpl $0,(%rdi); je 1f; ...; ret; 1: xor %eax,%eax; ret */
	{ CODE(0x83, 0x3f, 0, 0x74, 10, LOAD_FS(0xe8), 0xc3, 0x31, 0xc0, 0xc3), SONDE_TLS_STATIC, 0, -24 },
	/* the same with ud2 */
	{ CODE(0x83, 0x3f, 0, 0x75, 2, 0x0f, 0x0b, LOAD_FS(0xe8), 0xc3), SONDE_TLS_STATIC, 0, -24 },
	/* je 1f; one; ret; 1: another; ret */
	{ CODE(0x74, 10, LOAD_FS(0xe8), 0xc3, LOAD_FS(0xf0), 0xc3), REFUSED, 0, 0 },
	/* a member of what the variable points to */
	{ CODE(LOAD_FS(0xe8), 0x48, 0x8b, 0x40, 0x10, 0xc3), REFUSED, 0, 0 },
	{ CODE(LOAD_FS(0xe8), 0x48, 0xff, 0xc0, 0xc3), REFUSED, 0, 0 }, /* inc %rax */
	{ CODE(LOAD_FS(0xe8), 0xb0, 0x01, 0xc3), REFUSED, 0, 0 },	/* mov $1,%al */
	/* a half: mov %fs:-24,%eax */
	{ CODE(0x64, 0x8b, 0x04, 0x25, 0xe8, 0xff, 0xff, 0xff, 0xc3), REFUSED, 0, 0 },
	/* with an index */
	{ CODE(0x64, 0x48, 0x8b, 0x04, 0xfd, 0xe8, 0xff, 0xff, 0xff, 0xc3), REFUSED, 0, 0 },
	{ CODE(0x31, 0xc0, 0xc3), REFUSED, 0, 0 },
	{ CODE(0xeb, 0xfe), REFUSED, 0, 0 },		       /* jumps to itself */
	{ CODE(0xe8, 0xfb, 0xff, 0xff, 0xff), REFUSED, 0, 0 }, /* calls itself */
	{ CODE(0x74, 0xfe), REFUSED, 0, 0 },
	{ CODE(LOAD_FS(0xe8)), REFUSED, 0, 0 },				/* the file ends behind it */
	{ CODE(0xc5, 0xf8, 0x77, LOAD_FS(0xe8), 0xc3), REFUSED, 0, 0 }, /* vzeroupper: not decoded */
};

static void test_code(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		CLEANUP(elf_file_freep) struct elf_file *elf = open_code(functions[i].code, functions[i].size);
		struct sonde_tls tls = { 0 };
		int err = tls_code_follow(elf, CODE_PC, &tls);

		if (err != (functions[i].kind == REFUSED ? -EOPNOTSUPP : 0) || tls.kind != functions[i].kind || tls.pc != functions[i].pc ||
		    tls.off != functions[i].off)
			fail_msg("function %zu: %d, kind %d, pc %llx, off %lld", i, err, tls.kind, tls.pc, tls.off);
	}
}

/* Whatever the bytes are, the decoding ends. */
static void test_any_code(void **state)
{
	static const uint8_t likely[] = { 0x64, 0x48, 0x8b, 0x8d, 0x74, 0xe8, 0xeb, 0xff, 0x0f, 0x05, 0x04, 0x25, 0x66, 0xc3, 0x00, 0x89 };
	uint64_t random = 0x9e3779b97f4a7c15;

	for (int round = 0; round < 5000; round++) {
		CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
		uint8_t code[64];
		struct sonde_tls tls;
		int err;

		for (size_t i = 0; i < sizeof(code); i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			code[i] = random >> 60 < 9 ? likely[random >> 32 & 15] : (uint8_t)(random >> 40);
		}
		elf = open_code(code, sizeof(code));
		err = tls_code_follow(elf, CODE_PC, &tls);
		assert_true(err == 0 || err == -EOPNOTSUPP);
	}
}

/* The exports of the machine's own interpreters agree. */
static void test_perl(void **state)
{
	static const char *const paths[] = { "/usr/bin/perl", "/usr/lib/x86_64-linux-gnu/libperl.so.5.36" };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
		struct dynamic_symbol key;
		struct sonde_tls tls;
		int fd = open(paths[i], O_RDONLY | O_CLOEXEC);

		if (fd < 0)
			continue;
		assert_int_equal(elf_file_open_fd(fd, NULL, &elf), 0);
		if (elf_file_machine(elf) != EM_X86_64 ||
		    dynamic_symbol_find(elf, "PL_thr_key", &key)) /* linked to the library, or built without threads */
			continue;
		assert_int_equal(tls_access_decode(elf, "Perl_get_context", &tls), 0);
		assert_int_equal(tls.kind, SONDE_TLS_KEY);
		assert_int_equal(tls.pc, key.elf_vaddr);
		assert_int_equal(tls_access_symbol(elf, "PL_thr_key", &tls), -ENOENT); /* not a thread-local variable */
		if (dynamic_symbol_find(elf, "PL_current_context", &key)) /* since 5.36 */
			continue;
		assert_int_equal(key.type, STT_TLS);
		assert_int_equal(tls_access_symbol(elf, "PL_current_context", &tls), 0);
		if (i) /* in a library */
			assert_true(tls.kind == SONDE_TLS_OFFSET || tls.kind == SONDE_TLS_MODULE);
		else /* the only variable of the program */
			assert_true(tls.kind == SONDE_TLS_STATIC && tls.off == -8);
	}
}

static long read_own(void *to, __u32 size, __u64 from)
{
	struct iovec local = { to, size }, remote = { (void *)(uintptr_t)from, size };

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size ? 0 : -1;
}

/* The libraries, loaded while the threads already run, and the program itself. */
static const struct {
	const char *name, *path;
	uint8_t first_kind;
} models[] = {
	{ "program", NULL, SONDE_TLS_STATIC },
	{ "plain", MODELS_PLAIN, SONDE_TLS_MODULE },
	{ "initial", MODELS_INITIAL_EXEC, SONDE_TLS_OFFSET },
	{ "noplt", MODELS_NOPLT, SONDE_TLS_MODULE },
	{ "unoptimized", MODELS_UNOPTIMIZED, SONDE_TLS_MODULE },
	{ "gnu2", MODELS_GNU2, SONDE_TLS_OFFSET },
	{ "gnu2large", MODELS_GNU2_LARGE, SONDE_TLS_OFFSET },
};

#define NR_MODELS ARRAY_SIZE(models)
#define NR_THREADS 4 /* the last two touch nothing; the last starts after the libraries are loaded: what it lacks is marked differently */
#define LATE_THREAD (NR_THREADS - 1)
#define NR_TOUCHING (NR_THREADS - 2)

static pthread_barrier_t early_turn, turn; /* without the last thread; with all */
static uint64_t bases[NR_THREADS];
static void *handles[NR_MODELS];
static pthread_key_t keys[1024];
static size_t nr_keys;

static void *symbol_of(size_t model, const char *what)
{
	char name[64];
	void *symbol;

	snprintf(name, sizeof(name), "%s_%s", models[model].name, what);
	symbol = dlsym(handles[model], name);
	if (!symbol)
		fail_msg("no %s", name);
	return symbol;
}

static void *value_of(size_t thread, size_t model, size_t variable)
{
	return (void *)(0x100000 * (thread + 1) + 0x100 * model + variable);
}

static void *run_thread(void *arg)
{
	size_t thread = (size_t)arg;

	bases[thread] = (uint64_t)(uintptr_t)__builtin_thread_pointer();
	if (thread != LATE_THREAD) {
		pthread_barrier_wait(&early_turn);
		pthread_barrier_wait(&early_turn);
	}
	for (size_t i = 0; i < NR_MODELS && thread < NR_TOUCHING; i++) {
		((void (*)(void *))symbol_of(i, "set_first"))(value_of(thread, i, 1));
		((void (*)(void *))symbol_of(i, "set_second"))(value_of(thread, i, 2));
		((void (*)(void *))symbol_of(i, "set_third"))(value_of(thread, i, 3));
	}
	for (size_t i = 0; i < nr_keys && thread < NR_TOUCHING; i++)
		pthread_setspecific(keys[i], value_of(thread, i, 0x80000));
	pthread_barrier_wait(&turn);
	pthread_barrier_wait(&turn);
	return NULL;
}

static struct libc_facts facts;

/* How `function` accesses its variable in this process. */
static struct sonde_tls access_of(size_t model, const char *what)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	struct dynamic_symbol symbol;
	struct sonde_tls tls = { 0 }, placed;
	char name[64];

	snprintf(name, sizeof(name), "%s_%s", models[model].name, what);
	assert_int_equal(
	    elf_file_open_fd(open(models[model].path ? models[model].path : "/proc/self/exe", O_RDONLY | O_CLOEXEC), NULL, &elf), 0);
	assert_int_equal(dynamic_symbol_find(elf, name, &symbol), 0);
	if (tls_access_decode(elf, name, &tls))
		fail_msg("%s is not understood", name);
	assert_int_equal(tls_access_place(&tls, (uint64_t)(uintptr_t)symbol_of(model, what) - symbol.elf_vaddr, &facts, &placed), 0);
	return placed;
}

static void check_read(size_t thread, const struct sonde_tls *tls, void *want)
{
	struct walk w = { 0 };
	__u64 value = 0;
	int err;

	host_tls_base = bases[thread];
	err = tls_read(&w, tls, &value);
	if (err != (want ? TLS_READ : TLS_NONE) || value != (__u64)(uintptr_t)want)
		fail_msg("thread %zu, kind %d: %d, %llx instead of %p", thread, tls->kind, err, value, want);
}

static void check_model(size_t model)
{
	struct sonde_tls first = access_of(model, "get_first"), second = access_of(model, "get_second"),
			 third = access_of(model, "get_third");

	assert_int_equal(first.kind, models[model].first_kind);
	for (size_t thread = 0; thread < NR_THREADS; thread++) {
		check_read(thread, &first, thread < NR_TOUCHING ? value_of(thread, model, 1) : NULL);
		check_read(thread, &second, thread < NR_TOUCHING ? value_of(thread, model, 2) : NULL);
		check_read(thread, &third, thread < NR_TOUCHING ? value_of(thread, model, 3) : NULL);
	}
}

static void check_keys(size_t model)
{
	/* else the argument passes through the stack, which is not followed */
	bool is_plain = strcmp(models[model].name, "unoptimized") != 0;
	struct sonde_tls key = access_of(model, "get_key"), tss = access_of(model, is_plain ? "get_tss" : "get_key");
	struct {
		int is_made;
		pthread_key_t key;
	} *tss_variable = symbol_of(model, "tss");
	pthread_key_t *variable = symbol_of(model, "key");

	assert_int_equal(key.kind, SONDE_TLS_KEY);
	assert_int_equal(key.pc, (uint64_t)(uintptr_t)variable);
	assert_int_equal(tss.kind, SONDE_TLS_KEY);
	assert_int_equal(tss.pc, is_plain ? (uint64_t)(uintptr_t)&tss_variable->key : key.pc);
	for (size_t i = 0; i < nr_keys; i++) {
		*variable = tss_variable->key = keys[i];
		for (size_t thread = 0; thread < NR_THREADS; thread++) {
			check_read(thread, &key, thread < NR_TOUCHING ? value_of(thread, i, 0x80000) : NULL);
			check_read(thread, &tss, thread < NR_TOUCHING ? value_of(thread, i, 0x80000) : NULL);
		}
	}
	*variable = (pthread_key_t)-1;
	check_read(0, &key, NULL);
}

/* Makes some keys of the first table, its last one, and some of later tables. */
static void make_keys(void)
{
	pthread_key_t key;

	do {
		assert_int_equal(pthread_key_create(&key, NULL), 0);
		if (!key || key == 31 || key == 32 || key == 200)
			keys[nr_keys++] = key;
	} while (key < 200);
	assert_true(nr_keys >= 3); /* key 0 may be somebody else's */
}

static void read_facts(void)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	Dl_info info;

	assert_true(dladdr(dlsym(RTLD_DEFAULT, "pthread_getspecific"), &info));
	assert_int_equal(elf_file_open_fd(open(info.dli_fname, O_RDONLY | O_CLOEXEC), NULL, &elf), 0);
	assert_int_equal(libc_facts_read(elf, &facts), 0);
	assert_int_equal(facts.is_known, 1);
}

static void test_live(void **state)
{
	pthread_t threads[NR_THREADS];

	read_facts();
	host_read = read_own;
	make_keys();
	assert_int_equal(pthread_barrier_init(&early_turn, NULL, NR_THREADS), 0);
	assert_int_equal(pthread_barrier_init(&turn, NULL, NR_THREADS + 1), 0);
	for (size_t i = 0; i < LATE_THREAD; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run_thread, (void *)i), 0);
	pthread_barrier_wait(&early_turn);
	for (size_t i = 0; i < NR_MODELS; i++) {
		handles[i] = dlopen(models[i].path, RTLD_NOW);
		if (!handles[i])
			fail_msg("%s", dlerror());
	}
	assert_int_equal(pthread_create(&threads[LATE_THREAD], NULL, run_thread, (void *)LATE_THREAD), 0);
	pthread_barrier_wait(&early_turn);
	pthread_barrier_wait(&turn);
	for (size_t i = 0; i < NR_MODELS; i++) {
		check_model(i);
		check_keys(i);
	}
	pthread_barrier_wait(&turn);
	for (size_t i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void test_unreadable(void **state)
{
	struct sonde_tls tls = { .kind = SONDE_TLS_KEY, .key_block = 32, .pc = 8 };
	uint64_t value = 77, pair[2] = { 1, 0 };
	struct walk w = { 0 };
	__u64 ret = 5;

	host_read = read_own;
	host_tls_base = (uint64_t)(uintptr_t)__builtin_thread_pointer();
	for (tls.kind = SONDE_TLS_NONE; tls.kind <= SONDE_TLS_KEY + 1; tls.kind++) {
		tls.off = tls.kind == SONDE_TLS_STATIC ? INT64_MIN : 0;
		assert_int_equal(tls_read(&w, &tls, &ret), -1);
	}
	tls = (struct sonde_tls){ .kind = SONDE_TLS_MODULE, .pc = (uint64_t)(uintptr_t)pair };
	assert_int_equal(tls_read(&w, &tls, &ret), -1); /* the C library is unknown */
	tls.dtv_stride = 16;
	tls.dtv_off = 8;
	pair[0] = 1u << 30;
	assert_int_equal(tls_read(&w, &tls, &ret), -1); /* no module has that number */
	pair[0] = 100000;
	assert_int_equal(tls_read(&w, &tls, &ret), TLS_NONE);
	host_tls_base = 0;
	assert_int_equal(tls_read(&w, &tls, &ret), -1);
	assert_int_equal(ret, 5);
	tls = (struct sonde_tls){ .kind = SONDE_TLS_GLOBAL, .pc = (uint64_t)(uintptr_t)&value };
	assert_int_equal(tls_read(&w, &tls, &ret), TLS_READ);
	assert_int_equal(ret, 77);
	assert_int_equal(tls_access_place(&(struct sonde_tls){ .kind = SONDE_TLS_KEY }, 0, &(struct libc_facts){ 0 }, &tls), -EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_code), cmocka_unit_test(test_any_code),	cmocka_unit_test(test_perl),
		cmocka_unit_test(test_live), cmocka_unit_test(test_unreadable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
