#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde agent --skywalking and Apache SkyWalking's own OAP server 10.1.0, from Maven Central (137 MB, kept in ~/.cache/sonde-tests), with H2 as its data base. Tasks are made by its
GraphQL, and what it shows is compared with what sonde says that it sent, and with what the programs did."""
import base64
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from collectors import free_port # noqa: E402
from harness import Background, Program, check, check_equal, cpu_seconds, find_tool, fresh_folder, need_bpf, run, run_tests, skip, test # noqa: E402

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "sonde-tests", "oap-10.1.0")
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>t</groupId><artifactId>oap</artifactId><version>1</version>
<dependencies><dependency><groupId>org.apache.skywalking</groupId><artifactId>server-starter</artifactId><version>10.1.0</version></dependency></dependencies></project>
"""
# Settings of our own, as few as it starts with: loopback, H2 in a file, the eBPF receiver.
APPLICATION = """cluster: {selector: standalone, standalone: }
core: {selector: default, default: {role: Mixed, restHost: 127.0.0.1, restPort: %d, restContextPath: /, gRPCHost: 127.0.0.1, gRPCPort: %d, downsampling: [Hour, Day], persistentPeriod: 2}}
storage:
  selector: h2
  h2:
    properties: {jdbcUrl: "jdbc:h2:file:%s;DB_CLOSE_DELAY=-1;DATABASE_TO_UPPER=FALSE", dataSource.user: sa}
    metadataQueryMaxSize: 5000
    maxSizeOfBatchSql: 100
    asyncBatchPersistentPoolSize: 1
agent-analyzer: {selector: default, default: {meterAnalyzerActiveFiles: ""}}
log-analyzer: {selector: default, default: {lalFiles: "", malFiles: ""}}
event-analyzer: {selector: default, default: }
receiver-sharing-server: {selector: default, default: {restHost: 127.0.0.1, gRPCHost: 127.0.0.1}}
receiver-register: {selector: default, default: }
receiver-meter: {selector: default, default: }
receiver-ebpf: {selector: default, default: {continuousPolicyCacheTimeout: 2}}
query: {selector: graphql, graphql: {enableLogTestTool: false}}
alarm: {selector: default, default: }
telemetry: {selector: none, none: }
configuration: {selector: none, none: }
ai-pipeline: {selector: default, default: }
"""
FILES = {"alarm-settings.yml": "rules: {}\n", "component-libraries.yml": "Unknown: {id: 0, languages: Java}\n", "endpoint-name-grouping.yml": "grouping: []\n", "gateways.yml": "gateways: []\n",
	"service-apdex-threshold.yml": "default: 500\n", "trace-sampling-policy-settings.yml": "default: {rate: 10000, duration: -1}\nservices: []\n",
	"log4j2.xml": '<Configuration><Appenders><Console name="c"><PatternLayout pattern="%d %c{1} %p %m%n"/></Console></Appenders><Loggers><Root level="WARN"><AppenderRef ref="c"/></Root></Loggers></Configuration>\n'}
OAL = ("browser", "cilium", "core", "disable", "dotnet-agent", "ebpf", "java-agent", "mesh", "tcp")
SECONDS = 60 # the server refuses shorter tasks
PYTHON = "import time\ndef leaf(n):\n x = 0\n for i in range(n): x += i * i\n return x\ndef work():\n return leaf(20000)\ndef main():\n while True: work()\nmain()\n"
JAVA = """class Deep {
	static long sum;
	static long leaf(int n) { long x = 0; for (int i = 0; i < n; i++) x += (long) i * i ^ x >> 3; return x; }
	static void work() { sum += leaf(20000); }
	public static void main(String[] words) { while (true) work(); }
}
"""
SLEEPER = "import os, time\ndef nap(): time.sleep(0.02)\ndef main():\n while True: nap()\nmain()\n"
SCHEDULES = "query($t:ID!){s:queryEBPFProfilingSchedules(taskId:$t){scheduleId process{name} startTime endTime}}"
ANALYSE = ("query($s:[ID!]!,$t:[EBPFProfilingAnalyzeTimeRange!]!,$a:EBPFProfilingAnalyzeAggregateType){r:analysisEBPFProfilingResult(scheduleIdList:$s,timeRanges:$t,aggregateType:$a)"
	"{tip trees{elements{id parentId symbol stackType dumpCount}}}}")
CREATE = "mutation($r:EBPFProfilingTaskFixedTimeCreationRequest!){t:createEBPFProfilingFixedTimeTask(request:$r){status errorReason id}}"


