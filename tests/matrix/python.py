#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPython's frames in samples (tests/system/python.py), in all versions of pyenv here and of Debian."""
import glob
import importlib.util
import os

from roots import Inside, root # sets the path to harness
from harness import ROOT, need_bpf, run_tests, skip, test # noqa: E402

ROOTS = [("bullseye", "python3", "python3.9"), ("trixie", "python3", "python3.13"), ("sid", "python3.14", "python3.14"), ("sid", "python3.15", "python3.15")]


def system_test():
	"""tests/system/python.py, which has the same name as this file."""
	spec = importlib.util.spec_from_file_location("system_python", os.path.join(ROOT, "tests", "system", "python.py"))
	module = importlib.util.module_from_spec(spec)
	spec.loader.exec_module(module)
	return module


system = system_test()


def register(name, function):
	function.__name__ = name
	test(function)


def of_pyenv(minor):
	def check():
		found = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.%d.*/bin/python3.%d" % (minor, minor))))
		if not found:
			skip("pyenv has no Python 3.%d here" % minor)
		need_bpf()
		return system.check_scenarios((3, minor), lambda scenario: system.Spin(found[0], scenario))
	register("pyenv_3_%d" % minor, check)


def of_debian(suite, package, program):
	def check():
		folder = root(suite, [package])
		version = tuple(map(int, program[len("python"):].split(".")))
		need_bpf()
		return system.check_scenarios(version, lambda scenario: Inside(folder, [program, "/mnt/spin.py", scenario], share=system.SOURCES))
	register("debian_%s_%s" % (suite, program.replace(".", "_")), check)


for each in range(6, 15):
	of_pyenv(each)
for each in ROOTS:
	of_debian(*each)

if __name__ == "__main__":
	run_tests(seconds=1500) # its requirements are fetched
