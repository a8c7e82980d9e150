#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde's per-program state does not grow without bound: unwind tables, files, descriptors, memory. Counts are compared, not times."""
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time

from harness import Background, Program, build, chain_error, check, check_exact, fresh_folder, load_json, need_bpf, parse_json, record, run_tests, scratch, sonde, test

BUILD_ID_NOTE = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0"
SERIAL = b"serial number: 00000000"
NR_PROGRAMS = 1000
SAMPLES_BYTES = 10240  # room for the samples and stacks of a program: the profile itself has to grow
NR_BEFORE = 200  # from then on nothing grows: idle files and their tables are kept for some seconds


def make_copies(directory):
	"""Makes programs that differ: each has its own build id and contents."""
	with open(build("passing"), "rb") as file:
		image = bytearray(file.read())
	id_at, serial_at = image.index(BUILD_ID_NOTE) + len(BUILD_ID_NOTE), image.index(SERIAL) + len(SERIAL) - 8
	for i in range(NR_PROGRAMS):
		image[id_at:id_at + 20] = b"%020d" % i
		image[serial_at:serial_at + 8] = b"%08d" % i
		path = os.path.join(directory, "passing%d" % i)
		with open(path, "wb") as file:
			file.write(image)
		os.chmod(path, 0o755)


def footprint(pid):
	"""Returns descriptors, kernel memory of BPF maps and resident memory of a process."""
	nr_fds = map_bytes = 0
	for fd in os.listdir("/proc/%d/fdinfo" % pid):
		try:
			with open("/proc/%d/fdinfo/%s" % (pid, fd), encoding="ascii") as file:
				text = file.read()
		except FileNotFoundError:
			continue
		nr_fds += 1
		map_bytes += sum(map(int, re.findall(r"^memlock:\t(\d+)$", text, re.M)))
	with open("/proc/%d/status" % pid, encoding="ascii", errors="replace") as file:
		rss = int(re.search(r"^VmRSS:\s+(\d+) kB$", file.read(), re.M).group(1)) * 1024
	return {"descriptors": nr_fds, "bytes in BPF maps": map_bytes, "bytes resident": rss}


RUNNER = """
run() { while [ $i -lt $1 ]; do ./passing$i 3; $2 passing$i; i=$((i+1)); done; }
meet() { : > $1; while [ ! -e $2 ]; do sleep 0.05; done; }
i=0; run %d %s; meet some go_on; run %d %s; meet all end
"""


def come_and_go(after_each, **kwargs):
	"""Runs the programs one after the other under sonde. Returns its footprint after the first ones and after the last, and its report."""
	directory, report = fresh_folder("passing"), scratch("passing.json")
	make_copies(directory)

	def meet(word, answer):
		until = time.monotonic() + 120
		while not os.path.exists(os.path.join(directory, word)):
			check(time.monotonic() < until, "the programs do not come to their end")
			time.sleep(0.02)
		taken = footprint(background.process.pid)
		with open(os.path.join(directory, answer), "w", encoding="ascii"):
			return taken
	runner = RUNNER % (NR_BEFORE, after_each, NR_PROGRAMS, after_each)
	with Background("profile", "-F", 999, "-o", report, "--no-unwind-cache", "--unwind-memory", 4, "--", "sh", "-c", runner, cwd=directory, **kwargs) as background:
		before = meet("some", "go_on")
		after = meet("all", "end")
		result = background.finish(timeout=60)
	shutil.rmtree(directory)
	check(result.code == 0, result)
	return before, after, load_json(report)


def check_growth(before, after, descriptors):
	told = "; ".join("%s %d, then %d" % (name, before[name], after[name]) for name in before)
	check(after["descriptors"] <= before["descriptors"] + descriptors, told)
	check(after["bytes in BPF maps"] <= before["bytes in BPF maps"] + (1 << 20), told)
	check(after["bytes resident"] <= before["bytes resident"] + (NR_PROGRAMS - NR_BEFORE) * SAMPLES_BYTES, told)
	return told


TOO_EARLY = "[process not known yet]"


def check_passing(report, named):
	"""The stacks are right, including names where the file can be found again. When sonde gets so little CPU time that more deferred stacks
	arrive than it takes in that time, the others are marked and counted."""
	stacks = [stack for stack in parse_json(report) if stack.comm.startswith("passing")]
	hit = {stack.comm for stack in stacks if "spin" in stack.user}
	check(not named or len(hit) > NR_PROGRAMS * 0.8, "spin has a name in %d programs only" % len(hit))
	for stack in stacks:
		at = stack.user.index("spin") if "spin" in stack.user else None
		check(at is None or stack.user[max(at - 2, 0):at + 1] == ["main", "middle", "spin"], lambda: "spin is elsewhere: %s" % stack) # pylint: disable=cell-var-from-loop
	early, refused = sum(stack.count for stack in parse_json(report) if TOO_EARLY in stack.user), report["account"]["late_refused"]
	check(early <= refused, lambda: "%d stacks %s, but %d refused" % (early, TOO_EARLY, refused))
	return "%d of them seen by name, %d marked" % (len(hit), early)


