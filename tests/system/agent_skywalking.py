#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde agent --skywalking: processes are reported, tasks are done as they are given, and what arrives is what was sampled. The server is a double (tests/programs/skywalking_double.py)
in gRPC's own library; ./test --backends asks the real one."""
import json
import os
import re
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hung_server # noqa: E402
from harness import Program, check, check_equal, converted, cpu_seconds, find_tool, fresh_folder, make_certificate, nr_samples, need_bpf, run_tests, test # noqa: E402
from neighbour import NOBODY # noqa: E402
from skywalking import Server, agent, command, finish, names, sent # noqa: E402

SLEEPER = "import sys, time\nprint('pid', __import__('os').getpid(), flush=True)\nwhile True:\n time.sleep(0.05)\n"


@test
def processes_are_reported():
	"""With what the server needs to give tasks; with the token; and not with what arguments and environment say."""
	need_bpf()
	environment = dict(os.environ, OTEL_SERVICE_NAME="shop", SECRET="hunter2")
	with Server() as server, Program("chain", 10, "hunter3") as program, subprocess.Popen(["sleep", "60"], env=environment) as other, \
		agent(server, "--skywalking-authentication", "let me in", "--skywalking-process", "{executable} on {host}: {pid}") as running:
		try:
			server.process_id(program.pid)
			server.process_id(other.pid)
			server.wait_for("three heartbeats", lambda: len(server.of("keepAlive")) >= 3)
			server.drain()
		finally:
			other.kill()
		result = finish(running)
	check_equal(result.code, 0, "exit")
	reports = {each["pid"]: each for call in server.of("reportProcesses") for each in call["content"]["processes"]}
	entity, properties = reports[program.pid]["entity"], reports[program.pid]["properties"]
	host = socket.gethostname()
	check_equal(entity, {"layer": "OS_LINUX", "service": "chain", "instance": host, "process": "chain on %s: %d" % (host, program.pid), "labels": ["chain"]}, "the entity")
	check_equal((properties["support_ebpf_profiling"], properties["pid"]), ("true", str(program.pid)), "properties")
	check_equal(reports[other.pid]["entity"]["service"], "shop", "OTEL_SERVICE_NAME")
	check(running.process.pid not in reports and 2 not in reports, "sonde itself and kernel threads are not reported")
	alive = [each for call in server.of("keepAlive") for each in call["content"]["processes"] if each["entity"] == entity]
	check(len(alive) >= 2 and all(each["properties"]["support_ebpf_profiling"] == "true" for each in alive), lambda: "keep-alives: %s" % alive)
	times = [sum(each["pid"] == program.pid for each in call["content"]["processes"]) for call in server.of("reportProcesses")]
	check_equal(sum(times[:5]), 1, "reports of a process among the first five")
	check(all(call["metadata"]["authentication"] == "let me in" for call in server.calls), "the token comes with each call")
	check_equal(len({call["content"]["agent"] for method in ("reportProcesses", "keepAlive", "queryTasks") for call in server.of(method)}), 1, "names of the agent")
	check("hunter" not in json.dumps(server.calls), "what is secret was sent")


