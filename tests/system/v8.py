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
	counts = {}
	with subprocess.Popen([node, "--expose-gc", "--max-semi-space-size=1", os.path.join(SOURCES, "node_reload.js")], stdin=subprocess.DEVNULL) as process:
		try:
			report = json.loads(sonde("profile", "--format", "json", "-U", "-F", 999, "-p", process.pid, 4, want=0).out)
		finally:
			process.kill()
	for sample in report["samples"]:
		names = [frame[1] for frame in stack_of(report, sample)]
		pair = tuple(name for name in names if name in ("runOdd", "runEven", "leafOdd", "leafEven"))
		counts[pair] = counts.get(pair, 0) + sample["values"][0]
	check(min(counts.get(("runOdd", "leafOdd"), 0), counts.get(("runEven", "leafEven"), 0)) >= 50, lambda: "too few: %r" % counts)
	check(not {("runOdd", "leafEven"), ("runEven", "leafOdd")} & set(counts), lambda: "a function has the name of another one: %r" % counts)
	return "%r" % counts


def register(node, mode):
	def spins():
		print("# " + (check_reload(node) if mode == "reload" else check_node(node, mode)))
	spins.__name__ = "%s_%s" % (os.path.basename(node), mode)
	test(spins)


NODES = [path for path in os.environ.get("SONDE_NODES", shutil.which("node") or "").split(":") if path]
for path in NODES:
	for each in os.environ.get("SONDE_NODE_MODES", "default interpreted reload").split():
		register(path, each)

if not NODES:
	@test
	def no_node():
		skip("no node")

if __name__ == "__main__":
	run_tests()
