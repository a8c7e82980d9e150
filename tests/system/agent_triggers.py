#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde agent --trigger: each kind fires when it should and not before, what is wrong is refused where it stands, and what is hostile is said, counted and waited for by nobody."""
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import SONDE, Program, check, check_equal, converted, fresh_folder, need_bpf, run, run_tests, skip, sonde, test # noqa: E402
from hung_server import Server, compiled # noqa: E402
from recorders import Recorder, check_incident # noqa: E402


@test
def what_is_no_trigger():
	for text, want in (("cpy>80%/10s", "at character 1: there is no 'cpy': did you mean cpu"), ("cpu", "at character 4: '>' stands here"), ("cpu>x%/10s", "at character 5: a number"), ("cpu>80/10s", "at character 7: % stands here"), ("cpu>80%", "at character 8: '/' and the time"), ("cpu>80%/10", "at character 9: a time from 1s to 10m"), ("cpu>80%/11m", "at character 9: a time"), ("cpu>100%/1s", "never above 100"), ("cpu>80%/10s ", "at character 12: nothing"), ("psi.cpus>1%/1s", "did you mean psi.cpu"), ("file:p99>1/1s", "at character 6: a path that begins with /"), ("file:/p99", "at character 10: '>' and a number"), ("oom>1", "at character 4: nothing"), ("sygnal", "did you mean signal"), ("xyzzy", "cpu, psi.cpu, psi.io"), ("cpu<80%/10s", "at character 4: '>' stands here"), ("cpu>%s%%/1s" % ("9" * 400), "at character 5: a number")):
		result = sonde("agent", "--store", fresh_folder("no-trigger"), "--recorder", 60, "--trigger", text, 1, want=2)
		check(want in result.err, lambda: "%s: %s" % (text, result)) # pylint: disable=cell-var-from-loop
	for args, want in ((("--trigger", "oom"), "--recorder 5m"), (("--recorder", 60, "--store", "none", "--otlp", "http://h"), "no place"), (("--recorder", 60, "--measure", "offcpu"), "cpu profiles"), (("--recorder", 60, *["--trigger", "oom"] * 17), "16 triggers at most")):
		result = sonde("agent", "--store", fresh_folder("no-trigger"), *args, 1, want=2)
		check(want in result.err, lambda: str(result)) # pylint: disable=cell-var-from-loop
	result = sonde("agent", "--recorder", "5m", "--trigger", "cpu>80%/10s", "--trigger", "file:/a>b>0.5/1m", "--print-config", want=0, env=dict(os.environ, SONDE_RECORDER_MAX_BYTES="1M"))
	check("\nrecorder: 300\ntrigger: ['cpu>80%/10s', 'file:/a>b>0.5/1m']\n" in result.out and "recorder-max-bytes: 1048576" in result.out, lambda: str(result))


@test
def what_the_kernel_does_not_have():
	"""It is said at the start, with the code for that."""
	need_bpf()
	folder = fresh_folder("no-psi")
	result = run(["unshare", "-m", "sh", "-c", "mount --bind /dev/null /proc/pressure/cpu && exec \"$@\"", "sh", SONDE, "agent", "--store", folder, "--recorder", "60", "--trigger", "psi.cpu>1%/1s", "5"])
	if "mount:" in result.err or "unshare:" in result.err:
		skip("nothing can be mounted here: %s" % result.err.strip())
	check(result.code == 4 and "psi=1" in result.err, lambda: str(result))


def fires(name, trigger, words, cause, *args):
	"""A condition that becomes true while the agent runs: it fires once, and not before."""
	need_bpf()
	with Program("chain") as program, Recorder(name, "--trigger", trigger, *args) as recorder:
		recorder.wait_for_windows(4)
		check_equal(recorder.status()["nr_incidents"], 0, "incidents before there was a cause")
		with cause():
			recorder.running.wait_line("incident: " + trigger, 60)
			fired = time.time()
			recorder.wait_stored()
		check_equal(recorder.status()["nr_incidents"], 1, "incidents")
		recorder.end()
	return check_incident(recorder, program.pid, fired, re.escape(trigger) + (": " + words if words else ""))


class Written:
	"""A file with a number that a service writes."""

	def __init__(self, name, text):
		self.path, self.text = os.path.join(fresh_folder(name), "p99"), text
		self.write("1\n")

	def write(self, text):
		with open(self.path + ".new", "w", encoding="ascii") as file:
			file.write(text)
		os.replace(self.path + ".new", self.path)

	def __enter__(self):
		self.write(self.text)

	def __exit__(self, *exc):
		self.write("1\n")


