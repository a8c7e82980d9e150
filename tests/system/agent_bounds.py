#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde agent --max-cpu: the rate falls while the agent costs more, between windows, so that each window's ticks are those of its own rate; what it costs is in the metrics. --max-memory: unwind tables are unloaded, and what lacks them is marked."""
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Background, Program, chain_error, check, check_equal, check_exact, converted, fresh_folder, need_bpf, parse_json, run_tests, sonde, test # noqa: E402

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


def metrics(path):
	with socket.socket(socket.AF_UNIX) as connection:
		connection.connect(path)
		connection.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
		return dict(re.findall(r"^(sonde_\S+) (\S+)$", b"".join(iter(lambda: connection.recv(65536), b"")).decode().replace("\r", ""), re.M))


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
			numbers = metrics(path)
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
	late = sum(CPUS * before / 2 for before, after in zip(rates, rates[1:]) if before != after) # a busy machine closes a window half a second late, by the rate before
	check(abs(sum(expected) - sum(due)) < 0.1 * sum(due) + late, lambda: "%d ticks expected, by the rates %d" % (sum(expected), sum(due)))
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


@test
def memory_is_kept_by_unloading_tables():
	"""More than half of a small limit is needed by what cannot be evicted: the tables' bound falls to its least, which is said. A known program's stacks are complete or marked; the maps have become smaller."""
	need_bpf()
	folder = fresh_folder("memory")
	path = os.path.join(fresh_folder("listen"), "s")
	with Program("chain", 20) as program:
		with Background("agent", "--store", folder, "--window", 1, "-F", 97, "--max-memory", 20, "--listen", "unix:" + path).wait_line("Sampling") as running:
			running.wait_line("from the next window on at most", 60)
			before = int(metrics(path)["sonde_bpf_map_bytes"])
			running.wait_line("more than --max-memory allows: unwind tables cannot take less than 1.0", 60)
			after = metrics(path)
			time.sleep(2.5)
			running.send(signal.SIGTERM)
			result = running.finish()
		check_equal(result.code, 0, "exit")
		check_equal(result.err.count("more than --max-memory allows"), 0, "times that it was said again")
		last = windows(folder)[-1]
		check(int(last["unwind_bytes"]) <= 1 << 20 and int(after["sonde_bpf_map_bytes"]) < before, lambda: "%s bytes of tables; %d bytes of maps, then %s" % (last["unwind_bytes"], before, after["sonde_bpf_map_bytes"]))
		check(int(after["sonde_memory_bytes"]) > int(after["sonde_bpf_map_bytes"]), lambda: str(after))
		stacks = [stack for stack in parse_json(converted(folder)) if stack.pid == program.pid]
		check(sum(stack.count for stack in stacks) > 100, lambda: "%d samples of the program" % sum(stack.count for stack in stacks))
		whole = [stack for stack in stacks if not any(frame.startswith("[") and "libc" not in frame for frame in stack.user)]
		check_exact(whole, lambda stack: chain_error(stack, program.chains["chain"]), at_least=20)
	return "%d windows; maps %.1f MiB, then %.1f" % (len(windows(folder)), before / 2**20, int(after["sonde_bpf_map_bytes"]) / 2**20)


run_tests()
