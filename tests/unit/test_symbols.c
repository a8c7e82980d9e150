// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "symbols/plt_names.h"
#include "symbols/symbols.h"

/* A made-up file: .text [0x1000, 0x3000), .asm [0x4000, 0x24000), both code; .data [0x30000, 0x31000); and one symbol table. */
enum { SECTION_NULL, SECTION_TEXT, SECTION_ASM, SECTION_DATA, SECTION_SYMTAB, SECTION_STRTAB, SECTION_DYNSYM, NR_SECTIONS };

struct image {
	struct buffer symtab, dynsym, strtab, bytes;
	Elf64_Shdr sections[NR_SECTIONS];
};

static void image_init(struct image *image)
{
	*image = (struct image){ .symtab = BUFFER_INIT(1 << 24),
				 .dynsym = BUFFER_INIT(1 << 24),
				 .strtab = BUFFER_INIT(1 << 24),
				 .bytes = BUFFER_INIT(1 << 26) };
	image->sections[SECTION_TEXT] =
	    (Elf64_Shdr){ .sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = 0x1000, .sh_size = 0x2000 };
	image->sections[SECTION_ASM] =
	    (Elf64_Shdr){ .sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = 0x4000, .sh_size = 0x20000 };
	image->sections[SECTION_DATA] =
	    (Elf64_Shdr){ .sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC | SHF_WRITE, .sh_addr = 0x30000, .sh_size = 0x1000 };
	image->sections[SECTION_SYMTAB] = (Elf64_Shdr){ .sh_type = SHT_SYMTAB, .sh_link = SECTION_STRTAB, .sh_entsize = sizeof(Elf64_Sym) };
	image->sections[SECTION_STRTAB] = (Elf64_Shdr){ .sh_type = SHT_STRTAB };
	image->sections[SECTION_DYNSYM] = (Elf64_Shdr){ .sh_type = SHT_DYNSYM, .sh_link = SECTION_STRTAB, .sh_entsize = sizeof(Elf64_Sym) };
	buffer_append(&image->strtab, "", 1);
}

static void image_done(struct image *image)
{
	buffer_done(&image->symtab);
	buffer_done(&image->dynsym);
	buffer_done(&image->strtab);
	buffer_done(&image->bytes);
}

static void add_to(struct image *image, struct buffer *table, const char *name, int bind, int type, uint16_t section, uint64_t vaddr,
		   uint64_t size)
{
	Elf64_Sym sym = { .st_name = (uint32_t)image->strtab.size,
			  .st_info = ELF64_ST_INFO(bind, type),
			  .st_shndx = section,
			  .st_value = vaddr,
			  .st_size = size };

	buffer_append(&image->strtab, name, strlen(name) + 1);
	buffer_append(table, &sym, sizeof(sym));
}

static void add(struct image *image, const char *name, uint64_t vaddr, uint64_t size)
{
	add_to(image, &image->symtab, name, STB_GLOBAL, STT_FUNC, vaddr < 0x4000 ? SECTION_TEXT : SECTION_ASM, vaddr, size);
}

static void place(struct image *image, uint32_t section, const struct buffer *content)
{
	image->sections[section].sh_offset = image->bytes.size;
	image->sections[section].sh_size = content->size;
	buffer_append(&image->bytes, content->data ? content->data : "", content->size);
}

static void assemble(struct image *image)
{
	Elf64_Ehdr header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			      .e_type = ET_DYN,
			      .e_machine = EM_X86_64,
			      .e_version = EV_CURRENT,
			      .e_ehsize = sizeof(Elf64_Ehdr),
			      .e_phentsize = sizeof(Elf64_Phdr),
			      .e_shentsize = sizeof(Elf64_Shdr),
			      .e_shnum = NR_SECTIONS };

	image->bytes.size = 0;
	buffer_append(&image->bytes, &header, sizeof(header));
	place(image, SECTION_SYMTAB, &image->symtab);
	place(image, SECTION_DYNSYM, &image->dynsym);
	place(image, SECTION_STRTAB, &image->strtab);
	buffer_append(&image->bytes, "\0\0\0\0\0\0\0", -image->bytes.size % 8);
	header.e_shoff = image->bytes.size;
	buffer_append(&image->bytes, image->sections, sizeof(image->sections));
	assert_int_equal(image->bytes.err, 0);
	memcpy(image->bytes.data, &header, sizeof(header));
}

