#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde agent --listen and --status: the numbers are those of the store, healthz says what is wrong, and no client delays or enlarges the agent."""
import contextlib
import json
import os
import re
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Background, Program, check, check_equal, converted, find_tool, fresh_folder, need_bpf, run, run_tests, skip, sonde, test # noqa: E402


class Agent(Background):
	"""An agent that listens on a port that the kernel chooses."""

	def __init__(self, folder, *args, listen=":0"):
		super().__init__("agent", "--store", folder, "--window", 1, "-F", 97, "--listen", listen, *args)
		line = next((line for line in iter(lambda: self.process.stderr.readline().decode(), "") if "warning: " not in line), "")
		match = re.fullmatch(r"sonde: Listening on (127\.0\.0\.1|0\.0\.0\.0|\[::1\]):(\d+)\n", line)
		check(match, lambda: "no line on the port: %r" % line)
		self.host, self.port = match.group(1).strip("[]"), int(match.group(2))

	def connect(self):
		return socket.create_connection((self.host, self.port), timeout=10)

	def get(self, path, method="GET"):
		"""(status, headers, body)"""
		with self.connect() as connection:
			connection.sendall(("%s %s HTTP/1.1\r\nHost: x\r\n\r\n" % (method, path)).encode())
			answer = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
		head, _, body = answer.partition("\r\n\r\n")
		lines = head.split("\r\n")
		return int(lines[0].split()[1]), dict(line.split(": ", 1) for line in lines[1:]), body

	def metrics(self):
		status, headers, body = self.get("/metrics")
		check_equal((status, headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"), "status and type")
		return parse(body)

	def wait_for(self, name, least, timeout=30):
		until = time.monotonic() + timeout
		while True:
			numbers = self.metrics()
			if numbers[name] >= least:
				return numbers
			check(time.monotonic() < until, lambda: "%s is %s" % (name, numbers[name]))
			time.sleep(0.1)


def parse(text):
	"""{name with labels, but for type="cpu": number} of Prometheus' text format; each family has its help, its type, and its samples together."""
	numbers, types, helps, family = {}, {}, set(), None
	check(text.endswith("\n"), "no newline at the end")
	for line in text.splitlines():
		if line.startswith("# HELP "):
			family = line.split(" ", 3)[2]
			check(family not in helps and len(line.split(" ", 3)) == 4, line)
			helps.add(family)
		elif line.startswith("# TYPE "):
			_, _, name, kind = line.split(" ")
			check(name == family and kind in ("counter", "gauge") and (kind == "counter") == name.endswith("_total"), line)
			types[name] = kind
		else:
			match = re.fullmatch(r'(sonde_[a-z0-9_]+)((?:\{[a-z_]+="(?:[^"\\\n]|\\["\\n])*"(?:,[a-z_]+="(?:[^"\\\n]|\\["\\n])*")?\})?) (\d+(?:\.\d+)?)', line)
			check(match and match.group(1) == family and family in types, lambda: "line %r after %s" % (line, family)) # pylint: disable=cell-var-from-loop
			name = match.group(1) + match.group(2).replace('{type="cpu"}', "").replace('type="cpu",', "")
			check(name not in numbers, line)
			numbers[name] = float(match.group(3))
	check_equal(helps, set(types), "families with help and with type")
	return numbers


def sums(report):
	account = report["account"]
	return {"sonde_samples_recorded_total": int(account["recorded"]), "sonde_samples_expected_total": int(account["expected"]), "sonde_samples_deferred_total": int(account["late"]),
		**{'sonde_samples_lost_total{reason="%s"}' % name: int(nr) for name, nr in account["dropped"].items()},
		**{'sonde_samples_filtered_total{reason="%s"}' % name: int(nr) for name, nr in account["filtered"].items()},
		**{'sonde_stacks_total{end="%s"}' % name: int(nr) for name, nr in account["stopped"].items()}}


@test
def the_numbers_are_those_of_the_store():
	need_bpf()
	folder = fresh_folder("numbers")
	with Program("chain"), Agent(folder) as running:
		running.wait_for("sonde_windows_stored_total", 3)
		for _ in range(10): # a window may come between
			before, report, after = running.metrics(), converted(folder), running.metrics()
			if before["sonde_windows_stored_total"] == after["sonde_windows_stored_total"]:
				break
		want = sums(report)
		check_equal({name: before.get(name) for name in want}, want, "metrics, and the account of the store")
		check(want["sonde_samples_recorded_total"] > 200, lambda: str(want))
		with sqlite3.connect("file:%s?mode=ro" % os.path.join(folder, "profiles.db"), uri=True) as connection:
			row = connection.execute("SELECT count(*), sum(length(body)) FROM window").fetchone()
		now = running.metrics()
		if now["sonde_windows_stored_total"] == before["sonde_windows_stored_total"]:
			check_equal((now["sonde_store_profiles"], now["sonde_store_bytes"]), row, "rows and bytes of the store")
		check(0 < now["sonde_process_cpu_seconds_total"] < 60 and 10**6 < now["sonde_process_resident_memory_bytes"] < 10**9, lambda: str(now))
		check(abs(now["sonde_last_window_timestamp_seconds"] - time.time()) < 60 and now["sonde_healthy"] == 1, lambda: str(now))
		text = running.get("/metrics")[2]
		running.send(signal.SIGTERM)
		result = running.finish()
		check_equal(result.code, 0, "exit")
	promtool = find_tool("promtool")
	if promtool:
		result = subprocess.run([promtool, "check", "metrics"], input=text, text=True, capture_output=True, check=False)
		check_equal((result.returncode, result.stdout + result.stderr), (0, ""), "promtool")


@test
def pages_and_what_is_none():
	need_bpf()
	with Agent(fresh_folder("pages")) as running:
		running.wait_for("sonde_windows_stored_total", 1)
		check_equal(running.get("/healthz")[::2], (200, "ok\n"), "healthz")
		check_equal(running.get("/healthz", "HEAD")[::2], (200, ""), "healthz, its head")
		check_equal([running.get(path, method)[0] for path, method in (("/", "GET"), ("/no", "GET"), ("/metrics/", "GET"), ("/metrics?x=1", "GET"), ("/metrics", "POST"), ("metrics", "GET"), ("/../etc/passwd", "GET"))],
			[200, 404, 404, 200, 405, 400, 404], "statuses")
		check_equal(running.get("/metrics")[1]["Connection"], "close", "connection")


def unhealthy(running, words, timeout=30):
	until = time.monotonic() + timeout
	while True:
		status, _, body = running.get("/healthz")
		if status == 503:
			check(re.fullmatch(words, body), lambda: body)
			return
		check(time.monotonic() < until, "still healthy")
		time.sleep(0.2)


@test
def health_without_windows():
	"""Another process holds the store: the windows wait for it, and are stored afterwards or counted."""
	need_bpf()
	folder = fresh_folder("held")
	with Agent(folder) as running:
		running.wait_for("sonde_windows_stored_total", 1)
		with sqlite3.connect(os.path.join(folder, "profiles.db"), isolation_level=None) as connection:
			connection.execute("BEGIN IMMEDIATE")
			unhealthy(running, r"no window has come for \d+ s: one is due every 1 s\n")
			connection.execute("ROLLBACK")
		until = time.monotonic() + 30
		while running.get("/healthz")[0] != 200:
			check(time.monotonic() < until, "not healthy again")
			time.sleep(0.2)


@test
def health_with_a_full_disk():
	need_bpf()
	folder = fresh_folder("full")
	if run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "none", folder]).code:
		skip("no tmpfs can be mounted")
	try:
		with Agent(folder) as running:
			running.wait_for("sonde_windows_stored_total", 1)
			with open(os.path.join(folder, "ballast"), "wb", buffering=0) as file:
				try:
					while file.write(b"x" * 4096):
						pass
				except OSError:
					pass
			unhealthy(running, r"the last window was not stored: the store: .*full\n", 60)
			numbers = running.metrics()
			check(numbers['sonde_windows_lost_total{reason="store"}'] > 0 and numbers['sonde_windows_lost_total{reason="profile"}'] == 0 and numbers["sonde_healthy"] == 0, lambda: str(numbers))
			running.send(signal.SIGTERM)
			running.finish()
	finally:
		run(["umount", "-l", folder])


