#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files and pages of memory whose file server does not answer: the report comes all the same, has the other stacks, and says who kept us waiting.
hung_files.py --serve DIRECTORY FILE [WORD...]: is that server (FUSE, without its library). It has one file, the bytes of FILE as "lib.so". Words: "others" may use it,
not only uid 65534; numbers of requests that it takes and never answers; all of them from SIGUSR1 on."""
import contextlib
import ctypes
import errno
import os
import re
import signal
import struct
import subprocess
import sys

from harness import CFLAGS, build, check, need_bpf, run_tests, scratch, skip, sonde, test

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
# linux/fuse.h
LOOKUP, GETATTR, SETATTR, OPEN, READ, WRITE, STATFS, RELEASE, FLUSH, INIT, OPENDIR, RELEASEDIR = 1, 3, 4, 14, 15, 16, 17, 18, 25, 26, 27, 29
NOBODY = 65534
ROOT, FILE = 1, 2


def attributes(node, size):
	"""struct fuse_attr"""
	mode, size = (0o40755, 0) if node == ROOT else (0o100755, size)
	return struct.pack("<6Q10I", node, size, (size + 511) // 512, 1, 1, 1, 0, 0, 0, mode, 1, NOBODY, NOBODY, 0, 4096, 0)


def answer(opcode, node, body, content):
	"""(errno, bytes)"""
	if opcode == INIT:
		return 0, struct.pack("<4I2H2I2HI", 7, 31, 65536, 0, 16, 12, 65536, 1, 0, 0, 0) + bytes(28)
	if opcode == LOOKUP:
		if body.rstrip(b"\0") != b"lib.so":
			return errno.ENOENT, b""
		return 0, struct.pack("<4Q2I", FILE, 0, 0, 0, 0, 0) + attributes(FILE, len(content)) # nothing of it may be kept
	if opcode in (GETATTR, SETATTR):
		return 0, struct.pack("<Q2I", 0, 0, 0) + attributes(node, len(content))
	if opcode in (OPEN, OPENDIR):
		return 0, struct.pack("<Q2I", 0, 0, 0)
	if opcode == READ:
		_, offset, size = struct.unpack_from("<2QI", body)
		return 0, content[offset:offset + size]
	if opcode == STATFS:
		return 0, bytes(80)
	return (0, b"") if opcode in (FLUSH, RELEASE, RELEASEDIR) else (errno.ENOSYS, b"")


def serve(directory, path, *words):
	quiet = {int(word) for word in words if word.isdigit()}
	with open(path, "rb") as file:
		content = file.read()
	fuse = os.open("/dev/fuse", os.O_RDWR)
	libc = ctypes.CDLL(None, use_errno=True)
	options = "fd=%d,rootmode=40000,user_id=%d,group_id=%d%s" % (fuse, NOBODY, NOBODY, ",allow_other" if "others" in words else "")
	if libc.mount(b"hung", directory.encode(), b"fuse", 0, options.encode()):
		sys.exit("mount: " + os.strerror(ctypes.get_errno()))
	silent = []
	signal.signal(signal.SIGUSR1, lambda *_: silent.append(True)) # takes what is asked, and says nothing
	print("mounted", flush=True)
	while True:
		try:
			request = os.read(fuse, 1 << 20)
		except OSError as error:
			if error.errno == errno.ENODEV:
				return # unmounted
			raise
		_, opcode, unique, node = struct.unpack_from("<2I2Q", request)
		if silent or opcode in quiet or opcode in (2, 36, 42): # FORGET, INTERRUPT, BATCH_FORGET: have no answer
			continue
		failure, body = answer(opcode, node, request[40:], content)
		os.write(fuse, struct.pack("<IiQ", 16 + len(body), -failure, unique) + body)


class Server:
	def __init__(self, *words):
		self.directory = scratch("hung")
		self.words = words
		self.process = None

	def __enter__(self):
		os.makedirs(self.directory, exist_ok=True)
		os.truncate(compiled("lib.so", LIBRARY, "-shared", "-fPIC"), 4 << 20) # there is something wherever it is mapped
		self.process = subprocess.Popen([sys.executable, __file__, "--serve", self.directory, scratch("lib.so"), *map(str, self.words)], stdout=subprocess.PIPE, text=True)
		if self.process.stdout.readline() != "mounted\n":
			self.__exit__()
			check(not os.path.exists("/dev/fuse"), "the file system cannot be mounted")
			skip("no /dev/fuse")
		return self

	def __exit__(self, *_):
		self.process.kill() # then all who wait for it are told so
		self.process.communicate()
		subprocess.run(["umount", "-l", self.directory], stderr=subprocess.DEVNULL, check=False)


def compiled(name, text, *flags):
	path = scratch(name)
	result = subprocess.run(["gcc", "-x", "c", "-o", path, "-", *CFLAGS, *flags], input=text, capture_output=True, text=True, timeout=60, check=False)
	check(result.returncode == 0, result.stderr)
	return path


def profile_of_hung(signo):
	"""What sonde says of the program, whose library's file system was sent that signal before, or None."""
	need_bpf()
	if os.geteuid() != 0:
		skip("not root: nothing can be mounted")
	with Server("others") as server:
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
	"""The control of the next one: the library's function has its name."""
	result = profile_of_hung(None)
	check(";spin " in result.out and "does not answer" not in result.err, lambda: str(result))