static int read_bytes(struct image *image, struct symbol_table **ret_table)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	struct diag diag = { 0 };

	if (elf_file_open_memory(image->bytes.data, image->bytes.size, &diag, &elf))
		fail_msg("%s", diag.text);
	return symbol_table_read(elf, NULL, NULL, ret_table);
}

static int read_image(struct image *image, struct symbol_table **ret_table)
{
	assemble(image);
	return read_bytes(image, ret_table);
}

static void assert_symbol(const struct symbol_table *table, uint64_t elf_vaddr, const char *want)
{
	struct symbol symbol = { 0 };
	int err = symbol_table_find(table, elf_vaddr, &symbol);

	if (!want) {
		if (!err)
			fail_msg("%#lx is %s+%#lx, not a gap", elf_vaddr, symbol.name, elf_vaddr - symbol.elf_vaddr);
		assert_int_equal(err, -ENOENT);
		return;
	}
	if (err)
		fail_msg("%#lx is a gap, not %s", elf_vaddr, want);
	assert_string_equal(symbol.name, want);
	assert_true(elf_vaddr - symbol.elf_vaddr < symbol.size_bytes);
}

static void functions_cover_their_bytes(void **state)
{
	CLEANUP(symbol_table_freep) struct symbol_table *table = NULL;
	CLEANUP(image_done) struct image image;

	image_init(&image);
	add(&image, "second", 0x1100, 0x80);
	add(&image, "first", 0x1000, 0x100);
	add(&image, "huge", 0x2000, UINT64_MAX - 0x100);
	add_to(&image, &image.symtab, "resolver", STB_GLOBAL, STT_GNU_IFUNC, SECTION_TEXT, 0x1800, 4);
	assert_int_equal(read_image(&image, &table), 0);
	assert_int_equal(symbol_table_size(table), 4);
	assert_false(symbol_table_is_dynamic(table));
	assert_symbol(table, 0xfff, NULL);
	assert_symbol(table, 0x1000, "first");
	assert_symbol(table, 0x10ff, "first");
	assert_symbol(table, 0x1100, "second");
	assert_symbol(table, 0x117f, "second");
	assert_symbol(table, 0x1180, NULL);
	assert_symbol(table, 0x1803, "resolver");
	assert_symbol(table, 0x2fff, "huge");
	assert_symbol(table, 0, NULL);
	assert_symbol(table, UINT64_MAX, NULL);
}

