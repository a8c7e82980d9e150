#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""summary.py BUILD:SUITE...: adds up what `meson test` wrote down. A program that speaks TAP counts by its parts, another as one test;
a suite of which nothing ran counts as failed. The last line is for machines."""
import json
import os
import re
import sys

WORD = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}


def read_log(build):
	path = os.path.join(build, "meson-logs", "testlog.json")
	if not os.path.exists(path):
		return []
	with open(path, encoding="utf-8", errors="backslashreplace") as file:
		return [json.loads(line) for line in file if line.strip()]


def parts_of(entry):
	"""(name, passed|failed|skipped, reason or what it said) of each part."""
	parts = []
	for line in (entry.get("stdout") or "").splitlines():
		match = re.match(r"(not )?ok\b\s*\d*\s*(?:-\s*)?(.*)", line)
		if match:
			skipped = re.search(r"# skip\s*(.*)", match.group(2), re.IGNORECASE)
			name = match.group(2).split(" # ")[0]
			parts.append([name, "failed" if match.group(1) else "skipped" if skipped else "passed", skipped.group(1) if skipped else ""])
		elif parts and line.startswith("#") and parts[-1][1] == "failed":
			parts[-1][2] += "\n    " + line.lstrip("# ")
	return parts


def count(entry):
	name, whole = entry["name"].split(":", 1)[-1], WORD.get(entry["result"], "failed")
	parts = [("%s: %s" % (name, part), word, said) for part, word, said in parts_of(entry)]
	if not parts or (whole == "failed" and all(word != "failed" for _, word, _ in parts)):
		parts.append((name, whole, "" if whole == "passed" else "%s, status %s" % (entry["result"], entry.get("returncode"))))
	return parts


def main():
	total = []
	for argument in sys.argv[1:]:
		build, suite = argument.split(":")
		mine = [part for entry in read_log(build) if re.match(r"(.*:)?(.*\+)?%s(\+.*)? / " % suite, entry["name"]) for part in count(entry)]
		total += mine or [(suite, "failed", "no test of this suite ran")]
	for word in ("skipped", "failed"):
		for name, _, said in (part for part in total if part[1] == word):
			print("%s: %s%s" % (word.upper(), name, ": " + said if said else ""))
	numbers = [sum(part[1] == word for part in total) for word in ("passed", "failed", "skipped")]
	print("%d passed, %d failed, %d skipped" % tuple(numbers))
	return 1 if numbers[1] else 0


if __name__ == "__main__":
	sys.exit(main())
