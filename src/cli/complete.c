// SPDX-License-Identifier: Apache-2.0
/* Completion scripts for bash and zsh. They contain all options, values and verbs literally, so completion never runs sonde. */
#include "cli/verbs.h"

#include <string.h>

/* The words that a value may be, separated by blanks. */
static void value_names(const struct option_spec *spec, struct buffer *buffer)
{
	const char *word;

	for (uint32_t i = 0; (word = spec->value_name(i)); i++)
		buffer_printf(buffer, "%s%s", i ? " " : "", word);
}

static void verb_names(struct buffer *buffer)
{
	const struct verb *verb;

	for (size_t i = 0; (verb = verb_at(i)); i++)
		buffer_printf(buffer, "%s ", verb->name);
	buffer_text(buffer, "help");
}

/* One case arm: the completions of the word after this option. */
static void bash_value(const struct verb *verb, const struct option_spec *spec, struct buffer *buffer)
{
	const char *name = verb->name ? verb->name : "";

	buffer_text(buffer, "\t");
	if (spec->letter)
		buffer_printf(buffer, "%s:-%c|", name, spec->letter);
	buffer_printf(buffer, "%s:--%s) ", name, spec->name);
	if (spec->value_name) {
		buffer_text(buffer, "words='");
		value_names(spec, buffer);
		buffer_text(buffer, "' ;;\n");
	} else if (spec->values == OPTION_VALUES_FILE) {
		buffer_text(buffer, "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); return ;;\n");
	} else if (spec->values == OPTION_VALUES_PROCESS) {
		buffer_text(buffer, "words=$(cd /proc && echo [0-9]*) ;;\n");
	} else {
		buffer_text(buffer, "return ;;\n");
	}
}

static void bash_values(const struct verb *verb, struct buffer *buffer)
{
	const struct option_spec *spec;

	for (size_t i = 0; (spec = option_at(verb, i)); i++) {
		if (spec->name && spec->metavar && !spec->hidden)
			bash_value(verb, spec, buffer);
	}
}

static void bash_names(const struct verb *verb, struct buffer *buffer)
{
	const struct option_spec *spec;

	buffer_printf(buffer, "\t%s) words='", verb->name ? verb->name : "''");
	for (size_t i = 0; (spec = option_at(verb, i)); i++) {
		if (!spec->name || spec->hidden)
			continue;
		if (spec->letter)
			buffer_printf(buffer, "-%c ", spec->letter);
		buffer_printf(buffer, "--%s ", spec->name);
	}
	if (verb->has_verbs)
		verb_names(buffer);
	buffer_text(buffer, "' ;;\n");
}

/* For a verb with files as positionals: completes a word that is no option to file names. */
static void bash_files(const struct verb *verb, struct buffer *buffer)
{
	for (size_t i = 0; i < verb->nr_options; i++) {
		if (!verb->options[i].name && verb->options[i].values == OPTION_VALUES_FILE) {
			buffer_printf(buffer,
				      "\t%s:[!-]*|%s:) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); return ;;\n",
				      verb->name, verb->name);
			return;
		}
	}
}

void complete_bash(struct buffer *buffer)
{
	const struct verb *verb;

	buffer_text(buffer, "# bash completion for sonde, made by `sonde --completion bash`\n"
			    "_sonde()\n{\n"
			    "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb= words= i\n"
			    "\tCOMPREPLY=()\n"
			    "\tif [[ $cur == = ]]; then cur=\n" /* bash splits --name=value at the = */
			    "\telif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
			    "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
			    "\t\tcase ${COMP_WORDS[i]} in\n"
			    "\t\t--) mapfile -t COMPREPLY < <(compgen -c -f -- \"$cur\"); return ;;\n"
			    "\t\t-*) ;;\n"
			    "\t\t*) [[ $verb || ${COMP_WORDS[i-1]} == --completion ]] || verb=${COMP_WORDS[i]} ;;\n"
			    "\t\tesac\n\tdone\n"
			    "\tcase $verb in\n");
	bash_names(&sonde_verb, buffer);
	for (size_t i = 0; (verb = verb_at(i)); i++)
		bash_names(verb, buffer);
	buffer_text(buffer, "\thelp) words='");
	verb_names(buffer);
	buffer_text(buffer, "' ;;\n\tesac\n\tcase $verb:$prev in\n");
	bash_values(&sonde_verb, buffer);
	for (size_t i = 0; (verb = verb_at(i)); i++)
		bash_values(verb, buffer);
	buffer_text(buffer, "\tesac\n\tcase $verb:$cur in\n");
	for (size_t i = 0; (verb = verb_at(i)); i++)
		bash_files(verb, buffer);
	buffer_text(buffer, "\tesac\n\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n}\ncomplete -F _sonde sonde\n");
}

