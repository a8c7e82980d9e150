// SPDX-License-Identifier: Apache-2.0
/* Finds a Go program's .gopclntab, and runtime.firstmoduledata, which has the base addresses of the table's offsets. */
#include <elf.h>
#include <errno.h>

#include "pclntab/go_pclntab_private.h"

#define MAX_TABLE_BYTES ((size_t)512 << 20) /* the largest seen has 90 MB */
#define MAX_RELA_BYTES	((size_t)256 << 20)
#define WINDOW_BYTES	65536u
#define TABLE_ALIGN	8
#define MIN_TABLE_BYTES 72 /* the header */

/* struct moduledata in words (src/runtime/symtab.go, 1.18 to 1.27). go:func.* moved when the coverage counters were added. */
enum { MODULE_HEADER = 0, MODULE_MIN_PC = 20, MODULE_MAX_PC = 21, MODULE_TEXT = 22, MODULE_END_TEXT = 23, MODULE_GO_FUNC_118 = 38,
       MODULE_GO_FUNC_120 = 40, MODULE_NR_WORDS = 41 };

int go_file_off(const struct elf_file *elf, uint64_t vaddr, uint64_t *ret_file_off, uint64_t *ret_size)
{
	for (uint32_t i = 0; i < elf_file_nr_segments(elf); i++) {
		const struct elf_segment *segment = elf_file_segment(elf, i);
		uint64_t off = vaddr - segment->vaddr;

		if (vaddr < segment->vaddr || off >= segment->file_size || segment->file_off > elf_file_size(elf) ||
		    segment->file_size > elf_file_size(elf) - segment->file_off)
			continue;
		*ret_file_off = segment->file_off + off;
		*ret_size = segment->file_size - off;
		return 0;
	}
	return -ENOENT;
}

/* Called for each relocation of type R_X86_64_RELATIVE. A non-zero result ends the search. */
typedef int (*relocation_fn)(void *arg, uint64_t vaddr, uint64_t value);

static int each_relative(const struct elf_file *elf, relocation_fn each, void *arg)
{
	for (uint32_t i = 0; i < elf_file_nr_sections(elf); i++) {
		const struct elf_section *section = elf_file_section(elf, i);
		CLEANUP(freep) void *bytes = NULL;
		struct reader r;
		size_t size;

		if (section->type != SHT_RELA || !(section->flags & SHF_ALLOC) ||
		    elf_file_read_section(elf, section, MAX_RELA_BYTES, NULL, &bytes, &size))
			continue;
		r = reader_of(bytes, size);
		while (reader_left(&r) >= sizeof(Elf64_Rela)) {
			uint64_t vaddr = reader_u64(&r), info = reader_u64(&r), value = reader_u64(&r);
			int err = ELF64_R_TYPE(info) == R_X86_64_RELATIVE ? each(arg, vaddr, value) : 0;

			if (err)
				return err;
		}
	}
	return 0;
}

struct words {
	uint64_t vaddr, *words;
	uint32_t nr;
};

static int put_word(void *arg, uint64_t vaddr, uint64_t value)
{
	struct words *words = arg;

	if (vaddr >= words->vaddr && (vaddr - words->vaddr) / 8 < words->nr && (vaddr - words->vaddr) % 8 == 0)
		words->words[(vaddr - words->vaddr) / 8] = value;
	return 0;
}

int go_read_words(const struct elf_file *elf, uint64_t vaddr, uint64_t *words, uint32_t nr)
{
	struct words to = { .vaddr = vaddr, .words = words, .nr = nr };
	uint64_t file_off, size;

	if (go_file_off(elf, vaddr, &file_off, &size) || size < (uint64_t)nr * 8 || elf_file_read_at(elf, file_off, words, (size_t)nr * 8))
		return -EBADMSG;
	return each_relative(elf, put_word, &to);
}

struct search {
	uint64_t value; /* to look for */
	uint64_t found[16];
	uint32_t nr;
};

static int note_word(void *arg, uint64_t vaddr, uint64_t value)
{
	struct search *search = arg;

	if (value == search->value && search->nr < ARRAY_SIZE(search->found))
		search->found[search->nr++] = vaddr;
	return search->nr == ARRAY_SIZE(search->found);
}

/* Finds the words of writable data that equal the value. */
static void search_data(const struct elf_file *elf, struct search *search)
{
	static const size_t words_of_window = WINDOW_BYTES / 8;
	CLEANUP(freep) uint64_t *window = malloc(WINDOW_BYTES);

	for (uint32_t i = 0; window && i < elf_file_nr_segments(elf); i++) {
		const struct elf_segment *segment = elf_file_segment(elf, i);
		uint64_t size = segment->file_size & ~7ULL;

		if (!(segment->flags & PF_W))
			continue;
		for (uint64_t off = 0; off < size; off += WINDOW_BYTES) {
			size_t nr = size - off < WINDOW_BYTES ? (size_t)(size - off) / 8 : words_of_window;

			if (elf_file_read_at(elf, segment->file_off + off, window, nr * 8))
				break;
			for (size_t j = 0; j < nr; j++) {
				if (window[j] == search->value && note_word(search, segment->vaddr + off + j * 8, window[j]))
					return;
			}
		}
	}
}

