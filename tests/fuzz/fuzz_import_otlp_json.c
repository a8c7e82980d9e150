// SPDX-License-Identifier: Apache-2.0
#include "import_any.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return import_any(data, size, IMPORT_OTLP_JSON);
}
