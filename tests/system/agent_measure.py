#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde agent --measure: windows of other kinds have their turns beside the CPU's, which have no gap; types stay apart in the store, for those who read it and for destinations."""
import json
import os
import re
import signal
import socket
import sqlite3
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from collectors import HttpCollector # noqa: E402
from harness import Background, Program, check, check_equal, converted, fresh_folder, need_bpf, run_tests, scratch, sonde, test # noqa: E402

NS = 10**9
TYPES = {"cpu": {"samples"}, "offcpu": {"waits", "blocked", "shortest", "longest"}, "wall": {"wall"}}


def agent(folder, measure, *args):
	return Background("agent", "--store", folder, "--window", 1, "-F", 97, "--measure", measure, *args)


def rows(folder):
	with sqlite3.connect(os.path.join(folder, "profiles.db")) as connection:
		return connection.execute("SELECT type, start_ns, end_ns FROM window ORDER BY id").fetchall()


def gaps(windows):
	"""In microseconds: whoever sets the clock right moves a window's start by some nanoseconds."""
	return [round((start - end) / 1000) for (_, end), (start, _) in zip(windows, windows[1:])]


def wait_until(what, found, seconds=90):
	"""A turn begins when its session has started, which takes seconds on a busy machine."""
	until = time.monotonic() + seconds
	while not found():
		check(time.monotonic() < until, "no %s within %d s" % (what, seconds))
		time.sleep(0.2)


def types_of(report):
	return {value["type"] for value in report["value_types"]}


@test
def kinds_have_turns_and_the_cpu_has_no_gap():
	need_bpf()
	folder = fresh_folder("turns")
	path = os.path.join(fresh_folder("listen"), "s")
	with Program("chain") as program, agent(folder, "cpu,cpu,offcpu,wall", "--listen", "unix:" + path).wait_line("Sampling") as running:
		wait_until("two windows off the CPU and one of all time", lambda: [kind for kind, _, _ in rows(folder)].count("offcpu") >= 2 and any(kind == "wall" for kind, _, _ in rows(folder)))
		time.sleep(1) # the numbers are a moment younger
		with socket.socket(socket.AF_UNIX) as connection:
			connection.connect(path)
			connection.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
			numbers = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
		status = json.loads(sonde("agent", "--status", "--format", "json", "--store", folder, want=0).out)
		text = sonde("agent", "--status", "--store", folder, want=0).out
		running.send(signal.SIGTERM)
		result = running.finish()
	of = {kind: [(start, end) for name, start, end in rows(folder) if name == kind] for kind in TYPES}
	check_equal(result.code, 0, "exit")
	check(len(of["cpu"]) >= 5, lambda: str({kind: len(windows) for kind, windows in of.items()}))
	check_equal(gaps(of["cpu"]), [0] * (len(of["cpu"]) - 1), "gaps between the CPU's windows, in microseconds")
	starts = [start for start, _ in of["offcpu"]]
	check(all((b - a) / NS > 3.8 for a, b in zip(starts, starts[1:])), lambda: "turns began %s" % starts)
	for kind in "offcpu", "wall":
		check(all(0.9 < (end - start) / NS < 3 for start, end in of[kind][:-1]), lambda: "%s windows are %s" % (kind, of[kind])) # pylint: disable=cell-var-from-loop
	for kind, windows in of.items():
		report = converted("%s@,%s" % (folder, kind))
		check_equal((types_of(report), int(report["account"]["duration_ns"])), (TYPES[kind], sum(end - start for start, end in windows)), "values and duration of %s" % kind)
		if kind != "offcpu": # it never waits
			check(any(sample["pid"] == program.pid for sample in report["samples"]), lambda: "the program is not in %s" % kind) # pylint: disable=cell-var-from-loop
	report = converted(folder)
	check_equal(types_of(report), TYPES["cpu"], "values without a type")
	result = sonde("show", folder + "@-1h", want=0)
	check("cpu profiles; of that time there is also: offcpu, wall" in result.err, lambda: str(result))
	for kind in "offcpu", "wall":
		stored = int(re.search(r'^sonde_windows_stored_total\{type="%s"\} (\d+)' % kind, numbers, re.M).group(1))
		check(0 < stored <= len(of[kind]), lambda: numbers) # pylint: disable=cell-var-from-loop
		check(int(re.search(r'^sonde_samples_recorded_total\{type="%s"\} (\d+)' % kind, numbers, re.M).group(1)) > 0, lambda: numbers)
		check(re.search(r"^%s: [1-9]\d* windows stored, 0 lost" % kind, text, re.M), lambda: text) # pylint: disable=cell-var-from-loop
	check_equal((status["windows"]["type"], [other["windows"]["type"] for other in status["others"]]), ("cpu", ["offcpu", "wall"]), "status")


