#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde trace: what it says of arguments, results, times and comparisons is what the program did (tests/programs/signatures.c), or it says
that it does not know; and a file that it is given does it no harm."""
import os
import signal
import sys

from event_rows import rows, trace_program
from go_build import go_build
from harness import SOURCES, Background, build, check, check_equal, need_bpf, run, run_tests, scratch, skip, sonde, test

NR = 20
PAUSE_NS = 60_000_000 # of crosses() in signatures.c


def signatures():
	if os.uname().machine != "x86_64":
		skip("its instructions are x86-64's")
	path = scratch("signatures")
	if not os.path.exists(path):
		check_equal(run(["gcc", "-g", "-O1", "-pthread", "-o", path, os.path.join(SOURCES, "signatures.c")]).code, 0, "gcc")
	return path


def traced(*words, nr=NR):
	"""In words, "@" is the program."""
	path = signatures()
	json_rows, _, err = trace_program([path, str(nr)], *[word.replace("@", path) for word in words])
	return json_rows, err


def sums_of(json_rows, name):
	return sorted((row[name], row["nr_hits"]) for row in json_rows)


@test
def arguments_are_those_of_the_call():
	"""Behind the address of a large result, behind a complex number of floating point; and enums with a sign."""
	json_rows, _ = traced("uprobe:@:returns_large,uprobe:@:after_complex,uprobe:@:of_an_enum", "--print")
	seen = {tuple(sorted((name, row[name]) for name in ("first", "second", "behind", "sign") if name in row)) for row in json_rows}
	check_equal(seen, {(("first", "7"), ("second", "9")), (("behind", "33"),), (("sign", "-3"),)}, "arguments")
	check_equal(len(json_rows), 3 * NR, "hits")


@test
def results_are_as_wide_as_their_type():
	check_equal(sums_of(traced("uretprobe:@:negative", "--by", "arg:ret")[0], "ret"), [("-5", NR)], "an int")
	check_equal(sums_of(traced("uprobe:@:is_negative", "--latency", "--by", "arg:ret")[0], "ret"), [("0", NR), ("1", NR)], "a bool")
	json_rows, _ = traced("uretprobe:@:negative", "--filter", "ret < 0 && ret == -5")
	check_equal([row["nr_hits"] for row in json_rows], [NR], "compared")


@test
def fields_that_a_probe_does_not_have():
	path = signatures()
	for words, text in ((("uprobe:@:negative", "--by", "arg:arg6"), "has arg0 to arg5, no arg6"), (("syscall:close", "--by", "arg:arg3"), "has arg0 to arg0, no arg3"),
		(("uretprobe:@:negative", "--filter", "arg0 == 5"), "the arguments at the return are not known"), (("uprobe:@:negative", "--filter", "ret == 5"), "no 'ret'"),
		(("uprobe:@:negative", "--latency", "--filter", "ret == 5"), "there is no result")):
		result = sonde("trace", *[word.replace("@", path) for word in words], "1", want=2)
		check(text in result.err or ("'ret'" in text and "no argument 'ret'" in result.err), lambda: "%s: %s" % (words, result)) # pylint: disable=cell-var-from-loop


@test
def usdt_arguments():
	"""All that a probe has, not those that it does not have, and a mark at what cannot be read."""
	json_rows, _ = traced("usdt:@:signatures:many", "--print")
	check_equal([{name: row[name] for name in row if name.startswith("arg")} for row in json_rows], [{"arg%d" % i: str(-8 if i == 7 else i + 1) for i in range(8)}] * NR, "eight")
	json_rows, _ = traced("usdt:@:signatures:nowhere", "--print")
	check_equal([{name: row[name] for name in row if name.startswith("arg")} for row in json_rows], [{"arg0": "[not in memory]", "arg1": "-2"}] * NR, "two")
	check_equal(sums_of(traced("usdt:@:signatures:many", "--by", "arg:arg6")[0], "arg6"), [("7", NR)], "a key")


@test
def a_line_is_all_its_copies():
	"""A line of an inlined function, of which the first copy is in a function that is not called; with times or a return it is refused."""
	with open(os.path.join(SOURCES, "signatures.c"), encoding="ascii") as file:
		line = next(number for number, text in enumerate(file, 1) if "LINE:" in text)
	probe = "uprobe:@:signatures.c:%d" % line
	check_equal([row["nr_hits"] for row in traced(probe)[0]], [NR], "hits")
	json_rows, _ = traced(probe, "--by", "stack")
	check(sum(row["nr_hits"] for row in json_rows) == NR and all("always" in row["stack"] for row in json_rows), lambda: str(json_rows))
	path = signatures()
	for words, text in (((probe.replace("uprobe", "uretprobe"),), "a return is that of a function"), (("uretprobe:@:negative+4",), "a return is that of a function"),
		((probe, "--latency"), "has no end")):
		result = sonde("trace", *[word.replace("@", path) for word in words], "1", want=2)
		check(text in result.err, lambda: "%s: %s" % (words, result)) # pylint: disable=cell-var-from-loop


@test
def a_stack_is_one_row():
	"""Two calls in one function: their stacks have the same names."""
	json_rows, _ = traced("uprobe:@:takes_text", "--by", "stack")
	check_equal([(row["nr_hits"], row["stack"][0]) for row in json_rows], [(2 * NR, "takes_text")], "rows")
	json_rows, _ = traced("uprobe:@:takes_text", "--by", "stack", "--offsets")
	check_equal([row["nr_hits"] for row in json_rows], [NR, NR], "with offsets")


@test
def numbers_that_a_field_cannot_have():
	"""A comparison with them would silently be true of nothing, or of all."""
	need_bpf()
	path = signatures()
	for probe, comparison in (("uprobe:@:negative", "number == 4294967295"), ("uprobe:@:negative", "number != -2147483649"), ("uprobe:@:negative", "pid == -1"),
		("sched_switch", "prev.pid < 2147483648"), ("sched_switch", "preempt == 256"), ("syscall:lseek", "arg1 == -9223372036854775809")):
		result = sonde("trace", probe.replace("@", path), "--filter", comparison, "1", want=2)
		check("is no value of that field: it is a number of " in result.err, lambda: "%s: %s" % (comparison, result)) # pylint: disable=cell-var-from-loop
	check_equal([row["nr_hits"] for row in traced("uprobe:@:negative", "--filter", "number <= 2147483647 && number >= -2147483648")[0]], [NR], "the last that it can have")


CALLS = """
import ctypes
call = ctypes.CDLL(None, use_errno=True).syscall
status = ctypes.c_int(7)
for i in range(9):
  call(62, ctypes.c_long(-99999 & 0xffffffff), 0)  # kill of a process id that is negative as an int
  call(61, ctypes.c_long(0xffffffff), ctypes.byref(status), 0, None)  # wait4: address of an int
  call(1, ctypes.c_long(0xffffffff), None, ctypes.c_ulong(-5 & 0xffffffffffffffff))  # write of more than any signed number
