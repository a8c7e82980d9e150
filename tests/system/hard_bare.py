#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The hard cases of native unwinding, part 4: code with neither tables nor frame pointers. A stack may end early there, in one mark. Each frame that is
shown, leaf first, is the true caller of the one before."""
from hard import FRAME_POINTERS, NO_TABLES, exact, made, profile, share_of, source
from harness import CFLAGS, Failure, Program, build, check, entry_error, need_bpf, run, run_tests, scratch, test

DEPTH = 30


def honest_error(chain):
	"""The stack may end early, but then in one mark; every frame shown is true."""
	def error_of(stack):
		marks = [name for name in stack.user if name.startswith("!")]
		own = stack.user[stack.user.index("main"):] if "main" in stack.user else stack.user
		if not marks:
			return "no mark, and not the whole chain" if own != chain or entry_error(stack.user[:stack.user.index("main")]) else None
		if len(marks) > 1 or not stack.user[0].startswith("!"):
			return "marks where none should be"
		if chain[0] in stack.user: # emulation of the code that follows found all callers: only that the outermost is the root is unknown
			at = stack.user.index(chain[0])
			start = entry_error(stack.user[1:at]) if chain[0] == "main" else stack.user[1] != "_start"
			return "shows a false caller" if start or stack.user[at:] != chain else None
		return None if stack.user[1:] == chain[-len(stack.user[1:]):] or not stack.user[1:] else "shows a false caller"
	return error_of


def bare(where, rbp, *flags):
	need_bpf()
	name = "bare" + "".join(flag for flag in flags if "frame" in flag)
	path = made(name, "gcc", *(FRAME_POINTERS if flags else CFLAGS), source("bare.c"))
	with Program("bare", where, rbp, path=[path]) as program:
		chain = next(iter(program.chains.values()))
		stacks = profile(program.pid)
		return exact(stacks, honest_error(chain)) + ", %.0f %% whole" % (share_of(stacks, "^_start;") * 100)


@test
def bare_assembly_with_zero_in_rbp():
	return bare("leaf", "zero")


@test
def bare_assembly_leaf_with_zero_in_rbp():
	return bare("spin", "zero")


@test
def bare_assembly_with_a_number_in_rbp():
	return bare("leaf", "number")


@test
def bare_assembly_leaf_with_a_number_in_rbp():
	return bare("spin", "number")


@test
def bare_assembly_with_an_old_frame_in_rbp():
	return bare("leaf", "stale")


@test
def bare_assembly_leaf_with_an_old_frame_in_rbp():
	return bare("spin", "stale")


@test
def bare_assembly_with_its_callers_frame_in_rbp():
	"""The C code around it has frame pointers, and the assembly does not change rbp."""
	return bare("leaf", "kept", "-fno-omit-frame-pointer")


@test
def bare_assembly_leaf_with_its_callers_frame_in_rbp():
	return bare("spin", "kept", "-fno-omit-frame-pointer")


def without_tables(name, path):
	"""Makes a copy of the program without call frame information."""
	target = scratch(name)
	check(run(["objcopy", "-R", ".eh_frame", "-R", ".eh_frame_hdr", "-R", ".gcc_except_table", path, target]).code == 0, "objcopy")
	return target


@test
def no_tables_in_c():
	need_bpf()
	path = made("chain-nothing", "gcc", *CFLAGS, *NO_TABLES, source("chain.c"))
	with Program("chain", DEPTH, path=[path]) as program:
		return exact(profile(program.pid), honest_error(program.chains["chain-nothing"]))


@test
def tables_removed_from_c():
	need_bpf()
	with Program("chain", DEPTH, path=[without_tables("removed", build("chain"))]) as program:
		return exact(profile(program.pid), honest_error(program.chains["removed"]))


@test
def tables_removed_from_rust():
	need_bpf()
	with Program("rusty", path=[without_tables("rusty-removed", build("rusty"))]) as program:
		return exact(profile(program.pid), honest_error(program.chains["rusty"]))


def behind_calls_that_do_not_return(*flags):
	need_bpf()
	notes = []
	path = without_tables("noreturn-removed", made("noreturn" + "".join(flags), "gcc", *CFLAGS, *NO_TABLES, "-fno-toplevel-reorder", *flags, source("noreturn.c")))
	for kind in ("leaf", "branchy", "pushes", "cold", "narrow", "framed"):
		with Program("noreturn", kind, path=[path]) as program:
			chain = next(iter(program.chains.values()))
			try:
				notes.append(kind + " " + exact(profile(program.pid), honest_error(chain)))
			except Failure as failure:
				notes.append("!" + kind + str(failure))
	check(not any(note.startswith("!") for note in notes), lambda: "\n".join(notes))
	return "; ".join(notes)


@test
def calls_that_do_not_return_before_other_functions():
	"""The return address is the first byte of a function with another frame, padding before it, or a cold part of another function."""
	return behind_calls_that_do_not_return()


@test
def calls_that_do_not_return_without_padding():
	return behind_calls_that_do_not_return("-falign-functions=1")


run_tests()
