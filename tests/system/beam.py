#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frames of Erlang code among the native ones: tests/programs/beam_spin.erl keeps one stack in each of its processes, and prints what the runtime itself reports of it.
SONDE_BEAM_SCENARIOS="plain bif ..." what runs."""
import json
import os
import shutil
from itertools import groupby

from harness import SOURCES, check, fresh_folder, need_bpf, run, run_tests, skip, sonde, test
from spins import Spin, stack_of

ALL = ["plain", "closure", "comprehension", "guarded", "recursion", "bif", "nif", "server", "mapped", "applied", "binaries", "receiver", "floats", "ended", "moving"]
SCENARIOS = os.environ.get("SONDE_BEAM_SCENARIOS", " ".join(ALL)).split()
DEPTH = 501
LIMIT = {"default": 0.06, "frames": 0.12} # of marked samples, which depends on what the machine's speed makes of the scenarios; none may be wrong
# With frame pointers the runtime reports a process that is scheduled out in a receive twice in the same function.
# What a scenario's innermost function calls, or the scheduler's way to it; innermost frames of these are not part of what is compared.
BELOW = {"bif": {"erlang:md5/1"}, "receiver": {"erlang:send/2"}, "ended": {"beam_spin:thrower/1", "erlang:put/2", "erlang:throw/1"}, "floats": {"math:sin/1"},
	"nif": {"beam_spin:native/1"}, "moving": {"beam_spin:build/2", "erlang:length/1"}}
MODES = {"default": [], "frames": ["+JPperf", "true"]}


def build():
	"""The folder with the compiled program, and the native functions' library without .so."""
	folder = fresh_folder("beam")
	done = run(["erlc", "-o", folder, os.path.join(SOURCES, "beam_spin.erl")])
	check(done.code == 0, lambda: done.err + done.out)
	headers = os.environ.get("SONDE_BEAM_HEADERS", "/usr/lib/erlang/usr/include")
	if not os.path.exists(os.path.join(headers, "erl_nif.h")):
		return folder, "none"
	done = run(["cc", "-shared", "-fPIC", "-O2", "-I" + headers, "-o", os.path.join(folder, "beam_nif.so"), os.path.join(SOURCES, "beam_nif.c")])
	check(done.code == 0, lambda: done.err)
	return folder, os.path.join(folder, "beam_nif")


def told_by(process, scenarios):
	"""{outermost function: (scenario, [(name, file, line), ...] root to leaf)}."""
	told = {}
	for line in iter(lambda: process.stdout.readline().decode().split(), ["READY"]):
		check(line and line[0] == "T", lambda line=line: "not the start of a stack: %r" % line)
		frames = [(words[0], words[1], int(words[2])) for words in iter(lambda: process.stdout.readline().decode().split(), ["E"])]
		told[tuple(frame[0] for frame in frames[::-1][:4] if frame[0].startswith("beam_spin:"))[:1]] = (line[1], frames[::-1])
	check(len(told) == len(scenarios), lambda: "told: %r" % told)
	return told


def error_of(frames, scenario, want):
	"""None when the Erlang frames are what the runtime reported, from process_main on. "mark: ..." for a stack that says so itself."""
	marks = [frame[1] for frame in frames if frame[0] == "mark" or frame[1] == "[unknown]"]
	if marks:
		return "mark: %s" % marks[0]
	shown = [frame[1:] for frame in frames if frame[0] == "beam" and frame[1] not in ("process_main", "$global")]
	below = BELOW.get(scenario, set())
	shown = [frame for frame in shown if frame[0] not in below]
	want = [frame for number, frame in enumerate(want) if frame[0] not in below and (scenario != "receiver" or frame not in want[:number])]
	if scenario == "recursion": # the runtime reports the same place once
		want[1:2] = [want[1]] * (DEPTH - 1)
	if [frame[1] for frame in frames if frame[0] == "beam"][-1] == "$global" and len(shown) == len(want) - 1: # a function's first or last step may be a jump to shared code
		want = want[:-1]
	if [frame[0] for frame in shown] != [frame[0] for frame in want]:
		return "other functions: %s, not %s" % tuple(" ".join("%s*%d" % (name, len(list(same))) for name, same in groupby(frame[0] for frame in each)) for each in (shown, want))
	for number, (a, b) in enumerate(zip(shown, want)):
		if a[1] and os.path.basename(a[1]) != os.path.basename(b[1]) and b[1] != "-":
			return "another file: %r, not %r" % (a, b)
		if number < len(shown) - 1 and a[2] != b[2]:
			return "another line: %r, not %r" % (a, b)
	kinds = ["e" if frame[0] == "beam" else "n" for frame in frames]
	first = kinds.index("e")
	if frames[first][1] != "process_main" or "e" in kinds[first:][len(kinds[first:]) - kinds[first:][::-1].index("e"):]:
		return "order: %r" % [frame[1] for frame in frames]
	if any(kind == "n" for kind in kinds[first:first + len([kind for kind in kinds if kind == "e"])]):
		return "C between Erlang: %r" % [frame[1] for frame in frames]
	return None


