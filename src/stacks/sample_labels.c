// SPDX-License-Identifier: Apache-2.0
#include "stacks/sample_labels.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "stacks/label_table.h"

#define OWN_MAX (LABEL_TABLE_MAX + 1) /* and the number of those left out: stacks/label_table.h */

static int add_text(struct profile *profile, const struct process_label *from, struct profile_label *label)
{
	label->key = profile_string(profile, from->key);
	label->text = profile_string(profile, from->text);
	label->unit = PROFILE_EMPTY_STRING;
	return label->key == PROFILE_NONE || label->text == PROFILE_NONE ? -ENOMEM : 0;
}

static bool has_key(const struct process_labels *labels, const char *key)
{
	for (uint32_t i = 0; i < labels->nr; i++) {
		if (!strcmp(labels->list[i].key, key))
			return true;
	}
	return false;
}

int sample_labels_add(struct profile *profile, const struct process_labels *process, struct profile_sample *sample)
{
	struct profile_label labels[PROCESS_LABELS_MAX + OWN_MAX] = { 0 };
	uint32_t nr_own, nr = 0;
	const struct profile_label *own = profile_labels_at(profile, sample->labels, &nr_own);

	for (uint32_t i = 0; i < nr_own && nr < OWN_MAX; i++) {
		if (!has_key(process, profile_string_text(profile, own[i].key)))
			labels[nr++] = own[i];
	}
	for (uint32_t i = 0; i < process->nr; i++) {
		if (add_text(profile, &process->list[i], &labels[nr++]))
			return -ENOMEM;
	}
	sample->labels = profile_labels(profile, labels, nr);
	return sample->labels == PROFILE_NONE ? -ENOMEM : 0;
}

int sample_labels_add_known(struct profile *profile, const struct process_labels *process, uint64_t count, struct profile_sample *sample)
{
	if (process)
		return sample_labels_add(profile, process, sample);
	if (sample->tgid)
		profile_account(profile)->labels_missed += count;
	return 0;
}
