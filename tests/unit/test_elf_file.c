// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>
#include <zlib.h>
#include <zstd.h>

#include "elf/elf_file.h"
#include "elf_image.h"

static struct bytes image;

/* A GNU build id note of twenty bytes, after a note of another kind. */
static void put_notes(struct bytes *to, size_t align)
{
	static const char property[16] = "other";

	to->size = 0;
	put_u32(to, 4);
	put_u32(to, 9); /* padded to 12 or to 16 */
	put_u32(to, 5);
	put(to, "GNU", 4);
	put_padding(to, align);
	put(to, property, 9);
	put_padding(to, align);
	put_u32(to, 4);
	put_u32(to, 20);
	put_u32(to, NT_GNU_BUILD_ID);
	put(to, "GNU", 4);
	put_padding(to, align);
	put(to, "\x01\x23\x45\x67\x89\xab\xcd\xef\xff\xee\xdd\xcc\xbb\xaa\x99\x88\x77\x66\x55\x44", 20);
}

static const char build_id_wanted[] = "0123456789abcdefffeeddccbbaa998877665544";

static void make_image(void)
{
	static const Elf64_Phdr phdrs[] = {
		{ .p_type = PT_LOAD, .p_flags = PF_R, .p_offset = 0, .p_vaddr = 0, .p_filesz = 0x1340, .p_memsz = 0x1340 },
		{ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = 0x1340, .p_vaddr = 0x202340, .p_filesz = 0x800, .p_memsz = 0x800 },
		{ .p_type = PT_GNU_EH_FRAME, .p_offset = 0x480, .p_vaddr = 0x480, .p_filesz = 12, .p_memsz = 12 },
	};
	static struct bytes notes;
	const struct image_section sections[] = {
		{ ".note.gnu.build-id", SHT_NOTE, 0x400, notes.data, 0 },
		{ ".text", SHT_PROGBITS, 0x202340, "code", 4 },
		{ ".bss", SHT_NOBITS, 0x300000, NULL, 1 << 30 },
	};
	struct image_section filled[ARRAY_SIZE(sections)];

	put_notes(&notes, 4);
	memcpy(filled, sections, sizeof(filled));
	filled[0].size = notes.size;
	image_make(&image, phdrs, ARRAY_SIZE(phdrs), filled, ARRAY_SIZE(filled));
}

static Elf64_Ehdr *header(void)
{
	return (Elf64_Ehdr *)(void *)image.data;
}

static int open_image(struct elf_file **ret_elf)
{
	return elf_file_open_memory(image.data, image.size, NULL, ret_elf);
}

static void assert_build_id(const char *want)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	char text[2 * BUILD_ID_MAX + 1];

	assert_int_equal(open_image(&elf), 0);
	build_id_text(elf_file_build_id(elf), text);
	assert_string_equal(text, want);
}

static void a_file_is_read(void **state)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	const struct elf_section *text;
	uint64_t file_off, vaddr, size;
	void *bytes;
	size_t got;

	make_image();
	assert_int_equal(open_image(&elf), 0);
	assert_int_equal(elf_file_machine(elf), EM_X86_64);
	assert_int_equal(elf_file_type(elf), ET_DYN);
	assert_int_equal(elf_file_size(elf), image.size);
	assert_int_equal(elf_file_nr_segments(elf), 2);
	assert_int_equal(elf_file_nr_sections(elf), 5);
	assert_int_equal(elf_file_eh_frame_hdr(elf, &file_off, &vaddr, &size), 0);
	assert_int_equal(vaddr, 0x480);
	text = elf_file_find_section(elf, ".text");
	assert_non_null(text);
	assert_null(elf_file_find_section(elf, ".tex"));
	assert_int_equal(elf_file_read_section(elf, text, 4, NULL, &bytes, &got), 0);
	assert_int_equal(got, 4);
	assert_memory_equal(bytes, "code", 4);
	free(bytes);
	assert_int_equal(elf_file_read_section(elf, text, 3, NULL, &bytes, &got), -EFBIG);
	assert_int_equal(elf_file_read_section(elf, elf_file_find_section(elf, ".bss"), SIZE_MAX, NULL, &bytes, &got), -ENODATA);
	assert_build_id(build_id_wanted);
}

/* Adds a section with that compression after the image, and reads it with a limit. */
static int read_compressed(uint32_t type, uint64_t said_size, const void *packed, size_t packed_size, size_t max_bytes, void **ret_bytes)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	struct elf_section section = { .name = ".packed", .type = SHT_PROGBITS, .flags = SHF_COMPRESSED };
	const Elf64_Chdr header = { .ch_type = type, .ch_size = said_size, .ch_addralign = 1 };
	size_t size = 0;
	int err;

	make_image();
	section.file_off = image.size;
	section.size = sizeof(header) + packed_size;
	put(&image, &header, sizeof(header));
	put(&image, packed, packed_size);
	assert_int_equal(open_image(&elf), 0);
	err = elf_file_read_section(elf, &section, max_bytes, NULL, ret_bytes, &size);
	assert_true(err || size == said_size);
	return err;
}

