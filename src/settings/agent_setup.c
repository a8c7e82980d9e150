// SPDX-License-Identifier: Apache-2.0
#include "settings/agent_setup.h"

#include <errno.h>
#include <stdlib.h>

#define CONFIG_VARIABLE "SONDE_CONFIG"

void agent_setup_free(struct agent_setup *setup)
{
	while (setup) {
		struct agent_setup *before = setup->before;

		agent_settings_done(&setup->settings);
		config_free(setup->config);
		free(setup);
		setup = before;
	}
}

static const char *path_of(const struct agent_arguments *typed)
{
	const char *variable = getenv(CONFIG_VARIABLE);

	return typed->config ?: variable && *variable ? variable : NULL;
}

int agent_setup_read(const struct verb *verb, const struct agent_arguments *typed, struct diag *diag, struct agent_setup **ret_setup)
{
	CLEANUP(agent_setup_freep) struct agent_setup *setup = calloc(1, sizeof(*setup));
	int err;

	if (!setup)
		return -ENOMEM;
	setup->arguments = *typed;
	setup->path = path_of(typed);
	err = config_fill(verb, &setup->arguments, &agent_defaults, setup->path, diag, &setup->config);
	if (err)
		return err;
	agent_options_finish(&setup->arguments);
	err = agent_settings_parse(&setup->arguments, &setup->settings, diag);
	if (!err)
		*ret_setup = MOVE(setup);
	return err;
}
