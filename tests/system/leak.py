#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde leak: what is outstanding is exactly what the program says that it did not free (tests/programs/heap.c), by the function that asked
for it, however blocks come and go."""
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import (Background, CFLAGS, PROGRAMS, SONDE, SOURCES, build, build_library, building, check, compile_one, is_older, load_json, need_bpf, run_tests, skip, # noqa: E402
	scratch, sonde, test)


class Heap:
	"""The program, to be told what to do. `live`: function -> (blocks, bytes) that it did not free, as far as it said."""

	def __init__(self, path, *args, env=None, root=None):
		self.process = subprocess.Popen([path, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
			env={**os.environ, **(env or {})}, preexec_fn=(lambda: os.chroot(root)) if root else None)
		self.live = {}
		self.read_to("ready")

	def __enter__(self):
		return self

	def __exit__(self, *exc):
		self.process.kill()
		self.process.communicate()

	@property
	def pid(self):
		return self.process.pid

	def read_to(self, end):
		while True:
			words = self.process.stdout.readline().decode().split()
			check(words, "the program ended")
			if words[0] == "live":
				self.live[words[1]] = (int(words[2]), int(words[3]))
			if words[0] == end:
				return

	def play(self, *scenes):
		for scene in scenes:
			self.process.stdin.write(scene.encode() + b"\n")
			self.read_to("done")


def outstanding(report):
	"""Function of the program that asked -> (blocks, bytes), of the report's samples. The C library has blocks of its own, as threads' stacks."""
	found = {}
	for sample in report["samples"]:
		stack = report["stacks"][sample["user_stack"]]
		frame = report["frames"][stack[0]]
		if frame["mapping"] is None or not os.path.basename(report["mappings"][frame["mapping"]]["path"]).startswith("heap"):
			continue
		name = report["functions"][frame["function"]]["name"]
		blocks, size = found.get(name, (0, 0))
		found[name] = (blocks + sample["values"][0], size + sample["values"][1])
	return found


def watch(heap, *scenes, options=()):
	"""Has the program play the scenes while sonde watches. Returns the report and what sonde said."""
	path = scratch("leak.json")
	with Background("leak", "--older-than", "0", "-o", path, *options, "-p", heap.pid) as tracker:
		tracker.wait_line("Attaching")
		heap.play(*scenes)
		tracker.send(signal.SIGINT)
		result = tracker.finish()
	check(result.code == 0, lambda: str(result))
	return load_json(path), result.err


def exactly(*scenes, path=None, env=None, options=(), alone=False):
	"""`alone`: the C library has no blocks of its own."""
	need_bpf()
	with Heap(path or build("heap"), env=env) as heap:
		report, said = watch(heap, *scenes, options=options)
		found = outstanding(report)
		check(found == heap.live, lambda: "found %s, true %s\n%s" % (found, heap.live, said))
		whole = sum(sample["values"][1] for sample in report["samples"])
		check(not alone or whole == sum(size for _, size in found.values()), lambda: "%d bytes in all, found %s" % (whole, found))
	return "%d functions, %d bytes" % (len(found), sum(size for _, size in found.values())), said


@test
def plain():
	return exactly("plain")[0]


@test
def every_function():
	return exactly("kinds", alone=True)[0] # what malloc maps for a large block is that block


@test
def reallocs():
	"""The old block leaves when realloc begins; one that realloc could not move stays."""
	return exactly("reallocs")[0]


@test
def threads():
	"""Threads free each other's blocks, as fast as they can."""
	return exactly("stress")[0]


@test
def signals():
	return exactly("signals")[0]


@test
def processes_and_threads_end():
	return exactly("forks", "ends")[0]


@test
def replaced_program():
	return exactly("exec")[0]


@test
def unknown_blocks():
	"""Frees of blocks from before the start are counted, and are not taken for others."""
	text, said = exactly("plain", "frees_old")
	check(re.search(r"^5\d frees of blocks that are not known", said, re.MULTILINE), said)
	return text


@test
def static_program():
	"""Its allocator is found by its symbols."""
	path = os.path.join(PROGRAMS, "heap-static")
	with building():
		if is_older(path, [os.path.join(SOURCES, "heap.c")]):
			compile_one(["gcc", *CFLAGS, "-static", "-w", "-o", path, os.path.join(SOURCES, "heap.c")])
	return exactly("plain", "kinds", "reallocs", path=path)[0]


@test
def regions():
	"""One munmap of several regions, MAP_FIXED over one, mremap of a part, a refused munmap; a hole is said."""
	text, said = exactly("regions")
	check(re.search(r"^\d+ unmapped or replaced regions, .* that are not known", said, re.MULTILINE), said)
	return text


@test
def block_within_a_block():
	"""An allocator that hands out a part of another one's block: the same memory, once."""
	return exactly("plain", alone=True, env={"LD_PRELOAD": build_library("heap_header")})[0]


@test
def first_thread_ended():
	return exactly("plain", env={"HEAP_LOSES_FIRST_THREAD": "1"})[0]


