#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frames of HotSpot among the native ones: tests/programs/JavaSpin.java reports its threads' stacks. SONDE_JAVAS=path:path... selects the JVMs, SONDE_JAVA_MODES="c1 c2" how they run the
programs; the default is the machine's own, and some ways (system/jit.py has code of both compilers); tests/matrix/java.py runs all."""
import json
import os
import re
import shutil
import subprocess
import time

from harness import SOURCES, check, fresh_folder, need_bpf, run, run_tests, scratch, skip, sonde, test
from spins import Spin, stack_of, told_by

SCENARIOS = ["spin", "recursion", "mixed", "sides", "through_c", "compare", "handle", "monitor", "deoptimized", "copies", "broken", "stuck"]
GAPS = {"broken": 10, "stuck": 11} # scenarios with native code whose caller is not found, and how often
GAP = "[frames without unwind info]"
FEW = ["mixed", "handle"]
CHAIN = ["JavaSpin.c1", "JavaSpin.c2", "JavaSpin.c3", "JavaSpin.c4", "JavaSpin$", "JavaSpin.c5", "JavaSpin.c6", "JavaSpin.c7", "JavaSpin.c8", "JavaSpin.c9"]
LIBRARY = ("java.lang.", "jdk.internal.")
HIDDEN = ("java.lang.invoke.", "java.lang.Thread.runWith", "[stub: ") # Java's own stack traces leave these out, as they do "$$Lambda"
EXPERIMENTAL = ["-XX:+UnlockExperimentalVMOptions"] # some collectors are, in some versions
# how Java is run: its options, and what it runs
MODES = {
	"default": ([], SCENARIOS),
	"interpreted": (["-Xint"], SCENARIOS),
	"c1": (["-XX:TieredStopAtLevel=1"], SCENARIOS),
	"c2": (["-XX:-TieredCompilation"], SCENARIOS),
	"frame_pointers": (["-XX:+PreserveFramePointer"], FEW),
	# every other method of the chain is interpreted: much time in the adapters
	"adapters": (["-XX:CompileCommand=quiet", *("-XX:CompileCommand=exclude,JavaSpin::%s" % name for name in ("c1", "c3", "c5", "c7", "c9"))], FEW),
	"one_heap": (["-XX:-SegmentedCodeCache"], FEW),
	"serial": (["-XX:+UseSerialGC"], FEW),
	"parallel": (["-XX:+UseParallelGC"], FEW),
	"g1": (["-XX:+UseG1GC"], FEW),
	"z": ([*EXPERIMENTAL, "-XX:+UseZGC"], FEW),
	"shenandoah": ([*EXPERIMENTAL, "-XX:+UseShenandoahGC"], FEW),
	"epsilon": ([*EXPERIMENTAL, "-XX:+UseEpsilonGC", "-Xmx8g", "-Xlog:disable"], FEW),
	"virtual": ([], ["virtual", "resumed"]),
	"virtual_interpreted": (["-Xint"], ["virtual", "resumed"]),
	"virtual_compiled": (["-Xcomp", "-XX:CompileCommand=quiet", "-XX:CompileCommand=compileonly,JavaSpin::descend"], ["virtual", "resumed"]), # between interpreted ones
	"virtual_wide": (["-XX:-UseCompressedOops"], ["virtual", "resumed"]),
	"virtual_serial": (["-XX:+UseSerialGC"], ["virtual", "resumed"]),
	"virtual_z": (["-XX:+UseZGC"], ["virtual", "resumed"]),
	"virtual_z_generations": (["-XX:+UseZGC", "-XX:+IgnoreUnrecognizedVMOptions", "-XX:+ZGenerational"], ["virtual", "resumed"]),
}
# From when ZGC begins to move objects until the thread goes on to wait, or the next collection: its references may be to an object's old place.
MAY_BE_MARKED = ("virtual_z", "virtual_z_generations")
# the root of a virtual thread's stack, in its carrier
CARRIER = ["java.util.concurrent.ForkJoinWorkerThread.run", "java.util.concurrent.ForkJoinPool.runWorker", "java.lang.VirtualThread.runContinuation", "jdk.internal.vm.Continuation.run",
	"jdk.internal.vm.Continuation.enterSpecial"]
VM_THREADS = r"GC Thread|G1 |ZWorker|ZDriver|XWorker|Shenandoah|C[12] Compiler|VM Thread"
ON_HEAP = "[java: frames on the heap]"


