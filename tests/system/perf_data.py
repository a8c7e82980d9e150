#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings of `perf record`, read by sonde: programs with a known chain, for each way of recording a stack, and frame by frame against `perf script`.
perf_dump replaces a verb (PERF_DUMP): it reads a recording and writes a format."""
import collections
import json
import os
import re
import shutil
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Program, build, chain_error, check, check_exact, find_tool, parse_folded, run, run_tests, scratch, skip, sonde, test, total # noqa: E402

DUMP = os.environ["PERF_DUMP"]
AT_LEAST = 20 # samples: others may need the processors


os.environ["HOME"] = scratch("") # perf keeps copies of recorded files in ~/.debug, where sonde looks


def perf_record(pid, *args, name="perf.data", seconds=1, freq=499, event="cpu-clock:u", cached=False):
	"""Returns the path of a recording of a process; pid None: of all."""
	perf = find_tool("perf")
	if not perf:
		skip("no perf (linux-perf)")
	path = scratch(name)
	target = ["-a"] if pid is None else ["-p", pid]
	made = run([perf, "record", "-q", "-e", event, "-F", freq, *args, *([] if cached else ["-N"]), *target, "-o", path, "--", "sleep", seconds], timeout=60)
	check(made.code == 0, lambda: "perf record: %s" % made)
	return path


def dump(path, form="folded", *args, **kwargs):
	made = run([DUMP, path, form, *args], timeout=120, **kwargs)
	check(made.code == 0, lambda: "perf_dump: %s" % made)
	return made


def stacks_of(path):
	return parse_folded(dump(path).out)


def perf_script(path, *fields):
	text = run([find_tool("perf"), "script", "-i", path, *fields], timeout=300)
	check(text.code == 0, lambda: "perf script: %s" % text)
	return text.out


def addresses(path):
	"""Returns stacks as perf has them, leaf first, with their counts. Stacks that perf unwound have addresses in the file and, except for
	the leaf, one before the return address."""
	stacks = collections.Counter()
	for block in perf_script(path, "-F", "ip,sym,dso", "--no-inline").split("\n\n"):
		frames = tuple(int(line.split()[0], 16) for line in block.splitlines() if line.strip())
		if frames:
			stacks[frames] += 1
	return stacks


def own_addresses(path):
	report = json.loads(dump(path, "json").out)
	stacks = collections.Counter()
	for sample in report["samples"]:
		stack = sample["user_stack"]
		frames = [] if stack is None else [report["frames"][frame] for frame in report["stacks"][stack]]
		pcs = tuple(int(frame["address"], 16) for frame in frames if frame["kind"] != "mark" and not frame.get("inlined"))
		stacks[pcs] += sample["values"][0]
	return stacks


def exact(path, program):
	stacks = stacks_of(path)
	share = check_exact(stacks, lambda stack: chain_error(stack, program.chains[stack.comm]), at_least=AT_LEAST)
	return "%d samples, %.2f %% exact" % (total(stacks), share * 100)


def chain_of(program):
	return next(iter(program.chains.values()))


@test
def a_stack_as_memory_is_walked_by_our_tables():
	with Program("chain", 60) as program:
		path = perf_record(program.pid, "--call-graph", "dwarf,65528")
		return exact(path, program)


@test
def frames_are_those_of_perf():
	with Program("chain", 60) as program:
		path = perf_record(program.pid, "--call-graph", "dwarf,65528")
		theirs, ours = addresses(path), own_addresses(path)
	nr = sum(theirs.values())
	check(nr == sum(ours.values()), lambda: "%d samples, perf has %d" % (sum(ours.values()), nr))
	bodies = collections.Counter()
	for frames, count in ours.items():
		bodies[tuple(vaddr - (i > 0) for i, vaddr in enumerate(frames))] += count
	same = sum((bodies & theirs).values())
	check(same >= nr * 0.98, lambda: "%d of %d samples have the frames of perf\nours: %s\nperf: %s" % (same, nr,
		[hex(pc) for pc in next(iter(bodies - theirs))], [hex(pc) for pc in next(iter(theirs - bodies))]))
	return "%d of %d samples, frame by frame" % (same, nr)


@test
def a_chain_of_frame_pointers_is_taken_as_it_stands():
	with Program("chain", 60, variant="fp") as program:
		path = perf_record(program.pid, "--call-graph", "fp")
		stacks = stacks_of(path)
		chain = chain_of(program)
	share = check_exact(stacks, lambda stack: None if stack.user[-len(chain):] == chain else "differs: %s" % stack.user[-3:], at_least=AT_LEAST)
	return "%d samples, %.2f %% exact" % (total(stacks), share * 100)


@test
def without_a_call_graph_there_is_the_leaf():
	with Program("chain", 60) as program:
		path = perf_record(program.pid)
		stacks = stacks_of(path)
		leaf = chain_of(program)[-1]
	check_exact(stacks, lambda stack: None if stack.user == [leaf] else "want %s" % leaf, at_least=AT_LEAST)
	return "%d samples" % total(stacks)


@test
def compressed_and_streamed_recordings_say_the_same():
	with Program("chain", 60) as program:
		packed = perf_record(program.pid, "--call-graph", "dwarf,65528", "-z", name="packed.data")
		notes = exact(packed, program)
		perf = find_tool("perf")
		streamed = scratch("stream.data")
		made = run(["sh", "-c", "%s record -q -N -e cpu-clock:u -F 499 --call-graph dwarf,65528 -p %d -o - -- sleep 1 > %s" % (perf, program.pid, streamed)])
		check(made.code == 0, lambda: "perf record -o -: %s" % made)
		with open(streamed, "rb") as file:
			made = run([DUMP, "-", "folded"], stdin=file)
			check(made.code == 0, lambda: str(made))
		piped = run(["sh", "-c", "cat %s | %s - folded" % (streamed, DUMP)])
		check(piped.out == made.out, "through a pipe it says something else")
		share = check_exact(parse_folded(made.out), lambda stack: chain_error(stack, program.chains[stack.comm]), at_least=AT_LEAST)
	return "packed: %s; streamed: %.2f %% exact" % (notes, share * 100)


@test
def a_recording_that_was_cut_off_says_so():
	with Program("chain", 10) as program:
		path = perf_record(program.pid, "--call-graph", "dwarf,8192")
	whole = total(stacks_of(path))
	cut = scratch("cut.data")
	with open(path, "rb") as file, open(cut, "wb") as to:
		to.write(file.read(os.path.getsize(path) // 2))
	made = dump(cut)
	nr = total(parse_folded(made.out))
	check(whole // 4 < nr < whole, lambda: "%d samples of %d" % (nr, whole))
	check("is cut short" in made.err, lambda: made.err)


def replace(path, source):
	os.unlink(path)
	shutil.copy(source, path)


@test
def a_file_that_was_replaced_gives_no_names():
	copy, kept = scratch("replaced"), scratch("kept")
	shutil.copy(build("chain"), copy)
	shutil.copy(copy, kept)
	with Program("chain", 10, path=[copy]) as program:
		path = perf_record(program.pid, "--call-graph", "dwarf,8192")
		in_cache = perf_record(program.pid, "--call-graph", "dwarf,8192", name="cached.data", cached=True)
	shutil.rmtree(scratch("debug"), ignore_errors=True)
	cache = shutil.move(scratch(".debug"), scratch("debug"))
	replace(copy, build("chain", "nopie")) # another program of that name
	made = dump(path)
	stacks = parse_folded(made.out)
	check(all(re.match(r"\[replaced\+0x[0-9a-f]+\]", stack.user[-1]) for stack in stacks), lambda: "\n".join(map(str, stacks[:5])))
	check("1 were replaced" in made.err, lambda: made.err)
	shutil.move(cache, scratch(".debug"))
	check_exact(stacks_of(in_cache), lambda stack: chain_error(stack, chain_of(program)), at_least=AT_LEAST)
	shutil.rmtree(scratch(".debug"))
	replace(copy, kept) # it has the build id, though not the inode
	check_exact(stacks_of(path), lambda stack: chain_error(stack, chain_of(program)), at_least=AT_LEAST)


@test
def registers_of_another_machine_are_not_walked_with():
	"""Their numbers mean other registers here: an arm64 machine's set includes the numbers of the ones we need."""
	with Program("chain", 10) as program:
		path = perf_record(program.pid, "--call-graph", "dwarf,8192")
	with open(path, "rb") as file:
		data = file.read()
	check(b"x86_64\0" in data, "the recording does not name the machine")
	with open(path, "wb") as file:
		file.write(data.replace(b"x86_64\0", b"arm64\0\0"))
	made = dump(path)
	check("from another kind of machine (arm64)" in made.err, lambda: made.err)
	check(all(len(stack.user) <= 1 for stack in parse_folded(made.out)), lambda: made.out[:600])


