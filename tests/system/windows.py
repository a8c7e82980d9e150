#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--every: the windows add up to the recording, each is complete in itself, and none delays the next."""
import collections
import glob
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Background, Program, check, check_equal, compile_one, fresh_folder, load_json, need_bpf, parse_folded, run_tests, scratch, skip, sonde, test # noqa: E402

NS = 10**9


class Window:
	"""One file of a window. rows: (tid, user frames root to leaf, values)."""

	def __init__(self, path):
		report = load_json(path)
		names = [report["functions"][frame["function"]]["name"] for frame in report["frames"]]
		self.number = int(re.search(r"(\d+)\.json$", path).group(1))
		self.account = report["account"]
		self.ns = int(self.account["duration_ns"])
		self.begin_ns = int(self.account["start_unix_ns"])
		self.types = [kind["type"] for kind in report["value_types"]]
		self.rows = [(sample["tid"], [] if sample["user_stack"] is None else [names[frame] for frame in report["stacks"][sample["user_stack"]]][::-1],
			      [int(value) for value in sample["values"]]) for sample in report["samples"]]

	def of(self, value, tid=None):
		at = self.types.index(value)
		return sum(values[at] for row_tid, _, values in self.rows if tid in (None, row_tid))


def total_of(text):
	"""Returns (windows, samples or waits, lost) of the last line."""
	return tuple(int(number) for number in re.search(r"^total: (\d+) windows?, (\d+) (?:samples|waits), (\d+) lost", text, re.M).groups())


def record_windows(*args, timeout=90):
	"""Returns the windows of a recording, and how sonde ended."""
	folder = fresh_folder("windows")
	result = sonde(*args[:1], "--every", 1, "-o", os.path.join(folder, "w-%n.json"), *args[1:], timeout=timeout)
	windows = sorted((Window(path) for path in glob.glob(os.path.join(folder, "*.json"))), key=lambda window: window.number)
	check_equal([window.number for window in windows], list(range(1, len(windows) + 1)), "windows")
	return windows, result


