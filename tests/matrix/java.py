#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HotSpot's frames in the versions of Debian's suites: tests/unit/test_java_walk.c and all of tests/system/java.py with the java of another Debian, and with all that this machine has.
Of 17, this Debian's, ./test runs a part."""
import glob
import os
import sys

from roots import root # sets the path to harness
from harness import ROOT, SCRATCH, check, need_bpf, run, run_tests, scratch, skip, test # noqa: E402

VERSIONS = [("sid", 8), ("bullseye", 11), ("trixie", 21), ("sid", 25)]
MODES = "default interpreted c1 c2 frame_pointers adapters one_heap reloaded reused vm_threads printed".split()
COLLECTORS = "serial parallel g1 z shenandoah epsilon".split()
VIRTUAL = "virtual virtual_interpreted virtual_compiled virtual_wide virtual_serial virtual_z virtual_z_generations".split()
# Java in that root, which sees /proc and this test's files; the mounts vanish with it.
INSIDE = """#!/bin/sh
exec unshare -m --propagation private -- sh -ec 'mount -t proc proc "$1/proc"; mount -t tmpfs tmp "$1/tmp"; mkdir -p "$1/$2"; mount --bind "$2" "$1/$2"; root=$1; shift 2; exec chroot "$root" "$@"' sh %s %s %s "$@"
"""


def folder_of(suite, major):
	return root(suite, ["openjdk-%d-jre-headless" % major])


def java_of(major):
	return "/usr/lib/jvm/java-%d-openjdk-amd64/bin/java" % major


def samples(java, modes):
	need_bpf()
	result = run([sys.executable, os.path.join(ROOT, "tests", "system", "java.py")], env={**os.environ, "SONDE_JAVAS": java, "SONDE_JAVA_MODES": " ".join(modes), "TMPDIR": SCRATCH}, timeout=400)
	check(result.code == 0, lambda: result.out + result.err)
	return " ".join(line for line in result.out.splitlines() if line[:1] != "1")


def register(suite, major):
	def walk():
		result = run([os.environ["JAVA_WALK"], "*others"], env={**os.environ, "SONDE_TEST_JAVAS": "%s:%s" % (folder_of(suite, major), java_of(major))}, timeout=400)
		check(result.code == 0, lambda: result.out + result.err)
		return " ".join(line for line in result.out.splitlines() if line.endswith("reads"))

	def sampled(modes):
		path = scratch("java%d" % major)
		with open(path, "w", encoding="ascii") as file:
			file.write(INSIDE % (folder_of(suite, major), SCRATCH, java_of(major)))
		os.chmod(path, 0o755)
		return samples(path, modes)
	for name, check_it in (("walk", walk), ("modes", lambda: sampled(MODES)), ("collectors", lambda: sampled(COLLECTORS)), ("virtual", lambda: sampled(VIRTUAL))):
		if name == "virtual" and major < 21:
			continue
		one = lambda check_it=check_it: check_it() # noqa: E731
		one.__name__ = "java_%d_%s" % (major, name)
		test(one)


for each in VERSIONS:
	register(*each)


@test
def java_of_this_machine():
	"""Other builds than Debian's."""
	found = sorted(set(map(os.path.realpath, ["/usr/bin/java", *glob.glob("/usr/lib/jvm/*/bin/java")])))
	return " ".join(samples(java, MODES + COLLECTORS + VIRTUAL) for java in found if os.access(java, os.X_OK)) or skip("no java")


if __name__ == "__main__":
	run_tests(seconds=1500) # its requirements are fetched