@test
def a_task_on_cpu():
	"""What arrives is what was sampled: whole stacks, leaf first, the kernel's apart; one process alone; the agent's own profile goes on beside it."""
	need_bpf()
	folder = fresh_folder("beside")
	with Server() as server, Program("chain") as program, Program("chain") as other, agent(server, "--skywalking-period", "5ms", folder=folder) as running:
		process = server.process_id(program.pid)
		server.process_id(other.pid)
		began_s = cpu_seconds(program.pid)
		server.set(commands={"queryTasks": [command("t1", process, seconds=6)]})
		server.wait_for("end of the task", lambda: len(server.streams("t1")) >= 4)
		time.sleep(2)
		used_s = cpu_seconds(program.pid) - began_s
		result = finish(running)
		server.drain()
	records = list(server.records("t1"))
	total = sum(record["count"] for record in records)
	check_equal(sent(result.err, "t1"), (total, 0, 0, 0), "samples that arrived, without a stack, lost, lost windows")
	check(0.3 < total * 0.005 / used_s < 1.05, lambda: "%d samples, one each 5 ms, of the %.2f s that the program used meanwhile" % (total, used_s))
	chain = next(iter(program.chains.values()))
	wrong = [record for record in records if not names(record, "kernel") and names(record, "user")[::-1][-len(chain):] != chain]
	check(sum(record["count"] for record in wrong) <= 0.01 * total, lambda: "of %d samples wrong: %s" % (total, wrong[:5]))
	for stream in server.streams("t1"):
		check(all(record["task"] is None for record in stream[1:]), "only the first record says what task it is")
		ids = [(record.get("kernel", {}).get("id"), record.get("user", {}).get("id")) for record in stream]
		texts = [(tuple(names(record, "kernel")), tuple(names(record, "user"))) for record in stream]
		check_equal((len(set(ids)), len(set(texts))), (len(stream), len(stream)), "ids and stacks of a stream that are different")
		check(all(record["count"] > 0 for record in stream), "a record without samples")
		check(abs(stream[0]["task"]["start_ms"] / 1000 - server.streams("t1")[0][0]["task"]["start_ms"] / 1000) < 0.001, "the task's start")
	check_equal({stream[0]["task"]["process"] for stream in server.streams("t1")}, {process}, "process")
	report = converted(folder)
	seconds = int(report["account"]["duration_ns"]) / 1e9
	check(0.1 < nr_samples(report, program.pid) / (19 * seconds) < 1.2, lambda: "the agent's own: %d samples in %.1f s at 19 Hz" % (nr_samples(report, program.pid), seconds))
	return "%d samples, %d records" % (total, len(records))


@test
def a_task_off_cpu():
	"""A program that sleeps 50 ms at a time: waits and their time."""
	need_bpf()
	with Server() as server, subprocess.Popen([find_tool("python3"), "-c", SLEEPER], stdout=subprocess.PIPE) as program:
		try:
			with agent(server) as running:
				process = server.process_id(int(program.stdout.readline().split()[1]))
				server.set(commands={"queryTasks": [command("t1", process, target="OFF_CPU", seconds=3)]})
				server.wait_for("the end", lambda: len(server.streams("t1")) >= 2)
				time.sleep(2)
				result = finish(running)
				server.drain()
		finally:
			program.kill()
	records = list(server.records("t1"))
	sleeps = [record for record in records if any("sleep" in name for name in names(record, "user") + names(record, "kernel"))]
	nr, ns = sum(record["count"] for record in sleeps), sum(record["duration_ns"] for record in sleeps)
	check_equal(sum(record["count"] for record in records), sent(result.err, "t1")[0], "waits")
	check(15 <= nr <= 70 and 0.045 <= ns / 1e9 / nr <= 0.08, lambda: "%d sleeps of %.1f ms: %s" % (nr, ns / 1e6 / max(nr, 1), records))
	return "%d sleeps of %.2f ms" % (nr, ns / 1e6 / nr)


@test
def several_at_once():
	"""Three tasks beside each other, one with a period above a second; each has its own process alone. Two of one process, on and off CPU."""
	need_bpf()
	with Server() as server, Program("chain") as one, Program("syscalls") as two, agent(server, "--skywalking-period", "1100ms") as running:
		first, second = server.process_id(one.pid), server.process_id(two.pid)
		server.set(commands={"queryTasks": [command("a", first, seconds=12), command("b", second, seconds=12), command("c", first, target="OFF_CPU", seconds=12)]})
		server.wait_for("both", lambda: all(server.streams(task) for task in "ab"))
		server.wait_for("the end", lambda: time.time() * 1000 > max(stream[0]["task"]["start_ms"] for stream in server.streams("a")) + 14000)
		result = finish(running)
		server.drain()
	for task, word in (("a", "leaf"), ("b", "read")):
		records = list(server.records(task))
		check_equal(sum(record["count"] for record in records), sent(result.err, task)[0], "samples of " + task)
		check(1 <= sent(result.err, task)[0] <= 13, lambda: "task %s: %s samples in 12 s, one each 1.1 s" % (task, sent(result.err, task))) # pylint: disable=cell-var-from-loop
		check(any(word in name for record in records for name in names(record, "user")), lambda: "task %s: %s" % (task, records)) # pylint: disable=cell-var-from-loop
	sent(result.err, "c")


