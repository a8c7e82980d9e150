/* SPDX-License-Identifier: Apache-2.0 */
/* dotnet_socket: the diagnostics socket of a .NET process, by which it can be told at run time to write the names of its compiled code to
 * its perf map. What answers there may be hostile. Protocol: ipc-protocol.md of dotnet/diagnostics; the runtime's side:
 * ds-process-protocol.c and perfmap.cpp of dotnet/runtime. Verified with 8.0.4. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "proxy/proxy.h"

/* Commands of the set "process". */
enum dotnet_command { DOTNET_ENABLE_PERF_MAP = 5, DOTNET_DISABLE_PERF_MAP = 6 };

/* Does the process have its perf map or jitdump open? It cannot be asked, and to enable it twice is no error. */
bool dotnet_writes_perf_map(uint32_t tgid);
/* Sends a command. Returns a descriptor for the answer, or as opener_connect_own (proxy/opener.h); -ENOENT: there is no such socket. */
MUST_CHECK int dotnet_socket_send(struct proxy *proxy, uint32_t tgid, enum dotnet_command command);
/* Waits for the answer, which comes when all existing code is in the map; until `until_ns` (clock_ns), or until `stop_fd` (-1: none) is
 * readable. 0: done; -EOPNOTSUPP: refused, *ret_reason is the runtime's number (HRESULT); -ETIMEDOUT; -EINTR: by stop_fd; -EPROTO: no
 * answer, but other bytes or the end. */
MUST_CHECK int dotnet_socket_wait(int fd, int stop_fd, uint64_t until_ns, uint32_t *ret_reason);
