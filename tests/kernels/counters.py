#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counters on a PMU that works: an arm64 guest in QEMU (Debian 13's kernel, a Cortex-A57), which counts each emulated instruction. `sonde stat` without the rest of sonde, and the
library, cross-compiled, on loops whose instructions are known from the loop's length: twice as many turns, twice as many instructions."""
import glob
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from guest import Guest, image # noqa: E402
from harness import ROOT, SOURCES, Failure, Skip, check, check_equal, find_tool, run, run_tests, scratch, skip, test # noqa: E402

PERIOD = 5000000 # QEMU sees an overflow at the next tick of the guest's clock, one every 2 million instructions
EVENTS = "cycles,instructions,page-faults,task-clock"
SCRIPT = """
ls /sys/bus/event_source/devices > /devices
step devices cat /devices
step json /stat --format json -o - -e hardware -e software -e cache -- /counted 0 100 0 0 1 200
step text /stat -e %s -- /counted 0 100 0 0 1 200
step user /stat --format json -o - -e instructions:u,instructions:k,instructions -- /counted 0 1000 0 0 1 100
step group /stat --format json -o - -e '{cycles,instructions},page-faults' -- /counted 0 0 0 0 1 200
step crowd /stat --format json -o - -e instructions,instructions,instructions,instructions,instructions,instructions,instructions,instructions,instructions,instructions -- /counted 0 0 0 0 1 250
step alias /stat --format json -o - -e armv8_pmuv3/inst_retired/,instructions,r8 -- /counted 0 0 0 0 1 200
step whole /stat --format json -o - -e cycles,instructions -a 1
step intervals /stat -I 100 --format json -o - -e instructions -- /counted 0 0 0 0 1 500
step repeats /stat -r 3 -e instructions -- /counted 0 0 0 0 1 50
step missing /stat -e bus-cycles,ref-cycles,node-loads,instructions -- /counted 0 0 0 0 1 50
step tracepoint /stat --format json -o - -e sched:sched_process_fork -- /counted 0 0 0 5
step counts /counters counts instructions:u
step group_read /counters group instructions:u
step many /counters crowd instructions:u
step overflows /counters overflows instructions:u 12 %d
step bpf /counters bpf instructions:u 12 %d
step threads /counters threads instructions:u
""" % (EVENTS, PERIOD, PERIOD)
booted = []


def cross(name, sources, *options):
	"""A static program for the guest."""
	compiler = find_tool("aarch64-linux-gnu-gcc") or skip("no aarch64-linux-gnu-gcc")
	target = scratch(name + "-arm64")
	folders = ["-I" + os.path.join(ROOT, folder) for folder in ("src", "include", "bpf")]
	result = run([compiler, "-static", "-O1", "-ffunction-sections", "-Wl,--gc-sections", "-std=gnu17", "-fms-extensions", "-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64", *folders, *sources, *options, "-o", target, "-lm", "-lpthread"], timeout=240)
	check(result.code == 0, lambda: str(result))
	return target


def boot():
	kernel = image("debian", "trixie", "arm64")
	library_sources = [path for folder in ("counter", "base", "codec") for path in glob.glob(os.path.join(ROOT, "src", folder, "*.c"))]
	cli = [path for word in ("stat/*", "cli/option*", "cli/output", "cli/plain_format", "cli/signals", "cli/machine", "cli/target_options", "cli/verb_run") for path in glob.glob(os.path.join(ROOT, "src", word + ".c"))]
	programs = {"stat": cross("stat", [*library_sources, *cli, os.path.join(SOURCES, "stat_alone.c")]),
		"counters": cross("counters", [*library_sources, os.path.join(SOURCES, "counters.c")]), "counted": cross("counted", [os.path.join(SOURCES, "counted.c")])}
	booted_guest = Guest(kernel, programs, SCRIPT, "arm64")
	devices = " ".join(booted_guest.step("devices").out.split())
	return booted_guest if "armv8" in devices else skip("QEMU gives this guest no PMU: %s" % devices)


def guest():
	"""The guest boots once, for all tests. If it cannot boot, they all give the same reason."""
	if not booted:
		try:
			booted.append(boot())
		except Skip as reason:
			booted.append(reason)
		except Failure:
			booted.append(Failure("the guest did not get through, as was said"))
			raise
	if isinstance(booted[0], Exception):
		raise booted[0]
	return booted[0]


def report_of(name):
	return json.loads(guest().step(name, 0).out)


def values_of(name):
	return [event["value"] for event in report_of(name)["events"]]


def library(name):
	return {key: int(value) for key, _, value in (line.partition(" ") for line in guest().step(name, 0).out.splitlines())}


@test
def hardware_in_json():
	report = report_of("json")
	check(report["instructions"] > 1000000 and report["cpu_cycles"] > 1000000 and report["page_faults"] >= 100, str(report)[:600])
	for event in report["events"]:
		check((event["error"] is None) != (event["value"] is None), str(event))
	names = {event["name"]: event for event in report["events"]}
	missing = [name for name, event in names.items() if event["error"]]
	check(missing and all("do not count" in names[name]["error"] for name in missing), "all there? %s" % missing)
	return "%d of %d events, %d scaled" % (len(names) - len(missing), len(names), sum(event["scaled"] for event in names.values()))