def libraries_of(program):
	"""Path of each library that the program maps, with the dynamic linker."""
	return re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", program], stdout=subprocess.PIPE, check=True, text=True).stdout)


@test
def in_a_chroot():
	"""A program in another root, with a C library of its own."""
	need_bpf()
	root = scratch("root")
	for path in (build("heap"), *libraries_of(build("heap"))):
		to = root + ("/heap" if path == build("heap") else path)
		os.makedirs(os.path.dirname(to), exist_ok=True)
		shutil.copy(path, to)
	with Heap("/heap", root=root) as heap:
		report, said = watch(heap, "plain", "kinds")
		found = outstanding(report)
		check(found == heap.live, lambda: "found %s, true %s\n%s" % (found, heap.live, said))
	return "%d functions" % len(found)


@test
def two_c_libraries():
	"""Two in one process, in files and namespaces of their own."""
	library = shutil.copy(next(path for path in libraries_of(build("heap")) if "/libc.so" in path), scratch("libc-second.so.6"))
	return exactly("plain", "second", env={"HEAP_LIBC": library})[0]


@test
def heaps_of_runtimes():
	"""Of a runtime with a heap of its own sonde says that it does not use malloc, and what helps."""
	need_bpf()
	if not shutil.which("java"):
		skip("no java")
	said = sonde("leak", "-o", scratch("java.json"), "--", "java", "-version", want=0).err
	check("Java's heap does not use malloc" in said and "jcmd" in said, said)
	return "Java"


@test
def library_loaded_later():
	"""An allocator that is loaded while sonde runs is probed; a note says that its earlier blocks are not known."""
	need_bpf()
	library = build_library("heap_arena")
	with Heap(build("heap"), env={"HEAP_LIBRARY": library}) as heap:
		path = scratch("later.json")
		with Background("leak", "--older-than", "0", "-o", path, "-p", heap.pid) as tracker:
			tracker.wait_line("Attaching")
			heap.play("loads")
			time.sleep(2) # it is probed soon after it was mapped
			heap.play("") # goes on
			tracker.send(signal.SIGINT)
			result = tracker.finish()
	found = outstanding(load_json(path))
	check(found.get("loads") == (7, 861), lambda: "%s\n%s" % (found, result))
	check("mapped while sonde ran" in result.err, lambda: str(result))
	return str(found["loads"])


@test
def command_from_its_start():
	"""With a command nothing is missed, and nothing of sonde is there."""
	need_bpf()
	path = scratch("command.json")
	result = sonde("leak", "--older-than", "0", "-o", path, "--", build("heap"), "plain", "kinds", want=0)
	found = outstanding(load_json(path))
	live = {name: (int(blocks), int(size)) for name, blocks, size in re.findall(r"^live (\S+) (\d+) (\d+)$", result.out, re.MULTILINE)}
	check(found == {**live, "main": (50, 5000)}, lambda: "%s\n%s\n%s" % (found, live, result))
	return "%d functions" % len(found)


@test
def what_is_held_when_the_time_is_over():
	"""Not what is left when the command, which is ended then, has freed all that it had."""
	need_bpf()
	program = build("frees_at_end")
	check("\t100000 bytes in 100 allocations from stack" in sonde("leak", 2, 1, "--", program, want=0).out, "with a time")
	with Background("leak", "--", program) as running:
		running.wait_line("Attaching to")
		time.sleep(2)
		running.send(signal.SIGINT)
		result = running.finish()
	check("\t100000 bytes in 100 allocations from stack" in result.out, lambda: str(result))


@test
def reports_as_memleak():
	"""Report after report, with the largest stack last; --older-than hides the newest; --all has each block; -O chooses the file."""
	need_bpf()
	with Heap(build("heap")) as heap:
		with Background("leak", "--all", "-p", heap.pid, "1", "3") as tracker:
			tracker.wait_line("Attaching to pid %d, Ctrl+C to quit." % heap.pid)
			heap.play("plain", "reallocs")
			result = tracker.finish()
		hidden = sonde("leak", "--older-than", "100000", "-p", heap.pid, "1", "1", want=0)
		other = sonde("leak", "-O", "libnothing", "-p", heap.pid, "1", "1", want=0)
	check(result.code == 0, lambda: str(result))
	reports = re.split(r"^\[\d\d:\d\d:\d\d\] Top 10 stacks with outstanding allocations:$", result.out, flags=re.MULTILINE)[1:]
	check(len(reports) == 3, lambda: str(result))
	last = reports[-1]
	check(re.findall(r"^\t(\d+) bytes in (\d+) allocations from stack$", last, re.MULTILINE)[-1] == ("50000", "1"), lambda: last)
	check(re.search(r"^\t10240 bytes in 10 allocations from stack\n\t\tleak_plain\+0x[0-9a-f]+ \[heap\]\n", last, re.MULTILINE), lambda: last)
	check(len(re.findall(r"^\taddr = [0-9a-f]+ size = 1024$", last, re.MULTILINE)) == 10, lambda: last)
	check("bytes in" not in hidden.out and hidden.out.startswith("["), lambda: str(hidden))
	check("no allocator was found" in other.err + other.out, lambda: str(other))
	named = sonde("leak", "-f", "--older-than", "0", "--", build("heap"), "plain", want=0)
	check(re.search(r"^heap;.*leak_plain 10240$", named.out, re.MULTILINE), lambda: str(named)) # not sonde's name, as before the exec
	of_command = sonde("leak", "-O", "libnothing", "--", build("heap"), "plain", want=0)
	check("no allocator was found" in of_command.err, lambda: str(of_command))
	young = sonde("leak", "--older-than", "100000", "--", build("heap"), "plain", want=0)
	check(re.search(r"^60 blocks were too young to be shown", young.err, re.MULTILINE), lambda: str(young))
	return "%d reports" % len(reports)


