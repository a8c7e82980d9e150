#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frames of PHP among the native ones: programs of tests/programs/spin.php report their own stacks. All cases run at once, in one recording. SONDE_PHP
is a PHP other than the machine's own, as a command line; SONDE_PHP_SCRIPTS has the scripts for it (tests/matrix/php.py)."""
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time

from harness import AUDIT, SOURCES, check, check_audited, fresh_folder, need_bpf, run, run_tests, scratch, skip, sonde, test

SCRIPTS = os.environ.get("SONDE_PHP_SCRIPTS", SOURCES)
SPIN = os.path.join(SCRIPTS, "spin.php")
LOOP = "execute_ex"
PLAIN = ("plain", "c", "empty", "static", "magic", "closure", "arrow", "anonymous", "usort", "map", "call", "offset", "string", "get", "iterator", "destruct", "autoload", "generator",
	"next", "delegate", "delegates", "include", "eval", "recursion", "mixed", "sorts", "shutdown")
FIBERS = ("fiber", "resumed", "fiber_generator") # PHP 8.1 and newer
JIT = ("plain", "c", "usort", "closure", "call", "string", "destruct", "generator", "delegates", "include", "eval", "recursion", "mixed", "sorts", "fiber", "resumed")
JIT_KINDS = ("tracing", "function")
CALLED = {"spin_in_c": ("hash", "", 0)} # called by the loop of
CALLS = os.path.join(SCRIPTS, "calls.php")
BY_PHP = {("<main>", "by_sort"), ("<main>", "by_map"), ("<main>", "by_generator"), ("<main>", "by_fiber"), ("<main>", "by_nesting"), ("by_sort", "usort"), ("by_map", "array_map"),
	("by_generator", "numbers"), # which creates the generator, and is later run by C
	("by_fiber", "Fiber::__construct"), ("by_fiber", "Fiber::start"), ("by_fiber", "Fiber::resume"), ("by_nesting", "array_map"),
	("{closure}", "usort"), ("{closure}", "array_map"), ("{closure}", "Fiber::suspend"), ("{closure}", "strrev"),
	("<main>", "by_frees"), ("<main>", "by_pattern"), ("<main>", "by_string"), ("by_frees", "array_map"), ("by_pattern", "preg_replace_callback"),
	("Freed::__destruct", "touched"), ("Text::__toString", "array_map"), ("Text::__toString", "implode")}
BY_C = {("usort", "{closure}"), ("array_map", "{closure}"), ("array_map", "twice"), ("Fiber::start", "{closure}"), ("Fiber::resume", "{closure}"), ("by_generator", "numbers"),
	("array_map", "Freed::__destruct"), ("preg_replace_callback", "{closure}"), ("by_string", "Text::__toString")}
BY_WHAT_ENDED = ("array_map", "Freed::__destruct") # the activation of the closure that it called frees its variables
ENOUGH = 10 # samples of a case


def php():
	found = os.environ.get("SONDE_PHP", "").split() or [shutil.which("php8.2") or shutil.which("php") or skip("php is not installed")]
	return found, tuple(map(int, run([*found, "-n", "-r", "echo PHP_MAJOR_VERSION, ' ', PHP_MINOR_VERSION;"]).out.split()))


def told(text):
	"""Parses spin.php's report: [(name, file, line)], root to leaf; line 0: a function written in C. Also returns how often PHP's loop is
	entered."""
	lines = text[text.index("spin"):].split("\n")
	end = next(i for i, line in enumerate(lines) if line.startswith("entries "))
	stack = [tuple(line.split("\t")) for line in lines[:end]]
	return [(name, os.path.basename(file), int(line)) for name, file, line in reversed(stack)], int(lines[end].split()[1])


class Spin:
	def __init__(self, argv):
		self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.nice(10)) # sonde has priority
		self.pid = self.process.pid

	def read(self):
		text = ""
		while not text.endswith("ready\n"):
			line = self.process.stdout.readline()
			check(line, lambda: "php ended: %s" % text)
			text += line
		return told(text)

	def end(self):
		self.process.kill()
		self.process.communicate()


