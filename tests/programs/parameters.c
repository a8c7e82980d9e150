// SPDX-License-Identifier: Apache-2.0
/* parameters NR: at a line on standard input, calls work() NR times with arguments of several types. Prints the number of the line in
 * work() that is run each time. */
#include "known.h"

struct pair {
	int a, b;
};

static volatile int sink, work_line;

KNOWN int work(int fd, const char *path, double ratio, signed char small, struct pair *pair, unsigned long n)
{
	int sum = fd + small + pair->a;

	work_line = __LINE__ + 1;
	sink += sum;
	return sum + (int)n + (int)ratio + path[0];
}

int main(int argc, char **argv)
{
	struct pair pair = { 1, 2 };
	int nr = argc > 1 ? atoi(argv[1]) : 1;
	char line[8];

	printf("ready\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	for (int i = 0; i < nr; i++)
		sink += work(-i, i % 2 ? "odd" : "even", 0.5, -3, &pair, 1ul << 40);
	printf("line %d\n", work_line);
	return 0;
}