def of_port(running):
	"""The agent's sockets of its port, as the kernel knows them."""
	owned = set()
	for fd in os.listdir("/proc/%d/fd" % running.process.pid):
		with contextlib.suppress(OSError): # closed meanwhile
			owned.add(os.readlink("/proc/%d/fd/%s" % (running.process.pid, fd)))
	with open("/proc/net/tcp", encoding="ascii") as file:
		lines = [line.split() for line in file.readlines()[1:]]
	return owned & {"socket:[%s]" % line[9] for line in lines if line[1].endswith(":%04X" % running.port)}


@test
def hostile_clients():
	"""Silent, slow, deaf and noisy ones: others are answered meanwhile, each is closed in 5 s, and nothing grows."""
	need_bpf()
	with Program("chain"), Agent(fresh_folder("hostile")) as running:
		before = running.wait_for("sonde_windows_stored_total", 2)
		sockets = of_port(running)
		check_equal(len(sockets), 1, "sockets of the port")
		slow, began, times = running.connect(), time.monotonic(), []
		silent = []
		ended = None
		while ended is None and time.monotonic() < began + 8:
			try:
				slow.sendall(b"G")
				slow.settimeout(0.2)
				ended = time.monotonic() if not slow.recv(1) else None
			except TimeoutError:
				pass
			except OSError:
				ended = time.monotonic()
			asked = time.monotonic()
			check_equal(running.get("/healthz")[0], 200, "healthz")
			times.append(time.monotonic() - asked)
			if len(silent) < 10:
				silent.append(running.connect())
		check(ended and 4 < ended - began < 7, lambda: "the slow one ended after %s" % (ended and ended - began))
		for _ in range(200):
			silent.append(running.connect())
			asked = time.monotonic()
			check_equal(running.get("/healthz")[0], 200, "healthz")
			times.append(time.monotonic() - asked)
		check(max(times) < 2, lambda: "an answer took %.1f s" % max(times))
		for noise in os.urandom(100000), b"GET /metrics HTTP/1.1\r\n\r\n" * 10000, b"\n" * 100000, b"GET /" + b"x" * 100000, b"GET /metrics HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n":
			with running.connect() as connection:
				try:
					connection.sendall(noise)
					connection.shutdown(socket.SHUT_WR)
					connection.recv(1 << 20)
				except OSError:
					pass
		for connection in silent:
			connection.close()
		time.sleep(0.5)
		after = running.wait_for("sonde_windows_stored_total", before["sonde_windows_stored_total"] + 4)
		check_equal(of_port(running), sockets, "sockets of the port, afterwards")
		grown = after["sonde_process_resident_memory_bytes"] - before["sonde_process_resident_memory_bytes"]
		check(grown < 48 << 20, lambda: "%.1f MiB more memory" % (grown / (1 << 20)))
		check_equal(sum(number for name, number in after.items() if name.startswith(("sonde_samples_lost", "sonde_windows_lost"))), 0, "lost")
		running.send(signal.SIGTERM)
		check_equal(running.finish().code, 0, "exit")


