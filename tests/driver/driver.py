#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tests end whatever hangs: tests/watch.py and tests/tap.py on programs that do not end, some of which cannot be killed. tests/summary.py
reports what did not run."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)
from tap import check, check_equal, run_tests, skip, test # noqa: E402
from watch import descendants # noqa: E402


def python(*argv, seconds=60, env=None):
	"""Runs a script, which must not hang: (status, stdout and stderr, seconds)."""
	began = time.monotonic()
	with tempfile.TemporaryFile("w+") as out: # no pipe: an unkillable process would hold it open
		process = subprocess.Popen([sys.executable, *argv], stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env) # pylint: disable=consider-using-with
		try:
			status = process.wait(seconds)
		finally:
			process.kill()
		out.seek(0)
		return status, out.read(), time.monotonic() - began


IMPATIENT = "import sys; sys.path.insert(0, %r); import watch; watch.ASK_SECONDS = watch.KILL_SECONDS = 2; watch.main(*sys.argv[1:])" % TESTS


def watched(seconds, *argv):
	return python("-c", IMPATIENT, str(seconds), *argv)


def tap_file(folder, text, name="tap_file.py"):
	path = os.path.join(folder, name)
	with open(path, "w", encoding="utf-8") as file:
		file.write("import sys\nsys.path.insert(0, %r)\nimport subprocess, time, tap\nfrom tap import test\ntap.AGAIN_SECONDS = 1\n%s\ntap.run_tests(2)\n" % (TESTS, text))
	return path


def running(marker):
	return [process for process in descendants(1) if marker in process.read("cmdline")]


def wait_until(condition, seconds=10):
	stop = time.monotonic() + seconds
	while not condition() and time.monotonic() < stop:
		time.sleep(0.05)


@contextlib.contextmanager
def in_the_kernel():
	"""A command that cannot be killed until this ends: it writes to a frozen file system."""
	with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
		image, mounted = os.path.join(folder, "image"), os.path.join(folder, "mounted")
		command = ["mkdir", os.path.join(mounted, "never")]

		def need(*argv):
			if not shutil.which(argv[0]) or subprocess.run(argv, stderr=subprocess.DEVNULL, check=False).returncode:
				skip("no right to mount, or no %s" % argv[0])
		os.mkdir(mounted)
		with open(image, "wb") as file:
			file.truncate(8 << 20)
		need("mkfs.ext4", "-q", image)
		need("mount", "-o", "loop", image, mounted)
		stack.callback(subprocess.run, ["umount", mounted], check=True)
		stack.callback(wait_until, lambda: not running(command[1]))
		need("fsfreeze", "-f", mounted)
		stack.callback(subprocess.run, ["fsfreeze", "-u", mounted], check=True)
		yield command


