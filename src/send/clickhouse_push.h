/* SPDX-License-Identifier: Apache-2.0 */
/* clickhouse_push: how a profile is sent to ClickHouse: an INSERT over HTTP of sonde's JSON lines, one for each sample, with the window and
 * the host in each. packaging/clickhouse.sql makes tables of them. */
#pragma once
#include "send/push.h"

extern const struct push_type clickhouse_push;
