#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--events writes each switch and wake-up to a file. The references are a program's own log, the report of the same run, and the events themselves: a
thread that leaves a CPU has got one before."""
import json
import os
import signal
import sys
import time
from collections import Counter

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Background, Program, build, check, check_equal, fresh_folder, need_bpf, parse_chains, record, run_tests, scratch, sonde, test # noqa: E402


class Events:
	"""The file: .switches and .wakeups, each with threads as (tid, comm) or None, and waits and wakers as dictionaries whose stacks are
	lists of names, root to leaf."""

	def __init__(self, path):
		records = {"thread": {}, "wait": {}, "waker": {}, "stack": {}, "frame": {}}
		with open(path, encoding="utf-8") as file:
			self.head, *lines, self.end = [json.loads(line) for line in file]
		check_equal((self.head["record"], self.head["format"], self.head["version"], self.end["record"]), ("events", "sonde-events", 2, "end"), "head and end")
		events = [line for line in lines if "record" not in line]
		check_equal(lines[:len(events)], events, "events, then what their numbers stand for")
		for line in lines[len(events):]:
			check(line[line["record"]] not in records[line["record"]], lambda: "twice: %s" % line)
			records[line["record"]][line[line["record"]]] = line
		self.records = records
		names = {number: frame["name"] for number, frame in records["frame"].items()}
		stacks = {number: [names[frame] for frame in stack["frames"]][::-1] for number, stack in records["stack"].items()}
		threads = {None: None, **{number: (thread["tid"], thread["comm"]) for number, thread in records["thread"].items()}}
		causes = {kind: {None: None} for kind in ("wait", "waker")}
		for kind, known in causes.items():
			for number, cause in records[kind].items():
				known[number] = {**cause, "user": stacks.get(cause["user_stack"], []), "kernel": stacks.get(cause["kernel_stack"], [])}
				if kind == "waker":
					known[number]["thread"] = threads[cause["thread"]]
		self.switches = [{**event, "off": threads[event["off"]], "on": threads[event["on"]], "wait": causes["wait"][event["wait"]]} for event in events if "off" in event]
		self.wakeups = [{**event, "wake": threads[event["wake"]], "waker": causes["waker"][event["waker"]]} for event in events if "wake" in event]
		self.times = [event["time_ns"] for event in events]

	def off(self, tid):
		return [event for event in self.switches if event["off"] and event["off"][0] == tid]

	def off_ns(self):
		"""Returns by tid: the time from leaving a CPU to getting one."""
		since, total = {}, Counter()
		for event in self.switches:
			if event["on"] and event["on"][0] in since:
				total[event["on"][0]] += event["time_ns"] - since.pop(event["on"][0])
			if event["off"]:
				since[event["off"][0]] = event["time_ns"]
		return total


def record_events(verb, *args):
	"""Returns the events, the report, and how sonde ended."""
	path = scratch("events.jsonl")
	report, result = record(verb, "--events", path, *args)
	return Events(path), report, result


def told_by(text):
	"""Parses the output of tests/programs/shares.c: comm -> (tid, how often it slept)."""
	return {line.split()[1]: (int(line.split()[2]), int(line.split()[-1])) for line in text.splitlines() if line.startswith("time ")}


@test
def order_and_counts():
	"""Events are in order of time, as many as the end record says, and none is lost; each number has one meaning."""
	need_bpf()
	events, report, _ = record_events("offcpu", "--min", "0", "--", build("shares"), 2, "half", "lock", "pipe", "brief")
	check_equal(events.times, sorted(events.times), "times")
	check(0 <= events.times[0] and events.times[-1] <= events.end["time_ns"], "outside of the recording")
	check_equal((len(events.switches), len(events.wakeups), 0), (events.end["switches"], events.end["wakeups"], events.end["lost"]), "counts")
	check(abs(int(events.end["start_unix_ns"]) - int(report["account"]["start_unix_ns"])) < 1000, "start")
	used = {kind: set() for kind in events.records}
	for wait in [*events.records["wait"].values(), *events.records["waker"].values()]:
		used["stack"] |= {wait["user_stack"], wait["kernel_stack"]} - {None}
	for stack in events.records["stack"].values():
		used["frame"] |= set(stack["frames"])
	for kind in ("stack", "frame"):
		check_equal(set(events.records[kind]), used[kind], "%ss that are named" % kind)


@test
def as_the_program_says():
	"""A thread that sleeps N times leaves the CPU N times for it, with the stack of its sleep."""
	need_bpf()
	events, _, result = record_events("offcpu", "--", build("shares"), 2, "half", "lock")
	chain = parse_chains(result.out)["half"]
	tid, nr_rests = told_by(result.out)["half"]
	sleeps = [event for event in events.off(tid) if event["wait"]["kind"] == "sleep"]
	check(nr_rests > 10, lambda: "only %d" % nr_rests)
	check_equal(len(sleeps), nr_rests, "sleeps")
	wrong = [event["wait"]["user"] for event in sleeps if ";%s;" % ";".join(chain) not in ";".join(event["wait"]["user"])]
	check(not wrong, lambda: str(wrong[:3]))
	check(all(event["wait"]["state"] == 1 and event["off"][1] == "half" for event in sleeps), "state or name")
	gone = events.off(tid)[-1]
	check_equal(gone["wait"]["state"] & 0x80, 0x80, "the last state")


@test
def as_the_report_says():
	"""Each thread has as many waits as in the sums, and as long ones."""
	need_bpf()
	events, report, result = record_events("offcpu", "--min", "0", "--", build("shares"), 2, "half", "pipe")
	kinds = [kind["type"] for kind in report["value_types"]]
	times = events.off_ns()
	for tid, _ in told_by(result.out).values():
		waits, blocked = (sum(int(sample["values"][kinds.index(kind)]) for sample in report["samples"] if sample["tid"] == tid) for kind in ("waits", "blocked"))
		offs = [event for event in events.off(tid) if not event["wait"]["state"] & 0x80]
		check_equal(len(offs), waits, "waits of %d" % tid)
		check(abs(times[tid] - blocked) <= 0.1 * blocked, lambda: "thread %d: %d ns by the events, %d by the sums" % (tid, times[tid], blocked)) # a switch may be hidden: docs/internals/waiting.md


@test
def who_wakes():
	"""The main thread's unlock wakes the waiter for the mutex, and the stack shows where."""
	need_bpf()
	events, _, result = record_events("offcpu", "--", build("shares"), 1, "lock")
	tid, _ = told_by(result.out)["lock"]
	wakeups = [event for event in events.wakeups if event["wake"][0] == tid and event["waker"] and event["waker"]["thread"]]
	check(wakeups, "nobody woke it")
	last = wakeups[-1]["waker"]
	check_equal(last["thread"][1], "shares", "who")
	check("main" in last["user"] and "__x64_sys_futex" in last["kernel"], lambda: str(last))


