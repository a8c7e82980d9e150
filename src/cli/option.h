/* SPDX-License-Identifier: Apache-2.0 */
/* option: one table per verb. Parsing, --help, the manual page and shell completion are made from it, so they cannot disagree. Values go
 * to a struct of the verb's own. Tables are constant; all functions may be used from any thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/diag.h"

enum option_kind {
	OPTION_FLAG,   /* bool */
	OPTION_NUMBER, /* uint64_t, within min and max */
	OPTION_BYTES,  /* the same; K, M, G may follow: 512K */
	OPTION_SECONDS,/* the same; s, m, h may follow: 90, 5m */
	OPTION_TEXT,   /* const char *, borrowed from argv */
	OPTION_TEXTS,  /* struct option_texts; may be repeated */
	OPTION_IDS,    /* struct option_ids; comma lists, may be repeated */
};

/* What a shell may complete a value to. A flag has no value. */
enum option_values { OPTION_VALUES_ANY, OPTION_VALUES_FILE, OPTION_VALUES_PROCESS };

#define OPTION_MAX_TEXTS 64
#define OPTION_MAX_IDS   4096
#define OPTION_MAX_SECRETS 256

struct option_texts {
	const char *texts[OPTION_MAX_TEXTS]; /* borrowed from argv */
	uint32_t nr;
};

struct option_ids {
	uint32_t ids[OPTION_MAX_IDS]; /* each once */
	uint32_t nr;
};

struct option_spec {
	const char *group;   /* its heading; NULL: the heading of the option before it */
	char letter;         /* 0: none */
	const char *name;    /* long name without the dashes; NULL: a positional, known by its metavar */
	const char *otel_name; /* of the OpenTelemetry eBPF profiler's flag that means the same: accepted, too; NULL: there is none */
	const char *metavar; /* NULL: takes no value */
	const char *help;    /* a phrase, no full stop */
	enum option_kind kind;
	size_t offset;       /* of the value in the verb's arguments */
	uint64_t min, max;   /* OPTION_NUMBER and OPTION_IDS */
	const char *instead_of_none;        /* OPTION_NUMBER: the value when none follows; a next word that begins with a digit follows */
	const char *excludes, *instead;     /* an option that it excludes, and what to do instead */
	enum option_values values;
	const char *(*value_name)(uint32_t i); /* the possible values; NULL ends. For completion, not checked */
	bool hidden;
	bool is_secret;      /* OPTION_TEXT and OPTION_TEXTS: no report and no message may have the value */
};

struct verb_example {
	const char *command, *text;
};

struct verb {
	const char *name;        /* "profile"; NULL: sonde itself */
	const char *summary;     /* one line */
	const char *description; /* paragraphs, separated by an empty line */
	const struct option_spec *options;
	size_t nr_options;
	const struct verb_example *examples; /* a NULL command ends */
	bool takes_command;      /* -- COMMAND [ARGUMENT...] */
	bool has_verbs;          /* parsing ends at the first word that is not an option */
	size_t arguments_bytes;  /* size of the struct that holds the options' values */
	const void *defaults;    /* its initial contents; NULL: zeros */
	/* Checks what the table cannot express. 0; -EINVAL with a line. `command`: what follows "--"; NULL: none. NULL: nothing to
	 * check. */
	int (*check)(void *arguments, char *const *command, struct diag *diag);
	/* Returns the exit code. `command_line`: what was typed, for the report, with "..." for secrets; borrowed; NULL: no memory for
	 * it. */
	int (*run)(void *arguments, const char *command_line);
};

struct option_result {
	bool help, version;
	uint64_t given;       /* bit i: options[i] was given */
	const char *secrets[OPTION_MAX_SECRETS]; /* values of is_secret options, also of those that were given again; borrowed from argv */
	uint32_t nr_secrets;
	char *const *command; /* what follows "--"; NULL: none */
	int rest;             /* has_verbs: index of the first word that is not an option */
};

/* Accepts the GNU forms: -F99, -F 99, --frequency=99, --frequency 99, -Uf, unambiguous beginnings of long names, options after
 * positionals. Stops early at --help and --version. `arguments` holds the defaults on entry. 0; -EINVAL with a line that says what to
 * do. */
MUST_CHECK int option_parse(const struct verb *verb, int argc, char *const *argv, void *arguments, struct option_result *ret_result,
			    struct diag *diag);

/* The i-th option: first the verb's own, then the options common to all verbs; NULL ends. Includes hidden ones. */
const struct option_spec *option_at(const struct verb *verb, size_t i);
/* Converts and stores one value; `label` names the option in messages. 0 or -EINVAL. */
MUST_CHECK int option_set(const struct option_spec *spec, const char *label, const char *value, void *arguments, struct diag *diag);

/* Returns the one of `names` (by index; NULL ends) most similar to `text`. NULL: none is similar. */
const char *option_nearest(const char *text, const char *(*name_at)(const void *names, size_t i), const void *names);

/* Texts for people and shells. `colour`: with terminal escapes. */
void option_help(const struct verb *verb, bool colour, struct buffer *buffer);
void option_synopsis(const struct verb *verb, struct buffer *buffer); /* what follows the name */
/* Appends `text`, folded at 80 columns. The first line begins at `column`, the others after `indent` blanks. */
void option_wrap(struct buffer *buffer, const char *text, size_t column, size_t indent);
