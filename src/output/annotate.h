/* SPDX-License-Identifier: Apache-2.0 */
/* annotate: the source and instructions of functions, from files of this machine. One thread. */
#pragma once
#include "base/buffer.h"
#include "base/diag.h"
#include "model/profile.h"
#include "show/annotation.h"

/* Writes those of a function as text (show.h). 0, -ENOENT, -ENOMEM. */
MUST_CHECK int annotate_function(const struct profile *profile, const char *function, const struct show_options *options, struct diag *diag,
				 struct buffer *buffer);
/* Those of the hottest functions, for a page. `near_lines`: of source, before and after those with samples. The rows say what could not be
 * read. 0, -EINVAL, -ENOMEM; `code` may have some all the same. */
MUST_CHECK int annotate_hottest(const struct profile *profile, uint32_t near_lines, struct diag *diag, struct annotated_code *code);
