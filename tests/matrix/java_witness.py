#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""async-profiler, which runs in the JVM, measures the same run of tests/programs/JavaWork.java: each method's share is the same, and not more stacks are broken."""
import collections
import glob
import json
import os
import re
import shutil
import subprocess
import time

from fetch import get, kept # sets the path to harness
from harness import SOURCES, check, cpu_seconds, fresh_folder, need_bpf, run, run_tests, scratch, skip, sonde, test # noqa: E402

VERSION = "4.2"
MOST_SECONDS = 180
HZ = 249 # timers of a thread's own time have no more ticks on most kernels
AT_LEAST = 5000 # samples of each
MAX_POINTS = 2
ROOT = "JavaWork.work"


def agent():
	def make(folder):
		get(["mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy", "-Dartifact=tools.profiler:async-profiler:" + VERSION, "-DoutputDirectory=" + folder],
			"async-profiler " + VERSION)
		get(["unzip", "-qo", glob.glob(os.path.join(folder, "*.jar"))[0], "linux-x64/*", "-d", folder], "its library")
	return os.path.join(kept("async-profiler-" + VERSION, make), "linux-x64", "libasyncProfiler.so")


def tell(pid, library, options):
	done = run([shutil.which("jcmd"), str(pid), "JVMTI.agent_load", library, '"%s"' % options])
	check(done.code == 0 and "return code: 0" in done.out, lambda: done.out + done.err)


def both(java, library, options):
	"""(sonde's stacks, the agent's): [([Java's methods, root to leaf], is it whole, samples)] of the threads that work."""
	folder, path = fresh_folder("java_witness"), scratch("collapsed")
	done = run([shutil.which("javac"), "-nowarn", "-Xlint:-options", "--release", "8", "-d", folder, os.path.join(SOURCES, "JavaWork.java")])
	check(done.code == 0, lambda: done.err)
	with subprocess.Popen([java, *options, "-agentpath:" + library, "-cp", folder, "JavaWork"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
		try:
			check(b"ready" in process.stdout.readline(), "it does not start")
			begin = cpu_seconds(process.pid)
			time.sleep(3)
			seconds = min(MOST_SECONDS, int(2 * AT_LEAST / HZ * 3 / max(cpu_seconds(process.pid) - begin, 0.1)) + 1) # the share of the processors that it gets
			tell(process.pid, library, "start,event=ctimer,interval=%dus,threads" % (1000000 // HZ))
			report = json.loads(sonde("profile", "--format", "json", "-U", "-F", HZ, "-p", process.pid, seconds, want=0, timeout=seconds + 60).out)
			tell(process.pid, library, "stop,collapsed,dot,ann,threads,file=" + path)
		finally:
			process.kill()
	return stacks_of(report), collapsed(path)


def stacks_of(report):
	stacks = []
	for sample in report["samples"]:
		if not sample["comm"].startswith("work"):
			continue
		frames = [(frame["kind"], report["functions"][frame["function"]]["name"]) for frame in (report["frames"][number] for number in report["stacks"][sample["user_stack"]][::-1])]
		java = [name for kind, name in frames if kind == "java" and not name.startswith("[stub")]
		stacks.append((java, ROOT in java and not any(kind == "mark" for kind, name in frames), sample["values"][0]))
	return stacks


def collapsed(path):
	stacks = []
	with open(path, encoding="utf-8") as file:
		for line in file:
			frames, _, nr = line.rpartition(" ")
			frames = frames.split(";")
			if not frames[0].startswith("[work"):
				continue
			java = [frame[:-4] for frame in frames if re.search(r"_\[[ji01]\]$", frame)]
			is_whole = ROOT in java and not any(re.match(r"\[(unknown|not_walkable|break|no_Java|deoptimization|safepoint|skipped|thread_exit)", frame) for frame in frames[1:])
			stacks.append((java, is_whole, int(nr)))
	return stacks


def shares(stacks):
	"""(samples, share of broken ones in %, {("anywhere" or "leaf", method): % of the others}). Lambdas and hidden classes are named by addresses. On a
	busy machine up to 10 % of the agent's are broken: they would be missing in each method's share."""
	counts, nr, broken = collections.Counter(), 0, 0
	for methods, is_whole, samples in stacks:
		nr += samples
		if not is_whole:
			broken += samples
			continue
		shown = [method for method in methods if "$$" not in method and not method.startswith("java.lang.invoke.")]
		counts.update({("anywhere", method): samples for method in set(shown)})
		if shown:
			counts[("leaf", shown[-1])] += samples
	return nr, 100 * broken / max(nr, 1), {key: 100 * count / (nr - broken) for key, count in counts.items()}


def compare(java, options):
	need_bpf()
	if not shutil.which("jcmd") or not shutil.which("javac"):
		skip("no JDK")
	ours, theirs = map(shares, both(java, agent(), options))
	check(min(ours[0], theirs[0]) >= AT_LEAST, lambda: "too few samples: %d, %d" % (ours[0], theirs[0]))
	differences = sorted(((abs(ours[2].get(key, 0) - theirs[2].get(key, 0)), key, ours[2].get(key, 0), theirs[2].get(key, 0)) for key in {*ours[2], *theirs[2]}), reverse=True)
	print("#   %s: sonde %d samples, %.2f %% broken; async-profiler %d, %.2f %%; the largest differences of %d: %s" % (" ".join(options) or "default", ours[0], ours[1], theirs[0], theirs[1], len(differences),
		"; ".join("%s %s %.2f %.2f" % (*key, a, b) for _, key, a, b in differences[:4])))
	check(differences[0][0] <= MAX_POINTS, lambda: "shares differ: %r" % differences[:8])
	check(ours[1] <= theirs[1], lambda: "broken: %.2f %%, of async-profiler's %.2f %%" % (ours[1], theirs[1]))


def register(java, name, options):
	def check_it():
		compare(java, options)
	check_it.__name__ = "java_as_async_profiler_%s_%s" % (os.path.basename(os.path.dirname(os.path.dirname(java))), name)
	test(check_it)


for path in sorted(set(map(os.path.realpath, ["/usr/bin/java", *glob.glob("/usr/lib/jvm/*/bin/java")]))):
	if os.access(path, os.X_OK):
		register(path, "default", [])
		register(path, "interpreted", ["-Xint"])

if __name__ == "__main__":
	run_tests(seconds=600)
