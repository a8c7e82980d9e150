// SPDX-License-Identifier: Apache-2.0
#include "probing/probe_spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "dwarf/dwarf_places.h"
#include "probing/probe_nearest.h"
#include "programs/call_numbers.h"
#include "programs/kernel_functions.h"
#include "programs/user_program.h"

enum kind {
	KIND_ANY,
	KIND_TRACEPOINT,
	KIND_RAW,
	KIND_SYSCALL,
	KIND_SYSCALL_END,
	KIND_FUNCTION, /* of the kernel, by whichever way there is */
	KIND_KPROBE,
	KIND_KRETPROBE,
	KIND_FENTRY,
	KIND_FEXIT,
	KIND_UPROBE,
	KIND_URETPROBE,
	KIND_USDT
};

static const struct {
	const char *word;
	enum kind kind;
} words[] = {
	{ "tracepoint", KIND_TRACEPOINT },
	{ "t", KIND_TRACEPOINT },
	{ "rawtracepoint", KIND_RAW },
	{ "rt", KIND_RAW },
	{ "syscall", KIND_SYSCALL },
	{ "kprobe", KIND_KPROBE },
	{ "k", KIND_KPROBE },
	{ "kretprobe", KIND_KRETPROBE },
	{ "kr", KIND_KRETPROBE },
	{ "fentry", KIND_FENTRY },
	{ "kfunc", KIND_FENTRY },
	{ "fexit", KIND_FEXIT },
	{ "kretfunc", KIND_FEXIT },
	{ "uprobe", KIND_UPROBE },
	{ "u", KIND_UPROBE },
	{ "uretprobe", KIND_URETPROBE },
	{ "ur", KIND_URETPROBE },
	{ "usdt", KIND_USDT },
	{ "U", KIND_USDT },
};

/* The kind that the word before the first ':' names, of *ret_size bytes with the colon. */
static enum kind find_kind(const char *text, size_t *ret_size)
{
	size_t size = strcspn(text, ":");

	*ret_size = size + 1;
	for (size_t i = 0; text[size] && i < ARRAY_SIZE(words); i++) {
		if (strlen(words[i].word) == size && !strncmp(words[i].word, text, size))
			return words[i].kind;
	}
	return KIND_ANY;
}

const char *probe_spec_kind(const char *text, size_t *ret_size)
{
	enum kind kind = find_kind(text, ret_size);

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (words[i].kind == kind)
			return words[i].word; /* the first one is the kind's own */
	}
	return NULL;
}

/* Cuts off that word. */
static enum kind take_kind(char **at)
{
	size_t size;
	enum kind kind = find_kind(*at, &size);

	*at += kind == KIND_ANY ? 0 : size;
	return kind;
}

static int set_call(struct probe_spec *spec, struct kernel_types *types, const char *name, bool end, struct diag *diag)
{
	spec->call = call_number(name, false);
	spec->compat_call = call_number(name, true);
	if (spec->call == CALL_UNKNOWN && spec->compat_call == CALL_UNKNOWN)
		return diag_errno(diag, ENOENT, "this machine has no system call '%.80s': sonde trace -l 'syscall:*' lists them", name);
	spec->in_user = true;
	kernel_types_call(types, name, &spec->args);
	spec->context = end ? SONDE_PROBE_CALL_END : SONDE_PROBE_CALL_BEGIN;
	spec->trigger.kind = end ? TRIGGER_SYS_EXIT : TRIGGER_SYS_ENTER;
	spec->has_end = !end;
	spec->end.kind = TRIGGER_SYS_EXIT;
	spec->end_context = SONDE_PROBE_CALL_END;
	return 0;
}

static int set_tracepoint(struct probe_spec *spec, struct kernel_types *types, const char *name, bool raw, struct diag *diag)
{
	spec->context = SONDE_PROBE_WORDS;
	spec->trigger = (struct trigger){ .kind = TRIGGER_RAW_TRACEPOINT, .name = name };
	if (kernel_types_tracepoint(types, name, &spec->args) && !raw)
		return diag_errno(diag, ENOENT, "this kernel has no tracepoint '%.80s': sonde trace -l '*' lists what there is", name);
	return 0;
}

