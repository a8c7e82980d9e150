#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde leak: what is outstanding is exactly what the program says that it did not free (tests/programs/heap.c), by the function that asked for it, however
blocks come and go."""
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Background, CFLAGS, Failure, PROGRAMS, SOURCES, build, building, check, compile_one, is_older, load_json, need_bpf, parse_json, run_tests, scratch, sonde, test # noqa: E402


class Heap:
	"""The program, to be told what to do. `live`: function -> (blocks, bytes) that it did not free, as far as it said."""

	def __init__(self, path, *args, env=None):
		self.process = subprocess.Popen([path, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env={**os.environ, **(env or {})})
		self.live = {}
		self.read_to("ready")

	def __enter__(self):
		return self

	def __exit__(self, *exc):
		self.process.kill()
		self.process.communicate()

	@property
	def pid(self):
		return self.process.pid

	def read_to(self, end):
		while True:
			words = self.process.stdout.readline().decode().split()
			check(words, "the program ended")
			if words[0] == "live":
				self.live[words[1]] = (int(words[2]), int(words[3]))
			if words[0] == end:
				return

	def play(self, *scenes):
		for scene in scenes:
			self.process.stdin.write(scene.encode() + b"\n")
			self.read_to("done")


def outstanding(report):
	"""Function of the program that asked -> (blocks, bytes), of the report's samples. The C library has blocks of its own: stacks of threads."""
	found = {}
	for sample in report["samples"]:
		stack = report["stacks"][sample["user_stack"]]
		frame = report["frames"][stack[0]]
		if frame["mapping"] is None or not os.path.basename(report["mappings"][frame["mapping"]]["path"]).startswith("heap"):
			continue
		name = report["functions"][frame["function"]]["name"]
		blocks, size = found.get(name, (0, 0))
		found[name] = (blocks + sample["values"][0], size + sample["values"][1])
	return found


def watch(heap, *scenes, options=()):
	"""Has the program play the scenes while sonde watches. Returns the report and what sonde said."""
	path = scratch("leak.json")
	with Background("leak", "--older-than", "0", "-o", path, *options, "-p", heap.pid) as tracker:
		tracker.wait_line("Attaching")
		heap.play(*scenes)
		tracker.send(signal.SIGINT)
		result = tracker.finish()
	check(result.code == 0, lambda: str(result))
	return load_json(path), result.err


def exactly(*scenes, path=None, env=None, options=()):
	need_bpf()
	with Heap(path or build("heap"), env=env) as heap:
		report, said = watch(heap, *scenes, options=options)
		found = outstanding(report)
		check(found == heap.live, lambda: "found %s, true %s\n%s" % (found, heap.live, said))
	return "%d functions, %d bytes" % (len(found), sum(size for _, size in found.values())), said


@test
def plain():
	return exactly("plain")[0]


@test
def every_function():
	return exactly("kinds")[0]


@test
def reallocs():
	"""The old block leaves when realloc begins; one that realloc could not move stays."""
	return exactly("reallocs")[0]


@test
def threads():
	"""Threads free each other's blocks, as fast as they can."""
	return exactly("stress")[0]


@test
def signals():
	return exactly("signals")[0]


@test
def processes_and_threads_end():
	return exactly("forks", "ends")[0]


@test
def replaced_program():
	return exactly("exec")[0]


@test
def unknown_blocks():
	"""Frees of blocks from before the start are counted, and are not taken for others."""
	text, said = exactly("plain", "frees_old")
	check(re.search(r"^5\d frees of blocks that are not known", said, re.MULTILINE), said)
	return text


if __name__ == "__main__":
	run_tests()