@test
def a_hard_link_is_no_change():
	copy, link = scratch("linked"), scratch("link")
	shutil.copy(build("chain"), copy)
	with Program("chain", 10, path=[copy]) as program:
		path = perf_record(program.pid, "--call-graph", "dwarf,8192", "-B") # without build ids
	time.sleep(0.05)
	os.link(copy, link)
	check_exact(stacks_of(path), lambda stack: chain_error(stack, chain_of(program)), at_least=AT_LEAST)
	with open(copy, "r+b") as file: # the same bytes, but nobody knows that
		first = file.read(1)
		file.seek(0)
		file.write(first)
	check("1 were replaced" in dump(path).err, "it was written to after the recording")


@test
def another_kernel_gives_no_kernel_names():
	path = perf_record(None, "-g", event="cpu-clock", name="system.data")
	with open(path, "rb") as file:
		data = file.read()
	release = os.uname().release.encode()
	check(release in data, "the recording does not tell the kernel")
	with open(path, "wb") as file:
		file.write(data.replace(release, b"x" + release[1:]))
	report = json.loads(dump(path, "json").out)
	names = [report["functions"][frame["function"]]["name"] for frame in report["frames"] if frame["kind"] == "kernel"]
	check(names and all(re.fullmatch(r"\[kernel\+0x[0-9a-f]+\]", name) for name in names), lambda: str(names[:9]))


