/* SPDX-License-Identifier: Apache-2.0 */
/* export: converts a profile to a file format. Writers fill a buffer and settle it as they go, where the format allows it
 * (docs/internals/formats.md). The caller decides where the bytes go. */
#pragma once
#include <stdbool.h>

#include "base/buffer.h"
#include "base/diag.h"
#include "frames/export_options.h"
#include "model/profile.h"

/* X(id, name for --format, suffixes (blank-separated), text for help); the longest matching suffix wins */
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
	X(OTLP_1_9, "otlp-1.9", ".1.9.otlp", "the same for collectors of opentelemetry-proto 1.9") \
	X(OTLP_1_8, "otlp-1.8", ".1.8.otlp", "the same for collectors of opentelemetry-proto 1.8") \
	X(SVG, "svg", ".svg", "a flame graph as a picture")

#define X(id, name, suffixes, text) EXPORT_##id,
enum export_format { EXPORT_FORMAT_LIST(X) EXPORT_FORMAT_COUNT };
#undef X

const char *export_format_name(enum export_format format);
/* Find a format by its name for --format, or by a path's suffix. 0; -EINVAL: `diag` lists the known ones. */
MUST_CHECK int export_format_by_name(const char *name, struct diag *diag, enum export_format *ret_format);
MUST_CHECK int export_format_by_path(const char *path, struct diag *diag, enum export_format *ret_format);
/* Does it show source lines and inlined functions? Then they are looked up. */
bool export_format_has_lines(enum export_format format);
bool export_format_has_histograms(enum export_format format);
/* Writes the whole profile. 0; -ENOMEM; -EFBIG; -E2BIG: too many samples for the format; -EINVAL: the format needs a sum, and the shown
 * value is none. */
MUST_CHECK int export_write(const struct profile *profile, enum export_format format, const struct export_options *options,
			    struct buffer *buffer, struct diag *diag);
