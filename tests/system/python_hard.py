#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frames of CPython in hard cases: in the middle of calls, in threads without the GIL, in programs that end soon, that only look like Python, or whose
memory is paged out. Interpreters: see python.py."""
import collections
import ctypes
import json
import os
import subprocess
import sys
import time

from harness import SOURCES, Background, Failure, check, check_equal, need_bpf, run, run_tests, scratch, skip, sonde, test
from python_programs import LOOP, pythons, stack_of, version_of


def profile(pid, seconds=1, hz=997, *options):
	"""Returns the report of a running process; records longer when others leave it little time."""
	for duration in (seconds, 8 * seconds):
		report = json.loads(sonde("profile", "--format", "json", "-U", "-F", hz, *options, "-p", pid, duration, want=0).out)
		if report["account"]["recorded"] >= min(150, hz * seconds / 3):
			break
	return report


class Script:
	"""A running Python program; .told: the lines of JSON that it printed."""

	def __init__(self, argv, nr_lines=1, **options):
		self.process = subprocess.Popen([str(arg) for arg in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **options)
		self.pid = self.process.pid
		self.told = [json.loads(self.process.stdout.readline()) for _ in range(nr_lines)]

	def __enter__(self):
		return self

	def __exit__(self, *_):
		self.process.kill()
		self.process.communicate()


class Tally:
	"""Counts samples: right, marked, and wrong with the reason."""

	def __init__(self, what):
		self.what, self.right, self.marked, self.wrong, self.marks = what, 0, 0, {}, collections.Counter()

	def add(self, error, count, frames):
		if not error:
			self.right += count
		elif any(frame[0] == "mark" for frame in frames):
			self.marked += count
			self.marks.update({next(frame[1] for frame in frames if frame[0] == "mark"): count})
		else:
			self.wrong.setdefault(error, []).append((count, [frame[:2] for frame in frames]))

	def __str__(self):
		lines = ["%s: %d right, %d marked %s" % (self.what, self.right, self.marked, dict(self.marks))]
		for error, samples in sorted(self.wrong.items(), key=lambda item: -len(item[1])):
			lines.append("  %d x %s: %s" % (sum(count for count, _ in samples), error, " ".join("%s:%s" % (kind[0], name) for kind, name in samples[0][1])))
		return "\n".join(lines[:8])

	def check(self, least, share=0.99):
		wrong = sum(count for samples in self.wrong.values() for count, _ in samples)
		check(self.right >= least and self.right >= share * (self.right + self.marked + wrong), lambda: str(self))
		return self


# --- in the middle of calls ------------------------------------------------------------------------------------------------------------

def maze_error(frames, edges, version):
	places = [i for i, frame in enumerate(frames) if frame[0] == "python"]
	names = [frames[i][1] for i in places]
	if names[:1] != ["<module>"]:
		return "does not begin with <module>"
	if any(frame[1] == LOOP for frame in frames[:places[-1]]):
		return "a run is missing"
	for i, (caller, callee) in enumerate(zip(names, names[1:])):
		if callee not in edges[caller]:
			return "%s does not call %s" % (caller, callee)
		between = [frame[0] for frame in frames[places[i] + 1:places[i + 1]]]
		through_c = callee[0] in "kc" and callee != "choice"
		if not between and (through_c or version < (3, 11)):
			return "no native frames between %s and %s" % (caller, callee) if through_c else "no native frames"
		if between and version >= (3, 11) and not (through_c or callee[0] == "g"):
			return "native frames between two of Python"
	return None


@test
def random_calls():
	need_bpf()
	said = []
	for python in pythons():
		version = version_of(python)
		tally = Tally(python)
		with Script([python, os.path.join(SOURCES, "maze.py")]) as maze:
			for _ in range(16): # one or two of them do, unless others leave it little time
				report = profile(maze.pid, 1, 4999)
				for sample in report["samples"]:
					frames = stack_of(report, sample)
					tally.add(maze_error(frames, maze.told[0], version), sample["values"][0], frames)
				if tally.right >= 2000:
					break
		tally.check(2000, 0.995)
		said.append("%d.%d:%d+%d" % (*version, tally.right, tally.marked) + "".join(" %d wrong" % sum(c for s in tally.wrong.values() for c, _ in s) if tally.wrong else ""))
	return " ".join(said)



# --- names ---------------------------------------------------------------------------------------------------------------------------------

def names_by_count(report, prefix, kind="python"):
	"""Returns {name of a function with this prefix: samples that have it}."""
	found = {}
	for sample in report["samples"]:
		for name in {frame[1] for frame in stack_of(report, sample) if frame[0] == kind and frame[1].startswith(prefix)}:
			found[name] = found.get(name, 0) + sample["values"][0]
	return found


def script(name, text):
	path = scratch(name)
	with open(path, "w", encoding="ascii") as file:
		file.write(text)
	return path


REUSE = """
import time
print(1, flush=True)
def one(name):
	exec(compile("def %s():\\n\\twhile time.monotonic() < until: pass\\n%s()" % (name, name), name, "exec"), {"time": time, "until": time.monotonic() + 0.05})
