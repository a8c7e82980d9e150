# SPDX-License-Identifier: Apache-2.0
"""Our files, read by third-party programs: google/pprof, inferno, Node.js (viewer.py: Debian's chromium). The profiles are made up (make_profile), so
neither BPF nor privileges are needed. The readers are fetched from their registries at the first run and kept in $XDG_CACHE_HOME/sonde-tests (20 s
for pprof, 40 s for inferno); without a network and without them these tests are skipped.

Environment: MAKE_PROFILE, the program that writes the profiles."""
import collections
import json
import os
import re
import xml.etree.ElementTree as ElementTree

from foreign import CACHE, install, made, run, pprof_tool
from harness import check, check_equal, find_tool, run_tests, scratch, skip, test

INFERNO = "0.12.8"
READ = ("small", "big")


def inferno_tool():
	return install(os.path.join(CACHE, "bin", "inferno-flamegraph"), "cargo",
		["cargo", "install", "--locked", "--version", INFERNO, "--no-default-features", "--features", "cli", "--root", CACHE, "inferno"],
		CARGO_TARGET_DIR=os.path.join(CACHE, "target"))


def load(which):
	with open(os.path.join(made(which), "profile.json"), encoding="utf-8") as file:
		return json.load(file)


def names_of(profile, stack):
	"""Returns function names, leaf first."""
	if stack is None:
		return []
	return [profile["functions"][profile["frames"][frame]["function"]]["name"] for frame in profile["stacks"][stack]]


def stacks_of(profile):
	"""Returns [(sample, names of its whole stack, leaf first)]."""
	return [(s, names_of(profile, s["kernel_stack"]) + names_of(profile, s["user_stack"])) for s in profile["samples"]]


def shown_of(profile, sample):
	"""Returns the names as written where a frame is one text: an interpreter's function is followed by its source file."""
	shown = []
	for stack in (sample["kernel_stack"], sample["user_stack"]):
		for frame in (profile["frames"][place] for place in ([] if stack is None else profile["stacks"][stack])):
			function = profile["functions"][frame["function"]]
			file = os.path.basename(function["file"]) if frame["kind"] in ("python", "php", "perl") else ""
			shown.append((function["name"] or "[unknown]") + (" (%s)" % file if file else "")) # no name: no empty frame
	return shown


def plain(name):
	return re.sub("[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]", "?", name)


@test
def json_says_the_whole():
	"""Python's parser, the strictest at hand, reads it: references are valid, sums are right."""
	for which in READ:
		profile = load(which)
		account = profile["account"]
		check_equal((profile["format"], profile["version"]), ("sonde-profile", 2), "head")
		check_equal(sum(s["values"][0] for s in profile["samples"]), account["recorded"], "recorded")
		lost = sum(account["filtered"].values()) + sum(account["dropped"].values())
		check_equal(account["ticks"], account["recorded"] + lost, "ticks")
		for frame in profile["frames"]:
			check(0 <= frame["function"] < len(profile["functions"]), "function of %r" % frame)
			check(frame["mapping"] is None or 0 <= frame["mapping"] < len(profile["mappings"]), "mapping of %r" % frame)
		check(all(0 <= frame < len(profile["frames"]) for stack in profile["stacks"] for frame in stack), "frames of stacks")
	names = {function["name"] for function in load("small")["functions"]}
	for name in ("<script>alert(1)</script>", "new\nline\ttab", "gr\u00fc\u00df \u6f22 \U0001f525", "bad \ufffd\ufffd( utf8 \ufffd",
		"line\u2028separator \u202eturned", "x" * 1000):
		check(name in names, "%r is not there" % name)


@test
def json_is_read_by_node():
	if not find_tool("node"):
		skip("no node")
	script = "const p = JSON.parse(require('fs').readFileSync(0)); console.log(p.samples.reduce((n, s) => n + s.values[0], 0))"
	with open(os.path.join(made("small"), "profile.json"), "rb") as file:
		status, out, err = run(["node", "-e", script], stdin=file)
	check(status == 0, err)
	check_equal(int(out), load("small")["account"]["recorded"], "samples")


def pprof(which, *arguments):
	status, out, err = run([pprof_tool()] + list(arguments) + ["-symbolize=none", os.path.join(made(which), "profile.pprof")],
		env={**os.environ, "HOME": scratch("")})
	check(status == 0 and (not err or "as range" in err), "pprof %s: %s" % (arguments, err))
	return out


def parse_raw(text):
	"""Parses pprof -raw: [(values, [location, ...], {label: value})], {location: (mapping or None, [function, ...], [line, ...])}, [mapping
	lines]. A location has more than one function where some were inlined, the innermost first."""
	head, _, rest = text.partition("Locations\n")
	places, _, mappings = rest.partition("Mappings\n")
	samples, locations = [], {}
	for line in head.partition("Samples:\n")[2].splitlines()[1:]:
		match = re.fullmatch(r" *(\d+) +(\d+): ([\d ]*)", line)
		if match:
			samples.append(((int(match[1]), int(match[2])), [int(n) for n in match[3].split()], {}))
		else:
			samples[-1][2].update(re.findall(r"(\w+):\[(.*?)\](?= |$)", line))
	for line in places.splitlines():
		match = re.fullmatch(r"(?: *(\d+): 0x[0-9a-f]+ (?:M=(\d+) )?)? *(\S.*|) (\S*):(\d+):0 s=\d+", line)
		if match[1]:
			number = int(match[1])
			locations[number] = (match[2] and int(match[2]), [], [])
		locations[number][1].append(match[3])
		locations[number][2].append(int(match[5]))
	return samples, locations, mappings.splitlines()


