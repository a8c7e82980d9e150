#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde agent --skywalking where processes and servers do what is hard: they execute other programs, their pids are used again, their clocks are set, they go away in the middle. No sample is another
program's, and what did not arrive is in the last lines."""
import ctypes
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hung_server # noqa: E402
from harness import Program, build, build_library, check, check_equal, fresh_folder, need_bpf, run_tests, scratch, test # noqa: E402
from skywalking import Server, agent, command, finish, id_of, names, sent # noqa: E402

AGAIN = """
import os, signal, sys
def before(): spin()
def after(): spin()
def spin():
	while True: pass
def again(*_):
	signal.pthread_sigmask(signal.SIG_SETMASK, [])
	os.execve(sys.executable, [sys.executable, "-c", os.environ["TEXT"], "after"], {**os.environ, "OTEL_SERVICE_NAME": "after"})
signal.signal(signal.SIGUSR1, again)
globals()[sys.argv[1]]()
"""
SYS_CLONE3 = 435


def services_of(server, pid):
	return [each["entity"]["service"] for call in server.of("reportProcesses") for each in call["content"]["processes"] if each["pid"] == pid]


def with_pid(pid, seconds):
	"""Makes a process with that pid, which spins. clone3(2), struct clone_args."""
	want = ctypes.c_int(pid)
	arguments = (ctypes.c_uint64 * 10)(0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(want), 1)
	found = ctypes.CDLL(None, use_errno=True).syscall(SYS_CLONE3, ctypes.byref(arguments), ctypes.sizeof(arguments))
	if not found:
		end = time.monotonic() + seconds
		while time.monotonic() < end:
			pass
		os._exit(0)
	check_equal(found, pid, "pid of the new process: %s" % os.strerror(ctypes.get_errno()))


@test
def an_exec_of_the_same_program():
	"""It is another process for the server, with its new name; the task of the old one ends, and has none of its samples."""
	need_bpf()
	environment = {**os.environ, "OTEL_SERVICE_NAME": "before", "TEXT": AGAIN}
	with Server() as server, subprocess.Popen([sys.executable, "-c", AGAIN, "before"], env=environment) as program, agent(server, "--env", "OTEL_SERVICE_NAME") as running:
		try:
			process = server.process_id(program.pid)
			server.set(commands={"queryTasks": [command("t", process, seconds=60)]})
			server.wait_for("flushes", lambda: len(server.streams("t")) >= 2)
			program.send_signal(signal.SIGUSR1)
			server.wait_for("the new name", lambda: "after" in services_of(server, program.pid))
			server.set(commands={"queryTasks": [command("t", process, seconds=60), command("late", process, seconds=60)]})
			time.sleep(3)
			result = finish(running)
			server.drain()
		finally:
			program.kill()
	check("task t failed: the process is another program now" in result.err and "task late" not in result.err, lambda: str(result))
	check_equal(sum(record["count"] for record in server.records("t")), sent(result.err, "t")[0], "samples")
	nr = {name: sum(record["count"] for record in server.records("t") if any(frame.startswith(name) for frame in names(record, "user"))) for name in ("before", "after")}
	check(nr["before"] > 50 and nr["after"] <= 0.25 * nr["before"], "samples by function: %s" % nr) # what ran until the next look at the process, some times a second
	return str(nr)


@test
def a_pid_that_is_used_again():
	"""Neither task nor threshold of a process goes over to the next one with its pid."""
	need_bpf()
	policy = [{"UUID": "u", "Profiling": {"ON_CPU": {"PROCESS_CPU": {"Threshold": "250", "Period": 2, "Count": 1}}}, "ServiceName": "all"}]
	with Server() as server:
		server.set(commands={"queryPolicies": [["ContinuousProfilingPolicyQuery", {"ServiceWithPolicyJSON": json.dumps(policy)}]]})
		with Program("chain") as program, agent(server, "--skywalking-heartbeat", 5, "--skywalking-service", "all") as running:
			server.process_id(program.pid)
			server.wait_for("the policy's id", lambda: {"all": "u"} in [call["content"] for call in server.of("queryPolicies")])
			time.sleep(2.5) # it has used CPU time by then, and been measured
			program.process.kill()
			program.process.wait()
			with_pid(program.pid, 4)
			time.sleep(4)
			result = finish(running)
			server.drain()
	os.waitpid(program.pid, 0)
	check_equal([alarm["content"] for alarm in server.of("reportProfilingTask")], [], "alarms")
	check_equal(result.code, 0, "exit")


