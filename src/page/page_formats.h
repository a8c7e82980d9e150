/* SPDX-License-Identifier: Apache-2.0 */
/* The writers of pictures. As in formats/formats.h, but they obey options.threads. */
#pragma once
#include "base/buffer.h"
#include "base/cleanup.h"
#include "frames/export_options.h"
#include "model/profile.h"

MUST_CHECK int write_svg(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
MUST_CHECK int write_html(const struct profile *profile, const struct export_options *options, struct buffer *buffer);
