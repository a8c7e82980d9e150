#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an unprivileged user can make sonde spend by mapping files. Measured in bytes kept and read, not in seconds."""
import os
import re
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Background, check, fresh_folder, need_bpf, run_tests, scratch, test # noqa: E402
from neighbour import MAPS, Neighbour # noqa: E402

LOADED = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 4096, 4096, 4096)


def header(shoff, shnum, shstrndx, phnum):
	return b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0x1000, 64, shoff, 0, 64, 56, phnum, 64, shnum, shstrndx)


def section(kind, file_off, size):
	return struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, file_off, size, 0, 0, 1, 0)


def with_names(path, nr, names_bytes):
	"""Makes a sparse file with so many sections, and so many bytes of names."""
	with open(path, "wb") as file:
		file.write(header(8192, nr, 1, 1) + LOADED)
		file.seek(8192)
		file.write(section(0, 0, 0) + section(3, 8192 + nr * 64, names_bytes))
		file.truncate(8192 + nr * 64 + names_bytes)


def with_build_id(path, size, last):
	note = struct.pack("<III", 4, 20, 3) + b"GNU\0" + b"A" * 20
	with open(path, "wb") as file:
		file.write(header(0, 0, 0, 2) + LOADED + struct.pack("<IIQQQQQQ", 4, 4, 1024, 1024, 1024, len(note), len(note), 4))
		file.seek(1024)
		file.write(note)
		file.seek(size - 8)
		file.write(struct.pack("<Q", last))


def status_of(pid, file, word):
	with open("/proc/%d/%s" % (pid, file), encoding="utf-8") as lines:
		return int(re.search(r"^%s:\s+(\d+)" % word, lines.read(), re.MULTILINE).group(1))


def beside(folder):
	"""Returns the peak memory of sonde in MiB and the MiB that it reads, while the user nobody maps the files in the folder."""
	need_bpf()
	with Neighbour(MAPS, *(os.path.join(folder, name) for name in os.listdir(folder))), Background("profile", "-o", scratch("hostile.json"), 30) as sonde:
		sonde.wait_line("Sampling", timeout=120)
		return status_of(sonde.process.pid, "status", "VmHWM") / 1024, status_of(sonde.process.pid, "io", "rchar") / 2**20


@test
def names_of_sections():
	folder = fresh_folder("names")
	for i in range(40):
		with_names(os.path.join(folder, "f%d" % i), 60000 if i % 2 else 1000, 16 << 20)
	memory, _ = beside(folder)
	check(memory < 200, "%.0f MiB for 40 files" % memory)
	return "%.0f MiB" % memory


@test
def names_of_many_files():
	"""Each file has as many names as one file may have: the sum is limited too."""
	folder = fresh_folder("names")
	for i in range(800):
		with_names(os.path.join(folder, "f%d" % i), 4000, 65536)
	memory, _ = beside(folder)
	check(memory < 150, "%.0f MiB for 800 files" % memory)
	return "%.0f MiB" % memory


@test
def one_build_id():
	folder = fresh_folder("ids")
	for i in range(40):
		with_build_id(os.path.join(folder, "f%d" % i), 8 << 20, i)
	_, read = beside(folder)
	check(read < 400, "%.0f MiB were read to compare 40 files of 8 MiB" % read)
	return "%.0f MiB read" % read


if __name__ == "__main__":
	run_tests(seconds=120)
