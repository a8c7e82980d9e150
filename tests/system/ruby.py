#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frames of Ruby among the native ones: the threads of tests/programs/spin.rb report their own stacks."""
import json
import os
import re
import subprocess

from harness import SOURCES, check, find_tool, need_bpf, run, run_tests, scratch, skip, sonde, test
from spins import Spin, stack_of, told_by

SPIN = os.path.join(SOURCES, "spin.rb")
RACTORS, NR_RACTORS = os.path.join(SOURCES, "ractors.rb"), 6
NR_SCENARIOS, WAITING = 28, {"sleeping", "locking"}
FEW = 4 # the threads take turns of a tenth of a second
LEAF_LINES = {11, 12} # of spin(), which is interrupted anywhere
MOST_MARKED = 0.1 # of the samples: stacks that change
MOST_COMPILED_MARKED = 0.25 # its compiler is called by code that is being changed
MOST_WAITING_MARKED = 0.7 # of a thread that waits since before the start, the frames of Ruby are not known


def as_before_3_4(chain, told):
	"""From 3.4 on Ruby says Owner#name, and shows one frame for a method and its `rescue`. Frames here are as those of the versions before. Returns both."""
	if not any("#" in name for name, _, _ in told):
		return chain, told
	merged = []
	for name, file, line in chain:
		part = re.fullmatch("(?:rescue|ensure)_in_(.*)", name)
		merged[len(merged) - bool(part):] = [(part[1] if part else name, file, line)]
	return merged, [(re.sub(r"(?:[A-Z][A-Za-z0-9]*(?:::)?)+#", "", name), file, line) for name, file, line in told]


def error_of(frames, told, is_compiled=False):
	"""None: the frames are the reported ones, in runs that rb_vm_exec starts. Methods written in C have a name alone, and may be the leaf where the report has none: a check for
	interrupts, an operator. Of compiled code the leaf's line is not known, and any code may call it."""
	chain = [(name.replace(" ", "_"), file.replace(" ", "_"), line) for kind, name, file, line in frames if kind == "ruby"]
	chain, told = as_before_3_4(chain, told)
	if len(chain) == len(told) + 1 and not chain[-1][1]:
		chain = chain[:-1]
	if [name for name, _, _ in chain] != [name for name, _, _ in told]:
		return "names: %r" % [name for name, _, _ in chain]
	for i, ((name, file, line), (_, told_file, told_line)) in enumerate(zip(chain, told)):
		is_leaf = name == "spin" and i == len(told) - 1
		if is_compiled and file.startswith("<internal:"): # its own reports have the position of the caller
			continue
		if file and (file != told_file or line != told_line and not (is_leaf and (line in LEAF_LINES or is_compiled and not line))):
			return "%s at %s:%d, not %s:%d" % (name, file, line, told_file, told_line)
		if not file and i + 1 < len(told) and name in ("spin", "nested", "plain"):
			return "%s has no file" % name
	for (before, name, _, _), (kind, shown, _, _) in zip(frames, frames[1:]):
		if kind == "ruby" and before == "native" and name != "rb_vm_exec" and not name.startswith("[libruby") and not is_compiled: # where it is hidden
			return "%s stands behind %s" % (shown, name)
	return None


def judge(told, report, wanted, most_marked, few=FEW, is_compiled=False):
	"""Compares the samples of threads with what they reported. All but a few of the wanted scenarios must be there. Returns a note."""
	right, marked, wrong, seen = 0, 0, {}, set()
	for sample in report["samples"]:
		if sample["tid"] not in told or sample["user_stack"] is None:
			continue
		scenario, expected = told[sample["tid"]]
		frames, nr = stack_of(report, sample), int(sample["values"][0])
		if frames[0][0] == "mark" and frames[0][1].startswith(("[on-cpu", "[runnable", "[blocked")):
			frames = frames[1:]
		if any(kind in ("mark", "missed") for kind, *_ in frames):
			marked += nr
			continue
		error = error_of(frames, expected, is_compiled)
		if error:
			wrong.setdefault((scenario, error), [0, expected, frames])[0] += nr
		else:
			right += nr
			seen.add(scenario)
	check(not wrong, lambda: "\n".join("%s, %d: %s\n   told %r\n   shown %r" % (scenario, nr, error, expected, frames) for (scenario, error), (nr, expected, frames) in list(wrong.items())[:6]))
	check(len(wanted - seen) <= few, lambda: "only %d of %d scenarios: not %r" % (len(seen), len(told), sorted(wanted - seen)))
	check(marked <= most_marked * (right + marked), lambda: "%d right, %d marked" % (right, marked))
	return "%d right, %d marked, of %d scenarios" % (right, marked, len(seen))


