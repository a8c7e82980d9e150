/* SPDX-License-Identifier: Apache-2.0 */
/* caller: who may do as he likes with this machine, or called us. Any thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Is it root, or our user? */
bool caller_is_us(uint32_t uid);
/* Or who called us by sudo? */
bool caller_is(uint32_t uid);
