# SPDX-License-Identifier: Apache-2.0
"""Reads what the programs of the enemy suite logged, and judges sonde's stacks by it. Nothing here comes from sonde except the stacks under judgement.

A log has records (time in ns of CLOCK_MONOTONIC, tid, letter, name). A thread's records, by time, give its stack at each moment:
  R name  its stack starts anew and follows by m and S; the frames are that language's (none: native)
  E name  it has entered that function, and is in it      S  it is back where it made its last call
  C       it is about to call                             L  it is about to return
  m name  as E, but the function cannot log itself: it is entered from now on, or has already returned
  B n     n calls have returned                           Z  the log makes no statement from here on
Names: of a function; `@START+BYTES`, hexadecimal: a memory range. A leading `!`: it was called through C code, whose frames are before it. A leading `~`: it is
the first that is left on a stack that was switched to (a greenlet), and none of the frames before it is on that stack.

Between C or L and the next E, S or B the stack is changing. It is then one of those logged in between, or the beginning of one, but never shorter than their
common part. Such a moment counts as `at a change`; moments without a statement are `unclaimed`."""
import bisect
import collections
import os
import re
import struct

RECORD = struct.Struct("<QIc27s")
ROOTS = {"_start", "clone3", "__clone3", "clone", "__clone", "[libc.so.6]"} # the last: a thread's root, where libc has no symbols
START = ROOTS | {"__libc_start_main", "__libc_start_main_impl", "__libc_start_call_main", "start_thread", "__libc_start_main@@GLIBC_2.34"}
LOOPS = {"_PyEval_EvalFrameDefault", "PyEval_EvalFrameEx", "execute_ex", "Perl_runops_standard"}
NAMELESS = {"[unknown]", ""}
NAMELESS_FRAME = "a frame has no name"
GONE_FRAME = "code that lives for a moment has no name"
STACK_FILES = ("[vdso]", "[libc.so.6]", "[ld-linux-x86-64.so.2]")


def records_of(path):
	if path.endswith(".txt"):
		with open(path, encoding="utf-8") as file:
			for line in file:
				if not line.endswith("\n"):
					return # its writer died
				time, tid, letter, *name = line.split(maxsplit=3)
				yield int(time), int(tid), letter, name[0].rstrip("\n") if name else ""
		return
	with open(path, "rb") as file:
		nr = struct.unpack("<Q", file.read(8))[0]
		for time, tid, letter, name in RECORD.iter_unpack(file.read(nr * RECORD.size)):
			if letter != b"\0":
				yield time, tid, letter.decode(), name.split(b"\0")[0].decode()


def common(chains):
	least, greatest = min(chains), max(chains)
	nr = 0
	while nr < len(least) and least[nr] == greatest[nr]:
		nr += 1
	return nr


class State:
	"""A thread's stack for a while: `chains` has one entry when it is certain, else the possible ones during a change."""

	def __init__(self, language, chains, is_change):
		self.language, self.is_change = language, is_change
		self.chains = list(dict.fromkeys(chains))
		self.least = common(self.chains)
		self.key = (language, is_change, tuple(self.chains))


class Thread:
	"""times[i] is the start of states[i]; None: no statement."""

	def __init__(self, records, ends, kept):
		self.times, self.states, self.known, self.by_names, self.ends = [], [], collections.Counter(), None, ends
		chain, language, visited, claims = (), "", None, False

		def begin(time, state):
			if visited:
				self.states[-1] = self.state(kept, State(language, visited, True))
			self.times.append(time)
			self.states.append(state)

		for time, letter, name in records:
			if letter in "RZ":
				begin(time, None)
				chain, language, visited, claims = (), name, None, letter == "R"
			elif letter in "Em":
				chain += (name,)
			elif letter == "B":
				chain = chain[:len(chain) - int(name)]
			if visited and letter in "ESBLm":
				visited.append(chain)
			if claims and letter in "ESBCL":
				begin(time, self.state(kept, State(language, [chain], False)))
				visited = [chain] if letter in "CL" else None
		if visited:
			self.states[-1] = None

	def state(self, kept, state):
		return kept.setdefault(state.key, state)

	def at(self, time, off):
		"""The possible states at that time; None among them where the log makes no statement."""
		first, last = bisect.bisect_right(self.times, time - off) - 1, bisect.bisect_right(self.times, time + off) - 1
		found = [self.states[i] if i >= 0 else None for i in range(first, last + 1)]
		if last + 1 >= len(self.times):
			found.append(None) # the log ends here
		return list(dict.fromkeys(found))

	def end(self, time):
		"""The time of the last record of the process that had the tid then; other processes may have had it afterwards."""
		return self.ends[min(bisect.bisect_left(self.ends, time), len(self.ends) - 1)]

	def languages(self):
		return {state.language for state in self.durations() if state}

	def could_be(self, language, names):
		"""The states in which these are the names from the root on."""
		if self.by_names is None:
			self.by_names = collections.defaultdict(list)
			for state in filter(None, self.durations()):
				plain = {tuple(name.lstrip("!~") for name in chain[:end]) for chain in state.chains for end in range(state.least, len(chain) + 1)}
				for chain in plain:
					self.by_names[state.language, chain].append(state)
		return self.by_names.get((language, names), [])

	def durations(self):
		"""Nanoseconds by state; for None, no statement, the open end counts as well."""
		if not self.known:
			for begin, end, state in zip(self.times, self.times[1:], self.states):
				self.known[state] += end - begin
			self.known[None] += 10 ** 9
		return self.known