static void what_is_no_function_is_left_out(void **state)
{
	CLEANUP(symbol_table_freep) struct symbol_table *table = NULL;
	CLEANUP(image_done) struct image image;
	struct buffer *symtab;

	image_init(&image);
	symtab = &image.symtab;
	image.sections[SECTION_NULL].sh_flags = SHF_EXECINSTR; /* deliberately wrong */
	add_to(&image, symtab, "undefined", STB_GLOBAL, STT_FUNC, SHN_UNDEF, 0x1000, 0x100);
	add_to(&image, symtab, "object", STB_GLOBAL, STT_OBJECT, SECTION_TEXT, 0x1000, 0x100);
	add_to(&image, symtab, "file.c", STB_LOCAL, STT_FILE, SHN_ABS, 0, 0);
	add_to(&image, symtab, "", STB_LOCAL, STT_SECTION, SECTION_TEXT, 0x1000, 0);
	add_to(&image, symtab, "", STB_LOCAL, STT_FUNC, SECTION_TEXT, 0x1000, 0x100);
	add_to(&image, symtab, ".Lloop", STB_LOCAL, STT_NOTYPE, SECTION_TEXT, 0x1000, 0);
	add_to(&image, symtab, "$x", STB_LOCAL, STT_NOTYPE, SECTION_TEXT, 0x1000, 0);
	add_to(&image, symtab, "$d.42", STB_LOCAL, STT_NOTYPE, SECTION_TEXT, 0x1000, 0);
	add_to(&image, symtab, "variable", STB_GLOBAL, STT_NOTYPE, SECTION_DATA, 0x30000, 8);
	add_to(&image, symtab, "number", STB_GLOBAL, STT_NOTYPE, SHN_ABS, 0x1000, 8);
	add_to(&image, symtab, "outside", STB_GLOBAL, STT_FUNC, SHN_ABS, 0x999000, 8);
	add_to(&image, symtab, "common", STB_GLOBAL, STT_NOTYPE, SHN_COMMON, 0x1000, 8);
	add_to(&image, symtab, "end_of_text", STB_GLOBAL, STT_NOTYPE, SECTION_TEXT, 0x3000, 0);
	assert_int_equal(read_image(&image, &table), -ENODATA);
	add_to(&image, symtab, "$dollar", STB_LOCAL, STT_FUNC, SECTION_TEXT, 0x1200, 8);
	assert_int_equal(read_image(&image, &table), 0);
	assert_int_equal(symbol_table_size(table), 1);
	assert_symbol(table, 0x1200, "$dollar");
}

static void versions_are_cut_off(void **state)
{
	CLEANUP(symbol_table_freep) struct symbol_table *table = NULL;
	CLEANUP(image_done) struct image image;

	image_init(&image);
	add(&image, "default@@VERSION_1", 0x1000, 8);
	add(&image, "old@VERSION_0", 0x1100, 8);
	add(&image, "@odd", 0x1200, 8);
	assert_int_equal(read_image(&image, &table), 0);
	assert_symbol(table, 0x1000, "default");
	assert_symbol(table, 0x1100, "old");
	assert_symbol(table, 0x1200, "@odd");
}

static void sizes_are_guessed(void **state)
{
	CLEANUP(symbol_table_freep) struct symbol_table *table = NULL;
	CLEANUP(image_done) struct image image;

	image_init(&image);
	add_to(&image, &image.symtab, "up_to_the_next", STB_GLOBAL, STT_NOTYPE, SECTION_TEXT, 0x1000, 0);
	add(&image, "sized", 0x1400, 0x100);
	add_to(&image, &image.symtab, "label", STB_GLOBAL, STT_NOTYPE, SECTION_TEXT, 0x1480, 0);
	add_to(&image, &image.symtab, "top", STB_GLOBAL, STT_NOTYPE, SECTION_TEXT, 0x1400, 0);
	add(&image, "entry_within", 0x14c0, 0);
	add(&image, "alias_without_size", 0x1600, 0);
	add(&image, "a.cold", 0x1600, 0); /* an empty symbol, not one of unknown size */
	add(&image, "alias_with_size____", 0x1600, 0x10);
	add(&image, "up_to_the_end", 0x2f00, 0);
	add(&image, "up_to_the_cap", 0x4000, 0);
	add_to(&image, &image.symtab, "local", STB_LOCAL, STT_FUNC, SECTION_ASM, 0x23000, 8); /* the local name is kept */
	assert_int_equal(read_image(&image, &table), 0);
	assert_symbol(table, 0x13ff, "up_to_the_next");
	assert_symbol(table, 0x1400, "sized");
	assert_symbol(table, 0x1490, "sized");
	assert_symbol(table, 0x14c0, "entry_within");
	assert_symbol(table, 0x14ff, "entry_within");
	assert_symbol(table, 0x1500, NULL);
	assert_symbol(table, 0x160f, "alias_without_size");
	assert_symbol(table, 0x1610, NULL);
	assert_symbol(table, 0x2fff, "up_to_the_end");
	assert_symbol(table, 0x3000, NULL);
	assert_symbol(table, 0x4000 + SYMBOL_MAX_GUESSED_BYTES - 1, "up_to_the_cap");
	assert_symbol(table, 0x4000 + SYMBOL_MAX_GUESSED_BYTES, NULL);
}

