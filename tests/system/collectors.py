# SPDX-License-Identifier: Apache-2.0
"""Doubles of the servers to which sonde agent sends, with faults; and what the agent says of its delivery."""
import base64
import collections
import ctypes
import gzip
import http.server
import json
import os
import re
import select
import socket
import sqlite3
import struct
import subprocess
import threading
import time

from harness import SOURCES, check, check_equal, converted, nr_samples, run, skip

MACHINE_PYTHON = "/usr/bin/python3" # whose packages are Debian's
ENLARGED_BY = 40000


def libzstd():
	library = ctypes.CDLL("libzstd.so.1")
	for name in "ZSTD_compress", "ZSTD_compressBound", "ZSTD_decompress", "ZSTD_getFrameContentSize":
		getattr(library, name).restype = ctypes.c_size_t
	return library


def zstd(data):
	to = ctypes.create_string_buffer(libzstd().ZSTD_compressBound(ctypes.c_size_t(len(data))))
	size = libzstd().ZSTD_compress(to, ctypes.c_size_t(len(to)), data, ctypes.c_size_t(len(data)), 1)
	return to.raw[:size]


def unpacked(body):
	"""What a frame of zstd that says its size has."""
	size = libzstd().ZSTD_getFrameContentSize(body, ctypes.c_size_t(len(body)))
	to = ctypes.create_string_buffer(size)
	check_equal(libzstd().ZSTD_decompress(to, ctypes.c_size_t(size), body, ctypes.c_size_t(len(body))), size, "unpacked bytes")
	return to.raw


def enlarge(folder, nr_functions=ENLARGED_BY, name_bytes=92, depth=1):
	"""Makes of a store's first window one with many functions more, of names that cannot be packed, in stacks of that depth and two processes in turn, and drops the others; returns the number
	of samples."""
	report = converted(folder)
	sample, frame, names = report["samples"][0], report["frames"][0], len(report["functions"])
	for i in range(nr_functions):
		report["functions"].append({"name": base64.b85encode(os.urandom(name_bytes)).decode(), "system_name": "", "file": "", "line": 0})
		report["frames"].append(dict(frame, function=names + i))
		if i % depth != depth - 1:
			continue
		report["stacks"].append([len(report["frames"]) - 1 - j for j in range(depth)])
		report["samples"].append(dict(sample, pid=100 + i % 2, tid=100 + i % 2, user_stack=len(report["stacks"]) - 1, kernel_stack=None, values=[2]))
	with sqlite3.connect(os.path.join(folder, "profiles.db")) as connection:
		connection.execute("DELETE FROM window WHERE id > 1")
		connection.execute("UPDATE window SET body = ?", (zstd(json.dumps(report).encode()),))
	return nr_samples(converted(folder))


def free_port():
	"""For a server that does not say which one it took."""
	with socket.socket() as s:
		s.bind(("127.0.0.1", 0))
		return s.getsockname()[1]


class Collector:
	"""Answers requests by a list of faults, then well. .taken: the messages that it took, as (time, bytes)."""

	def __init__(self, faults=(), host="127.0.0.1"):
		self.faults = collections.deque(faults)
		self.taken, self.refused, self.headers = [], 0, []
		self.listener = socket.create_server((host, 0))
		self.address = "%s:%d" % self.listener.getsockname()
		self.is_over = False
		self.thread = threading.Thread(target=self.serve, daemon=True)

	def __enter__(self):
		self.thread.start()
		return self

	def __exit__(self, *exc):
		self.is_over = True
		self.listener.shutdown(socket.SHUT_RDWR) # or the kernel keeps it for the accept that waits
		self.listener.close()

	def serve(self):
		while not self.is_over:
			try:
				connection, _ = self.listener.accept()
			except OSError:
				return
			threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

	def talk(self, connection):
		try:
			with connection:
				self.speak(connection)
		except (OSError, EOFError, ValueError):
			pass

	def next_fault(self):
		return self.faults.popleft() if self.faults else "ok"

	def take(self, message):
		self.taken.append((time.time(), message))


