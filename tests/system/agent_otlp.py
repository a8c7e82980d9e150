#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde agent --otlp: every window that is stored arrives, in order, whatever the collector does meanwhile; what it refuses is counted."""
import gzip
import os
import re
import signal
import socket
import sqlite3
import ssl
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from collectors import Collector, HttpCollector, counts, exactly, unpacked # noqa: E402
from harness import Background, Program, check, check_equal, converted, fresh_folder, make_certificate, need_bpf, nr_samples, run_tests, scratch, skip, sonde, test # noqa: E402

# --- a double that speaks gRPC ----------------------------------------------------------------------------------------------------

class GrpcCollector(Collector):
	"""As much of HTTP/2 and gRPC as one unary call needs."""
	compression = "gzip"

	def speak(self, connection):
		check_equal(exactly(connection, 24)[:3], b"PRI", "the preface")
		self.send(connection, 4, 0, 0, b"")
		body = b""
		while True:
			size, kind, flags, stream = struct.unpack(">IBBI", b"\0" + exactly(connection, 9))
			data = exactly(connection, size)
			if kind == 4 and not flags & 1:
				self.send(connection, 4, 1, 0, b"")
			if kind == 0:
				body += data
				if size:
					for of in 0, stream:
						self.send(connection, 8, 0, of, struct.pack(">I", size))
			if kind in (0, 1) and flags & 1:
				self.answer(connection, stream, body)
				body = b""

	@staticmethod
	def send(connection, kind, flags, stream, data):
		connection.sendall(struct.pack(">IBBI", len(data), kind, flags, stream)[1:] + data)

	def answer(self, connection, stream, body):
		is_packed, size = struct.unpack(">BI", body[:5])
		message = body[5:]
		check_equal((is_packed, size), (int(self.compression != "none"), len(message)), "the frame")
		fault = self.next_fault()
		status, text = fault if isinstance(fault, tuple) else (0, "")
		if not status:
			self.take({"gzip": gzip.decompress, "zstd": unpacked, "none": bytes}[self.compression](message))
		plain = b"".join(b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value for name, value in ((b"grpc-status", b"%d" % status), (b"grpc-message", text.encode())))
		self.send(connection, 1, 4, stream, b"\x88" + (b"" if status else b"\0\x0econtent-length\x015"))
		if not status:
			self.send(connection, 0, 0, stream, b"\0\0\0\0\0")
		self.send(connection, 1, 5, stream, plain)


# --- what arrived --------------------------------------------------------------------------------------------------------------

def arrived(collector):
	"""Samples of all messages, each counted once; checks that they came in order."""
	total, times = 0, []
	for number, message in enumerate(dict.fromkeys(message for _, message in collector.taken)):
		path = scratch("message-%d" % number)
		with open(path, "wb") as file:
			file.write(message)
		report = converted("--from", "otlp", path)
		total += nr_samples(report)
		times.append(int(report["account"]["start_unix_ns"]))
	check_equal(times, sorted(times), "start times of the messages in their order")
	return total


def agent(folder, address, *args, **kwargs):
	return Background("agent", "--store", folder, "--window", 1, "-F", 97, "--otlp", address, *args, **kwargs)


@test
def http_with_faults():
	need_bpf()
	folder = fresh_folder("http")
	with HttpCollector([503, "reset", "slow", 429, "noise", "huge", 500, "partial"]) as collector, Program("chain"):
		with agent(folder, "http://" + collector.address, "--otlp-header", "x-scope: me", 9) as running:
			result = running.finish()
	got = counts(result.err)
	check_equal(arrived(collector), nr_samples(converted(folder)), "samples that arrived, and stored ones")
	check_equal((got["waiting"], got["refused"], got["rejected in part"]), (0, 0, 3), "waiting, refused, rejected")
	check(got["tried again"] in (3, 4), lambda: "tried again: %d" % got["tried again"]) # libcurl itself tries again what failed on a connection that was kept
	check_equal(got["profiles"], len(collector.taken), "profiles")
	check("3 profiles are rejected: no" in result.err and "takes profiles again" in result.err, lambda: str(result))
	path, headers = collector.headers[0]
	check_equal((path, headers["content-type"], headers["content-encoding"], headers["x-scope"]), ("/v1development/profiles", "application/x-protobuf", "gzip", "me"), "the request")
	check("x-scope" not in result.err, "headers are secret")


@test
def what_is_refused_is_counted():
	need_bpf()
	folder = fresh_folder("refused")
	with HttpCollector(["ok", 400, "ok", 415]) as collector, Program("chain"):
		with agent(folder, "http://" + collector.address, 6) as running:
			result = running.finish()
	got = counts(result.err)
	check_equal((got["refused"], got["waiting"]), (2, 0), "refused and waiting")
	check_equal(result.err.count("a profile is refused: HTTP 4"), 2, "messages")
	check_equal(got["profiles"] + 2, int(re.search(r"stored: (\d+)", result.err).group(1)), "delivered and refused")