@test
def metrics():
	text = guest().step("text", 0).err
	values = {name: float(value) for value, name in re.findall(r"^ +([\d.]+) +(?:msec +)?([\w-]+)", text, re.MULTILINE)}
	match = re.search(r"instructions +# +([\d.]+) insn per cycle", text)
	check(match and abs(float(match.group(1)) - values["instructions"] / values["cycles"]) < 0.01, text)
	check(abs(float(match.group(1)) - 0.5) < 0.01, "QEMU gives an instruction two cycles: " + text)
	match = re.search(r" cycles +# +([\d.]+) GHz", text)
	check(match and abs(float(match.group(1)) - values["cycles"] / values["task-clock"] / 1e6) < 0.02, text)
	return " ".join(text.split())[:100]


@test
def modes():
	user, kernel, both = values_of("user")
	check(user > 0 and kernel > 0 and abs(user + kernel - both) < 0.2 * both, "%s %s %s" % (user, kernel, both))


@test
def group():
	cycles, instructions, faults = values_of("group")
	check(cycles > 1000000 and abs(cycles - 2 * instructions) < 0.01 * cycles and faults > 10, str((cycles, instructions, faults)))


@test
def more_than_the_pmu_has():
	"""Each counter runs for a part of the time; its value is scaled to all of it."""
	events = report_of("crowd")["events"]
	check(any(event["scaled"] for event in events) and all(0 < event["running_ns"] <= event["enabled_ns"] for event in events), str(events))
	values = [event["value"] for event in events]
	check(max(values) < 1.6 * min(values), str(values))
	return "%d scaled, %d to %d" % (sum(event["scaled"] for event in events), min(values), max(values))


@test
def aliases():
	alias, common, raw = values_of("alias")
	check(abs(alias - common) < 0.02 * common and abs(raw - common) < 0.02 * common, str((alias, common, raw)))


@test
def whole_machine():
	cycles, instructions = values_of("whole")
	check(cycles > instructions > 0, str((cycles, instructions)))


@test
def intervals():
	"""An interval in which the emulator gave the program no time says that nothing was counted; the others have their counts."""
	reports = [json.loads(line) for line in guest().step("intervals", 0).out.splitlines()]
	counted = [report["instructions"] for report in reports if "instructions" in report]
	idle = [report["events"][0] for report in reports if "instructions" not in report]
	check(len(reports) >= 4 and len(counted) >= 2 and min(counted) > 0, str(reports)[:400])
	check(all(event["error"] and not event["running_ns"] for event in idle), str(idle)[:400])
	return "%d intervals, %d idle" % (len(reports), len(idle))


@test
def repeats():
	check(re.search(r"\d+ +instructions .*\(\+- +[\d.]+%\)", guest().step("repeats", 0).err), guest().step("repeats").err)


@test
def missing():
	"""Events that this processor lacks are reported; the others count."""
	text = guest().step("missing", 0).err
	check("the processors of this machine do not count 'ref-cycles'" in text and re.search(r"\d{6,} +instructions", text), text)


@test
def tracepoints():
	report = report_of("tracepoint")
	check_equal(report["events"][0]["value"], 5, str(report))


@test
def library_counts():
	"""A loop of three million turns, of five instructions at least."""
	values = library("counts")
	check(15e6 <= values["value"] <= 60e6 and abs(values["once"] - values["value"]) < 0.01 * values["value"] and values["reset"] == 0 and values["result"] == 7, str(values))
	return "%d instructions" % values["value"]


@test
def library_group():
	values = library("group_read")
	check(values["value0"] == values["value1"] == values["value2"] > 15e6, str(values)) # the same event at the same moment: the same value


@test
def library_scaled():
	values, expected = library("many"), library("counts")["value"]
	each = [values["value%d" % i] for i in range(30)]
	check(values["scaled"] >= 20 and abs(sum(each) / 30 - expected) < 0.25 * expected, "%s, want %d" % (values, expected))


@test
def library_overflows():
	values = library("overflows")
	check(abs(values["events"] - values["value"]) <= 0.1 * values["value"] and values["in_loop"] >= 0.9 * values["nr"] > 30 and values["lost"] == 0, str(values))
	return "%d overflows of %d in %d" % (values["nr"], PERIOD, values["value"])


@test
def library_bpf():
	values = library("bpf")
	check(abs(values["nr"] * PERIOD - values["value"]) <= 0.1 * values["value"], str(values))


@test
def library_threads():
	values = library("threads")
	own = [values["own%d" % i] for i in range(8)]
	check(max(own) < 1.5 * min(own) and min(own) > 15e6 and values["all"] >= sum(own), str(values))


run_tests(seconds=400) # the first test fetches a kernel and boots it
