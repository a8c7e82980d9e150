#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes with many mappings, of an unprivileged user, beside root's sonde. Measured as requests to its proxy and as processor time against the same
with few mappings, not in seconds."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Background, check, family, fresh_folder, need_bpf, run_tests, scratch, test # noqa: E402
from neighbour import AS_NOBODY, Neighbour # noqa: E402

# Runs as nobody: makes so many executable mappings of a file, and so many threads that sleep. It is slow enough that the tests beside this one lose no
# kernel events.
MAPS = """
import ctypes, os, sys, threading, time
file, nr_mappings, nr_threads = os.open(sys.argv[1], os.O_RDONLY), int(sys.argv[2]), int(sys.argv[3])
""" + AS_NOBODY + """
mmap = ctypes.CDLL(None).mmap
mmap.argtypes, mmap.restype = [ctypes.c_size_t] * 6, ctypes.c_size_t
for i in range(nr_mappings):
    if i % 100 == 99:
        time.sleep(0.01)
    if mmap(0, 4096, 5, 2, file, 0) == 2**64 - 1:
        sys.exit("no more mappings")
threading.stack_size(1 << 16)
forever = threading.Lock()
forever.acquire()
for _ in range(nr_threads):
    threading.Thread(target=forever.acquire, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
os._exit(0)
"""


def requests_to_proxy(pid):
	"""Returns how often the proxy waited for a request; None: sonde gave the proxy up because an answer was late."""
	for one in family(pid):
		with open("/proc/%d/cmdline" % one, "rb") as command, open("/proc/%d/status" % one, encoding="utf-8") as status:
			if command.read().startswith(b"sonde-proxy\0"):
				return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status.read(), re.MULTILINE).group(1))
	return None


def requests_for(path, nr_mappings):
	with Neighbour(MAPS, path, nr_mappings, 0), Background("profile", "-o", scratch("mappings.json"), 30) as sonde:
		sonde.wait_line("Sampling", timeout=120)
		return requests_to_proxy(sonde.process.pid)


@test
def mappings_of_no_elf_file():
	"""The type of the file is requested once, not once for each mapping."""
	need_bpf()
	path = os.path.join(fresh_folder("mappings"), "text")
	with open(path, "w", encoding="utf-8") as file:
		file.write("no ELF file\n")
	os.chmod(path, 0o644)
	nr = next(filter(None, (requests_for(path, 15000) for _ in range(5))), None)
	check(nr is not None, "each proxy was given up")
	check(nr < 5000, "%d requests to the proxy for 15,000 mappings of one file" % nr)
	return "%d requests" % nr


def user_seconds(nr_mappings, nr_threads):
	report = scratch("mappings.json")
	with Neighbour(MAPS, sys.executable, nr_mappings, nr_threads), Background("wall", "-o", report, 2) as background:
		background.wait_line("Measuring", timeout=120)
		result = background.finish(timeout=240)
	check(result.code == 0, result)
	with open(report, encoding="utf-8") as file:
		return json.load(file)["account"]["cpu_user_ns"] / 1e9


@test
def threads_of_many_mappings():
	"""The costs of threads and mappings add up; they do not multiply."""
	need_bpf()
	few, many = user_seconds(1, 2500), user_seconds(15000, 2500)
	check(many < 3 * few + 0.3, "%.2f s of processor time for 2,500 threads and 15,000 mappings, %.2f for one mapping" % (many, few))
	return "%.2f and %.2f s" % (many, few)


if __name__ == "__main__":
	run_tests(seconds=240)