static bool is_at_entry(enum kind kind)
{
	return kind == KIND_KPROBE || kind == KIND_FENTRY || kind == KIND_FUNCTION;
}

/* Which of the two ways is taken: the one that was asked for, else the one that the kernel has. False: it cannot. */
static bool choose_way(enum kind kind, bool *ret_fentry)
{
	bool has_kprobes = kernel_functions_have_kprobes();

	*ret_fentry = kind == KIND_FENTRY || kind == KIND_FEXIT || (kind == KIND_FUNCTION && !has_kprobes);
	return *ret_fentry ? kernel_functions_have_fentry() : has_kprobes;
}

static int set_function(struct probe_spec *spec, struct kernel_types *types, const char *name, enum kind kind, struct diag *diag)
{
	static const char *const ways[] = { "kprobes (CONFIG_KPROBES)", "fentry (no direct calls, or programs may not use them)",
					    "kprobes (CONFIG_KPROBES) or by fentry" };
	bool end = !is_at_entry(kind), fentry, known = !kernel_types_function(types, name, &spec->args);

	spec->is_handler = known && kernel_types_is_handler(&spec->args);
	if (!choose_way(kind, &fentry))
		return probe_refuse(types, name, spec->is_handler, ways[kind == KIND_FUNCTION ? 2 : fentry], diag);
	if (fentry && !known)
		return diag_errno(diag, ENOENT, "BTF does not have '%.80s', so fentry cannot be at it: kprobe:%.80s can", name, name);
	spec->trigger =
	    (struct trigger){ .kind = fentry ? (end ? TRIGGER_FEXIT : TRIGGER_FENTRY) : (end ? TRIGGER_KRETPROBE : TRIGGER_KPROBE),
			      .name = name };
	spec->context = spec->end_context = fentry ? SONDE_PROBE_WORDS : SONDE_PROBE_REGS;
	spec->end = spec->trigger;
	spec->end.kind = fentry ? TRIGGER_FEXIT : TRIGGER_KRETPROBE;
	spec->has_end = !end;
	spec->no_args = spec->trigger.kind == TRIGGER_KRETPROBE ? "at the return" : NULL;
	spec->end_result_word = fentry && spec->args.result ? spec->args.nr + 1 : 0;
	spec->result_word = end ? spec->end_result_word : 0;
	return 0;
}

/* "FILE:SOURCE:LINE", cut in three. False: it is something else. */
static bool is_line(char *at, char *number, char **ret_source, uint64_t *ret_line)
{
	char *source;

	number[-1] = '\0';
	source = strrchr(at, ':');
	if (source && source > at && source[1] && !number_u64(number, UINT32_MAX, ret_line)) {
		*source++ = '\0';
		*ret_source = source;
		return true;
	}
	number[-1] = ':';
	return false;
}

static void set_user_trigger(struct probe_spec *spec, const char *path, const char *name, uint64_t offset, bool end)
{
	spec->in_user = true;
	spec->context = spec->end_context = SONDE_PROBE_REGS;
	spec->trigger = (struct trigger){ .kind = end ? TRIGGER_URETPROBE : TRIGGER_UPROBE,
					  .name = name,
					  .path = path,
					  .offset = offset,
					  .tgid = TRIGGER_ALL_PROCESSES };
	spec->end = spec->trigger;
	spec->end.kind = TRIGGER_URETPROBE;
	spec->has_end = !end && !offset;
}

/* The result, and at the entry the names of the arguments, by DWARF. */
static void take_user_args(struct probe_spec *spec, const char *path, const char *function, bool end)
{
	struct dwarf_args *args = calloc(1, sizeof(*args));

	if (!args || dwarf_function_args(path, function, args)) {
		free(args);
		return;
	}
	spec->user_args = args;
	spec->args.nr = end ? 0 : args->nr;
	for (uint32_t i = 0; i < spec->args.nr; i++) {
		spec->args.list[i].name = args->list[i].name;
		spec->args.list[i].type_text = args->list[i].type;
		spec->args.list[i].number = args->list[i].number;
		spec->args.list[i].bytes = args->list[i].bytes;
		spec->args.list[i].is_signed = args->list[i].is_signed;
		spec->args.list[i].is_user_text = args->list[i].is_text;
	}
}