@test
def what_cannot_be_done_is_said():
	"""A task fails by itself: the others and the agent go on."""
	need_bpf()
	for period in ("9x", "500us", "99999999999999999999s"):
		with Server() as server, Program("chain") as program, agent(server, "--skywalking-period=" + period) as running:
			process = server.process_id(program.pid)
			server.set(commands={"queryTasks": [command("bad", process), command("good", process, target="OFF_CPU")]})
			server.wait_for("a query", lambda: any(call["content"]["since_ms"] for call in server.of("queryTasks"))) # pylint: disable=cell-var-from-loop
			time.sleep(1.5)
			result = finish(running)
		check("task bad failed: the sampling period '%s' is no time" % period in result.err, lambda: str(result)) # pylint: disable=cell-var-from-loop
		check_equal((result.code, result.err.count("task bad failed")), (0, 1), "exit, and how often it was said")
		sent(result.err, "good")
	with Server() as server, Program("chain") as program, Program("chain") as ended, agent(server) as running:
		process, gone = server.process_id(program.pid), server.process_id(ended.pid)
		ended.process.kill()
		ended.process.wait()
		server.set(commands={"queryTasks": [command("gone", gone), command("net", process, target="NETWORK"), command("late", process, start_in_s=-100), command("list", process + ",other-id"),
			command("elsewhere", "0" * 64), ["Unknown", {}], ["EBPFProfilingTaskQuery", {"TaskId": "half"}]]})
		server.wait_for("a query", lambda: any(call["content"]["since_ms"] for call in server.of("queryTasks")))
		time.sleep(1.5)
		result = finish(running)
	for text in ("task net is refused: NETWORK", "task late is dropped: its time is over", "task list: one process is profiled; left out: other-id", "lacks something"):
		check(text in result.err, lambda: "no %r in: %s" % (text, result)) # pylint: disable=cell-var-from-loop
	check("elsewhere" not in result.err and result.code == 0, lambda: str(result))
	sent(result.err, "list")


@test
def a_process_that_ends():
	"""Before its task begins, and while it is profiled."""
	need_bpf()
	with Server() as server, Program("chain") as program, Program("chain") as other, agent(server) as running:
		soon, now = server.process_id(program.pid), server.process_id(other.pid)
		server.set(commands={"queryTasks": [command("soon", soon, start_in_s=4), command("now", now, seconds=30)]})
		server.wait_for("a flush", lambda: server.streams("now"))
		for each in program, other:
			each.process.kill()
			each.process.wait()
		time.sleep(4)
		result = finish(running)
		server.drain()
	check("task soon failed: this process could not be profiling" in result.err, lambda: str(result))
	check_equal(sum(record["count"] for record in server.records("now")), sent(result.err, "now")[0], "samples of the one that ended")


@test
def extended_and_replaced():
	"""The same task again lasts longer; another one of the same process and kind takes its place."""
	need_bpf()
	with Server() as server, Program("chain") as program, agent(server) as running:
		process = server.process_id(program.pid)
		first = command("first", process, seconds=8)
		server.set(commands={"queryTasks": [first]})
		server.wait_for("a flush", lambda: server.streams("first"))
		first[1]["FixedTriggerDuration"], first[1]["TaskUpdateTime"] = "60", str(int(time.time() * 1000) + 1)
		server.set(commands={"queryTasks": [first]})
		server.wait_for("flushes behind its first end", lambda: len(server.streams("first")) >= 10)
		server.set(commands={"queryTasks": [command("second", process, seconds=3)]})
		server.wait_for("the other's flushes", lambda: len(server.streams("second")) >= 2)
		time.sleep(2)
		result = finish(running)
		server.drain()
	for task in "first", "second":
		check_equal(sum(record["count"] for record in server.records(task)), sent(result.err, task)[0], "samples of " + task)
	check_equal(result.err.count("task first"), 1, "ends of the first")


