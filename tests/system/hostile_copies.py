#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that an unprivileged user passes off as others': a copy that he changes later, debug files and paths through his own mounts. What root's sonde
shows of another user's process comes from that user's files and from root's."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import CFLAGS, SOURCES, Background, Program, check, cpu_seconds, find_tool, fresh_folder, need_bpf, parse_json, run, run_tests, scratch, skip, test, total # noqa: E402

STRANGER, VICTIM = 65533, 1234 # not 65534: other tests beside this one have that uid refused
BUILD_ID = os.urandom(20).hex() # otherwise files of another run of this test would be copies of ours
HONEST = ["main", "copied_outer", "copied_middle", "copied_inner"]

# Maps the file, which begins with the bytes of another, and writes the bytes of a third into it on request.
REWRITES = """
import mmap, os, sys
before, after = (open(path, "rb").read() for path in sys.argv[2:])
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.fchown(file, %d, %d)
os.setgroups([])
os.setresgid(%d, %d, %d)
os.setresuid(%d, %d, %d)
os.pwrite(file, before, 0)
kept = mmap.mmap(file, 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
for word in "ready", "changed":
	print(word, flush=True)
	sys.stdin.readline()
	os.pwrite(file, after, 0)
""" % ((STRANGER,) * 8)


class Rewriter:
	def __init__(self, path, before, after):
		self.process = subprocess.Popen([sys.executable, "-c", REWRITES, path, before, after], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

	def wait(self, word):
		check(self.process.stdout.readline() == word + b"\n", "the stranger did not say %s" % word)

	def __enter__(self):
		self.wait(b"ready")
		return self

	def change(self):
		self.process.stdin.write(b"\n")
		self.process.stdin.flush()
		self.wait(b"changed")

	def __exit__(self, *exc):
		self.process.kill()
		self.process.communicate()


def made(path, cfa=256, owner=0):
	result = run(["gcc", *CFLAGS, "-no-pie", "-fno-pie", "-Wl,--build-id=0x" + BUILD_ID, "-DCFA=%d" % cfa, "-o", path, os.path.join(SOURCES, "copied.c")])
	check(result.code == 0, result)
	os.chmod(path, 0o755)
	os.chown(path, owner, owner)
	return path


def forged(path, source):
	"""Makes the same program with other names, as long as the true ones."""
	with open(source, "rb") as file:
		data = file.read()
	check(b"copied_" in data, "no names")
	with open(path, "wb") as file:
		file.write(data.replace(b"copied_", b"stolen_"))
	os.chmod(path, 0o755)
	return path


def folder_of_all(name):
	folder = fresh_folder(name)
	os.chmod(folder, 0o755)
	return folder


def run_as(uid, *argv):
	return [find_tool("setpriv"), "--reuid=%d" % uid, "--regid=%d" % uid, "--clear-groups", *argv]


def in_own_mounts(uid, script, path):
	"""Returns the command that runs the program in the user's own user and mount namespace, after the script."""
	if run(run_as(uid, "unshare", "-Urm", "true")).code:
		skip("users have no namespaces here")
	return run_as(uid, "unshare", "-Urm", "sh", "-ec", script + '\nexec "$@"', "sh", path)


class Recording(Background):
	"""`profile`, until it is stopped."""

	def __init__(self, *args):
		self.report = scratch("copies.json")
		super().__init__("profile", "-F", 499, "--no-unwind-cache", "-o", self.report, *args, 100)

	def __enter__(self):
		self.wait_line("Sampling", timeout=120)
		return self

	def stop(self):
		self.send(signal.SIGINT)
		result = self.finish(timeout=120)
		check(result.code in (0, 130), result)
		with open(self.report, encoding="utf-8") as file:
			return json.load(file)


def let_work(*programs):
	"""Waits until each has used half a second of CPU time from now on."""
	starts = [cpu_seconds(program.pid) for program in programs]
	for program, start in zip(programs, starts):
		while cpu_seconds(program.pid) < start + 0.5:
			time.sleep(0.05)


def stacks_of(report, program):
	stacks = [stack for stack in parse_json(report) if stack.pid == program.pid]
	check(total(stacks) >= 10, lambda: "%d samples of process %d" % (total(stacks), program.pid))
	return stacks


def is_whole(stack):
	return stack.user[-len(HONEST):] == HONEST


def is_marked(stack):
	return any(frame.startswith("[") and " " in frame for frame in stack.user)


def check_honest(report, program):
	"""Where it spins, its stacks are whole and have its own names; some may be marked."""
	stacks = [stack for stack in stacks_of(report, program) if re.search("copied_|stolen_", " ".join(stack.user))]
	bad = [stack for stack in stacks if "stolen" in str(stack) or not (is_whole(stack) or is_marked(stack))]
	check(not bad, lambda: "\n".join(map(str, bad)))
	good = total([stack for stack in stacks if is_whole(stack)])
	check(good >= 10, lambda: "%d are whole:\n%s\n%s" % (good, "\n".join(map(str, stacks_of(report, program))), "\n".join(report["account"]["notes"])))
	return "%d of %d stacks" % (good, total(stacks))


@test
def frames_of_a_copy():
	"""The table is built from the untrusted file while its frames differ; then the file becomes identical to root's program, which a user
	starts."""
	need_bpf()
	folder = folder_of_all("frames")
	victim, other = made(os.path.join(folder, "victim")), made(os.path.join(folder, "other"), cfa=384)
	check(os.path.getsize(victim) == os.path.getsize(other), "the forgery has another size")
	with Rewriter(os.path.join(folder, "copy"), other, victim) as stranger, Recording() as recording:
		time.sleep(1)
		stranger.change()
		with Program("copied", seconds=600, path=run_as(VICTIM, victim)) as program:
			let_work(program)
			report = recording.stop()
	return check_honest(report, program)


@test
def names_of_a_copy():
	"""The untrusted file is identical to root's program until that has run; names are read later."""
	need_bpf()
	folder = folder_of_all("names")
	victim = made(os.path.join(folder, "victim"))
	other = forged(os.path.join(folder, "other"), victim)
	with Rewriter(os.path.join(folder, "copy"), victim, other) as stranger, Recording() as recording, Program("copied", seconds=600, path=run_as(VICTIM, victim)) as program:
		let_work(program)
		stranger.change()
		report = recording.stop()
	return check_honest(report, program)


@test
def a_user_s_own_copies_are_one():
	"""Identical copies of one user are read once, as before."""
	need_bpf()
	folder = folder_of_all("own")
	first = made(os.path.join(folder, "first"), owner=VICTIM)
	second = shutil.copy(first, os.path.join(folder, "second"))
	os.chown(second, VICTIM, VICTIM)
	with Program("copied", seconds=600, path=run_as(VICTIM, first)) as one, Program("copied", seconds=600, path=run_as(VICTIM, second)) as two, Recording() as recording:
		let_work(one, two)
		report = recording.stop()
	check_honest(report, one)
	check_honest(report, two)
	paths = sorted(mapping["path"] for mapping in report["mappings"] if mapping["path"] in (first, second))
	check(len(paths) == 1, paths)


def with_debug_file(folder, owner):
	"""Makes a program without names, the honest debug file and the forged one."""
	whole = made(os.path.join(folder, "whole"))
	tool = os.path.join(folder, "tool")
	check(run(["strip", "-o", tool, whole]).code == 0, "strip")
	os.chmod(tool, 0o755)
	os.chown(tool, owner, owner)
	return tool, whole, forged(os.path.join(folder, "forged"), whole)


def mounted_debug_file(file):
	return "mount -t tmpfs none /usr/lib/debug\nmkdir -p /usr/lib/debug/.build-id/%s\ncp %s /usr/lib/debug/.build-id/%s/%s.debug" % (BUILD_ID[:2], file, BUILD_ID[:2], BUILD_ID[2:])


def need_debug_folder():
	if not os.path.isdir("/usr/lib/debug"):
		skip("no /usr/lib/debug to mount something on")


@test
def debug_file_by_a_stranger_s_mount():
	"""The untrusted user runs root's program where he has put a debug file; another user runs it too. Neither gets names from that file."""
	need_bpf()
	need_debug_folder()
	tool, _, other = with_debug_file(folder_of_all("mount"), 0)
	with Program("copied", seconds=600, path=in_own_mounts(STRANGER, mounted_debug_file(other), tool)) as stranger, Program("copied", seconds=600, path=run_as(VICTIM, tool)) as program, \
			Recording() as recording:
		let_work(stranger, program)
		report = recording.stop()
	for who in program, stranger:
		bad = [stack for stack in stacks_of(report, who) if "stolen" in str(stack)]
		check(not bad, lambda: "\n".join(map(str, bad)))


@test
def debug_file_hidden_by_a_stranger_s_mount():
	"""Root's debug file is beside the program, but hidden where the untrusted user runs it."""
	need_bpf()
	folder = folder_of_all("hidden")
	tool, whole, other = with_debug_file(folder, 0)
	os.makedirs(os.path.join(folder, ".debug"))
	debug = shutil.copy(whole, os.path.join(folder, ".debug", "tool.debug"))
	check(run(["objcopy", "--add-gnu-debuglink=" + debug, tool]).code == 0, "objcopy")
	os.chmod(tool, 0o755)
	script = "mount -t tmpfs none %s/.debug\ncp %s %s/.debug/tool.debug" % (folder, other, folder)
	with Program("copied", seconds=600, path=in_own_mounts(STRANGER, script, tool)) as stranger, Recording() as recording:
		let_work(stranger)
		with Program("copied", seconds=600, path=run_as(VICTIM, tool)) as program:
			let_work(program)
			report = recording.stop()
	check_honest(report, stranger)
	return check_honest(report, program)


@test
def debug_file_in_a_user_s_container():
	"""Program and debug file are the user's, as in containers that users start: they belong together."""
	need_bpf()
	need_debug_folder()
	tool, whole, _ = with_debug_file(folder_of_all("container"), VICTIM)
	with Program("copied", seconds=600, path=in_own_mounts(VICTIM, mounted_debug_file(whole), tool)) as program, Recording() as recording:
		let_work(program)
		report = recording.stop()
	return check_honest(report, program)


@test
def path_by_a_stranger_s_mount():
	"""A file that everybody may use keeps the path that it has in our mount namespace, not the path of the untrusted user who mapped it
	first."""
	need_bpf()
	folder = folder_of_all("path")
	tool = made(os.path.join(folder, "tool"))
	fake = os.path.join(folder, "fake")
	open(fake, "wb").close()
	with Program("copied", seconds=600, path=in_own_mounts(STRANGER, "mount --bind %s %s" % (tool, fake), fake)), Recording() as recording:
		time.sleep(0.5)
		with Program("copied", seconds=600, path=run_as(VICTIM, tool)) as program:
			let_work(program)
			report = recording.stop()
	check_honest(report, program)
	paths = [mapping["path"] for mapping in report["mappings"] if mapping["path"] in (tool, fake)]
	check(paths == [tool], lambda: "%s: %s" % (sorted({mapping["path"] for mapping in report["mappings"]}), "\n".join(report["account"]["notes"])))


if __name__ == "__main__":
	run_tests(seconds=240)
