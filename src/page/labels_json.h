/* SPDX-License-Identifier: Apache-2.0 */
/* labels_json: the labels of samples in a page: each label once, each set of labels once, and by sample the number of its set. */
#pragma once
#include "codec/json.h"
#include "page/view.h"

/* Writes a key and its value, if any sample has labels. 0 or -ENOMEM; the buffer records other errors. */
MUST_CHECK int write_labels(struct json *json, const struct view *view, const struct profile *profile);
