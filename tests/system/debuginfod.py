#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Debug files from a debuginfod server: a small local one, which also misbehaves. Needs no external network."""
import http.server
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from harness import CFLAGS, check, check_equal, fresh_folder, need_bpf, run, run_tests, scratch, skip, sonde, test

SOURCE = """
__attribute__((noinline)) static unsigned nameless(unsigned x) { for (volatile unsigned i = 0; i < 1000; i++) x += i; return x; }
int main(void) { unsigned x = 1; for (;;) x = nameless(x); }
"""


class Server:
	"""A server. It calls answer(handler) for each GET; .paths are the requested paths. Without answer it serves the files of .files by build
	id."""

	def __init__(self, answer=None):
		self.files, self.paths, self.agents = {}, [], []
		server = self

		class Handler(http.server.BaseHTTPRequestHandler):
			def do_GET(self):
				server.paths.append(self.path)
				server.agents.append(self.headers.get("User-Agent", ""))
				try:
					(answer or server.give)(self)
				except OSError:
					pass # the client has hung up

			def log_message(self, *args): # pylint: disable=arguments-differ
				pass
		self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
		self.http.daemon_threads = True
		self.url = "http://127.0.0.1:%d" % self.http.server_address[1]

	def give(self, handler):
		match = re.fullmatch(r"/buildid/([0-9a-f]+)/debuginfo", handler.path)
		path = match and self.files.get(match.group(1))
		if not path:
			handler.send_error(404)
			return
		with open(path, "rb") as file:
			give_bytes(handler, file.read())

	def asked_for(self, build_id):
		return self.paths.count("/buildid/%s/debuginfo" % build_id)

	def __enter__(self):
		self.thread = threading.Thread(target=self.http.serve_forever, daemon=True)
		self.thread.start()
		return self

	def __exit__(self, *exc):
		self.http.shutdown()
		self.http.server_close()


def give_bytes(handler, content):
	handler.send_response(200)
	handler.send_header("Content-Length", str(len(content)))
	handler.end_headers()
	handler.wfile.write(content)


class Stripped:
	"""A running program without names, and its debug file, which is where no search looks."""

	def __init__(self, name="stripped"):
		self.path, self.debug = scratch(name), scratch(name + ".apart")
		source = scratch(name + ".c")
		with open(source, "w", encoding="ascii") as file:
			file.write(SOURCE)
		for argv in (["gcc", *[flag for flag in CFLAGS if flag != "-g0"], "-g", "-Wl,--build-id=sha1", "-o", self.debug + ".whole", source],
				["objcopy", "--only-keep-debug", self.debug + ".whole", self.debug], ["strip", "-o", self.path, self.debug + ".whole"]):
			made = run(argv)
			check(made.code == 0, lambda made=made: str(made))
		self.build_id = re.search(r"Build ID: ([0-9a-f]+)", run(["readelf", "-n", self.path]).out).group(1)

	def __enter__(self):
		self.process = subprocess.Popen([self.path])
		return self

	def __exit__(self, *exc):
		self.process.kill()
		self.process.wait()


def fresh_cache():
	return tempfile.mkdtemp(dir=scratch(""))


def profile(program, urls, *options, cache=None, seconds=1, **more):
	"""Profiles the program, with lines. Returns the output, the messages, and the time spent after sampling."""
	env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy") and not name.startswith("DEBUGINFOD")}
	env["SONDE_CACHE_DIR"] = cache or fresh_cache()
	env.update(more)
	if urls is not None:
		env["DEBUGINFOD_URLS"] = urls
	return sonde("profile", "-F", "199", "-U", "-f", "--lines", "-p", str(program.process.pid), *options, str(seconds), env=env, want=0)


def has_names(result):
	return "nameless" in result.out


def dead_url():
	"""Returns the URL of a port where nobody listens."""
	with socket.socket() as one:
		one.bind(("127.0.0.1", 0))
		return "http://127.0.0.1:%d" % one.getsockname()[1]


