#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde offcpu against programs that report how long they waited, and where (tests/programs/waits.c)."""
import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import (Background, Program, build, check, check_equal, clip, entry_error, find_tool, load_json, need_bpf, record, run, run_tests, scratch, skip, # noqa: E402
	sonde, test)

WAITS, BLOCKED, SHORTEST, LONGEST = range(4)
SYS_BPF = {"x86_64": 321}.get(os.uname().machine, 280)
BPF_ENABLE_STATS = 32


class Sample:
	"""A sample of a report: frames root to leaf; the mark at the leaf end is the kind of wait."""

	def __init__(self, report, names, sample):
		def frames_of(stack):
			return [] if stack is None else [names[frame] for frame in report["stacks"][stack]][::-1]
		self.comm, self.pid, self.tid, self.values = sample["comm"], sample["pid"], sample["tid"], sample["values"]
		self.user, self.kernel = frames_of(sample["user_stack"]), frames_of(sample["kernel_stack"])

	def kind(self):
		leaf = (self.kernel or self.user or [""])[-1]
		return leaf[1:-1] if leaf.startswith("[") else None

	def __str__(self):
		return "%s/%d %s | %s: %s" % (self.comm, self.tid, ";".join(self.user), ";".join(self.kernel), self.values)


class Report:
	def __init__(self, report):
		self.json = report
		names = [self.json["functions"][frame["function"]]["name"] for frame in self.json["frames"]]
		self.samples = [Sample(self.json, names, sample) for sample in self.json["samples"]]
		self.waits = self.json["account"]["waits"]

	def of(self, tid=None, comm=None, function=None, kind=None):
		return [sample for sample in self.samples if (tid is None or sample.tid == tid) and (comm is None or sample.comm == comm) and
			(function is None or function in sample.user) and (kind is None or sample.kind() == kind)]


def blocked(samples):
	return sum(sample.values[BLOCKED] for sample in samples)


def listed(samples):
	return "\n".join(map(str, samples)) or "(none)"

DEPTH = 15 # of paths: 2^15 stacks; the kernel side remembers half as many
ROOM = 512 # for sums, in more_different_waits_than_room: four for each stack


class Log:
	"""A line that a program reports about itself."""

	def __init__(self, line):
		_, tid, self.comm, self.function, ns, nr = line.split()
		self.tid, self.ns, self.nr = int(tid), int(ns), int(nr)


def parse_logs(text):
	return [Log(line) for line in text.splitlines() if line.startswith("log ")]


def record_waits(*args, want=0):
	"""Returns the report of sonde offcpu, and how it ended."""
	report, result = record("offcpu", *args, want=want)
	return Report(report), result


def watch(options, *what, program="waits", want=0):
	"""Runs sonde offcpu with the program. Returns the report, the program's log, and how sonde ended."""
	need_bpf()
	report, result = record_waits(*options, "--", build(program), *what, want=want)
	return report, parse_logs(result.out), result


def check_log(report, log, function=None, kind=None, percent=1.0):
	"""The thread's blocked time in that function matches the log."""
	samples = report.of(log.tid, log.comm, function, kind)
	early = [sample for sample in report.of(log.tid, log.comm) if sample.user[:1] == ["[process not known yet]"]] # the first stacks of a program: the thread and the duration are known
	samples += [sample for sample in early if sample not in samples][:2]
	off = abs(blocked(samples) - log.ns)
	check(off <= log.ns * percent / 100 + 200e3, lambda: "%s/%d in %s: %.3f ms, the log has %.3f ms\n%s" % (log.comm, log.tid, function or kind, blocked(samples) / 1e6,
		log.ns / 1e6, listed(report.of(log.tid))))
	return samples


PING_PONG = """
import os, time
(a, b), (c, d), end = os.pipe(), os.pipe(), time.monotonic() + 4
child = os.fork()
while time.monotonic() < end:
	os.write(d if child else b, b".")
	os.read(a if child else c, 1)
os.write(d if child else b, b".")
if child:
	os.wait()
os._exit(0)
"""


@contextlib.contextmanager
def bpf_stats():
	"""Makes the kernel measure the time of BPF programs."""
	fd = ctypes.CDLL(None, use_errno=True).syscall(SYS_BPF, BPF_ENABLE_STATS, (ctypes.c_uint32 * 2)(), 8)
	check(fd >= 0, lambda: "BPF_ENABLE_STATS: %s" % os.strerror(ctypes.get_errno()))
	try:
		yield
	finally:
		os.close(fd)