for i in range(1000):
	one("made_%03d" % i)
"""


@test
def code_at_the_same_address():
	"""Functions that live for 50 ms: each gets the memory of the previous one."""
	need_bpf()
	said = []
	for python in pythons():
		with Script([python, script("reuse.py", REUSE)]) as program:
			report = profile(program.pid, 2, 499)
		names = names_by_count(report, "made_")
		told = "%s: %r" % (python, names)
		check(len(names) >= 20, told)
		check(max(names.values()) <= 6 * sum(names.values()) / len(names), told)
		said.append("%d names" % len(names))
	return " ".join(said)


# Each outer_N runs only code whose names have its number. If freed code is confused with the code that is now at its address, the numbers differ.
EXECS = """
import random
print(1, flush=True)
def spin(n):
	while n: n -= 1
kept = []
for k in range(10):
	exec('''
def outer_%d():
	exec(compile("def made_%d(%%s):\\\\n\\\\tspin(2000)\\\\nmade_%d()\\\\n" %% ", ".join("a%%d=1" %% i for i in range(random.randrange(VARIED))), "file_%d", "exec"), {"spin": spin})
	kept.append("x" * random.randrange(20 * VARIED))
	if len(kept) > 100: del kept[random.randrange(100)]
''' % (k, k, k, k))
while True:
	for k in range(10): globals()["outer_%d" % k]()
"""


@test
def code_that_lives_for_a_moment():
	"""exec() of code that lives 50 us: code that looks alike, so that it gets the address of earlier code, and code of all sizes."""
	need_bpf()
	said = []
	for python in pythons():
		for varied in (1, 9):
			tally, nr_unknown = Tally("%s, %d" % (python, varied)), 0
			with Script([python, script("execs.py", EXECS.replace("VARIED", str(varied)))]) as program:
				report = profile(program.pid, 2, 1999)
			check_equal(report["account"]["runtime_cache_wrong"], 0, report["account"])
			for sample in report["samples"]:
				frames = stack_of(report, sample)
				names = [name for frame in frames if frame[0] == "python" for name in frame[1:3] if name.startswith(("outer_", "made_", "file_"))]
				nr_unknown += sample["values"][0] if any(frame[:2] == ("python", "[unknown]") for frame in frames) else 0
				tally.add(None if len({name.split(".")[0][-1] for name in names}) <= 1 else "names of several: %r" % names, sample["values"][0], frames)
			tally.check(50, 1)
			check(nr_unknown <= 0.02 * tally.right + 3, lambda: "%s, %d: %d of %d without a name" % (python, varied, nr_unknown, tally.right))
			said.append("%d right, of them %d without a name" % (tally.right, nr_unknown))
	return "; ".join(said)


NEXT = """
import os, sys, time
print(1, flush=True)
def %s():
	until = time.monotonic() + 0.4
	while time.monotonic() < until: pass
