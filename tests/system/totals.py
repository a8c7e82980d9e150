#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All formats of one recording give each function the same self and total values. The files are read by google/pprof and opentelemetry-proto's classes,
and by readers written here from the formats' descriptions. They are compared with the JSON lines, in which each sample has its whole stack. That
stack is the one that the program (tests/programs/inlined_waker.c) reports.

Environment: SONDE."""
import collections
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from foreign import pprof_all, python_packages # noqa: E402
from harness import CFLAGS, SOURCES, check, compile_one, need_bpf, parse_chains, run_tests, scratch, sonde, test # noqa: E402

SUFFIXES = ("jsonl", "json", "txt", "folded", "pb.gz", "otlp", "otlp.json", "speedscope.json", "firefox.json", "cpuprofile", "perf", "html", "top")
FREQ_HZ = 997


class Totals:
	"""By function name: self, total, and how many numbers of the file each is the sum of."""

	def __init__(self):
		self.self, self.total, self.nr = collections.Counter(), collections.Counter(), collections.Counter()

	def add(self, names, value):
		"""Takes names leaf first."""
		if not names or not value:
			return
		self.self[names[0]] += value
		for name in set(names):
			self.total[name] += value
			self.nr[name] += 1


def lines_of(path):
	with open(path, encoding="utf-8") as file:
		return file.read().splitlines()


def load(path):
	with open(path, encoding="utf-8") as file:
		return json.load(file)


class Recording:
	"""One run of a verb, in all formats, of the program or of the machine. `shown`: the value in formats with room for one; `tick`: what 1
	of it is in formats that hold time instead."""

	def __init__(self, verb, options, shown, of_machine=False):
		need_bpf()
		program, self.path, self.shown = scratch("inlined_waker"), scratch(verb + "-".join(options).replace("--", "-")), shown
		if not os.path.exists(program):
			compile_one(["gcc", *[flag for flag in CFLAGS if flag != "-g0"], "-g", "-o", program, os.path.join(SOURCES, "inlined_waker.c")])
		outputs = [word for suffix in SUFFIXES for word in ("-o", "%s.%s" % (self.path, suffix))]
		self.chains = parse_chains(sonde(verb, *options, "--lines", *outputs, *([2] if of_machine else ["--", program, 1.5]), want=0).out)
		self.tick = 10 ** 9 // FREQ_HZ if verb == "profile" else 1
		self.micro = 1 if verb == "profile" else 1000
		self.samples = [line for line in map(json.loads, lines_of(self.path + ".jsonl")) if line["record"] == "sample"]

	def __getitem__(self, suffix):
		return "%s.%s" % (self.path, suffix)

	def value(self, sample):
		return sum(int(value["value"]) for value in sample["values"] if value["type"] == self.shown)


def names_of(sample):
	return [frame["name"] for frame in sample["stack"]]


# --- readers: each returns {what: Totals}, and the greatest error of one number of the file, in counted units ------------------------------------------------------------------------

def of_jsonl(recording, name_of=str):
	totals = Totals()
	for sample in recording.samples:
		totals.add(list(map(name_of, names_of(sample))), recording.value(sample))
	return totals, 0


def of_json(recording):
	profile, totals = load(recording["json"]), Totals()
	shown = [kind["type"] for kind in profile["value_types"]].index(recording.shown)
	for sample in profile["samples"]:
		stacks = [profile["stacks"][n] for n in (sample["kernel_stack"], sample["user_stack"]) if n is not None]
		totals.add([profile["functions"][profile["frames"][n]["function"]]["name"] for stack in stacks for n in stack], int(sample["values"][shown]))
	return totals, 0


def of_text(recording):
	"""As offcputime prints: leaf first, after the waker's stack, which is leaf first too."""
	totals, waker, names = Totals(), None, []
	for line in lines_of(recording["txt"]):
		if not line:
			waker, names = None, []
		elif line.startswith("    waker: "):
			waker = line[21:]
		elif re.match(r"    -                 *\S", line):
			continue
		elif re.match(r"        \d+(  waits|$)", line):
			at = names.index("--") if waker else 0
			totals.add(([waker] if waker else []) + names[:at][::-1] + names[at:], int(line.split()[0]) * recording.micro)
		elif line.startswith("    "):
			names.append(line[4:])
	return totals, recording.micro


def of_folded(recording):
	totals = Totals()
	for line in lines_of(recording["folded"]):
		stack, _, value = line.rpartition(" ")
		totals.add(stack.split(";")[:0:-1], int(value) * recording.micro)
	return totals, recording.micro


def of_pprof(recording):
	"""google/pprof does the sums itself."""
	totals = Totals()
	text = pprof_all(recording["pb.gz"], "-sample_index=" + recording.shown, "-unit=" + ("count" if recording.micro == 1 else "nanoseconds"), "-top")
	for own, whole, name in re.findall(r"^ *(\d+)(?:ns)? +\S+ +\S+ +(\d+)(?:ns)? +\S+ +(.*?)(?: \((?:partial-)?inline\))?$", text, re.M):
		totals.self[name], totals.total[name] = int(own), int(whole)
	totals.self = +totals.self
	return totals, 0


