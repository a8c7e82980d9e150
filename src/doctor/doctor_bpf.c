// SPDX-License-Identifier: Apache-2.0
/* Maps, program types and helpers: each is created or loaded, then released. */
#include "doctor/doctor.h"

#include <string.h>
#include <sys/resource.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/cleanup.h"

#define LICENSE   "Dual BSD/GPL"
#define LOG_BYTES 8192

#define INSN(opcode, dst, src, offset, value) \
	((struct bpf_insn){ .code = (opcode), .dst_reg = (dst), .src_reg = (src), .off = (offset), .imm = (value) })
#define SET(reg, value)       INSN(BPF_ALU64 | BPF_MOV | BPF_K, reg, 0, 0, value)
#define COPY(reg, from)       INSN(BPF_ALU64 | BPF_MOV | BPF_X, reg, from, 0, 0)
#define ADD(reg, value)       INSN(BPF_ALU64 | BPF_ADD | BPF_K, reg, 0, 0, value)
#define STORE_ZERO(reg, off)  INSN(BPF_ST | BPF_MEM | BPF_DW, reg, 0, off, 0)
#define CALL(helper)          INSN(BPF_JMP | BPF_CALL, 0, 0, 0, helper)
#define LOAD_MAP(reg, fd)     INSN(BPF_LD | BPF_DW | BPF_IMM, reg, BPF_PSEUDO_MAP_FD, 0, fd), INSN(0, 0, 0, 0, 0)
#define EXIT                  INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

/* Turns a failure of bpf(2) into a finding. EACCES is a rejection by the verifier, not a missing right. */
static void say_error(struct doctor_finding *finding, int err, const char *log)
{
	const char *last = log, *at;

	if (err == -EPERM) {
		doctor_say(finding, DOCTOR_DENIED, "%s", strerror(EPERM));
		return;
	}
	/* the line before "processed N insns" has the reason */
	for (at = log; (at = strchr(at, '\n')); at++) {
		if (at[1] && strncmp(at + 1, "processed ", 10) != 0)
			last = at + 1;
	}
	doctor_say(finding, DOCTOR_NO, "%s%s%.*s", strerror(-err), *last ? ": " : "", (int)strcspn(last, "\n"), last);
}

static void say_fd(struct doctor_finding *finding, int fd, const char *log)
{
	if (fd < 0)
		say_error(finding, fd, log);
	else
		doctor_say(finding, DOCTOR_YES, "%s", "");
}

static int make_map(enum bpf_map_type type)
{
	LIBBPF_OPTS(bpf_map_create_opts, options);
	CLEANUP(closep) int inner_fd = -1;

	if (type == BPF_MAP_TYPE_RINGBUF)
		return bpf_map_create(type, "sonde_try", 0, 0, (uint32_t)sysconf(_SC_PAGESIZE), &options);
	if (type == BPF_MAP_TYPE_ARRAY_OF_MAPS) {
		inner_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "sonde_try", 4, 8, 1, NULL);
		if (inner_fd < 0)
			return inner_fd;
		options.inner_map_fd = (uint32_t)inner_fd;
		return bpf_map_create(type, "sonde_try", 4, 4, 1, &options);
	}
	return bpf_map_create(type, "sonde_try", 4, 8, 1, &options);
}

void doctor_map(const struct doctor_check *check, struct doctor_finding *finding)
{
	CLEANUP(closep) int fd = make_map((enum bpf_map_type)check->number);

	say_fd(finding, fd, "");
}

/* Loads invalid type information: the kernel rejects it with EINVAL only after it has checked the caller's rights (EPERM). */
bool doctor_may_use_bpf(void)
{
	CLEANUP(closep) int fd = bpf_btf_load("", 1, NULL);

	return fd == -EINVAL;
}

/* Kernels before 5.11 charge the memory of maps to the limit of locked memory. libbpf raises that limit where it may. */
void doctor_large_map(const struct doctor_check *check, struct doctor_finding *finding)
{
	/* many elements: a single value may not be that large */
	CLEANUP(closep) int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "sonde_try", 4, 4096, check->number << 8, NULL);
	struct rlimit limit;

	if (fd == -EPERM && !getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_max < (rlim_t)check->number << 20)
		doctor_say(finding, DOCTOR_DENIED, "more than the limit of locked memory, which this process may not raise");
	else
		say_fd(finding, fd, "");
}

static int load(enum bpf_prog_type type, const struct bpf_insn *insns, size_t nr, char *log)
{
	LIBBPF_OPTS(bpf_prog_load_opts, options, .log_buf = log, .log_size = log ? LOG_BYTES : 0, .log_level = log ? 1 : 0);

	return bpf_prog_load(type, "sonde_doctor", LICENSE, insns, nr, &options);
}

int doctor_load_perf_program(void)
{
	const struct bpf_insn insns[] = { SET(BPF_REG_0, 0), EXIT };

	return load(BPF_PROG_TYPE_PERF_EVENT, insns, ARRAY_SIZE(insns), NULL);
}

