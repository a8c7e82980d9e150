/* SPDX-License-Identifier: Apache-2.0 */
/* account_text: the account in words, for stderr and the comments of files. */
#pragma once
#include "base/buffer.h"
#include "model/account.h"

/* One line each, newline-terminated, warnings first. Control characters in what strangers named are the caller's concern. */
void account_text(const struct account *account, struct buffer *buffer);
