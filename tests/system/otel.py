#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The contexts that threads publish by OpenTelemetry's specifications, as labels of samples, against what the program says: each of its spans has a function of its own
(tests/programs/otel_context.c)."""
import collections
import os
import re
import signal
import subprocess
import time

from harness import (CFLAGS, PROGRAMS, SOURCES, Background, Program, bpf_names, building, check, check_equal, compile_one, converted, fresh_folder, is_older, load_json, need_bpf, run_tests, scratch,
	sonde, test)

SHARED = ["-shared", "-fPIC"]
LIBRARIES = { # name: flags
	"descriptors": [*SHARED, "-mtls-dialect=gnu2"],
	"general": [*SHARED],
	"initial": [*SHARED, "-ftls-model=initial-exec"],
	"own_descriptors": [*SHARED, "-mtls-dialect=gnu2", "-DOWN_NAME"],
	"own_general": [*SHARED, "-DOWN_NAME"],
	"own_initial": [*SHARED, "-DOWN_NAME", "-ftls-model=initial-exec"],
}
MANY = {"many_even": 0, "many_odd": 1} # the last digit of their spans
MANY_TRACE = "909192939495969798999a9b9c9d9e9f"
WITHOUT = ("never_attached", "detached", "being_written")


def build_one(name, flags, *sources):
	target = os.path.join(PROGRAMS, name)
	paths = [source if "/" in source else os.path.join(SOURCES, source + ".c") for source in sources]
	with building():
		if is_older(target, [path for path in paths if path.endswith((".c", ".so"))]):
			compile_one(["gcc", *CFLAGS, *flags, "-D_GNU_SOURCE", "-o", target, *paths])
	return target


def library(name):
	return build_one("libotel_%s.so" % name, LIBRARIES[name], "otel_sdk")


class Contexts(Program):
	"""Its .spans are {function: labels}, as it published them. `model`: a library; `is_late`: opened when the threads run; or local, in the program itself."""

	def __init__(self, model, is_late=False, form="memfd", seconds=60, more=()):
		if model == "local":
			program = build_one("otel_context_local", ["-rdynamic"], "otel_context", "otel_sdk")
		elif is_late:
			program = build_one("otel_context", [], "otel_context")
		else:
			program = build_one("otel_context_" + model, ["-Wl,--no-as-needed"], "otel_context", library(model))
		super().__init__(None, library(model) if is_late else "-", form, *more, seconds=seconds, path=[program])
		self.spans = {}

	def read_line(self, line):
		match = re.fullmatch(r"span (\S+) (\S+) (\S+) (\S+)", line)
		if match:
			function, trace, span, labels = match.groups()
			self.spans[function] = () if trace == "-" else tuple(sorted([("trace_id", trace), ("span_id", span), *(tuple(label.split("=")) for label in labels.split(","))]))
		return super().read_line(line)


def labels_of(sample):
	return tuple(sorted((key, str(text)) for key, text, *_ in sample.get("labels", [])))


def names_of(report, sample):
	stack = report["stacks"][sample["user_stack"]] if sample["user_stack"] is not None else []
	return [report["functions"][report["frames"][frame]["function"]]["name"] for frame in stack]


def is_right(function, labels, spans):
	if function in MANY:
		found = dict(labels)
		return set(found) == {"trace_id", "span_id"} and found["trace_id"] == MANY_TRACE and re.fullmatch("[0-9a-f]{16}", found["span_id"]) and int(found["span_id"], 16) % 2 == MANY[function]
	return labels == spans.get(function, ())


def judge(report, spans, pid=None):
	"""Returns counters by function: right; without labels; and {(function, labels): number} of the wrong."""
	right, bare, wrong = collections.Counter(), collections.Counter(), collections.Counter()
	for sample in report["samples"]:
		if pid and sample["pid"] != pid:
			continue
		names, labels = names_of(report, sample), labels_of(sample)
		function = next((name for name in names if name in spans or name in MANY or name in WITHOUT), None)
		if not function:
			continue
		if is_right(function, labels, spans):
			right[function] += sample["values"][0]
		elif not labels:
			bare[function] += sample["values"][0]
		else:
			wrong[function, labels] += sample["values"][0]
	return right, bare, wrong


def check_spans(program, verb=("profile", "-F", 499), seconds=2):
	need_bpf()
	path = scratch("otel.json")
	for _ in range(4): # a loaded machine gives few
		sonde(*verb, "-p", program.pid, "-o", path, seconds, want=0)
		report = load_json(path)
		right, bare, wrong = judge(report, program.spans)
		check(not wrong, lambda: "wrong: %s" % wrong)
		nr = sum(right.values())
		check(sum(bare.values()) <= 0.02 * nr + 2, lambda: "without labels: %s; right: %s" % (bare, right))
		if set(right) >= {*program.spans, *MANY} and nr > 200:
			break
	check(set(right) >= {*program.spans, *MANY} and nr > 200, lambda: "right: %s; without: %s" % (right, bare))
	check(report["account"]["labels_missed"] <= 0.01 * nr, lambda: "lost: %d" % report["account"]["labels_missed"])
	check_equal([(runtime["name"], runtime["version"]) for runtime in report["account"]["runtimes"]], [("thread context", "")], "it is no language, so it has no version")
	return report, "%d samples, %d of them in other spans each" % (nr, right["many_even"] + right["many_odd"])


def model(name, *args, **kwargs):
	with Contexts(name, *args, **kwargs) as program:
		return check_spans(program)[1]


@test
def local_exec():
	"""In the program itself."""
	return model("local")


@test
def initial_exec():
	return model("initial")


@test
def general_dynamic():
	return model("general")


@test
def descriptors():
	return model("descriptors")


@test
def general_dynamic_opened_later():
	return model("general", is_late=True)


@test
def descriptors_opened_later():
	return model("descriptors", is_late=True)


@test
def relocations_without_a_symbol():
	return "; ".join(model(name) for name in ("own_initial", "own_descriptors", "own_general"))


@test
def resource_alone():
	"""The process's context as earlier drafts of the specification have it."""
	return model("local", form="resource")


