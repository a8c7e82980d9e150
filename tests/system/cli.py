#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line: what is refused and how, help, manual pages and completion, what reaches the session, signals, exit codes, doctor.
Most of it runs against sonde-double, the command line linked with session_double.c, which needs neither BPF nor privileges."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

from harness import SONDE, check, check_equal, find_tool, need_bpf, run, run_tests, scratch, skip, sonde, test

DOUBLE = os.path.abspath(os.environ.get("SONDE_DOUBLE", os.path.join(os.path.dirname(SONDE), "tests", "system", "sonde-double")))
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
VERBS = ("profile", "offcpu", "wall", "leak", "alloc", "show", "diff", "convert", "stat", "doctor")
ESCAPE = "\033"


def double(*args, want=None, environ=None, **kwargs):
	result = run([DOUBLE, *args], env={**os.environ, **(environ or {})}, **kwargs)
	if want is not None:
		check(result.code == want, lambda: "%s: want exit %d\n%s" % (" ".join(map(str, args)), want, result))
	return result


def one_line(result, args, code, *words):
	check(result.code == code, lambda: "%s: want exit %d\n%s" % (args, code, result))
	check(not result.out, lambda: "%s: something on stdout: %s" % (args, result))
	check(re.fullmatch(r"sonde: [^\n]+\n", result.err), lambda: "%s: not one line: %s" % (args, result))
	for word in words:
		check(word in result.err, lambda: "%s: %r is not in %r" % (args, word, result.err))


def as_nobody():
	"""Returns a copy of sonde that nobody can reach, and the command prefix to run it."""
	if os.geteuid() != 0 or not find_tool("setpriv"):
		skip("not root, or no setpriv")
	path = scratch("sonde")
	if not os.path.exists(path):
		shutil.copy(SONDE, path)
	return [*NOBODY, path]


# --- what is refused ------------------------------------------------------------------------------------------------------------

REFUSED = [
	("-U -K", "-U and -K", "leave both out"),
	("-F 99 -c 5", "-F and -c"),
	("-p 1 -L 1", "-p and -L"),
	("-p 1 -- ls", "-p and a command"),
	("-L 1 -- ls", "-L and a command"),
	("-f --format json", "-f and --format"),
	("5 6", "'6'"),
	("0", "DURATION"), ("-1", "DURATION"), ("1.5", "DURATION"), ("99999999999999999999", "DURATION"),
	("ls", "--"),
	("-F 0", "-F"), ("-F -5", "-F"), ("-F 1e3", "-F"), ("-F abc", "-F"), ("-F 99999999999999999999", "-F"), ("--frequency=0", "--frequency"),
	("-c 0", "-c"), ("-c -1", "-c"), ("-c x", "-c"), ("-c 9223372036854775808", "-c"),
	("--stack-storage-size 0", "--stack-storage-size"), ("--stack-storage-size abc", "--stack-storage-size"),
	("--stack-storage-size 99999999999999999999", "--stack-storage-size"),
	("-p abc", "-p"), ("-p 999999999999", "-p"), ("-p ,", "-p"), ("-p 1,,2", "-p"), ("-p 1,", "-p"), ("-p 0", "-p"), ("-p -1", "-p"),
	("-L abc", "-L"),
	("-C abc", "-C"), ("-C -1", "-C"), ("-C 99999", "online"),
	("--freqency 9", "--frequency?"), ("--folded=1", "takes no value"), ("--nonsense", "--nonsense"), ("-x", "-x"), ("-Ux", "-x"),
	("-F", "-F HZ"), ("-o", "FILE"), ("--", "command"),
	("--format exe", "pprof"), ("-o x.unknown", ".pb.gz"), ("-o x", ".html"), ("-o a.html -o a.html", "twice"),
	("-n sixteen-letters-", "sixteen-letters'"),
]


