// SPDX-License-Identifier: Apache-2.0
#include "audit/audit.h"

/* The fewest frames for a verdict, if libdw did not reach the stack's end. The first frame is given, its caller is found. */
#define MIN_FRAMES 2

static struct audit_finding not_comparable(enum audit_reason reason)
{
	return (struct audit_finding){ .verdict = AUDIT_NOT_COMPARABLE, .reason = reason };
}

static struct audit_finding differs(uint32_t frame)
{
	return (struct audit_finding){ .verdict = AUDIT_DIFFERS, .frame = frame };
}

static enum audit_reason reason_of(enum audit_end end)
{
	switch (end) {
	case AUDIT_END_COMPAT:
		return AUDIT_REASON_COMPAT;
	case AUDIT_END_COPY:
		return AUDIT_REASON_COPY;
	case AUDIT_END_NO_CFI:
		return AUDIT_REASON_NO_CFI;
	case AUDIT_END_LIBDW:
	case AUDIT_END_NO_CODE:
	case AUDIT_END_FRAMES:
	case AUDIT_END_ROOT:
		break;
	}
	return AUDIT_REASON_LIBDW;
}

struct audit_finding audit_compare(const uint64_t *walked, uint32_t nr_walked, enum sonde_stop stop, const struct audit_stack *by_libdw)
{
	uint32_t nr = by_libdw->nr_frames, nr_common = nr < nr_walked ? nr : nr_walked;

	for (uint32_t i = 0; i < nr_common; i++) {
		if (walked[i] != by_libdw->frames[i])
			return differs(i);
	}
	if (nr > nr_walked)
		return stop == SONDE_STOP_COMPLETE ? differs(nr_walked) : not_comparable(AUDIT_REASON_MARKED);
	if (by_libdw->end == AUDIT_END_ROOT) {
		if (nr < nr_walked)
			return differs(nr);
		return stop == SONDE_STOP_COMPLETE ? (struct audit_finding){ .verdict = AUDIT_AGREES }
						   : not_comparable(AUDIT_REASON_MARKED);
	}
	return nr >= MIN_FRAMES ? (struct audit_finding){ .verdict = AUDIT_AGREES } : not_comparable(reason_of(by_libdw->end));
}