def check_seamless(windows, seconds):
	for before, after in zip(windows, windows[1:]):
		check(abs(before.begin_ns + before.ns - after.begin_ns) < NS // 1000, lambda: "window %d ends at %d, the next begins at %d" % (before.number, before.begin_ns + before.ns, after.begin_ns)) # pylint: disable=cell-var-from-loop
	for window in windows[:-1]:
		check(window.ns >= 0.99 * NS, lambda: "window %d is %d ns long" % (window.number, window.ns)) # pylint: disable=cell-var-from-loop
	check(sum(window.ns for window in windows) >= 0.99 * seconds * NS, lambda: "%s ns in all" % [window.ns for window in windows])


@test
def samples_add_up():
	"""The windows contain what the kernel side has recorded, and each resolves its own stacks."""
	need_bpf()
	with Program("chain") as program:
		chain = next(iter(program.chains.values()))
		windows, result = record_windows("profile", "-F", 999, "-p", program.pid, 5)
		check_seamless(windows, 5)
		check_equal(total_of(result.err), (len(windows), sum(window.of("samples") for window in windows), 0), "windows, samples and lost")
		check_equal(sum(int(window.account["recorded"]) for window in windows), sum(window.of("samples") for window in windows), "recorded")
		for window in windows:
			check_equal(int(window.account["ticks"]), int(window.account["recorded"]) + sum(map(int, window.account["filtered"].values())), "ticks of window %d" % window.number)
			wrong = [frames for _, frames, _ in window.rows if frames[-len(chain):] != chain]
			check(not wrong and window.rows, lambda: "window %d: %s" % (window.number, wrong[:3])) # pylint: disable=cell-var-from-loop


@test
def each_nanosecond_is_in_one_window():
	need_bpf()
	with Program("shares", "spin", "half", "sleep", "lock", "pipe") as program:
		tids = {int(tid) for tid in os.listdir("/proc/%d/task" % program.pid)}
		windows, result = record_windows("wall", "-p", program.pid, 5)
	check_seamless(windows, 5)
	for window in windows:
		for tid in tids:
			check_equal((window.number, tid, window.of("wall", tid)), (window.number, tid, window.ns), "window, thread and its time")
	check_equal(total_of(result.err)[2], 0, "lost")


def read_text(path):
	with open(path, encoding="utf-8") as file:
		return file.read()


WOKEN_NOT_RUN = r'''
import os, signal, sys, threading, time
def at(priority, cpu):
	os.sched_setaffinity(0, [cpu])
	if priority:
		os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
read, write = os.pipe()
cpu = max(os.sched_getaffinity(0))
if not os.fork():
	at(1, cpu)
	os.read(read, 1)
	os._exit(0)
time.sleep(0.5)
if not os.fork():
	at(2, cpu)
	end = time.monotonic() + 3.5
	while time.monotonic() < end:
		pass
	os._exit(0)
time.sleep(0.2)
at(3, cpu)
os.write(write, b"x")
os.wait()
os.wait()
'''


@test
def a_waker_is_known_windows_later():
	"""The woken thread had no CPU for three windows: its waker is reported in the window in which the wait ends."""
	need_bpf()
	folder = fresh_folder("woken")
	sonde("offcpu", "--wake", "--min", 2000000, "--every", 1, "-o", os.path.join(folder, "%n.folded"), "--", sys.executable, "-c", WOKEN_NOT_RUN)
	text = "".join(read_text(path) for path in glob.glob(os.path.join(folder, "*")))
	check(re.search(r"pipe_read;.*;--;.*pipe_write", text) and "[waker not known]" not in text, lambda: text)


NAPS_MS = 700


def naps(nr, ms):
	"""Returns a program whose waits are known: it sleeps this often and this long."""
	return ["sh", "-c", "i=0; while [ $i -lt %d ]; do sleep %s; i=$((i+1)); done" % (nr, ms / 1000)]


def sleeps(window):
	"""Returns (waits, ns) in `sleep`."""
	rows = [values for _, frames, values in window.rows if "__nanosleep" in frames or "clock_nanosleep" in frames]
	return sum(values[0] for values in rows), sum(values[1] for values in rows)


@test
def a_wait_counts_where_it_ends():
	"""The wait counts in the window in which it ends. Its time is split: each window has its part, with the stack."""
	need_bpf()
	windows, _ = record_windows("offcpu", "--min", 100000, "--", *naps(6, NAPS_MS))
	got = [sleeps(window) for window in windows]
	check_equal(sum(waits for waits, _ in got), 6, "waits of %s" % got)
	check(6 * NAPS_MS * 1e6 <= sum(ns for _, ns in got) < 6 * NAPS_MS * 1e6 * 1.2, lambda: "%s" % got)
	check(all(0.5 * NS < ns <= window.ns for (_, ns), window in list(zip(got, windows))[:-1]), lambda: "a sleeper sleeps all the time: %s" % got)


@test
def a_long_wait_is_in_all_windows():
	"""The wait began before all windows; its stack was sent only in the first."""
	need_bpf()
	with subprocess.Popen(["sleep", "60"]) as sleeper:
		time.sleep(0.3)
		windows, _ = record_windows("offcpu", "-p", sleeper.pid, 5)
		sleeper.kill()
	for window in windows:
		waits, ns = sleeps(window)
		check_equal((window.number, waits, ns), (window.number, int(window is windows[-1]), window.ns), "window, waits that ended and ns")


@test
def a_limit_is_for_the_whole_wait():
	"""--min: a wait that reaches the limit in a later window counts there with all its time. --max: the length of a wait is known only at
	its end."""
	need_bpf()
	windows, _ = record_windows("offcpu", "--min", 1500000, "--", *naps(2, 2500))
	got = [sleeps(window) for window in windows]
	check_equal(sum(waits for waits, _ in got), 2, "waits of %s" % got)
	check_equal(got[0], (0, 0), "a second is not enough: %s" % got)
	check(got[1][1] > 1.4 * NS and sum(ns for _, ns in got) >= 2 * 2.5 * NS, lambda: "all of its time: %s" % got)
	windows, _ = record_windows("offcpu", "--min", 200000, "--max", 1000000, "--", *naps(4, NAPS_MS))
	got = [sleeps(window) for window in windows]
	check_equal(sum(waits for waits, _ in got), 4, "waits of %s" % got)
	check(all(ns >= waits * NAPS_MS * 1e6 for waits, ns in got), lambda: "whole waits: %s" % got)


@test
def names_that_take_long_delay_names_alone():
	"""The process that reads files is stopped. The windows go on; two wait for it, and the oldest is written without names."""
	need_bpf()
	folder = fresh_folder("late")
	with Program("chain") as program, Background("profile", "-F", 499, "--every", 1, "-o", os.path.join(folder, "w-%n.json"), "-p", program.pid, 7) as recording:
		deadline = time.monotonic() + 20
		while len(readers_of(recording.process.pid)) < 2 and time.monotonic() < deadline:
			time.sleep(0.01)
		os.kill(readers_of(recording.process.pid)[-1], signal.SIGSTOP)
		result = recording.finish(60)
	windows = sorted((Window(path) for path in glob.glob(os.path.join(folder, "*.json"))), key=lambda window: window.number)
	_, samples, lost = total_of(result.err)
	check_equal((sum(window.of("samples") for window in windows), lost), (samples, 0), "samples and lost")
	check_seamless(windows, 7)
	check("1 written early" in result.err, lambda: result.err)
	check(all(any(re.match(r"\[chain\+0x", frame) for frame in frames) for _, frames, _ in windows[0].rows), lambda: "addresses: %s" % windows[0].rows[:3])
	check("names came too late" in json.dumps(windows[0].account), lambda: windows[0].account)
	for window in windows[2:]:
		check(all("main" in frames for _, frames, _ in window.rows), lambda: "window %d: %s" % (window.number, window.rows[:3])) # pylint: disable=cell-var-from-loop


def readers_of(pid):
	"""Returns the unprivileged processes that read files for sonde, in the order of their start."""
	found = []
	for path in glob.glob("/proc/[0-9]*/stat"):
		try:
			with open(path, encoding="utf-8", errors="replace") as file:
				fields = file.read().rpartition(")")[2].split()
			with open(os.path.dirname(path) + "/cmdline", "rb") as file:
				words = file.read().split(b"\0")
		except OSError:
			continue
		if int(fields[1]) == pid and b"worker" in b" ".join(words[:2]):
			found.append((int(fields[19]), int(path.split("/")[2])))
	return [child for _, child in sorted(found)]


@test
def reports_on_standard_output():
	need_bpf()
	with Program("chain") as program:
		text = sonde("profile", "--every", 1, "-p", program.pid, 3).out
		folded = sonde("profile", "-f", "--every", 1, "-p", program.pid, 3).out
		lines = sonde("profile", "--format", "jsonl", "--every", 1, "-p", program.pid, 3).out
	check(3 <= len(re.findall(r"^\[\d\d:\d\d:\d\d\]$", text, re.M)) <= 4, lambda: text[:2000])
	parts = folded.split("\n\n")
	check(3 <= len(parts) <= 4 and all(parse_folded(part) for part in parts), lambda: folded[:2000])
	kinds = collections.Counter(next(iter(json.loads(line))) for line in lines.splitlines())
	check(len(kinds) >= 1 and all(json.loads(line) for line in lines.splitlines()), lambda: kinds)


@test
def ctrl_c_writes_the_last_one():
	need_bpf()
	folder = fresh_folder("stopped")
	with Program("chain") as program, Background("profile", "-F", 199, "--every", 2, "-o", os.path.join(folder, "%n.json"), "-p", program.pid) as recording:
		deadline = time.monotonic() + 30
		while not os.path.exists(os.path.join(folder, "1.json")) and time.monotonic() < deadline:
			time.sleep(0.05)
		time.sleep(0.5)
		recording.send(signal.SIGINT)
		result = recording.finish(30)
	windows = [Window(path) for path in glob.glob(os.path.join(folder, "*.json"))]
	check_equal(total_of(result.err)[:2], (len(windows), sum(window.of("samples") for window in windows)), "windows and samples")
	check(2 <= len(windows) <= 3 and min(window.ns for window in windows) < 1.9 * NS, lambda: [window.ns for window in windows])


@test
def the_second_ctrl_c_waits_for_no_names():
	"""The file reader is stopped: the report is written all the same, with addresses, and says why."""
	need_bpf()
	for every, report in (([], "one.json"), (["--every", 60], "%n.json")):
		folder = fresh_folder("hurried")
		with Program("chain") as program, Background("profile", "-F", 199, *every, "-o", os.path.join(folder, report), "-p", program.pid) as recording:
			time.sleep(2)
			for reader in readers_of(recording.process.pid):
				os.kill(reader, signal.SIGSTOP)
			recording.send(signal.SIGINT)
			time.sleep(1)
			recording.send(signal.SIGINT)
			began = time.monotonic()
			result = recording.finish(60)
			took = time.monotonic() - began
		with open(glob.glob(os.path.join(folder, "*.json"))[0], encoding="utf-8") as file:
			text = file.read()
		check("names came too late" in text and "[chain+0x" in text, lambda: result.err) # pylint: disable=cell-var-from-loop
		check(took < 5, lambda: "%.1f s after the second: %s" % (took, result.err)) # pylint: disable=cell-var-from-loop


REWRITTEN = r"""
import _ctypes, ctypes, sys, time
def run(name, seconds):
	with open("%s.so" % name, "rb") as source, open("plugin.so", "r+b") as plugin: # in place
		plugin.write(source.read())
		plugin.truncate()
	library = ctypes.CDLL("./plugin.so")
	end = time.monotonic() + seconds
	while time.monotonic() < end:
		library[name]()
	_ctypes.dlclose(library._handle)
open("plugin.so", "wb").close()
run("after", 0.6)
run("early", 0.9)
run("after", 3.2)
"""


@test
def a_file_written_anew_has_its_new_names():
	"""A plugin is overwritten in place: names that an earlier window found in the file are not used for the new contents."""
	need_bpf()
	folder = fresh_folder("anew")
	for name in ("early", "after"):
		path = os.path.join(folder, name)
		with open(path + ".c", "w", encoding="utf-8") as file:
			file.write("void %s(void) { for (volatile int i = 0; i < 10000000; i++) ; }\n" % name)
		compile_one(["gcc", "-O1", "-shared", "-fPIC", "-Wl,--build-id", "-o", path + ".so", path + ".c"])
	sonde("profile", "-F", 199, "--every", 1, "-o", os.path.join(folder, "%n.folded"), "--", sys.executable, "-c", REWRITTEN, cwd=folder)
	paths = sorted(glob.glob(os.path.join(folder, "*.folded")), key=os.path.getmtime)
	names = [set(re.findall(r";(early|after)\b", read_text(path))) for path in paths]
	check_equal(set().union(*names[3:]), {"after"}, "names in %s" % names)


DEBUG_FILES = "/usr/lib/debug"


def stripped_program(folder, name):
	"""Builds a program that runs in `hidden` for so many seconds. Returns its path and the path of its debug file, which a test may move."""
	path = os.path.join(folder, name)
	with open(path + ".c", "w", encoding="utf-8") as file:
		file.write("#include <time.h>\n#include <stdlib.h>\n__attribute__((noinline)) static void hidden(time_t end) { while (time(0) < end) ; }\n"
			   "int main(int argc, char **argv) { hidden(time(0) + atoi(argv[1])); }\n")
	compile_one(["gcc", "-O1", "-g", "-Wl,--build-id", "-o", path, path + ".c"])
	for command in (["objcopy", "--only-keep-debug", path, path + ".debug"], ["strip", path], ["objcopy", "--add-gnu-debuglink=%s.debug" % name, path]):
		subprocess.run(command, cwd=folder, check=True)
	return path, path + ".debug"


def record_script(folder, script):
	"""Returns the text of each window, folded, while a shell runs the script."""
	sonde("profile", "-F", 199, "--every", 1, "-o", os.path.join(folder, "%n.folded"), "--", "sh", "-c", script, cwd=folder)
	return [read_text(path) for path in sorted(glob.glob(os.path.join(folder, "*.folded")), key=os.path.getmtime)]


@test
def a_name_that_was_not_to_be_had_is_looked_for_again():
	"""The first process that runs the program has ended when its window is resolved, so no debug file is read; the next process is alive."""
	need_bpf()
	folder = fresh_folder("ended")
	stripped_program(folder, "program")
	texts = record_script(folder, "timeout 0.3 ./program 9; sleep 1.2; ./program 3")
	check("[program+0x" in texts[0] and "[program+0x" not in texts[2] and ";hidden" in texts[2], lambda: "%s" % texts)


@test
def a_strangers_debug_file_does_not_name_what_others_run():
	"""A user in his own mount namespace runs a program of ours with a debug file that he made; we run it in later windows."""
	need_bpf()
	folder = fresh_folder("stranger")
	os.chmod(folder, 0o755)
	program, debug = stripped_program(folder, "program")
	forged = os.path.join(folder, "forged")
	build_id = re.search(r"Build ID: ([0-9a-f]+)", subprocess.run(["readelf", "-n", program], check=True, stdout=subprocess.PIPE, text=True).stdout).group(1)
	os.makedirs(os.path.join(forged, ".build-id", build_id[:2]))
	subprocess.run(["objcopy", "--redefine-sym", "hidden=forged", debug, os.path.join(forged, ".build-id", build_id[:2], build_id[2:] + ".debug")], check=True)
	os.remove(debug)
	mounts = "mount --bind %s %s" % (forged, DEBUG_FILES)
	stranger = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "unshare", "-Urm", "sh", "-c", mounts]
	if not os.path.isdir(DEBUG_FILES) or subprocess.run(stranger, stderr=subprocess.DEVNULL, check=False).returncode:
		skip("there is no %s, or no user may have mounts of his own" % DEBUG_FILES)
	texts = record_script(folder, "%s; ./program 3" % " ".join([*stranger[:-1], "'%s && exec %s 3'" % (mounts, program)]))
	check(any("forged" in text for text in texts[:-2]), lambda: "the stranger's own: %s" % texts)
	check("forged" not in texts[-2] and "[program+0x" in texts[-2], lambda: "%s" % texts[-2])


