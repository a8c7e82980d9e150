/* SPDX-License-Identifier: Apache-2.0 */
/* account_text: the account in words, for stderr and the comments of files. */
#pragma once
#include "base/buffer.h"
#include "model/account.h"

/* One line each, newline-terminated: warnings first, from the `first_note`-th on (a terminal was told of the others before the run). What
 * strangers named is plain text. */
void account_text(const struct account *account, uint32_t first_note, struct buffer *buffer);
void account_text_notes(const struct account *account, uint32_t first_note, struct buffer *buffer); /* the warnings alone */
/* What was recorded and what was lost, without what it cost; then all warnings. */
void account_text_run(const struct account *account, struct buffer *buffer);