class Log:
	"""The logs of all programs: .threads by tid, .nodes: the names of functions that log themselves."""

	def __init__(self, folder):
		by_tid, ends = collections.defaultdict(list), collections.defaultdict(list)
		self.nr_records, self.nr_files, self.nodes, self.places = 0, 0, set(), None
		for name in os.listdir(folder):
			if not name.endswith((".txt", ".bin")):
				continue
			self.nr_files += 1
			last = {}
			for time, tid, letter, text in records_of(os.path.join(folder, name)):
				by_tid[tid].append((time, letter, text))
				last[tid] = time
				if letter in "Em":
					self.nodes.add(text.lstrip("!~"))
			for tid, time in last.items():
				ends[tid].append(time)
		self.threads, kept = {}, {}
		for tid, records in by_tid.items():
			records.sort(key=lambda record: record[0])
			self.nr_records += len(records)
			self.threads[tid] = Thread(records, sorted(ends[tid]), kept)


	def place_name(self, frame):
		"""The frame's name in a log."""
		if self.places is None:
			self.places = sorted(place_of(name) + (name,) for name in self.nodes if name.startswith("@"))
		at = bisect.bisect_right(self.places, (frame.pc, float("inf"))) - 1
		return self.places[at][2] if at >= 0 and frame.kind == "native" and frame.pc <= self.places[at][0] + self.places[at][1] else frame.name


class Frame:
	def __init__(self, kind, name, pc, path, file):
		self.kind, self.name, self.pc, self.path, self.file = kind, name, pc, path, file
		self.is_mark = kind in ("mark", "missed")

	def __str__(self):
		return self.name if self.kind == "native" or self.is_mark else "%s:%s" % (self.kind, self.name)


def frames_of(report):
	"""For each stack of a report its frames, root to leaf."""
	frames = []
	for frame in report["frames"]:
		mapping = report["mappings"][frame["mapping"]] if frame["mapping"] is not None else None
		function = report["functions"][frame["function"]]
		name = re.sub(r"^(\[[^+\]]+)\+0x[0-9a-f]+\]$", r"\1]", function["name"]) # where a file has no symbols
		frames.append(Frame(frame["kind"], name, int(frame["pc"], 16), mapping["path"] if mapping else "", function["file"]))
	return [[frames[number] for number in stack][::-1] for stack in report["stacks"]]


def place_of(name):
	start, _, size = name.lstrip("!~")[1:].partition("+")
	return int(start, 16), int(size, 16)


def is_at(frame, name):
	if name.lstrip("!~").startswith("@"):
		start, size = place_of(name)
		return frame.kind == "native" and start <= frame.pc <= start + size
	return frame.name == name.lstrip("!~")


def is_made(name):
	"""True for code that was just compiled and is freed when it returns (walk.py)."""
	return name == "!<module>" or name.startswith("made_")


