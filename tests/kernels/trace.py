#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trace.py [PART OF A NAME...]: sonde trace on kernels that have kprobes and fentry, with modules (Debian 12 and 13, 6.1 and 6.12): functions of the kernel and of a module, their arguments,
results and times, stacks, and what an interrupt's handler did when its function was not hit."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from guest import Guest, image, modules # noqa: E402
from harness import SONDE, Failure, Skip, build, check, check_equal, need_bpf, run_tests, test # noqa: E402
from trials import ways_of # noqa: E402

KERNELS = {"6.1": ("debian", "bookworm"), "6.12": ("debian", "trixie")}
MODULES = ["virtio", "virtio_ring", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio-rng"]
DEVICE = "-device virtio-rng-pci"
TURNS = 10
TIMEOUT = 600 # of a guest: on a busy machine loading the programs of stacks takes most of it
WRITES, BYTES = 7, 100
SCRIPT = """
for name in %s; do
	[ ! -e /$name.ko ] || insmod /$name.ko
done
traced() { # NAME WORD OF THE WORKLOAD, then sonde trace's words
	name=$1
	work=$2
	shift 2
	: > /traced.err # the last one's says that it has begun
	/sonde trace "$@" > /traced.out 2> /traced.err &
	sonde=$!
	n=0
	while ! grep -q Tracing /traced.err && [ $n -lt 900 ]; do
		n=$((n + 1))
		sleep 0.1
		! grep -q ') Z ' /proc/$sonde/stat || n=900 # it has ended
	done
	$work
	kill -TERM $sonde
	wait $sonde
	echo "@step $name $?"
	sed 's/^/@out /' /traced.out
	sed 's/^/@err /' /traced.err
}
hit() {
	echo | /hits %d > /hits.out
}
write_some() {
	dd if=/dev/zero of=/tmp/written bs=%d count=%d 2> /dev/null
}
read_random() {
	dd if=/dev/hwrng of=/dev/null bs=16 count=5 2> /dev/null
}
traced functions hit kprobe:__x64_sys_getppid,kretprobe:__x64_sys_getppid,__x64_sys_getppid,fentry:__task_pid_nr_ns,fexit:__task_pid_nr_ns -n hits --format json
step ways cat /hits.out
traced latency hit kprobe:__x64_sys_getppid,fentry:__task_pid_nr_ns --latency -n hits --format json
traced arguments write_some vfs_write,fexit:vfs_write --by arg:count -n dd --filter "count == %d" --format json
traced results write_some kretprobe:vfs_write,fexit:vfs_write --by arg:ret -n dd --filter "ret == %d" --format json
traced members write_some fentry:vfs_write --by arg:file.f_path.dentry.d_name.name -n dd --format json
traced lines write_some vfs_write --print --stacks -n dd --filter "count == %d" --format json
traced module read_random virtio_read --by arg:size,comm --format json
traced handler read_random vring_interrupt --format json
traced silent read_random vp_vring_interrupt --format json
step listed /sonde trace -l "vfs_wr*"
step listed_module /sonde trace -lv "virtio_re*"
step listed_others /sonde trace -l "*.isra*"
step marked /sonde trace -l "asm_exc_*"
step kallsyms grep -E " [tTwW] (vfs_wr|virtio_re|.*isra|asm_exc_)" /proc/kallsyms
step interrupts cat /proc/interrupts
step other sh -c 'for probe in $(/sonde trace -l "*.isra*" | grep -v cannot | head -5 | cut -d" " -f1); do /sonde trace "$probe" 1; code=$?; [ $code = 0 ] || [ $code = 5 ] && exit 0; done; exit 1'
step wrong /sonde trace kprobe:no_such_function 1
step two /sonde trace fentry:__x64_sys_getppid 1
""" % (" ".join(MODULES), TURNS, BYTES, WRITES, BYTES, BYTES, BYTES)
booted = {}


def guest(release):
	"""Each kernel boots once, for all of its tests."""
	need_bpf()
	if release not in booted:
		try:
			kernel = image(*KERNELS[release])
			programs = {"sonde": SONDE, "hits": build("hits", "static")}
			programs.update({name + ".ko": path for name, path in modules(*KERNELS[release], kernel, MODULES).items()})
			booted[release] = Guest(kernel, programs, SCRIPT, device=DEVICE, timeout=TIMEOUT)
		except Skip as reason:
			booted[release] = reason
		except Failure:
			booted[release] = Failure("the guest did not get through, as was said")
			raise
	if isinstance(booted[release], Exception):
		raise booted[release]
	return booted[release]


def rows(release, name):
	step = guest(release).step(name, 0)
	return [json.loads(line) for line in step.out.splitlines()][1:]


def functions(release):
	"""A system call's function and one that it calls, by every way: each is hit each time."""
	want = sum(ways_of(guest(release).step("ways", 0).out).values())
	have = {row["probe"]: row["nr_hits"] for row in rows(release, "functions")}
	calls = {probe: count for probe, count in have.items() if "getppid" in probe}
	check_equal(calls, dict.fromkeys(["kprobe:__x64_sys_getppid", "kretprobe:__x64_sys_getppid", "__x64_sys_getppid"], want), "hits")
	inner = {count for probe, count in have.items() if probe not in calls}
	check(len(inner) == 1 and inner.pop() >= want, lambda: str(have))
	return "%s: %d hits" % (guest(release).release, want)


def latency(release):
	have = {row["probe"]: row for row in rows(release, "latency")}
	check_equal(len(have), 2, "probes")
	for probe, row in have.items():
		check(sum(slot["count"] for slot in row["slots_us"]) == row["nr_hits"] and row["sum_ns"] > 0, lambda: "%s %s" % (probe, row)) # pylint: disable=cell-var-from-loop


def arguments(release):
	"""By BTF, at the entry and at the return; results; members behind pointers."""
	check_equal({(row["probe"], row["count"]): row["nr_hits"] for row in rows(release, "arguments")}, {("vfs_write", str(BYTES)): WRITES, ("fexit:vfs_write", str(BYTES)): WRITES}, "by argument")
	check_equal({(row["probe"], row["ret"]): row["nr_hits"] for row in rows(release, "results")}, {("kretprobe:vfs_write", str(BYTES)): WRITES, ("fexit:vfs_write", str(BYTES)): WRITES}, "by result")
	check_equal({row["file.f_path.dentry.d_name.name"]: row["nr_hits"] for row in rows(release, "members")}.get("written"), WRITES, "by the name of the file")


def stacks(release):
	"""Each line has its stack: the kernel's down to the probed function, the program's below."""
	lines = [row for row in rows(release, "lines") if "stack" in row]
	check_equal(len(lines), WRITES, "lines")
	for line in lines:
		check(line["count"] == str(BYTES) and line["stack"][0] == "vfs_write" and "do_syscall_64" in line["stack"] and line["stack"][-1] != "do_syscall_64", lambda: str(line)) # pylint: disable=cell-var-from-loop


def functions_of_modules(release):
	"""Their arguments are in the module's BTF."""
	have = [row for row in rows(release, "module") if row["comm"] == "dd"]
	check(have and sum(row["nr_hits"] for row in have) >= 1 and all(int(row["size"]) > 0 for row in have), lambda: str(guest(release).step("module")))
	check("kprobe:virtio_read(struct hwrng *rng, void *buf, size_t size, bool wait) [virtio_rng]\n" in guest(release).step("listed_module", 0).out, lambda: str(guest(release).step("listed_module")))


def handlers_of_interrupts(release):
	"""One that is hit, and one that is not, while the device's interrupt comes: that is said."""
	check(rows(release, "handler")[0]["nr_hits"] >= 1, lambda: str(guest(release).step("handler")))
	step = guest(release).step("silent", 5)
	check(re.search(r"vp_vring_interrupt: attached, 0 hits in [\d.]+ s; meanwhile in /proc/interrupts: .*virtio0-input\S* \+[1-9]", step.err), lambda: str(step))


def lists(release):
	"""All that /proc/kallsyms has, .isra names too; entry code is marked; what there is not is told."""
	kallsyms = {line.split()[2] for line in guest(release).step("kallsyms", 0).out.splitlines()}
	for name, pattern in (("listed", r"vfs_wr"), ("listed_module", "virtio_re"), ("listed_others", r".*\.isra"), ("marked", "asm_exc_")):
		have = {re.sub(r"[ (].*", "", line.partition(":")[2]) for line in guest(release).step(name, 0).out.splitlines()}
		check_equal(have, {symbol for symbol in kallsyms if re.match(pattern, symbol)}, name)
	check(all("cannot be probed" in line for line in guest(release).step("marked").out.splitlines()), lambda: str(guest(release).step("marked")))
	check("cannot be probed" not in guest(release).step("listed").out, "vfs_write can be")
	guest(release).step("other", 0) # one of them can be attached; the kernel refuses some
	check(guest(release).step("wrong").code == 1 and "no kprobe 'no_such_function'" in guest(release).step("wrong").err, lambda: str(guest(release).step("wrong")))
	step = guest(release).step("two", 1)
	check("kprobe:__x64_sys_getppid can" in step.err, lambda: str(step))
	return "%d functions with .isra" % len(guest(release).step("listed_others").out.splitlines())


for kernel_release in KERNELS:
	for function in (functions, latency, arguments, stacks, functions_of_modules, handlers_of_interrupts, lists):
		if "--one" in sys.argv and kernel_release != "6.1":
			continue

		def one(function=function, kernel_release=kernel_release):
			return function(kernel_release)
		one.__name__ = "%s_%s" % (kernel_release.replace(".", "_"), function.__name__)
		one.__doc__ = function.__doc__
		test(one)
sys.argv = [word for word in sys.argv if word != "--one"]
run_tests(seconds=TIMEOUT + 60) # the first test of each kernel boots it
