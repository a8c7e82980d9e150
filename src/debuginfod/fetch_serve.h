/* SPDX-License-Identifier: Apache-2.0 */
/* fetch_serve: the process that fetches debug files, started by fetcher.h. It runs until its owner closes the socket. It has the network,
 * but an unused uid, no capabilities, and no files except the descriptors it receives. */
#pragma once
#include <stdbool.h>

/* Is this process one? Then it serves until the end; *ret_code is its exit code. */
bool serve_as_fetcher(int argc, char **argv, int *ret_code);
