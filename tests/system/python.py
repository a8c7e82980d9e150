#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frames of CPython among the native ones: programs of tests/programs/spin.py, which tell their stack themselves. SONDE_PYTHONS=path:path... says which interpreters; else the machine's own
and, where pyenv has them, one of each kind of frames."""
import json
import os
import subprocess

from harness import SOURCES, check, need_bpf, run_tests, sonde, test
from python_programs import LOOP, pythons, stack_of, version_of # noqa: F401 (for those who import us)

SPIN = os.path.join(SOURCES, "spin.py")
# Calls that go through C whatever the version: (caller, callee), by their last names. Whether others do depends on the version and on how warm they are.
THROUGH_C = {"sort": {("sort", "key_of")}, "sorts": {("sort_recursively", "<lambda>")}, "callback": {("callback", "<lambda>")}, "exec": {("evaluated", "<module>")}}
# Each with the number of threads that tell their stack.
SCENARIOS = {"nested": 1, "generator": 1, "sort": 1, "recursion": 1, "sorts": 1, "init": 1, "coroutine": 1, "callback": 1, "fork": 1, "exec": 1, "threads": 4}
NEVER_THROUGH_C = {("spin", "tell"), ("inner", "spin"), ("<lambda>", "inner"), ("nested", "method"), ("recurse", "recurse"), ("made_up", "spin")} # 3.11 and newer


class Spin:
	"""A Python that runs a scenario: .process."""

	def __init__(self, python, scenario):
		self.process = subprocess.Popen([python, SPIN, scenario], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)

	def __enter__(self):
		return self

	def __exit__(self, *_):
		self.process.kill()
		self.process.communicate()


def last_name(name):
	return name.split(".")[-1]


def chain_error(frames, told):
	"""None when the Python frames are just those that the thread told."""
	chain = [frame for frame in frames if frame[0] == "python"]
	if len(chain) != len(told["stack"]):
		return "%d frames, not %d" % (len(chain), len(told["stack"]))
	for i, (kind, name, _, first, line) in enumerate(chain):
		want_name, want_first, want_line = told["stack"][i]
		is_leaf = i + 1 == len(chain)
		if name != want_name or first != want_first:
			return "frame %d is %s of line %d, not %s of line %d" % (i, name, first, want_name, want_first)
		if line not in (told["leaf_lines"] if is_leaf else [want_line]):
			return "%s is in line %d" % (name, line)
	return None


def order_error(frames, scenario, version):
	"""None when native frames are where C is, and nowhere else."""
	if frames[0][0] != "native" or any(frame[1] == LOOP for frame in frames):
		return "the interpreter's own frames are not replaced"
	places = [i for i, frame in enumerate(frames) if frame[0] == "python"]
	for before, after in zip(places, places[1:]):
		call = (last_name(frames[before][1]), last_name(frames[after][1]))
		through_c = any(frame[0] == "native" for frame in frames[before + 1:after])
		if not through_c and (call in THROUGH_C.get(scenario, ()) or version < (3, 11)):
			return "no native frames between %s and %s" % call
		if through_c and call in NEVER_THROUGH_C and version >= (3, 11):
			return "native frames between %s and %s" % call
	return None


def check_scenario(version, spin, scenario, nr_threads=1):
	"""`spin` is what is to be entered: it has .process when it runs. The number of samples that are right."""
	right, wrong, reports = 0, {}, []
	with spin as running:
		told = [json.loads(running.process.stdout.readline()) for _ in range(nr_threads)]
		expected = {one["tid"]: one for one in told}
		pid = told[0]["tid"] if scenario == "fork" else running.process.pid
		while len(reports) < 5 and sum(len(report["samples"]) for report in reports) < 50: # a loaded machine gives few
			reports.append(json.loads(sonde("profile", "--format", "json", "--timestamps", "-U", "-F", 499, "-p", pid, 1, want=0).out))
	for report, sample in ((report, sample) for report in reports for sample in report["samples"]):
		told = expected.get(sample["tid"])
		frames = stack_of(report, sample)
		error = "a thread that did not tell" if not told else chain_error(frames, told) or order_error(frames, scenario, version)
		count = sample["values"][0]
		right += 0 if error else count
		if error:
			wrong[error] = wrong.get(error, 0) + count
	check(right >= 50 and sum(wrong.values()) <= 0.01 * (right + sum(wrong.values())),
		lambda: "Python %d.%d, %s: %d samples are right; wrong: %r" % (*version, scenario, right, wrong))
	return right


def register(scenario, nr_threads):
	def check_all():
		need_bpf()
		versions = {python: version_of(python) for python in pythons()}
		return " ".join("%d.%d:%d" % (*versions[python], check_scenario(versions[python], Spin(python, scenario), scenario, nr_threads)) for python in versions)
	check_all.__name__ = scenario
	test(check_all)


if __name__ == "__main__":
	for each in SCENARIOS.items():
		register(*each)
	run_tests()
