/* SPDX-License-Identifier: Apache-2.0 */
/* json_account: the account of sonde's JSON back into an account. Errors are the reader's and the buffers'. */
#pragma once
#include "codec/json_read.h"
#include "model/account.h"

/* An object begins at the reader. `key` and `text` are for its use. */
void json_account(struct json_reader *r, struct buffer *key, struct buffer *text, struct account *account);
