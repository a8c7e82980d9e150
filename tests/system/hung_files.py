#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A library is mapped from a file system whose server then does not answer any more: the report comes all the same, has the other stacks, and names the file.
hung_files.py --serve DIRECTORY FILE: is that server (FUSE, without its library). It has one file, the bytes of FILE as "lib.so"."""
import ctypes
import errno
import os
import signal
import struct
import subprocess
import sys

from harness import CFLAGS, check, need_bpf, run_tests, scratch, skip, sonde, test

LIBRARY = "void spin(volatile int *stop) { while (!*stop) ; }\n"
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
LOOKUP, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT, OPENDIR, RELEASEDIR = 1, 3, 14, 15, 17, 18, 25, 26, 27, 29
ROOT, FILE = 1, 2


def attributes(node, size):
	"""struct fuse_attr"""
	mode, size = (0o40755, 0) if node == ROOT else (0o100755, size)
	return struct.pack("<6Q10I", node, size, (size + 511) // 512, 1, 1, 1, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(opcode, node, body, content):
	"""(errno, bytes)"""
	if opcode == INIT:
		return 0, struct.pack("<4I2H2I2HI", 7, 31, 65536, 0, 16, 12, 65536, 1, 0, 0, 0) + bytes(28)
	if opcode == LOOKUP:
		if body.rstrip(b"\0") != b"lib.so":
			return errno.ENOENT, b""
		return 0, struct.pack("<4Q2I", FILE, 0, 0, 0, 0, 0) + attributes(FILE, len(content)) # nothing of it may be kept
	if opcode == GETATTR:
		return 0, struct.pack("<Q2I", 0, 0, 0) + attributes(node, len(content))
	if opcode in (OPEN, OPENDIR):
		return 0, struct.pack("<Q2I", 0, 0, 0)
	if opcode == READ:
		_, offset, size = struct.unpack_from("<2QI", body)
		return 0, content[offset:offset + size]
	if opcode == STATFS:
		return 0, bytes(80)
	return (0, b"") if opcode in (FLUSH, RELEASE, RELEASEDIR) else (errno.ENOSYS, b"")


def serve(directory, path):
	with open(path, "rb") as file:
		content = file.read()
	fuse = os.open("/dev/fuse", os.O_RDWR)
	libc = ctypes.CDLL(None, use_errno=True)
	options = "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % fuse
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
		if silent or opcode in (2, 36, 42): # FORGET, INTERRUPT, BATCH_FORGET: have no answer
			continue
		failure, body = answer(opcode, node, request[40:], content)
		os.write(fuse, struct.pack("<IiQ", 16 + len(body), -failure, unique) + body)


class Server:
	def __init__(self):
		self.directory = scratch("hung")
		self.process = None

	def __enter__(self):
		os.makedirs(self.directory, exist_ok=True)
		compiled("lib.so", LIBRARY, "-shared", "-fPIC")
		self.process = subprocess.Popen([sys.executable, __file__, "--serve", self.directory, scratch("lib.so")], stdout=subprocess.PIPE, text=True)
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
	with Server() as server:
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


if sys.argv[1:2] == ["--serve"]:
	serve(*sys.argv[2:])
else:
	run_tests()
