// SPDX-License-Identifier: Apache-2.0
#include "programs/kernel_types.h"

#include <bpf/btf.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/tracefs.h"
#include "programs/call_args.h"

#define FOLDER	       "/sys/kernel/btf"
#define TRACEPOINT     "btf_trace_"   /* typedef of each: include/trace/bpf_probe.h */
#define ITERATOR       "__traceiter_" /* the function that calls a tracepoint's probes: it has the names of arguments. linux/tracepoint.h */
#define HANDLED	       "irqreturn_t"  /* what a handler of an interrupt returns: linux/irqreturn.h */
#define MAX_NAME_BYTES 256
#define MAX_MODULES    512
#define MAX_CALLS      2048 /* more than there are */

struct function {
	const char *name; /* borrowed from its BTF */
	const struct btf *btf;
	uint32_t id;
};

struct kernel_types {
	struct btf *btfs[1 + MAX_MODULES]; /* the kernel's own, then those of its modules, which have the kernel's types as well */
	uint32_t nr_btfs;
	struct function *functions; /* by name; NULL: not asked for yet */
	uint32_t nr_functions;
	int tracefs_fd;		/* -1: there is none */
	const char *calls_from; /* where the arguments of system calls are from, in words; NULL: nobody has asked */
	struct call_args *calls[MAX_CALLS];
	uint32_t nr_calls;
};

/* Modules without BTF, and those beyond the limit, are left out: their functions have no names of arguments. */
static void load_modules(struct kernel_types *types)
{
	DIR *folder = opendir(FOLDER);
	const struct dirent *entry;

	while (folder && types->nr_btfs < ARRAY_SIZE(types->btfs)) {
		struct btf *module;

		entry = readdir(folder);
		if (!entry)
			break;
		if (entry->d_name[0] == '.' || !strcmp(entry->d_name, "vmlinux"))
			continue;
		module = btf__load_module_btf(entry->d_name, types->btfs[0]);
		if (module)
			types->btfs[types->nr_btfs++] = module;
	}
	if (folder)
		closedir(folder);
}

int kernel_types_new(struct diag *diag, struct kernel_types **ret_types)
{
	struct kernel_types *types = calloc(1, sizeof(*types));

	if (!types)
		return -ENOMEM;
	types->btfs[0] = btf__load_vmlinux_btf();
	if (!types->btfs[0]) {
		free(types);
		return diag_errno(diag, EOPNOTSUPP, "this kernel is built without type information of itself (CONFIG_DEBUG_INFO_BTF)");
	}
	types->nr_btfs = 1;
	types->tracefs_fd = -1;
	load_modules(types);
	*ret_types = types;
	return 0;
}

void kernel_types_free(struct kernel_types *types)
{
	if (!types)
		return;
	while (types->nr_btfs)
		btf__free(types->btfs[--types->nr_btfs]); /* modules before the kernel, whose types they use */
	while (types->nr_calls)
		free(types->calls[--types->nr_calls]);
	if (types->tracefs_fd >= 0)
		close(types->tracefs_fd);
	free(types->functions);
	free(types);
}

static const char *name_at(const struct btf *btf, uint32_t offset)
{
	const char *name = btf__name_by_offset(btf, offset);

	return name ? name : "";
}

/* The first of a BTF's own types: those of the kernel are before a module's. */
static uint32_t first_id(const struct kernel_types *types, const struct btf *btf)
{
	return btf == types->btfs[0] ? 1 : btf__type_cnt(types->btfs[0]);
}

/* The type without its qualifiers and names. */
static const struct btf_type *plain_type(const struct btf *btf, uint32_t id)
{
	const struct btf_type *type = btf__type_by_id(btf, id);

	while (type && (btf_is_mod(type) || btf_is_typedef(type) || btf_kind(type) == BTF_KIND_TYPE_TAG))
		type = btf__type_by_id(btf, type->type);
	return type;
}

static bool is_signed_number(const struct btf_type *type)
{
	return btf_is_int(type) ? (btf_int_encoding(type) & BTF_INT_SIGNED) != 0 : btf_kflag(type);
}

static void take_params(const struct function *function, uint32_t skip, struct kernel_args *args)
{
	const struct btf *btf = function->btf;
	const struct btf_type *proto = btf__type_by_id(btf, btf__type_by_id(btf, function->id)->type);

	*args = (struct kernel_args){ .btf = btf };
	if (!proto)
		return;
	args->result = proto->type;
	for (uint32_t i = skip; i < btf_vlen(proto) && args->nr < SONDE_PROBE_ARGS; i++) {
		const struct btf_param *param = &btf_params(proto)[i];

		args->list[args->nr].name = name_at(btf, param->name_off);
		args->list[args->nr++].type = param->type;
	}
}

