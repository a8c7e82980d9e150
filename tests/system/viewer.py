# SPDX-License-Identifier: Apache-2.0
"""The HTML page in Debian's chromium: viewer_*.mjs use it as a person would and print one line per check."""
import os

from foreign import made, playwright_folder, run
from harness import ROOT, alone, check, find_tool, run_tests, skip, test


def drive(script, *profiles):
	if not os.path.exists("/usr/bin/chromium") or not find_tool("node"):
		skip("no chromium or no node")
	pages = [os.path.join(made(which), "profile.html") for which in profiles]
	status, out, err = run(["node", os.path.join(ROOT, "tests", "system", script)] + pages, env={**os.environ, "SONDE_NODE_PATH": playwright_folder()})
	check(status == 0, out + err)
	for line in out.splitlines():
		if line.startswith("#"):
			print(line)
	return "%d checks" % sum(line.startswith("ok") for line in out.splitlines())


@test
def what_it_shows():
	return drive("viewer_shows.mjs", "small", "empty", "diff", "waits", "wall")


@test
def what_it_does():
	return drive("viewer_does.mjs", "small", "timed", "diff", "waits", "wall")


@test
@alone
def how_smooth_it_is():
	return drive("viewer_smooth.mjs", "huge")


if __name__ == "__main__":
	run_tests(seconds=400) # playwright is fetched at the first run