/* Looks at the file before others read it. */
static int look_at_program(struct probe_spec *spec, const char *path, bool returns, struct diag *diag)
{
	struct user_program program;
	int err = user_program_look(path, diag, &program);

	if (err)
		return err;
	if (returns && program.moves_stacks)
		return diag_errno(diag, EOPNOTSUPP,
				  "%.120s is a Go program: it moves its stacks, and a return address that is a probe's would end it. "
				  "Only entries can be traced",
				  path);
	spec->no_args = program.no_args;
	spec->is_thrown_through = returns && program.may_throw;
	return 0;
}

/* The kernel would take what is on the stack there for the return address, and replace it. */
static int not_in_between(const struct probe_spec *spec, struct diag *diag)
{
	return diag_errno(diag, EINVAL, "'%.120s': a return is that of a function, not of a place in it", spec->text);
}

static int set_line(struct probe_spec *spec, const char *path, const char *source, uint32_t line, struct diag *diag)
{
	int err = look_at_program(spec, path, false, diag);

	spec->places = calloc(DWARF_MAX_PLACES, sizeof(*spec->places));
	if (!err && !spec->places)
		err = -ENOMEM;
	set_user_trigger(spec, path, NULL, 1, false); /* an offset: not where a function begins */
	if (!err)
		err = dwarf_line_places(path, source, line, diag, spec->places, &spec->trigger.nr_places);
	spec->trigger.places = spec->places;
	return err == -ENODATA ? -ENOENT : err;
}

/* "FILE:FUNCTION", "FILE:FUNCTION+8", "FILE:0x1234", "FILE:SOURCE:LINE". */
static int set_user_function(struct probe_spec *spec, char *at, bool end, bool latency, struct diag *diag)
{
	int err;
	char *name = strrchr(at, ':'), *plus = name ? strchr(name, '+') : NULL;
	const char *number = plus ? plus + 1 : name ? name + 1 : "";
	bool is_hex = !strncmp(number, "0x", 2);
	uint64_t offset = 0, line;
	char *source;

	if (!name || !name[1] || name == at)
		return diag_errno(diag, EINVAL, "a user function is written uprobe:FILE:FUNCTION or uprobe:FILE:SOURCE:LINE, not '%.80s'",
				  at);
	if (is_line(at, ++name, &source, &line)) {
		if (end)
			return not_in_between(spec, diag);
		return set_line(spec, at, source, (uint32_t)line, diag);
	}
	name[-1] = '\0';
	if (plus || is_hex) {
		const char *hex = number + 2;
		err = is_hex ? number_hex(&hex, hex + strlen(hex), &offset) : number_u64(number, UINT64_MAX, &offset);
		if (err || (is_hex && *hex))
			return diag_errno(diag, EINVAL, "'%.80s' is no offset", number);
	}
	if (plus)
		*plus = '\0';
	if (end && plus && offset)
		return not_in_between(spec, diag);
	set_user_trigger(spec, at, plus || !is_hex ? name : NULL, offset, end);
	err = look_at_program(spec, at, end || latency, diag);
	if (!err && !offset && !spec->no_args)
		take_user_args(spec, at, name, end);
	if (end)
		spec->no_args = "at the return";
	return err;
}