def of_otlp(recording, parse):
	python_packages()
	from opentelemetry.proto.profiles.v1development import profiles_pb2 # pylint: disable=import-outside-toplevel
	data, totals = profiles_pb2.ProfilesData(), Totals()
	parse(data)
	tables = data.dictionary
	for profile in [profile for resource in data.resource_profiles for scope in resource.scope_profiles for profile in scope.profiles]:
		if tables.string_table[profile.sample_type.type_strindex] != recording.shown:
			continue
		for sample in profile.samples:
			places = [tables.location_table[n] for n in tables.stack_table[sample.stack_index].location_indices]
			totals.add([tables.string_table[tables.function_table[line.function_index].name_strindex] for place in places for line in place.lines], sum(sample.values))
	return totals, 0


def of_otlp_protobuf(recording):
	with open(recording["otlp"], "rb") as file:
		return of_otlp(recording, lambda data: data.ParseFromString(file.read()))


def of_otlp_json(recording):
	def parse(data):
		from google.protobuf import json_format # pylint: disable=import-outside-toplevel
		json_format.ParseDict(load(recording["otlp.json"]), data)
	return of_otlp(recording, parse)


def of_speedscope(recording):
	scope, totals = load(recording["speedscope.json"]), Totals()
	frames = scope["shared"]["frames"]
	for profile in scope["profiles"]:
		if re.search(r": \w+$", profile["name"]) and not profile["name"].endswith(": " + recording.shown):
			continue
		for stack, weight in zip(profile["samples"], profile["weights"]):
			totals.add([frames[n]["name"] for n in reversed(stack)], weight / recording.tick)
	return totals, 1e-6


def of_firefox(recording):
	totals = Totals()
	for thread in load(recording["firefox.json"])["threads"]:
		for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"]):
			names = []
			while stack is not None:
				names.append(thread["stringArray"][thread["funcTable"]["name"][thread["frameTable"]["func"][thread["stackTable"]["frame"][stack]]]])
				stack = thread["stackTable"]["prefix"][stack]
			totals.add(names, round(weight * 1e6) / recording.tick)
	return totals, 1e-6


def of_cpuprofile(recording, widths):
	"""The tree's third level is the first function: above it are (root) and the threads."""
	profile, totals = load(recording["cpuprofile"]), Totals()
	nodes = {node["id"]: node for node in profile["nodes"]}
	parents = {child: node["id"] for node in profile["nodes"] for child in node.get("children", [])}
	for leaf, width in widths(profile):
		names = []
		while leaf in parents:
			names.append(nodes[leaf]["callFrame"]["functionName"])
			leaf = parents[leaf]
		totals.add(names[:-1], width)
	return totals


def of_cpuprofile_hits(recording):
	return of_cpuprofile(recording, lambda profile: [(node["id"], node["hitCount"]) for node in profile["nodes"]]), 0


def of_cpuprofile_times(recording):
	"""As Chrome reads it: a sample lasts until the next begins, in microseconds."""
	return of_cpuprofile(recording, lambda profile: [(leaf, delta * 1000 / recording.tick) for leaf, delta in zip(profile["samples"], profile["timeDeltas"][1:])]), 1000 / recording.tick


def perf_name(symbol, dso):
	symbol = re.sub(r"\+0x[0-9a-f]+$", "", symbol)
	if symbol == "[unknown]" and dso != "[unknown]":
		return "[%s]" % os.path.basename(dso)
	return "%s %s" % (symbol, dso) if dso.startswith("[") and dso not in ("[unknown]", "[kernel.kallsyms]", "[vdso]") else symbol


def without_address(name):
	"""Returns what perf script shows for a location in a file without symbols."""
	return re.sub(r"^(\[.+)\+0x[0-9a-f]+\]$", r"\1]", name)


def of_perf(recording):
	totals = Totals()
	for entry in "\n".join(line for line in lines_of(recording["perf"]) if not line.startswith("#")).strip("\n").split("\n\n"):
		head, *frames = entry.split("\n")
		period = int(re.search(r": +(\d+) \S+: *$", head)[1])
		totals.add([perf_name(*re.fullmatch(r"\t *[0-9a-f]+ (.*) \((.*)\)", frame).groups()) for frame in frames], period / recording.tick)
	return totals, 1e-6


