#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde agent --recorder: what was before a trigger and what comes after it is stored with the times of samples, once, within its bounds; each kind of trigger fires when it should."""
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from collectors import HttpCollector, counts # noqa: E402
from harness import Background, Program, check, check_equal, converted, fresh_folder, need_bpf, nr_samples, run_tests, scratch, skip, sonde, test # noqa: E402
from hung_server import Server # noqa: E402

NS = 10**9


class Recorder:
	"""An agent with a recorder, and windows of a second."""

	def __init__(self, name, *args, recorder=30, after=2):
		self.folder = fresh_folder(name)
		self.running = Background("agent", "--store", self.folder, "--window", 1, "-F", 97, "--recorder", recorder, "--recorder-after", after, *args)

	def __enter__(self):
		self.running.wait_line("Sampling", 60)
		return self

	def __exit__(self, *exc):
		self.running.__exit__(*exc)

	def rows(self, kind):
		with sqlite3.connect("file:%s?mode=ro" % os.path.join(self.folder, "profiles.db"), uri=True) as connection:
			return connection.execute("SELECT start_ns, end_ns FROM window WHERE type = ? ORDER BY id", (kind,)).fetchall()

	def wait_for_windows(self, nr):
		until = time.monotonic() + 60
		while len(self.rows("cpu")) < nr:
			check(time.monotonic() < until, "no %d windows" % nr)
			time.sleep(0.1)

	def wait_stored(self):
		self.running.wait_line("incident is stored", 120)

	def status(self):
		return json.loads(sonde("agent", "--status", "--format", "json", "--store", self.folder, want=0).out)["recorder"]

	def end(self):
		self.running.send(signal.SIGTERM)
		result = self.running.finish()
		check_equal(result.code, 0, "exit")
		return result

	def incident(self):
		return converted(self.folder + "@,incident")


def times_of(report, pid):
	return sorted(int(sample["time_unix_ns"]) / NS for sample in report["samples"] if sample["pid"] == pid)


def check_incident(recorder, pid, fired, trigger, before=1.5, after=1.5):
	"""The stored incident has the program's samples of the seconds before the trigger and after it, with their times, each window once; and the trigger as a note."""
	report = recorder.incident()
	rows = recorder.rows("incident")
	check_equal(rows, sorted(set(rows)), "windows of the incident")
	times = times_of(report, pid)
	check(all(rows[0][0] <= int(sample["time_unix_ns"]) <= rows[-1][1] for sample in report["samples"]), "a sample is outside of its windows")
	early, late = [at for at in times if at < fired - 0.5], [at for at in times if at > fired + 0.5]
	check(len(early) >= 20 and early[0] < fired - before, lambda: "before %f: %s" % (fired, early[:3]))
	check(len(late) >= 20 and late[-1] > fired + after, lambda: "after %f: %s" % (fired, late[-3:]))
	check(len(set(times)) > 0.9 * len(times), "samples have each their own time")
	check(any(re.search("incident at .*: " + trigger, note) for note in report["account"]["notes"]), lambda: str(report["account"]["notes"]))
	return report


@test
def a_signal_freezes_before_and_after():
	need_bpf()
	with Program("chain") as program, Recorder("signal", "--trigger", "signal") as recorder:
		recorder.wait_for_windows(3)
		fired = time.time()
		recorder.running.send(signal.SIGUSR2)
		recorder.wait_stored()
		status = recorder.status()
		result = recorder.end()
	report = check_incident(recorder, program.pid, fired, "signal: SIGUSR2")
	rows = recorder.rows("incident")
	check_equal(set(rows) - set(recorder.rows("cpu")), set(), "windows of the incident that are no windows")
	whole = converted("%s@%s..%s" % (recorder.folder, *(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)) for at in (0, fired + 3600))))
	check(not any("time_unix_ns" in sample for sample in whole["samples"]), "ordinary windows have times")
	start, end = rows[0][0], rows[-1][1]
	inside = sum(int(account["recorded"]) for account in [report["account"]])
	check(0.9 * inside <= nr_samples(report) <= inside, lambda: "%d samples, the account has %d" % (nr_samples(report), inside))
	check(start / NS < fired - 2 and end / NS > fired + 1.9, lambda: "%s..%s" % (start, end))
	check_equal((status["nr_incidents"], status["nr_stored"], status["nr_lost"], status["nr_limited"]), (1, len(rows), 0, 0), "numbers of the status")
	check("lost: 0" in result.err, lambda: str(result))
	page = scratch("incident.html")
	sonde("convert", recorder.folder + "@,incident", page, want=0)


