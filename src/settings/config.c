// SPDX-License-Identifier: Apache-2.0
#include "settings/config.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/library.h"

#define LIBRARY		"libyaml-0.so.2"
#define MAX_VALUE_BYTES 4096
#define NAME_BYTES	64

struct entry {
	char *key, *value;
	size_t line;
};

struct config {
	struct entry entries[OPTION_MAX_TEXTS]; /* of the file */
	uint32_t nr;
};

void config_free(struct config *config)
{
	if (!config)
		return;
	for (uint32_t i = 0; i < config->nr; i++) {
		free(config->entries[i].key);
		free(config->entries[i].value);
	}
	free(config);
}

/* --- settings ------------------------------------------------------------------------------------------------------------------------- */

/* Positionals are no settings, and neither is what chooses the file or ends at once. */
static bool is_setting(const struct option_spec *spec)
{
	static const char *const others[] = { "config", "print-config", "status", "format" };

	for (size_t i = 0; spec->name && i < ARRAY_SIZE(others); i++) {
		if (!strcmp(spec->name, others[i]))
			return false;
	}
	return spec->name;
}

static const char *setting_at(const void *verb, size_t i)
{
	const struct verb *of = verb;

	if (i >= of->nr_options)
		return NULL;
	return is_setting(&of->options[i]) ? of->options[i].name : "";
}

static const struct option_spec *find(const struct verb *verb, const char *key)
{
	for (size_t i = 0; i < verb->nr_options; i++) {
		if (is_setting(&verb->options[i]) && !strcmp(verb->options[i].name, key))
			return &verb->options[i];
	}
	return NULL;
}

static bool is_given(const struct option_spec *spec, const void *arguments)
{
	const void *field = (const char *)arguments + spec->offset;

	switch (spec->kind) {
	case OPTION_FLAG:
		return *(const bool *)field;
	case OPTION_TEXT:
		return *(const char *const *)field;
	case OPTION_TEXTS:
		return ((const struct option_texts *)field)->nr;
	default:
		return *(const uint64_t *)field;
	}
}

/* A flag is true or false: a word of the command line, but a value here. */
static int set(const struct option_spec *spec, const char *label, const char *value, void *arguments, struct diag *diag)
{
	if (spec->kind != OPTION_FLAG)
		return option_set(spec, label, value, arguments, diag);
	if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
		return diag_errno(diag, EINVAL, "%s is true or false, not '%.40s'", label, value);
	*(bool *)((char *)arguments + spec->offset) = *value == 't';
	return 0;
}

static void variable_of(const char *key, char name[NAME_BYTES])
{
	snprintf(name, NAME_BYTES, "SONDE_%s", key);
	for (char *at = name; *at; at++)
		*at = *at == '-' ? '_' : (char)toupper((unsigned char)*at);
}

static int fill_from_environment(const struct verb *verb, void *arguments, struct diag *diag)
{
	for (size_t i = 0; i < verb->nr_options; i++) {
		const struct option_spec *spec = &verb->options[i];
		char name[NAME_BYTES];
		const char *value;
		int err;

		if (!is_setting(spec) || is_given(spec, arguments))
			continue;
		variable_of(spec->name, name);
		value = getenv(name);
		err = value && *value ? set(spec, name, value, arguments, diag) : 0;
		if (err)
			return err;
	}
	return 0;
}

