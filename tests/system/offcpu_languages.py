#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What programs of other languages wait for: Python's interpreter lock, Go's netpoller, channels and system calls, a monitor of a JVM, Node's event
loop, each with the language's frames. The reference is the program's own report of its waits: at least the requested time, at most the time that the
call took."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from go_build import go_build # noqa: E402
from harness import SOURCES, check, find_tool, need_bpf, record, run, run_tests, skip, stolen, test # noqa: E402
from python_programs import pythons # noqa: E402

SECONDS = 3


class Waits:
	"""The waits in `sonde offcpu` of a command: .rows: (tid, comm, kind of wait, user frames root to leaf as (name, kind), seconds, count);
	.told: the program's report, a list of words for each name; .stolen: seconds that a host stole meanwhile."""

	def __init__(self, *command, timeout=100, **kwargs):
		before = stolen()
		report, self.result = record("offcpu", "--min", "0", "--", *command, timeout=timeout, **kwargs)
		self.stolen = stolen() - before
		frames = [(report["functions"][frame["function"]]["name"], frame["kind"]) for frame in report["frames"]]
		kinds = [kind["type"] for kind in report["value_types"]]
		self.rows = []
		for sample in report["samples"]:
			user, kernel = ([] if sample[side] is None else [frames[frame] for frame in report["stacks"][sample[side]]][::-1] for side in ("user_stack", "kernel_stack"))
			count, ns = (int(sample["values"][kinds.index(kind)]) for kind in ("waits", "blocked"))
			self.rows.append((sample["tid"], sample["comm"], (kernel or user)[-1][0].strip("[]"), user, ns / 1e9, count))
		self.told = {line.split()[0]: line.split()[1:] for line in self.result.out.splitlines() if line.split()}

	def of(self, tid=None, kind=None, comm=None, function=None):
		"""Returns seconds of a thread, of a kind, under a function."""
		return sum(seconds for tid_of, comm_of, kind_of, user, seconds, _ in self.rows if tid in (None, tid_of) and kind in (None, kind_of) and comm in (None, comm_of) and
			(not function or any(re.fullmatch(function, frame) for frame, _ in user)))

	def hottest(self, tid=None, nr=4):
		rows = sorted((row for row in self.rows if tid in (None, row[0])), key=lambda row: -row[4])[:nr]
		return "\n".join("%.3f s [%s] %s" % (row[4], row[2], ";".join(name for name, _ in row[3])) for row in rows)


def between(got, least, most, told):
	"""Within 2 %, plus the time that a loaded machine takes to resume a thread."""
	check(least * 0.98 <= got <= most * 1.02 + 0.005, lambda: "%f s, want %f to %f\n%s" % (got, least, most, told()))


# --- Python ----------------------------------------------------------------------------------------------------------------------------

def of_python(user):
	return [name for name, kind in user if kind == "python"]


def follows(frames, chain):
	"""Are these all of the frames from the first of them on?"""
	return chain[0] in frames and frames[frames.index(chain[0]):][:len(chain)] == chain


@test
def pythons_lock():
	"""Two threads compute: a thread off the CPU waited for the lock or the CPU, in the computing function. Its frames are Python's, or the
	mark that says they are unknown."""
	need_bpf()
	notes = []
	for python in pythons():
		if run([python, "-c", "import sys; sys.exit(sys.version_info < (3, 8))"]).code: # get_native_id
			continue
		waits = Waits(python, os.path.join(SOURCES, "gil.py"), SECONDS)
		for name in ("first", "second"):
			tid, elapsed, cpu = int(waits.told[name][0]), *map(float, waits.told[name][1:3])
			rows = [row for row in waits.rows if row[0] == tid]
			away = sum(row[4] for row in rows)
			between(away, elapsed - cpu - waits.stolen, elapsed - cpu + 0.05, lambda tid=tid: waits.hottest(tid)) # it lives slightly longer than it reports
			locked = [row for row in rows if row[2] == "futex"]
			check(sum(row[4] for row in locked) > 0.2 * (elapsed - cpu), lambda tid=tid: "no lock\n%s" % waits.hottest(tid))
			right = sum(row[4] for row in locked if follows(of_python(row[3]), [name, "compute"]))
			marked = sum(row[4] for row in locked if any(frame == "[python: frames not known]" for frame, _ in row[3]))
			check(right > 0.3 * sum(row[4] for row in locked), lambda tid=tid: "%f s with %s, compute, %f marked\n%s" % (right, name, marked, waits.hottest(tid)))
			wrong = [row[3] for row in rows if "compute" in of_python(row[3]) and not follows(of_python(row[3]), [name, "compute"])]
			check(not wrong, lambda: str(wrong[:2]))
			bare = [row for row in locked if not of_python(row[3]) and any(frame == "_PyEval_EvalFrameDefault" for frame, _ in row[3]) and not any(kind == "mark" for _, kind in row[3])]
			check(not bare, lambda: "neither frames nor a mark: %s" % bare[:2])
			notes.append("%s %.2f s, marked %.2f" % (name, right, marked))
		tid, _, _, asked, slept = int(waits.told["naps"][0]), *map(float, waits.told["naps"][1:])
		naps = [row for row in waits.rows if row[0] == tid and row[2] in ("sleep", "select")] # select up to 3.10
		# As of 3.11 the wait lasts until a point in time, which comes nearer while the thread releases the lock and is preempted on the way to its
		# sleep.
		late = sum(row[4] for row in waits.rows if row[0] == tid and (row[2] == "preempted" or any(frame == "PyEval_SaveThread" for frame, _ in row[3])))
		between(sum(row[4] for row in naps), asked - late, slept, lambda tid=tid: waits.hottest(tid))
		check(sum(row[4] for row in naps if follows(of_python(row[3]), ["naps", "doze"])) > 0.5 * asked, lambda tid=tid: waits.hottest(tid))
	return "; ".join(notes)