print("address %x" % ctypes.addressof(status))
"""


@test
def arguments_of_calls_have_their_types():
	"""Names for numbers (pid_t, size_t) by BTF; an address of an int is no int; and an argument "pid" is not the caller's."""
	argv = [sys.executable, "-c", "import os, sys\nprint('ready', flush=True)\nsys.stdin.readline()\n" + CALLS]
	json_rows, out, _ = trace_program(argv, "syscall:kill,syscall:wait4", "--print")
	kills, waits = ([row for row in json_rows if row["probe"].endswith(name)] for name in ("kill", "wait4"))
	check_equal([row["arg0"] for row in kills], ["-99999"] * 9, "kill")
	check(all(row["pid"] > 0 for row in json_rows), lambda: str(json_rows))
	if any("upid" in row for row in waits): # else there is no tracefs
		check_equal([(row["upid"], row["stat_addr"]) for row in waits], [("-1", "0x" + out.split("address ")[1].strip())] * 9, "wait4")
	for comparison in ("arg0 == -99999", "arg0 < 0 && sig == 0"):
		check_equal([row["nr_hits"] for row in trace_program(argv, "syscall:kill", "--filter", comparison)[0]], [9], comparison)
	check_equal([row["nr_hits"] for row in trace_program(argv, "syscall:write", "--filter", "count > 10000000000")[0]], [9], "a size")


