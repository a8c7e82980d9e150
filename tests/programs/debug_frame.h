/* SPDX-License-Identifier: Apache-2.0 */
/* A function whose call frame information is in .debug_frame only. */
#pragma once

int call_with_debug_frame(int (*fn)(int), int value);
