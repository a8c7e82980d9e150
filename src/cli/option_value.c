// SPDX-License-Identifier: Apache-2.0
#include "cli/option.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

static int set_number(const struct option_spec *spec, const char *label, const char *value, uint64_t *ret_number, struct diag *diag)
{
	uint64_t number = 0;

	if (number_u64(value, spec->max, &number) < 0 || number < spec->min)
		return diag_errno(diag, EINVAL, "%s must be a whole number from %" PRIu64 " to %" PRIu64 ", not '%.60s'", label, spec->min,
				  spec->max, value);
	*ret_number = number;
	return 0;
}

/* Above the largest possible number: too large. */
static int set_bytes(const struct option_spec *spec, const char *label, const char *value, uint64_t *ret_bytes, struct diag *diag)
{
	static const char units[] = "KMGT";
	size_t length = strlen(value);
	const char *unit = length ? strchr(units, value[length - 1]) : NULL;
	uint32_t shift = unit && *unit ? 10 * (uint32_t)(unit - units + 1) : 0;
	uint64_t number = 0;
	char digits[24];

	snprintf(digits, sizeof(digits), "%.*s", (int)(shift ? length - 1 : length), value);
	if (length >= sizeof(digits) || number_u64(digits, spec->max >> shift, &number) < 0 || number << shift < spec->min)
		return diag_errno(diag, EINVAL, "%s must be a number of bytes from %" PRIu64 " to %" PRIu64 ", as 512K, not '%.60s'",
				  label, spec->min, spec->max, value);
	*ret_bytes = number << shift;
	return 0;
}

static int set_seconds(const struct option_spec *spec, const char *label, const char *value, uint64_t *ret_seconds, struct diag *diag)
{
	static const struct {
		char letter;
		uint32_t seconds;
	} units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 } };
	size_t length = strlen(value);
	uint64_t number = 0, times = 1;
	char digits[24];

	for (size_t i = 0; length && i < ARRAY_SIZE(units); i++) {
		if (value[length - 1] == units[i].letter) {
			times = units[i].seconds;
			length--;
			break;
		}
	}
	snprintf(digits, sizeof(digits), "%.*s", (int)length, value);
	if (length >= sizeof(digits) || number_u64(digits, spec->max / times, &number) < 0 || number * times < spec->min)
		return diag_errno(diag, EINVAL, "%s must be a time from %" PRIu64 " to %" PRIu64 " seconds, as 90 or 5m, not '%.60s'",
				  label, spec->min, spec->max, value);
	*ret_seconds = number * times;
	return 0;
}

static int add_text(const char *label, const char *value, struct option_texts *texts, struct diag *diag)
{
	if (texts->nr == OPTION_MAX_TEXTS)
		return diag_errno(diag, EINVAL, "%s is given more than %d times: leave some out", label, OPTION_MAX_TEXTS);
	texts->texts[texts->nr++] = value;
	return 0;
}

static int add_id(const char *label, uint32_t id, struct option_ids *ids, struct diag *diag)
{
	for (uint32_t i = 0; i < ids->nr; i++) {
		if (ids->ids[i] == id)
			return 0;
	}
	if (ids->nr == OPTION_MAX_IDS)
		return diag_errno(diag, EINVAL, "%s has more than %d ids: leave some out", label, OPTION_MAX_IDS);
	ids->ids[ids->nr++] = id;
	return 0;
}

/* "185" or "185,190": each part is a whole number, none is empty. */
static int add_ids(const struct option_spec *spec, const char *label, const char *value, struct option_ids *ids, struct diag *diag)
{
	const char *at = value;

	for (;;) {
		size_t length = strcspn(at, ",");
		char text[24];
		uint64_t id = 0;
		int err;

		snprintf(text, sizeof(text), "%.*s", length < sizeof(text) ? (int)length : (int)sizeof(text), at);
		if (length >= sizeof(text) || number_u64(text, spec->max, &id) < 0 || id < spec->min)
			return diag_errno(diag, EINVAL,
					  "%s needs ids from %" PRIu64 " to %" PRIu64 " with commas between them, not '%.60s'", label,
					  spec->min, spec->max, value);
		err = add_id(label, (uint32_t)id, ids, diag);
		if (err || !at[length])
			return err;
		at += length + 1;
	}
}

int option_set(const struct option_spec *spec, const char *label, const char *value, void *arguments, struct diag *diag)
{
	void *field = (char *)arguments + spec->offset;

	if (spec->kind != OPTION_FLAG && !*value)
		return diag_errno(diag, EINVAL, "%s needs a value that is not empty: %s %s", label, label, spec->metavar);
	switch (spec->kind) {
	case OPTION_FLAG:
		*(bool *)field = true;
		return 0;
	case OPTION_NUMBER:
		return set_number(spec, label, value, field, diag);
	case OPTION_BYTES:
		return set_bytes(spec, label, value, field, diag);
	case OPTION_SECONDS:
		return set_seconds(spec, label, value, field, diag);
	case OPTION_TEXT:
		*(const char **)field = value;
		return 0;
	case OPTION_TEXTS:
		return add_text(label, value, field, diag);
	case OPTION_IDS:
		return add_ids(spec, label, value, field, diag);
	}
	return diag_errno(diag, EINVAL, "%s is of an unknown kind", label);
}