@test
def a_second_trigger_makes_it_longer():
	"""Once stored each; and how often and for how long is limited."""
	need_bpf()
	with Program("chain") as program, Recorder("longer", recorder=4, after=3) as recorder:
		recorder.wait_for_windows(2)
		first = time.time()
		recorder.running.send(signal.SIGUSR2)
		recorder.running.wait_line("storing the last 4 s and the next 3 s", 60)
		time.sleep(1.5)
		recorder.running.send(signal.SIGUSR2)
		recorder.running.wait_line("it goes on for longer", 60)
		recorder.wait_stored()
		status = recorder.status()
		recorder.end()
	report = check_incident(recorder, program.pid, first, "signal", after=4)
	check_equal(len([note for note in report["account"]["notes"] if note.startswith("incident")]), 2 - (len(set(report["account"]["notes"])) == 1), "notes")
	check_equal((status["nr_incidents"], status["nr_extended"]), (1, 1), "incidents, longer ones")


@test
def too_many_are_limited():
	need_bpf()
	with Recorder("limited", recorder=1, after=1) as recorder:
		recorder.wait_for_windows(1)
		for _ in range(6):
			recorder.running.send(signal.SIGUSR2)
			recorder.wait_stored()
		recorder.running.send(signal.SIGUSR2)
		recorder.running.wait_line("limited, nothing more is stored for it", 120)
		status = recorder.status()
		result = recorder.end()
	check_equal((status["nr_incidents"], status["nr_limited"]), (6, 1), "incidents, limited")
	check("nothing of the incident" not in result.err, lambda: str(result))


@test
def the_end_in_an_incident():
	"""What there is is stored, and how much is missing is said."""
	need_bpf()
	with Program("chain") as program, Recorder("ended", after=60) as recorder:
		recorder.wait_for_windows(3)
		fired = time.time()
		recorder.running.send(signal.SIGUSR2)
		time.sleep(2.5)
		result = recorder.end()
	match = re.search(r"the incident is stored \(the recording ended (\d+) s before it\)", result.err)
	check(match and 50 < int(match.group(1)) < 60, lambda: str(result))
	check_incident(recorder, program.pid, fired, "signal")
	with Recorder("at-once", after=60) as recorder: # a signal that nobody has looked at yet
		recorder.wait_for_windows(2)
		recorder.running.send(signal.SIGUSR2)
		check("the incident is stored" in recorder.end().err, "nothing is stored")
	check(len(recorder.rows("incident")) >= 2, lambda: str(recorder.rows("incident")))


@test
def the_bound_of_memory():
	"""Windows go before their time, which is counted and said; what is left is bounded, and is stored."""
	need_bpf()
	busy = [subprocess.Popen([sys.executable, "-c", "import threading\nfor i in range(20): threading.Thread(target=lambda: [sum(range(1000)) for _ in iter(int, 1)]).start()"]) for _ in range(4)]
	try:
		with Recorder("bound", "--recorder-max-bytes", "64K", "-F", 997, recorder=600) as recorder:
			recorder.running.wait_line("the recorder has no room for its time", 60)
			status = recorder.status()
			recorder.running.send(signal.SIGUSR2)
			recorder.wait_stored()
			recorder.end()
	finally:
		for process in busy:
			process.kill()
			process.wait()
	check(status["nr_dropped"] >= 1 and 0 < status["bytes"] <= 65536, lambda: str(status))
	check(recorder.rows("incident"), "nothing is stored")


@test
def nothing_goes_to_destinations():
	"""Each sample goes there once, with its window."""
	need_bpf()
	with HttpCollector() as collector, Program("chain"), Recorder("sent", "--otlp", "http://" + collector.address) as recorder:
		recorder.wait_for_windows(2)
		recorder.running.send(signal.SIGUSR2)
		recorder.wait_stored()
		result = recorder.end()
	got = counts(result.err)
	check_equal((got["profiles"], got["waiting"], len(collector.taken)), (len(recorder.rows("cpu")), 0, len(recorder.rows("cpu"))), "delivered, waiting, received")


@test
def it_goes_on_through_a_reload():
	"""What was recorded with the settings before is in the incident; so is one that is in progress."""
	need_bpf()
	path = scratch("recorder.yaml")
	settings = "recorder: 60s\nrecorder-after: 4s\ntrigger:\n  - signal\nstore-max-age: %s\n"
	with open(path, "w", encoding="ascii") as file:
		file.write(settings % "7d")
	with Program("chain") as program:
		recorder = Recorder("reload", "--config", path)
		with recorder:
			recorder.wait_for_windows(2)
			recorder.running.send(signal.SIGUSR2)
			fired = time.time()
			recorder.running.wait_line("storing the last", 60)
			with open(path, "w", encoding="ascii") as file:
				file.write(settings % "6d")
			recorder.running.send(signal.SIGHUP)
			recorder.running.wait_line("sampling with the new settings", 60)
			recorder.wait_stored()
			recorder.end()
	check_incident(recorder, program.pid, fired, "signal", before=1)


