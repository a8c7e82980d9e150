/* SPDX-License-Identifier: Apache-2.0 */
/* agent_setup: one reading of the agent's settings: what was typed, with the environment, the file and the defaults. SIGHUP makes another
 * one; those before it stay until the end, as a thread that does not end may use their texts. */
#pragma once
#include "settings/agent_settings.h"
#include "settings/config.h"

struct agent_setup {
	struct agent_arguments arguments;
	struct config *config;          /* has the file's texts */
	struct agent_settings settings;
	const char *path;               /* of the file; NULL: none */
	struct agent_setup *before;     /* NULL: it is the first */
};

/* `typed` outlives it. 0 or a negative errno, with a line. */
MUST_CHECK int agent_setup_read(const struct verb *verb, const struct agent_arguments *typed, struct diag *diag,
				struct agent_setup **ret_setup);
void agent_setup_free(struct agent_setup *setup); /* and those before it; takes NULL */
static inline void agent_setup_freep(struct agent_setup **setup)
{
	agent_setup_free(*setup);
}