def need_curl():
	need_bpf()
	if "libcurl" not in run([shutil.which("ldconfig") or "/sbin/ldconfig", "-p"]).out:
		skip("no libcurl")


@test
def names_and_lines():
	"""Names and lines with the server and without; then from the cache, without a server."""
	need_curl()
	cache = fresh_cache()
	with Stripped() as program, Server() as server:
		server.files[program.build_id] = program.debug
		without = profile(program, None)
		check(not has_names(without) and not server.paths, lambda: str(without))
		report = scratch("lines.json")
		found = profile(program, server.url, "-o", report, "-o", "-", cache=cache)
		check(has_names(found), lambda: str(found))
		with open(report, encoding="utf-8") as file:
			text = file.read()
		check("stripped.c" in text, "no line of the source")
		check_equal(server.asked_for(program.build_id), 1, "requests")
		check(all(re.fullmatch(r"/buildid/[0-9a-f]+/debuginfo", path) for path in server.paths), str(server.paths))
		check(all(agent.startswith("sonde/") for agent in server.agents), str(server.agents))
		again = profile(program, server.url, cache=cache)
		check(has_names(again), lambda: str(again))
		check_equal(server.asked_for(program.build_id), 1, "requests after the second run")
	for name in os.listdir(os.path.join(cache, "debuginfo")):
		check(re.fullmatch(r"[0-9a-f]+(\.debug|\.[0-9a-f]{16}\.missing)", name), name)
	check_equal(os.stat(os.path.join(cache, "debuginfo", program.build_id + ".debug")).st_mode & 0o777, 0o600, "mode")


@test
def what_is_missing_is_remembered():
	need_curl()
	cache = fresh_cache()
	with Stripped() as program, Server() as server, Server() as other:
		for _ in range(2):
			result = profile(program, server.url, cache=cache)
			check(not has_names(result), lambda result=result: str(result))
		check_equal(server.asked_for(program.build_id), 1, "requests")
		other.files[program.build_id] = program.debug
		result = profile(program, other.url, cache=cache) # another server may have what the first lacks
		check(has_names(result), lambda: str(result))


@test
def a_server_that_hangs():
	"""The server accepts and never answers: the report waits until its timeout."""
	need_curl()
	with Stripped() as program, Server(lambda handler: time.sleep(20)) as server:
		plain = profile(program, None).seconds
		for timeout, most in ((0, 0), (2, 2)):
			result = profile(program, server.url, "--debuginfod-timeout", timeout)
			check(server.asked_for(program.build_id), "was not asked")
			check(not has_names(result) and "had not come" in result.err, lambda result=result: str(result))
			check(result.seconds < plain * 1.5 + most + 3, "--debuginfod-timeout %d: %.1f s, without a server %.1f s" % (timeout, result.seconds, plain))
	return None


def give_endlessly(handler):
	handler.send_response(200)
	handler.end_headers()
	while True:
		handler.wfile.write(b"\x7fELF" + bytes(65532))


@test
def a_server_that_never_ends():
	need_curl()
	cache = fresh_cache()
	with Stripped() as program, Server(give_endlessly) as server:
		result = profile(program, server.url, cache=cache, DEBUGINFOD_MAXSIZE=str(8 << 20))
		check(not has_names(result) and "larger than 8 MiB" in result.err, lambda: str(result))
	check_equal([name for name in os.listdir(os.path.join(cache, "debuginfo")) if not name.endswith(".missing")], [], "the cache")


