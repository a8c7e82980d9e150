#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Labels that say what a process belongs to, in the agent's store and in what it delivers: each process has its own or none, and nothing of an environment leaves that
was not asked for."""
import contextlib
import gzip
import http.server
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from collectors import unpacked # noqa: E402
from harness import Background, Program, build, check, check_equal, converted, fresh_folder, load_json, need_bpf, run_tests, scratch, sonde, test # noqa: E402
from own_cgroups import OwnCgroups # noqa: E402

SECRET = "hunter2-hunter2"
CONTAINER = "0123456789abcdef" * 4
POD = "7c2f8a3e-1234-4bcd-9876-0123456789ab"
KEYS = ("service.name", "process.executable.name", "container.id", "k8s.pod.uid", "process.linux.cgroup")


def labelled(name, *args, cgroup=None, path=None, **environment):
	"""The program `named`, in an environment of its own and if need be in a cgroup."""
	words = [path or build("named")]
	words = ["env", "-i", *("%s=%s" % item for item in environment.items()), *words]
	if cgroup:
		words = ["sh", "-c", 'echo $$ >"$0/cgroup.procs"; exec "$@"', cgroup, *words]
	return Program("named", name, *args, path=words)


def agent(folder, *args):
	return Background("agent", "--store", folder, "--window", 1, "-F", 97, *args)


def labels_of(sample):
	return {key: text for key, text in sample.get("labels", ())}


def of_pid(report, pid):
	return [labels_of(sample) for sample in report["samples"] if sample["pid"] == pid]


class Collector:
	"""Takes all that is sent. .bodies"""

	def __enter__(self):
		self.bodies = bodies = []

		class Handler(http.server.BaseHTTPRequestHandler):
			def do_POST(self): # noqa: N802
				bodies.append(gzip.decompress(self.rfile.read(int(self.headers["content-length"]))))
				self.send_response(200)
				self.send_header("content-length", "0")
				self.end_headers()

			def log_message(self, *args): # pylint: disable=arguments-differ
				pass

		self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
		threading.Thread(target=self.server.serve_forever, daemon=True).start()
		self.address = "http://127.0.0.1:%d" % self.server.server_address[1]
		return self

	def __exit__(self, *exc):
		self.server.shutdown()
		self.server.server_close()


def all_bytes(folder, collector):
	"""All that left sonde: the files of the store, its unpacked windows, the messages."""
	with sqlite3.connect(os.path.join(folder, "profiles.db")) as connection:
		parts = [unpacked(body) for (body,) in connection.execute("SELECT body FROM window")]
	for name in os.listdir(folder):
		with open(os.path.join(folder, name), "rb") as file:
			parts.append(file.read())
	return b"\n".join(parts + collector.bodies)


def resources(report):
	"""[(attributes, number of samples)] of OTLP's JSON."""
	def attributes(resource):
		return {entry["key"]: str(next(iter(entry["value"].values()))) for entry in resource["attributes"]}
	return [(attributes(entry["resource"]), sum(int(value) for profile in entry["scopeProfiles"][0]["profiles"] for sample in profile["samples"] for value in sample["values"]))
		for entry in report["resourceProfiles"]]


