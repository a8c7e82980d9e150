#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frames of Ruby among the native ones: the threads of tests/programs/spin.rb report their own stacks."""
import json
import os

from harness import SOURCES, check, find_tool, need_bpf, run_tests, skip, sonde, test
from spins import Spin, stack_of, told_by

SPIN = os.path.join(SOURCES, "spin.rb")
NR_SCENARIOS, WAITING = 28, {"sleeping", "locking"}
FEW = 4 # the threads take turns of a tenth of a second
LEAF_LINES = {11, 12} # of spin(), which is interrupted anywhere
MOST_MARKED = 0.1 # of the samples: stacks that change
MOST_WAITING_MARKED = 0.7 # of a thread that waits since before the start, the frames of Ruby are not known


def error_of(frames, told):
	"""None: the frames are the reported ones, in runs that rb_vm_exec starts. Methods written in C have a name alone, and may be the leaf where the report has none: a check for
	interrupts, an operator."""
	chain = [(name.replace(" ", "_"), file.replace(" ", "_"), line) for kind, name, file, line in frames if kind == "ruby"]
	if len(chain) == len(told) + 1 and not chain[-1][1]:
		chain = chain[:-1]
	if [name for name, _, _ in chain] != [name for name, _, _ in told]:
		return "names: %r" % [name for name, _, _ in chain]
	for i, ((name, file, line), (_, told_file, told_line)) in enumerate(zip(chain, told)):
		is_leaf = name == "spin" and i == len(told) - 1
		if file and (file != told_file or line != told_line and not (is_leaf and line in LEAF_LINES)):
			return "%s at %s:%d, not %s:%d" % (name, file, line, told_file, told_line)
		if not file and i + 1 < len(told) and name in ("spin", "nested", "plain"):
			return "%s has no file" % name
	for (before, name, _, _), (kind, shown, _, _) in zip(frames, frames[1:]):
		if kind == "ruby" and before == "native" and name != "rb_vm_exec" and not name.startswith("[libruby"): # where it is hidden
			return "%s stands behind %s" % (shown, name)
	return None


def judge(told, report, wanted, most_marked):
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
		error = error_of(frames, expected)
		if error:
			wrong.setdefault((scenario, error), [0, expected, frames])[0] += nr
		else:
			right += nr
			seen.add(scenario)
	check(not wrong, lambda: "\n".join("%s, %d: %s\n   told %r\n   shown %r" % (scenario, nr, error, expected, frames) for (scenario, error), (nr, expected, frames) in list(wrong.items())[:6]))
	check(len(wanted - seen) <= FEW, lambda: "only %d of %d scenarios: not %r" % (len(seen), len(told), sorted(wanted - seen)))
	check(marked <= most_marked * (right + marked), lambda: "%d right, %d marked" % (right, marked))
	return "%d right, %d marked, of %d scenarios" % (right, marked, len(seen))


def ruby_of():
	return find_tool("ruby") or skip("no ruby")


def on_the_cpu(command):
	need_bpf()
	with Spin(command) as spin:
		told = told_by(spin.process, NR_SCENARIOS)
		report = json.loads(sonde("profile", "--format", "json", "--threads", "-U", "-F", 997, "-L", ",".join(map(str, told)), 8, want=0).out)
	return judge(told, report, {name for name, _ in told.values()} - WAITING, MOST_MARKED)


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


if __name__ == "__main__":
	run_tests(seconds=60)
