// SPDX-License-Identifier: Apache-2.0
#include "runtime/recognised.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/dynamic_symbol.h"

/* Seen in the files of Debian 12 and in .NET 3.1 and 8, apart from OpenJ9 and Julia: by their sources. Bun's file before its section had
 * that name, and Deno's without rustc's, are Node-API: what they export for addons. */
static const struct recognised table[] = {
	{ "PyPy", "pypy_execute_source", .help = "vmprof, which is installed into PyPy" },
	{ "OpenJ9", "J9_CreateJavaVM", .help = "-Xjit:perfTool writes a perf map of compiled code, from the start on" },
	{ ".NET",
	  "coreclr_execute_assembly",
	  .compiles = true,
	  .help = "sonde profile -p PID --perf-map (8 and newer), or DOTNET_PerfMapEnabled=1 from the start on, write a perf map" },
	{ "Mono", "mono_jit_init", .compiles = true, .help = "MONO_ENV_OPTIONS=--jitmap writes a perf map, from the start on" },
	{ "Lua",
	  "lua_newstate",
	  .entries = { "lua_callk", "lua_pcallk", "lua_resume", "lua_call" },
	  .help = "a hook: debug.sethook",
	  .is_alone = true },
	{ "Guile", "scm_boot_guile", .help = "Guile's own profiler: (statprof)" },
	{ "SBCL", "create_main_lisp_thread", .compiles = true, .help = "SBCL's own profiler: sb-sprof" },
	{ "Tcl", "Tcl_CreateInterp", .help = "Tcl's own: [info frame], or the profiler of tcllib" },
	{ "R", "Rf_eval", .help = "R's own profiler: Rprof()" },
	{ "Julia",
	  "jl_init",
	  .compiles = true,
	  .help = "ENABLE_JITPROFILING=1 in a build with perf support, or the module Profile" },
	{ "JavaScriptCore", "JSGlobalContextCreate", .help = "the inspector's own profiler" },
	{ "Chromium", "ChromeMain", .help = "its developer tools" },
	{ "Bun", "napi_create_function", .help = "its own profiler: --cpu-prof", .is_alone = true, .section = ".bun" },
	{ "Deno",
	  "napi_create_function",
	  .help = "its own profiler: deno --cpu-prof",
	  .is_alone = true,
	  .section = ".debug_gdb_scripts" },
	{ "Node-API", "napi_create_function", .help = "its own profiler", .is_alone = true },
	{ "SWI-Prolog", "PL_initialise", .help = "its own profiler: profile/1" },
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

static bool is_one(const struct elf_file *elf, bool has_walked, const struct recognised *one)
{
	struct dynamic_symbol symbol;

	return !(one->is_alone && has_walked) && !dynamic_symbol_find(elf, one->exported, &symbol) &&
	       (!one->section || elf_file_find_section(elf, one->section));
}

int recognised_examine(const struct elf_file *elf, bool has_walked, struct runtime_image *ret_image)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (!is_one(elf, has_walked, &table[i]))
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