/* --- functions ------------------------------------------------------------------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct function *)a)->name, ((const struct function *)b)->name);
}

static void add_functions(struct kernel_types *types, const struct btf *btf)
{
	for (uint32_t id = first_id(types, btf); id < btf__type_cnt(btf); id++) {
		const struct btf_type *type = btf__type_by_id(btf, id);

		if (btf_is_func(type))
			types->functions[types->nr_functions++] = (struct function){ name_at(btf, type->name_off), btf, id };
	}
}

/* Listing asks for tens of thousands, so they are sorted once. */
static const struct function *find_function(struct kernel_types *types, const char *name)
{
	size_t nr = 0;

	for (uint32_t i = 0; !types->functions && i < types->nr_btfs; i++)
		nr += btf__type_cnt(types->btfs[i]) - first_id(types, types->btfs[i]);
	if (!types->functions) {
		types->functions = calloc(nr ?: 1, sizeof(*types->functions));
		for (uint32_t i = 0; types->functions && i < types->nr_btfs; i++)
			add_functions(types, types->btfs[i]);
		if (types->nr_functions)
			qsort(types->functions, types->nr_functions, sizeof(*types->functions), by_name);
	}
	return types->functions ? bsearch(&(struct function){ .name = name }, types->functions, types->nr_functions,
					  sizeof(*types->functions), by_name)
				: NULL;
}

int kernel_types_function(struct kernel_types *types, const char *name, struct kernel_args *ret_args)
{
	const struct function *function = find_function(types, name);

	if (!function)
		return -ENOENT;
	take_params(function, 0, ret_args);
	return 0;
}

bool kernel_types_is_handler(const struct kernel_args *args)
{
	const struct btf_type *type = args->btf ? btf__type_by_id(args->btf, args->result) : NULL;

	return type && btf_is_typedef(type) && !strcmp(name_at(args->btf, type->name_off), HANDLED);
}

static bool has_typedef(const struct kernel_types *types, const struct btf *btf, const char *name)
{
	int32_t id = btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF);

	return id > 0 && (uint32_t)id >= first_id(types, btf);
}

/* The first parameter, of all of them, is not an argument of the tracepoint. */
int kernel_types_tracepoint(struct kernel_types *types, const char *name, struct kernel_args *ret_args)
{
	char full[MAX_NAME_BYTES];
	const struct function *function;
	uint32_t i = 0;

	snprintf(full, sizeof(full), TRACEPOINT "%s", name);
	while (i < types->nr_btfs && !has_typedef(types, types->btfs[i], full))
		i++;
	if (i == types->nr_btfs)
		return -ENOENT;
	snprintf(full, sizeof(full), ITERATOR "%s", name);
	function = find_function(types, full);
	*ret_args = (struct kernel_args){ .btf = types->btfs[i] };
	if (function)
		take_params(function, 1, ret_args);
	ret_args->result = 0;
	return 0;
}

/* Width and sign of a type that is written as C has it ("pid_t", "unsigned long", "const char *"): BTF knows the names. */
static void find_number(const struct btf *btf, const char *text, uint8_t *ret_bytes, bool *ret_is_signed)
{
	static const char *const words[] = { "const ", "enum " };
	const struct btf_type *type = NULL;
	char name[CALL_ARG_BYTES];
	size_t size;
	int32_t id;

	*ret_bytes = 8;
	*ret_is_signed = *text != 'u' && !strchr(text, '*');
	if (strchr(text, '*'))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		text += !strncmp(text, words[i], strlen(words[i])) ? strlen(words[i]) : 0;
	size = strlen(text);
	snprintf(name, sizeof(name), "%.*s", (int)(size - (size && text[size - 1] == ' ')), text);
	id = btf__find_by_name(btf, !strcmp(name, "unsigned") ? "unsigned int" : name);
	if (id > 0)
		type = plain_type(btf, (uint32_t)id);
	if (!type || !(btf_is_int(type) || btf_is_any_enum(type)) || type->size > 8)
		return; /* "long" and "unsigned long", which BTF calls otherwise */
	*ret_bytes = (uint8_t)type->size;
	*ret_is_signed = is_signed_number(type);
}

void kernel_types_call(struct kernel_types *types, const char *call, struct kernel_args *ret_args)
{
	struct call_args *args = types->nr_calls < MAX_CALLS ? calloc(1, sizeof(*args)) : NULL;

	struct diag diag = { 0 };

	*ret_args = (struct kernel_args){ 0 };
	if (!args)
		return;
	types->calls[types->nr_calls++] = args;
	if (!types->calls_from && tracefs_open(&diag, &types->tracefs_fd, &types->calls_from))
		types->calls_from = "BTF alone, as there is no tracefs";
	if (types->tracefs_fd >= 0)
		call_args_read(types->tracefs_fd, call, args);
	for (uint32_t i = 0; i < args->nr; i++) {
		ret_args->list[i].name = args->list[i].name;
		ret_args->list[i].type_text = args->list[i].type;
		ret_args->list[i].number = (uint8_t)i;
		find_number(types->btfs[0], args->list[i].type, &ret_args->list[i].bytes, &ret_args->list[i].is_signed);
		ret_args->list[i].is_user_text = args->list[i].is_text;
	}
	ret_args->nr = args->nr;
}

