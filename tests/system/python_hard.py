#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frames of CPython where it is hard: in the middle of calls, in threads without the GIL, in programs that end soon, pretend, or are gone from memory. Interpreters: as python.py has them."""
import json
import os
import subprocess
import sys

from harness import SOURCES, Background, Failure, build, check, need_bpf, run, run_tests, scratch, skip, sonde, test
from python_programs import LOOP, pythons, stack_of, version_of


def profile(pid, seconds=1, hz=499, *options):
	return json.loads(sonde("profile", "--format", "json", "-U", "-F", hz, *options, "-p", pid, seconds, want=0).out)


class Script:
	"""A Python program that runs; .told: the lines of JSON that it printed."""

	def __init__(self, argv, nr_lines=1, **options):
		self.process = subprocess.Popen([str(arg) for arg in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **options)
		self.pid = self.process.pid
		self.told = [json.loads(self.process.stdout.readline()) for _ in range(nr_lines)]

	def __enter__(self):
		return self

	def __exit__(self, *_):
		self.process.kill()
		self.process.communicate()


class Tally:
	"""Samples that are right, marked, and wrong with the reason."""

	def __init__(self, what):
		self.what, self.right, self.marked, self.wrong = what, 0, 0, {}

	def add(self, error, count, frames):
		if not error:
			self.right += count
		elif any(frame[1].startswith("[python: ") for frame in frames):
			self.marked += count
		else:
			self.wrong.setdefault(error, []).append((count, [frame[:2] for frame in frames]))

	def __str__(self):
		lines = ["%s: %d right, %d marked" % (self.what, self.right, self.marked)]
		for error, samples in sorted(self.wrong.items(), key=lambda item: -len(item[1])):
			lines.append("  %d x %s: %s" % (sum(count for count, _ in samples), error, " ".join("%s:%s" % (kind[0], name) for kind, name in samples[0][1])))
		return "\n".join(lines[:8])

	def check(self, least, share=0.99):
		wrong = sum(count for samples in self.wrong.values() for count, _ in samples)
		check(self.right >= least and self.right >= share * (self.right + self.marked + wrong), lambda: str(self))
		return self


# --- in the middle of calls ------------------------------------------------------------------------------------------------------------

def maze_error(frames, edges, version):
	places = [i for i, frame in enumerate(frames) if frame[0] == "python"]
	names = [frames[i][1] for i in places]
	if names[:1] != ["<module>"]:
		return "does not begin with <module>"
	if any(frame[1] == LOOP for frame in frames[:places[-1]]):
		return "a run is missing"
	for i, (caller, callee) in enumerate(zip(names, names[1:])):
		if callee not in edges[caller]:
			return "%s does not call %s" % (caller, callee)
		between = [frame[0] for frame in frames[places[i] + 1:places[i + 1]]]
		through_c = callee[0] in "kc" and callee != "choice"
		if not between and (through_c or version < (3, 11)):
			return "no native frames between %s and %s" % (caller, callee) if through_c else "no native frames"
		if between and version >= (3, 11) and not (through_c or callee[0] == "g"):
			return "native frames between two of Python"
	return None


@test
def random_calls():
	need_bpf()
	said = []
	for python in pythons():
		version = version_of(python)
		tally = Tally(python)
		with Script([python, os.path.join(SOURCES, "maze.py")]) as maze:
			for _ in range(4):
				report = profile(maze.pid, 1, 4999)
				for sample in report["samples"]:
					frames = stack_of(report, sample)
					tally.add(maze_error(frames, maze.told[0], version), sample["values"][0], frames)
				if tally.right >= 2000:
					break
		tally.check(2000, 0.995)
		said.append("%d.%d:%d+%d" % (*version, tally.right, tally.marked) + "".join(" %d wrong" % sum(c for s in tally.wrong.values() for c, _ in s) if tally.wrong else ""))
	return " ".join(said)


if __name__ == "__main__":
	run_tests()
