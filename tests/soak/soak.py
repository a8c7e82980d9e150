#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""soak.py [SECONDS]: an always-on sonde must not grow. Runs `profile` and `offcpu` side by side with windows, under processes that come and go, each of 300 programs, rewritten code, and
libraries that are loaded and unloaded. Watches memory, descriptors and the kernel's maps all the time: after a while they must stay constant.

./test runs it for a minute, ./test --soak for half an hour."""
import os
import re
import shutil
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from harness import SONDE, SOURCES, Program, build, check, fresh_folder, need_bpf, run_tests, scratch, test # noqa: E402

SECONDS = float(os.environ.get("SONDE_SOAK_SECONDS", "60"))
WINDOW_S = 2 if SECONDS < 600 else 10
WARM_UP = 0.4 if SECONDS < 600 else 0.1  # of the time
NR_PROGRAMS = 300
PERIOD_S = 0.02
SLACK = {"memory": (16 if SECONDS < 600 else 4) << 20, "descriptors": 16, "maps": 1 << 20}  # and a twentieth; within a minute beside a noisy neighbour the caches are still filling up


def make_programs(folder):
	"""Copies of one program, each a different file by its bytes and build id."""
	source = scratch("brief_one.c")
	with open(source, "w", encoding="utf-8") as file:
		file.write("static volatile unsigned long sink;\n__attribute__((noinline)) void spin_for_a_while(void) { for (unsigned long i = 0; i < 2000000; i++) sink += i; }\n"
			   "int main(void) { spin_for_a_while(); return 0; }\n")
	paths = []
	for number in range(NR_PROGRAMS):
		path = os.path.join(folder, "brief-%d" % number)
		if not number:
			subprocess.run(["gcc", "-O1", "-o", path, source], check=True)
		else:
			shutil.copy(paths[0], path)
			subprocess.run(["objcopy", "--remove-section", ".note.gnu.build-id", path], check=True)
			with open(path, "ab") as file:
				file.write(b"%d" % number)
		paths.append(path)
	return paths


def make_library(folder, colour):
	path = os.path.join(folder, "lib%s.so" % colour)
	subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-pthread", "-DCOLOUR=" + colour, "-DROOM=24", "-I", SOURCES, "-o", path, os.path.join(SOURCES, "library_reload.c")], check=True)
	return path


class Crowd(threading.Thread):
	"""Starts a process every 20 ms."""

	def __init__(self, paths):
		super().__init__(daemon=True)
		self.paths, self.ends, self.nr = paths, threading.Event(), 0

	def run(self):
		running = []
		while not self.ends.wait(PERIOD_S):
			running = [process for process in running if process.poll() is None]
			if len(running) < 16:
				running.append(subprocess.Popen([self.paths[self.nr % len(self.paths)]]))
				self.nr += 1
		for process in running:
			process.wait()


def read(path):
	try:
		with open(path, encoding="utf-8", errors="replace") as file:
			return file.read()
	except OSError:
		return ""


def family(pid):
	children = read("/proc/%d/task/%d/children" % (pid, pid)).split()
	return [pid, *(int(child) for child in children)]


def figures(pid):
	"""Memory of sonde and its workers, descriptors, and the kernel's maps."""
	memory = sum(int(size) << 10 for one in family(pid) for size in re.findall(r"^Pss:\s+(\d+) kB", read("/proc/%d/smaps_rollup" % one), re.M))
	infos = [read("/proc/%d/fdinfo/%s" % (pid, fd)) for fd in os.listdir("/proc/%d/fd" % pid)]
	maps = {re.search(r"^map_id:\s+(\d+)", info, re.M).group(1): int(re.search(r"^memlock:\s+(\d+)", info, re.M).group(1)) for info in infos if "map_id:" in info}
	return {"memory": memory, "descriptors": len(infos), "maps": sum(maps.values())}


class Watched:
	"""A running sonde, and its figures from the end of the warm-up on."""

	def __init__(self, *args):
		self.args, self.seen = args, []
		self.process = subprocess.Popen([SONDE, *[str(arg) for arg in args]], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

	def look(self):
		check(self.process.poll() is None, lambda: "%s ended: %s" % (self.args, self.process.stderr.read()))
		self.seen.append(figures(self.process.pid))

	def end(self):
		self.process.terminate()
		_, err = self.process.communicate(timeout=60)
		return err

	def growth(self):
		"""The figures that grow: larger at any time of the last third than ever in the first."""
		tenth, third = max(1, len(self.seen) // 10), max(1, len(self.seen) // 3)
		print("# %s: memory in MiB, the most in each tenth: %s" % (self.args[0], " ".join("%.1f" % (max(look["memory"] for look in self.seen[at:at + tenth]) / 2**20) for at in range(0, len(self.seen), tenth))))
		grown = []
		for what, slack in SLACK.items():
			before, after = (max(look[what] for look in part) for part in (self.seen[:third], self.seen[-third:]))
			print("# %s: %s %.1f MiB, then %.1f" % (self.args[0], what, before / 2**20, after / 2**20) if what != "descriptors" else "# %s: %d descriptors, then %d" % (self.args[0], before, after))
			if after > before * 1.05 + slack:
				grown.append("%s from %d to %d" % (what, before, after))
		return grown


def watch(recordings, seconds):
	began = time.monotonic()
	while time.monotonic() - began < seconds:
		time.sleep(1)
		if time.monotonic() - began >= WARM_UP * seconds:
			for recording in recordings:
				recording.look()


@test
def nothing_grows():
	need_bpf()
	folder = fresh_folder("soak")
	crowd = Crowd(make_programs(folder))
	out = os.path.join(folder, "%s-%%n.pb.gz")
	with Program("rewrites", seconds=int(SECONDS) + 60), subprocess.Popen([build("reload"), str(int(SECONDS) + 60), "20", make_library(folder, "red"), make_library(folder, "blue")],
											stdout=subprocess.DEVNULL) as reload:
		recordings = [Watched("profile", "-F", 99, "--every", WINDOW_S, "--keep", 3, "-o", out % "cpu"), Watched("offcpu", "--every", WINDOW_S, "--keep", 3, "-o", out % "off")]
		try:
			crowd.start()
			watch(recordings, SECONDS)
		finally:
			crowd.ends.set()
			crowd.join()
			errs = [recording.end() for recording in recordings]
			reload.kill()
	for recording, err in zip(recordings, errs):
		total = re.search(r"^total: (\d+) windows?, (\d+) \w+, (\d+) lost", err, re.M)
		check(total and int(total.group(1)) >= SECONDS / WINDOW_S / 2, lambda: err) # pylint: disable=cell-var-from-loop
		print("# %s: %s; %d processes" % (recording.args[0], total.group(0), crowd.nr))
		grown = recording.growth()
		check(not grown, lambda: "%s: %s" % (recording.args, grown)) # pylint: disable=cell-var-from-loop
	check(len([name for name in os.listdir(folder) if name.endswith(".pb.gz")]) <= 8, lambda: os.listdir(folder))


run_tests(3 * SECONDS + 120)
