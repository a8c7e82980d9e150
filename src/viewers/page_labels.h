/* SPDX-License-Identifier: Apache-2.0 */
/* page_labels: the labels of the samples of sonde's page (page/labels_json.c). All zeros: none. */
#pragma once
#include "importer/json_column.h"
#include "importer/reading.h"

struct page_labels {
	struct profile_label *list;
	uint32_t nr, max;
	struct json_column of_sample;  /* number of its set */
	struct json_column in_sets;    /* the labels of all sets, one set after the other */
	struct json_column ends;       /* of each set in these */
};

void page_labels_done(struct page_labels *labels);
/* The reader is at the start of the object. 0 or -ENOMEM; `in` records other errors. */
MUST_CHECK int page_labels_read(struct page_labels *labels, struct reading *in);
void page_labels_add(const struct page_labels *labels, struct importer *importer, uint32_t row, struct profile_sample *sample);
