// SPDX-License-Identifier: Apache-2.0
#include "shadow.h"

#include <sys/syscall.h>

#include "abi/record.h"

#define MAX_STACK_BYTES (8u << 20) /* farther away is another stack */

static void push(struct shadow *shadow, struct shadow_entry entry)
{
	if (shadow->nr < SHADOW_MAX)
		shadow->entries[shadow->nr++] = entry;
}

bool shadow_is_syscall(const uint8_t *code)
{
	return code[0] == 0x0f && code[1] == 0x05;
}

/* E8 rel32 or FF /2, after any prefixes (Intel SDM volume 2, CALL). */
static bool is_call(const uint8_t *code)
{
	int i = 0;

	while (i < 4 && (code[i] == 0x66 || code[i] == 0x67 || code[i] == 0xf2 || code[i] == 0xf3 || code[i] == 0x2e || code[i] == 0x3e ||
			 code[i] == 0x64 || code[i] == 0x65 || (code[i] & 0xf0) == 0x40))
		i++;
	return code[i] == 0xe8 || (code[i] == 0xff && (code[i + 1] & 0x38) == 0x10);
}

static bool is_ret(const uint8_t *code)
{
	return code[0] == 0xc3 || code[0] == 0xc2 || ((code[0] == 0xf2 || code[0] == 0xf3) && code[1] == 0xc3);
}

/* Whether this entry's call has ended, with the stack pointer at `sp`. */
static bool is_over(const struct shadow_entry *entry, uint64_t sp)
{
	return entry->is_signal ? sp >= entry->at && sp - entry->at < MAX_STACK_BYTES : sp > entry->at && sp - entry->at < MAX_STACK_BYTES;
}

/* Back on a stack on which calls were made before: those on the other stack have ended. */
static void leave_stack(struct shadow *shadow, uint64_t sp)
{
	uint32_t nr = shadow->nr;

	while (nr && shadow->entries[nr - 1].at - sp + MAX_STACK_BYTES >= 2 * (uint64_t)MAX_STACK_BYTES)
		nr--;
	if (nr)
		shadow->nr = nr;
}

void shadow_step(struct shadow *shadow, const struct user_regs_struct *before, const struct user_regs_struct *after, const uint8_t *code,
		 uint64_t top)
{
	uint32_t nr = 0;

	if (is_call(code) && after->rsp == before->rsp - 8 && top - before->rip <= 15) {
		push(shadow, (struct shadow_entry){ .pc = top | SONDE_FRAME_RETURN, .at = after->rsp });
		return;
	}
	if (shadow_is_syscall(code) && before->rax == SYS_rt_sigreturn) {
		while (shadow->nr && !shadow->entries[shadow->nr - 1].is_signal)
			shadow->nr--;
		if (shadow->nr)
			shadow->nr--;
		return;
	}
	if (is_ret(code) && shadow->nr && shadow->entries[shadow->nr - 1].at == SHADOW_NOWHERE &&
	    shadow->entries[shadow->nr - 1].pc == (after->rip | SONDE_FRAME_RETURN)) {
		shadow->nr--;
		return;
	}
	if (after->rsp <= before->rsp && before->rsp - after->rsp < MAX_STACK_BYTES)
		return;
	leave_stack(shadow, after->rsp);
	/* The outermost call that has ended ends all calls within it. */
	while (nr < shadow->nr && !is_over(&shadow->entries[nr], after->rsp))
		nr++;
	shadow->nr = nr;
}

void shadow_signal(struct shadow *shadow, const struct user_regs_struct *before, const struct user_regs_struct *after, uint64_t top)
{
	push(shadow, (struct shadow_entry){ .pc = before->rip, .at = before->rsp, .is_signal = true });
	push(shadow, (struct shadow_entry){ .pc = top | SONDE_FRAME_RETURN, .at = after->rsp });
}
