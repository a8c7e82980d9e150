#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The hard cases of native unwinding, part 2: where the code came from. Stripped and static files, musl, files that change, are deleted or are in
another namespace, and code with frame pointers and no tables."""
import atexit
import bisect
import contextlib
import os
import re
import shutil
import signal
import subprocess
import time

from hard import (FRAME_POINTERS, FREQ_HZ, NAMELESS, NO_TABLES, START, chain_pattern, exact, like, made, profile, profile_command, report_of, share_of, source, stacks_of,
	with_gcc)
from harness import (PROGRAMS, Background, Program, build, chain_error, check, find_tool, fresh_folder, load_json, need_bpf, run, run_tests, scratch, skip, test)

DEPTH = 30


# --- no names ----------------------------------------------------------------------------------------------------------------------

def functions_by_address(path):
	"""Returns (addresses, names) of a file that is not stripped."""
	symbols = []
	for line in run(["nm", path]).out.splitlines():
		address, kind, name = line.rjust(16).split(None, 2) if len(line.split()) == 3 else ("", "", "")
		if kind in ("t", "T", "W", "w"):
			symbols.append((int(address, 16), name))
	symbols.sort()
	return [address for address, _ in symbols], [name for _, name in symbols]


def named_again(report, file, whole):
	"""Gives the functions of a stripped file the names that they have in the original file."""
	addresses, names = functions_by_address(whole)
	for frame in report["frames"]:
		mapping = report["mappings"][frame["mapping"]] if frame["mapping"] is not None else None
		if mapping and os.path.basename(mapping["path"]) == os.path.basename(file):
			at = bisect.bisect_right(addresses, int(frame["address"], 16) - 1) - 1 # all are return addresses, or not at a function's start
			report["functions"].append({"name": names[at] if at >= 0 else "[none]"})
			frame["function"] = len(report["functions"]) - 1
	return stacks_of(report)


def stripped(variant, at_root=None):
	"""Without names, the frames' addresses must be those of the chain."""
	need_bpf()
	whole = build("chain", variant)
	path = scratch("chain-stripped-" + variant)
	check(run(["strip", "-o", path, whole]).code == 0, "strip")
	with Program("chain", DEPTH, path=[path]) as program:
		report = report_of("-p", program.pid, 1)
		chain = next(iter(program.chains.values()))
	check(not any(function["name"] in ("f3", "leaf") for function in report["functions"]), "it is not stripped")
	stacks = named_again(report, path, whole)
	return exact(stacks, like(chain_pattern(chain)) if at_root is None else lambda stack: None if stack.user[-len(chain):] == chain and
		re.fullmatch(at_root, ";".join(stack.user[:-len(chain)])) else "differs")


@test
def stripped_program():
	return stripped("")


@test
def stripped_static_program():
	return stripped("static")


@test
def stripped_static_pie_program():
	return stripped("spie")


# --- musl --------------------------------------------------------------------------------------------------------------------------

# The C library has no tables: main's caller there has rows that were read off its code, up to _start. That code may be reached only by jumps.
MUSL_START = r"_start;(?:_start_c;)?(?:__libc_start_main;|libc_start_main_stage2;|\[(?:ld-musl|libc\.so|chain|handlers)[^\];]*\];)*"
# The shared library exports no name for it.
MUSL_SIGNAL = r"(?:__restore(?:_rt)?|%s)" % NAMELESS


def musl(name, file, *flags):
	if not find_tool("musl-gcc"):
		skip("no musl-gcc (musl-tools)")
	need_bpf()
	return with_gcc(name, file, *flags, compiler="musl-gcc")


def musl_chain(name, *flags):
	with Program("chain", DEPTH, path=[musl(name, "chain.c", *flags)]) as program:
		chain = next(iter(program.chains.values()))
		return exact(profile(program.pid), like(MUSL_START + ";".join(chain)))


@test
def musl_program():
	return musl_chain("chain-musl")