@test
def what_cannot_be_read_is_marked_and_counted():
	"""It is a key of its own, no comparison of it is true, and the summary says how many hits that concerns."""
	json_rows, _ = traced("uprobe:@:takes_text,uprobe:@:takes_number", "--by", "arg:what")
	check_equal(sums_of([row for row in json_rows if row["probe"].endswith("number")], "what"), [("1234567", NR)], "a number beside texts")
	texts = dict(sums_of([row for row in json_rows if row["probe"].endswith("text")], "what"))
	check(set(texts) <= {"a text", "[not in memory]"} and sum(texts.values()) == 2 * NR and texts["[not in memory]"] >= NR, lambda: str(texts))
	nr_unread = texts["[not in memory]"]
	for comparison in ('what != "other"', 'what ^= "a"'):
		json_rows, err = traced("uprobe:@:takes_text", "--filter", comparison)
		check_equal(sum(row["nr_hits"] for row in json_rows), 2 * NR - nr_unread, comparison)
		check("%d hits were rejected as what the filter compares was not in memory" % nr_unread in err, lambda: err)
	late = " && ".join(["tid > 0"] * 8 + ['what != "other"'])
	json_rows, err = traced("uprobe:@:takes_text", "--print", "--filter", late)
	check_equal(len(json_rows), 2 * NR - nr_unread, "in user space")
	check("%d hits were rejected as what" % nr_unread in err, lambda: err)
	_, err = traced("uprobe:@:takes_text", "--by", "stack", "--filter", 'what != "other"')
	check("%d hits were rejected as what" % nr_unread in err, lambda: err)
	return "%d of %d" % (nr_unread, 2 * NR)


@test
def times_are_of_their_own_call():
	"""Of a call whose stack another one's leaves and comes back to; of a recursion that is too deep; after calls that were left."""
	json_rows, err = traced("uprobe:@:crosses", "--latency")
	check_equal([row["nr_hits"] for row in json_rows], [1], "the call that returned")
	check(json_rows[0]["sum_ns"] >= 2 * PAUSE_NS, lambda: str(json_rows))
	check(": 1 calls have begun and have no time" in err, lambda: err)
	json_rows, err = traced("uprobe:@:recurses", "--latency")
	check_equal([row["nr_hits"] for row in json_rows], [16], "the outer calls of a recursion")
	check(": 84 calls have begun and have no time" in err, lambda: err)
	json_rows, err = traced("uprobe:@:leaves", "--latency")
	check_equal([row["nr_hits"] for row in json_rows], [NR], "those that returned")
	check(": 40 calls have begun and have no time" in err, lambda: err)
	_, err = traced("syscall:exit_group", "--latency")
	check("exit_group: 1 calls have begun and have no time" in err and "0 hits" not in err, lambda: err)


@test
def hits_that_the_kernel_leaves_out_are_counted():
	"""A program that is interrupted by a hit of its own: what the kernel counts for it is in the summary."""
	need_bpf()
	left_out = 0
	with Background("trace", "kfree", "--by", "cpu", "--format", "json") as trace:
		trace.wait_line("Tracing")
		for _ in range(3):
			run(["sh", "-c", "for i in $(seq 200); do ls -lR /usr/lib/python3* /usr/share/doc; done >/dev/null 2>&1 & n=0; while [ $n -lt 400 ]; do /bin/true; n=$((n+1)); done; kill $!"], timeout=120)
			left_out = kernels_count(trace.process.pid)
			if left_out:
				break
		trace.send(signal.SIGINT)
		result = trace.finish()
	if not left_out:
		skip("no hit met another")
	said = [int(line.split(" hits are missing")[0].rsplit(" ", 1)[1]) for line in result.err.splitlines() if "hits are missing" in line]
	check(said and said[0] >= left_out, lambda: "%d\n%s" % (left_out, result.err))
	check(rows(result.out, "sonde-trace"), "no rows")
	return "%d hits" % said[0]


def kernels_count(pid):
	"""What the kernel counts for the BPF programs of a process."""
	nr = 0
	for name in os.listdir("/proc/%d/fdinfo" % pid):
		try:
			with open("/proc/%d/fdinfo/%s" % (pid, name), encoding="ascii") as file:
				nr += sum(int(line.split()[1]) for line in file if line.startswith("recursion_misses"))
		except OSError:
			continue
	return nr


@test
def exceptions_meet_no_return_probe_unsaid():
	"""The unwinder cannot pass one: the program would end. So it is said of a program that may throw, and of no other."""
	need_bpf()
	for name, words, is_said in ("thrower", ("uretprobe",), True), ("thrower", ("uprobe", "--latency"), True), ("thrower", ("uprobe",), False), ("signatures", ("uretprobe",), False):
		kind, *options = words
		result = sonde("trace", "%s:%s:main" % (kind, build(name)), *options, "1", want=None)
		check(("an exception that passes the function ends the program" in result.err) == is_said, lambda: "%s %s: %s" % (name, words, result)) # pylint: disable=cell-var-from-loop


