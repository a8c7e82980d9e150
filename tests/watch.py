#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""watch.py SECONDS COMMAND...: runs the command and ends as it does, but not later than this. Then it reports what still runs, and asks the command to end
(`meson test` then writes its results so far). What remains is killed. What cannot be killed, because it is stuck in the kernel,
is reported and not waited for. Exit status 124, as of timeout(1). Touches only what the command started."""
import ctypes
import os
import signal
import subprocess
import sys
import time

ASK_SECONDS = 20
KILL_SECONDS = 10
PR_SET_CHILD_SUBREAPER = 36


class Process:
	"""A process, as /proc describes it."""

	def __init__(self, pid):
		with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
			fields = file.read().rpartition(")")[2].split()
		self.pid, self.state, self.parent = pid, fields[0], int(fields[1])
		with open("/proc/uptime", encoding="ascii") as file:
			self.age = float(file.read().split()[0]) - int(fields[19]) / os.sysconf("SC_CLK_TCK")

	def read(self, name):
		try:
			with open("/proc/%d/%s" % (self.pid, name), encoding="utf-8", errors="replace") as file:
				return file.read()
		except OSError:
			return ""

	def kill(self):
		try:
			os.kill(self.pid, signal.SIGKILL)
		except ProcessLookupError:
			pass

	def __str__(self):
		words = self.read("cmdline").replace("\0", " ").strip() or "[%s]" % self.read("comm").strip()
		kernel = " < ".join(line.partition("] ")[2] for line in self.read("stack").splitlines()[:6]) if self.state == "D" else ""
		return "%d, state %s, for %.0f s: %s%s" % (self.pid, self.state, self.age, words[:200], "\n      in the kernel: " + kernel if kernel else "")


def descendants(pid):
	"""The descendants of this process, parents first, without those that have ended."""
	children = {}
	for name in os.listdir("/proc"):
		try:
			process = Process(int(name))
		except (ValueError, OSError):
			continue
		if process.state not in "ZX":
			children.setdefault(process.parent, []).append(process)
	found, parents = [], [pid]
	while parents:
		below = [process for parent in parents for process in children.get(parent, [])]
		found += below
		parents = [process.pid for process in below]
	return found


def reap(command):
	"""Reaps ended children, including orphans, whose parent is now this process."""
	try:
		while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
			if command and ended.si_pid == command.pid:
				command.poll()
			else:
				os.waitpid(ended.si_pid, 0)
	except ChildProcessError:
		pass


def ends_within(command, seconds):
	stop = time.monotonic() + seconds
	while command.returncode is None and time.monotonic() < stop:
		time.sleep(0.05)
		reap(command)
	return command.returncode is not None


def end(command):
	"""Asks, then kills; returns the survivors. The command is None when we were ended just as we started it."""
	if command and command.returncode is None:
		command.terminate()
		ends_within(command, ASK_SECONDS)
	stop = time.monotonic() + KILL_SECONDS
	while True:
		reap(command)
		left = descendants(os.getpid())
		if not left or time.monotonic() > stop:
			return left
		for process in left:
			process.kill()
		time.sleep(0.1)


def say(text, processes):
	print("watch: " + text, file=sys.stderr)
	for process in processes:
		print("    %s" % process, file=sys.stderr)
	sys.stderr.flush()


def stopped(signo, _):
	raise SystemExit(128 + signo)


def watch(seconds, argv):
	"""Returns the command's exit status, 124 when it does not end."""
	if seconds <= 0:
		say("no time is left for: " + " ".join(argv), [])
		return 124
	ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	command = None
	try:
		command = subprocess.Popen(argv) # pylint: disable=consider-using-with # its end would wait
		if ends_within(command, seconds):
			return command.returncode if command.returncode >= 0 else 128 - command.returncode
		say("not at its end after %.0f s, and is ended: %s; what runs:" % (seconds, " ".join(argv)), descendants(command.pid))
		return 124
	finally:
		left = end(command)
		if left:
			say("cannot be killed:", left)


def main(seconds, *argv):
	signal.signal(signal.SIGTERM, stopped)
	signal.signal(signal.SIGHUP, stopped)
	signal.signal(signal.SIGINT, lambda *_: None) # a terminal sends it to the command as well, which handles it
	sys.exit(watch(float(seconds), argv))


if __name__ == "__main__":
	main(*sys.argv[1:])
