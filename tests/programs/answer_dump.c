// SPDX-License-Identifier: Apache-2.0
/* answer_dump KIND FILE: writes a worker's answer about an ELF file to stdout, in the form that tests/fuzz/fuzz_answers.c reads. KIND:
 * 0, the runtimes in the file; 1, its unwind table; 2, the names for the addresses on stdin (hexadecimal, one a line); 3, the code at
 * the first of them; 4, libdw's stack for each of them as the pc, without stack memory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "audit/audit_message.h"
#include "base/number.h"
#include "runtime/file_runtimes.h"
#include "symbolize/code_listing.h"
#include "symbolize/name_answers.h"
#include "symbolize/symbolizer.h"
#include "unwind/table_image.h"

#define MAX_BYTES ((size_t)64 << 20)

static int dump_table(const struct elf_file *elf, struct diag *diag, struct buffer *to)
{
	struct rule_table *rules = rule_table_new(SONDE_MAX_RULES);
	struct unwind_table *table = NULL;
	int err = rules ? unwind_table_build(elf, rules, diag, &table) : -ENOMEM;

	if (!err)
		err = table_image_make(table, rules, &(struct table_key){ 0 }, to);
	unwind_table_free(table);
	rule_table_free(rules);
	return err;
}

static bool next_address(uint64_t *ret_address)
{
	char line[64];

	if (!fgets(line, sizeof(line), stdin))
		return false;
	*ret_address = strtoull(line, NULL, 16);
	return true;
}

static int dump_names(const struct elf_file *elf, const char *path, struct buffer *to)
{
	struct symbolizer *symbolizer = symbolizer_new(&(struct symbolizer_options){ .lines = true });
	CLEANUP(name_writer_done) struct name_writer writer;
	uint32_t nr_addresses = 0;
	uint64_t address;
	int err = symbolizer ? 0 : -ENOMEM;

	name_writer_init(&writer);
	for (; !err && next_address(&address); nr_addresses++) {
		struct symbol_name names[NAME_ANSWERS_MAX];
		struct symbol_extent extent;
		uint32_t nr = 0;
		int miss = symbolizer_object(symbolizer, 0, elf, path, address, names, NAME_ANSWERS_MAX, &nr);

		extent = symbolizer_extent(symbolizer, 0, address);
		name_writer_add(&writer, &extent, names, miss ? 0 : nr);
	}
	if (!err)
		err = name_writer_end(&writer, to);
	buffer_append(to, &nr_addresses, sizeof(nr_addresses));
	symbolizer_free(symbolizer);
	return err;
}

static int dump_audit(const struct elf_file *elf, struct buffer *to)
{
	CLEANUP(audit_freep) struct audit *audit = NULL;
	const struct audit_module module = { .end_pc = UINT32_MAX, .elf = elf };
	const struct audit_process process = { .tgid = 1, .modules = &module, .nr_modules = 1 };
	struct sonde_deferred_record record = { .type = SONDE_RECORD_DEFERRED };
	struct audit_stack stack;
	uint32_t nr_stacks = 0;
	int err = audit_new(NULL, &audit);

	while (!err && next_address(&record.regs[SONDE_REG_PC])) {
		err = audit_unwind(audit, &record, &process, &stack);
		audit_answers_append(to, &stack);
		nr_stacks++;
	}
	buffer_append(to, &nr_stacks, sizeof(nr_stacks));
	return err;
}

static int dump(uint8_t kind, const struct elf_file *elf, const char *path, struct diag *diag, struct buffer *to)
{
	struct code_request request = { 0 };

	switch (kind) {
	case 0:
		return file_runtimes_make(elf, to);
	case 1:
		return dump_table(elf, diag, to);
	case 2:
		return dump_names(elf, path, to);
	case 4:
		return dump_audit(elf, to);
	}
	code_listing_preload();
	return next_address(&request.elf_vaddr) ? code_listing_write(elf, path, &request, diag, to) : -ENODATA;
}

int main(int argc, char **argv)
{
	CLEANUP(buffer_done) struct buffer answer = BUFFER_INIT(MAX_BYTES);
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	struct diag diag = { 0 };
	uint64_t kind;

	if (argc != 3 || number_u64(argv[1], 4, &kind) || elf_file_open_fd(open(argv[2], O_RDONLY | O_CLOEXEC), &diag, &elf) ||
	    dump((uint8_t)kind, elf, argv[2], &diag, &answer)) {
		fprintf(stderr, "answer_dump: %s\n", diag.text);
		return 1;
	}
	putchar((int)kind);
	return fwrite(answer.data, 1, answer.size, stdout) != answer.size;
}
