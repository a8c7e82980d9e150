#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names of code generated at run time: perf maps and jitdumps, by a writer whose stack is known, and by node and a JVM; and BPF programs, whose code the
kernel generates."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import time

from harness import Background, Program, SOURCES, Stack, build, chain_error, check, check_equal, check_exact, find_tool, fresh_folder, need_bpf, parse_folded, run, run_tests, \
	scratch, skip, sonde, test, total

INNER_LINES, CALL_LINE = {20, 21, 22}, 11 # of tests/programs/jitted.c; 21 is its loop


def need_x86():
	need_bpf()
	if os.uname().machine != "x86_64":
		skip("jitted writes code for x86-64")


def folded(pid, *options, seconds=2):
	"""Records longer when others leave the process little time."""
	for duration in (seconds, 8 * seconds):
		stacks = parse_folded(sonde("profile", "-f", "-a", "-U", "-F", 499, "-p", pid, *options, duration, want=0).out)
		if total(stacks) >= 100:
			break
	return stacks


def is_chain(program):
	chain = program.chains["jitted"]
	return lambda stack: chain_error(stack, chain)


def leave_no_map(pid):
	for path in glob.glob("/tmp/perf-%d.map" % pid):
		os.unlink(path)


# --- a writer whose stack is known ------------------------------------------------------------------------------------------------------

@test
def names_of_a_jitdump():
	need_x86()
	with Program("jitted", os.path.dirname(scratch("x"))) as program:
		return "%.4f" % check_exact(folded(program.pid), is_chain(program), at_least=50)


@test
def names_of_a_perf_map():
	need_x86()
	with Program("jitted", "map") as program:
		try:
			return "%.4f" % check_exact(folded(program.pid), is_chain(program), at_least=50)
		finally:
			leave_no_map(program.pid)


def frames_of(report, sample):
	"""Returns [(name, base name of the file, line)], root to leaf."""
	found = []
	for number in report["stacks"][sample["user_stack"]][::-1]:
		frame = report["frames"][number]
		function = report["functions"][frame["function"]]
		found.append((function["name"], function["file"], frame["line"]))
	return found


@test
def lines_of_a_jitdump():
	need_x86()
	with Program("jitted", os.path.dirname(scratch("x"))) as program:
		report = json.loads(sonde("profile", "--format", "json", "--lines", "-U", "-F", 499, "-p", program.pid, 2, want=0).out)

	def error_of(stack):
		jit = [frame for frame in stack.user if frame[0].startswith("jit_")]
		if [frame[0] for frame in jit] != ["jit_outer", "jit_inner"] or any(frame[1] != "/made/up/source.jit" for frame in jit):
			return "no such frames"
		if jit[0][2] != CALL_LINE:
			return "called in line %d" % jit[0][2]
		return None if jit[1][2] in INNER_LINES else "in line %d" % jit[1][2]

	class Lines(Stack):
		def __str__(self):
			return "%6d %s" % (self.count, self.user)
	stacks = [Lines(sample["comm"], frames_of(report, sample), [], sample["values"][0]) for sample in report["samples"]]
	share = check_exact(stacks, error_of, at_least=50)
	in_loop = sum(stack.count for stack in stacks if stack.user[-1][2] == 21)
	check(in_loop > total(stacks) * 0.9, "%d of %d samples are in the loop" % (in_loop, total(stacks)))
	return "%.4f" % share


@test
def jitdump_of_a_command_that_has_ended():
	"""The jitdump is found wherever it is, because we started the command. The run is longer than mappings of ended processes are remembered
	(2 s)."""
	need_x86()
	with Program("jitted", os.path.dirname(scratch("x"))) as program: # builds it, and prints its chain
		error_of, path = is_chain(program), program.argv[0]
	elsewhere = os.path.join(os.getcwd(), "jit-of-tests")
	os.makedirs(elsewhere, exist_ok=True)
	try:
		result = sonde("profile", "-f", "-a", "-U", "-F", 499, "-o", scratch("ended.folded"), "--", path, "1.5", elsewhere, want=0)
		with open(scratch("ended.folded"), encoding="utf-8") as file:
			stacks = [stack for stack in parse_folded(file.read()) if "run" in stack.user]
		check(stacks, lambda: str(result))
		return "%.4f" % check_exact(stacks, error_of, at_least=50)
	finally:
		for name in os.listdir(elsewhere):
			os.unlink(os.path.join(elsewhere, name))
		os.rmdir(elsewhere)


