#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde agent --pyroscope: every window that is stored arrives as a pprof, in order, whatever the server does meanwhile; also beside --otlp."""
import gzip
import json
import os
import re
import socket
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from collectors import Collector, HttpCollector, counts # noqa: E402
from harness import Background, Program, check, check_equal, converted, fresh_folder, need_bpf, nr_samples, run_tests, scratch, sonde, test # noqa: E402


class Pyroscope(HttpCollector):
	"""As much of push.v1.PusherService as Push over Connect needs."""

	def unpack(self, body, encoding):
		return body

	def failure(self, status):
		return json.dumps({"code": "resource_exhausted" if status == 429 else "invalid_argument", "message": "it is %d" % status}).encode()


def fields(message):
	"""(number, bytes) of each field; those here are all of bytes."""
	at = 0
	while at < len(message):
		check_equal(message[at] & 7, 2, "type of a field")
		number, at, size, shift = message[at] >> 3, at + 1, 0, 0
		while True:
			size |= (message[at] & 0x7f) << shift
			shift, at = shift + 7, at + 1
			if not message[at - 1] & 0x80:
				break
		check(at + size <= len(message), "a field ends behind its message")
		yield number, message[at:at + size]
		at += size


def pushed(message):
	"""(labels, pprof, id) of a PushRequest with one series and one profile."""
	(number, series), = fields(message)
	check_equal(number, 1, "series")
	parts = list(fields(series))
	labels = [dict(fields(part)) for number, part in parts if number == 1]
	(sample,) = (part for number, part in parts if number == 2)
	sample = dict(fields(sample))
	check_equal(len({label[1] for label in labels}), len(labels), "labels, and different ones")
	return {label[1].decode(): label[2].decode() for label in labels}, sample[1], sample[2].decode()


