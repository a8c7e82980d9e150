#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PHP's stacks in all versions that Debian has: tests/unit/test_php_walk.c and tests/system/php.py with the PHP of another Debian."""
import os
import shutil
import sys

from roots import root # sets the path to harness
from harness import ROOT, check, need_bpf, run, run_tests, test # noqa: E402

VERSIONS = [("bullseye", "7.4"), ("trixie", "8.4"), ("experimental", "8.5")] # 8.2, this Debian's, is in ./test
OPCACHE_BUILT_IN = "8.5"
PROGRAMS = os.path.join(ROOT, "tests", "programs")


def folder_of(suite, version):
	folder = root(suite, ["php%s-cli" % version] + (["php%s-opcache" % version] if version != OPCACHE_BUILT_IN else []))
	for name in ("spin.php", "spin_included.php", "spin_required.php", "calls.php", "brief.php"):
		shutil.copy(os.path.join(PROGRAMS, name), os.path.join(folder, "mnt"))
	return folder


def register(suite, version):
	def walk():
		folder = folder_of(suite, version)
		result = run([os.environ["PHP_WALK"], "/mnt/spin.php", "php%s@%s" % (version, folder)], timeout=300)
		check(result.code == 0, lambda: result.out + result.err)
	walk.__name__ = "php_%s_stacks" % version.replace(".", "_")
	test(walk)
	if version == "7.4": # it has no JIT
		return

	def places():
		need_bpf()
		env = {**os.environ, "SONDE_PHP": "chroot %s /usr/bin/php%s" % (folder_of(suite, version), version), "SONDE_PHP_SCRIPTS": "/mnt"}
		result = run([sys.executable, os.path.join(ROOT, "tests", "system", "php.py"), "interpreted", "compiled", "calls_and_returns"], timeout=300, env=env)
		check(result.code == 0, lambda: result.out + result.err)
		return " ".join(line[1:].strip() for line in result.out.splitlines() if line.startswith("#"))
	places.__name__ = "php_%s_places" % version.replace(".", "_")
	test(places)


for each in VERSIONS:
	register(*each)

if __name__ == "__main__":
	run_tests(seconds=1500) # its requirements are fetched
