/* SPDX-License-Identifier: Apache-2.0 */
/* own_function: a function of ours that does nothing, to measure what probes cost. Any thread. */
#pragma once
#include <stdint.h>

void own_function(void); /* its first instruction is one that the kernel need not execute */
uint64_t own_function_off(void); /* where it is in our file; 0: not known */
