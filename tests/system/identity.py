#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stacks belong to the right process: processes whose code is at the same addresses under other names, with similar or equal process ids, never get each
other's functions."""
import ctypes
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import (Background, CFLAGS, PROGRAMS, SOURCES, building, check, compile_one, cpu_seconds, is_older, load_json, need_bpf, parse_json, run_tests, scratch, skip, # noqa: E402
	test, total)

CPU_SECONDS = 0.4 # of each program, while sonde records
LATEST = 60
SYS_CLONE3 = 435
MODES = {"profile": ["profile", "-F", "997", "-U"], "offcpu": ["offcpu"], "wall": ["wall", "-F", "997"]}
HEADERS = {"profile": "Sampling at", "offcpu": "Tracing", "wall": "Measuring"}


def alike(name):
	"""Builds tests/programs/alike.c with this name."""
	target, source = os.path.join(PROGRAMS, "alike-" + name), os.path.join(SOURCES, "alike.c")
	with building():
		if is_older(target, [source, os.path.join(SOURCES, "known.h")]):
			compile_one(["gcc", *CFLAGS, "-static", "-no-pie", "-fno-pie", "-DNAME=" + name, "-o", target, source])
	return target


def start_as(pid, argv):
	"""Runs a command as process number `pid`."""
	wanted = (ctypes.c_int * 1)(pid)
	args = (ctypes.c_ulonglong * 10)()
	args[4], args[8], args[9] = signal.SIGCHLD, ctypes.addressof(wanted), 1
	libc = ctypes.CDLL(None, use_errno=True)
	if libc.syscall(SYS_CLONE3, args, ctypes.sizeof(args)) == 0:
		try:
			os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
			os.execv(argv[0], argv)
		finally:
			os._exit(127)
	check(os.path.exists("/proc/%d" % pid), "clone3 gave no process %d: %s" % (pid, os.strerror(ctypes.get_errno())))


class Started:
	"""Commands that run as processes with chosen ids; none is left behind."""

	def __init__(self):
		self.pids = set()

	def __enter__(self):
		return self

	def start(self, pid, *argv):
		start_as(pid, [str(arg) for arg in argv])
		self.pids.add(pid)

	def end(self, pid):
		"""Returns the CPU time that it used."""
		self.pids.discard(pid)
		os.kill(pid, signal.SIGKILL)
		usage = os.wait4(pid, 0)[2]
		return usage.ru_utime + usage.ru_stime

	def __exit__(self, *exc):
		for pid in list(self.pids):
			self.end(pid)


def free_pair():
	"""Returns two free process ids, the second being the first ^ 3: with generations 1 and 2 the kernel side once took them for the same."""
	with open("/proc/sys/kernel/pid_max", encoding="ascii") as file:
		end = int(file.read())
	with open("/proc/loadavg", encoding="ascii") as file:
		newest = int(file.read().split()[-1])
	for step in range(0, end // 4, 4): # far from the next ones to be used
		pid = max(400, (newest + end // 2 + step) % (end - 8)) & ~3
		if not any(os.path.exists("/proc/%d" % number) for number in range(pid, pid + 4)):
			return pid, pid ^ 3
	return skip("no free numbers of processes")


def has_worked(*pids):
	"""Waits until each process has used its CPU time, counted from now."""
	end = time.monotonic() + LATEST
	before = {}
	while time.monotonic() < end:
		now = {pid: cpu_seconds(pid) for pid in pids if os.path.exists("/proc/%d" % pid)}
		before = {**now, **before}
		if len(now) == len(pids) and all(now[pid] - before[pid] >= CPU_SECONDS for pid in pids):
			return
		time.sleep(0.05)


def record_while(mode, work):
	"""Runs sonde with this mode during work(). Returns the stacks, and the account."""
	need_bpf()
	path = scratch("identity.json")
	with Background(*MODES[mode], "--format", "json", "-o", path) as sonde:
		sonde.wait_line(HEADERS[mode])
		work()
		sonde.send(signal.SIGINT)
		done = sonde.finish()
	check(done.code == 0, done)
	report = load_json(path)
	return parse_json(report), report["account"]


def check_own(stacks, account, names):
	"""names: pid -> the prefix of its functions' names. No process has another's functions, and each has its own."""
	counts = {}
	for stack in stacks:
		if stack.pid not in names:
			continue
		for name in set(names.values()):
			if any(frame.startswith(name + "_") for frame in stack.user):
				counts[stack.pid, name] = counts.get((stack.pid, name), 0) + stack.count
	wrong = {key: count for key, count in counts.items() if names[key[0]] != key[1]}
	check(not wrong, lambda: "samples with another process's functions: %s; all: %s" % (wrong, counts))
	for pid, name in names.items():
		check(counts.get((pid, name), 0) >= 10, lambda: "too few samples of each in its own functions: %s" % counts)
	check(account["missed_collided"] == 0, "%s hashes that two stacks have" % account["missed_collided"])
	return ", ".join("%d in %s" % (count, name) for (_, name), count in sorted(counts.items()))


def neighbours(mode):
	"""A program that was there before, and one that is executed during the recording."""
	pid, other = free_pair()
	with Started() as processes:
		processes.start(pid, alike("alpha"), 2 * LATEST)

		def work():
			processes.start(other, alike("gamma"), 2 * LATEST)
			has_worked(pid, other)
		stacks, account = record_while(mode, work)
	return check_own(stacks, account, {pid: "alpha", other: "gamma"})


def forked(mode):
	"""A CPython that is executed during the recording, and its child, which has no exec."""
	pid, other = free_pair()
	with Started() as processes:
		def work():
			processes.start(pid, sys.executable, os.path.join(SOURCES, "alike.py"), 2 * LATEST, other)
			has_worked(pid, other)
		stacks, account = record_while(mode, work)
	return check_own(stacks, account, {pid: "alpha", other: "gamma"})


def one_after_the_other(mode):
	"""Two programs alternate under one process id, for some hundredths of a second each. The thread's name tells them apart."""
	pid, _ = free_pair()

	def work():
		had = [0, 0]
		turn = 0
		end = time.monotonic() + LATEST
		while min(had) < CPU_SECONDS and time.monotonic() < end:
			processes.start(pid, alike(("alpha", "gamma")[turn % 2]), LATEST)
			time.sleep((0.02, 0.045, 0.11)[turn % 3])
			had[turn % 2] += processes.end(pid)
			turn += 1
	with Started() as processes:
		stacks, account = record_while(mode, work)
	own = [stack for stack in stacks if stack.pid == pid]
	counts = {}
	for stack in own:
		for name in ("alpha", "gamma"):
			if any(frame.startswith(name + "_") for frame in stack.user):
				counts[stack.comm, name] = counts.get((stack.comm, name), 0) + stack.count
	wrong = {key: count for key, count in counts.items() if key[0] != "alike-" + key[1]}
	check(not wrong, lambda: "samples with the functions of the program before or after: %s; all: %s" % (wrong, counts))
	check(len(counts) == 2 and min(counts.values()) >= 10, lambda: "too few samples: %s of %d" % (counts, total(own)))
	check(account["missed_collided"] == 0, "%s hashes that two stacks have" % account["missed_collided"])
	return str(counts)


for each in MODES:
	for what in (neighbours, forked, one_after_the_other):
		def case(what=what, each=each):
			return what(each)
		case.__name__, case.__doc__ = "%s_%s" % (what.__name__, each), what.__doc__
		test(case)

run_tests()