%s()
os.execv(sys.argv[1], sys.argv[1:] + [sys.executable])
"""


@test
def programs_one_after_the_other_in_a_process():
	"""The same Python, then another one, at the same addresses in one process."""
	need_bpf()
	found = pythons()
	for python, other in ((found[0], found[0]), (found[0], found[-1])):
		paths = [script("next_%d.py" % i, (NEXT % (("next_%d" % i,) * 2)).replace("sys.argv[1:]", repr([[python, other][(i + 1) % 2], scratch("next_%d.py" % ((i + 1) % 4))]))
			.replace("sys.argv[1]", repr([python, other][(i + 1) % 2])).replace(" + [sys.executable]", "")) for i in range(4)]
		with Script(["setarch", "-R", python, paths[0]]) as program:
			report = profile(program.pid, 3, 499)
		names = names_by_count(report, "next_")
		check(len(names) == 4 and min(names.values()) >= 0.1 * max(names.values()), "%s %s: %r" % (python, other, names))
		tally = Tally(other)
		for sample in report["samples"]:
			frames = stack_of(report, sample)
			chain = [frame[1:3] for frame in frames if frame[0] == "python"]
			if chain and chain[-1][0].startswith("next_"):
				tally.add(None if chain == [("<module>", chain[-1][0] + ".py"), (chain[-1][0], chain[-1][0] + ".py")] else "%r" % chain, sample["values"][0], frames)
		tally.check(100)


SHORT = "import time\ndef short_lived():\n\tuntil = time.process_time() + 0.06\n\twhile time.process_time() < until: pass\nshort_lived()\n"


@test
def short_lives():
	"""30 processes that live 60 ms."""
	need_bpf()
	path = script("short.py", SHORT)
	run_them = "import subprocess, sys\nfor i in range(30): subprocess.call(sys.argv[1:])"
	with Background("profile", "--format", "json", "-U", "-F", 999, "-a", 3600, stdout=open(scratch("short.json"), "wb")) as session:
		session.wait_line("Sampling")
		subprocess.check_call([sys.executable, "-c", run_them, "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable, "-S", path])
		session.send(2)
		done = session.finish()
	with open(scratch("short.json"), encoding="utf-8") as file:
		report = json.load(file)
	counts = {"named": 0, "unknown": 0, "native": 0, "other": 0}
	pids = {}
	for sample in report["samples"]:
		if sample["comm"] not in ("python3", "python3.11") or sample["user_stack"] is None:
			continue
		frames = stack_of(report, sample)
		chain = [frame[1] for frame in frames if frame[0] == "python"]
		if "short_lived" in chain:
			counts["named"] += sample["values"][0]
			pids[sample["pid"]] = 1
		elif "[unknown]" in chain:
			counts["unknown"] += sample["values"][0]
		elif not chain and any(frame[1] == LOOP for frame in frames):
			counts["native"] += sample["values"][0]
		else:
			counts["other"] += sample["values"][0]
	check(not counts["unknown"] or report["account"]["nr_frames_unnamed"], "frames without a name are not counted")
	told = "%r in %d processes\n%s" % (counts, len(pids), done.err)
	check(counts["named"] >= 100 and counts["named"] >= 0.8 * (sum(counts.values()) - counts["other"]), told)
	return told


SUBINTERPRETER = """
import sys
try:
	import _interpreters as interpreters
except ImportError:
	import _xxsubinterpreters as interpreters
code = '''
def in_it():
	count = 0
	print(1, flush=True)
	while True: count += 1
def around():
	in_it()
around()
'''
def outside():
	(interpreters.exec if hasattr(interpreters, "exec") else interpreters.run_string)(interpreters.create(), code)
outside()
"""


@test
def subinterpreter():
	need_bpf()
	said = []
	for python in pythons():
		tally = Tally(python)
		with Script([python, script("sub.py", SUBINTERPRETER)]) as program:
			report = profile(program.pid)
		for sample in report["samples"]:
			frames = stack_of(report, sample)
			chain = [frame[1] for frame in frames if frame[0] == "python"]
			at = max([i for i, frame in enumerate(frames) if frame[1] == "<module>"] or [0])
			error = None if chain[-3:] == ["<module>", "around", "in_it"] else "%r" % chain
			if not any(frame[1].startswith(("[_xxsub", "[_interp", "PyRun_String")) or "interp" in frame[1] for frame in frames[:at]):
				error = error or "its frames are not inside of what runs it"
			tally.add(error, sample["values"][0], frames)
		tally.check(100)
		said.append("%d" % tally.right)
	return " ".join(said)


DEEP = """
import sys
sys.setrecursionlimit(100000)
def leaf():
	count = 0
	print(1, flush=True)
	while True: count += 1
