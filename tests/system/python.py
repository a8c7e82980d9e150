#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frames of CPython among the native ones: programs of tests/programs/spin.py report their own stacks. SONDE_PYTHONS=path:path... selects the
interpreters; the default is the machine's own and, where pyenv has them, one of each kind of frames."""
import contextlib
import json
import os
import subprocess

from harness import AUDIT, SOURCES, check, check_audited, need_bpf, run_tests, sonde, test
from python_programs import LOOP, pythons, stack_of, version_of # noqa: F401 (for those who import us)

SPIN = os.path.join(SOURCES, "spin.py")
# Calls that go through C in every version: (caller, callee), by their last names. Whether others do depends on the version and on how warm they are.
THROUGH_C = {"sort": {("sort", "key_of")}, "sorts": {("sort_recursively", "<lambda>")}, "callback": {("callback", "<lambda>")}, "exec": {("evaluated", "<module>")}}
# Each with the number of threads that report their stack.
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
	"""Returns None when the Python frames are exactly those that the thread reported."""
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
	"""Returns None when native frames are where C is, and nowhere else."""
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


def counted(report, runs, version):
	"""Returns {scenario: [right, {what is wrong: samples}]} of the processes in `runs`, by scenario: (tgid, what its threads reported)."""
	found = {scenario: [0, {}] for scenario in runs}
	by_tgid = {tgid: (scenario, {one["tid"]: one for one in told}) for scenario, (tgid, told) in runs.items()}
	for sample in report["samples"]:
		scenario, told = by_tgid[sample["pid"]]
		frames = stack_of(report, sample)
		of_thread = told.get(sample["tid"])
		error = "a thread that did not tell" if not of_thread else chain_error(frames, of_thread) or order_error(frames, scenario, version)
		if error:
			found[scenario][1][error] = found[scenario][1].get(error, 0) + sample["values"][0]
		else:
			found[scenario][0] += sample["values"][0]
	return found


def check_scenarios(version, start, freq_hz=1999, args=()):
	"""Runs all scenarios at once, under one recording, or several when a loaded machine gives few samples. start(scenario) returns a context
	manager, which has .process when the scenario runs."""
	total = {scenario: [0, {}] for scenario in SCENARIOS}
	with contextlib.ExitStack() as stack:
		running = {scenario: stack.enter_context(start(scenario)) for scenario in SCENARIOS}
		told = {scenario: [json.loads(running[scenario].process.stdout.readline()) for _ in range(nr)] for scenario, nr in SCENARIOS.items()}
		runs = {scenario: (told[scenario][0]["tid"] if scenario == "fork" else running[scenario].process.pid, told[scenario]) for scenario in SCENARIOS}
		pids = [word for tgid, _ in runs.values() for word in ("-p", tgid)]
		for _ in range(5):
			report = json.loads(sonde("profile", "--format", "json", "-U", "-F", freq_hz, *pids, *args, 2, want=0).out)
			if args == AUDIT:
				check_audited(report)
			for scenario, (right, wrong) in counted(report, runs, version).items():
				total[scenario][0] += right
				for error, count in wrong.items():
					total[scenario][1][error] = total[scenario][1].get(error, 0) + count
			if min(right for right, _ in total.values()) >= 50:
				break
	for scenario, (right, wrong) in total.items():
		check(right >= 50 and sum(wrong.values()) <= 0.01 * (right + sum(wrong.values())),
			lambda: "Python %d.%d, %s: %d samples are right; wrong: %r" % (*version, scenario, right, wrong))
	return " ".join("%s:%d" % (scenario, right) for scenario, (right, _) in total.items())


def register(python):
	def check_it():
		need_bpf()
		return check_scenarios(version_of(python), lambda scenario: Spin(python, scenario))

	def check_audit(): # the audit examines stacks and leaves them unchanged
		need_bpf()
		return check_scenarios(version_of(python), lambda scenario: Spin(python, scenario), 499, AUDIT)
	check_it.__name__ = "python_%d_%d" % version_of(python)
	check_audit.__name__ = check_it.__name__ + "_audited"
	test(check_it)
	test(check_audit)


if __name__ == "__main__":
	for each in pythons():
		register(each)
	run_tests()
