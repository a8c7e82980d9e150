#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde agent --store none: what cannot be sent yet waits in memory, within its bound, and what is dropped is counted and said."""
import os
import re
import signal
import sys
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from collectors import HttpCollector, counts # noqa: E402
from harness import Background, Program, check, check_equal, converted, fresh_folder, need_bpf, nr_samples, run_tests, scratch, sonde, test # noqa: E402


def agent(address, *args):
	return Background("agent", "--store", "none", "--window", 1, "-F", 97, "--otlp", address, *args, cwd=fresh_folder("here"))


def metrics(port):
	with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % port, timeout=10) as answer:
		return dict(re.findall(r"^(sonde_\S+?)(?:\{.*\})? (\d+)", answer.read().decode(), re.M))


@test
def it_needs_a_destination():
	for args, want in ((), "needs? a destination: --otlp"), (("--skywalking", "h:1"), "need a destination"), (("--otlp", "http://h", "--store-max-bytes", "1G"), "512M at most"), (("--status",), "no socket for --status"):
		result = sonde("agent", "--store", "none", *args, want=2)
		check(re.search(want, result.err), lambda: str(result)) # pylint: disable=cell-var-from-loop
	result = sonde("agent", "--store", "none", "--otlp", "http://h", "--print-config", want=0)
	check("store-max-bytes: %d\n" % (64 << 20) in result.out, lambda: str(result))


@test
def all_arrives_and_nothing_is_written():
	"""A destination that is away for a time loses nothing; no file of a store is left; what was delivered is in memory no more."""
	need_bpf()
	with HttpCollector([503, 503, "reset"]) as collector, Program("chain") as program:
		with agent("http://" + collector.address, "--listen", "127.0.0.1:0") as running:
			port = int(re.search(r"Listening on .*:(\d+)", running.process.stderr.readline().decode()).group(1))
			until = time.monotonic() + 30
			while int(metrics(port)["sonde_destination_profiles_delivered_total"]) < 5:
				check(time.monotonic() < until, lambda: str(metrics(port)))
				time.sleep(0.2)
			while int(metrics(port)["sonde_store_profiles"]) > 2: # the number may be a second old, and the next window come meanwhile
				check(time.monotonic() < until, lambda: str(metrics(port)))
				time.sleep(0.2)
			folder = os.readlink("/proc/%d/cwd" % running.process.pid)
			running.send(signal.SIGTERM)
			result = running.finish()
		got = counts(result.err)
		windows, samples = map(int, re.search(r"total: (\d+) windows, (\d+) samples", result.err).groups())
		check_equal((result.code, got["profiles"], got["waiting"], got["evicted before"]), (0, windows, 0, 0), "exit, delivered, waiting and dropped")
		check_equal(os.listdir(folder), [], "files")
		total, of_program = 0, 0
		for number, (_, message) in enumerate(collector.taken):
			path = scratch("message-%d" % number)
			with open(path, "wb") as file:
				file.write(message)
			report = converted("--from", "otlp", path)
			total += nr_samples(report)
			of_program += nr_samples(report, program.pid)
		check_equal(total, samples, "samples that arrived")
		check(of_program > 100, lambda: "%d samples of the program" % of_program)


@test
def the_bound():
	"""A destination that is away for good: the oldest are dropped, counted in /metrics, and said; the rest is lost at the end, and said."""
	need_bpf()
	with Program("chain"), agent("http://127.0.0.1:1", "--listen", "127.0.0.1:0", "--store-max-age", "3s") as running:
		port = int(re.search(r"Listening on .*:(\d+)", running.process.stderr.readline().decode()).group(1))
		running.wait_line("dropped so far, ", 30)
		numbers = metrics(port)
		dropped = int(numbers["sonde_destination_profiles_evicted_total"])
		check(dropped >= 1 and 1 <= int(numbers["sonde_store_profiles"]) <= 6, lambda: str(numbers))
		running.send(signal.SIGTERM)
		result = running.finish()
	got = counts(result.err)
	check(got["evicted before"] >= dropped and got["waiting"] >= 1, lambda: str(result))
	check_equal((result.code, int(re.search(r"lost with the memory that they were in: (\d+) profiles", result.err).group(1))), (1, got["waiting"]), "exit, and what is lost at the end")
	check_equal(got["evicted before"] + got["waiting"] + got["profiles"], int(re.search(r"stored: (\d+) windows in memory; lost: 0", result.err).group(1)), "all windows")


run_tests()