@test
def waits():
	"""All of the threads' time."""
	with Contexts("descriptors") as program:
		report = check_spans(program, verb=("wall",))[0]
	check(report["samples"], lambda: str(report))


@test
def names_are_added():
	"""One name is published when its attribute has been in use for a second."""
	need_bpf()
	path, program = scratch("added.json"), Contexts("general", seconds=4)
	told = subprocess.run([os.environ["SONDE"], "profile", "-F", "499", "-o", path, "--", *program.argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
	for line in told.stdout.decode().splitlines():
		program.read_line(line)
	right, bare, wrong = judge(load_json(path), program.spans)
	check(not wrong and right["span_long"] > 20, lambda: "right: %s; without: %s; wrong: %s" % (right, bare, wrong))
	return "%d samples" % right["span_long"]


@test
def without_names():
	"""No process's context: the attributes have no names. Trace and span are there."""
	need_bpf()
	with Contexts("local", form="none") as program:
		sonde("profile", "-F", 499, "-p", program.pid, "-o", scratch("otel.json"), 1, want=0)
		report = load_json(scratch("otel.json"))
	_, _, wrong = judge(report, program.spans)
	found = {function: labels for function, labels in wrong}
	check_equal(dict(found["span_steady"]), {**{key: text for key, text in program.spans["span_steady"] if key.endswith("_id")}, "labels_left_out": "3"}, "span_steady")


@test
def nothing_is_loaded():
	"""Without such a process, and where it is switched off."""
	need_bpf()
	with Contexts("local") as program:
		for choice, is_there in ((("--runtimes", "python"), False), (("--runtimes", "otel"), True)):
			argv = [os.environ["SONDE"], "profile", "-F", "97", *choice, "-p", str(program.pid), "-o", scratch("loaded.json"), "3"]
			with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as running:
				for line in running.stderr:
					if b"Sampling" in line:
						break
				time.sleep(2)
				loaded = "sonde_otel" in bpf_names(running.pid, "prog")
				running.communicate()
			check_equal(loaded, is_there, "the program is loaded, %s" % (choice,))
			right, bare, wrong = judge(load_json(scratch("loaded.json")), program.spans)
			check(not wrong and bool(right["span_steady"]) == is_there and bool(bare["span_steady"]) != is_there, lambda: "%s: %s %s %s" % (choice, right, bare, wrong)) # pylint: disable=cell-var-from-loop


@test
def two_libraries():
	"""Both have the variable. Only one is read, and that is said."""
	need_bpf()
	first, second = library("own_general"), library("own_descriptors")
	argv = [build_one("otel_context", [], "otel_context"), "60", "-", "none"]
	with subprocess.Popen(argv, env={**os.environ, "LD_PRELOAD": first + ":" + second}, stdout=subprocess.DEVNULL) as program:
		time.sleep(1)
		sonde("profile", "-F", 97, "-p", program.pid, "-o", scratch("two.json"), 1, want=0)
		program.kill()
	notes = load_json(scratch("two.json"))["account"]["notes"]
	said = [note for note in notes if re.fullmatch(r"thread context of \S+ in process %d is not read, as that of \S+ is" % program.pid, note)]
	check(len(said) == 1 and first in said[0] and second in said[0], lambda: str(notes))


@test
def another_program():
	"""A process that publishes no names executes a program that does, for the same numbers: they are not of what ran before."""
	need_bpf()
	program = Contexts("local", form="none", seconds=2)
	path = scratch("another.json")
	sonde("profile", "-F", 499, "-o", path, "--", *program.argv, "all", *program.argv[:-1], "memfd", want=0)
	report, found = load_json(path), collections.Counter()
	for sample in report["samples"]:
		if "span_steady" in names_of(report, sample):
			found[dict(labels_of(sample)).get("labels_left_out")] += sample["values"][0]
	check(found["3"] > 20 and found["1"] > 20 and found["3"] > 0.5 * found["1"], lambda: "left out: %s" % found)
	return str(dict(found))


IN_PYTHON = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
record = ctypes.create_string_buffer(bytes(range(1, 25)) + bytes([1, 0, 0, 0]))
library.otel_sdk_attach(ctypes.byref(record))
def spin_in_span():
	while True:
		sum(range(4000))
spin_in_span()
"""


@test
def beside_a_language():
	"""The frames are Python's, the span is the thread's."""
	need_bpf()
	with subprocess.Popen(["/usr/bin/python3", "-c", IN_PYTHON, library("descriptors")]) as program:
		try:
			time.sleep(1)
			sonde("profile", "-F", 499, "-p", program.pid, "-o", scratch("python.json"), 2, want=0)
		finally:
			program.kill()
	report = load_json(scratch("python.json"))
	in_span = [sample for sample in report["samples"] if "spin_in_span" in names_of(report, sample)]
	right = [sample for sample in in_span if labels_of(sample) == (("span_id", bytes(range(17, 25)).hex()), ("trace_id", bytes(range(1, 17)).hex()))]
	check(len(right) >= 0.98 * len(in_span) > 0, lambda: "%d of %d: %s" % (len(right), len(in_span), [labels_of(sample) for sample in in_span][:5]))
	return "%d samples" % sum(sample["values"][0] for sample in right)


@test
def in_formats():
	"""`show --by span` tells the same of all formats with labels; OTLP has the ids in its table of links, and nowhere else."""
	need_bpf()
	with Contexts("local") as program:
		sonde("profile", "-F", 499, "-p", program.pid, "-o", scratch("spans.json"), 2, want=0)
	endings = ("json", "jsonl", "pb.gz", "otlp")
	for ending in endings[1:]:
		sonde("convert", scratch("spans.json"), "-o", scratch("spans." + ending), want=0)
	for version in ("otlp-1.8", "otlp-1.9", "otlp-json"):
		sonde("convert", "--format", version, scratch("spans.json"), scratch("spans." + version), want=0)
	paths = [scratch("spans." + ending) for ending in (*endings, "otlp-1.8", "otlp-1.9", "otlp-json")]
	for table in ("span", "trace"):
		shown = [sonde("show", "--by", table, "-n", 1000000, path, want=0).out.split("\n", 1)[1] for path in paths]
		for path, text in zip(paths, shown):
			check_equal(sorted(text.splitlines()), sorted(shown[0].splitlines()), path) # spans with equal values are in no order
	for function, labels in program.spans.items():
		row = "%s  otel_context_lo %d" % (" ".join(dict(labels)[key] for key in ("span_id", "trace_id")), program.pid) if labels else "[no span]"
		by_span = sonde("show", "--by", "span", "-n", 10, paths[0], want=0).out
		check(re.search(r"%s  \(\d+ %% (%s|\S+)\)" % (re.escape(row), function), by_span), lambda: "%s is not in\n%s" % (row, by_span)) # pylint: disable=cell-var-from-loop
	message = load_json(scratch("spans.otlp-json"))
	links, attributes = message["dictionary"]["linkTable"], message["dictionary"]["attributeTable"]
	check_equal(links[0], {}, "the first link is empty")
	wanted = {(dict(labels)["trace_id"], dict(labels)["span_id"]) for labels in program.spans.values() if labels}
	check(wanted <= {(link["traceId"], link["spanId"]) for link in links[1:]}, lambda: str(links))
	strings = message["dictionary"]["stringTable"]
	check(not {"trace_id", "span_id"} & {strings[attribute.get("keyStrindex", 0)] for attribute in attributes}, lambda: str(attributes))


PUBLISHED = {"service.name": "checkout", "service.version": "1.2.3", "service.instance.id": "instance-1", "deployment.environment.name": "test"}


@test
def of_processes():
	"""What a process publishes of itself is among its labels in the agent, from the next look at it on; what is not for everybody stays where it is."""
	need_bpf()
	folder = fresh_folder("of_processes")
	os.environ["OTEL_SERVICE_NAME"] = "by-the-environment"
	try:
		program = Contexts("local")
		with program, Background("agent", "--store", folder, "--window", 1, "-F", 97).wait_line("Sampling", timeout=60) as running:
			time.sleep(6)
			running.send(signal.SIGTERM)
			check_equal(running.finish().code, 0, "exit")
	finally:
		del os.environ["OTEL_SERVICE_NAME"]
	report = converted(folder)
	found = collections.Counter()
	for sample in report["samples"]:
		if sample["pid"] == program.pid:
			labels = dict(labels_of(sample))
			if "process.executable.name" in labels: # others are of before a loss of the side-band, which are counted as such
				found[tuple(labels.get(key) for key in PUBLISHED)] += sample["values"][0]
			check("secret.token" not in labels, lambda: str(labels)) # pylint: disable=cell-var-from-loop
	check(found[tuple(PUBLISHED.values())] > 0.9 * sum(found.values()) > 10, lambda: str(found))
	right, bare, wrong = collections.Counter(), 0, []
	for sample in report["samples"]:
		labels = {key: text for key, text in labels_of(sample) if key in ("trace_id", "span_id")}
		for function in [name for name in names_of(report, sample) if name in program.spans][:1] if sample["pid"] == program.pid else ():
			want = {key: text for key, text in program.spans[function] if key in ("trace_id", "span_id")}
			if labels == want:
				right[function] += 1
			elif labels:
				wrong.append((function, labels))
			else:
				bare += 1
	check(right["span_steady"] and not wrong and bare <= 0.1 * sum(right.values()), lambda: "%s, %d without, %s" % (right, bare, wrong))
	return str(dict(found))


@test
def of_processes_later():
	"""A process that publishes only when it was looked at before."""
	need_bpf()
	folder = fresh_folder("of_processes_later")
	with Contexts("local", form="late") as program, Background("agent", "--store", folder, "--window", 1, "-F", 97).wait_line("Sampling", timeout=60) as running:
		time.sleep(4)
		os.kill(program.pid, signal.SIGUSR1)
		time.sleep(12) # looks are after 0, 1, 3, 7 and 15 seconds
		running.send(signal.SIGTERM)
		check_equal(running.finish().code, 0, "exit")
	found = collections.Counter()
	for sample in converted(folder)["samples"]:
		if sample["pid"] == program.pid:
			found[dict(labels_of(sample)).get("service.name")] += sample["values"][0]
	check(found["checkout"] > 10 and sum(found.values()) - found["checkout"] > 10, lambda: str(found))
	return str(dict(found))


run_tests()