@test
def the_number_of_a_file():
	written = Written("number", " 250.5\n")
	fires("file", "file:%s>200/2s" % written.path, r"250\.5|2\d\d|1\d\d", lambda: written)


@test
def the_mean_counts():
	"""One large number within the time is none above the limit; a condition that goes on fires once."""
	need_bpf()
	written = Written("mean", "500")
	with Recorder("mean-store", "--trigger", "file:%s>200/5s" % written.path, after=1) as recorder:
		recorder.wait_for_windows(7)
		with written:
			time.sleep(1.2)
		time.sleep(5)
		check_equal(recorder.status()["nr_incidents"], 0, "incidents by a moment")
		with written:
			recorder.wait_stored()
			time.sleep(4)
			check_equal(recorder.status()["nr_incidents"], 1, "incidents by a condition that goes on")
		recorder.end()


@test
def hostile_files():
	"""A FIFO, a device, a large file, words, none, one whose file system does not answer: said once each, counted, and nothing waits for them."""
	need_bpf()
	folder = fresh_folder("hostile-files")
	names = ["fifo", "large", "words", "missing", "device"]
	os.mkfifo(os.path.join(folder, "fifo"))
	os.symlink("/dev/zero", os.path.join(folder, "device"))
	for name, text in ("large", "1" * 100000), ("words", "quick brown\x1b[31m\n"):
		with open(os.path.join(folder, name), "w", encoding="ascii") as file:
			file.write(text)
	with Server(os.path.join(folder, "large"), "others") as server:
		server.process.send_signal(signal.SIGSTOP)
		paths = [os.path.join(folder, name) for name in names] + [os.path.join(server.directory, "lib.so")]
		with Recorder("hostile-store", "--trigger", "signal", *[word for path in paths for word in ("--trigger", "file:%s>200/1s" % path)]) as recorder:
			recorder.wait_for_windows(6)
			recorder.running.send(signal.SIGUSR2)
			until = time.monotonic() + 60
			while not recorder.status()["nr_stored"]:
				check(time.monotonic() < until, "no incident beside files that hang")
				time.sleep(0.2)
			status = recorder.status()
			began = time.monotonic()
			err = recorder.end().err
			took = time.monotonic() - began
	check(status["nr_unread"] >= 3 * len(paths), lambda: str(status))
	check(took < 10, "the end took %.1f s" % took)
	for path, why in zip(paths, ("is no regular file", "holds no number", "holds no number", "cannot be read", "is no regular file", "does not answer")):
		check_equal(len(re.findall("trigger file:%s>200/1s: it %s" % (re.escape(path), why), err)), 1, "complaints of %s" % path)
	check("quick" not in err and "\x1b" not in err, lambda: err)


def run_and_read(recorder, nr):
	recorder.wait_for_windows(nr)
	return recorder.end().err


@test
def what_cannot_be_read_is_said_once():
	need_bpf()
	path = os.path.join(fresh_folder("unread"), "p99")
	with Recorder("unread-store", "--trigger", "file:%s>200/1s" % path) as recorder:
		recorder.wait_for_windows(6)
		with open(path, "w", encoding="ascii") as file:
			file.write("none")
		time.sleep(2)
		with open(path, "w", encoding="ascii") as file:
			file.write("7")
		err = run_and_read(recorder, 12)
	check_equal(len(re.findall("trigger file:.*: it cannot be read|it holds no number", err)), 1, "complaints")
	check_equal(err.count("it can be read again"), 1, "ends of complaints")


class Busy:
	"""Twice as many busy processes as CPUs."""

	def __enter__(self):
		self.processes = [subprocess.Popen([sys.executable, "-c", "while True: sum(range(1000))"]) for _ in range(2 * os.sysconf("SC_NPROCESSORS_ONLN"))]

	def __exit__(self, *exc):
		for process in self.processes:
			process.kill()
			process.wait()


def fires_while_busy(name, trigger, note):
	with Busy(), Program("chain") as program, Recorder(name, "--trigger", trigger) as recorder:
		recorder.running.wait_line("incident: " + trigger, 60)
		fired = time.time()
		recorder.wait_stored()
		recorder.end()
	check_incident(recorder, program.pid, fired, note, nr=5)


@test
def the_processors_are_busy():
	"""On a machine that is busy with others it fires as soon as it may."""
	need_bpf()
	fires_while_busy("cpu", "cpu>90%/3s", r"cpu>90%/3s: (9\d|100)[.\d]* %")


@test
def threads_wait_for_processors():
	need_bpf()
	if not os.path.exists("/proc/pressure/cpu"):
		skip("this kernel has no /proc/pressure")
	fires_while_busy("psi", "psi.cpu>30%/3s", r"psi\.cpu>30%/3s: \d+[.\d]* %")


