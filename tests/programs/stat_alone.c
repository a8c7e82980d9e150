// SPDX-License-Identifier: Apache-2.0
/* sonde stat without the rest of sonde, for machines that we cross-compile little for: stat_alone [ARGUMENT...]. */
#include <sonde/sonde.h>

#include "cli/signals.h"
#include "cli/verbs.h"

const char *sonde_version(void)
{
	return "alone";
}

int main(int argc, char **argv)
{
	signals_init();
	argv[0] = "stat";
	return verb_run(&stat_verb, argc, argv);
}