# --- the reference case ---------------------------------------------------------------------------------------------------------------

def chain_error(sample, *own):
	"""Returns why the user stack is not that of a thread with these own functions below libc's frames, or None."""
	at = sample.user.index(own[0]) if own[0] in sample.user else -1
	if at < 0 or tuple(sample.user[at:at + len(own)]) != own:
		return "not %s" % ";".join(own)
	return entry_error(sample.user[:at], main_thread=False)


@test
def a_producer_that_waits_for_a_consumer():
	"""The time of the sleep and of the wait for the lock is shared 80 to 20, as the program's own clock says. The build has no frame
	pointers; the stacks are complete."""
	report, (naps, locks), _ = watch(["--threads"], "handover", 15)
	sleep = check_log(report, naps, "nap")
	lock = check_log(report, locks, "take")
	share, want = blocked(sleep) / (blocked(sleep) + blocked(lock)), naps.ns / (naps.ns + locks.ns)
	check(abs(share - want) <= 0.01, lambda: "%.2f %% of the time asleep, the log says %.2f %%" % (100 * share, 100 * want))
	for samples, kind, functions in ((sleep, "sleep", ("producer", "produce", "nap", "clock_nanosleep")), (lock, "futex", ("producer", "produce", "take", "pthread_mutex_lock"))):
		waited = [sample for sample in samples if sample.kind() not in ("preempted", "page fault")]
		check_equal({sample.kind() for sample in waited}, {kind}, listed(waited))
		wrong = [sample for sample in waited if chain_error(sample, *functions)]
		check(blocked(wrong) <= blocked(waited) / 100, lambda: "%s\n%s" % (chain_error(wrong[0], *functions), listed(wrong)))
	return "%.1f %% asleep, by the log %.1f %%" % (100 * share, 100 * want)


@test
def who_gave_the_lock_away():
	"""--wake shows the consumer's unlock in the folded form of offwaketime: the stack of the wait, --, the waker's stack from leaf to root,
	the waker's name."""
	need_bpf()
	path = scratch("wake.folded")
	sonde("offcpu", "--wake", "-o", path, "--", build("waits"), "handover", 10, want=0)
	with open(path, encoding="utf-8") as file:
		lines = [line.rsplit(" ", 1) for line in file.read().splitlines()]
	takes = [(frames.split(";"), int(us)) for frames, us in lines if ";take;" in frames and "[preempted]" not in frames]
	check(takes, lambda: clip("\n".join(frames for frames, _ in lines)))
	right = 0
	for frames, us in takes:
		check_equal(frames.count("--"), 1, frames)
		wait, waker = frames[:frames.index("--")], frames[frames.index("--") + 1:]
		check(wait[0] == "producer" and wait[-1] == "[futex]", ";".join(wait))
		own = [frame for frame in waker if frame in ("release", "consume", "consumer")]
		if own == ["release", "consume", "consumer", "consumer"] and waker[-1] == "consumer": # function, function, thread function, thread name
			right += us
	text = sonde("offcpu", "--wake", "-U", "--", build("waits"), "handover", 5, want=0).out
	entries = [entry.splitlines() for entry in text.split("\n\n") if "    take\n" in entry and "[futex]" in entry and "waker:" in entry]
	check(entries and entries[-1][0].split() == ["waker:", "consumer"] and "    release" in entries[-1][:entries[-1].index("    --")], lambda: clip(text))
	check(right >= 0.9 * sum(us for _, us in takes), lambda: "\n".join("%s %d" % (";".join(frames), us) for frames, us in takes))


@test
def a_wait_in_vfork():
	"""glibc's vfork keeps its return address in a register while its child runs in its memory. The caller is shown all the same."""
	report, _, _ = watch([], 1, "vfork", program="forks")
	samples = report.of(kind="vfork")
	check(samples and sum(sample.values[WAITS] for sample in samples) >= 2, lambda: listed(report.samples))
	whole = [sample for sample in samples if sample.user[0] == "_start" and sample.user[-3:-1] == ["main", "parent"] and sample.user[-1].endswith("vfork")]
	check(blocked(whole) >= 0.9 * blocked(samples), lambda: listed(samples)) # the first one may be read before the program's tables are ready, and may then be truncated


