# SPDX-License-Identifier: Apache-2.0
"""The JSON lines of sonde files and sonde io."""
import json

from harness import check_equal


def rows(text, name):
	"""The objects of JSON lines, without the first, which is checked."""
	lines = [json.loads(line) for line in text.splitlines()]
	check_equal((lines[0]["format"], lines[0]["version"]), (name, 1), "first line")
	return lines[1:]


def split(out):
	"""Standard output of sonde and of its command, which have no line in common."""
	lines = out.splitlines()
	return "\n".join(line for line in lines if line.startswith("{")), "\n".join(line for line in lines if not line.startswith("{"))
