/* SPDX-License-Identifier: Apache-2.0 */
/* export: a profile to a file format. Writers fill a buffer and settle it as they go, where the format allows it
 * (docs/internals/formats.md); what becomes of the bytes is the caller's business. */
#pragma once
#include <stdbool.h>

#include "base/buffer.h"
#include "base/diag.h"
#include "frames/export_options.h"
#include "model/profile.h"

/* X(id, name for --format, suffixes (blank-separated), text for help); of suffixes that fit, the longest counts */
#define EXPORT_FORMAT_LIST(X) \
	X(TEXT, "text", ".txt", "stacks with their counts, the hottest last") \
	X(FOLDED, "folded", ".folded .collapsed", "one line per stack, for flame graphs") \
	X(JSON, "json", ".json", "everything, for programs") \
	X(PPROF, "pprof", ".pb.gz .pprof", "gzipped protocol buffer, for google/pprof and its kin") \
	X(HTML, "html", ".html .htm", "a flame graph in one page") \
	X(TOP, "top", ".top", "the functions with most samples, as a table") \
	X(JSONL, "jsonl", ".jsonl .ndjson", "a JSON object per sample, for jq and data bases") \
	X(SPEEDSCOPE, "speedscope", ".speedscope.json", "for speedscope") \
	X(FIREFOX, "firefox", ".firefox.json", "for the Firefox Profiler") \
	X(CPUPROFILE, "cpuprofile", ".cpuprofile", "for Chrome's DevTools and VS Code") \
	X(PERF_SCRIPT, "perf", ".perf", "as perf script prints it, for FlameScope and other readers of it") \
	X(OTLP_JSON, "otlp-json", ".otlp.json", "OpenTelemetry's profiles, as JSON") \
	X(OTLP_PROTOBUF, "otlp", ".otlp.pb .otlp", "OpenTelemetry's profiles, as protocol buffer") \
	X(SVG, "svg", ".svg", "a flame graph as a picture")

#define X(id, name, suffixes, text) EXPORT_##id,
enum export_format { EXPORT_FORMAT_LIST(X) EXPORT_FORMAT_COUNT };
#undef X

const char *export_format_name(enum export_format format);
/* By --format's name, or by a path's suffix. 0 or -EINVAL (diag lists what there is). */
MUST_CHECK int export_format_by_name(const char *name, struct diag *diag, enum export_format *ret_format);
MUST_CHECK int export_format_by_path(const char *path, struct diag *diag, enum export_format *ret_format);
/* Whether it shows source lines and inlined functions: they are looked up then. */
bool export_format_has_lines(enum export_format format);
bool export_format_has_histograms(enum export_format format);
/* Writes the whole profile. 0; -ENOMEM; -EFBIG; -EINVAL: the value that is shown is no sum, and the format takes nothing else. */
MUST_CHECK int export_write(const struct profile *profile, enum export_format format, const struct export_options *options,
			    struct buffer *buffer, struct diag *diag);
