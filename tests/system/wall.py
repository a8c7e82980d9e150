#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde wall: every nanosecond of each thread counts once. The references are the programs' own clocks."""
import collections
import json
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Background, Program, build, check, check_equal, entry_error, find_tool, load_json, need_bpf, record, run_tests, scratch, skip, sonde, test # noqa: E402
from own_cgroups import OwnCgroups # noqa: E402

PARTS = r"\[on-cpu\]|\[runnable\]|\[blocked: [a-z_ ]+\]"
NS = 1e9


class Wall:
	"""A profile of `sonde wall`: .rows: (tid, comm, part, user frames root to leaf, kernel frames, ns); .seconds: its duration."""

	def __init__(self, report):
		names = [report["functions"][frame["function"]]["name"] for frame in report["frames"]]
		self.account = report["account"]
		self.seconds = int(report["account"]["duration_ns"]) / NS
		self.rows = []
		check_equal([(kind["type"], kind["unit"]) for kind in report["value_types"]], [("wall", "nanoseconds")], "values")
		for sample in report["samples"]:
			user, kernel = ([] if sample[side] is None else [names[frame] for frame in report["stacks"][sample[side]]][::-1] for side in ("user_stack", "kernel_stack"))
			check(user and re.fullmatch(PARTS, user[0]), lambda: "the outermost frame says nothing: %s" % user)
			self.rows.append((sample["tid"], sample["comm"], user[0], user[1:], kernel, int(sample["values"][0])))

	def of(self, tid=None, part="", comm=None):
		"""Returns seconds of a thread, of the parts whose names begin with `part`."""
		return sum(row[5] for row in self.rows if tid in (None, row[0]) and row[2].startswith(part) and comm in (None, row[1])) / NS

	def dying(self, tid):
		"""Returns how long an exiting thread waited for a CPU, which its own report lacks: the thread that joins it may take its CPU."""
		return sum(row[5] for row in self.rows if row[0] == tid and row[2] == "[runnable]" and "do_exit" in row[4]) / NS

	def parts(self, tid):
		return {part: round(self.of(tid, part), 4) for part in sorted({row[2] for row in self.rows if row[0] == tid})}

	def tids(self):
		return {row[0] for row in self.rows}


class Life:
	"""What a thread reports of itself at its end, in seconds: at least and at most alive, in a run queue, in calls that wait, and on a CPU.
	Time on a CPU is the rest of its life by the clock. CPU time would be less: the kernel leaves out what a host stole meanwhile, which
	[on-cpu] includes."""

	def __init__(self, line):
		_, self.comm, tid, *times, turns, away, nr_rests = line.split()
		born, began, ended, joined, self.cpu, self.queued, self.away = (int(time) / NS for time in [*times, away])
		self.nr_turns, self.nr_rests = int(turns), int(nr_rests)
		self.tid, self.least, self.most = int(tid), ended - began, joined - born
		self.running = self.least - self.queued - self.away
		self.unsaid = self.most - self.least # until it began, and on its way out


def record_wall(*args):
	report, result = record("wall", *args)
	return Wall(report), result


def near(got, want, share, slack=0.0):
	return abs(got - want) <= want * share + slack


def lives(text):
	return [Life(line) for line in text.splitlines() if line.startswith("time ")]


def threads_of(pid):
	return [int(tid) for tid in os.listdir("/proc/%d/task" % pid)]


@test
def total_is_threads_times_elapsed():
	"""Threads live all the time: whatever they do, each one's time is the duration of the recording."""
	need_bpf()
	folded = scratch("wall.folded")
	with Program("shares", "spin", "half", "sleep", "lock", "pipe") as program:
		tids = threads_of(program.pid)
		wall, _ = record_wall("-o", folded, "-p", program.pid, 2)
	check_equal(wall.tids(), set(tids), "threads")
	with open(folded, encoding="utf-8") as file:
		lines_us = [int(line.rsplit(" ", 1)[1]) for line in file]
	check(near(sum(lines_us) / 1e6, wall.of(), 0, len(lines_us) / 1e6), lambda: "%d us folded of %f s" % (sum(lines_us), wall.of()))
	check(near(wall.of(), len(tids) * wall.seconds, 0.005), lambda: "%f s of %d threads in %f s" % (wall.of(), len(tids), wall.seconds))
	for tid in tids:
		check(near(wall.of(tid), wall.seconds, 0.005), lambda: "thread %d: %f s of %f: %s" % (tid, wall.of(tid), wall.seconds, wall.parts(tid)))