def build():
	"""The folder of the classes and the library."""
	javac, folder = shutil.which("javac"), fresh_folder("java")
	if not javac:
		skip("no javac")
	for command in ([javac, "-nowarn", "-Xlint:-options", "--release", "8", "-d", folder, os.path.join(SOURCES, "JavaSpin.java")],
		["cc", "-shared", "-fPIC", "-O2", "-o", os.path.join(folder, "library.so"), os.path.join(SOURCES, "java_callback.c")]):
		done = run(command)
		check(done.code == 0, lambda done=done: done.err)
	return folder


def spin(java, folder, options, scenarios):
	"""A JVM that runs the scenarios."""
	return Spin([java, *options, "-cp", folder, "JavaSpin", os.path.join(folder, "library.so"), *scenarios])


def said_by(process, nr):
	"""As told_by; JavaSpin's lines below 0 are not known."""
	return {tid: (scenario, [(name, file, max(line, 0)) for name, file, line in frames]) for tid, (scenario, frames) in told_by(process, nr).items()}


def virtual_error(frames, want, may_be_marked):
	"""The same for a virtual thread, whose carrier's frames are below its own. Of one that waited, most frames are on the heap. `may_be_marked`: there may be a mark in their place."""
	java = [frame for frame in frames if frame[0] in ("java", "mark")]
	names, called = [frame[1] for frame in java], 0
	for i, name in enumerate(names):
		if called < len(CARRIER) and name == CARRIER[called]:
			called, last = called + 1, i
	if called < len(CARRIER):
		return "no %s: %r" % (CARRIER[called], names[:16])
	if any(name.startswith("[stub: StubRoutines (cont") for name in names[last:]) and ON_HEAP not in names:
		return "the stub that brings frames from the heap is one of them"
	if may_be_marked and names[last + 1] == ON_HEAP:
		above = [name for name in names[last + 2:] if is_shown(name)]
		return chain_error(java[last + 2:], want[-1 - above.index(want[-1][0]):]) if want[-1][0] in above else "no %s" % want[-1][0]
	while last < len(java) and names[last] != want[0][0]:
		last += 1
	return chain_error([frame for frame in frames if frame[0] == "mark"] + java[last:], want)


def is_shown(name):
	"""In Java's own stack traces."""
	return not name.startswith(HIDDEN) and "$$Lambda" not in name


def chain_error(frames, want):
	"""None when the frames of Java are what the thread reported, with the first few of CHAIN above."""
	marks = [frame[1] for frame in frames if frame[0] == "mark"]
	if marks:
		return "mark: %s" % marks[0]
	java = [frame[1:] for frame in frames if frame[0] == "java" and is_shown(frame[1])]
	if [frame[:2] for frame in java[:len(want)]] != [frame[:2] for frame in want]:
		return "another stack: %r" % (next(((a, b) for a, b in zip(java, want) if a[:2] != b[:2]), "fewer frames"),)
	wrong = next(((a, b) for a, b in zip(java[:len(want) - 1], want) if a[2] != b[2]), None)
	if wrong:
		return "another line: %r" % (wrong,)
	above = [frame[0] for frame in java[len(want):]]
	while above and above[-1].startswith(LIBRARY):
		above.pop()
	if len(above) > len(CHAIN) or not all(name.startswith(called) for name, called in zip(above, CHAIN)):
		return "not the chain: %r" % above
	return None


def order_error(frames):
	"""None when C is where it called Java, and the thread's start is C's."""
	if frames[0][0] != "native":
		return "the root is not native"
	for caller, callee in zip(frames, frames[1:]):
		if caller[1] in ("JavaSpin.sort", "JavaSpin.callBack") and callee[0] not in ("native", "java") or caller[1] == "JavaSpin.sort" and callee[0] == "java" and not callee[1].startswith("[stub"):
			return "no native frames above %s" % caller[1]
	if sum(frame[1] == "JavaSpin.sort" for frame in frames) > sum(frame[1] == "Java_JavaSpin_sort" for frame in frames):
		return "frames of the library are missing"
	return None


def depth_error(scenario, frames):
	"""None when a stack that changes sides is whole: 500 frames, and so many changes between Java's and native ones."""
	nr_changes = sum(before[0] != after[0] for before, after in zip(frames, frames[1:]))
	if len(frames) < 500 and scenario in ("sides", "through_c") or nr_changes < {"sides": 40, "through_c": 28}.get(scenario, 0):
		return "%d frames, %d changes" % (len(frames), nr_changes)
	return None


