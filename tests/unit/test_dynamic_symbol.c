// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "elf/dynamic_symbol.h"
#include "elf_image.h"

#define NR_CHAIN 3 /* symbols 1 to 3 */

/* The content of the file at IMAGE_CONTENT_OFF, which is also its address. */
struct content {
	Elf64_Dyn dynamic[8];
	Elf64_Sym symbols[4];
	char strings[64];
	uint64_t value;
	struct {
		uint32_t nr_buckets, first_symbol, nr_filter_words, filter_shift;
		uint64_t filter;
		uint32_t bucket, chain[NR_CHAIN];
	} gnu;
	struct {
		uint32_t nr_buckets, nr_symbols, bucket, chain[NR_CHAIN + 1];
	} sysv;
};

static struct content content;
static struct bytes image;

static uint32_t gnu_hash(const char *name)
{
	uint32_t hash = 5381;

	while (*name)
		hash = (hash << 5) + hash + (unsigned char)*name++;
	return hash;
}

/* first() and second() in that order in both tables, and third, which is undefined. */
static void make_content(void)
{
	static const char *const names[] = { "first", "second", "third" };
	size_t at = 1;

	memset(&content, 0, sizeof(content));
	for (uint32_t i = 1; i <= NR_CHAIN; i++) {
		memcpy(content.strings + at, names[i - 1], strlen(names[i - 1]));
		content.symbols[i] = (Elf64_Sym){ .st_name = (uint32_t)at,
						  .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
						  .st_shndx = i == 3 ? SHN_UNDEF : 1,
						  .st_value = i * 0x1000,
						  .st_size = i };
		at += strlen(names[i - 1]) + 1;
		content.gnu.chain[i - 1] = (gnu_hash(names[i - 1]) & ~1u) | (i == NR_CHAIN);
		content.sysv.chain[i] = i == NR_CHAIN ? 0 : i + 1;
	}
	content.gnu.nr_buckets = content.gnu.first_symbol = content.gnu.nr_filter_words = content.gnu.bucket = 1;
	content.gnu.filter = ~0ULL;
	content.sysv.nr_buckets = content.sysv.bucket = 1;
	content.sysv.nr_symbols = NR_CHAIN + 1;
	content.value = 0x1122334455667788;
}

static uint64_t at_of(size_t off)
{
	return IMAGE_CONTENT_OFF + off;
}

static struct elf_file *open_image(uint64_t hash_tag, uint64_t hash_at)
{
	const Elf64_Dyn dynamic[] = {
		{ DT_STRTAB, { at_of(offsetof(struct content, strings)) } },
		{ DT_SYMTAB, { at_of(offsetof(struct content, symbols)) } },
		{ DT_STRSZ, { sizeof(content.strings) } },
		{ (Elf64_Sxword)hash_tag, { hash_at } },
		{ DT_NULL, { 0 } },
	};
	const Elf64_Phdr phdrs[] = {
		{ .p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = IMAGE_CONTENT_OFF + sizeof(content), .p_memsz = 0x10000 },
		{ .p_type = PT_DYNAMIC, .p_offset = IMAGE_CONTENT_OFF, .p_vaddr = IMAGE_CONTENT_OFF, .p_filesz = sizeof(content.dynamic) },
	};
	const struct image_section sections[] = {
		{ ".data", SHT_PROGBITS, IMAGE_CONTENT_OFF, &content, sizeof(content) },
		{ ".dynsym", SHT_NOBITS, 0, NULL, sizeof(content.symbols) }, /* only its size is read */
	};
	struct elf_file *elf;

	memcpy(content.dynamic, dynamic, sizeof(dynamic));
	image_make(&image, phdrs, 2, sections, 2);
	assert_int_equal(elf_file_open_memory(image.data, image.size, NULL, &elf), 0);
	return elf;
}

static int find(uint64_t hash_tag, size_t hash_off, const char *name, struct dynamic_symbol *ret_symbol)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = open_image(hash_tag, at_of(hash_off));

	return dynamic_symbol_find(elf, name, ret_symbol);
}

