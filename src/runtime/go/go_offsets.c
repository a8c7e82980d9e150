// SPDX-License-Identifier: Apache-2.0
#include "runtime/go/go_offsets.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "pclntab/go_rows.h"

#define INFO_MAGIC "\xff Go buildinf:"
#define INFO_MAGIC_BYTES 14
#define INFO_ALIGN 16
#define INFO_HEADER_BYTES 32 /* magic, pointer size, flags; up to 1.17 followed by two pointers to strings */
#define INFO_WINDOW_BYTES 65536u /* files without section headers: searched at the start of the data, as debug/buildinfo does */
#define INFO_INLINE 2 /* flag of 1.18 and newer: the version follows the header, with its length first */
#define MAX_LABELS_OFF 4096 /* struct g has 450 bytes */

static bool is_info(const uint8_t *bytes)
{
	return !memcmp(bytes, INFO_MAGIC, INFO_MAGIC_BYTES);
}

static int read_info_at(const struct elf_file *elf, uint64_t file_off, uint8_t *bytes)
{
	return !elf_file_read_at(elf, file_off, bytes, INFO_HEADER_BYTES) && is_info(bytes) ? 0 : -ENOENT;
}

/* Searches the data of a file without section headers. */
static int search_info(const struct elf_file *elf, uint8_t *bytes, uint64_t *ret_file_off)
{
	CLEANUP(freep) uint8_t *window = malloc(INFO_WINDOW_BYTES);

	for (uint32_t i = 0; window && i < elf_file_nr_segments(elf); i++) {
		const struct elf_segment *segment = elf_file_segment(elf, i);
		size_t size = segment->file_size < INFO_WINDOW_BYTES ? (size_t)segment->file_size : INFO_WINDOW_BYTES;

		if (!(segment->flags & 2) || elf_file_read_at(elf, segment->file_off, window, size)) /* PF_W */
			continue;
		for (size_t at = 0; at + INFO_HEADER_BYTES <= size; at += INFO_ALIGN) {
			if (!is_info(window + at))
				continue;
			memcpy(bytes, window + at, INFO_HEADER_BYTES);
			*ret_file_off = segment->file_off + at;
			return 0;
		}
	}
	return -ENOENT;
}

static int find_info(const struct elf_file *elf, uint8_t *bytes, uint64_t *ret_file_off)
{
	const struct elf_section *section = elf_file_find_section(elf, ".go.buildinfo");

	if (section) {
		*ret_file_off = section->file_off;
		return read_info_at(elf, section->file_off, bytes);
	}
	return elf_file_nr_sections(elf) ? -ENOENT : search_info(elf, bytes, ret_file_off);
}

/* Up to 1.17: a pointer to the string's {pointer, length}. Before relocation these pointers are not usable in a PIE. */
static int read_far_text(const struct elf_file *elf, uint64_t file_off, char *text)
{
	uint64_t info_vaddr = 0, pointer, string[2], text_off, left;

	for (uint32_t i = 0; i < elf_file_nr_segments(elf) && !info_vaddr; i++) {
		const struct elf_segment *segment = elf_file_segment(elf, i);

		if (file_off >= segment->file_off && file_off - segment->file_off < segment->file_size)
			info_vaddr = segment->vaddr + (file_off - segment->file_off);
	}
	if (!info_vaddr || go_read_words(elf, info_vaddr + 16, &pointer, 1) || go_read_words(elf, pointer, string, 2) ||
	    string[1] >= GO_VERSION_BYTES || go_file_off(elf, string[0], &text_off, &left) ||
	    elf_file_read_at(elf, text_off, text, (size_t)string[1]))
		return -EBADMSG;
	return 0;
}

