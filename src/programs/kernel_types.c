// SPDX-License-Identifier: Apache-2.0
#include "programs/kernel_types.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TRACEPOINT     "btf_trace_"   /* typedef of each: include/trace/bpf_probe.h */
#define ITERATOR       "__traceiter_" /* the function that calls a tracepoint's probes: it has the names of arguments. linux/tracepoint.h */
#define MAX_NAME_BYTES 256

struct kernel_types {
	struct btf *btf;
};

int kernel_types_new(struct diag *diag, struct kernel_types **ret_types)
{
	struct kernel_types *types = calloc(1, sizeof(*types));

	if (!types)
		return -ENOMEM;
	types->btf = btf__load_vmlinux_btf();
	if (!types->btf) {
		free(types);
		return diag_errno(diag, EOPNOTSUPP, "this kernel is built without type information of itself (CONFIG_DEBUG_INFO_BTF)");
	}
	*ret_types = types;
	return 0;
}

void kernel_types_free(struct kernel_types *types)
{
	if (!types)
		return;
	btf__free(types->btf);
	free(types);
}

static const char *name_at(const struct kernel_types *types, uint32_t offset)
{
	const char *name = btf__name_by_offset(types->btf, offset);

	return name ? name : "";
}

/* The type without its qualifiers and names. */
static const struct btf_type *plain_type(const struct kernel_types *types, uint32_t id)
{
	const struct btf_type *type = btf__type_by_id(types->btf, id);

	while (type && (btf_is_mod(type) || btf_is_typedef(type) || btf_kind(type) == BTF_KIND_TYPE_TAG))
		type = btf__type_by_id(types->btf, type->type);
	return type;
}

static void take_params(const struct kernel_types *types, const struct btf_type *proto, uint32_t skip, struct kernel_args *args)
{
	*args = (struct kernel_args){ .result = proto->type };
	for (uint32_t i = skip; i < btf_vlen(proto) && args->nr < SONDE_PROBE_ARGS; i++) {
		const struct btf_param *param = &btf_params(proto)[i];

		args->list[args->nr].name = name_at(types, param->name_off);
		args->list[args->nr++].type = param->type;
	}
}

int kernel_types_function(const struct kernel_types *types, const char *name, struct kernel_args *ret_args)
{
	int32_t id = btf__find_by_name_kind(types->btf, name, BTF_KIND_FUNC);
	const struct btf_type *function = id > 0 ? btf__type_by_id(types->btf, (uint32_t)id) : NULL;
	const struct btf_type *proto = function ? btf__type_by_id(types->btf, function->type) : NULL;

	if (!proto)
		return -ENOENT;
	take_params(types, proto, 0, ret_args);
	return 0;
}

/* The first parameter, of all of them, is not an argument of the tracepoint. */
int kernel_types_tracepoint(const struct kernel_types *types, const char *name, struct kernel_args *ret_args)
{
	char full[MAX_NAME_BYTES];
	int32_t id;

	snprintf(full, sizeof(full), TRACEPOINT "%s", name);
	if (btf__find_by_name_kind(types->btf, full, BTF_KIND_TYPEDEF) <= 0)
		return -ENOENT;
	snprintf(full, sizeof(full), ITERATOR "%s", name);
	id = btf__find_by_name_kind(types->btf, full, BTF_KIND_FUNC);
	*ret_args = (struct kernel_args){ 0 };
	if (id > 0)
		take_params(types, btf__type_by_id(types->btf, btf__type_by_id(types->btf, (uint32_t)id)->type), 1, ret_args);
	ret_args->result = 0;
	return 0;
}

bool kernel_types_next(const struct kernel_types *types, uint32_t *cursor, bool *ret_is_tracepoint, const char **ret_name)
{
	while (++*cursor < btf__type_cnt(types->btf)) {
		const struct btf_type *type = btf__type_by_id(types->btf, *cursor);
		const char *name = name_at(types, type->name_off);
		bool is_tracepoint = btf_is_typedef(type) && !strncmp(name, TRACEPOINT, strlen(TRACEPOINT));

		if (!is_tracepoint && !btf_is_func(type))
			continue;
		*ret_is_tracepoint = is_tracepoint;
		*ret_name = is_tracepoint ? name + strlen(TRACEPOINT) : name;
		return true;
	}
	return false;
}

/* --- fields --------------------------------------------------------------------------------------------------------------------------- */

struct place { /* of a member: its type and its offset in bytes */
	uint32_t type, offset;
	bool is_bits;
};

