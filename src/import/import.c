// SPDX-License-Identifier: Apache-2.0
#include "import/import.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "codec/json_read.h"
#include "codec/protobuf_read.h"
#include "import/readers.h"
#include "importer/importer.h"
#include "perfdata/perf_data.h"
#include "viewers/viewers.h"

#define TEXT_BYTES	((size_t)1 << 20) /* of one name, label or comment */
#define BUDGET_PER_BYTE 64
#define BUDGET_ANYHOW	((uint64_t)1 << 20)
#define LOOK_BYTES	((size_t)64 << 10) /* how many bytes are examined to detect the format */

#define X(id, name, text) name,
static const char *const names[] = { IMPORT_FORMAT_LIST(X) };
#undef X
#define X(id, name, text) text,
static const char *const texts[] = { IMPORT_FORMAT_LIST(X) };
#undef X
#define X(id, name, text) " " name
static const char all_names[] = IMPORT_FORMAT_LIST(X);
#undef X
#define X(id, text) text,
static const char *const loss_texts[] = { IMPORT_LOSS_LIST(X) };
#undef X

static int (*const readers[])(struct importer *importer) = {
	[IMPORT_PPROF] = read_pprof,
	[IMPORT_FOLDED] = read_folded,
	[IMPORT_JSON] = read_json,
	[IMPORT_PERF_SCRIPT] = read_perf_script,
	[IMPORT_OTLP] = read_otlp,
	[IMPORT_OTLP_JSON] = read_otlp_json,
	[IMPORT_JSONL] = read_jsonl,
	[IMPORT_PAGE] = read_page,
	[IMPORT_SPEEDSCOPE] = read_speedscope,
	[IMPORT_CPUPROFILE] = read_cpuprofile,
	[IMPORT_FIREFOX] = read_firefox,
};

const char *import_format_name(enum import_format format)
{
	return names[format];
}

const char *import_format_text(enum import_format format)
{
	return texts[format];
}

int import_format_by_name(const char *name, struct diag *diag, enum import_format *ret_format)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(name, names[i])) {
			*ret_format = (enum import_format)i;
			return 0;
		}
	}
	return diag_errno(diag, EINVAL, "there is no format '%.64s' to read; there are:%s", name, all_names);
}

bool import_is_gzip(const void *bytes, size_t size)
{
	return size > 2 && !memcmp(bytes, "\x1f\x8b", 2);
}

static bool is_text(const char *bytes, size_t size)
{
	for (size_t i = 0; i < size && i < LOOK_BYTES; i++) {
		if ((uint8_t)bytes[i] < ' ' && bytes[i] != '\n' && bytes[i] != '\t' && bytes[i] != '\r')
			return false;
	}
	return true;
}

static int unknown(struct diag *diag, const char *what)
{
	return diag_errno(diag, EINVAL, "it is %s; what can be read is:%s (or say --from)", what, all_names);
}

/* Keys of the outermost object that tell a format together. */
#define KEY_LIST(X) \
	X(RECORD, "record") X(SHARED, "shared") X(PROFILES, "profiles") X(NODES, "nodes") X(START, "startTime") \
	X(META, "meta") X(THREADS, "threads") X(EVENTS, "traceEvents") X(SNAPSHOT, "snapshot") X(HEAD, "head")

#define X(id, key) KEY_##id,
enum key { KEY_LIST(X) NR_KEYS };
#undef X

static uint32_t key_bit(const char *key)
{
#define X(id, key) key,
	static const char *const keys[] = { KEY_LIST(X) };
#undef X

	for (uint32_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (!strcmp(key, keys[i]))
			return 1u << i;
	}
	return 0;
}

