# SPDX-License-Identifier: Apache-2.0
"""Programs whose threads spin, each with one stack that it prints itself: lines `T tid scenario`, then `name file line`, leaf first, then `E`."""
import subprocess

from harness import check


class Spin:
	"""A running program of this kind: .process."""

	def __init__(self, argv):
		self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)

	def __enter__(self):
		return self

	def __exit__(self, *_):
		self.process.kill()
		self.process.communicate()


def told_by(process, nr):
	"""{tid: (scenario, [(name, file, line), ...] root to leaf)} of the threads that spin."""
	told = {}
	while len(told) < nr:
		words = process.stdout.readline().decode().split()
		check(words and words[0] == "T", lambda: "not the start of a stack: %r" % words) # pylint: disable=cell-var-from-loop
		frames = []
		for line in iter(lambda: process.stdout.readline().decode().split(), ["E"]):
			frames.append((line[0], line[1], int(line[2])))
		told[int(words[1])] = (words[2], frames[::-1])
	return told


def stack_of(report, sample):
	"""[(kind, name, file, line)], root to leaf."""
	frames = []
	for number in report["stacks"][sample["user_stack"]][::-1]:
		frame = report["frames"][number]
		function = report["functions"][frame["function"]]
		frames.append((frame["kind"], function["name"], function["file"], frame["line"]))
	return frames
