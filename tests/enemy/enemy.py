#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The enemy suite: programs that do at random what breaks profilers and log their own stacks (oracle.py), while sonde records the whole machine by profile, offcpu and wall, with and without audit.
Every stack that sonde shows for them must be the logged one, or marked. docs/internals/testing.md has the numbers.
  SONDE_ENEMY_SECONDS=N        how long sonde records in all (40)
  SONDE_ENEMY_PROGRAMS=A,B     only these programs"""
import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import time

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [os.path.join(TESTS, "matrix"), os.path.join(TESTS, "system")]
from roots import Inside, root # noqa: E402
from harness import CFLAGS, PROGRAMS, Background, Skip, alone, building, check, compile_one, find_tool, fresh_folder, is_older, need_bpf, run, run_tests, scratch, skip, test # noqa: E402
from tap import Late # noqa: E402
from oracle import GONE_FRAME, NAMELESS_FRAME, Judge, Log, State, frames_of # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = float(os.environ.get("SONDE_ENEMY_SECONDS", "40"))
HEADERS = {"profile": "Sampling", "offcpu": "Tracing", "wall": "Measuring"} # what sonde prints when it has begun
EARLY_SECONDS = 8 # of its start, on a slow machine
EXACT_NS = 3000 # how exactly a time of day maps to a time of CLOCK_MONOTONIC
MILDEST = [None, GONE_FRAME, NAMELESS_FRAME] # errors: where a sample's moment may have been in several states, the one that it fits best
SOON_NS = 10 ** 9 # a program that ends within this time may lack names
LEAST = 1000 # samples of these programs that a recording at 10 kHz must have, however busy the machine is
MOST_UNCLAIMED = 0.5 # of the samples: the starts and ends of processes
MOST_NAMELESS = 0.002 # of the samples, of processes that live on, shown as [unknown]: where the reader has no CPU, code may be gone before its names are read. 0.1 % where the host is slow
MOST_WRONG_ONCE = 0.00002 # of the samples, or one: such a stack is reported in the note and deserves a test of its own. If a second recording in a row has one, the test fails
CODE = {"plain": ("0157", "e"), "inplace": ("0157", "r"), "pushes": ("112036", "e"), "zeros": ("014", "e"), "libraries": ("0", "l")} # the KINDS and HABITS of `code`


class Wrong(Late):
	"""Stacks are wrong. That does not depend on the machine's load, so the test is not run again."""


# --- the programs: each returns a command that runs until END_NS and logs into the folder -----------------------------------------------

def built(target, source, *flags):
	path = os.path.join(PROGRAMS, "enemy-" + target)
	with building():
		if is_older(path, [os.path.join(HERE, name) for name in os.listdir(HERE) if name.endswith((".c", ".h"))]):
			compile_one(["gcc", *CFLAGS, *flags, "-o", path, os.path.join(HERE, source)])
	return path


def tree(end_ns, _folder):
	programs = [built(name, "tree.c", "-static", "-no-pie", "-fno-pie", "-DPREFIX=" + name) for name in ("alpha", "gamma")]
	return [programs[0], end_ns, *programs]


def code(name):
	def command(end_ns, _folder):
		libraries = [built("%s.so" % color, "library.c", "-shared", "-fPIC", "-DPREFIX=" + color, "-DROOM=%d" % room) for color, room in (("red", 40), ("blue", 200))]
		return [built("code", "code.c", "-ldl"), end_ns, *CODE[name], *libraries]
	return command


def ring(end_ns, _folder):
	return [built("ring", "ring.c"), end_ns]


def script(name, *interpreter, arguments=()):
	def command(end_ns, folder):
		if not find_tool(interpreter[0]):
			skip("no %s" % interpreter[0])
		return [*interpreter, os.path.join(HERE, name), end_ns, folder, *arguments]
	return command


def inside(suite, packages, interpreter, name, *arguments):
	"""The same with the interpreter of another Debian."""
	def command(end_ns, folder):
		if run(["unshare", "-m", "--propagation", "private", "true"]).code:
			skip("no mount namespace can be made")
		shutil.copy(os.path.join(HERE, name), folder)
		return Inside(root(suite, packages), [*interpreter, "/mnt/" + name, end_ns, "/mnt", *arguments], share=folder).argv
	return command


