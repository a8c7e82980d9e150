/* SPDX-License-Identifier: Apache-2.0 */
/* frame_json: writes what is known about a frame as keys of an object. */
#pragma once
#include "codec/json.h"
#include "model/profile.h"

/* "nameless": true, if it is. */
void write_nameless(struct json *json, const struct profile_location *location);
void write_frame_keys(struct json *json, const struct profile *profile, uint32_t location);
