// SPDX-License-Identifier: Apache-2.0
#include "symbolize/code_listing.h"

#include <capstone/capstone.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/library.h"
#include "base/number.h"
#include "symbolize/debug_file.h"
#include "symbols/symbols.h"

#define TEXT_OF(number)	 TEXT_OF_(number)
#define TEXT_OF_(number) #number
#define LIBRARY "libcapstone.so." TEXT_OF(CS_API_MAJOR)
#define DEBUG_DIR "/usr/lib/debug"
#define MAX_TEXT_BYTES 1024 /* per instruction, including a name in it */

struct listing_header {
	uint64_t start, end;
	uint32_t is_guess, is_cut;
};

struct capstone_api {
	__typeof__(cs_open) *open;
	__typeof__(cs_close) *close;
	__typeof__(cs_option) *option;
	__typeof__(cs_malloc) *malloc;
	__typeof__(cs_free) *free;
	__typeof__(cs_disasm_iter) *disasm_iter;
};

struct disassembler {
	struct capstone_api api;
	csh handle;
	cs_insn *instruction;
	bool is_open;
	const struct symbol_table *symbols; /* for the targets of calls and jumps; may be NULL */
	uint32_t step;                      /* bytes to skip when they are not an instruction */
};

void code_listing_preload(void)
{
	if (!dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE))
		return; /* code_listing_write reports it */
}

static int load(struct capstone_api *ret_api, struct diag *diag)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	struct capstone_api api;
	const char *missing;
	const struct library_function functions[] = {
		{ "cs_open", &api.open },     { "cs_close", &api.close }, { "cs_option", &api.option },
		{ "cs_malloc", &api.malloc }, { "cs_free", &api.free },	  { "cs_disasm_iter", &api.disasm_iter },
	};

	if (!library)
		return diag_errno(diag, ELIBACC, "%s is not installed", LIBRARY);
	missing = library_functions(library, functions, ARRAY_SIZE(functions));
	if (missing)
		return diag_errno(diag, ELIBACC, "%s has no %s", LIBRARY, missing);
	*ret_api = api;
	return 0;
}

static void disassembler_done(struct disassembler *disassembler)
{
	if (disassembler->instruction)
		disassembler->api.free(disassembler->instruction, 1);
	if (disassembler->is_open)
		disassembler->api.close(&disassembler->handle);
}