def gap_error(scenario, frames, want):
	"""None when a mark is where native frames are missing, above the Java method that has called them, and all else is whole."""
	at = [i for i, frame in enumerate(frames) if frame[:2] == ("mark", GAP)]
	if len(at) != GAPS[scenario] or any(frames[i - 1][1] != "JavaSpin.breakChain" or frames[i + 1][0] != "native" for i in at):
		return "%d gaps, not %d, or elsewhere" % (len(at), GAPS[scenario])
	frames = [frame for i, frame in enumerate(frames) if i not in at]
	if scenario == "stuck" and (frames[-2][1] != "JavaSpin.breakChain" or frames[-1][0] != "native"):
		return "the leaf is %s" % frames[-1][1]
	return chain_error(frames[:-2] if scenario == "stuck" else frames, want) or order_error(frames)


def stack_error(mode, scenario, frames, want):
	if scenario in ("virtual", "resumed"):
		return virtual_error(frames, want, mode in MAY_BE_MARKED)
	if scenario in GAPS:
		return gap_error(scenario, frames, want)
	return chain_error(frames, want) or order_error(frames) or depth_error(scenario, frames)


def check_java(java, mode):
	need_bpf()
	options, scenarios = MODES[mode]
	refused = run([java, *options, "-version"])
	if refused.code:
		skip("%s: %s" % (java, (refused.out + refused.err).splitlines()[0]))
	if "virtual" in scenarios and run([java, "--list-modules"]).out.split("java.base@")[-1][:2] < "21":
		skip("%s has no virtual threads" % java)
	folder, right, wrong = build(), {}, {}
	with spin(java, folder, options, scenarios) as running:
		told = said_by(running.process, len(scenarios))
		for _ in range(5):
			report = json.loads(sonde("profile", "--format", "json", "-U", "-F", 999, "-p", running.process.pid, 2 if scenarios is SCENARIOS else 1, want=0).out)
			for sample in report["samples"]:
				if sample["tid"] not in told:
					continue # compilers, collectors
				scenario, want = told[sample["tid"]]
				frames = stack_of(report, sample)
				error = stack_error(mode, scenario, frames, want)
				counts = wrong.setdefault(scenario, {}) if error else right
				counts[error or scenario] = counts.get(error or scenario, 0) + sample["values"][0]
			if len(right) == len(scenarios) and min(right.values()) >= 50:
				break
	for scenario in scenarios:
		nr_right, nr_wrong = right.get(scenario, 0), sum(wrong.get(scenario, {}).values())
		check(nr_right >= 50 and nr_wrong <= 0.02 * (nr_right + nr_wrong), lambda: "%s, %s: %d samples are right; wrong: %r" % (mode, scenario, nr_right, wrong.get(scenario)))
	return " ".join("%s:%d" % each for each in right.items())


def check_reloaded(java, options=("-Xint",)):
	"""A class that is loaded again, with another method, has its data where the first one had them."""
	need_bpf()
	folder, javac, counts = fresh_folder("java_reload"), shutil.which("javac"), {}
	if not javac:
		skip("no javac")
	done = run([javac, "-nowarn", "-Xlint:-options", "--release", "8", "-d", folder, os.path.join(SOURCES, "JavaReload.java")])
	check(done.code == 0, lambda: done.err)
	with subprocess.Popen([java, *options, "-XX:+UseSerialGC", "-Xmx32m", "-cp", folder, "JavaReload"], stdin=subprocess.DEVNULL) as process:
		try:
			for _ in range(3):
				report = json.loads(sonde("profile", "--format", "json", "-U", "-F", 499, "-p", process.pid, 4, want=0).out)
				for sample in report["samples"]:
					names = [frame[1].rpartition(".")[2] for frame in stack_of(report, sample)]
					pair = tuple(name for name in names if name in ("runFirst", "runOther", "first", "other"))
					counts[pair] = counts.get(pair, 0) + sample["values"][0]
				if min(counts.get(("runFirst", "first"), 0), counts.get(("runOther", "other"), 0)) >= 50:
					break
		finally:
			process.kill()
	check(min(counts.get(("runFirst", "first"), 0), counts.get(("runOther", "other"), 0)) >= 50, lambda: "too few: %r" % counts)
	check(not {("runFirst", "other"), ("runOther", "first")} & set(counts), lambda: "a method has the name of another version's: %r" % counts)
	return "%r" % counts