def chain_error(frames, stack, has_jit):
	"""Returns None when the PHP frames are exactly those that the script reported, plus what it calls repeatedly. In code made by the JIT
	the leaf's line is unknown."""
	chain = [frame[1:] for frame in frames if frame[0] == "php"]
	if len(chain) == len(stack) + 1 and chain[-1] == CALLED.get(stack[-1][0]):
		chain.pop()
	elif stack[-1][0] in CALLED and chain[-1] == (*stack[-1][:2], stack[-1][2] - 1): # where its loop begins
		chain[-1] = stack[-1]
	elif has_jit and chain[-1] == (*stack[-1][:2], 0):
		chain[-1] = stack[-1]
	if len(chain) != len(stack):
		return "%d frames, not %d" % (len(chain), len(stack))
	for i, (have, want) in enumerate(zip(chain, stack)):
		if have != want:
			return "frame %d is %r, not %r" % (i, have, want)
	return None


def order_error(frames, stack, nr_entries):
	"""Returns None when native frames are where C is, and nowhere else."""
	if frames[0][0] != "native" or any(frame[1] == LOOP for frame in frames):
		return "PHP's own frames are not replaced"
	places = [i for i, frame in enumerate(frames) if frame[0] == "php"]
	gaps = [i for i, (before, after) in enumerate(zip(places, places[1:])) if after > before + 1]
	if len(gaps) + 1 != nr_entries:
		return "native frames are in %d places, PHP was entered %d times" % (len(gaps), nr_entries)
	for i, (_, _, line) in enumerate(stack[:-1]):
		if not line and i not in gaps:
			return "no native frames between %s and %s" % (stack[i][0], stack[i + 1][0])
	return None


def jit_options(kind):
	opcache = () if php()[1] >= (8, 5) else ("zend_extension=opcache",) # built in from then on
	return opcache + ("opcache.enable_cli=1", "opcache.file_update_protection=0", "opcache.jit=" + kind, "opcache.jit_buffer_size=16M")


def sample_error(frames, expected, kind, has_jit):
	stack, nr_entries = expected
	marks = [frame[1] for frame in frames if frame[0] == "mark"]
	error = chain_error(frames, stack, has_jit)
	if error:
		return error
	if kind == "fiber": # from the resumer's frames, marked, to the fiber's own stack
		at = next(i for i, frame in enumerate(frames) if frame[1].startswith("Fiber::"))
		is_right = len(marks) == 1 and frames[at + 1][1] == marks[0] and not any(frame[0] == "native" for frame in frames[:at]) and frames[at + 2][0] == "native"
		return None if is_right else "the fiber's stack is not where it belongs"
	if marks:
		return "marked: %r" % marks
	return order_error(frames, stack, nr_entries)


def stack_of(report, sample):
	"""Returns [(kind, name, file, line)], root to leaf."""
	frames = []
	for number in report["stacks"][sample["user_stack"]][::-1]:
		frame = report["frames"][number]
		function = report["functions"][frame["function"]]
		frames.append((frame["kind"], function["name"], os.path.basename(function["file"]), frame["line"]))
	return frames


def judge(expected, kinds, args=(), has_jit=False):
	"""Samples the processes until there is enough of each; expected[pid]: what it reported. Returns {pid: (right, {error: count})}."""
	verdicts = {pid: (0, {}) for pid in expected}
	for _ in range(12): # a loaded machine gives few
		few = [pid for pid, (right, wrong) in verdicts.items() if right + sum(wrong.values()) < ENOUGH]
		if not few:
			break
		report = json.loads(sonde("profile", "--format", "json", "--timestamps", "-U", "-F", 499, "-p", ",".join(map(str, few)), *args, 2, want=0).out)
		if args == AUDIT:
			check_audited(report)
		for note in report["account"]["notes"]:
			print("# sonde notes:", note, flush=True)
		for sample in report["samples"]:
			right, wrong = verdicts[sample["pid"]]
			error = sample_error(stack_of(report, sample), expected[sample["pid"]], kinds.get(sample["pid"]), has_jit)
			if error:
				wrong[error] = wrong.get(error, 0) + sample["values"][0]
			verdicts[sample["pid"]] = (right + (0 if error else sample["values"][0]), wrong)
	return verdicts


def check_verdicts(verdicts, names):
	"""Of all samples 99 % are right, and of each case nearly all: a case may have only a handful."""
	nr_right, nr_wrong = sum(right for right, _ in verdicts.values()), sum(sum(wrong.values()) for _, wrong in verdicts.values())
	bad = {names[pid]: verdict for pid, verdict in verdicts.items() if verdict[0] < ENOUGH or sum(verdict[1].values()) > max(1, 0.05 * verdict[0])}
	check(not bad and nr_wrong <= 0.01 * (nr_right + nr_wrong), lambda: "samples that are right and wrong: %r" % (bad or verdicts))
	return "%d samples of %d processes, %d wrong" % (nr_right, len(verdicts), nr_wrong)