@test
def a_program_that_replaces_an_interpreter():
	"""During the exec the process has no user stack: nobody looks for the interpreter's frames."""
	need_bpf()
	work = "import os\nfor i in range(400):\n\tpid = os.fork()\n\tif not pid: os.execv('/bin/true', ['true'])\n\tos.waitpid(pid, 0)"
	report, _ = record_waits("--min", 0, "--", sys.executable, "-c", work)
	replaced = [sample for sample in report.samples if "[exec]" in sample.user]
	check(sum(sample.values[WAITS] for sample in replaced) >= 20, lambda: "hardly any thread left the CPU in exec: %d of %d stacks" % (len(replaced), len(report.samples)))
	check_equal([str(sample) for sample in replaced if len(sample.user) > 1], [], "stacks in exec with more than that")


@test
def while_the_kernel_takes_the_time_of_programs():
	"""Anybody can enable this accounting. The kernel then calls our program at another address. The stacks are the same, and stacks known
	without a walk are right."""
	need_bpf()
	path = scratch("timed.json")
	with Background("offcpu", "-o", path, "--", sys.executable, "-c", PING_PONG) as background:
		while background.process.poll() is None:
			with bpf_stats():
				time.sleep(0.1)
			time.sleep(0.1)
		check_equal(background.finish().code, 0, "exit code")
	waits = Report(load_json(path)).waits
	check(waits["stack_cache_checks"] >= 10, lambda: "only %d waits were checked" % waits["stack_cache_checks"])
	check_equal(waits["stack_cache_wrong"], 0, waits)
	return "%d checked" % waits["stack_cache_checks"]


# --- blocked time matches the program's log ----------------------------------------------------------------------------------------------------

@test
def a_crowd():
	"""120 threads sleep, wait for pipes and wait for locks, with their partners. The blocked time of each matches its own log."""
	report, logs, _ = watch(["--threads"], "crowd", 120, 25)
	check_equal(len(logs), 120, "threads that said what they did")
	kinds = {"nap": "sleep", "hear": "pipe", "take": "futex"}
	for log in logs:
		samples = check_log(report, log, log.function, percent=3.0) # a thread's log has its waits for a CPU, too: the host took 12 to 16 % of the time once
		waited = [sample for sample in samples if sample.kind() not in ("preempted", "yield", "page fault")]
		real = [sample for sample in waited if sample.kind() == kinds[log.function]]
		check(blocked(real) >= 0.98 * blocked(waited), lambda: listed(samples))
	check_equal(report.waits["sums_full"] + report.waits["no_storage"], 0, report.waits)
	own = [sample for sample in report.samples if any("bpf_" in frame or "traceiter" in frame for frame in sample.kernel)]
	check(not own, lambda: "frames of what listens to the scheduler\n%s" % listed(own))
	check_equal(sum(sample.values[WAITS] for sample in report.samples), report.waits["waits"], "waits in the report, and those counted")


SLOW_WAITS = """
import os, select, sys, threading, time
(a, b), (c, d), lock = os.pipe(), os.pipe(), threading.Lock()
lock.acquire()
def sleeps(): time.sleep(0.05)
def reads(): os.read(a, 1)
def selects(): select.select([c], [], [], 0.05)
def locks(): lock.acquire()
def again(wait):
	os.write(1, b"%s %d\\n" % (wait.__name__.encode(), threading.get_native_id()))
	while True:
		wait()
for wait in (sleeps, reads, selects, locks):
	threading.Thread(target=again, args=[wait], daemon=True).start()
while True:
	time.sleep(0.05)
	os.write(b, b".")
	lock.release()
"""


def kernel_says(pid, tid):
	"""Returns the kernel stack of a waiting thread as the kernel itself reports it, root to leaf."""
	with open("/proc/%d/task/%d/stack" % (pid, tid), encoding="ascii") as file:
		return tuple(line.split()[1].partition("+")[0] for line in file)[::-1]


