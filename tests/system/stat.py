#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde stat: counts of programs that do a known amount of work, alone and beside perf stat on the same command."""
import errno
import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import SONDE, Background, Program, build, check, check_equal, find_tool, fresh_folder, need_bpf, record, run, run_tests, scratch, skip, sonde, test # noqa: E402
from own_cgroups import OwnCgroups # noqa: E402

COUNTERS = os.environ.get("COUNTERS", os.path.join(os.path.dirname(SONDE), "tests", "system", "counters"))
PAGES, SLEEPS, CHILDREN = 5000, 40, 7
SOFTWARE = ["page-faults", "minor-faults", "major-faults", "context-switches", "task-clock", "cpu-clock"]


def counted(seconds=0, pages=0, sleeps=0, children=0, threads=0, cpu_ms=0):
	return [build("counted"), *map(str, (seconds, pages, sleeps, children, threads, cpu_ms))]


def report_of(*args, want=0, command=None):
	"""Returns the JSON of a run, through a file."""
	return record("stat", "--format", "json", *args, *(["--", *command] if command else []), want=want)[0]


def perf_values(events, command, *options):
	"""Returns {event: value} of perf stat."""
	perf = find_tool("perf") or skip("no perf")
	result = run([perf, "stat", "-x", ";", "-e", ",".join(events), *options, "--", *command])
	rows = [line.split(";") for line in result.err.splitlines() if ";" in line]
	return {row[2]: float(row[0]) for row in rows if not row[0].startswith("<")}


def near(a, b, share, room=0):
	return abs(a - b) <= share * max(abs(a), abs(b)) + room


# --- values -----------------------------------------------------------------------------------------------------------------------

@test
def knows_what_was_done():
	"""Counts page faults of touched pages, and sleeps; children's pages too."""
	report = report_of("-e", "page-faults,minor-faults,context-switches", command=counted(0, PAGES, SLEEPS, CHILDREN))
	faults = report["page_faults"] - PAGES * (CHILDREN + 1)
	check(0 <= faults <= 100 * (CHILDREN + 2), "%d faults besides those of the pages" % faults)
	check(report["context_switches"] >= SLEEPS + CHILDREN, "%(context_switches)d context switches" % report)
	check_equal(sorted(set(report) - {"events"}), sorted(["format", "version", "page_faults", "minor_page_faults", "context_switches", "time_enabled", "time_running", "duration_ns"]), "keys")
	for event in report["events"]:
		check(event["error"] is None and event["running_ns"] == event["enabled_ns"] > 0 and not event["scaled"], str(event))
	return "%d faults more" % faults


@test
def agrees_with_perf():
	command = counted(0, PAGES, SLEEPS, CHILDREN, 1, 100)
	theirs, report = perf_values(SOFTWARE, command), report_of("-e", ",".join(SOFTWARE), command=command)
	ours = {event["name"]: event["value"] for event in report["events"]}
	for name in ("page-faults", "minor-faults"):
		check(near(theirs[name], ours[name], 0.01), "%s: perf %s, sonde %s" % (name, theirs[name], ours[name]))
	check(near(theirs["major-faults"], ours["major-faults"], 0, 20), "major faults: %s, %s" % (theirs, ours))
	check(near(theirs["context-switches"], ours["context-switches"], 0.6, 30), "switches: %s, %s" % (theirs, ours)) # also switches that others force
	for name in ("task-clock", "cpu-clock"):
		check(ours[name] >= 100e6 and near(theirs[name], ours[name] / 1e6, 0.5), "%s: perf %s ms, sonde %s ns" % (name, theirs[name], ours[name]))
	return "%d and %d faults" % (theirs["page-faults"], ours["page-faults"])


@test
def without_inheriting():
	report = report_of("-i", "-e", "page-faults", command=counted(0, PAGES, 0, CHILDREN))
	check(PAGES <= report["page_faults"] <= PAGES + 500, str(report))