KINDS = {"half": "[blocked: sleep]", "sleep": "[blocked: sleep]", "lock": "[blocked: futex]", "pipe": "[blocked: pipe]"}
OF_A_CALL = 0.0001 # the CPU time of a call that waits
OF_A_TURN = 0.00002 # from when the scheduler reads its clock, in the interrupt that preempts a thread, to its event: 3 to 8 us each, averaged over some hundred


@test
def what_the_time_was():
	"""From the start of a command to its end, each thread's life and its parts are what the thread reports."""
	need_bpf()
	wall, result = record_wall("-F", 499, "--", build("shares"), 2, "spin", "half", "sleep", "lock", "pipe")
	seen = {life.comm: life for life in lives(result.out)}
	check_equal(set(seen), {"spin", *KINDS}, "threads that told of themselves")
	for life in seen.values():
		told = lambda life=life: "%s lived %f to %f s, %f s of it on a CPU (CPU time %f), %f queued, %f in calls that wait: %s" % ( # noqa: E731
			life.comm, life.least, life.most, life.running, life.cpu, life.queued, life.away, wall.parts(life.tid))
		total, slack = wall.of(life.tid), 0.002 + OF_A_CALL * life.nr_rests + OF_A_TURN * life.nr_turns
		dying = wall.dying(life.tid)
		check(life.least * 0.995 <= total <= life.most * 1.005 + dying, lambda: "%f s in all; %s" % (total, told()))
		parts = [("[on-cpu]", life.running, slack), ("[runnable]", life.queued, slack + life.unsaid + dying)]
		for part, seconds, more in [*parts, (KINDS[life.comm], life.away, slack + life.unsaid)] if life.comm in KINDS else parts:
			got = wall.of(life.tid, part)
			check(seconds * 0.995 - slack <= got <= seconds * 1.005 + more, lambda: "%f s %s, %f s on its way out; %s" % (got, part, dying, told())) # pylint: disable=cell-var-from-loop


def chain_error(row, chain):
	"""Returns why the row's user stack is not the chain plus what libc calls below it, or None."""
	user = row[3]
	if chain[0] not in user:
		return "%s is missing in %s" % (chain[0], user)
	at = user.index(chain[0])
	if user[at:at + len(chain)] != chain:
		return "%s is not %s" % (user[at:], chain)
	return entry_error(user[:at], False)


@test
def stacks_of_all_parts():
	"""On a CPU or blocked, seen from its beginning or with an initial stack, the stack is the thread's chain."""
	need_bpf()
	with Program("shares", "spin", "sleep", "lock", "pipe") as program:
		wall, _ = record_wall("-F", 499, "-p", program.pid, 2)
	with Program("shares", "half") as other:
		half, _ = record_wall("-F", 499, "-p", other.pid, 1)
	wall.rows += half.rows
	program.chains |= other.chains
	for comm, part in (("spin", "[on-cpu]"), *KINDS.items()):
		rows = [row for row in wall.rows if row[1] == comm and row[2] == part]
		wrong = [(error, row[5]) for row in rows for error in [chain_error(row, program.chains[comm])] if error]
		check(rows, lambda: "no %s of %s" % (part, comm))
		check(sum(ns for _, ns in wrong) <= 0.01 * sum(row[5] for row in rows), lambda: "%s: %s" % (comm, wrong[:3]))


def colour_error(user):
	"""Returns what is wrong with a stack of tests/programs/swaps.c, or None. A mark at its root end says that the stack is incomplete."""
	colours = {frame.split("_")[0] for frame in user if frame.startswith(("red", "blue"))}
	if user[0].startswith("["):
		return None
	return "of both colours" if len(colours) > 1 else None


@test
def right_or_marked_from_the_first_wait_on():
	"""Threads keep running while the stacks of waiting threads are read: no stack mixes the contents of different times."""
	need_bpf()
	with Program("swaps", 200) as program:
		nr_seen = 0
		for _ in range(3):
			wall, _ = record_wall("-p", program.pid, 1)
			wrong = [row[3] for row in wall.rows if row[3] and colour_error(row[3])]
			check(not wrong, lambda: "%d: %s" % (len(wrong), wrong[:3]))
			nr_seen += sum(row[2] == "[blocked: sleep]" and row[3][-1] != "[stack not readable]" for row in wall.rows)
	check(nr_seen > 100, lambda: "only %d stacks" % nr_seen)


