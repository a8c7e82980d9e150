#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A run from start to end: what ends it, what is counted, its targets, where the report goes, and the exit code."""
import contextlib
import gzip
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import time

from harness import (SONDE, Background, Failure, Program, bpf_ids, build, chain_error, check, check_equal, check_exact, cpu_seconds, find_tool, fresh_folder, idle_seconds, need_bpf,
	parse_folded, record, run, run_tests, scratch, skip, sonde, test, total)

BEGINS = "Sampling at"


def read(path):
	with open(path, "rb") as file:
		return file.read()


def account_of(*args, want=0):
	"""Returns the account in the JSON report of a run."""
	return record("profile", *args, want=want)[0]["account"]


# --- what ends it --------------------------------------------------------------------------------------------------------------------

def ended_by(signo):
	need_bpf()
	with Program("chain", 10) as program, Background("profile", "-p", program.pid, "-F", 499) as running:
		running.wait_line(BEGINS)
		time.sleep(1)
		running.send(signo)
		result = running.finish(timeout=10)
	check_equal(result.code, 0, "exit code\n%s" % result)
	counts = [int(count) for count in re.findall(r"^        ([0-9]+)$", result.out, re.MULTILINE)]
	check(sum(counts) > 50, lambda: "a second at 499 Hz gave %d samples\n%s" % (sum(counts), result))
	check("    leaf\n    f9\n" in result.out and "    -                chain (%d)\n" % program.pid in result.out, lambda: "no full report: %s" % result)
	check(re.search(r"^samples: %d of \d+ ticks" % sum(counts), result.err, re.MULTILINE), lambda: "no account on stderr, or another: %s" % result)


@test
def ended_by_ctrl_c():
	ended_by(signal.SIGINT)


@test
def ended_by_sigterm():
	ended_by(signal.SIGTERM)


@test
def ended_by_sighup():
	ended_by(signal.SIGHUP)


@test
def ended_by_duration():
	need_bpf()
	with Program("chain", 10) as program:
		result = sonde("profile", "-f", "-p", program.pid, 1, want=0)
	check(1 <= result.seconds < 8, "a run of 1 s took %.1f s" % result.seconds)
	check(total(parse_folded(result.out)) > 5, lambda: str(result))


@test
def ended_by_the_targets_end():
	need_bpf()
	with Program("chain", 10, seconds=3) as program, Background("profile", "-f", "-p", program.pid, "-F", 499) as running:
		program.process.wait()
		ended = time.monotonic()
		result = running.finish(timeout=15)
	check(result.code == 0 and time.monotonic() - ended < 3, lambda: "%.1f s after the target's end: %s" % (time.monotonic() - ended, result))
	check(total([stack for stack in parse_folded(result.out) if stack.user[-1:] == ["leaf"]]) > 100, lambda: str(result))


def large_report():
	"""Returns arguments and target of a report larger than a pipe: stacks of 1,500 frames, one line for each pc in the leaf."""
	return Program("chain", 1500)


def blocked_report(program):
	"""Starts sonde and lets it block while it writes its report into a pipe that nobody reads yet."""
	running = Background("profile", "--offsets", "-p", program.pid, "-F", 997)
	running.wait_line(BEGINS)
	time.sleep(1.5)
	running.send(signal.SIGINT)
	time.sleep(1.5)
	check(running.process.poll() is None, "the report should fill the pipe")
	return running


@test
def second_ctrl_c_keeps_the_report():
	need_bpf()
	with large_report() as program, blocked_report(program) as running:
		running.send(signal.SIGINT)
		time.sleep(0.3)
		result = running.finish()
	check_equal(result.code, 0, "exit code")
	stacks = [block for block in result.out.split("\n\n") if block.strip()]
	check(len(result.out) > 65536 and all(re.search(r"\n    -                chain \(\d+\)\n        \d+$", block.rstrip("\n")) for block in stacks),
		lambda: "the report of %d bytes is not whole: ...%r" % (len(result.out), result.out[-300:]))


@test
def third_ctrl_c_ends_at_once():
	need_bpf()
	with large_report() as program, blocked_report(program) as running:
		for _ in range(2):
			running.send(signal.SIGINT)
			time.sleep(0.2)
		try:
			running.process.wait(timeout=3)
		except subprocess.TimeoutExpired:
			check(False, "still there after the third Ctrl-C")
		check_equal(running.process.returncode, 130, "exit code")


