#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde agent --otlp and gRPC's own library: a window beyond its limit of a message arrives in parts, with ids that stay; what a server asks for by RetryInfo; partial success."""
import collections
import os
import sqlite3
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from collectors import ENLARGED_BY, GrpcDouble, HttpCollector, counts, enlarge # noqa: E402
from foreign import python_packages # noqa: E402
from harness import Background, Program, check, check_equal, converted, fresh_folder, need_bpf, nr_samples, run_tests, scratch, test # noqa: E402

LIMIT = 4 << 20
NAME_CHARACTERS = 115 # of those of `enlarge`


def agent(folder, address, *args):
	return Background("agent", "--store", folder, "--window", 1, "-F", 97, "--otlp", address, *args)


def recorded(name):
	"""A store with a window."""
	folder = fresh_folder(name)
	with Program("chain"), Background("agent", "--store", folder, "--window", 2, "-F", 97, 2) as running:
		running.finish()
	return folder


def taken(server):
	return [call for call in server.calls if call["answer"] == "OK" or isinstance(call["answer"], int)]


def messages(calls):
	"""The calls' messages, by opentelemetry-proto's own classes."""
	python_packages()
	from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 # pylint: disable=import-outside-toplevel
	for call in calls:
		request = profiles_service_pb2.ExportProfilesServiceRequest()
		with open(call["path"], "rb") as file:
			request.ParseFromString(file.read())
		yield request


def profiles_of(request):
	return [profile for resource in request.resource_profiles for scope in resource.scope_profiles for profile in scope.profiles]


def window_ids(folder):
	with sqlite3.connect(os.path.join(folder, "profiles.db")) as connection:
		return [row[0] for row in connection.execute("SELECT profile_id FROM window ORDER BY id")]


def node(window_id, profile_id):
	"""The number of the message's part, which makes its ids."""
	return int.from_bytes(window_id[8:12], "big") ^ int.from_bytes(profile_id[8:12], "big")


@test
def a_window_beyond_the_limit():
	"""It arrives in parts: nothing is lost, nothing is twice, the ids are those that are documented."""
	need_bpf()
	folder = recorded("large")
	samples = enlarge(folder)
	before = window_ids(folder)[0]
	with GrpcDouble("otlp_double.py", 0, fresh_folder("arrived")) as server, Program("chain"):
		with agent(folder, server.address, 4) as running:
			result = server.finish(running)
	got = counts(result.err)
	check_equal((got["refused"], got["waiting"], got["split"], got["profiles"]), (0, 0, 1, len(server.calls)), "refused, waiting, split, delivered")
	check(result.err.count("is too large for it, its parts are sent: gRPC status 8") == 1, lambda: str(result))
	sizes = [os.path.getsize(call["path"]) for call in server.calls]
	check(max(sizes) < LIMIT < sum(sizes), lambda: str(sizes))
	requests = list(messages(server.calls))
	parts = [request for request in requests if profiles_of(request)[0].profile_id[:8] == before[:8]]
	check(len(parts) >= 2 and sum(sum(sample.values) for request in parts for profile in profiles_of(request) for sample in profile.samples) == samples, lambda: "%d parts" % len(parts))
	names = collections.Counter(request.dictionary.string_table[request.dictionary.function_table[line.function_index].name_strindex] for request in parts for profile in profiles_of(request)
		for sample in profile.samples for place in request.dictionary.stack_table[sample.stack_index].location_indices for line in request.dictionary.location_table[place].lines)
	check(sum(1 for name, nr in names.items() if len(name) == NAME_CHARACTERS and nr == 1) == ENLARGED_BY, "each function of the window is in one sample of one part")
	nodes = [node(before, profiles_of(request)[0].profile_id) for request in parts]
	check(nodes == sorted(nodes, key=lambda n: n / 2 ** n.bit_length()) and 1 not in nodes and sum(2.0 ** (1 - n.bit_length()) for n in nodes) == 1, lambda: "the tree's nodes: %s" % nodes)
	ids = [profile.profile_id for request in requests for profile in profiles_of(request)]
	check_equal(len(set(ids)), len(ids), "different ids, and profiles")
	total = sum(nr_samples(converted("--from", "otlp", call["path"])) for call in server.calls)
	check_equal(total, nr_samples(converted(folder)), "samples that arrived, and stored ones")
	return "%d bytes in %d messages of up to %d" % (sum(sizes), len(server.calls), max(sizes))


