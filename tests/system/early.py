#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No sample is lost for being early: processes that live for 5, 40, 200 and 1,000 ms run one after another. At least a given share of the ticks that hit
them is in the profile under the right name with a whole stack: from the root to the leaf, or the kernel's stack alone while there is no user side (a
program is being replaced, or has ended)."""
import json
import os
import re
import resource
import signal
import statistics
import subprocess

from harness import (Background, Program, SOURCES, build, chain_error, check, check_exact, find_tool, need_bpf, parse_folded, parse_json, record, run_tests, sonde, test,
		     total)
from python_programs import pythons

FREQ_HZ = 499 # a CPU takes no more ticks than its limit of deferred stacks, 64 in 100 ms, however many other early samples there are
DEEP_FREQ_HZ = 199 # likewise for deep stacks: at most 4 MiB in 100 ms
CHAIN = ["main", "brief_work", "brief_leaf"]
DEEP = ["work", *["thin"] * 300, *["wide"] * 10, "deep_leaf"]
MARK = re.compile(r"\[(?!vdso|[^\]]*\+0x)[^\]]*\]$") # text in brackets that is no location in a file

SHORT_HZ = 997
NR_SHORT = 9
SHORT_SHARE = 0.92 # of 35 to 100 samples; 0.97 to 1 were seen when the reader had a CPU, 0.44 to 0.7 before interpreters were expected


def used_by_children():
	used = resource.getrusage(resource.RUSAGE_CHILDREN)
	return used.ru_utime + used.ru_stime


def profile_briefs(ms, cpu_seconds, *args, name="brief", static=False, freq_hz=FREQ_HZ):
	"""Returns the stacks of all started processes, and the CPU seconds that these used. Processes start until they have used so much,
	however long a busy machine takes for it."""
	program = build(name, "static" if static else "")
	before = used_by_children()
	used, pids = 0, set()
	with Background("profile", "--format", "json", "-F", freq_hz) as profiler:
		profiler.wait_line("Sampling at")
		while used < cpu_seconds:
			with subprocess.Popen([program, str(ms), *args]) as process:
				pids.add(process.pid)
			used = used_by_children() - before
		profiler.send(signal.SIGINT)
		result = profiler.finish()
	check(result.code == 0, result)
	report = json.loads(result.out)
	stacks = [stack for stack in parse_json(report) if stack.pid in pids and stack.comm == os.path.basename(program)[:15]]
	return stacks, used, report["account"]


def error_of(stack):
	if stack.user == ["[exec]"] or not stack.user:
		return None if stack.kernel else "neither a user nor a kernel stack"
	marks = [frame for frame in stack.user if MARK.match(frame)]
	if marks:
		return "marked " + marks[0]
	for chain in (CHAIN, DEEP):
		if chain[-1] in stack.user:
			at = stack.user.index(chain[-1]) + 1
			if stack.user[:at][-len(chain):] != chain:
				return "not the chain"
	return None if stack.user[0] in ("_start", "_dl_start_user", "_dl_start", "clone3", "__clone3", "clone", "__clone") or "ld-" in stack.user[0] or stack.user[0].startswith("[libc.so") else "does not begin at the root"


def briefs(ms, minimum, **kwargs):
	need_bpf()
	stacks, used, _ = profile_briefs(ms, 2, **kwargs)
	share = check_exact(stacks, error_of, minimum=minimum, at_least=0.75 * used * FREQ_HZ)
	return "%.2f %% of %d samples" % (share * 100, total(stacks))


@test
def five_milliseconds():
	return briefs(5, 0.95)


@test
def forty_milliseconds():
	return briefs(40, 0.99)


@test
def two_hundred_milliseconds():
	return briefs(200, 0.995)


@test
def a_second():
	return briefs(1000, 0.999)


@test
def static_programs():
	"""Nothing is mapped after the exec: the side-band describes the program in one piece."""
	return briefs(5, 0.95, static=True)


def deep(*args):
	"""A stack of half a MiB, with pages that were never touched, in processes that are still unknown. Stacks truncated because the reader
	gets no CPU and its ring buffer is full are counted."""
	need_bpf()
	stacks, used, account = profile_briefs(2, 1.5, *args, name="brief_deep", freq_hz=DEEP_FREQ_HZ)
	stacks = [stack for stack in stacks if set(DEEP[1:]) & set(stack.user)]
	cut = [stack for stack in stacks if stack.user[0] == "[truncated]"]
	check(total(cut) <= account.get("late_cut", 0), lambda: "%d are cut, and %s counted: %s" % (total(cut), account.get("late_cut"), cut[0]))
	share = check_exact([stack for stack in stacks if stack not in cut], error_of, at_least=0.25 * used * DEEP_FREQ_HZ)
	return "%.2f %% of %d samples, %d cut" % (share * 100, total(stacks), total(cut))


def interpreters():
	"""Returns [command]: each runs a program of tests/programs for the number of milliseconds appended to it."""
	found = [(python, "short.py") for python in pythons()] + [(find_tool(name), "short." + name[:3].replace("per", "pl")) for name in ("perl", "php")]
	return [[path, os.path.join(SOURCES, program)] for path, program in found if path]


def record_short(*command, args=()):
	"""Returns {pid: stacks} of what ran, and how many milliseconds the short programs report for leaf."""
	report, result = record("profile", "-F", SHORT_HZ, *args, "--", *command)
	by_pid = {}
	for stack in parse_json(report):
		by_pid.setdefault(stack.pid, []).append(stack)
	return by_pid, sum(map(float, result.out.split()))


def is_leaf(stack):
	names = [frame.split("::")[-1] for frame in stack.user]
	return "leaf" in names and "work" in names[:names.index("leaf")]


def share_known(stacks):
	"""Returns the share of the samples without a mark."""
	marked = total([stack for stack in stacks if stack.user != ["[exec]"] and any(MARK.match(frame) for frame in stack.user)])
	return 1 - marked / total(stacks)


@test
def interpreters_alone():
	"""A recording sees only 100 ms of an interpreter that an earlier recording has seen. The best of some recordings counts: when the reader
	gets no CPU for a while, it is late by that much. Beside other tests that happens to most recordings of PHP, whose 33 files are each
	examined."""
	need_bpf()
	said = []
	for command in interpreters():
		record_short(*command, 100)
		runs = [record_short(*command, 100) for _ in range(NR_SHORT)]
		shares = [share_known([stack for of_pid in by_pid.values() for stack in of_pid]) for by_pid, _ in runs]
		check(max(shares) >= SHORT_SHARE, lambda: "%s: %s" % (command[0], ["%.3f" % share for share in sorted(shares)]))
		known = [run for run, share in zip(runs, shares) if share >= SHORT_SHARE]
		seen = sum(total(filter(is_leaf, of_pid)) for by_pid, _ in known for of_pid in by_pid.values()) / SHORT_HZ * 1000
		told = sum(told for _, told in known)
		check(0.85 * told < seen < 1.2 * told, "%s: %.0f ms in leaf, which tells of %.0f" % (command[0], seen, told))
		said.append("%s %.1f %%" % (os.path.basename(command[0]), 100 * statistics.median(shares)))
	return ", ".join(said)


@test
def interpreters_in_turn():
	"""The same in one recording that knew none of the interpreters: each start but the first of an interpreter."""
	need_bpf()
	said = []
	for command in interpreters():
		by_pid, _ = record_short("sh", "-c", "for i in %s; do \"$@\"; done" % " ".join(map(str, range(NR_SHORT + 1))), "sh", *command, 100, args=["--no-unwind-cache"])
		shares = [share_known(by_pid[pid]) for pid in sorted(by_pid) if total(by_pid[pid]) >= 50]
		check(len(shares) >= NR_SHORT, lambda: "%s: only %d programs: %s" % (command[0], len(shares), {pid: total(stacks) for pid, stacks in by_pid.items()}))
		check(statistics.median(shares[1:]) >= SHORT_SHARE, lambda: "%s: %s" % (command[0], ["%.3f" % share for share in shares]))
		said.append("%s %.1f %%" % (os.path.basename(command[0]), 100 * statistics.median(shares[1:])))
	return ", ".join(said)


@test
def deep_stacks():
	return deep()


@test
def deep_stacks_of_threads():
	return deep("thread")


@test
def the_time_is_all_there():
	"""The processes' own account of their time is a sanity check: ticks include time stolen by a host, the account does not."""
	need_bpf()
	stacks, used, _ = profile_briefs(40, 2)
	seen = total(stacks) / FREQ_HZ
	check(0.85 * used < seen < 1.2 * used, "%.2f s in the profile, %.2f s used" % (seen, used))
	return "%.1f %% of the CPU time that the processes report" % (100 * seen / used)


