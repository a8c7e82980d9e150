#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde leak --kernel: what the kernel allocates for a known number of descriptors is there while they are open, and gone when they are closed."""
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Background, check, load_json, need_bpf, run_tests, scratch, sonde, test # noqa: E402

NR = 800
OTHERS = 40 # may be made by other processes meanwhile: the kernel's blocks have no process
MAKER = "do_eventfd" # the function of the kernel that makes one, with one kmalloc


def made(report):
	"""Number and bytes of the blocks that one kmalloc in it asked for, by the largest number: others are of slab caches and pages."""
	found = {}
	for sample in report["samples"]:
		names = [report["functions"][report["frames"][frame]["function"]]["name"] for frame in report["stacks"][sample["kernel_stack"]]]
		if MAKER in names and "kmalloc" in names[0]:
			old = found.get(names[1], (0, 0))
			found[names[1]] = (old[0] + sample["values"][0], old[1] + sample["values"][1])
	return found.get(MAKER, (0, 0))


def missed(said):
	"""Events that may have been missed, as sonde says."""
	return sum(int(nr) for nr in re.findall(r"^(\d+) (?:events that the kernel did not|allocations lost|allocations found no room)", said, re.MULTILINE))


def watch(close_them):
	path = scratch("kernel.json")
	with Background("leak", "--kernel", "--older-than", "0", "-o", path) as tracker:
		tracker.wait_line("Attaching")
		open_now = [os.eventfd(0) for _ in range(NR)]
		if close_them:
			for fd in open_now:
				os.close(fd)
		tracker.send(signal.SIGINT)
		result = tracker.finish()
	if not close_them:
		for fd in open_now:
			os.close(fd)
	check(result.code == 0, lambda: str(result))
	return made(load_json(path)), missed(result.err), result


@test
def open_and_closed():
	need_bpf()
	(nr, size), lost, result = watch(False)
	check(NR - lost <= nr <= NR + lost + OTHERS and size % nr == 0 and size // nr >= 32, lambda: "%d blocks, %d bytes, %d missed\n%s" % (nr, size, lost, result))
	(left, _), lost, result = watch(True)
	check(left <= lost + OTHERS, lambda: "%d blocks of closed ones, %d missed\n%s" % (left, lost, result))
	return "%d blocks of %d bytes, then %d" % (nr, size // nr, left)


# Keeps what many functions of the kernel allocate, for ten seconds; an idle kernel may allocate by fewer than five.
KEEPER = """
import os, select, socket, time
kept = []
for _ in range(1000):
    kept += [os.pipe(), socket.socketpair(), os.eventfd(0), select.epoll(), os.memfd_create("kept"), os.open("/", os.O_RDONLY)]
    time.sleep(0.01)
"""


@test
def as_memleak():
	"""Reports one after the other; sonde's own allocations are counted, and left out; targets are refused; the interpreter of a process is
	not missed, as no user stack is walked."""
	need_bpf()
	with subprocess.Popen([sys.executable, "-c", KEEPER]) as keeper:
		try:
			result = sonde("leak", "--kernel", "--older-than", "0", "--top", "5", "1", "2", want=0)
		finally:
			keeper.kill()
	check("is not shown" not in result.err, lambda: str(result))
	check(len(re.findall(r"^\[\d\d:\d\d:\d\d\] Top 5 stacks with outstanding allocations:$", result.out, re.MULTILINE)) == 2, lambda: str(result))
	check(len(re.findall(r"^\t\d+ bytes in \d+ allocations from stack\n\t\t\S+\+0x", result.out, re.MULTILINE)) == 10, lambda: str(result))
	check(re.search(r"^\d+ allocations of sonde itself: left out$", result.err, re.MULTILINE), lambda: str(result))
	refused = sonde("leak", "--kernel", "-p", os.getpid(), want=2)
	check("belongs to no process" in refused.err, lambda: str(refused))
	return "2 reports"


if __name__ == "__main__":
	run_tests()