def libraries():
	"""The server's jars."""
	if not os.path.exists(os.path.join(CACHE, "whole")):
		if not find_tool("mvn") or not find_tool("java"):
			skip("no mvn, or no java")
		os.makedirs(CACHE, exist_ok=True)
		with open(os.path.join(CACHE, "pom.xml"), "w", encoding="ascii") as file:
			file.write(POM)
		fetched = run(["mvn", "-q", "-B", PLUGIN, "-DoutputDirectory=lib", "-DincludeScope=runtime"], cwd=CACHE, timeout=900)
		if fetched.code:
			skip("Maven does not give the server: %s" % fetched.out[-300:])
		with open(os.path.join(CACHE, "whole"), "w", encoding="ascii"):
			pass
	return os.path.join(CACHE, "lib")


class Oap:
	"""The server; may be killed and started again on the same ports and data."""

	def __init__(self):
		self.libraries, self.folder = libraries(), fresh_folder("oap")
		self.rest, self.grpc = free_port(), free_port()
		self.process = None
		os.makedirs(os.path.join(self.folder, "oal"))
		os.makedirs(os.path.join(self.folder, "openapi-definitions"))
		for name, text in {**FILES, "application.yml": APPLICATION % (self.rest, self.grpc, os.path.join(self.folder, "data")), **{"oal/%s.oal" % name: "// none\n" for name in OAL}}.items():
			with open(os.path.join(self.folder, name), "w", encoding="ascii") as file:
				file.write(text)

	def start(self):
		with open(os.path.join(self.folder, "log"), "ab") as log:
			self.process = subprocess.Popen(["java", "-Xms256m", "-Xmx1g", "-Dmode=", "-cp", "%s:%s/*" % (self.folder, self.libraries), "org.apache.skywalking.oap.server.starter.OAPServerStartUp"], stdout=log, stderr=log)
		until = time.monotonic() + 180
		while True:
			with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.grpc), 1), socket.create_connection(("127.0.0.1", self.rest), 1):
				return
			check(time.monotonic() < until and self.process.poll() is None, self.log)
			time.sleep(0.5)

	def kill(self):
		self.process.kill()
		self.process.wait()

	def log(self):
		with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as file:
			return "the server does not start:\n%s" % file.read()[-3000:]

	def __enter__(self):
		self.start()
		return self

	def __exit__(self, *exc):
		self.kill()

	def ask(self, query, **variables):
		request = urllib.request.Request("http://127.0.0.1:%d/graphql" % self.rest, json.dumps({"query": query, "variables": variables}).encode(), {"Content-Type": "application/json"})
		with urllib.request.urlopen(request, timeout=30) as answer:
			return json.load(answer)

	def create(self, service, label, target):
		"""Makes a task as soon as the server knows the service; returns its id."""
		until = time.monotonic() + 60
		while True:
			answer = self.ask(CREATE, r={"serviceId": base64.b64encode(service.encode()).decode() + ".1", "processLabels": [label], "startTime": 0, "duration": SECONDS, "targetType": target})
			task = (answer.get("data") or {}).get("t") or {}
			if task.get("status"):
				return task["id"]
			check(time.monotonic() < until, lambda: "no task: %s" % answer) # pylint: disable=cell-var-from-loop
			time.sleep(2)

	def trees(self, task, by):
		"""The elements of what the server shows for a task: id -> element."""
		schedules = self.ask(SCHEDULES, t=task)["data"]["s"]
		check(schedules, "the server has no schedule of the task")
		now = int(time.time() * 1000)
		answer = self.ask(ANALYSE, s=[each["scheduleId"] for each in schedules], t=[{"start": now - 600000, "end": now + 60000}], a=by)
		return [{element["id"]: element for element in tree["elements"]} for tree in answer["data"]["r"]["trees"]]


def total(trees):
	return sum(element["dumpCount"] for tree in trees for element in tree.values() if element["parentId"] not in tree)


def paths(tree):
	"""(symbols and kinds from the root, count) of what ends in each frame."""
	own = {number: element["dumpCount"] for number, element in tree.items()}
	for element in tree.values():
		if element["parentId"] in tree:
			own[element["parentId"]] -= element["dumpCount"]
	for number, element in tree.items():
		path = []
		while element:
			path.append((element["symbol"], element["stackType"]))
			element = tree.get(element["parentId"])
		yield path[::-1], own[number]


def agent(oap):
	return Background("agent", "--store", fresh_folder("store"), "--skywalking", "127.0.0.1:%d" % oap.grpc, "--skywalking-heartbeat", 3, "--skywalking-check", 3, stderr=subprocess.PIPE)


def service(name):
	return dict(os.environ, OTEL_SERVICE_NAME=name)


