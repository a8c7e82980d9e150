/* SPDX-License-Identifier: Apache-2.0 */
/* caller: which users we trust: root, our own user, and the one who called sudo. Any thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Is it root, or our own user? */
bool caller_is_us(uint32_t uid);
/* The same, or the user who called sudo. */
bool caller_is(uint32_t uid);