# --- triggers ---------------------------------------------------------------------------------------------------------------------

@test
def what_is_no_trigger():
	for text, want in (("cpy>80%/10s", "at character 1: there is no 'cpy': did you mean cpu"), ("cpu", "at character 4: '>' stands here"), ("cpu>x%/10s", "at character 5: a number"), ("cpu>80/10s", "at character 7: % stands here"), ("cpu>80%", "at character 8: '/' and the time"), ("cpu>80%/10", "at character 9: a time from 1s to 10m"), ("cpu>80%/11m", "at character 9: a time"), ("cpu>100%/1s", "never above 100"), ("cpu>80%/10s ", "at character 12: nothing"), ("psi.cpus>1%/1s", "did you mean psi.cpu"), ("file:p99>1/1s", "at character 6: a path that begins with /"), ("file:/p99", "at character 10: '>' and a number"), ("oom>1", "at character 4: nothing"), ("sygnal", "did you mean signal"), ("xyzzy", "cpu, psi.cpu, psi.io"), ("cpu<80%/10s", "at character 4: '>' stands here"), ("cpu>%s%%/1s" % ("9" * 400), "at character 5: a number")):
		result = sonde("agent", "--store", fresh_folder("no-trigger"), "--recorder", 60, "--trigger", text, 1, want=2)
		check(want in result.err, lambda: "%s: %s" % (text, result)) # pylint: disable=cell-var-from-loop
	for args, want in ((("--trigger", "oom"), "--recorder 5m"), (("--recorder", 60, "--store", "none", "--otlp", "http://h"), "no place"), (("--recorder", 60, "--measure", "offcpu"), "cpu profiles"), (("--recorder", 60, *["--trigger", "oom"] * 17), "16 triggers at most")):
		result = sonde("agent", "--store", fresh_folder("no-trigger"), *args, 1, want=2)
		check(want in result.err, lambda: str(result)) # pylint: disable=cell-var-from-loop
	result = sonde("agent", "--recorder", "5m", "--trigger", "cpu>80%/10s", "--trigger", "file:/a>b>0.5/1m", "--print-config", want=0, env=dict(os.environ, SONDE_RECORDER_MAX_BYTES="1M"))
	check(re.search("^recorder: 300$.*- .?file:/a>b>0.5/1m", result.out, re.M | re.S) and "recorder-max-bytes: 1048576" in result.out, lambda: str(result))


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
	return check_incident(recorder, program.pid, fired, re.escape(trigger) + ": " + words)


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
			status = recorder.status()
			recorder.running.send(signal.SIGUSR2)
			recorder.wait_stored()
			began = time.monotonic()
			result = recorder.end()
			took = time.monotonic() - began
	check(status["nr_unread"] >= 3 * len(paths), lambda: str(status))
	check(took < 10, "the end took %.1f s" % took)
	return result


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


def machine_is_quiet(path, limit):
	"""Less than that share of the last seconds; others may work on this machine."""
	del path
	with open("/proc/loadavg", encoding="ascii") as file:
		return float(file.read().split()[0]) < limit


@test
def the_processors_are_busy():
	"""On a machine that is busy with others it fires as soon as it may."""
	need_bpf()
	with Busy(), Program("chain") as program, Recorder("cpu", "--trigger", "cpu>90%/3s") as recorder:
		recorder.running.wait_line("incident: cpu>90%/3s", 60)
		fired = time.time()
		recorder.wait_stored()
		recorder.end()
	check_incident(recorder, program.pid, fired, r"cpu>90%/3s: (9\d|100)[.\d]* %")


@test
def threads_wait_for_processors():
	need_bpf()
	if not os.path.exists("/proc/pressure/cpu"):
		skip("this kernel has no /proc/pressure")
	with Busy(), Program("chain") as program, Recorder("psi", "--trigger", "psi.cpu>30%/3s") as recorder:
		recorder.running.wait_line("incident: psi.cpu>30%/3s", 60)
		fired = time.time()
		recorder.wait_stored()
		recorder.end()
	check_incident(recorder, program.pid, fired, r"psi\.cpu>30%/3s: \d+[.\d]* %")


run_tests()
