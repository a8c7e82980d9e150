#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Other users' files: files that an unprivileged user names in his processes' data are read with his permissions, by an unprivileged process, and what
may be read is shown. Each case has a control in which the same file may be read."""
import os
import shutil
import subprocess
import time

from harness import CFLAGS, SCRATCH, SONDE, check, find_tool, need_bpf, run, run_tests, scratch, skip, sonde, test

STRANGER = 12345

JIT = """
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
	unsigned char *code = mmap((void *)0x510000000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	memset(code, 0x90, 64);
	memcpy(code + 64, "\\xeb\\xbe", 2); /* to its begin */
	puts("ready");
	fflush(stdout);
	((void (*)(void))code)();
	return 0;
}
"""
MAP_LINE = "510000000 1000 %s\n"

SECRET = """
__attribute__((noinline)) void named_in_secret(void) { for (volatile unsigned i = 0; i < 100000; i++) ; }
int main(void) { for (;;) named_in_secret(); }
"""

INLINED = """
#include <stdlib.h>
static inline __attribute__((always_inline)) unsigned innermost(unsigned x)
{
	for (volatile unsigned i = 0; i < 1000; i++) x += i;
	return x;
}
static inline __attribute__((always_inline)) unsigned middle(unsigned x) { return innermost(x) + 1; }
__attribute__((noinline)) unsigned outer(unsigned x) { return middle(x); }
int main(void) { unsigned x = 1; for (;;) x = outer(x); }
"""


class Started:
	"""A program in the background, killed at the end."""

	def __init__(self, *argv):
		self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
		self.pid = self.process.pid

	def __enter__(self):
		time.sleep(0.3) # through setpriv's exec
		return self

	def __exit__(self, *exc):
		self.process.kill()
		self.process.wait()


def compiled(name, text, *flags):
	"""Compiles a program that everybody may run."""
	path = scratch(name)
	result = subprocess.run(["gcc", "-x", "c", "-o", path, "-", *CFLAGS, *flags], input=text, capture_output=True, text=True, timeout=60, check=False)
	check(result.returncode == 0, result.stderr)
	os.chmod(path, 0o755)
	return path


def as_stranger(*argv):
	return [find_tool("setpriv"), "--reuid=%d" % STRANGER, "--regid=%d" % STRANGER, "--clear-groups", *argv]


def folded(pid, *options):
	"""Returns sonde's output and messages for a process, and the seconds that it took."""
	began = time.monotonic()
	result = sonde("profile", "-F", "199", "-U", "-f", "-p", str(pid), *options, "1", timeout=60)
	return result.out, result.err, time.monotonic() - began


def need_stranger():
	need_bpf()
	if os.geteuid() != 0 or not find_tool("setpriv"):
		skip("not root, or no setpriv")


def with_jit(make_map):
	"""Returns what is reported for JIT code whose perf map make_map(its path) has made."""
	with Started(*as_stranger(compiled("jit", JIT))) as program:
		path = "/tmp/perf-%d.map" % program.pid
		try:
			make_map(path)
			return folded(program.pid)
		finally:
			if os.path.lexists(path):
				os.unlink(path)


def write(path, text, owner, mode=0o644):
	with open(path, "w", encoding="ascii") as file:
		file.write(text)
	os.chown(path, owner, owner)
	os.chmod(path, mode)


@test
def perf_map_of_its_own():
	"""The control of the next tests."""
	need_stranger()
	out, err, _ = with_jit(lambda path: write(path, MAP_LINE % "my_own_code", STRANGER))
	check("my_own_code" in out, lambda: out + err)


@test
def perf_map_that_leads_elsewhere():
	"""A symbolic link, a second name, or another user's file: nothing of it is shown, and a message says that it is not read."""
	need_stranger()
	secret = scratch("secret.map")
	write(secret, MAP_LINE % "a_secret", 0, 0o600)
	for make in (lambda path: os.symlink(secret, path), lambda path: os.link(secret, path), lambda path: shutil.copy2(secret, path)):
		try:
			out, err, _ = with_jit(make)
		except OSError:
			continue # /tmp is on another file system than the secret, which then cannot have a second name there
		check("a_secret" not in out + err, lambda: out + err)
		check("not read" in err, err)
		check("[unknown]" in out, out)


@test
def perf_map_that_its_user_may_read():
	"""The mode of these files does not protect them: a hard link, made by somebody else, to a file that the process's user has closed to all
	others; and a file that somebody else put there, to name the frames of another user's process. The control: with one name, the first
	file is read."""
	need_stranger()

	def link(path):
		write(path + ".closed", MAP_LINE % "a_secret", STRANGER, 0o600)
		os.link(path + ".closed", path)

	def make_alone(path):
		link(path)
		os.unlink(path + ".closed")
	cases = ((link, False), (lambda path: write(path, MAP_LINE % "a_secret", STRANGER + 1), False), (make_alone, True))
	for make, is_shown in cases:
		try:
			out, err, _ = with_jit(make)
		finally:
			for name in os.listdir("/tmp"):
				if name.startswith("perf-") and name.endswith(".map.closed"):
					os.unlink(os.path.join("/tmp", name))
		check(("a_secret" in out) == is_shown and "a_secret" not in err, lambda: out + err)
		check(("not read" in err) != is_shown, err)


