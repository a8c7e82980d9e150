/* SPDX-License-Identifier: Apache-2.0 */
/* audit_reason: why an audited stack says nothing about the walk. One list makes the enum, the counters and the report. Always holds:
 * audited = agreed + differed + all of these. */
#pragma once

#define AUDIT_REASON_LIST(X) \
	X(COMPAT, "compat", "32-bit code") \
	X(COPY, "copy_too_short", "the copy of the stack ends before the caller of the innermost function") \
	X(NO_CFI, "no_cfi", "no call frame information of libdw's for the innermost function") \
	X(LIBDW, "libdw_failed", "libdw could not use the call frame information of the innermost function") \
	X(MARKED, "marked", "all frames agree, but the walk ended with a mark where libdw found the root or went on") \
	X(LOST, "lost", "the stack to be checked, or what its process had mapped, is not there") \
	X(NOT_ASKED, "not_asked", \
	  "the stack goes through files of several users, or of one whose files have taken too long, or is of a process whose stacks " \
	  "cannot be audited") \
	X(NO_ANSWER, "no_answer", "libdw's process did not come to it, took too long or failed")

#define X(id, name, text) AUDIT_REASON_##id,
enum audit_reason { AUDIT_REASON_LIST(X) AUDIT_REASON_COUNT };
#undef X
