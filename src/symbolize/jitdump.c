// SPDX-License-Identifier: Apache-2.0
/* Makes one pass over the records. Each piece of code refers to a function (name, lines); a moved piece shares it with the original. Lines
 * are stored relative to the function's start, so they remain valid. */
#include "symbolize/jitdump.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/reader.h"
#include "base/u64_map.h"
#include "symbolize/code_ranges.h"

enum { JIT_CODE_LOAD = 0, JIT_CODE_MOVE = 1, JIT_CODE_DEBUG_INFO = 2 }; /* the others are not needed */

#define HEADER_BYTES	40
#define RECORD_BYTES	16
#define RECORD_ALIGNMENT 8
#define LOAD_BYTES	40 /* of the fields after the record's header, before the name */
#define WINDOW_BYTES	((size_t)256 << 10)
#define MAX_SAME_HASH	8 /* more names with one hash are stored again */
#define JS_ADDED_BYTES	0x40

struct line {
	uint32_t off; /* from the function's start */
	uint32_t line, file;
};

struct function {
	uint32_t name;
	uint32_t first_line, nr_lines;
};

struct jitdump {
	struct code_piece *pieces; /* payload: index of the function */
	struct function *functions;
	struct line *lines;
	char *text;
	uint32_t nr_pieces, nr_refused;
	struct code_ranges ranges;
};

struct build {
	int fd;
	uint64_t file_off;	 /* of the next record */
	uint8_t *window;
	uint64_t window_off;	 /* file offset of its first byte */
	size_t window_size;
	struct buffer pieces, functions, lines, text;
	struct u64_map by_index; /* code_index: number of the piece that has it now */
	struct u64_map files;	 /* hash of a file's name: its offset in the text */
	struct {		 /* the last record of lines, until its code arrives */
		uint64_t code_pc;
		uint32_t first, nr;
		bool is_there;
	} pending;
	uint32_t nr_refused;
};

void jitdump_free(struct jitdump *dump)
{
	if (!dump)
		return;
	free(dump->pieces);
	free(dump->functions);
	free(dump->lines);
	free(dump->text);
	code_ranges_done(&dump->ranges);
	free(dump);
}

static void build_done(struct build *build)
{
	free(build->window);
	buffer_done(&build->pieces);
	buffer_done(&build->functions);
	buffer_done(&build->lines);
	buffer_done(&build->text);
	u64_map_done(&build->by_index);
	u64_map_done(&build->files);
}

/* --- the file ------------------------------------------------------------------------------------------------------------------ */

/* Reads at most `max` bytes at `off`; they are valid until the next call. Returns their number, less at the file's end; or a negative
 * errno. */
static ssize_t look(struct build *build, uint64_t off, size_t max, const uint8_t **ret_bytes)
{
	if (max > WINDOW_BYTES)
		max = WINDOW_BYTES;
	if (off > INT64_MAX - WINDOW_BYTES)
		return 0;
	if (off < build->window_off || off + max > build->window_off + build->window_size) {
		ssize_t got;

		build->window_off = off;
		build->window_size = 0;
		while (build->window_size < WINDOW_BYTES) {
			got = pread(build->fd, build->window + build->window_size, WINDOW_BYTES - build->window_size,
				    (off_t)(off + build->window_size));
			if (got < 0 && errno == EINTR)
				continue;
			if (got < 0)
				return -errno;
			if (got == 0)
				break;
			build->window_size += (size_t)got;
		}
	}
	*ret_bytes = build->window + (off - build->window_off);
	return (ssize_t)(build->window_size - (off - build->window_off) < max ? build->window_size - (off - build->window_off) : max);
}

/* --- records ------------------------------------------------------------------------------------------------------------------- */

static uint32_t nr_of(const struct buffer *buffer, size_t item)
{
	return (uint32_t)(buffer->size / item);
}

/* Stores the text and returns its offset. False: no room. */
static bool keep_text(struct build *build, const char *text, size_t size, uint32_t *ret_at)
{
	if (build->text.size + size + 1 > JITDUMP_MAX_TEXT)
		return false;
	*ret_at = (uint32_t)build->text.size;
	buffer_append(&build->text, text, size);
	buffer_append(&build->text, "", 1);
	return !build->text.err;
}

