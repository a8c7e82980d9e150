#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--perf-map: .NET processes are asked by their diagnostics socket for a perf map, for as long as they are measured. Programs with such a socket stand in for .NET, some of them hostile;
tests/matrix/jit_maps.py has a real one."""
import contextlib
import json
import os
import re
import socket
import subprocess
import time

from harness import check, check_equal, fresh_folder, need_bpf, parse_folded, run, run_tests, scratch, skip, sonde, test, total
from neighbour import NOBODY

# Spins in code in memory without a file, and answers as the first word says. Prints the commands that it gets.
DOUBLE = r"""
import ctypes, mmap, os, socket, sys, threading, time
mode, pid = sys.argv[1], os.getpid()
with open("/proc/self/stat") as stat:
	start_time = stat.read().rpartition(")")[2].split()[19]
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(b"\x55\x48\x89\xe5\xeb\xfe") # push %rbp; mov %rsp,%rbp; jmp .
at = ctypes.addressof(ctypes.c_char.from_buffer(code))
listener = socket.socket(socket.AF_UNIX)
map_file = None

def enable():
	global map_file
	map_file = open("/tmp/perf-%d.map" % pid, "w")
	map_file.write("%x 6 compiled_code\n" % at)
	map_file.flush()

def answer(command):
	if mode == "refuses":
		return b"DOTNET_IPC_V1\0\x18\0\xff\xff\0\0\x85\x13\x13\x80"
	if mode == "nonsense":
		return bytes(1 << 20)
	if command == 5 and mode != "no map":
		enable()
	if command == 6 and map_file:
		map_file.close()
	return b"DOTNET_IPC_V1\0\x18\0\xff\0\0\0\0\0\0\0"

def serve():
	kept = []
	while True:
		connection, _ = listener.accept()
		packet = connection.recv(64)
		print(packet[17], flush=True)
		if mode == "silent":
			kept.append(connection)
			continue
		try:
			if mode == "drips":
				while True:
					connection.send(b"D")
					time.sleep(0.5)
			connection.sendall(answer(packet[17]))
		except OSError:
			pass
		connection.close()

if mode == "on already":
	enable()
if mode != "no socket":
	listener.bind("%s/dotnet-diagnostic-%d-%s-socket" % (os.environ.get("TMPDIR", "/tmp"), pid, start_time))
	listener.listen(8)
	threading.Thread(target=serve, daemon=True).start()
print("ready", flush=True)
ctypes.CFUNCTYPE(None)(at)()
"""
ENABLE, DISABLE = "5", "6"
LIMIT_S = 4 # of all answers


def socket_path(pid, folder="/tmp"):
	with open("/proc/%d/stat" % pid, encoding="ascii") as stat:
		return "%s/dotnet-diagnostic-%d-%s-socket" % (folder, pid, stat.read().rpartition(")")[2].split()[19])


class Double:
	"""Such a program; leaves nothing in /tmp."""

	def __init__(self, mode, before=(), **options):
		if os.uname().machine != "x86_64":
			skip("it writes code for x86-64")
		need_bpf()
		self.argv, self.options = [*before, "/usr/bin/python3", "-c", DOUBLE, mode], options

	def __enter__(self):
		self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True, **self.options)
		self.pid = self.process.pid
		self.path = socket_path(self.pid)
		check_equal(self.process.stdout.readline(), b"ready\n", "the double")
		return self

	def commands(self):
		"""What it was sent. It has ended then."""
		self.process.kill()
		return self.process.stdout.read().decode().split()

	def __exit__(self, *_):
		self.process.kill()
		self.process.wait()
		self.process.stdout.close()
		for path in (self.path, "/tmp/perf-%d.map" % self.pid):
			with contextlib.suppress(FileNotFoundError):
				os.unlink(path)


def profiled(pid, *options, verb="profile", **kwargs):
	return sonde(verb, "-f", "-U", *(["-F", 199] if verb != "offcpu" else []), "-p", pid, *options, 1, want=0, **kwargs)


def named(result):
	"""The share of samples with the compiled code's name."""
	stacks = [stack for stack in parse_folded(result.out) if len(stack.user) > 1]
	check(total(stacks), lambda: str(result))
	return sum(stack.count for stack in stacks if "compiled_code" in stack.user) / total(stacks)


def check_named(pid, *options, at_least=0.95, **kwargs):
	result = profiled(pid, "--perf-map", *options, **kwargs)
	check(named(result) > at_least and "perf map" not in result.err, lambda: str(result))
	return result


