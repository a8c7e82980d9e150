#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HotSpot's frames in the versions of Debian's suites: tests/unit/test_java_walk.c with the java of another Debian. 17, this Debian's, is in ./test."""
import os

from roots import root # sets the path to harness
from harness import check, run, run_tests, test # noqa: E402

VERSIONS = [("sid", 8), ("bullseye", 11), ("trixie", 21), ("sid", 25)]


def register(suite, major):
	def walk():
		folder = root(suite, ["openjdk-%d-jre-headless" % major])
		result = run([os.environ["JAVA_WALK"]], env={**os.environ, "SONDE_TEST_JAVAS": "%s:/usr/lib/jvm/java-%d-openjdk-amd64/bin/java" % (folder, major)}, timeout=400)
		check(result.code == 0, lambda: result.out + result.err)
	walk.__name__ = "java_%d" % major
	test(walk)


for each in VERSIONS:
	register(*each)

if __name__ == "__main__":
	run_tests(seconds=1500) # its requirements are fetched
