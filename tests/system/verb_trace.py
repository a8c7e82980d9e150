#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sonde trace: counts of probes against programs that say how often they are hit, filters, times, arguments, and refusals."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys

from event_rows import rows, start, trace_program, trace_whole
from harness import SOURCES, Background, build, check, check_equal, load_json, need_bpf, parse_json, run, run_tests, scratch, skip, sonde, test, total
from trials import ways_of

TURNS = 6000
HAS_KPROBES = os.path.exists("/sys/bus/event_source/devices/kprobe")


def python(script, *words):
	return trace_program([sys.executable, "-c", "import os, sys\nprint('ready', flush=True)\nsys.stdin.readline()\n" + script], *words)


@test
def functions_probes_and_calls():
	"""A user function's entry and return, a USDT probe with its semaphore, and a system call in it: each is counted each time."""
	path = build("hits")
	probes = ["uprobe:%s:probed" % path, "uretprobe:%s:probed" % path, "usdt:%s:hits:point" % path, "syscall:getppid", "syscalls:sys_exit_getppid"]
	json_rows, out, _ = trace_program([path, str(TURNS)], ",".join(probes))
	want = sum(ways_of(out).values())
	check_equal({row["probe"]: row["nr_hits"] for row in json_rows}, dict.fromkeys(probes, want), "hits")
	check("semaphore 1\n" in out, lambda: out)
	return "%d hits of each" % want


@test
def times_from_entry_to_return():
	path = build("hits")
	probes = ["uprobe:%s:probed" % path, "syscall:getppid"]
	json_rows, out, _ = trace_program([path, str(TURNS)], ",".join(probes), "--latency", "--by", "comm")
	want = sum(ways_of(out).values())
	check_equal({row["probe"]: row["nr_hits"] for row in json_rows}, dict.fromkeys(probes, want), "hits")
	check(all(sum(slot["count"] for slot in row["slots_us"]) == want and row["sum_ns"] > 0 for row in json_rows), lambda: str(json_rows))
	time_of = {row["probe"].split(":")[0]: row["sum_ns"] for row in json_rows}
	check(time_of["uprobe"] > time_of["syscall"], "the function makes the call, so it takes longer: %s" % time_of)


@test
def how_long_a_sleep_takes():
	json_rows, _, _ = python("import time\nfor i in range(40): time.sleep(0.01)\n", "syscall:clock_nanosleep", "--latency")
	check_equal([row["nr_hits"] for row in json_rows], [40], "sleeps")
	check(all(slot["low"] >= 8192 for slot in json_rows[0]["slots_us"]) and json_rows[0]["sum_ns"] >= 400_000_000, lambda: str(json_rows))


@test
def comparisons():
	script = "fd = os.open('/etc/passwd', 0)\nfor i in range(1000): os.lseek(fd, i, 0)\nfor i in range(7):\n  try: os.lseek(fd, -5, 0)\n  except OSError: pass\n"
	for words, want in (("arg1 >= 100 && arg1 < 200", 100), ("arg1 != 0 && arg1 <= 10 && arg1 > 0", 10), ("arg1 == -5", 7), ("arg1 < 0", 7), ("arg1 > 0x3e0 && comm ^= py", 7),
		("comm == nobody", None), ("arg1 == 3 && arg2 == 0 && tid > 1 && pid > 1 && cpu >= 0 && arg1 == 3 && arg1 == 3 && arg1 == 3", 1)):
		json_rows, _, err = python(script, "syscall:lseek", "--filter", words)
		check_equal([row["nr_hits"] for row in json_rows], [want] if want else [], words)
		check(re.search(r"\b%d rejected by the filter" % (1007 - (want or 0)), err), lambda: "%s: %s" % (words, err)) # pylint: disable=cell-var-from-loop