@test
def files_of_no_use():
	"""Garbage, half a file, and another program's file are treated as missing; this is reported, and they are not requested again."""
	need_curl()
	other = Stripped("another")
	with Stripped() as program:
		with open(program.debug, "rb") as file:
			whole = file.read()
		half, garbage = scratch("half"), scratch("garbage")
		for path, content in ((half, whole[:len(whole) // 2]), (garbage, b"no ELF file" * 1000)):
			with open(path, "wb") as file:
				file.write(content)
		check(run(["objcopy", "--update-section", ".note.gnu.build-id=" + note_of(b"\x11" * 20), other.debug]).code == 0, "objcopy")
		for path in (half, garbage, other.debug):
			cache = fresh_cache()
			with Server() as server:
				server.files[program.build_id] = path
				result = profile(program, server.url, cache=cache)
				check(not has_names(result), lambda path=path, result=result: "%s: %s" % (path, result))
				check("is not used" in result.err, lambda path=path, result=result: "%s: %s" % (path, result))
				profile(program, server.url, cache=cache)
				check_equal(server.asked_for(program.build_id), 1, "requests for " + path)


def note_of(build_id):
	path = scratch("note")
	with open(path, "wb") as file:
		file.write((4).to_bytes(4, "little") + len(build_id).to_bytes(4, "little") + (3).to_bytes(4, "little") + b"GNU\0" + build_id)
	return path


@test
def redirects():
	"""A redirect to another HTTP URL is followed; a redirect to a file, or in circles, is not."""
	need_curl()
	with Stripped() as program, Server() as good:
		good.files[program.build_id] = program.debug
		for target, works in ((good.url + "/buildid/%s/debuginfo" % program.build_id, True), ("file://" + program.debug, False), ("", False)):
			def lead(handler, target=target):
				handler.send_response(302)
				handler.send_header("Location", target or handler.path)
				handler.end_headers()
			with Server(lead) as server:
				result = profile(program, server.url)
				check_equal(has_names(result), works, "%s: %s" % (target, result))
				check(works or "could not be fetched" in result.err, lambda result=result: str(result))
				check(server.asked_for(program.build_id) <= 5, "%d requests" % server.asked_for(program.build_id))
		tree = fresh_folder("tree/buildid/" + program.build_id)
		shutil.copy(program.debug, tree + "/debuginfo")
		result = profile(program, "file://" + scratch("tree"))
		check(not has_names(result) and "could not be fetched" in result.err, lambda: str(result))


@test
def servers_that_fail():
	"""When nobody listens, or a server has an error of its own, the next server is asked."""
	need_curl()
	with Stripped() as program, Server() as good, Server(lambda handler: handler.send_error(500)) as bad:
		good.files[program.build_id] = program.debug
		nobody = profile(program, dead_url())
		check(not has_names(nobody) and "could not be fetched" in nobody.err, lambda: str(nobody))
		both = profile(program, "%s  %s/ %s" % (dead_url(), bad.url, good.url))
		check(has_names(both), lambda: str(both))
		check_equal((bad.asked_for(program.build_id), good.asked_for(program.build_id)), (1, 1), "requests")


@test
def the_process_that_fetches():
	"""The fetching process and the worker have a name, their own user and no privileges, and end with sonde."""
	need_curl()
	seen = []

	def status_of(pid):
		with open("/proc/%s/status" % pid, encoding="utf-8", errors="replace") as file:
			return dict(line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line)

	def look(handler):
		for pid in filter(str.isdigit, os.listdir("/proc")):
			try:
				with open("/proc/%s/cmdline" % pid, "rb") as file:
					if file.read().split(b"\0")[0] in (b"sonde-debuginfod", b"sonde-worker"):
						status = status_of(pid)
						if int(status_of(status["PPid"].strip())["PPid"]) == os.getpid(): # not those of other tests
							seen.append((int(pid), status))
			except OSError:
				continue
		handler.send_error(404)
	with Stripped() as program, Server(look) as server:
		profile(program, server.url)
	check_equal({status["Name"] for _, status in seen}, {"sonde-debuginfo", "sonde-worker"}, "names of the processes") # 15 characters at most
	for _, status in seen:
		check(os.geteuid() != 0 or 0 not in map(int, status["Uid"].split()), status["Uid"])
		check_equal((int(status["CapEff"], 16), int(status["CapPrm"], 16), status["NoNewPrivs"].strip()), (0, 0, "1"), "rights")
	check(not any(os.path.exists("/proc/%d" % pid) for pid, _ in seen), "it lives on")


run_tests()