void doctor_perf_program(const struct doctor_check *check, struct doctor_finding *finding)
{
	CLEANUP(closep) int fd = doctor_load_perf_program();

	say_fd(finding, fd, "");
}

/* Loads and attaches: a program that can be loaded but not attached is of no use. */
/* Loads a program for the place in the kernel that `check` names, and attaches it for a moment. */
static void load_at(const struct doctor_check *check, enum bpf_attach_type type, struct doctor_finding *finding)
{
	const struct bpf_insn insns[] = { SET(BPF_REG_0, 0), EXIT };
	int btf_id = libbpf_find_vmlinux_btf_id(check->path, type);
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = type, .attach_btf_id = (uint32_t)btf_id);
	CLEANUP(closep) int fd = -1;
	CLEANUP(closep) int link_fd = -1;

	if (btf_id < 0) {
		doctor_say(finding, DOCTOR_NO, "the kernel's type information has no %s", check->path);
		return;
	}
	fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "sonde_doctor", LICENSE, insns, ARRAY_SIZE(insns), &options);
	if (fd >= 0)
		link_fd = bpf_raw_tracepoint_open(NULL, fd);
	say_fd(finding, fd < 0 ? fd : link_fd, "");
}

void doctor_tracing_program(const struct doctor_check *check, struct doctor_finding *finding)
{
	load_at(check, BPF_TRACE_RAW_TP, finding);
}

/* A kernel may refuse these programs alone, whatever the rights. */
void doctor_fentry_program(const struct doctor_check *check, struct doctor_finding *finding)
{
	load_at(check, BPF_TRACE_FENTRY, finding);
	if (finding->state == DOCTOR_DENIED && doctor_may_use_bpf())
		doctor_say(finding, DOCTOR_NO, "this kernel refuses such programs to all");
}

void doctor_raw_program(const struct doctor_check *check, struct doctor_finding *finding)
{
	const struct bpf_insn insns[] = { SET(BPF_REG_0, 0), EXIT };
	CLEANUP(closep) int fd = load(BPF_PROG_TYPE_RAW_TRACEPOINT, insns, ARRAY_SIZE(insns), NULL);
	CLEANUP(closep) int link_fd = -1;

	if (fd >= 0)
		link_fd = bpf_raw_tracepoint_open(check->path, fd);
	say_fd(finding, fd < 0 ? fd : link_fd, "");
}

static int load_ring_helper(uint32_t helper, char *log)
{
	CLEANUP(closep) int map_fd = make_map(BPF_MAP_TYPE_RINGBUF);

	if (map_fd < 0)
		return map_fd;
	if (helper == BPF_FUNC_ringbuf_query) {
		const struct bpf_insn query[] = { LOAD_MAP(BPF_REG_1, map_fd), SET(BPF_REG_2, BPF_RB_AVAIL_DATA),
						  CALL(BPF_FUNC_ringbuf_query), SET(BPF_REG_0, 0), EXIT };

		return load(BPF_PROG_TYPE_PERF_EVENT, query, ARRAY_SIZE(query), log);
	}
	const struct bpf_insn output[] = { STORE_ZERO(BPF_REG_10, -8), LOAD_MAP(BPF_REG_1, map_fd), COPY(BPF_REG_2, BPF_REG_10),
					   ADD(BPF_REG_2, -8), SET(BPF_REG_3, 8), SET(BPF_REG_4, 0), CALL(BPF_FUNC_ringbuf_output),
					   SET(BPF_REG_0, 0), EXIT };

	return load(BPF_PROG_TYPE_PERF_EVENT, output, ARRAY_SIZE(output), log);
}

static int load_helper(uint32_t helper, char *log)
{
	const struct bpf_insn stack[] = { COPY(BPF_REG_2, BPF_REG_10), ADD(BPF_REG_2, -8), SET(BPF_REG_3, 8), SET(BPF_REG_4, 0),
					  CALL(BPF_FUNC_get_stack), SET(BPF_REG_0, 0), EXIT };
	const struct bpf_insn read[] = { COPY(BPF_REG_1, BPF_REG_10), ADD(BPF_REG_1, -8), SET(BPF_REG_2, 8), SET(BPF_REG_3, 0),
					 CALL((int)helper), SET(BPF_REG_0, 0), EXIT };

	switch (helper) {
	case BPF_FUNC_ringbuf_output:
	case BPF_FUNC_ringbuf_query:
		return load_ring_helper(helper, log);
	case BPF_FUNC_get_stack:
		return load(BPF_PROG_TYPE_PERF_EVENT, stack, ARRAY_SIZE(stack), log);
	default: /* the probe_read family: the same arguments */
		return load(BPF_PROG_TYPE_PERF_EVENT, read, ARRAY_SIZE(read), log);
	}
}

void doctor_helper(const struct doctor_check *check, struct doctor_finding *finding)
{
	char log[LOG_BYTES] = "";
	CLEANUP(closep) int fd = load_helper(check->number, log);

	say_fd(finding, fd, log);
}
