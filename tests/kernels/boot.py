#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""boot.py [--one] [PART OF A NAME...]: sonde on the kernels of Debian 11, 12 and 13 (5.10, 6.1, 6.12) in QEMU, on workloads whose true stack is known: other
kernel, other types, same programs. --one: only the oldest, or the next one where the mirror lacks it. What is not available is skipped, with the reason."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from guest import Guest, image # noqa: E402
from harness import ( # noqa: E402
	SONDE, Failure, Skip, build, chain_error, check, check_exact, entry_error, find_tool, need_bpf, parse_chains, parse_folded, run_tests, skip, test, total)
from trials import TRIAL, Report, check_hits, inside, ways_of # noqa: E402

KERNELS = {"5.10": ("debian-security", "bullseye-security"), "6.1": ("debian", "bookworm"), "6.12": ("debian", "trixie")}
DEPTH = 30
DEEP = 10000
ROOT_FRAMES = 128
TRIGGERS = (("uprobe,/hits,probed", ""), ("uretprobe,/hits,probed", "-"), ("usdt,/hits,hits,point", ""), ("sys_enter,110", "syscall"), ("sys_exit,110", "syscall"),
	("kprobe,__x64_sys_getppid", "syscall"), ("kretprobe,__x64_sys_getppid", "syscall"), ("fentry,__task_pid_nr_ns", "syscall"), ("fexit,__task_pid_nr_ns", "syscall"))
COUNTED_AS_LOCKED = "5.10" # memory of maps, up to that release
SCRIPT = """
/chain-static 200 %d > /chain.out &
wait_for ready /chain.out
step chain cat /chain.out
step exact /sonde profile -f -a -F 299 -p $! 1
step limited /setpriv --bounding-set=-sys_resource /sonde profile -f -p $! 1
step limited_doctor /setpriv --bounding-set=-sys_resource /sonde doctor
chain=$!
/sonde profile -o /beside.json -p $chain 100 2> /beside.err &
wait_for Sampling /beside.err
step limited_beside /setpriv --bounding-set=-sys_resource /sonde profile -f -p $chain 1
step limited_beside_doctor /setpriv --bounding-set=-sys_resource /sonde doctor
kill $!
wait $!
kill $chain
/syscalls 200 > /syscalls.out &
wait_for ready /syscalls.out
step syscalls_chain cat /syscalls.out
step syscalls /sonde profile -f -a -F 299 -p $! 1
kill $!
/io_workers-static 200 > /io_workers.out &
wait_for ready /io_workers.out
step io_workers /sonde profile -f -a -F 299 -p $! 1
kill $!
step command /sonde profile -f -a -F 299 -- /chain 1 %d
/chain-static 200 %d > /deep.out &
wait_for ready /deep.out
step deep_chain cat /deep.out
step deep /sonde profile -f -a -F 49 -p $! 1
kill $!
/perl -e 'sub spin { my $n = 0; $n++ while 1 } sub by_name { spin() } sub middle { my @s = sort by_name 2, 1 } middle()' &
sleep 3
step perl /sonde profile -f -a -F 99 -p $! 3
kill $!
step verifier /test_verifier
/chain-static 20 %d &
step runq /sonde runq --by comm 1 1
step runq_oncpu /sonde runq --oncpu 1 1
step runq_len /sonde runq --len 1 1
step runq_stacks /sonde runq --slower 1 --stacks 2 1
kill $!
/shares-static 200 spin sleep lock &
sleep 1
step wall /sonde wall -f -p $! 2
kill $!
mkfifo /hits.in /trial.in
/hits 300 < /hits.in > /hits.out &
exec 3> /hits.in
wait_for ready /hits.out
/trial $(sed -n 's/^pid //p' /hits.out) 1000 3 %s < /trial.in > /trial.out 2> /trial.err &
trial=$!
exec 4> /trial.in
while ! grep -q attached /trial.out && kill -0 $trial; do
	sleep 0.1
done
echo >&3
wait_for semaphore /hits.out
echo >&4
wait $trial
exec 3>&- 4>&-
step ways cat /hits.out
step trial cat /trial.out
step trial_err cat /trial.err
step forked /sonde profile -f -a -F 199 -- /children 2
step executed /sonde profile -f -a -F 199 -- /children 2 /chain 0.1 %d
sleep 100 &
step idle /sonde profile -f -p $! 1
step waits /sonde offcpu -f -p $! 1
step gone /sonde profile -f -p 99999 1
step usage /sonde profile -F 0 1
step doctor /sonde doctor --format json
cpu1=/sys/devices/system/cpu/cpu1/online
echo 0 > $cpu1
/sonde profile -a -F 99 -o /late.folded 9 2> /late.err &
sonde=$!
wait_for Sampling /late.err
sleep 1
echo 1 > $cpu1
sleep 1
taskset 2 /chain 2 %d > /late.out
echo 0 > $cpu1
sleep 0.5
echo 1 > $cpu1
sleep 1
taskset 2 /chain-static 2 %d > /back.out
wait $sonde
step late cat /late.folded
step late_err cat /late.err
step late_chain cat /late.out
step back_chain cat /back.out
echo 0 > $cpu1
/sonde runq --len --by cpu 4 1 > /late_len.out 2> /late_len.err &
sonde=$!
wait_for Tracing /late_len.err
echo 1 > $cpu1
wait $sonde
step late_len cat /late_len.out
mount -t tmpfs none /sys/kernel/btf
step no_btf /sonde profile -f 1
step no_btf_doctor /sonde doctor
""" % (DEPTH, DEPTH, DEEP, DEPTH, " ".join(trigger for trigger, _ in TRIGGERS), DEPTH, DEPTH, DEPTH)
booted = {}
again = set() # the kernels that were booted twice


