/* SPDX-License-Identifier: Apache-2.0 */
/* fetch_serve: the side of the process that fetches debug files: one that was started so (by fetcher.h) goes on until its owner closes the
 * socket. It has the network, but no user, no capabilities, and no file of ours but those whose descriptors it is given. */
#pragma once
#include <stdbool.h>

/* Is this process one? Then it does its work; *ret_code is what it exits with. */
bool serve_as_fetcher(int argc, char **argv, int *ret_code);
