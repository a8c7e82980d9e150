#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The labels that Go programs give their goroutines by runtime/pprof: in stopped threads, read by the code that runs on the kernel side, and in
profiles, against what the program reports. SONDE_GO: see go_build.py. Go 1.23 and older keep labels in a map, 1.24 and newer in a list."""
import collections
import json
import os
import re

from go_build import go, go_build, go_version
from harness import Program, check, check_equal, find_tool, need_bpf, run, run_tests, scratch, skip, sonde, test

DUMP = os.environ.get("GO_LABELS_DUMP", "")
MAX_LABELS, KEY_BYTES, TEXT_BYTES = 8, 32, 64
# The callers of main.first and main.second, which have no frame pointer of their own above main.leaf.
CALLERS = {"main.changes.func1": "main.first", "main.changes.func2": "main.second"}


class LabelledProgram(Program):
	"""Its .labels are {function: {key: value}}, as it set them."""

	def __init__(self, path, *args, seconds=60):
		super().__init__(None, *args, seconds=seconds, path=[path])
		self.labels = {}

	def read_line(self, line):
		match = re.fullmatch(r"labels (\S+) (.*)", line)
		if match:
			self.labels[match.group(1)] = dict(label.split("=") for label in match.group(2).split(",")) if match.group(2) != "-" else {}
		return super().read_line(line)


def cut(text, size):
	return text.encode()[:size].decode(errors="ignore")


def dumped(labels):
	"""Formats labels as go_labels_dump prints them."""
	kept = sorted(labels.items())[:MAX_LABELS]
	text = ",".join("%s=%s" % (cut(key, KEY_BYTES), cut(value, TEXT_BYTES)) for key, value in kept)
	return (text or "-") + ("+%d" % (len(labels) - MAX_LABELS) if len(labels) > MAX_LABELS else "")


def check_stopped(name, rounds):
	if not os.path.exists(DUMP):
		skip("no go_labels_dump")
	if os.geteuid():
		skip("needs root")
	path = go_build(name)
	with LabelledProgram(path) as program:
		found = run([DUMP, str(program.pid), str(rounds)], timeout=60)
		want = {function: dumped(labels) for function, labels in program.labels.items()}
	check(found.code == 0, lambda: str(found))
	seen = collections.Counter()
	for line in found.out.splitlines():
		function, _, labels = line.partition(" ")
		function = CALLERS.get(function, function)
		if function in want: # main.changes sets and removes labels
			check(labels == want[function], lambda: "%s has %s, not %s" % (function, want[function], labels))
			seen[function] += 1
	check(set(seen) == set(want) and min(seen.values()) > 3, lambda: "seen: %s" % seen)
	return "%d sets of labels, Go %d.%d" % (sum(seen.values()), *go_version())


@test
def stopped_threads():
	"""Labels are right in system calls too, and in goroutines whose labels change all the time."""
	return check_stopped("labels", 80)


@test
def stopped_threads_in_c():
	"""Labels are right also in Go code called from C."""
	if not find_tool("gcc"):
		skip("no gcc")
	return check_stopped("labels_c", 50)


# --- in profiles -----------------------------------------------------------------------------------------------------------------------

FORMATS = ("json", "pb.gz", "jsonl", "otlp")
OF_OTLP = {"host.name", "process.executable.name"} # resource attributes, read along with the labels


def mark_cut(text, size):
	return cut(text, size) + ("\u2026" if len(text.encode()) > size else "")


def shown(labels):
	"""Formats labels as a profile has them."""
	kept = sorted(labels.items())[:MAX_LABELS]
	found = [(mark_cut(key, KEY_BYTES), mark_cut(value, TEXT_BYTES)) for key, value in kept]
	return tuple(sorted(found + ([("labels_left_out", len(labels) - MAX_LABELS)] if len(labels) > MAX_LABELS else [])))


def json_labels(sample):
	return tuple(sorted((label[0], label[1]) for label in sample.get("labels", []) if label[0] not in OF_OTLP))


def read_json(path):
	with open(path, encoding="utf-8") as file:
		return json.load(file)


def names_of(report, sample):
	"""Returns names, leaf first."""
	stack = report["stacks"][sample["user_stack"]] if sample["user_stack"] is not None else []
	return [report["functions"][report["frames"][frame]["function"]]["name"] for frame in stack]


def path_of(ending):
	return scratch("go_labels." + ending)


def sample_labels(name, at_least):
	"""Profiles a program in all formats. Returns the last report."""
	need_bpf()
	right, wrong = collections.Counter(), collections.Counter()
	with LabelledProgram(go_build(name)) as program:
		want = {function: shown(labels) for function, labels in program.labels.items()}
		for _ in range(6): # a loaded machine gives few
			outputs = [word for ending in FORMATS for word in ("-o", path_of(ending))]
			sonde("profile", "-p", program.pid, "-F", 997, *outputs, 1, want=0)
			report = read_json(path_of("json"))
			for sample in report["samples"]:
				function = next((name for name in names_of(report, sample) if name in want), None)
				if function and json_labels(sample) == want[function]:
					right[function] += sample["values"][0]
				elif function:
					wrong[function, json_labels(sample)] += sample["values"][0]
			if len(right) == len(want) and min(right.values()) >= at_least:
				break
	nr_wrong, nr = sum(wrong.values()), sum(wrong.values()) + sum(right.values())
	check(set(right) == set(want) and min(right.values()) >= at_least, lambda: "right: %s; wrong: %s" % (right, wrong))
	check(nr_wrong <= 0.01 * nr, lambda: "%d of %d samples have other labels: %s" % (nr_wrong, nr, wrong))
	check(report["account"]["labels_missed"] <= 0.01 * nr, lambda: "lost: %d" % report["account"]["labels_missed"])
	return report, "%d of %d samples, Go %d.%d" % (nr - nr_wrong, nr, *go_version())


def count_labels(samples, labels_of):
	found = collections.Counter()
	for sample in samples:
		found[labels_of(sample)] += int(sample["values"][0]["value"] if isinstance(sample["values"][0], dict) else sample["values"][0])
	return found


def check_go_shows(path, want):
	"""Checks that Go's pprof shows `want`: {labels: samples}. google/pprof sums each value of a key."""
	told = go("tool", "pprof", "-sample_index=samples", "-tags", path)
	check(told.code == 0, lambda: str(told))
	found, key = collections.Counter(), ""
	for line in told.out.splitlines():
		title, value = re.match(r" *(\S.*): Total ", line), re.match(r" *(\d+)(?:\.0)? \([ 0-9.]+%\): (.*)", line)
		if title:
			key = title.group(1)
		elif value:
			found[key, value.group(2)] += int(value.group(1))
	expected = collections.Counter()
	for labels, count in want.items():
		for key, value in labels:
			expected[key, str(value)] += count
	check(len(expected) > 10, lambda: str(want))
	check_equal({label: found[label] for label in expected}, dict(expected), "go tool pprof -tags:\n" + told.out)


@test
def in_profiles():
	report, text = sample_labels("labels", 20)
	want = count_labels(report["samples"], json_labels)
	check_go_shows(path_of("pb.gz"), want)
	with open(path_of("jsonl"), encoding="utf-8") as file:
		lines = [line for line in map(json.loads, file) if line["record"] == "sample"]
	check_equal(count_labels(lines, lambda line: tuple(sorted((label["key"], label.get("text", label.get("number"))) for label in line.get("labels", [])))), want, "jsonl")
	for ending in ("otlp", "pb.gz"):
		back = path_of("back.json")
		sonde("convert", path_of(ending), "-o", back, want=0)
		check_equal(count_labels(read_json(back)["samples"], json_labels), want, ending)
	return text


@test
def in_profiles_of_c():
	"""Labels are right in profiles of Go code called from C, too."""
	if not find_tool("gcc"):
		skip("no gcc")
	return sample_labels("labels_c", 50)[1]


run_tests()