@test
def user_and_kernel():
	"""User and kernel are counted separately, also by event modifiers."""
	command = counted(0, PAGES)
	user, kernel = report_of("-U", "-e", "page-faults", command=command), report_of("-K", "-e", "page-faults", command=command)
	both = report_of("-e", "page-faults:u,page-faults:k,page-faults", command=command)
	check(user["page_faults"] >= PAGES > kernel["page_faults"], "%s %s" % (user, kernel))
	values = [event["value"] for event in both["events"]]
	check_equal(values[0] + values[1], values[2], "the parts and the whole")
	check_equal(both["page_faults"], values[0], "the first of a name")


@test
def tracepoints():
	"""Tracepoints work without a mounted tracefs."""
	need_bpf() # without the right to load programs, the kernel's events may not be counted
	report = report_of("-e", "sched:sched_process_fork,sched:sched_process_exec", command=counted(0, 1, 0, CHILDREN))
	values = {event["name"]: event["value"] for event in report["events"]}
	check(not any(event["error"] for event in report["events"]), lambda: report["events"])
	check_equal(values["sched:sched_process_fork"], CHILDREN, "forks")


def on_cpu_ns(pid, tid):
	"""Returns the CPU time of a thread as the kernel reports it."""
	with open("/proc/%d/task/%d/schedstat" % (pid, tid), encoding="ascii") as file:
		return int(file.read().split()[0])


@test
def processes():
	"""All threads of a running process, together and each alone, match the kernel's account, however little CPU the machine gives them."""
	with Program("counted", 0, 0, 0, 2, 600000, seconds=60) as program:
		tids = sorted(int(name) for name in os.listdir("/proc/%d/task" % program.pid))
		check_equal(len(tids), 3, "threads")
		shares = []
		for option, ids in [("-p", tids)] + [("-L", [tid]) for tid in tids]:
			before = sum(on_cpu_ns(program.pid, tid) for tid in ids)
			report = report_of(option, ids[0], "-e", "task-clock", "1")
			outer, ours = sum(on_cpu_ns(program.pid, tid) for tid in ids) - before, report.get("task_clock", 0)
			check(ours <= 1.05 * outer + 10e6 and ours >= 0.5 * outer - 60e6, "%s: %d ns, and the kernel says %d with what was before and after" % (option, ours, outer))
			shares.append(ours / 1e9)
			result = sonde("stat", "-p", program.pid, "-e", "task-clock", "-o", "-", "--", "sh", "-c", "sleep 1; exit 4", want=4) # as long as that
		match = re.search(r"([\d.]+) msec +task-clock", result.out)
		check(match and float(match.group(1)) > 20 and "PID %d while 'sh' ran" % program.pid in result.out, str(result))
	check(shares[1] < 0.01 and shares[0] > 0 and shares[2] + shares[3] > 0, str(shares)) # the first thread waits
	return "%.2f s of CPU time in 1 s" % shares[0]


@test
def cpus():
	"""Counts on the CPU to which the command is bound, and on others; CPU lists are written as for perf."""
	online = sorted(os.sched_getaffinity(0))
	if len(online) < 2:
		skip("one CPU")
	command = ["taskset", "-c", str(online[0]), *counted(0, PAGES, 0, 3)]
	here = report_of("-C", online[0], "-e", "page-faults", command=command)
	both = report_of("-C", "%d-%d" % (online[0], online[1]), "-e", "cpu-clock", command=["sleep", "0.5"])
	check(here["page_faults"] >= PAGES * 4, str(here))
	check(near(both["cpu_clock"], 2 * both["duration_ns"], 0.1), str(both))
	whole = report_of("-a", "-e", "page-faults,cpu-clock", command=counted(0, PAGES))
	check(whole["page_faults"] >= PAGES and near(whole["cpu_clock"], len(online) * whole["duration_ns"], 0.5, 20e6), str(whole))