# --- what is counted -----------------------------------------------------------------------------------------------------------------

def check_law(account):
	filtered, dropped = sum(account["filtered"].values()), sum(account["dropped"].values())
	check_equal(account["recorded"] + filtered + dropped, account["ticks"], "recorded + filtered + dropped against ticks: %s" % account)


@test
def every_tick_is_accounted_for():
	"""ticks = recorded + filtered + dropped, under load, filtered and not. The samples add up to the recorded ticks."""
	need_bpf()
	notes = []
	with Program("threads") as program, Program("syscalls"):
		for args in (("-F", 999, 1), ("-F", 4999, 1), ("-F", 999, "-p", program.pid, 1), ("-F", 999, "-n", "red", 2), ("-F", 999, "-I", "-C", 0, 1)):
			report, _ = record("profile", *args)
			account = report["account"]
			check_law(account)
			check_equal(sum(sample["values"][0] for sample in report["samples"]), account["recorded"], "samples of %s" % (args,))
			check_equal(sum(account["stopped"].values()) + account["missed_user"] >= 0, True, "stops")
			check(account["recorded"] > 100, "%s recorded %d" % (args, account["recorded"]))
			notes.append("%d=%d+%d+%d" % (account["ticks"], account["recorded"], sum(account["filtered"].values()), sum(account["dropped"].values())))
	return ", ".join(notes)


@test
def ticks_come_at_the_rate():
	"""-F HZ gives that many ticks per second and CPU, whatever runs; -c NANOSECONDS of cpu-clock likewise. A host that steals CPU time also
	steals ticks: one of three attempts has all of them."""
	need_bpf()
	nr_cpus = len(os.sched_getaffinity(0))
	for args, hertz in ((("-F", 99), 99), (("-F", 1000), 1000), (("-c", 10000000), 100)):
		for last in (False, False, True):
			with Program("chain", 10), Program("chain", 10):
				account = account_of(*args, "-I", 2)
			check_law(account)
			want = hertz * account["nr_cpus"] * account["duration_ns"] / 1e9
			missed = account["ticks"] - want
			check(missed <= want * 0.05 + 2 and (not last or -missed <= want * 0.05 + 2), "%s on %d CPUs for %.2f s: %d ticks, want %.0f" % (
				args, nr_cpus, account["duration_ns"] / 1e9, account["ticks"], want))
			if -missed <= want * 0.05 + 2:
				break


@test
def samples_are_the_cpu_time():
	"""A process's samples divided by the rate equal its CPU time as the kernel reports it."""
	need_bpf()
	with Program("chain", 30) as program, Program("chain", 10), Program("chain", 10):
		path = scratch("time.json")
		with Background("profile", "-o", path, "-p", program.pid, "-F", 999, 3) as running:
			running.wait_line(BEGINS)
			before = cpu_seconds(program.pid)
			while not os.path.exists(path) and running.process.poll() is None:
				used = cpu_seconds(program.pid) - before
				time.sleep(0.01)
			check_equal(running.finish().code, 0, "exit code")
		account = json.loads(read(path))["account"]
	got, late = account["recorded"] / 999, 0.15 # between the end of sampling and the report
	check(used * 0.93 - late <= got <= used * 1.03 + 0.05, "%.2f s of samples, the process had %.2f s" % (got, used))
	return "%.2f s of %.2f s" % (got, used)


def nice_of(pid):
	with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
		return int(file.read().rpartition(")")[2].split()[16])


@test
def observing_comes_first():
	"""During a recording, sonde and its helpers have ten nice steps of priority over others; the command it starts does not."""
	need_bpf()
	own, end = nice_of(os.getpid()), time.monotonic() + 20
	want = {"sleep": own, "sonde": own - 10, "sonde-proxy": own - 10, "sonde-worker": own - 10}
	with Background("offcpu", "-o", scratch("nice.json"), "--", "sleep", 60) as running:
		pid, found = running.process.pid, None
		while found != want and time.monotonic() < end:
			with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
				pids = [pid, *map(int, file.read().split())]
			found = {read("/proc/%d/comm" % one).decode().strip(): nice_of(one) for one in pids}
			time.sleep(0.05)
		check_equal(found, want, "nice values")
		running.send(signal.SIGINT)
		check_equal(running.finish().code, 0, "exit code")