/* "FILE:PROVIDER:NAME". */
static int set_usdt(struct probe_spec *spec, char *at, struct diag *diag)
{
	char *name = strrchr(at, ':'), *provider;

	if (name)
		*name++ = '\0';
	provider = name ? strrchr(at, ':') : NULL;
	if (!provider)
		return diag_errno(diag, EINVAL, "a USDT probe is written usdt:FILE:PROVIDER:NAME, not '%.80s'", spec->text);
	*provider++ = '\0';
	spec->in_user = true;
	spec->context = SONDE_PROBE_USDT;
	spec->trigger =
	    (struct trigger){ .kind = TRIGGER_USDT, .name = name, .path = at, .provider = provider, .tgid = TRIGGER_ALL_PROCESSES };
	return user_program_look(at, diag, &(struct user_program){ 0 }); /* the note says where arguments are, of any language */
}

/* The name without its group: "sched:sched_switch", "syscalls:sys_enter_read". */
static const char *without_group(const char *name)
{
	const char *colon = strrchr(name, ':');

	return colon ? colon + 1 : name;
}

static int set_any(struct probe_spec *spec, struct kernel_types *types, char *at, bool latency, struct diag *diag)
{
	struct kernel_args args;
	const char *name = without_group(at);
	uint64_t kaddr;

	if (*at == '/')
		return set_user_function(spec, at, false, latency, diag);
	if (!strncmp(name, "sys_enter_", 10))
		return set_call(spec, types, name + 10, false, diag);
	if (!strncmp(name, "sys_exit_", 9))
		return set_call(spec, types, name + 9, true, diag);
	if (!kernel_types_tracepoint(types, name, &args))
		return set_tracepoint(spec, types, name, false, diag);
	if (call_number(name, false) != CALL_UNKNOWN || call_number(name, true) != CALL_UNKNOWN)
		return set_call(spec, types, name, false, diag);
	if (!kernel_types_function(types, name, &args) || kernel_functions_find(name, &kaddr))
		return set_function(spec, types, name, KIND_FUNCTION, diag);
	return diag_errno(diag, ENOENT, "nothing is called '%.80s' here: sonde trace -l '*%.80s*' lists what is", name, name);
}

static int set_kind(struct probe_spec *spec, struct kernel_types *types, enum kind kind, char *at, bool latency, struct diag *diag)
{
	switch (kind) {
	case KIND_ANY:
		return set_any(spec, types, at, latency, diag);
	case KIND_TRACEPOINT:
		if (!strncmp(without_group(at), "sys_enter_", 10) || !strncmp(without_group(at), "sys_exit_", 9))
			return set_any(spec, types, at, latency, diag);
		return set_tracepoint(spec, types, without_group(at), false, diag);
	case KIND_RAW:
		return set_tracepoint(spec, types, without_group(at), true, diag);
	case KIND_SYSCALL:
	case KIND_SYSCALL_END:
		return set_call(spec, types, at, false, diag);
	case KIND_UPROBE:
	case KIND_URETPROBE:
		return set_user_function(spec, at, kind == KIND_URETPROBE, latency, diag);
	case KIND_USDT:
		return set_usdt(spec, at, diag);
	default:
		return set_function(spec, types, at, kind, diag);
	}
}

int probe_spec_parse(const char *text, size_t size, bool latency, struct kernel_types *types, struct diag *diag,
		     struct probe_spec *ret_spec)
{
	struct probe_spec spec = { .text = strndup(text, size), .copy = strndup(text, size) };
	char *at = spec.copy;
	int err = spec.text && spec.copy ? 0 : -ENOMEM;

	if (!err) {
		enum kind kind = take_kind(&at);

		err = *at ? set_kind(&spec, types, kind, at, latency, diag) : diag_errno(diag, EINVAL, "a probe has no name");
	}
	if (!err && latency && !spec.has_end)
		err = diag_errno(diag, EINVAL, "'%.80s' has no end: --latency takes system calls and functions at their entry", spec.text);
	spec.has_end &= latency;
	if (err)
		probe_spec_done(&spec);
	else
		*ret_spec = spec;
	return err;
}

void probe_spec_done(struct probe_spec *spec)
{
	free(spec->text);
	free(spec->copy);
	free(spec->user_args);
	free(spec->places);
	spec->places = NULL;
	spec->user_args = NULL;
	spec->text = spec->copy = NULL;
}

