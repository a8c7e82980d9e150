# SPDX-License-Identifier: Apache-2.0
"""The base of the system tests: runs sonde, runs workloads whose true stack is known, and compares. Standard library only.

A test file registers functions with @test and ends with run_tests() (tests/tap.py). Environment:
  SONDE                the program under test (default: build/sonde of this checkout)
  SONDE_TEST_NO_BPF=1  tests that need BPF are skipped, and counted as such; without it they fail where BPF is missing
"""
import atexit
import contextlib
import fcntl
import json
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from tap import Failure, Skip, alone, check, check_equal, run_tests, skip, test # noqa: E402,F401 (for those who import us)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SONDE = os.path.abspath(os.environ.get("SONDE", os.path.join(ROOT, "build", "sonde")))
SOURCES = os.path.join(ROOT, "tests", "programs")
PROGRAMS = os.path.join(os.path.dirname(SONDE), "test-programs")
SCRATCH = tempfile.mkdtemp(prefix="sonde-test-")
os.chmod(SCRATCH, 0o755)
atexit.register(shutil.rmtree, SCRATCH, True)
os.environ.setdefault("SONDE_CACHE_DIR", os.path.join(SCRATCH, "cache"))  # not the machine's

CFLAGS = ["-O2", "-g0", "-Wall", "-Wextra", "-Werror", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread"]
VARIANTS = {
	"": ["gcc"],
	"static": ["gcc", "-static"],
	"spie": ["gcc", "-static-pie", "-fPIE"],
	"nopie": ["gcc", "-no-pie", "-fno-pie"],
	"fp": ["gcc", "-fno-omit-frame-pointer"],
	"clang": ["clang"],
}


def need_bpf():
	if os.environ.get("SONDE_TEST_NO_BPF") == "1":
		skip("SONDE_TEST_NO_BPF=1")


def find_tool(*names):
	"""Returns the first of these programs that is installed, or None."""
	for name in names:
		path = shutil.which(name)
		if path:
			return path
	return None


def stolen():
	"""Returns the seconds that a host has stolen from this machine's CPUs until now. Clock time includes stolen time; CPU time does not."""
	with open("/proc/stat", encoding="ascii") as file:
		return int(file.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


def scratch(name):
	"""Returns a path of that name in a directory that is removed when this process ends."""
	return os.path.join(SCRATCH, name)


def fresh_folder(name):
	"""The same for an empty directory, also when a test runs again."""
	path = scratch(name)
	shutil.rmtree(path, ignore_errors=True)
	os.makedirs(path)
	return path


# --- running sonde -------------------------------------------------------------------------------------------------------------

class Run:
	"""How a command ended: code (128+N for a signal, as a shell counts), out and err as text, seconds."""

	def __init__(self, code, out, err, seconds):
		self.code = 128 - code if code < 0 else code
		self.out = out.decode("utf-8", "backslashreplace") if out is not None else ""
		self.err = err.decode("utf-8", "backslashreplace") if err is not None else ""
		self.seconds = seconds

	def __str__(self):
		return "exit %d after %.1f s\nstdout: %s\nstderr: %s" % (self.code, self.seconds, clip(self.out), clip(self.err))


def clip(text, limit=3000):
	return text if len(text) <= limit else text[:limit] + "... (%d characters)" % len(text)


def family(pid):
	"""Returns the process and its descendants, the process first."""
	parents = {}
	for entry in filter(str.isdigit, os.listdir("/proc")):
		with contextlib.suppress(OSError), open("/proc/%s/stat" % entry, encoding="utf-8", errors="replace") as stat:
			parents[int(entry)] = int(stat.read().rpartition(")")[2].split()[1])
	pids = [pid]
	for one in pids:
		pids += [child for child, parent in parents.items() if parent == one]
	return pids


def where(pid):
	"""Shows where a process that should have ended hangs, and its descendants: state, times and kernel stack of each thread, and all user
	stacks by gdb."""
	lines = []
	for one in family(pid):
		with contextlib.suppress(OSError):
			for tid in os.listdir("/proc/%d/task" % one):
				texts = {}
				for name in ("stat", "stack"):
					with open("/proc/%d/task/%s/%s" % (one, tid, name), encoding="utf-8", errors="replace") as file:
						texts[name] = file.read()
				comm, _, rest = texts["stat"].partition("(")[2].rpartition(")")
				fields = rest.split()
				lines.append("%d/%s %s: %s, %s + %s ticks\n%s" % (one, tid, comm, fields[0], fields[11], fields[12], texts["stack"]))
		if shutil.which("gdb"):
			with contextlib.suppress(subprocess.TimeoutExpired):
				lines.append(subprocess.run(["gdb", "-p", str(one), "-batch", "-ex", "thread apply all bt 30"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
							    stderr=subprocess.DEVNULL, timeout=20, check=False).stdout.decode("utf-8", "backslashreplace"))
	return "\n".join(lines)


def end_late(process, what, timeout):
	"""Ends a process that did not end in time, and fails with where it hung."""
	stood = where(process.pid)
	process.kill()
	out, err = process.communicate()
	raise Failure("%s did not end within %d s\n%s\n%s" % (what, timeout, Run(process.returncode, out, err, timeout), stood))


def run(argv, timeout=60, **kwargs):
	"""Runs a command to its end. A command that does not end in time fails the test."""
	kwargs.setdefault("stdin", subprocess.DEVNULL)
	kwargs.setdefault("stdout", subprocess.PIPE)
	kwargs.setdefault("stderr", subprocess.PIPE)
	began = time.monotonic()
	with subprocess.Popen([str(arg) for arg in argv], **kwargs) as process:
		try:
			out, err = process.communicate(timeout=timeout)
		except subprocess.TimeoutExpired:
			end_late(process, " ".join(map(str, argv)), timeout)
	return Run(process.returncode, out, err, time.monotonic() - began)


def sonde(*args, want=None, **kwargs):
	"""Runs sonde with these arguments; `want` is the required exit code."""
	result = run([SONDE, *args], **kwargs)
	if want is not None:
		check(result.code == want, lambda: "sonde %s: want exit %d\n%s" % (" ".join(map(str, args)), want, result))
	return result


def load_json(path):
	with open(path, encoding="utf-8") as file:
		return json.load(file)


def converted(*args):
	"""What `sonde convert` makes of a profile: the JSON report."""
	to = scratch("converted.json")
	sonde("convert", *args, to, want=0)
	return load_json(to)


def nr_samples(report, pid=None):
	"""In a JSON report: of all processes, or of one."""
	return sum(int(sample["values"][0]) for sample in report["samples"] if pid in (None, sample["pid"]))


def record(verb, *args, want=0, **kwargs):
	"""Runs sonde as sonde() does, with a JSON report in scratch space. Returns the report, and how sonde ended."""
	path = scratch("%s.json" % verb)
	result = sonde(verb, "-o", path, *args, want=want, **kwargs)
	return load_json(path), result


AUDIT = ("--audit-every", 1)


def check_audited(report):
	"""In the report of a profile with AUDIT, nearly all stacks were audited and match what libdw finds."""
	account, nr = report["account"], sum(sample["values"][0] for sample in report["samples"])
	check(account["audited"] >= 0.8 * nr and not account["audit_differed"], lambda: "%d of %d stacks audited, %d differ" % (account["audited"], nr, account["audit_differed"]))


class Background:
	"""sonde in the background; leaves no process behind."""

	def __init__(self, *args, **kwargs):
		kwargs.setdefault("stdin", subprocess.DEVNULL)
		kwargs.setdefault("stdout", subprocess.PIPE)
		kwargs.setdefault("stderr", subprocess.PIPE)
		self.began = time.monotonic()
		self.process = subprocess.Popen([SONDE, *[str(arg) for arg in args]], bufsize=0, **kwargs)
		atexit.register(self.process.kill) # of one that failed before its `with`; harmless after its end

	def __enter__(self):
		return self

	def wait_line(self, text, timeout=20):
		"""Reads stderr up to and including the first line with the text. The header says that sampling begins."""
		seen = b""
		while text.encode() not in seen:
			ready, _, _ = select.select([self.process.stderr], [], [], max(0, self.began + timeout - time.monotonic()))
			line = self.process.stderr.readline() if ready else b""
			seen += line
			check(line, lambda: "no line with %r on stderr, but: %s" % (text, seen.decode("utf-8", "backslashreplace")))
		return self

	def send(self, signo):
		self.process.send_signal(signo)

	def finish(self, timeout=30):
		try:
			out, err = self.process.communicate(timeout=timeout)
		except subprocess.TimeoutExpired:
			end_late(self.process, "sonde", timeout)
		return Run(self.process.returncode, out, err, time.monotonic() - self.began)

	def __exit__(self, *exc):
		if self.process.poll() is None:
			self.process.kill()
		self.process.communicate()


def bpf_ids(pid, kind):
	"""Returns the ids of the BPF programs ("prog") or maps ("map") that a process holds."""
	ids = set()
	for fd in os.listdir("/proc/%d/fdinfo" % pid):
		try:
			with open("/proc/%d/fdinfo/%s" % (pid, fd), encoding="ascii") as file:
				ids.update(re.findall(r"^%s_id:\t(\d+)$" % kind, file.read(), re.MULTILINE))
		except FileNotFoundError:
			pass # closed since
	return ids


def bpf_names(pid, kind):
	"""The names of the programs ("prog") or maps ("map") that a process holds, by bpftool."""
	ids = bpf_ids(pid, kind)
	result = run([find_tool("bpftool") or "/usr/sbin/bpftool", "-j", kind, "show"])
	check_equal(result.code, 0, str(result))
	shown = {str(entry["id"]): entry.get("name", "") for entry in json.loads(result.out)}
	return [shown[number] for number in ids if number in shown]


# --- workloads -----------------------------------------------------------------------------------------------------------------

def is_older(target, sources):
	return not os.path.exists(target) or any(os.path.getmtime(source) > os.path.getmtime(target) for source in sources)


@contextlib.contextmanager
def building():
	"""Test files run side by side and need the same programs: one builds them, the others wait and find them built."""
	os.makedirs(PROGRAMS, exist_ok=True)
	with open(os.path.join(PROGRAMS, ".lock"), "w", encoding="ascii") as lock:
		fcntl.flock(lock, fcntl.LOCK_EX)
		yield


def build(name, variant=""):
	"""Builds tests/programs/NAME.{c,cc,rs} and returns the program's path."""
	with building():
		return build_if_older(name, variant)


def build_if_older(name, variant):
	target = os.path.join(PROGRAMS, name + ("-" + variant if variant else ""))
	sources = [os.path.join(SOURCES, file) for file in os.listdir(SOURCES)]
	if not is_older(target, sources):
		return target
	path = os.path.join(SOURCES, name)
	if os.path.exists(path + ".rs"):
		if not find_tool("rustc"):
			skip("no rustc")
		compile_one(["rustc", "-O", "-o", target, path + ".rs"])
	elif os.path.exists(path + ".cc"):
		compile_one(["g++", *CFLAGS, "-o", target, path + ".cc"])
	else:
		compile_one([*VARIANTS[variant], *[flag for flag in CFLAGS if variant != "fp" or flag != "-fomit-frame-pointer"],
			"-o", target, path + ".c", *parts_of(name)])
	return target


def build_library(name):
	"""Builds a C file of tests/programs as a library and returns its path."""
	library = os.path.join(PROGRAMS, "lib%s.so" % name)
	with building():
		if is_older(library, [os.path.join(SOURCES, name + ".c")]):
			compile_one(["gcc", *CFLAGS, "-fno-builtin", "-shared", "-fPIC", "-o", library, os.path.join(SOURCES, name + ".c")])
	return library


def parts_of(name):
	if name != "library":
		return []
	linked, plugin = os.path.join(PROGRAMS, "liblinked.so"), os.path.join(PROGRAMS, "plugin.so")
	for source, target in (("library_linked.c", linked), ("library_plugin.c", plugin)):
		compile_one(["gcc", *CFLAGS, "-shared", "-fPIC", "-o", target, os.path.join(SOURCES, source)])
	return [linked, "-Wl,-rpath," + PROGRAMS, "-ldl"]


def compile_one(argv):
	"""Creates the target whole or not at all: a partial file left by an interrupted test would be taken for built."""
	at = argv.index("-o") + 1
	target, half = argv[at], argv[at] + ".new"
	result = run([*argv[:at], half, *argv[at + 1:]], timeout=120)
	check(result.code == 0, lambda: "%s\n%s" % (" ".join(argv), result))
	os.replace(half, target)


class Program:
	"""A running workload: .pid, and .chains: thread name -> [function names, root to leaf], as it reports itself. `path`: the program to run
	instead of the one built by name, if need be with words before it."""

	def __init__(self, name, *args, variant="", seconds=60, path=None):
		self.argv = [*(path or [build(name, variant)]), str(seconds), *[str(arg) for arg in args]]
		self.chains = {}
		self.pid = None

	def __enter__(self):
		self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
		for line in self.process.stdout:
			if self.read_line(line.decode().rstrip("\n")):
				return self
		raise Failure("%s ended before it was ready (exit %s)" % (" ".join(self.argv), self.process.wait()))

	def read_line(self, line):
		word, _, rest = line.partition(" ")
		if word == "pid":
			self.pid = int(rest)
		elif word == "chain":
			comm, _, chain = rest.partition(" ")
			self.chains[comm] = chain.split(";")
		return word == "ready"

	def __exit__(self, *exc):
		self.process.kill()
		self.process.communicate()


def parse_chains(text):
	"""Returns the chains in the output of a workload that ran to its end."""
	program = object.__new__(Program)
	program.chains = {}
	for line in text.splitlines():
		program.read_line(line)
	return program.chains


def make_certificate():
	"""The files of a certificate of localhost, which is its own authority, and its key."""
	if not find_tool("openssl"):
		skip("no openssl to make a certificate")
	certificate, key = scratch("certificate.pem"), scratch("key.pem")
	made = run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
	check(made.code == 0, lambda: str(made))
	return certificate, key


def cpu_times(pid):
	"""Returns the seconds of CPUs that a process has used: (user, system, user and system of its children that it has waited for)."""
	with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as file:
		return [int(ticks) / os.sysconf("SC_CLK_TCK") for ticks in file.read().rpartition(")")[2].split()[11:15]]


def cpu_seconds(pid):
	return sum(cpu_times(pid)[:2])


def cpu_seconds_with_children(pid):
	return sum(cpu_times(pid))


def idle_seconds():
	"""Returns the idle seconds of all CPUs since boot."""
	with open("/proc/stat", encoding="ascii") as file:
		fields = file.readline().split()
	return (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")


# --- stacks --------------------------------------------------------------------------------------------------------------------

class Stack:
	"""A stack and its count: comm, user and kernel frames root to leaf; the process where the format has it."""

	def __init__(self, comm, user, kernel, count, pid=None):
		self.comm, self.user, self.kernel, self.count, self.pid = comm, user, kernel, count, pid

	def __str__(self):
		return "%6d %s: %s%s" % (self.count, self.comm, ";".join(self.user), " | " + ";".join(self.kernel) if self.kernel else "")


def parse_folded(text):
	"""Parses `profile -f -a`: kernel frames end in _[k]."""
	stacks = []
	for number, line in enumerate(text.splitlines(), 1):
		match = re.fullmatch(r"([^;]*)((?:;[^;]+)*) ([1-9][0-9]*)", line)
		check(match, lambda: "folded line %d is none: %r" % (number, line))
		frames = match.group(2).split(";")[1:]
		kernel = [frame[:-4] for frame in frames if frame.endswith("_[k]")]
		user = [frame for frame in frames if not frame.endswith("_[k]")]
		check(frames == user + [frame + "_[k]" for frame in kernel], lambda: "line %d: user frames behind kernel frames: %r" % (number, line))
		stacks.append(Stack(match.group(1), user, kernel, int(match.group(3))))
	return stacks


def parse_json(report):
	"""Parses `--format json`."""
	names = [report["functions"][frame["function"]]["name"] for frame in report["frames"]]

	def frames_of(stack):
		return [] if stack is None else [names[frame] for frame in report["stacks"][stack]][::-1]
	return [Stack(sample["comm"], frames_of(sample["user_stack"]), frames_of(sample["kernel_stack"]), sample["values"][0], sample["pid"])
		for sample in report["samples"]]


def total(stacks):
	return sum(stack.count for stack in stacks)


# Frames of libc around the program's own: by name where libc has symbols, else by file. Debian's libc is stripped: its static functions have no symbols
# and may be shown as the file in brackets.
LIBC_START = r"__libc_start_main(_impl)?|__libc_start_call_main|__libc_start_main@@GLIBC_\S+|generic_start_main|\[libc[^\]]*\]"
LIBC_THREAD = r"__clone|__clone3|clone|clone3|start_thread|\[libc[^\]]*\]"
LIBC_READ = r"__libc_read|__GI___libc_read|read|__read"


def entry_error(frames, main_thread=True):
	"""Returns what is wrong with the frames between the thread's start and its first own function, or None."""
	if main_thread:
		if frames[:1] != ["_start"]:
			return "does not begin with _start"
		frames = frames[1:]
	if not 1 <= len(frames) <= 2:
		return "%d frames of libc at the root" % len(frames)
	for frame in frames:
		if not re.fullmatch(LIBC_START if main_thread else LIBC_THREAD, frame):
			return "%s is no frame of libc's start" % frame
	return None


def chain_error(stack, chain):
	"""Returns why this stack is not exactly the chain, or None."""
	user, first = stack.user, chain[0]
	if first not in user:
		return "%s is missing" % first
	at = user.index(first)
	if user[at:] != chain:
		own = user[at:]
		same = next((i for i, (a, b) in enumerate(zip(own, chain)) if a != b), min(len(own), len(chain)))
		return "%d frames, want %d; differs at %d: %s" % (len(own), len(chain), same, ";".join(own[same:same + 3]) or "(end)")
	return entry_error(user[:at], first == "main")


def check_exact(stacks, error_of, minimum=0.99, at_least=100):
	"""At least `minimum` of the samples are right by error_of(stack); wrong ones are listed. Returns the share."""
	wrong, nr_wrong, nr = [], 0, total(stacks)
	for stack in sorted(stacks, key=lambda stack: -stack.count):
		error = error_of(stack)
		if error:
			nr_wrong += stack.count
			wrong.append("%s\n      %s" % (clip(str(stack), 600), error))
	check(nr >= at_least, lambda: "only %d samples, want %d" % (nr, at_least))
	check(nr_wrong <= nr * (1 - minimum), lambda: "%d of %d samples are not the true chain:\n%s" % (nr_wrong, nr, "\n".join(wrong[:12])))
	return 1 - nr_wrong / nr


# --- perf as a reference -------------------------------------------------------------------------------------------------------

def perf_stacks(pid, seconds=0.75, freq=399, dump_bytes=65528):
	"""Returns what `perf record --call-graph dwarf` sees of a process: Stacks without kernel frames, names without offsets."""
	perf = find_tool("perf")
	if not perf:
		skip("no perf (linux-perf)")
	data = scratch("perf.data")
	made = run([perf, "record", "-q", "-e", "cpu-clock:u", "-F", freq, "--call-graph", "dwarf,%d" % dump_bytes, "-p", pid, "-o", data,
		"--", "sleep", seconds], timeout=60)
	check(made.code == 0, lambda: "perf record: %s" % made)
	text = run([perf, "script", "-i", data, "-F", "comm,tid,ip,sym,dso", "--no-inline"], timeout=120)
	os.unlink(data)
	check(text.code == 0, lambda: "perf script: %s" % text)
	stacks = []
	for block in text.out.split("\n\n"):
		lines = block.strip("\n").splitlines()
		if lines:
			frames = [perf_name(line) for line in lines[1:]]
			stacks.append(Stack(lines[0].rsplit(None, 1)[0].strip(), frames[::-1], [], 1))
	return stacks


def perf_name(line):
	"""Parses `address name (file)`. Like sonde, it names a frame without a symbol by its file."""
	name, _, file = line.strip().partition(" ")[2].rpartition(" (")
	return "[%s]" % os.path.basename(file.rstrip(")")) if name == "[unknown]" else name


def perf_error(stack, chain):
	"""A stack from perf may be truncated at the root end (its dump is 64 KiB, its depth 127 frames), but never differs. perf omits the
	arguments of C++ names."""
	own = stack.user[-len(chain):]
	if len(stack.user) < 127 and len(own) < len(chain):
		return "%d frames, want %d" % (len(own), len(chain))
	same = all(name == full or full.startswith(name + "(") for name, full in zip(own, chain[-len(own):]))
	return None if same else "differs from the chain"
