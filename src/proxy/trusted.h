/* SPDX-License-Identifier: Apache-2.0 */
/* trusted: whose processes do not keep us waiting on purpose: root's, and our user's. Asked each time, as a process may give up its rights
 * at any moment; by pidfd_open(2) and PIDFD_GET_INFO that takes 0.3 us; before Linux 6.13, by /proc/TGID/status, 15. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define TRUSTED_MAX 32 /* processes that are kept in mind */

struct trusted_process {
	uint32_t tgid;
	int fd; /* of the process; -1: of none */
};

struct trusted {
	struct trusted_process processes[TRUSTED_MAX]; /* by tgid */
};

void trusted_init(struct trusted *trusted);
void trusted_done(struct trusted *trusted);
uint32_t trusted_uid(struct trusted *trusted, uint32_t tgid); /* as credentials_uid (proxy/credentials.h) */
bool trusted_is(struct trusted *trusted, uint32_t tgid);