@test
def cgroups():
	"""What runs in the cgroup or below it is counted, and nothing else; by path and by id."""
	own = OwnCgroups("below")
	command = ["sh", "-c", "echo $$ > %s/below/cgroup.procs; exec \"$0\" \"$@\"" % own.path, *counted(0, PAGES)]
	for name in (own.name, own.path, str(own.id("")), own.name + "/below", str(own.id("below"))):
		inside = report_of("-G", name, "-e", "page-faults", command=command)
		check(PAGES <= inside["page_faults"] <= PAGES + 500, "%s: %s" % (name, inside))
	outside = report_of("-G", own.id("below"), "-e", "page-faults", command=counted(0, PAGES))
	check(outside.get("page_faults", 0) == 0, str(outside))


@test
def intervals():
	"""The counts of all intervals add up to the total."""
	path = scratch("intervals.csv")
	sonde("stat", "-I", "50", "-x", ",", "-o", path, "-e", "page-faults,context-switches", "--", *counted(0, PAGES, 300), want=0)
	with open(path, encoding="utf-8") as file:
		rows = [line.rstrip("\n").split(",") for line in file]
	faults = sum(int(row[1]) for row in rows if row[3] == "page-faults" and not row[1].startswith("<"))
	times = [float(row[0]) for row in rows if row[3] == "page-faults"]
	check(len(times) >= 4 and times == sorted(times), str(rows[:4]))
	check(PAGES <= faults <= PAGES + 500, "%d faults" % faults)
	lines = sonde("stat", "-I", "100", "--format", "json", "-e", "cpu-clock", "1", want=0).out.splitlines()
	reports = [json.loads(line) for line in lines]
	check(8 <= len(reports) <= 12 and all(report["cpu_clock"] > 0 for report in reports), "%d lines" % len(lines))
	lasted = sum(report["duration_ns"] for report in reports)
	check(abs(lasted - reports[-1]["at_ns"]) < 1000 * len(reports), "the intervals are %d ns of %d" % (lasted, reports[-1]["at_ns"]))


@test
def repeats():
	"""The mean and its error are reported; if a run fails, its status is returned."""
	result = sonde("stat", "-r", "4", "-e", "page-faults", "--", *counted(0, PAGES), want=0)
	match = re.search(r"(\d+) +page-faults .*\(\+- +([\d.]+)%\)", result.err)
	check(match and "(4 runs)" in result.err and PAGES <= int(match.group(1)) <= PAGES + 500 and float(match.group(2)) < 5, str(result))
	report = report_of("-r", "3", "-e", "page-faults", command=counted(0, PAGES))
	check(report["nr_runs"] == report["events"][0]["nr_runs"] == 3 and PAGES <= report["page_faults"] <= PAGES + 500 and report["events"][0]["deviation_percent"] < 5, str(report))


# --- output -----------------------------------------------------------------------------------------------------------------------

@test
def columns_as_perf():
	"""The same fields are in the same columns as perf's; metrics have the same unit."""
	perf = find_tool("perf") or skip("no perf")
	events = "page-faults,task-clock,cycles"
	for options in ([], ["-r", "3"]):
		theirs = run([perf, "stat", *options, "-x", ";", "-e", events, "--", *counted(0, PAGES)]).err.splitlines()
		result = sonde("stat", *options, "-x", ";", "-e", events, "--", *counted(0, PAGES), want=0)
		ours = [line for line in result.err.splitlines() if not line.startswith("sonde: ")]
		check_equal(len(ours), 3, str(result))
		for a, b in zip(theirs, ours):
			a, b = a.split(";"), b.split(";")
			check(len(a) == len(b) and a[1:3] == b[1:3] and a[-1].lstrip("KMG") == b[-1].lstrip("KMG") and a[0].startswith("<") == b[0].startswith("<"), "%s is not like %s" % (b, a))