@test
def by_fields_and_arguments():
	script = "fd = os.open('/etc/passwd', 0)\nfor i in range(1000): os.lseek(fd, i % 4, 0)\n"
	json_rows, _, _ = python(script, "syscall:lseek", "--by", "pid,comm,arg:arg1")
	check_equal({row["arg1"]: row["nr_hits"] for row in json_rows}, {str(i): 250 for i in range(4)}, "hits by argument")
	check(len({row["pid"] for row in json_rows}) == 1 and all(row["comm"].startswith("py") for row in json_rows), lambda: str(json_rows))
	script = "os.access('/' + 'x' * 200, 0)\n"
	json_rows, _, _ = python(script, "syscall:access", "--by", "arg:str(arg0)", "--filter", 'str(arg0) ^= "/xxx"')
	check_equal([row["str(arg0)"] for row in json_rows], ["/" + "x" * 126 + "..."], "a text that is cut is marked")
	json_rows, _, _ = python(script, "syscall:access", "--print", "--filter", 'str(arg0) ^= "/xxx"')
	check(any(row.get("filename", "").endswith("x...") or "filename" not in row for row in json_rows if "tid" in row), lambda: str(json_rows))
	script = "for i in range(5): os.access('/one', 0)\nfor i in range(3): os.access('/two', 0)\n"
	json_rows, _, _ = python(script, "syscall:access", "--by", "arg:str(arg0)", "--filter", 'str(arg0) != "/etc"')
	check_equal({row["str(arg0)"]: row["nr_hits"] for row in json_rows}, {"/one": 5, "/two": 3}, "hits by text")
	json_rows, _, _ = python(script, "syscall:access", "--filter", 'arg0 == "/two"')
	check_equal([row["nr_hits"] for row in json_rows], [3], "a text that is not declared as one")


@test
def members_of_the_kernels_structs():
	need_bpf()
	path = scratch("own_true")
	shutil.copy("/bin/true", path)
	with Background("trace", "sched_process_exec", "--by", "arg:bprm.filename", "--format", "json", "--filter", 'bprm->filename ^= "%s"' % path[:60]) as trace:
		trace.wait_line("Tracing")
		for _ in range(20):
			run([path])
		trace.send(2)
		result = trace.finish()
	json_rows = rows(result.out, "sonde-trace")
	check_equal([(row["bprm.filename"], row["nr_hits"]) for row in json_rows], [(path, 20)], "started programs")


