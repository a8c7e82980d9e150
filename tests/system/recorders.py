# SPDX-License-Identifier: Apache-2.0
"""An agent with a flight recorder, and what its incidents must hold."""
import json
import os
import re
import signal
import sqlite3
import time

from harness import Background, check, check_equal, converted, fresh_folder, sonde

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


def check_incident(recorder, pid, fired, trigger, before=1.5, after=1.5, nr=20):
	"""The stored incident has the program's samples of the seconds before the trigger and after it, with their times, each window once; and the trigger as a note."""
	report = recorder.incident()
	rows = recorder.rows("incident")
	check_equal(rows, sorted(set(rows)), "windows of the incident")
	times = times_of(report, pid)
	check(all(rows[0][0] <= int(sample["time_unix_ns"]) <= rows[-1][1] for sample in report["samples"]), "a sample is outside of its windows")
	early, late = [at for at in times if at < fired - 0.5], [at for at in times if at > fired + 0.5]
	check(len(early) >= nr and early[0] < fired - before, lambda: "before %f: %s" % (fired, early[:3]))
	check(len(late) >= nr and late[-1] > fired + after, lambda: "after %f: %s" % (fired, late[-3:]))
	check(len(set(times)) > 0.9 * len(times), "samples have each their own time")
	check(any(re.search("incident at .*: " + trigger, note) for note in report["account"]["notes"]), lambda: str(report["account"]["notes"]))
	return report
