#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files of an unprivileged user that are slow to read, or never finish: their cost is his, samples go on, and the report is written. Counted in samples,
and in CPU seconds of sonde and its workers."""
import json
import os
import signal
import struct
import subprocess
import threading
import time

from harness import SONDE, check, check_equal, fresh_folder, need_bpf, run_tests, scratch, skip, test
from hung_server import Server, compiled
from neighbour import AS_NOBODY, MAPS, NOBODY, Neighbour

RUST = "_RC0IIIC0DG1C0C0IC0IC0G17h_C00IC0" # asks for 2^60 lifetimes, which are not printed
CXX = "_ZN1AcvT_I" + 40 * "N1AcvT_I" + "i" + 41 * "EE" + "v" # arguments that are read twice, each nested 40 deep
SPIN = "volatile int stop; void spin(int on) __asm__(\"%s\"); void spin(int on) { while (!stop && on) ; }\n"
NAMES = b"\0.shstrtab\0.debug_frame\0.text\0"
DEEP = r"""
__asm__(".text; .globl spin; .type spin, @function; spin: begin: testl %edi, %edi; jnz 1f; ret; 1: movl $400, %eax;"
	"deep: subq $8, %rsp; decl %eax; jz 2f; call deep; 2: jmp 2b; end: .size spin, end - spin;"
	".section .eh_frame, \"a\", @unwind; cie: .long cie_end - cie_start; cie_start: .long 0; .byte 1; .asciz \"zR\"; .uleb128 1; .sleb128 -8; .byte 16; .uleb128 1; .byte 0x1b;"
	".byte 0x0c, 7, 8, 0x90, 1; .balign 8, 0; cie_end: .long fde_end - fde_start; fde_start: .long fde_start - cie; .long begin - .; .long end - begin; .uleb128 0;"
	".fill 4000000, 2, 0x100e; .balign 8, 0; fde_end: .long 0; .text");
""" # 400 frames, each of which takes four million instructions to find its caller
LOADED = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 4096, 4096, 4096)
MAPS_ONE = MAPS.replace("sys.argv[1:]", "sys.argv[1:2]")
SPINS = """
import ctypes, os, sys
spin = getattr(ctypes.CDLL(sys.argv[1]), sys.argv[2])
spin(0)
""" + AS_NOBODY + """
print("ready", flush=True)
spin(1)
"""


def header(shoff, shnum):
	return b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0x1000, 64, shoff, 0, 64, 56, 1, 64, shnum, 1)


def section(name, kind, flags, vaddr, file_off, size):
	return struct.pack("<IIQQQQIIQQ", name, kind, flags, vaddr, file_off, size, 0, 0, 1, 0)


def with_frames(path, size, entries=b""):
	"""Makes a file with a .debug_frame of that size; it is sparse except for `entries`."""
	with open(path, "wb") as file:
		file.write(header(4352, 4) + LOADED)
		file.seek(4096)
		file.write(NAMES)
		file.seek(4352)
		file.write(section(0, 0, 0, 0, 0, 0) + section(1, 3, 0, 0, 4096, len(NAMES)) + section(11, 1, 0, 0, 8192, size) + section(24, 1, 6, 4096, 4096, 4096))
		file.seek(8192)
		file.write(entries)
		file.truncate(8192 + size)


def slow_frames(nr):
	"""Makes entries of 28 bytes, each with a program of 1,000 bytes that must run again: two CIEs alternate, where only one is remembered."""
	cie = struct.pack("<II", 1020, 0xffffffff) + b"\3\0\1\x78\x10" + (b"\x0c\7\x08\x90\1" + 600 * b"\x0e\x10")[:1011]
	return cie + cie + b"".join(struct.pack("<IIQQI", 24, i, 4096, 2000, 0) for i in (0, 1024)) * (nr // 2)


def his(path):
	os.chown(path, NOBODY, NOBODY)
	return path


def his_files(folder, nr, size, entries=b""):
	paths = [os.path.join(fresh_folder(folder), "f%d" % i) for i in range(nr)]
	for path in paths:
		with_frames(path, size, entries)
		his(path)
	return paths


class Report:
	"""sonde's report, with the CPU time of sonde and its workers."""

	def __init__(self, *args, meanwhile=lambda: None):
		need_bpf()
		if os.geteuid() != 0:
			skip("not root: no other user can be played")
		path = scratch("hostile_files.json")
		with open(scratch("hostile_files.err"), "wb") as err:
			process = subprocess.Popen([SONDE, "profile", "-o", path, *args], stdin=subprocess.DEVNULL, stdout=err, stderr=err) # pylint: disable=consider-using-with
		began = time.monotonic()
		late = threading.Timer(100, process.kill)
		late.start()
		meanwhile()
		_, status, usage = os.wait4(process.pid, 0)
		late.cancel()
		process.returncode = status
		with open(scratch("hostile_files.err"), encoding="utf-8", errors="replace") as err:
			self.text = err.read()
		check_equal(status, 0, "sonde's end: " + self.text)
		self.seconds = time.monotonic() - began
		self.cpu_seconds = usage.ru_utime + usage.ru_stime
		with open(path, encoding="utf-8") as file:
			self.report = json.load(file)

	def lost(self):
		account = self.report["account"]
		return sum(account[key] for key in account if key.startswith("lost") and isinstance(account[key], int))


