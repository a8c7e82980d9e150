// SPDX-License-Identifier: Apache-2.0
/* Edit distance (insert, delete, replace, swap neighbours) between a mistyped word and each known one. Keeps three rows of the table:
 * names are short and this runs once, before an error message. */
#include "cli/option.h"

#include <string.h>

#define MAX_LENGTH 40

static size_t least(size_t a, size_t b, size_t c)
{
	size_t least_ab = a < b ? a : b;

	return least_ab < c ? least_ab : c;
}

static size_t distance(const char *a, const char *b)
{
	size_t rows[3][MAX_LENGTH + 1], nr_a = strlen(a), nr_b = strlen(b);

	if (nr_a > MAX_LENGTH || nr_b > MAX_LENGTH)
		return SIZE_MAX;
	for (size_t k = 0; k <= nr_b; k++)
		rows[0][k] = k;
	for (size_t i = 1; i <= nr_a; i++) {
		size_t *row = rows[i % 3], *above = rows[(i - 1) % 3], *above2 = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t k = 1; k <= nr_b; k++) {
			row[k] = least(above[k] + 1, row[k - 1] + 1, above[k - 1] + (a[i - 1] != b[k - 1]));
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				row[k] = least(row[k], above2[k - 2] + 1, SIZE_MAX);
		}
	}
	return rows[nr_a % 3][nr_b];
}

const char *option_nearest(const char *text, const char *(*name_at)(const void *names, size_t i), const void *names)
{
	const char *name, *nearest = NULL;
	size_t best = strlen(text) / 3 + 1; /* up to a third of the word may be wrong; beyond that it is another word */

	for (size_t i = 0; (name = name_at(names, i)); i++) {
		size_t d = *name ? distance(text, name) : SIZE_MAX;

		if (text[0] && text[1] && !strncmp(text, name, strlen(text)))
			d = 0; /* a prefix of it */
		if (d <= best && (d < best || !nearest)) {
			nearest = name;
			best = d;
		}
	}
	return nearest;
}
