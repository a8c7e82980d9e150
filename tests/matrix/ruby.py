#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ruby's stacks in the versions that Debian has: tests/system/ruby.py with the ruby of another Debian."""
import os
import shutil


from roots import Inside, root # sets the path to harness
from harness import fresh_folder, run_tests, test # noqa: E402
import ruby # noqa: E402

# 3.1, this Debian's, is in ./test
VERSIONS = [("bullseye", "ruby2.7", "2_7"), ("trixie", "ruby", "3_3"), ("sid", "ruby", "3_3_sid"), ("experimental", "ruby3.4", "3_4")]
WITHOUT_RACTORS = ["2_7"]


def register(what, judge, script, suite, package, version):
	def judged():
		folder = fresh_folder("ruby_spin")
		shutil.copy(script, folder)
		return judge(Inside(root(suite, [package]), ["/usr/bin/" + package, "/mnt/" + os.path.basename(script)], share=folder).argv)
	judged.__name__ = "ruby_%s_%s" % (version, what)
	test(judged)


for each in VERSIONS:
	register("spinning", ruby.on_the_cpu, ruby.SPIN, *each)
	if each[-1] not in WITHOUT_RACTORS:
		register("ractors", ruby.in_ractors, ruby.RACTORS, *each)

if __name__ == "__main__":
	run_tests(seconds=600) # its requirements are fetched
