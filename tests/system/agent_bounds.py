#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde agent --max-cpu: the rate falls while the agent costs more, between windows, so that each window's ticks are those of its own rate; what it costs is in the metrics."""
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Background, check, check_equal, converted, fresh_folder, need_bpf, run_tests, sonde, test # noqa: E402

NS = 10**9
CPUS = os.sysconf("SC_NPROCESSORS_ONLN")


def windows(folder):
	"""The account of each window."""
	with sqlite3.connect(os.path.join(folder, "profiles.db")) as connection:
		rows = connection.execute("SELECT start_ns, end_ns FROM window ORDER BY id").fetchall()
	accounts = []
	for start, end in rows:
		copy = fresh_folder("one")
		with sqlite3.connect(os.path.join(copy, "profiles.db")) as connection:
			connection.execute("ATTACH ? AS all_of_them", (os.path.join(folder, "profiles.db"),))
			connection.execute("CREATE TABLE window AS SELECT * FROM all_of_them.window WHERE start_ns = ? AND end_ns = ?", (start, end))
		os.chmod(copy, 0o700)
		accounts.append(converted(copy)["account"])
	return accounts


@test
def the_rate_falls_and_nothing_is_counted_wrongly():
	need_bpf()
	folder = fresh_folder("falls")
	path = os.path.join(fresh_folder("listen"), "s")
	busy = [subprocess.Popen([sys.executable, "-c", "while True: sum(range(1000))"]) for _ in range(CPUS)]
	try:
		with Background("agent", "--store", folder, "--window", 1, "-F", 4000, "--max-cpu", 1, "--listen", "unix:" + path).wait_line("Sampling") as running:
			for rate in 2000, 1000:
				running.wait_line("sampling at %d Hertz from the next window on" % rate, 60)
			time.sleep(2.5)
			with socket.socket(socket.AF_UNIX) as connection:
				connection.connect(path)
				connection.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
				numbers = dict(re.findall(r"^(sonde_\S+) (\S+)$", b"".join(iter(lambda: connection.recv(65536), b"")).decode().replace("\r", ""), re.M))
			running.send(signal.SIGTERM)
			check_equal(running.finish().code, 0, "exit")
	finally:
		for process in busy:
			process.kill()
			process.wait()
	accounts = windows(folder)
	rates = [int(account["freq_hz"]) for account in accounts]
	check_equal((rates[0], rates), (4000, sorted(rates, reverse=True)), "rates")
	check(len(set(rates)) >= 3 and set(rates) <= {4000 >> i for i in range(12)}, lambda: str(rates))
	due = [int(account["duration_ns"]) / NS * int(account["freq_hz"]) * CPUS for account in accounts]
	expected = [int(account["expected"]) for account in accounts]
	for account, nr in zip(accounts, expected): # both are read when the window is closed, which on a busy machine is late
		check(0.85 * nr - 4 < int(account["ticks"]) < 1.05 * nr + 4, lambda: "%s ticks of %d" % (account["ticks"], nr)) # pylint: disable=cell-var-from-loop
	check(abs(sum(expected) - sum(due)) < 0.1 * sum(due), lambda: "%d ticks expected, by the rates %d" % (sum(expected), sum(due)))
	check(int(numbers["sonde_sampling_hertz"]) <= 1000, lambda: str(numbers))
	check(0 < float(numbers["sonde_bpf_seconds_total"]) < 60 and float(numbers["sonde_cpu_seconds_total"]) > 0.05 and int(numbers["sonde_resident_memory_bytes"]) > 10**7, lambda: str(numbers))
	result = sonde("show", folder, want=0)
	check_equal(result.err.count("not all windows were sampled at the same rate"), 1, "notes on the rates")


@test
def without_a_limit_the_rate_stays():
	need_bpf()
	folder = fresh_folder("stays")
	busy = subprocess.Popen([sys.executable, "-c", "while True: sum(range(1000))"])
	try:
		with Background("agent", "--store", folder, "--window", 1, "-F", 4000, 4) as running:
			result = running.finish()
	finally:
		busy.kill()
		busy.wait()
	check_equal((result.code, {int(account["freq_hz"]) for account in windows(folder)}), (0, {4000}), "exit and rates")
	check("Hertz from the next window" not in result.err and "same rate" not in sonde("show", folder, want=0).err, lambda: str(result))


run_tests()