static const struct {
	uint64_t tag;
	size_t off;
} tables[] = {
	{ DT_GNU_HASH, offsetof(struct content, gnu) },
	{ DT_HASH, offsetof(struct content, sysv) },
	{ DT_DEBUG, 0 }, /* neither: all symbols are searched */
};

static void test_finds_by_each_table(void **state)
{
	struct dynamic_symbol symbol;

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		make_content();
		assert_int_equal(find(tables[i].tag, tables[i].off, "second", &symbol), 0);
		assert_int_equal(symbol.elf_vaddr, 0x2000);
		assert_int_equal(symbol.size_bytes, 2);
		assert_int_equal(symbol.type, STT_FUNC);
		assert_int_equal(find(tables[i].tag, tables[i].off, "first", &symbol), 0);
		assert_int_equal(symbol.elf_vaddr, 0x1000);
		assert_int_equal(find(tables[i].tag, tables[i].off, "third", &symbol), -ENOENT);  /* undefined */
		assert_int_equal(find(tables[i].tag, tables[i].off, "secon", &symbol), -ENOENT);
		assert_int_equal(find(tables[i].tag, tables[i].off, "second2", &symbol), -ENOENT);
		assert_int_equal(symbol.elf_vaddr, 0x1000); /* untouched */
	}
	content.gnu.filter = 0; /* the filter excludes every name */
	assert_int_equal(find(DT_GNU_HASH, tables[0].off, "second", &symbol), -ENOENT);
}

static void test_refuses_broken_tables(void **state)
{
	struct dynamic_symbol symbol;

	make_content();
	content.gnu.nr_buckets = 0;
	assert_int_equal(find(DT_GNU_HASH, tables[0].off, "second", &symbol), -EBADMSG);
	make_content();
	content.gnu.nr_filter_words = UINT32_MAX; /* what follows is outside the file */
	assert_int_equal(find(DT_GNU_HASH, tables[0].off, "second", &symbol), -EBADMSG);
	make_content();
	content.gnu.first_symbol = 2;
	assert_int_equal(find(DT_GNU_HASH, tables[0].off, "second", &symbol), -EBADMSG);
	make_content();
	content.gnu.bucket = UINT32_MAX;
	assert_int_equal(find(DT_GNU_HASH, tables[0].off, "second", &symbol), -EBADMSG);
	make_content();
	content.sysv.chain[3] = 1; /* a cycle */
	assert_int_equal(find(DT_HASH, tables[1].off, "fourth", &symbol), -EBADMSG);
	make_content();
	content.sysv.nr_buckets = 0;
	assert_int_equal(find(DT_HASH, tables[1].off, "second", &symbol), -EBADMSG);
	make_content();
	content.sysv.bucket = 4;
	assert_int_equal(find(DT_HASH, tables[1].off, "second", &symbol), -EBADMSG);
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		make_content();
		content.symbols[2].st_name = 1u << 30;
		assert_int_equal(find(tables[i].tag, tables[i].off, "second", &symbol), -EBADMSG);
	}
	make_content();
	assert_int_equal(find(DT_GNU_HASH, (size_t)1 << 40, "second", &symbol), -EBADMSG);
	assert_int_equal(find(DT_STRSZ, 0, "second", &symbol), 0); /* STRSZ does not cover the name, but it is found */
}

/* The hash chain ends with the file: the search does not run on in what follows. */
static void test_refuses_chain_without_end(void **state)
{
	static uint8_t zeros[64 << 10];
	static struct bytes large;
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	struct dynamic_symbol symbol;

	make_content();
	for (uint32_t i = 0; i < NR_CHAIN; i++)
		content.gnu.chain[i] &= ~1u;
	memset(&content.sysv, 0, sizeof(content.sysv));
	assert_int_equal(find(DT_GNU_HASH, tables[0].off, "fourth", &symbol), -EBADMSG);
	elf = open_image(DT_GNU_HASH, at_of(tables[0].off));
	memcpy(&large, &image, sizeof(image));
	large.size = IMAGE_CONTENT_OFF + sizeof(content);
	put(&large, zeros, sizeof(zeros));
	((Elf64_Phdr *)(large.data + IMAGE_PHDRS_OFF))->p_filesz = large.size;
	((Elf64_Ehdr *)large.data)->e_shoff = ((Elf64_Ehdr *)large.data)->e_shnum = ((Elf64_Ehdr *)large.data)->e_shstrndx = 0;
	elf_file_free(MOVE(elf));
	assert_int_equal(elf_file_open_memory(large.data, large.size, NULL, &elf), 0);
	assert_int_equal(dynamic_symbol_find(elf, "fourth", &symbol), -EBADMSG);
	assert_int_equal(dynamic_symbol_find(elf, "second", &symbol), 0);
}