@test
def parts_keep_their_ids():
	"""What arrives again after a failure and another agent is the same, with the same id; one agent does not begin again with the first part."""
	need_bpf()
	folder = recorded("again")
	samples = enlarge(folder)
	with GrpcDouble("otlp_double.py", 0, fresh_folder("once")) as server:
		server.set(answers=["OK"] + 9 * [["UNAVAILABLE", 600]])
		with agent(folder, server.address, 1) as running:
			result = server.finish(running)
	check_equal((counts(result.err)["profiles"], len(taken(server))), (1, 1), "profiles delivered, and taken")
	check(counts(result.err)["waiting"] >= 1, lambda: str(result))
	with GrpcDouble("otlp_double.py", 0, fresh_folder("twice")) as more:
		more.set(answers=["OK", "UNAVAILABLE"])
		with sqlite3.connect(os.path.join(folder, "profiles.db")) as connection:
			connection.execute("UPDATE destination SET name = ?", (more.address,))
			connection.execute("DELETE FROM window WHERE id > 1")
		with agent(folder, more.address, 5) as running:
			result = more.finish(running)
	check_equal(counts(result.err)["waiting"], 0, "waiting")
	with open(server.calls[0]["path"], "rb") as old, open(more.calls[0]["path"], "rb") as new:
		check(old.read() == new.read(), "the first part is another one")
	with open(more.calls[1]["path"], "rb") as old, open(more.calls[2]["path"], "rb") as new:
		check(old.read() == new.read(), "the second part comes again")
	total = sum(nr_samples(converted("--from", "otlp", call["path"])) for call in taken(more))
	check_equal(total, nr_samples(converted(folder)), "samples that arrived, and stored ones")
	check(total > samples, "windows of the second agent")


@test
def a_sample_beyond_the_limit():
	"""It is refused and counted; the others of its window arrive."""
	need_bpf()
	folder = recorded("one")
	samples = enlarge(folder, 110, 52000, 110)
	with GrpcDouble("otlp_double.py", 0, fresh_folder("arrived")) as server:
		with agent(folder, server.address, 1) as running:
			result = server.finish(running)
	got = counts(result.err)
	check_equal((got["refused"], got["waiting"], got["split"]), (1, 0, 1), "refused, waiting, split")
	total = sum(nr_samples(converted("--from", "otlp", call["path"])) for call in server.calls)
	check_equal(total, nr_samples(converted(folder)) - 2, "samples that arrived, and stored ones without the large one")
	check(samples > 100, "samples")


@test
def over_http():
	"""413 is a matter of size as well."""
	need_bpf()
	folder = recorded("http")
	with HttpCollector([413, "ok", 413]) as collector, Program("chain"):
		with agent(folder, "http://" + collector.address, 1) as running:
			result = running.finish()
	got = counts(result.err)
	check_equal((got["refused"], got["waiting"]), (0, 0), "refused, waiting")
	total = 0
	for number, (_, message) in enumerate(collector.taken):
		with open(scratch("http-%d" % number), "wb") as file:
			file.write(message)
		total += nr_samples(converted("--from", "otlp", scratch("http-%d" % number)))
	check_equal(total, nr_samples(converted(folder)), "samples that arrived, and stored ones")
	check_equal(len(collector.taken), got["profiles"], "messages")


@test
def retry_info():
	"""The pause is what the server asks for, if that is more than ours; RESOURCE_EXHAUSTED with it is no refusal."""
	need_bpf()
	folder = recorded("retry")
	with GrpcDouble("otlp_double.py", 0, fresh_folder("arrived")) as server:
		server.set(answers=[["UNAVAILABLE", 4.5], ["RESOURCE_EXHAUSTED", 3]])
		with agent(folder, server.address, "--window", 60, 20) as running:
			result = server.finish(running)
	got = counts(result.err)
	pauses = [after["time"] - before["time"] for before, after in zip(server.calls, server.calls[1:])]
	check_equal((got["refused"], got["waiting"], got["tried again"]), (0, 0, 2), "refused, waiting, tried again")
	check(4.5 <= pauses[0] < 8 and pauses[1] >= 3, lambda: "pauses %s" % pauses)


@test
def partial_success():
	need_bpf()
	folder = recorded("partial")
	with GrpcDouble("otlp_double.py", 0, fresh_folder("arrived")) as server:
		server.set(answers=[7])
		with agent(folder, server.address, 1) as running:
			result = server.finish(running)
	got = counts(result.err)
	check_equal((got["rejected in part"], got["refused"], got["profiles"]), (7, 0, len(server.calls)), "rejected, refused, delivered")
	check("of a message 7 profiles are rejected: not these" in result.err, lambda: str(result))


run_tests()
