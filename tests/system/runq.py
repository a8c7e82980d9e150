#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde runq: sums and counts against the scheduler's own account in /proc/PID/schedstat, threads whose waits are known beforehand, and BCC's runqlat
where it is installed."""
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import (SONDE, Background, Program, build, check, check_equal, entry_error, find_tool, load_json, need_bpf, record, run, run_tests, scratch, skip, sonde, # noqa: E402
	test)
from own_cgroups import OwnCgroups # noqa: E402

CPUS = len(os.sched_getaffinity(0))


class Contend(Program):
	"""tests/programs/contend.c; .tids: name -> the ids of its threads."""

	def __init__(self, mode, seconds=30):
		need_bpf()
		if CPUS < 2:
			skip("one CPU: threads cannot be kept apart")
		self.tids = {}
		super().__init__("contend", mode, seconds=seconds)

	def read_line(self, line):
		word, _, rest = line.partition(" ")
		if word == "tid":
			name, tid = rest.split()
			self.tids.setdefault(name, []).append(int(tid))
		return super().read_line(line)


def by_key(report):
	"""Returns key -> histogram, as in sonde's JSON."""
	return {h["key"]: h for h in report.get("histograms", [])}


def histograms(path):
	return by_key(load_json(path))


def measure(*args, want=0):
	return by_key(record("runq", *args, want=want)[0])


def at_least(histogram, low):
	return sum(slot["count"] for slot in histogram["slots"] if slot["low"] >= low)


def schedstat(pid):
	"""Returns tid -> (ns waited, number of times it got a CPU)."""
	result = {}
	for tid in os.listdir("/proc/%d/task" % pid):
		with open("/proc/%d/task/%s/schedstat" % (pid, tid), encoding="ascii") as file:
			_, waited, times = map(int, file.read().split())
		result[int(tid)] = (waited, times)
	return result


def few(nr):
	"""Returns how many of these switches may be missing."""
	return 10 + 0.04 * nr


