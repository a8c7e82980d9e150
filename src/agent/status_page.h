/* SPDX-License-Identifier: Apache-2.0 */
/* status_page: a report for people, and the same as JSON. */
#pragma once
#include "agent/agent_report.h"
#include "base/buffer.h"

void status_page_text(const struct agent_report *report, struct buffer *buffer);
void status_page_json(const struct agent_report *report, struct buffer *buffer);