def guest(release):
	"""Each kernel boots once, for all of its tests. If it cannot boot, they all give the same reason."""
	need_bpf()
	if release not in booted:
		try:
			programs = {"sonde": SONDE, "chain-static": build("chain", "static"), "chain": build("chain"), "shares-static": build("shares", "static"), "children": build("children"),
				"syscalls": build("syscalls"), "io_workers-static": build("io_workers", "static"), "perl": find_tool("perl") or skip("no perl"),
				"hits": build("hits", "static"), "trial": TRIAL,
				"test_verifier": os.path.join(os.path.dirname(SONDE), "tests", "bpf", "test_verifier"), "setpriv": find_tool("setpriv") or skip("no setpriv")}
			booted[release] = Guest(image(*KERNELS[release]), programs, SCRIPT)
		except Skip as reason:
			booted[release] = reason
		except Failure:
			booted[release] = Failure("the guest did not get through, as was said")
			raise
	if isinstance(booted[release], Exception):
		raise booted[release]
	check(booted[release].release.startswith(release + "."), "this is Linux %s" % booted[release].release)
	return booted[release]


def stacks_of(step, comm):
	return parse_folded("\n".join(line for line in step.out.splitlines() if line.startswith(comm + ";")))


def exact(release):
	"""A static program that was already running."""
	chain = parse_chains(guest(release).step("chain").out)["chain-static"]
	check(len(chain) == DEPTH + 2, "the workload did not print its chain")
	stacks = stacks_of(guest(release).step("exact", 0), "chain-static")
	share = check_exact(stacks, lambda stack: chain_error(stack, chain), at_least=100)
	return "%s, %.2f %% of %d samples" % (guest(release).release, share * 100, total(stacks))


def command(release):
	"""A dynamic program from its first instruction on. Its start is slow in QEMU and not under test;
	at its end it has no user side any more."""
	chain = ["main"] + ["f%d" % (i % 10) for i in range(DEPTH)] + ["leaf"]
	stacks = [stack for stack in stacks_of(guest(release).step("command", 0), "chain")
		if "do_exit" not in stack.kernel and not (stack.user and stack.user[0].startswith("[no unwind info: ld-linux"))]
	share = check_exact(asked(stacks, "leaf"), lambda stack: chain_error(stack, chain), at_least=100)
	return "%.2f %% of %d samples" % (share * 100, total(stacks))


