#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde agent --parca and --clickhouse: every window that is stored arrives, whatever the server answers meanwhile. The real ClickHouse, in a process, is asked by ./test --backends."""
import base64
import json
import os
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from collectors import GrpcDouble, HttpCollector, counts # noqa: E402
from harness import Background, Program, check, check_equal, converted, fresh_folder, need_bpf, nr_samples, run_tests, scratch, sonde, test # noqa: E402


def agent(folder, *args):
	return Background("agent", "--store", folder, "--window", 1, "-F", 97, *args)


@test
def parca():
	need_bpf()
	folder = fresh_folder("parca")
	with GrpcDouble("parca_double.py", 0) as server, Program("chain"):
		server.set(refuse=["UNAVAILABLE", "UNAUTHENTICATED"])
		with agent(folder, "--parca", server.address, "--parca-label", "zone=a", "--parca-header", "authorization: Bearer me", 10) as running:
			result = server.finish(running)
	got, samples = counts(result.err, r"parca:\S+"), 0
	check_equal((got["waiting"], got["profiles"]), (0, len(server.calls)), "waiting, delivered")
	for number, call in enumerate(server.calls):
		path = scratch("parca-%d" % number)
		with open(path, "wb") as file:
			file.write(base64.b64decode(call["profile"]))
		samples += nr_samples(converted("--from", "pprof", path))
		check_equal(call["labels"], [["__name__", "sonde"], ["node", socket.gethostname()], ["zone", "a"]], "labels, by name") # as Prometheus wants them
		check_equal(call["metadata"]["authorization"], "Bearer me", "the header")
	check_equal(samples, nr_samples(converted(folder)), "samples that arrived, and stored ones")
	check_equal((got["waiting"], got["refused"], got["tried again"], got["profiles"]), (0, 0, 2, len(server.calls)), "waiting, refused, tried again, delivered")
	check("gRPC status 14: it is UNAVAILABLE" in result.err and "takes profiles again" in result.err and "Bearer" not in result.err, lambda: str(result))


@test
def what_parca_refuses():
	"""It is counted, and the next one follows."""
	need_bpf()
	folder = fresh_folder("refused")
	with GrpcDouble("parca_double.py", 0) as server, Program("chain"):
		server.set(refuse=["INVALID_ARGUMENT"])
		with agent(folder, "--parca", server.address, 4) as running:
			result = server.finish(running)
	got = counts(result.err, r"parca:\S+")
	check_equal((got["refused"], got["waiting"], got["profiles"]), (1, 0, len(server.calls)), "refused, waiting, delivered")


@test
def clickhouse():
	"""Each line has the window and the host; the values are the store's."""
	need_bpf()
	folder = fresh_folder("clickhouse")
	with HttpCollector([404, 503, "reset"]) as server, Program("chain") as program:
		with agent(folder, "--clickhouse", "http://%s" % server.address, "--clickhouse-header", "X-ClickHouse-Key: word", 12) as running:
			result = running.finish()
	report = converted(folder)
	lines = [json.loads(line) for _, message in server.taken for line in message.splitlines()]
	check_equal(sum(value["value"] for line in lines for value in line["values"]), nr_samples(report), "samples that arrived, and stored ones")
	check(len({line["start_unix_ns"] for line in lines}) >= 5 and {line["host"] for line in lines} == {socket.gethostname()}, "windows and host")
	check(all(abs(int(line["start_unix_ns"]) / 1e9 - time.time()) < 100 and line["record"] == "sample" and 0 < line["window_ns"] < 3e9 for line in lines), "times")
	leaves = [line["stack"][0]["name"] for line in lines if line["pid"] == program.pid]
	check(leaves.count("leaf") > 0.9 * len(leaves), lambda: str(leaves))
	path, headers = server.headers[0]
	check_equal((path, headers["x-clickhouse-key" if "x-clickhouse-key" in headers else "X-ClickHouse-Key"], headers["content-encoding"]),
		("/?query=INSERT%20INTO%20sonde.lines%20FORMAT%20LineAsString", "word", "gzip"), "the request")
	got = counts(result.err, r"clickhouse:\S+")
	check_equal((got["waiting"], got["refused"]), (0, 0), "waiting, refused")
	check("HTTP 404" in result.err and "word" not in result.err, lambda: str(result))


@test
def addresses():
	for words in (["--parca", "http://host"], ["--parca", "grpc://host/path"], ["--clickhouse", "host"], ["--clickhouse", "grpc://host"], ["--clickhouse", "http://host/path"],
			["--clickhouse", "http://user:word@host"], ["--parca-label", "x", "--parca", "host"]):
		result = sonde("agent", *words, "--print-config", want=2)
		check("word@" not in result.err, lambda: str(result)) # pylint: disable=cell-var-from-loop


run_tests()
