/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A hit of a probe: its arguments, and the fields that are compared and shown. The tables are constant, so the verifier sees only what is
 * asked for. */
#pragma once
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_helpers.h>
#include <bpf/usdt.bpf.h> /* the maps with which libbpf attaches USDT probes */

#include "../abi/probe.h"
#include "knobs.h"
#include "syscall.h"

const volatile struct sonde_probe_config probe_cfg = {};

struct hit {
	__u64 args[SONDE_PROBE_ARGS], result, sp;
	__u64 tgid_tid;
	__u32 unread_args, absent_args; /* a bit for each */
	char comm[SONDE_COMM_BYTES];
};

/* --- arguments ------------------------------------------------------------------------------------------------------------------------ */

#ifdef SONDE_ARM64
#define FUNCTION_ARG(regs, i) ((regs)->regs[i])
#define FUNCTION_RESULT(regs) ((regs)->regs[0])
#define STACK_POINTER(regs)   ((regs)->sp)
typedef struct user_pt_regs regs_t;
#else
#define FUNCTION_RESULT(regs) ((regs)->rax)
#define STACK_POINTER(regs)   ((regs)->rsp)
typedef struct pt_regs regs_t;

static __always_inline __u64 function_arg(const regs_t *regs, int i)
{
	switch (i) {
	case 0:
		return regs->rdi;
	case 1:
		return regs->rsi;
	case 2:
		return regs->rdx;
	case 3:
		return regs->rcx;
	case 4:
		return regs->r8;
	default:
		return regs->r9;
	}
}
#define FUNCTION_ARG(regs, i) function_arg(regs, i)
#endif

/* By a copy: the verifier would take some of them for pointers to the kernel's structs, with which nothing may be computed. */
static __always_inline void take_words(struct hit *hit, const __u64 *words)
{
	bpf_probe_read_kernel(hit->args, sizeof(__u64) * (probe_cfg.nr_args < SONDE_PROBE_ARGS ? probe_cfg.nr_args : SONDE_PROBE_ARGS),
			      words);
	if (probe_cfg.result)
		bpf_probe_read_kernel(&hit->result, sizeof(hit->result), (const void *)words + sizeof(__u64) * (probe_cfg.result - 1));
}

static __always_inline void take_function_regs(struct hit *hit, const regs_t *regs)
{
#pragma clang loop unroll(full)
	for (int i = 0; i < 6; i++)
		hit->args[i] = FUNCTION_ARG(regs, i);
	hit->result = FUNCTION_RESULT(regs);
	hit->sp = STACK_POINTER(regs);
}

static __always_inline void take_usdt(struct hit *hit, struct pt_regs *ctx)
{
	long value, err;

#pragma clang loop unroll(full)
	for (int i = 0; i < SONDE_PROBE_ARGS; i++) {
		value = 0;
		err = bpf_usdt_arg(ctx, i, &value);
		if (err)
			hit->unread_args |= 1u << i;
		if (err == -ENOENT)
			hit->absent_args |= 1u << i; /* the probe has fewer */
		hit->args[i] = value;
	}
}

/* False: another system call. Those of 32 bits have numbers of their own. */
static __always_inline bool take_call(struct hit *hit, const __u64 *words)
{
	const void *at = (const void *)words[0];
	struct call_regs regs;
	bool compat;

	if (probe_cfg.context == SONDE_PROBE_CALL_BEGIN && words[1] != probe_cfg.call && words[1] != probe_cfg.compat_call)
		return false;
	if (bpf_probe_read_kernel(&regs, sizeof(regs), at))
		return false;
	compat = is_compat_call(&regs);
	if (call_regs_number(&regs) != (compat ? probe_cfg.compat_call : probe_cfg.call))
		return false;
#pragma clang loop unroll(full)
	for (int i = 0; i < 6; i++)
		hit->args[i] = call_regs_argument(&regs, compat, i);
	if (probe_cfg.context == SONDE_PROBE_CALL_END)
		hit->result = words[1];
	return true;
}

static __always_inline bool take_args(struct hit *hit, void *ctx)
{
	switch (probe_cfg.context) {
	case SONDE_PROBE_WORDS:
		take_words(hit, ctx);
		return true;
	case SONDE_PROBE_REGS:
		take_function_regs(hit, ctx);
		return true;
	case SONDE_PROBE_USDT:
		take_usdt(hit, ctx);
		return true;
	default:
		return take_call(hit, ctx);
	}
}

/* --- fields --------------------------------------------------------------------------------------------------------------------------- */

