/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The options: the same in each program, filled in before it is loaded. */
#pragma once
#include "../abi/config.h"

const volatile struct sonde_config cfg = {};

/* A part of such a constant, for code that takes it by a pointer. The compiler must not see where it comes from: behind a plain pointer it
 * would take the zeros that the constant is initialized with for its value. */
static __always_inline const void *knob(const volatile void *at)
{
	const void *hidden = (const void *)at;

	__asm__ volatile("" : "+r"(hidden));
	return hidden;
}