@test
def a_place_of_their_own():
	"""The events and the report in one file, or both on standard output, could not be read: this is refused before anything is written."""
	path = scratch("both.json")
	for verb in ("offcpu", "wall"):
		for args, what in ((("--events", path, "-o", path), "both name '%s'" % path), (("--events", "-"), "-o FILE"), (("-f", "--events", "-", "-o", "-"), "both name '-'")):
			result = sonde(verb, *args, 1)
			check_equal((result.code, result.out), (2, ""), result)
			check(what in result.err, result)
	check(not os.path.exists(path), "a file was begun")


@test
def children_as_well():
	"""The events include what the command starts later, and its shell, which waits for it."""
	need_bpf()
	events, _, result = record_events("wall", "--", "/bin/sh", "-c", "sleep 0.2; %s 1 half; :" % build("shares"))
	tid, nr_rests = told_by(result.out)["half"]
	check_equal(len([event for event in events.off(tid) if event["wait"]["kind"] == "sleep"]), nr_rests, "sleeps")
	check([event for event in events.switches if event["off"] and event["off"][1] == "sh" and event["wait"]["kind"] == "children"], "no shell that waits")
	check([event for event in events.switches if event["off"] and event["off"][1] == "sleep" and event["wait"]["kind"] == "sleep"], "no sleep")


@test
def only_what_was_asked_for():
	"""With one process as the target, at each switch one of its threads leaves or gets the CPU."""
	need_bpf()
	with Program("shares", "half", "pipe") as program:
		tids = {int(tid) for tid in os.listdir("/proc/%d/task" % program.pid)}
		events, _, _ = record_events("wall", "-p", program.pid, 1)
	others = [event for event in events.switches if not tids & {thread[0] for thread in (event["off"], event["on"]) if thread}]
	check(not others, lambda: str(others[:3]))
	check(not [event for event in events.wakeups if event["wake"][0] not in tids], "another was woken up")
	check(len(events.switches) > 20, lambda: "only %d" % len(events.switches))


@test
def only_of_that_name():
	"""The kernel side examines all threads, because any thread may take that name; only events of threads with the name are written."""
	need_bpf()
	with Program("shares", "half", "pipe") as program:
		names = {}
		for tid in os.listdir("/proc/%d/task" % program.pid):
			with open("/proc/%d/task/%s/comm" % (program.pid, tid), encoding="utf-8") as file:
				names[file.read().strip()] = int(tid)
		events = {verb: record_events(verb, "-n", "half", 1)[0] for verb in ("wall", "offcpu")}
	for verb, found in events.items():
		check(len(found.off(names["half"])) > 5, "%s: few of its own" % verb)
		others = [event for event in found.switches if "half" not in {thread[1] for thread in (event["off"], event["on"]) if thread}]
		check(not others, lambda: "%s: %d of %d: %s" % (verb, len(others), len(found.switches), others[:3]))
		others = [event for event in found.wakeups if event["wake"][1] != "half"]
		check(not others, lambda: "%s: %d of %d: %s" % (verb, len(others), len(found.wakeups), others[:3]))


@test
def whole_or_not_at_all():
	"""A recording that is killed leaves no file; a file that cannot be written is refused at the start; a full disk loses the file, not the
	report."""
	need_bpf()
	folder = fresh_folder("whole")
	path = os.path.join(folder, "events")
	with Background("offcpu", "--events", path) as background:
		background.wait_line("Tracing")
		time.sleep(0.7)
		background.send(signal.SIGKILL)
		background.finish()
	check_equal(os.listdir(folder), [], "what a killed recording leaves")
	result = sonde("offcpu", "--events", os.path.join(folder, "missing", "events"), 1)
	check(result.code == 1 and "missing" in result.err and result.seconds < 30, lambda: str(result))
	report = os.path.join(folder, "report.json")
	result = sonde("offcpu", "--events", "/dev/full", "-o", report, 1)
	check(result.code == 1 and "/dev/full" in result.err and os.path.getsize(report) > 0, lambda: str(result))


run_tests()
