/* SPDX-License-Identifier: Apache-2.0 */
/* rust_walk: how much work it is to print a Rust name. A few bytes of a v0 name can keep libiberty busy for minutes: `for<'a, 'b, ...>` of
 * 2^60 lifetimes in a part that is not printed, or back references to long chains that print nothing. So names are first walked as
 * libiberty walks them, and the steps counted. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define RUST_WALK_MAX_STEPS 100000u /* of the 301,029 names in rustc 1.95 and its libraries the longest walk takes 10,822 */

/* `name`: a v0 name without its suffix, "_RNv...". False: it is malformed, or takes too many steps. */
bool rust_walk_is_short(const char *name, size_t size);
