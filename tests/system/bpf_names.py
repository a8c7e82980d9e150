#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What bpftool shows of sonde's BPF programs and maps: each name says whose it is, and which."""
import collections
import contextlib
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Background, bpf_names, build, check, check_equal, find_tool, fresh_folder, need_bpf, run_tests, test # noqa: E402

SPIN = "import time\nwhile True:\n\tbytes(4000)\n\tsum(range(4000))\n\ttime.sleep(0.0001)"
LIBBPF = {"__bpf_usdt_specs", "__bpf_usdt_ip_to_spec_id"} # libbpf finds them by these names
MANY = {"sonde_chunk"} # the unwind tables' pieces
PER_TRIGGER = {"sonde_rt_progs", "sonde_python", "sonde_py.rodata", "sonde_perl", "sonde_pe.rodata", "sonde_copied"} # a tick and a tracepoint each have a runtime's program, of other types


def is_ours(name):
	return name.startswith("sonde_") or any(libbpf.startswith(name) and len(name) == 15 for libbpf in LIBBPF)


def check_names(kind, found, many):
	check(found, "no %s: this test sees nothing" % kind)
	check_equal(sorted(name for name in found if not is_ours(name)), [], "names of others (%s)" % kind)
	twice = {name for name, count in collections.Counter(found).items() if count > 1 and name not in MANY | many}
	check_equal(twice, set(), "names that occur twice (%s)" % kind)


def look(pid, wanted, many):
	"""Checks the names: MANY and `many` may occur several times. Waits until `wanted` is among those of the programs."""
	end = time.monotonic() + 20
	while wanted not in bpf_names(pid, "prog") and time.monotonic() < end:
		time.sleep(0.2)
	time.sleep(0.5) # what libbpf and sonde only try is gone by then
	for kind in ("prog", "map"):
		found = bpf_names(pid, kind)
		print("# %s: %s" % (kind, " ".join(sorted(set(found)))))
		check(kind == "map" or wanted in found, lambda: "no program %s, but %s" % (wanted, found)) # pylint: disable=cell-var-from-loop
		check_names(kind, found, many)


def look_at(wanted, *args, many=()):
	need_bpf()
	with contextlib.ExitStack() as stack: # runtimes of two kinds have maps of their own
		programs = [stack.enter_context(subprocess.Popen(argv)) for argv in ([sys.executable, "-c", SPIN], ["perl", "-e", "1 while select(undef, undef, undef, 0.0001) || 1"]) if find_tool(argv[0])]
		for program in programs:
			stack.callback(program.kill)
		pids = ",".join(str(program.pid) for program in programs)
		with Background(*[pids if arg == "PID" else arg for arg in args], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
			look(running.process.pid, wanted, set(many))


@test
def profile():
	look_at("sonde_python", "profile", "-p", "PID")


@test
def offcpu():
	look_at("sonde_python", "offcpu", "-p", "PID", many=PER_TRIGGER)


@test
def wall():
	look_at("sonde_python", "wall", "-p", "PID", many=PER_TRIGGER)


@test
def runq():
	look_at("sonde_wakeup", "runq", "-p", "PID")


@test
def runq_with_stacks():
	look_at("sonde_slow", "runq", "--slower", 1000, "--stacks", "-p", "PID", many=PER_TRIGGER | {"sonde_targets"}) # the walk has its own


@test
def leak():
	look_at("sonde_mem_both", "leak", "-p", "PID", many=PER_TRIGGER)


@test
def trace():
	look_at("sonde_probe", "trace", "syscall:getppid")


@test
def a_usdt_probe():
	look_at("sonde_probe", "trace", "usdt:%s:hits:point" % build("hits"))


@test
def files():
	look_at("sonde_open", "files", "-d", 10)


@test
def io():
	look_at("sonde_io_end", "io")


@test
def agent():
	look_at("sonde_python", "agent", "--store", fresh_folder("names"), "--window", 1)


run_tests()