static int disassembler_init(struct disassembler *disassembler, uint16_t machine, struct diag *diag)
{
	cs_err status;
	int err;

	if (machine != EM_X86_64 && machine != EM_AARCH64)
		return diag_errno(diag, EOPNOTSUPP, "the code is of machine %u", machine);
	err = load(&disassembler->api, diag);
	if (err)
		return err;
	disassembler->step = machine == EM_AARCH64 ? 4 : 1;
	status = machine == EM_AARCH64 ? disassembler->api.open(CS_ARCH_ARM64, CS_MODE_ARM, &disassembler->handle) :
					 disassembler->api.open(CS_ARCH_X86, CS_MODE_64, &disassembler->handle);
	if (status != CS_ERR_OK)
		return diag_errno(diag, ELIBACC, "%s does not know this machine", LIBRARY);
	disassembler->is_open = true;
	if (machine == EM_X86_64) /* the syntax of objdump and perf */
		disassembler->api.option(disassembler->handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
	disassembler->instruction = disassembler->api.malloc(disassembler->handle);
	return disassembler->instruction ? 0 : -ENOMEM;
}

/* Is it a call or jump whose only operand is an address ("callq 0x1136", "bl #0x1136")? */
static bool target_of(const cs_insn *instruction, uint64_t *ret_target)
{
	const char *at = instruction->op_str, *mnemonic = instruction->mnemonic, *end = at + strlen(at);

	if (*mnemonic != 'c' && *mnemonic != 'j' && *mnemonic != 'b')
		return false;
	at += *at == '#';
	if (strncmp(at, "0x", 2) != 0)
		return false;
	at += 2;
	return !number_hex(&at, end, ret_target) && at == end;
}

static void write_text(const struct disassembler *disassembler, struct buffer *to)
{
	const cs_insn *instruction = disassembler->instruction;
	char text[MAX_TEXT_BYTES];
	struct symbol symbol;
	uint64_t target;
	int size = snprintf(text, sizeof(text), "%s%s%s", instruction->mnemonic, *instruction->op_str ? " " : "", instruction->op_str);

	if (disassembler->symbols && target_of(instruction, &target) && !symbol_table_find(disassembler->symbols, target, &symbol)) {
		size += snprintf(text + size, sizeof(text) - (size_t)size, " <%.400s", symbol.name);
		if (target != symbol.elf_vaddr)
			size += snprintf(text + size, sizeof(text) - (size_t)size, "+0x%" PRIx64, target - symbol.elf_vaddr);
		snprintf(text + size, sizeof(text) - (size_t)size, ">");
	}
	buffer_append(to, text, strlen(text) + 1);
}

static void write_lines(const struct disassembler *disassembler, const uint8_t *code, size_t size, uint64_t elf_vaddr, struct buffer *to)
{
	while (size && !to->err) {
		uint64_t at = elf_vaddr;
		uint32_t nr_bytes = size < disassembler->step ? (uint32_t)size : disassembler->step;

		if (disassembler->api.disasm_iter(disassembler->handle, &code, &size, &elf_vaddr, disassembler->instruction)) {
			nr_bytes = disassembler->instruction->size;
			buffer_append(to, &at, sizeof(at));
			buffer_append(to, &nr_bytes, sizeof(nr_bytes));
			write_text(disassembler, to);
			continue;
		}
		buffer_append(to, &at, sizeof(at));
		buffer_append(to, &nr_bytes, sizeof(nr_bytes));
		buffer_append(to, "(bad)", sizeof("(bad)"));
		code += nr_bytes;
		size -= nr_bytes;
		elf_vaddr += nr_bytes;
	}
}

/* Reads the bytes from `start` on that the file has; *ret_size may be less than requested. */
static int read_code(const struct elf_file *elf, uint64_t start, uint64_t size, uint8_t **ret_code, size_t *ret_size)
{
	for (uint32_t i = 0; i < elf_file_nr_segments(elf); i++) {
		const struct elf_segment *segment = elf_file_segment(elf, i);
		uint64_t off = start - segment->vaddr;
		CLEANUP(freep) uint8_t *code = NULL;
		int err;

		if (!(segment->flags & PF_X) || start < segment->vaddr || off >= segment->file_size)
			continue;
		if (size > segment->file_size - off)
			size = segment->file_size - off;
		code = malloc(size);
		err = code ? elf_file_read_at(elf, segment->file_off + off, code, size) : -ENOMEM;
		if (err)
			return err;
		*ret_code = MOVE(code);
		*ret_size = size;
		return 0;
	}
	return -ENOENT;
}

/* Uses the file's own symbols; if they do not cover the address, the debug file's. */
static int find_function(const struct elf_file *elf, const char *path, uint64_t elf_vaddr, struct symbol_table **table,
			 struct symbol *ret_symbol)
{
	CLEANUP(elf_file_freep) struct elf_file *debug = NULL;
	int err = symbol_table_read(elf, NULL, NULL, table);

	if (!err)
		err = symbol_table_find(*table, elf_vaddr, ret_symbol);
	if (!err || debug_file_open(elf, path, DEBUG_DIR, &debug))
		return err;
	symbol_table_free(MOVE(*table));
	err = symbol_table_read_debug(elf, debug, NULL, NULL, table);
	return err ? err : symbol_table_find(*table, elf_vaddr, ret_symbol);
}

int code_listing_write(const struct elf_file *elf, const char *path, const struct code_request *request, struct diag *diag,
		       struct buffer *to)
{
	CLEANUP(disassembler_done) struct disassembler disassembler = { 0 };
	CLEANUP(symbol_table_freep) struct symbol_table *table = NULL;
	CLEANUP(freep) uint8_t *code = NULL;
	struct listing_header header = { .start = request->guess_start, .end = request->guess_end };
	struct symbol symbol;
	size_t size;
	int err = disassembler_init(&disassembler, elf_file_machine(elf), diag);

	if (err)
		return err;
	if (!find_function(elf, path, request->elf_vaddr, &table, &symbol)) {
		header.start = symbol.elf_vaddr;
		header.end = symbol.elf_vaddr + symbol.size_bytes;
	} else {
		header.is_guess = 1;
	}
	if (!header.start || header.end <= header.start)
		return diag_errno(diag, ENOENT, "no symbol covers its addresses");
	header.is_cut = header.end - header.start > CODE_LISTING_MAX_BYTES;
	err = read_code(elf, header.start, header.is_cut ? CODE_LISTING_MAX_BYTES : header.end - header.start, &code, &size);
	if (err)
		return err == -ENOENT ? diag_errno(diag, ENOENT, "there is no code at its addresses") : err;
	disassembler.symbols = table;
	buffer_append(to, &header, sizeof(header));
	write_lines(&disassembler, code, size, header.start, to);
	return to->err;
}

/* --- reading -------------------------------------------------------------------------------------------------------------------------- */

int code_listing_open(const void *bytes, size_t size, struct code_listing *ret_listing)
{
	struct reader reader = reader_of(bytes, size);
	struct listing_header header;

	reader_copy(&reader, &header, sizeof(header));
	if (reader.bad || header.end <= header.start)
		return -EBADMSG;
	*ret_listing = (struct code_listing){ .lines = reader,
					      .start = header.start,
					      .end = header.end,
					      .is_guess = header.is_guess,
					      .is_cut = header.is_cut,
					      .next_vaddr = header.start };
	return 0;
}

bool code_listing_next(struct code_listing *listing, struct code_line *ret_line)
{
	struct code_line line;

	if (!reader_left(&listing->lines))
		return false;
	line.elf_vaddr = reader_u64(&listing->lines);
	line.nr_bytes = reader_u32(&listing->lines);
	line.text = reader_text(&listing->lines);
	if (!listing->lines.bad &&
	    (line.elf_vaddr != listing->next_vaddr || !line.nr_bytes || line.nr_bytes > listing->end - line.elf_vaddr))
		reader_fail(&listing->lines);
	if (listing->lines.bad)
		return false;
	listing->next_vaddr += line.nr_bytes;
	*ret_line = line;
	return true;
}
