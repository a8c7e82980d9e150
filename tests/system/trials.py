# SPDX-License-Identifier: Apache-2.0
"""Checks what tests/programs/trial.c reports of tests/programs/hits.c."""
import os
import re
from collections import Counter

from harness import check, entry_error, parse_folded

TRIAL = os.environ.get("TRIAL") or os.path.join(os.path.dirname(os.environ.get("SONDE", "build/sonde")), "tests", "system", "trial")
IN_LIBC = r"\[libc[^\]]*\+0x[0-9a-f]+\]" # without its debug symbols, its own functions have no names
OWN = {"main", "all_ways", "deep", "probed", "sorts", "compare", "in_thread"}


class Report:
	"""The output of a trial: .counters: name -> counter -> number; .stacks."""

	def __init__(self, text):
		head, _, folded = text.partition("\n\n")
		self.counters = {line.split()[0]: {name: int(number) for name, number in re.findall(r"(\w+) (\d+)", line.partition(" ")[2])} for line in head.splitlines()}
		self.stacks = parse_folded(folded)

	def of(self, name):
		return [stack for stack in self.stacks if stack.comm == name]


def own(stack):
	"""Returns the stack without the C library's frames."""
	return tuple(frame for frame in stack.user if frame in OWN)


def is_whole(stack):
	"""Returns whether the stack starts at the thread's start, with no unknown frames in between."""
	marks = [frame for frame in stack.user[:-1] if frame.startswith("[") and not re.fullmatch(IN_LIBC, frame)] # the leaf may be in the kernel's page for probes
	first = stack.user.index("main") if "main" in stack.user else stack.user.index("in_thread") if "in_thread" in stack.user else None
	return not marks and first is not None and not entry_error(stack.user[:first], "main" in stack.user)


def ways_of(text):
	"""Parses what the program says: how often it went each way."""
	return {tuple(way.split(";")): int(count) for count, way in re.findall(r"^way (\d+) (\S+)$", text, re.MULTILINE)}


def check_hits(report, number, ways, leaf, elsewhere=False, max_missed=0):
	"""`leaf`: what follows the way's `probed`; "-": `probed` has already returned. `elsewhere`: the trigger strikes at other locations of
	the process, too. max_missed: how many stacks may be missed, if marked."""
	name = "hit%d" % number
	seen, wrong, nr_missed, nr_elsewhere = {}, [], 0, 0
	for stack in report.of(name):
		if any(frame.startswith("[Missed ") for frame in stack.user):
			nr_missed += stack.count
			continue
		if elsewhere and stack.user[-1:] != [leaf]:
			nr_elsewhere += stack.count
			continue
		way = own(stack)
		last = stack.user[-1] if stack.user else ""
		if not is_whole(stack) or (leaf == "-" and way[-1:] == ("probed",)) or (leaf not in ("", "-") and last != leaf) or (leaf == "" and last != "probed"):
			wrong.append(stack)
			continue
		way += ("probed",) if leaf == "-" else ()
		seen[way] = seen.get(way, 0) + stack.count
	count, nr_left = report.counters[name], Counter(ways)
	nr_left.subtract(seen)
	nr_missed_elsewhere = nr_missed - nr_left.total()
	check(not wrong and nr_missed <= max_missed and not set(seen) - set(ways) and min(nr_left.values()) >= 0 and (nr_missed_elsewhere >= 0 if elsewhere else nr_missed_elsewhere == 0), lambda: "%s: %s instead of %s; %d missed; wrong:\n%s" % (name, seen, ways, nr_missed, "\n".join(map(str, wrong[:20]))))
	check(count["recorded"] == sum(ways.values()) + nr_elsewhere + nr_missed_elsewhere and count["hits"] == count["recorded"] + count["filtered"] and not count["no_scratch"] and not count["ring_full"] and not count["left_out"],
		lambda: "%s: %s, and %d times it struck" % (name, count, sum(ways.values())))
	return nr_missed


def inside(stacks):
	"""Returns how many struck while the trigger's program was running."""
	return sum(stack.count for stack in stacks if any("_sonde_event" in frame for frame in stack.kernel))


def check_ticks(report, ways, at_least=200):
	"""Each tick is on one of the ways, or above or below it."""
	stacks, whole, count = report.of("tick"), 0, report.counters["tick"]
	check(count["hits"] == count["recorded"] + count["filtered"] and not count["no_scratch"] and not count["ring_full"], lambda: "ticks: %s" % count)
	check(inside(stacks) >= 20, lambda: "%d ticks struck in the middle of the trigger's program" % inside(stacks))
	for stack in stacks:
		if not own(stack):
			continue
		way = own(stack)
		if stack.user[0].startswith("[no ") and any("probe" in frame for frame in stack.kernel): # the kernel is just replacing or restoring a return address: the stack is marked
			continue
		check(is_whole(stack) and any(way == known[:len(way)] for known in ways), lambda: "a tick on no way: %s" % stack) # pylint: disable=cell-var-from-loop
		whole += stack.count
	check(whole >= at_least, lambda: "%d ticks: %s" % (whole, report.counters["tick"]))
	return "%d ticks, %d of them in the middle of the trigger's program" % (whole, inside(stacks))