/* --- fields --------------------------------------------------------------------------------------------------------------------------- */

static bool builtin_field(const char *text, struct sonde_probe_field *ret_field)
{
	static const struct {
		const char *word;
		struct sonde_probe_field field;
	} fields[] = { { "pid", { .source = SONDE_PROBE_TGID, .bytes = 4 } },
		       { "tid", { .source = SONDE_PROBE_TID, .bytes = 4 } },
		       { "cpu", { .source = SONDE_PROBE_CPU, .bytes = 4 } },
		       { "comm", { .source = SONDE_PROBE_COMM, .bytes = 8, .text = SONDE_PROBE_KERNEL_TEXT } } };

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (!strcmp(fields[i].word, text)) {
			*ret_field = fields[i].field;
			return true;
		}
	}
	return false;
}

bool probe_spec_is_end(const struct probe_spec *spec)
{
	bool returns = spec->trigger.kind == TRIGGER_URETPROBE || spec->trigger.kind == TRIGGER_KRETPROBE;

	return returns || spec->context == SONDE_PROBE_CALL_END || spec->result_word;
}

/* A result is as wide as its type, where that is known: the register's other bits are anything. */
static void result_field(const struct probe_spec *spec, struct sonde_probe_field *ret_field, bool *ret_is_address)
{
	*ret_field = (struct sonde_probe_field){ .source = SONDE_PROBE_RESULT, .bytes = 8, .is_signed = 1 };
	if (spec->user_args && spec->user_args->result_bytes) {
		ret_field->bytes = spec->user_args->result_bytes;
		ret_field->is_signed = spec->user_args->result_is_signed;
		*ret_is_address = spec->user_args->result_is_address;
	}
	if (!spec->in_user)
		kernel_types_result(&spec->args, ret_field, ret_is_address);
}

bool probe_spec_is_common(const char *name)
{
	struct sonde_probe_field ignored;

	return builtin_field(name, &ignored);
}

/* As wide as its type, where that is known. A text is its address: str(arg0) is the text. */
static bool typed_field(const struct probe_spec *spec, uint32_t number, struct sonde_probe_field *ret_field, bool *ret_is_address)
{
	struct diag ignored = { 0 };
	uint32_t i = 0;

	while (i < spec->args.nr && (spec->args.btf ? i : spec->args.list[i].number) != number)
		i++;
	if (i >= spec->args.nr || kernel_types_field(&spec->args, spec->args.list[i].name, &ignored, ret_field, ret_is_address))
		return false;
	*ret_is_address |= ret_field->text != SONDE_PROBE_NUMBER;
	ret_field->text = SONDE_PROBE_NUMBER;
	return true;
}

/* Arguments by number: those that are in registers, or that the probe's types name. */
static uint32_t nr_numbered(const struct probe_spec *spec)
{
	if (spec->context == SONDE_PROBE_USDT)
		return SONDE_PROBE_ARGS;
	if (spec->args.nr && (spec->context == SONDE_PROBE_WORDS || spec->context == SONDE_PROBE_CALL_BEGIN))
		return spec->args.nr;
	return SONDE_PROBE_REGISTERS;
}

static int numbered_field(const struct probe_spec *spec, uint32_t number, struct diag *diag, struct sonde_probe_field *ret_field,
			  bool *ret_is_address)
{
	if (spec->no_args)
		return diag_errno(diag, EINVAL, "'%.120s': the arguments %s are not known", spec->text, spec->no_args);
	if (number >= nr_numbered(spec))
		return diag_errno(diag, EINVAL, "'%.120s' has arg0 to arg%u, no arg%u", spec->text, nr_numbered(spec) - 1, number);
	if (!typed_field(spec, number, ret_field, ret_is_address))
		*ret_field = (struct sonde_probe_field){ .source = SONDE_PROBE_ARG, .arg = (uint8_t)number, .bytes = 8, .is_signed = 1 };
	return 0;
}

int probe_spec_field(const struct probe_spec *spec, struct kernel_types *types, const char *text, struct diag *diag,
		     struct sonde_probe_field *ret_field, bool *ret_is_address)
{
	size_t size = strlen(text);
	uint64_t number;

