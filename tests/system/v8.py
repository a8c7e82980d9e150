#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frames of V8's JavaScript among the native ones: tests/programs/node_spin.js reports its threads' stacks. SONDE_NODES=path:path... selects the programs, SONDE_NODE_MODES="interpreted ..."
how they run, SONDE_NODE_SCENARIOS=all; the default is the machine's own, three ways and some scenarios."""
import json
import os
import shutil
import subprocess

from harness import SOURCES, check, fresh_folder, need_bpf, run, run_tests, skip, sonde, test
from spins import Spin, stack_of, told_by

FEW = ["plain", "map", "sort", "recursion", "construct", "proxy", "addon", "addonSort"]
ALL = ["plain", "map", "forEach", "sort", "reduce", "reviver", "replace", "recursion", "construct", "getter", "proxy", "generator", "apply", "bound", "evaluated", "method", "addon", "addonSort"]
SCENARIOS = ALL if os.environ.get("SONDE_NODE_SCENARIOS") == "all" else FEW
LIMIT = 0.03 # of marked samples; none may be wrong
MAZE_LIMIT = 0.02 # the same where all time is in calls
MODES = {
	"default": lambda major: [],
	"interpreted": lambda major: ["--no-opt", "--no-sparkplug"] + (["--no-maglev"] if major >= 20 else []),
	"baseline": lambda major: ["--no-opt", "--always-sparkplug"] + (["--no-maglev"] if major >= 20 else []),
	"jitless": lambda major: ["--jitless", "--no-expose-wasm"],
	"maglev": lambda major: ["--no-opt", "--maglev"] if major >= 22 else None,
}


def build():
	"""The addon's path."""
	addon = os.path.join(fresh_folder("node"), "addon.node")
	done = run(["cc", "-shared", "-fPIC", "-O2", "-o", addon, os.path.join(SOURCES, "node_addon.c")])
	check(done.code == 0, lambda: done.err)
	return addon


def is_name(shown, own):
	"""Is it the function's name? V8 itself shows a method with its class, and sonde what the source calls a function without a name."""
	return own == "-" or shown.replace(" ", "_").rpartition(".")[2] == own.rpartition(".")[2]


def stack_error(frames, want):
	"""None when the frames of JavaScript are what the thread reported, and spin. "mark: ..." for a stack that says so itself."""
	marks = [frame[1] for frame in frames if frame[0] == "mark"]
	if marks or any(frame[1] == "[unknown]" for frame in frames):
		return "mark: %s" % (marks + ["[unknown]"])[0]
	shown = [frame[1:] for frame in frames if frame[0] == "v8" and not frame[1].startswith("Builtin:") and frame[2]] # code of eval has no file
	want = [frame for frame in want if frame[1] != "-"] # V8's own, and eval's
	for number, (a, b) in enumerate(zip(shown, want)):
		if a[1] != b[1] or not (a[1].startswith("node:") or is_name(a[0], b[0])): # Node gives some functions a name of their own
			return "another function: %r, not %r" % (a, b)
		if number < len(shown) - 1 and a[2] and a[2] != b[2]:
			return "another line: %r, not %r" % (a, b)
	if len(shown) > len(want) + 1 or (len(shown) == len(want) + 1 and shown[-1][0] != "spin"):
		return "too many functions: %r" % (shown[len(want):],)
	return "inlined" if len(shown) <= len(want) else None


def order_error(scenario, frames):
	"""None when builtins and the addon are where they called."""
	names = [frame[1] for frame in frames]
	wanted = {"map": ["map", "Builtin:ArrayMap", "inMap"], "sort": ["Builtin:ArrayPrototypeSort", "inSort"], "addon": ["addon_call_back", "addon_call", "inAddon"],
		"addonSort": ["addon_sort", "addon_compare", "addon_call", "inAddonSort"]}.get(scenario, [])
	if scenario in ("map", "sort") and wanted[-1] in names and not any(name.startswith("Builtin:Array") for name in names):
		return None # the builtin is inlined, too
	at = iter(names)
	return None if all(name in at for name in wanted) else "order: %r" % names[names.index("loop") if "loop" in names else 0:]