/* Finds a member, also in members without a name. */
static bool find_member(const struct kernel_types *types, const struct btf_type *of, const char *name, size_t size, struct place *ret)
{
	for (uint32_t i = 0; i < btf_vlen(of); i++) {
		const struct btf_member *member = &btf_members(of)[i];
		const char *text = name_at(types, member->name_off);
		const struct btf_type *inner = plain_type(types, member->type);
		uint32_t bits = btf_member_bit_offset(of, i);

		if (strlen(text) == size && !strncmp(text, name, size)) {
			*ret = (struct place){ member->type, bits / 8, btf_member_bitfield_size(of, i) || bits % 8 };
			return true;
		}
		if (!*text && inner && btf_is_composite(inner) && find_member(types, inner, name, size, ret)) {
			ret->offset += bits / 8;
			return true;
		}
	}
	return false;
}

static bool is_char(const struct kernel_types *types, uint32_t id)
{
	const struct btf_type *type = plain_type(types, id);

	return type && btf_is_int(type) && type->size == 1 && strstr(name_at(types, type->name_off), "char");
}

/* What the value at the end is. False: no number and no text. */
static bool finish_field(const struct kernel_types *types, uint32_t id, struct sonde_probe_field *field, bool *ret_is_address)
{
	const struct btf_type *type = plain_type(types, id);

	*ret_is_address = false;
	if (type && btf_is_ptr(type)) {
		field->bytes = 8;
		field->text = is_char(types, type->type) ? SONDE_PROBE_KERNEL_TEXT : SONDE_PROBE_NUMBER;
		*ret_is_address = !field->text;
		return true;
	}
	if (type && btf_is_array(type) && field->nr_steps && is_char(types, btf_array(type)->type)) {
		field->text = SONDE_PROBE_TEXT_HERE;
		return true;
	}
	if (!type || !(btf_is_int(type) || btf_is_any_enum(type)) || type->size > 8)
		return false;
	field->bytes = (uint8_t)type->size;
	field->is_signed = btf_is_int(type) ? (btf_int_encoding(type) & BTF_INT_SIGNED) != 0 : btf_kflag(type);
	return true;
}

/* One name of "a.b.c": the struct that the address so far leads to has it. */
static int take_step(const struct kernel_types *types, const char *name, size_t size, uint32_t *type_id, struct sonde_probe_field *field,
		     struct diag *diag)
{
	const struct btf_type *type = plain_type(types, *type_id);
	bool is_pointer = type && btf_is_ptr(type);
	struct place place;

	if (is_pointer)
		type = plain_type(types, type->type);
	if (!type || !btf_is_composite(type) || (!is_pointer && !field->nr_steps))
		return diag_errno(diag, EINVAL, "'%.*s' is a member of nothing: what is before it is no struct", (int)size, name);
	if (!find_member(types, type, name, size, &place))
		return diag_errno(diag, EINVAL, "struct %s has no member '%.*s'", name_at(types, type->name_off), (int)size, name);
	if (place.is_bits)
		return diag_errno(diag, EINVAL, "'%.*s' of struct %s is part of a byte, which cannot be read", (int)size, name,
				  name_at(types, type->name_off));
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

int kernel_types_field(const struct kernel_types *types, const struct kernel_args *args, const char *text, struct diag *diag,
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
	type = args->list[i].type;
	for (at += size; !err && *at; at += size) {
		at += strncmp(at, "->", 2) ? 1 : 2;
		size = strcspn(at, ".-");
		err = take_step(types, at, size, &type, &field, diag);
	}
	if (err)
		return err;
	if (!finish_field(types, type, &field, ret_is_address))
		return diag_errno(diag, EINVAL, "'%.80s' is neither a number nor a text", text);
	*ret_field = field;
	return 0;
}

static void type_text(const struct kernel_types *types, uint32_t id, struct buffer *text)
{
	const struct btf_type *type = btf__type_by_id(types->btf, id);

	if (!type || !id) {
		buffer_text(text, "void ");
		return;
	}
	if (btf_is_ptr(type)) {
		type_text(types, type->type, text);
		buffer_text(text, "*");
		return;
	}
	if (btf_is_mod(type) || btf_kind(type) == BTF_KIND_TYPE_TAG) {
		buffer_text(text, btf_kind(type) == BTF_KIND_CONST ? "const " : "");
		type_text(types, type->type, text);
		return;
	}
	if (btf_is_func_proto(type)) {
		buffer_text(text, "function ");
		return;
	}
	buffer_text(text, btf_is_struct(type) ? "struct " : btf_is_union(type) ? "union " : btf_is_any_enum(type) ? "enum " : "");
	buffer_printf(text, "%s ", name_at(types, type->name_off));
}

void kernel_types_text(const struct kernel_types *types, const struct kernel_args *args, struct buffer *text)
{
	for (uint32_t i = 0; i < args->nr; i++) {
		buffer_text(text, i ? ", " : "");
		type_text(types, args->list[i].type, text);
		buffer_text(text, args->list[i].name);
	}
}
