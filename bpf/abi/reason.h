/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* reason: why a sample was left out or lost, or why its user stack ended. Each list makes the enum, the counters, the report and the manual
 * page. Append only. A system test checks: ticks = recorded + sum(filtered) + sum(dropped). */
#pragma once

/* Samples that were not requested. */
#define SONDE_FILTER_LIST(X) \
	X(IDLE, "idle", "the CPU was idle") \
	X(TARGET, "target", "another process or thread than asked for")

/* Samples that were requested and are lost completely. */
#define SONDE_DROP_LIST(X) \
	X(NO_SCRATCH, "no_scratch", "no working memory for this CPU") \
	X(RING_FULL, "ring_full", "no room in the ring buffer for the sample")

#define SONDE_GAP_MARK "[frames without unwind info]"

/* Why a recorded sample's user stack ends where it does. Only COMPLETE means that the root was reached and nothing is missing. The texts in
 * brackets are the frames at the root end of such a stack; %s is the file's name. GAP: the root was reached, but frames are missing where
 * its mark is. */
#define SONDE_STOP_LIST(X) \
	X(COMPLETE, "complete", "") \
	X(DEPTH, "truncated", "[truncated]") \
	X(NO_PROCESS, "no_process", "[process not known yet]") \
	X(NO_MAPPING, "no_mapping", "[no mapping]") \
	X(NO_ROW, "no_unwind_info", "[no unwind info: %s]") \
	X(BAD_RULE, "unsupported_rule", "[unsupported unwind rule: %s]") \
	X(READ_FAULT, "read_fault", "[stack not readable]") \
	X(NO_PROGRESS, "no_progress", "[stack does not grow]") \
	X(COMPAT, "compat", "[32-bit code]") \
	X(TABLE, "table", "[unwind table damaged]") \
	X(EXEC, "exec", "[exec]") \
	X(NOT_LOADED, "not_loaded", "[unwind table not loaded: %s]") \
	X(STALE, "stale", "[mapping changed]") \
	X(NO_CALL, "no_call", "[no return address]") \
	X(TOO_LONG, "too_long", "[walk too long]") \
	X(GAP, "gap", SONDE_GAP_MARK)

#define X(id, name, text) SONDE_FILTER_##id,
enum sonde_filter { SONDE_FILTER_LIST(X) SONDE_FILTER_COUNT };
#undef X
#define X(id, name, text) SONDE_DROP_##id,
enum sonde_drop { SONDE_DROP_LIST(X) SONDE_DROP_COUNT };
#undef X
#define X(id, name, text) SONDE_STOP_##id,
enum sonde_stop { SONDE_STOP_LIST(X) SONDE_STOP_COUNT };
#undef X