@test
def where_it_listens():
	"""Nowhere, unless asked; on others' addresses only when they are given in full."""
	need_bpf()
	for address in "9464", "host:1", ":x", ":65536", "[::1:1", "unix:", "1.2.3:1":
		result = sonde("agent", "--listen", address, "--store", fresh_folder("where"), 1, want=2)
		check("is no address to listen on" in result.err, lambda: str(result)) # pylint: disable=cell-var-from-loop
	with Background("agent", "--store", fresh_folder("quiet"), "--window", 1).wait_line("Sampling") as running:
		owned = {os.readlink("/proc/%d/fd/%s" % (running.process.pid, fd)) for fd in os.listdir("/proc/%d/fd" % running.process.pid)}
		for table in "tcp", "tcp6", "udp", "udp6":
			with open("/proc/net/" + table, encoding="ascii") as file:
				inodes = {"socket:[%s]" % line.split()[9] for line in file.readlines()[1:]}
			check(not inodes & owned, lambda: "it has a socket of %s" % table) # pylint: disable=cell-var-from-loop
	with Agent(fresh_folder("any"), listen="0.0.0.0:0") as running:
		check_equal(running.get("/healthz")[0], 200, "healthz")
		result = sonde("agent", "--listen", ":%d" % running.port, "--store", fresh_folder("second"), 1, want=1)
		check("cannot listen on :%d: Address already in use" % running.port in result.err, lambda: str(result))
	path = os.path.join(fresh_folder("unix"), "s")
	with Background("agent", "--store", fresh_folder("local"), "--listen", "unix:" + path).wait_line("Listening on unix:" + path) as running:
		check_equal(stat.S_IMODE(os.stat(path).st_mode), 0o600, "rights to the socket")
		result = sonde("agent", "--listen", "unix:" + path, "--store", fresh_folder("taken"), 1, want=1)
		check("Address already in use" in result.err and os.path.exists(path), lambda: str(result))
		running.wait_line("Sampling")
		running.send(signal.SIGTERM)
		check_equal(running.finish().code, 0, "exit")
	check(not os.path.exists(path), "the socket is left")


