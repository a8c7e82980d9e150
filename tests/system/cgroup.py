#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""-G: only what is in a cgroup (version 2) or below it."""
import atexit
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import (SONDE, Background, Program, check, check_equal, fresh_folder, need_bpf, parse_folded, run, # noqa: E402
	run_tests, scratch, skip, sonde, test)
from own_cgroups import OwnCgroups # noqa: E402

class Cgroups(OwnCgroups):
	"""top/ with the program red, top/below/ with green, and top2/ beside it with blue."""

	def __init__(self):
		super().__init__("top", "top/below", "top2")
		self.programs = {}
		for name, folder in (("red", "top"), ("green", "top/below"), ("blue", "top2")):
			program = Program("named", name, seconds=300).__enter__()
			atexit.register(program.__exit__)
			self.programs[name] = program
			self.move(program.pid, folder)


made = []


def cgroups():
	if not made:
		made.append(Cgroups())
	return made[0]


def seen(result):
	"""Returns names that have samples, with their counts."""
	counts = {}
	for stack in parse_folded(result.out):
		counts[stack.comm] = counts.get(stack.comm, 0) + stack.count
	return counts


def names(*args, want=0):
	return sorted(seen(sonde("profile", "-f", "-F", 997, *args, 1, want=want)))


@test
def subtree_in_siblings_out():
	c = cgroups()
	check_equal(names("-G", "%s/top" % c.name), ["green", "red"], "top")
	check_equal(names("-G", "%s/top/below" % c.name), ["green"], "top/below")
	check_equal(names("-G", "%s/top2" % c.name), ["blue"], "top2: the name begins as that of its sibling")
	check_equal(names("-G", c.name), ["blue", "green", "red"], "all of ours")
	check({"blue", "green", "red"} <= set(names("-G", "/")), "the root holds all")


@test
def paths_and_ids():
	c = cgroups()
	for text in ("/%s/top" % c.name, c.path + "/top", c.path + "/top/", c.path + "/top2/../top", str(c.id("top"))):
		check_equal(names("-G", text), ["green", "red"], text)
	check_equal(names("-G", c.id("top/below")), ["green"], "an id two levels down")


@test
def with_other_filters():
	c = cgroups()
	check_equal(names("-G", "%s/top" % c.name, "-n", "red"), ["red"], "-G and -n")
	check_equal(names("-G", "%s/top" % c.name, "-p", c.programs["green"].pid), ["green"], "-G and -p")
	result = sonde("profile", "-f", "-G", "%s/top" % c.name, "-p", c.programs["blue"].pid, 1, want=5)
	check("no samples" in result.err, lambda: str(result))
	header = sonde("profile", "-F", 997, "-G", "%s/top2" % c.name, 1, want=0).err
	check("of all threads in cgroup %s/top2 by" % c.name in header, header)


@test
def by_where_the_thread_is_then():
	"""blue enters the cgroup for the second half of the time."""
	c = cgroups()
	try:
		with Background("profile", "-F", 199, "-f", "-o", "-", "-G", "%s/top" % c.name, 4) as profile:
			time.sleep(2.5)
			c.move(c.programs["blue"].pid, "top/below")
			counts = seen(profile.finish())
	finally:
		c.move(c.programs["blue"].pid, "top2")
	check(counts.get("blue") and counts["blue"] < counts["red"] + counts["green"], counts)
	return counts


@test
def seen_from_a_namespace():
	"""In a cgroup namespace, paths begin at its root, but the kernel's levels do not: as in a container that sees the host's processes."""
	c = cgroups()
	join = 'echo $$ > %s/top/cgroup.procs && exec unshare -C -m sh -c "$1"' % c.path
	argv = "'%s' profile -f -F 997" % SONDE
	if run(["unshare", "-C", "-m", "true"]).code:
		skip("no cgroup namespace can be made")

	def inside(script):
		result = run(["sh", "-c", join, "sh", script])
		check(result.code == 0, lambda: "%s\n%s" % (script, result))
		return sorted(seen(result))
	check_equal(inside("%s -G %s/top/below 1" % (argv, c.path)), ["green"], "the host's mount")
	mount = fresh_folder("namespace")
	mine = "umount -l '%s' && mount -t cgroup2 none '%s' && %s" % (c.mount, mount, argv)
	check_equal(inside("%s -G below 1" % mine), ["green"], "a mount of its own")
	check_equal(inside("%s -G %s/below 1" % (mine, mount)), ["green"], "with the mount point")
	check("green" in inside("%s -G %d 1" % (mine, c.id("top"))), "an id")