@test
def musl_static_program():
	return musl_chain("chain-musl-static", "-static")


def musl_handler(name, *flags):
	"""The code that returns from a signal handler has no call frame information there."""
	with Program("handlers", "raw", path=[musl(name, "handlers.c", *flags)]) as program:
		chain = next(iter(program.chains.values()))
		chain.insert(chain.index("raw_reader") + 1, MUSL_SIGNAL)
		return exact(profile(program.pid), like(MUSL_START + ";".join(chain)))


@test
def musl_signal_handler():
	return musl_handler("handlers-musl")


@test
def musl_static_signal_handler():
	return musl_handler("handlers-musl-static", "-static")


@test
def musl_static_handlers_that_return():
	"""As for the C library with tables (hard_control.py), but here another function follows the last instruction."""
	with Program("handlers", "return", path=[musl("handlers-musl-static", "handlers.c", "-static")]) as program:
		stacks = profile(program.pid, 2)
	return exact(stacks, like(MUSL_START + "main;outer;killer(;%s(;on_usr2)?)?" % MUSL_SIGNAL))


# --- files that change -------------------------------------------------------------------------------------------------------------

def reload_libraries(blue_room=200):
	return [with_gcc("libreload-%s-%d.so" % (colour, room), "library_reload.c", "-shared", "-fPIC", "-DCOLOUR=" + colour, "-DROOM=%d" % room)
		for colour, room in (("red", 24), ("blue", blue_room))]


@test
def libraries_that_come_and_go():
	"""Two libraries alternate at the same addresses, 20 ms each. The thread's name says which one it is in."""
	need_bpf()
	libraries = reload_libraries()
	with subprocess.Popen([build("reload"), "3", "20", *libraries], stdout=subprocess.PIPE, text=True) as process:
		said = [process.stdout.readline().split() for _ in range(4)] # pid, two chains, ready
		chains = {words[1]: words[2].split(";") for words in said[1:3]}
		stacks = [stack for stack in profile(int(said[0][1]), 2) if stack.comm in chains]
		same, nr = map(int, re.search(r"same (\d+) of (\d+)", process.communicate()[0]).groups())
	check(same > nr * 0.9, "the libraries come to other addresses (%d of %d): this test says nothing" % (same, nr))
	check({stack.comm for stack in stacks} == set(chains), "not both are there")
	around = START + r"main;reload_loop;visit(;prctl)?" # the name is set before the call and reset after it
	return exact(stacks, lambda stack: like(around)(stack) and chain_error(stack, chains[stack.comm])) + ", %d times" % nr


def late_error(chains, colours):
	"""The stack may end early, in a mark, but contains no function of the library that is not loaded."""
	def error_of(stack):
		if any(frame.startswith(colours[stack.comm]) for frame in stack.user):
			return "shows the other library"
		return None if stack.user[0].startswith("!") and "[unknown]" not in stack.user else chain_error(stack, chains[stack.comm])
	return error_of


def while_sonde_is_kept_waiting(libraries):
	need_bpf()
	path = scratch("late.json")
	with subprocess.Popen([build("reload"), "20", "20", *libraries], stdout=subprocess.PIPE, text=True) as process:
		try:
			said = [process.stdout.readline().split() for _ in range(4)]
			with Background("profile", "-o", path, "-p", said[0][1], "-F", FREQ_HZ, 2) as running:
				running.wait_line("Sampling at")
				for _ in range(17):
					for signo in (signal.SIGSTOP, signal.SIGCONT):
						running.send(signo)
						time.sleep(0.05)
				check(running.finish().code == 0, "sonde failed")
		finally:
			process.kill()
	chains = {words[1]: words[2].split(";") for words in said[1:3]}
	stacks = [stack for stack in stacks_of(load_json(path)) if stack.comm in chains]
	around = like(START + r"main;reload_loop;visit(;prctl)?")
	late = late_error(chains, {"lib-0": "blue_", "lib-1": "red_"})
	return exact(stacks, lambda stack: around(stack) and late(stack)) + ", %.0f %% whole" % (share_of(stacks, "^_start;") * 100)