@test
def services_and_variables():
	need_bpf()
	folder = fresh_folder("services")
	with contextlib.ExitStack() as stack:
		collector = stack.enter_context(Collector())
		shop = stack.enter_context(labelled("shop", REGIONAL=SECRET, OTEL_SERVICE_NAME="shop", REGION="north", PASSWORD=SECRET))
		cart = stack.enter_context(labelled("cart", OTEL_RESOURCE_ATTRIBUTES="a=%s,service.name=the%%20cart" % SECRET, REGION="south\n" + "x" * 300))
		bare = stack.enter_context(labelled("bare"))
		result = stack.enter_context(agent(folder, "--otlp", collector.address, "--env", "REGION,ABSENT", "--env", "ZONE", 4)).finish()
	check_equal(result.code, 0, "exit")
	report = converted(folder)
	for program, service, region in (shop, "shop", "north"), (cart, "the cart", "south?" + "x" * 246 + "..."), (bare, None, None):
		found = of_pid(report, program.pid)
		check(len(found) > 5 and all(labels == found[0] for labels in found), lambda: "labels of %s: %s" % (service, found)) # pylint: disable=cell-var-from-loop
		check_equal(found[0].get("process.environment_variable.REGION"), region, "REGION of %s" % service)
		check_equal(found[0]["process.executable.name"], "named", "executable")
		check(service in (None, found[0]["service.name"]), lambda: "the service is %s" % found[0]["service.name"]) # pylint: disable=cell-var-from-loop
		check_equal(sorted(set(found[0]) - set(KEYS)), ["process.environment_variable.REGION"] if region else [], "other labels")
	data = all_bytes(folder, collector)
	check(SECRET.encode() not in data, "a variable that nobody asked for left sonde")
	for text in b"shop", b"the cart", b"north", b"process.environment_variable.REGION":
		check(text in data and any(text in body for body in collector.bodies), lambda: "%s is not there" % text) # pylint: disable=cell-var-from-loop
	path = scratch("services.otlp.json")
	sonde("convert", folder, path, want=0)
	found = resources(load_json(path))
	for program, service in (shop, "shop"), (cart, "the cart"):
		mine = [(attributes, nr) for attributes, nr in found if attributes["process.pid"] == str(program.pid)]
		check_equal([(attributes["service.name"], attributes["process.executable.name"], "host.name" in attributes) for attributes, _ in mine], [(service, "named", True)], "resources")
		check_equal(mine[0][1], sum(sample["values"][0] for sample in report["samples"] if sample["pid"] == program.pid), "samples of the resource")
	again = converted("--from", "otlp-json", path)
	check(all(labels["service.name"] == "shop" for labels in of_pid(again, shop.pid)) and of_pid(again, shop.pid), "the attributes of a resource are labels when it is read")
	by_label = sonde("show", "--by", "label", folder, want=0).out
	check(re.search(r"service\.name=shop  \(\d+ % named_leaf\)", by_label) and "service.name=the cart" in by_label, lambda: by_label)


@contextlib.contextmanager
def kubelet_log(name):
	"""A link as the kubelet makes it, for the time of a test."""
	path = "/var/log/containers/" + name
	made = not os.path.exists(os.path.dirname(path))
	os.makedirs(os.path.dirname(path), exist_ok=True)
	os.symlink("/nowhere", path)
	try:
		yield
	finally:
		os.unlink(path)
		if made:
			os.rmdir(os.path.dirname(path))


@test
def containers():
	"""Cgroups that are named as Docker and the kubelet name theirs."""
	pod = "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod%s.slice" % POD.replace("-", "_")
	folders = ("docker", "docker/" + CONTAINER, "web.service", *("/".join(pod.split("/")[:i]) for i in (1, 2, 3)), pod + "/cri-containerd-%s.scope" % CONTAINER[::-1])
	groups = OwnCgroups(*folders)
	folder = fresh_folder("containers")
	with contextlib.ExitStack() as stack:
		def in_group(name, **environment):
			return stack.enter_context(labelled("in_group", cgroup=os.path.join(groups.path, name), **environment))
		stack.enter_context(kubelet_log("cart-7d4-x_shop_web-%s.log" % CONTAINER[::-1]))
		docker, kubernetes, unit = in_group(folders[1]), in_group(folders[-1]), in_group("web.service")
		stack.enter_context(agent(folder, 3)).finish()
	report = converted(folder)
	for program, name, want in ((docker, folders[1], {"service.name": CONTAINER[:12], "container.id": CONTAINER}), (unit, "web.service", {"service.name": "web.service"}),
			(kubernetes, folders[-1], {"service.name": "web", "container.id": CONTAINER[::-1], "k8s.pod.uid": POD, "k8s.pod.name": "cart-7d4-x", "k8s.namespace.name": "shop", "k8s.container.name": "web"})):
		found = of_pid(report, program.pid)
		path = "/%s/%s" % (groups.name, name)
		want = dict(want, **{"process.executable.name": "named", "process.linux.cgroup": path})
		check(len(found) > 5, lambda: "%d samples" % len(found)) # pylint: disable=cell-var-from-loop
		check(all(labels == want for labels in found), lambda: "labels are %s, not %s" % (found[0], want)) # pylint: disable=cell-var-from-loop


