// SPDX-License-Identifier: Apache-2.0
/* In the format that it looks like. */
#include "import_any.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum import_format format;

	return size && import_detect(data, size, NULL, &format) == 0 ? import_any(data, size, format) : 0;
}