static int fill_from_file(const struct verb *verb, const struct config *config, const char *path, void *arguments, struct diag *diag)
{
	const struct option_spec *taken = NULL;

	for (uint32_t i = 0; i < config->nr; i++) {
		const struct entry *entry = &config->entries[i];
		const struct option_spec *spec = find(verb, entry->key);
		const char *nearest = spec ? NULL : option_nearest(entry->key, setting_at, verb);
		char label[192];
		int err;

		if (!spec)
			return diag_errno(diag, EINVAL, "%.120s:%zu: unknown setting '%.40s'%s%s%s", path, entry->line, entry->key,
					  nearest ? ": did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
		snprintf(label, sizeof(label), "%.120s:%zu: %s", path, entry->line, spec->name);
		if (spec == taken && spec->kind != OPTION_TEXTS) /* a list has several entries, one after the other */
			return diag_errno(diag, EINVAL, "%s has one value, not a list", label);
		if (is_given(spec, arguments) && spec != taken)
			continue;
		err = set(spec, label, entry->value, arguments, diag);
		if (err)
			return err;
		taken = spec;
	}
	return 0;
}

static void fill_from_defaults(const struct verb *verb, const void *defaults, void *arguments)
{
	for (size_t i = 0; i < verb->nr_options; i++) {
		const struct option_spec *spec = &verb->options[i];

		/* flags and lists have no defaults */
		if (is_setting(spec) && spec->kind != OPTION_FLAG && spec->kind != OPTION_TEXTS && !is_given(spec, arguments))
			memcpy((char *)arguments + spec->offset, (const char *)defaults + spec->offset,
			       spec->kind == OPTION_TEXT ? sizeof(const char *) : sizeof(uint64_t));
	}
}

/* --- the file ------------------------------------------------------------------------------------------------------------------------- */

struct yaml_api {
	__typeof__(yaml_parser_initialize) *parser_initialize;
	__typeof__(yaml_parser_set_input_file) *parser_set_input_file;
	__typeof__(yaml_parser_parse) *parser_parse;
	__typeof__(yaml_event_delete) *event_delete;
	__typeof__(yaml_parser_delete) *parser_delete;
};

/* Loads it for the life of the process. */
static int load_yaml(struct yaml_api *ret_api, struct diag *diag)
{
	const struct library_function functions[] = {
		{ "yaml_parser_initialize", &ret_api->parser_initialize },
		{ "yaml_parser_set_input_file", &ret_api->parser_set_input_file },
		{ "yaml_parser_parse", &ret_api->parser_parse },
		{ "yaml_event_delete", &ret_api->event_delete },
		{ "yaml_parser_delete", &ret_api->parser_delete },
	};
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	const char *missing;

	if (!library)
		return diag_errno(diag, ELIBACC, "a file of settings needs %s: install it (Debian: libyaml-0-2)", LIBRARY);
	missing = library_functions(library, functions, ARRAY_SIZE(functions));
	return missing ? diag_errno(diag, ELIBACC, "%s has no %s", LIBRARY, missing) : 0;
}

struct reading {
	struct yaml_api yaml;
	yaml_parser_t parser;
	yaml_event_t event; /* deleted when the next one is read, and at the end */
	const char *path;
	struct diag *diag;
};

static void reading_done(struct reading *reading)
{
	reading->yaml.event_delete(&reading->event);
	reading->yaml.parser_delete(&reading->parser);
}

static int bad(const struct reading *reading, const char *why)
{
	return diag_errno(reading->diag, EINVAL, "%.120s:%zu: %s", reading->path, reading->event.start_mark.line + 1, why);
}

static int next(struct reading *reading)
{
	reading->yaml.event_delete(&reading->event);
	if (reading->yaml.parser_parse(&reading->parser, &reading->event))
		return 0;
	return diag_errno(reading->diag, EINVAL, "%.120s:%zu: no YAML: %.120s", reading->path, reading->parser.problem_mark.line + 1,
			  reading->parser.problem ? reading->parser.problem : "no memory");
}

static int take_scalar(struct reading *reading, char **ret_text)
{
	if (reading->event.type != YAML_SCALAR_EVENT)
		return bad(reading, "a setting is a line of its own: store-max-age: 7d; where it may be repeated, also a list of values");
	if (reading->event.data.scalar.length > MAX_VALUE_BYTES)
		return bad(reading, "the value is too long");
	*ret_text = strdup((const char *)reading->event.data.scalar.value);
	return *ret_text ? 0 : -ENOMEM;
}

/* Adds an entry with the value at which the reading is. */
static int add_entry(struct reading *reading, const char *key, size_t line, struct config *config)
{
	struct entry *entry = &config->entries[config->nr];

	if (config->nr == ARRAY_SIZE(config->entries))
		return bad(reading, "too many settings");
	config->nr++;
	entry->line = line;
	entry->key = strdup(key);
	return entry->key ? take_scalar(reading, &entry->value) : -ENOMEM;
}

static int read_list(struct reading *reading, const char *key, size_t line, struct config *config)
{
	int err = next(reading);

	while (!err && reading->event.type != YAML_SEQUENCE_END_EVENT) {
		err = add_entry(reading, key, line, config);
		if (!err)
			err = next(reading);
	}
	return err;
}

static int read_entry(struct reading *reading, struct config *config)
{
	CLEANUP(freep) char *key = NULL;
	size_t line = reading->event.start_mark.line + 1;
	int err = take_scalar(reading, &key);

	for (uint32_t i = 0; !err && i < config->nr; i++) {
		if (!strcmp(config->entries[i].key, key))
			return bad(reading, "this setting was given before");
	}
	if (!err)
		err = next(reading);
	if (err)
		return err;
	return reading->event.type == YAML_SEQUENCE_START_EVENT ? read_list(reading, key, line, config) :
								  add_entry(reading, key, line, config);
}

static int read_mapping(struct reading *reading, struct config *config)
{
	int err = next(reading);

	while (!err && reading->event.type != YAML_MAPPING_END_EVENT) {
		err = read_entry(reading, config);
		if (!err)
			err = next(reading);
	}
	return err;
}

static int read_document(struct reading *reading, struct config *config)
{
	int err;

	do
		err = next(reading);
	while (!err && (reading->event.type == YAML_STREAM_START_EVENT || reading->event.type == YAML_DOCUMENT_START_EVENT));
	if (err || reading->event.type == YAML_STREAM_END_EVENT) /* an empty file has no settings */
		return err;
	if (reading->event.type != YAML_MAPPING_START_EVENT)
		return bad(reading, "settings are lines such as store-max-age: 7d");
	err = read_mapping(reading, config);
	return err ? err : next(reading);
}

static int read_stream(struct reading *reading, FILE *file, struct config *config)
{
	if (!reading->yaml.parser_initialize(&reading->parser))
		return -ENOMEM;
	reading->yaml.parser_set_input_file(&reading->parser, file);
	return read_document(reading, config);
}

static int read_file(const char *path, struct config *config, struct diag *diag)
{
	struct reading reading = { .path = path, .diag = diag };
	FILE *file;
	int err = load_yaml(&reading.yaml, diag);

	if (err)
		return err;
	file = fopen(path, "re");
	if (!file)
		return diag_errno(diag, errno, "cannot read %.200s: %s", path, strerror(errno));
	err = read_stream(&reading, file, config);
	reading_done(&reading);
	fclose(file);
	return err;
}

int config_fill(const struct verb *verb, void *arguments, const void *defaults, const char *path, struct diag *diag,
		struct config **ret_config)
{
	CLEANUP(config_freep) struct config *config = calloc(1, sizeof(*config));
	int err = config ? fill_from_environment(verb, arguments, diag) : -ENOMEM;

	if (!err && path)
		err = read_file(path, config, diag);
	if (!err)
		err = fill_from_file(verb, config, path, arguments, diag);
	if (err)
		return err;
	fill_from_defaults(verb, defaults, arguments);
	*ret_config = MOVE(config);
	return 0;
}

static bool is_same_text(const char *text, const char *other)
{
	return text == other || (text && other && !strcmp(text, other));
}

static bool is_same(const struct option_spec *spec, const void *field, const void *other)
{
	const struct option_texts *texts = field, *others = other;

	switch (spec->kind) {
	case OPTION_FLAG:
		return *(const bool *)field == *(const bool *)other;
	case OPTION_TEXT:
		return is_same_text(*(const char *const *)field, *(const char *const *)other);
	case OPTION_TEXTS:
		for (uint32_t i = 0; i < texts->nr && i < others->nr; i++) {
			if (!is_same_text(texts->texts[i], others->texts[i]))
				return false;
		}
		return texts->nr == others->nr;
	default:
		return *(const uint64_t *)field == *(const uint64_t *)other;
	}
}

bool config_is_same(const struct verb *verb, const void *arguments, const void *others)
{
	for (size_t i = 0; i < verb->nr_options; i++) {
		const struct option_spec *spec = &verb->options[i];

		if (is_setting(spec) && !is_same(spec, (const char *)arguments + spec->offset, (const char *)others + spec->offset))
			return false;
	}
	return true;
}

/* --- printing ------------------------------------------------------------------------------------------------------------------------- */

/* In single quotes, where YAML knows no escape but the quote's own. */
static void print_quoted(const char *text, struct buffer *buffer)
{
	buffer_text(buffer, "'");
	for (; *text; text++)
		buffer_printf(buffer, *text == '\'' ? "''" : "%c", *text);
	buffer_text(buffer, "'");
}

static void print_text(const char *name, const char *text, struct buffer *buffer)
{
	buffer_printf(buffer, "%s: ", name);
	print_quoted(text, buffer);
	buffer_text(buffer, "\n");
}

/* That a secret was given, as a comment; of a header also its name. */
static void print_secret(const struct option_spec *spec, const void *field, struct buffer *buffer)
{
	const struct option_texts *headers = field;

	if (spec->kind == OPTION_TEXT)
		buffer_printf(buffer, "# %s: '...'\n", spec->name);
	for (uint32_t i = 0; spec->kind == OPTION_TEXTS && i < headers->nr; i++)
		buffer_printf(buffer, "# %s: '%.*s: ...'\n", spec->name, (int)strcspn(headers->texts[i], ":"), headers->texts[i]);
}

static void print_texts(const char *name, const struct option_texts *texts, struct buffer *buffer)
{
	buffer_printf(buffer, "%s:", name);
	for (uint32_t i = 0; i < texts->nr; i++) {
		buffer_text(buffer, i ? ", " : " [");
		print_quoted(texts->texts[i], buffer);
	}
	buffer_text(buffer, "]\n");
}

void config_print(const struct verb *verb, const void *arguments, struct buffer *buffer)
{
	for (size_t i = 0; i < verb->nr_options; i++) {
		const struct option_spec *spec = &verb->options[i];
		const void *field = (const char *)arguments + spec->offset;

		if (!is_setting(spec) || !is_given(spec, arguments))
			continue;
		if (spec->is_secret)
			print_secret(spec, field, buffer);
		else if (spec->kind == OPTION_FLAG)
			buffer_printf(buffer, "%s: true\n", spec->name);
		else if (spec->kind == OPTION_TEXT)
			print_text(spec->name, *(const char *const *)field, buffer);
		else if (spec->kind == OPTION_TEXTS)
			print_texts(spec->name, field, buffer);
		else
			buffer_printf(buffer, "%s: %" PRIu64 "\n", spec->name, *(const uint64_t *)field);
	}
}
