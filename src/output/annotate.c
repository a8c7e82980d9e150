// SPDX-License-Identifier: Apache-2.0
/* The paths come from an untrusted profile. So only regular files are read, with the caller's rights, and code only from a file with the
 * build id of the sampled one. Source is read as text; the worker reads the code. A page may be passed on: there only source that may be
 * shown (source_lines.h). */
#include "output/annotate.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "frames/frame_text.h"
#include "parse/parser.h"
#include "proxy/proxy.h"
#include "show/source_lines.h"
#include "symbolize/debug_file.h"

#define MAX_PLACES	  10
#define NEAR_LINES	  3
#define MAX_PAGE_NS	  (2 * NS_PER_S) /* for all functions of a page; a stretch of code that was begun is finished */
#define MAX_PAGE_BYTES	  ((size_t)1 << 20)
#define MAX_PAGE_ROWS	  600 /* of the source and of the instructions of a function */
#define MAX_SOURCE_BYTES  ((off_t)64 << 20)
#define MAX_ANSWER_BYTES  ((size_t)512 << 20)
#define GUESS_BYTES	  16 /* shown after the last address if the function's end is not known */

struct annotator {
	const struct annotation *annotation;
	uint32_t near_lines;   /* of source, before and after those with samples */
	bool is_page;
	uint64_t give_up_ns;   /* of a page (clock_ns) */
	struct parser *parser; /* NULL: not started yet */
	struct proxy *proxy;
	uint32_t owner; /* of the file whose code is read */
	struct code_rows *rows;
};

static void annotator_done(struct annotator *annotator)
{
	parser_free(annotator->parser);
	proxy_free(annotator->proxy);
}

static const char *text_of(const struct annotator *annotator, uint32_t string)
{
	return profile_string_text(annotator->annotation->profile, string);
}

/* Returns a descriptor or a negative errno. */
static int open_file(const char *path, struct stat *st, struct diag *diag)
{
	int fd = file_open_regular(path, st);

	if (fd < 0)
		return diag_errno(diag, -fd, "%s", fd == -ENOEXEC ? "it is no regular file" : strerror(-fd));
	return fd;
}

/* --- source --------------------------------------------------------------------------------------------------------------------------- */

static int read_source(const struct annotator *annotator, const char *path, struct buffer *text, struct stat *st, struct diag *diag)
{
	CLEANUP(closep) int fd = open_file(path, st, diag);
	ssize_t got = 1;

	if (fd < 0)
		return fd;
	if (annotator->is_page && !source_may_be_shown(st))
		return diag_errno(diag, EACCES, "it is not for everybody to read");
	if (st->st_size > MAX_SOURCE_BYTES)
		return diag_errno(diag, EFBIG, "it is larger than any source");
	while (got > 0 && text->size < (size_t)st->st_size) {
		size_t want = (size_t)st->st_size - text->size;
		char *room = buffer_reserve(text, want);

		if (!room)
			return -ENOMEM;
		got = read(fd, room, want);
		text->size -= want - (got > 0 ? (size_t)got : 0);
	}
	return got < 0 ? diag_errno(diag, errno, "%s", strerror(errno)) : 0;
}

/* lines[0..nr) belong to one file. */
static int add_file(const struct annotator *annotator, const struct annotated_line *lines, uint32_t nr)
{
	CLEANUP(buffer_done) struct buffer text = BUFFER_INIT((size_t)MAX_SOURCE_BYTES + 1);
	uint64_t start_ns = profile_account_of(annotator->annotation->profile)->start_unix_ns;
	const char *path = text_of(annotator, lines->file);
	struct buffer *heading = &annotator->rows->texts;
	struct diag diag = { 0 };
	struct stat st;
	int err = read_source(annotator, path, &text, &st, &diag);

	if (err == -ENOMEM || !code_rows_add(annotator->rows, CODE_ROW_FILE, 0))
		return -ENOMEM;
	plain_text(heading, path, ';');
	if (err)
		buffer_printf(heading, ": not here (%s)", diag.text);
	else if (start_ns && st.st_mtime > 0 && (uint64_t)st.st_mtime > start_ns / NS_PER_S)
		buffer_text(heading, ": changed since the profile was taken: lines may have moved");
	if (code_rows_end_text(annotator->rows))
		return -ENOMEM;
	return annotation_source(lines, nr, err ? NULL : text.data ? text.data : "", text.size, annotator->near_lines, annotator->rows);
}