@test
def grpc_with_faults():
	need_bpf()
	folder = fresh_folder("grpc")
	with GrpcCollector([(14, "not yet"), "ok", (8, "slow down"), (16, "who?")]) as collector, Program("chain"):
		with agent(folder, collector.address, 8) as running:
			result = running.finish()
	got = counts(result.err)
	check_equal(arrived(collector), nr_samples(converted(folder)), "samples that arrived, and stored ones")
	check_equal((got["waiting"], got["refused"], got["tried again"]), (0, 0, 3), "waiting, refused, tried again")
	for words in "gRPC status 14: not yet", "gRPC status 8: slow down", "gRPC status 16: who?":
		check(words in result.err, lambda: "no %r in %s" % (words, result)) # pylint: disable=cell-var-from-loop
	for version, other in ("1.10", "1.9 or 1.8"), ("1.9", "1.8 or 1.10"), ("1.8", "1.10 or 1.9"):
		with GrpcCollector([(13, "wrong wireType = 2 for field LinkIndex")]) as collector:
			with agent(folder, "grpc://" + collector.address, "--otlp-version", version, 2) as running:
				result = running.finish()
		check("try --otlp-version %s" % other in result.err and counts(result.err)["refused"] == 0, lambda: str(result)) # pylint: disable=cell-var-from-loop


@test
def compressions():
	"""Each arrives whole; one that the collector does not know is said, with the option, and drops nothing."""
	need_bpf()
	sizes = {}
	for compression in "gzip", "zstd", "none":
		folder = fresh_folder("compressed")
		for double in GrpcCollector(), HttpCollector():
			double.compression = compression
			with double, Program("chain"):
				with agent(folder, ("http://" if isinstance(double, HttpCollector) else "") + double.address, "--otlp-compression", compression, 3) as running:
					result = running.finish()
			check_equal((counts(result.err)["refused"], counts(result.err)["waiting"]), (0, 0), "refused and waiting")
			check_equal(arrived(double), nr_samples(converted(folder)), "samples that arrived, and stored ones")
			sizes[compression] = counts(result.err)["bytes"] / len(double.taken)
			if isinstance(double, HttpCollector):
				check_equal(double.headers[0][1].get("content-encoding"), None if compression == "none" else compression, "the header")
	check(sizes["none"] > 1.5 * max(sizes["gzip"], sizes["zstd"]), lambda: str(sizes))
	with HttpCollector([415]) as collector, Program("chain"):
		collector.failure = lambda status: b"unsupported Content-Encoding"
		with agent(fresh_folder("unknown"), "http://" + collector.address, "--otlp-compression", "zstd", 2) as running:
			result = running.finish()
	check("unsupported Content-Encoding; try --otlp-compression gzip" in result.err and counts(result.err)["refused"] == 0 and collector.taken, lambda: str(result))
	result = sonde("agent", "--otlp", "h", "--otlp-compression", "lz4", "--print-config", want=2)
	check("one of gzip, zstd, none" in result.err, lambda: str(result))
	return ", ".join("%s: %d bytes" % item for item in sizes.items())


@test
def a_collector_that_is_away():
	"""What was recorded meanwhile arrives from the next agent, and nothing that arrived comes again."""
	need_bpf()
	folder = fresh_folder("away")
	with Collector() as nobody:
		address = "http://" + nobody.address
	with Program("chain"):
		with agent(folder, address, 4) as running:
			result = running.finish()
		check(result.err.count("Couldn't connect") == 1 and not re.search(r"after \d+ ms", result.err) and counts(result.err)["profiles"] == 0, lambda: str(result))
		waiting = counts(result.err)["waiting"]
		check(waiting >= 4, lambda: str(result))
		with HttpCollector() as collector:
			collector.listener.close()
			collector.listener = socket.create_server(("127.0.0.1", int(address.rpartition(":")[2])))
			threading.Thread(target=collector.serve, daemon=True).start()
			for seconds in 3, 2:
				with agent(folder, address, seconds) as running:
					result = running.finish()
				check_equal(counts(result.err)["waiting"], 0, "waiting")
			check_equal(arrived(collector), nr_samples(converted(folder)), "samples that arrived, and stored ones")
			check_equal(len({message for _, message in collector.taken}), len(collector.taken), "messages, and different ones")


