#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long an unprivileged user can keep a CPU in an interrupt, or hold the run queue's lock. Programs around sonde's BPF programs (tests/witness) time
each single run, and the time that the host has stolen meanwhile. No run may take longer than 1 ms of its own, except for RARE of the long ones: hosts
also take CPU time away without reporting it."""
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import SONDE, SOURCES, Background, build, check, compile_one, find_tool, need_bpf, run_tests, scratch, skip, test # noqa: E402

NOBODY = 65534
STEP_US = 50
MOST_US = 1000
LONG_US = 300 # longer than any ordinary run: a walk that was made slow
ENOUGH = 10   # of these
RARE = 0.02
SECONDS = 4
WITNESS = os.environ.get("RUN_TIMES", os.path.join(os.path.dirname(SONDE), "tests", "witness", "run_times"))

PYTHON = """
import ctypes, sys
library = ctypes.PyDLL(sys.argv[1])
def deep(left):
    return deep(left - 1) if left else library.slow_walk(sys.argv[2].encode(), b"spin", 0)
sys.setrecursionlimit(1000000)
deep(3000)
"""
PERL = """
require DynaLoader;
no warnings;
my $library = DynaLoader::dl_load_file($ARGV[0]) or die;
DynaLoader::dl_install_xsub("main::slow_walk_now", DynaLoader::dl_find_symbol($library, "slow_walk_now"));
sub deep { my $left = shift; $left ? deep($left - 1) : slow_walk_now() }
deep(3000);
"""
PHP = """<?php
$library = FFI::cdef("int slow_walk(const char *kind, const char *way, int nr);", $argv[1]);
function leaf() { global $library, $argv; $library->slow_walk($argv[2], "spin", 0); }
function delegate($left, $again) { if ($left) yield from delegate($left - 1, $again); elseif ($again) foreach (delegate(250, $again - 1) as $x); else leaf(); yield 1; }
function deep($left) { if ($left) return deep($left - 1); foreach (delegate(250, 10) as $x); }
deep(300);
"""


class Witness:
	"""Times the BPF programs of a sonde that is started meanwhile."""

	def __enter__(self):
		self.process = subprocess.Popen([WITNESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
		check(self.process.stdout.readline() == "ready\n", "the witness is not ready")
		return self

	def watch(self, pid):
		self.process.stdin.write("%d\n" % pid)
		self.process.stdin.flush()
		check(self.process.stdout.readline() == "watching\n", "the witness does not watch")

	def finish(self):
		out, _ = self.process.communicate(timeout=30)
		return {times["kind"]: times for times in map(json.loads, out.splitlines())}

	def __exit__(self, *exc):
		self.process.kill()
		self.process.communicate()


class Hostile:
	"""A command of nobody's. It gets a CPU on a busy machine too, because it must be sampled often."""

	def __init__(self, argv, env=None):
		self.argv, self.env = argv, env

	def __enter__(self):
		self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, user=NOBODY, group=NOBODY, extra_groups=[], env=self.env)
		os.setpriority(os.PRIO_PROCESS, self.process.pid, -15)

	def __exit__(self, *exc):
		self.process.kill()
		self.process.wait()


def times_of(kind, argv, *args, env=None):
	"""Returns the runs of that kind while sonde runs with these arguments beside nobody's command."""
	need_bpf()
	if os.uname().machine != "x86_64":
		skip("made-up code of x86-64")
	with Witness() as witness, Hostile(argv, env), Background(*args, "-o", scratch("report.json"), SECONDS + 3) as sonde:
		sonde.wait_line("Tracing" if args[0] != "profile" else "Sampling", timeout=60)
		time.sleep(0.5) # its programs are attached
		witness.watch(sonde.process.pid)
		time.sleep(SECONDS)
		times = witness.finish()[kind]
	return times


def steps_text(steps):
	return " ".join("%d:%d" % (i * STEP_US, nr) for i, nr in enumerate(steps) if nr)