@test
def libraries_that_come_and_go_while_sonde_is_kept_waiting():
	"""sonde is stopped for 50 ms at a time: it learns of a library when the next one is already at its address."""
	return while_sonde_is_kept_waiting(reload_libraries())


@test
def libraries_of_the_same_code_while_sonde_is_kept_waiting():
	"""The same, but the stacks do not distinguish the two libraries: each address in one is an address in the other."""
	return while_sonde_is_kept_waiting(reload_libraries(24))


def remapped(way, copy):
	"""The code's memory is replaced. The kernel does not report closed or moved mappings, but it reports what becomes executable."""
	need_bpf()
	whole = START + "main;remap_runs;reload_entry;red_middle;red_leaf"
	stacks = profile_command(("file", "copy", "code"), build("remap"), 5, way, reload_libraries()[0])
	check({stack.comm for stack in stacks} == {"file", "code" if way == "unmapped" else "copy"}, "not both are there")
	return exact(stacks, lambda stack: like(whole if stack.comm == "file" else copy)(stack))


@test
def code_in_the_place_of_a_library():
	return remapped("unmapped", START + r"main;remap_runs;\[unknown\]")


@test
def text_in_large_pages():
	return remapped("fixed", START + r"main;remap_runs(;\[unknown\]){3}")


@test
def text_in_large_pages_that_are_moved_there():
	return remapped("moved", START + "main;remap_runs;reload_entry;red_middle;red_leaf")


@test
def text_that_is_moved_away():
	return remapped("away", r"!\[no mapping\];\[unknown\]")


@test
def library_replaced_on_disk():
	"""Before sonde starts, the file on disk is no longer what is mapped. Then the same while sonde runs."""
	need_bpf()
	build("library")
	notes = []
	for is_early in (True, False):
		plugin = scratch("plugin.so")
		shutil.copy(os.path.join(PROGRAMS, "plugin.so"), plugin)
		with Program("library", plugin) as program, contextlib.ExitStack() as stack:
			path = scratch("replaced.json")
			if is_early:
				replace(plugin)
			running = stack.enter_context(Background("profile", "-o", path, "-p", program.pid, "-F", FREQ_HZ, 1))
			if not is_early:
				running.wait_line("Sampling at")
				replace(plugin)
			check(running.finish().code == 0, "sonde failed")
			notes.append(exact(stacks_of(load_json(path)), lambda stack, chain=program.chains["library"]: chain_error(stack, chain)))
	return ", ".join(notes)


def replace(plugin):
	shutil.copy(reload_libraries()[1], plugin + ".new")
	os.rename(plugin + ".new", plugin)


@test
def program_deleted():
	need_bpf()
	path = scratch("gone")
	shutil.copy(build("chain"), path)
	with Program("chain", DEPTH, path=[path]) as program:
		os.unlink(path)
		return exact(profile(program.pid), lambda stack: chain_error(stack, program.chains["gone"]))


# --- other namespaces ----------------------------------------------------------------------------------------------------------------

def descendant(pid, comm):
	"""Returns the process of that name among the descendants of pid, as seen from our namespace."""
	stop = time.monotonic() + 10
	while time.monotonic() < stop:
		pids = [pid]
		while pids:
			one = pids.pop()
			with contextlib.suppress(FileNotFoundError, ProcessLookupError):
				with open("/proc/%d/comm" % one, encoding="utf-8") as file:
					if file.read().strip() == comm:
						return one
				with open("/proc/%d/task/%d/children" % (one, one), encoding="ascii") as file:
					pids += map(int, file.read().split())
		time.sleep(0.02)
	raise AssertionError("no process %s" % comm)


