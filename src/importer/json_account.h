/* SPDX-License-Identifier: Apache-2.0 */
/* json_account: reads the account of sonde's JSON. The reader and the buffers record errors. */
#pragma once
#include "codec/json_read.h"
#include "model/account.h"

/* The reader is at the start of an object. `key` and `text` are scratch buffers. */
void json_account(struct json_reader *r, struct buffer *key, struct buffer *text, struct account *account);