@test
def jitdump_of_a_process_that_has_ended():
	"""The process is not our command: jitdumps are read only below /tmp, where everybody may write. It ends 4 s before the report."""
	need_x86()
	folder = os.path.dirname(scratch("x"))
	if not folder.startswith("/tmp/"):
		skip("the directory of this test is not below /tmp")
	with Program("jitted", folder) as program:
		error_of = is_chain(program)
		with Background("profile", "-f", "-a", "-U", "-F", 499, "-p", program.pid) as profiler:
			time.sleep(3) # sampling begins within one of them
			program.process.kill()
			program.process.wait()
			time.sleep(4)
			profiler.send(signal.SIGINT)
			result = profiler.finish()
	check(result.code in (0, 130), lambda: str(result))
	return "%.4f" % check_exact(parse_folded(result.out), error_of, at_least=50)


class Contained(Program):
	"""The same program as number 1 of a pid namespace, with another /tmp."""

	def __init__(self, *args):
		folder = fresh_folder("contained-tmp")
		shutil.copy(build("jitted"), folder)
		super().__init__("jitted", *args, path=["unshare", "-m", "--propagation", "private", "-p", "--fork", "--kill-child", "--", "sh", "-c",
			'mount --bind "$0" /tmp && mount -t proc proc /proc && exec /tmp/jitted "$@"', folder])

	def __enter__(self):
		super().__enter__()
		with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid), encoding="ascii") as file:
			self.pid = int(file.read().split()[0])
		return self


def need_namespaces():
	need_x86()
	if run(["unshare", "-m", "-p", "--fork", "true"]).code:
		skip("no namespaces")


@test
def perf_map_in_a_container():
	need_namespaces()
	with Contained("map") as program:
		return "%.4f" % check_exact(folded(program.pid), is_chain(program), at_least=50)


def names_after_the_end(program):
	"""The program ends during the run, and its files disappear with it."""
	error_of = is_chain(program)
	with Background("profile", "-f", "-a", "-U", "-F", 499, "-p", program.pid) as profiler:
		time.sleep(2.5) # sampling begins within one of them
		program.process.kill()
		program.process.wait()
		leave_no_map(program.pid)
		time.sleep(0.5)
		profiler.send(signal.SIGINT)
		result = profiler.finish()
	check(result.code in (0, 130), lambda: str(result))
	return "%.4f" % check_exact(parse_folded(result.out), error_of, at_least=50)


@test
def perf_map_of_a_container_that_has_ended():
	need_namespaces()
	with Contained("map") as program:
		return names_after_the_end(program)


@test
def jitdump_of_a_container_that_has_ended():
	need_namespaces()
	with Contained("/tmp") as program:
		return names_after_the_end(program)


@test
def perf_map_that_its_process_removed():
	need_x86()
	with Program("jitted", "map") as program:
		return names_after_the_end(program)


@test
def code_that_is_written_anew_in_place():
	"""Frame information derived from the old instructions is not used for the new ones."""
	need_x86()
	with Program("rewrites") as program:
		try:
			stacks = [stack for stack in folded(program.pid) if "jit_inner" in stack.user]
			return "%.4f" % check_exact(stacks, lambda stack: chain_error(stack, program.chains["rewrites"]), minimum=1, at_least=50)
		finally:
			leave_no_map(program.pid)


# --- third-party writers ----------------------------------------------------------------------------------------------------------------

SCRIPT = """
function spinAlone(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) | 0; return s; }
function callsSpin(n) { let s = 0; for (let i = 0; i < 200; i++) s ^= spinAlone(n); return s; }
let sum = 0;
const begin = Date.now();
let late = null;
console.log("ready");
while (Date.now() - begin < Number(process.argv[2])) {
	sum ^= callsSpin(20000);
	if (!late && Date.now() - begin > 1200)
		late = new Function("n", "return (function appearsLate(n) { let s = 1; for (let i = 0; i < n; i++) s = (s * 33 + i) | 0; return s; })(n);");
	for (let i = 0; late && i < 100; i++)
		sum ^= late(20000);
}
console.log(sum);
"""


def node_stacks(*options):
	"""Returns stacks of the script while it runs."""
	need_bpf()
	node = find_tool("node")
	if not node:
		skip("no node")
	with open(scratch("spin.js"), "w", encoding="ascii") as file:
		file.write(SCRIPT)
	with subprocess.Popen([node, "--no-turbo-inlining", *options, scratch("spin.js"), "60000"], cwd=os.path.dirname(scratch("x")), stdout=subprocess.PIPE) as process:
		try:
			process.stdout.readline()
			return folded(process.pid, seconds=4)
		finally:
			process.kill()
			process.wait()
			leave_no_map(process.pid)