@test
def texts():
	"""A command's report goes to stderr, and its output stays separate; without a command the report goes to stdout; -o."""
	result = sonde("stat", "-e", "page-faults", "--", "echo", "hello", want=0)
	check_equal(result.out, "hello\n", "stdout")
	check("page-faults" in result.err and "seconds elapsed" in result.err and "seconds user" in result.err, str(result))
	result = sonde("stat", "-e", "page-faults", "-o", "-", "--", "true", want=0)
	check("page-faults" in result.out and not result.err, str(result))
	result = sonde("stat", "-e", "cpu-clock", "1", want=0)
	check(re.search(r"msec +cpu-clock +# +[\d.]+ CPUs utilized", result.out) and "the whole machine" in result.out and not result.err, str(result))
	result = sonde("stat", "-o", "/no/such/folder/file", "--", "true", want=1)
	check("/no/such/folder/file" in result.err, str(result))
	for options in ([], ["--format", "json"], ["-x", ","]): # a device that is always full
		result = sonde("stat", *options, "-o", "/dev/full", "--", "true", want=1)
		check("cannot write /dev/full: No space left" in result.err, str(result))


@test
def what_is_missing_is_told_once():
	"""What is missing is reported once, and the other events are counted."""
	report = report_of("-e", "page-faults,nothing:at_all,nopmu/x/", command=["true"])
	errors = {event["name"]: event["error"] for event in report["events"]}
	check("no PMU 'nopmu'" in errors["nopmu/x/"] and errors["nothing:at_all"] and errors["page-faults"] is None and report["page_faults"] > 0, str(report))
	check_equal([event["value"] for event in report["events"]][1:], [None, None], "values")
	result = sonde("stat", "-I", "100", "-e", "page-faults,nopmu/x/", "1", want=0)
	check_equal((result.err.count("nopmu"), result.out.count("nopmu")), (1, 0), str(result))
	result = sonde("stat", "-e", "page-faults,nopmu/x/", "--", "true", want=0)
	check_equal(result.err.count("no PMU 'nopmu'"), 1, str(result))
	result = sonde("stat", "-e", "nopmu/x/,nopmu/y/", "--", "echo", "not run", want=4)
	check(not result.out and result.err.count("no PMU") == 2, str(result))


@test
def whole_kinds():
	report = report_of("-e", "software", "-e", "hardware", "-e", "cache", command=["true"])
	check_equal(len(report["events"]), 9 + 10 + 32, "events")
	have = {"cpu_clock", "task_clock", "page_faults", "context_switches", "cpu_migrations", "minor_page_faults", "major_page_faults", "alignment_faults", "emulation_faults"}
	check(have <= set(report), "missing: %s" % (have - set(report)))
	for event in report["events"]:
		check((event["value"] is None) != (event["error"] is None), str(event))


@test
def ends():
	for arguments, code, text in (
			(["-e", "cycels", "--", "true"], 2, "no such event: 'cycels'"), (["-p", "4194303", "1"], 1, "no process 4194303"), (["--", "/no/such"], 127, "cannot run /no/such"), (["--", "/tmp"], 126, "cannot run /tmp"),
			(["-r", "2", "1"], 2, "-r is for a command"), (["-a", "-p", "1"], 2, "-a is everything"), (["-C", "x"], 2, "-C wants CPUs"), (["-C", "4095"], 2, "not online"),
			(["-G", "no-such-group", "1"], 1, "give a path below"), (["-G", "99999999999", "1"], 1, "no cgroup with the id"), (["-x", "", "1"], 2, "not empty"), (["-o", "a", "-o", "b", "1"], 2, "twice"),
			(["-e", "cs", "--", "sh", "-c", "exit 9"], 9, ""), (["-e", "cs", "--", "sh", "-c", "kill -9 $$"], 137, "")):
		result = sonde("stat", *arguments, want=code)
		check(text in result.err, "%s: %s" % (arguments, result))


