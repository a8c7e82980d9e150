/* SPDX-License-Identifier: Apache-2.0 */
/* terminal: the width of standard output, if it is a terminal. A pipe or a file gets plain text of any width. */
#pragma once
#include <stdint.h>

uint32_t terminal_width(void); /* columns; 0: not a terminal */
