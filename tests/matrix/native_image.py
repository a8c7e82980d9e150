#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Graal native image: code without tables, symbols or frame pointers, static and stripped. Its stacks are whole, and where a frame's call says
where it leads, the next frame is in the function that begins there: functions are aligned, and int3 is between them."""
import json
import re
import struct
import subprocess
import time

from fetch import npm_program # sets the path to harness
from harness import check, cpu_seconds, need_bpf, run_tests, scratch, sonde, test # noqa: E402

FUNCTION = "function f%d(a, b) { var x = a * %d + b; for (var k = 0; k < 10; k++) { x += k * %d; if (x > %d) x = g%d(x); } return x; } " \
	"function g%d(q) { return q ? f%d(q, 1) : 0; } window['e%d'] = f%d;\n"


class Code:
	def __init__(self, path):
		with open(path, "rb") as file:
			self.bytes = file.read()
		at, nr = struct.unpack_from("<32xQ14xH", self.bytes)
		self.segments = [struct.unpack_from("<IIQQQQ", self.bytes, at + 56 * i) for i in range(nr)]

	def at(self, vaddr, size):
		for kind, _, off, start, _, length in self.segments:
			if kind == 1 and start <= vaddr < start + length:
				return self.bytes[off + vaddr - start:off + vaddr - start + size]
		return b""

	def link_error(self, callee, called_from):
		"""(is the call direct?, what is wrong)"""
		call = self.at(called_from - 5, 5)
		if call[:1] != b"\xe8":
			return False, None
		target = called_from + struct.unpack("<i", call[1:])[0]
		if not target <= callee < target + (1 << 20):
			return True, "%#x was called from %#x, but that calls %#x" % (callee, called_from, target)
		code = self.at(target, callee - target)
		for match in re.finditer(rb"\xcc{4,}", code): # one int3 may be part of an instruction
			if not (target + match.end()) % 16:
				return True, "%#x, called from %#x: %#x is another function" % (callee, called_from, target)
		return True, None


def chains(report):
	"""[(addresses, leaf first, or None where there is no address; does it end in a mark?, samples)]"""
	for sample in report["samples"]:
		frames = [report["frames"][number] for number in report["stacks"][sample["user_stack"]]] if sample["user_stack"] is not None else []
		names = [report["functions"][frame["function"]]["name"] for frame in frames]
		found = [re.fullmatch(r"\[compiler\+0x([0-9a-f]+)\]", name) for name in names]
		yield [int(match.group(1), 16) if match else None for match in found], not frames or frames[-1]["kind"] == "mark", sample["values"][0]


@test
def closure_compiler():
	need_bpf()
	program = npm_program("google-closure-compiler-linux", "20261015.0.0", "compiler")
	with open(scratch("in.js"), "w", encoding="ascii") as file:
		file.writelines(FUNCTION % ((i,) * 9) for i in range(8000))
	with subprocess.Popen([program, "--js", scratch("in.js"), "--js_output_file", "/dev/null"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
		try:
			while process.poll() is None and cpu_seconds(process.pid) < 0.3:
				time.sleep(0.1)
			report = json.loads(sonde("profile", "--format", "json", "-U", "-F", 499, "-p", process.pid, 12, want=0, timeout=120).out)
		finally:
			process.kill()
	code, nr, nr_marked, nr_links, wrong = Code(program), 0, 0, 0, []
	for addresses, is_marked, samples in chains(report):
		nr += samples
		nr_marked += samples if is_marked else 0
		for callee, caller in zip(addresses, addresses[1:]):
			if callee and caller:
				is_direct, error = code.link_error(callee, caller)
				nr_links += is_direct
				wrong += [error] if error else []
	print("#   %d samples, %d end in a mark; %d direct calls" % (nr, nr_marked, nr_links))
	check(nr >= 100 and nr_links >= 500, "too few samples")
	check(not wrong, lambda: "%d of %d links are wrong: %r" % (len(wrong), nr_links, wrong[:8]))
	check(nr_marked <= 0.1 * nr, lambda: "%d of %d stacks end in a mark" % (nr_marked, nr))


if __name__ == "__main__":
	run_tests(seconds=600) # its requirements are fetched
