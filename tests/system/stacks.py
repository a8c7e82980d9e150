#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""At least 99 % of the samples of programs without frame pointers are the program's true stack, from _start to the leaf: the chain that the program
itself wrote down. perf's DWARF call graph of the same process is a second reference, as far as its dump of the stack reaches."""
import os
import re
import time

from harness import (Background, LIBC_READ, PROGRAMS, Program, build, chain_error, check, check_exact, entry_error, load_json, need_bpf, parse_folded, parse_json, perf_error,
	perf_stacks, run_tests, scratch, sonde, test, total)

FREQ_HZ = 997
SECONDS = 1
ENOUGH = 200 # samples
AUDIT_EVERY = 1


def check_audit(result):
	"""Where libdw can unwind the same stacks, it finds the same frames."""
	audit = re.search(r"^audit: (\d+) of (\d+) stacks agree with libdw", result.err, re.MULTILINE)
	check(audit, lambda: "no audit in the account: %s" % result)
	check(audit.group(1) == audit.group(2), lambda: "libdw disagrees: %s" % result)


def profile(program, *args):
	"""Returns the stacks of a running workload, all threads; records longer when others leave it little time."""
	for seconds in (SECONDS, 8 * SECONDS):
		result = sonde("profile", "-f", "-a", "-p", program.pid, "-F", FREQ_HZ, "--audit-every", AUDIT_EVERY, *args, seconds, want=0)
		check_audit(result)
		stacks = parse_folded(result.out)
		if total(stacks) >= ENOUGH:
			break
	strangers = {stack.comm for stack in stacks} - set(program.chains)
	check(not strangers, lambda: "samples of others than -p %d: %s" % (program.pid, strangers))
	return stacks


def exact(program, stacks, error_of=None):
	"""Checks the stacks against the program's chains, and the chains against perf. Returns a note."""
	error_of = error_of or (lambda stack: chain_error(stack, program.chains[stack.comm]))
	share = check_exact(stacks, error_of)
	return "%.2f %% of %d samples" % (share * 100, total(stacks))


def witness(program, error_of=None):
	error_of = error_of or (lambda stack: perf_error(stack, program.chains[stack.comm]))
	seen = perf_stacks(program.pid)
	if total(seen) < ENOUGH / 4:
		seen = perf_stacks(program.pid, seconds=6)
	check_exact(seen, error_of, at_least=30)
	return ", perf agrees in %d" % len(seen)


def chain_of(depth, variant="", with_witness=True):
	need_bpf()
	with Program("chain", depth, variant=variant) as program:
		check(len(next(iter(program.chains.values()))) == depth + 2, "the workload has not the depth that was asked for")
		note = exact(program, profile(program))
		return note + (witness(program) if with_witness else "")


@test
def depth_10():
	return chain_of(10)


@test
def depth_30():
	return chain_of(30)


@test
def depth_60():
	return chain_of(60)


@test
def depth_200():
	return chain_of(200)


@test
def depth_500():
	return chain_of(500)


@test
def depth_1500():
	return chain_of(1500)


@test
def static_program():
	return chain_of(30, "static", with_witness=False) # has no .eh_frame_hdr, and perf sees one frame


@test
def static_pie_program():
	return chain_of(30, "spie")


@test
def fixed_address_program():
	return chain_of(30, "nopie")


@test
def clang_program():
	return chain_of(30, "clang")


@test
def frame_pointer_program():
	return chain_of(30, "fp")


@test
def threads():
	need_bpf()
	with Program("threads") as program:
		stacks = profile(program)
		note = exact(program, stacks)
		for comm in program.chains:
			share = total([stack for stack in stacks if stack.comm == comm]) / total(stacks)
			check(share > 0.1, "the thread %s has %.0f %% of the samples, and a quarter of the work" % (comm, share * 100))
		return note + witness(program)


