// SPDX-License-Identifier: Apache-2.0
#include "audit/audit_message.h"

#include <errno.h>

void audit_answers_append(struct buffer *answers, const struct audit_stack *stack)
{
	const uint32_t head[] = { stack->nr_frames, stack->end };

	buffer_append(answers, head, sizeof(head));
	buffer_append(answers, stack->frames, stack->nr_frames * sizeof(*stack->frames));
}

int audit_answers_open(const void *bytes, size_t size, uint32_t nr_stacks, struct reader *ret_answers)
{
	struct reader reader = reader_of(bytes, size);

	for (uint32_t i = 0; i < nr_stacks && !reader.bad; i++) {
		uint32_t nr_frames = reader_u32(&reader), end = reader_u32(&reader);

		if (nr_frames > AUDIT_MAX_FRAMES || end > AUDIT_END_COMPAT)
			return -EBADMSG;
		reader_skip(&reader, nr_frames * sizeof(uint64_t));
	}
	if (reader.bad || reader_left(&reader))
		return -EBADMSG;
	*ret_answers = reader_of(bytes, size);
	return 0;
}

void audit_answers_next(struct reader *answers, struct audit_stack *ret_stack)
{
	ret_stack->nr_frames = reader_u32(answers);
	ret_stack->end = (enum audit_end)reader_u32(answers);
	reader_copy(answers, ret_stack->frames, ret_stack->nr_frames * sizeof(*ret_stack->frames));
}
