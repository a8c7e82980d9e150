#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frames of LuaJIT among the native ones: processes of tests/programs/luajit_spin.lua report their own stacks; luajit_maze.lua calls itself at random."""
import contextlib
import json
import os
import re

from harness import SOURCES, check, find_tool, need_bpf, run_tests, skip, sonde, test
from spins import Spin, stack_of, told_by

SPIN, MAZE = os.path.join(SOURCES, "luajit_spin.lua"), os.path.join(SOURCES, "luajit_maze.lua")
SCENARIOS = ["plain", "deep", "tail", "vararg", "pcall", "xpcall", "handler", "index", "newindex", "add", "call", "concat", "equal", "less", "tostring", "gsub", "sort", "loaded", "callback",
	"gc", "iterator", "coroutine", "inner", "wrap"]
MOST_MARKED = 0.03 # of the interpreter's samples
TRACE = "[luajit: calls in trace not known]"


def lines_with(path, mark):
	with open(path, encoding="utf-8") as file:
		return {number: line for number, line in enumerate(file, 1) if mark in line}


def luajit_of():
	return find_tool("luajit") or skip("no luajit")


def name_of(first, file):
	base = os.path.basename(file) if not file.startswith("[") else file
	return "%s:%d" % (base, first) if first else "main chunk of " + base


def error_of(frames, told, steps):
	"""None: the frames are the reported ones, and behind spin() those that it calls."""
	chain = [(name.replace(" ", "_"), line) for kind, name, _, line in frames if kind == "luajit" and not name.startswith("builtin#")]
	wanted = [(name_of(int(first), file).replace(" ", "_"), line) for first, file, line in told]
	if [name for name, _ in chain[:len(wanted)]] != [name for name, _ in wanted]:
		return "names: %r" % chain
	if chain[:len(wanted) - 1] != wanted[:-1]:
		return "lines: %r" % chain
	if any(name not in steps for name, _ in chain[len(wanted):]):
		return "leaf: %r" % chain
	return None


def placed_wrong(frames):
	"""The callback stands behind C's qsort, which stands behind the function that calls it."""
	names = [name for _, name, *_ in frames]
	sorts = [i for i, (kind, name, *_) in enumerate(frames) if kind == "native" and name.startswith("qsort")]
	lua = [i for i, (kind, name, *_) in enumerate(frames) if kind == "luajit" and not name.startswith("builtin#")]
	return None if sorts and lua[2] < sorts[0] < lua[3] else "qsort: %r" % names


def marks_of(frames):
	return tuple(name for kind, name, *_ in frames if kind in ("mark", "missed"))


def spinning(option):
	need_bpf()
	luajit, steps = luajit_of(), {"luajit_spin.lua:%d" % number for number in lines_with(SPIN, "-- STEP")}
	with contextlib.ExitStack() as stack:
		told = {}
		for scenario in SCENARIOS:
			told.update(told_by(stack.enter_context(Spin([luajit, option, SPIN, scenario])).process, 1))
		report = json.loads(sonde("profile", "--format", "json", "--threads", "-U", "-F", 997, "-L", ",".join(map(str, told)), 8, want=0).out)
	right, marked, traces, wrong, seen = 0, {}, 0, {}, set()
	for sample in report["samples"]:
		if sample["tid"] not in told or sample["user_stack"] is None:
			continue
		scenario, expected = told[sample["tid"]]
		frames, nr = stack_of(report, sample), int(sample["values"][0])
		marks = marks_of(frames)
		error = error_of(frames, expected, steps) or (placed_wrong(frames) if scenario == "callback" and not marks else None) if marks in ((), (TRACE,)) else None
		traces += nr if marks == (TRACE,) else 0
		if marks and not error:
			marked[marks] = marked.get(marks, 0) + nr
			continue
		if error:
			wrong[(scenario, error)] = wrong.get((scenario, error), 0) + nr
		else:
			right += nr
			seen.add(scenario)
	nr_marked = sum(marked.values())
	check(not wrong, lambda: "%d wrong of %d, %d marked:\n" % (sum(wrong.values()), right, nr_marked) + "\n".join("%s, %d: %s" % (scenario, nr, error) for (scenario, error), nr in list(wrong.items())[:8]))
	return right, nr_marked, traces, seen, marked