@test
def signals_end_it():
	"""The command is ended, the report is written."""
	with Background("stat", "-e", "task-clock", "--", *counted(0, 0, 0, 0, 1, 60000)) as background:
		time.sleep(0.5)
		background.send(signal.SIGINT)
		result = background.finish()
	check("task-clock" in result.err and result.code == 0, str(result))
	with Background("stat", "-e", "cpu-clock") as background:
		time.sleep(0.5)
		background.send(signal.SIGTERM)
		result = background.finish()
	check("cpu-clock" in result.out and result.code == 0, str(result))


@test
def a_run_that_is_cut_is_none():
	"""The third of nine runs ends by Ctrl-C: the means are those of two."""
	log = fresh_folder("runs") + "/log"
	script = "echo x >> %s; [ $(wc -l < %s) = 3 ] || exec \"$0\" \"$@\"; kill -INT $PPID; exec sleep 60" % (log, log)
	result = sonde("stat", "-r", "9", "-e", "page-faults", "--", "sh", "-c", script, *counted(0, PAGES), want=0)
	match = re.search(r"(\d+) +page-faults .*\(\+- +([\d.]+)%\)", result.err)
	check("run 3 was cut short, and is left out" in result.err and "(2 runs)" in result.err, str(result))
	check(match and PAGES <= int(match.group(1)) <= PAGES + 1000 and float(match.group(2)) < 5, str(result))


@test
def commands_may_end_by_themselves():
	"""The terminal sends Ctrl-C to the command too: sonde counts what the command does then and returns its status. For a command that goes
	on, the use of CPU time is not known."""
	script = "trap 'echo my own end; exit 7' INT; kill -INT $PPID; sleep 0.1; kill -INT $$; exec sleep 60"
	result = sonde("stat", "-e", "page-faults", "--", "sh", "-c", script, want=7)
	check_equal(result.out, "my own end\n", str(result))
	check("seconds user" in result.err, str(result))
	for _ in range(20): # the stop may come before anybody has looked at the command
		sonde("stat", "-e", "page-faults", "--", "sh", "-c", "trap 'exit 7' INT; kill -INT $PPID; sleep 0.03; kill -INT $$; exec sleep 60", want=7)
	result = sonde("stat", "-e", "page-faults", "-o", "-", "--", "sh", "-c", "trap '' TERM INT; kill -INT $PPID; sleep 4", want=0)
	check(re.search(r"'sh' goes on, with the process id \d+", result.err) and "seconds elapsed" in result.out and "seconds user" not in result.out, str(result))


@test
def ends_with_what_is_counted():
	with subprocess.Popen(["sleep", "1"]) as process: # nobody waits for it meanwhile
		result = sonde("stat", "-p", process.pid, "-e", "cs", want=0, timeout=20)
	check("cs" in result.out, str(result))


@test
def users():
	"""A user who may not count the kernel counts user space, and a message says so."""
	setpriv = find_tool("setpriv") or skip("no setpriv")
	with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as file:
		level = int(file.read())
	if level != 2:
		skip("kernel.perf_event_paranoid is %d, not the usual 2" % level)
	program = scratch("sonde-of-all") # the build directory may be accessible to root only
	with open(SONDE, "rb") as source, open(program, "wb") as target:
		target.write(source.read())
	os.chmod(program, 0o755)
	user = [setpriv, "--reuid=65534", "--regid=65534", "--clear-groups", program]
	result = run([*user, "stat", "-e", "page-faults,task-clock", "--", "true"])
	check(result.code == 0 and "counting user space only" in result.err and re.search(r"\d+ +page-faults", result.err), str(result))
	result = run([*user, "stat", "-e", "page-faults,cs", "--", "true"]) # no 0 for what was not counted
	check(result.code == 0 and re.search(r"<not supported> +cs +# 'cs' happens in the kernel, and counting that is not permitted", result.err), str(result))
	for events in ("cs", "cs,migrations", "nopmu/x/,cs", "page-faults:k"): # nothing could be counted, and the reason is a missing privilege
		result = run([*user, "stat", "-e", events, "--", "echo", "not run"])
		check(result.code == 3 and not result.out and "perf_event_paranoid" in result.err and "CAP_PERFMON" in result.err and "user space" not in result.err, "%s: %s" % (events, result))
	result = run([*user, "stat", "-e", "page-faults", "1"])
	check(result.code == 3 and "perf_event_paranoid" in result.err and "CAP_PERFMON" in result.err and "user space" not in result.err, str(result))
	result = run([*user, "stat", "-p", "1", "1"])
	check(result.code == 3 and result.err.count("CAP_PERFMON") == 1 and re.search(r"so it is for [1-7] more", result.err), str(result))