def of_html(recording):
	"""Reads the tree in the middle of the page; above the functions are the root, the processes and the threads."""
	with open(recording["html"], encoding="utf-8") as file:
		view = json.JSONDecoder().raw_decode(re.search(r'\{"format": ?"sonde-view".*', file.read(), re.S)[0])[0]
	nodes, frames, totals = view["nodes"], view["frames"], Totals()
	for node, value in zip(view["samples"]["node"], view["samples"]["values"][view["shown"]]):
		names = []
		while nodes["up"][node]:
			frame = nodes["frame"][node]
			if view["kinds"][frames["kind"][frame]] not in ("all", "process", "thread", "comm"):
				names.append(view["strings"][frames["name"][frame]])
			node -= nodes["up"][node]
		totals.add(names, value)
	return totals, 0


READERS = (of_json, of_text, of_folded, of_pprof, of_otlp_protobuf, of_otlp_json, of_speedscope, of_firefox, of_cpuprofile_hits, of_cpuprofile_times, of_perf, of_html)


def differences(want, got, slack):
	"""Returns the functions whose self or total differs: [text]."""
	wrong = []
	for what in ("self", "total"):
		ours, theirs = getattr(want, what), getattr(got, what)
		for name in sorted(set(ours) | set(theirs)):
			if abs(ours[name] - theirs[name]) > slack * max(want.nr[name], got.nr[name]):
				wrong.append("%s of %s: %s, not %s" % (what, name, theirs[name], ours[name]))
	return wrong


def check_top(recording, want):
	"""Checks the table of functions: shares of the functions with the most samples."""
	rows = re.findall(r"^ +([\d.]+) % +([\d.]+) %  (\S+|\[[^\]]*\])(?:  .*)?$", "\n".join(lines_of(recording["top"])), re.M)
	everything = sum(want.self.values())
	check(rows, "no table")
	names = collections.Counter(name for _, _, name in rows)
	for own, whole, name in rows:
		if names[name] == 1 and want.self[name]: # several files may have a function of that name, each in its own row
			check(float(own) <= 100 * want.self[name] / everything + 0.006 and float(whole) <= 100 * want.total[name] / everything + 0.006, lambda: "%s: %s %s" % (name, own, whole))


def check_formats(recording, readers=READERS):
	want, _ = of_jsonl(recording)
	check(len(want.total) > 20, lambda: "only %d functions" % len(want.total))
	for reader in readers:
		wrong = differences(of_jsonl(recording, without_address)[0] if reader is of_perf else want, *reader(recording))
		check(not wrong, lambda: "%s: %d of %d functions:\n%s" % (reader.__name__, len({text.split(":")[0].partition(" of ")[2] for text in wrong}), len(want.total), "\n".join(wrong[:40])))
	check_top(recording, want)
	return "%d functions" % len(want.total)


def has_run(names, run):
	return any(names[at:at + len(run)] == run for at in range(len(names) - len(run) + 1))


def check_true(recording, comm, is_of, runs_of):
	"""Nearly all of these samples of a thread are on the stack that the program reports, including inlined functions: `runs_of` returns what
	must be in a stack, leaf first."""
	samples = [sample for sample in recording.samples if sample["comm"] == comm and is_of(names_of(sample))]
	right = sum(recording.value(sample) for sample in samples if all(has_run(names_of(sample), run) for run in runs_of))
	whole = sum(map(recording.value, samples))
	check(whole and right >= 0.97 * whole, lambda: "%s: %s of %s on %s" % (comm, right, whole, runs_of))


@test
def profile():
	recording = Recording("profile", ("-F", str(FREQ_HZ)), "samples")
	for comm in ("eater", "feeder"):
		check_true(recording, comm, lambda names: "mix" in names, [["mix", *recording.chains[comm][2::-1]]])
	return check_formats(recording)


@test
def offcpu():
	recording = Recording("offcpu", (), "blocked")
	for comm in ("eater", "feeder"):
		check_true(recording, comm, lambda names: names[0] == "[pipe]", [recording.chains[comm][::-1]])
	return check_formats(recording)


@test
def offcpu_with_wakers():
	"""Above a wait's leaf end, its waker's frames follow from leaf to root: there, a function precedes those inlined into it."""
	recording = Recording("offcpu", ("--wake",), "blocked")
	for comm, other in (("eater", "feeder"), ("feeder", "eater")):
		check_true(recording, comm, lambda names: "[pipe]" in names and "--" in names, [recording.chains[comm][::-1], recording.chains[other]])
	return check_formats(recording)


@test
def all_of_the_machine():
	"""Thousands of functions of all languages; uses the readers for which a name is only a name, and not also a file or an address."""
	return check_formats(Recording("offcpu", ("--wake",), "blocked", of_machine=True), [reader for reader in READERS if reader not in (of_text, of_folded, of_perf)])


@test
def wall():
	recording = Recording("wall", (), "wall")
	for comm in ("eater", "feeder"):
		check_true(recording, comm, lambda names: names[-1] == "[blocked: pipe]", [recording.chains[comm][::-1]])
	return check_formats(recording)


if __name__ == "__main__":
	run_tests()
