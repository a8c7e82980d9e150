# SPDX-License-Identifier: Apache-2.0
"""Cgroups (version 2) of a test's own, below the mount of cgroup2; without one, in a mount namespace of the test's own."""
import atexit
import ctypes
import os
import re
import time

from harness import fresh_folder, need_bpf, run, skip

CLONE_NEWNS = 0x20000
PREFIX = "sonde-test-"


def cgroup2_mount():
	with open("/proc/self/mounts", encoding="utf-8") as file:
		for line in file:
			_, point, kind, *_ = line.split()
			if kind == "cgroup2":
				return point
	return None


def mount_cgroup2():
	"""Mounts it in a mount namespace of our own, which ends with this process and its children."""
	point = fresh_folder("cgroup2")
	if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS):
		skip("no cgroup2 is mounted, and no mount namespace can be made: %s" % os.strerror(ctypes.get_errno()))
	for argv in (["mount", "--make-rprivate", "/"], ["mount", "-t", "cgroup2", "none", point]):
		result = run(argv)
		if result.code:
			skip("no cgroup2 is mounted, and it cannot be: %s" % result.err.strip())
	return point


def remove(top):
	"""Removes a cgroup and those below it, and kills the processes in them."""
	for folder, _, _ in os.walk(top, topdown=False):
		for _ in range(50):
			for pid in open(os.path.join(folder, "cgroup.procs"), encoding="ascii").read().split():
				os.kill(int(pid), 9)
			try:
				os.rmdir(folder)
				break
			except OSError: # killed processes have not ended yet
				time.sleep(0.1)


class OwnCgroups:
	"""A cgroup of our own with these folders in it. They are removed when we end, or, if we are killed, by the next test of this kind. Has
	.mount, .name and .path."""

	def __init__(self, *folders):
		need_bpf()
		self.mount = cgroup2_mount() or mount_cgroup2()
		for name in os.listdir(self.mount): # of a test that was killed
			match = re.fullmatch(PREFIX + r"(\d+)", name)
			if match and not os.path.exists("/proc/" + match.group(1)):
				remove(os.path.join(self.mount, name))
		self.name = PREFIX + str(os.getpid())
		self.path = os.path.join(self.mount, self.name)
		try:
			for folder in ("", *folders):
				os.mkdir(os.path.join(self.path, folder))
		except OSError as err:
			skip("no cgroup can be made below %s: %s" % (self.mount, err))
		atexit.register(remove, self.path)

	def move(self, pid, folder):
		with open(os.path.join(self.path, folder, "cgroup.procs"), "w", encoding="ascii") as file:
			file.write(str(pid))

	def id(self, folder):
		return os.stat(os.path.join(self.path, folder)).st_ino