@test
def nonsense_is_refused():
	c = cgroups()
	for text, code, words in (("", 2, "-G"), ("no-such-cgroup", 1, "there is no cgroup 'no-such-cgroup': give a path below"),
			("/no/such", 1, "there is no cgroup '/no/such'"), (c.path + "/top/cgroup.procs", 2, "is a file: a cgroup is a directory"),
			("99999999999", 1, "no cgroup with the id 99999999999"), ("99999999999999999999999", 1, "there is no cgroup '9999"), ("../..", 1, "there is no cgroup"),
			("x" * 5000, 2, "path or its id"), ("/proc", 1, "there is no cgroup '/proc'")):
		result = sonde("profile", "-G", text, 1, want=code)
		check(words in result.err, lambda: "%s: %s" % (text[:60], result))
	for folder in ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/memory"):
		with open("/proc/self/mounts", encoding="utf-8") as file:
			if " %s cgroup " % folder in file.read():
				result = sonde("profile", "-G", folder, 1, want=2)
				check("is a cgroup of version 1" in result.err, lambda: str(result))


@test
def without_cgroup2():
	need_bpf()
	if run(["unshare", "-m", "true"]).code:
		skip("no mount namespace can be made")
	for verb in ("profile", "stat"):
		result = run(["unshare", "-m", "sh", "-c", 'grep " cgroup2 " /proc/self/mounts | while read -r _ point _; do umount -l "$point" || exit 77; done; "$1" $2 -G / 1', "sh", SONDE, verb])
		if result.code == 77:
			skip("cgroup2 cannot be unmounted in a namespace")
		check(result.code == 4 and "mount -t cgroup2" in result.err, lambda: str(result))


def wait_until(condition, what):
	"""Returns the time at which the condition became true."""
	until = time.monotonic() + 30
	while not condition():
		check(time.monotonic() < until, what)
		time.sleep(0.001)
	return time.monotonic()


def ran_ns(pid):
	with open("/proc/%d/schedstat" % pid, encoding="ascii") as file:
		return int(file.read().split()[0])


@test
def frozen():
	"""Time in the freezer is its own kind of wait. It lasts at least from when the kernel says that all are frozen to the thaw, at most from
	the freeze until the thread runs again."""
	c = cgroups()
	pid, folder, path = c.programs["blue"].pid, os.path.join(c.path, "top2"), scratch("frozen.folded")
	if not os.path.exists(os.path.join(folder, "cgroup.freeze")):
		skip("this kernel's cgroups have no freezer")

	def freeze(word):
		with open(os.path.join(folder, "cgroup.freeze"), "w", encoding="ascii") as file:
			file.write(word)

	def is_frozen():
		with open(os.path.join(folder, "cgroup.events"), encoding="ascii") as file:
			return "frozen 1" in file.read()
	with Background("offcpu", "-p", pid, "-o", path) as background:
		background.wait_line("Tracing")
		try:
			asked = time.monotonic()
			freeze("1")
			began = wait_until(is_frozen, "it does not freeze")
			time.sleep(0.7)
			ran, ended = ran_ns(pid), time.monotonic()
		finally:
			freeze("0")
		runs = wait_until(lambda: ran_ns(pid) != ran, "it does not run on")
		background.send(signal.SIGINT)
		result = background.finish()
	check_equal(result.code, 0, result)
	with open(path, encoding="utf-8") as file:
		lines = [line.rsplit(" ", 1) for line in file]
	seconds = sum(int(us) for stack, us in lines if stack.endswith("[frozen]")) / 1e6
	check(ended - began <= seconds <= runs - asked, lambda: "%.6f s frozen, want %.6f to %.6f\n%s" % (seconds, ended - began, runs - asked, lines))


run_tests()