/* The format that has all these keys. */
static int detect_by_keys(uint32_t seen, bool is_whole, struct diag *diag, enum import_format *ret_format)
{
#define HAS(a, b) ((seen & (1u << KEY_##a | 1u << KEY_##b)) == (1u << KEY_##a | 1u << KEY_##b))
	if (HAS(SHARED, PROFILES))
		*ret_format = IMPORT_SPEEDSCOPE;
	else if (HAS(META, THREADS))
		*ret_format = IMPORT_FIREFOX;
	else if (HAS(NODES, START))
		*ret_format = IMPORT_CPUPROFILE;
	else if (HAS(EVENTS, EVENTS))
		return unknown(diag, "a file of Chrome's trace events, which are no stacks");
	else if (HAS(SNAPSHOT, NODES))
		return unknown(diag, "a heap snapshot, which is no profile");
	else if (HAS(HEAD, START))
		return unknown(diag, "a CPU profile in the form of before 2016");
	else
		return unknown(diag, is_whole ? "JSON of a kind that is not known" : "no whole JSON");
#undef HAS
	return 0;
}

/* Detects the format by the keys of the outermost object. Of sonde's lines, each an object, the first one is examined. */
static int detect_json(const char *bytes, size_t size, struct diag *diag, enum import_format *ret_format)
{
	struct json_reader r = json_reader_of(bytes, size);
	CLEANUP(buffer_done) struct buffer key = BUFFER_INIT(TEXT_BYTES);
	uint32_t seen = 0;

	for (bool more = json_enter(&r, '{') && json_next_key(&r, &key); more && !key.err; more = json_next_key(&r, &key)) {
		if (otlp_json_is(key.data, json_peek(&r))) {
			*ret_format = IMPORT_OTLP_JSON;
			return 0;
		}
		seen |= key_bit(key.data);
		if (seen == 1u << KEY_RECORD) {
			*ret_format = IMPORT_JSONL;
			return 0;
		}
		if (!strcmp(key.data, "format")) {
			json_read_text(&r, &key);
			if (!r.bad && !key.err && !strcmp(key.data, "sonde-profile")) {
				*ret_format = IMPORT_JSON;
				return 0;
			}
		}
		json_skip(&r);
	}
	return detect_by_keys(seen, !r.bad, diag, ret_format);
}

/* What is not read, but known by its first bytes. */
static const struct {
	const char *begins, *what;
} strangers[] = {
	{ "FLR", "a Flight Recorder's recording (JFR): convert it to pprof or folded stacks, e.g. with async-profiler's jfrconv" },
	{ "Nettrace", "a .NET trace (nettrace): convert it to speedscope with dotnet-trace convert" },
	{ "go 1.", "an execution trace of Go: go tool trace -pprof=TYPE makes a profile of it" },
	{ "\x7f" "ELF", "a program (ELF)" },
	{ "PK\x03\x04", "a zip archive" },
	{ "SQLite format 3", "an SQLite database" },
	{ "\x28\xb5\x2f\xfd", "packed with zstd" },
	{ "\xfd" "7zXZ", "packed with xz" },
	{ "BZh", "packed with bzip2" },
	{ "# callgrind format", "a profile of valgrind's callgrind, which has no stacks" },
	{ "version: 1\ncreator: callgrind", "a profile of valgrind's callgrind, which has no stacks" },
	{ "desc: ", "a report of valgrind's massif" },
};

static const char *stranger(const char *bytes, size_t size)
{
	for (size_t i = 0; i < ARRAY_SIZE(strangers); i++) {
		size_t length = strlen(strangers[i].begins);

		if (size > length && !memcmp(bytes, strangers[i].begins, length))
			return strangers[i].what;
	}
	return NULL;
}

/* perf script indents frames, and its lines end in ":" or "(file)". Lines of folded stacks end in a number. */
static bool is_perf_script(const char *bytes, size_t size)
{
	const char *pos = bytes, *end = bytes + (size < LOOK_BYTES ? size : LOOK_BYTES);

	while (pos < end) {
		const char *newline = memchr(pos, '\n', (size_t)(end - pos)), *last = newline ? newline : end;

		while (last > pos && strchr(" \t\r", last[-1]) && last[-1])
			last--;
		if (last > pos && *pos != '#' && (*pos == ' ' || *pos == '\t' || last[-1] == ')' || last[-1] == ':'))
			return true;
		pos = newline ? newline + 1 : end;
	}
	return false;
}

