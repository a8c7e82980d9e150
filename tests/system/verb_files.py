#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde files: tests/programs/opens.c says what it opened, how that ended and under which path; sonde must say the same."""
import os
import re
import signal
import subprocess
import time

from event_rows import rows, split
from harness import Background, build, check, check_equal, fresh_folder, need_bpf, run_tests, sonde, test

MANY = 60000
LIBRARIES = r"/etc/ld\.so\.|/lib.*/lib[a-z]+[.\d-]*\.so"


def said(text):
	"""What the program says, in order: (result, path)."""
	return [tuple(line.split(" ", 1)) for line in text.splitlines() if re.match(r"[\dA-Z]+ [/\[]", line)]


def result_of(row):
	return row["error"] or str(row["fd"])


def shown(json_rows):
	return [(result_of(row), row["path"]) for row in json_rows if not re.match(LIBRARIES, row["path"])]


def account(err):
	match = re.search(r"(\d+) shown, (\d+) lost, (\d+) of others, (\d+) of sonde itself", err)
	check(match, lambda: "no account: " + err)
	return dict(zip(("shown", "lost", "others", "own"), map(int, match.groups())))


@test
def every_way_to_open():
	need_bpf()
	folder = fresh_folder("opens")
	result = sonde("files", "--format", "json", "--", build("opens"), folder, want=0)
	out, words = split(result.out)
	want = said(words)
	check(len(want) >= 18, lambda: words)
	check_equal(shown(rows(out, "sonde-files")), want, "opened files")
	check_equal(account(result.err)["lost"], 0, "lost")
	return "%d calls" % len(want)


