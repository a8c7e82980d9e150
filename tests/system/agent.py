#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde agent: what it stores is what it sampled, and nothing that is done to its store or to itself loses more than it says."""
import os
import random
import re
import shutil
import signal
import sqlite3
import stat
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import SONDE, Background, Program, check, check_equal, converted, cpu_seconds, fresh_folder, need_bpf, nr_samples, run, run_tests, scratch, skip, sonde, test # noqa: E402

NS = 10**9


def agent(folder, *args):
	return Background("agent", "--store", folder, "--window", 1, "-F", 97, *args)


def stored(folder):
	"""Returns (start, end) of each window, by SQLite itself, after its own check of the file."""
	with sqlite3.connect(os.path.join(folder, "profiles.db")) as connection:
		check_equal(connection.execute("PRAGMA integrity_check").fetchall(), [("ok",)], "integrity")
		return connection.execute("SELECT start_ns, end_ns FROM window ORDER BY id").fetchall()


def counts(text):
	"""(stored, lost) of the last line."""
	return tuple(int(number) for number in re.search(r"stored: (\d+) windows in .*; lost: (\d+)", text).groups())


@test
def the_store_holds_what_was_sampled():
	need_bpf()
	folder = fresh_folder("store")
	with Program("chain") as program, agent(folder, 6) as running:
		chain = next(iter(program.chains.values()))
		result = running.finish()
		used_s = cpu_seconds(program.pid)
	rows = stored(folder)
	report = converted(folder)
	windows, samples = map(int, re.search(r"total: (\d+) windows, (\d+) samples", result.err).groups())
	check_equal((len(rows), counts(result.err)), (windows, (windows, 0)), "windows, and those that are stored and lost")
	check_equal((nr_samples(report), int(report["account"]["recorded"])), (samples, samples), "samples, and the account's")
	check_equal(int(report["account"]["duration_ns"]), sum(end - start for start, end in rows), "duration")
	names = [report["functions"][frame["function"]]["name"] for frame in report["frames"]]
	of_program = [sample for sample in report["samples"] if sample["pid"] == program.pid]
	wrong = [sample for sample in of_program if [names[frame] for frame in report["stacks"][sample["user_stack"]]][::-1][-len(chain):] != chain]
	check(of_program and not wrong, lambda: "%d of the program's %d stacks are not %s" % (len(wrong), len(of_program), chain))
	check(0.5 < nr_samples(report, program.pid) / (97 * used_s) < 1.1, lambda: "%d samples of the program in %.1f s of CPU time at 97 Hz" % (nr_samples(report, program.pid), used_s))
	for file in os.listdir(folder):
		check_equal(stat.S_IMODE(os.stat(os.path.join(folder, file)).st_mode) & 0o077, 0, "others' rights to " + file)


