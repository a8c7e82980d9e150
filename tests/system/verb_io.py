#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde io: tests/programs/transfers.c says what it read and wrote in which file; sonde must say the same. Calls are those that strace counts, bytes
those of /proc/PID/io."""
import os
import re
import signal
import subprocess
import sys

from event_rows import rows, split
from harness import Background, build, check, check_equal, find_tool, fresh_folder, need_bpf, run, run_tests, scratch, skip, sonde, test

SIDES = ("read", "write")
NUMBERS = ("nr_calls", "bytes", "nr_failed")


def sums(json_rows, field="file"):
	"""{file: [reads, bytes, failed, writes, bytes, failed]}"""
	found = {}
	for row in json_rows:
		numbers = [row[side][number] for side in SIDES for number in NUMBERS]
		found[row[field]] = [a + b for a, b in zip(found.get(row[field], [0] * 6), numbers)]
	return found


def said(text):
	lines = [line.split(" ", 6) for line in text.splitlines() if re.match(r"(\d+ ){6}\S", line)]
	return {line[6]: list(map(int, line[:6])) for line in lines}


def transfers(*words):
	"""Returns the JSON rows, what the program says, and sonde's standard error."""
	need_bpf()
	result = sonde("io", "--format", "json", *words, "--", build("transfers"), fresh_folder("transfers"), want=0)
	out, text = split(result.out)
	check("failed in line" not in text, lambda: text)
	return rows(out, "sonde-io"), said(text), result.err


@test
def every_way_to_read_and_write():
	json_rows, want, err = transfers("--by", "file")
	have = sums(json_rows)
	check(len(want) >= 25, lambda: str(want))
	check_equal({file: have.get(file) for file in want}, want, "sums by file")
	check("[name lost]" not in have and ", 0 lost" in err, lambda: "%s %s" % (have, err))
	return "%d files, %d calls" % (len(want), sum(numbers[0] + numbers[3] for numbers in want.values()))


@test
def by_process_and_file():
	"""Sums by process add up to those of the files, and the child's writes are its own."""
	json_rows, want, _ = transfers()
	have = sums(json_rows)
	check_equal({file: have.get(file) for file in want}, want, "sums by file")
	of = {row["pid"]: row["write"]["nr_calls"] for row in json_rows if row["file"].endswith("/inherited")}
	parent = {row["pid"] for row in json_rows if row["file"].endswith("/one")}
	check(len(of) == 1 and len(parent) == 1 and set(of) != parent, lambda: "%s %s" % (of, parent))
	timed = [row[side] for row in json_rows for side in SIDES if row[side]["nr_calls"]]
	check(all(0 < side["max_ns"] <= side["duration_ns"] and side["nr_timed"] == side["nr_calls"] for side in timed), lambda: str(timed))


@test
def what_was_asked_for():
	json_rows, _, _ = transfers("--by", "file", "--requested")
	have = sums(json_rows)
	one = next(have[file] for file in have if file.endswith("/one"))
	reads = 4000 + 123 + 123 + 10 + 123 + 100 + 100 + 3000 + 1000 + 200 + (123 if os.uname().machine == "x86_64" else 0)
	check_equal(one[1], reads, "bytes that were to be read")


@test
def calls_are_those_of_strace():
	need_bpf()
	strace = find_tool("strace")
	if not strace:
		skip("no strace")
	program = ["sh", "-c", "tar cf %s -C /usr/include asm-generic linux; sed -u s/a/b/ /usr/include/asm-generic/unistd.h > /dev/null" % scratch("strace.tar")]
	path = scratch("strace")
	check_equal(run([strace, "-f", "-c", "-o", path, *program]).code, 0, "strace")
	with open(path, encoding="ascii") as file:
		want = {line.split()[-1]: int(line.split()[3]) for line in file if re.match(r" *[\d.]+ +[\d.]+ +\d+ +\d+ ", line)}
	json_rows = rows(split(sonde("io", "--by", "call", "--format", "json", "--", *program, want=0).out)[0], "sonde-io")
	have = {row["call"]: row["read"]["nr_calls"] + row["write"]["nr_calls"] for row in json_rows}
	check_equal(have, {call: want[call] for call in want if call in ("read", "write", "pread64", "pwrite64", "readv", "writev")}, "calls")
	return str(have)