	*ret_is_address = false;
	if (builtin_field(text, ret_field))
		return 0;
	if (!strcmp(text, "ret") && (probe_spec_is_end(spec) || spec->has_end)) {
		result_field(spec, ret_field, ret_is_address);
		return 0;
	}
	if (!strncmp(text, "str(", 4) && text[size - 1] == ')') {
		CLEANUP(freep) char *inner = strndup(text + 4, size - 5);
		int err = inner ? probe_spec_field(spec, types, inner, diag, ret_field, ret_is_address) : -ENOMEM;

		ret_field->text = spec->in_user ? SONDE_PROBE_USER_TEXT : SONDE_PROBE_KERNEL_TEXT;
		return err;
	}
	if (!strncmp(text, "arg", 3) && !number_u64(text + 3, SONDE_PROBE_ARGS - 1, &number))
		return numbered_field(spec, (uint32_t)number, diag, ret_field, ret_is_address);
	if (!spec->args.nr)
		return diag_errno(diag, EINVAL, "'%.80s' has the fields pid, tid, cpu, comm, ret and arg0 to arg5, no '%.60s'", spec->text,
				  text);
	return kernel_types_field(&spec->args, text, diag, ret_field, ret_is_address);
}

/* --- comparisons ---------------------------------------------------------------------------------------------------------------------- */

static bool take_operator(const char **at, uint32_t *ret_operator)
{
	static const struct {
		const char *text;
		enum sonde_probe_operator operator;
	} operators[] = { { "==", SONDE_PROBE_EQUAL },
			  { "!=", SONDE_PROBE_DIFFERENT },
			  { "<=", SONDE_PROBE_LESS_OR_EQUAL },
			  { ">=", SONDE_PROBE_MORE_OR_EQUAL },
			  { "^=", SONDE_PROBE_BEGINS },
			  { "<", SONDE_PROBE_LESS },
			  { ">", SONDE_PROBE_MORE } };

	for (size_t i = 0; i < ARRAY_SIZE(operators); i++) {
		if (!strncmp(*at, operators[i].text, strlen(operators[i].text))) {
			*at += strlen(operators[i].text);
			*ret_operator = operators[i].operator;
			return true;
		}
	}
	return false;
}

static const char *skip_blanks(const char *at)
{
	return at + strspn(at, " \t");
}

/* "text" or text, up to a blank. */
static int take_text(const char **at, struct sonde_probe_filter *filter, struct diag *diag)
{
	bool quoted = **at == '"';
	const char *begin = *at + quoted;
	size_t size = strcspn(begin, quoted ? "\"" : " \t&");

	if (quoted && begin[size] != '"')
		return diag_errno(diag, EINVAL, "a text has no end: %.60s", *at);
	if (!size || size >= (filter->field.source == SONDE_PROBE_COMM ? SONDE_COMM_BYTES : SONDE_PROBE_TEXT_BYTES))
		return diag_errno(diag, EINVAL, "a text has 1 to %d bytes: '%.*s'",
				  filter->field.source == SONDE_PROBE_COMM ? SONDE_COMM_BYTES - 1 : SONDE_PROBE_TEXT_BYTES - 1, (int)size,
				  begin);
	memcpy(filter->text, begin, size);
	filter->text_bytes = (uint32_t)size + (filter->operator!= SONDE_PROBE_BEGINS);
	*at = begin + size + quoted;
	return 0;
}

/* Can the field have the value at all? Else a comparison with it would always be false, or always true. Of 8 bytes with a sign are also
 * addresses and registers of no known type. */
static bool is_in_range(const struct sonde_probe_field *field, bool is_negative, uint64_t magnitude)
{
	uint64_t sign_bit = 1ULL << (8 * field->bytes - 1);

	if (is_negative)
		return field->is_signed && magnitude <= sign_bit;
	if (field->bytes == 8)
		return true;
	return field->is_signed ? magnitude < sign_bit : magnitude < 2 * sign_bit;
}

