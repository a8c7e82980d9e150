#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde convert: files of other tools are read, each conversion from format to format keeps the stacks, and invalid files are refused with a line that
says what to do. Needs neither BPF nor privileges. SONDE_GOLDEN_UPDATE=1 rewrites the expected files."""
import collections
import glob
import gzip
import json
import os

from harness import ROOT, check, check_equal, run_tests, scratch, sonde, test

GOLDEN = os.path.join(ROOT, "tests", "golden", "import")
INPUTS = [path for path in sorted(glob.glob(os.path.join(GOLDEN, "*"))) if os.path.isfile(path) and not path.endswith(".md")]
MADE_UP = os.path.join(ROOT, "tests", "golden", "export", "profile.json")
BETWEEN = ("json", "pprof", "otlp", "otlp-json")


def folded(path, *options):
	"""Converts to the folded format, with a mark between the user's and the kernel's frames, and the kernel's frames marked: a frame on the
	wrong side is visible."""
	return sonde("convert", path, "--format", "folded", "-d", "-a", *options, want=0).out


def stacks(text):
	"""Lines of equal counts may be in any order."""
	return sorted(text.splitlines())


@test
def files_of_other_tools():
	check(len(INPUTS) >= 9, lambda: "too few inputs: %r" % INPUTS)
	for path in INPUTS:
		expected = os.path.join(GOLDEN, "expected", os.path.basename(path) + ".folded")
		out = folded(path)
		if os.environ.get("SONDE_GOLDEN_UPDATE"):
			with open(expected, "w", encoding="utf-8") as file:
				file.write(out)
		with open(expected, encoding="utf-8") as file:
			check_equal(stacks(out), stacks(file.read()), os.path.basename(path))


@test
def ways_between_formats():
	for path in [*INPUTS, MADE_UP]:
		shown = ("--value", "inuse_space") if "heap" in path else () # OTLP does not say which
		direct = stacks(folded(path, *shown))
		for name in BETWEEN:
			between = scratch("between." + name)
			sonde("convert", path, between, "--format", name, want=0)
			check_equal(stacks(folded(between, *shown)), direct, "%s by %s" % (os.path.basename(path), name))


def sides(path):
	"""Counts samples by (number of kernel frames, number of user frames); -1: no such stack."""
	as_json = scratch("sides.json")
	sonde("convert", path, as_json, want=0)
	with open(as_json, encoding="utf-8") as file:
		profile = json.load(file)
	found = collections.Counter()
	for sample in profile["samples"]:
		found[tuple(-1 if sample[side] is None else len(profile["stacks"][sample[side]]) for side in ("kernel_stack", "user_stack"))] += sample["values"][0]
	return found


@test
def sides_of_stacks():
	"""User and kernel frames stay apart, also for kernel threads, whose stacks have no mark between two sides, and for kernel frames without
	an address."""
	no_addresses = scratch("no-addresses.folded")
	with open(no_addresses, "w", encoding="utf-8") as file:
		file.write("sh;main;-;entry_[k];read_[k] 3\nkworker/0:1;kthread_[k];work_[k] 5\nsh;main 7\n")
	check_equal(dict(sides(no_addresses)), {(2, 1): 3, (2, -1): 5, (-1, 1): 7}, "sides of folded stacks")
	for path in (no_addresses, MADE_UP, os.path.join(GOLDEN, "perf-6.1.perf"), os.path.join(GOLDEN, "opentelemetry-proto.otlp.json")):
		direct = sides(path)
		check(any(kernel > 0 for kernel, _ in direct), lambda path=path: "%s has no kernel stack" % path)
		for name in BETWEEN:
			between, again = scratch("between." + name), scratch("again." + name)
			sonde("convert", path, between, "--format", name, want=0)
			sonde("convert", between, again, "--format", name, want=0)
			check_equal(sides(again), direct, "%s by %s twice" % (os.path.basename(path), name))


@test
def opentelemetry_in_both_encodings():
	"""Both encodings give the same profile: everything in it, not only the stacks."""
	texts = []
	for name in ("json", "pb"):
		as_json = scratch("one.json")
		sonde("convert", os.path.join(GOLDEN, "opentelemetry-proto.otlp." + name), as_json, want=0)
		with open(as_json, encoding="utf-8") as file:
			texts.append(file.read())
	check_equal(texts[0], texts[1], "JSON and protocol buffers")
	check_equal(sum(sample["values"][0] for sample in json.loads(texts[0])["samples"]), 17, "samples")


@test
def json_is_all_of_it():
	again = scratch("again.json")
	sonde("convert", MADE_UP, again, want=0)
	with open(MADE_UP, "rb") as a, open(again, "rb") as b:
		check(a.read() == b.read(), "JSON to JSON changes something")


@test
def pipes_and_several_outputs():
	with open(MADE_UP, "rb") as file:
		out = sonde("convert", "-", "-", "--format", "folded", "-d", "-a", stdin=file, want=0).out
	check_equal(out, folded(MADE_UP), "from a pipe")
	one, other, third = scratch("one.folded"), scratch("other.pb.gz"), scratch("third.html")
	sonde("convert", MADE_UP, one, "-o", other, "-o", third, want=0)
	check(all(os.path.getsize(path) > 100 for path in (one, other, third)), "an output is missing")
	values = sonde("convert", os.path.join(GOLDEN, "go-heap.pb.gz"), "--format", "folded", "-d", "-a", "--value", "alloc_objects", want=0).out
	check(values != folded(os.path.join(GOLDEN, "go-heap.pb.gz")), "--value changes nothing")


@test
def small_files_take_little():
	"""Input that a few bytes can make large is refused before it grows: a number of samples, packed zeros, an endless device."""
	many, bomb, out = scratch("many.folded"), scratch("bomb.gz"), scratch("out.perf")
	with open(many, "w", encoding="utf-8") as file:
		file.write("sh;main 99999999999\n" + "sh;main;work 1000000\n" * 9)
	with gzip.open(bomb, "wb", compresslevel=1) as file:
		for _ in range(300):
			file.write(bytes(1 << 20))
	for arguments, says in (((many, out), "too many samples"), ((bomb, out), "64 times"), (("/dev/zero", out), "no known format")):
		result = sonde("convert", *arguments)
		check(result.code == 1 and says in result.err, lambda result=result, says=says: "want %r: %s" % (says, result))
		check(not os.path.exists(out), "an output was left behind")


@test
def what_is_refused():
	gone, cut, bad, out = scratch("gone.pb.gz"), scratch("cut.pb.gz"), scratch("bad.pb"), scratch("out.folded")
	with open(os.path.join(GOLDEN, "go-cpu.pb.gz"), "rb") as file:
		packed = file.read()
	with open(cut, "wb") as file:
		file.write(packed[:-40])
	with open(bad, "wb") as file:
		file.write(gzip.decompress(packed)[:-3])
	for arguments, code, says in (
			((gone, out), 1, "No such file"), ((cut, out), 1, "cut off at byte"), ((bad, out, "--from", "pprof"), 1, "at byte"), ((MADE_UP, out, "--from", "pprof"), 1, "bad pprof"),
			((MADE_UP, out, "--from", "nonsense"), 2, "there are: pprof"), ((MADE_UP, scratch("x.nonsense")), 2, "--format"), ((), 2, "INPUT OUTPUT"),
			((MADE_UP, out, "-o", out), 2, "twice"), ((MADE_UP, out, "--value", "nonsense"), 2, "it has: samples"), ((MADE_UP, scratch("nowhere") + "/x.html"), 1, "cannot write"),
			(("/dev/null", out), 1, "empty")):
		result = sonde("convert", *arguments)
		check(result.code == code and says in result.err and len(result.err.splitlines()) == 1, lambda result=result, says=says: "want %r: %s" % (says, result))
		check(not os.path.exists(out), "an output was left behind")


run_tests()
