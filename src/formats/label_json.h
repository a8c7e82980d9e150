/* SPDX-License-Identifier: Apache-2.0 */
/* label_json: a label as JSON: [key, text] or [key, number, unit]. */
#pragma once
#include "codec/json.h"
#include "model/profile.h"

void write_label(struct json *json, const struct profile *profile, const struct profile_label *label);
