// SPDX-License-Identifier: Apache-2.0
/* Any bytes as gzip: the output never exceeds the limit. */
#include <stdint.h>
#include <stdlib.h>

#include "import/gunzip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(buffer_done) struct buffer out = BUFFER_INIT(100000);
	struct diag diag = { 0 };

	if (gunzip(data, size, &out, &diag) && !diag.err)
		abort();
	if (out.size > out.max)
		abort();
	return 0;
}