# --- the library on this kernel -----------------------------------------------------------------------------------------------------

def values_of(*command):
	result = run(command)
	check(result.code == 0, lambda: "%s: %s" % (command, result))
	return {name: int(value) for name, _, value in (line.partition(" ") for line in result.out.splitlines())}


def library(what, event="task-clock", rounds=1):
	return values_of(COUNTERS, what, event, rounds, 100000)


@test
def library_counts():
	values = library("counts")
	check(values["value"] > 100000 and values["running"] == values["enabled"] and values["reset"] == 0 and values["result"] == 7, str(values))
	check(near(values["value"], values["once"], 0.7), str(values))


@test
def library_group():
	values = library("group")
	check(near(values["value0"], values["value2"], 0.2) and values["running0"] == values["running1"] == values["running2"], str(values))


@test
def library_overflows():
	"""There is about one overflow for each period of the count; at least half are in the loop."""
	values = library("overflows")
	check(values["lost"] == 0 and values["wait"] == 1 and values["again"] == 0, str(values))
	check(abs(values["events"] - values["value"]) <= values["value"] * 0.3 + 300000 and values["in_loop"] >= values["nr"] * 0.5, str(values))
	return "%(nr)d overflows, %(in_loop)d in the loop" % values


@test
def library_lost():
	"""A reader that looks once, at the end, gets the number of all records that found no room."""
	values = library("lost", "task-clock", 40)
	check(values["lost"] > 0 and values["nr"] > 0, str(values))
	expected = values["value"] / 100000
	check(abs(values["nr"] + values["lost"] - expected) <= expected * 0.3 + 3, "%s, %d periods" % (values, expected))
	return "%(nr)d overflows, %(lost)d lost" % values


@test
def library_bpf():
	values = library("bpf")
	check(values["nr"] >= 1 and abs(values["nr"] * 100000 - values["value"]) <= values["value"] * 0.3 + 300000, str(values))


@test
def library_probe():
	"""An event whose values are addresses: calls of a function."""
	path = "/sys/bus/event_source/devices/uprobe/type"
	if not os.path.exists(path):
		skip("this kernel has no uprobes")
	with open(path, encoding="ascii") as file:
		check_equal(library("probe", file.read().strip())["value"], 77, "calls")


@test
def library_session():
	"""A session that counts: intervals without a gap; the stop ends the last one."""
	values = values_of(os.path.join(os.path.dirname(COUNTERS), "count_session"), "task-clock", 5)
	check_equal((values["intervals"], values["falls"], values["gaps"], values["outputs"], values["names"]), (6, 0, 0, errno.EINVAL, errno.EINVAL), str(values))
	check(values["ns"] >= 5 * 50e6 and 0 < values["value"] <= 2 * values["ns"] * os.cpu_count(), str(values))
	return "%(value)d ns in %(ns)d" % values


@test
def library_threads():
	values = library("threads")
	check(all(values["own%d" % i] > 100000 for i in range(8)) and values["all"] >= sum(values["own%d" % i] for i in range(8)), str(values))


run_tests()
