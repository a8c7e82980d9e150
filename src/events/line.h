/* SPDX-License-Identifier: Apache-2.0 */
/* line: parts of lines that all of this folder's reports have. Texts of others are made safe for the line and the terminal. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "abi/record.h"
#include "base/buffer.h"
#include "codec/json.h"

/* Appends the local time, "17:04:09.123". */
void line_time(struct buffer *line, uint64_t unix_ns);
/* Appends untrusted text, at least `width` wide. */
void line_text(struct buffer *line, const char *text, size_t width);
void line_comm(struct buffer *line, const char comm[SONDE_COMM_BYTES]);
/* Appends "ENOENT", or the number of an error without a name; at least `width` wide; `err` 0: "-". */
void line_error(struct buffer *line, int err, size_t width);
/* The name of an error, or NULL. */
const char *line_error_name(int err);
/* The first of the JSON lines. */
void line_json_heading(struct buffer *lines, const char *format, const char *command_line);
/* The fields "comm", from at most 15 bytes. */
void line_json_comm(struct json *json, const char comm[SONDE_COMM_BYTES]);
