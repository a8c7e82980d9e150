#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files, and memory pages from files, whose file server does not answer: the report is written all the same, has the other stacks, and says what it
waited for."""
import contextlib
import os
import re
import signal
import subprocess
import sys

from harness import Background, build, check, check_equal, converted, fresh_folder, need_bpf, run_tests, scratch, skip, sonde, test
from hung_server import READ, WRITE, Server, compiled, hung_program
from neighbour import NOBODY

LIBRARY = "void spin(volatile int *stop) { while (!*stop) ; }\n"
SPIN = "__attribute__((noinline)) static void known_work(volatile unsigned long *n) { for (;;) ++*n; }\nint main(void) { volatile unsigned long n = 0; known_work(&n); return 0; }\n"
PROGRAM = """
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	volatile int stop = argc < 2;
	void *library = dlopen(argv[1], RTLD_NOW);
	void (*spin)(volatile int *) = library ? (void (*)(volatile int *))dlsym(library, "spin") : 0;

	if (!spin)
		return 1;
	puts("ready");
	fflush(stdout);
	spin(&stop);
	return 0;
}
"""


def library():
	path = compiled("lib.so", LIBRARY, "-shared", "-fPIC")
	os.truncate(path, 4 << 20) # something is there wherever it is mapped
	return path


def profile_of_hung(signo):
	"""Returns sonde's report of the program, whose library's file system was sent that signal before, or None."""
	need_bpf()
	if os.geteuid() != 0:
		skip("not root: nothing can be mounted")
	with Server(library(), "others") as server:
		with subprocess.Popen([compiled("loads", PROGRAM), os.path.join(server.directory, "lib.so")], stdout=subprocess.PIPE, text=True) as program:
			try:
				check(program.stdout.readline() == "ready\n", "the library cannot be loaded")
				if signo:
					server.process.send_signal(signo)
				return sonde("profile", "-F", "199", "-U", "-f", "-p", str(program.pid), "1", timeout=60)
			finally:
				program.kill()


@test
def file_system_answers():
	"""The control of the next test: the library's function has its name."""
	result = profile_of_hung(None)
	check(";spin " in result.out and "does not answer" not in result.err, lambda: str(result))


@test
def file_system_hangs():
	"""The file system hangs forever; the report must still be written."""
	result = profile_of_hung(signal.SIGSTOP)
	check("[lib.so+0x" in result.out and "spin" not in result.out, lambda: str(result))
	check("does not answer" in result.err and "hung/lib.so" in result.err, lambda: str(result))


# --- by an unprivileged user, while the whole machine is recorded ----------------------------------------------------------------------------------

@contextlib.contextmanager
def hung(mode, *arguments):
	"""Runs it beside a program of root's."""
	with hung_program(mode, *arguments) as program, subprocess.Popen([compiled("spin", SPIN)]) as other:
		try:
			yield program
		finally:
			other.kill()


def check_goes_on(words, mode, *arguments, verb=("profile", "-F", "199"), told=True):
	"""Returns the seconds that one second of recording takes. Code that waited for an answer would wait forever."""
	need_bpf()
	with Server(library(), *words) as server, hung(mode, os.path.join(server.directory, "lib.so"), *arguments) as program:
		try:
			result = sonde(*verb, "-f", "1", timeout=60, want=0)
		finally:
			server.process.kill() # then the program can end
	check(";known_work " in result.out, lambda: "the other program's stacks are missing: %s" % result)
	check(not told or re.search(r"did not answer, longest for process %d of user %d:" % (program.pid, NOBODY), result.err), lambda: str(result))
	return "%.1f s" % result.seconds


def segments(path):
	"""Returns START SIZE OFFSET of the code and of the data of a program without PIE."""
	found = re.findall(r"LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x\w+ 0x(\w+) (R E|RW )", subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout)
	check([rights for *_, rights in found] == ["R E", "RW "], "segments of %s: %s" % (path, found))
	for offset, start, size, _ in found:
		offset, start, size = (int(text, 16) for text in (offset, start, size))
		yield from (start & ~4095, (size + start % 4096 + 4095) & ~4095, offset & ~4095)