# --- Go --------------------------------------------------------------------------------------------------------------------------------

def goroutine_or_scheduler(user):
	"""Returns whether a whole stack of Go begins where it should."""
	return user and user[0][0] in ("runtime.goexit", "runtime.mcall", "runtime.mstart", "runtime.morestack", "runtime.rt0_go", "runtime.asmcgocall", "_rt0_amd64_linux", "_rt0_arm64_linux")


@test
def gos_goroutines():
	"""The goroutine waits for a system call, the scheduler of the goroutine's own thread for a channel, the netpoller for a connection."""
	need_bpf()
	waits = Waits(go_build("parks"), SECONDS)
	tid, asked, took = int(waits.told["syscall"][0]), *map(float, waits.told["syscall"][1:])
	between(waits.of(tid, "sleep", function="main.sleepsItself"), asked, took, lambda: waits.hottest(tid))
	for row in waits.rows:
		names = [name for name, _ in row[3]]
		if row[0] == tid and "main.sleepsItself" in names:
			check(names[0] == "runtime.goexit" and names.index("main.inSyscall") + 1 == names.index("main.sleepsItself"), lambda: str(names))
	locked, asked, took = int(waits.told["channel"][0]), *map(float, waits.told["channel"][1:])
	between(waits.of(locked, "futex", function="runtime.stoplockedm"), 0.9 * asked, took, lambda: waits.hottest(locked))
	polled = waits.of(kind="epoll", function="runtime.netpoll")
	check(polled > 0.2 * float(waits.told["connection"][1]), lambda: "%f s in the netpoller\n%s" % (polled, waits.hottest(nr=8)))
	wrong = [row for row in waits.rows if row[3] and not goroutine_or_scheduler(row[3]) and not any(kind == "mark" for _, kind in row[3])]
	whole = waits.of()
	check(sum(row[4] for row in wrong) < 0.01 * whole, lambda: "%s" % [row[3] for row in wrong[:3]])


# --- a JVM, Node -----------------------------------------------------------------------------------------------------------------------

@test
def javas_monitor():
	"""A thread that enters a monitor held by another waits in the entering method, as long as it reports."""
	need_bpf()
	java = find_tool("java")
	if not java:
		skip("no java")
	waits = Waits(java, os.path.join(SOURCES, "Monitor.java"), SECONDS)
	wanted = float(waits.told["wants"][1])
	check(wanted > 0.2, lambda: "it waited %f s only" % wanted)
	got = waits.of(kind="futex", comm="wants", function=r"Monitor\.enters")
	between(got, 0.97 * wanted - 0.01, wanted, waits.hottest)
	for row in waits.rows:
		names = [name for name, _ in row[3]]
		enters = next((i for i, name in enumerate(names) if "Monitor.enters" in name), None)
		check(enters is None or row[2] != "futex" or enters and "Monitor.wants" in names[enters - 1], lambda: str(names))
	slept = waits.of(kind="futex", comm="holds", function=r"Monitor\.pause")
	check(slept > 0.97 * float(waits.told["holds"][0]), lambda: "%f s\n%s" % (slept, waits.hottest()))


@test
def nodes_event_loop():
	"""The main thread waits in its event loop, a worker in the function that calls Atomics.wait."""
	need_bpf()
	node = find_tool("node")
	if not node:
		skip("no node")
	waits = Waits(node, os.path.join(SOURCES, "loop.js"), SECONDS)
	asked, took = map(float, waits.told["waits"])
	worker = max((row for row in waits.rows if ("waitsInside", "v8") in row[3]), key=lambda row: row[4], default=None)
	check(worker, waits.hottest)
	got = waits.of(worker[0], "futex", function="waitsInside")
	between(got, 0.97 * asked, took, lambda: waits.hottest(worker[0]))
	for row in waits.rows:
		names = [name for name, _ in row[3]]
		check("waitsInside" not in names or names[names.index("waitsInside") - 1] == "waits" or any(kind == "mark" for _, kind in row[3]), lambda: str(names))
	main = next(row[0] for row in waits.rows if any(name == "main" or name.startswith("node::Start(") for name, _ in row[3]))
	looped = waits.of(main, "epoll", function="uv_run")
	check(looped > 0.3 * SECONDS and looped > 0.9 * waits.of(main, "epoll"), lambda: "%f s\n%s" % (looped, waits.hottest(main)))


run_tests()
