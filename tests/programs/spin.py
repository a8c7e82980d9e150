# SPDX-License-Identifier: Apache-2.0
"""Spins for ever in a stack that it knows: spin.py SCENARIO. Prints a line of JSON for each thread that spins, as the interpreter itself tells its stack: {"tid", "stack": [[name, first line,
line], ...] root to leaf, "leaf_lines"}; of the leaf the line is one of leaf_lines. Python 3.6 and newer."""
import ctypes
import json
import os
import sys
import threading

lock = threading.Lock()
SYS_GETTID = {"x86_64": 186, "aarch64": 178}[os.uname().machine]


def tell(frame):
	stack = []
	while frame:
		code = frame.f_code
		stack.append([getattr(code, "co_qualname", code.co_name), code.co_firstlineno, frame.f_lineno])
		frame = frame.f_back
	stack.reverse()
	first = stack[-1][1]
	with lock:
		print(json.dumps({"tid": ctypes.CDLL(None).syscall(SYS_GETTID), "stack": stack, "leaf_lines": [first + 3, first + 4, first + 5]}), flush=True)


def spin(depth=0):
	tell(sys._getframe())
	count = 0
	while True:
		count += 1
		count -= depth


def nested():
	def inner():
		return spin()

	class Local:
		def method(self):
			return (lambda: inner())()

	return Local().method()


def generate():
	yield 1
	spin()
	yield 2


def generator():
	return [item for item in generate()]


def key_of(item):
	if item == 2:
		spin()
	return item


def sort():
	return sorted([1, 2, 3], key=key_of)


def recurse(depth):
	return spin() if depth == 0 else recurse(depth - 1)


def sort_recursively(depth):
	if depth == 0:
		spin()
	return sorted([depth], key=lambda item: sort_recursively(item - 1))


class Object:
	def __init__(self):
		self.value = self.property

	@property
	def property(self):
		return spin()

	def __enter__(self):
		spin()

	def __exit__(self, *args):
		pass


async def wait_for(depth):
	if depth == 0:
		spin()
	await wait_for(depth - 1)


def coroutine():
	wait_for(3).send(None)


def callback():
	compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda a, b: spin())
	ctypes.CDLL(None).qsort((ctypes.c_int * 2)(1, 2), 2, 4, compare)


def threads():
	for target in (nested, sort, generator):
		threading.Thread(target=target, daemon=True).start()
	recurse(3)


def forked():
	if os.fork() == 0:
		ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG
		nested()
	os.wait()


def evaluated():
	exec(compile("\n\ndef made_up(value):\n\treturn spin()\n\n\nmade_up(1)", "made up", "exec"), {"spin": spin})


SCENARIOS = {
	"nested": nested, "generator": generator, "sort": sort, "recursion": lambda: recurse(200), "sorts": lambda: sort_recursively(20), "init": Object,
	"coroutine": coroutine, "callback": callback, "threads": threads, "fork": forked, "exec": evaluated,
}

SCENARIOS[sys.argv[1]]()
