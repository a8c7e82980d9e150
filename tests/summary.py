#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""summary.py BUILD:SUITE...: adds up the results that `meson test` wrote. A program that speaks TAP counts by its parts, another as one test;
a test that did not run counts as failed, and so does a suite without tests. The last line is for machines."""
import glob
import json
import os
import re
import sys

AGAIN = "#   once more"
WORD = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}


def read_log(build):
	entries = []
	for path in sorted(glob.glob(os.path.join(build, "meson-logs", "testlog*.json"))):
		with open(path, encoding="utf-8", errors="backslashreplace") as file:
			entries += [json.loads(line) for line in file if line.endswith("\n") and line.strip()] # a killed meson may leave half a line
	return entries


def tests_of(build, suite):
	"""The names of the suite's tests, as they were set up."""
	path = os.path.join(build, "meson-info", "intro-tests.json")
	if not os.path.exists(path):
		return []
	with open(path, encoding="utf-8") as file:
		return [entry["name"] for entry in json.load(file) if suite in (name.rpartition(":")[2] for name in entry["suite"])]


def parts_of(entry):
	"""(name, passed|failed|skipped, reason or output) of each part."""
	parts, said_of_it = [], False
	for line in (entry.get("stdout") or "").splitlines():
		match = re.match(r"(not )?ok\b\s*\d*\s*(?:-\s*)?(.*)", line)
		if match:
			skipped = re.search(r"# skip\s*(.*)", match.group(2), re.IGNORECASE)
			name = match.group(2).split(" # ")[0]
			said_of_it = bool(match.group(1)) and not skipped # cmocka's skips are "not ok"
			parts.append([name, "failed" if said_of_it else "skipped" if skipped else "passed", skipped.group(1) if skipped else ""])
		elif line.startswith(AGAIN):
			said_of_it = False # comments from here on are the next part's
		elif said_of_it and line.startswith("#"):
			parts[-1][2] += "\n    " + line.lstrip("# ")
	return parts


def name_of(entry):
	"""The name in `project:suite / name`."""
	return entry["name"].rpartition(" / ")[2]


def count(entry):
	name, whole = entry["name"].split(":", 1)[-1], WORD.get(entry["result"], "failed")
	parts = [("%s: %s" % (name, part), word, said) for part, word, said in parts_of(entry)]
	if not parts or entry["result"] in ("TIMEOUT", "INTERRUPT") or (whole == "failed" and all(word != "failed" for _, word, _ in parts)):
		parts.append((name, whole, "" if whole == "passed" else "%s, status %s" % (entry["result"], entry.get("returncode"))))
	return parts


def repeated(entry):
	"""What was run again, and why."""
	return [line.lstrip("# ") for line in (entry.get("stdout") or "").splitlines() if line.startswith(AGAIN)]


def entries_of(build, suite):
	return [entry for entry in read_log(build) if re.match(r"(.*:)?(.*\+)?%s(\+.*)? / " % suite, entry["name"])]


def count_suite(build, suite):
	entries = entries_of(build, suite)
	ran = {name_of(entry) for entry in entries}
	missing = [("%s / %s" % (suite, name), "failed", "did not run") for name in tests_of(build, suite) if name not in ran]
	return [part for entry in entries for part in count(entry)] + missing or [(suite, "failed", "this suite has no tests")]


def main():
	total = []
	for argument in sys.argv[1:]:
		build, suite = argument.split(":")
		total += count_suite(build, suite)
		for entry in entries_of(build, suite):
			for line in repeated(entry):
				print("REPEATED: %s: %s" % (entry["name"].split(":", 1)[-1], line))
	for word in ("skipped", "failed"):
		for name, _, said in (part for part in total if part[1] == word):
			print("%s: %s%s" % (word.upper(), name, ": " + said if said else ""))
	numbers = [sum(part[1] == word for part in total) for word in ("passed", "failed", "skipped")]
	print("%d passed, %d failed, %d skipped" % tuple(numbers))
	return 1 if numbers[1] else 0


if __name__ == "__main__":
	sys.exit(main())