@test
def sums_are_the_schedulers():
	"""Threads move between CPUs while they wait. Each thread's waits are counted once, and their sum is the scheduler's."""
	need_bpf()
	if CPUS < 2:
		skip("one CPU: nothing can be moved")
	path = scratch("sums.json")
	with subprocess.Popen([build("contend"), "3", "moved"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
		try:
			pid = int(program.stdout.readline().split()[1])
			while program.stdout.readline() != "ready\n":
				pass
			with Background("runq", "-p", pid, "--by", "tid", "-o", path) as runq:
				runq.wait_line("Tracing run queue latency of PID %d" % pid)
				before = schedstat(pid)
				program.stdin.write("go\n")
				program.stdin.flush()
				check_equal(program.stdout.readline(), "done\n", "contend")
				time.sleep(0.3) # until all have noticed
				after = schedstat(pid)
				runq.send(signal.SIGINT)
				result = runq.finish()
		finally:
			program.stdin.close()
	check_equal(result.code, 0, str(result))
	by_account = re.search(r"(\d+) by the scheduler's own accounting", result.err) # those that kept running while it began
	check(not by_account or int(by_account.group(1)) < len(before), lambda: "of none that slept when it began the first wait is the account's: %s" % result)
	got = {int(re.match(r"tid (\d+) ", key).group(1)): h for key, h in histograms(path).items()}
	waited = 0
	for tid in before:
		want_us = (after[tid][0] - before[tid][0]) / 1000
		want_nr = after[tid][1] - before[tid][1]
		waited += want_us
		# Our recording begins slightly earlier and ends slightly later, while the threads sleep. Each wake-up is a wait, usually a short one. Under
		# load the kernel reports some switches to no program (docs/internals/waiting.md): two waits then become one with the same sum.
		check(-few(want_nr) <= got[tid]["count"] - want_nr <= 50, "thread %d: %d waits, the scheduler has %d" % (tid, got[tid]["count"], want_nr))
		check(abs(got[tid]["sum"] - want_us) <= max(10000, want_us * 0.02), "thread %d: %d us, the scheduler has %.0f\n%s" % (tid, got[tid]["sum"], want_us, result))
	check(waited > 1e6, "they hardly waited: %.0f us" % waited)
	return "%.0f us waited by %d threads, %+.0f us" % (waited, len(before), sum(h["sum"] for h in got.values()) - waited)


def parse_waits(text):
	"""Parses the lines of --slower into dictionaries by column; "stack": the frames below, leaf first."""
	lines = text.splitlines()
	check(re.fullmatch(r"Tracing run queue latency higher than \d+ us", lines[0]), lines[0])
	columns = lines[1].split()
	check_equal(columns, ["TIME", "COMM", "PID", "LAT(us)", "PREV", "PREV-TID", "CPU", "CLASS", "PRIO", "PREV-CLASS", "PREV-PRIO"], "the header")
	waits = []
	for line in lines[2:]:
		if line.startswith("    ") and waits:
			waits[-1]["stack"].append(line.strip())
			continue
		if not re.match(r"\d\d:\d\d:\d\d ", line):
			break
		fields = re.fullmatch(r"(\S+) (.{16}) (\d+) +(\d+) (.{16}) (\d+) +(\d+) +(\S+) +(\S+) +(\S+) +(\S+)", line) # names may contain blanks
		check(fields, line)
		waits.append({**dict(zip(columns, map(str.strip, fields.groups()))), "stack": []})
	return waits


@test
def slower_names_the_hog():
	with Contend("together") as program:
		result = sonde("runq", "--slower", 1000, "-n", "worker", "2", "1", want=0)
	waits = parse_waits(result.out)
	check("higher than 1000 us" in result.out, result.out[:200])
	hog, worker = program.tids["hog"][0], program.tids["worker"][0]
	by_hog = [wait for wait in waits if wait["PREV-TID"] == str(hog)]
	check(len(by_hog) >= 100, "%d waits behind the hog, of %d" % (len(by_hog), len(waits)))
	check(len(by_hog) >= 0.9 * len(waits), "%d waits of %d are behind others" % (len(waits) - len(by_hog), len(waits)))
	for wait in by_hog:
		check_equal([wait[name] for name in ("COMM", "PID", "PREV", "CPU", "CLASS", "PRIO", "PREV-CLASS", "PREV-PRIO")],
			["worker", str(worker), "hog", "0", "fifo", "20", "fifo", "20"], "a wait")
		check(int(wait["LAT(us)"]) >= 1000, str(wait))
	return "%d waits" % len(by_hog)


def parts(stack):
	"""Splits a stack into the kernel's part and the program's own, leaf first. The kernel's part ends with the entry from the system call or
	the interrupt."""
	ends = [i for i, frame in enumerate(stack) if re.match(r"entry_SYSCALL|asm_|irqentry|el0t_64", frame)]
	check(ends and any("schedule" in frame for frame in stack[:ends[-1]]), "no kernel's part: %s" % stack)
	return stack[:ends[-1] + 1], stack[ends[-1] + 1:]


def is_whole(user, *own):
	"""Returns whether the stack is these functions of the program, leaf first, up to libc's start of the thread. Functions that they call in
	libc may precede them."""
	at = user.index(own[0]) if own[0] in user else -1
	return at >= 0 and tuple(user[at:at + len(own)]) == own and not entry_error(user[at + len(own):][::-1], main_thread=False)


@test
def stacks_of_the_hog():
	"""The hog leaves the CPU voluntarily, at one location: where it rests."""
	with Contend("together") as program:
		result = sonde("runq", "--slower", 1000, "--stacks", "-n", "worker", "2", "1", want=0)
		without = sonde("runq", "--slower", 1000, "-n", "worker", "1", "1", want=0)
	waits = [wait for wait in parse_waits(result.out) if wait["PREV-TID"] == str(program.tids["hog"][0])]
	check(len(waits) >= 100, "%d waits behind the hog" % len(waits))
	for wait in waits:
		kernel, user = parts(wait["stack"])
		check("nanosleep" in "".join(kernel), "the hog sleeps: %s" % kernel)
		check(is_whole(user, "rests", "in_bursts"), "to the root: %s" % user)
		calls = user[:user.index("rests")]
		check(calls and all("nanosleep" in frame or frame.startswith("[libc.so.6+") for frame in calls), "a wait behind the hog: %s" % user)
	check_equal(len(result.out.splitlines()), 2 + sum(1 + len(wait["stack"]) for wait in parse_waits(result.out)), "nothing else is printed")
	check(parse_waits(without.out) and not any(wait["stack"] for wait in parse_waits(without.out)), "stacks that nobody asked for")
	return "%d stacks" % len(waits)


@test
def what_could_not_be_named_is_told():
	"""Names that could not be resolved are reported: a long recording of stacks, with an unreadable perf map of a JIT process that ended
	long before the end."""
	with Contend("crowd"), Background("runq", "--slower", 100, "--stacks", "8", "1") as recording:
		check(recording.process.stdout.readline().startswith(b"Tracing"), "no header") # the program's waits are seen from its beginning
		with Program("jitted", "map") as program:
			with open("/tmp/perf-%d.map" % program.pid, "a", encoding="ascii") as file:
				file.write("".join("zzzz this is no map %d\n" % i for i in range(100)))
			os.sched_setaffinity(program.pid, {0})
			time.sleep(2)
		result = recording.finish(30)
	check_equal(len(re.findall(r"names of the JIT code of process %d make no sense" % program.pid, result.err)), 1, result.err)


@test
def children_of_who_becomes_sonde():
	"""They are no helpers of ours: with stacks they are counted as without."""
	pid_file = scratch("crowd.pid")
	script = "%s 40 crowd >/dev/null 2>&1 & echo $! >%s; exec %s runq --slower 1 %%s -n crowd 2 1" % (build("contend"), pid_file, SONDE)
	for option in ("", "--stacks"):
		result = run(["sh", "-c", script % option], timeout=60)
		with open(pid_file, encoding="ascii") as file:
			os.kill(int(file.read()), signal.SIGKILL)
		check(len(parse_waits(result.out)) >= 10, lambda: "%s: %s" % (option, result)) # pylint: disable=cell-var-from-loop


@test
def stacks_of_the_preempted():
	"""Spinning threads are preempted; among them is a thread of Python, whose stack shows its functions."""
	script = scratch("spins.py")
	with open(script, "w", encoding="ascii") as file:
		file.write("import os\nos.sched_setaffinity(0, {0})\ndef python_hog():\n\twhile True:\n\t\tpass\ndef python_main():\n\tpython_hog()\npython_main()\n")
	with Contend("crowd"), subprocess.Popen(["/usr/bin/python3", script]) as python:
		try:
			time.sleep(0.5)
			result = sonde("runq", "--slower", 1, "--stacks", "3", "1", want=0) # whoever runs after them
		finally:
			python.kill()
	waits = parse_waits(result.out)
	crowd = [parts(wait["stack"])[1] for wait in waits if wait["PREV"] == "crowd"]
	check(len(crowd) >= 20, "%d waits behind the crowd, of %d" % (len(crowd), len(waits)))
	spinning = [user for user in crowd if user[:1] == ["spins"] and is_whole(user, "spins")]
	check(len(spinning) >= 0.98 * len(crowd), lambda: "%d of %d: %s" % (len(spinning), len(crowd), [user for user in crowd if user not in spinning][:3]))
	behind = [parts(wait["stack"])[1] for wait in waits if wait["PREV-TID"] == str(python.pid)]
	whole = [user for user in behind if any(frame.startswith("python_hog (") for frame in user) and any(frame.startswith("python_main (") for frame in user)]
	check(len(behind) >= 4 and len(whole) >= 0.9 * len(behind), lambda: "%d of %d have Python's functions: %s" % (len(whole), len(behind), behind[:2]))
	return "%d of the crowd, %d of Python" % (len(spinning), len(whole))


@test
def apart_the_tail_is_gone():
	"""The script of the documentation: the worker waits up to 4 ms for the end of the hog's burst; on separate CPUs neither waits."""
	paths = {}
	for mode in ("together", "apart"):
		paths[mode] = scratch(mode + ".json")
		with Contend(mode):
			result = sonde("runq", "--slower", 1000, "--hist", "-n", "worker", "-o", paths[mode], "2", "1", want=0)
			nr = len(parse_waits(result.out))
		histogram = histograms(paths[mode])[""]
		check_equal(at_least(histogram, 1024) > 50, mode == "together", "%s: waits of a millisecond\n%s" % (mode, histogram))
		check(nr >= at_least(histogram, 1024), "%d lines, but in the histogram %d waits are longer" % (nr, at_least(histogram, 1024)))
	said = sonde("diff", paths["together"], paths["apart"], want=0).out
	check(re.search(r"^the tail is gone: ", said, re.MULTILINE), said)


@test
def each_for_itself():
	with Contend("together") as program:
		tids = measure("-n", "contend", "--by", "tid", 1, 1)
		check_equal(sorted(tids), sorted("tid %d (%s)" % (program.tids[name][0], name) for name in ("hog", "worker")), "--by tid")
		check_equal(list(measure("-p", program.pid, "--by", "pid", 1, 1)), ["pid %d (contend)" % program.pid], "--by pid")
		check_equal(sorted(measure("-p", program.pid, "--by", "comm", 1, 1)), ["comm hog", "comm worker"], "--by comm")
		check_equal(list(measure("-p", program.pid, "--by", "cpu", 1, 1)), ["cpu 0"], "--by cpu")
		everything = measure("--by", "tid", 1, 1)
		check(set(tids) < set(everything), "without a filter there are more")
		ms = measure("-n", "worker", "--ms", 1, 1)[""]
		check_equal(ms["unit"], "ms", "--ms")
		check(at_least(ms, 2) > 20 and not at_least(ms, 64), str(ms))


@test
def by_cgroup():
	groups = OwnCgroups("top", "top/below", "top2")
	with Contend("together") as program:
		groups.move(program.pid, "top/below")
		found = measure("-p", program.pid, "--by", "cgroup", 1, 1)
		check_equal(list(found), ["cgroup /%s/top/below" % groups.name], "--by cgroup")
		check_equal(sorted(measure("-G", groups.name + "/top", "--by", "comm", 1, 1)), ["comm hog", "comm worker"], "-G")
		check_equal(measure("-G", groups.name + "/top2", 1, 1, want=5), {}, "-G of another")


@test
def only_whom_was_asked_for():
	with Contend("together") as program:
		hog, worker = program.tids["hog"][0], program.tids["worker"][0]
		check_equal(list(measure("-L", worker, "--by", "tid", 1, 1)), ["tid %d (worker)" % worker], "-L")
		check_equal(list(measure("-L", hog, "-n", "hog", "--by", "tid", 1, 1)), ["tid %d (hog)" % hog], "-L and -n")
		nobody = sonde("runq", "-L", hog, "-n", "worker", 1, 1, want=5)
		check("no samples: no thread that was asked for got a CPU" in nobody.err, str(nobody))
	with Background("runq", "--by", "pid", 1, 1) as runq:
		result = runq.finish()
		check("run queue latency, pid " in result.out and ", pid %d " % runq.process.pid not in result.out, "our own waits: %s" % result)


@test
def time_on_the_cpu():
	"""Bursts of 5 ms that nobody interrupts."""
	with Contend("apart"):
		hog = measure("--oncpu", "-n", "hog", 2, 1)[""]
	check_equal(hog["name"], "time on CPU", "name")
	full = sum(slot["count"] for slot in hog["slots"] if slot["low"] == 4096)
	check(150 <= full <= 205, "%d bursts in 2 s" % full)
	check(full >= 0.9 * hog["count"], str(hog))


def runnable():
	"""Returns how many threads run or wait for a CPU now, without our own."""
	with open("/proc/loadavg", encoding="ascii") as file:
		return int(file.read().split()[3].split("/")[0]) - 1


@test
def lengths_of_the_queue():
	path, seen = scratch("lengths.json"), []
	with Contend("crowd"):
		found = measure("--len", "--by", "cpu", 2, 1)
		with Background("runq", "--len", "-o", path, 3, 1) as runq:
			runq.wait_line("Tracing")
			while runq.process.poll() is None:
				seen.append(runnable())
				time.sleep(0.02)
			check_equal(runq.finish().code, 0, "sonde")
	whole = histograms(path)
	waiting = whole["all classes"]["sum"] / whole["all classes"]["count"] * CPUS
	nr_ticks = whole["fair class"]["count"]
	check(nr_ticks <= 305 * CPUS, "%d ticks on all CPUs in 3 s" % nr_ticks)
	# One of them runs on each CPU. Both CPUs are busy nearly always, even if one has only the crowd and the other has this test and sonde.
	if nr_ticks >= 250 * CPUS: # else some CPU was idle, where ticks are held back, and the mean is that of the busy CPUs
		check(sum(seen) / len(seen) - CPUS - 1 < waiting < sum(seen) / len(seen) - 1 + 0.5, "%.1f threads waited; %.1f ran or waited" % (waiting, sum(seen) / len(seen)))
	queue = found["cpu 0, fair class"]
	check_equal(queue["scale"], "linear", "scale")
	check(170 <= queue["count"] <= 205, "%d ticks on a CPU in 2 s at 99 Hz" % queue["count"])
	check(at_least(queue, 5) >= 0.9 * queue["count"], "six threads spin on CPU 0, so five wait: %s" % queue)
	check(found["cpu 0, all classes"]["sum"] >= queue["sum"] - queue["count"], "all are at least the fair ones")
	check_equal(sorted(whole), ["all classes", "fair class"], "without --by")
	return "%.1f waited, %.1f ran or waited" % (waiting, sum(seen) / len(seen))


@test
def reports_in_intervals():
	with Contend("together"):
		result = sonde("runq", "-T", "-n", "worker", 1, 3, want=0)
		slow = sonde("runq", "--slower", "1", "--hist", "-n", "worker", 1, 2, want=0)
	check_equal(len(re.findall(r"^\d\d:\d\d:\d\d$", result.out, re.MULTILINE)), 3, "times\n" + result.out)
	counts = [int(nr) for nr in re.findall(r"^run queue latency \(us\): (\d+) in all", result.out, re.MULTILINE)]
	check(len(counts) == 3 and all(150 <= nr <= 400 for nr in counts), "each interval has its own: %s" % counts)
	check_equal(len(re.findall(r" in all, average", slow.out)), 1, "one histogram at the end")
	lines, counted = len(parse_waits(slow.out)), int(re.search(r"(\d+) in all", slow.out).group(1))
	check(0.3 * counted < lines <= counted, "%d lines, %d counted" % (lines, counted))


@test
def by_key_in_intervals():
	"""Counts under a key move from one map to the next: nothing is lost, nothing is counted twice."""
	with Contend("together") as program:
		with Background("runq", "-p", program.pid, "--by", "tid", 1) as runq:
			runq.wait_line("Tracing")
			before = schedstat(program.pid)
			time.sleep(4.5)
			after = schedstat(program.pid)
			runq.send(signal.SIGTERM)
			result = runq.finish()
	check_equal(result.code, 0, str(result))
	for tid in program.tids["hog"] + program.tids["worker"]:
		counts = [int(nr) for nr in re.findall(r"^run queue latency, tid %d \(\w+\) \(us\): (\d+) in all" % tid, result.out, re.MULTILINE)]
		want = after[tid][1] - before[tid][1]
		check_equal(len(counts), 5, "four intervals and the rest")
		check(want - few(want) <= sum(counts) <= want * 1.2 + 20, "thread %d: %s, the scheduler has %d\n%s" % (tid, counts, want, result))


def more_than(counts, low):
	"""Returns how many values are in slots from `low` on; counts are by the low end of a slot."""
	return sum(nr for slot, nr in counts.items() if slot >= low)


@test
def runqlat_says_the_same():
	"""The histograms match slot by slot. The two programs read their clocks one after the other, so a value may be in the next slot. Each of
	them makes the other's waits slightly longer."""
	tool = find_tool("runqlat", "/usr/sbin/runqlat")
	if not tool:
		skip("no runqlat (Debian: libbpf-tools)")
	path, theirs = scratch("beside.json"), scratch("runqlat.txt")
	with open(theirs, "w", encoding="utf-8") as file, Contend("together") as program:
		with Background("runq", "-p", program.pid, "-o", path, 5, 1) as runq:
			runq.wait_line("Tracing")
			with subprocess.Popen([tool, "-p", str(program.pid), "4", "1"], stdout=file) as other:
				check_equal(runq.finish().code, 0, "sonde")
				check_equal(other.wait(timeout=60), 0, "runqlat")
	with open(theirs, encoding="utf-8") as file:
		their = {int(low) & -2: int(nr) for low, nr in re.findall(r"^ *(\d+) -> \d+ *: (\d+) ", file.read(), re.MULTILINE)}
	our = {slot["low"]: slot["count"] for slot in histograms(path)[""]["slots"]}
	check(their and sum(our.values()) > 1000, lambda: "too few: %s, %s" % (our, their))
	scale, few_of = sum(their.values()) / sum(our.values()), 0.05 * sum(their.values()) # theirs began later
	for low in [1 << i for i in range(1, 15)]:
		ours = more_than(our, low) * scale
		check(more_than(their, 2 * low) - few_of <= ours <= more_than(their, low // 2) + few_of, "from %d us on: %.0f; ours %s, theirs %s" % (low, ours, our, their))
	return "ours %s, theirs %s" % (our, their)


@test
def nonsense_is_refused():
	need_bpf()
	for args, words in (("--slower 5 --len", "exclude each other"), ("--by nix", "--by takes pid, tid, cpu, cgroup or comm"), ("--len -p 1", "is a CPU's, not of threads"),
			("--len --by pid", "a histogram for each CPU"), ("--hist", "--hist is for --slower"), ("--slower --by pid", "add --hist"), ("0", "whole number from 1"), ("--stacks", "--stacks needs --slower"),
			("1 0", "whole number from 1"), ("1 1 1", "one word too many"), ("--slower --hist -o -", "give -o a file"), ("--format json", "say where to write"),
			("-o x.nix", "names no format"), ("-o x.svg", "histograms alone"), ("--len --ms", "no time"), ("--oncpu --slower", "exclude each other"), ("--len --oncpu", "exclude each other"),
			("-p 1 -L 1", "exclude each other"), ("--slower=x", "--slower"), ("--slower 0", "whole number from 1"), ("--slower -5", "not '-5'")):
		result = sonde("runq", *args.split(), want=2)
		check(words in result.err and not result.out, lambda: "%s: %s" % (args, result))
	check("there is no process 3999999" in sonde("runq", "-p", 3999999, want=1).err, "-p")
	with open("/dev/full", "w", encoding="ascii") as full:
		check("cannot write to standard output" in sonde("runq", 1, 1, stdout=full, want=1).err, "a full disk")


@test
def without_a_number_10000():
	need_bpf()
	for args, code in ((("--slower", "-n", "no-such"), 5), (("--slower",), 0), (("-n", "no-such", "--slower"), 5)):
		with Background("runq", *args) as runq:
			time.sleep(1)
			runq.send(signal.SIGINT)
			result = runq.finish()
		check(result.code == code and result.out.startswith("Tracing run queue latency higher than 10000 us\nTIME "), str(result))


@test
def ends_with_its_target():
	with Contend("together", seconds=2) as program:
		result = sonde("runq", "-p", program.pid, timeout=20, want=0)
	check("run queue latency (us): " in result.out, str(result))


@test
def refused_without_rights():
	if not find_tool("setpriv") or os.geteuid():
		skip("needs root and setpriv")
	result = run(["setpriv", "--reuid", "65534", "--clear-groups", SONDE, "runq", "1", "1"])
	check(result.code == 3 and "CAP_BPF" in result.err, lambda: str(result))


run_tests()
