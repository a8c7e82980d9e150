# SPDX-License-Identifier: Apache-2.0
"""A test file registers functions with @test and ends with run_tests(): TAP on stdout, which meson and tests/summary.py count.
A test fails by an exception (check), is skipped by skip(reason), and may return a note, which is printed. Arguments of the file select tests
by a part of their name. A test that hangs fails after its timeout and the next one runs, even if what it waits for cannot be killed.

Many tests measure a machine in real time. On a virtual machine whose host steals processor time (`steal` in
/proc/stat) they prove nothing: one that failed while more than 1 % of the time was stolen is run again, at most twice, and the output says so.
Where SONDE_TEST_TURNS names a file, test files run side by side. A test that failed beside others is run once more while all others wait; the output
says so, too. A test marked @alone has the machine for itself from the start."""
import contextlib
import fcntl
import os
import signal
import sys
import time
import traceback

from watch import descendants

TEST_SECONDS = 150 # a test's timeout
AGAIN_SECONDS = 15 # until it is interrupted again, if it still waits during its cleanup


class Skip(Exception):
	"""The test cannot decide anything here; the text says why."""


class Failure(Exception):
	"""The test failed; the text says how."""


class Late(Failure):
	"""The test did not finish."""


def skip(reason):
	raise Skip(reason)


def check(condition, text):
	if not condition:
		raise Failure(text() if callable(text) else text)


def check_equal(got, want, what):
	check(got == want, lambda: "%s: got %r, want %r" % (what, got, want))


TESTS = []


def test(function):
	TESTS.append(function)
	return function


def alone(function):
	function.alone = True
	return function


def comment(text):
	for line in str(text).splitlines():
		print("#   " + line, flush=True)


def stolen_seconds():
	"""The processor time that the host has stolen from this machine since boot."""
	with open("/proc/stat", encoding="ascii") as file:
		fields = file.readline().split()
	return int(fields[8]) / os.sysconf("SC_CLK_TCK") if len(fields) > 8 else 0.0


@contextlib.contextmanager
def turn(is_alone):
	"""Runs a test beside those of other files, or when none of them runs. The waiter for the latter holds the gate, so that no others start."""
	path = os.environ.get("SONDE_TEST_TURNS")
	if not path:
		yield
		return
	with open(path + ".gate", "w", encoding="ascii") as gate, open(path, "w", encoding="ascii") as room:
		fcntl.flock(gate, fcntl.LOCK_EX)
		fcntl.flock(room, fcntl.LOCK_EX if is_alone else fcntl.LOCK_SH)
		fcntl.flock(gate, fcntl.LOCK_UN)
		yield


def in_time(function, seconds):
	"""Returns the function's note. After the timeout its descendants are killed; if it still waits, it is interrupted again."""
	def hangs(*_):
		left = descendants(os.getpid())
		text = "\n".join(["not at its end after %d s; what runs:" % seconds, *map(str, left)])
		for process in left:
			process.kill()
		raise Late(text)
	former = signal.signal(signal.SIGALRM, hangs)
	signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
	try:
		return function()
	finally:
		signal.setitimer(signal.ITIMER_REAL, 0)
		signal.signal(signal.SIGALRM, former)


def call_alone(function, seconds, tries=3):
	"""Returns the function's note. Calls it again when it fails while the host steals processor time."""
	began, stolen = time.monotonic(), stolen_seconds()
	try:
		return in_time(function, seconds)
	except (Skip, Late):
		raise
	except Exception as error: # pylint: disable=broad-except
		share = (stolen_seconds() - stolen) / max(time.monotonic() - began, 0.01) / os.cpu_count()
		if tries == 1 or share < 0.01:
			raise
		comment("once more, as the host took %.1f %% of the time; it failed with: %s" % (share * 100, error))
	return call_alone(function, seconds, tries - 1)


def call(function, seconds):
	"""Returns the function's note. Calls it again when it fails beside others."""
	is_alone = getattr(function, "alone", False) or "SONDE_TEST_TURNS" not in os.environ
	if not is_alone:
		try:
			with turn(False):
				return in_time(function, seconds)
		except (Skip, Late):
			raise
		except Exception as error: # pylint: disable=broad-except
			comment("once more, alone; beside others it failed with: %s" % error)
	with turn(True):
		return call_alone(function, seconds)


def run_one(number, name, function, seconds):
	began = time.monotonic()
	try:
		note = call(function, seconds)
	except Skip as reason:
		print("ok %d - %s # SKIP %s" % (number, name, reason), flush=True)
		return True
	except Exception as error: # pylint: disable=broad-except
		print("not ok %d - %s" % (number, name), flush=True)
		comment(error if isinstance(error, Failure) else traceback.format_exc())
		return False
	print("ok %d - %s" % (number, name), flush=True)
	comment("%.1f s%s" % (time.monotonic() - began, ", " + note if isinstance(note, str) else ""))
	return True


def run_tests(seconds=TEST_SECONDS):
	signal.signal(signal.SIGHUP, signal.SIG_DFL) # as a shell starts programs, even if nohup started us
	signal.signal(signal.SIGTERM, lambda *_: sys.exit(143)) # so that atexit and the context managers clean up
	chosen = [f for f in TESTS if not sys.argv[1:] or any(part in f.__name__ for part in sys.argv[1:])]
	print("1..%d" % len(chosen), flush=True)
	results = [run_one(number, f.__name__, f, seconds) for number, f in enumerate(chosen, 1)]
	sys.exit(0 if all(results) else 1)