/* Text inside '...[text]...' of an _arguments specification. */
static void zsh_text(struct buffer *buffer, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			buffer_text(buffer, "'\\''");
		else if (strchr("[]:\\", *text))
			buffer_printf(buffer, "\\%c", *text);
		else
			buffer_append(buffer, text, 1);
	}
}

static void zsh_option(const struct option_spec *spec, struct buffer *buffer)
{
	bool repeats = spec->kind == OPTION_TEXTS || spec->kind == OPTION_IDS;
	const char *value = spec->metavar ? "=" : "";

	buffer_text(buffer, " \\\n\t\t");
	if (repeats)
		buffer_text(buffer, "'*'");
	else if (spec->letter)
		buffer_printf(buffer, "'(-%c --%s)'", spec->letter, spec->name);
	if (spec->letter)
		buffer_printf(buffer, "{-%c%s,--%s%s}'", spec->letter, spec->metavar ? "+" : "", spec->name, value);
	else
		buffer_printf(buffer, "'--%s%s", spec->name, value);
	buffer_text(buffer, "[");
	zsh_text(buffer, spec->help);
	buffer_text(buffer, "]");
	if (spec->metavar) {
		buffer_text(buffer, ":");
		zsh_text(buffer, spec->metavar);
		buffer_text(buffer, ":");
	}
	if (spec->value_name) {
		buffer_text(buffer, "(");
		value_names(spec, buffer);
		buffer_text(buffer, ")");
	} else if (spec->values == OPTION_VALUES_FILE) {
		buffer_text(buffer, "_files");
	} else if (spec->values == OPTION_VALUES_PROCESS) {
		buffer_text(buffer, "_pids");
	}
	buffer_text(buffer, "'");
}

static void zsh_options(const struct verb *verb, struct buffer *buffer)
{
	const struct option_spec *spec;

	for (size_t i = 0; (spec = option_at(verb, i)); i++) {
		if (spec->name && !spec->hidden)
			zsh_option(spec, buffer);
	}
	/* guarded: a positional that accepts any text would suppress the completion of options */
	for (size_t i = 0; i < verb->nr_options; i++) {
		const struct option_spec *at = &verb->options[i];

		if (!at->name && at->values == OPTION_VALUES_FILE)
			buffer_printf(buffer, " \\\n\t\t'::%s:_files'", at->metavar);
		else if (!at->name)
			buffer_printf(buffer, " \\\n\t\t'::%s:_guard \"[0-9]#\" %s'", at->metavar, at->metavar);
	}
}

static void zsh_verb(const struct verb *verb, struct buffer *buffer)
{
	buffer_printf(buffer, "_sonde_%s() {\n", verb->name);
	if (verb->takes_command)
		buffer_text(buffer, "\tlocal at=${words[(i)--]}\n"
				    "\tif (( at < CURRENT )); then\n"
				    "\t\t(( CURRENT -= at ))\n\t\tshift $at words\n\t\t_normal\n\t\treturn\n\tfi\n");
	buffer_text(buffer, "\t_arguments -s -S");
	zsh_options(verb, buffer);
	buffer_text(buffer, "\n}\n");
}

void complete_zsh(struct buffer *buffer)
{
	const struct verb *verb;

	buffer_text(buffer, "#compdef sonde\n# zsh completion for sonde, made by `sonde --completion zsh`\n");
	for (size_t i = 0; (verb = verb_at(i)); i++)
		zsh_verb(verb, buffer);
	buffer_text(buffer, "_sonde() {\n\tlocal curcontext=\"$curcontext\" state line\n\t_arguments -C -S");
	zsh_options(&sonde_verb, buffer);
	buffer_text(buffer, " \\\n\t\t'1:verb:((");
	for (size_t i = 0; (verb = verb_at(i)); i++) {
		buffer_printf(buffer, "%s\\:\"", verb->name);
		zsh_text(buffer, verb->summary);
		buffer_text(buffer, "\" ");
	}
	buffer_text(buffer, "help\\:\"print the help of a verb\"))' \\\n\t\t'*::argument:->rest'\n"
			    "\t[[ $state == rest ]] || return\n\tcase $line[1] in\n");
	for (size_t i = 0; (verb = verb_at(i)); i++)
		buffer_printf(buffer, "\t%s) _sonde_%s ;;\n", verb->name, verb->name);
	buffer_text(buffer, "\thelp) compadd ");
	verb_names(buffer);
	buffer_text(buffer, " ;;\n\tesac\n}\n"
			    "if [[ $funcstack[1] == _sonde ]]; then _sonde \"$@\"; else compdef _sonde sonde; fi\n");
}