REFUSED_OF_OFFCPU = [
	("-m 10 -M 9", "--max is below --min"), ("-M 0", "-M", "1"), ("--min 1x", "--min"), ("-u -k", "-k"), ("-U -K", "-K"), ("--state 65536", "--state", "65535"),
	("--max-overhead 0", "--max-overhead", "1"), ("--max-overhead 101", "100"), ("--state -1", "--state"), ("--value hits", "hits", "time or count"), ("-p 1 -L 1", "-L"), ("-F 99", "-F"), ("5 5", "5"), ("-p 1 -- true", "exclude each other"),
	("-o x.unknown", "x.unknown"), ("--format nosuch", "nosuch"), ("-p x", "x"),
]


@test
def usage_errors():
	"""Exit 2 and one line that says what is wrong and where help is, before anything starts."""
	for args, *words in REFUSED:
		one_line(sonde("profile", *args.split(" ")), args, 2, "sonde profile --help", *words)
	for args, *words in REFUSED_OF_OFFCPU:
		one_line(sonde("offcpu", *args.split(" ")), args, 2, "sonde offcpu --help", *words)
	one_line(sonde("profile", "-e", ""), "-e ''", 2, "-e")
	one_line(sonde("profile", "-o", ""), "-o ''", 2, "-o")
	one_line(sonde("doctor", "5"), "doctor 5", 2, "sonde doctor --help")
	one_line(sonde("doctor", "--fromat"), "doctor --fromat", 2, "--format?")
	for args, word in ((["profiel"], "did you mean profile?"), (["help", "prof"], "profile"), (["--versoin"], "--version?"),
			(["--completion", "fish"], "bash and zsh"), (["strace"], "strace")):
		one_line(sonde(*args), args, 2, "sonde --help", word)


@test
def a_message_is_one_clean_line():
	for word in ("x\ny", "\033[31mred", "\x7f" * 300):
		result = sonde("profile", "-F", word)
		one_line(result, repr(word), 2)
		check(not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", result.err), lambda: repr(result.err))


@test
def a_process_that_is_not_there():
	for letter in ("-p", "-L"):
		one_line(sonde("profile", letter, 4194303, 5), letter, 1, "4194303")


@test
def thread_id_as_process_id():
	"""-p with the id of a thread other than the process's first: the error message suggests -L."""
	ready, done = threading.Event(), threading.Event()
	thread = threading.Thread(target=lambda: (ready.set(), done.wait()))
	thread.start()
	try:
		ready.wait()
		one_line(sonde("profile", "-p", thread.native_id, 1), "-p TID", 2, "-L %d" % thread.native_id, "-p %d" % os.getpid())
		check("tids=%d\n" % thread.native_id in double("profile", "-L", thread.native_id, want=0).out, "-L with the same id should do")
	finally:
		done.set()
		thread.join()


@test
def sonde_alone():
	result = sonde(want=2)
	check(not result.out and all(verb in result.err for verb in VERBS), lambda: str(result))


# --- help, manual pages, completion -----------------------------------------------------------------------------------------------

def options_in(text):
	"""Returns the long names and letters in --help's list."""
	names = set()
	for letter, name in re.findall(r"^  (?:-(\w), |    )--([a-z-]+)", text, re.MULTILINE):
		names |= {name} | ({letter} if letter else set())
	return names


@test
def without_rights():
	"""--help, --version, --ebpf and the like work as nobody: exit 0, on stdout, nothing on stderr."""
	prefix = as_nobody()
	for args in ("--help", "-h", "--version", "help", "help profile", "help doctor", "profile --help", "profile -h", "profile --version", "doctor --help",
			"profile --ebpf", "profile --ebpf -K -p 1 -F 99", "--completion bash", "--completion zsh", "--man profile"):
		result = run([*prefix, *args.split(" ")])
		check(result.code == 0 and len(result.out) > 8 and not result.err, lambda: "%s: %s" % (args, result))
		check(ESCAPE not in result.out, "%s: terminal escapes into a pipe" % args)
	check_equal(sonde("help", "profile", want=0).out, sonde("profile", "--help", want=0).out, "help profile and profile --help")


@test
def help_has_what_bcc_has():
	text = sonde("profile", "--help", want=0).out
	for line in text.splitlines():
		check(len(line) <= 80, lambda: "wider than 80 columns: %r" % line)
	names = options_in(text)
	for name in ("p pid L tid U user-stacks-only K kernel-stacks-only F frequency c count d delimited a annotations f folded I include-idle C cpu "
			"stack-storage-size unwind-memory no-unwind-cache ebpf n comm threads o output format e event no-fallback offsets").split():
		check(name in names, "no %s in --help" % name)
	for example in ("sonde profile", "-F 99", "-c 1000000", "profile 5", "-f 5", "-p 185", "-L 185", "-U", "-K", "-o", "-- "):
		check(example in text[text.index("Examples:"):], "no example with %s" % example)


@test
def every_option_stands_in_the_manual_page():
	for verb in VERBS:
		page = sonde("--man", verb, want=0).out.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "").replace("\\fI", "")
		names = options_in(sonde(verb, "--help", want=0).out)
		check(len(names) >= 4, "only %d options in --help of %s" % (len(names), verb))
		for name in names:
			dashed = ("-" if len(name) == 1 else "--") + name
			check(re.search(r"(?m)^(.*, )?%s(,| |$)" % re.escape(dashed), page), "%s of %s is not in the manual page" % (dashed, verb))