static int add_lines(const struct annotator *annotator, uint32_t place)
{
	const struct annotation *annotation = annotator->annotation;
	uint32_t from = 0, to;
	int err = 0;

	while (from < annotation->nr_lines && annotation->lines[from].place < place)
		from++;
	if (from == annotation->nr_lines || annotation->lines[from].place > place)
		err = code_rows_add_text(annotator->rows, CODE_ROW_NO_SOURCE, 0, "the profile has no lines of this function");
	for (; !err && from < annotation->nr_lines && annotation->lines[from].place == place; from = to) {
		for (to = from; to < annotation->nr_lines && annotation->lines[to].place == place &&
				annotation->lines[to].file == annotation->lines[from].file;
		     to++)
			;
		err = add_file(annotator, &annotation->lines[from], to - from);
	}
	return err;
}

/* --- code ----------------------------------------------------------------------------------------------------------------------------- */

static int open_for_worker(void *arg, const char *path)
{
	const struct annotator *annotator = arg;

	return proxy_open_debug(annotator->proxy, 0, &(struct debugged){ .owner = annotator->owner }, path, DEBUG_FILE_MAX_BYTES);
}

/* Opens the file that was sampled, if it is still there. 0, or an error with the reason in `diag`. */
static int open_sampled(const struct annotator *annotator, const struct annotated_place *place, struct diag *diag,
			struct elf_file **ret_elf)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	const char *path = text_of(annotator, place->path), *build_id = text_of(annotator, place->build_id);
	char here[2 * BUILD_ID_MAX + 1];
	struct stat st;
	int fd, err;

	if (place->kind == FRAME_KERNEL)
		return diag_errno(diag, ENOENT, "the kernel's code is in no file");
	if (frame_is_interpreted(place->kind))
		return diag_errno(diag, ENOENT, "an interpreter runs it: it has no instructions of its own");
	if (place->kind != FRAME_NATIVE)
		return diag_errno(diag, ENOENT, "it is no function");
	if (!place->has_mapping || *path != '/')
		return diag_errno(diag, ENOENT, "it is in no file: made at run time, or the kernel's");
	if (!*build_id)
		return diag_errno(diag, ENOENT,
				  "the profile has no build id of the file, so it is unknown whether the file here is the same");
	fd = open_file(path, &st, diag);
	if (fd < 0)
		return fd;
	err = elf_file_open_fd(fd, diag, &elf);
	if (err) {
		close(fd);
		return err;
	}
	build_id_text(elf_file_build_id(elf), here);
	if (strcmp(here, build_id) != 0)
		return diag_errno(diag, ESTALE, "the file here is another one: its build id is %s", *here ? here : "missing");
	*ret_elf = MOVE(elf);
	return 0;
}

static void freep_listing(struct shown_instruction **instructions)
{
	free(*instructions);
}

/* Converts file offsets to addresses as linked, by the file's headers; 0 where that fails. */
static void link_addresses(const struct elf_file *elf, struct annotated_address *addresses, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t elf_vaddr = 0;

		if (!addresses[i].is_file_off)
			continue;
		if (elf_file_off_to_vaddr(elf, addresses[i].elf_vaddr, &elf_vaddr))
			elf_vaddr = 0;
		addresses[i].elf_vaddr = elf_vaddr;
		addresses[i].is_file_off = 0;
	}
}

/* For a return address, returns an address in the call before it: the call may be a function's last instruction. */
static uint64_t inside(const struct annotated_address *address)
{
	return address->elf_vaddr - (address->class == ADDRESS_CALL);
}

static int read_listing(const struct code_listing *answer, struct shown_instruction **ret_instructions, uint32_t *ret_nr)
{
	CLEANUP(freep_listing) struct shown_instruction *instructions = NULL;
	struct code_listing listing = *answer;
	struct code_line line;
	uint32_t nr = 0;

	while (code_listing_next(&listing, &line))
		nr++;
	if (listing.lines.bad)
		return -EBADMSG;
	instructions = calloc((size_t)nr + 1, sizeof(*instructions));
	if (!instructions)
		return -ENOMEM;
	listing = *answer;
	for (uint32_t i = 0; i < nr && code_listing_next(&listing, &line); i++)
		instructions[i] = (struct shown_instruction){ .elf_vaddr = line.elf_vaddr, .nr_bytes = line.nr_bytes, .text = line.text };
	*ret_instructions = MOVE(instructions);
	*ret_nr = nr;
	return 0;
}

