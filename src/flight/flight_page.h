/* SPDX-License-Identifier: Apache-2.0 */
/* flight_page: what the flight recorder says of itself, on the agent's pages. */
#pragma once
#include "base/buffer.h"
#include "codec/json.h"
#include "flight/flight.h"

void flight_page_metrics(struct buffer *buffer, const struct flight_numbers *numbers); /* for Prometheus */
void flight_page_text(struct buffer *buffer, const struct flight_numbers *numbers);    /* a line */
void flight_page_json(struct json *json, const struct flight_numbers *numbers);        /* the key "recorder" and its object */
