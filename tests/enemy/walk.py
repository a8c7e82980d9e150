# SPDX-License-Identifier: Apache-2.0
"""walk.py END_NS FOLDER [greenlets]: calls its own functions at random: plainly, as a key, in generators, in code compiled just before; and forks in the middle of it. With `greenlets` it
switches between stacks, too. Logs, in oracle.py's format, into a file of FOLDER for each process. Python 3.9 and newer."""
import ctypes
import os
import random
import signal
import sys
import time

END, FOLDER = int(sys.argv[1]), sys.argv[2]
greenlet = None
if "greenlets" in sys.argv:
	from greenlet import greenlet
libc = ctypes.CDLL(None, use_errno=True)
bits, now, sleep = random.getrandbits, time.monotonic_ns, time.sleep
records, trail, functions = [], ["<module>"], [None] * 8
note = records.append
end, generation, children = END, 0, []

BODY = """
{enter}
	trail.append({name!r})
	for turn in range(bits(2) + 1):
		how = bits(6)
		if now() > limit():
			break
		elif how < 24:
			for i in range(bits(14)):
				pass
		elif how == 24:
			note((now(), "C", ""))
			sleep(bits(10) / 1e6)
			note((now(), "S", ""))
		elif how == 25:
			note((now(), "C", ""))
			have_child()
			note((now(), "S", ""))
		elif how == 26:
			note((now(), "C", ""))
			exec(compile(MADE.format(bits(10)), "made", "exec"))
			note((now(), "B", "1"))
		elif how < 30 and greenlet:
			switch()
		elif depth > 0:
			note((now(), "C", ""))
			next_one = bits(3)
			if how < 40:
				functions[next_one](depth - 1)
			elif how < 48:
				sorted((depth - 1,), key=keys[next_one])
			elif how < 54:
				for i in generators[next_one](depth - 1): # it yields once, and goes on then, without a word
					note((now(), "B", "1"))
					note((now(), "C", ""))
					note((now(), "m", "g%d" % next_one))
			else:
				list(map(keys[next_one], (depth - 1,)))
			note((now(), "B", "1"))
	trail.pop()
	note((now(), "L", ""))
"""
MADE = """
def made_{0}():
	note((now(), "E", "made_{0}"))
	for i in range(bits(13)):
		pass
	note((now(), "L", ""))
note((now(), "E", "!<module>"))
for i in range(bits(13)):
	pass
note((now(), "C", ""))
made_{0}()
note((now(), "B", "1"))
note((now(), "L", ""))
"""
keys, generators = [None] * 8, [None] * 8


def limit():
	return end


def begin():
	records.clear()
	tell()


def tell():
	"""Logs the whole stack again."""
	note((now(), "R", "python"))
	for name in trail:
		note((now(), "m", name))
	note((now(), "S", ""))


def finish():
	note((now(), "Z", ""))
	pid = os.getpid()
	with open("%s/%d.%d.txt" % (FOLDER, pid, now()), "w") as file:
		file.writelines("%d %d %s %s\n" % (time, pid, letter, name) for time, letter, name in records)


def fork():
	"""Forks a child with a pid that differs from our own in one or two bits, where that is free."""
	arguments, wanted = (ctypes.c_ulonglong * 11)(), (ctypes.c_int * 1)(os.getpid() ^ 1 + bits(2))
	arguments[4], arguments[8], arguments[9] = signal.SIGCHLD, ctypes.addressof(wanted), 1
	pid = libc.syscall(435, arguments, 88)
	return pid if pid >= 0 else os.fork()


def have_child():
	global end, generation
	while children and os.waitpid(children[0], os.WNOHANG)[0]:
		children.pop(0)
	if generation > 2 or len(children) > 1 or END - now() < 100000000:
		return
	pid = fork()
	if pid:
		children.append(pid)
		return
	libc.prctl(1, 9)
	children.clear()
	generation += 1
	end = min(END, now() + 20000000 + bits(29))
	random.seed()
	begin()


def run():
	"""The first function of a greenlet."""
	global trail
	trail = ["~run"]
	tell()
	while now() < limit():
		note((now(), "C", ""))
		functions[bits(3)](5)
		note((now(), "B", "1"))
	note((now(), "Z", ""))


def switch():
	"""Switches to any other greenlet."""
	global trail
	own, here = trail, greenlet.getcurrent()
	stacks[:] = [stack for stack in stacks if not stack.dead]
	while len(stacks) < 5:
		stacks.append(greenlet(run))
	target = random.choice(stacks)
	if target is not here:
		note((now(), "Z", ""))
		target.switch()
		trail = own
		tell()


if greenlet:
	stacks = [greenlet.getcurrent()]
for number in range(8):
	for letter, table, head in (("f", functions, "def f{0}(depth):"), ("k", keys, "def k{0}(depth):"), ("g", generators, "def g{0}(depth):")):
		name = letter + str(number)
		logged = ("!" if letter == "k" else "") + name
		enter = head.format(number) + "\n\tnote((now(), 'E', %r))" % logged
		text = BODY.format(enter=enter, name=logged) + ("\tyield 1\n" if letter == "g" else "")
		exec(compile(text, "walk %s" % name, "exec"))
		table[number] = globals()[name]

begin()
libc.prctl(1, 9)
while now() < end:
	note((now(), "C", ""))
	functions[bits(3)](8)
	note((now(), "B", "1"))
note((now(), "C", ""))
for child in children:
	os.waitpid(child, 0)
note((now(), "S", ""))
finish()
sys.stdout.flush()
os._exit(0)