@test
def what_was_noted_is_told():
	"""A debuginfod server does not answer: a window reports it, as a recording without windows does."""
	need_bpf()
	folder = fresh_folder("noted")
	with socket.create_server(("127.0.0.1", 0)) as server:
		env = {**os.environ, "DEBUGINFOD_URLS": "http://127.0.0.1:%d" % server.getsockname()[1], "XDG_CACHE_HOME": folder, "HOME": folder}
		result = sonde("profile", "--every", 1, "--debuginfod-timeout", 1, "-o", os.path.join(folder, "%n.json"), 2, "--", "sh", "-c", "while :; do :; done", env=env)
	check("had not come from the debuginfod servers in time" in result.err, lambda: result.err)


@test
def old_files_are_removed():
	need_bpf()
	folder = fresh_folder("kept")
	with open(os.path.join(folder, "w-0.folded"), "w", encoding="utf-8") as file:
		file.write("not ours\n")
	with Program("chain") as program:
		result = sonde("profile", "--every", 1, "--keep", 2, "-o", os.path.join(folder, "w-%n.folded"), "-o", os.path.join(folder, "%t.top"), "-p", program.pid, 5)
	nr = total_of(result.err)[0]
	names = sorted(os.listdir(folder))
	check_equal([name for name in names if name.startswith("w-")], ["w-0.folded", "w-%d.folded" % (nr - 1), "w-%d.folded" % nr], "files by number")
	times = [name for name in names if not name.startswith("w-")]
	check(len(times) == 2 and all(re.fullmatch(r"\d{8}T\d{6}Z\.top", name) for name in times), lambda: names)


