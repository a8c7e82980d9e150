#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions that are recreated all the time and live only for a moment: a name that cannot be read at once is read later, and then appears in all
samples."""
import json
import subprocess

from harness import check, find_tool, need_bpf, run_tests, scratch, skip, sonde, test
from python_programs import pythons

PHP = """<?php
function spin($n) { for ($i = 0; $i < $n; $i++); }
function other() { $text = str_repeat("x", 290 + mt_rand(0, 9)); spin(2500); } // has the memory of the closure
function once() { $closure = function () { spin(150); }; $closure(); }
echo "ready\\n";
while (true) { once(); other(); }
"""

PERL = """
$| = 1;
sub spin { for (my $i = 0; $i < $_[0]; $i++) {} }
sub other { my $text = "x" x (90 + rand 300); spin(1500); }
sub once { my $n = 100; my $sub = sub { spin($n); }; $sub->(); }
print "ready\\n";
while (1) { once(); other(); }
"""

PYTHON = """
import random
print("ready", flush=True)
def spin(n):
	while n: n -= 1
def other():
	text = "x" * random.randrange(60, 300)
	spin(2500)
def once():
	n = 150
	again = lambda: spin(n)
	again()
while True:
	once()
	other()
"""


def callers_of_spin(argv, kind):
	"""Returns {caller of spin: samples}, from three recordings of a program that has just started."""
	found = {}
	for _ in range(3):
		with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
			try:
				process.stdout.readline()
				report = json.loads(sonde("profile", "--format", "json", "-U", "-F", 1999, "-p", process.pid, 2, want=0).out)
			finally:
				process.kill()
		for sample in report["samples"]:
			frames = [report["frames"][number] for number in report["stacks"][sample["user_stack"]]]
			names = [report["functions"][frame["function"]]["name"] for frame in frames if frame["kind"] == kind]
			for callee, caller in zip(names, names[1:]):
				if callee.endswith("spin"):
					found[caller] = found.get(caller, 0) + sample["values"][0]
	return found


def check_callers(argv, kind, want):
	need_bpf()
	found = callers_of_spin(argv, kind)
	check(found.get(want[0], 0) >= 30 and set(found) == set(want), "%s: %r" % (argv[0], found))
	return "%r" % found


def script(name, text):
	path = scratch(name)
	with open(path, "w", encoding="ascii") as file:
		file.write(text)
	return path


@test
def closures_of_php():
	php = find_tool("php") or skip("php is not installed")
	return check_callers([php, script("remade.php", PHP)], "php", ("{closure}", "other"))


@test
def subs_of_perl():
	perl = find_tool("perl") or skip("perl is not installed")
	return check_callers([perl, script("remade.pl", PERL)], "perl", ("main::__ANON__", "main::other"))


@test
def lambdas_of_python():
	said = []
	for python in pythons():
		lambda_name = "once.<locals>.<lambda>" if "3.9" not in python else "<lambda>"
		said.append(check_callers([python, script("remade.py", PYTHON)], "python", (lambda_name, "other")))
	return "\n".join(said)


if __name__ == "__main__":
	run_tests()
