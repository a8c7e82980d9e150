/* SPDX-License-Identifier: Apache-2.0 */
/* account_json: writes the account as a JSON object, the same for the JSON file and the HTML page. */
#pragma once
#include "codec/json.h"
#include "model/account.h"

void write_account(struct json *json, const struct account *account);