def nr_slow(times):
	return sum(times["own"][LONG_US // STEP_US:])


def added(times, more):
	return {"runs": times["runs"] + more["runs"], **{name: max(times[name], more[name]) for name in ("longest_ns", "longest_own_ns")},
		**{name: [a + b for a, b in zip(times[name], more[name])] for name in ("own", "by_clock")}}


def check_times(times):
	text = "%d runs, by the clock %d us at most, own %d; own by %d us: %s; by the clock: %s" % (times["runs"], times["longest_ns"] / 1000, times["longest_own_ns"] / 1000, STEP_US,
		steps_text(times["own"]), steps_text(times["by_clock"]))
	long, late = nr_slow(times), sum(times["own"][MOST_US // STEP_US:])
	check(long >= ENOUGH, "only %d walks were slow: %s" % (long, text))
	check(late <= max(1, RARE * long), "%d of %d long runs took more than 1 ms: %s" % (late, long, text))
	return text


def nobodys(name):
	"""Returns a path that this user may run and map."""
	os.chmod(os.path.dirname(name), 0o755)
	return name


def program():
	return nobodys(build("slow_walks"))


def library():
	target = scratch("slow_walks.so")
	if not os.path.exists(target):
		compile_one(["gcc", "-O2", "-fomit-frame-pointer", "-fPIC", "-shared", "-o", target, os.path.join(SOURCES, "slow_walks.c")])
	return nobodys(target)


def at_ticks(kind, way="spin"):
	return check_times(times_of("tick", [program(), "60", kind, way], "profile", "-a", "-F", 997))


def at_switches(kind):
	return check_times(times_of("switch", [program(), "60", kind, "sleep"], "offcpu", "-a"))


def at_wakeups(kind):
	"""Beside others that want the CPUs there are few: some seconds more, until there are enough."""
	words = "waking", [program(), "60", kind, "wake"], "offcpu", "-a", "--wake"
	times = times_of(*words)
	for _ in range(3):
		if nr_slow(times) < ENOUGH:
			times = added(times, times_of(*words))
	return check_times(times)


@test
def ticks_of_far_frames_with_rows():
	"""Frames with rows are fast, except where no cache and no page has them: 16,000 took 42 ms in one tick."""
	return at_ticks("rows")


@test
def ticks_in_code_without_rows():
	return at_ticks("code")


@test
def ticks_among_words_that_may_be_return_addresses():
	return at_ticks("words")


@test
def ticks_with_a_copy_of_the_stack():
	return at_ticks("rows", "fresh")


@test
def switches_of_far_frames_with_rows():
	return at_switches("rows")


@test
def switches_among_words_that_may_be_return_addresses():
	return at_switches("words")


@test
def wakeups_of_far_frames_with_rows():
	return at_wakeups("rows")


def of_interpreter(argv, **env):
	return check_times(times_of("tick", argv, "profile", "-a", "-F", 997, env={**os.environ, **env}))


@test
def ticks_of_python():
	"""The native walk uses all of its budget, and the interpreter's frames come in addition."""
	if not os.path.exists("/usr/bin/python3"):
		skip("no /usr/bin/python3")
	return of_interpreter(["/usr/bin/python3", "-c", PYTHON, library(), "words"])


@test
def ticks_of_perl():
	if not find_tool("perl"):
		skip("no perl")
	return of_interpreter(["perl", "-e", PERL, library()], SLOW_WALK="words")


@test
def ticks_of_php():
	php = find_tool("php")
	if not php or "FFI" not in subprocess.run([php, "-m"], stdout=subprocess.PIPE, text=True, check=False).stdout:
		skip("no PHP with FFI")
	with open(scratch("deep.php"), "w", encoding="ascii") as file:
		file.write(PHP)
	return of_interpreter([php, nobodys(scratch("deep.php")), library(), "words"])


if __name__ == "__main__":
	run_tests(seconds=90)
