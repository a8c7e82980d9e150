/* SPDX-License-Identifier: Apache-2.0 */
/* audit_serve: the worker's side of the audit (audit_message.h). Keeps the files of earlier requests, and libdw's data of them and of the
 * processes audited last, within the bounds of audit_file.h and audit_process.h. One thread. */
#pragma once
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "codec/wire.h"

#define AUDIT_SERVE_MAX_FILES 256u /* the owner starts a new worker before there are more */

struct audit_server;
void audit_server_free(struct audit_server *server); /* takes NULL */
static inline void audit_server_freep(struct audit_server **server)
{
	audit_server_free(*server);
}
/* *server: NULL before the first request. Descriptors that are kept are removed from `fds`. 0; -EBADMSG: malformed request; -ENOMEM; as
 * audit_new. */
MUST_CHECK int audit_serve(struct audit_server **server, struct wire_fds *fds, const void *body, size_t size, struct diag *diag,
			   struct buffer *to);
