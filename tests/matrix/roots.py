# SPDX-License-Identifier: Apache-2.0
"""Other Debians: root("trixie", ["python3.13"]) is a folder into which that suite's packages and their dependencies are unpacked (nothing is configured: no
package's script runs), made once and kept. Inside(folder, argv) runs a program there.

	with Inside(root("trixie", ["python3.13"]), ["/usr/bin/python3.13", "/mnt/spin.py"], share=os.path.dirname(scratch("x"))) as program:
		program.wait_line("ready")
		sonde("profile", "-p", program.pid, 2)
"""
import hashlib
import os
import re
import select
import signal
import subprocess
import time

from fetch import get, kept, remove, skip
from harness import Failure, Skip, check, find_tool, run

BASE = ["base-files", "dash", "sed", "coreutils"] # without it, no wrapper script runs
NO_SECURITY = ("sid", "experimental")


def mirror():
	"""The Debian mirror of this machine; no other is used."""
	for uri in run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]).out.split():
		if re.fullmatch(r".*/debian/?", uri):
			return uri.rstrip("/")
	return skip("no Debian mirror in this machine's package sources")


def unpack(folder, suite, packages, with_security):
	base = mirror()
	sources = ["deb %s %s main" % (base, name) for name in ((suite, "sid") if suite == "experimental" else (suite,))] + (["deb %s-security %s-security main" % (base, suite)] if with_security else [])
	get(["mmdebstrap", "--quiet", "--mode=root", "--variant=extract", "--skip=check/empty", "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
		"--aptopt=Acquire::Languages \"none\"", "--aptopt=APT::Install-Recommends \"false\"", "--aptopt=Acquire::Check-Valid-Until \"false\"",
		"--include=" + ",".join([*BASE, *packages]), suite, folder, *sources], "Debian %s with %s" % (suite, ", ".join(packages)), timeout=600)
	for name in ("proc", "tmp", "mnt"): # not in a package, but made by a package's script
		os.makedirs(os.path.join(folder, name), exist_ok=True)


def root(suite, packages):
	"""Skips the test when the mirror does not have it (any more). A suite at the end of its life first loses single packages of
	its security updates, so the second attempt leaves these out."""
	if os.geteuid() != 0:
		skip("not root")
	packages = sorted(packages)
	name = "root-%s-%s" % (suite, hashlib.sha256(" ".join(packages).encode()).hexdigest()[:12])

	def make(folder):
		if suite not in NO_SECURITY:
			try:
				return unpack(folder, suite, packages, True)
			except Skip:
				remove(folder)
				os.makedirs(folder)
		return unpack(folder, suite, packages, False)
	return kept(name, make)


class Inside:
	"""A program in a root, by chroot: .pid is the program's own, .process is Popen's. /proc is mounted, /tmp is new and empty, /mnt is `share`.
	All mounts are in a mount namespace of its own and vanish with it; the root stays unchanged. With `own_pids` it is pid 1 of a pid namespace."""

	def __init__(self, folder, argv, share=None, own_pids=False, env=None, **kwargs):
		script = 'set -e; mount -t proc proc "$1/proc"; mount -t tmpfs -o mode=1777 tmp "$1/tmp"; [ -z "$2" ] || mount --bind "$2" "$1/mnt"; '
		script += 'root=$1; shift 2; exec chroot "$root" "$@"'
		for tool in ("unshare", "chroot", "mount"):
			if not find_tool(tool):
				skip("no %s" % tool)
		self.own_pids = own_pids
		self.argv = ["unshare", "-m", "--propagation", "private", *(["-p", "--fork", "--kill-child"] if own_pids else []), "--",
			"sh", "-c", script, "sh", folder, share or "", *map(str, argv)]
		self.environ = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/tmp", **(env or {})}
		self.kwargs = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, **kwargs}
		self.process = self.pid = None

	def __enter__(self):
		self.process = subprocess.Popen(self.argv, env=self.environ, start_new_session=True, bufsize=0, **self.kwargs)
		self.pid = self.process.pid
		if self.own_pids:
			try:
				self.pid = self.child()
			except BaseException:
				self.__exit__()
				raise
		return self

	def child(self):
		for _ in range(200):
			with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid), encoding="ascii") as file:
				children = file.read().split()
			if children:
				return int(children[0])
			time.sleep(0.05)
		raise Failure("%s started nothing" % self.argv)

	def wait_line(self, text, timeout=60):
		"""Reads the program's output up to the first line with the text; returns the lines."""
		deadline, lines = time.monotonic() + timeout, []
		while not lines or text not in lines[-1]:
			ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
			line = self.process.stdout.readline() if ready else b""
			check(line, lambda: "%s: no line with %r, but: %s" % (self.argv, text, lines))
			lines.append(line.decode("utf-8", "backslashreplace").rstrip("\n"))
		return lines

	def __exit__(self, *exc):
		"""Kills it and all processes that it started."""
		try:
			os.killpg(self.process.pid, signal.SIGKILL)
		except ProcessLookupError:
			pass
		self.process.communicate()
