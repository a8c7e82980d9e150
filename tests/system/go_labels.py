#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The labels that Go programs give to their goroutines by runtime/pprof: read in stopped threads by the code that the kernel side runs, against what the program says
that it gave. SONDE_GO: go_build.py; 1.23 and older keep labels in a map, 1.24 and newer in a list."""
import collections
import os
import re

from go_build import go_build, go_version
from harness import Program, check, find_tool, run, run_tests, skip, test

DUMP = os.environ.get("GO_LABELS_DUMP", "")
MAX_LABELS, KEY_BYTES, TEXT_BYTES = 8, 32, 64
# Who calls main.first and main.second, which have no frame pointer of their own above main.leaf.
CALLERS = {"main.changes.func1": "main.first", "main.changes.func2": "main.second"}


class LabelledProgram(Program):
	"""Its .labels are {function: {key: value}}, as it gave them."""

	def __init__(self, path, *args, seconds=60):
		super().__init__(None, *args, seconds=seconds, path=[path])
		self.labels = {}

	def read_line(self, line):
		match = re.fullmatch(r"labels (\S+) (.*)", line)
		if match:
			self.labels[match.group(1)] = dict(label.split("=") for label in match.group(2).split(",")) if match.group(2) != "-" else {}
		return super().read_line(line)


def cut(text, size):
	return text.encode()[:size].decode(errors="ignore")


def dumped(labels):
	"""As go_labels_dump prints them."""
	kept = sorted(labels.items())[:MAX_LABELS]
	text = ",".join("%s=%s" % (cut(key, KEY_BYTES), cut(value, TEXT_BYTES)) for key, value in kept)
	return (text or "-") + ("+%d" % (len(labels) - MAX_LABELS) if len(labels) > MAX_LABELS else "")


def check_stopped(name, rounds):
	if not os.path.exists(DUMP):
		skip("no go_labels_dump")
	if os.geteuid():
		skip("needs root")
	path = go_build(name)
	with LabelledProgram(path) as program:
		found = run([DUMP, str(program.pid), str(rounds)], timeout=60)
		want = {function: dumped(labels) for function, labels in program.labels.items()}
	check(found.code == 0, lambda: str(found))
	seen = collections.Counter()
	for line in found.out.splitlines():
		function, _, labels = line.partition(" ")
		function = CALLERS.get(function, function)
		if function in want: # main.changes gives labels and takes them away
			check(labels == want[function], lambda: "%s has %s, not %s" % (function, want[function], labels))
			seen[function] += 1
	check(set(seen) == set(want) and min(seen.values()) > 3, lambda: "seen: %s" % seen)
	return "%d sets of labels, Go %d.%d" % (sum(seen.values()), *go_version())


@test
def stopped_threads():
	"""In system calls, too, and of goroutines that are given other labels all the time."""
	return check_stopped("labels", 80)


@test
def stopped_threads_in_c():
	"""And in Go that C called."""
	if not find_tool("gcc"):
		skip("no gcc")
	return check_stopped("labels_c", 50)


run_tests()
