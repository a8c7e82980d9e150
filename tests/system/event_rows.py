# SPDX-License-Identifier: Apache-2.0
"""The JSON lines of sonde files, sonde io and sonde trace."""
import json
import subprocess

from harness import Background, check_equal, need_bpf


def rows(text, name):
	"""The objects of JSON lines, without the first, which is checked."""
	lines = [json.loads(line) for line in text.splitlines()]
	check_equal((lines[0]["format"], lines[0]["version"]), (name, 1), "first line")
	return lines[1:]


def split(out):
	"""Standard output of sonde and of its command, which have no line in common."""
	lines = out.splitlines()
	return "\n".join(line for line in lines if line.startswith("{")), "\n".join(line for line in lines if not line.startswith("{"))


def start(*argv):
	return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def trace_whole(argv, *words):
	"""Traces a program that prints "ready" and waits for a line, to its end. Returns its output, and how sonde ended."""
	need_bpf()
	program = start(*argv)
	try:
		for line in program.stdout:
			if line.startswith("ready"):
				break
		with Background("trace", *words, "-p", program.pid) as trace:
			trace.wait_line("Tracing")
			return program.communicate("\n", timeout=60)[0], trace.finish()
	finally:
		program.kill()
		program.communicate()


def trace_program(argv, *words):
	"""The JSON rows, the program's output, and sonde's standard error."""
	out, result = trace_whole(argv, *words, "--format", "json")
	return rows(result.out, "sonde-trace"), out, result.err
