#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions that are recreated all the time and live only for a moment: a name that cannot be read at once is read later, and then appears in all
samples."""
import json
import re
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

# Functions with one name after the other, each made until it has the memory of one before. A line for each: its name, and whether it has.
TURNS_OF_PYTHON = """
import itertools, time
source = "def turn_%d():\\n end = time.monotonic() + 0.2\\n while time.monotonic() < end:\\n  for i in range(50): pass\\n"
def make(number):
	names = {"time": time}
	exec(compile(source % number, "same", "exec"), names)
	return names.pop("turn_%d" % number)
def place(made):
	code = made.__code__
	return tuple(id(part) for part in (code, code.co_name, code.co_filename, getattr(code, "co_linetable", None) or code.co_lnotab))
used = set()
for number in itertools.count(11):
	made = None
	for _ in range(400):
		made = make(number)
		if place(made) in used:
			break
		made = None
	made = made or make(number)
	print("turn_%d" % number, place(made) in used, flush=True)
	used.add(place(made))
	made()
"""

TURNS_OF_LUA = """
if jit then jit.off() end
local body = "return function() local stop = os.clock() + 0.2 while os.clock() < stop do for i = 1, 50 do end end end"
local function make(number) return loadstring(body, "@turn_" .. number)() end
local function place(made) return string.format("%p", made) end
local last
for number = 11, 1e9 do
	local made
	for _ = 1, 60 do
		made = nil
		collectgarbage() collectgarbage()
		made = make(number)
		if place(made) == last then break end
	end
	print("turn_" .. number, place(made) == last) io.flush()
	last = place(made)
	made()
end
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


def check_turns(argv, kind):
	"""Each name has its share of the samples of one window, though the functions have one address. None: they had not."""
	need_bpf()
	with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, encoding="ascii") as process:
		try:
			process.stdout.readline()
			report = json.loads(sonde("profile", "--format", "json", "-U", "-F", 499, "-p", process.pid, 3, want=0).out)
		finally:
			process.kill()
		turns = [line.split() for line in process.stdout.read().splitlines()]
	again = [name for name, is_again in turns if is_again.lower() == "true"]
	if len(again) < 4:
		return None
	seen = dict.fromkeys(again, 0)
	for sample in report["samples"]:
		frames = [report["frames"][number] for number in report["stacks"][sample["user_stack"]]]
		for name in {name for frame in frames if frame["kind"] == kind for name in re.findall(r"turn_\d+", report["functions"][frame["function"]]["name"])} & set(again):
			seen[name] += sample["values"][0]
	amounts = sorted(seen.values())
	check(sum(amount > 0.3 * amounts[-1] for amount in amounts) >= len(again) - 4, lambda: str(seen)) # the first ones and the last were not sampled all the time
	return "%s of %d turns" % (amounts, len(turns))


@test
def another_name_in_the_same_memory_of_python():
	said = [check_turns([python, script("turns.py", TURNS_OF_PYTHON)], "python") for python in pythons()]
	check(any(said), "no memory was used again")
	return "\n".join(str(one) for one in said)


@test
def another_name_in_the_same_memory_of_lua():
	luajit = find_tool("luajit") or skip("luajit is not installed")
	said = check_turns([luajit, script("turns.lua", TURNS_OF_LUA)], "luajit")
	check(said, "no memory was used again")
	return said


if __name__ == "__main__":
	run_tests()