@test
def a_target_that_forks():
	"""A child of a command is known by its parent's mappings from its first instruction on."""
	need_bpf()
	for seconds in (2, 20): # where others leave it little time
		report, _ = record("profile", "-F", FREQ_HZ, "--", build("children"), seconds)
		stacks = [stack for stack in parse_json(report) if stack.comm == "child"]
		if total(stacks) >= 200:
			break
	share = check_exact(stacks, lambda stack: "marked" if any(MARK.match(frame) for frame in stack.user) else None, minimum=0.99, at_least=200)
	return "%.2f %% of %d samples" % (share * 100, total(stacks))


@test
def stack_not_in_memory():
	"""An interrupt cannot read pages that are not in memory. From Linux 6.18 on, the thread itself sends its stack when it continues;
	before, the stack is marked."""
	need_bpf()
	for seconds in (2, 20): # where others leave little time to the thread that takes the pages, or to the thread that owns them
		with Program("paged", 3) as program:
			result = sonde("profile", "-f", "-a", "-p", program.pid, "-F", FREQ_HZ, seconds, want=0)
		stacks = [stack for stack in parse_folded(result.out) if stack.user[-1:] != ["main"] and "main" not in stack.user]
		late = re.search(r"(\d+) walked late", result.err)
		if total(stacks) >= 100 and late and int(late.group(1)) >= 50:
			break
	if tuple(int(word) for word in os.uname().release.split(".")[:2]) < (6, 18):
		share = check_exact(stacks, lambda stack: None if "[stack not readable]" in stack.user else "not marked", minimum=0.9)
		return "%.2f %% of %d samples are marked" % (share * 100, total(stacks))
	share = check_exact(stacks, lambda stack: chain_error(stack, program.chains["paged"]))
	check(late and int(late.group(1)) >= 50, lambda: "the pages were in memory: %s" % result)
	return "%.2f %% of %d samples" % (share * 100, total(stacks))


if __name__ == "__main__":
	run_tests()
