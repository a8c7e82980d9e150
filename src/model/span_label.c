// SPDX-License-Identifier: Apache-2.0
#include "model/span_label.h"

#include <string.h>

struct span_ids span_ids_of(const struct profile *profile, uint32_t labels)
{
	struct span_ids ids = { PROFILE_NONE, PROFILE_NONE };
	uint32_t nr;
	const struct profile_label *list = profile_labels_at(profile, labels, &nr);

	for (uint32_t i = 0; i < nr; i++) {
		const char *key = profile_string_text(profile, list[i].key);

		if (list[i].is_number)
			continue;
		if (!strcmp(key, SPAN_LABEL_TRACE))
			ids.trace = list[i].text;
		else if (!strcmp(key, SPAN_LABEL_SPAN))
			ids.span = list[i].text;
	}
	return ids;
}
