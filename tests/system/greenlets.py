#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stacks of greenlets: tests/programs/greenlets.py and gevent_server.py report their stacks, and every sample is compared with them. Each greenlet's
stack begins where the greenlet was started; the memory behind it belongs to another. SONDE_GREENLET_PYTHONS=path:path... selects the interpreters;
the default is the machine's own, with the greenlet of its packages."""
import collections
import json
import os
import subprocess

from harness import SOURCES, check, need_bpf, run, run_tests, skip, sonde, test
from python_programs import LOOP, stack_of, version_of

BEGINS = ("inner_bootstrap", "g_initialstub") # greenlet's functions that begin a stack


def is_begin(name):
	return any(begin in name for begin in BEGINS)


def python_error(chain, told):
	"""Returns None when the frames are one of the reported stacks or a prefix of one: a function before or after its call of the next.
	Stacks of libraries are not reported."""
	is_told = chain[-1] in told["through_c"]
	return None if not is_told or any(stack[:len(chain)] == chain for stack in told["stacks"]) else "Python's are " + ";".join(chain)


def root_error(frames, places, is_main):
	"""Returns None when the native frames below Python's are a process's, or a greenlet's."""
	root = [frame[1] for frame in frames[:places[0]]]
	if is_main and (root[:1] != ["_start"] or any(map(is_begin, root))):
		return "the main greenlet stands on " + ";".join(root)
	if not is_main and not (root and is_begin(root[0])):
		return "a greenlet stands on " + ";".join(root[-9:])
	return None


def order_error(frames, places, told, version):
	"""Returns None when native frames are where C is, and nowhere else."""
	for before, after in zip(places, places[1:]):
		through_c = any(frame[0] == "native" for frame in frames[before + 1:after])
		if through_c != (told["through_c"].get(frames[after][1], through_c) or version < (3, 11)):
			return "native frames%s before %s" % ("" if through_c else " are missing", frames[after][1])
	if any(frame[1] == LOOP for frame in frames[:places[-1]]):
		return "the interpreter's own frames are not replaced"
	return None


def stack_error(frames, told, version):
	"""Returns None if the stack is right, else what is wrong."""
	places = [i for i, frame in enumerate(frames) if frame[0] == "python"]
	chain = [frames[i][1] for i in places]
	if not chain: # between two greenlets: one that has no Python frames yet, or none any more
		return None if is_begin(frames[0][1]) else "no Python frame above " + ";".join(frame[1] for frame in frames[:9])
	return python_error(chain, told) or root_error(frames, places, chain[0] == "<module>") or order_error(frames, places, told, version)


def is_marked(frames):
	return any(frame[0] == "mark" for frame in frames)


ENOUGH = 300 # samples that are right


def compared(python, program, env):
	"""Returns (right, marked, {what is wrong: samples}) of a recording, or of several when a loaded machine gives few samples."""
	right, marked, wrong = 0, collections.Counter(), collections.Counter()
	for _ in range(4):
		found = recorded(python, program, env)
		right += found[0]
		marked.update(found[1])
		wrong.update(found[2])
		if right >= ENOUGH:
			break
	return right, marked, wrong


def recorded(python, program, env):
	"""The same for one recording."""
	counts = collections.Counter()
	wrong = collections.Counter()
	version = version_of(python)
	with subprocess.Popen([python, os.path.join(SOURCES, program)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=env) as process:
		told = json.loads(process.stdout.readline())
		report = json.loads(sonde("profile", "--format", "json", "-U", "-F", 1999, "-p", process.pid, 4, want=0).out)
		process.kill()
	for sample in report["samples"]:
		if sample["tid"] != told["tid"]: # gevent has others
			continue
		frames = stack_of(report, sample) if sample["user_stack"] is not None else [("mark", "no stack")]
		count = sample["values"][0]
		if is_marked(frames):
			counts["marked: " + ";".join(frame[1] for frame in frames if frame[0] == "mark")] += count
			continue
		error = stack_error(frames, told, version)
		if error:
			wrong[error] += count
		else:
			counts["right"] += count
	right = counts.pop("right", 0)
	return right, counts, wrong


def check_python(python, module, program, folder=None):
	"""`folder`: where the module is, if it is not among the interpreter's packages."""
	need_bpf()
	env = dict(os.environ, PYTHONPATH=folder) if folder else None
	if run([python, "-c", "import " + module], env=env).code:
		skip("%s has no %s" % (python, module))
	right, marked, wrong = compared(python, program, env)
	text = "%d right, marked: %r, wrong: %r" % (right, dict(marked), dict(wrong.most_common(9)))
	check(right >= ENOUGH and not wrong, text)
	check(sum(marked.values()) <= 0.05 * right, text)
	return text


def register(python, module, program):
	def check_it():
		return check_python(python, module, program)
	check_it.__name__ = "%s_%d_%d" % (module, *version_of(python))
	test(check_it)


if __name__ == "__main__":
	for each in os.environ.get("SONDE_GREENLET_PYTHONS", "/usr/bin/python3").split(":"):
		register(each, "greenlet", "greenlets.py")
		register(each, "gevent", "gevent_server.py")
	run_tests()