JS_FUNCTION = r"(?:(?:JS|LazyCompile|Function):.?)?(%s)(?: |$)" # as sonde's step of V8 names it; in a map with V8's words, of node 20 and of node 18


def check_javascript(stacks):
	"""The three functions are in the stacks, callers above callees. The last function did not exist when sampling began."""
	seen = {name: sum(stack.count for stack in stacks if any(re.match(JS_FUNCTION % name, frame) for frame in stack.user)) for name in
		("spinAlone", "callsSpin", "appearsLate")}
	check(all(count >= 20 for count in seen.values()), lambda: "%s\n%s" % (seen, "\n".join(map(str, stacks[:10]))))
	for stack in stacks:
		names = [match.group(1) for match in (re.match(JS_FUNCTION % "spinAlone|callsSpin|appearsLate", frame) for frame in stack.user) if match]
		check("appearsLate" not in names or names == ["appearsLate"], lambda: str(stack))
	return ", ".join("%s %d of %d" % (name, count, total(stacks)) for name, count in seen.items())


@test
def node_with_a_perf_map():
	return check_javascript(node_stacks("--perf-basic-prof"))


@test
def node_without_names():
	"""Node's builtins have symbols and no rows. Rows read off the code of some of them cost the other builtins nothing: those have only
	frame pointers."""
	stacks = node_stacks()
	whole = sum(stack.count for stack in stacks if re.match(r"(_start|__clone3|clone3|clone|\[libc\.so.*)$", stack.user[0]))
	check(total(stacks) >= 20 and whole > total(stacks) * 0.9, lambda: "%d of %d are whole\n%s" % (whole, total(stacks), "\n".join(map(str, stacks[:10]))))
	return "%d of %d are whole" % (whole, total(stacks))


@test
def node_with_a_jitdump():
	"""The command ends: V8 writes through a buffer, so the last functions are not in the file while it runs."""
	need_bpf()
	node = find_tool("node")
	if not node:
		skip("no node")
	with open(scratch("spin.js"), "w", encoding="ascii") as file:
		file.write(SCRIPT)
	sonde("profile", "-f", "-a", "-U", "-F", 499, "-o", scratch("node.folded"), "--", node, "--no-turbo-inlining", "--perf-prof", scratch("spin.js"), "4000", want=0,
		cwd=os.path.dirname(scratch("x")))
	with open(scratch("node.folded"), encoding="utf-8") as file:
		return check_javascript(parse_folded(file.read()))


SPINE = ["run", "loops", "switches", "catches", "doubles"] + ["recurs"] * 8 + ["calls", "works"]
STUB = "[stub: " # of the JVM: on the way to the called method, or to the exception handler and the JVM's own code


def spine_error(stack):
	"""Checks a stack of the thread of tests/programs/Spine.java: it is complete above the stub that calls into Java."""
	calls = [i for i, frame in enumerate(stack.user) if frame.startswith("JavaCalls::call_helper")]
	if not calls:
		return None # the JVM's own
	names = []
	for frame in stack.user[calls[0] + 2:]:
		match = re.match(r"Spine(?:\$\w+)?\.(\w+) \(", frame)
		names.append(match.group(1) if match else frame)
	for i, (name, want) in enumerate(zip(names, SPINE)):
		if name != want:
			is_other = want == "loops" and name not in SPINE or name.startswith(STUB) and not set(names[i:]) & set(SPINE) # it also reads the clock
			return None if is_other else "a caller is missing"
	return None


