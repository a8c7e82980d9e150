// SPDX-License-Identifier: Apache-2.0
/* Any bytes as the answer of a compromised worker, to each kind of request (the first byte), through the privileged side's code. After a
 * file's runtimes follows the memory of a process, which is untrusted, too. The seeds are genuine answers: answer_dump KIND FILE. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit_message.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "check_table.h"
#include "looped_memory.h"
#include "runtime/file_runtimes.h"
#include "symbolize/code_listing.h"
#include "symbolize/name_answers.h"
#include "unwind/table_image.h"

#define MAX_FRAMES 16
#define IMAGE_STAMP_BYTES 16   /* the start of an image: the kind of file, and the build that made it */
#define IMAGE_CHECKSUM_OFF 16
#define IMAGE_HEADER_BYTES 184

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text, size_t size)
{
	const char *at = text, *end = memchr(text, '\0', size);

	check_that(end);
	while (at < end)
		check_that(utf8_is_plain(utf8_next(&at, end)));
}

static void use_image(const struct runtime_image *image, const struct libc_facts *libc, const struct memory *bytes)
{
	const struct runtime_memory memory = { .read = read_memory, .arg = (void *)bytes };
	const struct runtime *runtime = runtime_of(image->runtime);
	union {
		struct sonde_runtime_process process;
		char bytes[sizeof(struct runtime_image)]; /* more than any image */
	} process = { 0 };

	if (!image->is_supported || runtime->place(image, 0x10000, libc, &memory, NULL, &process))
		return;
	if (runtime->owns_code)
		(void)runtime->owns_code(image, &memory, 0x20000, 0x30000, &process);
	for (size_t i = 0; runtime->describe && i < MAX_FRAMES && (i + 1) * 24 <= bytes->size; i++) {
		struct sonde_runtime_frame frame;
		struct runtime_function function = { 0 };

		memcpy(&frame, bytes->bytes + i * sizeof(frame), sizeof(frame));
		if (runtime->describe(image, &process, &memory, &frame, &function))
			continue;
		check_that(function.name[0]);
		check_text(function.name, sizeof(function.name));
		check_text(function.file, sizeof(function.file));
	}
}

static void use_runtimes(const uint8_t *data, size_t size)
{
	struct memory memory = { .bytes = data + sizeof(struct file_runtimes) };
	struct file_runtimes runtimes;

	if (size < sizeof(runtimes) || file_runtimes_read(data, sizeof(runtimes), &runtimes))
		return;
	memory.size = size - sizeof(runtimes);
	for (uint32_t i = 0; i < runtimes.nr_images; i++)
		use_image(&runtimes.images[i], &runtimes.libc, &memory);
}

/* Sets what a worker can set as well, so that more than the checksum is tested. */
static void seal(char *image, size_t size)
{
	static const char nothing[sizeof(uint64_t)];
	const struct sonde_row end = { .rule = SONDE_RULE_NONE };
	uint32_t blocks[2] = { 0, 1 };
	struct unwind_table table = {
		.nr_rows = 1, .nr_blocks = 1, .block_shift = SONDE_MIN_BLOCK_SHIFT, .blocks = blocks, .rows = (struct sonde_row *)&end
	};
	CLEANUP(rule_table_freep) struct rule_table *rules = rule_table_new(16);
	CLEANUP(buffer_done) struct buffer genuine = BUFFER_INIT(1 << 20);
	uint64_t checksum;

	check_that(rules && !table_image_make(&table, rules, &(struct table_key){ 0 }, &genuine));
	memcpy(image, genuine.data, IMAGE_STAMP_BYTES);
	memcpy(image + IMAGE_CHECKSUM_OFF, nothing, sizeof(nothing));
	checksum = hash_stable(image + IMAGE_HEADER_BYTES, size - IMAGE_HEADER_BYTES, hash_stable(image, IMAGE_HEADER_BYTES, size));
	memcpy(image + IMAGE_CHECKSUM_OFF, &checksum, sizeof(checksum));
}