@test
def bytes_are_those_of_proc():
	"""Between two readings of /proc/PID/io, without the calls that it does not count (splice, vmsplice, the socket calls)."""
	need_bpf()
	program = subprocess.Popen([build("transfers"), fresh_folder("transfers"), "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
	try:
		with Background("io", "-p", program.pid, "--by", "file,call", "--format", "json") as io:
			io.wait_line("Tracing")
			text = program.communicate(b"\n", timeout=60)[0].decode()
			result = io.finish()
	finally:
		program.kill()
		program.communicate()
	said_io = list(map(int, re.search(r"^io (\d+) (\d+)$", text, re.MULTILINE).groups()))
	counted = {line.split(" ", 3)[3] for line in text.splitlines() if line.startswith("counted ")}
	have = [0, 0]
	for row in rows(result.out, "sonde-io"):
		if row["file"] in counted and row["call"] not in ("splice", "vmsplice", "send", "recv"):
			for side, name in enumerate(SIDES):
				have[side] += row[name]["bytes"]
	# what is written to one of these files later is in no reading
	later = sum(row["write"]["bytes"] for row in rows(result.out, "sonde-io") if row["file"].endswith("/inherited") and row["file"] in counted)
	check_equal([have[0], have[1] - later], said_io, "bytes")
	return "%d read, %d written" % tuple(said_io)


@test
def intervals_add_up():
	"""Each interval has the names of its files, and no call is in two intervals or in none."""
	need_bpf()
	want = 1000000
	with Background("io", "--format", "json", "-n", "dd", "1") as io:
		io.wait_line("Tracing")
		check_equal(run(["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=%d" % want]).code, 0, "dd")
		io.send(signal.SIGINT)
		result = io.finish()
	json_rows = rows(result.out, "sonde-io")
	check_equal([sums(json_rows)[file] for file in ("/dev/zero", "/dev/null")], [[want, want, 0, 0, 0, 0], [0, 0, 0, want, want, 0]], "sums")
	check("[name lost]" not in result.out, lambda: result.out)
	return "%d intervals" % len([row for row in json_rows if row["file"] == "/dev/zero"])


@test
def what_is_not_seen_is_named():
	need_bpf()
	script = "import mmap, os\nf = open('%s', 'w+b')\nf.write(b'x' * 4096)\nf.flush()\nm = mmap.mmap(f.fileno(), 4096)\nm[:5] = b'hello'\n" % scratch("mapped")
	result = sonde("io", "--", sys.executable, "-c", script, want=0)
	check(re.search(r"\b1 files were mapped to be written through memory", result.err), lambda: result.err)


@test
def requests_to_io_uring_are_counted():
	need_bpf()
	path = build("io_workers")
	with open("/proc/sys/kernel/io_uring_disabled", encoding="ascii") if os.path.exists("/proc/sys/kernel/io_uring_disabled") else open(os.devnull, encoding="ascii") as file:
		if file.read().strip() not in ("", "0"):
			skip("io_uring is switched off")
	result = sonde("io", "--", path, "1", want=None)
	check(re.search(r"\b[1-9]\d* requests were submitted by io_uring_enter or io_submit: what they read and wrote is not seen", result.err), lambda: str(result))


@test
def it_knows_itself_in_a_container():
	"""Where getpid() is another number than in the kernel, and that of another process there."""
	need_bpf()
	if not find_tool("unshare"):
		skip("no unshare")
	script = 'mount --make-private /proc && mount -t proc proc /proc && exec "$@"' # unshare's own way needs a root that is a mount, which a chroot is not
	result = run(["unshare", "-p", "-f", "-m", "--propagation", "unchanged", "sh", "-c", script, "sh", os.environ.get("SONDE", "build/sonde"), "io", "-T", "--by", "pid", "1", "2"])
	check(result.code in (0, 5), lambda: str(result))
	own = int(re.search(r"(\d+) of sonde itself", result.err).group(1))
	check(own > 0, lambda: result.err)
	return "%d calls of its own" % own


@test
def other_mount_namespaces_have_names():
	"""A file on a mount that only the process sees has its path there."""
	need_bpf()
	script = "mount -t tmpfs none /mnt && dd if=/dev/zero of=/mnt/inside bs=77 count=3 2> /dev/null"
	result = sonde("io", "--by", "file", "--format", "json", "--", "unshare", "-m", "sh", "-c", script, want=None)
	if result.code:
		skip("no mount namespaces: %s" % result.err[:200])
	have = sums(rows(split(result.out)[0], "sonde-io"))
	check_equal(have.get("/mnt/inside"), [0, 0, 0, 3, 231, 0], "the file")


if __name__ == "__main__":
	run_tests()
