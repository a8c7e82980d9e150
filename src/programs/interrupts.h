/* SPDX-License-Identifier: Apache-2.0 */
/* interrupts: how often each interrupt has come (/proc/interrupts), to say beside a handler without hits whether its interrupt came at
 * all. One thread. */
#pragma once
#include "base/buffer.h"
#include "base/cleanup.h"

struct interrupts;
/* NULL: no memory, or there is no such list. */
struct interrupts *interrupts_read(void);
void interrupts_free(struct interrupts *interrupts); /* takes NULL */
/* Appends "24 virtio0-input +5, ..." of devices' interrupts that came meanwhile, or "none". */
void interrupts_difference(const struct interrupts *before, const struct interrupts *after, struct buffer *text);