@test
def go_and_32_bits():
	"""Go keeps arguments elsewhere, and a return probe would end it; 32-bit code has them on the stack."""
	need_bpf()
	path = go_build("plain")
	for words in (("uretprobe:%s:main.main" % path,), ("uprobe:%s:main.main" % path, "--latency"), ("uretprobe:%s:main.main" % os.path.basename(path),)):
		env = dict(os.environ, PATH=os.path.dirname(path) + ":" + os.environ["PATH"])
		result = sonde("trace", *words, "1", want=None, env=env)
		check(result.code == 4 and "is a Go program: it moves its stacks" in result.err, lambda: "%s: %s" % (words, result)) # pylint: disable=cell-var-from-loop
	check("the arguments of Go are not known" in sonde("trace", "uprobe:%s:main.main" % path, "--by", "arg:arg0", "1", want=2).err, "Go")
	narrow = scratch("narrow")
	with open(narrow + ".c", "w", encoding="ascii") as file:
		file.write("__attribute__((noinline)) int f(int a) { __asm__ volatile(\"\"); return a; }\nvoid _start(void) { f(7); __asm__ volatile(\"int $0x80\" :: \"a\"(1), \"b\"(0)); }\n")
	if run(["gcc", "-m32", "-g", "-O1", "-nostdlib", "-static", "-fno-pic", "-no-pie", "-fno-stack-protector", "-o", narrow, narrow + ".c"]).code:
		skip("no 32-bit code here")
	with Background("trace", "uprobe:%s:f" % narrow, "--print", "--format", "json") as trace:
		trace.wait_line("Tracing")
		run([narrow])
		trace.send(signal.SIGINT)
		json_rows = rows(trace.finish().out, "sonde-trace")
	check_equal([sorted(row) for row in json_rows], [["comm", "cpu", "pid", "probe", "tid", "time_unix_ns"]], "a hit without arguments")


@test
def functions_of_one_name():
	"""Of two units: which of them is meant is not known."""
	need_bpf()
	sources = []
	for unit in ("one", "two"):
		sources.append(scratch(unit + ".c"))
		with open(sources[-1], "w", encoding="ascii") as file:
			file.write("__attribute__((noinline)) static int twin(int a) { __asm__ volatile(\"\" :: \"r\"(a)); return a; }\nint %s(int a) { return twin(a); }\n" % unit)
			file.write("int one(int), two(int);\nint main(void) { return one(0) + two(0); }\n" if unit == "two" else "")
	path = scratch("twins")
	check_equal(run(["gcc", "-g", "-O1", "-o", path, *sources]).code, 0, "gcc")
	check("there are several functions 'twin'" in sonde("trace", "uprobe:%s:twin" % path, "1", want=1).err, "refusal")


@test
def files_that_are_no_programs():
	"""A FIFO, a device, a text, a folder, and an ELF file of which the size of a symbol is 0."""
	need_bpf()
	fifo, text, damaged = scratch("fifo"), scratch("text"), scratch("damaged")
	if not os.path.exists(fifo):
		os.mkfifo(fifo)
	with open(text, "w", encoding="ascii") as file:
		file.write("nothing of the kind\n")
	with open(signatures(), "rb") as file:
		elf = bytearray(file.read())
	headers, nr = int.from_bytes(elf[40:48], "little"), int.from_bytes(elf[60:62], "little")
	for i in range(nr):
		header = headers + 64 * i
		if int.from_bytes(elf[header + 4:header + 8], "little") in (2, 11): # SHT_SYMTAB, SHT_DYNSYM
			elf[header + 56:header + 64] = bytes(8)
	with open(damaged, "wb") as file:
		file.write(elf)
	for path, words in ((fifo, "is no program"), ("/dev/zero", "is no program"), (text, "is no program"), ("/etc", "is no program"), (damaged, "is a damaged ELF file")):
		for probe in ("uprobe:%s:negative", "uretprobe:%s:negative", "usdt:%s:signatures:many", "uprobe:%s:signatures.c:20"):
			result = sonde("trace", probe % path, "1", want=1, timeout=20)
			check(words in result.err, lambda: "%s: %s" % (path, result)) # pylint: disable=cell-var-from-loop


if __name__ == "__main__":
	run_tests()