PHP = ("-d", "opcache.enable_cli=1", "-d", "opcache.file_update_protection=0")
JIT = ("-n", "-d", "zend_extension=opcache", *PHP, "-d", "opcache.jit=tracing", "-d", "opcache.jit_buffer_size=16M")
TRIXIE = ["php8.4-cli", "php8.4-opcache", "python3.13", "python3-greenlet"]
ALL = {"tree": tree, **{name: code(name) for name in CODE}, "ring": ring, "python": script("walk.py", "/usr/bin/python3"), "perl": script("walk.pl", "perl"), "php": script("walk.php", "php", *PHP),
	"jit": inside("trixie", TRIXIE, ["/usr/bin/php8.4", *JIT], "walk.php"), "greenlets": script("walk.py", "/usr/bin/python3", arguments=("greenlets",)), "new_greenlets": inside("trixie", TRIXIE, ["/usr/bin/python3.13"], "walk.py", "greenlets"),
	"new_python": inside("sid", ["python3.15"], ["/usr/bin/python3.15"], "walk.py")}

def wanted():
	names = os.environ.get("SONDE_ENEMY_PROGRAMS")
	return names.split(",") if names else list(ALL)


def prepare():
	"""Builds and fetches the wanted programs. Returns those available, and a text that names the others."""
	names, skipped = [], ""
	for name in wanted():
		try:
			ALL[name](0, fresh_folder("enemy-log"))
			names.append(name)
		except Skip as reason:
			skipped += "; without %s: %s" % (name, reason)
	return names, skipped


class Scene:
	"""Runs these programs at once, until end_ns. They and their descendants die with this process."""

	def __init__(self, names, seconds):
		self.folder = fresh_folder("enemy-log")
		self.end_ns = time.monotonic_ns() + int(seconds * 1e9)
		environ = {**os.environ, "SONDE_ENEMY_LOG": self.folder}
		self.processes = [subprocess.Popen([str(word) for word in ALL[name](self.end_ns, self.folder)], env=environ, stdin=subprocess.DEVNULL, start_new_session=True) for name in names]

	def finish(self):
		for process in self.processes:
			code = process.wait(timeout=max(60, self.end_ns / 1e9 + 60 - time.monotonic()))
			check(not code, lambda: "%s ended with %s" % (process.args, code)) # pylint: disable=cell-var-from-loop
		return Log(self.folder)

	def kill(self):
		for process in self.processes:
			try:
				os.killpg(process.pid, signal.SIGKILL)
			except ProcessLookupError:
				pass
			process.wait()