def callback_error(chain, own_leaf, libc):
	def error_of(stack):
		user = stack.user
		at = user.index("main") if "main" in user else 0
		prefix, rest = user[at:at + len(chain)], user[at + len(chain):]
		if prefix != chain:
			return "does not go through " + ";".join(chain)
		if rest and rest[-1] == own_leaf:
			rest = rest[:-1]
			if not any(re.fullmatch(r"qsort(_r)?|__qsort_r", frame) for frame in rest):
				return "no qsort above %s" % own_leaf
		strange = [frame for frame in rest if not re.fullmatch(libc, frame)]
		return "frames that are none of libc's: %s" % strange if strange else entry_error(user[:at])
	return error_of


QSORT = r"qsort(_r)?|__qsort_r|msort_with_tmp(\.part\.0)?|_quicksort|__?mem\w*|\[libc[^\]]*\]|\w+@plt|\[callback[^\]]*\]|known_alarm"


@test
def qsort_callback():
	need_bpf()
	with Program("callback") as program:
		chain = program.chains["callback"]
		stacks = profile(program)
		note = exact(program, stacks, callback_error(chain, "cmpfn", QSORT))
		deep = [stack for stack in stacks if stack.user[-1:] == ["cmpfn"]]
		check(total(deep) > total(stacks) / 2, "most of the time is in cmpfn, and few samples are")
		# A merge sort of 64 values calls itself: libc must have as many frames as perf sees, not one.
		levels = {len(stack.user) for stack in deep}
		seen = perf_stacks(program.pid)
		perf_levels = {len(stack.user) for stack in seen if stack.user[-1:] == ["cmpfn"] and "main" in stack.user}
		check(len(seen) > 30 and perf_levels <= levels,
			lambda: "depths %s, perf has %s" % (sorted(levels), sorted(perf_levels)))
		return note + ", depths as perf's: %s" % sorted(levels)


@test
def qsort_callback_static():
	need_bpf()
	with Program("callback", variant="static") as program:
		chain = program.chains["callback-static"]
		return exact(program, profile(program), callback_error(chain, "cmpfn", QSORT))


@test
def libraries():
	need_bpf()
	build("library")
	with Program("library", os.path.join(PROGRAMS, "plugin.so")) as program:
		return exact(program, profile(program)) + witness(program)


@test
def cxx_names():
	need_bpf()
	with Program("mangled") as program:
		return exact(program, profile(program)) + witness(program)


def rust_error(chain):
	def error_of(stack):
		user = stack.user
		if chain[0] not in user or "main" not in user:
			return "%s or main is missing" % chain[0]
		at, main = user.index(chain[0]), user.index("main")
		if user[at:] != chain:
			return "differs from the chain"
		strange = [frame for frame in user[main + 1:at] if not re.search(r"\b(std|core)::", frame)]
		return "strange frames below main: %s" % strange if strange else entry_error(user[:main])
	return error_of


@test
def rust_names():
	need_bpf()
	with Program("rusty") as program:
		return exact(program, profile(program), rust_error(program.chains["rusty"])) + witness(program)


def signal_error(chain):
	at_signal = chain.index("trigger") + 1
	def error_of(stack):
		user = stack.user
		at = user.index("main") if "main" in user else 0
		own = user[at:]
		if not re.fullmatch(r"__restore_rt|\[libc[^\]]*\]", (own[at_signal:] or [""])[0]):
			return "no signal frame behind trigger"
		return "differs from the chain" if own[:at_signal] + own[at_signal + 1:] != chain else entry_error(user[:at])
	return error_of


@test
def signal_handler():
	need_bpf()
	with Program("signals") as program:
		error_of = signal_error(program.chains["signals"])
		return exact(program, profile(program), error_of) + witness(program, error_of)


# perf, BPF and the interrupt that took the sample are not part of the interrupted code's stack. bpf_lsm_* are the kernel's security hooks.
OWN_FRAMES = r"bpf_(?!lsm_)\w+|__bpf_\w+|perf_\w+|__perf_\w+|hrtimer_\w+|__hrtimer_\w+|(asm_)?sysvec_apic_timer_interrupt|__sysvec_apic_timer_interrupt|" \
	r"trace_call_bpf"