def ruby_of():
	return find_tool("ruby") or skip("no ruby")


def on_the_cpu(command, is_compiled=False):
	need_bpf()
	with Spin(command) as spin:
		told = told_by(spin.process, NR_SCENARIOS)
		report = json.loads(sonde("profile", "--format", "json", "--threads", "-U", "-F", 997, "-L", ",".join(map(str, told)), 8, want=0).out)
	told = {tid: each for tid, each in told.items() if each[0] not in WAITING} # those report what they are in while they wait
	return judge(told, report, {name for name, _ in told.values()}, MOST_COMPILED_MARKED if is_compiled else MOST_MARKED, is_compiled=is_compiled)


def in_ractors(command):
	"""They run at the same time, each with a lock of its own."""
	need_bpf()
	with Spin(command) as spin:
		told = told_by(spin.process, NR_RACTORS)
		report = json.loads(sonde("profile", "--format", "json", "--threads", "-U", "-F", 997, "-L", ",".join(map(str, told)), 5, want=0).out)
	return judge(told, report, {name for name, _ in told.values()}, MOST_MARKED, few=0)


def waiting(command):
	"""All threads wait: for the global lock, or in sleep."""
	need_bpf()
	with Spin(command) as spin:
		told = told_by(spin.process, NR_SCENARIOS)
		report = json.loads(sonde("wall", "--format", "json", "--threads", "-U", "-p", spin.process.pid, 8, want=0).out)
	return judge(told, report, {name for name, _ in told.values()}, MOST_WAITING_MARKED)


@test
def spinning_threads():
	return on_the_cpu([ruby_of(), SPIN])


def compiling():
	"""The command of a Ruby with YJIT (of Debian's, 3.1): all code is compiled at its first call."""
	command = [ruby_of(), "--disable=gems", "--yjit", "--yjit-call-threshold=1"]
	return command if run([*command, "-e", "print RubyVM::YJIT.enabled?"]).out == "true" else skip("this Ruby has no YJIT")


@test
def compiled():
	return on_the_cpu([*compiling(), SPIN], is_compiled=True)


CALLS = """def leaf(n) = n > 0 ? leaf(n - 1) : n
def mid; [3, 1, 2].sort { |a, b| leaf(20); a <=> b }; end
def outer; 3.times { mid }; end
t = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 10
outer while Process.clock_gettime(Process::CLOCK_MONOTONIC) < t
"""
CHAIN = ["<main>", "outer", "times", "block in outer", "mid", "sort", "block in mid"] + 21 * ["leaf"]


@test
def compiled_calls():
	"""Code that stays compiled: its stacks are a part of the only one that there is, and C's qsort is where it was called. The code itself has no name."""
	need_bpf()
	report = json.loads(sonde("profile", "--format", "json", "-U", "-F", 997, 8, "--", *compiling(), "-e", CALLS, want=0, timeout=100).out)
	right, marked, compiled_ones = 0, 0, 0
	for sample in report["samples"]:
		frames, nr = stack_of(report, sample), int(sample["values"][0])
		names = [name for kind, name, *_ in frames if kind == "ruby"]
		names = names[:-1] if names[-1:] in (["<=>"], ["clock_gettime"]) else names
		if any(kind in ("mark", "missed") for kind, *_ in frames):
			marked += nr
		elif len(names) > 2:
			all_names = [name for _, name, *_ in frames]
			check(names == CHAIN[:len(names)], lambda: "shown %r" % names) # pylint: disable=cell-var-from-loop
			check("block in mid" not in names or all_names.index("sort") < all_names.index("rb_ary_sort") < all_names.index("block in mid"), lambda: "shown %r" % all_names) # pylint: disable=cell-var-from-loop
			right += nr
			compiled_ones += nr if "[unknown]" in all_names else 0
	check(right >= 300 and marked <= MOST_MARKED * right and compiled_ones >= right / 2, lambda: "%d right, %d of them compiled, %d marked" % (right, compiled_ones, marked))
	return "%d right, %d of them compiled, %d marked" % (right, compiled_ones, marked)


