// SPDX-License-Identifier: Apache-2.0
/* bpf_loop takes a callback, and the verifier accepts a callback only with type information that calls it static. */
#include "cli/doctor.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "base/cleanup.h"

/* main at 0, the callback behind it; the callback's address is relative to the instruction after the load. */
enum { LOAD_CALLBACK_AT = 1, CALLBACK_AT = 8 };

static const struct bpf_insn loop_insns[] = {
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_1, .imm = 4 }, /* rounds */
	{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_2, .src_reg = BPF_PSEUDO_FUNC, .imm = CALLBACK_AT - LOAD_CALLBACK_AT - 1 },
	{ .code = 0 },
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = 0 }, /* no context */
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_4, .imm = 0 },
	{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_loop },
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
	{ .code = BPF_JMP | BPF_EXIT },
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
	{ .code = BPF_JMP | BPF_EXIT },
};

struct function_types {
	int main_id, callback_id;
};

/* int sonde_doctor(void *ctx); static int callback(u32 i, void *ctx), as far as the verifier looks. */
static int add_types(struct btf *btf, struct function_types *types)
{
	int int_id = btf__add_int(btf, "int", 4, BTF_INT_SIGNED), pointer_id = btf__add_ptr(btf, 0);
	int proto_id = btf__add_func_proto(btf, int_id);

	if (int_id < 0 || pointer_id < 0 || proto_id < 0 || btf__add_func_param(btf, "ctx", pointer_id) < 0)
		return -ENOMEM;
	types->main_id = btf__add_func(btf, "sonde_doctor", BTF_FUNC_GLOBAL, proto_id);
	proto_id = btf__add_func_proto(btf, int_id);
	if (proto_id < 0 || btf__add_func_param(btf, "i", int_id) < 0 || btf__add_func_param(btf, "ctx", pointer_id) < 0)
		return -ENOMEM;
	types->callback_id = btf__add_func(btf, "callback", BTF_FUNC_STATIC, proto_id);
	return types->main_id < 0 || types->callback_id < 0 ? -ENOMEM : 0;
}

static int load_with_types(struct btf *btf, char *log, size_t log_bytes)
{
	struct function_types types;
	int err = add_types(btf, &types);

	if (!err)
		err = btf__load_into_kernel(btf);
	if (err)
		return err;
	struct bpf_func_info functions[] = {
		{ .insn_off = 0, .type_id = (uint32_t)types.main_id },
		{ .insn_off = CALLBACK_AT, .type_id = (uint32_t)types.callback_id },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options, .prog_btf_fd = (uint32_t)btf__fd(btf), .func_info = functions,
		    .func_info_cnt = ARRAY_SIZE(functions), .func_info_rec_size = sizeof(functions[0]), .log_buf = log,
		    .log_size = (uint32_t)log_bytes, .log_level = 1);

	return bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "sonde_doctor", "Dual BSD/GPL", loop_insns, ARRAY_SIZE(loop_insns), &options);
}

int doctor_load_loop_program(char *log, size_t log_bytes)
{
	struct btf *btf = btf__new_empty();
	int fd;

	if (!btf)
		return -ENOMEM;
	fd = load_with_types(btf, log, log_bytes);
	btf__free(btf);
	return fd;
}
