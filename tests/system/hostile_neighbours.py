#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes and files of an unprivileged user beside root's sonde: their cost is charged to that user, and other users' profiles stay complete. Counted,
not timed."""
import json
import os
import re
import shutil
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Background, Program, build, chain_error, check, check_exact, fresh_folder, load_json, need_bpf, parse_json, run_tests, scratch, sonde, test, total # noqa: E402
from neighbour import AS_NOBODY, MAPS, NOBODY, Neighbour # noqa: E402

TEXT_VADDR = 0x2000000
ADVANCES = 500 # rows of one FDE
MAX_OF_FILE = 4096 # rules (src/unwind/rule_table.h)


def uleb(value):
	out = bytearray()
	while value > 0x7f:
		out.append(value & 0x7f | 0x80)
		value >>= 7
	return bytes(out + bytes([value]))


def entry(body):
	"""Returns a CIE or FDE with its length, padded with DW_CFA_nop."""
	body += bytes(-(len(body) + 4) % 8)
	return struct.pack("<I", len(body)) + body


def frames(nr_rules, first):
	"""Returns an .eh_frame in which no two rows have the same rule: the CFA moves farther and farther from rsp."""
	cie = b"\0\0\0\0\x01zR\0\x01\x78\x10\x01\x00\x0c\x07\x08\x90\x01"
	out = bytearray(entry(cie))
	for start in range(0, nr_rules, ADVANCES):
		nr = min(ADVANCES, nr_rules - start)
		program = b"".join(b"\x41\x0e" + uleb(16 + 8 * (first + start + i)) for i in range(nr)) # DW_CFA_advance_loc 1, DW_CFA_def_cfa_offset
		out += entry(struct.pack("<IQQ", len(out) + 4, TEXT_VADDR + start * 2, nr + 1) + b"\0" + program)
	return bytes(out) + bytes(4)


def section(name, kind, flags, vaddr, file_off, size):
	return struct.pack("<IIQQQQIIQQ", name, kind, flags, vaddr, file_off, size, 0, 0, 1, 0)


def with_rules(path, nr_rules, first=0, owner=NOBODY):
	"""Makes a shared object of which no code ever runs."""
	eh_frame, names = frames(nr_rules, first), b"\0.shstrtab\0.eh_frame\0.text\0"
	names_off = 4096 + len(eh_frame)
	sections_off = (names_off + len(names) + 7) & ~7
	sections = section(0, 0, 0, 0, 0, 0) + section(1, 3, 0, 0, names_off, len(names)) + section(11, 1, 2, 0x10000, 4096, len(eh_frame)) + section(21, 1, 6, TEXT_VADDR, 0, 4096)
	header = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, sections_off, 0, 64, 56, 1, 64, 4, 1)
	loaded = struct.pack("<IIQQQQQQ", 1, 5, 0, TEXT_VADDR, TEXT_VADDR, 4096, 1 << 28, 4096)
	with open(path, "wb") as file:
		file.write((header + loaded).ljust(4096, b"\0") + eh_frame + names)
		file.seek(sections_off)
		file.write(sections)
	os.chmod(path, 0o755)
	os.chown(path, owner, owner)


def profiled(seconds, *args):
	"""Returns the report of a run beside what is already started, and its final messages."""
	report = scratch("neighbours.json")
	with Background("profile", "-o", report, *args, seconds) as background:
		background.wait_line("Sampling", timeout=120)
		result = background.finish(timeout=120)
	check(result.code == 0, result)
	return load_json(report), result


def check_whole(report, program, minimum=0.99):
	"""The stacks are what the program says itself. The program needs rules that no other file has."""
	stacks = [stack for stack in parse_json(report) if stack.pid == program.pid]
	return "%.1f %% of %d stacks" % (100 * check_exact(stacks, lambda stack: chain_error(stack, program.chains["uncommon"]), minimum, at_least=20), total(stacks))


@test
def one_file_of_many_rules():
	"""A file with many rules gets in nobody's way, and a message names it."""
	path = os.path.join(fresh_folder("rules"), "greedy.so")
	with_rules(path, 70000)
	need_bpf()
	with Neighbour(MAPS, path), Program("uncommon", seconds=600) as program:
		report, result = profiled(3, "-F", 499, "--no-unwind-cache")
	check(path in result.err, lambda: "the account does not name the file: %s" % result.err)
	return check_whole(report, program)


