/* SPDX-License-Identifier: Apache-2.0 */
/* The writers behind export_write, one per format. Each returns 0 or -ENOMEM; the buffer's own sticky error is checked by export_write. */
#pragma once
#include "export/export.h"

MUST_CHECK int write_text(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
MUST_CHECK int write_top(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
MUST_CHECK int write_folded(const struct profile *profile, const struct export_options *options, struct buffer *buffer);

/* These hold everything, whatever the options. */
MUST_CHECK int write_json(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
MUST_CHECK int write_pprof(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
MUST_CHECK int write_jsonl(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
MUST_CHECK int write_speedscope(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
MUST_CHECK int write_firefox(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
MUST_CHECK int write_cpuprofile(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
MUST_CHECK int write_perf_script(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
MUST_CHECK int write_otlp_json(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
MUST_CHECK int write_otlp_protobuf(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
/* These obey options.threads. */
MUST_CHECK int write_svg(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
MUST_CHECK int write_html(const struct profile *profile, const struct export_options *options, struct buffer *buffer);

/* Between kernel and user frames: both sides are there, asked for, and not missed. */
bool wants_delimiter(const struct profile *profile, const struct export_options *options, uint32_t user_stack, uint32_t kernel_stack);