def wait_for_ends(running, tasks):
	"""Reads what the agent says until all tasks have ended; returns task -> samples that were sent."""
	sent, text = {}, ""
	until = time.monotonic() + SECONDS + 90
	os.set_blocking(running.process.stderr.fileno(), False)
	while set(sent) != set(tasks):
		check(time.monotonic() < until, lambda: "tasks did not end: %s" % text)
		text += (running.process.stderr.read() or b"").decode("utf-8", "replace")
		sent = {task: int(nr) for task, nr in re.findall(r"task (\w+), \w+ of process \d+: (\d+) \w+ sent; without a stack: 0, lost: 0, lost windows: 0", text) if task in tasks}
		time.sleep(0.5)
	time.sleep(6) # the server stores each two seconds
	return sent


def compiled_java():
	"""The folder of the class Deep."""
	folder = fresh_folder("java")
	with open(os.path.join(folder, "Deep.java"), "w", encoding="ascii") as file:
		file.write(JAVA)
	check_equal(run(["javac", "-d", folder, os.path.join(folder, "Deep.java")]).code, 0, "javac")
	return folder


def check_order(trees, chain, nr):
	"""Of these samples, nearly all have the chain's functions in their order, and kernel frames only above those of the user."""
	right = 0
	for path, count in [each for tree in trees for each in paths(tree)]:
		kinds = [kind for _, kind in path]
		check(kinds == sorted(kinds, reverse=True), lambda: "a kernel frame below one of the user: %s" % path) # pylint: disable=cell-var-from-loop
		right += count if [name for name, _ in path if name in chain] == chain else 0
	check(right > 0.95 * nr, lambda: "%s stand in their order in %d of %d: %s" % (chain, right, nr, list(paths(trees[0]))[:3]))


@test
def tasks_of_both_kinds():
	need_bpf()
	python = os.path.realpath(find_tool("python3"))
	with Oap() as oap, subprocess.Popen([python, "-c", PYTHON], env=service("spinner")) as spinner, subprocess.Popen([python, "-c", SLEEPER], env=service("sleeper")) as sleeper, \
		subprocess.Popen(["java", "-cp", compiled_java(), "Deep"], env=service("deep")) as deep, agent(oap) as running:
		try:
			label = os.path.basename(os.readlink("/proc/%d/exe" % spinner.pid))
			on, off = oap.create("spinner", label, "ON_CPU"), oap.create("sleeper", label, "OFF_CPU")
			java = oap.create("deep", "java", "ON_CPU")
			before_s = cpu_seconds(spinner.pid)
			sent = wait_for_ends(running, [on, off, java])
			used_s = cpu_seconds(spinner.pid) - before_s
			on_trees, off_trees, durations, java_trees = oap.trees(on, "COUNT"), oap.trees(off, "COUNT"), oap.trees(off, "DURATION"), oap.trees(java, "COUNT")
		finally:
			spinner.kill()
			sleeper.kill()
			deep.kill()
		running.send(signal.SIGTERM)
		running.process.wait(30)
	check_equal((total(on_trees), total(off_trees), total(java_trees)), (sent[on], sent[off], sent[java]), "samples and waits that the server shows, and that were sent")
	check(0.6 < sent[on] * 0.009 / used_s < 1.05, lambda: "%d samples, one each 9 ms, of the %.1f s that the program used meanwhile" % (sent[on], used_s))
	check_order(on_trees, ["main (<string>)", "work (<string>)", "leaf (<string>)"], sent[on])
	check_order(java_trees, ["Deep.main (Deep.java)", "Deep.work (Deep.java)", "Deep.leaf (Deep.java)"], sent[java])
	check(total(durations) > 0.8 * SECONDS * 1e9 and total(durations) < 1.1 * SECONDS * 1e9, lambda: "%.1f s of waits in %d s" % (total(durations) / 1e9, SECONDS))
	check(0.019 <= total(durations) / 1e9 / sent[off] < 0.04, lambda: "%.1f ms a wait" % (total(durations) / 1e6 / sent[off]))
	return "%d samples, %d of Java, %d waits of %.2f ms" % (sent[on], sent[java], sent[off], total(durations) / 1e6 / sent[off])


@test
def killed_in_the_middle():
	"""kill -9 of the server, and another on its data: all that was sampled is there, once."""
	need_bpf()
	with Oap() as oap, Program("chain", seconds=400) as program, agent(oap) as running:
		task = oap.create("chain", "chain", "ON_CPU")
		time.sleep(20)
		oap.kill()
		time.sleep(6)
		oap.start()
		sent = wait_for_ends(running, [task])
		trees = oap.trees(task, "COUNT")
		running.send(signal.SIGTERM)
		running.process.wait(30)
		chain = next(iter(program.chains.values()))
	check_equal(total(trees), sent[task], "samples that the server shows, and that were sent")
	right = sum(count for tree in trees for path, count in paths(tree) if [symbol for symbol, kind in path if kind == "USER_SPACE"][-len(chain):] == chain)
	check(right > 0.99 * sent[task], lambda: "%d of %d are %s" % (right, sent[task], chain))
	return "%d samples" % sent[task]


run_tests(seconds=900)