def down(depth):
	if depth == 0:
		leaf()
	sorted([depth - 1], key=down)
down(int(sys.argv[1]))
"""


@test
def deeper_than_is_kept():
	"""1,200 runs on 5,000 native frames: a mark stands where frames are left out. On a busy machine such a walk may take longer than a walk
	may: then there is a mark for that, too, and fewer frames."""
	need_bpf()
	for python in pythons():
		tally = Tally(python)
		with Script(["bash", "-c", "ulimit -s 65532; exec \"$@\"", "-", python, script("deep.py", DEEP), 700]) as program:
			report = profile(program.pid, 1, 199)
		for sample in report["samples"]:
			frames = stack_of(report, sample)
			marks = [frame[1] for frame in frames if frame[0] == "mark"]
			chain = [frame[1] for frame in frames if frame[0] == "python"]
			if {"[python: frames left out]", "[walk too long]"} & set(marks):
				tally.add("out of time", sample["values"][0], frames)
				continue
			error = None if marks[-1:] == ["[frames left out]"] or marks == ["[frames left out]", "[native frames not known]"] else "marks: %r" % marks
			error = error or (None if chain == ["<module>"] + ["down"] * 701 + ["leaf"] else "%d frames of Python" % len(chain))
			from_leaf = [frame[0] for frame in frames[:frames.index(next(frame for frame in frames if frame[1] == "leaf"))][::-1]][1:1900]
			error = error or ("two frames of Python at once at the leaf" if ("python", "python") in zip(from_leaf, from_leaf[1:]) else None)
			tally.right += 0 if error else sample["values"][0]
			if error:
				tally.wrong.setdefault(error, []).append((1, [frame[:2] for frame in frames[-30:]]))
		check(not tally.wrong and tally.right + tally.marked >= 30, lambda: str(tally)) # how many walks are in time depends on the machine alone


# --- threads ---------------------------------------------------------------------------------------------------------------------------------

THREADS = """
import hashlib, sys, threading, zlib
sys.setswitchinterval(0.001)
data = bytes(32 << 20)
works = ["sum(range(1000))", "sorted(range(1000), key=lambda x: -x)", "[i for i in range(1000)]", "hashlib.sha256(data).digest()", "zlib.crc32(data)"]
def make(i):
	scope = {"hashlib": hashlib, "zlib": zlib, "data": data}
	exec("def inner_%d():\\n\\twhile True:\\n\\t\\t%s\\ndef outer_%d():\\n\\tinner_%d()\\n" % (i, works[i], i, i), scope)
	return scope["outer_%d" % i]
for i in range(5):
	threading.Thread(target=make(i), daemon=True).start()
print(1, flush=True)
threading.Event().wait()
"""


@test
def threads_with_and_without_the_lock():
	"""Three threads take turns holding the GIL; two release it to hash."""
	need_bpf()
	said = []
	for python in pythons():
		tally, seen = Tally(python), {}
		with Script([python, script("threads.py", THREADS)]) as program:
			report = profile(program.pid, 2, 999)
		for sample in report["samples"]:
			frames = stack_of(report, sample)
			chain = [frame[1].split(".")[-1] for frame in frames if frame[0] == "python"]
			numbers = {name[6:] for name in chain if name.startswith(("inner_", "outer_"))}
			right = len(numbers) == 1 and chain[:4] == ["_bootstrap", "_bootstrap_inner", "run", "outer_" + min(numbers)]
			tally.add(None if right else "%r" % chain, sample["values"][0], frames)
			for number in numbers:
				seen[number] = seen.get(number, 0) + sample["values"][0]
		tally.check(100, 0.98)
		check(len(seen) == 5, "%s: %r" % (python, seen))
		said.append("%d %r" % (tally.right, sorted(seen.values())))
	return " ".join(said)


TRAMPOLINES = """
def leaf():
	count = 0
	print(1, flush=True)
	while True: count += 1
