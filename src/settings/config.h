/* SPDX-License-Identifier: Apache-2.0 */
/* config: settings of a verb from more than its command line: each option --store-max-age is also the key store-max-age of a YAML file and
 * the environment variable SONDE_STORE_MAX_AGE. What may be repeated is a list in the file, and has one value in the environment. The
 * command line goes before the environment, that before the file, that before the defaults. Zeros are settings that were not given. One
 * thread. */
#pragma once
#include "base/cleanup.h"
#include "base/diag.h"
#include "cli/option.h"

struct config;

/* Fills what is not given in `arguments` from the environment, then from the file at `path` (NULL: none), then from `defaults`. The texts
 * live as long as *ret_config, which is set on success. 0; -ENOMEM; or an error with a line that names the setting and, where it is
 * unknown, the nearest one. */
MUST_CHECK int config_fill(const struct verb *verb, void *arguments, const void *defaults, const char *path, struct diag *diag,
			   struct config **ret_config);
void config_free(struct config *config); /* takes NULL */
static inline void config_freep(struct config **config)
{
	config_free(*config);
}
/* True: all settings are the same. */
bool config_is_same(const struct verb *verb, const void *arguments, const void *others);
/* Writes all settings as such a file. */
void config_print(const struct verb *verb, const void *arguments, struct buffer *buffer);
