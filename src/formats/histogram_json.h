/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "codec/json.h"
#include "model/profile.h"

/* Writes a histogram as keys of the open object: name, key, unit, scale, count, sum, and the slots that are not empty, with their
 * bounds. */
void write_histogram(struct json *json, const struct profile *profile, const struct profile_histogram *histogram);
