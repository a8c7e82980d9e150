#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The kinds of waits that sonde offcpu names, in a program that waits in more than 60 ways at once and says what each is (tests/programs/wait_ways.c)."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import build, check, need_bpf, record, run_tests, test # noqa: E402

AT_LEAST = 40 # ways that every kernel has
OTHER_WAITS = {"preempted", "yield"} # that any thread may have besides


def tidy(text):
	for line in text.splitlines():
		word, _, what = line.partition(" ")
		if word == "folder":
			shutil.rmtree(what, ignore_errors=True)
		elif word in ("semaphore", "queue"):
			subprocess.run(["ipcrm", "-s" if word == "semaphore" else "-q", what], check=False)


def record_ways(*options):
	"""Returns the ways as name -> kind, and the blocked time as name -> kind -> nanoseconds."""
	need_bpf()
	report, result = record("offcpu", *options, "--", build("wait_ways"), "2")
	tidy(result.out)
	names = [report["functions"][frame["function"]]["name"] for frame in report["frames"]]
	times = {}
	for sample in report["samples"]:
		stack = sample["kernel_stack"] if sample["kernel_stack"] is not None else sample["user_stack"]
		kind = names[report["stacks"][stack][0]].strip("[]")
		of_way = times.setdefault(sample["comm"], {})
		of_way[kind] = of_way.get(kind, 0) + sample["values"][1]
	ways = dict(line.split(" ", 2)[1:] for line in result.out.splitlines() if line.startswith("way "))
	return ways, times, [line for line in result.out.splitlines() if line.startswith("without ")]


def wrong(ways, times):
	for name, kind in ways.items():
		seen = {other: ns for other, ns in times.get(name, {}).items() if other not in OTHER_WAITS or other == kind}
		if seen.get(kind, 0) < 0.8 * sum(seen.values()) or not seen:
			yield "%s: want %s, but: %s" % (name, kind, ", ".join("%s %.1f ms" % (other, ns / 1e6) for other, ns in times.get(name, {}).items()) or "nothing")


@test
def each_way_by_its_name():
	ways, times, without = record_ways()
	errors = list(wrong(ways, times))
	check(len(ways) >= AT_LEAST, lambda: "only %d ways; %s" % (len(ways), without))
	check(not errors, lambda: "\n".join(errors))
	total = sum(sum(kinds.values()) for name, kinds in times.items() if name in ways)
	other = sum(kinds.get("other", 0) for name, kinds in times.items() if name in ways)
	check(other <= total / 100, lambda: "%.1f of %.1f ms are called other" % (other / 1e6, total / 1e6))
	return "%d ways%s" % (len(ways), ", " + ", ".join(without) if without else "")


@test
def also_where_no_kernel_stacks_are_shown():
	ways, times, _ = record_ways("-U")
	errors = list(wrong(ways, times))
	check(not errors, lambda: "\n".join(errors))


if __name__ == "__main__":
	run_tests()
