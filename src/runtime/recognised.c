// SPDX-License-Identifier: Apache-2.0
#include "runtime/recognised.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/dynamic_symbol.h"

/* Seen in the files of Debian 12, apart from CoreCLR, OpenJ9 and Julia: by their sources. LuaJIT exports Lua's functions too, so it comes
 * before Lua. */
static const struct recognised table[] = {
	{ "PyPy", "pypy_execute_source", { 0 }, false, "vmprof, which is installed into PyPy" },
	{ "OpenJ9", "J9_CreateJavaVM", { 0 }, false, "-Xjit:perfTool writes a perf map of compiled code, from the start on" },
	{ ".NET", "coreclr_execute_assembly", { 0 }, true, "DOTNET_PerfMapEnabled=1 writes a perf map, from the start on" },
	{ "Mono", "mono_jit_init", { 0 }, true, "MONO_ENV_OPTIONS=--jitmap writes a perf map, from the start on" },
	{ "LuaJIT", "luaJIT_setmode", { "lua_call", "lua_pcall", "lua_resume", "lua_cpcall" }, false, "LuaJIT's own profiler: -jp" },
	{ "Lua", "lua_newstate", { "lua_callk", "lua_pcallk", "lua_resume", "lua_call" }, false, "a hook: debug.sethook" },
	{ "Guile", "scm_boot_guile", { 0 }, false, "Guile's own profiler: (statprof)" },
	{ "SBCL", "create_main_lisp_thread", { 0 }, true, "SBCL's own profiler: sb-sprof" },
	{ "Tcl", "Tcl_CreateInterp", { 0 }, false, "Tcl's own: [info frame], or the profiler of tcllib" },
	{ "R", "Rf_eval", { 0 }, false, "R's own profiler: Rprof()" },
	{ "Julia", "jl_init", { 0 }, true, "ENABLE_JITPROFILING=1 in a build with perf support, or the module Profile" },
	{ "JavaScriptCore", "JSGlobalContextCreate", { 0 }, false, "the inspector's own profiler" },
	{ "SWI-Prolog", "PL_initialise", { 0 }, false, "its own profiler: profile/1" },
};

static void take_entries(const struct elf_file *elf, const struct recognised *found, struct runtime_image *image)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(found->entries) && found->entries[i]; i++) {
		struct dynamic_symbol symbol;

		if (!dynamic_symbol_find(elf, found->entries[i], &symbol))
			image->loops[image->nr_loops++] =
			    (struct sonde_code_range){ symbol.elf_vaddr, symbol.elf_vaddr + symbol.size_bytes };
	}
}

int recognised_examine(const struct elf_file *elf, struct runtime_image *ret_image)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct dynamic_symbol symbol;

		if (dynamic_symbol_find(elf, table[i].exported, &symbol))
			continue;
		*ret_image = (struct runtime_image){ .runtime = SONDE_RUNTIME_NONE };
		snprintf(ret_image->reason, sizeof(ret_image->reason), "%s", table[i].name);
		take_entries(elf, &table[i], ret_image);
		return 0;
	}
	return -ENOENT;
}

const struct recognised *recognised_find(const char *name)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (!strcmp(table[i].name, name))
			return &table[i];
	}
	return NULL;
}

uint32_t recognised_number(const struct recognised *recognised)
{
	return (uint32_t)(recognised - table);
}

const struct recognised *recognised_at(uint32_t number)
{
	return &table[number];
}