def check_spine(*options):
	"""The code keeps no frame pointer but saves rbp: each of its callers is shown, or a mark is."""
	need_bpf()
	java, javac = find_tool("java"), find_tool("javac")
	if not java or not javac:
		skip("no java")
	folder = fresh_folder("spine")
	built = run([javac, "-d", folder, os.path.join(SOURCES, "Spine.java")], timeout=120)
	check_equal(built.code, 0, built.err)
	with subprocess.Popen([java, "-Xcomp", "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Spine*.*", *options, "-cp", folder, "Spine", "300"],
		stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
		try:
			process.stdout.readline() # all is compiled by then
			stacks = [stack for stack in folded(process.pid, seconds=3) if stack.comm == "spine"]
		finally:
			process.kill()
			process.wait()
	complete = [stack for stack in stacks if not re.match(r"\[(?!unknown\]|libc\.so)", stack.user[0])]
	wrong = [(spine_error(stack), stack) for stack in complete if spine_error(stack)]
	check(not wrong, lambda: "%d of %d\n%s" % (sum(stack.count for _, stack in wrong), total(stacks), "\n".join("%s: %s" % one for one in wrong[:5])))
	check(total(complete) >= 0.9 * total(stacks) and total(complete) >= 50, lambda: "%d of %d\n%s" % (total(complete), total(stacks), "\n".join(map(str, stacks[:10]))))
	return "%d of %d" % (total(complete), total(stacks))


@test
def java_of_the_first_compiler():
	return check_spine("-XX:TieredStopAtLevel=1")


@test
def java_of_the_second_compiler():
	return check_spine("-XX:-TieredCompilation")


# --- BPF programs -----------------------------------------------------------------------------------------------------------------------

class Busy(Program):
	"""bpf_busy, with the name that the kernel gives its program."""

	def read_line(self, line):
		if line.startswith("bpf "):
			self.name = line[4:] + " [bpf]"
		return super().read_line(line)


def runners(stacks):
	"""Returns (stack, frame below) for the stacks in which the kernel function that runs a program over and over calls a function."""
	found = []
	for stack in stacks:
		at = next((i for i, frame in enumerate(stack.kernel) if re.match(r"bpf_test_run(\.\w+)*$", frame)), None)
		if at is not None and at + 1 < len(stack.kernel):
			found.append((stack, stack.kernel[at + 1]))
	return found


def need_named_bpf():
	need_bpf()
	with open("/proc/kallsyms", encoding="ascii") as file:
		if not any(int(line.split(" ", 1)[0], 16) for _, line in zip(range(100), file)):
			skip("the kernel hides its addresses")


@test
def bpf_program_by_name():
	need_named_bpf()
	with Busy("bpf_busy") as program:
		stacks = parse_folded(sonde("profile", "-f", "-a", "-F", 499, "-p", program.pid, 2, want=0).out)
	named = sum(stack.count for stack, below in runners(stacks) if below == program.name and stack.kernel[-1] == program.name)
	others = {frame for stack in stacks for frame in stack.kernel if frame.endswith("[bpf]")} - {program.name}
	check(named * 2 > total(stacks) and named >= 50, lambda: "\n".join(map(str, stacks[:10])))
	check(not others, "%s" % others)
	return "%d of %d" % (named, total(stacks))


def is_gone(name):
	for _ in range(1000):
		with open("/proc/kallsyms", encoding="ascii") as file:
			if not any(name.split()[0] in line for line in file):
				return
		time.sleep(0.02)
	check(False, "it is still there")


def check_unloaded(program, then):
	"""The program is unloaded before the report is made."""
	with Background("profile", "-f", "-a", "-F", 499, "-p", program.pid) as profiler:
		time.sleep(3) # sampling begins within one of them
		os.kill(program.pid, signal.SIGUSR1)
		then()
		is_gone(program.name)
		profiler.send(signal.SIGINT)
		result = profiler.finish()
	stacks = parse_folded(result.out)
	nameless = sum(stack.count for stack, below in runners(stacks) if below == "[unknown]")
	wrong = {frame for stack in stacks for frame in stack.kernel if frame.endswith("[bpf]")}
	check(not wrong, "%s" % wrong)
	check(nameless * 2 > total(stacks) and nameless >= 50, lambda: "\n".join(map(str, stacks[:10])))
	return "%d of %d" % (nameless, total(stacks))


@test
def bpf_program_that_was_unloaded():
	"""The address of an unloaded program resolves to no other program: neither to the one beside it, nor to our own."""
	need_named_bpf()
	with Busy("bpf_busy") as program:
		return check_unloaded(program, lambda: None)


@test
def bpf_program_in_whose_place_is_another():
	"""Nor does it resolve to a program loaded at that address later: the test loads one there, unless another process was faster."""
	need_named_bpf()
	told = []
	with Busy("bpf_busy", "again") as program:
		note = check_unloaded(program, lambda: told.append(program.process.stdout.readline().decode().strip()))
	check(told[0] in ("taken 0", "taken 1"), told)
	return "%s, %s" % (note, told[0])


if __name__ == "__main__":
	run_tests()
