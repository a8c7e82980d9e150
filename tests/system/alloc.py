#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde alloc: all that a program allocates (tests/programs/allocs.c), by the function that asks; sampled, the same numbers in the mean."""
import json
import math
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Background, bpf_ids, build, build_library, check, check_equal, find_tool, fresh_folder, load_json, need_bpf, run_tests, scratch, sonde, test # noqa: E402

RUNS = 8
SAMPLE = 4096
SIGMAS = 5 # of chance; one test run in a million fails by it
ESTIMATE_SIGMAS = 4 # of an error that is itself an estimate


def asker(report, stack, program="allocs"):
	"""The innermost function of the program; what an allocator calls on its behalf is its, too."""
	for number in stack:
		frame = report["frames"][number]
		if frame["mapping"] is not None and os.path.basename(report["mappings"][frame["mapping"]]["path"]) == program:
			return report["functions"][frame["function"]]["name"]
	return None


def by_program(report, program):
	"""Function of the program -> its values: allocations, bytes, what of them is not free."""
	found = {}
	for sample in report["samples"]:
		name = asker(report, report["stacks"][sample["user_stack"]], program)
		if name:
			found[name] = [a + b for a, b in zip(found.get(name, [0, 0, 0, 0]), sample["values"])]
	return found


def by_function(report):
	return by_program(report, "allocs")


def marked_allocations(report):
	"""How many allocations have a stack that is marked, and no function of the program."""
	marks = {number for number, frame in enumerate(report["frames"]) if frame["kind"] == "mark"}
	stacks = {number for number, stack in enumerate(report["stacks"]) if marks.intersection(stack) and not asker(report, stack)}
	return sum(sample["values"][0] for sample in report["samples"] if sample["user_stack"] in stacks)


def record(*options, env=None, outputs=()):
	path = scratch("alloc.json")
	named = [word for output in (path, *outputs) for word in ("-o", output)]
	result = sonde("alloc", *options, *named, "--", build("allocs"), want=0, env={**os.environ, **(env or {})})
	true = {name: [int(nr), int(size), int(kept)] for name, nr, size, kept in re.findall(r"^alloc (\S+) (\d+) (\d+) (\d+)$", result.out, re.MULTILINE)}
	return load_json(path), true, result


def histogram(report, name):
	"""Counts by slot, of all stacks."""
	found = [each for each in report["histograms"] if each["name"] == name and "user_stack" not in each]
	check_equal(len(found), 1, "histograms of %s" % name)
	return found[0]


