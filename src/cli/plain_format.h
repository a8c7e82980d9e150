/* SPDX-License-Identifier: Apache-2.0 */
/* plain_format: --format of the verbs that produce no profile: text for people, or JSON. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

/* The names, for option_spec.value_name. */
const char *plain_format_at(uint32_t i);
/* `format`: from --format; NULL: by the suffix of `path` (NULL: standard output). -EINVAL: no such format. */
MUST_CHECK int plain_format_choose(const char *format, const char *path, struct diag *diag, bool *ret_is_json);