def key(x): leaf()
def middle(): sorted([1], key=key)
class C:
	def method(self): middle()
C().method()
"""


@test
def trampolines_for_perf():
	"""With -X perf each function has native code of the same name: the function is shown once."""
	need_bpf()
	found = [python for python in pythons() if version_of(python) >= (3, 12)] or skip("no Python of 3.12 or newer")
	want = ["<module>", "C.method", "middle", "key", "leaf"]
	for python in found:
		tally = Tally(python)
		with Script([python, "-X", "perf", script("trampolines.py", TRAMPOLINES)]) as program:
			report = profile(program.pid, 1, 999)
		for sample in report["samples"]:
			frames = stack_of(report, sample)
			shown = [frame[1] for frame in frames if frame[0] == "python" or frame[1].startswith("py::")]
			tally.add(None if shown == want else "%r" % shown, sample["values"][0], frames)
		tally.check(100)


# --- files -----------------------------------------------------------------------------------------------------------------------------------

BUSY = "import time\nprint(1, flush=True)\ndef busy(pause):\n\twhile True:\n\t\ttime.sleep(pause)\n\t\tfor i in range(20000): pass\nbusy(%s)\n"


def binary():
	path = "/usr/bin/python3.11"
	if not os.path.exists(path):
		skip("no %s" % path)
	with open(path, "rb") as file:
		return file.read()


def copy_of(name, data):
	path = scratch(name)
	with open(path, "wb") as file:
		file.write(data)
	os.chmod(path, 0o755)
	return path


def symbol_offset(path, name):
	"""Returns the offset in the file of the symbol's first byte."""
	table = run(["readelf", "-W", "--dyn-syms", path]).out
	vaddr = next(int(line.split()[1], 16) for line in table.splitlines() if line.split()[-1:] == [name])
	for line in run(["readelf", "-lW", path]).out.splitlines():
		fields = line.split()
		if fields[:1] == ["LOAD"] and int(fields[2], 16) <= vaddr < int(fields[2], 16) + int(fields[4], 16):
			return vaddr - int(fields[2], 16) + int(fields[1], 16)
	raise Failure("%s is in no segment" % name)


def dynamic_symbol_entry(path, name):
	"""Returns the offset in the file of the symbol's Elf64_Sym."""
	number = next(int(line.split()[0].rstrip(":")) for line in run(["readelf", "-W", "--dyn-syms", path]).out.splitlines() if line.split()[-1:] == [name])
	table = next(line.split("]")[1].split() for line in run(["readelf", "-SW", path]).out.splitlines() if " .dynsym " in line)
	return int(table[3], 16) + 24 * number