def check_node(node, mode):
	need_bpf()
	major = int(run([node, "--version"]).out.strip().lstrip("v").split(".")[0])
	options = MODES[mode](major)
	if options is None:
		skip("no such mode in Node %d" % major)
	right, inlined, marked, wrong, early = {}, {}, {}, {}, 0
	with Spin([node, *options, os.path.join(SOURCES, "node_spin.js"), build(), *SCENARIOS]) as running:
		told = told_by(running.process, len(SCENARIOS))
		for _ in range(4):
			report = json.loads(sonde("profile", "--format", "json", "-U", "-F", 299, "-p", running.process.pid, 2, want=0).out)
			for sample in report["samples"]:
				if sample["tid"] not in told:
					continue # compilers, collectors
				scenario, want = told[sample["tid"]]
				frames = stack_of(report, sample)
				if not any(frame[0] == "v8" for frame in frames):
					early += sample["values"][0] # the program for V8 is just loaded
					continue
				error = stack_error(frames, want)
				error = order_error(scenario, frames) if not error else error
				kind = right if not error else inlined if error == "inlined" else marked if error.startswith("mark") else wrong
				counts = kind.setdefault(scenario, {})
				counts[error] = counts.get(error, 0) + sample["values"][0]
			if all(sum((right.get(scenario, {}) | inlined.get(scenario, {})).values()) >= 20 for scenario in SCENARIOS):
				break
	total = {name: sum(sum(each.values()) for each in kind.values()) for name, kind in (("right", right), ("inlined", inlined), ("marked", marked), ("wrong", wrong))}
	total["early"] = early
	text = "%s: %r" % (mode, total)
	check(not wrong, lambda: "%s; wrong: %r" % (text, wrong))
	check(total["marked"] <= LIMIT * total["right"], lambda: "%s; marked: %r" % (text, marked))
	for scenario in SCENARIOS:
		check(scenario in right or scenario in inlined, lambda scenario=scenario: "%s; no sample of %s" % (text, scenario))
	check(mode not in ("interpreted", "baseline", "jitless") or not total["inlined"], lambda: "%s; functions are missing: %r" % (text, inlined))
	return text


def check_reload(node):
	"""Functions that are made anew where others were, while the collector moves what it finds: each has its own caller, never another's name."""
	need_bpf()
	counts, strange = {}, {}
	with subprocess.Popen([node, "--expose-gc", "--max-semi-space-size=1", os.path.join(SOURCES, "node_reload.js")], stdin=subprocess.DEVNULL) as process:
		try:
			for _ in range(5):
				report = json.loads(sonde("profile", "--format", "json", "-U", "-F", 999, "-p", process.pid, 3, want=0).out)
				for sample in report["samples"]:
					frames = [(name, file) for _, name, file, _ in stack_of(report, sample) if name in ("runOdd", "runEven", "leafOdd", "leafEven")]
					pair = tuple(name for name, _ in frames)
					counts[pair] = counts.get(pair, 0) + sample["values"][0]
					for name, file in frames:
						if not file.startswith("/reload_" + name.replace("run", "").replace("leaf", "")):
							strange[name, file] = strange.get((name, file), 0) + sample["values"][0]
				if min(counts.get(("runOdd", "leafOdd"), 0), counts.get(("runEven", "leafEven"), 0)) >= 100:
					break
		finally:
			process.kill()
	check(min(counts.get(("runOdd", "leafOdd"), 0), counts.get(("runEven", "leafEven"), 0)) >= 50, lambda: "too few: %r" % counts)
	check(not {("runOdd", "leafEven"), ("runEven", "leafOdd")} & set(counts), lambda: "a function has the name of another one: %r" % counts)
	check(not strange, lambda: "files: %r" % strange)
	return "%r" % counts


def maze_error(names, edges):
	"""None when each function of the maze may call the next one."""
	if "run" not in names:
		return "no root"
	names = [name.rpartition(" ")[2] for name in names[names.index("run"):]] # "get p1"
	return next(("%s does not call %s" % (a, b) for a, b in zip(names, names[1:]) if b not in edges[a]), None)


