/* SPDX-License-Identifier: Apache-2.0 */
/* sky_names: who a process is for SkyWalking, by templates: "{service}", "{executable}-{pid}". */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "identity/process_identity.h"
#include "skywalking/sky_wire.h"

struct sky_names { /* borrowed */
	const char *layer;
	/* Templates of {service}, {executable}, {container} and {pod} (their names in Kubernetes, or ids), {namespace}, {unit}, {host} and
	 * {pid}. */
	const char *service, *instance, *process;
	const char *host;
};

/* 0, or -EINVAL with a line: a template has another field. */
MUST_CHECK int sky_names_check(const struct sky_names *names, struct diag *diag);
/* Names that are too long are cut, and end with a hash of all. A name that would be empty is "unknown": the server drops a process without
 * one. */
void sky_names_fill(const struct sky_names *names, uint32_t pid, const struct process_identity *identity, struct sky_entity *ret_entity);