@test
def a_wait_is_one_stack():
	"""A wait under way at the start, a whole wait, and a wait under way at the end have the kernel stack that /proc shows: without the
	scheduler's own functions."""
	need_bpf()
	with subprocess.Popen([sys.executable, "-c", SLOW_WAITS], stdout=subprocess.PIPE, text=True) as program:
		tids = dict(program.stdout.readline().split() for _ in range(4))
		report, _ = record_waits("--threads", "-p", program.pid, 1)
		says = {name: {kernel_says(program.pid, int(tid)) for _ in range(50) for _ in [time.sleep(0.005)]} for name, tid in tids.items()}
		program.kill()
	for name, kind in (("sleeps", "sleep"), ("reads", "pipe"), ("selects", "select"), ("locks", "futex")):
		samples = report.of(int(tids[name]), kind=kind)
		stacks = {tuple(sample.kernel[:-1]) for sample in samples}
		check(sum(sample.values[WAITS] for sample in samples) > 5, lambda: listed(samples))
		check(len(stacks) == 1 and stacks <= says[name], lambda: "%s: %s, in /proc %s" % (name, stacks, says[name])) # pylint: disable=cell-var-from-loop


@test
def the_shortest_and_the_longest():
	report, logs, _ = watch(["--threads"], "crowd", 6, 10)
	for log in logs:
		if log.function != "nap":
			continue
		samples = report.of(log.tid, log.comm, "nap", "sleep")
		shortest, longest = min(sample.values[SHORTEST] for sample in samples), max(sample.values[LONGEST] for sample in samples)
		nr = sum(sample.values[WAITS] for sample in samples)
		check_equal(nr, 10, listed(samples))
		check(20e6 <= shortest <= blocked(samples) / nr <= longest, listed(samples))


@test
def a_thread_that_is_renamed():
	report, logs, _ = watch(["--threads"], "renamed")
	check_equal([log.comm for log in logs], ["first", "second"], "names in the log")
	for log in logs:
		check_log(report, log, "nap")


@test
def killed_while_it_waits():
	report, (log,), _ = watch(["--threads"], "killed")
	check_log(report, log, "pause_here", percent=2)
	check_equal({sample.kind() for sample in report.of(log.tid, log.comm, "pause_here")} - {"preempted"}, {"signal"}, listed(report.of(log.tid)))


@test
def stopped_and_continued():
	report, (log,), _ = watch(["--threads"], "stopped")
	check_log(report, log, kind="stopped", percent=3)


@test
def a_thread_that_is_moved_while_it_sleeps():
	report, (log,), _ = watch(["--threads"], "migrated")
	check_log(report, log, "nap")


@test
def a_number_that_is_used_again():
	"""The first thread's end and the second thread's start, under the same id, are not one wait."""
	need_bpf()
	for _ in range(5):
		report, result = record_waits("--threads", "--", build("waits"), "reused", want=None)
		if result.code != 77:
			break
	if result.code == 77:
		skip("numbers of threads cannot be chosen here")
	check_equal(result.code, 0, result)
	logs = parse_logs(result.out)
	check_equal(logs[0].tid, logs[1].tid, "the numbers")
	for log in logs:
		samples = report.of(log.tid, log.comm, "nap")
		check(95e6 <= blocked(samples) <= log.ns, lambda: "%s %d\n%s" % (log.comm, log.ns, listed(samples)))


# --- start and end of the recording --------------------------------------------------------------------------------------------------------

@test
def waits_under_way_at_the_start_and_at_the_end():
	"""A process that waits all the time is never switched to: its whole time counts, with its stack."""
	need_bpf()
	with subprocess.Popen([build("waits"), "rest"], stdout=subprocess.PIPE) as process:
		try:
			check(process.stdout.readline().startswith(b"pid"), "the program does not begin")
			time.sleep(0.2)
			report, _ = record_waits("-p", process.pid, 2)
		finally:
			process.kill()
	elapsed = report.json["account"]["duration_ns"]
	samples = report.of(process.pid)
	check(abs(blocked(samples) - elapsed) <= elapsed * 0.005, lambda: "%.3f of %.3f ms\n%s" % (blocked(samples) / 1e6, elapsed / 1e6, listed(samples)))
	check_equal([sample.kind() for sample in samples], ["signal"], listed(samples))
	check("pause_here" in samples[0].user and samples[0].user[0] == "_start", listed(samples))


# --- targets and limits ---------------------------------------------------------------------------------------------------------------------

