/* SPDX-License-Identifier: Apache-2.0 */
/* terminal: what standard output is: how wide, and whether it takes colours. A pipe or a file gets plain text of any width. */
#pragma once
#include <stdint.h>

uint32_t terminal_width(void); /* columns; 0: no terminal */
