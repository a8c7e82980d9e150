// SPDX-License-Identifier: Apache-2.0
#include "symbolize/name_answers.h"

#include <errno.h>
#include <string.h>

#include "base/reader.h"

#define PART_BYTES_MAX ((size_t)1 << 30)
/* Of all names together: a hostile worker could use one long text, or parts of it, a million times. */
#define NAMED_BYTES_MAX ((uint64_t)1 << 30)

struct answers_header {
	uint32_t nr_addresses, nr_names;
	uint64_t text_bytes;
	uint32_t nr_refused, nr_missing, nr_packed, nr_cut;
};

struct written_answer {
	struct symbol_extent extent;
	uint32_t nr, pad;
};

struct written_name {
	uint64_t start;
	uint32_t name, system_name, file; /* offsets in the texts */
	uint32_t line, start_line, pad;
};

void name_writer_init(struct name_writer *writer)
{
	*writer = (struct name_writer){ .answers = BUFFER_INIT(PART_BYTES_MAX),
					.names = BUFFER_INIT(PART_BYTES_MAX),
					.texts = BUFFER_INIT(PART_BYTES_MAX) };
	buffer_append(&writer->texts, "", 1);
}

void name_writer_done(struct name_writer *writer)
{
	buffer_done(&writer->answers);
	buffer_done(&writer->names);
	buffer_done(&writer->texts);
	u64_map_done(&writer->text_of);
}

static uint32_t add_text(struct name_writer *writer, const char *text)
{
	const uint32_t *known = *text ? u64_map_find(&writer->text_of, (uintptr_t)text) : NULL;
	uint32_t at = (uint32_t)writer->texts.size;

	if (!*text || known)
		return known ? *known : 0;
	buffer_append(&writer->texts, text, strlen(text) + 1);
	if (u64_map_add(&writer->text_of, (uintptr_t)text, at))
		writer->texts.err = -ENOMEM;
	return at;
}

void name_writer_add(struct name_writer *writer, const struct symbol_extent *extent, const struct symbol_name *names, uint32_t nr)
{
	const struct written_answer answer = { .extent = *extent, .nr = nr };

	buffer_append(&writer->answers, &answer, sizeof(answer));
	for (uint32_t i = 0; i < nr; i++) {
		struct written_name name = {
			.start = names[i].start,
			.name = add_text(writer, names[i].name),
			.system_name = add_text(writer, names[i].system_name),
			.file = add_text(writer, names[i].file),
			.line = names[i].line,
			.start_line = names[i].start_line,
		};

		buffer_append(&writer->names, &name, sizeof(name));
	}
}

int name_writer_end(struct name_writer *writer, struct buffer *to)
{
	struct answers_header header = {
		.nr_addresses = (uint32_t)(writer->answers.size / sizeof(struct written_answer)),
		.nr_names = (uint32_t)(writer->names.size / sizeof(struct written_name)),
		.text_bytes = writer->texts.size,
		.nr_refused = writer->nr_refused,
		.nr_missing = writer->nr_missing,
		.nr_packed = writer->nr_packed,
		.nr_cut = writer->nr_cut,
	};

	if (writer->answers.err || writer->names.err || writer->texts.err)
		return writer->answers.err ? writer->answers.err : writer->names.err ? writer->names.err : writer->texts.err;
	buffer_append(to, &header, sizeof(header));
	buffer_append(to, writer->answers.data, writer->answers.size);
	buffer_append(to, writer->names.data, writer->names.size);
	buffer_append(to, writer->texts.data, writer->texts.size);
	return to->err;
}

static struct written_name name_at(const struct name_answers *answers, uint32_t i)
{
	struct written_name name; /* may be unaligned */

	memcpy(&name, (const char *)answers->names + i * sizeof(name), sizeof(name));
	return name;
}

static struct written_answer answer_at(const struct name_answers *answers, uint32_t i)
{
	struct written_answer answer;

	memcpy(&answer, (const char *)answers->answers + i * sizeof(answer), sizeof(answer));
	return answer;
}

int name_answers_open(const void *bytes, size_t size, uint32_t nr_addresses, struct name_answers *ret_answers)
{
	struct reader reader = reader_of(bytes, size);
	struct name_answers answers = { .nr_addresses = nr_addresses };
	struct answers_header header;
	uint64_t nr_names = 0, named_bytes = 0;

	reader_copy(&reader, &header, sizeof(header));
	answers.answers = reader_sub(&reader, header.nr_addresses * sizeof(struct written_answer)).pos;
	answers.names = reader_sub(&reader, header.nr_names * sizeof(struct written_name)).pos;
	answers.texts = (const char *)reader.pos;
	if (reader.bad || header.nr_addresses != nr_addresses || reader_left(&reader) != header.text_bytes || !header.text_bytes ||
	    answers.texts[header.text_bytes - 1] != '\0')
		return -EBADMSG;
	for (uint32_t i = 0; i < nr_addresses; i++)
		nr_names += answer_at(&answers, i).nr;
	if (nr_names != header.nr_names)
		return -EBADMSG;
	for (uint32_t i = 0; i < header.nr_names; i++) {
		struct written_name name = name_at(&answers, i);

		if (name.name >= header.text_bytes || name.system_name >= header.text_bytes || name.file >= header.text_bytes)
			return -EBADMSG;
		named_bytes +=
		    strlen(answers.texts + name.name) + strlen(answers.texts + name.system_name) + strlen(answers.texts + name.file);
		if (named_bytes > NAMED_BYTES_MAX)
			return -EBADMSG;
	}
	answers.nr_refused = header.nr_refused;
	answers.nr_missing = header.nr_missing;
	answers.nr_packed = header.nr_packed;
	answers.nr_cut = header.nr_cut;
	*ret_answers = answers;
	return 0;
}

uint32_t name_answers_next(struct name_answers *answers, struct symbol_extent *ret_extent, struct symbol_name *names, uint32_t max)
{
	struct written_answer answer = answer_at(answers, answers->next++);
	uint32_t nr = answer.nr, first = answers->next_name;

	*ret_extent = answer.extent;
	answers->next_name += nr;
	for (uint32_t i = 0; i < nr && i < max; i++) {
		struct written_name name = name_at(answers, first + i);

		names[i] = (struct symbol_name){
			.name = answers->texts + name.name,
			.system_name = answers->texts + name.system_name,
			.start = name.start,
			.file = answers->texts + name.file,
			.line = name.line,
			.start_line = name.start_line,
		};
	}
	return nr < max ? nr : max;
}
