/* SPDX-License-Identifier: Apache-2.0 */
/* The writers of machine-readable formats. Each returns 0 or -ENOMEM; export_write checks the buffer's own sticky error. They write
 * everything, whatever the options. */
#pragma once
#include "base/buffer.h"
#include "base/cleanup.h"
#include "frames/export_options.h"
#include "model/profile.h"

MUST_CHECK int write_json(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
MUST_CHECK int write_pprof(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
MUST_CHECK int write_jsonl(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
MUST_CHECK int write_speedscope(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
MUST_CHECK int write_firefox(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
MUST_CHECK int write_cpuprofile(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
MUST_CHECK int write_perf_script(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
MUST_CHECK int write_otlp_json(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
MUST_CHECK int write_otlp_protobuf(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
MUST_CHECK int write_otlp_1_9(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
MUST_CHECK int write_otlp_1_8(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