@test
def what_is_not_ours_is_not_removed():
	"""A window's path that is a symbolic link, and a file that somebody put in a window's place, are not removed."""
	need_bpf()
	folder = fresh_folder("others")
	link, replaced = (os.path.join(folder, "w-%d.folded" % nr) for nr in (1, 2))
	with open(os.path.join(folder, "elsewhere"), "w", encoding="utf-8"):
		os.symlink("elsewhere", link)
	with Program("chain") as program, Background("profile", "--every", 1, "--keep", 1, "-o", os.path.join(folder, "w-%n.folded"), "-p", program.pid, 6) as recording:
		deadline = time.monotonic() + 20
		while not os.path.exists(replaced) and time.monotonic() < deadline:
			time.sleep(0.02)
		with open(replaced + ".new", "w", encoding="utf-8") as file:
			file.write("not sonde's")
		os.rename(replaced + ".new", replaced)
		recording.finish(30)
	check(os.path.islink(link) and read_text(replaced) == "not sonde's", lambda: "%s" % os.listdir(folder))
	check_equal(len(os.listdir(folder)), 4, "files: the link, what it leads to, the one that was replaced, and the last: %s" % os.listdir(folder))


@test
def what_makes_no_sense_is_refused():
	for args, text in [
		(["--every", 1, "-o", scratch("x.json")], "needs %n"),
		(["--every", 1, "-o", scratch("x-%q.json")], "needs %n"),
		(["--every", 1, "-o", "-", "--format", "html"], "report after report"),
		(["--keep", 2], "--every"),
	]:
		check(text in sonde("profile", *args, 1, want=2).err, lambda: "%s: %s" % (args, text)) # pylint: disable=cell-var-from-loop
	check("--every" in sonde("offcpu", "--every", 1, "--events", scratch("events"), "-o", scratch("x-%n.json"), 1, want=2).err, "--events with --every")


run_tests()