static void one_alias_is_chosen(void **state)
{
	CLEANUP(symbol_table_freep) struct symbol_table *table = NULL;
	CLEANUP(image_done) struct image image;

	image_init(&image);
	add_to(&image, &image.symtab, "a", STB_LOCAL, STT_FUNC, SECTION_TEXT, 0x1000, 0x10);
	add_to(&image, &image.symtab, "weak", STB_WEAK, STT_FUNC, SECTION_TEXT, 0x1000, 0x10);
	add(&image, "global_longer", 0x1000, 0x10);
	add(&image, "global_b", 0x1000, 0x10);
	add(&image, "global_a", 0x1000, 0x10);
	add_to(&image, &image.symtab, "local_and_longest", STB_LOCAL, STT_FUNC, SECTION_TEXT, 0x1000, 0x40);
	assert_int_equal(read_image(&image, &table), 0);
	assert_int_equal(symbol_table_size(table), 2);
	assert_symbol(table, 0x1000, "global_a");
	assert_symbol(table, 0x100f, "global_a");
	assert_symbol(table, 0x1010, "local_and_longest");
	assert_symbol(table, 0x1040, NULL);
}

static uint32_t prng(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

#define LAST_VADDR (0x1000 + 360)

struct range {
	uint32_t start, size, bind;
	char name[16];
};

/* Whether `a` is the right answer for an address that both cover. */
static bool is_better(const struct range *a, const struct range *b)
{
	static const int rank[] = { [STB_GLOBAL] = 0, [STB_WEAK] = 1, [STB_LOCAL] = 2 };

	if (a->start != b->start)
		return a->start > b->start;
	if (a->bind != b->bind)
		return rank[a->bind] < rank[b->bind];
	if (strlen(a->name) != strlen(b->name))
		return strlen(a->name) < strlen(b->name);
	return strcmp(a->name, b->name) < 0;
}

/* Every address of the extent has the same symbol, which is why names can be kept for all of it. */
static void assert_extent(const struct symbol_table *table, uint32_t vaddr, const struct range *const *of)
{
	uint64_t start, end;

	symbol_table_extent(table, vaddr, &start, &end);
	assert_in_range(vaddr, start, end - 1);
	for (uint64_t at = start < 0x0ff8 ? 0x0ff8 : start; at < end && at < LAST_VADDR; at++)
		assert_ptr_equal(of[at - 0x0ff8], of[vaddr - 0x0ff8]);
}

/* What a table of all symbols says of the address must be what the table for it says, and its extent must lie within. */
static void assert_same(const struct symbol_table *all, const struct symbol_table *few, uint64_t vaddr)
{
	struct symbol want = { 0 }, have = { 0 };
	int want_err = symbol_table_find(all, vaddr, &want), err = symbol_table_find(few, vaddr, &have);
	uint64_t want_start, want_end, start, end;

	if (err != want_err ||
	    (!err && (have.elf_vaddr != want.elf_vaddr || have.size_bytes != want.size_bytes || strcmp(have.name, want.name))))
		fail_msg("%#lx is %s+%#lx (%d), not %s+%#lx (%d)", vaddr, err ? "-" : have.name, vaddr - have.elf_vaddr, err,
			 want_err ? "-" : want.name, vaddr - want.elf_vaddr, want_err);
	symbol_table_extent(all, vaddr, &want_start, &want_end);
	symbol_table_extent(few, vaddr, &start, &end);
	if (vaddr < start || vaddr >= end || start < want_start || end > want_end)
		fail_msg("%#lx: %#lx to %#lx is not within %#lx to %#lx", vaddr, start, end, want_start, want_end);
}

/* Reads the file for these addresses alone. */
static void compare_focus(const struct elf_file *elf, const struct symbol_table *all, const uint64_t *vaddrs, size_t nr)
{
	const struct symbol_addresses addresses = { vaddrs, nr };
	CLEANUP(symbol_table_freep) struct symbol_table *few = NULL;
	struct symbol none;

	assert_int_equal(symbol_table_read(elf, &addresses, NULL, &few), 0);
	for (size_t i = 0; i < nr; i++)
		assert_same(all, few, vaddrs[i]);
	assert_int_equal(symbol_table_find(few, UINT64_MAX - 1, &none), -ENOENT); /* not asked for */
}

#define FOCUS_MAX 8

/* Symbols with and without sizes, labels, aliases and nested ones, so close together that they meet. */
static void a_focus_changes_no_answer(void **state)
{
	for (uint32_t seed = 1; seed <= 3000; seed++) {
		CLEANUP(symbol_table_freep) struct symbol_table *all = NULL;
		CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
		uint32_t random = seed, nr = 1 + prng(&random) % 24;
		uint64_t vaddrs[FOCUS_MAX];
		CLEANUP(image_done) struct image image;

		image_init(&image);
		/* else it may be a file without any */
		add_to(&image, &image.symtab, "sure", STB_GLOBAL, STT_FUNC, SECTION_TEXT, 0x2000, 1);
		for (uint32_t i = 0; i < nr; i++) {
			static const char *const forms[][2] = { { "f", "" },  { "f", "@V" },	{ "$x.", "" },
								{ ".L", "" }, { "f", ".cold" }, { "much_longer_", "" } };
			const char *const *form = forms[prng(&random) % 3 ? 0 : prng(&random) % ARRAY_SIZE(forms)];
			uint32_t size = prng(&random) % 3 ? prng(&random) % 24 : prng(&random) % 2 * 150;
			char name[32];

			snprintf(name, sizeof(name), "%s%u%s", form[0], prng(&random) % 30, form[1]);
			add_to(&image, prng(&random) % 8 ? &image.symtab : &image.dynsym, name, (int)(prng(&random) % 3),
			       prng(&random) % 3 ? STT_FUNC : STT_NOTYPE, SECTION_TEXT, 0x1000 + prng(&random) % 100, size);
		}
		assemble(&image);
		assert_int_equal(elf_file_open_memory(image.bytes.data, image.bytes.size, NULL, &elf), 0);
		assert_int_equal(symbol_table_read(elf, NULL, NULL, &all), 0);
		for (uint32_t round = 0; round < 20; round++) {
			uint32_t nr_asked = 1 + prng(&random) % FOCUS_MAX;

			for (uint32_t i = 0; i < nr_asked; i++)
				vaddrs[i] = 0x0ff8 + prng(&random) % 300;
			compare_focus(elf, all, vaddrs, nr_asked);
		}
	}
}

/* Compares with a plain scan of all symbols. */
static void random_ranges_agree_with_a_scan(void **state)
{
	for (uint32_t seed = 1; seed <= 2000; seed++) {
		CLEANUP(symbol_table_freep) struct symbol_table *table = NULL;
		uint32_t random = seed, nr = 1 + prng(&random) % 40;
		CLEANUP(image_done) struct image image;
		const struct range *of[LAST_VADDR - 0x0ff8];
		struct range ranges[40];

		image_init(&image);
		for (uint32_t i = 0; i < nr; i++) {
			struct range *range = &ranges[i];

			range->start = 0x1000 + prng(&random) % 200;
			range->size = 1 + prng(&random) % (prng(&random) % 4 ? 16 : 150);
			range->bind = prng(&random) % 3;
			snprintf(range->name, sizeof(range->name), "f%u_%0*u", prng(&random) % 4, 1 + (int)(prng(&random) % 3), i);
			add_to(&image, &image.symtab, range->name, (int)range->bind, STT_FUNC, SECTION_TEXT, range->start, range->size);
		}
		assert_int_equal(read_image(&image, &table), 0);
		for (uint32_t vaddr = 0x0ff8; vaddr < LAST_VADDR; vaddr++) {
			const struct range *want = NULL;

			for (uint32_t i = 0; i < nr; i++) {
				if (vaddr >= ranges[i].start && vaddr - ranges[i].start < ranges[i].size &&
				    (!want || is_better(&ranges[i], want)))
					want = &ranges[i];
			}
			assert_symbol(table, vaddr, want ? want->name : NULL);
			of[vaddr - 0x0ff8] = want;
		}
		for (uint32_t vaddr = 0x0ff8; vaddr < LAST_VADDR; vaddr++)
			assert_extent(table, vaddr, of);
	}
}

/* Each range lies in the one before. A look-up behind all but the outermost gives up instead of walking through a million. */
static void nesting_is_bounded(void **state)
{
	for (uint32_t depth = SYMBOL_MAX_NESTING - 2; depth < SYMBOL_MAX_NESTING + 2; depth++) {
		CLEANUP(symbol_table_freep) struct symbol_table *table = NULL;
		CLEANUP(image_done) struct image image;
		char name[16];

		image_init(&image);
		for (uint32_t i = 0; i <= depth; i++) {
			snprintf(name, sizeof(name), "f%u", i);
			add(&image, name, 0x1000 + i, 0x1000 - 2 * i);
		}
		assert_int_equal(read_image(&image, &table), 0);
		assert_symbol(table, 0x1fff, depth < SYMBOL_MAX_NESTING ? "f0" : NULL);
	}
}

static void exported_functions_stand_in(void **state)
{
	CLEANUP(symbol_table_freep) struct symbol_table *table = NULL;
	CLEANUP(image_done) struct image image;

	image_init(&image);
	add_to(&image, &image.dynsym, "exported", STB_GLOBAL, STT_FUNC, SECTION_TEXT, 0x1000, 0x10);
	assert_int_equal(read_image(&image, &table), 0);
	assert_true(symbol_table_is_dynamic(table));
	assert_symbol(table, 0x1000, "exported");
	symbol_table_free(MOVE(table));
	add(&image, "internal", 0x1000, 0x10);
	image.sections[SECTION_SYMTAB].sh_entsize = 7; /* damaged: the other table still works */
	assert_int_equal(read_image(&image, &table), 0);
	assert_symbol(table, 0x1000, "exported");
}

static void damage_is_refused(void **state)
{
	CLEANUP(symbol_table_freep) struct symbol_table *table = NULL;
	CLEANUP(image_done) struct image image;

	image_init(&image);
	add(&image, "good", 0x1000, 0x10);
	image.sections[SECTION_SYMTAB].sh_entsize = 0;
	assert_int_equal(read_image(&image, &table), -EBADMSG);
	image.sections[SECTION_SYMTAB].sh_entsize = sizeof(Elf64_Sym);
	image.sections[SECTION_SYMTAB].sh_link = NR_SECTIONS;
	assert_int_equal(read_image(&image, &table), -EBADMSG);
	image.sections[SECTION_SYMTAB].sh_link = SECTION_STRTAB;
	buffer_append(&image.strtab, "x", 1); /* without a NUL */
	assert_int_equal(read_image(&image, &table), -EBADMSG);
	buffer_append(&image.strtab, "", 1);
	add(&image, "name_outside", 0x1100, 0x10);
	((Elf64_Sym *)image.symtab.data)[1].st_name = (uint32_t)image.strtab.size;
	assert_int_equal(read_image(&image, &table), 0);
	assert_int_equal(symbol_table_size(table), 1);
}

/* nm's lines: "address size type name" or "address type name". */
struct witness {
	uint64_t start, size;
	char type, name[512];
};

static size_t ask_nm(const char *command, struct witness **ret_lines)
{
	struct buffer lines = BUFFER_INIT(1 << 28);
	FILE *nm = popen(command, "re");
	char text[4096];

	assert_non_null(nm);
	while (fgets(text, sizeof(text), nm)) {
		struct witness line = { 0 };

		if (sscanf(text, "%lx %lx %c %511s", &line.start, &line.size, &line.type, line.name) != 4 || !line.size ||
		    !strchr("tTwWi", line.type))
			continue;
		line.name[strcspn(line.name, "@")] = '\0';
		buffer_append(&lines, &line, sizeof(line));
	}
	pclose(nm);
	*ret_lines = (struct witness *)lines.data;
	return lines.size / sizeof(struct witness);
}

/* Each function of nm's list is found at each of its bytes: under its name, an alias, or the name of one nested in it. */
static void compare_with_nm(const char *path, const char *nm_options)
{
	CLEANUP(symbol_table_freep) struct symbol_table *table = NULL;
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	struct witness *lines = NULL;
	uint32_t random = 1;
	char command[1024];
	size_t nr;

	snprintf(command, sizeof(command), "nm -S --defined-only %s %s 2>/dev/null", nm_options, path);
	nr = ask_nm(command, &lines);
	assert_int_equal(elf_file_open_fd(open(path, O_RDONLY | O_CLOEXEC), NULL, &elf), 0);
	assert_int_equal(symbol_table_read(elf, NULL, NULL, &table), 0);
	for (size_t i = 0; i < nr; i++) {
		uint64_t vaddr = lines[i].start + prng(&random) % lines[i].size, start = 0;
		struct symbol symbol;
		bool named = false;

		if (symbol_table_find(table, vaddr, &symbol))
			fail_msg("%s: %s at %#lx is a gap", path, lines[i].name, vaddr);
		for (size_t j = 0; j < nr; j++) { /* nm's innermost symbol, and whether it has our name */
			if (vaddr < lines[j].start || vaddr - lines[j].start >= lines[j].size)
				continue;
			start = lines[j].start > start ? lines[j].start : start;
			named |= lines[j].start == symbol.elf_vaddr && strncmp(lines[j].name, symbol.name, sizeof(lines[j].name) - 1) == 0;
		}
		if (!named || start != symbol.elf_vaddr)
			fail_msg("%s: %s at %#lx became %s at %#lx", path, lines[i].name, vaddr, symbol.name, symbol.elf_vaddr);
	}
	print_message("%s: %zu functions by nm, %u entries\n", path, nr, symbol_table_size(table));
	assert_true(nr > 10);
	free(lines);
}

/* All functions of real files, their stubs, and what is between them: all at once, and some at a time. */
static void compare_focus_of(const char *path)
{
	CLEANUP(symbol_table_freep) struct symbol_table *all = NULL;
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	static uint64_t vaddrs[20000];
	uint32_t random = 7;
	size_t nr = 0;

	assert_int_equal(elf_file_open_fd(open(path, O_RDONLY | O_CLOEXEC), NULL, &elf), 0);
	assert_int_equal(symbol_table_read(elf, NULL, NULL, &all), 0);
	for (uint32_t i = 0; i < elf_file_nr_sections(elf); i++) {
		const struct elf_section *section = elf_file_section(elf, i);

		for (uint32_t n = 0; (section->flags & SHF_EXECINSTR) && section->size && n < 1500 && nr < 20000; n++)
			vaddrs[nr++] = section->vaddr + prng(&random) % section->size;
	}
	assert_true(nr > 1000);
	compare_focus(elf, all, vaddrs, nr);
	for (size_t at = 0; at + 5 < nr; at += nr / 40)
		compare_focus(elf, all, vaddrs + at, 5);
}

static void real_files_agree(void **state)
{
	static const char *const more[] = { "/bin/true", /* has stubs alone */
					    "/usr/bin/python3", "/usr/bin/perl", "/lib/x86_64-linux-gnu/libc.so.6",
					    "/lib/ld-linux-aarch64.so.1" };

	compare_focus_of("/proc/self/exe");
	for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
		if (!access(more[i], R_OK))
			compare_focus_of(more[i]);
	}
}