@test
def full_stack_store_is_told():
	need_bpf()
	with Program("threads") as program:
		result = sonde("profile", "-f", "-p", program.pid, "-F", 999, "--stack-storage-size", 1, 1, want=0)
		text = sonde("profile", "-p", program.pid, "-F", 999, "--stack-storage-size", 1, 1, want=0)
	missed = [stack for stack in parse_folded(result.out) if stack.user == ["[Missed User Stack]"]]
	check(total(missed) > 50, lambda: "few missed stacks: %s" % result)
	check("    [Missed User Stack]\n" in text.out, lambda: "not in the text layout: %s" % text)
	for one in (result, text):
		check(re.search(r"^WARNING: [1-9]\d* stack traces could not be displayed\. Consider increasing --stack-storage-size\.$",
			one.err, re.MULTILINE), lambda: "no BCC warning: %s" % one)


# --- targets -------------------------------------------------------------------------------------------------------------------------

@test
def several_processes():
	need_bpf()
	with Program("chain", 10) as one, Program("syscalls") as two, Program("callback"):
		stacks = parse_folded(sonde("profile", "-f", "-a", "-F", 997, "-p", "%d,%d" % (one.pid, two.pid), 1, want=0).out)
	check_equal({stack.comm for stack in stacks}, {"chain", "syscalls"}, "who was sampled")


@test
def one_thread():
	need_bpf()
	with Program("threads") as program:
		tids = {read("/proc/%d/task/%s/comm" % (program.pid, tid)).decode().strip(): tid for tid in os.listdir("/proc/%d/task" % program.pid)}
		stacks = parse_folded(sonde("profile", "-f", "-a", "-F", 1999, "-L", tids["green"], 2, want=0).out)
		check_exact(stacks, lambda stack: chain_error(stack, program.chains["green"]))
		refused = sonde("profile", "-f", "-p", tids["green"], 1)
	check_equal({stack.comm for stack in stacks}, {"green"}, "who was sampled")
	check(refused.code in (1, 2) and re.search(r"(^|\s)-L\b", refused.err) and tids["green"] in refused.err and not refused.out,
		lambda: "-p with a thread's id: %s" % refused)


@test
def by_name():
	need_bpf()
	with Program("threads") as program, Program("chain", 10):
		stacks = parse_folded(sonde("profile", "-f", "-a", "-F", 1999, "-n", "blue", 2, want=0).out)
		check_exact(stacks, lambda stack: chain_error(stack, program.chains["blue"]))
	check_equal({stack.comm for stack in stacks}, {"blue"}, "who was sampled")


@test
def one_cpu():
	need_bpf()
	cpus = sorted(os.sched_getaffinity(0))
	if len(cpus) < 2 or cpus[0] != 0:
		skip("one CPU")
	with Program("chain", 10) as here, Program("syscalls") as there:
		os.sched_setaffinity(here.pid, {0})
		os.sched_setaffinity(there.pid, {cpus[1]})
		stacks = parse_folded(sonde("profile", "-f", "-a", "-F", 997, "-C", 0, 1, want=0).out)
	comms = {stack.comm for stack in stacks}
	check("chain" in comms and "syscalls" not in comms, "on CPU 0: %s" % comms)


def more_than(nr, *args):
	"""Returns the stacks of a one-second recording, or of a longer one when others leave the workload little time."""
	for seconds in (1, 10):
		stacks = parse_folded(sonde("profile", "-f", "-a", *args, seconds, want=0).out)
		if total(stacks) > nr:
			return stacks
	raise Failure("only %d samples: %s" % (total(stacks), args))


@test
def user_only_and_kernel_only():
	need_bpf()
	with Program("syscalls") as program:
		user, kernel = (more_than(50, "-F", 499, side, "-p", program.pid) for side in ("-U", "-K"))
	check(not any(stack.kernel for stack in user), "kernel frames under -U")
	check(any("reader" in stack.user for stack in user), "-U lost the user stack of samples in the kernel")
	check(not any(stack.user for stack in kernel), "user frames under -K")
	check(sum(stack.count for stack in kernel if stack.kernel) > 0.5 * total(kernel), "few kernel stacks under -K")