def check_maze(node):
	"""Random calls of all kinds, which say which ones are possible: no stack has a frame too few or too many."""
	need_bpf()
	right, marked, wrong = 0, {}, {}
	with Spin([node, os.path.join(SOURCES, "node_maze.js"), build()]) as running:
		edges = json.loads(running.process.stdout.readline())
		sonde("profile", "-f", "-U", "-p", running.process.pid, 1, want=0) # code is compiled, the program for V8 loaded
		for _ in range(8):
			report = json.loads(sonde("profile", "--format", "json", "-U", "-F", 2999, "-p", running.process.pid, 2, want=0).out)
			for sample in report["samples"]:
				frames = stack_of(report, sample)
				if sample["tid"] != running.process.pid or not any(frame[0] == "v8" for frame in frames):
					continue
				marks = [frame[1] for frame in frames if frame[0] == "mark" or frame[1] == "[unknown]"]
				error = None if marks else maze_error([frame[1] for frame in frames if frame[0] == "v8" and (frame[2].startswith("/maze_") or frame[2].endswith("node_maze.js")) and frame[1] != "(anonymous)"], edges)
				if marks:
					marked[marks[-1]] = marked.get(marks[-1], 0) + sample["values"][0]
				elif error:
					wrong[error] = wrong.get(error, 0) + sample["values"][0]
				else:
					right += sample["values"][0]
			if right >= 2000:
				break
	text = "maze: %d right, marked: %r" % (right, marked)
	check(not wrong, lambda: "%s; wrong: %r" % (text, wrong))
	check(right >= 500 and sum(marked.values()) <= MAZE_LIMIT * right, lambda: text)
	return text


def wasm_error(frames):
	"""None when a function of WebAssembly is one mark, in its place: its caller below it and, where it has called back, that function above."""
	names = [frame[1] for frame in frames]
	below = next((name for name in ("spins", "calls") if name in names), None)
	marks = [frame[1] for frame in frames if frame[0] == "mark" or frame[1] == "[unknown]"]
	if "back" in names and marks[-1:] == ["[unknown]"]: # V8's code between the two, up to Node 20
		marks.pop()
	if not below or marks != ["[WebAssembly]"]:
		return "mark: %r" % marks
	above = names[names.index("[WebAssembly]") + 1:]
	if names.index(below) > names.index("[WebAssembly]") or ("back" in above and below != "calls"):
		return "order: %r" % names
	return None


def check_wasm(node):
	need_bpf()
	right, marked, wrong = {}, {}, {}
	with Spin([node, os.path.join(SOURCES, "node_wasm.js")]) as running:
		check(running.process.stdout.readline() == b"ready\n", "it does not start")
		for _ in range(8):
			report = json.loads(sonde("profile", "--format", "json", "-U", "-F", 499, "-p", running.process.pid, 2, want=0).out)
			for sample in report["samples"]:
				frames = stack_of(report, sample)
				names = [frame[1] for frame in frames]
				if sample["tid"] != running.process.pid or not {"spins", "calls"} & set(names):
					continue
				error = wasm_error(frames)
				counts = right if not error else marked if error.startswith("mark") else wrong
				counts[error or ("back" in names)] = counts.get(error or ("back" in names), 0) + sample["values"][0]
			if len(right) == 2 and min(right.values()) >= 100:
				break
	text = "WebAssembly: %r right, marked: %r" % (right, marked)
	check(not wrong, lambda: "%s; wrong: %r" % (text, wrong))
	check(len(right) == 2 and min(right.values()) >= 100 and sum(marked.values()) <= LIMIT * sum(right.values()), lambda: text)
	return text


CHECKS = {"reload": check_reload, "maze": check_maze, "wasm": check_wasm}


def register(node, mode):
	def spins():
		print("# " + (CHECKS[mode](node) if mode in CHECKS else check_node(node, mode)))
	spins.__name__ = "%s_%s" % (os.path.basename(node), mode)
	test(spins)


NODES = [path for path in os.environ.get("SONDE_NODES", shutil.which("node") or "").split(":") if path]
for path in NODES:
	for each in os.environ.get("SONDE_NODE_MODES", "default interpreted reload maze wasm").split():
		register(path, each)

if not NODES:
	@test
	def no_node():
		skip("no node")

if __name__ == "__main__":
	run_tests()