@test
def kernel_under_user():
	need_bpf()
	with Program("syscalls") as program:
		chain = program.chains["syscalls"]
		stacks = profile(program)
		def error_of(stack):
			user = stack.user
			at = user.index("main") if "main" in user else 0
			rest = user[at + len(chain):]
			if user[at:at + len(chain)] != chain:
				return "does not go through " + ";".join(chain)
			if len(rest) > 1 or (rest and not re.fullmatch(LIBC_READ + r"|read@plt|\[syscalls[^\]]*\]", rest[0])):
				return "not reader > read: %s" % rest
			if stack.kernel and not rest:
				return "in the kernel without read"
			return entry_error(user[:at])
		inside = [stack for stack in stacks if stack.kernel]
		check(total(inside) > total(stacks) * 0.5, "nearly all the time is in the kernel, and few samples are")
		for stack in inside:
			check(not re.fullmatch(OWN_FRAMES, stack.kernel[-1]), lambda: "the sampler's own frame is the leaf: %s" % stack)
		reading = [stack for stack in inside if any("read_" in frame or "_read" in frame for frame in stack.kernel)]
		check(total(reading) > total(inside) * 0.9, lambda: "kernel stacks without a read:\n%s" % "\n".join(map(str, inside[:8])))
		return exact(program, stacks, error_of)


# --- processes that come and go ------------------------------------------------------------------------------------------------------

def short_lived(command, comm, leaf, chain):
	"""Processes start after the sampling and live for 40 ms. In their leaf, the chain is known (start-up and end are not). A tenth may be
	too early for user space if a mark at the root end says so; an unmarked stack must be the chain."""
	need_bpf()
	output = sonde("profile", "-f", "-a", "-F", FREQ_HZ, "--", *command, want=0).out
	stacks = parse_folded("\n".join(line for line in output.splitlines() if line.startswith(comm + ";")))
	known = [stack for stack in stacks if stack.user[-1:] == [leaf] or (stack.user and stack.user[0].startswith("["))]
	whole = [stack for stack in known if not stack.user[0].startswith("[")]
	check_exact(whole, lambda stack: chain_error(stack, chain), minimum=0.995)
	share = check_exact(known, lambda stack: chain_error(stack, chain), minimum=0.9)
	return "%.2f %% of %d samples" % (share * 100, total(known))


@test
def forked_children():
	"""Forked children have no exec, and so no mapping events of their own."""
	return short_lived([build("children"), 2], "child", "child_leaf", "main;parent_loop;child_work;child_leaf".split(";"))


@test
def executed_children():
	chain = ["main"] + ["f%d" % (i % 10) for i in range(30)] + ["leaf"]
	return short_lived([build("children"), 2, build("chain"), 0.04, 30], "chain", "leaf", chain)


@test
def command():
	"""-- COMMAND is recorded from its first instruction on: start-up is in the samples, and is at most a hundredth of them."""
	need_bpf()
	program = build("chain")
	output = sonde("profile", "-f", "-a", "-F", FREQ_HZ, "--", program, 2, 30, want=0).out
	chain = ["main"] + ["f%d" % (i % 10) for i in range(30)] + ["leaf"]
	stacks = parse_folded("\n".join(line for line in output.splitlines() if line.startswith("chain;")))
	share = check_exact(stacks, lambda stack: chain_error(stack, chain))
	return "%.2f %% of %d samples" % (share * 100, total(stacks))


@test
def whole_machine():
	"""Without -p: a program that ran before, and one that starts in the middle of the run, both have complete stacks."""
	need_bpf()
	path = scratch("machine.json")
	with Program("chain", 60) as early, Background("profile", "-o", path, "-F", FREQ_HZ, 3) as running:
		running.wait_line("Sampling at")
		time.sleep(1)
		with Program("callback") as late:
			result = running.finish()
	check(result.code == 0, lambda: str(result))
	stacks = parse_json(load_json(path))
	first, second = ([stack for stack in stacks if stack.pid == program.pid] for program in (early, late))
	check_exact(first, lambda stack: chain_error(stack, early.chains["chain"]))
	known = [stack for stack in second if stack.user[-1:] == ["cmpfn"] or (stack.user and stack.user[0].startswith("["))]
	check_exact(known, callback_error(late.chains["callback"], "cmpfn", QSORT), minimum=0.97)
	return "%d and %d samples" % (total(first), total(known))


run_tests()
