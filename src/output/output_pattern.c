// SPDX-License-Identifier: Apache-2.0
#include "output/output_pattern.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buffer.h"
#include "base/clock.h"

struct output_words output_words_of(uint32_t number, uint64_t start_unix_ns, uint64_t *newest_s)
{
	struct output_words words = { .number = number };
	time_t seconds = (time_t)(start_unix_ns / NS_PER_S);
	size_t length = 0;
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		length = strftime(words.time, sizeof(words.time), "%Y%m%dT%H%M%SZ", &tm);
	if ((uint64_t)seconds > *newest_s)
		*newest_s = (uint64_t)seconds;
	else
		snprintf(words.time + length, sizeof(words.time) - length, "-%" PRIu32, number);
	return words;
}

/* Returns the next % that is not %%: %n, %t or an invalid one; or the end of the text. */
static const char *next_hole(const char *at)
{
	while (*at && !(at[0] == '%' && at[1] != '%'))
		at += at[0] == '%' ? 2 : 1;
	return at;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int output_pattern_check(const char *pattern, struct diag *diag)
{
	const char *name = base_name(pattern), *hole = next_hole(pattern);
	bool is_known = *hole;

	for (const char *at = hole; *at; at = next_hole(at + 2)) {
		is_known = at[1] == 'n' || at[1] == 't';
		if (!is_known)
			break;
	}
	if (!is_known)
		return diag_errno(diag, EINVAL,
				  "each window has a file of its own: '%.200s' needs %%n (its number) or %%t (its time) in its name; a "
				  "percent sign is %%%%",
				  pattern);
	if (hole < name)
		return diag_errno(
		    diag, EINVAL,
		    "'%.200s' has %%n or %%t in a directory's name: use them in the file's name; sonde creates no directories", pattern);
	return 0;
}

int output_pattern_path(const char *pattern, const struct output_words *words, char path[PATH_MAX])
{
	CLEANUP(buffer_done) struct buffer text = BUFFER_INIT(PATH_MAX - 1);

	for (const char *at = pattern; *at; at++) {
		if (*at != '%') {
			buffer_append(&text, at, 1);
			continue;
		}
		at++;
		if (*at == 'n')
			buffer_printf(&text, "%" PRIu32, words->number);
		else if (*at == 't')
			buffer_text(&text, words->time);
		else
			buffer_append(&text, at, 1);
	}
	if (text.err)
		return -ENAMETOOLONG;
	memcpy(path, text.data, text.size + 1);
	return 0;
}

/* --- two patterns --------------------------------------------------------------------------------------------------------------------- */

static bool find_directory(const char *pattern, struct stat *ret_status)
{
	const struct output_words any = { .time = "" };
	char path[PATH_MAX];
	char *slash;

	if (output_pattern_path(pattern, &any, path))
		return false;
	slash = strrchr(path, '/');
	if (slash)
		slash[slash == path] = '\0';
	return !stat(slash ? path : ".", ret_status);
}

static bool are_in_one_directory(const char *a, const char *b)
{
	struct stat of_a, of_b;

	return find_directory(a, &of_a) && find_directory(b, &of_b) && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Could the names begin alike? %n and %t begin with a digit. */
static bool heads_meet(const char *a, const char *b)
{
	size_t of_a = (size_t)(next_hole(a) - a), of_b = (size_t)(next_hole(b) - b), common = of_a < of_b ? of_a : of_b;

	if (memcmp(a, b, common))
		return false;
	return of_a == of_b || is_digit(of_a > common ? a[common] : b[common]);
}

static const char *tail_of(const char *name)
{
	const char *tail = name;

	for (const char *hole = next_hole(name); *hole; hole = next_hole(hole + 2))
		tail = hole + 2;
	return tail;
}

/* Could the names end alike? %n and %t end with a digit or a Z. */
static bool tails_meet(const char *a, const char *b)
{
	size_t of_a = strlen(a), of_b = strlen(b), common = of_a < of_b ? of_a : of_b;
	char before;

	if (memcmp(a + of_a - common, b + of_b - common, common))
		return false;
	if (of_a == of_b)
		return true;
	before = of_a > common ? a[of_a - common - 1] : b[of_b - common - 1];
	return is_digit(before) || before == 'Z';
}

bool output_pattern_meet(const char *a, const char *b)
{
	const char *name_a = base_name(a), *name_b = base_name(b);

	return heads_meet(name_a, name_b) && tails_meet(tail_of(name_a), tail_of(name_b)) && are_in_one_directory(a, b);
}
