#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde alloc --rss: where a program's resident memory grows (tests/programs/resident.c), beside what the kernel says in its /proc/PID/status."""
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Background, build, check, load_json, need_bpf, run_tests, scratch, sonde, test # noqa: E402

MIB = 1 << 20
VALUES = ("rss", "rss_anonymous", "rss_huge", "rss_file", "rss_shared", "swap")


def lag():
	"""What a process may have without a report: less than a MiB, and what each CPU has not added to the kernel's counter."""
	cpus = os.cpu_count()
	return MIB + cpus * max(32, 2 * cpus) * 4096


def by_function(report, tgid):
	"""Function of the program -> its values, in bytes."""
	found = {}
	check([each["type"] for each in report["value_types"]] == list(VALUES), lambda: str(report["value_types"]))
	for sample in report["samples"]:
		if sample["pid"] != tgid:
			continue
		names = [report["functions"][report["frames"][frame]["function"]]["name"] for frame in report["stacks"][sample["user_stack"]]]
		name = next((name for name in names if name.startswith(("grow", "fill"))), "main" if "main" in names else "begin")
		old = found.get(name, dict.fromkeys(VALUES, 0))
		found[name] = {kind: old[kind] + value for kind, value in zip(VALUES, sample["values"])}
	return found


def check_values(found, status):
	"""What each function has made grow; the whole is what the kernel says."""
	def near(name, kind, want):
		has = found.get(name, {}).get(kind, 0)
		check(abs(has - want * MIB) <= lag(), lambda: "%s: %d of %s, want %d MiB\n%s" % (name, has, kind, want, found))
	huge = found["grow_huge"]
	check(abs(huge["rss_huge"] + huge["rss_anonymous"] - 32 * MIB) <= 2 * MIB + lag(), lambda: str(found))
	with open("/sys/kernel/mm/transparent_hugepage/enabled", encoding="utf-8") as file:
		if "[never]" not in file.read():
			check(huge["rss_huge"] >= 16 * MIB, lambda: str(found))
	near("grow_anonymous", "rss_anonymous", 64)
	near("grow_shared", "rss_shared", 16)
	near("grow_file", "rss_file", 8)
	near("grow_in_thread", "rss_anonymous", 32)
	check("fill_again" not in found, lambda: "memory that was used again: %s" % found)
	check("grow_in_child" not in found, lambda: "a child's memory: %s" % found)
	return {kind: sum(values[kind] for values in found.values()) for kind in VALUES}


@test
def command():
	"""From its start: the sums are what the kernel says at the end, when nothing was given back."""
	need_bpf()
	path = scratch("command.json")
	result = sonde("alloc", "--rss", "-o", path, "--", build("resident"), "at once", want=0, env={**os.environ, "RESIDENT_FILE": scratch("file")})
	status = {name: int(value) * 1024 for name, value in re.findall(r"^(Rss\w+|Vm\w+):\s+(\d+) kB$", result.out, re.MULTILINE)}
	tgid = int(re.search(r"^Pid:\s+(\d+)$", result.out, re.MULTILINE).group(1))
	report = load_json(path)
	sums = check_values(by_function(report, tgid), status)
	for name, parts in (("RssAnon", ("rss_anonymous", "rss_huge")), ("RssFile", ("rss_file",)), ("RssShmem", ("rss_shared",)), ("VmHWM", ("rss",))):
		found = sum(sums[part] for part in parts)
		check(abs(found - status[name]) <= (3 if name == "VmHWM" else 1) * lag(), lambda: "%s: %d, found %d\n%s" % (name, status[name], found, result))
	children = {sample["pid"]: 0 for sample in report["samples"] if sample["pid"] != tgid}
	for sample in report["samples"]:
		if sample["pid"] in children:
			children[sample["pid"]] += sample["values"][1]
	check(len(children) == 1 and abs(sum(children.values()) - 4 * MIB) <= lag(), lambda: "the child has 4 MiB of its own: %s" % children)
	return "%d MiB of %d, the child %.1f" % (sums["rss"] >> 20, status["VmHWM"] >> 20, sum(children.values()) / MIB)


@test
def whole_machine():
	"""Of a process that runs already only what is new; without a target it is found all the same."""
	need_bpf()
	path = scratch("machine.json")
	process = subprocess.Popen([build("resident")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env={**os.environ, "RESIDENT_FILE": scratch("file")})
	try:
		check(process.stdout.readline() == b"ready\n", "it did not start")
		with Background("alloc", "--rss", "-o", path) as tracker:
			tracker.wait_line("Attaching to all threads, Ctrl+C to quit.")
			process.stdin.write(b"x")
			while process.stdout.readline() not in (b"done\n", b""):
				pass
			tracker.send(signal.SIGINT)
			result = tracker.finish()
	finally:
		process.kill()
		process.communicate()
	check(result.code == 0, lambda: str(result))
	found = by_function(load_json(path), process.pid)
	check_values(found, {})
	check("main" not in found, lambda: "memory from before the start: %s" % found)
	return "%d functions" % len(found)


@test
def text():
	"""The largest stack is the last, with its kinds and its process."""
	need_bpf()
	result = sonde("alloc", "--rss", "--top", "3", "--", build("resident"), "at once", want=0, env={**os.environ, "RESIDENT_FILE": scratch("file")})
	entries = re.findall(r"^\t(\d+) bytes: (\d+) (anonymous|in huge pages|of files|shared), in resident \(\d+\) from stack\n((?:\t\t.*\n)+)", result.out, re.MULTILINE)
	check(re.search(r"^\[\d\d:\d\d:\d\d\] Top 3 stacks by growth of resident memory:$", result.out, re.MULTILINE), lambda: str(result))
	check(len(entries) == 3 and "grow_anonymous+0x" in entries[-1][3] and entries[-1][2] == "anonymous", lambda: str(result))
	refused = sonde("alloc", "--rss", "--min-size", "4", want=2)
	check("--rss sees no blocks" in refused.err, lambda: str(refused))
	return entries[-1][0]


if __name__ == "__main__":
	run_tests()