def exactly(connection, size):
	data = b""
	while len(data) < size:
		more = connection.recv(size - len(data))
		if not more:
			raise EOFError
		data += more
	return data


class HttpCollector(Collector):
	"""Takes messages by POST. .headers: (path, headers) of each request."""

	def unpack(self, body, encoding):
		return {"gzip": gzip.decompress, "zstd": unpacked, None: bytes}[encoding](body)

	def failure(self, status): # pylint: disable=unused-argument
		return b""

	def speak(self, connection):
		collector = self

		class Handler(http.server.BaseHTTPRequestHandler):
			protocol_version = "HTTP/1.1"

			def do_POST(self): # noqa: N802
				body = collector.unpack(self.rfile.read(int(self.headers["content-length"])), self.headers["content-encoding"])
				collector.headers.append((self.path, dict(self.headers)))
				fault = collector.next_fault()
				if fault == "reset":
					connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
					self.close_connection = True
					connection.close()
					return
				if fault == "silent":
					time.sleep(40)
				if fault == "slow":
					time.sleep(1.5)
				status = fault if isinstance(fault, int) else 200
				answer = {"partial": b"\x0a\x06\x08\x03\x12\x02no", "noise": os.urandom(1000), "huge": b"x" * 8000000}.get(fault, b"") if status == 200 else collector.failure(status)
				if status == 200:
					collector.take(body)
				self.send_response(status)
				if status in (429, 503):
					self.send_header("Retry-After", "1")
				self.send_header("content-length", str(len(answer)))
				self.end_headers()
				self.wfile.write(answer)

			def log_message(self, *args): # pylint: disable=arguments-differ
				pass

		Handler(connection, ("", 0), None)


class GrpcDouble:
	"""A double in gRPC's own library, a program of tests/programs that prints "listening PORT" and then an object for each call. .calls: those, {method, ...}."""

	def __init__(self, name, *arguments):
		if run([MACHINE_PYTHON, "-c", "import grpc"]).code:
			skip("no python3-grpcio for %s" % MACHINE_PYTHON)
		self.calls, self.rest = [], b""
		self.process = subprocess.Popen([MACHINE_PYTHON, os.path.join(SOURCES, name), *[str(argument) for argument in arguments]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=dict(os.environ, GRPC_VERBOSITY="NONE"))
		self.port = int(self.process.stdout.readline().split()[1])
		self.address = "127.0.0.1:%d" % self.port

	def __enter__(self):
		return self

	def __exit__(self, *exc):
		self.process.kill()
		self.process.communicate()

	def set(self, **state):
		self.process.stdin.write(json.dumps(state).encode() + b"\n")

	def read(self, seconds):
		"""Takes what comes within that time; false: nothing did."""
		ready, _, _ = select.select([self.process.stdout], [], [], seconds)
		if not ready:
			return False
		data = os.read(self.process.stdout.fileno(), 1 << 20)
		check(data, "the double has ended")
		*lines, self.rest = (self.rest + data).split(b"\n")
		self.calls += [json.loads(line) for line in lines]
		return True

	def drain(self, seconds=0.5):
		"""Takes what comes until nothing does for that time."""
		while self.read(seconds):
			pass

	def of(self, method):
		return [call for call in self.calls if call["method"] == method]

	def wait_for(self, what, found, seconds=60):
		until = time.monotonic() + seconds
		while not found():
			check(time.monotonic() < until, lambda: "no %s within %d s; there were: %s" % (what, seconds, [call["method"] for call in self.calls][-50:]))
			self.read(0.2)
		return found()

	def finish(self, running):
		"""Waits for the end of sonde, and takes what comes meanwhile: the double would wait for room in the pipe."""
		while running.process.poll() is None:
			self.read(0.2)
		self.drain()
		return running.finish()



def counts(text, to=r"\S+"):
	"""The numbers of the line on delivery, by name."""
	line = re.search(r"delivered to %s: (.*)" % to, text).group(1)
	return dict([(name.strip(), int(number)) for number, name in re.findall(r"(\d+) (profiles|bytes)", line)] + [(name.strip(), int(number)) for name, number in re.findall(r"([a-z ]+): (\d+)", line)])