@test
def manual_pages_are_well_formed():
	if not find_tool("groff"):
		skip("no groff")
	for verb in ("sonde", *VERBS):
		page = sonde("--man", verb, want=0).out
		result = run(["groff", "-man", "-Tutf8", "-ww", "-z"], stdin=feed(page))
		check(result.code == 0 and not result.err, lambda: "%s: %s" % (verb, result))
		for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS"):
			check(".SH %s\n" % section in page, "%s has no section %s" % (verb, section))
		codes = re.findall(r"^\.B (\d+)$", page.split(".SH EXIT STATUS")[1].split(".SH SEE ALSO")[0], re.MULTILINE)
		check_equal(codes, ["0", "1", "2", "3", "4", "5", "126", "127"], "exit codes in the page of %s" % verb)


def feed(text):
	path = scratch("input")
	with open(path, "w", encoding="utf-8") as file:
		file.write(text)
	return open(path, "rb") # pylint: disable=consider-using-with


@test
def every_option_is_completed():
	for shell in ("bash", "zsh"):
		script = sonde("--completion", shell, want=0).out
		for verb in VERBS:
			for name in options_in(sonde(verb, "--help", want=0).out):
				dashed = ("-" if len(name) == 1 else "--") + name
				check(re.search(r"(?<![\w-])%s(?![\w-])" % re.escape(dashed), script), "%s of %s is not in the completion for %s" % (dashed, verb, shell))


def complete_in_bash(*words):
	script = scratch("completion.bash")
	with open(script, "w", encoding="utf-8") as file:
		file.write(sonde("--completion", "bash", want=0).out)
	code = 'source "$1"; shift; compopt() { :; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sonde; printf "%s\\n" "${COMPREPLY[@]}"'
	result = run(["bash", "-c", code, "bash", script, "sonde", *words])
	check(result.code == 0 and not result.err, lambda: str(result))
	return result.out.split()