@test
def as_columns_and_as_bpftrace():
	need_bpf()
	folder = fresh_folder("opens")
	program = build("opens")
	lines = sonde("files", "--", program, folder, want=0).out.splitlines()
	check_equal(lines[0].split(), ["TIME", "PID", "COMM", "FD", "ERROR", "FLAGS", "PATH"], "heading")
	check([line for line in lines if re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3} +\d+ opens +3 - +RDWR\|CREAT +%s/one" % re.escape(folder), line)], lambda: "\n".join(lines))
	check([line for line in lines if re.fullmatch(r"\S+ +\d+ opens +- ENOENT +RDONLY +%s/sub/missing" % re.escape(folder), line)], lambda: "\n".join(lines))
	result = sonde("files", "--format", "bpftrace", "-x", "--", program, folder, want=0)
	lines = [line for line in result.out.splitlines() if line.startswith("PID ")]
	check(all(re.match(r"PID \d+: opens is opening: [/\[]", line) for line in lines), lambda: result.out)
	failed = [path for code, path in said("\n".join(line for line in result.out.splitlines() if not line.startswith("PID "))) if not code.isdigit()]
	check_equal([line.partition("is opening: ")[2] for line in lines], failed, "failed calls")


@test
def sums_of_all_calls():
	need_bpf()
	folder = fresh_folder("opens")
	result = sonde("files", "--sum", "--by", "pid,path", "--format", "json", "--", build("opens"), folder, MANY, want=0)
	out, words = split(result.out)
	json_rows = rows(out, "sonde-files")
	missing = [row for row in json_rows if row["path"] == "/missing"]
	check_equal([(row["nr_opens"], row["nr_failed"], row["last_error"], row["comm"]) for row in missing], [(0, MANY, "ENOENT", "opens")], "the missing file")
	want = {}
	for code, path in said(words):
		want[path] = want.get(path, 0) + 1
	have = {}
	for row in json_rows:
		have[row["path"]] = have.get(row["path"], 0) + row["nr_opens"] + row["nr_failed"]
	check_equal({path: have.get(path) for path in want}, want, "sums by path")


@test
def intervals_add_up():
	"""Sums that end while calls go on have their names, and no call is in two of them or in none."""
	need_bpf()
	folder = fresh_folder("opens")
	program = subprocess.Popen(["sh", "-c", "read go; exec %s %s %d" % (build("opens"), folder, 15 * MANY)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
	try:
		with Background("files", "-n", "opens", "--format", "json", "1") as files:
			files.wait_line("Tracing")
			program.communicate(b"\n", timeout=60)
			files.send(signal.SIGINT)
			result = files.finish()
	finally:
		program.kill()
		program.communicate()
	json_rows = [row for row in rows(result.out, "sonde-files") if row["path"] == "/missing"]
	check_equal(sum(row["nr_failed"] for row in json_rows), 15 * MANY, "calls")
	check("[name lost]" not in result.out, lambda: result.out[:3000])
	return "%d calls in %d intervals" % (15 * MANY, len(json_rows))


@test
def what_finds_no_room_is_counted():
	"""sonde stands still while the ring overflows."""
	need_bpf()
	folder = fresh_folder("opens")
	program = subprocess.Popen(["sh", "-c", "read go; exec %s %s %d" % (build("opens"), folder, MANY)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
	try:
		with Background("files", "-n", "opens", "--format", "json") as files:
			files.wait_line("Tracing")
			time.sleep(0.2)
			files.send(signal.SIGSTOP)
			out = program.communicate(b"\n", timeout=60)[0]
			files.send(signal.SIGCONT)
			time.sleep(0.2)
			files.send(signal.SIGINT)
			result = files.finish()
	finally:
		program.kill()
		program.communicate()
	count = account(result.err)
	json_rows = rows(result.out, "sonde-files")
	libraries = sum(1 for row in json_rows if re.match(LIBRARIES, row["path"]))
	check(count["lost"] > 1000 and count["shown"] == len(json_rows), lambda: "%s, %d lines" % (count, len(json_rows)))
	check_equal(count["shown"] + count["lost"], MANY + libraries + len(said(out.decode())), "calls")
	check("found no room in the ring buffer" in result.err, lambda: result.err)
	return "%d of %d lost" % (count["lost"], MANY)


@test
def sonde_is_left_out():
	need_bpf()
	with Background("files", "-d", "1", "--format", "json") as files:
		pid, result = files.process.pid, files.finish()
	check(not [row for row in rows(result.out, "sonde-files") if row["pid"] == pid], lambda: result.out)
	check_equal(account(result.err)["lost"], 0, "lost")


STRANGE = """
import ctypes, struct
call = ctypes.CDLL(None, use_errno=True).syscall
call(257, -100, b"/strange/" + b"a/" * 3000, 0)
call(437, -100, b"/strange/flags", ctypes.create_string_buffer(struct.pack("QQQ", 1 << 40, 0, 0)), 24)
call(257, -100, b"/strange/\\x1b[2J\\n", 0)
call(257, -100, None, 0)
"""


@test
def what_is_strange_is_marked():
	"""A name of which only the begin is known, flags without a name, bytes for a terminal, a name at no address."""
	need_bpf()
	lines = [line for line in sonde("files", "--", "python3", "-c", STRANGE, want=0).out.splitlines() if "/strange/" in line or "EFAULT" in line]
	check_equal([re.sub(r"(a/){2000,}a*", "many/", line.split(None, 4)[4]) for line in lines], ["ENAMETOOLONG RDONLY                   /strange/many/...",
		"EINVAL       RDONLY|0x10000000000     /strange/flags", "ENOENT       RDONLY                   /strange/?[2J?", "EFAULT       RDONLY                   [name not readable]"], "lines")


@test
def wrong_words():
	for words, text in ((["--by", "pid"], "--by is for sums"), (["--format", "xml"], "--format takes text, bpftrace, json, not 'xml'"), (["--by", "fd", "1"], "--by takes pid, comm, path, not 'fd'"),
		(["--format", "bpftrace", "1"], "--format bpftrace is for single calls"), (["--sum", "1"], "--sum is for the end")):
		result = sonde("files", *words, want=2)
		check(text in result.err, lambda: "%s: %s" % (words, result.err)) # pylint: disable=cell-var-from-loop
	check_equal(sonde("files", "-d", "1", "-p", os.getpid(), want=5).code, 5, "nothing opened")


if __name__ == "__main__":
	run_tests()