@test
def the_server_goes_and_comes():
	"""Nothing is lost while it is away, and what may come twice has the same key. A new one is told of all processes."""
	need_bpf()
	with Server() as server, Program("chain") as program:
		with agent(server) as running:
			process = server.process_id(program.pid)
			server.set(commands={"queryTasks": [command("t", process, seconds=14)]})
			server.wait_for("a flush", lambda: server.streams("t"))
			server.set(commands={}, fail=2)
			time.sleep(3)
			server.drain()
			server.__exit__()
			time.sleep(3)
			with Server(server.port) as again:
				again.process_id(program.pid)
				again.wait_for("flushes", lambda: len(again.streams("t")) >= 4)
				time.sleep(5)
				result = finish(running)
				again.drain()
	server.calls += again.calls
	check_equal(sum(record["count"] for record in server.records("t")), sent(result.err, "t")[0], "samples")
	check_equal(sent(result.err, "t")[2:], (0, 0), "lost samples and windows")
	check("not now" in result.err and result.err.count("answers again") == 2, lambda: str(result))


@test
def a_policy_begins_a_task():
	"""A service's threshold: a process above it is profiled by itself; one below it is not."""
	need_bpf()
	policy = [{"UUID": "u1", "Profiling": {"ON_CPU": {"PROCESS_CPU": {"Threshold": "10", "Period": 5, "Count": 3}, "HTTP_ERROR_RATE": {"Threshold": "1", "Period": 5, "Count": 3, "URIList": ["/"]}},
		"NETWORK": {"PROCESS_CPU": {"Threshold": "1", "Period": 5, "Count": 3}}}, "ServiceName": "all"}]
	with Server() as server, Program("chain") as busy, subprocess.Popen(["sleep", "100"]) as idle, agent(server, "--skywalking-service", "all") as running:
		try:
			process = server.process_id(busy.pid)
			server.process_id(idle.pid)
			server.set(commands={"queryPolicies": [["ContinuousProfilingPolicyQuery", {"ServiceWithPolicyJSON": json.dumps(policy)}]],
				"reportProfilingTask": [["ContinuousProfilingReportTask", {"TaskId": "by-itself"}]]})
			alarms = server.wait_for("an alarm", lambda: server.of("reportProfilingTask"))
			server.wait_for("a flush", lambda: any(stream[0]["task"]["process"] == process for stream in server.streams("by-itself")))
			time.sleep(3)
			server.drain()
			result = finish(running)
		finally:
			idle.kill()
	alarms = [alarm["content"] for alarm in server.of("reportProfilingTask")]
	of_busy = [alarm for alarm in alarms if alarm["process"].endswith("-%d" % busy.pid)]
	check_equal(len(of_busy), 1, "alarms of the busy one: it is silent afterwards")
	check(of_busy[0]["cause"] == 0 and of_busy[0]["threshold"] == 10 and 10 <= of_busy[0]["current"] < 130 and of_busy[0]["duration_s"] == 600 and not of_busy[0]["is_off_cpu"], lambda: str(of_busy))
	check(not [alarm for alarm in alarms if alarm["process"].endswith("-%d" % idle.pid)], "the idle one is not above")
	check("HTTP_ERROR_RATE" in result.err and "left out: NETWORK" in result.err and result.err.count("left out") == 2, lambda: str(result))
	check({"all": "u1"} in [call["content"] for call in server.of("queryPolicies")], "the policy's id is told from then on")