@test
def while_it_is_measured():
	with Double("answers") as double:
		before = profiled(double.pid)
		check(not named(before) and not os.path.exists("/tmp/perf-%d.map" % double.pid), lambda: "it was not asked: %s" % before)
		check_named(double.pid)
		check_named(double.pid, verb="wall", at_least=0.4) # the other thread waits
		sonde("offcpu", "-f", "-p", double.pid, "--perf-map", 1)
		check_equal(double.commands(), 3 * [ENABLE, DISABLE], "commands")


@test
def of_another_user():
	with Double("answers", user=NOBODY, group=NOBODY, extra_groups=[]) as double:
		check_named(double.pid)
		check_equal(double.commands(), [ENABLE, DISABLE], "commands")


@test
def in_a_folder_of_its_own():
	folder = fresh_folder("tmpdir")
	with Double("answers", env={**os.environ, "TMPDIR": folder}) as double:
		check_named(double.pid)


@test
def in_a_container():
	"""With its own /tmp and process numbers."""
	if run(["unshare", "--mount", "true"]).code:
		skip("no mount namespace can be made where the root directory is no mount point")
	inside = "mount -t proc proc /proc && mount -t tmpfs none /tmp && exec \"$@\""
	with Double("answers", before=["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", inside, "sh"]) as double:
		with open("/proc/%d/task/%d/children" % (double.pid, double.pid), encoding="ascii") as file:
			check_named(int(file.read()))


@test
def with_windows():
	"""The map is written until the last one ends."""
	with Double("answers") as double:
		result = sonde("profile", "-U", "-F", 199, "-p", double.pid, "--perf-map", "--every", 1, "-o", scratch("window-%n.json"), 3, want=0)
		for number in (1, 2, 3):
			with open(scratch("window-%d.json" % number), encoding="utf-8") as file:
				check("compiled_code" in [function["name"] for function in json.load(file)["functions"]], lambda: "window %d: %s" % (number, result))
		check_equal(double.commands(), [ENABLE, DISABLE], "commands")


@test
def what_writes_one_already_goes_on():
	with Double("on already") as double:
		check_named(double.pid)
		check_equal(double.commands(), [], "commands")


def check_note(mode, note, commands, most_s=None, **options):
	"""The report is there all the same."""
	with Double(mode, **options) as double:
		started = time.monotonic()
		plain = profiled(double.pid)
		plain_s, started = time.monotonic() - started, time.monotonic()
		result = profiled(double.pid, "--perf-map")
		seconds = time.monotonic() - started - plain_s
		check(re.search("process %d %s" % (double.pid, note), result.err), lambda: str(result))
		check(not named(result) and not named(plain), lambda: str(result))
		check(most_s is None or seconds < most_s, lambda: "it took %.1f s longer" % seconds)
		check_equal(double.commands(), commands, "commands")
	return "%.1f s longer" % seconds


@test
def one_that_refuses():
	return check_note("refuses", r"refuses to write a perf map \(0x80131385\): .NET 8 and newer do; DOTNET_PerfMapEnabled=1", [ENABLE])


@test
def one_that_is_silent():
	return check_note("silent", "did not answer in time", [ENABLE, DISABLE], LIMIT_S + 1.5)


@test
def one_that_drips():
	"""A byte at a time."""
	return check_note("drips", "did not answer in time", [ENABLE, DISABLE], LIMIT_S + 1.5)


@test
def one_that_answers_nonsense():
	return check_note("nonsense", "answered something else", [ENABLE, DISABLE], 1.5)


@test
def one_without_a_map():
	return check_note("no map", "writes a perf map, but it is not there", [ENABLE, DISABLE])


@test
def one_without_a_socket():
	return check_note("no socket", "is asked for no perf map: it has no diagnostics socket, as it is no .NET or DOTNET_EnableDiagnostics is 0", [])


@test
def one_whose_socket_is_anothers():
	"""Nothing is sent to whoever listens in its place."""
	with Double("no socket") as double, socket.socket(socket.AF_UNIX) as listener:
		listener.bind(double.path)
		listener.listen(8)
		result = profiled(double.pid, "--perf-map")
		check("its diagnostics socket is another process's" in result.err, lambda: str(result))
		connection, _ = listener.accept()
		check_equal(connection.recv(64), b"", "what was sent")
		connection.close()


@test
def several_at_once():
	"""The silent one does not keep the other from being asked."""
	with Double("silent") as silent, Double("answers") as double:
		result = profiled("%d,%d" % (silent.pid, double.pid), "--perf-map")
		check("process %d did not answer in time" % silent.pid in result.err and "process %d" % double.pid not in result.err, lambda: str(result))
		check(0.2 < named(result) < 0.8, lambda: str(result))


@test
def only_of_processes():
	result = sonde("profile", "--perf-map", 1, want=2)
	check("-p PID" in result.err, lambda: str(result))


if __name__ == "__main__":
	run_tests()