def arrived(server):
	"""Samples of all messages, each counted once; checks that they came in order, and that a message that came again has its id."""
	total, times, by_id = 0, [], {}
	for _, message in server.taken:
		_, profile, number = pushed(message)
		check(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", number), number)
		check(by_id.setdefault(number, profile) == profile, "two profiles with one id")
	for number, profile in enumerate(by_id.values()):
		path = scratch("profile-%d" % number)
		with open(path, "wb") as file:
			file.write(profile)
		report = converted("--from", "pprof", path)
		total += nr_samples(report)
		times.append(int(report["account"]["start_unix_ns"]))
	check_equal(times, sorted(times), "start times of the profiles in their order")
	check(not times or times[0] > 10**18, "start times")
	return total


def agent(folder, *args, **kwargs):
	return Background("agent", "--store", folder, "--window", 1, "-F", 97, *args, **kwargs)


@test
def every_window_arrives():
	need_bpf()
	folder = fresh_folder("faults")
	with Pyroscope([503, "reset", "slow", 429, "noise", "huge", 500]) as server, Program("chain"):
		with agent(folder, "--pyroscope", "http://%s/prefix/" % server.address, "--pyroscope-header", "x-scope-orgid: me", "--pyroscope-label", "service_name=web", "--pyroscope-label", "zone=a", 9) as running:
			result = running.finish()
	got = counts(result.err)
	check_equal(arrived(server), nr_samples(converted(folder)), "samples that arrived, and stored ones")
	check_equal((got["waiting"], got["refused"], got["profiles"]), (0, 0, len(server.taken)), "waiting, refused, delivered")
	check(got["tried again"] in (3, 4), lambda: "tried again: %d" % got["tried again"]) # libcurl itself tries again what failed on a connection that was kept
	check("HTTP 429: resource_exhausted: it is 429" in result.err and "takes profiles again" in result.err and "x-scope" not in result.err, lambda: str(result))
	path, headers = server.headers[0]
	check_equal((path, headers["content-type"], headers["connect-protocol-version"], headers["x-scope-orgid"]), ("/prefix/push.v1.PusherService/Push", "application/proto", "1", "me"), "the request")
	for _, message in server.taken:
		labels = pushed(message)[0]
		check(re.fullmatch("[0-9a-f]{16}", labels.pop("__session_id__")), lambda: str(labels)) # pylint: disable=cell-var-from-loop
		check_equal(labels, {"__name__": "process_cpu", "service_name": "web", "hostname": socket.gethostname(), "zone": "a"}, "labels")


@test
def what_is_refused_is_counted():
	need_bpf()
	folder = fresh_folder("refused")
	with Pyroscope(["ok", 400, "ok", 415]) as server, Program("chain"):
		with agent(folder, "--pyroscope", "http://" + server.address, 6) as running:
			result = running.finish()
	got = counts(result.err)
	check_equal((got["refused"], got["waiting"]), (2, 0), "refused and waiting")
	check("a profile is refused: HTTP 400: invalid_argument: it is 400" in result.err, lambda: str(result))
	check_equal(got["profiles"] + 2, int(re.search(r"stored: (\d+)", result.err).group(1)), "delivered and refused")


@test
def two_destinations():
	"""Each has its own position: one that is away delays the other not at all, and gets later what it lacks, and only that."""
	need_bpf()
	folder = fresh_folder("two")
	with Collector() as nobody:
		address = nobody.address
	with HttpCollector() as otlp, Program("chain"):
		to = ("--otlp", "http://" + otlp.address, "--pyroscope", "http://" + address)
		with agent(folder, *to, 5) as running:
			result = running.finish()
		check_equal(counts(result.err, "http\\S+")["waiting"], 0, "waiting for the collector")
		waiting = counts(result.err, r"pyroscope:\S+")
		check(waiting["waiting"] >= 4 and waiting["profiles"] == 0, lambda: str(result))
		with Pyroscope() as server:
			server.listener.close()
			server.listener = socket.create_server(("127.0.0.1", int(address.rpartition(":")[2])))
			threading.Thread(target=server.serve, daemon=True).start()
			with agent(folder, *to, 3) as running:
				result = running.finish()
			nr = nr_samples(converted(folder))
			check_equal((counts(result.err, "http\\S+")["waiting"], counts(result.err, r"pyroscope:\S+")["waiting"]), (0, 0), "waiting")
			check_equal(arrived(server), nr, "samples at Pyroscope, and stored ones")
			check_equal(len({pushed(message)[2] for _, message in server.taken}), len(server.taken), "profiles, and different ones")
			check_equal(len(otlp.taken), len(server.taken), "profiles at both")
			check_equal(len({message for _, message in otlp.taken}), len(otlp.taken), "messages, and different ones")


@test
def secrets_stay_here():
	"""What was typed is in each profile, and Pyroscope gets it: but no header, of whatever destination, and no token."""
	need_bpf()
	folder = fresh_folder("secrets")
	with Pyroscope() as server, Program("chain"):
		with agent(folder, "--pyroscope", "http://" + server.address, "--pyroscope-header", "x-scope: hunter", "--otlp", "http://127.0.0.1:1", "--otlp-hea=authorization: Bearer hunter",
				"--skywalking", "127.0.0.1:1", "--skywalking-authentication", "hunter1", "--skywalking-authentication=hunter", 2) as running:
			running.finish()
		profiles = [gzip.decompress(pushed(message)[1]) for _, message in server.taken]
		check(server.headers and all(headers["x-scope"] == "hunter" for _, headers in server.headers), lambda: "headers: %s" % server.headers)
	typed = converted(folder)["account"]["command_line"]
	check("--pyroscope-header ... " in typed and " --otlp-hea=... " in typed and typed.endswith(" --skywalking-authentication ... --skywalking-authentication=... 2"), typed)
	check(profiles and all(typed.encode() in profile and b"hunter" not in profile for profile in profiles), "what Pyroscope got")
	for option, shown in ("skywalking-authentication", "# skywalking-authentication: '...'\n"), ("clickhouse-header", "# clickhouse-header: 'hunter: ...'\n"):
		result = sonde("agent", "--print-config", "--" + option, "hunter" if option.endswith("tion") else "hunter: hunter", want=0)
		check_equal([line for line in result.out.splitlines(True) if "hunter" in line or option in line], [shown], option)


@test
def settings():
	for args, want in (("http://user:word@host",), "no passwords"), (("host:4040",), "is no address"), (("http://h", "--pyroscope-label", "a-b=c"), "is no label"), (("http://h", "--pyroscope-label", "a"), "is no label"):
		result = sonde("agent", "--print-config", "--pyroscope", *args, want=2)
		check(want in result.err and "word@" not in result.err, lambda: str(result)) # pylint: disable=cell-var-from-loop
	result = sonde("agent", "--print-config", env=dict(os.environ, SONDE_PYROSCOPE="http://h", SONDE_PYROSCOPE_HEADER="authorization: Basic secret"), want=0)
	check("secret" not in result.out + result.err and "pyroscope: 'http://h'\n" in result.out and "# pyroscope-header: 'authorization: ...'" in result.out, lambda: str(result))


run_tests()
