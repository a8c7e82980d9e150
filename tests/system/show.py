# SPDX-License-Identifier: Apache-2.0
"""sonde show: the tables match google/pprof's of the same file, the instructions match objdump's; missing data is reported.

Environment: SONDE, MAKE_PROFILE."""
import json
import os
import random
import re

from foreign import made, pprof_all
from harness import check, check_equal, find_tool, need_bpf, run, run_tests, scratch, skip, sonde, test

PROGRAM = r"""
#include <stdlib.h>
#include <time.h>
volatile unsigned sink;
__attribute__((noinline)) void inner(int n)
{
	for (int i = 0; i < n; i++)
		sink = sink * 3 + 1;
}
__attribute__((noinline)) void outer(int n)
{
	inner(n);
	sink++;
}
int main(int argc, char **argv)
{
	time_t end = time(NULL) + atoi(argv[1]);

	while (time(NULL) < end)
		outer(100000);
	return argc == 9;
}
"""


def rows_of(text):
	"""Returns {function: [self, total]} of a table of functions, and how many rows have the name."""
	sums, count = {}, {}
	for share, total, value, name in re.findall(r"^ *(-?[0-9.]+) % +(-?[0-9.]+) % +(-?\d+)  (.*?)(?:  \S+)?$", text, re.M):
		sums[name] = sums.get(name, 0) + int(value)
		count.setdefault(name, []).append((float(share), float(total)))
	return sums, count


@test
def top_is_what_pprof_says():
	for which in ("small", "big"):
		path = os.path.join(made(which), "profile.pprof")
		ours, shares = rows_of(sonde("show", "--top", "-n", "100000", "--value", "samples", path, want=0).out)
		text = pprof_all(path, "-sample_index=samples", "-top")
		theirs = re.findall(r"^ *(-?\d+) +([0-9.]+%|0) +\S+ +(-?\d+) +([0-9.]+%|0) +(.*?)(?: \(inline\))?$", text, re.M)
		nr = 0
		for flat, _, _, cum_share, name in theirs:
			if name not in ours: # hostile names: pprof prints them differently
				continue
			check_equal(ours[name], int(flat), "self of %s in %s" % (name, which))
			if len(shares[name]) == 1:
				check(abs(shares[name][0][1] - float(cum_share.rstrip("%"))) < 0.02, "total of %s: %r, %s" % (name, shares[name], cum_share))
			nr += 1
		check(nr > (10 if which == "small" else 100), "only %d functions compared in %s\n%s" % (nr, which, text[:2000]))


def layered():
	"""Makes stacks in which a function of each layer calls one of the next. There is no recursion, so pprof counts edges in the same way."""
	path, chance = scratch("layered.folded"), random.Random(7)
	with open(path, "w", encoding="utf-8") as file:
		for _ in range(300):
			file.write("app;main;" + ";".join("f%d_%d" % (layer, chance.randrange(6)) for layer in range(chance.randrange(2, 6))) + " %d\n" % chance.randrange(1, 9))
	sonde("convert", path, scratch("layered.pb.gz"), want=0)
	return scratch("layered.pb.gz")


@test
def callers_are_what_pprof_says():
	"""The first level of --callers and --callees matches the edges of pprof's -tree."""
	path, compared = layered(), 0
	for section in re.split(r"^-+\+-+$", pprof_all(path, "-sample_index=samples", "-tree"), flags=re.M):
		middle = re.search(r"^ +\d+ +\S+ +\S+ +\d+ +\S+ +\| (f\d_\d)$", section, re.M)
		if not middle:
			continue
		for option, part in (("--callers", section[:middle.start()]), ("--callees", section[middle.end():])):
			theirs = {name: int(value) for value, name in re.findall(r"^ +(\d+) +\S+ \|   (\S+)$", part, re.M)}
			out = sonde("show", option, middle.group(1), "--min", "0", "-n", "100000", path, want=0).out
			whole = int(re.search(r"samples: (\d+) in all", out).group(1))
			lines = re.findall(r"^ *([0-9.]+) % +[0-9.]+ %  (- )?(\S+)$", out, re.M)
			forks = [line for line in lines if line[1]]
			ours = {name: float(share) for share, _, name in (forks or lines[1:2])}
			for name, value in theirs.items():
				check(abs(ours.get(name, 0) - 100 * value / whole) < 0.02, "%s %s: %s is %r, pprof %d of %d" % (option, middle.group(1), name, ours.get(name), value, whole))
				compared += 1
	check(compared > 100, "only %d edges compared" % compared)


@test
def sums_are_whole():
	"""Each table by a field sums up to the total."""
	path = os.path.join(made("small"), "profile.json")
	whole = sum(s["values"][0] for s in json.load(open(path, encoding="utf-8"))["samples"])
	for by in ("process", "thread", "cpu", "file", "language"):
		out = sonde("show", "--by", by, "-n", "1000", path, want=0).out
		shares = [int(x) for x in re.findall(r"^ *[0-9.]+ %(?: +[0-9.]+ %)? +(\d+)  ", out, re.M)]
		check_equal(sum(shares), whole, "sum by " + by)


