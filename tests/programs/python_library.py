# SPDX-License-Identifier: Apache-2.0
"""python_library.py PROGRAM NTH: compiles every NTH file of this Python's standard library and compares the lines that PROGRAM (tests/programs/python_lines.c) reads in the
tables of all code objects with those of the interpreter itself. Prints totals as JSON. Runs in every Python from 3.6 on."""
import ctypes
import dis
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import types
import warnings

FORM = 2 if sys.version_info >= (3, 11) else 1 if sys.version_info >= (3, 10) else 0
code_line = ctypes.pythonapi.PyCode_Addr2Line # what tracebacks and f_lineno go by
code_line.argtypes = [ctypes.py_object, ctypes.c_int]


def files_of_library(nth):
	"""Paths of every nth file, in an order that is always the same."""
	found = []
	for folder, folders, files in os.walk(sysconfig.get_paths()["stdlib"]):
		folders[:] = sorted(name for name in folders if name not in ("site-packages", "dist-packages", "__pycache__"))
		found += [os.path.join(folder, name) for name in sorted(files) if name.endswith(".py")]
	return found[::nth]


def codes_of(code):
	"""The code object and all inside of it."""
	yield code
	for constant in code.co_consts:
		if isinstance(constant, types.CodeType):
			for inner in codes_of(constant):
				yield inner


def lines_of(code):
	"""[(offset, line or None)] where the line changes, as the interpreter has it."""
	if FORM:
		pairs = [(start, line) for start, end, line in code.co_lines() if start < end]
	else:
		pairs = [(start, line) for start, line in dis.findlinestarts(code) if start < len(code.co_code)]
	return [pair for i, pair in enumerate(pairs) if i == 0 or pairs[i - 1][1] != pair[1]]


def table_of(code):
	return code.co_linetable if FORM else code.co_lnotab


def main():
	program, nth = sys.argv[1], int(sys.argv[2])
	totals = {"files": 0, "no_python": 0, "codes": 0, "changes": 0, "wrong": []}
	wanted = []
	warnings.simplefilter("ignore")
	with tempfile.TemporaryFile("w+") as questions:
		for path in files_of_library(nth):
			try:
				with open(path, "rb") as file:
					module = compile(file.read(), path, "exec", dont_inherit=True)
			except (SyntaxError, ValueError, UnicodeError): # made so, for tests
				totals["no_python"] += 1
				continue
			totals["files"] += 1
			for code in codes_of(module):
				lines = lines_of(code)
				for offset, line in lines: # the interpreter agrees with itself
					answer = code_line(code, offset)
					if answer != (-1 if line is None else line):
						totals["wrong"].append("%s %s at %d: PyCode_Addr2Line %d, not %s" % (path, code.co_name, offset, answer, line))
				questions.write("%d %d %s %d\n" % (FORM, code.co_firstlineno, table_of(code).hex() or "-", len(code.co_code)))
				wanted.append((path, code.co_name, " ".join("%d:%s" % (offset, "-" if line is None else line) for offset, line in lines)))
				totals["changes"] += len(lines)
		totals["codes"] = len(wanted)
		questions.seek(0)
		answers = subprocess.check_output([program], stdin=questions).decode("ascii").splitlines()
	if len(answers) != len(wanted):
		totals["wrong"].append("%d answers" % len(answers))
	totals["wrong"] += ["%s %s: %s, not %s" % (path, name, answer[:300], want[:300]) for (path, name, want), answer in zip(wanted, answers) if answer != want]
	totals["nr_wrong"] = len(totals["wrong"])
	totals["wrong"] = totals["wrong"][:5]
	print(json.dumps(totals))


main()
