// SPDX-License-Identifier: Apache-2.0
#include "elf/dynamic_symbol.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "elf/dynamic_section.h"

#define MAX_CHAIN 4096u       /* symbols in one bucket; linkers aim at a handful */
#define MAX_SCANNED (1u << 20) /* without a hash table */

struct search {
	const struct elf_file *elf;
	struct dynamic_section section;
	const char *name;
	struct dynamic_symbol *ret_symbol;
};

static int read_word(const struct search *search, uint64_t elf_vaddr, uint32_t *ret_word)
{
	return elf_file_read_vaddr(search->elf, elf_vaddr, ret_word, sizeof(*ret_word)) ? -EBADMSG : 0;
}

/* Is symbol i the one? 0: yes, it is returned; -ENOENT: no; -EBADMSG. */
static int try_symbol(const struct search *search, uint64_t i)
{
	Elf64_Sym symbol;
	int err = dynamic_section_symbol(search->elf, &search->section, i, &symbol);

	if (err)
		return err;
	if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_BIND(symbol.st_info) == STB_LOCAL)
		return -ENOENT;
	err = dynamic_section_is_name(search->elf, &search->section, symbol.st_name, search->name);
	if (err <= 0)
		return err ? err : -ENOENT;
	*search->ret_symbol =
	    (struct dynamic_symbol){ .elf_vaddr = symbol.st_value, .size_bytes = symbol.st_size, .type = ELF64_ST_TYPE(symbol.st_info) };
	return 0;
}

static uint32_t gnu_hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (uint8_t)*name;
	return hash;
}

/* A bucket has the number of its first symbol; the others follow that. The chain has one word per symbol: its hash, with the lowest bit set
 * for the last one of the bucket. */
static int find_by_gnu_hash(const struct search *search)
{
	uint32_t hash = gnu_hash_of(search->name), i, word;
	struct {
		uint32_t nr_buckets, first_symbol, nr_filter_words, filter_shift;
	} head;
	uint64_t filter = search->section.gnu_hash + sizeof(head), buckets, chain, bits;

	if (elf_file_read_vaddr(search->elf, search->section.gnu_hash, &head, sizeof(head)) || !head.nr_buckets || !head.nr_filter_words)
		return -EBADMSG;
	if (elf_file_read_vaddr(search->elf, filter + (hash / 64 % head.nr_filter_words) * sizeof(bits), &bits, sizeof(bits)))
		return -EBADMSG;
	if (!(bits >> hash % 64 & bits >> (hash >> (head.filter_shift & 31)) % 64 & 1))
		return -ENOENT;
	buckets = filter + (uint64_t)head.nr_filter_words * sizeof(bits);
	chain = buckets + (uint64_t)head.nr_buckets * sizeof(word);
	if (read_word(search, buckets + (uint64_t)(hash % head.nr_buckets) * sizeof(word), &i))
		return -EBADMSG;
	if (!i)
		return -ENOENT;
	if (i < head.first_symbol)
		return -EBADMSG;
	for (uint32_t step = 0; step < MAX_CHAIN; step++) {
		uint64_t symbol = (uint64_t)i + step;
		int err;

		if (read_word(search, chain + (symbol - head.first_symbol) * sizeof(word), &word))
			return -EBADMSG;
		err = (word | 1) == (hash | 1) ? try_symbol(search, symbol) : -ENOENT;
		if (err != -ENOENT)
			return err;
		if (word & 1)
			return -ENOENT;
	}
	return -EBADMSG;
}

static uint32_t sysv_hash_of(const char *name)
{
	uint32_t hash = 0;

	for (; *name; name++) {
		hash = (hash << 4) + (uint8_t)*name;
		hash ^= hash >> 24 & 0xf0;
		hash &= 0x0fffffff;
	}
	return hash;
}

static int find_by_hash(const struct search *search)
{
	uint64_t buckets = search->section.hash + 8, chain;
	uint32_t head[2], i; /* number of buckets, of symbols */

	if (elf_file_read_vaddr(search->elf, search->section.hash, head, sizeof(head)) || !head[0])
		return -EBADMSG;
	chain = buckets + (uint64_t)head[0] * sizeof(i);
	if (read_word(search, buckets + (uint64_t)(sysv_hash_of(search->name) % head[0]) * sizeof(i), &i))
		return -EBADMSG;
	for (uint32_t step = 0; step < MAX_CHAIN; step++) {
		int err;

		if (i == STN_UNDEF)
			return -ENOENT;
		if (i >= head[1])
			return -EBADMSG;
		err = try_symbol(search, i);
		if (err != -ENOENT)
			return err;
		if (read_word(search, chain + (uint64_t)i * sizeof(i), &i))
			return -EBADMSG;
	}
	return -EBADMSG;
}

/* Only the section headers have the number of symbols. */
static int find_by_scan(const struct search *search)
{
	const struct elf_section *section = elf_file_find_section(search->elf, ".dynsym");
	uint64_t nr = section ? section->size / sizeof(Elf64_Sym) : 0;

	if (nr > MAX_SCANNED)
		return -EBADMSG;
	for (uint64_t i = 1; i < nr; i++) {
		int err = try_symbol(search, i);

		if (err != -ENOENT)
			return err;
	}
	return -ENOENT;
}

int dynamic_symbol_find(const struct elf_file *elf, const char *name, struct dynamic_symbol *ret_symbol)
{
	struct search search = { .elf = elf, .name = name, .ret_symbol = ret_symbol };
	int err = dynamic_section_read(elf, &search.section);

	if (err)
		return err;
	if (search.section.gnu_hash)
		return find_by_gnu_hash(&search);
	return search.section.hash ? find_by_hash(&search) : find_by_scan(&search);
}