const char *kernel_types_of_calls(const struct kernel_types *types)
{
	return types->calls_from;
}

const char *kernel_types_next_tracepoint(const struct kernel_types *types, struct kernel_cursor *cursor)
{
	for (; cursor->btf < types->nr_btfs; cursor->btf++, cursor->id = 0) {
		const struct btf *btf = types->btfs[cursor->btf];

		for (cursor->id = cursor->id ? cursor->id : first_id(types, btf); cursor->id < btf__type_cnt(btf); cursor->id++) {
			const struct btf_type *type = btf__type_by_id(btf, cursor->id);
			const char *name = name_at(btf, type->name_off);

			if (btf_is_typedef(type) && !strncmp(name, TRACEPOINT, strlen(TRACEPOINT))) {
				cursor->id++;
				return name + strlen(TRACEPOINT);
			}
		}
	}
	return NULL;
}

/* --- fields --------------------------------------------------------------------------------------------------------------------------- */

struct place { /* of a member: its type and its offset in bytes */
	uint32_t type, offset;
	bool is_bits;
};

/* Finds a member, also in members without a name. */
static bool find_member(const struct btf *btf, const struct btf_type *of, const char *name, size_t size, struct place *ret)
{
	for (uint32_t i = 0; i < btf_vlen(of); i++) {
		const struct btf_member *member = &btf_members(of)[i];
		const char *text = name_at(btf, member->name_off);
		const struct btf_type *inner = plain_type(btf, member->type);
		uint32_t bits = btf_member_bit_offset(of, i);

		if (strlen(text) == size && !strncmp(text, name, size)) {
			*ret = (struct place){ member->type, bits / 8, btf_member_bitfield_size(of, i) || bits % 8 };
			return true;
		}
		if (!*text && inner && btf_is_composite(inner) && find_member(btf, inner, name, size, ret)) {
			ret->offset += bits / 8;
			return true;
		}
	}
	return false;
}

static bool is_char(const struct btf *btf, uint32_t id)
{
	const struct btf_type *type = plain_type(btf, id);

	return type && btf_is_int(type) && type->size == 1 && strstr(name_at(btf, type->name_off), "char");
}

/* What the value at the end is. False: no number and no text. */
static bool finish_field(const struct btf *btf, uint32_t id, struct sonde_probe_field *field, bool *ret_is_address)
{
	const struct btf_type *type = plain_type(btf, id);

	*ret_is_address = false;
	if (type && btf_is_ptr(type)) {
		field->bytes = 8;
		field->text = is_char(btf, type->type) ? SONDE_PROBE_KERNEL_TEXT : SONDE_PROBE_NUMBER;
		*ret_is_address = !field->text;
		return true;
	}
	if (type && btf_is_array(type) && field->nr_steps && is_char(btf, btf_array(type)->type)) {
		field->text = SONDE_PROBE_TEXT_HERE;
		return true;
	}
	if (!type || !(btf_is_int(type) || btf_is_any_enum(type)) || type->size > 8)
		return false;
	field->bytes = (uint8_t)type->size;
	field->is_signed = is_signed_number(type);
	return true;
}

/* One name of "a.b.c": the struct that the address so far leads to has it. */
static int take_step(const struct btf *btf, const char *name, size_t size, uint32_t *type_id, struct sonde_probe_field *field,
		     struct diag *diag)
{
	const struct btf_type *type = plain_type(btf, *type_id);
	bool is_pointer = type && btf_is_ptr(type);
	struct place place;

	if (is_pointer)
		type = plain_type(btf, type->type);
	if (!type || !btf_is_composite(type) || (!is_pointer && !field->nr_steps))
		return diag_errno(diag, EINVAL, "'%.*s' is a member of nothing: what is before it is no struct", (int)size, name);
	if (!find_member(btf, type, name, size, &place))
		return diag_errno(diag, EINVAL, "struct %s has no member '%.*s'", name_at(btf, type->name_off), (int)size, name);
	if (place.is_bits)
		return diag_errno(diag, EINVAL, "'%.*s' of struct %s is part of a byte, which cannot be read", (int)size, name,
				  name_at(btf, type->name_off));
	if (is_pointer && field->nr_steps == SONDE_PROBE_STEPS)
		return diag_errno(diag, EINVAL, "'%.*s' is behind more than %d pointers", (int)size, name, SONDE_PROBE_STEPS);
	if (is_pointer)
		field->nr_steps++;
	field->offsets[field->nr_steps - 1] += place.offset;
	*type_id = place.type;
	return 0;
}

