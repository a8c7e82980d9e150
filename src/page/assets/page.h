/* SPDX-License-Identifier: Apache-2.0 */
/* The viewer as bytes, made from these files by tools/embed.py. The profile's JSON goes between the two parts. */
#pragma once
#include <stddef.h>

extern const unsigned char page_before_data[], page_after_data[];
extern const size_t page_before_data_size, page_after_data_size;