static void test_reads_addresses(void **state)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	uint64_t value = 7;

	make_content();
	elf = open_image(DT_DEBUG, 0);
	assert_int_equal(elf_file_read_vaddr(elf, at_of(offsetof(struct content, value)), &value, sizeof(value)), 0);
	assert_int_equal(value, 0x1122334455667788);
	assert_int_equal(elf_file_read_vaddr(elf, at_of(sizeof(content)), &value, 1), -EFAULT);     /* .bss */
	assert_int_equal(elf_file_read_vaddr(elf, at_of(sizeof(content)) - 4, &value, 8), -EFAULT); /* half of it */
	assert_int_equal(elf_file_read_vaddr(elf, UINT64_MAX, &value, 8), -EFAULT);
}

struct symbols {
	Elf64_Sym *symbols;
	char *names;
	size_t nr;
};

/* Does the file define the name at this address? Any version of the symbol will do. */
static int is_defined_there(const struct symbols *symbols, const char *name, const struct dynamic_symbol *found)
{
	for (size_t i = 0; i < symbols->nr; i++) {
		const Elf64_Sym *symbol = &symbols->symbols[i];

		if (symbol->st_shndx && symbol->st_value == found->elf_vaddr && symbol->st_size == found->size_bytes &&
		    ELF64_ST_TYPE(symbol->st_info) == found->type && !strcmp(symbols->names + symbol->st_name, name))
			return 1;
	}
	return 0;
}

/* Compares with the section headers and the symbols, read one by one. */
static size_t check_file(const char *path)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(freep) void *bytes = NULL;
	CLEANUP(freep) void *names = NULL;
	const struct elf_section *section;
	struct symbols symbols;
	struct dynamic_symbol found;
	size_t size, names_size, nr_found = 0;

	assert_int_equal(elf_file_open_fd(open(path, O_RDONLY | O_CLOEXEC), NULL, &elf), 0);
	section = elf_file_find_section(elf, ".dynsym");
	assert_non_null(section);
	assert_int_equal(elf_file_read_section(elf, section, 1 << 24, NULL, &bytes, &size), 0);
	assert_int_equal(elf_file_read_section(elf, elf_file_section(elf, section->link), 1 << 24, NULL, &names, &names_size), 0);
	symbols = (struct symbols){ .symbols = bytes, .names = names, .nr = size / sizeof(Elf64_Sym) };
	for (size_t i = 1; i < symbols.nr; i++) {
		const char *name = symbols.names + symbols.symbols[i].st_name;
		int err = dynamic_symbol_find(elf, name, &found);

		if (symbols.symbols[i].st_shndx == SHN_UNDEF && err == -ENOENT)
			continue;
		assert_int_equal(err, 0);
		assert_true(is_defined_there(&symbols, name, &found));
		nr_found++;
	}
	assert_int_equal(dynamic_symbol_find(elf, "no_such_symbol_in_any_file", &found), -ENOENT);
	return nr_found;
}

static int find_libc(struct dl_phdr_info *info, size_t size, void *path)
{
	if (strstr(info->dlpi_name, "libc.so"))
		snprintf(path, 4096, "%s", info->dlpi_name);
	return 0;
}

static void test_real_files(void **state)
{
	char path[4096] = "";

	dl_iterate_phdr(find_libc, path);
	assert_true(check_file(path) > 1000);
	if (!access("/usr/bin/python3", R_OK))
		check_file("/usr/bin/python3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finds_by_each_table),
		cmocka_unit_test(test_refuses_broken_tables),
		cmocka_unit_test(test_refuses_chain_without_end),
		cmocka_unit_test(test_reads_addresses),
		cmocka_unit_test(test_real_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