@test
def lines_of_the_source():
	"""--source: the line that asks, and those around it. A file that not everybody may read is not shown: debug information may name any."""
	need_bpf()
	source, program = scratch("source.c"), scratch("source")
	with open(source, "w", encoding="utf-8") as file:
		file.write("#include <stdlib.h>\nint main(void)\n{\n\tvoid *volatile block = malloc(77);\n\n\treturn block ? 0 : 1; /* the end */\n}\n")
	compile_one(["gcc", "-g", "-O1", "-o", program, source])
	shown = sonde("leak", "--source", "1", "--older-than", "0", "--", program, want=0)
	want = r"\t\tmain\+0x[0-9a-f]+ \[source\] \(source.c:4\)\n\t\t\t       3  \{\n\t\t\t>      4          void \*volatile block = malloc\(77\);\n\t\t\t       5  \n"
	check(re.search(want, shown.out), lambda: str(shown))
	os.chmod(source, 0o600)
	hidden = sonde("leak", "--source", "1", "--older-than", "0", "--", program, want=0)
	check(os.getuid() or ("malloc(77)" not in hidden.out and "[no source: it is not for everybody to read]" in hidden.out), lambda: str(hidden))
	return "3 lines"


def in_terminal(answer, *args):
	"""sonde on a terminal, where `answer` is typed when it asks. What it wrote, and its exit code."""
	pid, terminal = pty.fork()
	if not pid:
		os.execv(SONDE, [SONDE, *map(str, args)])
	text, asked = b"", False
	while True:
		try:
			got = os.read(terminal, 4096)
		except OSError: # its end
			break
		if not got:
			break
		text += got
		if not asked and b"Go on? [y/N] " in text:
			asked = True
			os.write(terminal, answer)
	os.close(terminal)
	return text.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), asked


@test
def forecast():
	"""What it will cost is said before anything is probed; on a terminal sonde asks, and does nothing without a yes."""
	need_bpf()
	expected = re.compile(r"about \d+ calls of allocators a second: expected to need (at least )?\d+\.\d times as much CPU time")
	with Heap(build("heap"), env={"HEAP_PAIRS": "2000000000"}) as heap:
		heap.process.stdin.write(b"stress\n")
		said = sonde("leak", "-p", heap.pid, "1", "1", want=0)
		check(expected.search(said.err) and said.err.index("calls of") < said.err.index("Attaching"), lambda: str(said))
		text, code, asked = in_terminal(b"n\n", "leak", "-p", heap.pid, "1", "1")
		check(asked and code == 1 and "nothing was attached" in text and "Attaching" not in text, lambda: "%d: %s" % (code, text))
		text, code, asked = in_terminal(b"y\n", "leak", "-p", heap.pid, "1", "1")
		check(asked and code == 0 and "Attaching" in text, lambda: "%d: %s" % (code, text))
		text, code, asked = in_terminal(b"", "alloc", "--yes", "-p", heap.pid, "1", "1")
		check(not asked and code == 0 and expected.search(text), lambda: "%d: %s" % (code, text))
	with Heap(build("heap")) as heap: # it waits
		quiet = sonde("leak", "-p", heap.pid, "1", "1", want=0)
		check("calls of" not in quiet.err, lambda: str(quiet))
	return expected.search(said.err).group(0)


@test
def sampled_and_full():
	"""One in ten, by chance: the total is right in the mean. A full map is counted and said."""
	need_bpf()
	with Heap(build("heap"), env={"HEAP_PAIRS": "1000000"}) as heap:
		report, said = watch(heap, "many", options=("--sample-rate", "10"))
		blocks = outstanding(report)["many_leak"][0]
		check(abs(blocks - 20000) < 6 * 10 * (20000 * 0.1 * 0.9) ** 0.5, lambda: "%d of 20000" % blocks)
		check("allocations left out" in said, said)
		report, said = watch(heap, "many", options=("--max-live", "5000"))
		full = int(re.search(r"^(\d+) allocations found no room", said, re.MULTILINE).group(1))
		kept = outstanding(report)["many_leak"][0]
		check(kept + full == 20000 and 4900 <= kept <= 5100, lambda: "%d kept, %d without room\n%s" % (kept, full, said))
	return "%d of 20000 sampled; %d kept, %d counted" % (blocks, kept, full)


if __name__ == "__main__":
	run_tests()