@test
def a_thousand_programs():
	need_bpf()
	before, after, report = come_and_go(":")
	told = check_growth(before, after, 100)
	met, lost = report["account"]["nr_objects"], report["account"]["lost_sideband"] # each record that the kernel had no room for may have been one of these
	check(met + lost > NR_PROGRAMS, lambda: "only %d files were met, %d records lost" % (met, lost))
	return told + "; " + check_passing(report, True)


@test
def a_thousand_that_are_deleted():
	"""After a program ends, only its descriptor is kept, up to half of the limit. Beyond that the oldest lose their names, which is
	reported."""
	need_bpf()
	limit = 400
	before, after, report = come_and_go("rm", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
	check(after["descriptors"] < limit, "%d descriptors" % after["descriptors"])
	check(any("are gone and have no names" in note for note in report["account"]["notes"]), report["account"]["notes"])
	return "%d descriptors of %d; %s" % (after["descriptors"], limit, check_passing(report, False))


@test
def more_than_the_cap():
	"""There is room for a fraction of the tables needed: complete stacks are right, the others are marked, and the tables take turns."""
	need_bpf()
	churn = subprocess.Popen(["sh", "-c", "while :; do python3 -c 'import json, ssl, decimal; sum(range(300000))'; perl -e 'for(1..200000){}'; "
		"echo 'int main(void) { return 0; }' | gcc -O2 -x c -c -o /dev/null -; git --version; done"],
		stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
	try:
		with Program("chain", 20) as program:
			time.sleep(0.5)
			report, result = record("profile", "-F", 499, "--unwind-memory", 1, 6)
	finally:
		os.killpg(churn.pid, signal.SIGKILL)
		churn.wait()
	account = report["account"]
	check(account["unwind_evicted"] > 5 and account["unwind_reloaded"], "evicted %(unwind_evicted)d, reloaded %(unwind_reloaded)d" % account)
	check(0 < account["unwind_bytes"] < 1 << 20, "%d bytes of tables" % account["unwind_bytes"])
	check("made room for others" in result.err, result.err)
	mine = [stack for stack in parse_json(report) if stack.pid == program.pid]
	whole = [stack for stack in mine if not any(frame.startswith("[") and "libc" not in frame for frame in stack.user)]
	check_exact(whole, lambda stack: chain_error(stack, program.chains["chain"]))
	marked = sum(stack.count for stack in mine) - sum(stack.count for stack in whole)
	sides = sum(account["stopped"].values()) + account["missed_user"]
	check(account["stopped"]["complete"] + account["stopped"]["not_loaded"] + account["late"] > 0.9 * sides, account["stopped"])
	return "%(unwind_evicted)d made room, %(unwind_reloaded)d came back; " % account + "%d of %d stacks not loaded; of the known program's %d marked" % (
		account["stopped"]["not_loaded"], sides, marked)


@test
def the_second_start_compiles_nothing():
	"""With a cache of its own, the second start has the same tables and the same stacks."""
	need_bpf()
	cache = tempfile.mkdtemp(dir=scratch(""))
	with Program("chain", 20) as program:
		runs = []
		for _ in range(2):
			runs.append(record("profile", "-F", 499, "-p", program.pid, 1, env={**os.environ, "SONDE_CACHE_DIR": cache})[0])
			check_exact([stack for stack in parse_json(runs[-1])], lambda stack: chain_error(stack, program.chains["chain"]))
	first, second = (entry["account"] for entry in runs)
	check(first["unwind_cached"] == 0 and second["unwind_cached"] >= 1, "%d, then %d from the cache" % (first["unwind_cached"], second["unwind_cached"]))
	check(first["unwind_rows"] == second["unwind_rows"], "%d rows, then %d" % (first["unwind_rows"], second["unwind_rows"]))
	check(os.stat(os.path.join(cache, "unwind")).st_mode & 0o777 == 0o700, "the cache is open to others")
	os.chmod(os.path.join(cache, "unwind"), 0o755)
	third = sonde("profile", "-f", "-F", 499, "-K", 1, env={**os.environ, "SONDE_CACHE_DIR": cache})
	check("is not used: it must belong to this user" in third.err, third)
	return "%d rows in %d files" % (second["unwind_rows"], second["unwind_cached"])


run_tests()
