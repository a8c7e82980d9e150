#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Erlang's stacks in the releases that Debian has: tests/system/beam.py with the erl of another Debian."""
import os
import shutil

from roots import Inside, root # sets the path to harness
from harness import SOURCES, check, fresh_folder, run, run_tests # noqa: E402
import beam # noqa: E402

RELEASES = [("trixie", "27")] # 25, this Debian's, is in ./test


def inside(suite):
	folder, place = fresh_folder("beam_matrix"), root(suite, ["erlang-base"])
	shutil.copy(os.path.join(SOURCES, "beam_spin.erl"), folder)
	done = run(Inside(place, ["/usr/bin/erlc", "-o", "/mnt", "/mnt/beam_spin.erl"], share=folder).argv)
	check(done.code == 0, lambda: done.err + done.out)
	return (lambda *options: Inside(place, ["/usr/bin/erl", "-noshell", "-noinput", "+S", "2", "-pa", "/mnt", *options], share=folder).argv), "none"


def register(suite, release):
	for mode in ("default", "frames", "reload"):
		beam.register("otp_%s" % release, lambda: inside(suite), mode)


for each in RELEASES:
	register(*each)

if __name__ == "__main__":
	run_tests(seconds=600) # its requirements are fetched