@test
def a_damaged_window():
	"""It is left out, counted by the reader and by the deliverer, and holds nothing up."""
	need_bpf()
	folder = fresh_folder("damaged")
	with Program("chain"), Background("agent", "--store", folder, "--window", 1, "-F", 97, 4) as running:
		running.finish()
	with sqlite3.connect(os.path.join(folder, "profiles.db")) as connection:
		connection.execute("UPDATE window SET body = x'28b52ffd' WHERE id = 1")
		connection.execute("UPDATE window SET body = substr(body, 1, length(body) / 2) WHERE id = 3")
	with HttpCollector() as collector, Program("chain"), agent(folder, "http://" + collector.address, 2) as running:
		result = running.finish()
		got = counts(result.err)
		check_equal((got["refused"], got["waiting"], result.err.count("its row in the store is damaged")), (2, 0, 2), "refused, waiting, and messages")
		check_equal(arrived(collector), nr_samples(converted(folder)), "samples that arrived, and readable ones")
	result = sonde("show", folder, want=0)
	check("2 windows of the store are damaged" in result.err, lambda: str(result))


@test
def a_silent_collector_delays_nothing():
	"""Sampling goes on, and the end comes within seconds."""
	need_bpf()
	folder = fresh_folder("silent")
	with HttpCollector(["silent"]) as collector, Program("chain"):
		with agent(folder, "http://" + collector.address).wait_line("Sampling") as running:
			time.sleep(4)
			began = time.monotonic()
			running.send(signal.SIGTERM)
			result = running.finish()
			check(time.monotonic() - began < 10, lambda: "it took %.1f s" % (time.monotonic() - began))
	check(counts(result.err)["waiting"] >= 4 and "0 lost" in result.err, lambda: str(result))


@test
def tls():
	"""A certificate of nobody known is refused, with its authority it is taken."""
	need_bpf()
	folder, (certificate, key) = fresh_folder("tls"), make_certificate()
	context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
	context.load_cert_chain(certificate, key)
	with HttpCollector() as collector, Program("chain"):
		plain = collector.speak
		collector.speak = lambda connection: plain(context.wrap_socket(connection, server_side=True))
		address = "https://localhost:" + collector.address.rpartition(":")[2]
		with agent(folder, address, 2) as running:
			result = running.finish()
		check("certificate" in result.err and not collector.taken, lambda: str(result))
		with agent(folder, address, "--otlp-ca", certificate, 2) as running:
			result = running.finish()
		check_equal(counts(result.err)["waiting"], 0, "waiting")
		check_equal(arrived(collector), nr_samples(converted(folder)), "samples that arrived, and stored ones")


@test
def flags_of_the_opentelemetry_profiler():
	"""They mean what they mean there, and the manual page pairs them with ours; without a scheme an address is gRPC with TLS, but on loopback or with --disable-tls."""
	result = sonde("agent", "--collection-agent", "h:1", "--disable-tls", "--samples-per-second=20", "--reporter-interval", "1m", "--env-vars", "A,B", "--tracers", "python,hotspot", "--print-config", want=0)
	settings = dict(line.split(": ", 1) for line in result.out.splitlines())
	check_equal([settings[name] for name in ("otlp", "disable-tls", "frequency", "window", "env", "runtimes")], ["'h:1'", "true", "20", "60", "['A,B']", "'python,hotspot'"], "settings")
	page = sonde("--man", "agent", want=0).out.replace("\\-", "-").replace("\\fB", "").replace("\\fI", "").replace("\\fR", "")
	pairs = dict(re.findall(r"^\.TP 28\n-(\S+)\n--(\S+)", page.split(".SH FLAGS OF THE OPENTELEMETRY EBPF PROFILER")[1].split(".SH EXAMPLES")[0], re.M))
	check_equal(pairs, {"collection-agent": "otlp", "disable-tls": "disable-tls", "samples-per-second": "frequency", "reporter-interval": "window", "env-vars": "env", "tracers": "runtimes"}, "pairs of the page")
	need_bpf()
	for disable_tls, first in ((), b"\x16"), (("--disable-tls",), b"P"): # of a handshake; of HTTP/2's preface
		with Collector(host="0.0.0.0") as collector, Program("chain"):
			collector.speak = lambda connection: collector.take(exactly(connection, 1)) # pylint: disable=cell-var-from-loop
			with Background("agent", "--store", fresh_folder("flags"), "--collection-agent", collector.address, *disable_tls, "--reporter-interval", "1s", 2) as running:
				running.finish()
			check_equal({message for _, message in collector.taken}, {first}, "the first byte, %s" % (disable_tls,))


@test
def secrets_and_addresses():
	for address in "http://user:word@host", "ftp://host", "host name":
		result = sonde("agent", "--otlp", address, "--print-config", want=2)
		check("word@" not in result.err, lambda: str(result)) # pylint: disable=cell-var-from-loop
	result = sonde("agent", "--print-config", env=dict(os.environ, SONDE_OTLP_HEADER="authorization: Bearer secret"), want=0)
	check("secret" not in result.out + result.err and "authorization" in result.out, lambda: str(result))


run_tests()
