// SPDX-License-Identifier: Apache-2.0
#include "formats/histogram_json.h"

static void write_slot(struct json *json, const struct histogram *histogram, uint32_t slot)
{
	uint64_t low, high;

	histogram_bounds((enum histogram_scale)histogram->scale, slot, &low, &high);
	json_open(json, '{');
	json_key_u64(json, "low", low);
	json_key(json, "high");
	if (high == UINT64_MAX)
		json_null(json);
	else
		json_u64(json, high);
	json_key_u64(json, "count", histogram->slots[slot]);
	json_close(json, '}');
}

void write_histogram(struct json *json, const struct profile *profile, const struct profile_histogram *histogram)
{
	json_key_text(json, "name", profile_string_text(profile, histogram->name));
	json_key_text(json, "key", profile_string_text(profile, histogram->key));
	json_key_text(json, "unit", profile_string_text(profile, histogram->unit));
	json_key_text(json, "scale", histogram_scale_name((enum histogram_scale)histogram->histogram.scale));
	json_key_u64(json, "count", histogram_count(&histogram->histogram));
	json_key_u64(json, "sum", histogram->histogram.sum);
	json_key(json, "slots");
	json_open(json, '[');
	for (uint32_t slot = 0; slot < HISTOGRAM_SLOTS; slot++) {
		if (histogram->histogram.slots[slot])
			write_slot(json, &histogram->histogram, slot);
	}
	json_close(json, ']');
}
