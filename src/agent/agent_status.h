/* SPDX-License-Identifier: Apache-2.0 */
/* agent_status: asks the agent that has a store. */
#pragma once
#include <stdbool.h>

/* Prints its status, as text or JSON. Returns the exit code: SONDE_EXIT_FAILED with a line if there is no agent, or it does not answer. */
int agent_status(const char *store, bool json);