def agent_beside(mode, *words):
	need_bpf()
	folder = fresh_folder("environment")
	with Server(library(), *words) as server, hung(mode, os.path.join(server.directory, "lib.so")) as program:
		try:
			with Background("agent", "--store", folder, "--window", 1, "-F", 199, 3) as running:
				result = running.finish(timeout=60)
		finally:
			server.process.kill()
	report = converted(folder)
	of_hung = [sample for sample in report["samples"] if sample["pid"] == program.pid]
	others = [dict(sample.get("labels", ())).get("process.executable.name") for sample in report["samples"] if sample["comm"] == "spin"]
	check(of_hung and not any("labels" in sample for sample in of_hung), lambda: "samples of the hung process: %s" % of_hung)
	check(others and set(others) == {"spin"}, lambda: "executables: %s" % others)
	check(int(report["account"]["labels_missed"]) >= sum(sample["values"][0] for sample in of_hung), "samples without labels are counted")
	return report, program, result.seconds


@test
def environment_that_cannot_be_read():
	"""The agent gives others' processes their labels, and this one none."""
	report, program, seconds = agent_beside("lock", "others", WRITE)
	notes = " ".join(report["account"]["notes"])
	check(re.search(r"did not answer, longest for process %d of user %d:" % (program.pid, NOBODY), notes), lambda: notes)
	return "%.1f s" % seconds


@test
def environment_in_a_file():
	"""The kernel reads none, and there is nothing to wait for."""
	agent_beside("environment", "others", READ)


@test
def code_that_cannot_be_read():
	return check_goes_on(["others", READ], "code")


@test
def code_that_others_may_not_read():
	"""Not even root may read it: so nobody waits."""
	return check_goes_on([READ], "code", told=False)


@test
def data_of_an_interpreter():
	"""Its location in memory is read as soon as the interpreter is seen."""
	return check_goes_on([READ], "data", os.path.realpath("/usr/bin/python3"), *segments(os.path.realpath("/usr/bin/python3")))


JOBS = """
import subprocess, sys, time
print("ready", flush=True)
sys.stdin.readline()
for _ in range(15):
	subprocess.Popen(sys.argv[1:], user=65534, group=65534, extra_groups=[], stdout=subprocess.DEVNULL)
	time.sleep(0.1)
sys.stdin.read()
"""


@test
def data_of_a_job():
	"""An interpreter of root's starts another user's program as that user: memory that was root's a moment ago is now untrusted."""
	need_bpf()
	python = os.path.realpath("/usr/bin/python3")
	with Server(library(), READ) as server:
		job = [build("hung"), "data", os.path.join(server.directory, "lib.so"), python, *map(str, segments(python))]
		with subprocess.Popen([sys.executable, "-c", JOBS, *job], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as runner:
			try:
				check_equal(runner.stdout.readline(), b"ready\n", "the runner")
				with Background("profile", "-F", "199", "-o", scratch("jobs.json"), 4) as profile:
					profile.wait_line("Sampling", timeout=60)
					runner.stdin.write(b"\n")
					runner.stdin.flush()
					result = profile.finish(timeout=60)
			finally:
				server.process.kill()
				os.killpg(runner.pid, signal.SIGKILL)
	check(result.code == 0, lambda: str(result))


@test
def stack_of_one_who_waits():
	return check_goes_on([READ], "stack", verb=("wall",))


@test
def memory_that_is_locked():
	"""/proc/PID/maps cannot be read then."""
	return check_goes_on([WRITE], "lock")


@test
def names_from_a_pipe():
	need_bpf()
	with hung("names") as program:
		path = "/tmp/perf-%d.map" % program.pid
		try:
			result = sonde("profile", "-F", "199", "-f", "1", timeout=60, want=0)
		finally:
			os.unlink(path)
	check(";known_work " in result.out, lambda: str(result))


run_tests()
