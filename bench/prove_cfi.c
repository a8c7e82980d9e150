// SPDX-License-Identifier: Apache-2.0
/* prove_cfi FILE...: compares the unwind tables of files with libdw at every address (tests/oracle/cfi_proof.h). Prints a line per file,
 * and the DWARF expressions in them. Exit status 1 when anything differs. ./test does the same with samples of large files. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../tests/oracle/cfi_proof.h"

#define MAX_SHAPES 64

static void tell(void *arg, const char *text)
{
	printf("  %s\n", text);
}

static struct cfi_shape shapes[MAX_SHAPES];
static uint32_t nr_shapes;

static void add_shape(const struct cfi_shape *shape)
{
	uint32_t i = 0;

	while (i < nr_shapes && strcmp(shapes[i].text, shape->text) != 0)
		i++;
	if (i == MAX_SHAPES)
		return;
	if (i == nr_shapes)
		memcpy(shapes[nr_shapes++].text, shape->text, sizeof(shape->text));
	shapes[i].nr_pieces += shape->nr_pieces;
	shapes[i].nr_unsupported += shape->nr_unsupported;
}

int main(int argc, char **argv)
{
	const struct cfi_proof_options options = { .nr_random = 100000, .max_told = 10, .tell = tell, .wants_shapes = true };
	uint64_t nr_pcs = 0, nr_differ = 0;
	int failed = 0;

	printf("%9s %6s %9s %9s %7s %6s %7s %5s %7s %7s %6s  file\n", "rows", "rules", "pieces", "pcs", "ends", "signal", "unsup", "go",
	       "refused", "bx lost", "differ");
	for (int i = 1; i < argc; i++) {
		struct cfi_proof proof;
		struct diag diag = { 0 };

		if (cfi_prove(argv[i], &options, &diag, &proof)) {
			printf("%s: %s\n", argv[i], diag.text);
			failed = 1;
			continue;
		}
		printf("%9" PRIu32 " %6" PRIu32 " %9" PRIu32 " %9" PRIu32 " %7" PRIu32 " %6" PRIu32 " %7" PRIu32 " %5" PRIu32 " %7" PRIu32
		       " %7" PRIu32 " %6" PRIu32 "  %s\n",
		       proof.nr_rows, proof.nr_rules, proof.nr_pieces, proof.nr_pcs, proof.nr_end, proof.nr_signal, proof.nr_unsupported,
		       proof.nr_go, proof.nr_refused, proof.nr_bx_lost, proof.nr_differ, argv[i]);
		fflush(stdout);
		nr_pcs += proof.nr_pcs;
		nr_differ += proof.nr_differ;
		for (uint32_t shape = 0; shape < proof.nr_shapes; shape++)
			add_shape(&proof.shapes[shape]);
	}
	printf("%" PRIu64 " addresses, %" PRIu64
	       " differ\n\nexpressions, and the pieces that they hold in (of those, in rows that are not supported):\n",
	       nr_pcs, nr_differ);
	for (uint32_t i = 0; i < nr_shapes; i++)
		printf("%9" PRIu32 " %7" PRIu32 "  %s\n", shapes[i].nr_pieces, shapes[i].nr_unsupported, shapes[i].text);
	return failed || nr_differ;
}