static bool keep_file(struct build *build, const char *name, size_t size, uint32_t *ret_at)
{
	uint64_t key = hash_bytes(name, size, 0);
	uint32_t cursor = 0, tries = 0, *at;

	while (tries++ < MAX_SAME_HASH && (at = u64_map_each(&build->files, key, &cursor)))
		if (strcmp(build->text.data + *at, name) == 0) {
			*ret_at = *at;
			return true;
		}
	return keep_text(build, name, size, ret_at) && u64_map_add(&build->files, key, *ret_at) == 0;
}

static int add_piece(struct build *build, uint64_t start, uint64_t size, uint32_t function, uint64_t code_index)
{
	struct code_piece piece = { .start = start, .size_bytes = (uint32_t)size, .payload = function };
	uint32_t number = nr_of(&build->pieces, sizeof(piece)), *known = u64_map_find(&build->by_index, code_index);
	int err = 0;

	buffer_append(&build->pieces, &piece, sizeof(piece));
	if (known)
		*known = number;
	else
		err = u64_map_add(&build->by_index, code_index, number);
	return err ? err : build->pieces.err;
}

static bool is_sound(const struct build *build, uint64_t start, uint64_t size)
{
	uint64_t end;

	return size && size <= UINT32_MAX && !__builtin_add_overflow(start, size, &end) &&
	       nr_of(&build->pieces, sizeof(struct code_piece)) < JITDUMP_MAX_PIECES;
}

static int compare_lines(const void *left, const void *right)
{
	const struct line *a = left, *b = right;

	return a->off < b->off ? -1 : a->off > b->off;
}

/* Takes the lines that came before their code. V8 writes their addresses as perf inject will see them, after an ELF header (perf-jit.cc:
 * "Adjust the position addresses accordingly"). Its names of JavaScript functions are "JS:*function file:line:column"; lines of any other
 * file are wrong. */
static void take_lines(struct build *build, uint64_t start, uint64_t size, const char *name, struct function *function)
{
	struct line *lines;
	bool is_js = strncmp(name, "JS:", 3) == 0;
	uint32_t added = is_js ? JS_ADDED_BYTES : 0, nr = 0;

	if (!build->pending.is_there)
		return;
	build->pending.is_there = false;
	if (!build->pending.nr)
		return;
	lines = (struct line *)(void *)build->lines.data + build->pending.first;
	for (uint32_t i = 0; build->pending.code_pc == start && i < build->pending.nr; i++) {
		if (lines[i].off < added || lines[i].off - added >= size)
			continue;
		lines[nr] = lines[i];
		lines[nr].off -= added;
		if (is_js && !strstr(name, build->text.data + lines[nr].file))
			lines[nr].line = 0; /* not known */
		nr++;
	}
	if (nr > 1)
		qsort(lines, nr, sizeof(*lines), compare_lines);
	function->first_line = build->pending.first;
	function->nr_lines = nr;
	build->lines.size = ((size_t)build->pending.first + nr) * sizeof(*lines);
}

/* 0, -EBADMSG: the record makes no sense, -ENOMEM. */
static int read_load(struct build *build, struct reader *body)
{
	struct function function = { 0 };
	uint64_t start, size, index;
	const char *name;
	int err;

	reader_skip(body, 16); /* pid, tid, vma */
	start = reader_u64(body);
	size = reader_u64(body);
	index = reader_u64(body);
	name = reader_text(body);
	if (body->bad || !name[0] || !is_sound(build, start, size) || !keep_text(build, name, strlen(name), &function.name))
		return build->text.err ? build->text.err : -EBADMSG;
	take_lines(build, start, size, name, &function);
	err = add_piece(build, start, size, nr_of(&build->functions, sizeof(function)), index);
	buffer_append(&build->functions, &function, sizeof(function));
	return err ? err : build->functions.err;
}

static int read_move(struct build *build, struct reader *body)
{
	const struct code_piece *old;
	uint64_t from, to, size, index;
	const uint32_t *number;

	reader_skip(body, 16);
	from = reader_u64(body);
	to = reader_u64(body);
	size = reader_u64(body);
	index = reader_u64(body);
	number = body->bad ? NULL : u64_map_find(&build->by_index, index);
	if (!number || !is_sound(build, to, size))
		return -EBADMSG;
	old = (const struct code_piece *)(void *)build->pieces.data + *number;
	if (old->start != from)
		return -EBADMSG;
	return add_piece(build, to, size, old->payload, index);
}

struct debug_info {
	uint64_t off, end; /* what is left of it in the file */
	uint64_t code_pc;
	uint32_t file;
	bool has_file;
};