@test
def a_time_of_the_store():
	"""Parts of the time add up to all of it; diff takes two of them; nonsense is refused."""
	need_bpf()
	folder = fresh_folder("times")
	with Program("chain"), agent(folder, 4) as running:
		running.finish()
	rows = stored(folder)
	border = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(rows[2][0] // NS + 1))
	by_hand = [0, 0]
	for start, end in rows:
		by_hand[0] += start < (rows[2][0] // NS + 1) * NS
		by_hand[1] += end > (rows[2][0] // NS + 1) * NS
	both = [converted("%s@%s" % (folder, times)) for times in ("..%s" % border, border)]
	for report, nr in zip(both, by_hand):
		check(abs(int(report["account"]["duration_ns"]) - nr * NS) < NS, lambda: "%s ns of %d windows" % (report["account"]["duration_ns"], nr)) # pylint: disable=cell-var-from-loop
	result = sonde("diff", "%s@..%s" % (folder, border), "%s@%s" % (folder, border), want=0)
	check("of samples" in result.out, lambda: str(result))
	check_equal(nr_samples(converted(folder + "@-1h")), nr_samples(converted(folder)), "samples of the last hour")
	for times, want in ("@-1x", "is no time"), ("@yesterday", "is no time"), ("@-1m..-2m", "ends before it begins"), ("@-99999999999999999999s", "is no time"), ("@2020-01-01..2020-01-02", "no window"):
		result = sonde("show", folder + times, want=1)
		check(want in result.err, lambda: str(result)) # pylint: disable=cell-var-from-loop


@test
def sigterm_stores_the_last_window():
	need_bpf()
	for signo in signal.SIGTERM, signal.SIGINT:
		folder = fresh_folder("last")
		with Program("chain") as program, Background("agent", "--store", folder, "--window", 600, "-F", 97).wait_line("Sampling") as running:
			time.sleep(2)
			running.send(signo)
			result = running.finish()
		check_equal((result.code, counts(result.err)), (0, (1, 0)), "exit, windows stored and lost")
		check(nr_samples(converted(folder), program.pid) > 50, lambda: "the program has %d samples" % nr_samples(converted(folder), program.pid)) # pylint: disable=cell-var-from-loop


@test
def an_end_before_the_first_sample():
	"""A service manager may stop what it has just started: that is no failure."""
	need_bpf()
	folder = fresh_folder("early")
	for number, signo in enumerate((signal.SIGTERM, signal.SIGINT) * 6):
		if os.path.exists(os.path.join(folder, "lock")):
			os.unlink(os.path.join(folder, "lock"))
		with agent(folder, "--otlp", "127.0.0.1:1") as running:
			while running.process.poll() is None and not os.path.exists(os.path.join(folder, "lock")):
				pass # it is milliseconds that count
			time.sleep(0.04 * number)
			running.send(signo)
			result = running.finish()
		check(result.code == 0 and re.search(r"stored: [01] windows in .*; lost: 0", result.err), lambda: "signal %d: %s" % (signo, result)) # pylint: disable=cell-var-from-loop


@test
def kill_at_any_moment():
	"""The file is whole, the next agent goes on, and at most the window that was recorded, and the one that was named, are lost."""
	need_bpf()
	folder = fresh_folder("killed")
	dice = random.Random(7)
	before = 0
	for _ in range(10):
		with agent(folder).wait_line("Sampling") as running:
			began = time.time()
			time.sleep(dice.uniform(0.3, 3.5))
			running.send(signal.SIGKILL)
			ended = time.time()
			running.finish()
		rows = stored(folder)
		whole = int(ended - began) - 1 # the last whole window may be on its way
		check(len(rows) - before >= whole - 1, lambda: "%d windows of %.1f s" % (len(rows) - before, ended - began)) # pylint: disable=cell-var-from-loop
		before = len(rows)
	check(before >= 3, lambda: "%d windows in all" % before)
	check_equal(int(converted(folder)["account"]["duration_ns"]), sum(end - start for start, end in stored(folder)), "duration")


@test
def two_agents():
	need_bpf()
	folder = fresh_folder("two")
	with agent(folder).wait_line("Sampling") as running:
		result = sonde("agent", "--store", folder, 1, want=1)
		check("another agent has the store" in result.err and "process %d" % running.process.pid in result.err, lambda: str(result))
		check_equal(sonde("show", folder + "@-1h").code in (0, 1), True, "show beside it ends")
		running.send(signal.SIGTERM)
		check_equal(running.finish().code, 0, "the first agent's exit")


@test
def others_directories():
	"""A store where others may write would follow their links."""
	need_bpf()
	folder = fresh_folder("others")
	os.chmod(folder, 0o777)
	result = sonde("agent", "--store", folder, 1, want=1)
	check("other users may write" in result.err, lambda: str(result))
	check_equal(os.listdir(folder), [], "files")
	os.chmod(folder, 0o700)
	os.chown(folder, 65534, 65534)
	sonde("agent", "--store", folder, 1, want=1)
	sonde("agent", "--store", "/dev/null", 1, want=1)
	sonde("agent", "--store", os.path.join(folder, "not", "there"), 1, want=1)


@test
def it_is_read_while_it_is_written():
	need_bpf()
	folder = fresh_folder("read")
	nr = []
	with Program("chain"), agent(folder, 6).wait_line("Sampling") as running:
		while running.process.poll() is None:
			result = sonde("convert", folder, "-", "--format", "json")
			check(result.code == 0 or "no window of the store" in result.err, lambda: str(result)) # pylint: disable=cell-var-from-loop
			nr.append(len(stored(folder)))
		running.finish()
	check_equal(nr, sorted(nr), "windows seen")
	check(nr[-1] > nr[0], lambda: str(nr))


@test
def a_corrupt_store():
	"""It is moved aside, the reader says so, and nothing hangs or crashes."""
	need_bpf()
	folder = fresh_folder("corrupt")
	with agent(folder, 3) as running:
		running.finish()
	path = os.path.join(folder, "profiles.db")
	for at, nr in (0, 100), (None, None), (4096, 4096):
		half = os.path.getsize(path) // 2 # of this one: each is another, and as long as its windows
		at, nr = half if at is None else at, half if nr is None else nr
		with open(path, "r+b") as file:
			file.seek(at)
			file.write(os.urandom(nr))
		result = sonde("show", folder)
		check(result.code in (0, 1) and (result.code == 0 or result.err), lambda: str(result)) # pylint: disable=cell-var-from-loop
		with agent(folder, 2) as running:
			result = running.finish()
		check_equal((result.code, "the store was corrupt: it is now" in result.err, counts(result.err)[1]), (0, True, 0), "exit, message and lost windows")
		check(any(name.startswith("profiles.db.corrupt-") for name in os.listdir(folder)), lambda: str(os.listdir(folder)))
		check(stored(folder), "no window in the new store")


@test
def a_full_disk():
	"""Windows that find no room are said and counted; when there is room again they are stored."""
	need_bpf()
	folder = fresh_folder("full")
	if run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "none", folder]).code:
		skip("no tmpfs can be mounted")
	ballast = os.path.join(folder, "ballast")
	try:
		with Program("chain"), agent(folder).wait_line("Sampling") as running:
			running_for = time.time()
			while not stored(folder) and time.time() < running_for + 10:
				time.sleep(0.2)
			with open(ballast, "wb", buffering=0) as file:
				try:
					while file.write(b"x" * 4096):
						pass
				except OSError:
					pass
			running.wait_line("is lost: ", 40)
			full = len(stored_by_copy(folder))
			os.unlink(ballast)
			running.wait_line("windows are stored again", 60)
			running.send(signal.SIGTERM)
			result = running.finish()
			check_equal(result.code, 1, "exit: not all was stored")
			nr_stored, nr_lost = counts(result.err)
			check_equal(len(stored(folder)), nr_stored, "windows")
			check(nr_lost > 0 and nr_stored > full, lambda: str(result))
	finally:
		run(["umount", "-l", folder])


def stored_by_copy(folder):
	"""The rows, read where there is no room for a log."""
	with sqlite3.connect("file:%s?mode=ro" % os.path.join(folder, "profiles.db"), uri=True) as connection:
		return connection.execute("SELECT id FROM window").fetchall()


@test
def the_oldest_are_removed():
	need_bpf()
	folder = fresh_folder("age")
	with agent(folder, "--store-max-age", "2s", 7) as running:
		result = running.finish()
	rows = stored(folder)
	check(2 <= len(rows) <= 4 and counts(result.err)[0] >= 6, lambda: "%s, %s" % (rows, result))
	check_equal(rows[-1][1] // NS >= int(time.time()) - 5, True, "the newest is there")


# linux/capability.h
CAPABILITIES = {"DAC_READ_SEARCH": 2, "KILL": 5, "SETGID": 6, "SETUID": 7, "NET_BIND_SERVICE": 10, "SYS_PTRACE": 19, "SYS_NICE": 23, "SYSLOG": 34, "PERFMON": 38, "BPF": 39, "CHECKPOINT_RESTORE": 40}


def rights_of_the_unit():
	with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../packaging/sonde-agent.service.in"), encoding="utf-8") as file:
		return re.search(r"^CapabilityBoundingSet=(.*)", file.read(), re.M).group(1).lower().replace("cap_", "").split()


@test
def the_unit_has_the_rights_that_it_needs():
	"""With the capabilities of the systemd unit alone nothing is refused, and names are known; without those of the workers files are, once each."""
	need_bpf()
	if not shutil.which("setpriv"):
		skip("no setpriv")
	rights = rights_of_the_unit()
	for less in (), ("setuid",):
		folder = fresh_folder("rights")
		allowed = ",".join("+" + right for right in rights if right not in less)
		with Program("chain") as program:
			result = run(["setpriv", "--bounding-set", "-all," + allowed, "--no-new-privs", SONDE, "agent", "--store", folder, "--window", 1, "-F", 97, 3])
			report = converted(folder)
			names = [report["functions"][frame["function"]]["name"] for frame in report["frames"]]
			known = [sample for sample in report["samples"] if sample["pid"] == program.pid and "main" in [names[frame] for frame in report["stacks"][sample["user_stack"]]]]
		refused = [line for line in result.err.splitlines() if "refused" in line or "not permitted" in line]
		check(bool(known) != bool(less) and bool(refused) == bool(less), lambda: "without %s: %d stacks with main, %s" % (less, len(known), result)) # pylint: disable=cell-var-from-loop
		check_equal(len(refused), len(set(refused)), "warnings, and different ones")


@test
def what_is_not_needed_is_given_up():
	"""Started by root: the agent, its threads and its workers have the unit's capabilities at most, and that of ports below 1024."""
	need_bpf()
	allowed = {right.upper() for right in rights_of_the_unit()} | {"NET_BIND_SERVICE"}
	with agent(fresh_folder("given-up"), 30) as running:
		running.wait_line("Sampling at")
		time.sleep(1)
		pids = [running.process.pid] + [int(pid) for pid in run(["pgrep", "-P", str(running.process.pid)]).out.split()]
		found = {}
		for pid in pids:
			for task in os.listdir("/proc/%d/task" % pid):
				with open("/proc/%d/task/%s/status" % (pid, task), encoding="ascii", errors="replace") as file:
					for kind, mask in re.findall(r"^Cap(Prm|Eff|Bnd):\s*(\w+)$", file.read(), re.M):
						found.setdefault(kind, set()).update(bit for bit in range(64) if int(mask, 16) >> bit & 1)
	numbers = {right: number for right, number in CAPABILITIES.items() if right in allowed}
	check_equal(len(numbers), len(allowed), "capabilities with known numbers")
	for kind, bits in found.items():
		check(bits <= set(numbers.values()), lambda: "%s: %s" % (kind, sorted(bits - set(numbers.values())))) # pylint: disable=cell-var-from-loop
	check({"BPF", "PERFMON"} <= {right for right, number in numbers.items() if number in found["Eff"]} and len(pids) > 2, lambda: str((found, pids)))


@test
def settings():
	"""Command line before environment before file before defaults; what is unknown is named with the nearest."""
	path = scratch("agent.yaml")

	def printed(*args, **variables):
		result = sonde("agent", "--print-config", *args, env=dict(os.environ, **variables), want=0)
		settings = dict(line.split(": ", 1) for line in result.out.splitlines())
		check_equal((settings["skywalking-period"], settings["skywalking-service"]), ("'9ms'", "'{service}'"), "SkyWalking's defaults")
		return {key: value for key, value in settings.items() if not key.startswith("skywalking-")}

	with open(path, "w", encoding="ascii") as file:
		file.write("# a comment\nstore-max-age: 3d\nfrequency: 97\nstore: \"/tmp/it's\"\n")
	check_equal(printed(), {"measure": "'cpu'", "frequency": "19", "window": "10", "symbols": "'names'", "store": "'/var/lib/sonde'", "store-max-age": "'7d'", "store-max-bytes": str(1 << 30), "recorder-after": "60", "recorder-max-bytes": str(64 << 20)}, "defaults")
	got = printed("--config", path, "--window", 3, SONDE_FREQUENCY="49", SONDE_WINDOW="7", SONDE_STORE_MAX_BYTES="5M")
	check_equal(got, {"measure": "'cpu'", "frequency": "49", "window": "3", "symbols": "'names'", "store": "'/tmp/it''s'", "store-max-age": "'3d'", "store-max-bytes": str(5 << 20), "recorder-after": "60", "recorder-max-bytes": str(64 << 20)}, "all of them")
	with open(path, "w", encoding="ascii") as file:
		file.writelines("%s: %s\n" % line for line in got.items())
	check_equal(printed("--config", path), got, "what was printed, read again")
	got = printed("--pyroscope", "http://h", "--pyroscope-label", "zone=a", "--pyroscope-label", "its=b, c")
	check_equal(got["pyroscope-label"], "['zone=a', 'its=b, c']", "a list, printed")
	with open(path, "w", encoding="ascii") as file:
		file.writelines("%s: %s\n" % line for line in got.items())
	check_equal(printed("--config", path), got, "a list, read again")
	check_equal(printed("--config", path, "--pyroscope-label", "a=b")["pyroscope-label"], "['a=b']", "a list, and the command line before it")
	for text, want in ("store-max-ag: 3d", "agent.yaml:1: unknown setting 'store-max-ag': did you mean store-max-age?"), ("\nwindow: 0", "agent.yaml:2: window must be"), ("window: [", "no YAML|line of its own"), ("pyroscope-label: [[a=b]]", "line of its own"), ("window: [1, 2]", "agent.yaml:1: window has one value, not a list"), \
			("- a", "settings are lines"), ("window: 1\nwindow: 2", "given before"), ("config: x", "unknown setting"), ("store-max-age: soon", "is a duration"), ("a" * 100000, "settings are lines|no YAML"):
		with open(path, "w", encoding="ascii") as file:
			file.write(text)
		result = sonde("agent", "--config", path, want=2)
		check(re.search(want, result.err) and result.err.count("\n") == 1, lambda: "%r: %s" % (text[:40], result)) # pylint: disable=cell-var-from-loop


run_tests()
