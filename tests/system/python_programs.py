# SPDX-License-Identifier: Apache-2.0
"""Which Pythons the tests run, and what a profile says of their stacks. SONDE_PYTHONS=path:path... selects the interpreters; the default is the
machine's own and, where pyenv has them, one of each kind of frames."""
import glob
import os
import sys

from harness import run

LOOP = "_PyEval_EvalFrameDefault"


def version_of(python):
	return tuple(map(int, run([python, "-c", "import sys; print('%d %d' % sys.version_info[:2])"]).out.split()))


def pythons():
	if os.environ.get("SONDE_PYTHONS"):
		return os.environ["SONDE_PYTHONS"].split(":")
	found = ["/usr/bin/python3"] if os.path.exists("/usr/bin/python3") else [sys.executable]
	for minor in (9, 13):
		found += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.%d.*/bin/python3.%d" % (minor, minor))))[:1]
	return found


def stack_of(report, sample):
	"""Returns [(kind, name, file, first line, line)], root to leaf."""
	frames = []
	for number in report["stacks"][sample["user_stack"]][::-1]:
		frame = report["frames"][number]
		function = report["functions"][frame["function"]]
		frames.append((frame["kind"], function["name"], os.path.basename(function["file"]), function["line"], frame["line"]))
	return frames