@test
def bash_completes():
	check_equal(complete_in_bash("pro"), ["profile"], "pro")
	check_equal(complete_in_bash("--comp"), ["--completion"], "--comp")
	check_equal(complete_in_bash("--completion", ""), ["bash", "zsh"], "--completion")
	check_equal(complete_in_bash("help", "do"), ["doctor"], "help do")
	check_equal(complete_in_bash("profile", "--fr"), ["--frequency"], "profile --fr")
	check_equal(complete_in_bash("doctor", "--fo"), ["--format"], "doctor --fo")
	check_equal(complete_in_bash("profile", "--format", "pp"), ["pprof"], "--format pp")
	check_equal(complete_in_bash("profile", "--format", "=", "pp"), ["pprof"], "--format=pp")
	check_equal(complete_in_bash("profile", "-F", ""), [], "-F")
	check(str(os.getpid()) in complete_in_bash("profile", "-p", ""), "-p does not offer processes")
	os.makedirs(scratch("some"), exist_ok=True)
	check_equal(complete_in_bash("profile", "-o", scratch("som")), [scratch("some")], "-o")
	check("setsid" in complete_in_bash("profile", "--", "setsi"), "a command is not completed")


@test
def zsh_accepts_its_completion():
	if not find_tool("zsh"):
		skip("no zsh")
	result = run(["zsh", "-n", "/dev/stdin"], stdin=feed(sonde("--completion", "zsh", want=0).out))
	check(result.code == 0 and not result.err, lambda: str(result))


# Types lines, each followed by a tab, into an interactive zsh, where sonde is a function that prints its arguments.
ZSH_TYPES = r"""
zmodload zsh/zpty || exit 77
zpty z zsh -f -i
zpty -w z "autoload -Uz compinit; compinit -D; source $1; sonde() { print -r \"<<\$*>>\" }; print re\ady"
zpty -r -m z out '*ready*'
for typed in "${@[2,-1]}"; do
	zpty -w -n z "sonde $typed"$'\t'$'\n'
	zpty -r -m z out '*<<*>>*'
	print -r -- ${${out#*<<}%>>*}
done
zpty -d z
"""


@test
def zsh_completes():
	if not find_tool("zsh"):
		skip("no zsh")
	script, typist = scratch("_sonde"), scratch("type.zsh")
	for path, text in ((script, sonde("--completion", "zsh", want=0).out), (typist, ZSH_TYPES)):
		with open(path, "w", encoding="utf-8") as file:
			file.write(text)
	lines = {"pro": "profile", "profile --delim": "profile --delimited", "profile -U --ker": "profile -U --kernel-stacks-only",
		"profile --format=pp": "profile --format=pprof", "doctor --fo": "doctor --format", "help doc": "help doctor",
		"profile 5 -- setsi": "profile 5 -- setsid"}
	result = run(["zsh", "-f", typist, script, *lines], timeout=30)
	if result.code == 77:
		skip("zsh without zpty")
	check_equal([line.strip() for line in result.out.splitlines()], list(lines.values()), "%s\n%s" % (list(lines), result))


# --- what reaches the session -----------------------------------------------------------------------------------------------------

@test
def options_reach_the_session():
	everything = double("profile", "-F99", "-n", "red", "-G", "/top", "-C", 0, "-I", "-U", "-d", "-a", "--offsets", "--threads", "--no-fallback", "-e", "cycles",
		"--stack-storage-size=7", "--unwind-memory", 32, "--debuginfod-timeout", 3, 5, want=0).out
	for line in ("freq=99 period=0 duration=5000000000 cpu=0 storage=7 unwind=33554432 audit=0 debuginfod_timeout=3000000000", "flags= no_fallback idle user_only delimited annotate offsets threads",
			"event=cycles comm=red cgroup=/top", "format=text"):
		check(line + "\n" in everything, lambda: "%r is not in\n%s" % (line, everything))
	check("command_line=sonde profile -F99 -n red" in everything, everything)
	nothing = double("profile", want=0).out
	check("freq=0 period=0 duration=0 cpu=-1 storage=0 unwind=0 audit=0 debuginfod_timeout=0\nflags=\nevent= comm= cgroup=\n" in nothing, nothing)
	check("debuginfod_timeout=-1\n" in double("profile", "--debuginfod-timeout", 0, want=0).out, "no wait")
	mine = os.getpid()
	check("tgids=%d,%d\n" % (mine, os.getppid()) in double("profile", "-p", "%d,%d" % (mine, os.getppid()), "-p", mine, want=0).out, "-p")
	check("period=1000000 " in double("profile", "-c", 1000000, want=0).out, "-c")
	check("flags= kernel_only\n" in double("profile", "-K", want=0).out, "-K")
	check(double("profile", "-F", 9, 5, "--", "ls", "-l", "-F", "7", want=0).out.endswith("command=ls\ncommand=-l\ncommand=-F\ncommand=7\n"), "--")


