#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde agent --recorder: what was before a trigger and what comes after it is stored with the times of samples, once, within its bounds."""
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from collectors import HttpCollector, counts # noqa: E402
from harness import Program, check, check_equal, converted, need_bpf, nr_samples, run_tests, scratch, sonde, test # noqa: E402
from recorders import NS, Recorder, check_incident # noqa: E402


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
	whole = converted(recorder.folder + "@,cpu")
	check(not any("time_unix_ns" in sample for sample in whole["samples"]), "ordinary windows have times")
	start, end = rows[0][0], rows[-1][1]
	same = converted("%s@%s..%s,cpu" % (recorder.folder, *(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)) for at in (start / NS, end / NS))))
	if [same["account"]["start_unix_ns"], same["account"]["duration_ns"]] == [report["account"]["start_unix_ns"], report["account"]["duration_ns"]]: # no window more at the ends
		check_equal(nr_samples(report), nr_samples(same), "samples of the incident, and of its windows")
	check(nr_samples(report) <= nr_samples(whole), "more samples in the incident than in all")
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
	with Program("chain"), Recorder("bound", "--recorder-max-bytes", "64K", recorder=600) as recorder:
		recorder.running.wait_line("the recorder has no room for its time", 60)
		status = recorder.status()
		recorder.running.send(signal.SIGUSR2)
		recorder.wait_stored()
		recorder.end()
	check(status["nr_dropped"] >= 1 and status["bytes"] <= 65536, lambda: str(status))
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


run_tests()