def words_of(options):
	return [word for option in options for word in ("-d", option)]


def check_cases(cases, options=(), args=()):
	program, _ = php()
	spins = [Spin([*program, "-n", *words_of(options), SPIN, case]) for case in cases]
	try:
		expected = {spin.pid: spin.read() for spin in spins}
		kinds = {spin.pid: "fiber" if case in FIBERS else None for spin, case in zip(spins, cases)}
		return check_verdicts(judge(expected, kinds, args, bool(options)), {spin.pid: case for spin, case in zip(spins, cases)})
	finally:
		for spin in spins:
			spin.end()


@test
def interpreted():
	need_bpf()
	cases = PLAIN + (FIBERS if php()[1] >= (8, 1) else ())
	return check_cases(cases)


@test
def audited():
	"""The audit examines stacks and leaves them unchanged."""
	need_bpf()
	return check_cases(("usort", "generator", "include", "sorts"), args=AUDIT)


@test
def compiled():
	"""Code of the JIT runs on the frame of PHP's loop: stacks are as complete, and in the same order, as without it."""
	need_bpf()
	return "; ".join("%s: %s" % (kind, check_cases(JIT, jit_options(kind))) for kind in JIT_KINDS)


def is_made(name):
	"""Returns whether this is code of the JIT."""
	return name.startswith("[zero (deleted)")


def is_activation(name):
	return name == LOOP or is_made(name)


def call_error(frames):
	"""Returns None when the frame before each frame of calls.php can have called it."""
	frames = [(kind, "{closure}" if name.startswith("{closure:") else name) for kind, name, *_ in frames] # from PHP 8.4 on its name includes its location
	places = [i for i, frame in enumerate(frames) if frame[0] == "php"]
	if places and (frames[places[0]][1] != "<main>" or frames[places[0] - 1][1] not in ("zend_execute", frames[-1][1])):
		return "%s after %s" % (frames[places[0]][1], frames[places[0] - 1][1])
	for before, after in zip(places, places[1:]):
		call = (frames[before][1], frames[after][1])
		if "[unknown]" in call: # a closure that was freed before its name was read
			continue
		if call not in (BY_PHP if after == before + 1 else BY_C):
			return "%s calls %s, %d frames between" % (*call, after - before - 1)
		if call == BY_WHAT_ENDED and not any(is_activation(name) for _, name in frames[before + 1:after]):
			return "%s calls %s, and what has ended is not seen" % call
	behind = [name for _, name in frames[places[-1] + 1:] if is_activation(name)] if places else []
	if len(behind) > 1:
		return "%s and %d activations that run nothing" % (frames[places[-1]][1], len(behind))
	return None