@test
def an_exec_changes_them():
	"""Samples from before it have the labels of the old program, those from after it the new one's."""
	need_bpf()
	folder = fresh_folder("exec")
	shell = 'i=0; while [ $i -lt 2000000 ]; do i=$((i+1)); done; OTEL_SERVICE_NAME=second exec "$0" 60 second'
	with agent(folder, 12).wait_line("Sampling") as running:
		time.sleep(0.5)
		with subprocess.Popen(["sh", "-c", shell, build("named")], env={"OTEL_SERVICE_NAME": "first"}, stdout=subprocess.DEVNULL) as program:
			running.finish()
			program.kill()
	report = converted(folder)
	seen = {}
	for sample in report["samples"]:
		if sample["pid"] == program.pid:
			pair = (sample["comm"], labels_of(sample).get("service.name"))
			seen[pair] = seen.get(pair, 0) + sample["values"][0]
	wrong = [pair for pair in seen if pair not in (("sh", "first"), ("second", "second"), ("named", "second")) and pair[1]]
	check(not wrong, lambda: "services by name: %s" % seen)
	check(seen.get(("sh", "first"), 0) > 20 and seen.get(("second", "second"), 0) > 20, lambda: "services by name: %s" % seen)
	path = scratch("exec.otlp.json")
	sonde("convert", folder, path, want=0)
	mine = [attributes["service.name"] for attributes, _ in resources(load_json(path)) if attributes["process.pid"] == str(program.pid) and "service.name" in attributes]
	check_equal(sorted(mine), ["first", "second"], "resources of the process")


@test
def waits():
	"""Sums of waits and shares of the clock's time have the labels of their process; one that runs a second program in a window has none, or the second's, afterwards."""
	need_bpf()
	waits = "while True: time.sleep(0.01); sum(range(2000))"
	script = "import os, sys, time\nif len(sys.argv) < 2:\n\tend = time.time() + 3\n\twhile time.time() < end: time.sleep(0.01); sum(range(2000))\n" \
		"\tos.execve(sys.executable, [sys.executable, '-c', %r], {'OTEL_SERVICE_NAME': 'second'})\n" % ("import time\n" + waits)
	for measure in "offcpu", "wall":
		folder = fresh_folder("waits")
		with Background("agent", "--store", folder, "--window", 1, "--measure", measure, "--env", "COLOUR", 12).wait_line("Sampling") as running:
			with subprocess.Popen([sys.executable, "-c", "import time\n" + waits], env={"OTEL_SERVICE_NAME": "waiter", "COLOUR": "green"}) as waiter, \
					subprocess.Popen([sys.executable, "-c", script], env={"OTEL_SERVICE_NAME": "first"}) as changes:
				running.finish()
				waiter.kill()
				changes.kill()
		report = converted(folder)
		values = {True: 0, False: 0} # with labels, and without: those of its first window, as it began with an exec
		for sample in report["samples"]:
			if sample["pid"] == waiter.pid:
				labels = labels_of(sample)
				values[bool(labels)] += sample["values"][0]
				check(not labels or (labels["service.name"], labels["process.environment_variable.COLOUR"]) == ("waiter", "green"), lambda: "%s: %s" % (measure, labels)) # pylint: disable=cell-var-from-loop
		check(values[True] > values[False], lambda: "%s: %s with labels and without" % (measure, values)) # pylint: disable=cell-var-from-loop
		services = {each.get("service.name") for each in of_pid(report, changes.pid)}
		check({"first", "second"} <= services <= {"first", "second", None}, lambda: "%s: %s" % (measure, services)) # pylint: disable=cell-var-from-loop


@test
def a_first_thread_that_ended():
	"""Before the start: the other threads' samples have labels."""
	need_bpf()
	folder = fresh_folder("leaderless")
	with subprocess.Popen([build("leaderless"), "0"], env={"OTEL_SERVICE_NAME": "goes-on"}) as program:
		try:
			time.sleep(0.5)
			with agent(folder, 3) as running:
				running.finish()
		finally:
			program.kill()
	labels = of_pid(converted(folder), program.pid)
	check(len(labels) > 1 and all((each.get("service.name"), each.get("process.executable.name")) == ("goes-on", "leaderless") for each in labels), lambda: str(labels))