@test
def interpreted():
	right, nr_marked, traces, seen, marked = spinning("-joff")
	check(len(seen) == len(SCENARIOS) and right >= 1000, lambda: "%d right; only %r" % (right, seen))
	check(not traces and nr_marked <= MOST_MARKED * right, lambda: "%d right, marked: %r" % (right, marked))
	return "%d right, %d marked, of %d scenarios" % (right, nr_marked, len(seen))


@test
def compiled():
	"""Samples in a trace have its mark, and the right callers of the function that it began in."""
	right, nr_marked, traces, _, marked = spinning("-jon")
	check(traces >= 100 and nr_marked - traces <= MOST_MARKED * (right + traces), lambda: "%d right, %d in traces, marked: %r" % (right, traces, marked))
	return "%d right, %d in traces, %d marked otherwise" % (right, traces, nr_marked - traces)


def maze_error(names, layers, ways, others):
	"""root to leaf: main, run, go, then a layer, ways of calling, go, the next layer, ..."""
	if names[:2] != ["main", others["RUN"]]:
		return "root"
	state, layer = "run", None
	for name in names[2:]:
		if name == others["GO"] and state in ("run", "way"):
			state = "go"
		elif name in layers and state == "go" and (layer is None and layers[name] == 1 or layer is not None and layers[name] == layer % 3 + 1):
			state, layer = "layer", layers[name]
		elif (name in ways or name == "text") and state in ("layer", "way"):
			state = "way"
		else:
			return "%s behind %s" % (name, state)
	return None


def maze(option):
	"""A chunk that load() has made, for one call, may be gone before it gets its name."""
	need_bpf()
	of = "luajit_maze.lua:%d".__mod__
	layers = {of(number): int(re.search(r"LAYER (\d)", line)[1]) for number, line in lines_with(MAZE, "-- LAYER").items()}
	ways, others = {of(number) for number in lines_with(MAZE, "-- WAY")}, {mark: of(next(iter(lines_with(MAZE, "-- " + mark)))) for mark in ("GO", "RUN")}
	report = json.loads(sonde("profile", "--format", "json", "-U", "-F", 1997, 8, "--", luajit_of(), option, MAZE, want=0, timeout=100).out)
	right, marked, wrong = 0, {}, {}
	for sample in report["samples"]:
		frames, nr = stack_of(report, sample), int(sample["values"][0])
		names = ["main" if name.startswith("main chunk of luajit_maze") else "text" if "[string" in name or name == "[unknown]" else name for kind, name, *_ in frames if kind == "luajit" and not name.startswith("builtin#")]
		marks = marks_of(frames)
		error = maze_error(names, layers, ways, others) if len(names) > 2 and marks in ((), (TRACE,)) else None
		if error:
			wrong[(error, tuple(names))] = wrong.get((error, tuple(names)), 0) + nr
		elif marks:
			marked[marks] = marked.get(marks, 0) + nr
		elif len(names) > 2:
			right += nr
	check(not wrong, lambda: "%d wrong of %d:\n" % (sum(wrong.values()), right) + "\n".join("%d: %r" % (nr, key) for key, nr in list(wrong.items())[:8]))
	return right, marked


@test
def maze_interpreted():
	right, marked = maze("-joff")
	check(right >= 1000 and sum(marked.values()) <= MOST_MARKED * right, lambda: "%d right, marked: %r" % (right, marked))
	return "%d right, %d marked" % (right, sum(marked.values()))


@test
def maze_compiled():
	right, marked = maze("-jon")
	others = sum(nr for key, nr in marked.items() if key != (TRACE,))
	check(right >= 200 and others <= MOST_MARKED * (right + sum(marked.values())), lambda: "%d right, marked: %r" % (right, marked))
	return "%d right, %d marked" % (right, sum(marked.values()))


if __name__ == "__main__":
	run_tests(seconds=60)