@test
def delimiter():
	need_bpf()
	with Program("syscalls") as program:
		folded = sonde("profile", "-f", "-d", "-F", 499, "-p", program.pid, 1, want=0).out
		text = sonde("profile", "-d", "-F", 499, "-p", program.pid, 1, want=0).out
	lines = [line for line in folded.splitlines() if ";entry_SYSCALL_64" in line]
	check(lines and all(re.search(r";-;(entry_SYSCALL_64|[a-z_]*entry)", line) for line in lines), lambda: "no - before the kernel side: %s" % folded[:800])
	blocks = [block.splitlines() for block in text.split("\n\n") if "    reader" in block]
	both = [block for block in blocks if "    --" in block]
	check(both and all(block.index("    --") < block.index("    reader") for block in both), lambda: "no -- between kernel and user: %s" % text[:800])
	check(all("    --" not in block for block in blocks if block[0].strip() in ("reader", "read", "__read")), "-- where only the user side is")


@test
def idle_is_hidden_and_counted():
	"""Without -I idle CPUs are filtered; with -I they are samples, at most as many as the kernel's own count. There may be fewer: on some
	machines the clock of an idle CPU stops, for perf too (seen here: half of the idle ticks of `perf record -a -e cpu-clock`)."""
	need_bpf()
	path = scratch("idle.json")
	for args, field in (((), "filtered"), (("-I",), "samples")):
		with Background("profile", "-F", 499, "-o", path, *args, 3) as running:
			running.wait_line(BEGINS)
			before = idle_seconds()
			time.sleep(2.9)
			idle = (idle_seconds() - before) * 3 / 2.9
			check(running.finish().code in (0, 5), "exit code")
		report = json.loads(read(path))
		filtered = report["account"]["filtered"]["idle"]
		shown = sum(sample["values"][0] for sample in report["samples"] if sample["pid"] == 0)
		check((shown if field == "filtered" else filtered) == 0, "%s: %d filtered, %d shown" % (args, filtered, shown))
		got = (filtered + shown) / 499
		check(got <= 1.2 * idle + 0.3 and (got > 0 or idle < 1), "%s: %.2f s of idle samples, the kernel says %.2f s" % (args, got, idle))
	return "%.2f s of %.2f s" % (got, idle)


@test
def unknown_event_falls_back():
	"""Without hardware counters there is a warning on stderr and in the report, and there are samples; --no-fallback refuses."""
	need_bpf()
	with Program("chain", 10) as program:
		report, result = record("profile", "-e", "cycles", "-F", 499, "-p", program.pid, 1)
		account = report["account"]
		if account["event"] == "cycles":
			return "this machine counts cycles"
		check("cpu-clock" in result.err, lambda: "no warning: %s" % result)
		check(account["event"] == "cpu-clock" and any("cpu-clock" in note for note in account["notes"]), "no note in the report: %s" % account)
		refused = sonde("profile", "-e", "cycles", "--no-fallback", "-p", program.pid, 1)
	check(refused.code == 4 and "cycles" in refused.err, lambda: str(refused))
	return "no hardware counters"


# --- the command ---------------------------------------------------------------------------------------------------------------------

@test
def command_status_is_passed_on():
	need_bpf()
	work = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; "
	for script, want in (("exit 7", 7), ("exit 0", 0), ("kill -9 $$", 137), ("kill -TERM $$", 143)):
		path = scratch("status.folded")
		result = sonde("profile", "-F", 499, "-o", path, "--", "sh", "-c", work + script)
		check_equal(result.code, want, "sh -c '%s'\n%s" % (script, result))
		check(os.path.getsize(path) > 0, "no report for %s" % script)
		os.unlink(path)
	check_equal(sonde("profile", "-f", "--", "sh", "-c", "exit 7").code, 7, "a command that ends before the first sample")


@test
def command_keeps_its_streams():
	need_bpf()
	path = scratch("streams.folded")
	result = sonde("profile", "-F", 499, "-o", path, "--", "sh", "-c", "cat; echo to-err >&2; i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done",
		stdin=subprocess.DEVNULL)
	check(result.code == 0 and result.out == "" and "to-err\n" in result.err, lambda: str(result))


@test
def command_that_is_not_there():
	need_bpf()
	for path, code in (("/nonexistent/program", 127), ("no-such-program-anywhere", 127), ("/etc/passwd", 126), ("/tmp", 126)):
		result = sonde("profile", "-f", "--", path)
		check(result.code == code and not result.out and re.search(r"^sonde: .*%s" % re.escape(path), result.err, re.MULTILINE), lambda: "%s: %s" % (path, result))