static void compressed_sections_are_unpacked(void **state)
{
	char text[600], packed[2][700];
	size_t sizes[2] = { sizeof(packed[0]) };
	uLongf zlib_size = sizeof(packed[0]);

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)(i * i / 7);
	assert_int_equal(compress((Bytef *)packed[0], &zlib_size, (Bytef *)text, sizeof(text)), Z_OK);
	sizes[0] = zlib_size;
	sizes[1] = ZSTD_compress(packed[1], sizeof(packed[1]), text, sizeof(text), 3);
	assert_false(ZSTD_isError(sizes[1]));
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t type = i + 1; /* ELFCOMPRESS_ZLIB, _ZSTD */
		void *bytes = NULL;

		assert_int_equal(read_compressed(type, sizeof(text), packed[i], sizes[i], 1000, &bytes), 0);
		assert_memory_equal(bytes, text, sizeof(text));
		free(bytes);
		assert_int_equal(read_compressed(type, sizeof(text) - 1, packed[i], sizes[i], 1000, &bytes), -EBADMSG);
		assert_int_equal(read_compressed(type, sizeof(text) + 1, packed[i], sizes[i], 1000, &bytes), -EBADMSG);
		assert_int_equal(read_compressed(type, sizeof(text), packed[i], sizes[i] - 9, 1000, &bytes), -EBADMSG);
		assert_int_equal(read_compressed(type, UINT64_MAX, packed[i], sizes[i], 1000, &bytes), -EFBIG);
	}
	assert_int_equal(read_compressed(3, sizeof(text), packed[0], sizes[0], 1000, (void *[1]){ NULL }), -EOPNOTSUPP);
}

static void offsets_become_addresses(void **state)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	uint64_t vaddr = 7;

	make_image();
	assert_int_equal(open_image(&elf), 0);
	assert_int_equal(elf_file_off_to_vaddr(elf, 0x1340, &vaddr), 0);
	assert_int_equal(vaddr, 0x202340);
	assert_int_equal(elf_file_off_to_vaddr(elf, 0x1b3f, &vaddr), 0);
	assert_int_equal(vaddr, 0x202b3f);
	assert_int_equal(elf_file_off_to_vaddr(elf, 0x1000, &vaddr), 0); /* the start of a mapping of that segment */
	assert_int_equal(vaddr, 0x202000);
	assert_int_equal(elf_file_off_to_vaddr(elf, 0x1b40, &vaddr), -ENOENT);
	assert_int_equal(elf_file_off_to_vaddr(elf, 0xfff, &vaddr), -ENOENT);
	assert_int_equal(vaddr, 0x202000);
}

static void build_ids_are_found_in_every_place(void **state)
{
	static struct bytes notes;
	Elf64_Phdr phdr = { .p_type = PT_NOTE, .p_offset = IMAGE_CONTENT_OFF, .p_align = 8 };
	struct image_section section = { ".notes", SHT_PROGBITS, 0, notes.data, 0 };

	put_notes(&notes, 8); /* only in a segment, padded to 8 */
	phdr.p_filesz = section.size = notes.size;
	image_make(&image, &phdr, 1, &section, 1);
	assert_build_id(build_id_wanted);

	put_notes(&notes, 4); /* only in a section of another name */
	section.size = notes.size;
	section.type = SHT_NOTE;
	image_make(&image, NULL, 0, &section, 1);
	assert_build_id(build_id_wanted);

	section.size -= 1; /* cut off */
	image_make(&image, NULL, 0, &section, 1);
	assert_build_id("");
}

static void files_of_other_kinds_are_refused(void **state)
{
	struct elf_file *elf = NULL;
	int ends[2];

	make_image();
	header()->e_ident[EI_CLASS] = ELFCLASS32;
	assert_int_equal(open_image(&elf), -ENOEXEC);
	make_image();
	header()->e_ident[EI_DATA] = ELFDATA2MSB;
	assert_int_equal(open_image(&elf), -ENOEXEC);
	make_image();
	header()->e_ident[0] = '#';
	assert_int_equal(open_image(&elf), -ENOEXEC);
	assert_int_equal(elf_file_open_memory("\x7f"
					      "ELF\2\1",
					      6, NULL, &elf),
			 -ENOEXEC);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(elf_file_open_fd(ends[0], NULL, &elf), -ENOEXEC);
	assert_true(fcntl(ends[0], F_GETFD) >= 0); /* a failure leaves it open */
	close(ends[0]);
	close(ends[1]);
	assert_null(elf);
}