/* pprof has its string table in field 6. OTLP has two fields only. */
static int detect_binary(const void *bytes, size_t size, struct diag *diag, enum import_format *ret_format)
{
	struct reader message = reader_of(bytes, size);
	struct protobuf_field field;
	uint32_t seen = 0;

	while (protobuf_next(&message, &field) && field.number <= 15)
		seen |= 1u << field.number;
	if (seen >> 6 & 1) {
		*ret_format = IMPORT_PPROF;
		return 0;
	}
	if (!message.bad && (seen == 1u << 1 || seen == (1u << 1 | 1u << 2)) && field.number <= 2) {
		*ret_format = IMPORT_OTLP;
		return 0;
	}
	return unknown(diag, "of no known format");
}

static bool is_html(const char *text, size_t size)
{
	static const char *const begins[] = { "<!doctype", "<html", "<?xml", "<svg" };

	for (size_t i = 0; i < ARRAY_SIZE(begins); i++) {
		if (size > strlen(begins[i]) && !strncasecmp(text, begins[i], strlen(begins[i])))
			return true;
	}
	return false;
}

static int detect_html(const char *text, size_t size, struct diag *diag, enum import_format *ret_format)
{
	if (!memmem(text, size, PAGE_DATA_BEGINS, strlen(PAGE_DATA_BEGINS)))
		return unknown(diag, "HTML or XML, and holds no profile of sonde");
	*ret_format = IMPORT_PAGE;
	return 0;
}

int import_detect(const void *bytes, size_t size, struct diag *diag, enum import_format *ret_format)
{
	const char *text = bytes, *known;
	size_t at = 0;

	if (!size)
		return unknown(diag, "empty");
	if (perf_data_is(bytes, size)) {
		*ret_format = IMPORT_PERF_DATA;
		return 0;
	}
	known = stranger(text, size);
	if (known)
		return unknown(diag, known);
	if (!is_text(text, size))
		return detect_binary(bytes, size, diag, ret_format);
	while (at < size && strchr(" \t\r\n", text[at]) && text[at])
		at++;
	if (at < size && text[at] == '{')
		return detect_json(text, size, diag, ret_format);
	if (is_html(text + at, size - at))
		return detect_html(text, size, diag, ret_format);
	*ret_format = is_perf_script(text, size) ? IMPORT_PERF_SCRIPT : IMPORT_FOLDED;
	return 0;
}

static void importer_done(struct importer *importer)
{
	buffer_done(&importer->text);
	u64_map_done(&importer->names);
	u64_map_done(&importer->nameless);
	free(importer->frames);
}

static void note_losses(const struct importer *importer)
{
	for (int i = 0; i < IMPORT_LOSS_COUNT; i++) {
		if (importer->losses[i])
			account_note(profile_account(importer->profile), "%" PRIu64 " %s", importer->losses[i], loss_texts[i]);
	}
}

/* Fills in the account's event if the file gave none. */
static void settle_account(struct profile *profile)
{
	struct account *account = profile_account(profile);
	uint32_t nr_types;
	const struct profile_value_type *shown = profile_value_types(profile, &nr_types) + profile_shown_value(profile);

	if (!*account->event) {
		snprintf(account->event, sizeof(account->event), "%s", profile_string_text(profile, shown->type));
		snprintf(account->event_unit, sizeof(account->event_unit), "%s", profile_string_text(profile, shown->unit));
	}
}

int import_read(const void *bytes, size_t size, enum import_format format, struct profile *profile, struct diag *diag, uint32_t *ret_nr_own)
{
	CLEANUP(importer_done) struct importer importer = {
		.profile = profile,
		.diag = diag,
		.bytes = bytes,
		.size = size,
		.text = BUFFER_INIT(TEXT_BYTES),
		.budget = (uint64_t)size * BUDGET_PER_BYTE + BUDGET_ANYHOW,
	};
	int err = format < ARRAY_SIZE(readers) ? readers[format](&importer) : unknown(diag, "more than a file");

	if (err == -ENOMEM && importer.text.err == -EFBIG)
		err = diag_errno(diag, EFBIG, "a text in it is longer than %zu bytes", TEXT_BYTES);
	if (err == -ENOMEM)
		return diag_errno(diag, ENOMEM, "no memory for what it holds");
	if (err)
		return err;
	*ret_nr_own = profile_account(profile)->nr_notes;
	note_losses(&importer);
	settle_account(profile);
	return 0;
}