def shown_on_a_terminal(*argv):
	"""Returns all that a program wrote to standard error, which is a terminal."""
	ours, theirs = pty.openpty()
	with subprocess.Popen([SONDE, *map(str, argv)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs) as process:
		os.close(theirs)
		shown = b""
		with contextlib.suppress(OSError): # EIO: nobody has the other end open any more
			while True:
				shown += os.read(ours, 65536)
		os.close(ours)
		check_equal(process.wait(), 0, shown.decode())
	return shown.decode()


@test
def progress_is_no_flicker():
	"""At most five updates a second, even while starting processes keep waking sonde."""
	need_bpf()
	shown = shown_on_a_terminal("profile", "-o", scratch("progress.folded"), "--", "sh", "-c", "i=0; while [ $i -lt 1500 ]; do /bin/true; i=$((i+1)); done")
	drawn = re.findall(r"\r\x1b\[K(\d+) s, (\d+) samples", shown)
	lasted = float(re.search(r"CPUs for ([\d.]+) s", shown).group(1))
	check(0 < len(drawn) <= 5 * lasted + 1, "%d times in %.1f s: %s" % (len(drawn), lasted, drawn[:20]))
	return "%d times in %.1f s" % (len(drawn), lasted)


# --- exit codes and where the report goes --------------------------------------------------------------------------------------------

@test
def no_such_process():
	need_bpf()
	for letter in ("-p", "-L"):
		result = sonde("profile", letter, 4194303, 5)
		check(result.code == 1 and not result.out and "4194303" in result.err and result.seconds < 3, lambda: str(result))


@test
def not_permitted():
	"""As nobody: exit 3, and the message says which capability is missing and how to get it."""
	if os.geteuid() != 0 or not find_tool("setpriv"):
		skip("not root, or no setpriv")
	reachable = scratch("sonde") # nobody may have no access to the checkout
	shutil.copy(SONDE, reachable)
	result = run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", reachable, "profile", "-f", "1"])
	check(result.code == 3 and not result.out, lambda: str(result))
	check(re.search(r"CAP_(BPF|PERFMON|SYS_ADMIN)", result.err) and re.search(r"sudo|as root|setcap", result.err), lambda: str(result))


@test
def no_samples():
	need_bpf()
	path, html = scratch("empty.json"), scratch("empty.html")
	with subprocess.Popen(["sleep", "30"]) as sleeper:
		try:
			result = sonde("profile", "-p", sleeper.pid, "-o", path, "-o", html, 1)
		finally:
			sleeper.kill()
	check_equal(result.code, 5, str(result))
	check_equal(json.loads(read(path))["samples"], [], "samples of a sleeper")
	check_law(json.loads(read(path))["account"])
	check(b"<html" in read(html), "no page")


@test
def cannot_write_the_report():
	"""An -o that cannot be written is refused before anything starts; no partial file remains."""
	need_bpf()
	folder = fresh_folder("outputs")
	with Program("chain", 10) as program:
		for path in (folder + "/missing/out.html", folder, "/dev/full/x.json"):
			result = sonde("profile", "-p", program.pid, "-o", path, "--format", "json", 20)
			check(result.code == 1 and result.seconds < 5, lambda: "%s: %s" % (path, result))
			check(re.search(r"^sonde: .*%s" % re.escape(path), result.err, re.MULTILINE), lambda: "%s is not named: %s" % (path, result))
		wrong = sonde("profile", "-p", program.pid, "-o", folder + "/out.unknown", 20)
		check(wrong.code == 2 and ".pb.gz" in wrong.err and wrong.seconds < 5, lambda: str(wrong))
	check_equal(os.listdir(folder), [], "left behind")


@test
def full_disk():
	"""The disk is full when the report is written: exit 1, the old file is unchanged, the other output is written."""
	need_bpf()
	folder, good = fresh_folder("disk"), scratch("good.folded")
	if run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", folder]).code:
		skip("no right to mount")
	try:
		old = os.path.join(folder, "out.json")
		with open(old, "w", encoding="ascii") as file:
			file.write("old\n")
		with Program("chain", 1500) as program:
			result = sonde("profile", "-F", 999, "-p", program.pid, "-o", old, "-o", good, 1)
		check(result.code == 1 and re.search(r"^sonde: .*out\.json", result.err, re.MULTILINE), lambda: str(result))
		check_equal(read(old), b"old\n", "the old file")
		check_equal(os.listdir(folder), ["out.json"], "left behind")
		check(total(parse_folded(read(good).decode())) > 50, "the output that could be written is not there")
	finally:
		run(["umount", folder])


@test
def stdout_that_fails():
	need_bpf()
	with Program("chain", 10) as program:
		with open("/dev/full", "wb") as full:
			result = sonde("profile", "-f", "-p", program.pid, 1, stdout=full)
		check(result.code == 1 and re.search(r"^sonde: .*", result.err, re.MULTILINE), lambda: "/dev/full: %s" % result)
		result = run(["sh", "-c", 'exec "$0" "$@" >&-', SONDE, "profile", "-f", "-p", program.pid, 1])
		check(result.code == 1 and re.search(r"^sonde: .*", result.err, re.MULTILINE), lambda: "closed stdout: %s" % result)
		reader, writer = os.pipe()
		os.close(reader)
		try:
			result = sonde("profile", "-f", "-p", program.pid, 1, stdout=writer)
		finally:
			os.close(writer)
		check(result.code == 1, lambda: "a pipe without a reader: %s" % result)


@test
def usage_errors():
	"""Refused before anything starts, with one line that says what to do."""
	for args in (["-F", "0"], ["-F", "-5"], ["-F", "abc"], ["-c", "0"], ["-c", "1x"], ["0"], ["-1"], ["x"], ["1", "2"], ["-U", "-K"], ["-F", "9", "-c", "9"],
			["--stack-storage-size", "0"], ["--stack-storage-size", "abc"], ["-p", "abc"], ["-p", "0"], ["-p", "1,"], ["-C", "abc"], ["--nonsense"],
			["-F", "99999999999999999999"], ["-p", "1", "-L", "1"], ["-e", ""], ["--format", "nonsense"]):
		result = sonde("profile", *args)
		check(result.code == 2 and not result.out and result.seconds < 2, lambda: "%s: %s" % (args, result))
		check(result.err.startswith("sonde: ") and result.err.count("\n") == 1, lambda: "%s: more than one line, or none: %s" % (args, result))


# --- formats ---------------------------------------------------------------------------------------------------------------------------

def parse_text(text):
	"""Parses BCC's layout: frames leaf first, `    -                comm (pid)`, count, blank line. Problems come first in the text; when
	the whole machine is recorded, other processes can cause some."""
	stacks = []
	text = re.sub(r"\A(WARNING: [^\n]+\n)+", "", text)
	check(text.startswith("\n") and text.endswith("\n\n"), lambda: "no blank line before and after the stacks: %r ... %r" % (text[:50], text[-50:]))
	for block in text[1:].split("\n\n")[:-1]:
		lines = block.split("\n")
		who = re.fullmatch(r"    -                (.*) \((\d+)\)", lines[-2])
		check(who and re.fullmatch(r"        [1-9]\d*", lines[-1]), lambda: "no stack of BCC's layout: %r" % block)
		check(all(line.startswith("    ") for line in lines), lambda: "a frame without indent: %r" % block)
		stacks.append((who.group(1), int(who.group(2)), [line[4:] for line in lines[:-2]], int(lines[-1])))
	return stacks


@test
def text_layout():
	need_bpf()
	with Program("chain", 10) as program, Program("syscalls"):
		result = sonde("profile", "-F", 499, 2, want=0)
	stacks = parse_text(result.out)
	counts = [stack[3] for stack in stacks]
	check_equal(counts, sorted(counts), "ascending order of counts")
	check_equal(len({(stack[0], stack[1], tuple(stack[2])) for stack in stacks}), len(stacks), "equal stacks are one line")
	mine = [stack for stack in stacks if stack[1] == program.pid and "main" in stack[2]]
	check(mine, "the workload is not there")
	best = mine[-1]
	check_equal(best[2][:best[2].index("main") + 1], program.chains["chain"][::-1], "leaf first")


@test
def formats():
	"""One run gives each format; other tests check how other programs read them."""
	need_bpf()
	paths = {suffix: scratch("all" + suffix) for suffix in (".txt", ".folded", ".json", ".pb.gz", ".html", ".speedscope.json", ".firefox.json", ".otlp.json")}
	with Program("chain", 30) as program:
		result = sonde("profile", "-F", 499, "-p", program.pid, *[word for path in paths.values() for word in ("-o", path)], 2, want=0)
	check_equal(result.out, "", "stdout when every output is a file")
	check(re.search(r"^ +SELF +TOTAL +FUNCTION\n +(9\d|100)\.\d\d % +\d+\.\d\d %  leaf ", result.err, re.MULTILINE), lambda: "no look at the hottest: %s" % result)
	report = json.loads(read(paths[".json"]))
	nr = report["account"]["recorded"]
	check_equal(sum(stack[3] for stack in parse_text(read(paths[".txt"]).decode())), nr, "samples in text")
	check_equal(total(parse_folded(read(paths[".folded"]).decode())), nr, "samples in folded")
	check(b"__libc_start_main" in gzip.decompress(read(paths[".pb.gz"])), "no name in pprof's string table")
	for suffix, key in ((".speedscope.json", "profiles"), (".firefox.json", "threads"), (".otlp.json", "resourceProfiles")):
		check(key in json.loads(read(paths[suffix])), "%s is another format" % suffix)
	page = read(paths[".html"]).decode()
	check(re.match(r"(?i)<!doctype html>", page) and "f9" in page, "no page")
	check(not re.search(r"""(?i)(src|href)\s*=\s*["']?(https?:)?//""", page), "the page needs the network")


HOSTILE = ["a;b c 7", "line\\nbreak 9", "\\e[31mred\\e[0m", "</script><b>x", '"\\x5c\\x27', "\\xff\\xfe\\x80bytes", " lead trail ", "per%%s%n", "\\x01\\x7f"]


@test
def hostile_names():
	"""A thread can have any name: each line stays one line, no escape sequence reaches the terminal, and JSON and HTML stay valid."""
	need_bpf()
	paths = [scratch("hostile" + suffix) for suffix in (".txt", ".folded", ".json", ".html")]
	for name in HOSTILE:
		with Program("named", name) as program:
			sonde("profile", "-F", 499, "-p", program.pid, *[word for path in paths for word in ("-o", path)], 1, want=0)
		text, folded, document, page = [read(path) for path in paths]
		for raw in (text, folded):
			check(not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", raw), lambda: "%r: control characters in %r" % (name, raw[:300]))
		stacks = parse_folded(folded.decode())
		check(all(stack.user[-2:] == ["main", "named_leaf"] or stack.count < 5 for stack in stacks), lambda: "%r: %r" % (name, folded[:300]))
		check(sum(stack[3] for stack in parse_text(text.decode())) == total(stacks), lambda: "%r: text and folded differ" % name)
		report = json.loads(document.decode())
		check_equal(sum(sample["values"][0] for sample in report["samples"]), total(stacks), "samples of %r" % name)
		check(b"</script><b>x" not in page, lambda: "%r breaks out of the page's script" % name)
		check_equal(page.lower().count(b"<script"), page.lower().count(b"</script"), "script elements for %r" % name)


# --- leftovers -----------------------------------------------------------------------------------------------------------------------

def bpf_left(ids, kind):
	bpftool = find_tool("bpftool") or "/usr/sbin/bpftool"
	return {number for number in ids if run([bpftool, kind, "show", "id", number]).code == 0}


@test
def nothing_is_left():
	"""No program, map, pin or file remains after the end, even after SIGKILL."""
	need_bpf()
	folder = fresh_folder("tmpdir")
	with Program("chain", 10) as program:
		for end in (signal.SIGINT, signal.SIGKILL):
			with Background("profile", "-f", "-p", program.pid, env={**os.environ, "TMPDIR": folder}) as running:
				time.sleep(1.5)
				held = {kind: bpf_ids(running.process.pid, kind) for kind in ("prog", "map")}
				check(all(held.values()), "no BPF program or map was there during the run: this test sees nothing")
				running.send(end)
				running.process.communicate(timeout=10)
			for kind, ids in held.items():
				stop = time.monotonic() + 5 # the kernel frees them slightly later
				while bpf_left(ids, kind) and time.monotonic() < stop:
					time.sleep(0.1)
				check_equal(bpf_left(ids, kind), set(), "%s left after signal %d" % (kind, end))
	pinned = [os.path.join(place, name) for place, _, names in os.walk("/sys/fs/bpf") for name in names if "sonde" in name]
	check_equal((os.listdir(folder), pinned), ([], []), "files and pins left")


@test
def command_ends_with_sonde():
	"""When a command outlives the duration, the report is written and nobody waits for the command forever."""
	need_bpf()
	result = sonde("profile", "-F", 499, "-f", 1, "--", build("chain"), 30, 10, timeout=15)
	check(result.seconds < 10, "took %.1f s" % result.seconds)
	stacks = [line for line in result.out.splitlines() if line.startswith("chain;")]
	check(stacks, lambda: str(result))


run_tests()
