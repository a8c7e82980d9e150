/* SPDX-License-Identifier: Apache-2.0 */
/* own_function: a function of ours that does nothing, to measure what probes cost. Any thread. */
#pragma once
#include <stddef.h>
#include <stdint.h>

void own_function(void); /* its first instruction is one that the kernel need not execute */
#define OWN_FUNCTION_PATH 512
/* Where it is in its file, which is sonde or the library; sets that one's path. 0: not known. */
uint64_t own_function_off(char *path, size_t room);
