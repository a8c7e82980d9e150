#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""targets.py BUILD WHAT...: lists for ninja what to build. WHAT: a suite, for what its tests need; or `product`, for everything that is not part of the tests."""
import json
import os
import sys


def read(build, name):
	with open(os.path.join(build, "meson-info", name), encoding="utf-8") as file:
		return json.load(file)


def main(build, *wanted):
	targets = read(build, "intro-targets.json")
	needed = {identity for entry in read(build, "intro-tests.json") if set(wanted) & {name.rpartition(":")[2] for name in entry["suite"]} for identity in entry["depends"]}
	if "product" in wanted:
		needed |= {target["id"] for target in targets if target["build_by_default"] and "/tests/" not in target["defined_in"]}
	print(*sorted(os.path.relpath(file, build) for target in targets if target["id"] in needed for file in target["filename"]))


if __name__ == "__main__":
	main(*sys.argv[1:])