@test
def all_allocations():
	"""Each allocation once, by its size; what is freed has a lifetime."""
	need_bpf()
	report, true, result = record("--histograms")
	found = by_function(report)
	check(len(true) == 6, lambda: str(result))
	for name, (nr, size, kept) in true.items():
		values = found[name]
		check(values[:3] == [nr, size, kept] and values[3] == kept * size // nr, lambda: "%s: %s, true %d %d %d\n%s" % (name, values, nr, size, kept, result))
	check_equal([each["type"] for each in report["value_types"]], ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"], "values")
	freed = sum(nr - kept for nr, _, kept in true.values())
	lives = histogram(report, "lifetime")["count"]
	check(freed <= lives <= freed + 20, lambda: "%d lifetimes of %d freed blocks\n%s" % (lives, freed, result)) # and the C library's own
	sizes = {slot["low"]: slot["count"] for slot in histogram(report, "size")["slots"]}
	check(sizes[16] >= 40000 and sizes[256] >= 40000, lambda: str(sizes))
	return "%d functions, %d lifetimes" % (len(true), lives)


def deviation(true, mean_bytes):
	"""Standard deviation of a sampled number of equal blocks, with that of weights that are rounded by chance."""
	nr, size, _ = true
	chance = 1 - math.exp(-max(size // nr, 1) / mean_bytes)
	return math.sqrt(nr * (1 / chance - 1 + chance / 4))


def sampled_runs(env=None):
	"""The mean of some runs is within chance of the truth, for each function, and the bytes of all are within 5 % in each run."""
	sums, whole, part = {}, 0, []
	for _ in range(RUNS):
		report, true, result = record("--sample", "4K", env=env)
		found = by_function(report)
		for name in true:
			sums[name] = sums.get(name, 0) + found.get(name, [0])[0]
		whole = sum(size for _, size, _ in true.values())
		part.append(sum(values[1] for values in found.values()) / whole)
		check(abs(part[-1] - 1) < 0.05, lambda: "%.3f of all bytes\n%s" % (part[-1], result))
	for name in ("ask_tiny", "ask_small", "ask_page", "ask_large"):
		limit = SIGMAS * deviation(true[name], SAMPLE) / math.sqrt(RUNS)
		check(abs(sums[name] / RUNS - true[name][0]) <= limit, lambda: "%s: %.1f in the mean, true %d +- %.1f" % (name, sums[name] / RUNS, true[name][0], limit))
	return "%.4f of the bytes in the mean, %.3f to %.3f" % (sum(part) / RUNS, min(part), max(part))


@test
def sampled():
	need_bpf()
	return sampled_runs()


@test
def sampled_within_another():
	"""An allocator that asks another one: one block, although each function's call is drawn on its own."""
	need_bpf()
	return sampled_runs({"LD_PRELOAD": build_library("heap_header")})


@test
def formats():
	"""The values survive in pprof's format and back; each other format is written."""
	need_bpf()
	outputs = [scratch("alloc." + suffix) for suffix in ("pb.gz", "folded", "txt", "html", "svg", "speedscope.json", "otlp", "jsonl")]
	report, true, result = record(outputs=outputs)
	back = scratch("back.json")
	sonde("convert", "-o", back, outputs[0], want=0)
	check_equal(by_function(load_json(back)), by_function(report), "values after pprof")
	with open(outputs[1], encoding="utf-8") as file:
		folded = {line.split(";")[-1].split(" ")[0]: int(line.rsplit(" ", 1)[1]) for line in file}
	check_equal(folded["ask_page"], true["ask_page"][1], "folded bytes")
	with open(outputs[2], encoding="utf-8") as file:
		text = file.read()
	check("\t%d bytes in 4000 allocations, 250000 bytes in 50 not freed, from stack\n\t\task_page+0x" % true["ask_page"][1] in text, lambda: text)
	for path in outputs:
		check(os.path.getsize(path) > 100, path)
	shown = sonde("show", "--value", "alloc_objects", scratch("alloc.json"), want=0).out
	check("ask_tiny" in shown, shown)
	return "%d formats" % len(outputs)


@test
def windows():
	"""Each window has what was allocated in it; together they have all."""
	need_bpf()
	folder = fresh_folder("windows")
	script = "%s; sleep 1.2; %s" % (build("allocs"), build("allocs"))
	sonde("alloc", "--children", "1", "-o", os.path.join(folder, "%n.json"), "--", "sh", "-c", script, want=0)
	reports = [load_json(os.path.join(folder, name)) for name in sorted(os.listdir(folder))]
	found = [by_function(report) for report in reports]
	marked = sum(marked_allocations(report) for report in reports) # of a child's first moments, before its mappings are known
	for name, true in (("ask_tiny", 80000), ("grow", 2000)):
		named = sum(each.get(name, [0])[0] for each in found)
		check(true - marked <= named <= true and named >= true / 2, lambda: "%s: %d of %d, and %d are marked" % (name, named, true, marked)) # pylint: disable=cell-var-from-loop
	check(len(found) >= 2 and sum("ask_tiny" in each and each["ask_tiny"][0] > 0 for each in found) >= 2, lambda: str(found))
	return "%d windows" % len(found)


ESTIMATED = (r"estimated: (\d+) bytes allocated \+- ([\d.]+) %.*?, in (\d+) allocations \+- ([\d.]+) %[^\n]*\n"
             r"windows: (\d+), .* armed for ([\d.]+) % of the time; (\d+) calls seen")


class Estimate:
	"""What a recording with --low-overhead has estimated of a program of tests/programs, and what that says."""

	def __init__(self, *arguments, program="estimated", sigmas=ESTIMATE_SIGMAS):
		path = scratch("estimate.json")
		self.result = sonde("alloc", "--low-overhead", "-o", path, "--", build(program), *arguments, want=0)
		match = re.search(ESTIMATED, self.result.err)
		check(match, lambda: str(self.result))
		size, self.size_error, nr, self.nr_error, self.windows, self.armed, self.seen = map(float, match.groups())
		self.true = {name: (int(nr), int(size)) for name, nr, size in re.findall(r"^alloc (\S+) (\d+) (\d+)$", self.result.out, re.MULTILINE)}
		self.report = load_json(path)
		self.found = {}
		for sample in self.report["samples"]:
			name = asker(self.report, self.report["stacks"][sample["user_stack"]], program)
			self.found[name] = [a + b for a, b in zip(self.found.get(name, [0, 0]), sample["values"])]
		check(abs(nr - sum(values[0] for values in self.found.values())) <= len(self.report["samples"]), lambda: "the stacks are not the whole\n%s" % self.result)
		for word, value, error, true in (("allocations", nr, self.nr_error, sum(each[0] for each in self.true.values())),
						 ("bytes", size, self.size_error, sum(each[1] for each in self.true.values()))):
			limit = sigmas * error / 2 / 100 * value # it says two standard deviations
			check(abs(value - true) <= limit, lambda: "%.0f %s, true %d +- %.0f\n%s" % (value, word, true, limit, self.result)) # pylint: disable=cell-var-from-loop


@test
def estimated():
	"""--low-overhead: the totals are within the error that is said of them, and so are the shares of threads that compute by phases and of one
	that sleeps; few calls are probed. Nothing is said about what is not free."""
	need_bpf()
	estimate = Estimate(12)
	check_equal([each["type"] for each in estimate.report["value_types"]], ["alloc_objects", "alloc_space"], "values")
	check(estimate.nr_error < 80 and estimate.windows >= 20, lambda: str(estimate.result))
	whole, found = sum(nr for nr, _ in estimate.true.values()), sum(values[0] for values in estimate.found.values())
	for name, more in (("ask_small", 0), ("ask_large", 0), ("ask_burst", 0.25)): # docs/internals/memory.md: of threads that sleep
		true = estimate.true[name][0] / whole
		share = estimate.found[name][0] / found
		check(abs(share / true - 1) <= more + ESTIMATE_SIGMAS * max(estimate.nr_error, estimate.size_error) / 100, lambda: "%s: %.3f of all, true %.3f\n%s" % (name, share, true, estimate.result)) # pylint: disable=cell-var-from-loop
	# a tenth of the time; a window ends a little late on a busy machine (10.07 % were seen)
	check(estimate.seen <= 0.08 * whole and estimate.armed <= 11, lambda: str(estimate.result))
	return "%d windows, +- %.0f %%" % (estimate.windows, estimate.nr_error)


@test
def estimated_beside_a_loop():
	"""A thread that does nothing but allocate: its own number is hardly known, and that is said; it spoils no other thread's. (With one
	weight for all threads these would be a hundred times as many.)"""
	need_bpf()
	estimate = Estimate(12, "tight")
	for name in ("ask_small", "ask_large", "ask_burst"):
		true, found = estimate.true[name][0], estimate.found[name][0]
		check(true / 3 <= found <= 3 * true, lambda: "%s: %d, true %d\n%s" % (name, found, true, estimate.result)) # pylint: disable=cell-var-from-loop
	check(estimate.found["ask_tight"][0] > estimate.found["ask_small"][0], lambda: str(estimate.result))
	check(estimate.seen <= 0.01 * sum(nr for nr, _ in estimate.true.values()), lambda: str(estimate.result))
	return "%d windows, +- %.0f %%" % (estimate.windows, estimate.nr_error)


def throwing(*options):
	"""A run of a program whose operator new throws: what it printed, the report, the result. It ends as it does alone."""
	path = scratch("throwing.json")
	result = sonde("alloc", *options, "-o", path, "--", build("throwing_new"), "6" if options else "1", want=0)
	check("terminate called" not in result.err, lambda: str(result))
	numbers = re.search(r"^alloc ask_block (\d+)\nthrew (\d+)$", result.out, re.MULTILINE)
	check(numbers, lambda: "it did not end by itself\n%s" % result)
	return [int(number) for number in numbers.groups()], load_json(path), result


@test
def throws():
	"""An exception that leaves operator new: the program goes on (a probe at its return would end it), and each block is seen once."""
	need_bpf()
	(nr, nr_thrown), report, result = throwing()
	found = by_program(report, "throwing_new")["ask_block(unsigned long)"]
	check(found[:2] == [nr, 100 * nr], lambda: "%s, true %d\n%s" % (found, nr, result))
	check("\n%d calls of operator new for 256 MiB" % nr_thrown in result.err, lambda: str(result))
	check("throwing_new: an operator new that throws while it is probed" in result.err, "the danger is not said")
	return "%d thrown" % nr_thrown


@test
def estimated_throws():
	"""The same with --low-overhead; what failed counts for nothing, though its end was not seen."""
	need_bpf()
	_, report, result = throwing("--low-overhead")
	check("has to step over the beginning of a function like operator new" in result.err, "that its probes are slow is not said\n%s" % result)
	check("an operator new that throws" not in result.err, "no danger, but one is said")
	nr, size = by_program(report, "throwing_new")["ask_block(unsigned long)"]
	check(nr > 0 and abs(size / nr - 100) < 1, lambda: "%d bytes of %d calls\n%s" % (size, nr, result))


@test
def estimated_without_first_thread():
	"""The first thread ends while the process is recorded: what the others allocate is seen all the same."""
	need_bpf()
	estimate = Estimate("leaderless", 12, program="estimated_threads", sigmas=2 * ESTIMATE_SIGMAS) # the error is larger, it says
	found, true = estimate.found["ask_block"][0], estimate.true["ask_block"][0]
	check(true / 3 <= found <= 3 * true, lambda: "%d, true %d\n%s" % (found, true, estimate.result))
	check("probes were in all processes" in estimate.result.err, lambda: str(estimate.result))
	return "%.2f of the truth, +- %.0f %%" % (found / true, estimate.nr_error)


@test
def estimated_short_threads():
	"""Threads that are born in a window: no CPU time is known of them, so they count by its time. What the probes cost them is paid for by
	shorter windows, and files say that they have an estimate."""
	need_bpf()
	estimate = Estimate("short", 12, program="estimated_threads")
	found, true = estimate.found["ask_block"][0], estimate.true["ask_block"][0]
	check(true / 2 <= found <= 2 * true, lambda: "%d, true %d\n%s" % (found, true, estimate.result))
	check(estimate.seen <= 0.04 * true and "count by its time alone" in estimate.result.err, lambda: str(estimate.result))
	check(any("the values are an estimate" in note for note in estimate.report["account"]["notes"]), lambda: str(estimate.report["account"]["notes"]))
	return "%.2f of the truth, +- %.0f %%" % (found / true, estimate.nr_error)


def programs():
	"""The ids of all programs that the kernel has."""
	with subprocess.Popen([find_tool("bpftool", "/usr/sbin/bpftool"), "-j", "prog", "list"], stdout=subprocess.PIPE) as listing:
		return {str(each["id"]) for each in json.load(listing.stdout)}


@test
def estimated_refusals():
	"""What does not go together is refused, with the reason."""
	for options, reason in ((("--sample", "4K"), "sees all calls"), (("--max-live", "10"), "follows no blocks"), (("--children",), "follows no blocks"), (("--rss",), "sees no blocks")):
		result = sonde("alloc", "--low-overhead", *options, "--", "true", want=2)
		check(reason in result.err, lambda: str(result)) # pylint: disable=cell-var-from-loop


@test
def estimated_killed():
	"""Of a sonde that ends or is killed in the midst of it no probe stays: its programs are gone, and the process lives."""
	need_bpf()
	with subprocess.Popen([build("estimated"), "60", "tight"], stdout=subprocess.DEVNULL) as program:
		try:
			for signo in (signal.SIGKILL, signal.SIGINT):
				with Background("alloc", "--low-overhead", "-p", program.pid) as recording:
					recording.wait_line("Ctrl+C")
					time.sleep(1)
					ids = bpf_ids(recording.process.pid, "prog")
					check(ids, "it holds no programs")
					recording.send(signo)
					recording.finish()
				until = time.monotonic() + 10
				while ids & programs() and time.monotonic() < until:
					time.sleep(0.1) # the kernel frees them a little later
				check(not ids & programs(), lambda: "programs stay: %s" % (ids & programs())) # pylint: disable=cell-var-from-loop
				check(program.poll() is None, "the program has ended")
		finally:
			program.kill()


if __name__ == "__main__":
	run_tests()