@test
def one_kind_alone():
	"""It is the main one, and what is read without a type."""
	need_bpf()
	folder = fresh_folder("alone")
	with agent(folder, "offcpu", 4) as running:
		check_equal(running.finish().code, 0, "exit")
	windows = rows(folder)
	check_equal([kind for kind, _, _ in windows], ["offcpu"] * len(windows), "types")
	check_equal(gaps([times for _, *times in windows]), [0] * (len(windows) - 1), "gaps")
	check_equal(types_of(converted(folder)), TYPES["offcpu"], "values without a type")
	result = sonde("show", folder + "@,cpu", want=1)
	check("no cpu profile of the store" in result.err and "there is: offcpu" in result.err, lambda: str(result))
	result = sonde("diff", folder + "@,offcpu", folder + "@,offcpu", want=0)


@test
def what_is_no_list():
	for choice, want in ("cpu,offcpi", "did you mean offcpu?"), ("offcpu,wall", "has cpu in it"), ("cpu,", "there is no ''"), ("counters", "cpu, offcpu and wall"), (",".join(["cpu"] * 65), "64 windows at most"), ("x" * 1000, "there is no 'xxx"):
		result = sonde("agent", "--measure", choice, "--store", fresh_folder("list"), 1, want=2)
		check(want in result.err, lambda: str(result)) # pylint: disable=cell-var-from-loop
	folder = fresh_folder("types")
	with agent(folder, "cpu", 2) as running:
		running.finish()
	for times, want in ("@,", "is no type"), ("@-1h,%s" % ("x" * 100), "is no type"), ("@-1h,wal", "no wal profile of the store"), ("@..,cpu,", "no type|no cpu, profile"):
		result = sonde("show", folder + times, want=1)
		check(re.search(want, result.err), lambda: str(result)) # pylint: disable=cell-var-from-loop


@test
def destinations_get_the_type():
	"""OTLP: a profile for each type of value; Pyroscope: another series."""
	need_bpf()
	with HttpCollector() as otlp, HttpCollector() as pyroscope, Program("chain"):
		folder = fresh_folder("sent")
		with agent(folder, "cpu,offcpu", "--otlp", "http://" + otlp.address, "--pyroscope", "http://" + pyroscope.address).wait_line("Sampling") as running:
			wait_until("window off the CPU", lambda: any(kind == "offcpu" for kind, _, _ in rows(folder)))
			running.send(signal.SIGTERM)
			check_equal(running.finish().code, 0, "exit")
	kinds = []
	for number, (_, message) in enumerate(otlp.taken):
		path = scratch("message-%d" % number)
		with open(path, "wb") as file:
			file.write(message)
		kinds.append(frozenset(types_of(converted("--from", "otlp", path))))
	check_equal(set(kinds), {frozenset({"samples"}), frozenset({"waits", "blocked"})}, "types of values in OTLP")
	series = {re.search(rb"__name__\x12.(process_[a-z]+)", message).group(1).decode() for _, message in pyroscope.taken}
	check_equal(series, {"process_cpu", "process_offcpu"}, "series of Pyroscope")


run_tests()
