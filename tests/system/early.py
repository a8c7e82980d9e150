#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No sample is lost to being early: processes that live for 5, 40, 200 and 1,000 ms, one after another. Of the ticks that hit them, at least so many
stand in the profile under the right name and with a whole stack: from the root to where it was, or that of the kernel alone while there is no user
side (a program is being replaced, or has ended)."""
import json
import os
import re
import resource
import signal
import subprocess
import time

from harness import Background, Program, build, chain_error, check, check_exact, need_bpf, parse_folded, parse_json, run_tests, scratch, sonde, test, total

FREQ_HZ = 499 # however many others are early as well, a CPU has not more of them than come raw: 64 in 100 ms
CHAIN = ["main", "brief_work", "brief_leaf"]
MARK = re.compile(r"\[(?!vdso|[^\]]*\+0x)[^\]]*\]$") # what stands in brackets and is no place in a file


def used_by_children():
	used = resource.getrusage(resource.RUSAGE_CHILDREN)
	return used.ru_utime + used.ru_stime


def profile_briefs(ms, cpu_seconds, *, static=False):
	"""The stacks of all processes that were started, and the CPU seconds that these have used: so many, however long a busy machine takes for that."""
	program = build("brief", "static" if static else "")
	before = used_by_children()
	used, pids = 0, set()
	with Background("profile", "--format", "json", "-F", FREQ_HZ) as profiler:
		profiler.wait_line("Sampling at")
		while used < cpu_seconds:
			with subprocess.Popen([program, str(ms)]) as process:
				pids.add(process.pid)
			used = used_by_children() - before
		profiler.send(signal.SIGINT)
		result = profiler.finish()
	check(result.code == 0, result)
	stacks = [stack for stack in parse_json(json.loads(result.out)) if stack.pid in pids and stack.comm == os.path.basename(program)[:15]]
	return stacks, used


def error_of(stack):
	if stack.user == ["[exec]"] or not stack.user:
		return None if stack.kernel else "neither a user nor a kernel stack"
	marks = [frame for frame in stack.user if MARK.match(frame)]
	if marks:
		return "marked " + marks[0]
	if CHAIN[-1] in stack.user:
		at = stack.user.index(CHAIN[-1]) + 1
		if stack.user[:at][-len(CHAIN):] != CHAIN:
			return "not the chain"
	return None if stack.user[0] in ("_start", "_dl_start_user", "_dl_start") or "ld-" in stack.user[0] else "does not begin at the root"


def briefs(ms, minimum, **kwargs):
	need_bpf()
	stacks, used = profile_briefs(ms, 2, **kwargs)
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
	"""Nothing is mapped after the exec: what the side-band tells of it comes in one piece."""
	return briefs(5, 0.95, static=True)


@test
def the_time_is_all_there():
	"""The processes' own account of their time, as a sanity check: time that a host takes away is in the ticks and not in the account."""
	need_bpf()
	stacks, used = profile_briefs(40, 2)
	seen = total(stacks) / FREQ_HZ
	check(0.85 * used < seen < 1.2 * used, "%.2f s in the profile, %.2f s used" % (seen, used))
	return "%.1f %% of the CPU time that the processes report" % (100 * seen / used)


@test
def a_target_that_forks():
	"""A child of a command is known by its parent's mappings from its first instruction on."""
	need_bpf()
	report = scratch("early.json")
	for seconds in (2, 20): # where others leave it little time
		sonde("profile", "-o", report, "-F", FREQ_HZ, "--", build("children"), seconds, want=0)
		with open(report, encoding="utf-8") as file:
			stacks = [stack for stack in parse_json(json.load(file)) if stack.comm == "child"]
		if total(stacks) >= 200:
			break
	share = check_exact(stacks, lambda stack: "marked" if any(MARK.match(frame) for frame in stack.user) else None, minimum=0.99, at_least=200)
	return "%.2f %% of %d samples" % (share * 100, total(stacks))


@test
def stack_not_in_memory():
	"""An interrupt cannot read pages that are not there. From Linux 6.18 on the thread itself sends its stack when it goes on; before, it is marked."""
	need_bpf()
	for seconds in (2, 20): # where others leave little time to the thread that takes the pages, or to the one whose they are
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
