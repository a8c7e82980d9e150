// SPDX-License-Identifier: Apache-2.0
#include "cli/option.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The state of parsing one command line. */
struct parse {
	const struct verb *verb;
	int argc, at;
	char *const *argv;
	void *arguments;
	struct option_result *result;
	struct diag *diag;
	size_t nr_positionals;
};

static const struct option_spec common_options[] = {
	{ .group = "Help", .letter = 'h', .name = "help", .help = "print this help", .offset = offsetof(struct option_result, help) },
	{ .name = "version", .help = "print the version", .offset = offsetof(struct option_result, version) },
};

const struct option_spec *option_at(const struct verb *verb, size_t i)
{
	if (i < verb->nr_options)
		return &verb->options[i];
	i -= verb->nr_options;
	return i < ARRAY_SIZE(common_options) ? &common_options[i] : NULL;
}

/* For messages: "-F" or, without a letter, "--offsets" or "DURATION". Returns `room` (64 bytes). */
static const char *option_label(const struct option_spec *spec, char room[64])
{
	if (spec->letter)
		snprintf(room, 64, "-%c", spec->letter);
	else
		snprintf(room, 64, "%s%s", spec->name ? "--" : "", spec->name ? spec->name : spec->metavar);
	return room;
}

/* Stores the value of options[i] and sets its bit in `given`. */
static int accept(struct parse *p, size_t i, const char *label, const char *value)
{
	const struct option_spec *spec = option_at(p->verb, i);

	if (i >= p->verb->nr_options)
		return option_set(spec, label, value, p->result, p->diag);
	if (spec->is_secret) {
		if (p->result->nr_secrets == OPTION_MAX_SECRETS)
			return diag_errno(p->diag, EINVAL, "%s is given too often", label);
		p->result->secrets[p->result->nr_secrets++] = value;
	}
	p->result->given |= 1ULL << i;
	return option_set(spec, label, value, p->arguments, p->diag);
}

/* Takes the next word as the value. */
static int next_value(struct parse *p, const struct option_spec *spec, const char *label, const char **ret_value)
{
	if (spec->instead_of_none && (p->at >= p->argc || p->argv[p->at][0] < '0' || p->argv[p->at][0] > '9')) {
		*ret_value = spec->instead_of_none;
		return 0;
	}
	if (p->at >= p->argc)
		return diag_errno(p->diag, EINVAL, "%s needs a value: %s %s", label, label, spec->metavar);
	*ret_value = p->argv[p->at++];
	return 0;
}

static const char *long_name_at(const void *names, size_t i)
{
	const struct option_spec *spec = option_at(names, i);

	if (!spec)
		return NULL;
	return spec->name && !spec->hidden ? spec->name : "";
}

static int unknown_long(struct parse *p, const char *name, int length)
{
	char text[64];
	const char *nearest;

	snprintf(text, sizeof(text), "%.*s", length, name);
	nearest = option_nearest(text, long_name_at, p->verb);
	return diag_errno(p->diag, EINVAL, "unknown option --%.*s%s%s%s", length, name, nearest ? ": did you mean --" : "",
			  nearest ? nearest : "", nearest ? "?" : "");
}

static bool is_name(const char *known, const char *name, size_t length)
{
	return known && strlen(known) == length && !memcmp(known, name, length);
}

static int exact_long(const struct verb *verb, const char *name, size_t length, size_t *ret_i)
{
	const struct option_spec *spec;

	for (size_t i = 0; (spec = option_at(verb, i)); i++) {
		if (is_name(spec->name, name, length) || is_name(spec->otel_name, name, length)) {
			*ret_i = i;
			return 0;
		}
	}
	return -ENOENT;
}

/* Finds an exact name, or the only name with this beginning. */
static int find_long(struct parse *p, const char *name, size_t length, size_t *ret_i)
{
	const struct option_spec *spec, *found = NULL;
	int shown = length > 40 ? 40 : (int)length; /* a message is one line */

	if (!exact_long(p->verb, name, length, ret_i))
		return 0;
	for (size_t i = 0; (spec = option_at(p->verb, i)); i++) {
		if (!spec->name || spec->hidden || strncmp(spec->name, name, length) != 0)
			continue;
		if (found)
			return diag_errno(p->diag, EINVAL, "--%.*s can mean --%s and --%s: write more of it", shown, name, found->name,
					  spec->name);
		found = spec;
		*ret_i = i;
	}
	return found ? 0 : unknown_long(p, name, shown);
}