def check_calls(options=()):
	"""Anywhere on PHP's way to C and back, no false call is shown unless the stack is marked, except for a few destructors
	(docs/internals/php.md)."""
	nr, nr_marked, wrong = 0, 0, {}
	process = subprocess.Popen([*php()[0], "-n", *words_of(options), CALLS], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
	try:
		process.stdout.readline()
		for _ in range(6):
			report = json.loads(sonde("profile", "--format", "json", "--timestamps", "-U", "-F", 1999, "-p", process.pid, 2, want=0).out)
			for sample in report["samples"]:
				frames = stack_of(report, sample)
				is_marked = any(kind == "mark" for kind, *_ in frames)
				error = None if is_marked else call_error(frames)
				nr += sample["values"][0]
				nr_marked += sample["values"][0] if is_marked else 0
				if error:
					wrong[error] = wrong.get(error, 0) + sample["values"][0]
			if nr >= 1000:
				break
	finally:
		process.kill()
		process.communicate()
	check(nr >= 500 and sum(wrong.values()) <= 1 + nr // 500 and nr_marked <= 0.1 * nr, lambda: "%d samples, %d marked, wrong: %r" % (nr, nr_marked, wrong))
	return "%d samples, %d marked, wrong: %r" % (nr, nr_marked, wrong)


@test
def compiled_and_young():
	"""Children run the JIT's code, on a frame of its own, before their interpreter is known."""
	need_bpf()
	path = scratch("brief.json")
	sonde("profile", "--timestamps", "-U", "-F", 1999, "-o", path, "--", *php()[0], "-n", *words_of(jit_options("tracing")), os.path.join(SCRIPTS, "brief.php"), 3, want=0)
	with open(path, encoding="utf-8") as file:
		report = json.load(file)
	nr, nr_marked, wrong = 0, 0, {}
	for sample in report["samples"]:
		frames = stack_of(report, sample) if sample["user_stack"] is not None else []
		names = [name for kind, name, *_ in frames if kind == "php"]
		if "busy" not in names and not any(is_made(name) for _, name, *_ in frames):
			continue
		is_marked = any(kind == "mark" for kind, *_ in frames)
		nr += 1
		nr_marked += is_marked
		if not is_marked and names[:1] != ["<main>"]:
			wrong[";".join(names)] = wrong.get(";".join(names), 0) + 1
	check(nr >= 30 and not wrong, lambda: "%d samples, %d marked, wrong: %r" % (nr, nr_marked, wrong))
	return "%d samples, %d marked" % (nr, nr_marked)


@test
def calls_and_returns():
	need_bpf()
	return check_calls()


@test
def calls_and_returns_of_the_jit():
	need_bpf()
	return "; ".join("%s: %s" % (kind, check_calls(jit_options(kind))) for kind in JIT_KINDS)


class Request:
	"""A request to php-fpm (FastCGI 1.0), which is never answered completely."""

	def __init__(self, path, script):
		params = {"SCRIPT_FILENAME": script, "REQUEST_METHOD": "GET", "PHP_VALUE": "implicit_flush=1"}
		pairs = b"".join(struct.pack(">BB", len(name), len(value)) + name.encode() + value.encode() for name, value in params.items())
		self.socket = socket.socket(socket.AF_UNIX)
		self.socket.settimeout(20)
		self.socket.connect(path)
		for kind, content in ((1, struct.pack(">HB5x", 1, 0)), (4, pairs), (4, b""), (5, b"")): # BEGIN_REQUEST (responder), PARAMS, STDIN
			self.socket.sendall(struct.pack(">BBHHBx", 1, kind, 1, len(content), 0) + content)

	def take(self, nr):
		data = b""
		while len(data) < nr:
			part = self.socket.recv(nr - len(data))
			check(part, "php-fpm hung up")
			data += part
		return data

	def read(self):
		"""Returns (the worker's pid, what it reported)."""
		text = ""
		while not text.endswith("ready\n"):
			_, _, _, nr, padding = struct.unpack(">BBHHBx", self.take(8))
			text += self.take(nr + padding)[:nr].decode()
		return int(text[text.index("pid ") + 4:].split("\n")[0]), told(text[text.index("\nspin") + 1:])


def served(folder, cases):
	path = os.path.join(folder, "fpm.sock")
	requests = []
	for case in cases:
		script = os.path.join(folder, case + ".php")
		with open(script, "w") as file:
			file.write("<?php\necho 'pid ', getmypid(), \"\\n\";\n$argv = ['', '%s'];\nrequire '%s';\n" % (case, SPIN))
		requests.append(Request(path, script))
	try:
		expected, names = {}, {}
		for case, request in zip(cases, requests):
			pid, expected_of = request.read()
			expected[pid], names[pid] = expected_of, case
		check(len(expected) == len(cases), "the requests are served by one process")
		return check_verdicts(judge(expected, {}), names)
	finally:
		for request in requests:
			request.socket.close()


# eval's code and its closures lie at the same addresses again and again; each calls the function that is named after the line of the call.
RECOMPILED = """<?php
ini_set('memory_limit', -1);
function spin($n) { for ($i = 0; $i < $n; $i++); }
%s
function run($n) { eval(str_repeat("\n", $n) . "at_$n();"); }
function make($n) { $f = eval('return function () {' . str_repeat("\n", $n) . "at_$n(); };"); $f(); }
while (true)
	for ($n = 1; $n <= 30; $n++) { run($n); make($n); }
""" % "\n".join("function at_%d() { spin(1500); }" % n for n in range(1, 31))


def recompiled_lines(process):
	"""Returns ({(line that is called from, line that is shown): samples}, the account), of one recording."""
	lines = {}
	report = json.loads(sonde("profile", "--format", "json", "--timestamps", "-U", "-F", 4999, "-p", process.pid, 1, want=0).out)
	for sample in report["samples"]:
		frames = [frame for frame in stack_of(report, sample) if frame[0] == "php"]
		odd = [name for _, name, *_ in frames if not re.fullmatch(r"at_[0-9]+|<main>|<eval>|make|run|spin|str_repeat|\{closure.*\}|\[unknown\]", name)]
		check(not odd, lambda: "names that nothing has: %r" % odd)
		for caller, callee in zip(frames, frames[1:]):
			if re.fullmatch("at_[0-9]+", callee[1]) and caller[1] != "[unknown]": # it was freed before its name was read
				key = (int(callee[1].split("_")[1]) + 1, caller[3])
				lines[key] = lines.get(key, 0) + sample["values"][0]
	return lines, report["account"]


@test
def recompiled():
	"""What is kept of a named function is right, nothing is kept of code that is freed, and none has the name of what lies there now."""
	need_bpf()
	path, lines, hits, wrong = scratch("recompiled.php"), {}, 0, 0
	with open(path, "w", encoding="ascii") as file:
		file.write(RECOMPILED)
	with subprocess.Popen([*php()[0], "-n", path]) as process:
		try:
			for _ in range(10): # a loaded machine gives few
				more, account = recompiled_lines(process)
				lines = {key: lines.get(key, 0) + more.get(key, 0) for key in {*lines, *more}}
				hits, wrong = hits + account["runtime_cache_hits"], wrong + account["runtime_cache_wrong"]
				if sum(lines.values()) >= 1000:
					break
		finally:
			process.kill()
	bad = {key: nr for key, nr in lines.items() if key[0] != key[1]}
	check(not bad and sum(lines.values()) >= 200, lambda: "%d frames; in line, not in line: %r ..." % (sum(lines.values()), sorted(bad.items())[:5]))
	check(hits and not wrong, lambda: "%d hits in the cache, %d of those that were read again wrong" % (hits, wrong))
	return "%d frames, %d hits in the cache" % (sum(lines.values()), hits)


@test
def nothing_is_kept_of_a_server():
	"""It gives back its functions after each request."""
	need_bpf()
	script = scratch("serves.php")
	with open(script, "w", encoding="ascii") as file:
		file.write("<?php\n$argv = ['', 'recursion'];\nrequire '%s';\n" % SPIN)
	with socket.socket() as free:
		free.bind(("127.0.0.1", 0))
		port = free.getsockname()[1]
	with subprocess.Popen([*php()[0], "-n", "-S", "127.0.0.1:%d" % port, script], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
		try:
			process.stderr.readline() # it listens
			with socket.create_connection(("127.0.0.1", port), timeout=20) as request:
				request.sendall(b"GET / HTTP/1.0\r\n\r\n")
				time.sleep(0.5)
				account = json.loads(sonde("profile", "--format", "json", "-U", "-F", 999, "-p", process.pid, 1, want=0).out)["account"]
		finally:
			process.kill()
	check(account["recorded"] >= 30 and not account["runtime_cache_hits"], lambda: "%d samples, %d hits" % (account["recorded"], account["runtime_cache_hits"]))
	return "%d samples" % account["recorded"]


@test
def workers():
	"""Forks of one php-fpm that serve different scripts."""
	need_bpf()
	fpm = shutil.which("php-fpm8.2", path=os.environ["PATH"] + ":/usr/sbin") or skip("php-fpm is not installed")
	folder = fresh_folder("php-fpm")
	with open(os.path.join(folder, "fpm.conf"), "w") as file:
		file.write("[global]\nerror_log = %s/log\ndaemonize = no\n[www]\nlisten = %s/fpm.sock\npm = static\npm.max_children = 2\nuser = root\n" % (folder, folder))
	process = subprocess.Popen([fpm, "-n", "-R", "-y", os.path.join(folder, "fpm.conf")], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=lambda: os.nice(10))
	try:
		deadline = time.monotonic() + 20
		while not os.path.exists(os.path.join(folder, "fpm.sock")) and time.monotonic() < deadline:
			time.sleep(0.05)
		return served(folder, ("usort", "recursion"))
	finally:
		with open("/proc/%d/task/%d/children" % (process.pid, process.pid)) as file:
			children = file.read().split()
		process.kill()
		process.wait()
		for pid in children:
			os.kill(int(pid), signal.SIGKILL)


if __name__ == "__main__":
	run_tests()