def elsewhere(script, *, comm, words=()):
	"""Returns the stacks of a chain that a shell script starts."""
	need_bpf()
	with Program("chain", DEPTH, path=[*words, "sh", "-ec", script, "sh"]) as program:
		pid = descendant(program.process.pid, comm)
		return exact(profile(pid), lambda stack: chain_error(stack, program.chains[comm])), program.pid


def unshared(place):
	"""Returns the command prefix that runs a command in its own mount and pid namespaces. Where the root directory is no mount point (in a
	chroot), its mounts may be visible here too: they are removed at the end."""
	words = ["unshare", "-m", "-p", "-f", "--kill-child"]
	if run([*words, "true"]).code:
		words += ["--propagation", "unchanged"]
		atexit.register(subprocess.run, ["umount", "-q", "-l", place], check=False)
	if run([*words, "true"]).code:
		skip("no right to make namespaces")
	return words


@test
def program_of_another_mount_and_pid_namespace():
	"""Its file is in a file system that is mounted only there; here, another file has the same path."""
	place = fresh_folder("island")
	shutil.copy(build("crowd"), os.path.join(place, "hidden"))
	words = unshared(place)
	note, pid = elsewhere("mount -t tmpfs none %s; cp %s %s/hidden; exec %s/hidden \"$@\"" % (place, build("chain"), place, place), comm="hidden", words=words)
	check(pid < 10, "no pid namespace: it calls itself %d" % pid)
	return note


def root_directory(name):
	"""Makes a root directory with the program chain as /bin/caged, and what it needs."""
	root = scratch(name)
	program = build("chain")
	needs = re.findall(r"(/\S+)", "\n".join(line.split("=>")[-1] for line in run(["ldd", program]).out.splitlines() if "/" in line))
	check(needs, "ldd says nothing")
	for file in needs:
		os.makedirs(os.path.dirname(root + file), exist_ok=True)
		shutil.copy(file, root + file)
	os.makedirs(root + "/bin", exist_ok=True)
	shutil.copy(program, root + "/bin/caged")
	return root


@test
def program_in_a_chroot():
	"""/proc/PID/maps shows the paths as we see them; below /proc/PID/root these paths do not exist."""
	if os.geteuid() != 0:
		skip("not root")
	root = root_directory("jail")
	note, _ = elsewhere('exec chroot %s /bin/caged "$@"' % root, comm="caged")
	return note


@test
def program_in_a_chroot_of_another_mount_namespace():
	"""As in a container: the root directory is a file system of its own, and no path leads there from here."""
	if os.geteuid() != 0:
		skip("not root")
	root, place = root_directory("cell"), fresh_folder("mount")
	note, _ = elsewhere('mount -t tmpfs none %s; cp -r %s/. %s; exec chroot %s /bin/caged "$@"' % (place, root, place, place), comm="caged",
		words=unshared(place))
	return note


# --- frame pointers and no tables ----------------------------------------------------------------------------------------------------


@test
def frame_pointers_alone():
	need_bpf()
	path = made("chain-fp-alone", "gcc", *FRAME_POINTERS, *NO_TABLES, source("chain.c"))
	with Program("chain", DEPTH, path=[path]) as program:
		return exact(profile(program.pid), lambda stack: chain_error(stack, program.chains["chain-fp-alone"]))


@test
def frame_pointers_in_a_part():
	"""The program has tables and no frame pointers; the libraries between its functions have frame pointers and no tables."""
	need_bpf()
	linked = made("liblinked-fp.so", "gcc", *FRAME_POINTERS, *NO_TABLES, "-shared", "-fPIC", source("library_linked.c"))
	plugin = made("plugin-fp.so", "gcc", *FRAME_POINTERS, *NO_TABLES, "-shared", "-fPIC", source("library_plugin.c"))
	path = with_gcc("library-fp", "library.c", libraries=[linked, "-Wl,-rpath," + PROGRAMS, "-ldl"])
	with Program("library", plugin, path=[path]) as program:
		return exact(profile(program.pid), lambda stack: chain_error(stack, program.chains["library-fp"]))


run_tests()
