/* SPDX-License-Identifier: Apache-2.0 */
/* sky_processes: the processes of this machine that SkyWalking is told of. One thread. */
#pragma once
#include <stdint.h>

#include "proxy/proxy.h"
#include "skywalking/sky_names.h"
#include "skywalking/sky_program.h"

#define SKY_MAX_PROCESSES 1024

struct sky_known {
	struct sky_process process;
	struct sky_program program;
	bool is_reported; /* the server has answered a report with it, whether it gave an id or not */
	bool is_there;    /* met by the last look */
};

struct sky_processes {
	struct proxy *proxy;   /* a process may not answer */
	struct sky_known *all;
	uint32_t nr, max;
	uint32_t nr_left_out; /* of the last look: beyond SKY_MAX_PROCESSES */
};

MUST_CHECK int sky_processes_init(struct sky_processes *processes, struct diag *diag); /* as proxy_new */
void sky_processes_done(struct sky_processes *processes);
/* Looks at /proc: adds processes that are `min_age_ns` old, removes those that have ended. After an exec it is another one for the server.
 * Kernel threads and this process are none, nor is one whose memory did not answer (proxy.h), until sky_processes_ask_again. */
void sky_processes_look(struct sky_processes *processes, const struct sky_names *names, uint64_t min_age_ns);
/* Those that did not answer are asked again. 0, or as proxy_new: all stays. */
MUST_CHECK int sky_processes_ask_again(struct sky_processes *processes, struct diag *diag);
/* NULL: none has this id. Borrowed until the next look. */
const struct sky_known *sky_processes_find(const struct sky_processes *processes, const char *id);