class Judge:
	"""Judges stacks by the logs. error() returns None, or a text that says why a stack is neither right nor marked."""

	def __init__(self, log):
		self.log, self.known = log, {}

	def error(self, number, frames, state):
		key = (number, state.key)
		if key not in self.known:
			self.known[key] = self.native_error(frames, state) if not state.language else self.script_error(frames, state)
		return self.known[key]

	def is_helper(self, frame):
		"""A frame of the program's own logging or of libc, which may be at the leaf end of any stack."""
		return frame.kind == "native" and frame.name not in NAMELESS and frame.name not in self.log.nodes and (not frame.name.startswith("[") or frame.name in STACK_FILES)

	def native_tail(self, frames):
		"""The frames that a log can contain, and whether they reach to the root."""
		marks = [i for i, frame in enumerate(frames) if frame.is_mark]
		tail = frames[marks[-1] + 1:] if marks else frames
		at = 0
		while at < len(tail) and tail[at].name in START:
			at += 1
		if at == 1 and marks:
			at = 0 # libc's clone() as the leaf, and no root
		end = len(tail)
		while end > at and self.is_helper(tail[end - 1]):
			end -= 1
		return tail[at:end], not marks or at > 0

	def native_error(self, frames, state):
		if not frames or not frames[0].is_mark and frames[0].name not in ROOTS:
			return "does not begin at a root"
		tail, is_whole = self.native_tail(frames)
		return self.chain_error(tail, state, is_whole, is_at)

	def chain_error(self, tail, state, is_whole, fits):
		nr = len(tail)
		for chain in state.chains:
			if is_whole:
				if state.least <= nr <= len(chain) and all(map(fits, tail, chain)):
					return None
			elif any(nr <= end and all(map(fits, tail, chain[end - nr:end])) for end in range(state.least, len(chain) + 1)):
				return None
		return "is not what the program logged"

	def is_greenlets_start(self, before, has_mark):
		"""A greenlet's stack begins in g_initialstub, which calls inner_bootstrap; the memory behind that belongs to another stack."""
		begins = [i for i, frame in enumerate(before) if "g_initialstub" in frame.name] or [i for i, frame in enumerate(before) if "inner_bootstrap" in frame.name]
		if begins:
			return begins == [0]
		return has_mark and not any("greenlet" in frame.path for frame in before[1:])

	def script_places(self, tail, language):
		"""The indices of the frames of functions that log."""
		places = [i for i, frame in enumerate(tail) if frame.kind == language]
		while places and tail[places[-1]].name not in self.log.nodes and tail[places[-1]].name not in NAMELESS:
			places.pop() # called by a function that logs
		return places

	def script_error(self, frames, state):
		"""Unknown names match any name, but are then the error: GONE_FRAME where all of them can be code that is freed when it returns, else NAMELESS_FRAME."""
		marks = [i for i, frame in enumerate(frames) if frame.is_mark]
		tail = frames[marks[-1] + 1:] if marks else frames
		if not marks and (not frames or frames[0].name not in ROOTS) and not any(name.startswith("~") for chain in state.chains for name in chain):
			return "does not begin at a root"
		if not marks and not state.is_change and any(frame.name in LOOPS for frame in frames):
			return "the interpreter's loop is shown"
		places = self.script_places(tail, state.language)
		previous = dict(zip(places[1:], places))

		def fits(place, name, may_be_nameless=lambda name: True):
			if not is_at(tail[place], name) and (tail[place].name not in NAMELESS or not may_be_nameless(name)):
				return False
			if name.startswith("!") and previous.get(place) == place - 1:
				return False # no C frame between
			return not name.startswith("~") or self.is_greenlets_start(tail[:place], bool(marks))
		error = self.chain_error(places, state, not marks, fits)
		while error and places and (tail[places[-1]].name in NAMELESS or tail[places[-1]].name not in self.log.nodes): # its caller may be a function that logs
			places.pop()
			error = self.chain_error(places, state, not marks, fits)
			if not error:
				return NAMELESS_FRAME
		if error or not any(tail[place].name in NAMELESS for place in places):
			return error
		return NAMELESS_FRAME if self.chain_error(places, state, not marks, lambda place, name: fits(place, name, is_made)) else GONE_FRAME

	def names(self, frames, language):
		"""The argument for could_be(); None: the frames do not reach to the root, or some have no name."""
		if language:
			tail = [] if any(frame.is_mark for frame in frames) else [frames[place] for place in self.script_places(frames, language)]
			return None if any(frame.name in NAMELESS for frame in tail) else tuple(frame.name for frame in tail) or None
		tail, is_whole = self.native_tail(frames)
		return tuple(self.log.place_name(frame) for frame in tail) if is_whole else None

	def accepting(self, number, frames, thread):
		"""The states of the thread in which it can have this stack."""
		found = []
		for language in thread.languages():
			names = self.names(frames, language)
			candidates = thread.could_be(language, names) if names is not None else thread.durations()
			found += [state for state in candidates if state and state.language == language and self.error(number, frames, state) in (None, GONE_FRAME, NAMELESS_FRAME)]
		return found
