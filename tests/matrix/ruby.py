#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ruby's stacks in the versions that Debian has: tests/system/ruby.py with the ruby of another Debian."""
import os
import shutil


from roots import Inside, root # sets the path to harness
from harness import fresh_folder, run_tests, test # noqa: E402
import ruby # noqa: E402

VERSIONS = [("trixie", "3_3"), ("sid", "3_3_sid")] # 3.1, this Debian's, is in ./test


def register(suite, version):
	def spinning():
		folder = fresh_folder("ruby_spin")
		shutil.copy(ruby.SPIN, folder)
		return ruby.on_the_cpu(Inside(root(suite, ["ruby"]), ["/usr/bin/ruby", "/mnt/spin.rb"], share=folder).argv)
	spinning.__name__ = "ruby_%s_spinning" % version
	test(spinning)


for each in VERSIONS:
	register(*each)

if __name__ == "__main__":
	run_tests(seconds=600) # its requirements are fetched
