#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/system/go_labels.py with each version of Go whose labels are supported. go fetches them itself, as modules, into its own cache."""
import json
import os
import re
import stat
import sys

from fetch import get, skip
from harness import check, run, run_tests, test

VERSIONS = ("1.16.15", "1.17.13", "1.18.10", "1.19.13", "1.20.14", "1.21.13", "1.22.12", "1.23.12", "1.24.13", "1.25.5", "1.27.4")
SYSTEM_TEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system", "go_labels.py")


def make_executable(folder):
	"""Makes it executable: modules' files are not."""
	for path, _, names in os.walk(folder):
		for name in names:
			os.chmod(os.path.join(path, name), os.stat(os.path.join(path, name)).st_mode | stat.S_IXUSR)


def go_program(version):
	env = dict(os.environ, GOFLAGS="-mod=mod", GOTOOLCHAIN="local")
	fetched = get(["go", "mod", "download", "-json", "golang.org/toolchain@v0.0.1-go%s.linux-amd64" % version], "Go " + version, env=env, cwd="/")
	folder = json.loads(fetched.out)["Dir"]
	make_executable(os.path.join(folder, "bin"))
	make_executable(os.path.join(folder, "pkg", "tool"))
	return os.path.join(folder, "bin", "go")


def register(version):
	def labels():
		env = dict(os.environ, SONDE_GO=go_program(version))
		done = run([sys.executable, SYSTEM_TEST], timeout=600, env=env)
		check(done.code == 0 and not re.search(r"^not ok", done.out, re.M), lambda: done.out)
		if "SKIP" in done.out:
			skip(re.search(r"SKIP (.*)", done.out).group(1))
		return ", ".join(re.findall(r"\d+ sets of labels", done.out))
	labels.__name__ = "go_%s" % version
	test(labels)


for each in VERSIONS:
	register(each)

run_tests(seconds=1500) # its requirements are fetched
