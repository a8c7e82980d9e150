// SPDX-License-Identifier: Apache-2.0
#include "programs/call_numbers.h"

#include <string.h>

uint32_t call_number(const char *name, bool is_32_bit)
{
	for (const struct call_number *call = is_32_bit ? call_numbers_32 : call_numbers_64; call->name; call++) {
		if (!strcmp(call->name, name))
			return call->number;
	}
	return CALL_UNKNOWN;
}

const char *call_name(uint32_t number, bool is_32_bit)
{
	for (const struct call_number *call = is_32_bit ? call_numbers_32 : call_numbers_64; call->name; call++) {
		if (call->number == number)
			return call->name;
	}
	return NULL;
}