static void headers_out_of_the_file_are_damage(void **state)
{
	struct elf_file *elf = NULL;
	struct diag diag = { 0 };

	make_image();
	header()->e_shoff = image.size - 64;
	assert_int_equal(elf_file_open_memory(image.data, image.size, &diag, &elf), -EBADMSG);
	assert_true(diag.text[0]);
	make_image();
	header()->e_shoff = UINT64_MAX - 10;
	assert_int_equal(open_image(&elf), -EBADMSG);
	make_image();
	header()->e_phoff = UINT64_MAX - 10;
	assert_int_equal(open_image(&elf), -EBADMSG);
	make_image();
	header()->e_phnum = 65535;
	assert_int_equal(open_image(&elf), -EBADMSG);
	make_image();
	header()->e_shentsize = 40;
	assert_int_equal(open_image(&elf), -EBADMSG);
	make_image();
	header()->e_shnum = 0; /* then the first section holds the count */
	((Elf64_Shdr *)(void *)(image.data + header()->e_shoff))->sh_size = UINT64_MAX;
	assert_int_equal(open_image(&elf), -EBADMSG);
	make_image();
	((Elf64_Phdr *)(void *)(image.data + IMAGE_PHDRS_OFF))->p_memsz = UINT64_MAX;
	((Elf64_Phdr *)(void *)(image.data + IMAGE_PHDRS_OFF))->p_vaddr = 1;
	assert_int_equal(open_image(&elf), -EBADMSG);
	assert_null(elf);
}

static void stripped_headers_are_none(void **state)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;

	make_image();
	header()->e_shoff = header()->e_shnum = header()->e_shstrndx = 0;
	assert_int_equal(open_image(&elf), 0);
	assert_int_equal(elf_file_nr_sections(elf), 0);
	assert_int_equal(elf_file_nr_segments(elf), 2);
}

static void damaged_names_are_empty(void **state)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	Elf64_Shdr *sections;

	make_image();
	sections = (Elf64_Shdr *)(void *)(image.data + header()->e_shoff);
	sections[1].sh_name = 10000;
	memset(image.data + sections[4].sh_offset + sections[2].sh_name + 3, 'x', sections[4].sh_size - sections[2].sh_name - 3);
	assert_int_equal(open_image(&elf), 0);
	assert_string_equal(elf_file_section(elf, 1)->name, "");
	assert_memory_equal(elf_file_section(elf, 2)->name, ".texxx", 6); /* it ends at the end of the name table */
	elf_file_free(MOVE(elf));
	sections[4].sh_offset = image.size;
	assert_int_equal(open_image(&elf), 0);
	assert_string_equal(elf_file_section(elf, 2)->name, "");
}

static void a_file_that_shrinks_is_damage(void **state)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	int fd = memfd_create("elf", MFD_CLOEXEC);
	void *bytes;
	size_t size;

	make_image();
	assert_int_equal(write(fd, image.data, image.size), image.size);
	assert_int_equal(elf_file_open_fd(fd, NULL, &elf), 0);
	assert_int_equal(elf_file_read_section(elf, elf_file_find_section(elf, ".text"), 100, NULL, &bytes, &size), 0);
	free(bytes);
	assert_int_equal(ftruncate(fd, 0x400), 0);
	assert_int_equal(elf_file_read_section(elf, elf_file_find_section(elf, ".text"), 100, NULL, &bytes, &size), -EBADMSG);
}

static void truncation_never_reads_past_the_end(void **state)
{
	make_image();
	for (size_t cut = 1; cut < image.size; cut += cut < 0x140 || cut > 0x400 ? 1 : 16) {
		CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
		uint8_t *exact = malloc(cut);
		int err;

		memcpy(exact, image.data, cut);
		err = elf_file_open_memory(exact, cut, NULL, &elf);
		assert_true(err == -ENOEXEC || err == -EBADMSG);
		free(exact);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_read),
		cmocka_unit_test(compressed_sections_are_unpacked),
		cmocka_unit_test(offsets_become_addresses),
		cmocka_unit_test(build_ids_are_found_in_every_place),
		cmocka_unit_test(files_of_other_kinds_are_refused),
		cmocka_unit_test(headers_out_of_the_file_are_damage),
		cmocka_unit_test(stripped_headers_are_none),
		cmocka_unit_test(damaged_names_are_empty),
		cmocka_unit_test(a_file_that_shrinks_is_damage),
		cmocka_unit_test(truncation_never_reads_past_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
