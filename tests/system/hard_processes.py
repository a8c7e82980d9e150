#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The hard cases of native unwinding, part 3: processes without an exec of their own, and many threads."""
import sys

from hard import START, exact, like, profile, profile_command, profile_machine
from harness import Program, build, chain_error, check, need_bpf, run_tests, sonde, test


def by_comm(chains):
	return lambda stack: chain_error(stack, chains[stack.comm])


@test
def forked_before():
	"""The child of a child. Both existed before the recording, and have no mapping events of their own."""
	need_bpf()
	with Program("forks", "fork") as program:
		stacks = profile_machine(program.chains)
		return exact(stacks, by_comm(program.chains))


@test
def forked_meanwhile():
	"""Known from its first instruction on; a process that lives for 2 s is known for all but its start."""
	need_bpf()
	chains = {"grandchild": "main;parent;child;grandchild;grandchild_leaf".split(";")}
	return exact(profile_command(chains, build("forks"), 2, "fork"), by_comm(chains))


@test
def vforked():
	"""A child shares its parent's memory under its own process id, for 200 ms each. The thread gets its name just before its leaf spins."""
	need_bpf()
	stacks = profile_command({"borrower"}, build("forks"), 2, "vfork")
	return exact(stacks, like(START + "main;parent;borrower;borrower_leaf(;(__)?(prctl|setitimer))?"))


@test
def crowd():
	"""200 threads, nearly all of which are sampled."""
	need_bpf()
	with Program("crowd") as program:
		check(len(program.chains) == 200, "there are %d threads" % len(program.chains))
		stacks = profile(program.pid, 2)
	comms = {stack.comm for stack in stacks}
	check(len(comms) > 150, "only %d threads were hit" % len(comms))
	return exact(stacks, by_comm(program.chains)) + ", %d threads" % len(comms)


# Twelve children in turn, of each of which a thread that is not the first executes a shell
THREADS_THAT_EXEC = """
import os, threading, time
for turn in range(12):
	child = os.fork()
	if not child:
		def run():
			time.sleep(0.002)
			os.execv("/bin/sh", ["sh", "-c", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"])
		threading.Thread(target=run).start()
		time.sleep(5)
	os.waitpid(child, 0)
"""


@test
def a_thread_executes():
	"""The first thread ends then, its process does not."""
	need_bpf()
	lines = sonde("profile", "-f", "-F", 499, "--", sys.executable, "-c", THREADS_THAT_EXEC, want=0).out.splitlines()
	shells = [line.rpartition(" ") for line in lines if line.startswith("sh;")]
	total = sum(int(number) for _, _, number in shells)
	unknown = sum(int(number) for stack, _, number in shells if "not known" in stack)
	check(total > 200 and unknown <= total / 50, "%d of %d samples are of an unknown process" % (unknown, total))
	return "%d of %d samples" % (unknown, total)


run_tests()
