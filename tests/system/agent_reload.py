#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde agent and SIGHUP: changed settings hold from then on, no window is lost, the time between is said, and what is wrong changes nothing."""
import os
import re
import signal
import socket
import sqlite3
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from collectors import HttpCollector, counts # noqa: E402
from harness import Background, Program, check, check_equal, converted, fresh_folder, need_bpf, nr_samples, run_tests, scratch, test # noqa: E402

NS = 10**9


class Reloaded:
	"""An agent with a file of settings that is written again."""

	def __init__(self, name, settings, *args):
		self.path, self.folder = scratch(name + ".yaml"), fresh_folder(name)
		self.write(settings)
		self.running = Background("agent", "--store", self.folder, "--config", self.path, *args)

	def write(self, settings):
		with open(self.path, "w", encoding="ascii") as file:
			file.write(settings)

	def reload(self, settings, line):
		self.write(settings)
		self.running.send(signal.SIGHUP)
		self.running.wait_line(line, 60)

	def end(self):
		self.running.send(signal.SIGTERM)
		return self.running.finish()

	def rows(self):
		with sqlite3.connect("file:%s?mode=ro" % os.path.join(self.folder, "profiles.db"), uri=True) as connection:
			return connection.execute("SELECT start_ns, end_ns FROM window ORDER BY id").fetchall()

	def wait_for_more(self):
		before, until = len(self.rows()), time.monotonic() + 60
		while len(self.rows()) <= before:
			check(time.monotonic() < until, "no more windows")
			time.sleep(0.2)

	def __enter__(self):
		self.running.wait_line("Sampling")
		return self

	def __exit__(self, *exc):
		self.running.__exit__(*exc)


@test
def changed_settings_hold_from_then_on():
	"""The window that was being recorded is stored, as short as it is; the next ones have the new rate, and the time between is in the metrics."""
	need_bpf()
	path = os.path.join(fresh_folder("listen"), "s")
	with Program("chain") as program, Reloaded("changed", "frequency: 49\nwindow: 600\n") as agent:
		time.sleep(2)
		agent.reload("frequency: 199\nwindow: 1\nlisten: unix:%s\n" % path, "nothing was sampled for ")
		time.sleep(3.5)
		with socket.socket(socket.AF_UNIX) as connection:
			connection.connect(path)
			connection.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
			numbers = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
		result = agent.end()
	rows = agent.rows()
	gap = (rows[1][0] - rows[0][1]) / NS
	check_equal((result.code, re.search(r"stored: (\d+) windows.*; lost: (\d+)", result.err).groups()), (0, (str(len(rows)), "0")), "exit, windows stored and lost")
	check(len(rows) >= 4 and 1.5 < (rows[0][1] - rows[0][0]) / NS < 60, lambda: str(rows))
	counted = float(re.search(r"^sonde_unsampled_seconds_total (\S+)", numbers, re.M).group(1))
	check(0 < gap < 5 and abs(counted - gap) < 0.1, lambda: "a gap of %.2f s, and %.2f in the metrics" % (gap, counted))
	border = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(rows[1][0] // NS + 1))
	first, second = converted("%s@..%s" % (agent.folder, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(rows[0][1] // NS)))), converted("%s@%s" % (agent.folder, border))
	for report, rate in (first, 49), (second, 199):
		check_equal(int(report["account"]["freq_hz"]), rate, "the rate")
		check(nr_samples(report, program.pid) > 10, lambda: "the program has %d samples at %d Hertz" % (nr_samples(report, program.pid), rate)) # pylint: disable=cell-var-from-loop


@test
def what_is_wrong_changes_nothing():
	need_bpf()
	good = "frequency: 97\nwindow: 1\n"
	with Program("chain"), Reloaded("wrong", good) as agent:
		for settings, line in ("window: 0\n", "the settings stay as they are: "), ("windw: 2\n", "did you mean window?"), ("[", "the settings stay as they are: "), (good + "otlp: nonsense://\n", "the settings stay as they are: "), \
				("store-max-age: soon\n", "the settings stay as they are: store-max-age"), (good, "no setting has changed"):
			agent.reload(settings, line)
		os.unlink(agent.path)
		agent.running.send(signal.SIGHUP)
		agent.running.wait_line("cannot read")
		agent.wait_for_more()
		result = agent.end()
	rows = agent.rows()
	check_equal((result.code, [round((b - a) / 1000) for (_, a), (b, _) in zip(rows, rows[1:])]), (0, [0] * (len(rows) - 1)), "exit, and gaps between the windows in microseconds")


@test
def what_does_not_work_is_taken_back():
	"""Right by its form, and refused by the machine: the settings before go on."""
	need_bpf()
	good = "frequency: 97\nwindow: 1\n"
	with Program("chain"), Reloaded("back", good) as agent:
		agent.reload(good + "listen: 192.0.2.1:9\n", "the new settings do not work: on with those before")
		agent.running.wait_line("nothing was sampled for ")
		agent.wait_for_more()
		check_equal(agent.end().code, 0, "exit")


@test
def nothing_is_lost_on_the_way_to_a_destination():
	"""Twice from one collector to another, with a spool on disk: each window arrives at both, or waits for it."""
	need_bpf()
	with HttpCollector() as first, HttpCollector() as second, Program("chain"), Reloaded("way", "window: 1\nfrequency: 97\notlp: http://%s\n" % first.address) as agent:
		for to in second, first:
			time.sleep(2.5)
			agent.reload("window: 1\nfrequency: 97\notlp: http://%s\n" % to.address, "nothing was sampled for ")
		time.sleep(2.5)
		result = agent.end()
	rows = agent.rows()
	check_equal((result.code, counts(result.err, "http://" + first.address)["waiting"]), (0, 0), "exit, and what waits")
	check_equal(len(set(message for _, message in first.taken)), len(rows), "windows that the first collector has, and those of the store")
	check(1 < len(second.taken) < len(rows), lambda: "%d windows at the second one" % len(second.taken))


@test
def terminated_while_it_reads():
	"""SIGTERM at any moment of a reload ends the agent in order."""
	need_bpf()
	for delay in 0, 0.05, 0.2, 0.4, 0.8:
		with Reloaded("both", "window: 5\n") as agent:
			agent.write("window: 6\n")
			agent.running.send(signal.SIGHUP)
			time.sleep(delay)
			result = agent.end()
		check(result.code == 0 and len(agent.rows()) in (1, 2), lambda: "after %.2f s: %s" % (delay, result)) # pylint: disable=cell-var-from-loop


run_tests()