@test
def single_hits():
	script = "for i in range(30): os.access('/x%d' % i, 4)\n"
	json_rows, _, err = python(script, "syscall:access", "--print")
	hits = [row for row in json_rows if "tid" in row]
	check_equal([hit.get("mode", hit.get("arg1")) for hit in hits], ["4"] * 30, "arguments") # their names are those of tracefs
	check("have their names by" in err, lambda: err)
	json_rows, _, _ = python(script, "syscall:access,syscalls:sys_exit_access", "--print")
	hits = [row for row in json_rows if "tid" in row]
	check_equal([hit["probe"].partition(":")[0] for hit in hits], ["syscall", "syscalls"] * (len(hits) // 2), "the lines of two probes are in order")
	check(len(hits) >= 60 and all(a["time_unix_ns"] <= b["time_unix_ns"] for a, b in zip(hits, hits[1:])) and " 0 lost" in err, lambda: err)


@test
def stacks_of_all_hits():
	path, report = build("hits"), scratch("hits.json")
	out, result = trace_whole([path, str(TURNS)], "uprobe:%s:probed" % path, "--stacks", "-o", report)
	check(result.code == 0, lambda: str(result))
	stacks, account = parse_json(load_json(report)), load_json(report)["account"]
	nr = total(stacks)
	check_equal((nr, account["ticks"]), (account["recorded"], nr + sum(account["filtered"].values()) + sum(account["dropped"].values())), "account")
	check(1000 <= nr <= sum(ways_of(out).values()), "%d hits" % nr) # the header comes before the probe, so some may be missed
	right = sum(stack.count for stack in stacks if stack.user[-1] == "probed" and {"main", "in_thread"} & set(stack.user))
	check(right >= 0.99 * nr, lambda: "%d of %d\n%s" % (right, nr, "\n".join(map(str, stacks[:20]))))
	return "%d stacks of %d hits" % (len(stacks), nr)


@test
def hits_beyond_the_ring_are_counted():
	"""sonde stands still while they come: shown and lost make up all."""
	need_bpf()
	program = start(sys.executable, "-c", "import os, sys\nprint('ready', flush=True)\nsys.stdin.readline()\nfor i in range(20000): os.access('/x', 4)\n")
	try:
		program.stdout.readline()
		with Background("trace", "syscall:access", "--print", "-p", program.pid, "--format", "json") as trace:
			trace.wait_line("Tracing")
			trace.process.send_signal(signal.SIGSTOP)
			try:
				program.communicate("\n", timeout=60)
			finally:
				trace.process.send_signal(signal.SIGCONT)
			result = trace.finish()
	finally:
		program.kill()
		program.communicate()
	shown = len([row for row in rows(result.out, "sonde-trace") if "tid" in row])
	lost = int(re.search(r"(\d+) of 20000 hits found no room in the ring buffer", result.err).group(1))
	check_equal(shown + lost, 20000, "shown and lost")
	return "%d shown, %d lost" % (shown, lost)


@test
def comparisons_of_user_space():
	"""More than eight: the others are made here, of the hits that are printed."""
	script = "for i in range(30): os.access('/x%d' % i, 4)\nfor i in range(5): os.access('/y', 4)\n"
	words = " && ".join(["pid > 0"] * 8)
	json_rows, _, err = python(script, "syscall:access", "--print", "--filter", words + ' && str(arg0) == "/y" && arg1 == 4')
	check_equal(len([row for row in json_rows if "tid" in row]), 5, "hits")
	check(re.search(r"2 of the comparisons are made in user space: they rejected \d+ of the hits", err), lambda: err)


@test
def stacks_under_lines():
	"""Each hit has its stack; sums by stack and argument add up to the hits."""
	path = build("hits")
	probe = "uprobe:%s:probed" % path
	json_rows, out, _ = trace_program([path, "300"], probe, "--print", "--stacks")
	hits = [row for row in json_rows if "stack" in row]
	known = [hit for hit in hits if any(set(way) <= set(hit["stack"]) for way in ways_of(out))]
	check(len(hits) >= 300 and len(known) >= 0.99 * len(hits), lambda: "%d of %d\n%s" % (len(known), len(hits), hits[:3]))
	json_rows, out, err = trace_program([path, "300"], probe, "--by", "comm,stack,arg:arg0")
	sums = [row for row in json_rows if "stack" in row]
	check(sums and all(row["stack"][0] == "probed" for row in sums), lambda: str(sums[:3]))
	recorded = sum(row["nr_hits"] for row in sums)
	check(300 <= recorded <= sum(ways_of(out).values()), lambda: "%d hits\n%s" % (recorded, err))
	return "%d hits, %d sums of %d hits" % (len(hits), len(sums), recorded)


@test
def arguments_of_user_functions():
	"""Names, types and values by DWARF; an argument of floating point and what is behind it; a place by its source line."""
	path = scratch("parameters")
	check_equal(run(["gcc", "-g", "-O1", "-pthread", "-o", path, os.path.join(SOURCES, "parameters.c")]).code, 0, "gcc")
	probe = "uprobe:%s:work" % path
	json_rows, out, _ = trace_program([path, "100"], probe, "--print")
	hits = [row for row in json_rows if "tid" in row]
	check_equal([(hit["fd"], hit["path"], hit["small"], hit["n"]) for hit in hits], [(str(-i), "odd" if i % 2 else "even", "-3", str(1 << 40)) for i in range(100)], "arguments")
	json_rows, _, _ = trace_program([path, "100"], probe, "--filter", 'fd < -89 && path ^= od && small == -3', "--by", "arg:path")
	check_equal([(row["path"], row["nr_hits"]) for row in json_rows], [("odd", 5)], "comparisons")
	line = int(re.search(r"line (\d+)", out).group(1))
	json_rows, _, _ = trace_program([path, "100"], "uprobe:%s:parameters.c:%d" % (path, line))
	check_equal([row["nr_hits"] for row in json_rows], [100], "hits of the line")
	for words, text in (("parameters.c:1", "there is no code at line 1 of parameters.c: the next is line "), ("others.c:1", "not made of a source 'others.c'")):
		result = sonde("trace", "uprobe:%s:%s" % (path, words), "1", want=1)
		check(text in result.err, lambda: "%s: %s" % (words, result)) # pylint: disable=cell-var-from-loop


@test
def calls_of_32_bits():
	"""Their numbers are others, and they are the same calls."""
	script = """
import ctypes, mmap
code = bytes.fromhex("53b814000000cd805bc3") # push rbx; mov eax, 20 (getpid of 32 bits); int 0x80; pop rbx; ret
page = mmap.mmap(-1, 4096, prot=7)
page.write(code)
call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
assert call() == os.getpid()
for i in range(40): call()
for i in range(7): ctypes.CDLL(None).syscall(39)
"""
	if os.uname().machine != "x86_64":
		skip("no calls of 32 bits")
	json_rows, _, _ = python(script, "syscall:getpid")
	check(json_rows and json_rows[0]["nr_hits"] in (48, 49), lambda: str(json_rows)) # os.getpid() makes none or one


@test
def a_tracepoint_with_frames_of_a_language():
	"""The way to a tracepoint in the kernel, with the interpreter's functions below, as a flame graph and folded."""
	need_bpf()
	page, folded = scratch("forks.html"), scratch("forks.folded")
	program = start(sys.executable, "-c", "import os, sys\ndef makes_one():\n  pid = os.fork()\n  if not pid: os._exit(0)\n  os.waitpid(pid, 0)\ndef makes_many():\n"
		"  for i in range(40): makes_one()\nprint('ready', flush=True)\nsys.stdin.readline()\nmakes_many()\n")
	try:
		program.stdout.readline()
		with Background("trace", "sched_process_fork", "--stacks", "-o", page, "-o", folded, "-p", program.pid) as trace:
			trace.wait_line("Tracing")
			program.communicate("\n", timeout=60)
			check(trace.finish().code == 0, "sonde trace")
	finally:
		program.kill()
		program.communicate()
	with open(folded, encoding="utf-8") as file:
		lines = file.read().splitlines()
	nr = sum(int(line.split()[-1]) for line in lines)
	right = sum(int(line.split()[-1]) for line in lines if re.search(r"makes_many.*;makes_one.*;kernel_clone \d+$", line)) # without our own program
	check(nr >= 35 and right >= 0.9 * nr, lambda: "%d of %d\n%s" % (right, nr, "\n".join(lines))) # the header comes before the probe
	with open(page, encoding="utf-8") as file:
		check("makes_many" in file.read(), "the page has the function")
	return "%d of %d" % (right, nr)


@test
def doctor_knows():
	need_bpf()
	verbs = {verb["verb"]: verb for verb in json.loads(sonde("doctor", "--format", "json", want=None).out)["verbs"]}
	check({"files", "io", "trace"} <= set(verbs) and verbs["trace"]["verdict"] == "works", lambda: str(verbs))
	check_equal("kernel.kprobes" in [missing["check"] for missing in verbs["trace"]["missing"]], not HAS_KPROBES, "kprobes")


@test
def it_does_not_feed_itself():
	need_bpf()
	with subprocess.Popen([sys.executable, "-c", "import os, time\nwhile True: os.write(2, b'x'); time.sleep(0.01)"], stderr=subprocess.DEVNULL) as program:
		try:
			with Background("trace", "syscall:write", "--print", "--format", "json", "1") as trace:
				pid, result = trace.process.pid, trace.finish()
		finally:
			program.kill()
	json_rows = rows(result.out, "sonde-trace")
	check(json_rows and not [row for row in json_rows if row.get("pid") == pid], lambda: result.out[:2000])
	check(int(re.search(r"(\d+) of sonde itself", result.err).group(1)) >= 1, lambda: result.err)


@test
def what_is_refused():
	need_bpf()
	cases = [(["no_such_thing"], 1, "nothing is called 'no_such_thing'"), (["syscall:nothing"], 1, "no system call 'nothing'"), (["tracepoint:sched_nothing"], 1, "no tracepoint"),
		(["sched_switch", "--latency"], 2, "has no end"), (["sched_switch", "--filter", "prev.nothing == 1"], 2, "struct task_struct has no member 'nothing'"),
		(["sched_switch", "--filter", "other == 1"], 2, "there is no argument 'other', but preempt, prev, next"), (["sched_switch", "--filter", "prev.pid ~ 1"], 2, "one of =="),
		(["syscall:read", "--filter", " && ".join(["pid > 0"] * 9)], 2, "8 comparisons at most are made in the kernel"), ([], 2, "what is to be traced"), (["uprobe:/bin/bash"], 2, "uprobe:FILE:FUNCTION"),
		(["uprobe:/bin/bash:no_such_function"], 1, "no uprobe 'no_such_function'")]
	if not HAS_KPROBES:
		cases += [(["kprobe:vfs_read"], 4, "the nearest that it can trace is syscall:read"), (["vfs_read"], 4, "syscall:read"), (["handle_irq_event"], 4, "irq_handler_entry")]
	for words, code, text in cases:
		result = sonde("trace", *words, *(["1"] if words else []), want=None)
		check(result.code == code and text in result.err, lambda: "%s: %s" % (words, result)) # pylint: disable=cell-var-from-loop
	result = sonde("trace", "syscall:reboot", "1", want=5)
	check("syscall:reboot: attached, 0 hits in 1." in result.err, lambda: result.err)


@test
def lists():
	need_bpf()
	result = sonde("trace", "-l", "vfs_*", want=0)
	names = {line.split()[0] for line in result.out.splitlines()}
	with open("/proc/kallsyms", encoding="ascii") as file:
		want = {"kprobe:" + line.split()[2] for line in file if re.match(r"\S+ [tTwW] vfs_", line)}
	check_equal(names, want, "functions")
	check(HAS_KPROBES or all(line.endswith("(not here: this kernel has neither kprobes nor fentry)") for line in result.out.splitlines()), lambda: result.out)
	check("tracepoint:sched_switch(bool preempt, struct task_struct *prev, struct task_struct *next" in sonde("trace", "-lv", "tracepoint:sched_sw*", want=0).out, "arguments")
	check_equal(sonde("trace", "-l", "syscall:open", want=0).out, "syscall:open\n", "one call")
	for name in ("sched_switch", "sched:sched_switch", "t:sched:sched_switch", "tracepoint:sched:sched_switch"):
		check_equal(sonde("trace", "-l", name, want=0).out, "tracepoint:sched_switch\n", "the names of a tracepoint")
	check_equal(sonde("trace", "-l", "syscalls:sys_enter_open", want=0).out, "syscall:open\n", "a call's other name")
	group = set(sonde("trace", "-l", "irq:*", want=0).out.split())
	check({"tracepoint:irq_handler_entry", "tracepoint:softirq_raise"} <= group and "tracepoint:sched_switch" not in group, lambda: str(group))
	sonde("trace", "-l", "irq:sched_switch", want=5)
	sonde("trace", "-l", "nothing_like_it", want=5)
	return "%d functions" % len(want)


if __name__ == "__main__":
	run_tests()