static bool is_module(const struct go_pclntab *table, const uint64_t *words)
{
	return words[MODULE_HEADER] == table->vaddr && words[MODULE_TEXT] && words[MODULE_TEXT] < words[MODULE_END_TEXT] &&
	       words[MODULE_MIN_PC] >= words[MODULE_TEXT] && words[MODULE_MIN_PC] < words[MODULE_MAX_PC] &&
	       words[MODULE_MAX_PC] <= words[MODULE_END_TEXT];
}

int go_module_read(struct go_pclntab *table, uint64_t *ret_text_vaddr, uint64_t *ret_go_func_vaddr)
{
	const struct elf_section *section = elf_file_find_section(table->elf, ".go.module"); /* 1.26 and later */
	struct search search = { .value = table->vaddr };
	uint64_t words[MODULE_NR_WORDS];

	if (section) {
		search.found[search.nr++] = section->vaddr;
	} else {
		search_data(table->elf, &search);
		if (search.nr < ARRAY_SIZE(search.found))
			(void)each_relative(table->elf, note_word, &search);
	}
	for (uint32_t i = 0; i < search.nr; i++) {
		if (go_read_words(table->elf, search.found[i], words, MODULE_NR_WORDS) || !is_module(table, words))
			continue;
		*ret_text_vaddr = words[MODULE_TEXT];
		*ret_go_func_vaddr = words[table->layout == GO_LAYOUT_120 ? MODULE_GO_FUNC_120 : MODULE_GO_FUNC_118];
		return 0;
	}
	return -ENODATA;
}

/* Is this a table's header? It begins with the magic number, two zero bytes, 1 and 8. From its start, the file has `size` bytes, of which
 * the first are in `bytes`. */
static bool is_header(const uint8_t *bytes, size_t nr_bytes, uint64_t size)
{
	static const uint8_t rest[] = { 0xff, 0xff, 0xff, 0, 0, 1, 8 };
	struct reader r = reader_of(bytes, nr_bytes);
	uint64_t nr_functions;

	if (nr_bytes < MIN_TABLE_BYTES || (bytes[0] != 0xfa && bytes[0] != 0xf0 && bytes[0] != 0xf1) ||
	    memcmp(bytes + 1, rest, sizeof(rest)))
		return false;
	reader_skip(&r, 8);
	nr_functions = reader_u64(&r);
	reader_skip(&r, bytes[0] == 0xfa ? 8 : 16);
	if (!nr_functions || nr_functions > size)
		return false;
	for (int i = 0; i < 5; i++) {
		if (reader_u64(&r) > size)
			return false;
	}
	return true;
}

/* Finds the first table header in a segment. The table is assumed to reach to the segment's end. */
static bool search_segment(const struct elf_file *elf, const struct elf_segment *segment, uint8_t *window, struct elf_section *ret_section)
{
	for (uint64_t off = 0; off < segment->file_size; off += WINDOW_BYTES) {
		uint64_t left = segment->file_size - off;
		/* a header that begins near the window's end is seen whole */
		size_t size = left < WINDOW_BYTES + MIN_TABLE_BYTES ? (size_t)left : WINDOW_BYTES + MIN_TABLE_BYTES;

		if (elf_file_read_at(elf, segment->file_off + off, window, size))
			return false;
		for (size_t at = 0; at < WINDOW_BYTES && at < size; at += TABLE_ALIGN) {
			if (!is_header(window + at, size - at, left - at))
				continue;
			ret_section->vaddr = segment->vaddr + off + at;
			ret_section->file_off = segment->file_off + off + at;
			ret_section->size = left - at < MAX_TABLE_BYTES ? left - at : MAX_TABLE_BYTES;
			return true;
		}
	}
	return false;
}

static int search_table(const struct elf_file *elf, struct elf_section *ret_section)
{
	CLEANUP(freep) uint8_t *window = malloc(WINDOW_BYTES + MIN_TABLE_BYTES);

	if (!window)
		return -ENOMEM;
	for (uint32_t i = 0; i < elf_file_nr_segments(elf); i++) {
		if (search_segment(elf, elf_file_segment(elf, i), window, ret_section))
			return 0;
	}
	return -ENODATA;
}

/* Without section headers any file may be Go's. The linker may have merged the table into another section (ld into .data.rel.ro, for PIE
 * before 1.26). */
static bool may_be_go(const struct elf_file *elf)
{
	return !elf_file_nr_sections(elf) || elf_file_find_section(elf, ".go.buildinfo") || elf_file_find_section(elf, ".note.go.buildid");
}

int go_section_read(const struct elf_file *elf, struct diag *diag, struct go_pclntab *table)
{
	const struct elf_section *section = elf_file_find_section(elf, ".gopclntab");
	struct elf_section searched = { .name = ".gopclntab", .type = SHT_PROGBITS };
	int err;

	if (!section)
		section = elf_file_find_section(elf, ".data.rel.ro.gopclntab");
	if (!section) {
		if (!may_be_go(elf))
			return -ENODATA;
		err = search_table(elf, &searched);
		if (err)
			return err;
		section = &searched;
	}
	table->vaddr = section->vaddr;
	return elf_file_read_section(elf, section, MAX_TABLE_BYTES, diag, &table->bytes, &table->size);
}
