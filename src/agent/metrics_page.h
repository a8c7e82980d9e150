/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_page: a report in Prometheus' text format (version 0.0.4). */
#pragma once
#include "agent/agent_report.h"
#include "base/buffer.h"

#define METRICS_PAGE_TYPE "text/plain; version=0.0.4; charset=utf-8"

void metrics_page_write(const struct agent_report *report, struct buffer *buffer);