@test
def holes_cost_nothing():
	with Neighbour(MAPS, *his_files("holes", 40, 256 << 20)):
		result = Report("-I", "1") # nothing else need run meanwhile
	check(result.cpu_seconds < 15, "%.1f s of CPU for 40 holes" % result.cpu_seconds)
	return "%.1f s of CPU" % result.cpu_seconds


@test
def slow_tables():
	"""Some slow tables are there at the start; others arrive during the recording."""
	frames = slow_frames(400000)
	paths = his_files("slow", 12, len(frames), frames)
	late = Neighbour(MAPS, *paths[6:])
	with Neighbour(MAPS, *paths[:6]):
		try:
			result = Report("-F", "499", "4", meanwhile=lambda: time.sleep(1.5) or late.__enter__())
		finally:
			late.__exit__()
	check_equal(result.lost(), 0, "lost samples")
	check(result.cpu_seconds < 20, "%.1f s of CPU" % result.cpu_seconds)
	return "%.1f s of CPU in %.1f s, %d bytes" % (result.cpu_seconds, result.seconds, len(frames))


def library_of(symbol, text=""):
	"""Makes a library of the untrusted user, with a function of that name."""
	return his(compiled(symbol[:8] + ".so", text + SPIN % symbol, "-shared", "-fPIC"))


def names_of(symbol):
	with Neighbour(SPINS, library_of(symbol), symbol):
		result = Report("1")
	check(result.cpu_seconds < 15, "%.1f s of CPU for one name" % result.cpu_seconds)
	check(symbol in json.dumps(result.report), "the name as it was linked is not in the report")
	return "%.1f s of CPU" % result.cpu_seconds


@test
def rust_name():
	return names_of(RUST)


@test
def cxx_name():
	return names_of(CXX)


@test
def audited_frames_that_take_long():
	"""libdw takes some milliseconds for each of them, and reads them twice. When sonde did this in its own process, the recording did not
	end."""
	with Neighbour(SPINS, his(compiled("deep.so", DEEP, "-shared", "-fPIC", "-nostdlib")), "spin") as process:
		result = Report("-F", "199", "--audit-every", "1", "6")
	account = result.report["account"]
	refused = account["audit_not_comparable"]
	check(refused["no_answer"] + refused["not_asked"] > 0, "none of his stacks was tried: %s" % account)
	check(not refused["not_asked"] or "audit: process %d (" % process.pid in result.text and "deep.so): reading it takes more than 1 s" in result.text, result.text)
	check_equal(account["audited"], account["audit_agreed"] + account["audit_differed"] + sum(refused.values()), "audited stacks")
	check(result.seconds < 60, "a recording of 6 s took %.1f s" % result.seconds)
	return "%.1f s, %d of %d stacks agree" % (result.seconds, account["audit_agreed"], account["audited"])


def beside_hung(program):
	"""Returns the report of two processes of the untrusted user; one of them does this with a file whose server no longer answers."""
	library = library_of("spin", "".join("void f%d(void) {}\n" % i for i in range(4000)))
	with Neighbour(SPINS, library_of("other"), "other"), Server(library, "others", "last=8192") as server, Neighbour(program, os.path.join(server.directory, "lib.so"), "spin"):
		try:
			server.process.send_signal(signal.SIGUSR1)
			return Report("-F", "199", "2")
		finally:
			server.process.kill() # then processes that wait for it can be ended


def check_in_time(result):
	"""Waiting for an answer took 30 s for a table, and 90 s for names."""
	check_equal(result.lost(), 0, "lost samples")
	check(result.seconds < 60, "a recording of 2 s took %.1f s" % result.seconds)
	return "%.1f s" % result.seconds


@test
def names_that_never_come():
	result = beside_hung(SPINS)
	text = json.dumps(result.report)
	check("does not answer" in result.text and "lib.so" in result.text, result.text)
	check("[lib.so+0x" in text and '"other"' in text, result.text)
	return check_in_time(result)


@test
def tables_that_never_come():
	result = beside_hung(MAPS_ONE)
	check("does not answer" in result.text and "lib.so" in result.text, result.text)
	check('"other"' in json.dumps(result.report), result.text)
	return check_in_time(result)


if __name__ == "__main__":
	run_tests(seconds=120)
