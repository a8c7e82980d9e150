/* SPDX-License-Identifier: Apache-2.0 */
/* code_json: the source and instructions in a page. */
#pragma once
#include "codec/json.h"
#include "frames/tree.h"
#include "show/annotation.h"

/* Writes a key and its value. The buffer records errors. */
void write_code(struct json *json, const struct tree *tree, const struct profile *profile, const struct annotated_code *code);
