/* SPDX-License-Identifier: Apache-2.0 */
/* caller: who may do as he likes with this machine, or called us. Any thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Is it root, our user, or who called us by sudo? */
bool caller_is(uint32_t uid);