@test
def header_is_bccs():
	mine, parent = os.getpid(), os.getppid()
	for args, want in (
			("", "at 49 Hertz of all threads by user + kernel stack... Hit Ctrl-C to end."),
			("-F 99 5", "at 99 Hertz of all threads by user + kernel stack for 5 secs."),
			("-c 1000000 -U", "at every 1000000 events of all threads by user stack... Hit Ctrl-C to end."),
			("-p %d -K" % mine, "at 49 Hertz of PID %d by kernel stack... Hit Ctrl-C to end." % mine),
			("-p %d,%d" % (mine, parent), "at 49 Hertz of PID %d,%d by user + kernel stack... Hit Ctrl-C to end." % (mine, parent)),
			("-L %d 1" % mine, "at 49 Hertz of TID %d by user + kernel stack for 1 secs." % mine),
			("-C 0 2", "at 49 Hertz of all threads by user + kernel stack on CPU#0 for 2 secs."),
			("-C 0", "at 49 Hertz of all threads by user + kernel stack on CPU#0... Hit Ctrl-C to end.")):
		result = double("profile", *args.split(), want=0)
		check_equal(result.err, "Sampling %s\ndouble: the account\n" % want, args)
	check_equal(double("profile", "-f", want=0).err, "double: the account\n", "-f has no header")


@test
def where_results_go():
	html, folded, text, speedscope = scratch("a.html"), scratch("a.folded"), scratch("a.txt"), scratch("a.speedscope.json")
	for args, path, form in ((["-o", html], html, "html"), (["-o", speedscope], speedscope, "speedscope"), (["-f", "-o", text], text, "folded"), (["-o", text], text, "text"), (["-f", "-o", html], html, "html"),
			(["--format", "json", "-o", html], html, "json"), (["-o", folded + ".gz", "--format", "pprof"], folded + ".gz", "pprof")):
		result = double("profile", *args, want=0)
		check(not result.out and result.err.endswith("double: the account\n"), lambda: str(result))
		with open(path, encoding="utf-8") as file:
			check_equal(file.readline(), "format=%s\n" % form, args)
	check(double("profile", "-f", want=0).out.startswith("format=folded\n"), "-f")
	check(double("profile", "--format", "pprof", want=0).out.startswith("format=pprof\n"), "--format")
	check(double("profile", "-o", "-", "-o", html, want=0).out.startswith("format=text\n"), "-o -")


# --- exit codes and signals -------------------------------------------------------------------------------------------------------

@test
def exit_codes():
	for environ, want in (
			({}, 0),
			({"DOUBLE_NEW": "3"}, 3), ({"DOUBLE_NEW": "4"}, 4), ({"DOUBLE_NEW": "1"}, 1),
			({"DOUBLE_RUN": "1"}, 1), ({"DOUBLE_WRITE": "1"}, 1),
			({"DOUBLE_EMPTY": "1"}, 5),
			({"DOUBLE_STATUS": "0"}, 0), ({"DOUBLE_STATUS": str(7 << 8)}, 7), ({"DOUBLE_STATUS": "9"}, 137), ({"DOUBLE_STATUS": "15"}, 143),
			({"DOUBLE_STATUS": "0", "DOUBLE_EMPTY": "1"}, 5), ({"DOUBLE_STATUS": str(7 << 8), "DOUBLE_EMPTY": "1"}, 7),
			({"DOUBLE_STATUS": str(7 << 8), "DOUBLE_WRITE": "1"}, 1)):
		result = double("profile", want=want, environ=environ)
		failed = [name for name in ("DOUBLE_NEW", "DOUBLE_RUN", "DOUBLE_WRITE") if name in environ]
		failed += ["no samples: nothing of what was asked for ran on a CPU"] if "DOUBLE_EMPTY" in environ else []
		check_equal(re.findall(r"^sonde: (.*)$", result.err, re.MULTILINE), failed, environ)