@test
def an_exec_of_another_file_without_randomness():
	"""Then the stack begins where it began before; the file tells them apart."""
	need_bpf()
	folder = fresh_folder("fixed")
	programs = [shutil.copy(build("becomes"), os.path.join(folder, name)) for name in ("aaaa", "bbbb")]
	with Server() as server, subprocess.Popen(["setarch", "-R", programs[0]]) as program, agent(server) as running:
		try:
			server.set(commands={"queryTasks": [command("t", server.process_id(program.pid), seconds=60)]})
			server.wait_for("a flush", lambda: server.streams("t"))
			program.send_signal(signal.SIGUSR1)
			server.wait_for("the new name", lambda: "bbbb" in services_of(server, program.pid))
			time.sleep(2)
			result = finish(running)
		finally:
			program.kill()
	check("task t failed: the process is another program now" in result.err, lambda: str(result))


@test
def a_task_that_the_server_fails_on():
	"""It takes nothing of the others, and ends: what the server never takes is lost, and counted."""
	need_bpf()
	with Server() as server, Program("chain") as one, Program("chain") as two, agent(server) as running:
		bad, good = server.process_id(one.pid), server.process_id(two.pid)
		server.set(refuse_tasks={"bad": "UNKNOWN"}, commands={"queryTasks": [command("bad", bad, seconds=3), command("good", good, seconds=60)]})
		server.wait_for("flushes", lambda: len(server.streams("good")) >= 12)
		result = finish(running)
		server.drain()
	check(sent(result.err, "bad")[0] == 0 and sent(result.err, "bad")[2] > 100, lambda: str(result))
	check_equal(sum(record["count"] for record in server.records("good")), sent(result.err, "good")[0], "samples")
	check(result.err.index("task bad, ON_CPU") < result.err.index("task good, ON_CPU") and result.err.count("answers again") == 0 and sent(result.err, "good")[3] == 0, lambda: str(result))


@test
def a_task_for_later():
	"""It replaces the one that runs when it begins, not before."""
	need_bpf()
	with Server() as server, Program("chain") as program, agent(server) as running:
		process = server.process_id(program.pid)
		server.set(commands={"queryTasks": [command("now", process, seconds=60), command("later", process, seconds=60, start_in_s=7)]})
		server.wait_for("its first flush", lambda: server.streams("later"))
		result = finish(running)
		server.drain()
	seconds = {task: [stream[0]["task"]["now_ms"] / 1000 for stream in server.streams(task)] for task in ("now", "later")}
	check(5 <= len(seconds["now"]) <= 9 and max(seconds["now"]) < min(seconds["later"]), lambda: "flushes at %s" % seconds)
	check("task now is replaced by later" in result.err, lambda: str(result))


@test
def the_end_without_a_server():
	"""Every window that did not arrive is in the last line: those that waited, and the one that was cut at the end."""
	need_bpf()
	with Server() as server, Program("chain") as program, agent(server) as running:
		server.set(commands={"queryTasks": [command("t", server.process_id(program.pid), seconds=60)]})
		server.wait_for("flushes", lambda: len(server.streams("t")) >= 2)
		server.set(fail=10 ** 9)
		time.sleep(0.5)
		server.drain()
		newest_s = max(stream[0]["task"]["now_ms"] for stream in server.streams("t")) / 1000
		time.sleep(max(0, newest_s + 3.5 - time.time()))
		end_s = time.time()
		result = finish(running)
	missing, lost = end_s - newest_s, sent(result.err, "t")[3]
	check(math.ceil(missing - 0.2) <= lost <= math.ceil(missing + 0.2), lambda: "%d windows lost of %.2f s\n%s" % (lost, missing, result))
	return "%d windows of %.2f s" % (lost, missing)