def printed_by(pid):
	"""{tid: [(name, line), ...] root to leaf} of all threads with Java code, by the VM's own word. Line 0: none."""
	jcmd = shutil.which("jcmd")
	if not jcmd:
		skip("no jcmd")
	done, threads, frames = run([jcmd, str(pid), "Thread.print"]), {}, []
	check(done.code == 0, lambda: done.out + done.err)
	for line in done.out.splitlines():
		thread, frame = re.match(r'".*" .*\bnid=(\w+) ', line), re.match(r"\s+at ([^(]+)\((?:.*/)?(?:.*:(\d+)|.*)\)$", line)
		if thread:
			frames = threads.setdefault(int(thread[1], 0), [])
		elif frame and is_shown(frame[1]):
			frames.insert(0, (frame[1], int(frame[2] or 0)))
	return {tid: frames for tid, frames in threads.items() if frames}


def check_printed(java):
	"""Threads that wait, whole; and those that spin, up to there."""
	need_bpf()
	folder, waits, nr, nr_marked, wrong = build(), {}, 0, 0, {}
	with spin(java, folder, [], SCENARIOS) as running:
		told = said_by(running.process, len(SCENARIOS))
		printed = printed_by(running.process.pid)
		report = json.loads(sonde("wall", "--format", "json", "-U", "-F", 499, "-p", running.process.pid, 2, want=0).out)
		check(printed_by(running.process.pid).keys() == printed.keys(), "other threads than before")
	check(set(told) < set(printed), lambda: "threads are missing in %r" % sorted(printed))
	for sample in report["samples"]:
		want = printed.get(sample["tid"])
		if not want:
			continue
		frames = stack_of(report, sample)
		if any(frame[1] == "[not sampled]" for frame in frames): # it ran between two ticks
			continue
		got = [(name, line) for kind, name, file, line in frames if kind == "java" and is_shown(name)]
		if sample["tid"] in told:
			root = max(i for i, frame in enumerate(want) if frame[0] in ("JavaSpin.spin", "JavaSpin.copies", "JavaSpin.breakChain")) # its line and what it calls change
			want, got = want[:root], got[:root]
			is_marked = any(frame[0] == "mark" and frame[1] != GAP for frame in frames[1:]) # the first one is the thread's state
			nr, nr_marked = nr + 1, nr_marked + is_marked
		else:
			is_marked = False
			waits[sample["tid"]] = True
		if got != want and not is_marked:
			difference = str(next((pair for pair in zip(got, want) if pair[0] != pair[1]), (len(got), len(want))))
			wrong[difference] = wrong.get(difference, 0) + 1
	check(nr - nr_marked >= 50 and len(waits) >= 3 and nr_marked <= 0.2 * nr, lambda: "of %d stacks %d are marked; threads that wait: %r" % (nr, nr_marked, waits))
	check(not wrong, lambda: "of %d stacks, %d marked: %r" % (nr, nr_marked, wrong))
	return "%d stacks of threads that run, %d marked; %d threads that wait" % (nr, nr_marked, len(waits))


def check_reused(java):
	"""The same with compiled code, in a code cache that grows from little and is used again: both methods have been at one address, as the VM's log says."""
	log, at = scratch("compilation.log"), {"first": set(), "other": set()}
	counts = check_reloaded(java, ("-XX:TieredStopAtLevel=1", "-XX:InitialCodeCacheSize=160k", "-XX:ReservedCodeCacheSize=2496k", "-XX:+IgnoreUnrecognizedVMOptions", "-XX:NmethodSweepActivity=2000", "-XX:+UnlockDiagnosticVMOptions", "-XX:+LogCompilation", "-XX:LogFile=" + log))
	with open(log, encoding="utf-8", errors="replace") as file:
		for address, method in re.findall(r"<nmethod [^>]*? address='(\w+)'[^>]*? method='JavaReload\$Version (\w+) ", file.read()):
			at.get(method, set()).add(address)
	nr = len(at["first"] & at["other"])
	check(nr, lambda: "no address was used by both: %r" % at)
	return "%s; %d of %d addresses were used by both" % (counts, nr, len(at["first"] | at["other"]))