static void nm_is_of_the_same_mind(void **state)
{
	CLEANUP(fclosep) FILE *maps = fopen("/proc/self/maps", "re");
	char line[1024], path[512];

	if (system("nm --version >/dev/null 2>&1")) {
		print_message("SKIPPED: nm is not installed\n");
		skip();
	}
	assert_non_null(maps);
	snprintf(line, sizeof(line), "/proc/%d/exe", getpid());
	compare_with_nm(line, "");
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%*s %*s %*s %*s %*s %511s", path) == 1 && strstr(path, "/libc.so.6")) {
			compare_with_nm(path, "-D");
			return;
		}
	}
	fail_msg("libc is not mapped");
}

/* Sections may overlap: a file of 8 MB that claims many times as much. */
static int read_stubs_of(uint32_t nr_sections)
{
	const size_t content_off = 4096, plt_bytes = (size_t)8 << 20, size = content_off + plt_bytes;
	const uint8_t jump[] = { 0xff, 0x25, 0x00, 0x10, 0x00, 0x00 }; /* through the slot 0x1000 behind it */
	const Elf64_Rela slot = { .r_offset = 0x1006, .r_info = ELF64_R_INFO(0, R_X86_64_IRELATIVE), .r_addend = 0x100 };
	Elf64_Ehdr header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			      .e_type = ET_DYN,
			      .e_machine = EM_X86_64,
			      .e_shentsize = sizeof(Elf64_Shdr),
			      .e_shoff = 1024,
			      .e_shstrndx = 1 };
	Elf64_Shdr sections[20] = { [1] = { .sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = 512, .sh_size = 7 },
				    [2] = { .sh_name = 6,
					    .sh_type = SHT_RELA,
					    .sh_flags = SHF_ALLOC,
					    .sh_offset = 600,
					    .sh_size = sizeof(slot),
					    .sh_entsize = sizeof(slot) } };
	CLEANUP(plt_names_done) struct plt_names names = { .entries = BUFFER_INIT(0) };
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(freep) char *bytes = calloc(1, size);

	assert_non_null(bytes);
	for (uint32_t i = 0; i < nr_sections; i++)
		sections[3 + i] = (Elf64_Shdr){ .sh_name = 1,
						.sh_type = SHT_PROGBITS,
						.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
						.sh_offset = content_off,
						.sh_size = plt_bytes };
	header.e_shnum = (Elf64_Half)(3 + nr_sections);
	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + 512, "\0.plt\0", 7);
	memcpy(bytes + 600, &slot, sizeof(slot));
	memcpy(bytes + 1024, sections, sizeof(sections));
	memcpy(bytes + content_off, jump, sizeof(jump));
	assert_int_equal(elf_file_open_memory(bytes, size, NULL, &elf), 0);
	return plt_names_read(elf, &names);
}

static void stubs_are_bounded(void **state)
{
	assert_int_equal(read_stubs_of(1), 0);
	assert_int_equal(read_stubs_of(8), 0);
	assert_int_equal(read_stubs_of(9), -EFBIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_cover_their_bytes), cmocka_unit_test(what_is_no_function_is_left_out),
		cmocka_unit_test(versions_are_cut_off),	       cmocka_unit_test(sizes_are_guessed),
		cmocka_unit_test(one_alias_is_chosen),	       cmocka_unit_test(random_ranges_agree_with_a_scan),
		cmocka_unit_test(nesting_is_bounded),	       cmocka_unit_test(exported_functions_stand_in),
		cmocka_unit_test(damage_is_refused),	       cmocka_unit_test(nm_is_of_the_same_mind),
		cmocka_unit_test(stubs_are_bounded),	       cmocka_unit_test(a_focus_changes_no_answer),
		cmocka_unit_test(real_files_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
