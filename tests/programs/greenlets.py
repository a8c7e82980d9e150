# SPDX-License-Identifier: Apache-2.0
"""Greenlets that take turns in one thread for ever: they start each other, switch to each other and to the main one from different depths, and call themselves through C. Each works in functions
that are called in one way only, so the function that spins tells the whole stack. When all have had their turns it prints a line of JSON: {"tid", "stacks": all that there are, each [name, ...] root
to leaf, "through_c": of each function whether C calls it}. Python 3.8 and newer."""
import ctypes
import functools
import json
import os
import sys

from greenlet import getcurrent, greenlet

SYS_GETTID = {"x86_64": 186, "aarch64": 178}[os.uname().machine]
libc = ctypes.CDLL(None)
stacks = set()
rounds = 0


def tell(frame):
	stack = []
	while frame:
		stack.append(frame.f_code.co_name)
		frame = frame.f_back
	stacks.add(tuple(reversed(stack)))


def spin_one():
	if rounds < 4:
		tell(sys._getframe())
	count = 0
	while count < 20000:
		count += 1


def named(name):
	code = spin_one.__code__.replace(co_name=name)
	if hasattr(code, "co_qualname"):
		code = code.replace(co_qualname=name)
	return type(spin_one)(code, globals())


spin_two, spin_three, spin_four, spin_brief, spin_main = (named("spin_" + each) for each in ("two", "three", "four", "brief", "main"))


# One: through sorted; switches in the callback, to the second one directly.
def key_of_one(item):
	spin_one()
	two.switch()
	return item


def run_one():
	while True:
		sorted([1, 2], key=key_of_one)
		main.switch()


# Two: through reduce, from the bottom of a recursion.
def add_of_two(left, right):
	spin_two()
	main.switch()
	return left + right


def down_two(depth):
	return down_two(depth - 1) if depth else functools.reduce(add_of_two, [1, 2, 3])


def run_two():
	while True:
		down_two(6)


# Three: through libc's qsort, and starts one that ends soon from there.
def run_brief():
	spin_brief()


def compare_of_three(left, right):
	spin_three()
	greenlet(run_brief).switch()
	four.switch()
	return 0


COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(compare_of_three)


def run_three():
	numbers = (ctypes.c_int * 3)(3, 2, 1)
	while True:
		libc.qsort(numbers, 3, 4, COMPARE)
		main.switch()


# Four: through both, and started by the third.
def add_of_four(left, right):
	spin_four()
	getcurrent().parent.switch()
	return left


def key_of_four(item):
	functools.reduce(add_of_four, [1, 2])
	return item


def run_four():
	while True:
		sorted([1], key=key_of_four)


# The main one stands elsewhere in its stack at each switch.
def turn(depth):
	if depth:
		return turn(depth - 1)
	spin_main()
	for each in (one, two, three):
		each.switch()
	spin_main()


def key_of_main(item):
	spin_main()
	three.switch()
	one.switch()
	return item


main = getcurrent()
one, two, three, four = (greenlet(run) for run in (run_one, run_two, run_three, run_four))
while True:
	for each in (0, 9, 3):
		turn(each)
		sorted([1, 2], key=key_of_main)
	rounds += 1
	if rounds == 4:
		by_c = {name: name.startswith(("key_", "add_", "compare_")) for stack in stacks for name in stack}
		print(json.dumps({"tid": libc.syscall(SYS_GETTID), "stacks": sorted(stacks), "through_c": by_c}), flush=True)