static int take_number(const char **at, struct sonde_probe_filter *filter, struct diag *diag)
{
	char word[32] = "";
	size_t size = strcspn(*at, " \t&");
	bool is_negative = **at == '-';
	const char *digits = word + is_negative, *hex = digits + 2;
	uint64_t number = 0;
	int err = -EINVAL;

	if (size < sizeof(word)) {
		memcpy(word, *at, size);
		err = strncmp(digits, "0x", 2) != 0 ? number_u64(digits, UINT64_MAX, &number)
						     : number_hex(&hex, word + size, &number) ?: *hex ? -EINVAL : 0;
	}
	if (err)
		return diag_errno(diag, EINVAL, "'%.60s' is no number; a text is compared with fields that are one, or str(FIELD)", *at);
	if (!is_in_range(&filter->field, is_negative && number, number))
		return diag_errno(diag, EINVAL, "%s is no value of that field: it is a number of %d bytes, %s a sign", word,
				  filter->field.bytes, filter->field.is_signed ? "with" : "without");
	filter->number = is_negative ? -number : number;
	*at += size;
	return 0;
}

static int take_comparison(const struct probe_spec *spec, struct kernel_types *types, const char **at, struct diag *diag,
			   struct sonde_probe_filter *filter)
{
	size_t size = strcspn(*at, " \t=!<>^&");
	CLEANUP(freep) char *field = NULL;
	bool is_address;
	int err;

	if (!strncmp(*at + size - (size > 0), "->", 2)) /* "prev->pid" */
		size += 1 + strcspn(*at + size + 1, " \t=!<>^&");
	field = strndup(*at, size);
	if (!field)
		return -ENOMEM;
	err = probe_spec_field(spec, types, field, diag, &filter->field, &is_address);
	if (err)
		return err;
	if (spec->has_end && filter->field.source == SONDE_PROBE_RESULT)
		return diag_errno(diag, EINVAL, "the filter of --latency is asked at the entry, where there is no result");
	*at = skip_blanks(*at + size);
	if (!take_operator(at, &filter->operator))
		return diag_errno(diag, EINVAL, "behind '%.60s' one of == != < <= > >= ^= is missing", field);
	*at = skip_blanks(*at);
	if (**at == '"' && !filter->field.text) /* an address that BTF does not name as a text's */
		filter->field.text = spec->in_user ? SONDE_PROBE_USER_TEXT : SONDE_PROBE_KERNEL_TEXT;
	if (!filter->field.text)
		return filter->operator== SONDE_PROBE_BEGINS ? diag_errno(diag, EINVAL, "'%.60s' is a number, and ^= is for texts", field)
							     : take_number(at, filter, diag);
	if (filter->operator!= SONDE_PROBE_EQUAL && filter->operator!= SONDE_PROBE_DIFFERENT && filter->operator!= SONDE_PROBE_BEGINS)
		return diag_errno(diag, EINVAL, "'%.60s' is a text: it is compared by ==, != or ^=", field);
	return take_text(at, filter, diag);
}

int probe_spec_filter(const struct probe_spec *spec, struct kernel_types *types, const char *text, struct diag *diag,
		      struct sonde_probe_filter *ret_filters, uint32_t max, uint32_t *ret_nr)
{
	const char *at = skip_blanks(text);
	uint32_t nr = 0;
	int err;

	do {
		if (nr == max)
			return diag_errno(diag, EINVAL, "a filter has %u comparisons at most", max);
		ret_filters[nr] = (struct sonde_probe_filter){ 0 };
		err = take_comparison(spec, types, &at, diag, &ret_filters[nr++]);
		if (err)
			return err;
		at = skip_blanks(at);
		if (*at && strncmp(at, "&&", 2) != 0)
			return diag_errno(diag, EINVAL, "between two comparisons there is &&, not '%.60s'", at);
		at = skip_blanks(*at ? at + 2 : at);
	} while (*at);
	*ret_nr = nr;
	return 0;
}