@test
def a_clock_that_is_set():
	"""For an hour, and back: neither reports nor tasks wait."""
	need_bpf()
	ahead = scratch("ahead")
	environment = {**os.environ, "LD_PRELOAD": build_library("late_clock"), "LATE_CLOCK": ahead}
	with Server() as server, Program("chain") as program, agent(server, env=environment) as running:
		process = server.process_id(program.pid)
		for is_ahead in (True, False):
			if is_ahead:
				with open(ahead, "w", encoding="ascii"):
					pass
			else:
				os.unlink(ahead)
			time.sleep(1)
			nr = len(server.of("keepAlive"))
			server.wait_for("a heartbeat", lambda: len(server.of("keepAlive")) > nr + 1) # pylint: disable=cell-var-from-loop
		server.set(commands={"queryTasks": [command("t", process, seconds=60)]})
		server.wait_for("a flush", lambda: server.streams("t"))
		begin = time.monotonic()
		check_equal(finish(running).code, 0, "exit")
	return "ended in %.1f s" % (time.monotonic() - begin)


@test
def memory_that_is_locked_later():
	"""A process is reported, and does not answer from then on: its task takes nothing of the others, and the agent ends."""
	need_bpf()
	with hung_server.Server(sys.executable, "others", hung_server.WRITE) as files, Server() as server:
		with hung_server.hung_program("lock-later", os.path.join(files.directory, "lib.so")) as hung, Program("chain") as program, agent(server) as running:
			try:
				processes = [server.process_id(pid) for pid in (hung.pid, program.pid)]
				hung.send_signal(signal.SIGUSR1)
				hung.stdout.readline()
				time.sleep(1)
				server.set(commands={"queryTasks": [command("hung", processes[0], seconds=60), command("beside", processes[1], seconds=60)]})
				server.wait_for("flushes", lambda: len(server.streams("beside")) >= 3)
				begin = time.monotonic()
				result = finish(running)
				seconds = time.monotonic() - begin
			finally:
				files.process.kill() # then the program can end
		server.drain()
	check_equal(sum(record["count"] for record in server.records("beside")), sent(result.err, "beside")[0], "samples")
	check("task hung" in result.err and "not waited for" not in result.err, lambda: str(result))
	return "%.1f s; %s" % (seconds, "; ".join(line for line in result.err.splitlines() if "task hung" in line))


@test
def a_first_thread_that_ends():
	"""Then, or before the start, the process goes on, and so do its reports and its task."""
	need_bpf()
	with Server() as server, subprocess.Popen([build("leaderless"), "4"]) as program, subprocess.Popen([build("leaderless"), "0"]) as before, agent(server) as running:
		try:
			process = server.process_id(program.pid)
			server.set(commands={"queryTasks": [command("before", server.process_id(before.pid), seconds=60)]})
			time.sleep(4)
			nr = len(server.of("keepAlive"))
			server.wait_for("heartbeats", lambda: len(server.of("keepAlive")) > nr + 3)
			server.set(commands={"queryTasks": [command("t", process, seconds=60)]})
			server.wait_for("flushes", lambda: server.streams("t") and server.streams("before"))
			server.drain()
		finally:
			program.kill()
			before.kill()
		check_equal(finish(running).code, 0, "exit")
	told = [any(id_of(each["entity"]) == process for each in call["content"]["processes"]) for call in server.of("keepAlive")]
	check(all(told[told.index(True):nr + 3]), "is it in each heartbeat: %s" % told)


@test
def a_task_that_must_come_again():
	"""One whose process is not known yet is asked for until its time is over, although a newer one was taken."""
	need_bpf()
	with Server() as server, Program("chain") as program, agent(server) as running:
		new = command("new", server.process_id(program.pid), seconds=60)
		old = command("old", "of a process that is not known", seconds=6, TaskUpdateTime="1000")
		server.set(commands={"queryTasks": [new, old]})
		server.wait_for("the last", lambda: server.of("queryTasks")[-1]["content"]["since_ms"] == int(new[1]["TaskUpdateTime"]))
		finish(running)
	since = [call["content"]["since_ms"] for call in server.of("queryTasks")]
	check_equal(list(dict.fromkeys(since)), [0, 999, int(new[1]["TaskUpdateTime"])], "since when it asks for tasks")
	check(since.count(999) >= 3, "times that the old one could come again: %d" % since.count(999))


run_tests()