def syscalls(release):
	"""Nearly all samples are in the kernel: their user registers are where its entry code saved them."""
	chain = parse_chains(guest(release).step("syscalls_chain").out)["syscalls"]
	stacks = [stack for stack in stacks_of(guest(release).step("syscalls", 0), "syscalls") if stack.kernel]

	def error_of(stack):
		at = stack.user.index("main") if "main" in stack.user else 0
		if stack.user[at:at + len(chain)] != chain or entry_error(stack.user[:at]):
			return "another chain"
		return None if len(stack.user) <= at + len(chain) + 1 else "frames above reader and read"
	share = check_exact(stacks, error_of, at_least=80)
	return "%.2f %% of %d samples" % (share * 100, total(stacks))


def io_workers(release):
	"""They are threads of the process and have no user side: no user frames are made up."""
	stacks = [stack for stack in parse_folded(guest(release).step("io_workers", 0).out) if {"io_wqe_worker", "io_wq_worker", "io_sq_thread"} & set(stack.kernel)]
	check(total(stacks) >= 20, lambda: str(guest(release).step("io_workers")))
	check(not any(stack.user for stack in stacks), lambda: "\n".join(map(str, stacks[:10])))
	return "%d samples" % total(stacks)


def deep(release):
	"""The root end and the leaf end of a recursion that is deeper than the limit, the same on all kernels."""
	chain = parse_chains(guest(release).step("deep_chain").out)["chain-static"]
	check(len(chain) == DEEP + 2, "the workload did not print its chain")

	def error_of(stack):
		mark = "[frames left out]"
		if stack.user.count(mark) != 1:
			return "no mark, or many"
		at = stack.user.index(mark)
		root, top = stack.user[:at], stack.user[at + 1:]
		main = root.index("main") if "main" in root else 0
		if len(root) != ROOT_FRAMES or root[main:] != chain[:at - main] or entry_error(root[:main]):
			return "the root end is another"
		return None if len(top) >= 1000 and top == chain[-len(top):] else "the leaf end is another"
	stacks = stacks_of(guest(release).step("deep", 0), "chain-static")
	share = check_exact(stacks, error_of, at_least=8)
	return "%.2f %% of %d samples" % (share * 100, total(stacks))


MARKS = ("[process not known yet]", "[no mapping]", "[unwind table not loaded", "[no unwind info", "[stack ", "[unsupported", "[truncated")


def is_marked(stack):
	return not stack.user or stack.user[0].startswith(MARKS)


def asked(stacks, leaf):
	"""The samples of the leaf, and those that could be of the leaf because they end early."""
	return [stack for stack in stacks if stack.user[-1:] == [leaf] or is_marked(stack)]


def short_lived(step, comm, leaf, chain):
	"""A stack without a mark for missing frames is the chain. Most are complete, though user space is twenty times slower in QEMU."""
	known = asked(stacks_of(step, comm), leaf)
	whole = [stack for stack in known if not is_marked(stack)]
	check_exact(whole, lambda stack: chain_error(stack, chain), minimum=0.99, at_least=50)
	share = check_exact(known, lambda stack: chain_error(stack, chain), minimum=0.85, at_least=50)
	return "%.2f %% of %d samples" % (share * 100, total(known))


def forked(release):
	return short_lived(guest(release).step("forked", 0), "child", "child_leaf", "main;parent_loop;child_work;child_leaf".split(";"))


def executed(release):
	return short_lived(guest(release).step("executed", 0), "chain", "leaf", ["main"] + ["f%d" % (i % 10) for i in range(DEPTH)] + ["leaf"])


def perl(release):
	"""The programs of a runtime are loaded while sampling, and tail-called; its frames are among the native ones."""
	stacks = stacks_of(guest(release).step("perl", 0), "perl")

	def error_of(stack):
		told = [frame.partition(" (")[0] for frame in stack.user if frame.endswith(" (-e)")]
		if told != ["<main>", "main::middle", "main::by_name", "main::spin"]:
			return "other frames of Perl"
		middle, by_name = (next(i for i, frame in enumerate(stack.user) if frame.startswith(name)) for name in ("main::middle", "main::by_name"))
		if "Perl_pp_sort" not in stack.user[middle + 1:by_name] or stack.user[0].endswith(" (-e)") or "Perl_runops_standard" in stack.user:
			return "not among the native frames"
		return None
	known = [stack for stack in stacks if not is_marked(stack)]
	share = check_exact(known, error_of, minimum=0.9, at_least=50)
	return "%.2f %% of %d samples" % (share * 100, total(known))


