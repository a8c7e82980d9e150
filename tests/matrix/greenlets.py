#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stacks of greenlets (tests/system/greenlets.py) in pyenv's Pythons, with the greenlet of the common wheels. Stacks of greenlets that are too old are
marked."""
import importlib.util
import os

from fetch import pip_folder, pyenv # sets the path to harness
from harness import ROOT, check, need_bpf, run_tests, test # noqa: E402


def system_test():
	"""tests/system/greenlets.py, which has the same name as this file."""
	spec = importlib.util.spec_from_file_location("system_greenlets", os.path.join(ROOT, "tests", "system", "greenlets.py"))
	module = importlib.util.module_from_spec(spec)
	spec.loader.exec_module(module)
	return module


system = system_test()


def wheel(minor, release):
	return pip_folder("greenlet==" + release, "--only-binary=:all:", "--python-version=3.%d" % minor)


def register(name, function):
	function.__name__ = name
	test(function)


def of_release(minor, release):
	def check():
		return system.check_python(pyenv("3.%d" % minor), "greenlet", "greenlets.py", wheel(minor, release))
	register("greenlet_%s_of_3_%d" % (release.replace(".", "_"), minor), check)


for each in ((8, "3.1.1"), (9, "3.2.5"), (10, "3.5.6"), (11, "2.0.2"), (11, "3.5.6"), (12, "3.5.6"), (13, "3.5.6")):
	of_release(*each)


@test
def old_releases_are_marked():
	need_bpf()
	env = dict(os.environ, PYTHONPATH=wheel(9, "1.1.3"))
	right, marked, wrong = system.compared(pyenv("3.9"), "greenlets.py", env)
	text = "%d right, marked: %r, wrong: %r" % (right, dict(marked), dict(wrong.most_common(9)))
	check(right >= system.ENOUGH and sum(marked.values()) >= 300 and not wrong, text)
	return text


if __name__ == "__main__":
	run_tests(seconds=600) # its requirements are fetched
