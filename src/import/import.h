/* SPDX-License-Identifier: Apache-2.0 */
/* import: reads files of several formats into a profile. The files are untrusted: lengths and counts are checked against the bytes that are
 * there, nothing takes more than linear time, and everything that grows has a limit, with an error or a count. One thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "model/profile.h"

/* X(id, name for --from, text for help) */
#define IMPORT_FORMAT_LIST(X) \
	X(PPROF, "pprof", "google/pprof's profile.proto, gzipped or not") \
	X(FOLDED, "folded", "one line per stack, as for flame graphs") \
	X(JSON, "json", "sonde's own") \
	X(PERF_SCRIPT, "perf", "what perf script prints") \
	X(OTLP, "otlp", "OpenTelemetry profiles, as protocol buffers") \
	X(OTLP_JSON, "otlp-json", "OpenTelemetry profiles, as JSON") \
	X(JSONL, "jsonl", "sonde's own, a sample in each line") \
	X(PAGE, "html", "the page that sonde writes") \
	X(SPEEDSCOPE, "speedscope", "speedscope's: also of py-spy, rbspy, ...") \
	X(CPUPROFILE, "cpuprofile", "of Chromium and of node --cpu-prof") \
	X(FIREFOX, "firefox", "the Firefox Profiler's, also of samply") \
	X(PERF_DATA, "perf-data", "perf record's perf.data, file or stream; with lines, if the files are here")

#define X(id, name, text) IMPORT_##id,
enum import_format { IMPORT_FORMAT_LIST(X) IMPORT_FORMAT_COUNT };
#undef X

const char *import_format_name(enum import_format format);
const char *import_format_text(enum import_format format);
/* 0 or -EINVAL (diag lists the formats). */
MUST_CHECK int import_format_by_name(const char *name, struct diag *diag, enum import_format *ret_format);
/* Detects the format from the unpacked contents. 0 or -EINVAL. */
MUST_CHECK int import_detect(const void *bytes, size_t size, struct diag *diag, enum import_format *ret_format);
bool import_is_gzip(const void *bytes, size_t size);

/* Reads the whole file into an empty profile. Not for IMPORT_PERF_DATA, which needs more than the file: replay/perf_profile.h. Whatever a
 * profile cannot hold is counted in the notes of its account, after the file's own *ret_nr_own notes. 0; -EBADMSG: malformed or cut off,
 * and diag says where; -EFBIG: past a limit; -ENOMEM. After an error the profile is unusable. */
MUST_CHECK int import_read(const void *bytes, size_t size, enum import_format format, struct profile *profile, struct diag *diag,
			   uint32_t *ret_nr_own);
