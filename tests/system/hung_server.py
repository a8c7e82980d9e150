# SPDX-License-Identifier: Apache-2.0
"""A file system with one file, whose server leaves some requests unanswered (FUSE, without its library). hung_server.py DIRECTORY FILE [WORD...] is that
server; the file is "lib.so". Words: "others": other users may use it, not only uid 65534; numbers of requests that it takes and never answers;
"last=N": from SIGUSR1 on it serves only the first page and the last N bytes of the file. Without "last" it serves nothing from then on."""
import contextlib
import ctypes
import errno
import os
import signal
import struct
import subprocess
import sys

from harness import CFLAGS, build, check, scratch, skip
from neighbour import NOBODY

# linux/fuse.h
LOOKUP, GETATTR, SETATTR, OPEN, READ, WRITE, STATFS, RELEASE, FLUSH, INIT, OPENDIR, RELEASEDIR = 1, 3, 4, 14, 15, 16, 17, 18, 25, 26, 27, 29
NO_ANSWER = (2, 36, 42) # FORGET, INTERRUPT, BATCH_FORGET
KEEP_CACHE = 2
ROOT, FILE = 1, 2


def attributes(node, size):
	"""struct fuse_attr"""
	mode, size = (0o40755, 0) if node == ROOT else (0o100755, size)
	return struct.pack("<6Q10I", node, size, (size + 511) // 512, 1, 1, 1, 0, 0, 0, mode, 1, NOBODY, NOBODY, 0, 4096, 0)


def answer(opcode, node, body, content):
	"""(errno, bytes)"""
	if opcode == INIT:
		return 0, struct.pack("<4I2H2I2HI", 7, 31, 4096, 0, 16, 12, 65536, 1, 0, 0, 0) + bytes(28)
	if opcode == LOOKUP:
		if body.rstrip(b"\0") != b"lib.so":
			return errno.ENOENT, b""
		return 0, struct.pack("<4Q2I", FILE, 0, 0, 0, 0, 0) + attributes(FILE, len(content)) # nothing of it may be cached
	if opcode in (GETATTR, SETATTR):
		return 0, struct.pack("<Q2I", 0, 0, 0) + attributes(node, len(content))
	if opcode in (OPEN, OPENDIR):
		return 0, struct.pack("<Q2I", 0, KEEP_CACHE, 0) # otherwise an open would drop its pages from running processes
	if opcode == READ:
		_, offset, size = struct.unpack_from("<2QI", body)
		return 0, content[offset:offset + size]
	if opcode == STATFS:
		return 0, bytes(80)
	return (0, b"") if opcode in (FLUSH, RELEASE, RELEASEDIR) else (errno.ENOSYS, b"")


class Silence:
	"""The set of requests that are not answered."""

	def __init__(self, words, size):
		self.kinds = {int(word) for word in words if word.isdigit()}
		last = [int(word[5:]) for word in words if word.startswith("last=")]
		self.end = size - last[0] if last else None
		self.has_begun = False
		signal.signal(signal.SIGUSR1, self.begin)

	def begin(self, *_):
		self.has_begun = True

	def has(self, opcode, body):
		if opcode in self.kinds or opcode in NO_ANSWER:
			return True
		if not self.has_begun or self.end is None:
			return self.has_begun
		return opcode == READ and 4096 <= struct.unpack_from("<2Q", body)[1] < self.end


def serve(directory, path, *words):
	with open(path, "rb") as file:
		content = file.read()
	fuse = os.open("/dev/fuse", os.O_RDWR)
	libc = ctypes.CDLL(None, use_errno=True)
	options = "fd=%d,rootmode=40000,user_id=%d,group_id=%d%s" % (fuse, NOBODY, NOBODY, ",allow_other" if "others" in words else "")
	if libc.mount(b"hung", directory.encode(), b"fuse", 0, options.encode()):
		sys.exit("mount: " + os.strerror(ctypes.get_errno()))
	silence = Silence(words, len(content))
	print("mounted", flush=True)
	while True:
		try:
			request = os.read(fuse, 1 << 20)
		except OSError as error:
			if error.errno == errno.ENODEV:
				return # unmounted
			raise
		_, opcode, unique, node = struct.unpack_from("<2I2Q", request)
		if not silence.has(opcode, request[40:]):
			failure, body = answer(opcode, node, request[40:], content)
			os.write(fuse, struct.pack("<IiQ", 16 + len(body), -failure, unique) + body)


class Server:
	"""Serves the file. After SIGSTOP it takes no more requests."""

	def __init__(self, path, *words):
		self.directory = scratch("hung")
		self.path = path
		self.words = words
		self.process = None

	def __enter__(self):
		os.makedirs(self.directory, exist_ok=True)
		self.process = subprocess.Popen([sys.executable, __file__, self.directory, self.path, *map(str, self.words)], stdout=subprocess.PIPE, text=True)
		if self.process.stdout.readline() != "mounted\n":
			self.__exit__()
			check(not os.path.exists("/dev/fuse"), "the file system cannot be mounted")
			skip("no /dev/fuse")
		return self

	def __exit__(self, *_):
		self.process.kill() # then all waiting processes get an error
		self.process.communicate()
		subprocess.run(["umount", "-l", self.directory], stderr=subprocess.DEVNULL, check=False)


def as_nobody():
	os.setgroups([])
	os.setresgid(NOBODY, NOBODY, NOBODY)
	os.setresuid(NOBODY, NOBODY, NOBODY)


@contextlib.contextmanager
def hung_program(mode, *arguments):
	"""Runs tests/programs/hung.c, whose file is on the server, as another user."""
	with subprocess.Popen([build("hung"), mode, *map(str, arguments)], stdout=subprocess.PIPE, preexec_fn=as_nobody) as program:
		try:
			check(program.stdout.readline() == b"ready\n", "the program does not run")
			yield program
		finally:
			program.kill()


def compiled(name, text, *flags):
	path = scratch(name)
	result = subprocess.run(["gcc", "-x", "c", "-o", path, "-", *CFLAGS, *flags], input=text, capture_output=True, text=True, timeout=60, check=False)
	check(result.returncode == 0, result.stderr)
	return path


if __name__ == "__main__":
	serve(*sys.argv[1:])
