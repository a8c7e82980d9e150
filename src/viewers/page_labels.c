// SPDX-License-Identifier: Apache-2.0
#include "viewers/page_labels.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "importer/json_label.h"

#define FIRST_LABELS 16
#define MAX_LABELS (1u << 28)

void page_labels_done(struct page_labels *labels)
{
	free(labels->list);
	json_column_done(&labels->of_sample);
	json_column_done(&labels->in_sets);
	json_column_done(&labels->ends);
}

static int read_list(struct page_labels *labels, struct reading *in)
{
	struct profile_label label;

	for (json_enter(&in->r, '['); !reading_failed(in) && json_next(&in->r);) {
		if (!json_label(in->importer, &in->r, &in->text, &label))
			return 0;
		if (!array_grow(&labels->list, labels->nr, &labels->max, sizeof(label), FIRST_LABELS, MAX_LABELS))
			return -ENOMEM;
		labels->list[labels->nr++] = label;
	}
	return 0;
}

static int read_sets(struct page_labels *labels, struct reading *in)
{
	int err = 0;

	for (json_enter(&in->r, '['); !err && !reading_failed(in) && json_next(&in->r);) {
		for (json_enter(&in->r, '['); !err && json_next(&in->r);)
			err = json_column_add(&labels->in_sets, json_read_i64(&in->r));
		if (!err)
			err = json_column_add(&labels->ends, labels->in_sets.nr);
	}
	return err;
}

int page_labels_read(struct page_labels *labels, struct reading *in)
{
	int err = 0;

	for (json_enter(&in->r, '{'); !err && !reading_failed(in) && json_next_key(&in->r, &in->key);) {
		if (reading_is_key(in, "of_sample"))
			err = json_column_read(&labels->of_sample, &in->r, 0);
		else if (reading_is_key(in, "sets"))
			err = read_sets(labels, in);
		else if (reading_is_key(in, "labels"))
			err = read_list(labels, in);
		else
			json_skip(&in->r);
	}
	return err;
}

void page_labels_add(const struct page_labels *labels, struct importer *importer, uint32_t row, struct profile_sample *sample)
{
	int64_t set = json_column_at(&labels->of_sample, row), end = json_column_at(&labels->ends, set);

	for (int64_t i = set > 0 ? labels->ends.cells[set - 1] : 0; end != NO_CELL && i < end; i++) {
		int64_t label = labels->in_sets.cells[i];

		if (label >= 0 && label < labels->nr)
			import_label(importer, sample, &labels->list[label]);
	}
}
