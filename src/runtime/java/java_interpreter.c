// SPDX-License-Identifier: Apache-2.0
#include "runtime/java/java_interpreter.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define MAX_CODELETS 1024
#define MAX_DESCRIPTION_BYTES 96
#define ENTRY_TEXT "method entry point"
#define LAST_TEXT "deoptimization entry points" /* of the codelet that is made last (TemplateInterpreterGenerator::generate_all) */
#define MAX_PROLOGUE_BYTES 1024

static int read_text(const struct runtime_memory *memory, uint64_t from, char to[MAX_DESCRIPTION_BYTES])
{
	size_t in_page = 4096 - from % 4096, size = in_page < MAX_DESCRIPTION_BYTES - 1 ? in_page : MAX_DESCRIPTION_BYTES - 1;
	int err = memory->read(memory->arg, from, to, size);

	if (!err && !memchr(to, '\0', size) && size < MAX_DESCRIPTION_BYTES - 1)
		err = memory->read(memory->arg, from, to, MAX_DESCRIPTION_BYTES - 1);
	to[MAX_DESCRIPTION_BYTES - 1] = '\0';
	return err;
}

/* push rax; push rbp; mov rbp, rsp; push r13: the only place in an entry where a frame begins. Before it, up to `pop rax; lea r14, ...`, the
 * return address is on the stack (generate_fixed_frame, generate_normal_entry). */
static bool find_prologue(const uint8_t *code, size_t size, uint32_t start, struct sonde_java_entry *entry)
{
	static const uint8_t push[] = { 0x50, 0x55, 0x48, 0x8b, 0xec, 0x41, 0x55 }, pop[] = { 0x58, 0x4c, 0x8d, 0x74 };
	const uint8_t *pushed = memmem(code, size, push, sizeof(push)), *popped = memmem(code, size, pop, sizeof(pop));

	if (!pushed || !popped || popped > pushed || !memchr(pushed + sizeof(push), 0x53, 32 - sizeof(push))) /* push rbx: the method */
		return false;
	entry->start = start;
	entry->popped = start + (uint32_t)(popped + 1 - code);
	entry->pushed = start + (uint32_t)(pushed + 1 - code);
	return true;
}

/* An entry for methods; some have no frame of their own, as those of Math.sin. */
static int take_entry(const struct runtime_memory *memory, const char *description, uint64_t at, uint32_t size, struct sonde_java *java)
{
	uint8_t code[MAX_PROLOGUE_BYTES + 64] = { 0 };
	struct sonde_java_entry entry;
	uint32_t start = (uint32_t)(at - java->interpreter_start), i = 0;
	size_t length = size < MAX_PROLOGUE_BYTES ? size : MAX_PROLOGUE_BYTES;
	bool has_frame = strstr(description, "zerolocals") || strstr(description, "= native");
	int err = memory->read(memory->arg, at, code, length);

	if (err)
		return -EAGAIN;
	if (!java->entries_end)
		java->entries_start = start;
	java->entries_end = start + size;
	if (!has_frame)
		return 0;
	while (i < SONDE_JAVA_MAX_ENTRIES && java->entries[i].end)
		i++;
	if (i == SONDE_JAVA_MAX_ENTRIES || !find_prologue(code, length, start, &entry))
		return -EOPNOTSUPP;
	entry.end = start + size;
	java->entries[i] = entry;
	return 0;
}

int java_interpreter_read(const struct java_queue_layout *layout, uint64_t queue, const struct runtime_memory *memory, struct diag *diag,
			  struct sonde_java *java)
{
	uint64_t buffer = 0, at;
	uint32_t limit = 0, begin = 0, number = 0;
	char description[MAX_DESCRIPTION_BYTES] = "";

	if (memory->read(memory->arg, queue + layout->buffer, &buffer, sizeof(buffer)) ||
	    memory->read(memory->arg, queue + layout->limit, &limit, sizeof(limit)) ||
	    memory->read(memory->arg, queue + layout->begin, &begin, sizeof(begin)) ||
	    memory->read(memory->arg, queue + layout->number, &number, sizeof(number)) || !buffer || begin || limit > 1 << 24 ||
	    number > MAX_CODELETS)
		return -EAGAIN;
	java->interpreter_start = buffer;
	java->interpreter_end = buffer + limit;
	at = buffer;
	for (uint32_t i = 0; i < number; i++) {
		uint64_t text;
		uint32_t size;
		int err;

		if (memory->read(memory->arg, at + layout->size, &size, sizeof(size)) ||
		    memory->read(memory->arg, at + layout->description, &text, sizeof(text)) || size < 16 || size > limit - (at - buffer) ||
		    read_text(memory, text, description))
			return -EAGAIN;
		err = strstr(description, ENTRY_TEXT) ? take_entry(memory, description, at, size, java) : 0;
		if (err == -EOPNOTSUPP)
			return diag_errno(diag, EOPNOTSUPP, "the interpreter's %s is not as known", description);
		if (err)
			return err;
		at += size;
	}
	return strcmp(description, LAST_TEXT) ? -EAGAIN : 0;
}