@test
def threads_by_their_ids():
	"""The text lists each requested thread separately with its id, as with --threads; the folded lines do not change."""
	need_bpf()
	with subprocess.Popen([build("waits"), "crowd", "12", "1000"], stdout=subprocess.DEVNULL) as process:
		try:
			time.sleep(0.5)
			tids = sorted(int(tid) for tid in os.listdir("/proc/%d/task" % process.pid))[1:3]
			for verb in ("offcpu", "wall"):
				for options in (("-L", tids[0]), ("-L", tids[0], "-L", tids[1])):
					out, folded = scratch("of-tids.txt"), scratch("of-tids.folded")
					sonde(verb, *options, "-o", out, "-o", folded, 1, want=0)
					with open(out, encoding="utf-8") as file:
						shown = set(re.findall(r"^    - +.* \(([0-9/]+)\)$", file.read(), re.M))
					check_equal(shown, {"%d/%d" % (process.pid, tid) for tid in options[1::2]}, "%s %s" % (verb, options))
					with open(folded, encoding="utf-8") as file:
						check("[tid" not in file.read(), "a frame [tid N] that nobody asked for")
		finally:
			process.kill()


@test
def only_what_was_asked_for():
	need_bpf()
	with subprocess.Popen([build("waits"), "crowd", "12", "1000"], stdout=subprocess.DEVNULL) as process:
		try:
			time.sleep(0.5)
			tids = sorted(int(tid) for tid in os.listdir("/proc/%d/task" % process.pid))
			of_process, _ = record_waits("-p", process.pid, "--min", 3000, 1)
			of_thread, _ = record_waits("-L", tids[1], 1)
			short, _ = record_waits("-p", process.pid, "--max", 3000, "-U", 1)
			preempted, _ = record_waits("-p", process.pid, "--state", 0, "-K", 1, want=None)
			kernel_threads, _ = record_waits("-k", 1)
			user_threads, _ = record_waits("-u", 1)
		finally:
			process.kill()
	check(all(sample.pid == process.pid and sample.values[SHORTEST] >= 3e6 for sample in of_process.samples) and of_process.samples, listed(of_process.samples))
	check({sample.kind() for sample in of_process.samples} >= {"sleep", "pipe", "futex"}, listed(of_process.samples))
	check(of_process.waits["filtered_target"] and of_process.waits["filtered_time"], of_process.waits)
	check_equal({sample.tid for sample in of_thread.samples}, {tids[1]}, listed(of_thread.samples))
	check(short.samples and all(sample.values[LONGEST] <= 3e6 and not sample.kernel for sample in short.samples), listed(short.samples))
	check_equal({sample.kind() for sample in preempted.samples} - {"preempted", "yield"}, set(), listed(preempted.samples))
	check(not any(sample.user for sample in preempted.samples), listed(preempted.samples))
	check(kernel_threads.samples and not any(sample.user for sample in kernel_threads.samples), "user stacks of threads of the kernel")
	check(user_threads.samples and all(sample.user or "Missed" in str(sample) for sample in user_threads.samples if sample.comm.startswith("member")), "no user stacks")
	check(not {sample.tid for sample in kernel_threads.samples} & {sample.tid for sample in user_threads.samples}, "threads of both kinds")


@test
def its_own_waiting_is_left_out():
	need_bpf()
	path = scratch("own.json")
	with Background("offcpu", "-o", path, 2) as background:
		pid = background.process.pid
		background.wait_line("Tracing")
		own = {pid, *children_of(pid)}
		check_equal(background.finish().code, 0, "exit code")
	report = Report(load_json(path))
	check(report.samples and not [sample for sample in report.samples if sample.pid in own], lambda: listed([sample for sample in report.samples if sample.pid in own]))


@test
def a_command_waits_for_the_recording():
	"""Until its exec the command is sonde itself: that wait is our own and is left out."""
	report, (first, _), result = watch(["--threads"], "renamed")
	check_equal(sorted({sample.kind() for sample in report.of(comm="sonde")} & {"socket", "pipe"}), [], listed(report.of(comm="sonde")))
	check("waited at the start" not in result.err, result)
	check(report.of(first.tid), result)


def children_of(pid):
	with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
		return [int(word) for word in file.read().split()]