static int no_such_arg(const struct kernel_args *args, const char *text, size_t size, struct diag *diag)
{
	struct buffer names = BUFFER_INIT(1 << 12);
	int err;

	for (uint32_t i = 0; i < args->nr; i++)
		buffer_printf(&names, "%s%s", i ? ", " : "", args->list[i].name);
	err = diag_errno(diag, EINVAL, "there is no argument '%.*s', but %s", (int)size, text, args->nr ? names.data : "none");
	buffer_done(&names);
	return err;
}

/* An argument of a system call or of a program's function: a number, or the address of a text in the program. */
static int user_field(const struct kernel_args *args, uint32_t i, const char *behind, struct diag *diag,
		      struct sonde_probe_field *ret_field, bool *ret_is_address)
{
	if (*behind)
		return diag_errno(diag, EINVAL, "of '%s' members are not known: only those of the kernel's arguments are",
				  args->list[i].name);
	*ret_field = (struct sonde_probe_field){ .source = SONDE_PROBE_ARG,
						 .arg = args->list[i].number,
						 .bytes = args->list[i].bytes,
						 .is_signed = args->list[i].is_signed,
						 .text = args->list[i].is_user_text ? SONDE_PROBE_USER_TEXT : SONDE_PROBE_NUMBER };
	*ret_is_address = !args->list[i].is_user_text && strchr(args->list[i].type_text, '*');
	return 0;
}

int kernel_types_field(const struct kernel_args *args, const char *text, struct diag *diag,
		       struct sonde_probe_field *ret_field, bool *ret_is_address)
{
	struct sonde_probe_field field = { .source = SONDE_PROBE_ARG };
	const char *at = text;
	size_t size = strcspn(at, ".-");
	uint32_t i = 0, type;
	int err = 0;

	while (i < args->nr && (strlen(args->list[i].name) != size || strncmp(args->list[i].name, at, size) != 0))
		i++;
	if (i == args->nr)
		return no_such_arg(args, at, size, diag);
	field.arg = (uint8_t)i;
	if (!args->btf)
		return user_field(args, i, at + size, diag, ret_field, ret_is_address);
	type = args->list[i].type;
	for (at += size; !err && *at; at += size) {
		at += strncmp(at, "->", 2) ? 1 : 2;
		size = strcspn(at, ".-");
		err = take_step(args->btf, at, size, &type, &field, diag);
	}
	if (err)
		return err;
	if (!finish_field(args->btf, type, &field, ret_is_address))
		return diag_errno(diag, EINVAL, "'%.80s' is neither a number nor a text", text);
	*ret_field = field;
	return 0;
}

void kernel_types_result(const struct kernel_args *args, struct sonde_probe_field *field, bool *ret_is_address)
{
	struct sonde_probe_field found = *field;

	if (!args->btf || !args->result || !finish_field(args->btf, args->result, &found, ret_is_address))
		return;
	*ret_is_address |= found.text != SONDE_PROBE_NUMBER;
	found.text = SONDE_PROBE_NUMBER; /* str(ret) is it */
	*field = found;
}

bool kernel_types_is_text(const struct kernel_args *args, uint32_t i)
{
	struct sonde_probe_field field = { 0 };
	bool is_address;

	if (!args->btf)
		return args->list[i].is_user_text;
	return finish_field(args->btf, args->list[i].type, &field, &is_address) && field.text;
}

static void type_text(const struct btf *btf, uint32_t id, struct buffer *text)
{
	const struct btf_type *type = btf__type_by_id(btf, id);

	if (!type || !id) {
		buffer_text(text, "void ");
		return;
	}
	if (btf_is_ptr(type)) {
		type_text(btf, type->type, text);
		buffer_text(text, "*");
		return;
	}
	if (btf_is_mod(type) || btf_kind(type) == BTF_KIND_TYPE_TAG) {
		buffer_text(text, btf_kind(type) == BTF_KIND_CONST ? "const " : "");
		type_text(btf, type->type, text);
		return;
	}
	if (btf_is_func_proto(type)) {
		buffer_text(text, "function ");
		return;
	}
	buffer_text(text, btf_is_struct(type) ? "struct " : btf_is_union(type) ? "union " : btf_is_any_enum(type) ? "enum " : "");
	buffer_printf(text, "%s ", name_at(btf, type->name_off));
}

void kernel_types_text(const struct kernel_args *args, struct buffer *text)
{
	for (uint32_t i = 0; i < args->nr; i++) {
		buffer_text(text, i ? ", " : "");
		if (args->btf)
			type_text(args->btf, args->list[i].type, text);
		else
			buffer_text(text, args->list[i].type_text);
		buffer_text(text, args->list[i].name);
	}
}