@test
def the_whole_system_is_read_as_perf_reads_it():
	with Program("chain", 30, variant="fp") as program:
		path = perf_record(None, "-g", event="cpu-clock", name="system.data")
		stacks = [stack for stack in stacks_of(path) if stack.comm == "chain-fp"]
		chain = chain_of(program)
	own = [stack for stack in stacks if stack.user]
	check_exact(own, lambda stack: None if stack.user[-len(chain):] == chain else "differs", at_least=AT_LEAST)
	theirs = collections.Counter()
	for block in perf_script(path, "-F", "comm,ip,sym,dso", "--no-inline").split("\n\n"):
		if block.strip():
			name = block.strip("\n").splitlines()[0].strip()
			theirs["" if name.startswith(":") else name] += 1 # ":-1" is an exiting thread
	ours = collections.Counter()
	for stack in stacks_of(path):
		ours[stack.comm] += stack.count
	check(sum(ours.values()) == sum(theirs.values()), lambda: "%s\nperf: %s" % (ours, theirs))
	check(ours == theirs, lambda: "by name: %s\nperf: %s" % (ours - theirs, theirs - ours))
	kernel = sum(stack.count for stack in stacks_of(path) if any(not frame.startswith("[") for frame in stack.kernel))
	check(kernel > 0, "no kernel function has a name")
	return "%d samples, of %d commands" % (sum(ours.values()), len(ours))


@test
def convert_takes_it():
	with Program("chain", 10) as program:
		path = perf_record(program.pid, "--call-graph", "dwarf,8192")
	page, folded = scratch("x.html"), scratch("x.folded")
	sonde("convert", path, "-o", page, "-o", folded, want=0)
	with open(folded, encoding="utf-8") as file:
		stacks = parse_folded(file.read())
	check_exact(stacks, lambda stack: chain_error(stack, chain_of(program)), at_least=AT_LEAST)
	check(os.path.getsize(page) > 10000, "the page is empty")
	made = run(["sh", "-c", "cat %s | %s convert - %s" % (path, os.environ["SONDE"], folded)])
	check(made.code == 1 and "not through a pipe" in made.err, lambda: str(made))


if __name__ == "__main__":
	run_tests()