@test
def more_different_waits_than_room():
	"""Sums are read out of the kernel before its map is full: processes that start and end for hours lose nothing."""
	need_bpf()
	nr = ROOM + ROOM // 8
	report, _ = record_waits("--threads", "-K", "--stack-storage-size", ROOM // 4, "--", # each process has its own user stacks: they would take the room of the kernel stacks
		"sh", "-c", "i=0; while [ $i -lt %d ]; do sleep 0.005; i=$((i + 1)); done" % nr)
	slept = [sample for sample in report.samples if sample.kind() == "sleep"]
	check_equal(len({sample.tid for sample in slept}), nr, "processes that slept")
	check(len(report.samples) > ROOM, lambda: "%d different waits, room for %d" % (len(report.samples), ROOM))
	check_equal((report.waits["sums_full"], report.waits["lost_ns"]), (0, 0), report.waits)
	check_equal(sum(sample.values[WAITS] for sample in report.samples), report.waits["waits"], "waits in the report")


@test
def more_stacks_than_the_kernel_side_remembers():
	"""The kernel side forgets what it sent before its memory is full: there are twice as many different stacks as it has room for, and none
	is missing."""
	need_bpf()
	report, _ = record_waits("-U", "--", build("paths"), DEPTH)
	paths = {tuple(name for name in sample.user if name in ("left", "right")) for sample in report.samples if sample.kind() == "sleep"}
	check_equal((report.json["account"]["missed_user"], report.json["account"]["missed_kernel"]), (0, 0), "missed stacks")
	check(len({path for path in paths if len(path) == DEPTH}) >= 0.99 * 2 ** DEPTH, lambda: "%d different paths of %d" % (len(paths), 2 ** DEPTH))


@test
def too_many_different_waits():
	"""A full map is counted and reported; the waits that found no room make up the missing time."""
	report, logs, result = watch(["--threads", "--stack-storage-size", 1], "crowd", 30, 20)
	check(report.waits["sums_full"] > 0, report.waits)
	check("%d waits of" % report.waits["sums_full"] in result.err and "--stack-storage-size" in result.err, result)
	check_equal(sum(sample.values[WAITS] for sample in report.samples), report.waits["waits"], "waits in the report")
	whole = sum(log.ns for log in logs)
	check(report.waits["lost_ns"] + blocked(report.samples) >= whole * 0.99, lambda: "%d + %d of %d" % (report.waits["lost_ns"], blocked(report.samples), whole))


@test
def a_limit_of_its_own_cost():
	"""Two processes wake each other all the time. With --max-overhead, short waits are left out after a while, which is counted and
	reported; without need, none is left out."""
	report, _, result = watch(["--max-overhead", 1], "pingpong", 3500)
	check("more than --max-overhead 1: in the end waits shorter than " in result.err, result)
	check(report.waits["filtered_time"] > 0, report.waits)
	report, _, result = watch(["--max-overhead", 100, "--min", 0], "pingpong", 2500)
	check("--max-overhead" not in result.err and not report.waits["filtered_time"], result)


@test
def nothing_waited():
	need_bpf()
	report, result = record_waits("-p", os.getpid(), "--min", 900000000, 1, want=5)
	check("no samples: no wait of what was asked for was seen" in result.err, result)
	check_equal(report.samples, [], "samples")


# --- output ------------------------------------------------------------------------------------------------------------------------------------

@test
def text_as_offcputime():
	need_bpf()
	result = sonde("offcpu", "--hist", "--", build("waits"), "renamed", want=0)
	check("Tracing off-CPU time (us) of %s by user + kernel stack... Hit Ctrl-C to end.\n" % build("waits") in result.err, result)
	entry = [part for part in result.out.split("\n\n") if "    nap\n" in part and "    -                second (" in part]
	check(entry, lambda: clip(result.out))
	value = entry[-1].splitlines()
	us = next(line for line in value if line.startswith("        ") and "waits 1" in line)
	check(300000 <= int(us.split()[0]) < 600000, us)
	check(any(line.startswith("        [256K, 512K)") and line.rstrip().endswith("|" + "@" * 52 + "|") for line in value), "\n".join(value))
	check("\nblocked time (us): " in result.out, lambda: clip(result.out))
	folded = sonde("offcpu", "-f", "--hist", "--", build("waits"), "renamed", want=0)
	check("there are no histograms in -: folded holds stacks alone" in folded.err and "there are no histograms" not in result.err, folded)
	counted = sonde("offcpu", "-f", "--value", "count", "--", build("waits"), "renamed", want=0)
	line = next(line for line in counted.out.splitlines() if line.startswith("second;") and ";nap;" in line and "[sleep]" in line)
	check(line.endswith(" 1"), line)
	check("Tracing" not in counted.err, counted)


