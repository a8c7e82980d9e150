/* SPDX-License-Identifier: Apache-2.0 */
/* frame_text: a frame as plain text. */
#pragma once
#include "base/plain_text.h"
#include "frames/export_options.h"
#include "model/profile.h"

/* The offset from the start of the function; without a symbol (a name in brackets) the address as linked, or else the pc. If interpreted,
 * the line. */
uint64_t frame_offset(const struct profile *profile, const struct profile_location *location);
/* Appends the frame's name as the options demand: function, +0x12, _[k]. If interpreted: "function (app.py)", with offsets "function
 * (app.py:12)". */
void frame_text(struct buffer *buffer, const struct profile *profile, uint32_t location, const struct export_options *options,
		char semicolon);
/* Appends the functions of a stack, leaf first, a line each behind `indent`; PROFILE_NONE: nothing. */
void frame_text_stack(struct buffer *buffer, const struct profile *profile, uint32_t stack, bool offsets, const char *indent);
