#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Triggers of every kind that this kernel has (src/collect/trigger.h), driven by tests/programs/trial.c. Each strike is counted and has exactly the
stack that the program says. Ticks at 10 kHz interrupt the triggers' programs, and their stacks are as right."""
import os
import re
import subprocess
import sys

from harness import SOURCES, Failure, build, check, need_bpf, run_tests, test
from trials import TRIAL, Report, check_hits, check_ticks, inside, ways_of

HZ, LEVELS = 10000, 3
TURNS = 6000
GETPPID = {"x86_64": 110, "aarch64": 173}[os.uname().machine]


def start(*argv):
	return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(process):
	out, err = process.communicate("\n", timeout=60)
	check(process.returncode == 0, lambda: "exit %d: %s%s" % (process.returncode, err, out[:1000]))
	return out


def read_until(process, word):
	for line in process.stdout:
		if line.startswith(word):
			return line
	raise Failure("it ended before it said %r: %s" % (word, process.stderr.read()))


def run_trial(triggers, levels):
	"""Returns the report, the ways that the program went with their counts, and its output about its semaphore."""
	need_bpf()
	path = build("hits")
	hits = start(path, str(TURNS))
	try:
		pid = int(read_until(hits, "pid").split()[1])
		read_until(hits, "ready")
		trial = start(TRIAL, str(pid), str(HZ), str(levels), *[trigger.format(path=path) for trigger in triggers])
		try:
			read_until(trial, "attached")
			out = end(hits)
			report = Report(end(trial))
		finally:
			trial.kill()
			trial.communicate()
	finally:
		hits.kill()
		hits.communicate()
	ways = ways_of(out)
	check(len(ways) == 5, lambda: out)
	return report, ways, int(re.search(r"^semaphore (\d+)$", out, re.MULTILINE).group(1))


def all_right(triggers, leaves, levels=LEVELS):
	report, ways, semaphore = run_trial(triggers, levels)
	for number, leaf in enumerate(leaves):
		check_hits(report, number, ways, leaf)
	return report, ways, semaphore


@test
def uprobe_under_ticks():
	report, ways, _ = all_right(["uprobe,{path},probed"], [""])
	return "%d hits, %s" % (sum(ways.values()), check_ticks(report, ways))


@test
def without_levels():
	"""A strike that finds no working memory is counted by name as lost, and does not damage memory in use."""
	report, ways, _ = all_right(["uprobe,{path},probed"], [""], levels=0)
	count = report.counters["tick"]
	check(count["no_scratch"] >= 20 and count["hits"] == count["recorded"] + count["filtered"] + count["no_scratch"], lambda: str(count))
	return "%d hits, %d of %d ticks found no memory" % (sum(ways.values()), count["no_scratch"], count["hits"])


@test
def uretprobe_under_ticks():
	report, ways, _ = all_right(["uretprobe,{path},probed"], ["-"])
	return "%d hits, %s" % (sum(ways.values()), check_ticks(report, ways))


@test
def usdt_with_semaphore():
	report, ways, semaphore = all_right(["usdt,{path},hits,point"], [""])
	check(semaphore == 1, "the semaphore was %d" % semaphore)
	return "%d hits, %s" % (sum(ways.values()), check_ticks(report, ways))


@test
def system_calls():
	report, ways, _ = all_right(["sys_enter,%d" % GETPPID, "sys_exit,%d" % GETPPID], ["syscall", "syscall"])
	return "%d hits, %s" % (sum(ways.values()), check_ticks(report, ways))


@test
def python_at_a_uprobe():
	"""The trigger's program continues with Python's frames at a call of the C library."""
	need_bpf()
	python = start(sys.executable, os.path.join(SOURCES, "hits.py"), str(TURNS))
	try:
		pid = int(read_until(python, "pid").split()[1])
		with open("/proc/%d/maps" % pid, encoding="ascii") as maps:
			libc = next(line.split()[-1] for line in maps if re.search(r"/libc[.-]", line))
		trial = start(TRIAL, str(pid), str(HZ), str(LEVELS), "uprobe,%s,getppid" % libc)
		try:
			read_until(trial, "attached")
			out = end(python)
			report = Report(end(trial))
		finally:
			trial.kill()
			trial.communicate()
	finally:
		python.kill()
		python.communicate()
	check("asked %d" % TURNS in out, out)
	count, seen = report.counters["hit0"], {}
	for stack in report.of("hit0"):
		told = tuple(frame.partition(" (")[0] for frame in stack.user if "hits.py" in frame)
		told += () if stack.user[-1] == "getppid" else ("[%s]" % stack.user[-1],)
		seen[told] = seen.get(told, 0) + stack.count
	check(seen == {("<module>", "main", "outer", "middle", "asks"): TURNS}, lambda: str(seen) + "\n".join(map(str, report.of("hit0")[:10])))
	check(count["hits"] == count["recorded"] == TURNS, lambda: str(count))
	return "%d hits, %d ticks, %d of them in the middle of the trigger's program" % (TURNS, report.counters["tick"]["recorded"], inside(report.of("tick")))


@test
def what_is_not_there():
	"""A missing target is refused, with the reason and what to do."""
	need_bpf()
	path = build("hits")
	asked = [("uprobe,%s,nothing" % path, "no uprobe 'nothing' in %s" % path), ("usdt,%s,hits,nothing" % path, "no USDT probe 'nothing' in"), ("tp_btf,nothing", "no tracepoint at 'nothing'")]
	if not os.path.exists("/sys/bus/event_source/devices/kprobe"):
		asked.append(("kprobe,do_exit", "no kprobes (CONFIG_KPROBES): ask for a tracepoint"))
	for trigger, words in asked:
		trial = start(TRIAL, str(os.getpid()), "0", "0", trigger)
		err = trial.communicate("\n", timeout=60)[1]
		check(trial.returncode == 1 and words in err, lambda: "%s: exit %d, %s" % (trigger, trial.returncode, err)) # pylint: disable=cell-var-from-loop


if __name__ == "__main__":
	run_tests()
