#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde agent --otlp and the OpenTelemetry Collector 0.139 itself, which has opentelemetry-proto 1.8 (built by its own builder from Go's module proxy, kept in ~/.cache/sonde-tests). It passes on
what it took to a double, whose samples are compared with the store's."""
import contextlib
import os
import socket
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from collectors import HttpCollector, counts, enlarge, free_port # noqa: E402
from foreign import CACHE, install # noqa: E402
from harness import Background, Program, check, check_equal, converted, fresh_folder, need_bpf, nr_samples, run_tests, scratch, test # noqa: E402

VERSION = "v0.139.0"
FOLDER = os.path.join(CACHE, "otelcol-" + VERSION)
MANIFEST = """dist: {name: otelcol, output_path: %s, version: 0.0.1}
receivers: [{gomod: go.opentelemetry.io/collector/receiver/otlpreceiver %s}]
exporters: [{gomod: go.opentelemetry.io/collector/exporter/otlphttpexporter %s}]
""" % (FOLDER, VERSION, VERSION)
SETTINGS = """receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:%d"}, http: {endpoint: "127.0.0.1:%d", max_request_body_size: 4000000}}}}
exporters: {otlphttp: {endpoint: "http://%s", retry_on_failure: {enabled: false}, sending_queue: {enabled: false}}}
service: {telemetry: {metrics: {level: none}}, pipelines: {%s: {receivers: [otlp], exporters: [otlphttp]}}}
"""


def collector():
	"""The program; building it takes two minutes."""
	os.makedirs(FOLDER, exist_ok=True)
	manifest = os.path.join(FOLDER, "manifest.yaml")
	with open(manifest, "w", encoding="ascii") as file:
		file.write(MANIFEST)
	go = {"GOBIN": FOLDER, "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"}
	builder = install(os.path.join(FOLDER, "builder"), "go", ["go", "install", "go.opentelemetry.io/collector/cmd/builder@" + VERSION], seconds=600, **go)
	return install(os.path.join(FOLDER, "otelcol"), "go", [builder, "--config", manifest], seconds=900, **go)


@contextlib.contextmanager
def running(behind, kind="profiles"):
	"""(address for gRPC, for HTTP) of a collector that passes on to the double."""
	program, ports, path = collector(), (free_port(), free_port()), scratch("settings.yaml")
	with open(path, "w", encoding="ascii") as file:
		file.write(SETTINGS % (*ports, behind.address, kind))
	with open(scratch("collector.log"), "w+", encoding="utf-8") as log, subprocess.Popen([program, "--config", path, "--feature-gates=" + ("+" if kind == "profiles" else "-") + "service.profilesSupport"], stdout=log, stderr=log) as process:
		try:
			until = time.monotonic() + 30
			while True:
				with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", ports[0]), 1), socket.create_connection(("127.0.0.1", ports[1]), 1):
					break
				log.seek(0)
				check(time.monotonic() < until and process.poll() is None, lambda: "the collector does not start: %s" % log.read()[-2000:])
				time.sleep(0.2)
			yield "127.0.0.1:%d" % ports[0], "http://127.0.0.1:%d" % ports[1]
		finally:
			process.kill()


def agent(folder, address, *args):
	return Background("agent", "--store", folder, "--window", 1, "-F", 97, "--otlp", address, *args)


def arrived(double):
	total = 0
	for number, (_, message) in enumerate(double.taken):
		path = scratch("message-%d.otlp" % number)
		with open(path, "wb") as file:
			file.write(message)
		total += nr_samples(converted("--from", "otlp", path))
	return total


def window_ids(folder):
	with sqlite3.connect(os.path.join(folder, "profiles.db")) as connection:
		return [row[0] for row in connection.execute("SELECT profile_id FROM window ORDER BY id")]


@test
def what_arrives_is_what_is_stored():
	"""By both protocols and with each compression."""
	need_bpf()
	collector()
	notes = []
	for protocol in 0, 1:
		for compression in "gzip", "zstd", "none":
			folder = fresh_folder("store")
			with HttpCollector() as double, running(double) as addresses, Program("chain"):
				with agent(folder, addresses[protocol], "--otlp-version", "1.8", "--otlp-compression", compression, 4) as sonde:
					result = sonde.finish()
			got = counts(result.err)
			check_equal((got["refused"], got["waiting"], got["tried again"], got["rejected in part"]), (0, 0, 0, 0), "%s: refused, waiting, tried again, rejected: %s" % (compression, result.err))
			samples = nr_samples(converted(folder))
			check_equal(arrived(double), samples, "samples behind the collector, and stored ones")
			check(all(b"\x42\x10" + window_id[:8] in message for window_id, (_, message) in zip(window_ids(folder), double.taken)), "profile ids, as field 8")
			notes.append("%s %s %d bytes" % (("grpc", "http")[protocol], compression, got["bytes"]))
	return ", ".join(notes)


@test
def another_version():
	"""It is recognised, the option is named, nothing is lost: with that option all arrives."""
	need_bpf()
	for protocol in 0, 1:
		folder = fresh_folder("other")
		with HttpCollector() as double, running(double) as addresses, Program("chain"):
			with agent(folder, addresses[protocol], 3) as sonde:
				result = sonde.finish()
			got = counts(result.err)
			check("; try --otlp-version 1.9 or 1.8" in result.err and got["waiting"] and not got["refused"] and not double.taken, lambda: str(result)) # pylint: disable=cell-var-from-loop
			with agent(folder, addresses[protocol], "--otlp-version", "1.8", 2) as sonde:
				result = sonde.finish()
			check_equal(counts(result.err)["waiting"], 0, "waiting")
			check_equal(arrived(double), nr_samples(converted(folder)), "samples behind the collector, and stored ones")


@test
def too_large():
	"""4 MB by gRPC, and by its settings over HTTP: parts of it arrive."""
	need_bpf()
	for protocol in 0, 1:
		folder = fresh_folder("large")
		with Program("chain"), Background("agent", "--store", folder, "--window", 2, "-F", 97, 2) as sonde:
			sonde.finish()
		samples = enlarge(folder)
		with HttpCollector() as double, running(double) as addresses, Program("chain"):
			with agent(folder, addresses[protocol], "--otlp-version", "1.8", 1) as sonde:
				result = sonde.finish()
			got = counts(result.err)
			check(got["split"] == 1 and got["profiles"] >= 2 and not got["refused"] and not got["waiting"], lambda: str(result)) # pylint: disable=cell-var-from-loop
			check(arrived(double) >= samples, "samples behind the collector")


@test
def no_profiles():
	"""Without its gate it has none: that is said, and they wait."""
	need_bpf()
	for protocol in 0, 1:
		with HttpCollector() as double, running(double, "traces") as addresses, Program("chain"):
			with agent(fresh_folder("gate"), addresses[protocol], 2) as sonde:
				result = sonde.finish()
		check("service.profilesSupport" in result.err and counts(result.err)["waiting"] and not counts(result.err)["refused"], lambda: str(result)) # pylint: disable=cell-var-from-loop


if __name__ == "__main__":
	run_tests(seconds=900)