@test
def sums_as_offcputime():
	"""The sums match BCC's at the same time, for two threads that sleep and wait for each other. BCC leaves out waits under way at its end."""
	need_bpf()
	tool = find_tool("offcputime", "/usr/sbin/offcputime")
	if not tool:
		skip("no offcputime (Debian: libbpf-tools)")
	path, seconds = scratch("beside.json"), 4
	with Program("contend", "together", seconds=30) as program:
		with Background("offcpu", "-p", program.pid, "--threads", "-o", path, seconds + 1) as offcpu:
			offcpu.wait_line("Tracing")
			theirs = run([tool, "-p", str(program.pid), str(seconds)], timeout=60)
			check_equal(offcpu.finish().code, 0, "sonde")
	check_equal(theirs.code, 0, theirs)
	report, told = Report(load_json(path)), ""
	for comm in ("hog", "worker"):
		ours = blocked(report.of(comm=comm)) / report.json["account"]["duration_ns"]
		their = sum(int(us) for us in re.findall(r"^ +- +%s \(\d+\)\n +(\d+)$" % comm, theirs.out, re.MULTILINE)) / (seconds * 1e6)
		check(their > 0.2 and abs(ours - their) < 0.05 * their, lambda: "%s is off the CPU for %.3f of the time, offcputime has %.3f\n%s" % (comm, ours, their, clip(theirs.out))) # pylint: disable=cell-var-from-loop
		told += "%s: %.3f, offcputime %.3f; " % (comm, ours, their)
	return told


@test
def who_wakes_by_a_page_fault():
	"""A page fault in user code is a wait of the thread itself, although it arrives like an interrupt."""
	need_bpf()
	path = scratch("fault.folded")
	result = sonde("offcpu", "--wake", "-o", path, "--", build("fault_waker"), 3)
	if result.code == 3:
		skip("no userfaultfd")
	with open(path, encoding="utf-8") as file:
		waits = [line.rsplit(" ", 1)[0].split(";--;")[1].split(";") for line in file if line.startswith("handler;") and ";[poll];--;" in line]
	faults = [waker for waker in waits if "touches" in waker and "handle_userfault" in waker]
	check(faults and all(waker[-1] == "fault_waker" for waker in waits), lambda: "\n".join(map(";".join, waits)))
	return "%d of %d different wakers" % (len(faults), len(waits))


@test
def interrupted():
	"""Ctrl-C: what has been measured until then is reported."""
	need_bpf()
	path = scratch("interrupted.json")
	with Background("offcpu", "-o", path) as background:
		background.wait_line("Tracing")
		time.sleep(1)
		background.send(signal.SIGINT)
		result = background.finish()
	check_equal(result.code, 0, result)
	report = Report(load_json(path))
	check(report.samples, result)
	check(0.5e9 < report.json["account"]["duration_ns"] < 20e9, report.json["account"]["duration_ns"])


@test
def ctrl_c_at_a_terminal():
	"""Ctrl-C also reaches the helpers, which resolve names for the report: it does not end them."""
	need_bpf()
	path = scratch("terminal.json")
	with Background("offcpu", "-o", path, start_new_session=True) as background:
		background.wait_line("Tracing")
		helpers = children_of(background.process.pid)
		check(helpers, "no helpers")
		for signo in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
			for helper in helpers:
				os.kill(helper, signo)
		time.sleep(0.5)
		check_equal(children_of(background.process.pid), helpers, "helpers")
		for helper in helpers:
			with open("/proc/%d/stat" % helper, encoding="ascii") as file:
				check(file.read().rsplit(")", 1)[1].split()[0] != "Z", "a helper has ended")
		os.killpg(background.process.pid, signal.SIGINT)
		result = background.finish()
	check_equal(result.code, 0, result)
	check("crashed" not in result.err, result)
	check(Report(load_json(path)).samples, result)


if __name__ == "__main__":
	run_tests()