@test
def many_builds_at_once():
	need_bpf()
	data = bytearray(binary())
	at = data.index(b"GNU\0", data.index(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0")) + 4
	programs = []
	try:
		for i in range(33):
			data[at:at + 2] = bytes([i, 0xa5])
			programs.append(Script([copy_of("build_%d" % i, data), "-S", script("busy.py", BUSY % 0.05)]))
		report = json.loads(sonde("profile", "--format", "json", "-U", "-F", 997, "-p", ",".join(str(program.pid) for program in programs), 3, want=0).out)
	finally:
		for program in programs:
			program.__exit__()
	tally, pids = Tally("33 builds"), set()
	for sample in report["samples"]:
		frames = stack_of(report, sample)
		chain = [frame[1] for frame in frames if frame[0] == "python"]
		tally.add(None if chain == ["<module>", "busy"] else "%r" % chain, sample["values"][0], frames)
		pids.add(sample["pid"])
	tally.check(100, 0.95)
	check(len(pids) == 33, "samples of %d" % len(pids))
	return tally


@test
def versions_that_are_not_known():
	"""Each stack has a mark, wherever the loop is, and there is a note, but there are no made-up frames."""
	need_bpf()
	data = bytearray(binary())
	original = copy_of("original", data)
	at = symbol_offset(original, "Py_Version")
	newer = bytearray(data)
	newer[at + 2] = 99
	at = symbol_offset(original, "PyCode_Type") + 32
	other = bytearray(data)
	other[at:at + 8] = (int.from_bytes(data[at:at + 8], "little") + 8).to_bytes(8, "little")
	moved = bytearray(newer) # its loop is not at the symbol, as in Debian's 3.14 and 3.15
	entry = dynamic_symbol_entry(original, LOOP)
	moved[entry + 16:entry + 24] = (1).to_bytes(8, "little")
	for name, made, mark in (("newer", newer, "[unsupported python 3.99: "), ("moved", moved, "[unsupported python 3.99: "), ("other", other, "[unsupported python 3.11: ")):
		with Script([copy_of(name, made), "-S", script("busy.py", BUSY % 0)]) as program:
			done = sonde("profile", "--format", "json", "-U", "-F", 997, "-p", program.pid, 1, want=0)
		report = json.loads(done.out)
		tally = Tally(name)
		for sample in report["samples"]:
			frames = [frame[1] for frame in stack_of(report, sample)]
			error = None if len([frame for frame in frames if frame.startswith(mark)]) == 1 else "not one mark: %r" % frames
			tally.right += 0 if error else sample["values"][0]
			if error:
				tally.wrong.setdefault(error, []).append((sample["values"][0], []))
		tally.check(100, 0.97)
		check("is not supported" in done.err, done.err)


# --- paged-out memory and full store ---------------------------------------------------------------------------------------------------------

PARTS = """
print(1, flush=True)
def deep(depth):
	if depth:
		return deep(depth - 1)
	while True: pass
deep(30)
"""


@test
def memory_that_is_gone():
	"""All of the interpreter's memory is paged out again and again: stacks are whole or marked."""
	need_bpf()
	libc = ctypes.CDLL(None, use_errno=True)
	said = []
	for python in pythons():
		tally, nr = Tally(python), 0
		with Script([python, script("parts.py", PARTS)]) as program:
			with open("/proc/%d/maps" % program.pid, encoding="ascii", errors="replace") as file:
				ranges = [tuple(int(part, 16) for part in line.split()[0].split("-")) for line in file if "[v" not in line]
			pidfd = libc.syscall(434, program.pid, 0)
			with Background("profile", "--format", "json", "-U", "-F", 997, "-p", program.pid, 2) as session:
				session.wait_line("Sampling")
				for _ in range(15):
					for start, end in ranges:
						nr += libc.syscall(440, pidfd, (ctypes.c_uint64 * 2)(start, end - start), 1, 21, 0) > 0 # process_madvise, MADV_PAGEOUT
					time.sleep(0.1)
				report = json.loads(session.finish().out)
			os.close(pidfd)
		if not nr:
			skip("no process_madvise")
		for sample in report["samples"]:
			frames = stack_of(report, sample)
			chain = [frame[1] for frame in frames if frame[0] == "python"]
			tally.add(None if chain == ["<module>"] + ["deep"] * 31 else "%d frames, not marked" % len(chain), sample["values"][0], frames)
		check(not tally.wrong and tally.right >= 100, str(tally))
		said.append("%d ranges; %s" % (nr, tally))
	return "\n".join(said)


@test
def full_store():
	"""What finds no room is counted."""
	need_bpf()
	with Script([sys.executable, os.path.join(SOURCES, "maze.py")]) as maze:
		done = sonde("profile", "--format", "json", "-U", "-F", 4999, "--stack-storage-size", 64, "-p", maze.pid, 1, want=0)
	report = json.loads(done.out)
	check(report["account"]["runtime_missed"] >= 100, done.err)
	check(" lost" in done.err.split("runtime stacks:")[1].splitlines()[0], done.err)
	return report["account"]["runtime_missed"]


if __name__ == "__main__":
	run_tests()