@test
def two_on_one_cpu():
	"""A spinning thread always runs or is runnable. Two of them share a CPU: while one runs, the other waits."""
	need_bpf()
	if not find_tool("taskset"):
		skip("no taskset")
	cpu = str(min(os.sched_getaffinity(0)))
	with Program("shares", "spin", "spin", path=["taskset", "-c", cpu, build("shares")]) as program:
		wall, _ = record_wall("-p", program.pid, 3)
	tids = sorted({row[0] for row in wall.rows if row[1] == "spin"})
	check_equal(len(tids), 2, "threads")
	both = {part: sum(wall.of(tid, part) for tid in tids) for part in ("[on-cpu]", "[runnable]", "[blocked")}
	check(both["[on-cpu]"] + both["[runnable]"] >= 0.99 * sum(wall.of(tid) for tid in tids), lambda: str(both))
	check(both["[on-cpu]"] <= wall.seconds * 1.005, lambda: "more than one CPU has: %s" % both)
	check(both["[runnable]"] >= 0.495 * sum(wall.of(tid) for tid in tids), lambda: str(both))
	first, second = (wall.of(tid, "[on-cpu]") for tid in tids)
	check(0.6 < first / second < 1.6, lambda: "%f and %f s" % (first, second))


@test
def born_and_dead_meanwhile():
	"""Threads that live 10 ms count for their lives, each of them."""
	need_bpf()
	wall, result = record_wall("--", build("shares"), 2, "brief")
	mayflies = [life for life in lives(result.out) if life.comm == "mayfly"]
	check(len(mayflies) > 20, lambda: "only %d" % len(mayflies))
	least, most, running = (sum(getattr(life, name) for life in mayflies) for name in ("least", "most", "running"))
	total = sum(wall.of(life.tid) - wall.dying(life.tid) for life in mayflies)
	told = lambda: "%d threads lived %f to %f s, %f s of it on a CPU; %f s in all, %f s on a CPU" % ( # noqa: E731
		len(mayflies), least, most, running, total, sum(wall.of(life.tid, "[on-cpu]") for life in mayflies))
	check(least * 0.995 <= total <= most * 1.005, told)
	# A thread's own clock does not have its birth and its death, which its parent's has: all that may be on a CPU, too.
	check(near(sum(wall.of(life.tid, "[on-cpu]") for life in mayflies), running, 0.02, 0.0002 * len(mayflies) + most - least), told)
	missing = [life.tid for life in mayflies if not wall.of(life.tid)]
	check(not missing, lambda: "nothing of %d of %d threads" % (len(missing), len(mayflies)))


@test
def a_command_begins_with_its_exec():
	"""Nothing of the command is recorded under the parent's name, nor is the parent's wait before it; everything of the command is under its
	own name."""
	need_bpf()
	for verb in ("wall", "offcpu", "profile"):
		path = scratch("command.jsonl")
		result = sonde(verb, "-o", path, "--", build("shares"), 1, "half")
		life = next(life for life in lives(result.out) if life.comm == "half")
		with open(path, encoding="utf-8") as file:
			samples = [line for line in map(json.loads, file) if line["record"] == "sample"]
		names = collections.Counter()
		for sample in samples:
			names[sample["comm"]] += int(sample["values"][-1 if verb == "wall" else 0]["value"])
			frames = {frame["name"] for frame in sample["stack"]}
			check(not frames & {"[blocked: socket]", "[socket]", "run_child"}, lambda: "%s: %s" % (verb, sample)) # pylint: disable=cell-var-from-loop
		check_equal(set(names) - {"shares", "half"}, set(), "names in %s, beside the program's" % verb)
		check(names["half"] > 0, lambda: "%s: %s" % (verb, names)) # pylint: disable=cell-var-from-loop
		if verb == "wall": # the first thread waits for the other
			check(names["shares"] >= life.least * 0.99 * NS and names["half"] >= life.least * 0.99 * NS, lambda: "%s, it lived %f s" % (names, life.least)) # pylint: disable=cell-var-from-loop


