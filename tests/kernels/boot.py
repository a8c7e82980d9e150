#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Boots the kernels of Debian 12 and 13 (6.1, 6.12) in QEMU, samples a workload there, and checks its true stack on the host: other kernel, other types,
same programs. The kernel is a package that is unpacked, never installed; it is kept in ~/.cache/sonde-tests. Where the mirror does not
have it, the test is skipped and says so."""
import glob
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from harness import ( # noqa: E402
	SONDE, Failure, build, chain_error, check, check_exact, clip, find_tool, need_bpf, parse_chains, parse_folded, run, run_tests, scratch, skip, test)

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "sonde-tests")
PACKAGE = "linux-image-cloud-amd64" # depends on the newest kernel of the suite
DEPTH = 30
INIT = """#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs dev /dev
echo "guest-kernel $(/bin/busybox uname -r)"
/workload 60 %d > /workload.out &
/bin/busybox sleep 1
/sonde profile -f -a -F 199 -p $! 2 > /folded 2> /err
code=$?
echo guest-begin
/bin/busybox cat /workload.out
/bin/busybox sed 's/^/folded /' /folded
/bin/busybox sed 's/^/stderr /' /err
echo "guest-exit $code"
/bin/busybox poweroff -f
""" % DEPTH


def debian_mirror():
	"""Where this machine gets Debian from; its own suite is not the one that we want."""
	targets = run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"])
	for uri in targets.out.split():
		if re.search(r"/debian/?$", uri):
			return uri
	skip("no Debian mirror in this machine's package sources")


def apt(private, *args):
	"""apt with sources and state of its own; the machine's are not touched. Without the machine's proxy and certificates it would not work
	everywhere, so its configuration is kept."""
	options = ["Dir::Etc::SourceList=%s/sources.list" % private, "Dir::Etc::SourceParts=/dev/null", "Dir::State=%s/state" % private,
		"Dir::State::status=%s/status" % private, "Dir::Cache=%s/cache" % private, "APT::Architecture=amd64", "APT::Architectures=amd64",
		"APT::Sandbox::User=root", "Acquire::Languages=none"]
	return run(["apt-get", "-q", *[word for option in options for word in ("-o", option)], *args], timeout=180, cwd=private)


def download_kernel(suite):
	"""The suite's newest cloud kernel as an unpacked vmlinuz in the cache; its path."""
	private = scratch("apt-" + suite)
	for folder in ("state/lists/partial", "cache/archives/partial"):
		os.makedirs(os.path.join(private, folder))
	with open(os.path.join(private, "status"), "w", encoding="ascii"):
		pass
	with open(os.path.join(private, "sources.list"), "w", encoding="ascii") as file:
		file.write("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n" % (debian_mirror(), suite))
	updated = apt(private, "update")
	plan = apt(private, "install", "--print-uris", "-y", "--no-install-recommends", PACKAGE) if updated.code == 0 else updated
	names = re.findall(r"(linux-image-[0-9][\w.+-]*-cloud-amd64)_", plan.out)
	if plan.code or not names:
		skip("the mirror does not have the suite %s: %s" % (suite, clip(" ".join((plan.err or plan.out).split()), 200)))
	fetched = apt(private, "download", names[0])
	packages = glob.glob(os.path.join(private, "*.deb"))
	if fetched.code or not packages:
		skip("the mirror does not give %s: %s" % (names[0], clip(" ".join(fetched.err.split()), 200)))
	unpacked = scratch("kernel-" + suite)
	check(run(["dpkg-deb", "-x", packages[0], unpacked], timeout=120).code == 0, "dpkg-deb -x failed")
	images = glob.glob(os.path.join(unpacked, "boot", "vmlinuz-*"))
	check(len(images) == 1, "no vmlinuz in %s" % packages[0])
	os.makedirs(CACHE, exist_ok=True)
	kept = os.path.join(CACHE, "%s-%s" % (suite, os.path.basename(images[0])))
	shutil.copy(images[0], kept + ".part")
	os.rename(kept + ".part", kept)
	return kept


def kernel(suite):
	cached = sorted(glob.glob(os.path.join(CACHE, suite + "-vmlinuz-*[0-9a-z]")), key=os.path.getmtime)
	return cached[-1] if cached and not cached[-1].endswith(".part") else download_kernel(suite)


def copy_with_libraries(program, target, folder):
	"""The program, its loader and its libraries, at the paths where they are looked for."""
	shutil.copy(program, os.path.join(folder, target))
	for path in re.findall(r"(/\S+) \(0x", run(["ldd", program]).out):
		copied = os.path.join(folder, path.lstrip("/"))
		os.makedirs(os.path.dirname(copied), exist_ok=True)
		shutil.copy(path, copied)


def make_initrd(folder):
	for name in ("bin", "proc", "sys", "dev", "tmp"):
		os.makedirs(os.path.join(folder, name))
	shutil.copy(find_tool("busybox"), os.path.join(folder, "bin", "busybox"))
	copy_with_libraries(SONDE, "sonde", folder)
	shutil.copy(build("chain", "static"), os.path.join(folder, "workload"))
	with open(os.path.join(folder, "init"), "w", encoding="ascii") as file:
		file.write(INIT)
	os.chmod(os.path.join(folder, "init"), 0o755)
	names = [os.path.relpath(os.path.join(place, name), folder) for place, folders, files in os.walk(folder) for name in folders + files]
	with open(folder + ".img", "wb") as image:
		subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], cwd=folder, input="\n".join(names).encode(), stdout=image, check=True)
	return folder + ".img"


def boot(image, initrd):
	"""What the guest printed. Without cmpxchg16b, which QEMU 7.2 sometimes emulates wrongly: then the kernel dies of a double fault."""
	result = run(["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max,-cx16", "-m", "1024", "-smp", "2", "-nographic", "-no-reboot", "-nic", "none",
		"-kernel", image, "-initrd", initrd, "-append", "console=ttyS0 quiet panic=-1"], timeout=180)
	return result.out.replace("\r", "")


def sample_in(suite, release):
	need_bpf()
	for tool in ("apt-get", "qemu-system-x86_64", "cpio", "busybox", "ldd"):
		if not find_tool(tool):
			skip("no %s" % tool)
	said = boot(kernel(suite), make_initrd(scratch("initrd-" + suite)))
	version, code = re.search(r"guest-kernel (%s\.\S+)" % re.escape(release), said), re.search(r"guest-exit (\d+)", said)
	check(version and code, lambda: "the guest did not get through:\n%s" % clip(said, 4000))
	errors = "\n".join(re.findall(r"^stderr (.*)", said, re.MULTILINE))
	check(code.group(1) == "0", lambda: "sonde's exit code on %s is %s:\n%s" % (version.group(1), code.group(1), errors))
	chain = parse_chains(said).get("workload")
	if not chain or len(chain) != DEPTH + 2:
		raise Failure("the workload did not print its chain:\n%s" % clip(said))
	stacks = parse_folded("\n".join(re.findall(r"^folded (.*)", said, re.MULTILINE)))
	share = check_exact(stacks, lambda stack: chain_error(stack, chain), at_least=150)
	return "%s, %.2f %% of the samples" % (version.group(1), share * 100)


@test
def debian_6_1():
	return sample_in("bookworm", "6.1")


@test
def debian_6_12():
	return sample_in("trixie", "6.12")


run_tests()