static __always_inline __u64 source_of(const struct hit *hit, const struct sonde_probe_field *field)
{
	switch (field->source) {
	case SONDE_PROBE_RESULT:
		return hit->result;
	case SONDE_PROBE_TGID:
		return hit->tgid_tid >> 32;
	case SONDE_PROBE_TID:
		return (__u32)hit->tgid_tid;
	case SONDE_PROBE_CPU:
		return bpf_get_smp_processor_id();
	default:
		return hit->args[field->arg < SONDE_PROBE_ARGS ? field->arg : 0];
	}
}

/* 0 where it cannot be read: *ret_unread. Else that keeps its value. */
static __always_inline __u64 value_of(const struct hit *hit, const struct sonde_probe_field *field, bool *ret_unread)
{
	__u64 value = source_of(hit, field);
	__u32 unused = 64 - 8 * field->bytes;

	if (field->source == SONDE_PROBE_ARG && hit->unread_args >> (field->arg & 31) & 1)
		*ret_unread = true;
#pragma clang loop unroll(full)
	for (__u32 i = 0; i < SONDE_PROBE_STEPS; i++) {
		if (i >= field->nr_steps)
			break;
		value += field->offsets[i];
		if (i + 1 == field->nr_steps && field->text == SONDE_PROBE_TEXT_HERE)
			return value;
		if (bpf_probe_read_kernel(&value, sizeof(value), (const void *)value)) {
			*ret_unread = true;
			return 0;
		}
	}
	if (field->text)
		return value;
	value <<= unused & 63;
	return field->is_signed ? (__u64)((__s64)value >> (unused & 63)) : value >> (unused & 63);
}

/* Reads the field's text; on failure it is empty: *ret_unread. `size`: a constant. */
static __always_inline void read_text(const struct hit *hit, const struct sonde_probe_field *field, char *to, __u32 size,
				      bool *ret_unread)
{
	const void *at;
	long bytes;

	if (field->source == SONDE_PROBE_COMM) {
		__builtin_memcpy(to, hit->comm, SONDE_COMM_BYTES);
		return;
	}
	at = (const void *)value_of(hit, field, ret_unread);
	bytes = field->text == SONDE_PROBE_USER_TEXT ? bpf_probe_read_user_str(to, size, at) : bpf_probe_read_kernel_str(to, size, at);
	if (bytes < 0)
		*ret_unread = true;
}

static __always_inline bool is_same_text(const struct sonde_probe_filter *filter, const char *text)
{
	for (__u32 i = 0; i < SONDE_PROBE_TEXT_BYTES; i++) {
		if (i >= filter->text_bytes)
			break;
		if (text[i] != filter->text[i])
			return false;
	}
	return true;
}

static __always_inline bool passes(const struct hit *hit, const struct sonde_probe_filter *filter, bool *ret_unread)
{
	char text[SONDE_PROBE_TEXT_BYTES] = {};

	if (!filter->text_bytes)
		return sonde_probe_is_ordered(filter, value_of(hit, &filter->field, ret_unread));
	read_text(hit, &filter->field, text, sizeof(text), ret_unread);
	return is_same_text(filter, text) == (filter->operator!= SONDE_PROBE_DIFFERENT);
}

/* Of what cannot be read, no comparison is true, != neither: *ret_unread. */
static __always_inline bool passes_all(const struct hit *hit, bool *ret_unread)
{
#pragma clang loop unroll(full)
	for (__u32 i = 0; i < SONDE_PROBE_FILTERS; i++) {
		if (i >= probe_cfg.nr_filters)
			break;
		if (!passes(hit, knob(&probe_cfg.filters[i]), ret_unread) || *ret_unread)
			return false;
	}
	return true;
}

static __always_inline bool is_absent(const struct hit *hit, const struct sonde_probe_field *field)
{
	return field->source == SONDE_PROBE_ARG && hit->absent_args >> (field->arg & 31) & 1;
}

/* Fills in what probe_cfg.printed asks for. */
static __always_inline void take_values(const struct hit *hit, struct sonde_probe_values *values)
{
	values->unread = values->absent = 0;
#pragma clang loop unroll(full)
	for (__u32 i = 0; i < SONDE_PROBE_PRINTED; i++) {
		if (i >= probe_cfg.nr_printed)
			break;
		bool unread = false;

		values->numbers[i] = values->texts[i][0] = 0;
		if (probe_cfg.printed[i].text)
			read_text(hit, knob(&probe_cfg.printed[i]), values->texts[i], SONDE_PROBE_TEXT_BYTES, &unread);
		else
			values->numbers[i] = value_of(hit, knob(&probe_cfg.printed[i]), &unread);
		values->unread |= unread ? 1u << i : 0;
		values->absent |= is_absent(hit, knob(&probe_cfg.printed[i])) ? 1u << i : 0;
	}
}
