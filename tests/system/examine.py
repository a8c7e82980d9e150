#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde doctor -p PID: what it says of a process, beside readelf and what the process is known to be."""
import json
import os
import re
import signal
import subprocess
import sys
import time

from harness import check, check_equal, compile_one, find_tool, fresh_folder, need_bpf, run, run_tests, skip, sonde, test

SPIN = "int main(void) { for (volatile int i = 0;; i++) ; }"
# Code in memory without a file, called by a library that exports what one runtime alone exports.
MADE = """#include <string.h>
#include <sys/mman.h>
void mono_jit_init(void) { }
int main(void) { char *at = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); memcpy(at, "\\x55\\x48\\x89\\xe5\\xeb\\xfe", 6); ((void (*)(void))at)(); }"""


class Process:
	"""Runs a command while in the block."""

	def __init__(self, *argv, **options):
		self.argv, self.options = argv, options

	def __enter__(self):
		self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **self.options)
		end = time.monotonic() + 10
		while os.readlink("/proc/%d/exe" % self.process.pid) == os.path.realpath(sys.executable) and time.monotonic() < end and os.path.realpath(self.argv[0]) != os.path.realpath(sys.executable):
			time.sleep(0.01)
		time.sleep(0.3) # for the interpreter's start
		return self.process.pid

	def __exit__(self, *_):
		self.process.send_signal(signal.SIGKILL)
		self.process.wait()


def examined(pid, *options):
	return json.loads(sonde("doctor", "-p", pid, "--format", "json", *options, want=0).out)


def file_of(report, path):
	found = [file for file in report["files"] if file["path"] == path]
	check(len(found) == 1, lambda: "%s: %r" % (path, report["files"]))
	return found[0]


def built(name, text, *options):
	folder = fresh_folder("examine")
	source, path = os.path.join(folder, name + ".c"), os.path.join(folder, name)
	with open(source, "w", encoding="utf-8") as file:
		file.write(text)
	compile_one(["cc", "-o", path, *options, source])
	return path


@test
def where_names_come_from():
	for options, names, lines in ((("-g",), "symtab", True), ((), "symtab", False), (("-s",), "dynsym", False)):
		path = built("spin", SPIN, *options)
		with Process(path) as pid:
			file = file_of(examined(pid, "--seconds", 0), path)
		sections = run(["readelf", "-SW", path]).out
		check_equal((file["names"], file["lines"]), (names, lines), "names of a program built with %r" % (options,))
		check((".symtab" in sections) == (names == "symtab") and (".debug_info" in sections) == lines, lambda: sections) # pylint: disable=cell-var-from-loop
		build_id = re.search(r"Build ID: ([0-9a-f]+)", run(["readelf", "-nW", path]).out)
		check_equal(file["build_id"], build_id.group(1) if build_id else None, "build id")


@test
def unwind_tables():
	"""Every function of the file has rows; a file without .eh_frame says so."""
	path = built("spin", SPIN)
	with Process(path) as pid:
		report = examined(pid, "--seconds", 0)
	nr_fdes = run(["readelf", "--debug-dump=frames", path]).out.count(" FDE ")
	check(file_of(report, path)["nr_unwind_rows"] >= nr_fdes > 0, lambda: "%r, %d FDEs" % (file_of(report, path), nr_fdes))
	bare = built("bare", "void _start(void) { for (;;) ; }", "-static", "-nostdlib", "-fno-asynchronous-unwind-tables", "-Wl,--build-id=none")
	with Process(bare) as pid:
		file = file_of(examined(pid, "--seconds", 0), bare)
	check(not file["nr_unwind_rows"] and ".eh_frame" in file["no_unwind_table"], lambda: "%r" % file)


@test
def a_walked_runtime():
	need_bpf()
	python = os.path.realpath("/usr/bin/python3")
	version = run([python, "-c", "import platform; print(platform.python_version())"]).out.strip()
	with Process(python, "-c", "while True: pass") as pid:
		report = examined(pid)
	runtime = report["runtimes"][0]
	check_equal((runtime["name"], runtime["state"], runtime["version"]), ("python", "walked", version), "runtime")
	check(runtime["layout"] and not report["notes"], lambda: "%r" % report)
	stacks = report["stacks"]
	check(stacks["time_ns"] > 5e8 and stacks["whole_time_ns"] >= 0.9 * stacks["time_ns"], lambda: "%r" % stacks)


@test
def a_recognised_runtime():
	need_bpf()
	if os.uname().machine != "x86_64":
		skip("it writes code for x86-64")
	path = built("made", MADE, "-rdynamic")
	with Process(path) as pid:
		report = examined(pid)
		text = sonde("doctor", "-p", pid, "--seconds", 0, want=0).out
	runtime = report["runtimes"][0]
	check_equal((runtime["name"], runtime["state"], report["nr_made_mappings"], report["nr_name_files"]), ("Mono", "recognised", 1, 0), "runtime")
	check("--jitmap" in runtime["help"] and runtime["help"] in text, lambda: text)
	marks = {mark["mark"]: mark["time_ns"] for mark in report["stacks"]["marks"]}
	check(marks.get("[unsupported Mono]", 0) >= 0.9 * report["stacks"]["time_ns"], lambda: "%r" % report["stacks"])


@test
def hostile_names():
	"""A path with a line break and a terminal's escape is one line without the escape; programs get it as it is."""
	path = built("spin", SPIN)
	hostile = os.path.join(os.path.dirname(path), "a\nb\x1b[31mc")
	os.rename(path, hostile)
	with Process(hostile) as pid:
		text = sonde("doctor", "-p", pid, "--seconds", 0, want=0).out
		check("\x1b" not in text and "a?b?[31mc" in text, lambda: repr(text))
		file_of(examined(pid, "--seconds", 0), hostile)


@test
def what_is_not_there():
	done = sonde("doctor", "-p", 4194000, want=1)
	check("there is no process 4194000" in done.err, lambda: done.err)
	sonde("doctor", "-p", 0, want=2)
	done = sonde("doctor", "-p", 2, "--seconds", 0, want=0) # kthreadd
	check("a thread of the kernel" in done.out, lambda: done.out)


@test
def another_users_process():
	setpriv, sudo_path = find_tool("setpriv"), built("spin", SPIN)
	if not setpriv or os.getuid():
		skip("needs root and setpriv")
	with Process(sudo_path) as pid:
		done = run([setpriv, "--reuid", "65534", "--clear-groups", os.environ.get("SONDE", "build/sonde"), "doctor", "-p", str(pid), "--seconds", "0"])
	check(done.code == 3 and "as root" in done.err and not done.out, lambda: "%r" % done)


if __name__ == "__main__":
	run_tests()