@test
def brief_processes():
	"""Each sample has its own process's labels, or none; those without are counted."""
	need_bpf()
	folder = fresh_folder("brief")
	services = {}
	with Background("agent", "--store", folder, "--window", 2, "-F", 997).wait_line("Sampling") as running:
		for number in range(200):
			shell = "i=0; while [ $i -lt %d ]; do i=$((i+1)); done" % (1000 * (1 + number % 20))
			with subprocess.Popen(["/bin/sh", "-c", shell], env={"OTEL_SERVICE_NAME": "brief-%d" % number}) as process:
				services[process.pid] = "brief-%d" % number
		running.send(15)
		running.finish()
	report = converted(folder)
	counts = {True: 0, False: 0}
	for sample in report["samples"]:
		if sample["pid"] in services and sample["comm"] == "sh":
			service = labels_of(sample).get("service.name")
			check(service in (None, services[sample["pid"]]), lambda: "%s, not %s" % (service, services[sample["pid"]])) # pylint: disable=cell-var-from-loop
			counts[service is not None] += sample["values"][0]
	without = sum(sample["values"][0] for sample in report["samples"] if sample["pid"] and not labels_of(sample))
	lost = int(report["account"]["labels_missed"])
	check(counts[True] > 100 and counts[True] > counts[False], lambda: "samples with and without labels: %s" % counts)
	check(counts[False] <= lost <= without, lambda: "%d samples have no labels, %d of brief processes; %d are counted" % (without, counts[False], lost))


@test
def hostile_names():
	"""An executable's name of 255 bytes, and a service's name with anything in it."""
	need_bpf()
	folder, files = fresh_folder("hostile"), fresh_folder("files")
	name = bytes(byte for byte in range(1, 256) if byte != ord("/")) + b"\x1b"
	path = os.path.join(os.fsencode(files), name)
	shutil.copy(build("named"), path)
	# a shell's words: `env` would take a name with = in it for a variable
	words = ["sh", "-c", 'export OTEL_SERVICE_NAME="$0"; exec "$@"', "a\nb;c\x1b[31m\u202e" + "\u00e4" * 200, path]
	with Program("named", "hostile", path=words) as program, agent(folder, 3) as running:
		running.finish()
	report = converted(folder)
	found = of_pid(report, program.pid)
	check(len(found) > 5 and all(labels == found[0] for labels in found), lambda: "labels: %s" % found)
	executable, service = found[0]["process.executable.name"], found[0]["service.name"]
	check_equal((len(executable), executable[:32], executable[-3:]), (127, "?" * 31 + " ", "..."), "executable")
	check_equal(service, "a?b;c?[31m?" + "\u00e4" * 56 + "...", "service")
	out = sonde("show", "--by", "label", folder, want=0).out
	check(not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", out), lambda: repr(out))
	for suffix in "folded", "pb.gz", "otlp", "otlp.json", "html", "txt", "jsonl", "speedscope.json", "perf", "svg":
		sonde("convert", folder, scratch("hostile." + suffix), want=0)


@test
def settings():
	for words, want in (["--env", "A=B"], "'A=B' is no name of a variable"), (["--env", "A,"], "is no name"), (["--env", ",".join("N%d" % i for i in range(17))], "16 variables"), \
			(["--env", "X" * 64], "is no name"):
		result = sonde("agent", "--store", fresh_folder("settings"), *words, 1)
		check(result.code not in (0, None) and want in result.err, lambda: str(result)) # pylint: disable=cell-var-from-loop
	printed = sonde("agent", "--env", "A,B", "--env", "C", "--print-config", want=0).out
	check("env: ['A,B', 'C']" in printed, lambda: printed)
	path = scratch("agent.yaml")
	with open(path, "w", encoding="utf-8") as file:
		file.write(printed)
	check_equal(sonde("agent", "--config", path, "--print-config", want=0).out, printed, "the printed settings, read again")
	check("env: ['D']" in sonde("agent", "--config", path, "--print-config", env=dict(os.environ, SONDE_ENV="D"), want=0).out, "the environment goes before the file")


run_tests()
