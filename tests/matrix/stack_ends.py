#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stacks through code with unusual or missing call frame information, up to their first function. A program with a known chain of calls spins
in its innermost function. All but a few of its samples must be whole, and that chain."""
import os
import re
import subprocess

from fetch import npm_program
from roots import Inside, root # sets the path to harness
from harness import check, check_exact, need_bpf, parse_folded, run_tests, scratch, sonde, test, total # noqa: E402


def check_chain(pid, pattern):
	"""Each stack begins with _start and contains the functions outer, middle and inner, by the pattern's group, in this order."""
	def error_of(stack):
		names = [match.group(1) for match in map(re.compile(pattern).match, stack.user) if match]
		if not stack.user or stack.user[0] != "_start":
			return "does not begin with _start"
		return None if names == ["outer", "middle", "inner"][:len(names)] else "its functions are %s" % names
	check_exact(parse_folded(sonde("profile", "-f", "-a", "-U", "-F", 499, "-p", pid, 3, want=0).out), error_of, at_least=300)


# OCaml 5 runs its functions on stacks of its own, and C on the system's. Each change of stacks is a frame marked as a signal frame. Half of the time
# is spent in C, half of it in a fiber.
OCAML = """
let sink = ref 0
let[@inline never] inner () = for i = 1 to 1000 do sink := (!sink * 7 + i) land 0xffff done; sink := Hashtbl.hash (String.make 20000 'x')
let[@inline never] middle () = inner (); incr sink
let[@inline never] outer () = middle (); incr sink
let () =
  print_endline "ready";
  while true do
    outer ();
    Effect.Deep.match_with outer () { retc = Fun.id; exnc = raise; effc = (fun _ -> None) }
  done
"""


@test
def ocaml_5_stacks_are_whole():
	need_bpf()
	folder = root("trixie", ["ocaml-nox", "gcc", "libc6-dev"])
	with open(scratch("spin.ml"), "w", encoding="ascii") as file:
		file.write(OCAML)
	share = os.path.dirname(scratch("x"))
	with Inside(folder, ["/bin/sh", "-c", "cd /tmp && cp /mnt/spin.ml . && ocamlopt spin.ml -o spin && exec ./spin"], share=share) as program:
		program.wait_line("ready")
		check_chain(program.pid, r"caml[A-Z]\w*\.(inner|middle|outer)_\d+$")


# Their own code has no call frame information, and their start no name.
SCRIPT = "const end = Date.now() + 60000; let x = 0; console.log('ready'); while (Date.now() < end) x += JSON.stringify([x, { a: x }]).length;"


def check_whole(minimum, name, program, *words):
	"""Stacks are whole, and say whose code there is; those of threads without it do not."""
	need_bpf()
	with open(scratch("spin-json.js"), "w", encoding="ascii") as file:
		file.write(SCRIPT)
	with subprocess.Popen([program, *words, scratch("spin-json.js")], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
		try:
			process.stdout.readline()
			stacks = []
			for _ in range(8): # 0.3 % of Deno's are cut: of 100 samples, one in ten times more than 1 %
				stacks += parse_folded(sonde("profile", "-f", "-a", "-U", "-F", 499, "-p", process.pid, 3, want=0).out)
				if total(stacks) >= 1000:
					break
			check_exact(stacks, lambda stack: None if stack.user[1:2] == ["__libc_start_main"] or stack.user[:1] == ["clone3"] else "is cut", minimum=minimum, at_least=100)
			marks = {}
			for stack in stacks:
				for frame in {frame for frame in stack.user if frame.startswith("[unsupported")}:
					marks[frame] = marks.get(frame, 0) + stack.count
			check(set(marks) == {"[unsupported %s]" % name} and max(marks.values()) >= 0.5 * total(stacks), lambda: "marks in %d samples: %r" % (total(stacks), marks))
		finally:
			process.kill()


@test
def bun_stacks_are_whole():
	"""While its code is compiled, other threads are in memory without rows: 5 %."""
	check_whole(0.9, "Bun", npm_program("@oven/bun-linux-x64", "1.4.5", "bin/bun"))


@test
def deno_stacks_are_whole():
	check_whole(0.99, "Deno", npm_program("@deno/linux-x64-glibc", "2.9.6", "deno"), "run")


if __name__ == "__main__":
	run_tests(seconds=900) # its requirements are fetched