@test
def a_program_that_is_replaced():
	"""exec: one thread under two names, and both its lives count."""
	need_bpf()
	wall, _ = record_wall("--", "/bin/sh", "-c", "sleep 0.4; exec sleep 0.6")
	main = [tid for tid in wall.tids() if wall.of(tid, comm="sh") and wall.of(tid, comm="sleep")]
	tid = max(main, key=wall.of)
	check(1.0 <= wall.of(tid) <= wall.seconds, lambda: "%f of %f s: %s" % (wall.of(tid), wall.seconds, wall.parts(tid)))
	check(wall.of(tid, "[blocked: children]", "sh") > 0.38, lambda: str(wall.parts(tid)))
	check(wall.of(tid, "[blocked: sleep]", "sleep") > 0.58, lambda: str(wall.parts(tid)))


@test
def only_what_was_asked_for():
	"""-L: one thread; -n: the threads of a name."""
	need_bpf()
	with Program("shares", "sleep", "lock", "pipe") as program:
		whole, _ = record_wall("-p", program.pid, 1)
		tid = next(row[0] for row in whole.rows if row[1] == "lock")
		one, _ = record_wall("-L", tid, 1)
		named, _ = record_wall("-n", "pipe", "-p", program.pid, 1)
	check_equal(one.tids(), {tid}, "threads of -L")
	check(near(one.of(), one.seconds, 0.005), lambda: "%f of %f s" % (one.of(), one.seconds))
	check_equal({row[1] for row in named.rows}, {"pipe"}, "names of -n")
	check(near(named.of(), named.seconds, 0.005), lambda: "%f of %f s" % (named.of(), named.seconds))


@test
def of_a_cgroup():
	"""-G: all threads in the cgroup, and no others."""
	need_bpf()
	own = OwnCgroups("in")
	with Program("shares", "spin", "half", "lock") as program, Program("shares", "half"):
		own.move(program.pid, "in")
		tids = set(threads_of(program.pid))
		wall, _ = record_wall("-G", own.path + "/in", 2)
	check(wall.tids() == tids, lambda: str([row for row in wall.rows if row[0] not in tids]))
	check(near(wall.of(), len(tids) * wall.seconds, 0.005), lambda: "%f of %d x %f s" % (wall.of(), len(tids), wall.seconds))


@test
def whole_machine():
	"""For all threads, including the kernel's: none has more time than the recording, and sonde's own threads are left out."""
	need_bpf()
	with Program("shares", "sleep") as program:
		path = scratch("machine.json")
		with Background("wall", "-o", path, 2) as background:
			background.wait_line("Measuring")
			own = background.process.pid
			result = background.finish()
		check_equal(result.code, 0, "exit code")
		wall = Wall(load_json(path))
	check(program.pid in wall.tids(), "the program is missing")
	check(own not in wall.tids(), "our own time is among it")
	most = max(wall.tids(), key=wall.of)
	check(wall.of(most) <= wall.seconds * 1.001, lambda: "thread %d: %f of %f s: %s" % (most, wall.of(most), wall.seconds, wall.parts(most)))
	kernel = [row for row in wall.rows if not row[3] and row[4] and row[2].startswith("[blocked")]
	check(kernel, "no thread of the kernel")


@test
def sides():
	"""-U: no kernel frames. -K: no user frames except the one that names the part. The total stays."""
	need_bpf()
	with Program("shares", "half", "lock") as program:
		user, _ = record_wall("-U", "-p", program.pid, 1)
		kernel, _ = record_wall("-K", "-p", program.pid, 1)
		nr = len(threads_of(program.pid))
	for wall in (user, kernel):
		check(near(wall.of(), nr * wall.seconds, 0.005), lambda: "%f of %d x %f s" % (wall.of(), nr, wall.seconds))
	check(not any(row[4] for row in user.rows) and any(row[3] for row in user.rows), "-U")
	check(any(row[4] for row in kernel.rows) and not [row for row in kernel.rows if row[3] and row[3] != ["[not sampled]"]], "-K")


@test
def stopped_by_hand():
	"""Ctrl-C: the report has what was measured until then."""
	need_bpf()
	with Program("shares", "sleep") as program:
		path = scratch("stopped.json")
		with Background("wall", "-o", path, "-p", program.pid) as background:
			background.wait_line("Hit Ctrl-C")
			time.sleep(0.7)
			background.send(signal.SIGINT)
			check_equal(background.finish().code, 0, "exit code")
	wall = Wall(load_json(path))
	check(near(wall.of(), 2 * wall.seconds, 0.005), lambda: "%f of 2 x %f s" % (wall.of(), wall.seconds))


run_tests()