def check_vm_threads(java):
	"""The compilers' and the collectors' stacks are the VM's native frames, up to the thread's start."""
	need_bpf()
	folder, javac, kinds = fresh_folder("java_vm"), shutil.which("javac"), {}
	if not javac:
		skip("no javac")
	done = run([javac, "-nowarn", "-Xlint:-options", "--release", "8", "-d", folder, os.path.join(SOURCES, "JavaWork.java")])
	check(done.code == 0, lambda: done.err)
	with subprocess.Popen([java, "-Xmx64m", "-cp", folder, "JavaWork"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
		try:
			for _ in range(5):
				report = json.loads(sonde("profile", "--format", "json", "-U", "-F", 499, "-p", process.pid, 3, want=0).out)
				for sample in report["samples"]:
					if re.match(VM_THREADS, sample["comm"]) and sample["user_stack"] is not None:
						key = sample["comm"].rstrip("0123456789#"), " ".join(sorted({frame[0] for frame in stack_of(report, sample)}))
						kinds[key] = kinds.get(key, 0) + sample["values"][0]
				if sum(kinds.values()) >= 200:
					break
		finally:
			process.kill()
	native = sum(nr for key, nr in kinds.items() if key[1] == "native")
	check(native >= 100 and native >= 0.98 * sum(kinds.values()), lambda: "kinds of frames: %r" % kinds)
	return "%r" % kinds


DOORS = {room: {(room + 1) % 8, (3 * room + 1) % 8} for room in range(8)} # of JavaMaze
INLINED = [["-XX:+UseG1GC"], ["-XX:+UseParallelGC"], ["-XX:+UseG1GC", "-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"]]


def check_inlined(java):
	"""No room is shown as called from one that has no door to it. The loop of `stay` has most of the time; it polls, in its own name, where loops are strip-mined: with G1, from 10 on."""
	need_bpf()
	folder, javac, shown = fresh_folder("java_maze"), shutil.which("javac"), []
	if not javac:
		skip("no javac")
	done = run([javac, "-nowarn", "-Xlint:-options", "--release", "8", "-d", folder, os.path.join(SOURCES, "JavaMaze.java")])
	check(done.code == 0, lambda: done.err)
	for options in INLINED:
		nr, nr_stay, nr_marked, wrong = 0, 0, 0, {}
		with subprocess.Popen([java, *options, "-cp", folder, "JavaMaze"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
			try:
				time.sleep(4)
				for _ in range(5):
					report = json.loads(sonde("profile", "--format", "json", "-U", "-F", 499, "-p", process.pid, 4, want=0).out)
					for sample in report["samples"]:
						frames = stack_of(report, sample)
						java_names, count = [frame[1] for frame in frames if frame[0] == "java"], sample["values"][0]
						rooms = [int(name[-1]) for name in java_names if re.match(r"JavaMaze\.room\d$", name)]
						if "JavaMaze.begin" not in java_names or not rooms:
							continue
						nr, nr_stay, nr_marked = nr + count, nr_stay + count * (java_names[-1] == "JavaMaze.stay"), nr_marked + count * any(frame[0] == "mark" for frame in frames)
						for pair in zip(rooms, rooms[1:]):
							if pair[1] not in DOORS[pair[0]]:
								wrong[pair] = wrong.get(pair, 0) + count
					if nr >= 1000:
						break
			finally:
				process.kill()
		shown.append("%d, %d in stay, %d marked" % (nr, nr_stay, nr_marked))
		check(nr >= 500 and not wrong, lambda: "%s: of %d samples are wrong: %r" % (options, nr, wrong))
		check(nr_marked <= 0.02 * nr, lambda: "%s: of %d samples %d are marked" % (options, nr, nr_marked))
		check("-XX:+UseG1GC" not in options or major(java) < 10 or nr_stay >= 0.4 * nr, lambda: "%s: of %d samples %d are in stay" % (options, nr, nr_stay))
	return "; ".join(shown)


def major(java):
	"""Of 8, 0."""
	return int((re.search(r"java\.base@(\d+)", run([java, "--list-modules"]).out) or [0, 0])[1])


CHECKS = {"inlined": check_inlined, "vm_threads": check_vm_threads, "reloaded": check_reloaded, "reused": check_reused, "printed": check_printed}


def register(java, mode):
	def check_it():
		if not os.access(java, os.X_OK):
			skip("no %s" % java)
		return CHECKS[mode](java) if mode in CHECKS else check_java(java, mode)
	check_it.__name__ = "java_%s" % mode
	test(check_it)


if __name__ == "__main__":
	for each in os.environ.get("SONDE_JAVAS", "/usr/bin/java").split(":"):
		for one in os.environ.get("SONDE_JAVA_MODES", "default interpreted adapters inlined reloaded reused vm_threads printed z shenandoah epsilon virtual virtual_interpreted").split():
			register(each, one)
	run_tests()
