#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--runtimes: of a language that is switched off the interpreter's own frames are shown, and its BPF program is not loaded; others are as before."""
import contextlib
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Background, bpf_names, check, check_equal, converted, fresh_folder, need_bpf, run_tests, scratch, skip, sonde, test # noqa: E402

PYTHON = ("python", "/usr/bin/python3", ["-c", "def spin():\n\twhile True: sum(range(4000))\nspin()"], "spin")
PERL = ("perl", "/usr/bin/perl", ["-e", "sub spin { my $i = 0; while (1) { $i++; } } spin();"], "main::spin")


@contextlib.contextmanager
def programs(*languages):
	started = [subprocess.Popen([program, *args], stdin=subprocess.DEVNULL) for _, program, args, _ in languages]
	try:
		yield [process.pid for process in started]
	finally:
		for process in started:
			process.kill()
			process.wait()


def functions_of(report, pid):
	"""(names of the process's frames, their kinds)"""
	frames = [report["frames"][frame] for sample in report["samples"] if sample["pid"] == pid and sample["user_stack"] is not None for frame in report["stacks"][sample["user_stack"]]]
	return {report["functions"][frame["function"]]["name"] for frame in frames}, {frame["kind"] for frame in frames}


def check_shown(report, pid, language, is_on):
	found, kinds = functions_of(report, pid)
	name, _, _, spin = language
	check(found, lambda: "no samples of %s" % name)
	check_equal((spin in found, name in kinds), (is_on, is_on), "%s's function, and frames of its kind" % name)
	loops = {"_PyEval_EvalFrameDefault", "Perl_runops_standard", "[Python]"}
	check(is_on or found & loops or len(found) > 1, lambda: "the interpreter's own frames are missing: %s" % found)


@test
def languages_are_switched():
	need_bpf()
	if not os.path.exists(PERL[1]):
		skip("no perl")
	with programs(PYTHON, PERL) as pids:
		time.sleep(0.5)
		for choice, on in ((), {"python", "perl"}), (("--runtimes", "none"), set()), (("--runtimes", "python"), {"python"}), (("--runtimes=go,perl",), {"perl"}):
			for verb in ("profile", "-F", 97), ("wall",):
				path = scratch("report.json")
				sonde(*verb, "-p", ",".join(map(str, pids)), *choice, "-o", path, 2, want=0)
				report = converted(path)
				for pid, language in zip(pids, (PYTHON, PERL)):
					check_shown(report, pid, language, language[0] in on)


@test
def programs_are_not_loaded():
	need_bpf()
	with programs(PYTHON) as pids:
		for choice, is_loaded in ((), True), (("--runtimes", "none"), False), (("--runtimes", "perl,go"), False):
			folder = fresh_folder("loaded")
			with Background("agent", "--store", folder, "--window", 1, "-F", 97, *choice).wait_line("Sampling") as running:
				time.sleep(2.5)
				found = {name for name in bpf_names(running.process.pid, "prog") if name.startswith("sonde_py")}
				running.send(signal.SIGTERM)
				check_equal(running.finish().code, 0, "exit")
			check_equal(bool(found), is_loaded, "programs of Python: %s" % sorted(found))
			check_shown(converted(folder), pids[0], PYTHON, is_loaded)


@test
def unknown_names():
	for choice, want in ("pyton", "there is no language 'pyton': did you mean python?"), ("python,jav", "did you mean java?"), ("python,none", "none stands alone"), ("", "needs a value"), ("python,", "there is no language ''"), ("x" * 5000, "there is no language 'xxx"):
		for verb in "profile", "offcpu", "wall", "agent":
			result = sonde(verb, "--runtimes", choice, 1, want=2)
			check(want in result.err, lambda: str(result)) # pylint: disable=cell-var-from-loop


run_tests()
