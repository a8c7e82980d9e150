// SPDX-License-Identifier: Apache-2.0
/* What the programs of the scheduler and of probes need beyond the sampler's: storage per thread, an iterator over threads, and the
 * scheduler's own statistics. */
#include "doctor/doctor.h"

#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "base/cleanup.h"

#define LICENSE "Dual BSD/GPL"

#define INSN(opcode, dst, src, offset, value) \
	((struct bpf_insn){ .code = (opcode), .dst_reg = (dst), .src_reg = (src), .off = (offset), .imm = (value) })
#define SET(reg, value) INSN(BPF_ALU64 | BPF_MOV | BPF_K, reg, 0, 0, value)

static void btf_freep(struct btf **btf)
{
	btf__free(*btf);
}

static void say_fd(struct doctor_finding *finding, int fd)
{
	if (fd < 0)
		doctor_say(finding, fd == -EPERM ? DOCTOR_DENIED : DOCTOR_NO, "%s", strerror(-fd));
	else
		doctor_say(finding, DOCTOR_YES, "%s", "");
}

static int load(const char *attach_to, enum bpf_attach_type type, const struct bpf_insn *insns, size_t nr)
{
	int btf_id = libbpf_find_vmlinux_btf_id(attach_to, type);
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = type, .attach_btf_id = (uint32_t)btf_id);

	return btf_id < 0 ? btf_id : bpf_prog_load(BPF_PROG_TYPE_TRACING, "sonde_doctor", LICENSE, insns, nr, &options);
}

/* The kernel requires the types of key and value. */
static int make_storage(void)
{
	CLEANUP(btf_freep) struct btf *btf = btf__new_empty();
	int id = btf ? btf__add_int(btf, "int", 4, BTF_INT_SIGNED) : -ENOMEM;
	int err = id < 0 ? id : btf__load_into_kernel(btf);
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_NO_PREALLOC, .btf_key_type_id = (uint32_t)id,
		    .btf_value_type_id = (uint32_t)id);

	if (err)
		return err;
	options.btf_fd = (uint32_t)btf__fd(btf);
	return bpf_map_create(BPF_MAP_TYPE_TASK_STORAGE, "sonde_try", 4, 4, 0, &options);
}

/* Task storage was for security modules only before it was for tracing. So this loads a program that uses it. */
void doctor_task_storage(const struct doctor_check *check, struct doctor_finding *finding)
{
	CLEANUP(closep) int map_fd = make_storage();
	const struct bpf_insn insns[] = { INSN(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_2, BPF_REG_1, 8, 0), /* the thread that leaves the CPU */
					  INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map_fd),
					  INSN(0, 0, 0, 0, 0),
					  SET(BPF_REG_3, 0),
					  SET(BPF_REG_4, 0),
					  INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_task_storage_get),
					  SET(BPF_REG_0, 0),
					  INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0) };
	CLEANUP(closep) int fd = map_fd < 0 ? map_fd : load("sched_switch", BPF_TRACE_RAW_TP, insns, ARRAY_SIZE(insns));

	say_fd(finding, fd);
}

/* A program of a probe in user code that keeps something for its thread, as those of `leak` do. */
void doctor_uprobe(const struct doctor_check *check, struct doctor_finding *finding)
{
	CLEANUP(closep) int map_fd = make_storage();
	const struct bpf_insn insns[] = { INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_current_task_btf),
					  INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_2, BPF_REG_0, 0, 0),
					  INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map_fd),
					  INSN(0, 0, 0, 0, 0),
					  SET(BPF_REG_3, 0),
					  SET(BPF_REG_4, 0),
					  INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_task_storage_get),
					  SET(BPF_REG_0, 0),
					  INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0) };
	CLEANUP(closep)
	int fd = map_fd < 0 ? map_fd : bpf_prog_load(BPF_PROG_TYPE_KPROBE, "sonde_doctor", LICENSE, insns, ARRAY_SIZE(insns), NULL);

	if (fd >= 0 && access(check->path, F_OK))
		doctor_say(finding, DOCTOR_NO, "without CONFIG_UPROBE_EVENTS");
	else
		say_fd(finding, fd);
}

void doctor_iterator(const struct doctor_check *check, struct doctor_finding *finding)
{
	const struct bpf_insn insns[] = { SET(BPF_REG_0, 0), INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0) };
	CLEANUP(closep) int fd = load(check->path, BPF_TRACE_ITER, insns, ARRAY_SIZE(insns));

	say_fd(finding, fd);
}

/* check->path: a field of struct task_struct. */
void doctor_task_field(const struct doctor_check *check, struct doctor_finding *finding)
{
	CLEANUP(btf_freep) struct btf *btf = btf__load_vmlinux_btf();
	int id = btf ? btf__find_by_name_kind(btf, "task_struct", BTF_KIND_STRUCT) : -errno;
	const struct btf_type *type = id < 0 ? NULL : btf__type_by_id(btf, (uint32_t)id);
	const struct btf_member *members = type ? btf_members(type) : NULL;

	for (uint32_t i = 0; type && i < btf_vlen(type); i++) {
		if (!strcmp(btf__name_by_offset(btf, members[i].name_off), check->path)) {
			doctor_say(finding, DOCTOR_YES, "%s", "");
			return;
		}
	}
	doctor_say(finding, DOCTOR_NO, "%s", type ? "without CONFIG_SCHED_INFO" : strerror(-id));
}