@test
def a_server_that_knows_less():
	"""No policies, or an answer that is too long: tasks are done all the same. A window that it refuses is lost, and counted."""
	need_bpf()
	long_answer = {"queryPolicies": [["ContinuousProfilingPolicyQuery", {"ServiceWithPolicyJSON": " " * 100000 + "[]"}]]}
	for state, words in (({"refuse": {"queryPolicies": "UNIMPLEMENTED"}}, "gRPC status 12: not this"), ({"commands": long_answer}, "longer than 65535 bytes")):
		with Server() as server, Program("chain") as program:
			server.set(**state)
			with agent(server) as running:
				process = server.process_id(program.pid)
				server.set(commands={**state.get("commands", {}), "queryTasks": [command("t", process, seconds=60)]})
				server.wait_for("flushes", lambda: len(server.streams("t")) >= 2) # pylint: disable=cell-var-from-loop
				server.set(refuse={**state.get("refuse", {}), "collectProfilingData": "INVALID_ARGUMENT"})
				time.sleep(2.5)
				server.set(refuse=state.get("refuse", {}))
				nr = len(server.streams("t"))
				server.wait_for("flushes", lambda: len(server.streams("t")) >= nr + 2) # pylint: disable=cell-var-from-loop
				result = finish(running)
				server.drain()
		check_equal(result.err.count(words), 1, "times that it was said")
		refused = sum(int(nr) for nr in re.findall(r"task t: (\d+) samples are lost: gRPC status 3: not this", result.err))
		check(refused and sent(result.err, "t")[2:] == (refused, 0), lambda: str(result)) # pylint: disable=cell-var-from-loop
		check_equal(sum(record["count"] for record in server.records("t")), sent(result.err, "t")[0], "samples")


@test
def a_process_that_execs():
	"""It is another one for the server from then on."""
	need_bpf()
	with Server() as server, subprocess.Popen(["sh", "-c", "sleep 4; exec sleep 50"]) as program, agent(server) as running:
		try:
			server.process_id(program.pid)
			def labels():
				return [each["entity"]["labels"] for call in server.of("reportProcesses") for each in call["content"]["processes"] if each["pid"] == program.pid]
			server.wait_for("another report", lambda: len({str(label) for label in labels()}) == 2)
			check_equal(labels()[-1], ["sleep"], "label")
		finally:
			program.kill()
		check_equal(finish(running).code, 0, "exit")


@test
def a_process_that_does_not_answer():
	"""The kernel holds the lock of its memory while a file server is silent. The others are reported and profiled, it is not, and the agent ends."""
	need_bpf()
	with hung_server.Server(sys.executable, "others", hung_server.WRITE) as files, Server() as server:
		with hung_server.hung_program("lock", os.path.join(files.directory, "lib.so")) as hung, Program("chain") as program, agent(server) as running:
			try:
				server.set(commands={"queryTasks": [command("beside", server.process_id(program.pid), seconds=60)]})
				server.wait_for("a flush", lambda: server.streams("beside"))
				begin = time.monotonic()
				result = finish(running)
				seconds = time.monotonic() - begin
			finally:
				files.process.kill() # then the program can end
	pids = {each["pid"] for call in server.of("reportProcesses") for each in call["content"]["processes"]}
	check(program.pid in pids and hung.pid not in pids, "processes reported: %s" % pids)
	check("memory does not answer, such as %d of user %d" % (hung.pid, NOBODY) in result.err and "not waited for" not in result.err, lambda: str(result))
	return "%.1f s" % seconds


@test
def over_tls():
	"""With an authority that is trusted; not with another."""
	need_bpf()
	certificate, key = make_certificate()
	with Server(0, certificate, key) as server, Program("chain") as program:
		address = "grpcs://localhost:%d" % server.port
		with agent(server, "--skywalking-ca", certificate, address=address) as running:
			running.wait_line("Sampling") # from then on SIGTERM is no failure
			server.process_id(program.pid)
			check_equal(finish(running).code, 0, "exit")
		server.drain()
		nr = len(server.calls)
		with agent(server, address=address) as running:
			time.sleep(3)
			result = finish(running)
		server.drain()
	check_equal(len(server.calls), nr, "calls of an agent that does not trust the server")
	check("certificate" in result.err, lambda: str(result))


run_tests()