class Running:
	"""sonde-double in the background, ready to receive signals."""

	def __init__(self, *prefix, **environ):
		self.process = subprocess.Popen([*prefix, DOUBLE, "profile"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
			env={**os.environ, "DOUBLE_WAIT": "1", **environ})

	def __enter__(self):
		self.wait_line("Sampling at")
		return self

	def wait_line(self, text):
		line = self.process.stderr.readline().decode()
		check(text in line, lambda: "%r instead of %r" % (line, text))

	def finish(self):
		out, err = self.process.communicate(timeout=20)
		return self.process.returncode, out.decode(), err.decode()

	def __exit__(self, *exc):
		if self.process.poll() is None:
			self.process.kill()
		self.process.communicate()


@test
def a_signal_ends_the_sampling():
	for signo in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
		with Running() as running:
			running.process.send_signal(signo)
			code, out, _ = running.finish()
		check(code == 0 and out.startswith("format=text"), "%s: exit %d, %r" % (signo, code, out))


@test
def the_second_keeps_the_report():
	with Running(DOUBLE_SLOW="1000") as running:
		running.process.send_signal(signal.SIGINT)
		running.wait_line("double: writing")
		running.process.send_signal(signal.SIGINT)
		running.wait_line("the report is being written")
		code, out, _ = running.finish()
	check(code == 0 and out.startswith("format=text"), "exit %d, %r" % (code, out))


@test
def the_third_ends_at_once():
	with Running(DOUBLE_SLOW="10000") as running:
		running.process.send_signal(signal.SIGTERM)
		running.wait_line("double: writing")
		running.process.send_signal(signal.SIGINT)
		running.wait_line("the report is being written")
		began = time.monotonic()
		running.process.send_signal(signal.SIGINT)
		code, out, _ = running.finish()
	check(code == 130 and not out and time.monotonic() - began < 3, "exit %d, %r" % (code, out))


@test
def ignored_signals_stay_ignored():
	with Running("sh", "-c", 'trap "" HUP INT; exec "$@"', "sh") as running:
		running.process.send_signal(signal.SIGHUP)
		running.process.send_signal(signal.SIGINT)
		time.sleep(0.3)
		check(running.process.poll() is None, "ended by a signal that was ignored")
		running.process.send_signal(signal.SIGTERM)
		code, out, _ = running.finish()
	check(code == 0 and out, "exit %d, %r" % (code, out))


@test
def a_stdout_that_fails():
	"""Stdout is full, closed, or a pipe without a reader: exit 1 and an error line, for everything that is printed."""
	for program, args in ((DOUBLE, ["profile"]), (SONDE, ["profile", "--help"]), (SONDE, ["--version"]), (SONDE, ["profile", "--ebpf"]), (SONDE, ["doctor"])):
		for shell in ('exec "$0" "$@" >/dev/full', 'exec "$0" "$@" >&-'):
			result = run(["sh", "-c", shell, program, *args])
			check(result.code == 1 and re.search(r"(?m)^sonde: ", result.err), lambda: "%s, %s: %s" % (shell, args, result))
		reader, writer = os.pipe()
		os.close(reader)
		try:
			result = run([program, *args], stdout=writer)
		finally:
			os.close(writer)
		check(result.code == 1 and re.search(r"(?m)^sonde: ", result.err), lambda: "closed pipe, %s: %s" % (args, result))
	result = run(["sh", "-c", 'exec "$0" profile -F 0 2>&-', SONDE])
	check_equal(result.code, 2, "without stderr")


# --- JSON ---

@test
def one_spelling_of_json():
	"""JSON is requested by --format json or by a suffix; every document first says what it is."""
	for verb in VERBS:
		names = options_in(sonde(verb, "--help", want=0).out)
		check("json" not in names and ("format" in names) == (verb != "show"), "%s: %s" % (verb, sorted(names)))
	need_bpf()
	begins = {}
	for words in (["profile", "-F", 199, "-o"], ["offcpu", "-o"], ["wall", "-o"], ["runq", "-o"], ["stat", "-o"]):
		path = scratch("spelling.json")
		run([SONDE, *map(str, words), path, "1", *(["1"] if words[0] == "runq" else [])])
		with open(path, encoding="utf-8") as file:
			begins[words[0]] = list(json.load(file).items())[:2]
	begins["doctor"] = list(json.loads(run([SONDE, "doctor", "--format", "json"]).out).items())[:2]
	path = scratch("spelling.jsonl")
	run([SONDE, "wall", "--events", path, "-o", scratch("spelling.folded"), "1"])
	with open(path, encoding="utf-8") as file:
		begins["events"] = list(json.loads(file.readline()).items())[1:3]
	check_equal(begins, {**{verb: [("format", "sonde-profile"), ("version", 2)] for verb in ("profile", "offcpu", "wall", "runq")}, "stat": [("format", "sonde-counts"), ("version", 1)],
		"doctor": [("format", "sonde-doctor"), ("version", 1)], "events": [("format", "sonde-events"), ("version", 2)]}, "first fields")
	one_line(sonde("stat", "--format", "xml", "1"), "stat --format xml", 2, "text, json")


# --- doctor -------------------------------------------------------------------------------------------------------------------------

def doctor_json(prefix, want):
	result = run([*prefix, "doctor", "--format", "json"])
	check(result.code == want and not result.err, lambda: "want exit %d: %s" % (want, result))
	report = json.loads(result.out)
	return report, {check["id"]: check["state"] for check in report["checks"]}, {verb["verb"]: verb for verb in report["verbs"]}


@test
def doctor_here():
	"""As root with BPF available: profile works, and the text agrees."""
	need_bpf()
	report, states, verbs = doctor_json([SONDE], 0)
	check_equal(verbs["profile"]["verdict"], "works", report)
	check_equal(verbs["profile"]["fix"], "", "a fix for what works")
	check_equal({verb: verbs[verb]["verdict"] for verb in verbs}, dict.fromkeys(("profile", "offcpu", "wall", "runq", "leak", "alloc", "files", "io", "trace", "stat", "doctor"), "works"), "verdicts")
	for name in ("kernel.btf", "program.perf_event", "program.tp_btf", "program.raw_tracepoint", "map.hash", "map.array", "map.array_of_maps", "map.ringbuf",
			"program.sched_switch", "program.iter_task", "map.task_storage", "kernel.sched_info", "map.percpu_array", "map.large", "helper.bpf_get_stack", "helper.bpf_ringbuf_output", "helper.bpf_probe_read_user",
			"event.cpu_clock", "event.attach", "event.sideband", "capability.bpf", "capability.perfmon", "access.kallsyms"):
		check_equal(states.get(name), "yes", name)
	check_equal(len(states), len(report["checks"]), "ids are not unique")
	check(all(state in ("yes", "no", "denied", "info") for state in states.values()), "states: %s" % states)
	text = sonde("doctor", want=0).out
	check(re.search(r"(?m)^  profile +works$", text) and ESCAPE not in text, text)
	for entry in report["checks"]:
		check(entry["title"] in text, "%s is not in the text" % entry["title"])
		check(len(entry["title"]) <= 33, "%s is too long" % entry["title"])
	for line in text.splitlines():
		check(len(line) <= 80 or " fix: " in line, "wider than 80 columns: " + line)
	check_equal(os.path.exists("/sys/bus/event_source/devices/cpu"), states["event.cycles"] == "yes", "a PMU")


@test
def doctor_as_nobody():
	prefix = as_nobody()
	_, states, verbs = doctor_json(prefix, 3)
	check_equal(verbs["profile"]["verdict"], "not-permitted", verbs)
	check_equal({verb: verbs[verb]["verdict"] for verb in ("offcpu", "wall", "runq", "leak", "alloc", "stat")},
		{"offcpu": "not-permitted", "wall": "not-permitted", "runq": "not-permitted", "leak": "not-permitted", "alloc": "not-permitted", "stat": "works-with-less"}, "the other verbs")
	check("map.ringbuf" in [missing["check"] for missing in verbs["profile"]["missing"] if missing["weight"] == "must"], str(verbs))
	for name in ("program.perf_event", "map.large", "event.cpu_clock", "capability.bpf", "access.processes", "access.map_files"):
		check_equal(states[name], "denied", name)
	check_equal(states["kernel.btf"], "yes", "kernel.btf")
	result = run([*prefix, "doctor"])
	check(result.code == 3 and "not permitted" in result.out and "fix: " in result.out, lambda: str(result))


@test
def the_fix_fixes_it():
	"""The fix that doctor gives nobody makes profile work for nobody."""
	need_bpf()
	prefix = as_nobody()
	if not find_tool("setcap", "/usr/sbin/setcap", "/sbin/setcap"):
		skip("no setcap (libcap2-bin)")
	path = scratch("sonde-with-capabilities")
	shutil.copy(SONDE, path)
	_, _, verbs = doctor_json([*prefix[:-1], path], 3)
	words = verbs["profile"]["fix"].split(" ")
	check(words[:2] == ["sudo", "setcap"] and words[-1] == path, "the fix is %s" % words)
	if run(words[1:]).code:
		skip("the file system of %s keeps no capabilities" % path)
	_, _, verbs = doctor_json([*prefix[:-1], path], 0)
	check_equal(verbs["profile"]["verdict"], "works", verbs)
	result = run([*prefix[:-1], path, "profile", "-F", "99", "-f", "--", "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"])
	check(result.code == 0 and result.out, lambda: str(result))


# Spins in code without a file, whose name only root may read
SECRET_MAP = r"""
import ctypes, mmap, os
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(b"\x55\x48\x89\xe5\xeb\xfe") # push %rbp; mov %rsp,%rbp; jmp .
at = ctypes.addressof(ctypes.c_char.from_buffer(code))
os.umask(0o077)
with open("/tmp/perf-%d.map" % os.getpid(), "w") as file:
	file.write("%x 6 secret_name\n" % at)
print("ready", flush=True)
ctypes.CFUNCTYPE(None)(at)()
"""


@test
def capabilities_read_no_secret():
	"""Who may bypass the permissions of files by sonde's capabilities does not see a file of root's by them."""
	need_bpf()
	prefix = as_nobody()
	path = scratch("sonde-with-more-capabilities")
	shutil.copy(SONDE, path)
	capabilities = "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_syslog,cap_checkpoint_restore,cap_dac_read_search+ep"
	if not find_tool("setcap", "/usr/sbin/setcap", "/sbin/setcap") or run(["setcap", capabilities, path]).code:
		skip("no setcap (libcap2-bin), or the file system keeps no capabilities")
	with subprocess.Popen([sys.executable, "-c", SECRET_MAP], stdout=subprocess.PIPE) as process:
		try:
			process.stdout.readline()
			found = run([*prefix[:-1], path, "profile", "-f", "-F", "99", "-p", process.pid, 1])
			check(run([SONDE, "profile", "-f", "-F", "99", "-p", process.pid, 1]).out.count("secret_name"), "root does not see it")
		finally:
			process.kill()
			os.unlink("/tmp/perf-%d.map" % process.pid)
	check(found.code == 0 and found.out and "secret_name" not in found.out and "Permission denied" in found.err, lambda: str(found))


if __name__ == "__main__":
	run_tests()
