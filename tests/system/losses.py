#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Losses are reported: ticks that never arrived, events without one, an event that the kernel throttles. The truth is from clocks and from what programs
say that they do."""
import contextlib
import os
import re
import subprocess

from harness import alone, build, check, need_bpf, record, run_tests, test

LIMIT = "/proc/sys/kernel/perf_event_max_sample_rate"
PAGES, CHILDREN = 20000, 10


@contextlib.contextmanager
def max_sample_rate(rate):
	"""Sets the rate. A process that sees the end of its input restores it, so also when this one is killed."""
	with open(LIMIT, encoding="ascii") as file:
		before = file.read().strip()
	with subprocess.Popen(["sh", "-c", "trap '' INT TERM HUP; read end; echo %s > %s" % (before, LIMIT)], stdin=subprocess.PIPE, start_new_session=True) as keeper:
		with open(LIMIT, "w", encoding="ascii") as file:
			file.write(str(rate))
		try:
			yield
		finally:
			keeper.stdin.close()
			keeper.wait()
	with open(LIMIT, encoding="ascii") as file:
		check(file.read().strip() == before, "the limit is not what it was")


def account_of(*args):
	"""Returns the account of a run, and its messages."""
	report, result = record("profile", *args)
	skipped = re.search(r"^skipped: (\d+) of (\d+) ", result.err, re.MULTILINE)
	return report["account"], (int(skipped.group(1)), int(skipped.group(2))) if skipped else None, result.err


def check_told(account, skipped, text):
	"""Each difference, however small, is reported, and no other."""
	missing = account["expected"] - account["ticks"]
	check(skipped == ((missing, account["expected"]) if missing > 0 else None), "%d of %d never came: %s" % (missing, account["expected"], text))


@alone # others may need a higher rate meanwhile
@test
def throttled_clock():
	"""Ticks of a clock are due by time, because the kernel counts none while it throttles the clock. The test uses one busy CPU: an idle one
	may have no ticks without being throttled."""
	need_bpf()
	cpu = str(max(os.sched_getaffinity(0)))
	busy = ["taskset", "-c", cpu, "sh", "-c", "i=0; while [ $i -lt 1500000 ]; do i=$((i+1)); done"]
	with max_sample_rate(1000):
		account, skipped, text = account_of("-e", "cpu-clock", "-c", 100000, "-C", cpu, "--", *busy)
	due = account["duration_ns"] * account["nr_cpus"] / 100000
	check(abs(account["expected"] - due) <= 0.03 * due, "%d ticks are expected, %d are due" % (account["expected"], due))
	check(account["ticks"] < due / 2, "it was not held back: %s" % account)
	check_told(account, skipped, text)
	lost = (account["expected"] - account["ticks"]) / 10000
	check(account["throttled"] > 10 and 0.7 * lost <= account["throttled_ns"] / 1e9 <= 1.1 * lost, "throttled for %.2f s of %.2f s" % (account["throttled_ns"] / 1e9, lost))
	check(re.search(r"^throttled: %d times .*perf_event_max_sample_rate" % account["throttled"], text, re.MULTILINE), text)
	return "%d of %d came, %d times held back" % (account["ticks"], account["expected"], account["throttled"])


@test
def clock_in_time():
	"""All ticks arrive, or the report says that some did not."""
	need_bpf()
	account, skipped, text = account_of("-F", 997, "--", "sh", "-c", "i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done")
	check_told(account, skipped, text)
	check(account["throttled"] == 0 and "throttled" not in text, text)
	return "%d of %d" % (account["ticks"], account["expected"])


@test
def each_page_fault():
	"""One tick each; the program touches so many pages, in itself and in its children."""
	need_bpf()
	account, skipped, text = account_of("-e", "page-faults", "-c", 1, "--", build("counted"), "0", str(PAGES), "0", str(CHILDREN), "0", "0")
	check(account["expected"] >= PAGES * (CHILDREN + 1), str(account))
	check_told(account, skipped, text)
	return "%d of %d" % (account["ticks"], account["expected"])


@test
def at_a_rate():
	"""The kernel varies the period, and its samples do not say by how much (220,381 page faults in 15 ticks that stood for 632,834). So the
	report gives the count, and says what is unknown."""
	need_bpf()
	account, skipped, text = account_of("-e", "page-faults", "-F", 199, "--", build("counted"), "0", str(PAGES), "0", str(CHILDREN), "0", "0")
	check(account["expected"] == 0 and account["events"] >= PAGES * (CHILDREN + 1) and account["ticks"] > 0 and skipped is None, str(account))
	check("\ncounted: %d page-faults; the number of expected ticks" % account["events"] in text, text)
	return "%d events, %d ticks" % (account["events"], account["ticks"])


@test
def a_side_of_a_clock():
	"""A clock limited to user space ticks only there, and the share of time spent there is unknown."""
	need_bpf()
	account, skipped, text = account_of("-e", "cpu-clock:u", "-F", 199, "--", "sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
	check(account["expected"] == 0 and account["ticks"] > 0 and skipped is None, text)


run_tests()
