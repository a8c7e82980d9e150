#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Perl's stacks in all versions that Debian has: tests/unit/test_perl_walk.c with the perl of another Debian."""
import os

from roots import root # sets the path to harness
from harness import ROOT, check, run, run_tests, test # noqa: E402

VERSIONS = [("bullseye", "5_32"), ("trixie", "5_40"), ("sid", "5_42")] # 5.36, this Debian's, is in ./test


def register(suite, version):
	def walk():
		folder = root(suite, ["perl"])
		result = run([os.environ["PERL_WALK"], os.path.join(ROOT, "tests", "programs", "perl_stacks.pl"), "chroot", folder, "/usr/bin/perl"], timeout=300)
		check(result.code == 0, lambda: result.out + result.err)
	walk.__name__ = "perl_%s_stacks" % version
	test(walk)


for each in VERSIONS:
	register(*each)

if __name__ == "__main__":
	run_tests(seconds=1500) # its requirements are fetched
