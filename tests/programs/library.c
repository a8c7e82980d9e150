// SPDX-License-Identifier: Apache-2.0
/* library SECONDS PLUGIN: main > exe_outer > lib_relay (in a linked library) > exe_callback > plugin_entry (in a library opened at run
 * time) > plugin_leaf. */
#include <dlfcn.h>

#include "library.h"

static unsigned (*plugin)(const struct known_calls *calls);
static volatile unsigned sink;

KNOWN static unsigned exe_callback(void)
{
	const struct known_calls calls = {known_push, known_leaf_starts, &known_done};

	ENTER();
	return plugin(&calls) + 1;
}

KNOWN static unsigned exe_outer(void)
{
	ENTER();
	return lib_relay(exe_callback, known_push) + 2;
}

void known_push(const char *name)
{
	known_enter(name);
}

void known_leaf_starts(void)
{
	known_print();
	known_ready();
}

int main(int argc, char **argv)
{
	void *handle = argc > 2 ? dlopen(argv[2], RTLD_NOW) : NULL;

	if (!handle)
		return fprintf(stderr, "library: %s\n", argc > 2 ? dlerror() : "no plugin named"), 2;
	plugin = (unsigned (*)(const struct known_calls *))dlsym(handle, "plugin_entry");
	if (!plugin)
		return 2;
	ENTER();
	known_start(argv[1]);
	sink = exe_outer();
	return 0;
}