CRASH = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
__attribute__((noipa)) static int third(volatile int *p) { return *p + 1; }
__attribute__((noipa)) static int second(volatile int *p) { return third(p) + 1; }
__attribute__((noipa)) static void gives_up(void) { abort(); }
static void again(int signal_number) { signal(signal_number, SIG_DFL); raise(signal_number); }
static void survive(int signal_number) { _Exit(signal_number - 4); }
int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	if (!strcmp(how, "abort"))
		gives_up();
	if (*how)
		signal(SIGSEGV, !strcmp(how, "again") ? again : survive);
	return second((volatile int *)(long)(8 * argc));
}
"""


def crash(how=""):
	return subprocess.run([compiled("crashes", CRASH), *how.split()], check=False, stderr=subprocess.DEVNULL).returncode


def names_of(report, sample):
	return [report["functions"][report["frames"][frame]["function"]]["name"] for frame in report["stacks"][sample["user_stack"]]]


@test
def a_crash_has_its_last_stack():
	"""The stack is the one at which the signal was delivered, also behind a handler that raises it again; a signal that a handler takes is no crash."""
	need_bpf()
	compiled("crashes", CRASH)
	with Program("chain") as program, Recorder("crash", "--trigger", "crash", after=4) as recorder:
		recorder.wait_for_windows(3)
		check_equal(crash("survive"), 7, "a handled signal")
		time.sleep(3.5)
		check_equal(recorder.status()["nr_incidents"], 0, "incidents by a signal that was handled")
		fired = time.time()
		codes = [crash(), crash("again"), crash("abort")]
		recorder.running.wait_line("incident: crash: process ", 60)
		recorder.wait_stored()
		recorder.end()
	check_equal(codes, [-signal.SIGSEGV, -signal.SIGSEGV, -signal.SIGABRT], "ends of the programs")
	check_incident(recorder, program.pid, fired, r"crash: process \d+ \(crashes\)")
	report = converted(recorder.folder + "@,crash")
	stacks = [names_of(report, sample) for sample in sorted(report["samples"], key=lambda sample: int(sample["time_unix_ns"]))]
	check_equal([sample["comm"] for sample in report["samples"]], ["crashes"] * 3, "whose stacks")
	check_equal([stack[:3] for stack in stacks[:2]], [["third", "second", "main"]] * 2, "leaves of both faults")
	check("gives_up" in stacks[2] and "abort" in stacks[2], lambda: str(stacks[2]))
	check(all(fired - 1 < int(sample["time_unix_ns"]) / 1e9 < fired + 5 for sample in report["samples"]), "times of crashes")


def memory_cgroup():
	"""A cgroup of our own with 20 MiB, of version 2 or 1; and the file that takes processes."""
	for top, limit in ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max"):
		path = os.path.join(top, "sonde-test-oom-%d" % os.getpid())
		try:
			os.mkdir(path)
			with open(os.path.join(path, limit), "w", encoding="ascii") as file:
				file.write("20M")
			return path
		except OSError:
			if os.path.isdir(path):
				os.rmdir(path)
	return skip("no cgroup of memory can be made")


@test
def memory_runs_out():
	path = memory_cgroup()

	class Eater:
		def __enter__(self):
			subprocess.run(["sh", "-c", "echo $$ >%s/cgroup.procs; exec %s -c 'x = bytearray(100 << 20)'" % (path, sys.executable)], check=False, stderr=subprocess.DEVNULL)

		def __exit__(self, *exc):
			pass

	try:
		report = fires("oom", "oom", "", Eater)
	finally:
		os.rmdir(path)
	if os.access("/dev/kmsg", os.R_OK):
		check(any(re.search(r"oom: process \d+ \(python", note) for note in report["account"]["notes"]), lambda: str(report["account"]["notes"]))


@test
def waits_for_a_processor_are_long():
	"""More processes than processors wait for milliseconds; a limit above any wait is never reached."""
	need_bpf()
	with Program("chain") as program, Recorder("runq", "--trigger", "runq.p99>2ms/2s") as recorder:
		with Busy():
			recorder.running.wait_line("incident: runq.p99>2ms/2s", 60)
			fired = time.time()
			recorder.wait_stored()
		recorder.end()
	check_incident(recorder, program.pid, fired, r"runq\.p99>2ms/2s: [\d.]+ % of the waits are longer", nr=5)
	with Busy(), Recorder("runq-never", "--trigger", "runq.p99>60000ms/1s") as recorder:
		recorder.wait_for_windows(6)
		check_equal(recorder.status()["nr_incidents"], 0, "incidents by waits of a minute")
		recorder.end()


run_tests()
