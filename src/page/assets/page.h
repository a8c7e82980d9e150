/* SPDX-License-Identifier: Apache-2.0 */
/* The viewer as bytes, made from the files here by tools/embed.py; the profile's JSON belongs between the two. */
#pragma once
#include <stddef.h>

extern const unsigned char page_before_data[], page_after_data[];
extern const size_t page_before_data_size, page_after_data_size;