def greedy_files(folder, owners, nr_each, nr_rules=MAX_OF_FILE):
	"""Makes files without a rule in common; returns their paths."""
	paths = []
	for owner in owners:
		for _ in range(nr_each):
			paths.append(os.path.join(folder, "greedy%d.so" % len(paths)))
			with_rules(paths[-1], nr_rules, len(paths) * nr_rules, owner)
	return paths


@test
def many_files_of_many_rules():
	"""Nor do the files of one user, or of many uids together, such as a lent range of ids gives to one user."""
	need_bpf()
	told = []
	for owners in [NOBODY], range(NOBODY - 12, NOBODY):
		with Neighbour(MAPS, *greedy_files(fresh_folder("rules"), owners, 24 // len(owners))), Program("uncommon", seconds=600) as program:
			report, _ = profiled(3, "-F", 499, "--no-unwind-cache")
		told.append(check_whole(report, program))
	return "; ".join(told)


def beside_all_rules(folder, path, seconds):
	"""Returns the report of a program that starts long enough after others' files, whose tables are built during the recording."""
	with Neighbour(MAPS, *greedy_files(folder, range(NOBODY - 12, NOBODY), 3, nr_rules=1000)), \
			Background("profile", "-F", 499, "--no-unwind-cache", "-o", scratch("way.json"), seconds + 4) as background:
		background.wait_line("Sampling", timeout=120)
		time.sleep(seconds)
		with Program("uncommon", seconds=600, path=[path]) as program:
			result = background.finish(timeout=120)
	check(result.code == 0, result)
	return load_json(scratch("way.json")), program


@test
def unused_rules_give_way():
	"""Users' files of which no code ever runs fill all the room. A user's program finds room as soon as it is sampled."""
	need_bpf()
	folder = fresh_folder("rules")
	path = shutil.copy(build("uncommon"), os.path.join(folder, "uncommon"))
	os.chown(path, 1234, 1234)
	for seconds in 2, 8, 30:
		report, program = beside_all_rules(folder, path, seconds)
		if report["account"]["unwind_evicted"]:
			return check_whole(report, program, minimum=0.8)
	check(False, "nothing gave way: the rules were not all taken")


FORKS = """
import ctypes, os, sys, threading
libc = ctypes.CDLL(None)
libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
file = os.open(sys.argv[1], os.O_RDONLY)
""" + AS_NOBODY + """
for i in range(15000):
	if libc.mmap(None, 4096, 5, 2, file, i % 2 * 4096) in (None, 2**64 - 1): # neighbours are never one mapping
		sys.exit("mmap")
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
print("ready", flush=True)
while True:
	pid = os.fork()
	if not pid:
		os._exit(0)
	os.waitpid(pid, 0)
"""


@test
def forks_of_many_mappings():
	"""Each fork copies 15,000 mappings: they are stored once."""
	need_bpf()
	path = build("chain")
	with Neighbour(FORKS, path), Program("uncommon", seconds=600) as program, Background("profile", "-F", 499, "-o", scratch("forks.json"), 4) as background:
		background.wait_line("Sampling", timeout=120)
		result = background.finish(timeout=120)
	report = load_json(scratch("forks.json"))
	memory = report["account"]["max_rss_bytes"] / 2**20
	check(memory < 200, "%.0f MiB" % memory)
	return "%.0f MiB, %s, %s" % (memory, check_whole(report, program), result.err)


# --- texts -----------------------------------------------------------------------------------------------------------------------------

FORGED = "forged 1/1 [000] 1.0: 1 cpu-clock:"
WORD = "a\n%s\n# %s\n\x1b[31m\r\x07\x7f\u0085\u009b31m\u061c\u200e\u200f\u2028\u202a\u202e\u2066\u2069 end" % (FORGED, FORGED)
NOT_PLAIN = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def field(number, value):
	"""Returns a field of a protocol buffer: a number, or bytes."""
	return uleb(number << 3) + uleb(value) if isinstance(value, int) else uleb(number << 3 | 2) + uleb(len(value)) + value


def with_texts(path, word):
	"""Makes a pprof file in which every text is the word."""
	texts = [b"", word.encode(), (word + "2").encode()]
	value_type = field(1, 1) + field(2, 1)
	parts = [field(1, value_type), field(1, field(1, 2) + field(2, 2)), field(2, field(1, 1) + field(2, 3) + field(2, 4) + field(3, field(1, 1) + field(2, 1))),
		field(3, field(1, 1) + field(2, 4096) + field(3, 8192) + field(5, 1) + field(6, 2)), field(4, field(1, 1) + field(2, 1) + field(3, 5000) + field(4, field(1, 1) + field(2, 7))),
		field(5, field(1, 1) + field(2, 1) + field(3, 1) + field(4, 1)), *[field(6, text) for text in texts], field(11, value_type), field(12, 10), field(13, 1)]
	with open(path, "wb") as file:
		file.write(b"".join(parts))


def with_account(path, source):
	"""The same in sonde's own format, with the word also in the texts about the run."""
	report = json.loads(sonde("convert", "-o", "-", "--format", "json", source, want=0).out)
	check(WORD in [function["name"] for function in report["functions"]], "JSON does not keep the real name")
	report["account"].update({key: WORD[:60] for key in ("host", "kernel", "event", "event_unit")}, command_line=WORD, notes=[WORD], nr_cpus=1, period=0, events=7)
	with open(path, "w", encoding="utf-8") as file:
		json.dump(report, file)


def check_plain(what, text):
	found = NOT_PLAIN.search(text)
	check(not found, lambda: "%s has %r: %r" % (what, found.group(), text[max(found.start() - 60, 0):found.end() + 20]))
	forged = [line for line in text.split("\n") if line.startswith((FORGED, "# " + FORGED))]
	check(not forged, lambda: "%s: a line is forged: %r" % (what, text[:600]))


@test
def texts_are_plain():
	"""No text of a profile, of whatever field, controls a terminal, changes the writing direction or starts a new line."""
	folder = fresh_folder("texts")
	pprof, own, after = (os.path.join(folder, name) for name in ("texts.pb", "texts.json", "after.pb"))
	with_texts(pprof, WORD)
	with_texts(after, WORD + "3")
	with_account(own, pprof)
	nr = 0
	for path in pprof, own:
		for name in "text", "folded", "perf", "top", "svg", "json", "jsonl", "speedscope", "cpuprofile", "otlp-json":
			check_plain("%s of %s" % (name, path), sonde("convert", "-o", "-", "--format", name, path, want=0).out)
			nr += 1
		for args in [], ["--top"], ["--tree"], ["--callers", "a"], ["--callees", "a"], ["--by", "file"], ["--by", "process"], ["--value", WORD], ["--value", "x"], ["--callers", WORD], ["--annotate", "a"]:
			result = sonde("show", *args, path)
			check_plain("show %s" % args[:1], result.out + result.err)
			nr += 1
		check_plain("diff", sonde("diff", path, after).out)
	for args in ["show", WORD], ["convert", "-o", WORD, pprof], ["profile", "-o", WORD, "-e", WORD, "1"], ["profile", "-c", WORD], [WORD], ["show", "--" + WORD], ["diff", WORD, pprof]:
		result = sonde(*args, cwd=folder)
		check_plain("sonde %s" % args[0], result.out + result.err)
		nr += 1
	return "%d outputs" % nr


if __name__ == "__main__":
	run_tests(seconds=240)
