# SPDX-License-Identifier: Apache-2.0
"""What bench/run, bench/runtimes and bench/agent share: the kernel's figures of a process's BPF programs, and a workload with a CPU to itself."""
import ctypes
import glob
import os
import re

from harness import check

SYS_BPF = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
BPF_ENABLE_STATS = 32
BPF_PROG_TYPE_PERF_EVENT = 7


def fdinfos(pid):
	"""The `key: value` lines of each file descriptor of a process that is a BPF program or map."""
	for path in glob.glob("/proc/%d/fdinfo/*" % pid):
		try:
			with open(path, encoding="ascii", errors="replace") as file:
				info = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
		except OSError:
			continue # closed in the meantime
		if "prog_id" in info or "map_id" in info:
			yield info


def sampling_program(pid):
	"""(run time in ns, runs) of the perf_event program with the most runs. The time includes the programs that it tail-calls."""
	programs = {info["prog_id"]: info for info in fdinfos(pid) if info.get("prog_type") == str(BPF_PROG_TYPE_PERF_EVENT)}
	best = max(programs.values(), key=lambda info: int(info["run_cnt"]), default=None)
	return (int(best["run_time_ns"]), int(best["run_cnt"])) if best else (0, 0)


def bpf_ns(pid):
	"""The run time of all programs of which a process has descriptors."""
	return sum({info["prog_id"]: int(info["run_time_ns"]) for info in fdinfos(pid) if "run_time_ns" in info}.values())


def map_bytes(pid):
	return sum({info["map_id"]: int(info["memlock"]) for info in fdinfos(pid) if "map_id" in info}.values())


def status_kib(pid, key):
	with open("/proc/%d/status" % pid, encoding="ascii", errors="replace") as file:
		return int(re.search(r"^%s:\s+(\d+) kB" % key, file.read(), re.MULTILINE).group(1))


def own_cpu(program, cpu):
	"""Gives the program a CPU almost to itself: otherwise runs that only filter would count as samples."""
	for tid in map(int, os.listdir("/proc/%d/task" % program.pid)):
		os.sched_setaffinity(tid, {cpu})
		if os.cpu_count() > 1:
			os.sched_setscheduler(tid, os.SCHED_RR, os.sched_param(1)) # with FIFO the thread that is to take SIGSTOP would wait for ever for the one that runs


def bpf_stats():
	"""Returns a file descriptor. While it is open, the kernel counts time and runs of BPF programs."""
	attribute = ctypes.create_string_buffer(128) # zeros: BPF_STATS_RUN_TIME
	fd = ctypes.CDLL(None, use_errno=True).syscall(SYS_BPF, BPF_ENABLE_STATS, attribute, 4)
	check(fd >= 0, lambda: "BPF_ENABLE_STATS: %s" % os.strerror(ctypes.get_errno()))
	return fd


def figure(name, value, remark=""):
	print("  %-58s %-28s %s" % (name, value, remark), flush=True)