/* Some versions of V8 (in node 20) write the contents of a freed buffer. */
static bool is_text(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

/* Reads one line, at the start of `window`. Returns its size in the file; 0: it makes no sense or is cut off; or a negative errno. Erlang's
 * records begin with the last line of the preceding code, which is ignored. */
static ssize_t read_line(struct build *build, struct debug_info *info, const uint8_t *window, size_t size)
{
	struct reader entry = reader_of(window, size);
	uint64_t pc = reader_u64(&entry);
	uint32_t line_number = reader_u32(&entry);
	bool is_same;
	const char *file;
	struct line line;

	reader_skip(&entry, 4); /* discriminator */
	file = reader_text(&entry);
	is_same = info->has_file && strcmp(file, "\xff") == 0;
	if (entry.bad || (pc >= info->code_pc && pc - info->code_pc > UINT32_MAX) || line_number > INT32_MAX ||
	    (!is_same && !is_text(file)))
		return 0;
	if (!is_same && !keep_file(build, file, strlen(file), &info->file))
		return build->text.err;
	info->has_file = true;
	if (pc < info->code_pc)
		return entry.pos - window;
	line = (struct line){ .off = (uint32_t)(pc - info->code_pc), .line = line_number, .file = info->file };
	buffer_append(&build->lines, &line, sizeof(line));
	return build->lines.err ? build->lines.err : entry.pos - window;
}

static void drop_lines(struct build *build)
{
	if (build->pending.is_there)
		build->lines.size = (size_t)build->pending.first * sizeof(struct line);
	build->pending.is_there = false;
}

/* Reads all lines or none: without one, the line before it would reach too far. */
static int read_debug_info(struct build *build, uint64_t off, uint64_t end)
{
	struct debug_info info = { .off = off + 16, .end = end };
	const uint8_t *bytes;
	ssize_t got = look(build, off, 16, &bytes);
	struct reader head;
	uint64_t nr;

	if (got < 16 || end - off < 16)
		return got < 0 ? (int)got : -EBADMSG;
	head = reader_of(bytes, 16);
	info.code_pc = reader_u64(&head);
	nr = reader_u64(&head);
	drop_lines(build); /* their code never arrived */
	build->pending.is_there = true;
	build->pending.code_pc = info.code_pc;
	build->pending.first = nr_of(&build->lines, sizeof(struct line));
	build->pending.nr = 0;
	for (uint64_t i = 0; i < nr; i++) {
		uint64_t left = info.end - info.off;

		if (nr_of(&build->lines, sizeof(struct line)) >= JITDUMP_MAX_LINES)
			return -EBADMSG;
		got = look(build, info.off, left < JITDUMP_MAX_NAME ? (size_t)left : JITDUMP_MAX_NAME, &bytes);
		if (got >= 0)
			got = read_line(build, &info, bytes, (size_t)got);
		if (got <= 0)
			return got < 0 ? (int)got : -EBADMSG;
		info.off += (uint64_t)got;
	}
	if (info.end - info.off >= RECORD_ALIGNMENT)
		return -EBADMSG;
	build->pending.nr = nr_of(&build->lines, sizeof(struct line)) - build->pending.first;
	return 0;
}

static int read_body(struct build *build, uint32_t id, uint64_t off, uint64_t end)
{
	size_t want = end - off < LOAD_BYTES + JITDUMP_MAX_NAME ? (size_t)(end - off) : LOAD_BYTES + JITDUMP_MAX_NAME;
	const uint8_t *bytes;
	struct reader body;
	ssize_t got;

	if (id == JIT_CODE_DEBUG_INFO)
		return read_debug_info(build, off, end);
	if (id != JIT_CODE_LOAD && id != JIT_CODE_MOVE)
		return 0;
	got = look(build, off, want, &bytes);
	if (got < 0)
		return (int)got;
	body = reader_of(bytes, (size_t)got);
	return id == JIT_CODE_LOAD ? read_load(build, &body) : read_move(build, &body);
}

/* 1: continue; 0: the end; negative errno. */
static int read_record(struct build *build, uint64_t file_size)
{
	const uint8_t *bytes;
	ssize_t got = look(build, build->file_off, RECORD_BYTES, &bytes);
	struct reader head;
	uint32_t id, size;
	int err;

	if (got < RECORD_BYTES)
		return got < 0 ? (int)got : 0;
	head = reader_of(bytes, RECORD_BYTES);
	id = reader_u32(&head);
	size = reader_u32(&head);
	if (size < RECORD_BYTES) {
		build->nr_refused++;
		return 0;
	}
	if (size > file_size - build->file_off) /* still being written */
		return 0;
	err = read_body(build, id, build->file_off + RECORD_BYTES, build->file_off + size);
	if (err && id == JIT_CODE_DEBUG_INFO)
		drop_lines(build);
	if (err && err != -EBADMSG)
		return err;
	build->nr_refused += err == -EBADMSG;
	build->file_off += size;
	return 1;
}

static int read_header(struct build *build)
{
	const uint8_t *bytes;
	ssize_t got = look(build, 0, HEADER_BYTES, &bytes);
	struct reader head;
	uint32_t magic, version, size;

	if (got < HEADER_BYTES)
		return got < 0 ? (int)got : -EBADMSG;
	head = reader_of(bytes, HEADER_BYTES);
	magic = reader_u32(&head);
	version = reader_u32(&head);
	size = reader_u32(&head);
	if (magic != JITDUMP_MAGIC || version != 1 || size < HEADER_BYTES)
		return -EBADMSG;
	build->file_off = size;
	return 0;
}

static int finish(struct build *build, struct jitdump **ret_dump)
{
	CLEANUP(jitdump_freep) struct jitdump *dump = calloc(1, sizeof(*dump));
	int err;

	if (!dump)
		return -ENOMEM;
	if (!build->pieces.size)
		return -ENODATA;
	dump->nr_pieces = nr_of(&build->pieces, sizeof(*dump->pieces));
	dump->nr_refused = build->nr_refused;
	dump->pieces = (struct code_piece *)(void *)MOVE(build->pieces.data);
	dump->functions = (struct function *)(void *)MOVE(build->functions.data);
	dump->lines = (struct line *)(void *)MOVE(build->lines.data);
	dump->text = MOVE(build->text.data);
	err = code_ranges_make(dump->pieces, dump->nr_pieces, &dump->ranges);
	if (!err)
		*ret_dump = MOVE(dump);
	return err;
}

int jitdump_read_fd(int fd, struct jitdump **ret_dump)
{
	CLEANUP(build_done)
	struct build build = { .fd = fd,
			       .window = malloc(WINDOW_BYTES),
			       .pieces = BUFFER_INIT(JITDUMP_MAX_PIECES * sizeof(struct code_piece)),
			       .functions = BUFFER_INIT(JITDUMP_MAX_PIECES * sizeof(struct function)),
			       .lines = BUFFER_INIT(JITDUMP_MAX_LINES * sizeof(struct line)),
			       .text = BUFFER_INIT(JITDUMP_MAX_TEXT) };
	struct stat st;
	uint32_t nr = 0;
	int err;

	if (!build.window)
		return -ENOMEM;
	if (fstat(fd, &st))
		return -errno;
	err = read_header(&build);
	for (; !err && nr < JITDUMP_MAX_RECORDS; nr++) {
		int more = build.file_off <= (uint64_t)st.st_size ? read_record(&build, (uint64_t)st.st_size) : 0;

		if (more <= 0) {
			err = more;
			break;
		}
	}
	build.nr_refused += nr == JITDUMP_MAX_RECORDS;
	return err ? err : finish(&build, ret_dump);
}

int jitdump_find(const struct jitdump *dump, uint64_t pc, struct jitdump_place *ret_location)
{
	const struct function *function;
	uint32_t i, lo = 0, hi;
	const struct line *lines;
	int err = code_ranges_find(&dump->ranges, pc, &i);

	if (err)
		return err;
	function = &dump->functions[dump->pieces[i].payload];
	*ret_location = (struct jitdump_place){ .name = dump->text + function->name, .start = dump->pieces[i].start, .file = "" };
	lines = function->nr_lines ? dump->lines + function->first_line : NULL;
	for (hi = function->nr_lines; lo < hi;) { /* number of lines that begin at or below pc */
		uint32_t mid = lo + (hi - lo) / 2;

		if (lines[mid].off <= pc - ret_location->start)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo && lines[lo - 1].line && dump->text[lines[lo - 1].file]) {
		ret_location->file = dump->text + lines[lo - 1].file;
		ret_location->line = lines[lo - 1].line;
	}
	return 0;
}

uint32_t jitdump_size(const struct jitdump *dump)
{
	return dump->nr_pieces;
}

uint32_t jitdump_nr_refused(const struct jitdump *dump)
{
	return dump->nr_refused;
}
