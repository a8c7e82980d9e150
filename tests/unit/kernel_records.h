/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_records: records as the kernel side sends them. Records of stacks and samples go straight to a stack recorder. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "abi/record.h"
#include "abi/wait.h"
#include "stacks/stack_recorder.h"

#define TGID 0x7ffffff0u /* of no process */

/* Sends a walked stack with its frames. Without a `stop` it is complete. */
static inline void send_stack_record(struct stack_recorder *recorder, struct sonde_stack_record stack, const uint64_t *frames)
{
	struct {
		struct sonde_stack_record header;
		uint64_t frames[SONDE_MAX_USER_FRAMES];
	} record = { .header = stack };

	record.header.type = SONDE_RECORD_STACK;
	record.header.nr_walked = stack.nr_frames;
	memcpy(record.frames, frames, stack.nr_frames * sizeof(*frames));
	assert_int_equal(stack_recorder_record(recorder, &record), 0);
}

static inline void send_sample_record(struct stack_recorder *recorder, struct sonde_sample_record sample)
{
	sample.type = SONDE_RECORD_SAMPLE;
	assert_int_equal(stack_recorder_record(recorder, &sample), 0);
}

/* Sends a deferred stack whose memory is the text "stack". */
static inline void send_deferred_record(struct stack_recorder *recorder, uint64_t id)
{
	const struct {
		struct sonde_deferred_record header;
		char stack[8];
	} record = { .header = { .type = SONDE_RECORD_DEFERRED, .tgid = TGID, .time_ns = 5, .id = id, .stack_bytes = 5 },
		     .stack = "stack" };

	assert_int_equal(stack_recorder_record(recorder, &record), 0);
}

/* A wait of a thread of TGID outside of system calls. A stack of 0 means none. */
static inline struct sonde_wait_key wait_key(uint32_t tid, const char *comm, uint16_t state, uint64_t user_stack, uint64_t kernel_stack)
{
	struct sonde_wait_key key = { .user_stack = user_stack,
				      .kernel_stack = kernel_stack,
				      .user_state = user_stack ? SONDE_STACK_STORED : SONDE_STACK_NONE,
				      .kernel_state = kernel_stack ? SONDE_STACK_STORED : SONDE_STACK_NONE,
				      .tgid = TGID,
				      .tid = tid,
				      .syscall = SONDE_NO_SYSCALL,
				      .state = state };

	snprintf(key.comm, sizeof(key.comm), "%s", comm);
	return key;
}

static inline struct sonde_waker_record waker_record(uint64_t hash, struct sonde_wait_key waker)
{
	return (struct sonde_waker_record){ .type = SONDE_RECORD_WAKER, .hash = hash, .waker = waker };
}