int go_version_read(const struct elf_file *elf, struct go_version *ret_version)
{
	struct go_version version = { 0 };
	uint8_t bytes[INFO_HEADER_BYTES], length = 0;
	uint64_t file_off;

	if (find_info(elf, bytes, &file_off))
		return -ENOENT;
	if (bytes[15] & INFO_INLINE) { /* a varint: one byte below 128 */
		if (elf_file_read_at(elf, file_off + INFO_HEADER_BYTES, &length, 1) || length >= GO_VERSION_BYTES ||
		    elf_file_read_at(elf, file_off + INFO_HEADER_BYTES + 1, version.text, length))
			memset(version.text, 0, sizeof(version.text));
	} else if (bytes[14] != 8 || bytes[15] || read_far_text(elf, file_off, version.text)) {
		memset(version.text, 0, sizeof(version.text));
	}
	go_version_parse(&version);
	*ret_version = version;
	return 0;
}

static uint32_t take_number(const char **text)
{
	uint32_t number = 0;

	for (; **text >= '0' && **text <= '9' && number < 100000; ++*text)
		number = number * 10 + (uint32_t)(**text - '0');
	return number;
}

void go_version_parse(struct go_version *version)
{
	const char *at = strstr(version->text, "go");

	version->major = version->minor = version->patch = 0;
	for (char *c = version->text; *c; c++) { /* the text appears in messages */
		if (*c < ' ' || *c > '~')
			*c = '?';
	}
	if (!at || at[2] < '0' || at[2] > '9')
		return;
	at += 2;
	version->major = take_number(&at);
	if (*at != '.')
		return;
	at++;
	version->minor = take_number(&at);
	if (*at == '.') {
		at++;
		version->patch = take_number(&at);
	}
}

/* Looks for mov REG,off32(REG), which stores the function's argument in g. g is in r14 or, up to 1.16, read from the thread, and may have
 * been copied. The variants for a garbage collector with write barriers end in the same instruction. */
uint32_t go_labels_written(const uint8_t *code, uint32_t nr)
{
	uint32_t found = 0;

	for (uint32_t at = 0; nr >= 7 && at <= nr - 7; at++) {
		const uint8_t *b = code + at;
		uint32_t off;

		if ((b[0] != 0x48 && b[0] != 0x49) || b[1] != 0x89 || (b[2] & 0xc0) != 0x80 || (b[2] & 7) == 4 || (b[2] & 7) == 5)
			continue;
		memcpy(&off, b + 3, sizeof(off));
		if (off >= MAX_LABELS_OFF || off % 8 || (found && found != off))
			return 0;
		found = off;
	}
	return found;
}

static void read_code(const struct elf_file *elf, struct go_code *code, uint8_t *bytes)
{
	uint64_t size = code->function.end_vaddr - code->function.start_vaddr, file_off, left;

	code->bytes = bytes;
	if (size > GO_CODE_BYTES)
		size = GO_CODE_BYTES;
	if (!go_file_off(elf, code->function.start_vaddr, &file_off, &left) && left >= size &&
	    !elf_file_read_at(elf, file_off, bytes, (size_t)size))
		code->nr = (uint32_t)size;
}

int go_label_offsets_read(const struct elf_file *elf, const struct go_pclntab *table, struct go_label_offsets *ret_offsets)
{
	struct go_thread thread = { 0 };
	uint32_t g_labels = 0;
	bool has_setter = false;
	uint8_t bytes[GO_CODE_BYTES];

	for (uint32_t i = 0; i < go_pclntab_nr_functions(table) && !(thread.is_known && g_labels); i++) {
		struct go_code code = { 0 };

		if (!go_pclntab_function(table, i, &code.function) || strncmp(code.function.name, "runtime", 7))
			continue;
		if (!strcmp(code.function.name, "runtime.systemstack")) {
			read_code(elf, &code, bytes);
			go_thread_read_systemstack(&code, &thread);
		} else if (!strcmp(code.function.name, "runtime/pprof.runtime_setProfLabel")) {
			has_setter = true;
			read_code(elf, &code, bytes);
			g_labels = go_labels_written(code.bytes, code.nr);
		}
	}
	if (!has_setter)
		return -ENOENT;
	if (!thread.is_known || !g_labels)
		return -EOPNOTSUPP;
	*ret_offsets = (struct go_label_offsets){ .tls_off = thread.tls_off, .m_curg = (uint32_t)thread.curg_off, .g_labels = g_labels };
	return 0;
}
