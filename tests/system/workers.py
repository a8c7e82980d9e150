#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Threads of a process without a user side, and threads that never return to it: io_uring's workers, and a thread that writes a core file."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Program, build, chain_error, check, check_exact, fresh_folder, need_bpf, parse_chains, parse_json, record, run_tests, skip, test, total # noqa: E402

WORKERS = ("iou-wrk-", "iou-sqp-")
OF_WALL = ("[on-cpu]", "[runnable]", "[blocked")


def stacks_of(verb, *args, **kwargs):
	"""Returns the stacks of a recording, without the thread states of `wall`; and how sonde ended."""
	report, result = record(verb, *args, **kwargs)
	stacks = parse_json(report)
	for stack in stacks:
		stack.user = [frame for frame in stack.user if not frame.startswith(OF_WALL)]
	return stacks, result


def without_calls(stack, *names):
	"""Returns the stack without libc's frames at its leaf."""
	while stack.user and stack.user[-1] in names:
		stack.user.pop()
	return stack


def workers(verb, *options):
	"""io_uring works for a program: its workers have only kernel frames; the thread that waits for them has its chain."""
	need_bpf()
	if os.path.exists("/proc/sys/kernel/io_uring_disabled"):
		with open("/proc/sys/kernel/io_uring_disabled", encoding="ascii") as file:
			if file.read().strip() == "2":
				skip("no io_uring")
	with Program("io_workers") as program:
		stacks, _ = stacks_of(verb, *options, "-p", program.pid, 2)
	theirs = [stack for stack in stacks if stack.comm.startswith(WORKERS)]
	own = [stack for stack in stacks if stack.comm == "io_workers"]
	for function in ("io_wq_worker", "io_sq_thread"):
		check(any(function in stack.kernel for stack in theirs), lambda: "none in %s: %s" % (function, {stack.comm for stack in stacks})) # pylint: disable=cell-var-from-loop
	made_up = [stack for stack in theirs if stack.user]
	check(not made_up, lambda: "%d of %d are made up:\n%s" % (total(made_up), total(theirs), "\n".join(map(str, made_up[:5]))))
	share = not own or check_exact(own, lambda stack: chain_error(without_calls(stack, "syscall"), program.chains["io_workers"]), at_least=verb != "profile") # its thread only waits
	return "%d of workers, %.2f %% of %d of who waits for them" % (total(theirs), share * 100, total(own))


@test
def workers_on_a_cpu():
	return workers("profile", "-F", 997)


@test
def workers_wait():
	return workers("offcpu")


@test
def workers_all_the_time():
	return workers("wall", "-F", 499)


@test
def core_file():
	"""A thread that writes its own core file has the stack at which it crashed."""
	need_bpf()
	with open("/proc/sys/kernel/core_pattern", encoding="ascii") as file:
		if file.read().strip() != "core":
			skip("core files go elsewhere")
	stacks, result = stacks_of("profile", "-F", 997, "--", build("dumper"), 60, 96, want=139, cwd=fresh_folder("cores"))
	chain = parse_chains(result.out)["dumper"]
	dumping = [stack for stack in stacks if "do_coredump" in stack.kernel or "vfs_coredump" in stack.kernel]
	share = check_exact(dumping, lambda stack: chain_error(stack, chain), at_least=10)
	return "%.2f %% of %d" % (share * 100, total(dumping))


if __name__ == "__main__":
	run_tests()