@test
def perf_map_that_never_ends():
	"""A FIFO that nobody writes to, and 10 GB of nothing: the report is written in time."""
	need_stranger()

	def make_large(path):
		write(path, MAP_LINE % "before_the_hole", STRANGER)
		os.truncate(path, 10 << 30)
	for make in (os.mkfifo, make_large):
		out, err, seconds = with_jit(make)
		check("[unknown]" in out and "not read" in err, lambda: out + err)
		check(seconds < 20, "%.1f s" % seconds)


@test
def perf_map_of_nonsense():
	need_stranger()
	out, err, _ = with_jit(lambda path: write(path, "what is this\n" + MAP_LINE % "good" + "51 51\n-1 -1 -1\n", STRANGER))
	check("good" in out and "3 names of the JIT code" in err, lambda: out + err)


def debug_linked():
	"""Makes a program whose names are in a file beside it, in a directory .debug."""
	folder = scratch("linked")
	os.makedirs(os.path.join(folder, ".debug"), exist_ok=True)
	os.chmod(folder, 0o755)
	program, debug = os.path.join(folder, "prog"), os.path.join(folder, ".debug", "prog.debug")
	shutil.copy(compiled("whole", SECRET, "-Wl,--build-id=none"), program)
	for argv in (["objcopy", "--only-keep-debug", program, debug], ["objcopy", "--strip-all", "--add-gnu-debuglink=" + debug, program]):
		result = run(argv)
		check(result.code == 0, lambda: str(result))
	return program, debug


@test
def debug_file_that_its_user_may_not_read():
	"""The debug file is behind a directory closed to the user, or has such a mode; and the control."""
	need_stranger()
	program, debug = debug_linked()
	for directory_mode, mode, is_shown in ((0o755, 0o644, True), (0o700, 0o644, False), (0o755, 0o600, False)):
		os.chmod(os.path.dirname(debug), directory_mode)
		os.chmod(debug, mode)
		with Started(*as_stranger(program)) as process:
			out, err, _ = folded(process.pid)
		check(("named_in_secret" in out) == is_shown, lambda: "%o %o: %s%s" % (directory_mode, mode, out, err))


@test
def inlined_functions_and_lines():
	"""DWARF is read in the sandbox: all frames are there, and without lines the names are the same except for inlined functions."""
	need_bpf()
	with Started(compiled("inlined", INLINED, "-g", "-O2")) as program:
		with_lines, _, _ = folded(program.pid, "--lines")
		without, _, _ = folded(program.pid)
	check("main;outer;middle;innermost " in with_lines, with_lines)
	check("main;outer " in without and "middle" not in without, without)


@test
def split_dwarf_comes_through_the_owner():
	"""The inlined functions are in a .dwo file, which the worker requests by its name."""
	need_bpf()
	folder = scratch("split")
	os.makedirs(folder, exist_ok=True)
	with open(os.path.join(folder, "split.c"), "w", encoding="ascii") as file:
		file.write(INLINED)
	result = run(["gcc", "-O2", "-g", "-gsplit-dwarf", "-o", "split", "split.c"], cwd=folder)
	check(result.code == 0, lambda: str(result))
	dwo = [name for name in os.listdir(folder) if name.endswith(".dwo")]
	with Started(os.path.join(folder, "split")) as program:
		found, _, _ = folded(program.pid, "--lines")
		os.unlink(os.path.join(folder, dwo[0]))
		lost, said, _ = folded(program.pid, "--lines")
	check("main;outer;middle;innermost " in found, found)
	check("main;outer " in lost and "innermost" not in lost, lost)
	check("1 .dwo files with the inlined functions of" in said, said)


@test
def the_worker_is_nobody():
	"""The worker's user, its privileges and its open files, as seen from outside."""
	need_bpf()
	with Started(SONDE, "profile", "-f", "-p", str(os.getpid()), "5") as profiler:
		time.sleep(1)
		workers = run(["pgrep", "-P", str(profiler.pid), "-x", "sonde-worker"]).out.split()
		status = ["".join(open("/proc/%s/status" % pid, encoding="ascii")) for pid in workers]
		sockets = [sorted(os.listdir("/proc/%s/fd" % pid)) for pid in workers]
	check(len(workers) == 1, str(workers))
	fields = dict(line.split(":", 1) for line in status[0].splitlines() if ":" in line)
	check(fields["Seccomp"].strip() == "2" and fields["NoNewPrivs"].strip() == "1", status[0])
	check(os.geteuid() != 0 or (int(fields["CapEff"], 16) == 0 and set(fields["Uid"].split()).isdisjoint({"0"}) and not fields["Groups"].strip()), status[0])
	check(sockets[0] == ["0", "1", "2", "3"], str(sockets))


if __name__ == "__main__":
	os.chmod(SCRATCH, 0o755)
	run_tests()