def triggers(release):
	"""Triggers of every kind at once: each hit is counted, and has the stack that the program printed."""
	out = guest(release).step("trial", 0).out
	check(out.startswith("attached\n"), lambda: str(guest(release).step("trial_err")))
	report, ways = Report(out.partition("\n")[2]), ways_of(guest(release).step("ways").out)
	missed = sum(check_hits(report, number, ways, leaf, elsewhere=trigger.startswith("f"), max_missed=sum(ways.values()) // 100) for number, (trigger, leaf) in enumerate(TRIGGERS))
	return "%d hits each, %d stacks missed, %d ticks in the middle of such a program" % (sum(ways.values()), missed, inside(report.of("tick")))


def verifier(release):
	"""The programs of all runtimes load, and need little time for it."""
	out = guest(release).step("verifier", 0).out
	parts = [line.split() for line in out.splitlines() if " verified in " in line]
	return ", ".join("%s %s" % (part[0], part[2]) for part in parts if part[1] == "sonde_%s:" % part[0])


def run_queue(release):
	"""What needs no task storage works from 5.10 on; waits are refused there, with the reason."""
	before = release == "5.10"
	step = guest(release).step("runq", 4 if before else 0)
	check("5.12 or newer is needed" in step.err if before else "run queue latency, comm chain-static (us): " in step.out, lambda: str(step))
	for name, words in (("runq_oncpu", "time on CPU (us): "), ("runq_len", "run queue length, fair class (threads): ")):
		step = guest(release).step(name, 0)
		check(words in step.out, lambda: str(step))
	step = guest(release).step("runq_stacks", 4 if before else 0)
	(chain,) = parse_chains(guest(release).step("chain", 0).out).values()
	check(before or "".join("    %s\n" % name for name in reversed(chain)) in step.out, lambda: "who spins and is preempted has its whole stack: %s" % step)


def all_time(release):
	"""Each of four threads gets the same time; a sleeping thread is blocked, a spinning one is not."""
	if release == "5.10":
		check("5.12 or newer is needed" in guest(release).step("wall", 4).err, lambda: str(guest(release).step("wall")))
		return None
	step = guest(release).step("wall", 0)
	us = {}
	for stack in parse_folded(step.out):
		us.setdefault(stack.comm, {}).setdefault(stack.user[0], 0)
		us[stack.comm][stack.user[0]] += stack.count
	check(set(us) == {"shares-static", "spin", "sleep", "lock"}, lambda: str(step))
	whole = {comm: sum(parts.values()) for comm, parts in us.items()}
	check(max(whole.values()) < 1.005 * min(whole.values()) and min(whole.values()) > 1.9e6, lambda: str(whole))
	for comm, part in (("sleep", "[blocked: sleep]"), ("lock", "[blocked: futex]")):
		check(us[comm].get(part, 0) > 0.99 * whole[comm], lambda: str(us))
	check(not [part for part in us["spin"] if part not in ("[on-cpu]", "[runnable]")], lambda: str(us["spin"]))
	return "%s" % {part: round(count / 1e6, 2) for part, count in us["spin"].items()}


def waits(release):
	"""A thread that sleeps from before the start until after the end: its time is the recording's. The oldest kernel is refused, with the reason."""
	if release == "5.10":
		check("5.12 or newer is needed" in guest(release).step("waits", 4).err, lambda: str(guest(release).step("waits")))
		return None
	step = guest(release).step("waits", 0)
	(line,) = step.out.splitlines()
	check(line.startswith("sleep;") and ";[sleep] " in line, line)
	check(900000 < int(line.split()[-1]) < 3000000, line)
	return "%.2f s of 1 s" % (int(line.split()[-1]) / 1e6)


def late_cpu(release):
	"""A CPU that comes online while sonde runs, goes offline and returns: what runs only there is sampled, with whole stacks, also a process that starts there."""
	step, notes = guest(release).step("late", 0), []
	for name, comm in (("late_chain", "chain"), ("back_chain", "chain-static")):
		chain = parse_chains(guest(release).step(name, 0).out)[comm]
		stacks = [stack for stack in asked(stacks_of(step, comm), "leaf") if "do_exit" not in stack.kernel and not (stack.user and stack.user[0].startswith("[no unwind info: ld-linux"))]
		share = check_exact(stacks, lambda stack, chain=chain: chain_error(stack, chain), at_least=100)
		notes.append("%.2f %% of %d samples" % (share * 100, total(stacks)))
	said = guest(release).step("late_err").out
	check(said.count("1 CPU came online while sonde ran") == 2, said)
	return ", ".join(notes)


def late_queue(release):
	step = guest(release).step("late_len", 0)
	ticks = {int(cpu): int(nr) for cpu, nr in re.findall(r"^run queue length, cpu (\d+), all classes .*: (\d+) in all", step.out, re.MULTILINE)}
	check(ticks.get(0, 0) > 200 and ticks.get(1, 0) > 0.5 * ticks[0], lambda: str(step))
	return str(ticks)


def ends(release):
	for name, code, text in (("idle", 5, "no samples"), ("gone", 1, "no process 99999"), ("usage", 2, "sonde: ")):
		step = guest(release).step(name, code)
		check(text in step.err, lambda: "%r is not in: %s" % (text, step))


def doctor(release):
	report = json.loads(guest(release).step("doctor", 0).out)
	verdicts = {verb["verb"]: verb["verdict"] for verb in report["verbs"]}
	check(verdicts["profile"].startswith("works"), "profile: %s" % verdicts["profile"])
	old = release == COUNTED_AS_LOCKED # before 5.12 memory is not accounted to each thread
	want = ["kernel-cannot", "kernel-cannot", "works-with-less"] if old else ["works"] * 3
	check([verdicts[verb] for verb in ("offcpu", "wall", "runq")] == want, lambda: str(verdicts))


def without_type_information(release):
	check("CONFIG_DEBUG_INFO_BTF" in guest(release).step("no_btf", 4).err, lambda: str(guest(release).step("no_btf")))
	said = " ".join(guest(release).step("no_btf_doctor", 4).out.split())
	check("without CONFIG_DEBUG_INFO_BTF" in said and "not in this kernel" in said, said)


def limited(release):
	"""Without CAP_SYS_RESOURCE: where maps count as locked memory the limit is too low. The kernel releases it some time after a run, so it may be used up already, as it is beside another run."""
	for name in ("limited", "limited_beside"):
		if release == COUNTED_AS_LOCKED:
			check("locked memory" in guest(release).step(name, 1).err, lambda: str(guest(release).step(name))) # pylint: disable=cell-var-from-loop
			check("fix: ulimit -l" in guest(release).step(name + "_doctor", 3).out, lambda: str(guest(release).step(name + "_doctor"))) # pylint: disable=cell-var-from-loop
		else:
			guest(release).step(name, 0)
			guest(release).step(name + "_doctor", 0)


def register(release, function):
	tries = []

	def run_it():
		tries.append(release)
		if len(tries) > 1 and release not in again: # run once more: the guest's output will not change
			again.add(release)
			booted.pop(release, None)
		return function(release)
	run_it.__name__ = "linux_%s_%s" % (release.replace(".", "_"), function.__name__)
	test(run_it)


def can_have(release):
	try:
		return bool(image(*KERNELS[release]))
	except (Failure, Skip):
		return False


def chosen():
	"""With --one up to the first available kernel: those before it report why they are not."""
	releases = list(KERNELS)
	if "--one" not in sys.argv[1:]:
		return releases
	sys.argv.remove("--one")
	if os.environ.get("SONDE_TEST_NO_BPF") == "1":
		return releases[:1]
	return releases[:next((i + 1 for i, release in enumerate(releases) if can_have(release)), 1)]


for one in chosen():
	for each in (exact, syscalls, io_workers, command, deep, perl, triggers, verifier, forked, executed, run_queue, all_time, waits, late_cpu, late_queue, ends, doctor, without_type_information, limited):
		register(one, each)
run_tests(seconds=1100) # the first test of each kernel fetches and boots it