@test
def status():
	need_bpf()
	folder = os.path.join(fresh_folder("status"), "d" * 100, "e" * 100) # longer than the address of a socket
	os.makedirs(folder, mode=0o700)
	result = sonde("agent", "--status", "--store", folder, want=1)
	check("no agent has the store" in result.err and not result.out, lambda: str(result))
	with Program("chain"), Agent(folder, "--otlp", "http://127.0.0.1:1", "--audit-every", 2, "--max-cpu", 90) as running:
		running.wait_for("sonde_windows_stored_total", 2)
		running.wait_for('sonde_audited_stacks_total{result="agreed"}', 1)
		said = json.loads(sonde("agent", "--status", "--format", "json", "--store", folder, want=0).out)
		check_equal(list(said)[:3], ["format", "version", "sonde"], "first keys")
		check_equal((said["format"], said["pid"], said["freq_hz"], said["window_ns"], said["healthy"], said["store"]["directory"]), ("sonde-agent", running.process.pid, 97, 10**9, True, folder), "agent")
		check(said["windows"]["nr_stored"] >= 2 and said["windows"]["nr_not_made"] + said["windows"]["nr_not_stored"] == 0 and said["windows"]["last"]["nr_samples"] > 0, lambda: str(said))
		check(said["counts"]["audit"]["agreed"] >= 1 and not said["counts"]["audit"]["differed"], lambda: str(said["counts"]))
		check(said["counts"]["processes"]["python"] >= 1, lambda: str(said["counts"])) # this test
		programs = {program["name"]: program for program in said["programs"]}
		check({"sonde_fork", "sonde_exec", "sonde_python"} <= set(programs), lambda: str(programs))
		check(sum(program["nr_runs"] for program in programs.values()) > 50 and sum(program["ns"] for program in programs.values()) > 10000, lambda: str(programs))
		check(1 << 20 < said["map_bytes"] < said["memory_bytes"] and said["memory_bytes"] > said["rss_bytes"] / 2, lambda: str(said))
		to = said["destinations"][0]
		check(to["name"] == "http://127.0.0.1:1" and to["nr_delivered"] == 0 and to["last_success_unix_ns"] is None and to["nr_waiting"] >= 2 and to["nr_retries"] >= 1 and "onnect" in to["trouble"], lambda: str(to))
		numbers = running.metrics()
		check(numbers['sonde_destination_profiles_waiting{destination="http://127.0.0.1:1"}'] >= 2, lambda: str(numbers))
		result = sonde("agent", "--status", env=dict(os.environ, SONDE_STORE=folder), want=0)
		for words in r"process %d, since 20" % running.process.pid, r"health: ok", r"windows: [2-9] stored, 0 lost; the last from 20", r"samples: \d+ recorded", r"lost: none", r"processes: .*\d+ python", r"audit: \d+ agreed", r"programs: .*sonde_\w+ \d+ times [\d.]+ us", r"store: \d profiles, ", \
				r"to http://127.0.0.1:1: 0 delivered, [2-9] waiting, .*; now: .*onnect", r"own cost: \d+\.\d+ s of CPU time":
			check(re.search(words, result.out), lambda: "no %r in %s" % (words, result)) # pylint: disable=cell-var-from-loop
		check_equal(stat.S_IMODE(os.stat(os.path.join(folder, "status")).st_mode), 0o600, "rights to the socket")
		running.send(signal.SIGKILL)
		running.finish()
	check("no agent has the store" in sonde("agent", "--status", "--store", folder, want=1).err, "after its end")
	with Agent(folder).wait_line("Sampling") as running:
		check_equal(json.loads(sonde("agent", "--status", "--format", "json", "--store", folder, want=0).out)["pid"], running.process.pid, "the next agent's process")
		running.send(signal.SIGTERM)
		check_equal(running.finish().code, 0, "exit")
	check("status" not in os.listdir(folder), "the socket is left")


