#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lines of every code object of the standard library match those that the interpreter itself has. ./test checks a third of the library of
/usr/bin/python3; SONDE_TEST_PYTHONS=all checks all of it, and of each Python that pyenv has."""
import glob
import json
import os
import subprocess
import sys

from harness import check, check_equal, run_tests, test

PYTHON_LINES = os.environ["PYTHON_LINES"]
LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs", "python_library.py")
ALL = os.environ.get("SONDE_TEST_PYTHONS") == "all"


def pythons():
	others = glob.glob(os.path.join(os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv")), "versions/3*/bin/python3"))
	return ["/usr/bin/python3"] + (sorted(others) if ALL else [])


@test
def lines_are_those_of_the_interpreter():
	for path in pythons():
		ran = subprocess.run([path, LIBRARY, PYTHON_LINES, "1" if ALL else "3"], stdout=subprocess.PIPE, timeout=500, check=False)
		check_equal(ran.returncode, 0, path)
		totals = json.loads(ran.stdout.decode("ascii"))
		print("# %s: %s" % (path, totals), file=sys.stderr)
		check_equal(totals["nr_wrong"], 0, "code objects of %s with other lines: %s" % (path, totals["wrong"]))
		check(totals["codes"] > 1000 and totals["changes"] > 10 * totals["codes"] // 2, "the library of %s: %s" % (path, totals))


run_tests(seconds=1500) # the matrix requests whole libraries