static int parse_long(struct parse *p, const char *text)
{
	size_t length = strcspn(text, "="), i = 0;
	const char *value = NULL;
	const struct option_spec *spec;
	char label[64];
	int err = find_long(p, text, length, &i);

	if (err)
		return err;
	spec = option_at(p->verb, i);
	snprintf(label, sizeof(label), "--%s", spec->name);
	if (text[length] && !spec->metavar)
		return diag_errno(p->diag, EINVAL, "%s takes no value: leave '%.40s' out", label, text + length);
	if (text[length])
		value = text + length + 1;
	else if (spec->metavar && (err = next_value(p, spec, label, &value)))
		return err;
	return accept(p, i, label, value);
}

static const struct option_spec *find_letter(const struct verb *verb, char letter, size_t *ret_i)
{
	const struct option_spec *spec;

	for (size_t i = 0; (spec = option_at(verb, i)); i++) {
		if (spec->letter && spec->letter == letter) {
			*ret_i = i;
			return spec;
		}
	}
	return NULL;
}

/* Parses "-Uf", "-F99", "-F 99": letters up to the first that takes a value. The value is the rest of the word or the next word. */
static int parse_letters(struct parse *p, const char *word)
{
	for (const char *at = word + 1; *at; at++) {
		char label[64] = { '-', *at };
		const char *value = NULL;
		size_t i = 0;
		const struct option_spec *spec = find_letter(p->verb, *at, &i);
		int err = 0;

		if (!spec && at == word + 1 && !at[1])
			return diag_errno(p->diag, EINVAL, "unknown option %s", label);
		if (!spec)
			return diag_errno(p->diag, EINVAL, "unknown option %s in %.40s", label, word);
		if (spec->metavar && at[1])
			value = at + 1;
		else if (spec->metavar)
			err = next_value(p, spec, label, &value);
		if (!err)
			err = accept(p, i, label, value);
		if (err || spec->metavar)
			return err;
	}
	return 0;
}

static int parse_positional(struct parse *p, const char *word)
{
	size_t want = p->nr_positionals++, seen = 0;
	const char *command = p->verb->takes_command ? ", or write -- before a command" : "";
	const struct option_spec *spec;

	for (size_t i = 0; (spec = option_at(p->verb, i)); i++) {
		if (spec->name || seen++ != want)
			continue;
		if (p->verb->takes_command && spec->kind == OPTION_NUMBER && !strpbrk(word, "0123456789"))
			return diag_errno(p->diag, EINVAL, "'%.60s' is no %s, which is a whole number%s", word, spec->metavar, command);
		return accept(p, i, spec->metavar, word);
	}
	return diag_errno(p->diag, EINVAL, "'%.60s' is one word too many: leave it out%s", word, command);
}

static int parse_word(struct parse *p)
{
	const char *word = p->argv[p->at++];
	bool number = word[0] == '-' && word[1] >= '0' && word[1] <= '9'; /* no option is a digit: a negative positional */

	if (word[0] != '-' || !word[1] || number)
		return parse_positional(p, word);
	return word[1] == '-' ? parse_long(p, word + 2) : parse_letters(p, word);
}

static int check_exclusions(struct parse *p)
{
	for (size_t i = 0; i < p->verb->nr_options; i++) {
		const struct option_spec *spec = &p->verb->options[i], *other;
		char label[64], other_label[64];
		size_t k = 0;

		if (!spec->excludes || !(p->result->given >> i & 1) || exact_long(p->verb, spec->excludes, strlen(spec->excludes), &k))
			continue;
		other = option_at(p->verb, k);
		if (p->result->given >> k & 1)
			return diag_errno(p->diag, EINVAL, "%s and %s exclude each other: %s", option_label(other, other_label),
					  option_label(spec, label), spec->instead);
	}
	return 0;
}

int option_parse(const struct verb *verb, int argc, char *const *argv, void *arguments, struct option_result *ret_result, struct diag *diag)
{
	struct option_result result = { 0 };
	struct parse p = { verb, argc, 1, argv, arguments, &result, diag, 0 };
	int err = 0;

	while (!err && p.at < argc && !result.help && !result.version) {
		if (verb->has_verbs && (argv[p.at][0] != '-' || !argv[p.at][1]))
			break;
		if (strcmp(argv[p.at], "--") != 0) {
			err = parse_word(&p);
			continue;
		}
		p.at++;
		if (!verb->takes_command)
			err = diag_errno(diag, EINVAL, "-- is followed by a command elsewhere, but not here: leave it out");
		else if (p.at == argc)
			err = diag_errno(diag, EINVAL, "nothing follows --: write the command there, or leave -- out");
		result.command = argv + p.at;
		p.at = argc;
	}
	if (!err && !result.help && !result.version)
		err = check_exclusions(&p);
	if (err)
		return err;
	result.rest = p.at;
	*ret_result = result;
	return 0;
}
