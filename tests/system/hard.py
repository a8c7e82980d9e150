# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of the hard cases (hard_*.py): their own builds, stacks in which marks are distinct from functions, patterns of stacks."""
import os
import re

from harness import (CFLAGS, LIBC_START, PROGRAMS, SOURCES, Failure, Stack, building, check, check_exact, compile_one, find_tool, is_older, need_bpf, parse_json,
	perf_stacks, record, skip, total)

FREQ_HZ = 997
SECONDS = 1
ENOUGH = 150 # samples

NO_TABLES = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]
FRAME_POINTERS = [flag for flag in CFLAGS if flag != "-fomit-frame-pointer"] + ["-fno-omit-frame-pointer"]

NAMELESS = r"\[[^\];]+\]"
START = r"_start;(?:(?:%s);){1,2}" % LIBC_START
SIGNAL = r"(?:__restore_rt|%s)" % NAMELESS # the kernel's frame that returns from the handler


def made(name, *argv, needs=()):
	"""Returns the path of a program of that name. This command (to which -o and the path are added) builds it unless it is newer than all
	sources."""
	target = os.path.join(PROGRAMS, name)
	with building():
		if is_older(target, [os.path.join(SOURCES, file) for file in os.listdir(SOURCES)] + list(needs)):
			tool = find_tool(argv[0])
			if not tool:
				skip("no " + argv[0])
			compile_one([*argv, "-o", target])
	return target


def source(name):
	return os.path.join(SOURCES, name)


def with_gcc(name, file, *flags, compiler="gcc", libraries=()):
	return made(name, compiler, *CFLAGS, *flags, source(file), *libraries)


def stacks_of(report):
	"""parse_json(), but a mark begins with an exclamation mark: a function without a name is in brackets, too."""
	for frame in report["frames"]:
		if frame["kind"] in ("mark", "missed"):
			function = dict(report["functions"][frame["function"]])
			function["name"] = "!" + function["name"].lstrip("!")
			report["functions"][frame["function"]] = function
	return parse_json(report)


def report_of(*args):
	"""Returns the JSON report of a run."""
	need_bpf()
	return record("profile", "-F", FREQ_HZ, *args)[0]


def profile(pid, seconds=SECONDS):
	"""Returns the stacks of a running process; records longer when others leave it little time."""
	stacks = stacks_of(report_of("-p", pid, seconds))
	return stacks if total(stacks) >= ENOUGH else stacks_of(report_of("-p", pid, 8 * seconds))


def profile_machine(comms, seconds=SECONDS):
	"""Returns the stacks of threads of these names."""
	return [stack for stack in stacks_of(report_of(seconds)) if stack.comm in comms]


def profile_command(comms, *command):
	"""Returns the stacks of threads of these names in a command, from its start to its end."""
	return [stack for stack in stacks_of(report_of("--", *command)) if stack.comm in comms]


def like(pattern):
	"""For check_exact: returns what is wrong if a stack's user frames, joined with semicolons, do not match the pattern."""
	compiled = re.compile(pattern)
	def error_of(stack):
		return None if compiled.fullmatch(";".join(stack.user)) else "is not as wanted"
	error_of.pattern = pattern
	return error_of


def chain_pattern(chain, *functions):
	"""Returns the pattern of a chain that the program printed, from _start on. `functions`: frames to insert, as (behind which function,
	pattern)."""
	words = [re.escape(name) for name in chain]
	for behind, pattern in functions:
		words.insert(chain.index(behind) + 1, pattern)
	return START + ";".join(words)


def merged(stacks):
	"""Merges stacks that differ only in kernel frames, which these tests do not check."""
	counts = {}
	for stack in stacks:
		key = (stack.comm, tuple(stack.user), bool(stack.kernel), stack.pid)
		counts[key] = counts.get(key, 0) + stack.count
	return [Stack(comm, list(user), ["..."] if kernel else [], count, pid) for (comm, user, kernel, pid), count in counts.items()]


def exact(stacks, error_of, minimum=0.99, at_least=60):
	"""Runs check_exact() and returns a note. With SONDE_TEST_STRICT=1 in the environment, the remaining hundredth is listed too."""
	try:
		share = check_exact(merged(stacks), error_of, minimum=1.0 if os.environ.get("SONDE_TEST_STRICT") else minimum, at_least=at_least)
	except Failure as failure:
		raise Failure("%s\nwanted: %s" % (failure, getattr(error_of, "pattern", "see the test"))) from None
	return "%.2f %% of %d samples" % (share * 100, total(stacks))


def witness(pid, pattern):
	"""perf's DWARF stacks match the pattern too, as far as its dump of the stack reaches; perf itself is wrong in a hundredth of the dynamic
	linker's. Returns a note."""
	seen = perf_stacks(pid)
	if len(seen) < ENOUGH / 3:
		seen = perf_stacks(pid, seconds=6)
	for stack in seen:
		stack.comm = "perf sees " + stack.comm
	exact(seen, like(pattern), minimum=0.95, at_least=30)
	return ", perf agrees in %d" % len(seen)


def share_of(stacks, pattern):
	"""Returns the share of the samples whose stack has the pattern somewhere."""
	found = total([stack for stack in stacks if re.search(pattern, ";".join(stack.user))])
	return found / max(1, total(stacks))


def check_seen(stacks, pattern, minimum):
	"""The subject of a test must be in the samples, or the test proves nothing."""
	share = share_of(stacks, pattern)
	check(share >= minimum, lambda: "only %.1f %% of the samples are in %s\n%s" % (share * 100, pattern, "\n".join(map(str, stacks[:10]))))
	return ", %.0f %% there" % (share * 100)
