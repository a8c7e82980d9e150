// SPDX-License-Identifier: Apache-2.0
#include "store/store_path.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"

#define MAX_TIME_BYTES 32
#define MAX_AGE_S      (100ull * 365 * 86400)

int store_duration_parse(const char *text, uint64_t *ret_ns)
{
	static const struct {
		char letter;
		uint32_t seconds;
	} units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
	char digits[MAX_TIME_BYTES];
	size_t size = strlen(text);
	uint64_t number;

	snprintf(digits, sizeof(digits), "%.*s", size ? (int)size - 1 : 0, text);
	for (size_t i = 0; size && size < sizeof(digits) && i < ARRAY_SIZE(units); i++) {
		if (text[size - 1] != units[i].letter || number_u64(digits, MAX_AGE_S / units[i].seconds, &number))
			continue;
		*ret_ns = number * units[i].seconds * NS_PER_S;
		return 0;
	}
	return -EINVAL;
}

/* "2026-11-26T20:00:30Z" */
static bool parse_date(const char *text, uint64_t *ret_ns)
{
	static const char *const forms[] = { "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d" };

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct tm tm = { .tm_isdst = -1 };
		const char *end = strptime(text, forms[i], &tm);
		time_t seconds;

		if (!end || (*end && strcmp(end, "Z") != 0))
			continue;
		seconds = *end ? timegm(&tm) : mktime(&tm);
		*ret_ns = (uint64_t)seconds * NS_PER_S;
		return seconds >= 0;
	}
	return false;
}

static int parse_time(const char *text, size_t size, uint64_t now_ns, uint64_t *ret_ns, struct diag *diag)
{
	char copy[MAX_TIME_BYTES];
	uint64_t ago_ns;

	if (!size)
		return 0; /* open at this end */
	snprintf(copy, sizeof(copy), "%.*s", size < sizeof(copy) ? (int)size : 0, text);
	if (*copy == '-' && !store_duration_parse(copy + 1, &ago_ns)) {
		*ret_ns = now_ns > ago_ns ? now_ns - ago_ns : 0;
		return 0;
	}
	if (parse_date(copy, ret_ns))
		return 0;
	return diag_errno(diag, EINVAL, "'%.*s' is no time: -90s, -15m, -1h, -2d, 2026-11-26T20:00 or 2026-11-26T20:00Z, as in @-2h..-1h",
			  size < MAX_TIME_BYTES ? (int)size : MAX_TIME_BYTES, text);
}

/* `comma`: where it is, or the end. */
static int parse_type(const char *comma, struct store_path *path, struct diag *diag)
{
	if (*comma && (!comma[1] || strlen(comma + 1) >= sizeof(path->type)))
		return diag_errno(diag, EINVAL, "'%.40s' is no type of profiles: cpu, offcpu, wall, as in @-1h,offcpu", comma + 1);
	snprintf(path->type, sizeof(path->type), "%s", *comma ? comma + 1 : "");
	return 0;
}

static bool is_store(const char *directory)
{
	char path[PATH_MAX];
	int length = snprintf(path, sizeof(path), "%s/profiles.db", directory);

	return length > 0 && (size_t)length < sizeof(path) && !access(path, F_OK);
}

int store_path_parse(const char *path, struct store_path *ret_path, struct diag *diag)
{
	const char *at = strrchr(path, '@'), *end = at ? at : path + strlen(path), *dots, *comma;
	uint64_t now_ns = clock_ns() + clock_unix_offset_ns();
	int err;

	*ret_path = (struct store_path){ .to_ns = UINT64_MAX };
	if ((size_t)(end - path) >= sizeof(ret_path->directory))
		return 0;
	memcpy(ret_path->directory, path, (size_t)(end - path));
	if (!is_store(ret_path->directory))
		return 0;
	if (!at)
		return 1;
	comma = at + 1 + strcspn(at + 1, ",");
	dots = strstr(at + 1, "..");
	end = dots && dots < comma ? dots : comma;
	err = parse_type(comma, ret_path, diag) ?: parse_time(at + 1, (size_t)(end - at - 1), now_ns, &ret_path->from_ns, diag);
	if (!err && end < comma)
		err = parse_time(end + 2, (size_t)(comma - end - 2), now_ns, &ret_path->to_ns, diag);
	if (!err && ret_path->from_ns >= ret_path->to_ns)
		err = diag_errno(diag, EINVAL, "the time in '%.200s' ends before it begins", path);
	return err ? err : 1;
}
