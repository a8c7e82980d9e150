/* SPDX-License-Identifier: Apache-2.0 */
/* account_json: the account as a JSON object, in the JSON file and in the HTML page alike. */
#pragma once
#include "codec/json.h"
#include "model/account.h"

void write_account(struct json *json, const struct account *account);
