#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frames of Perl among the native ones: programs of tests/programs/spin.pl report their own stacks and are all sampled at once; another program calls
its subs at random."""
import json
import os
import subprocess

from harness import AUDIT, SOURCES, check, check_audited, find_tool, need_bpf, run_tests, scratch, skip, sonde, test

SPIN = os.path.join(SOURCES, "spin.pl")
LOOPS = ("Perl_runops_standard", "Perl_runops_debug")
# Calls that go through C: {(caller, callee)} by their last names; all other calls do not.
THROUGH_C = {
	"sort_block": {("__ANON__", "outer")}, "sort_name": {("__ANON__", "by_name")}, "sort_catches": {("__ANON__", "catches")},
	"first": {("__ANON__", "__ANON__")}, "reduce": {("__ANON__", "__ANON__")},
	"sorts": {("sort_recursively", "sort_recursively")},
	"tied": {("__ANON__", "FETCH")}, "overloaded": {("__ANON__", "plus")}, "alarm": {("__ANON__", "__ANON__")}, "warned": {("__ANON__", "__ANON__")},
	"destroyed": {("__ANON__", "DESTROY")}, "threads": {("__ANON__", "by_name")},
}
NR_THREADS = {"threads": 3}
SCENARIOS = ("nested", "method", "closure", "eval_block", "sort_block", "sort_name", "sort_catches", "first", "reduce", "eval_text", "eval_sub", "required", "recursion", "sorts", "tied",
	"overloaded", "alarm", "warned", "destroyed", "threads", "fork")
sampled = {} # scenario -> [(reported stack, frames, count)]


class Spin:
	"""A running scenario; expected[tid] is what its threads reported."""

	def __init__(self, perl, scenario, nr_threads=1):
		self.scenario = scenario
		self.process = subprocess.Popen(["nice", "-n", "5", *perl, SPIN, scenario], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
		self.nr_threads, self.expected = nr_threads, {}

	def wait(self):
		"""Waits until it has reported its stacks. Returns the process that spins."""
		lines = [self.process.stdout.readline() for _ in range(self.nr_threads)]
		check(all(lines), lambda: "%s has ended" % self.scenario)
		told = [json.loads(line) for line in lines]
		self.expected = {one["tid"]: one for one in told}
		return next(iter(self.expected)) if self.scenario == "fork" else self.process.pid

	def end(self):
		self.process.kill()
		self.process.communicate()


def stack_of(report, sample):
	"""Returns [(kind, name, file, first line, line)], root to leaf."""
	frames = []
	for number in report["stacks"][sample["user_stack"]][::-1]:
		frame = report["frames"][number]
		function = report["functions"][frame["function"]]
		frames.append((frame["kind"], function["name"], os.path.basename(function["file"]), function["line"], frame["line"]))
	return frames


def chain_error(frames, told):
	"""Returns None when the Perl frames are exactly those that the thread reported."""
	chain = [frame for frame in frames if frame[0] == "perl"]
	if len(chain) != len(told["stack"]):
		return "%d frames, not %d" % (len(chain), len(told["stack"]))
	for i, (_, name, file, first, line) in enumerate(chain):
		want_name, want_file, want_first, want_line = told["stack"][i]
		is_leaf = i + 1 == len(chain)
		if (name, file) != (want_name, want_file) or (want_first and first != want_first) or first > line:
			return "frame %d is %s of %s, line %d, not %s of %s, line %d" % (i, name, file, first, want_name, want_file, want_first)
		if line not in (told["leaf_lines"] if is_leaf else [want_line]):
			return "%s is in line %d" % (name, line)
	return None


def order_error(frames, scenario):
	"""Returns None when native frames are where C is, and nowhere else."""
	if frames[0][0] != "native" or any(frame[1] in LOOPS for frame in frames):
		return "the interpreter's own frames are not replaced"
	places = [i for i, frame in enumerate(frames) if frame[0] == "perl"]
	for before, after in zip(places, places[1:]):
		call = tuple(frames[i][1].split("::")[-1] for i in (before, after))
		through_c = any(frame[0] == "native" for frame in frames[before + 1:after])
		if through_c != (call in THROUGH_C.get(scenario, ())):
			return "%s native frames between %s and %s" % (("there are" if through_c else "no"), *call)
	return None


def sample_all(perl, scenarios=SCENARIOS, freq_hz=4999, args=()):
	"""Samples all scenarios in the same seconds, because sampling is the slow part."""
	spins = [Spin(perl, scenario, NR_THREADS.get(scenario, 1)) for scenario in scenarios]
	reports, counts = [], {}
	try:
		pids = [spin.wait() for spin in spins]
		tids = {tid: spin for spin in spins for tid in spin.expected}
		for _ in range(5): # a loaded machine gives few
			reports.append(json.loads(sonde("profile", "--format", "json", "--timestamps", "-U", "-F", freq_hz, "-p", ",".join(map(str, pids)), *args, 1, want=0).out))
			if args == AUDIT:
				check_audited(reports[-1])
			for sample in reports[-1]["samples"]:
				counts[sample["tid"]] = counts.get(sample["tid"], 0) + 1
			if min(counts.get(tid, 0) for tid in tids) >= 60:
				break
	finally:
		for spin in spins:
			spin.end()
	found = {scenario: [] for scenario in scenarios}
	for report, sample in ((report, sample) for report in reports for sample in report["samples"]):
		if sample["tid"] in tids:
			spin = tids[sample["tid"]]
			found[spin.scenario].append((spin.expected[sample["tid"]], stack_of(report, sample), sample["values"][0]))
	return found


def check_scenario(found, scenario):
	right, wrong = 0, {}
	for told, frames, count in found[scenario]:
		error = chain_error(frames, told) or order_error(frames, scenario)
		right += 0 if error else count
		if error:
			wrong[error] = wrong.get(error, 0) + count
	check(right >= 50, lambda: "%d samples are right; wrong: %r" % (right, wrong))
	check(sum(wrong.values()) <= 0.01 * (right + sum(wrong.values())), lambda: "%d samples are right; wrong: %r" % (right, wrong))
	return "%d samples" % right


def scenario_test(scenario):
	def check_one():
		need_bpf()
		if not sampled:
			sampled.update(sample_all([find_tool("perl") or skip("no perl")]))
		return check_scenario(sampled, scenario)
	check_one.__name__ = scenario
	return test(check_one)


@test
def audited():
	"""The audit examines stacks and leaves them unchanged."""
	need_bpf()
	found = sample_all([find_tool("perl") or skip("no perl")], ("nested", "sort_name", "sorts", "tied"), 499, AUDIT)
	return ", ".join("%s: %s" % (scenario, check_scenario(found, scenario)) for scenario in found)


def edge_error(frames, sites):
	"""Returns None when each sub calls what its line says, in that way. The leaf may be anywhere in its sub."""
	places = [i for i, frame in enumerate(frames) if frame[0] == "perl"]
	if any(frame[1] in LOOPS for frame in frames[:places[-1]]): # above the loop's frame the interpreter has begun, but no sub has
		return "the interpreter's own frames are not replaced"
	for before, after in zip(places, places[1:]):
		name, callee, through_c, between = sites.get(str(frames[before][4]), ("", "", 0, ""))
		through = any(frame[0] == "native" for frame in frames[before + 1:after])
		expected = {(name, between or callee, bool(through_c)), (between, callee, False)}
		if frames[before][1] == "<main>":
			expected = {("<main>", "main::s%d" % i, False) for i in range(len(sites))}
		call = (frames[before][1], frames[after][1], through)
		if call not in expected and not (frames[after][1] == "main::choose" and after == places[-1]):
			return "line %d of %s: %s%s" % (frames[before][4], call[0], call[1], ", through C" if through else "")
	return None


@test
def random_calls():
	"""No frame has an impossible caller at any moment, except for the few instructions in which Perl pushes a context."""
	need_bpf()
	right, wrong = 0, {}
	with subprocess.Popen([find_tool("perl") or skip("no perl"), os.path.join(SOURCES, "spin_random.pl")], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
		try:
			sites = json.loads(process.stdout.readline())["sites"]
			for _ in range(10): # a loaded machine gives few
				report = json.loads(sonde("profile", "--format", "json", "--timestamps", "-U", "-F", 4999, "-p", process.pid, 1, want=0).out)
				for sample in report["samples"]:
					error = edge_error(stack_of(report, sample), sites)
					right += 0 if error else 1
					if error:
						wrong[error] = wrong.get(error, 0) + 1
				if right >= 3000:
					break
		finally:
			process.kill()
	check(right >= 500 and sum(wrong.values()) <= max(3, 0.0015 * right), lambda: "%d samples are right; wrong: %r" % (right, wrong))
	return "%d samples are right; wrong: %r" % (right, wrong)


# Compiles code all the time, each at an address where other code was. The sub's name tells the line in its text.
RECOMPILED = """no warnings 'redefine';
sub spin { my $n = 3000; $n-- while $n }
while (1) {
	for my $n (1 .. 60) {
		eval 'my $x = ' . $n . ";\n" x $n . "sub at_$n { main::spin(); 1 } at_$n();";
		main->can("at_$n")->();
	}
}
"""


@test
def recompiled():
	"""The line of a frame is that of the code that runs now, not of what was at its address before."""
	need_bpf()
	path, lines, hits, wrong = scratch("recompiled.pl"), {}, 0, 0
	with open(path, "w", encoding="ascii") as file:
		file.write(RECOMPILED)
	with subprocess.Popen([find_tool("perl") or skip("no perl"), path]) as process:
		try:
			for _ in range(10): # a loaded machine gives few
				report = json.loads(sonde("profile", "--format", "json", "--timestamps", "-U", "-F", 4999, "-p", process.pid, 1, want=0).out)
				hits, wrong = hits + report["account"]["runtime_cache_hits"], wrong + report["account"]["runtime_cache_wrong"]
				for frame in (frame for sample in report["samples"] for frame in stack_of(report, sample)):
					if frame[0] == "perl" and "::at_" in frame[1] and frame[2] == "(eval)": # it has begun: else the position is the call's
						key = (int(frame[1].split("_")[1]) + 1, frame[4])
						lines[key] = lines.get(key, 0) + 1
				if sum(lines.values()) >= 1000:
					break
		finally:
			process.kill()
	bad = sorted(key for key in lines if key[0] != key[1])
	check(not bad and sum(lines.values()) >= 200, lambda: "%d frames; in line, not in line: %r ..." % (sum(lines.values()), bad[:5]))
	check(hits and not wrong, lambda: "%d hits in the cache, %d of those that were read again wrong" % (hits, wrong))
	return "%d frames, %d hits in the cache" % (sum(lines.values()), hits)


for each in SCENARIOS:
	scenario_test(each)

if __name__ == "__main__":
	run_tests()