def unix_offset_ns():
	"""The offset from CLOCK_MONOTONIC to CLOCK_REALTIME, as exactly as it can be read."""
	best = None
	for _ in range(1000):
		before, real, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
		if best is None or after - before < best[0]:
			best = (after - before, real - (before + after) // 2)
	return best[1]


# --- the comparison --------------------------------------------------------------------------------------------------------------

WORKER = State("", [()], False)
OUTER_MARKS = ("[on-cpu]", "[runnable]", "[not sampled]", "[blocked") # `wall` puts these before the root


def shown(frames, language):
	"""The frames as text. For an interpreter, each run of native frames is one *."""
	words = [str(frame) if not language or frame.kind != "native" or "greenlet" in frame.path else "*" for frame in frames]
	return ";".join(word for i, word in enumerate(words) if word != "*" or words[i - 1:i] != ["*"])


class Tally:
	"""Counts samples (for waits, stacks of a thread): right, marked by reason, wrong by error."""

	def __init__(self):
		self.right = self.changing = self.unclaimed = self.marked = self.wrong = 0
		self.marks, self.errors = collections.Counter(), {}

	def add(self, state, error, frames, whose):
		marks = [frame.name for frame in frames if frame.is_mark]
		if error:
			self.wrong += 1
			self.errors.setdefault((error, state.language), []).append((state, frames, whose))
		elif marks:
			self.add_mark(marks[0])
		else:
			self.right += 1
			self.changing += state.is_change

	def add_mark(self, mark):
		self.marked += 1
		self.marks[mark] += 1

	def nameless(self):
		return sum(len(found) for (error, _), found in self.errors.items() if error == NAMELESS_FRAME)

	def is_wrong(self):
		return self.wrong > self.nameless() or self.nameless() > MOST_NAMELESS * self.compared()

	def is_doubtful(self):
		"""Wrong, apart from frames without names, which depend on timing, but so rarely that another recording must decide."""
		return self.is_wrong() and self.wrong - self.nameless() <= max(1, MOST_WRONG_ONCE * self.compared())

	def compared(self):
		return self.right + self.marked + self.wrong

	def summary(self):
		return "%d compared: %d right (%d at a change), %d marked (%s), %d wrong and unmarked; %d unclaimed" % (self.compared(), self.right, self.changing, self.marked,
			", ".join("%d %s" % (nr, mark) for mark, nr in self.marks.most_common()), self.wrong, self.unclaimed)

	def __str__(self):
		lines = [self.summary()]
		for (error, language), found in sorted(self.errors.items(), key=lambda item: -len(item[1])):
			lines.append("%d x %s %s:" % (len(found), language, error))
			for state, frames, whose in found[::max(1, len(found) // 3)][:3]:
				lines.append("   %s shown  %s" % (whose, shown(frames, state.language)))
				lines.append("       logged %s" % " | ".join(";".join(chain) for chain in state.chains))
		return "\n".join(lines)

	def check(self, least):
		"""Returns the note of the test."""
		if self.is_wrong():
			raise Wrong(str(self))
		check(self.compared() >= least, lambda: "too few samples: %s" % self)
		check(self.compared() < LEAST or self.unclaimed <= MOST_UNCLAIMED * (self.compared() + self.unclaimed), lambda: "the programs say too little: %s" % self)
		return self.summary()


def worker_error(frames):
	return None if all(frame.is_mark for frame in frames) else "a worker of the kernel has user frames"


def judge_samples(log, report, offset_ns, tally):
	"""Judges each sample by its time."""
	judge, stacks = Judge(log), frames_of(report)
	for sample in report["samples"]:
		tid, thread = sample["tid"], log.threads.get(sample["tid"])
		frames = stacks[sample["user_stack"]] if sample["user_stack"] is not None else []
		if not thread:
			if sample["pid"] in log.threads and sample["comm"].startswith("iou-"): # a thread that the program did not make
				tally.add(WORKER, worker_error(frames), frames, "tid %d" % tid)
			continue
		time_ns = int(sample["time_unix_ns"]) - offset_ns
		states = thread.at(time_ns, EXACT_NS)
		if None in states:
			tally.unclaimed += 1
			continue
		errors = [judge.error(sample["user_stack"], frames, state) for state in states]
		good = min(range(len(errors)), key=lambda i: MILDEST.index(errors[i]) if errors[i] in MILDEST else len(MILDEST)) # pylint: disable=cell-var-from-loop
		if errors[good] == GONE_FRAME or (errors[good] == NAMELESS_FRAME and thread.end(time_ns) - time_ns < SOON_NS):
			tally.add_mark(errors[good]) # ended before it could be resolved
			continue
		tally.add(states[good], errors[good], frames, "tid %d, %.1f ms after its first word, %.1f before its last," % (tid, (time_ns - thread.times[0]) / 1e6, (thread.end(time_ns) - time_ns) / 1e6))


def judge_sums(log, report, tally):
	"""Judges each stack of a thread: the thread had it at some time, and for waits at least as long as sonde says."""
	judge, stacks, kinds = Judge(log), frames_of(report), [kind["type"] for kind in report["value_types"]]
	sums = collections.Counter()
	for sample in report["samples"]:
		number = sample["user_stack"]
		frames = stacks[number] if number is not None else []
		if "blocked" in kinds:
			sums[sample["tid"], number] += int(sample["values"][kinds.index("blocked")])
		elif frames and frames[0].name.startswith("[blocked"):
			sums[sample["tid"], number] += int(sample["values"][0])
		else:
			sums[sample["tid"], number] += 0
	for (tid, number), ns in sums.items():
		thread = log.threads.get(tid)
		if not thread or number is None:
			continue
		frames = stacks[number]
		frames = frames[1:] if frames and frames[0].name.startswith(OUTER_MARKS) else frames
		if frames:
			judge_sum(judge, thread, (tid, number), frames, ns, tally)


def is_before_exec(frames):
	"""True for this suite's own functions, in a child that has not become its program yet. Their names may be those of the program's."""
	return any(os.path.basename(frame.file) == os.path.basename(__file__) for frame in frames)


def judge_sum(judge, thread, key, frames, ns, tally):
	durations, accepting = thread.durations(), judge.accepting(key[1], frames, thread)
	if accepting:
		longest = sum(durations[state] for state in accepting) + durations[None]
		if ns <= longest and judge.error(key[1], frames, accepting[0]):
			tally.add_mark(NAMELESS_FRAME) # a sum has no time, so how long its process lived on is unknown
			return
		tally.add(accepting[0], None if ns <= longest else "waits longer than the program was there", frames, "tid %d" % key[0])
	elif is_before_exec(frames) or not any((frame.kind if frame.kind != "native" else "") in thread.languages() and frame.name in judge.log.nodes - {"main", "<main>", "<module>"} for frame in frames):
		tally.unclaimed += 1 # it starts or ends
	else:
		tally.add(next((state for state in durations if state), WORKER), "the thread never had this stack", frames, "tid %d" % key[0])


def record(share, is_early, *arguments):
	"""Returns the programs' log, sonde's report, the offset of its time of day, and the programs left out. The programs start before sonde, or when it has begun."""
	need_bpf()
	path, seconds, scene = scratch("enemy.json"), max(1, share * SECONDS), None
	names, skipped = prepare()
	before = unix_offset_ns()
	try:
		scene = Scene(names, seconds + EARLY_SECONDS) if is_early else None
		with Background(*arguments, "-o", path, round(seconds + 120)) as sonde:
			sonde.wait_line(HEADERS[arguments[0]], timeout=60)
			scene = scene or Scene(names, seconds)
			log = scene.finish()
			sonde.send(signal.SIGINT)
			run = sonde.finish(timeout=120)
	finally:
		if scene:
			scene.kill()
	check(run.code == 0, lambda: str(run))
	with open(path, encoding="utf-8") as file:
		return log, json.load(file), (unix_offset_ns() + before) // 2, skipped


def profile(share, *options, is_early=False, least=LEAST, tries=2):
	log, report, offset, skipped = record(share, is_early, "profile", "--timestamps", *options)
	tally = Tally()
	judge_samples(log, report, offset, tally)
	if tries > 1 and tally.is_doubtful():
		return "NOT AT ONCE: %s\n%s" % (tally, profile(share, *options, is_early=is_early, least=least, tries=tries - 1))
	return tally.check(least) + skipped


def sums(share, *arguments):
	log, report, _, skipped = record(share, False, *arguments, "--threads")
	tally = Tally()
	judge_sums(log, report, tally)
	return tally.check(10) + skipped


@alone # so many samples a second leave no room for other programs
@test
def profile_at_10000_hz():
	return profile(0.3, "-F", 9973)


@alone
@test
def audited_at_10000_hz():
	return profile(0.3, "-F", 9973, "--audit-every", 1, is_early=True)


@test
def profile_at_19_hz():
	return profile(0.1, "-F", 19, is_early=True, least=1)


@test
def audited_at_19_hz():
	return profile(0.1, "-F", 19, "--audit-every", 1, least=1)


@test
def offcpu():
	return sums(0.1, "offcpu")


@test
def wall():
	return sums(0.1, "wall", "-F", 997)


@test
def a_lie_is_found():
	"""A wrong name in the programs' log is found by the same rules."""
	log, report, offset, _ = record(0.05, False, "profile", "--timestamps", "-F", 997)
	for thread in log.threads.values():
		for state in thread.states:
			if state:
				state.chains = [tuple("lie" if name in ("code_f0", "ring_deeper") else name for name in chain) for chain in state.chains]
				state.key += ("lie",)
	tally = Tally()
	judge_samples(log, report, offset, tally)
	check(tally.wrong, lambda: "nothing is wrong: %s" % tally)
	return "%d of %d" % (tally.wrong, tally.compared())


if __name__ == "__main__":
	run_tests(seconds=240 + 4 * SECONDS)