static int ask(struct annotator *annotator, const struct elf_file *elf, const char *path, const struct code_request *request,
	       struct diag *diag, struct buffer *answer)
{
	int err = annotator->parser ? 0 : parser_new_for_code(diag, &annotator->parser);

	if (!err && !annotator->proxy)
		err = parser_ready(annotator->parser, diag) ?: proxy_new(diag, &annotator->proxy);
	annotator->owner = elf_file_owner(elf);
	return err ? err : parser_code(annotator->parser, elf, path, request, open_for_worker, annotator, diag, answer);
}

/* Adds one stretch of code: the function around the first address. *ret_nr: number of the addresses in it. */
static int add_stretch(struct annotator *annotator, const struct elf_file *elf, const struct annotated_place *place,
			const struct annotated_address *addresses, uint32_t nr, uint32_t *ret_nr, struct diag *diag)
{
	CLEANUP(buffer_done) struct buffer answer = BUFFER_INIT(MAX_ANSWER_BYTES);
	CLEANUP(freep_listing) struct shown_instruction *instructions = NULL;
	struct code_request request = { .elf_vaddr = inside(addresses) };
	struct code_listing listing;
	uint32_t nr_instructions, nr_here = 0, nr_left;
	int err;

	if (addresses->function_off && addresses->function_off <= addresses->elf_vaddr) {
		request.guess_start = addresses->elf_vaddr - addresses->function_off;
		request.guess_end = addresses[nr - 1].elf_vaddr + GUESS_BYTES;
	}
	err = ask(annotator, elf, text_of(annotator, place->path), &request, diag, &answer);
	if (!err)
		err = code_listing_open(answer.data, answer.size, &listing);
	if (!err)
		err = read_listing(&listing, &instructions, &nr_instructions);
	if (err)
		return diag_errno(diag, -err, "what was read of it is not sound");
	while (nr_here < nr && inside(&addresses[nr_here]) < listing.end)
		nr_here++;
	*ret_nr = nr_here ? nr_here : 1; /* at least one, whatever the worker answers */
	nr_left = annotation_give(addresses, *ret_nr, instructions, nr_instructions);
	if (!code_rows_add(annotator->rows, CODE_ROW_CODE, 0))
		return -ENOMEM;
	buffer_printf(&annotator->rows->texts, "0x%" PRIx64 " to 0x%" PRIx64 "%s%s", listing.start, listing.end,
		      listing.is_guess ? ", which no symbol covers: where it ends is not known" : "",
		      listing.is_cut ? ", of which the first MiB is shown" : "");
	err = code_rows_end_text(annotator->rows);
	if (!err)
		err = annotation_instructions(instructions, nr_instructions, annotator->rows);
	return err || !nr_left ? err : code_rows_add_text(annotator->rows, CODE_ROW_NOWHERE, nr_left, "");
}

static int by_address(const void *a, const void *b)
{
	const struct annotated_address *left = a, *right = b;

	return (inside(left) > inside(right)) - (inside(left) < inside(right));
}

static int add_code(struct annotator *annotator, const struct annotated_place *place, const struct annotated_address *sampled, uint32_t nr,
		     struct diag *diag)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(freep) struct annotated_address *addresses = NULL;
	uint32_t nr_here = 0;
	int err = open_sampled(annotator, place, diag, &elf);

	if (err)
		return err;
	if (!nr)
		return diag_errno(diag, ENODATA, "the profile has no addresses of it");
	addresses = calloc(nr, sizeof(*addresses));
	if (!addresses)
		return -ENOMEM;
	memcpy(addresses, sampled, nr * sizeof(*addresses));
	link_addresses(elf, addresses, nr);
	qsort(addresses, nr, sizeof(*addresses), by_address);
	for (uint32_t i = 0; !err && i < nr; i += nr_here) {
		if (annotator->is_page && clock_ns() > annotator->give_up_ns)
			return diag_errno(diag, ETIME, "reading it all took too long");
		err = add_stretch(annotator, elf, place, &addresses[i], nr - i, &nr_here, diag);
	}
	return err;
}

