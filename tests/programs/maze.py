# SPDX-License-Identifier: Apache-2.0
"""Calls itself at random for ever: f0 to f15, each by a plain call, as a sort key, in a generator or in a callback from C. Prints {caller: [callees]} as JSON, which is all that can be: a function
of layer i mod 4 calls those of the next layer alone, so neither a frame too few nor one too many makes a possible stack. Python 3.6 and newer."""
import ctypes
import json
import random

FUNCTIONS, LAYERS, DEPTH = 16, 4, 14
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
qsort, pair = ctypes.CDLL(None).qsort, (ctypes.c_int * 2)(2, 1)
TEXT = """
def k{0}(item):
	if item:
		functions[choice(table[{0}])](depth_of[0])
	return item

def g{0}(depth):
	yield 1
	functions[choice(table[{0}])](depth)
	yield 2

def c{0}(a, b):
	functions[choice(table[{0}])](depth_of[0])
	return 0

callbacks[{0}] = COMPARE(c{0})

def f{0}(depth):
	count = 0
	for i in range(20):
		count += i
	if depth <= 0:
		return
	how = bits(2)
	if how == 0:
		functions[choice(table[{0}])](depth - 1)
	elif how == 1:
		depth_of[0] = depth - 1
		sorted((0, 1), key=k{0})
	elif how == 2:
		for item in g{0}(depth - 1):
			pass
	else:
		depth_of[0] = depth - 1
		qsort(pair, 2, 4, callbacks[{0}])

functions[{0}] = f{0}
"""

random.seed(7)
table = [random.sample([j for j in range(FUNCTIONS) if j % LAYERS == (i + 1) % LAYERS], 2) for i in range(FUNCTIONS)]
functions, callbacks = [None] * FUNCTIONS, [None] * FUNCTIONS
depth_of = [0]
numbers, at = [random.getrandbits(30) for _ in range(4096)], [0]


def bits(nr):
	return numbers[random_at()] >> 7 & (1 << nr) - 1


def random_at():
	at[0] = (at[0] + 1) % 4096
	return at[0]


def choice(items):
	return items[numbers[random_at()] >> 9 & 1]


edges = {"<module>": ["f%d" % i for i in range(FUNCTIONS)], "bits": ["random_at"], "choice": ["random_at"], "random_at": []}
for i in range(FUNCTIONS):
	exec(compile(TEXT.format(i), "maze %d" % i, "exec"))
	callees = ["f%d" % j for j in table[i]] + ["choice"]
	edges.update({"f%d" % i: callees + ["bits", "k%d" % i, "g%d" % i, "c%d" % i], "k%d" % i: callees, "g%d" % i: callees, "c%d" % i: callees})
print(json.dumps(edges), flush=True)
while True:
	functions[at[0] % FUNCTIONS](DEPTH)
