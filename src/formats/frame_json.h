/* SPDX-License-Identifier: Apache-2.0 */
/* frame_json: writes everything known about a frame as keys of an object of JSON lines. */
#pragma once
#include "codec/json.h"
#include "model/profile.h"

void write_frame_keys(struct json *json, const struct profile *profile, uint32_t location);