@test
def file_system_hangs():
	"""For ever; that the report comes at all is the point."""
	result = profile_of_hung(signal.SIGSTOP)
	check("[lib.so+0x" in result.out and "spin" not in result.out, lambda: str(result))
	check("does not answer" in result.err and "hung/lib.so" in result.err, lambda: str(result))


# --- by somebody without rights, while all that runs is looked at ----------------------------------------------------------------------------------

def as_nobody():
	os.setgroups([])
	os.setresgid(NOBODY, NOBODY, NOBODY)
	os.setresuid(NOBODY, NOBODY, NOBODY)


@contextlib.contextmanager
def hung(mode, *arguments):
	"""tests/programs/hung.c, whose file is on the server; with a program of root's beside it."""
	spin = compiled("spin", SPIN)
	with subprocess.Popen([build("hung"), mode, *map(str, arguments)], stdout=subprocess.PIPE, preexec_fn=as_nobody) as program, subprocess.Popen([spin]) as other:
		try:
			check(program.stdout.readline() == b"ready\n", "the program does not run")
			yield program
		finally:
			program.kill()
			other.kill()


def check_goes_on(words, mode, *arguments, verb=("profile", "-F", "199"), told=True):
	"""Seconds for a second of it. Whoever waited for an answer would wait for ever."""
	need_bpf()
	with Server(*words) as server, hung(mode, os.path.join(server.directory, "lib.so"), *arguments) as program:
		try:
			result = sonde(*verb, "-f", "1", timeout=60, want=0)
		finally:
			server.process.kill() # then the program can end
	check(";known_work " in result.out, lambda: "the other program's stacks are missing: %s" % result)
	check(not told or re.search(r"did not answer, first for process %d of user %d:" % (program.pid, NOBODY), result.err), lambda: str(result))
	return "%.1f s" % result.seconds


def segments(path):
	"""START SIZE OFFSET of what a program without PIE has as code and as data."""
	found = re.findall(r"LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x\w+ 0x(\w+) (R E|RW )", subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout)
	check([rights for *_, rights in found] == ["R E", "RW "], "segments of %s: %s" % (path, found))
	for offset, start, size, _ in found:
		offset, start, size = (int(text, 16) for text in (offset, start, size))
		yield from (start & ~4095, (size + start % 4096 + 4095) & ~4095, offset & ~4095)


@test
def code_that_cannot_be_read():
	return check_goes_on(["others", READ], "code")


@test
def code_that_others_may_not_read():
	"""Not even root: so nobody waits."""
	return check_goes_on([READ], "code", told=False)


@test
def data_of_an_interpreter():
	"""Its place in memory is looked at as soon as it is seen."""
	return check_goes_on([READ], "data", os.path.realpath("/usr/bin/python3"), *segments(os.path.realpath("/usr/bin/python3")))


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


if sys.argv[1:2] == ["--serve"]:
	serve(*sys.argv[2:])
else:
	run_tests()