def here(erl):
	"""How this machine's Erlang is started, and the native functions' library."""
	folder, library = build()
	return (lambda *options: [erl, "-noshell", "-noinput", "+S", "2", "-pa", folder, *options]), library


def check_beam(start, library, mode):
	need_bpf()
	scenarios = [each for each in SCENARIOS if each != "nif" or library != "none"]
	counts, wrong, natives, cuts = {}, {}, {}, {}
	with Spin(start(*MODES[mode], "-run", "beam_spin", "main", library, *scenarios)) as running:
		told = told_by(running.process, scenarios)
		for _ in range(4):
			report = json.loads(sonde("profile", "--format", "json", "-U", "-F", 499, "-p", running.process.pid, 3, want=0).out)
			for sample in report["samples"]:
				frames = stack_of(report, sample)
				names = [frame[1] for frame in frames if frame[0] == "beam" and frame[1].startswith("beam_spin:")]
				nr = sample["values"][0]
				is_cut = any(frame[0] == "mark" for frame in frames)
				scenario, want = told.get(tuple(names[:1]), ("?", []))
				if not want and (is_cut or not names): # schedulers at other work, or a stack that ends, marked, before the outermost function
					kind = "cut" if is_cut else "other"
					counts[kind] = counts.get(kind, 0) + nr
					if is_cut:
						key = " ".join(frame[1] for frame in frames[:4])
						cuts[key] = cuts.get(key, 0) + nr
					continue
				error = error_of(frames, scenario, want) if want else "not a process's outermost function: %r" % names
				kind = "right" if not error else "marked" if error.startswith("mark") else "wrong"
				counts[kind] = counts.get(kind, 0) + nr
				if kind == "right":
					counts[scenario] = counts.get(scenario, 0) + nr
					natives.setdefault(scenario, set()).add(frames[-1][1])
				if kind == "wrong":
					wrong[scenario, error] = wrong.get((scenario, error), 0) + nr
			if all(counts.get(scenario, 0) >= 20 for scenario in scenarios):
				break
	text = "%s: %r" % (mode, counts)
	check(not wrong, lambda: "%s; wrong: %r" % (text, wrong))
	check(counts.get("marked", 0) + counts.get("cut", 0) <= LIMIT[mode] * counts.get("right", 0), lambda: "too many marks: %s; %r" % (text, sorted(cuts.items(), key=lambda item: -item[1])[:8]))
	for scenario in scenarios:
		check(counts.get(scenario, 0) >= 5, lambda scenario=scenario: "%s; few samples of %s" % (text, scenario))
	if "nif" in scenarios:
		check("native_spin" in natives["nif"] or any("beam_nif" in each for each in natives["nif"]) or "__vdso_clock_gettime" in natives["nif"], lambda: "no native function: %r" % natives["nif"])
	return text


def check_reload(start, library):
	"""Modules that replace each other: run_odd calls leaf_odd, never leaf_even."""
	need_bpf()
	pairs = {}
	with Spin(start("-run", "beam_spin", "main", library, "reload")) as running:
		check(running.process.stdout.readline().split() == [b"READY"], "it has not begun")
		report = json.loads(sonde("profile", "--format", "json", "-U", "-F", 999, "-p", running.process.pid, 4, want=0).out)
	for sample in report["samples"]:
		names = tuple(frame[1] for frame in stack_of(report, sample) if frame[1].startswith("beam_version:"))
		if names:
			pairs[names] = pairs.get(names, 0) + sample["values"][0]
	right = [("beam_version:run_%s/1" % kind, "beam_version:leaf_%s/1" % kind) for kind in ("odd", "even")]
	check(all(pairs.get(pair, 0) >= 100 for pair in right), lambda: "too few: %r" % pairs)
	check(set(pairs) <= set(right) | {pair[:1] for pair in right}, lambda: "a function has the name of another one: %r" % pairs)
	return "%r" % pairs


def register(name, how, mode):
	"""`how` returns what `here` does."""
	def spins():
		start, library = how()
		print("# " + (check_reload(start, library) if mode == "reload" else check_beam(start, library, mode)))
	spins.__name__ = "%s_%s" % (name, mode)
	test(spins)


ERL = shutil.which("erl")
if ERL and __name__ == "__main__":
	for each in ("default", "frames", "reload"):
		register("erl", lambda: here(ERL), each)
elif not ERL:
	@test
	def no_erlang():
		skip("no erl")

if __name__ == "__main__":
	run_tests()