@test
def pprof_reads_every_sample():
	for which in READ:
		profile = load(which)
		samples, locations, _ = parse_raw(pprof(which, "-raw"))
		period = 10 ** 9 // profile["account"]["freq_hz"]
		check_equal(len(samples), len(profile["samples"]), "samples")
		for (values, stack, labels), (sample, names) in zip(samples, stacks_of(profile)):
			check_equal(values, (sample["values"][0], sample["values"][0] * period), "values")
			check_equal([name for n in stack for name in locations[n][1]], [plain(name) for name in names], "stack of %r" % sample)
			want = {key: "%d %s" % (sample[key], key) for key in ("pid", "tid", "cpu")} # the key is the unit
			want["comm"] = plain(sample["comm"])
			check_equal(labels, {key: value for key, value in want.items() if value}, "labels")


@test
def pprof_knows_mappings_and_run():
	profile = load("small")
	text = pprof("small", "-raw")
	_, locations, mappings = parse_raw(text)
	for wanted in ("[kernel.kallsyms]", "/usr/bin/worker 5a6b7c8d9e0f1a2b3c4d5e6f708192a3b4c5d6e7 [FN]"):
		check(any(wanted in line for line in mappings), "%s is not in %s" % (wanted, mappings))
	kernel = [n for n, line in [(int(line.split(":")[0]), line) for line in mappings] if "[kernel.kallsyms]" in line]
	check_equal(locations[[n for n, place in locations.items() if place[1] == ["vfs_read"]][0]][0], kernel[0], "mapping of vfs_read")
	check_equal([place[0] for place in locations.values() if place[1] == ["stray"]], [None, None], "mapping of addresses outside of it")
	check(([1, "main.square", "main.norm", "main.shade"], [11, 21, 33]) in [([place[0], *place[1]], place[2]) for place in locations.values()], "no inlined lines")
	for line in ("PeriodType: cpu nanoseconds", "Period: 20408163", "Duration: 10s", "Time: 2023-11-14 22:13:20.123456789 +0000 UTC",
		"samples/count cpu/nanoseconds[dflt]", "Comment: event: cpu-clock at 49 Hz on 2 CPUs for 10.0 s",
		"Comment: " + "warning: " + profile["account"]["notes"][0]):
		check(line in text.splitlines(), "%r is not in\n%s" % (line, text[:2000]))


@test
def pprof_reads_no_samples():
	samples, locations, _ = parse_raw(pprof("empty", "-raw"))
	check_equal((samples, locations), ([], {}), "samples and locations")


@test
def pprof_adds_up_as_we_do():
	"""Its -top matches our own sums; -tagroot and -tagfocus find what they name."""
	profile = load("big")
	flat, cumulative = collections.Counter(), collections.Counter()
	for sample, names in stacks_of(profile):
		flat[names[0]] += sample["values"][0]
		for name in set(names):
			cumulative[name] += sample["values"][0]
	rows = re.findall(r"^ *(\d+) +\S+ +\S+ +(\d+) +\S+ +(.*)$", pprof("big", "-top", "-nodecount=100000", "-nodefraction=0", "-sample_index=samples"), re.M)
	got = {name: (int(own), int(total)) for own, total, name in rows}
	check_equal(got, {name: (flat[name], cumulative[name]) for name in cumulative}, "flat and cumulative")
	for key, value, filter_ in (("comm", "python3", "python3"), ("cpu", 0, "0:0"), ("tid", 101, "101:101")):
		samples, _, _ = parse_raw(pprof("big", "-raw", "-tagfocus=%s=%s" % (key, filter_)))
		want = sum(s["values"][0] for s in profile["samples"] if s[key] == value)
		check_equal(sum(values[0] for values, _, _ in samples), want, "-tagfocus=%s" % key)


@test
def inferno_reads_every_line():
	for which in READ:
		profile, totals = load(which), collections.Counter()
		with open(os.path.join(made(which), "profile.folded"), encoding="utf-8") as file:
			for line in file:
				stack, _, count = line.rstrip("\n").rpartition(" ")
				totals[stack] += int(count)
		want = collections.Counter()
		for sample in profile["samples"]:
			frames = ([sample["comm"]] if sample["comm"] else []) + shown_of(profile, sample)[::-1]
			want[";".join(plain(frame).replace(";", ":") for frame in frames)] += sample["values"][0]
		check_equal(totals, want, "folded lines against the JSON")
		status, out, err = run([inferno_tool(), "--minwidth", "0", os.path.join(made(which), "profile.folded")])
		check(status == 0 and not err, err)
		titles = [title.text for title in ElementTree.fromstring(out).iter("{http://www.w3.org/2000/svg}title")]
		recorded = profile["account"]["recorded"]
		check("all ({:,} samples, 100%)".format(recorded) in titles, "inferno's total: %s" % [t for t in titles if t.startswith("all ")])
		own = sum(s["values"][0] for s in profile["samples"] if s["comm"] == "worker")
		check(not own or any(title.startswith("worker ({:,} samples".format(own)) for title in titles), "inferno's worker")


if __name__ == "__main__":
	run_tests(seconds=400) # readers are fetched at the first run
