/* SPDX-License-Identifier: Apache-2.0 */
/* trusted: which processes do not block us on purpose: those of root and our user. Looked up each time, as a process may change its user at
 * any moment. That takes 0.3 us by pidfd_open(2) and PIDFD_GET_INFO; before Linux 6.13 it takes 15 us, by /proc/TGID/status. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define TRUSTED_MAX 32 /* processes remembered */

struct trusted_process {
	uint32_t tgid;
	int fd; /* pidfd; -1: none */
};

struct trusted {
	struct trusted_process processes[TRUSTED_MAX]; /* by tgid modulo TRUSTED_MAX */
};

void trusted_init(struct trusted *trusted);
void trusted_done(struct trusted *trusted);
uint32_t trusted_uid(struct trusted *trusted, uint32_t tgid); /* as credentials_uid (proxy/credentials.h) */
bool trusted_is(struct trusted *trusted, uint32_t tgid);