/* Reads the source and the code of a place. */
static int add_place(struct annotator *annotator, uint32_t number)
{
	const struct annotation *annotation = annotator->annotation;
	uint32_t from = 0, to;
	struct diag diag = { 0 };
	int err = add_lines(annotator, number);

	if (err)
		return err;
	while (from < annotation->nr_addresses && annotation->addresses[from].place < number)
		from++;
	for (to = from; to < annotation->nr_addresses && annotation->addresses[to].place == number; to++)
		;
	err = add_code(annotator, &annotation->places[number], annotation->addresses + from, to - from, &diag);
	if (!err || err == -ENOMEM)
		return err;
	return code_rows_add_text(annotator->rows, CODE_ROW_NO_CODE, 0, diag.err ? diag.text : strerror(-err));
}

static int show_one(struct annotator *annotator, uint32_t number, const struct show_options *options, struct buffer *buffer)
{
	CLEANUP(code_rows_done) struct code_rows rows = { 0 };
	int err;

	annotator->rows = &rows;
	show_place(annotator->annotation, number, options, buffer);
	err = add_place(annotator, number);
	if (!err)
		show_code_rows(&rows, annotator->annotation->places[number].total, options, buffer);
	return err;
}

int annotate_function(const struct profile *profile, const char *function, const struct show_options *options, struct diag *diag,
		      struct buffer *buffer)
{
	CLEANUP(annotation_done) struct annotation annotation = { 0 };
	CLEANUP(annotator_done) struct annotator annotator = { .annotation = &annotation, .near_lines = NEAR_LINES };
	int err = annotation_make(profile, function, diag, &annotation);

	for (uint32_t i = 0; !err && i < annotation.nr_places && i < MAX_PLACES; i++) {
		buffer_text(buffer, i ? "\n" : "");
		err = show_one(&annotator, i, options, buffer);
	}
	if (!err && annotation.nr_places > MAX_PLACES)
		buffer_printf(buffer, "\n%" PRIu32 " more functions or files are not shown\n", annotation.nr_places - MAX_PLACES);
	return err;
}

/* --- of a page ------------------------------------------------------------------------------------------------------------------------ */

/* The place with the largest value of its own that is not taken yet; PROFILE_NONE: there is none. */
static uint32_t next_place(const struct annotation *annotation, const bool *is_taken)
{
	uint32_t best = PROFILE_NONE;

	for (uint32_t i = 0; i < annotation->nr_places; i++) {
		if (!is_taken[i] && annotation->places[i].self > 0 && annotation_has_code(annotation->places[i].kind) &&
		    (best == PROFILE_NONE || annotation->places[i].self > annotation->places[best].self))
			best = i;
	}
	return best;
}

static int leave_out(struct annotator *annotator, const char *why)
{
	int err = code_rows_add_text(annotator->rows, CODE_ROW_NO_SOURCE, 0, why);

	return err ? err : code_rows_add_text(annotator->rows, CODE_ROW_NO_CODE, 0, why);
}

static int add_within_bounds(struct annotator *annotator, uint32_t place, size_t nr_bytes)
{
	if (nr_bytes > MAX_PAGE_BYTES)
		return leave_out(annotator, "the hotter functions have filled its room in the page");
	if (clock_ns() > annotator->give_up_ns)
		return leave_out(annotator, "reading that of hotter functions took too long");
	return add_place(annotator, place);
}

int annotate_hottest(const struct profile *profile, uint32_t near_lines, struct diag *diag, struct annotated_code *code)
{
	CLEANUP(annotation_done) struct annotation annotation = { 0 };
	CLEANUP(annotator_done)
	struct annotator annotator = {
		.annotation = &annotation, .near_lines = near_lines, .is_page = true, .give_up_ns = clock_ns() + MAX_PAGE_NS
	};
	CLEANUP(freep) bool *is_taken = NULL;
	size_t nr_bytes = 0;
	int err = annotation_make_hottest(profile, diag, &annotation);

	if (err)
		return err;
	is_taken = calloc((size_t)annotation.nr_places + 1, sizeof(*is_taken));
	if (!is_taken)
		return -ENOMEM;
	while (!err && code->nr < ANNOTATED_FUNCTIONS_MAX) {
		uint32_t place = next_place(&annotation, is_taken);

		if (place == PROFILE_NONE)
			break;
		is_taken[place] = true;
		code->list[code->nr].place = annotation.places[place];
		annotator.rows = &code->list[code->nr++].rows;
		err = add_within_bounds(&annotator, place, nr_bytes);
		code_rows_cut(annotator.rows, MAX_PAGE_ROWS);
		nr_bytes += code_rows_bytes(annotator.rows);
	}
	return err;
}
