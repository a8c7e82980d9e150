/* SPDX-License-Identifier: Apache-2.0 */
/* account_text: the account in words, for stderr and for comments in files. */
#pragma once
#include "base/buffer.h"
#include "model/account.h"

/* Lines, each newline-terminated: first the warnings from number `first_note` on (a terminal got the others before the run), then the rest.
 * Untrusted names become plain text. */
void account_text(const struct account *account, uint32_t first_note, struct buffer *buffer);
void account_text_notes(const struct account *account, uint32_t first_note, struct buffer *buffer); /* only the warnings */
/* The command line behind the word "sonde": a program that uses the library may give it without that word. */
const char *account_command(const struct account *account);
/* What was recorded and what was lost, without the cost; then all warnings. */
void account_text_run(const struct account *account, struct buffer *buffer);
