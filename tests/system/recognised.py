#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runtimes that are known by name alone (src/runtime/recognised.c): where their frames are missing, the stack says whose. Programs with a runtime's export stand in for those that are not
installed."""
import contextlib
import json
import os
import subprocess

from harness import check, compile_one, find_tool, fresh_folder, need_bpf, run_tests, skip, sonde, test
from spins import stack_of

ATTEMPTS, AT_LEAST = 10, 50 # seconds, samples
LIBRARY = "void EXPORT(void) { for (volatile int i = 0;; i++) ; }"
CALLS = "void EXPORT(void); int main(void) { EXPORT(); }"
# It exports the symbol, and spins in code in memory without a file, which a perf map may name.
MADE = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
void EXPORT(void) { }
int main(int argc, char **argv)
{
	static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0xeb, 0xfe }; /* push %rbp; mov %rsp,%rbp; jmp . */
#ifdef IN_FILE
	int file = memfd_create("doublemapper", 0);
	int flags = MAP_SHARED | 0 * ftruncate(file, 4096);
#else
	int file = -1, flags = MAP_PRIVATE | MAP_ANONYMOUS;
#endif
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, flags, file, 0);
	memcpy(at, code, sizeof(code));
	if (argc > 1) {
		char path[64];
		snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
		FILE *map = fopen(path, "w");
		fprintf(map, "%lx %zx named_by_the_map\n", (unsigned long)at, sizeof(code));
		fclose(map);
	}
	((void (*)(void))at)();
}
"""
LUA = """local function leaf(n) local x = 0 for i = 1, n do x = (x + i) % 7 end return x end
while true do leaf(1000) end
"""


def write(folder, name, text):
	path = os.path.join(folder, name)
	with open(path, "w", encoding="ascii") as file:
		file.write(text)
	return path


def stacks(command, where):
	"""The stacks of the command, each a tuple of (kind, name) from the root on, with their samples; and those of them with the frame `where`, as often as it takes on a busy machine."""
	found, inside = {}, {}
	for _ in range(ATTEMPTS):
		with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
			try:
				report = json.loads(sonde("profile", "--format", "json", "-U", "-F", 499, "-p", process.pid, 1, want=0).out)
			finally:
				process.kill()
				with contextlib.suppress(FileNotFoundError):
					os.unlink("/tmp/perf-%d.map" % process.pid)
		for sample in report["samples"]:
			stack = tuple(frame[:2] for frame in stack_of(report, sample))
			found[stack] = found.get(stack, 0) + int(sample["values"][0])
		inside = {stack: nr for stack, nr in found.items() if where in stack}
		if sum(inside.values()) >= AT_LEAST:
			break
	check(sum(inside.values()) >= AT_LEAST, lambda: "too few: %r" % found)
	return found, inside


def library(export):
	folder = fresh_folder("recognised")
	compile_one(["cc", "-shared", "-fPIC", "-o", os.path.join(folder, "librecognised.so"), "-DEXPORT=" + export, write(folder, "library.c", LIBRARY)])
	compile_one(["cc", "-o", os.path.join(folder, "main"), "-DEXPORT=" + export, write(folder, "main.c", CALLS), "-L" + folder, "-lrecognised", "-Wl,-rpath," + folder])
	return os.path.join(folder, "main")


def check_library(export, name):
	need_bpf()
	_, inside = stacks([library(export)], ("native", export))
	wrong = [stack for stack in inside if stack[-1] != ("mark", "[unsupported %s]" % name) or len([kind for kind, _ in stack if kind == "mark"]) != 1]
	check(not wrong, lambda: "%r" % wrong)


@test
def in_a_library():
	for export, name in (("J9_CreateJavaVM", "OpenJ9"), ("pypy_execute_source", "PyPy"), ("Rf_eval", "R"), ("ChromeMain", "Chromium"), ("napi_create_function", "Node-API")):
		check_library(export, name)


@test
def only_where_it_runs():
	"""A program may contain an interpreter and do other things: Lua's entries alone are marked."""
	need_bpf()
	found, _ = stacks([library("lua_newstate")], ("native", "lua_newstate"))
	check(not any(kind == "mark" for stack in found for kind, _ in stack), lambda: "%r" % found)


def made(*options):
	if os.uname().machine != "x86_64":
		skip("it writes code for x86-64")
	folder = fresh_folder("recognised")
	compile_one(["cc", "-rdynamic", "-o", os.path.join(folder, "made"), "-DEXPORT=mono_jit_init", *options, write(folder, "made.c", MADE)])
	return os.path.join(folder, "made")


@test
def in_compiled_code():
	need_bpf()
	_, inside = stacks([made()], ("native", "[unknown]"))
	check(all(("mark", "[unsupported Mono]") in stack for stack in inside), lambda: "%r" % inside)


@test
def in_compiled_code_in_a_file_in_memory():
	"""As .NET 7 and newer have it."""
	need_bpf()
	found, _ = stacks([made("-DIN_FILE")], ("mark", "[unsupported Mono]"))
	inside = {stack: nr for stack, nr in found.items() if any("doublemapper" in name for kind, name in stack if kind == "native")}
	check(sum(inside.values()) >= 50 and all(("mark", "[unsupported Mono]") in stack for stack in inside), lambda: "%r" % found)


@test
def not_in_code_with_a_name():
	need_bpf()
	_, named = stacks([made(), "map"], ("native", "named_by_the_map"))
	check(not any("unsupported" in name for stack in named for _, name in stack), lambda: "%r" % named)


@test
def a_real_one():
	need_bpf()
	lua = find_tool("lua5.4")
	if not lua:
		skip("no lua5.4")
	found, runs = stacks([lua, write(fresh_folder("recognised"), "spin.lua", LUA)], ("native", "lua_pcallk"))
	check(sum(runs.values()) >= 0.9 * sum(found.values()), lambda: "%r" % found)
	check(all(("mark", "[unsupported Lua]") in stack for stack in runs), lambda: "%r" % runs)


if __name__ == "__main__":
	run_tests()
