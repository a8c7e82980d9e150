# SPDX-License-Identifier: Apache-2.0
"""sonde diff: compared with google/pprof's -diff_base on the same files, and in the formats that hold both values.

Environment: SONDE, MAKE_PROFILE."""
import json
import os
import re

from foreign import made, pprof_all
from harness import check, check_equal, run_tests, scratch, sonde, test


def both():
	return os.path.join(made("big"), "profile.pprof"), os.path.join(made("small"), "profile.pprof")


def changes(out):
	"""Returns {name: [change of self, of total in points]}; names with several rows are left out."""
	rows, twice = {}, set()
	for own, total, name in re.findall(r"^ *[0-9.]+ % +[0-9.]+ % +([-+][0-9.]+)[~ ] +[0-9.]+ % +[0-9.]+ % +([-+][0-9.]+)[~ ]  (.*?)(?:  \S+)?$", out, re.M):
		twice |= {name} & set(rows)
		rows[name] = [float(own), float(total)]
	return {name: row for name, row in rows.items() if name not in twice}


@test
def changes_are_what_pprof_says():
	before, after = both()
	ours = changes(sonde("diff", before, after, "--value", "samples", "-n", "100000", want=0).out)
	text = pprof_all(after, "-sample_index=samples", "-top", "-normalize", "-diff_base=" + before)
	all_of = int(re.search(r" of (\d+) total", text).group(1))
	theirs = {name: (int(flat), int(cum)) for flat, cum, name in
		re.findall(r"^ *(-?\d+) +\S+ +\S+ +(-?\d+) +\S+ +(.*?)(?: \(inline\))?$", text, re.M)}
	compared = 0
	for name, (flat, cum) in theirs.items():
		if name not in ours or name == "[unknown]":
			continue
		# pprof rounds each sample of the stretched profile to a whole number.
		check(abs(ours[name][0] - 100 * flat / all_of) < 1, "self of %s: %.2f points, pprof %d of %d" % (name, ours[name][0], flat, all_of))
		check(abs(ours[name][1] - 100 * cum / all_of) < 1, "total of %s: %.2f points, pprof %d of %d" % (name, ours[name][1], cum, all_of))
		compared += 1
	check(compared > 100, "only %d functions compared" % compared)
	greatest = max(theirs, key=lambda name: abs(theirs[name][0]) if name in ours else 0)
	check(abs(theirs[greatest][0]) > all_of / 20, "nothing changed much: %s" % greatest)


@test
def formats_hold_both():
	before, after = both()
	names = [scratch("d." + suffix) for suffix in ("json", "pb.gz", "folded", "html", "jsonl")]
	sonde("diff", before, after, "--value", "samples", *[word for name in names for word in ("-o", name)], want=0)
	with open(names[0], encoding="utf-8") as file:
		profile = json.load(file)
	check_equal([t["type"] for t in profile["value_types"]], ["before", "after"], "values")
	sums = [sum(int(s["values"][i]) for s in profile["samples"]) for i in range(2)]
	check_equal(sums[0], sums[1], "the same total")
	with open(names[2], encoding="utf-8") as file:
		columns = [re.search(r" (\d+) (\d+)$", line).groups() for line in file]
	check_equal([sum(int(c[i]) for c in columns) for i in range(2)], sums, "folded")
	for index in range(2):
		text = pprof_all(names[1], "-top", "-sample_index=%d" % index)
		check_equal(int(re.search(r" of (\d+) total", text).group(1)), sums[index], "pprof")


@test
def a_profile_is_like_itself():
	path = both()[0]
	out = sonde("diff", path, path, want=0).out
	check(all(row == [0, 0] for row in changes(out).values()) and changes(out), out)
	check("~" not in out.split("shares of each")[0], out)
	check("\n0 functions changed" in out, out)


def latencies(name, *slots):
	"""Writes a file with only a histogram: (low, count) of each slot."""
	profile = {"format": "sonde-profile", "version": 2, "histograms": [{"name": "run queue latency", "unit": "us", "scale": "log2",
		"sum": sum(low * count for low, count in slots), "slots": [{"low": low, "high": 2 * low, "count": count} for low, count in slots]}]}
	with open(scratch(name), "w", encoding="utf-8") as file:
		json.dump(profile, file)
	return scratch(name)


@test
def histograms_alone():
	before, after = latencies("before.json", (16, 970), (8192, 30)), latencies("after.json", (16, 900), (32, 100))
	out = sonde("diff", before, after, want=0).out
	check("the tail is gone: 30 of 1000 (3.00 %) were not below 64 us before, none is after" in out, out)
	check(re.search(r"^\[8K, 16K\) +30 \|.*\| +0 \|", out, re.M), out)
	check("the tail is longer" in sonde("diff", after, before, want=0).out, "the other way round")
	sonde("diff", before, after, "-o", scratch("h.json"), "-o", scratch("h.txt"), want=0)
	with open(scratch("h.json"), encoding="utf-8") as file:
		kept = json.load(file)["histograms"]
	check_equal([(one["key"], [(slot["low"], slot["count"]) for slot in one["slots"]]) for one in kept],
		[("before", [(16, 970), (8192, 30)]), ("after", [(16, 900), (32, 100)])], "both in a file")
	with open(scratch("h.txt"), encoding="utf-8") as file:
		check("run queue latency, before (us): 1000 in all" in file.read(), "as text")
	for refused in (["diff", before, after, "-o", scratch("h.svg")], ["convert", before, "-o", scratch("h.folded")]):
		check("histograms alone" in sonde(*refused, want=2).err and not os.path.exists(refused[-1]), "a file without them: %s" % refused)
	for verb in ("show", "convert"):
		out = sonde(verb, before, want=0).out
		check(re.search(r"^run queue latency \(us\): 1000 in all, average 261\.3\n\[16, 32\) +970 \|@{52}\|\n", out, re.M), out)


@test
def what_is_wrong_is_said():
	before, after = both()
	empty = os.path.join(made("empty"), "profile.json")
	for arguments, code, text in (([before], 2, "two profiles"), (["-", "-"], 2, "standard input"), ([before, after, "--format", "json"], 2, "-o"),
		([before, after, "-o", scratch("d.txt")], 2, "one value"), ([before, after, "-o", scratch("d.json"), "-o", scratch("d.json")], 2, "twice"), ([before, after, "--value", "weight"], 1, "weight"), ([empty, after], 5, "no samples"),
		([before, "/nothing/here"], 1, "/nothing/here")):
		result = sonde("diff", *arguments, want=code)
		check(text in result.err, str(result))
	check(not os.path.exists(scratch("d.txt")), "a file was left")


if __name__ == "__main__":
	run_tests()