static void use_table(const uint8_t *data, size_t size)
{
	CLEANUP(rule_table_freep) struct rule_table *rules = rule_table_new(SONDE_MAX_RULES);
	CLEANUP(unwind_table_freep) struct unwind_table *table = NULL; /* freed before the rules, which it uses */
	CLEANUP(freep) char *image = malloc(size);
	uint32_t nr_rules;
	const struct sonde_rule *all;

	check_that(rules && image);
	if (size < IMAGE_HEADER_BYTES)
		return;
	memcpy(image, data, size);
	seal(image, size);
	if (table_image_read(image, size, &(struct table_key){ 0 }, rules, 0, &table))
		return;
	check_table(table, rules);
	all = rule_table_rules(rules, &nr_rules);
	for (uint32_t i = 0; i < nr_rules; i++)
		check_that(all[i].kind <= SONDE_RULE_KIND_SWITCH && all[i].bp_kind <= SONDE_BP_UNDEFINED && all[i].ra_kind <= SONDE_RA_REG);
}

static void use_names(const uint8_t *data, size_t size)
{
	struct name_answers answers;
	uint32_t nr_addresses;

	if (size < sizeof(nr_addresses))
		return;
	memcpy(&nr_addresses, data + size - sizeof(nr_addresses), sizeof(nr_addresses));
	if (name_answers_open(data, size - sizeof(nr_addresses), nr_addresses, &answers))
		return;
	for (uint32_t i = 0; i < nr_addresses; i++) {
		struct symbol_name names[NAME_ANSWERS_MAX];
		struct symbol_extent extent;
		uint32_t nr = name_answers_next(&answers, &extent, names, NAME_ANSWERS_MAX);

		check_that(nr <= NAME_ANSWERS_MAX);
		for (uint32_t j = 0; j < nr; j++)
			check_that(strlen(names[j].name) + strlen(names[j].system_name) + strlen(names[j].file) < 3 * size);
	}
}

static void use_code(const uint8_t *data, size_t size)
{
	struct code_listing listing;
	struct code_line line;
	uint64_t next;

	if (code_listing_open(data, size, &listing))
		return;
	next = listing.start;
	while (code_listing_next(&listing, &line)) {
		check_that(line.elf_vaddr == next && line.nr_bytes && line.elf_vaddr + line.nr_bytes <= listing.end &&
			   strlen(line.text) < size);
		next += line.nr_bytes;
	}
}

/* The last bytes are the number of stacks in the request. */
static void use_audit(const uint8_t *data, size_t size)
{
	struct audit_stack stack, first = { .nr_frames = 0 };
	struct reader answers;
	uint32_t nr_stacks;

	if (size < sizeof(nr_stacks))
		return;
	memcpy(&nr_stacks, data + size - sizeof(nr_stacks), sizeof(nr_stacks));
	if (audit_answers_open(data, size - sizeof(nr_stacks), nr_stacks, &answers))
		return;
	for (uint32_t i = 0; i < nr_stacks; i++) {
		struct audit_finding finding;

		audit_answers_next(&answers, &stack);
		check_that(stack.nr_frames <= AUDIT_MAX_FRAMES && stack.end <= AUDIT_END_COMPAT);
		first = i ? first : stack;
		finding = audit_compare(first.frames, first.nr_frames, SONDE_STOP_COMPLETE, &stack);
		check_that(finding.verdict != AUDIT_NOT_COMPARABLE || finding.reason < AUDIT_REASON_COUNT);
		check_that(finding.verdict != AUDIT_DIFFERS || (i && (finding.frame < first.nr_frames || finding.frame < stack.nr_frames)));
	}
	check_that(!answers.bad && !reader_left(&answers));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const uses[])(const uint8_t *bytes, size_t size) = { use_runtimes, use_table, use_names, use_code, use_audit };

	if (size && data[0] < ARRAY_SIZE(uses))
		uses[data[0]](data + 1, size - 1);
	return 0;
}