@test
def counters():
	"""Events of the whole machine: those of a known program are among them, and nonsense is refused."""
	need_bpf()
	folder = fresh_folder("counters")
	with Agent(folder, "--counters", "page-faults,context-switches,cycles") as running:
		running.wait_for('sonde_counter_total{event="page-faults"}', 1)
		before = running.metrics()
		subprocess.run([sys.executable, "-c", "import mmap\nm = mmap.mmap(-1, 4096 * 20000, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\nm.madvise(mmap.MADV_NOHUGEPAGE)\nfor i in range(20000): m[4096 * i] = 1"], check=True)
		after = running.metrics()
		page_faults = 'sonde_counter_total{event="page-faults"}'
		check(after[page_faults] - before[page_faults] >= 20000, lambda: "%s, then %s" % (before[page_faults], after[page_faults]))
		check(after['sonde_counter_total{event="context-switches"}'] > before['sonde_counter_total{event="context-switches"}'], lambda: str(after))
		said = json.loads(sonde("agent", "--status", "--format", "json", "--store", folder, want=0).out)["counters"]
		check_equal([counter["name"] for counter in said], ["page-faults", "context-switches", "cycles"], "counters")
		check(said[0]["value"] >= after[page_faults] and said[0]["running_ns"] and bool(said[2]["error"]) == (said[2]["value"] is None), lambda: str(said))
		check("page-faults" in sonde("agent", "--status", "--store", folder, want=0).out, "the text has no counters")
	check("cycels" in sonde("agent", "--store", folder, "--counters", "cycels", want=1).err, "nonsense")


@test
def a_socket_of_another():
	"""What answers may be anybody: it commands no terminal, and does not hold the asker for ever."""
	folder = fresh_folder("another")
	for answer, want in (b"HTTP/1.1 200 OK\r\n\r\n\x1b]0;owned\x07\nline\n", 0), (b"HTTP/1.1 503 No\r\n\r\nx", 1), (b"", 1), (b"x" * 3000000, 1):
		with socket.socket(socket.AF_UNIX) as listener:
			listener.bind(os.path.join(folder, "status"))
			listener.listen()
			listener.settimeout(10)

			def serve():
				with contextlib.suppress(OSError), listener.accept()[0] as connection: # pylint: disable=cell-var-from-loop
					connection.recv(1000)
					connection.sendall(answer) # pylint: disable=cell-var-from-loop

			server = threading.Thread(target=serve)
			server.start()
			result = sonde("agent", "--status", "--store", folder, want=want)
			server.join()
		check("\x1b" not in result.out and bool(result.out) == (not want), lambda: str(result)) # pylint: disable=cell-var-from-loop
		os.unlink(os.path.join(folder, "status"))


run_tests()