@test
def sums_stay_at_the_limit():
	"""A value in an untrusted file may be as large as it likes: sums saturate."""
	path = scratch("greatest.folded")
	with open(path, "w", encoding="ascii") as file:
		file.write("a;b 9223372036854775807\na;c 9223372036854775807\n")
	for view in (["--top"], ["--tree"], ["--callers", "b"], ["--by", "process"], ["--by", "file"], []):
		out = sonde("show", *view, path, want=0).out
		check("samples: 9223372036854775807 in all" in out and "100.00 %" in out and "-" not in out.replace("- ", ""), lambda: "%s: %s" % (view, out))


@test
def names_cannot_drive_the_terminal():
	for view in ([], ["--top", "-n", "1000"], ["--tree", "--min", "0"], ["--by", "process"], ["--callers", "vfs_read"], ["--annotate", "a"]):
		out = sonde("show", *view, os.path.join(made("small"), "profile.json"), want=0).out
		check(not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]", out), "%s: %r" % (view, out))


@test
def what_is_wrong_is_said():
	path = os.path.join(made("small"), "profile.json")
	for arguments, code, text in ((["--by", "moon", path], 2, "process"), (["--top", "--tree", path], 2, "at a time"), ([], 2, "name the profile"),
		(["--min", "much", path], 2, "percentage"), (["--value", "weight", path], 2, "weight"), (["--callers", "nobody", path], 1, "nobody"),
		(["--annotate", "nobody", path], 1, "nobody"), (["/nothing/here"], 1, "/nothing/here")):
		result = sonde("show", *arguments, want=code)
		check(text in result.err, str(result))


def recorded():
	"""Returns a program of two functions, and its profile."""
	need_bpf()
	folder = scratch("program")
	if not os.path.isdir(folder):
		os.mkdir(folder)
		with open(os.path.join(folder, "t.c"), "w", encoding="utf-8") as file:
			file.write(PROGRAM)
		check_equal(run(["gcc", "-g", "-O1", "-fno-optimize-sibling-calls", "t.c", "-o", "t"], cwd=folder).code, 0, "gcc")
		sonde("profile", "-F", "199", "-o", "t.json", "-o", "t.pb.gz", "--lines", "--", "./t", "3", want=0, cwd=folder)
	return folder


def instructions_of(out):
	"""Returns [(self, total, address, text)] of what --annotate shows."""
	return [(float(m.group(1) or 0), float(m.group(2) or 0), int(m.group(3), 16), m.group(4)) for m in
		re.finditer(r"^(?= {10}| +[0-9.]+ %)(?: {10}| *([0-9.]+) %)(?: {10}| *([0-9.]+) %) +([0-9a-f]+)  (\S.*)$", out.split("INSTRUCTION")[-1], re.M)]


@test
def code_is_what_objdump_says():
	if not find_tool("objdump"):
		skip("no objdump")
	folder = recorded()
	dump = run(["objdump", "-d", "--no-show-raw-insn", os.path.join(folder, "t")]).out
	theirs = {int(address, 16): text for address, text in re.findall(r"^ +([0-9a-f]+):\t(\S+)", dump, re.M)}
	for name, function in (("t.json", "inner"), ("t.pb.gz", "inner"), ("t.json", "outer")):
		out = sonde("show", "--annotate", function, os.path.join(folder, name), want=0).out
		ours = instructions_of(out)
		check(len(ours) >= 4, out)
		for _, _, address, text in ours:
			check(address in theirs, "0x%x is no instruction for objdump\n%s" % (address, out))
			# capstone 4 prints the operand size where objdump may omit it.
			check(text.split()[0].rstrip("lqwb") == theirs[address].rstrip("lqwb"), "0x%x: %s, objdump %s" % (address, text, theirs[address]))
		shares = [line[0] for line in ours] if function == "inner" else [line[1] for line in ours]
		check(95 < sum(shares) < 101, "%s: %.2f of 100 %%\n%s" % (function, sum(shares), out))
		if function == "outer": # the call, not the instruction behind it
			hottest = max(ours, key=lambda line: line[1])
			check(hottest[3].startswith("call") and "<inner>" in hottest[3], "the hottest is %r" % (hottest,))
		check("sink = sink * 3 + 1" in out if function == "inner" else "inner(n);" in out, out)


@test
def another_file_is_told():
	folder = recorded()
	program, keep = os.path.join(folder, "t"), os.path.join(folder, "kept")
	os.rename(program, keep)
	try:
		out = sonde("show", "--annotate", "inner", os.path.join(folder, "t.json"), want=0).out
		check("code: not shown: " in out and "No such file" in out, out)
		check_equal(run(["gcc", "-g", "-O2", "-DOTHER", "t.c", "-o", "t"], cwd=folder).code, 0, "gcc")
		out = sonde("show", "--annotate", "inner", os.path.join(folder, "t.json"), want=0).out
		check("the file here is another one" in out, out)
		os.unlink(program)
		os.mkfifo(program) # opening one blocks forever
		out = sonde("show", "--annotate", "inner", os.path.join(folder, "t.json"), want=0, timeout=20).out
		check("no regular file" in out, out)
	finally:
		if os.path.exists(program):
			os.unlink(program)
		os.rename(keep, program)


if __name__ == "__main__":
	run_tests()
