/* SPDX-License-Identifier: Apache-2.0 */
/* listener: sockets that wait for connections, of addresses as a user writes them. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/diag.h"

#define LISTENER_ADDRESS_BYTES 128

/* ":PORT" and "localhost:PORT" are loopback; "HOST:PORT", where HOST is an address of IPv4, or of IPv6 in brackets, and no other name,
 * which may mean more than one thinks; "unix:PATH". Port 0: the kernel chooses. Returns a descriptor that does not block, and writes what
 * was bound, "127.0.0.1:9090" or "unix:PATH"; or a negative errno, with a line; -EINVAL: no address. */
MUST_CHECK int listener_open(const char *text, char bound[LISTENER_ADDRESS_BYTES], struct diag *diag);
/* -EINVAL: no address that listener_open takes. Opens nothing. */
MUST_CHECK int listener_check(const char *text, struct diag *diag);
/* Closes it, and removes the socket of unix:PATH. */
void listener_close(int fd, const char *text);
/* A unix socket of that name in the directory, which has the path `directory`, however long: for its owner alone (0600). Both kinds of unix
 * sockets replace one that is there and on which nobody listens. */
MUST_CHECK int listener_open_in(const char *directory, const char *name, struct diag *diag);
void listener_close_in(int fd, const char *directory, const char *name);
/* A connection to it, blocking. A negative errno; -ECONNREFUSED, -ENOENT: nobody listens. */
MUST_CHECK int listener_connect_in(const char *directory, const char *name);