@test
def status_is_passed_on():
	for script, want in (("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)):
		status, _, _ = watched(30, "sh", "-c", script)
		check_equal(status, want, script)


@test
def what_does_not_end_is_ended():
	"""Even a process that ignores signals, is in another session, or lost its parent is ended; no other process is."""
	with subprocess.Popen(["sleep", "71.5"]) as other:
		try:
			status, said, seconds = watched(2, "sh", "-c", "trap '' TERM; setsid sh -c 'trap \"\" TERM HUP; sleep 71.25; :' & (sh -c 'sleep 71.25; :' &); sleep 71.125; exit 0")
			check(other.poll() is None, "a stranger was killed")
		finally:
			other.kill()
	check_equal(status, 124, said)
	check(seconds < 20 and "sleep 71.25" in said and "sleep 71.125" in said, "%.0f s: %s" % (seconds, said))
	check(not running("71.25") and not running("71.125"), "left: %s" % "; ".join(map(str, running("71."))))


@test
def it_is_asked_first():
	"""The command gets SIGTERM first; `meson test` then writes its results so far."""
	status, said, _ = watched(1, "sh", "-c", "trap 'echo asked; exit 0' TERM; while :; do sleep 0.1; done")
	check(status == 124 and "asked" in said, said)


@test
def no_time_left():
	status, said, _ = watched(0, "sh", "-c", "echo started")
	check(status == 124 and "started" not in said.replace("echo started", ""), said)


@test
def what_ends_leaves_nothing():
	status, said, _ = watched(30, "sh", "-c", "sleep 71.75 & exit 3")
	check(status == 3 and not running("71.75"), said)


@test
def what_cannot_be_killed_is_not_waited_for():
	with in_the_kernel() as command:
		status, said, seconds = watched(2, "sh", "-c", '"$@"; :', "-", *command)
		check(status == 124 and seconds < 20, "status %d after %.0f s: %s" % (status, seconds, said))
		told = said.partition("cannot be killed")[2]
		check("state D" in told and "in the kernel: " in told and "/never" in told, said)
	return "%.0f s" % seconds


@test
def ended_from_outside():
	process = subprocess.Popen([sys.executable, os.path.join(TESTS, "watch.py"), "60", "sleep", "71.375"], stderr=subprocess.DEVNULL) # pylint: disable=consider-using-with
	wait_until(lambda: running("71.375")[1:])
	process.send_signal(signal.SIGTERM)
	check_equal(process.wait(40), 128 + signal.SIGTERM, "status")
	check(not running("71.375"), "left behind")


@test
def a_test_that_hangs_fails():
	with tempfile.TemporaryDirectory() as folder:
		status, said, seconds = python(tap_file(folder, """
@test
def hangs():
	with subprocess.Popen(["sleep", "71.875"]) as process:
		process.wait()
@test
def comes_next():
	pass"""))
	check(status == 1 and seconds < 30 and "not ok 1 - hangs" in said and "sleep 71.875" in said and "\nok 2 - comes_next" in said, said)
	check(not running("71.875"), "left behind")


@test
def a_test_that_cannot_be_killed_fails():
	with in_the_kernel() as command, tempfile.TemporaryDirectory() as folder:
		status, said, seconds = python(tap_file(folder, """
@test
def hangs():
	with subprocess.Popen(%r, stdout=subprocess.PIPE) as process:
		process.communicate()
@test
def comes_next():
	pass""" % (command,)))
	check(status == 1 and seconds < 30 and "not ok 1 - hangs" in said and "state D" in said and "\nok 2 - comes_next" in said, said)


@test
def a_test_that_fails_beside_others_is_run_alone():
	"""Two files run side by side: the second's failure disappears only when the first has ended its test; a test that always fails still fails."""
	with tempfile.TemporaryDirectory() as folder:
		marker, env = os.path.join(folder, "busy"), {**os.environ, "SONDE_TEST_TURNS": os.path.join(folder, "turns")}
		noisy = subprocess.Popen([sys.executable, tap_file(folder, """
@test
def noisy():
	open(%r, "w").close()
	time.sleep(1.5)
	import os
	os.unlink(%r)""" % (marker, marker), "noisy.py")], env=env, stdout=subprocess.DEVNULL) # pylint: disable=consider-using-with
		wait_until(lambda: os.path.exists(marker))
		status, said, _ = python(tap_file(folder, """
import os
@test
def disturbed():
	tap.check(not os.path.exists(%r), "noise")
@test
def broken():
	tap.check(False, "always")""" % marker), env=env)
		check_equal(noisy.wait(20), 0, "the other")
	check(status == 1 and "once more, alone; beside others it failed with: noise\nok 1 - disturbed" in said, said)
	check("failed with: always\nnot ok 2 - broken" in said, said)


def summary_of(log, tests):
	with tempfile.TemporaryDirectory() as build:
		for name, text in (("meson-logs/testlog.json", log), ("meson-info/intro-tests.json", json.dumps(tests))):
			os.makedirs(os.path.dirname(os.path.join(build, name)))
			with open(os.path.join(build, name), "w", encoding="utf-8") as file:
				file.write(text)
		return python(os.path.join(TESTS, "summary.py"), build + ":system")[:2]


def entry(name, result, out=""):
	return json.dumps({"name": "sonde:system / " + name, "result": result, "stdout": out, "returncode": -9 if result == "TIMEOUT" else 0}) + "\n"


@test
def what_did_not_run_is_told():
	tests = [{"name": name, "suite": ["sonde:" + suite]} for name, suite in (("one", "system"), ("two", "system"), ("three", "system"), ("another", "unit"))]
	log = entry("one", "OK", "1..2\nok 1 - a\nok 2 - b # SKIP why\n")
	status, said = summary_of(log + entry("two", "TIMEOUT", "1..3\nok 1 - a\nnot ok 2 - b\n") + '{"name": "sonde:system / th', tests)
	lines = said.splitlines()
	check(status == 1 and lines[-1] == "2 passed, 3 failed, 1 skipped", said)
	check("FAILED: system / two: TIMEOUT, status -9" in lines and "FAILED: system / three: did not run" in lines and "another" not in said, said)
	status, said = summary_of(entry("one", "ERROR", "1..2\nnot ok 1 - a\n#   why\n#   once more, alone; beside others it failed with: noise\n#   of it\nok 2 - b\n"), tests[:1])
	check("REPEATED: system / one: once more, alone; beside others it failed with: noise" in said and "a: \n    why\n1 passed" in said, said)
	status, said = summary_of(log, tests[:1])
	check(status == 0 and said.splitlines()[-1] == "1 passed, 0 failed, 1 skipped", said)
	check_equal(summary_of("", [])[0], 1, "no tests at all")


MESON = """#!%s
import json, sys, time
build, log = (sys.argv[sys.argv.index(option) + 1] for option in ("-C", "--logbase"))
with open(build + "/meson-logs/" + log + ".json", "w") as file:
	for option, suite in zip(sys.argv, sys.argv[1:]):
		result = "%s" if suite == "bpf" else "OK"
		if option == "--suite" and result == "HANGS":
			time.sleep(120)
		if option == "--suite":
			print(json.dumps({"name": "sonde:" + suite + " / it", "result": result, "stdout": "", "returncode": 0}), file=file)
"""


def whole(bpf, **env):
	"""Runs ./test with a build that does nothing, and with a meson whose bpf suite ends with this result."""
	with tempfile.TemporaryDirectory() as folder:
		for name in ("test", "tests/watch.py", "tests/summary.py"):
			os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
			shutil.copy(os.path.join(os.path.dirname(TESTS), name), os.path.join(folder, name))
		for name, text in (("tools/packages.sh", ""), ("tools/build.sh", ""), ("bin/meson", MESON % (sys.executable, bpf))):
			os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
			with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
				file.write(text)
			os.chmod(os.path.join(folder, name), 0o755)
		for build in ("build", "build-asan"):
			os.makedirs(os.path.join(folder, build, "meson-logs"))
		return python("-c", "import os, sys; os.execv(sys.argv[1], sys.argv[1:])", os.path.join(folder, "test"),
			env={**os.environ, "PATH": os.path.join(folder, "bin") + ":" + os.environ["PATH"], **env}, seconds=120)


@test
def all_suites_are_run():
	status, said, _ = whole("OK")
	check(status == 0 and said.splitlines()[-1] == "6 passed, 0 failed, 0 skipped", said)


@test
def on_a_kernel_that_hangs_the_rest_is_not_tried():
	status, said, _ = whole("TIMEOUT")
	check(status == 1 and "FAILED: bpf / it: TIMEOUT" in said and "Not run: system" in said and said.splitlines()[-1] == "4 passed, 2 failed, 0 skipped", said)


@test
def the_whole_has_a_deadline():
	status, said, seconds = whole("HANGS", SONDE_TEST_SECONDS="6")
	check(status == 1 and seconds < 60 and "what runs:" in said and "meson test" in said, "%.0f s: %s" % (seconds, said))


if __name__ == "__main__":
	run_tests()
