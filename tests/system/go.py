#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Go programs, in each way to build one: at least 99 % of their samples are the true stack, which the program wrote down by runtime.Callers; inlined
functions have their lines. What sonde reads in .gopclntab is what Go's own tools read, and frame sizes match what the instructions do to the stack
pointer. SONDE_GO: see go_build.py."""
import bisect
import collections
import json
import os
import random
import re

from go_build import go, go_build, go_version
from harness import (AUDIT, Program, SOURCES, check, check_exact, entry_error, find_tool, need_bpf, parse_folded, run, run_tests, scratch, skip, sonde, test, total)

GO_DUMP = os.environ.get("GO_DUMP", "")
FREQ_HZ = 499
SECONDS = 3
STRIP = "-s -w"


class GoProgram(Program):
	"""Its .chains are named by what is measured, not by threads, which all have one name."""

	def __init__(self, path, seconds=60):
		self.argv = [path, str(seconds)]
		self.chains = {}
		self.pid = None


def profile_stacks(program, at_least, args=()):
	"""Takes several profiles when the machine has time for few samples."""
	stacks = []
	for _ in range(5):
		stacks += parse_folded(profile(program, *args))
		if total(stacks) >= at_least:
			break
	return stacks


def profile(program, *args):
	return sonde("profile", "-f", "-a", "-p", program.pid, "-F", FREQ_HZ, *args, SECONDS, want=0).out


# --- checks of a stack -----------------------------------------------------------------------------------------------------------------

LEAVES = {"main.frameless", "main.withFrame", "main.spinAsm", "main.systemSpin", "main.inlinedInner", "main.leaf", "c_leaf", "main.readsClock"}
# Where stacks begin that belong to no goroutine: a thread's, and the scheduler's between two goroutines, on which nothing returns.
G0_ROOTS = {"runtime.mstart", "runtime.mcall", "runtime.morestack", "runtime.rt0_go"}
ROOTS = {"runtime.main", "main.worker", "main.grows.func1", "main.yields.func1"} # of goroutines, behind runtime.goexit
# What can interrupt a function's last instructions, and what it calls to read the time.
ABOVE = r"gogo|gcWriteBarrier|\w+body|runtime[./]\S+|time\.\S+|__vdso_\w+|\[vdso\S*\]|__restore_rt|\[libc[^\]]*\]|internal/\S+"
NAMES_OF_WRAPPERS = r"main\.main\.(func|gowrap)\d+|runtime\.\S+\.(func|gowrap)\d+"


def without_wrappers(frames):
	"""Go's tracebacks omit functions that the compiler generated to call another: of the same name (between calling conventions), or for `go
	f(x)`."""
	kept = [frame for frame, inner in zip(frames, frames[1:] + [None]) if frame != inner or not frame.startswith("runtime.")]
	if len(kept) > 1 and kept[0] == "runtime.goexit" and re.fullmatch(NAMES_OF_WRAPPERS, kept[1]):
		del kept[1]
	return kept


def go_error(chains):
	"""Returns why a stack is not the chain of its leaf, or is impossible for a goroutine or a thread; or None."""
	def error_of(stack):
		user = without_wrappers(stack.user)
		marks = [frame for frame in user if frame.startswith("[") and not re.fullmatch(ABOVE, frame)]
		if marks or not user:
			return "a mark: %s" % marks
		if set(user) & LEAVES:
			for chain in chains:
				if user[:len(chain)] == chain and all(re.fullmatch(ABOVE, frame) for frame in user[len(chain):]):
					return None
			return "is in a leaf, and differs from its chain"
		if user[0] in G0_ROOTS:
			strange = [frame for frame in user if not re.fullmatch(ABOVE, frame)]
			return "the scheduler's, but %s" % strange if strange else None
		if user[0] != "runtime.goexit":
			return "begins with %s" % user[0]
		if len(user) > 1 and user[1] not in ROOTS and not user[1].startswith("runtime."):
			return "%s is no goroutine's first function" % user[1]
		if "runtime.schedule" in user:
			return "the scheduler has left all goroutines"
		return grown_error(user, chains) if "main.grow" in user else None
	return error_of


def grown_error(user, chains):
	first = user.index("main.grow")
	before = user[:first]
	if before != ["runtime.goexit", "main.grows.func1"] and not any(chain[:first] == before for chain in chains):
		return "what grows was not called so"
	above = user[first + user.count("main.grow"):]
	strange = [frame for frame in above if not re.fullmatch(ABOVE, frame)]
	return "%s above what grows" % strange if strange else None


def with_leaf(stacks, leaf):
	return sum(stack.count for stack in stacks if leaf in stack.user)


def check_plain(path, args=()):
	need_bpf()
	with GoProgram(path) as program:
		check(len(program.chains) == 8, lambda: "the workload has told %s" % sorted(program.chains))
		stacks = profile_stacks(program, 500, args)
	share = check_exact(stacks, go_error(list(program.chains.values())), at_least=500)
	for leaf in ("main.frameless", "main.withFrame", "main.spinAsm", "main.systemSpin", "main.inlinedInner", "main.readsClock", "main.grow", "main.allocates", "main.yields.func1",
		"runtime.schedule"):
		check(with_leaf(stacks, leaf) > 10, lambda: "%d samples in %s" % (with_leaf(stacks, leaf), leaf))
	return "%.2f %% of %d samples, Go %d.%d" % (share * 100, total(stacks), *go_version())


@test
def plain():
	return check_plain(go_build("plain"))


@test
def audited():
	"""The audit examines stacks and leaves them unchanged."""
	return check_plain(go_build("plain"), AUDIT)


@test
def stripped():
	return check_plain(go_build("plain", "stripped", STRIP))


@test
def position_independent():
	return check_plain(go_build("plain", "pie", args=["-buildmode=pie"]))


@test
def position_independent_stripped():
	return check_plain(go_build("plain", "pie-stripped", STRIP, ["-buildmode=pie"]))


# --- C ---------------------------------------------------------------------------------------------------------------------------------

def replaced(frames, old, new):
	found = []
	while frames:
		if frames[:len(old)] == old:
			found += new
			frames = frames[len(old):]
		else:
			found.append(frames[0])
			frames = frames[1:]
	return found


def through_c(chain):
	"""Adds C frames to a chain, because Go's view of its stacks has none. Where a C thread calls, the frames before c_thread are the C
	library's."""
	called = ["goCallback", "crosscall2", "runtime.cgocallback"]
	chain = replaced(chain, ["runtime.systemstack_switch", "runtime.cgocallback"], ["runtime.asmcgocall", "c_outer", "c_inner", *called])
	return replaced(chain, ["runtime.goexit", "runtime.cgocallback"], ["c_thread", "goOfThread", "crosscall2", "runtime.cgocallback"])


def both_error(chains):
	of_go = go_error(chains)
	def error_of(stack):
		if "c_thread" not in stack.user:
			return of_go(stack)
		at = stack.user.index("c_thread")
		user = without_wrappers(stack.user[at:])
		thread = next(chain for chain in chains if chain[0] == "c_thread")
		if "main.leaf" in user and (user[:len(thread)] != thread or not all(re.fullmatch(ABOVE, frame) for frame in user[len(thread):])):
			return "is in a leaf, and differs from its chain"
		return entry_error(stack.user[:at], main_thread=False)
	return error_of


def check_both(path):
	need_bpf()
	with GoProgram(path) as program:
		check(sorted(program.chains) == ["c", "callback", "thread"], lambda: "the workload has told %s" % sorted(program.chains))
		chains = [through_c(chain) for chain in program.chains.values()]
		check(all("crosscall2" in chain for chain in chains), lambda: "no C in %s" % chains)
		stacks = profile_stacks(program, 500)
	share = check_exact(stacks, both_error(chains), at_least=500)
	callback = sum(stack.count for stack in stacks if stack.user[-1:] == ["main.leaf"] and "c_outer" in stack.user)
	of_thread = sum(stack.count for stack in stacks if stack.user[-1:] == ["main.leaf"] and "c_thread" in stack.user)
	check(min(callback, of_thread, with_leaf(stacks, "c_leaf")) > 50, lambda: "%d, %d, %d samples" % (callback, of_thread, with_leaf(stacks, "c_leaf")))
	return "%.2f %% of %d samples, Go %d.%d" % (share * 100, total(stacks), *go_version())


@test
def c_and_back():
	if not find_tool("gcc"):
		skip("no gcc")
	return check_both(go_build("both"))


@test
def c_and_back_position_independent():
	if not find_tool("gcc"):
		skip("no gcc")
	return check_both(go_build("both", "pie", args=["-buildmode=pie"]))


# --- lines ---------------------------------------------------------------------------------------------------------------------------------

def marked_lines():
	"""Returns {"inner": {numbers of the lines that end in LINE inner}}."""
	lines = collections.defaultdict(set)
	with open(os.path.join(SOURCES, "go", "plain", "main.go"), encoding="utf-8") as file:
		for number, line in enumerate(file, 1):
			match = re.search(r"// LINE (\w+)", line)
			if match:
				lines[match.group(1)].add(number)
			match = re.match(r"func (\w+)", line)
			if match:
				lines["main." + match.group(1)].add(number)
	return lines


def check_inlined(report, stack, want):
	"""Checks the stack's innermost frames, from the leaf on: function, expected line, whether it was inlined."""
	frames = [report["frames"][frame] for frame in stack[:len(want)]]
	for frame, (name, lines, inlined) in zip(frames, want):
		function = report["functions"][frame["function"]]
		check(function["name"] == name and frame["line"] in lines and frame["inlined"] == inlined, lambda: "%s, %s" % (frame, function))
		check(function["file"].endswith("go/plain/main.go"), lambda: str(function))
		check(frame["pc"] == frames[0]["pc"], lambda: str(frames))
		if go_version() >= (1, 20):
			check({function["line"]} == want_starts[name], lambda: "begins in line %d: %s" % (function["line"], function))


want_starts = marked_lines()


@test
def inlined_lines():
	need_bpf()
	path = scratch("go.json")
	with GoProgram(go_build("plain", "stripped", STRIP)) as program:
		profile(program, "-o", path)
	with open(path, encoding="utf-8") as file:
		report = json.load(file)
	lines, nr = marked_lines(), 0
	for sample in report["samples"]:
		stack = report["stacks"][sample["user_stack"]] if sample["user_stack"] is not None else []
		names = [report["functions"][report["frames"][frame]["function"]]["name"] for frame in stack]
		if names[:1] != ["main.inlinedInner"]:
			continue
		check_inlined(report, stack, [("main.inlinedInner", lines["inner"], True), ("main.inlinedMiddle", lines["middle"], True),
			("main.callsInlined", lines["outer"], False)])
		nr += sample["values"][0]
	check(nr > 20, "only %d samples in inlined code" % nr)
	return "%d samples" % nr


@test
def inlined_lines_in_pprof():
	"""Go's own tool shows them as in Go's own profiles."""
	need_bpf()
	path = scratch("go.pb.gz")
	with GoProgram(go_build("plain", "stripped", STRIP)) as program:
		profile(program, "-o", path)
	shown = go("tool", "pprof", "-traces", "-lines", path)
	check(shown.code == 0, lambda: str(shown))
	line = sorted(marked_lines()["middle"])[0]
	pattern = r"main\.inlinedInner \S+main\.go:\d+ \(inline\)\n\s+main\.inlinedMiddle \S+main\.go:%d \(inline\)\n\s+main\.callsInlined \S+main\.go:\d+\n" % line
	found = re.findall(pattern, shown.out)
	check(found, lambda: "no inlined frames in\n%s" % shown.out[:3000])
	return "%d traces" % len(found)


# --- the table against Go's tools -------------------------------------------------------------------------------------------------------------

def text_range(path):
	sections = run(["readelf", "-SW", path]).out
	match = re.search(r" \.text\s+PROGBITS\s+(\w+)\s+\w+\s+(\w+)", sections)
	return int(match.group(1), 16), int(match.group(1), 16) + int(match.group(2), 16)


@test
def names_and_lines():
	"""For random addresses, go tool addr2line gives the same function and innermost line. Between functions it prints a negative number, and
	sonde the previous line or 0."""
	if not os.path.exists(GO_DUMP):
		skip("no go_dump")
	path = go_build("plain")
	start, end = text_range(path)
	draw = random.Random(20)
	asked = "".join("0x%x\n" % draw.randrange(start, end) for _ in range(20000))
	with open(scratch("addresses"), "w", encoding="ascii") as file:
		file.write(asked)
	with open(scratch("addresses"), encoding="ascii") as file:
		theirs = go("tool", "addr2line", path, stdin=file)
	check(theirs.code == 0, lambda: str(theirs))
	with open(scratch("addresses"), encoding="ascii") as file:
		ours = run([GO_DUMP, path, "lines"], stdin=file).out.splitlines()
	nr_inlined = nr_padding = 0
	for address, name, place, line in zip(asked.split(), theirs.out.splitlines()[::2], theirs.out.splitlines()[1::2], ours):
		if name == "?":
			continue
		frames = [frame.rpartition(" ") for frame in line.split("\t")]
		nr_inlined += len(frames) > 1
		in_padding = re.search(r":-\d+$", place)
		nr_padding += in_padding is not None
		check(frames[-1][0] == name and (in_padding or frames[0][2] == place), lambda: "%s: go tool says %s %s, we say %s" % (address, name, place, line))
	check(nr_inlined > 500 and nr_padding < 2000, "%d inlined, %d in padding" % (nr_inlined, nr_padding))
	return "20000 addresses, %d in inlined code" % nr_inlined


class Rows:
	"""The rules that sonde makes from the table."""

	def __init__(self, path):
		self.rows = sorted((int(fields[0], 16), fields[1:]) for fields in map(str.split, run([GO_DUMP, path, "rows"]).out.splitlines()))
		self.starts = [start for start, _ in self.rows]

	def cfa_off(self, address):
		"""Returns the distance of the CFA from rsp; None where something other than the frame size decides."""
		at = bisect.bisect_right(self.starts, address) - 1
		rule = self.rows[at][1] if at >= 0 else ["none"]
		return int(rule[1]) if rule[0] == "step" else None


def moved(op, arg):
	"""Returns how far an instruction moves rsp down."""
	match = re.fullmatch(r"\$0x([0-9a-f]+),%rsp", arg)
	if op in ("sub", "add") and match:
		value = int(match.group(1), 16)
		value -= value >> 63 << 64
		return value if op == "sub" else -value
	return {"push": 8, "pushf": 8, "pop": -8, "popf": -8}.get(op, 0)


def check_rows(path):
	rows, before, last_op, nr, nr_rets = Rows(path), None, "", 0, 0
	for line in run(["objdump", "-d", "--no-show-raw-insn", "-j", ".text", path], timeout=120).out.splitlines():
		match = re.match(r"\s+([0-9a-f]+):\s+(\S+)\s*([^#]*)", line)
		if not match:
			before = None if line.endswith(">:") else before
			continue
		address, op, arg = int(match.group(1), 16), match.group(2), match.group(3).strip()
		off = rows.cfa_off(address)
		if before is not None and off is not None:
			nr += 1
			check(off == before, lambda: "%x %s %s: %d, want %d" % (address, op, arg, off, before))
		if op == "ret" and off is not None:
			nr_rets += 1
			check(off == 8, lambda: "%x: ret with %d bytes on the stack" % (address, off))
		goes_on = op not in ("ret", "jmp", "ud2", "int3") and not (op == "nop" and last_op == "call") # the compiler's mark behind calls that do not return
		before = off + moved(op, arg) if goes_on and off is not None else None
		last_op = op
	return nr, nr_rets


@test
def frame_sizes():
	"""From each instruction to the next, the rule changes by what the instruction does to rsp. Where a function returns, only the return
	address is left."""
	if not os.path.exists(GO_DUMP):
		skip("no go_dump")
	nr, nr_rets = check_rows(go_build("plain"))
	check(nr > 50000 and nr_rets > 1000, "%d instructions, %d returns" % (nr, nr_rets))
	return "%d instructions, %d returns" % (nr, nr_rets)


run_tests(seconds=400) # pprof is fetched at the first run