@test
def ractors():
	return in_ractors([ruby_of(), RACTORS])


@test
def waiting_threads():
	return waiting([ruby_of(), SPIN])


FIBERS = """def in_fiber; Fiber.yield 1; end
def body; loop { in_fiber }; end
f = Fiber.new { body }
loop { f.resume }
"""


@test
def switching_fibers():
	"""A fiber's frames stand on the fiber's own native stack, which does not begin at _start, and the main ones on theirs, or there is a mark: a switch changes the two one after the
	other. A first version had 340 wrong ones of 39,678."""
	need_bpf()
	report = json.loads(sonde("profile", "--format", "json", "-U", "-F", 9973, 3, "--", ruby_of(), "-e", FIBERS, want=0).out)
	right, marked, wrong = 0, 0, {}
	for sample in report["samples"]:
		frames, nr = stack_of(report, sample), int(sample["values"][0])
		names = [name for kind, name, *_ in frames if kind == "ruby"]
		is_main, is_fiber, begins = "<main>" in names, "body" in names, frames[0][1] == "_start"
		if any(kind in ("mark", "missed") for kind, *_ in frames):
			marked += nr
		elif is_main != is_fiber and is_main == begins:
			right += nr
		elif is_main or is_fiber:
			wrong[tuple(name for _, name, *_ in frames)] = nr
	check(not wrong, lambda: "%d wrong, such as %r" % (sum(wrong.values()), next(iter(wrong))))
	check(right >= 500 and marked <= MOST_MARKED * right, lambda: "%d right, %d marked" % (right, marked))
	return "%d right, %d marked" % (right, marked)


# Makes code all the time, each at an address where other code was. The method's name tells the file and the line in it.
REMADE = """def work; n = 20000; n -= 1 while n > 0; end
loop do
	GC.start
	(1..12).each do |n|
		Object.class_eval("\\n" * n + "def at_#{n}; work; 1; end", "made_#{n}")
		send("at_#{n}")
	end
end
"""


@test
def remade():
	"""Nothing that is kept of freed code is shown for the code that is at its address now."""
	need_bpf()
	path, right, unknown, hits, wrong, bad = scratch("remade.rb"), 0, 0, 0, 0, set()
	with open(path, "w", encoding="ascii") as file:
		file.write(REMADE)
	with subprocess.Popen([find_tool("ruby") or skip("no ruby"), path]) as process:
		try:
			for _ in range(10): # a loaded machine gives few
				report = json.loads(sonde("profile", "--format", "json", "-U", "-F", 4999, "-p", process.pid, 1, want=0).out)
				hits, wrong = hits + report["account"]["runtime_cache_hits"], wrong + report["account"]["runtime_cache_wrong"]
				for sample in report["samples"]:
					frames, nr = stack_of(report, sample), sample["values"][0]
					unknown += nr * any(frame[0] == "ruby" and frame[1] == "[unknown]" for frame in frames)
					for number in (frame[1].split("_")[1] for frame in frames if frame[0] == "ruby" and frame[1].startswith("at_")):
						place = next((frame[2], frame[3]) for frame in frames if frame[1] == "at_" + number)
						right += nr * (place == ("made_" + number, int(number) + 1))
						bad |= {(number, place)} - {(number, ("made_" + number, line)) for line in (0, int(number) + 1)} # 0: freed before it was read
				if right >= 1000:
					break
		finally:
			process.kill()
	text = "%d frames, %d of stacks with an unknown one, %d hits in the cache, %d of those that were read again wrong" % (right, unknown, hits, wrong)
	check(not bad and right >= 200, lambda: "%s; in the wrong place: %r" % (text, sorted(bad)[:5]))
	check(hits and not wrong, lambda: text)
	return text


if __name__ == "__main__":
	run_tests(seconds=60)
