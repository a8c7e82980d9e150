#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The hard cases of native unwinding, part 1: control flow other than a plain call. Stubs, late binding, signal handlers, the vdso, exceptions, longjmp,
coroutines, tail calls, recursion."""
import re

from hard import (NAMELESS, SIGNAL, START, chain_pattern, check_seen, exact, like, profile, with_gcc, witness)
from harness import PROGRAMS, Program, check, entry_error, need_bpf, run_tests, test

VDSO = r"(?:__vdso_\w+|\[vdso\])"


# --- stubs -------------------------------------------------------------------------------------------------------------------------

def stubs(name, *flags, lazy=False, see=profile):
	library = with_gcc("libstubs.so", "library_stubs.c", "-shared", "-fPIC")
	path = with_gcc("stubs-" + name, "stubs.c", *flags, libraries=[library, "-Wl,-rpath," + PROGRAMS])
	need_bpf()
	with Program("stubs", *(["lazy"] if lazy else []), path=[path]) as program:
		return program.chains["stubs-" + name], see(program.pid)


def stubs_bound(name, *flags):
	chain, stacks = stubs(name, *flags)
	stub = r"(?:stub_\d\d@plt|%s)" % NAMELESS
	note = exact(stacks, like(chain_pattern(chain) + r"(;stub_\d\d|;%s)?" % stub))
	return note + check_seen(stacks, r";stub_loop;%s$" % stub, 0.02)


@test
def stubs_bound_early():
	return stubs_bound("now", "-Wl,-z,now")


@test
def stubs_bound_late():
	"""After the first round the stubs are bound."""
	return stubs_bound("lazy", "-Wl,-z,lazy")


@test
def stubs_for_indirect_branch_tracking():
	return stubs_bound("ibt", "-Wl,-z,lazy", "-Wl,-z,ibtplt", "-fcf-protection=full")


@test
def late_binding_in_flight():
	"""_dl_runtime_resolve keeps its frame in rbx. Its callees are in the dynamic linker, and it jumps to the function that it found."""
	resolver = r"(?:_dl_\w+|\[ld-linux[^\];]*\])"
	inner = r"(?:_dl_\w+|do_lookup_x|check_match|strcmp|dl_\w+|\w*(hash|compare|cmp)\w*|\[ld-linux[^\];]*\])"
	pattern = START + r"main;outer;stub_loop(;(stub_\d\d|stub_\d\d@plt|_init|\[stubs[^\];]*\])|;%s(;%s){0,6})?" % (resolver, inner)
	_, (stacks, seen) = stubs("lazy", "-Wl,-z,lazy", lazy=True, see=lambda pid: (profile(pid), witness(pid, pattern)))
	note = exact(stacks, like(pattern))
	return note + check_seen(stacks, r";stub_loop;%s;%s;%s" % (resolver, inner, inner), 0.05) + seen


# --- signal handlers -----------------------------------------------------------------------------------------------------------------

def handler(mode, *functions, variant=""):
	need_bpf()
	with Program("handlers", mode, variant=variant) as program:
		chain = next(iter(program.chains.values()))
		return exact(profile(program.pid), like(chain_pattern(chain, *functions)))


@test
def handler_on_another_stack():
	return handler("alt", ("trigger", SIGNAL))


@test
def handler_in_a_handler():
	"""A handler on an alternate stack, which interrupted a system call; then one for an undefined instruction."""
	need_bpf()
	with Program("handlers", "nested") as program:
		check(program.chains["handlers"] == "main;outer;raw_reader;on_timer;trigger;on_trap;handler_leaf".split(";"), "another chain")
		pattern = START + "main;outer;raw_reader;%s;on_timer;trigger;%s;on_trap;handler_leaf" % (SIGNAL, SIGNAL)
		return exact(profile(program.pid), like(pattern))


@test
def handler_on_a_system_call():
	return handler("raw", ("raw_reader", SIGNAL))


@test
def handler_on_read():
	return handler("read", ("reader", r"(?:__libc_read|__GI___libc_read|read|__read|%s);%s" % (NAMELESS, SIGNAL)))


@test
def handler_on_sleep():
	return handler("sleep", ("sleeper", r"(?:(?:\w*nanosleep\w*|%s)(?:@@?[\w.]+)?;){1,2}%s" % (NAMELESS, SIGNAL)))


@test
def handler_on_the_vdso():
	return handler("clock", ("clock_loop", r"(?:(?:clock_gettime\w*(?:@\S+)?|%s);)?(?:%s;){0,2}%s" % (NAMELESS, VDSO, SIGNAL)))


@test
def handlers_that_return():
	"""In rt_sigreturn the pc is behind the last instruction of the code that returns from handlers."""
	need_bpf()
	with Program("handlers", "return") as program:
		stacks = profile(program.pid, 2)
	note = exact(stacks, like(START + "main;outer;killer(;%s(;on_usr2)?)?" % SIGNAL))
	return note + check_seen(stacks, "killer;%s$" % SIGNAL, 0.05)


@test
def handlers_at_any_instruction():
	"""The handler takes half of the time; it interrupts one of eight nested functions at any instruction."""
	need_bpf()
	pattern = START + r"main;outer;storm(;busy){0,8}(;%s(;on_timer(;storm_leaf)?)?)?" % SIGNAL
	with Program("handlers", "storm") as program:
		stacks = profile(program.pid)
		note = exact(stacks, like(pattern)) + witness(program.pid, pattern)
	return note + check_seen(stacks, ";busy;%s;on_timer;storm_leaf$" % SIGNAL, 0.2)


# --- other ways --------------------------------------------------------------------------------------------------------------------

@test
def vdso():
	need_bpf()
	with Program("clocks") as program:
		stacks = profile(program.pid)
	libc = r"(?:(?:__)?(?:clock_gettime|time|sched_getcpu|getcpu)\w*(?:@[\w.@]+)?|%s)" % NAMELESS
	note = exact(stacks, like(chain_pattern(program.chains["clocks"]) + "(;%s)?(;%s){0,2}" % (libc, VDSO)))
	return note + check_seen(stacks, r";clock_loop;.*;?%s$" % VDSO, 0.3)


@test
def exceptions_in_flight():
	"""There are 20 deep() down to the throw; below it, and below landing pads, runs the unwinder of the language."""
	need_bpf()
	throw_loop = START + r"main;throw_loop(?:\.cold)?"
	unwinder = r"(?:;(?!main|throw_loop|deep|thrower|!)[^;]+){1,14}"
	pattern = throw_loop + r"(?:(;deep){0,20}|(;deep){20};thrower(\.cold)?(?:%s)?|(;deep){0,19};deep(\.cold)?%s|%s)" % (unwinder, unwinder, unwinder)
	def error_of(stack):
		text = ";".join(stack.user)
		if ";thrower" in text and text.count(";deep") != 20:
			return "thrower below %d deep()" % text.count(";deep")
		if ";__cxa_throw" in text and not re.search(r";deep;thrower(\.cold)?;__cxa_throw", text):
			return "__cxa_throw is called by another than thrower"
		return like(pattern)(stack)
	with Program("thrower") as program:
		stacks = profile(program.pid, 2)
		note = exact(stacks, error_of) + witness(program.pid, pattern)
	return note + check_seen(stacks, r"(;deep){20};thrower(\.cold)?;__cxa_throw;", 0.1)


@test
def longjmp():
	need_bpf()
	with Program("jumps") as program:
		stacks = profile(program.pid, 2)
	jump = r"(?:\w*longjmp\w*|__pthread_cleanup_upto|%s)" % NAMELESS
	pattern = r"(?:(;deep){0,6}|(;deep){6};bottom(;%s){0,3}|(;%s){1,3}|;(?:\w*setjmp\w*|__sigjmp_save|%s)(;__sigjmp_save|;%s)?)" % (jump, jump, NAMELESS, NAMELESS)
	note = exact(stacks, like(chain_pattern(program.chains["jumps"]) + pattern))
	return note + check_seen(stacks, "(;deep){6};bottom;", 0.003)


COROUTINE = {"red": r"red(;red_deep){10};red_leaf", "green": "green;green_deep;green_leaf", "blue": "blue;blue_leaf"}


@test
def coroutines():
	"""Each coroutine has its own stack, whose root is the function passed to makecontext: it has no caller."""
	need_bpf()
	with Program("coroutines", "burn") as program:
		stacks = [stack for stack in profile(program.pid, 2) if stack.comm in COROUTINE]
	check({stack.comm for stack in stacks} == set(COROUTINE), "not all of them are there")
	return exact(stacks, lambda stack: like(COROUTINE[stack.comm])(stack))


@test
def coroutines_that_switch():
	"""Most of the time is spent in the switch itself. Every stack shown must be possible."""
	need_bpf()
	with Program("coroutines", "switch") as program:
		stacks = profile(program.pid)
	switch = r"(;give_back)?(?:;(?:swapcontext|\w*sigprocmask\w*|%s)){0,2}" % NAMELESS
	bodies = r"(?:red(?:%s|(;red_deep){1,10}(;red_leaf)?)|green(?:%s|;green_deep(;green_leaf)?)|blue(?:%s|;blue_leaf))" % (switch, switch, switch)
	home = START + r"main;scheduler(?:;(?:swapcontext|%s)){0,2}" % NAMELESS
	return exact(stacks, like("(?:%s|%s)" % (home, bodies)))


@test
def stacks_made_by_hand():
	"""A stack begins with a 0 where pages end, or with code that ends the process. Any other 0, and an address that is not behind a call,
	end it with a mark."""
	need_bpf()
	mark = r"!\[no return address\];"
	wanted = {"top": "top;top_leaf", "end": "end;end_leaf", "low": mark + "low;low_leaf", "midst": mark + "midst;midst_leaf"}
	with Program("switcher") as program:
		stacks = [stack for stack in profile(program.pid, 2) if stack.comm in wanted]
	check({stack.comm for stack in stacks} == set(wanted), "not all of them are there")
	return exact(stacks, lambda stack: like(wanted[stack.comm])(stack))


@test
def tail_calls():
	need_bpf()
	path = with_gcc("tails", "tails.c", "-foptimize-sibling-calls")
	with Program("tails", path=[path]) as program:
		check(program.chains["tails"] == "main;outer;third;leaf".split(";"), "another chain")
		return exact(profile(program.pid), like(chain_pattern(program.chains["tails"])))


ROOT_FRAMES = 128


def cut_error(chain):
	def error_of(stack):
		marks = [i for i, name in enumerate(stack.user) if name.startswith("!")]
		if len(marks) != 1:
			return "%d marks, want one" % len(marks)
		root, top = stack.user[:marks[0]], stack.user[marks[0] + 1:]
		if len(root) != ROOT_FRAMES:
			return "%d frames at the root end, want %d" % (len(root), ROOT_FRAMES)
		at = root.index("main") if "main" in root else 0
		if root[at:] != chain[:len(root) - at] or entry_error(root[:at]):
			return "the root end is another"
		return None if len(top) >= 1000 and top == chain[-len(top):] else "the leaf end of %d frames is another" % len(top)
	return error_of


@test
def recursion_10000_deep():
	"""The leaf end and the 128 frames of the root end are shown, with one mark between them."""
	need_bpf()
	with Program("chain", 10000) as program:
		chain = program.chains["chain"]
		check(len(chain) == 10002, "the workload has not the depth that was asked for")
		return exact(profile(program.pid), cut_error(chain))


run_tests()
