# SPDX-License-Identifier: Apache-2.0
"""Another kernel in QEMU: downloads Debian's package of it and unpacks it (it is never installed; the image is kept in ~/.cache/sonde-tests). Boots it with
programs of this machine, runs commands there and returns how each ended."""
import glob
import lzma
import os
import re
import shlex
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from harness import check, clip, find_tool, run, scratch, skip # noqa: E402

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "sonde-tests")

# QEMU's machine, without KVM. amd64: without cmpxchg16b. QEMU 7.2 sometimes emulates it wrongly, and the kernel dies of a double fault. arm64: this processor has a PMU,
# which counts instructions when QEMU does (-icount: two nanoseconds each, so that its cycles, one a nanosecond, are another number).
MACHINES = {
	"amd64": "qemu-system-x86_64 -accel tcg -cpu max,-cx16 -m 1024 -smp 2 -append 'console=ttyS0 quiet panic=-1'",
	"arm64": "qemu-system-aarch64 -accel tcg -M virt -cpu cortex-a57 -m 512 -smp 2 -icount shift=1,sleep=off -append 'console=ttyAMA0 quiet panic=-1'",
}
TIMEOUT = 900
PRELUDE = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
echo "@kernel $(uname -r)"
step() {
	name=$1
	shift
	"$@" > /out 2> /err < /dev/null
	echo "@step $name $?"
	sed 's/^/@out /' /out
	sed 's/^/@err /' /err
}
wait_for() {
	while ! grep -q "$1" "$2"; do
		sleep 0.1
	done
}
"""


def mirror(archive):
	"""The mirror from which this machine gets Debian's `archive`, or would; its own suite is not the one wanted here."""
	uris = run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]).out.split()
	for uri in uris:
		match = re.fullmatch(r"(.*/)debian(-security)?/?", uri)
		if match:
			return match.group(1) + archive
	return skip("no Debian mirror in this machine's package sources")


def apt(private, arch, tool, *args):
	"""apt with sources and state of its own; the machine's are not touched. The machine's apt configuration is kept for its proxy and certificates, without which
	downloads fail on some machines."""
	options = ["Dir::Etc::SourceList=%s/sources.list" % private, "Dir::Etc::SourceParts=/dev/null", "Dir::State=%s/state" % private,
		"Dir::State::status=%s/status" % private, "Dir::Cache=%s/cache" % private, "APT::Architecture=" + arch, "APT::Architectures=" + arch,
		"APT::Sandbox::User=root", "Acquire::Languages=none"]
	return run([tool, "-q", *[word for option in options for word in ("-o", option)], *args], timeout=180, cwd=private)


def prefix(suite, arch):
	"""The prefix of names in the cache."""
	return suite if arch == "amd64" else "%s-%s" % (suite, arch)


def keep(path, name):
	"""Puts a file into the cache, whole or not at all; returns its path."""
	os.makedirs(CACHE, exist_ok=True)
	kept = os.path.join(CACHE, name)
	shutil.copy(path, kept + ".part")
	os.rename(kept + ".part", kept)
	return kept


def unpack(private, arch, name, pattern):
	"""The only file of a package that matches the pattern."""
	fetched = apt(private, arch, "apt-get", "download", name)
	packages = glob.glob(os.path.join(private, name + "_*.deb"))
	if fetched.code or not packages:
		skip("the mirror does not give %s: %s" % (name, clip(" ".join(fetched.err.split()), 200)))
	unpacked = scratch("unpacked-" + os.path.basename(private))
	check(run(["dpkg-deb", "-x", packages[0], unpacked], timeout=120).code == 0, "dpkg-deb -x failed")
	files = glob.glob(os.path.join(unpacked, pattern))
	check(len(files) == 1, "no %s in %s" % (pattern, packages[0]))
	return files[0]


def sources_of(archive, suite, arch):
	"""A folder with apt's state for this suite alone, and how its update went."""
	private = scratch("apt-" + prefix(suite, arch))
	for folder in ("state/lists/partial", "cache/archives/partial"):
		os.makedirs(os.path.join(private, folder), exist_ok=True)
	with open(os.path.join(private, "status"), "w", encoding="ascii"):
		pass
	with open(os.path.join(private, "sources.list"), "w", encoding="ascii") as file:
		file.write("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n" % (mirror(archive), suite))
	return private, apt(private, arch, "apt-get", "update")


def download(archive, suite, arch):
	"""Unpacks the vmlinuz of the suite's newest cloud kernel (its package depends on that) into the cache; returns its path. For another processor with a busybox beside it."""
	package = "linux-image-cloud-" + arch
	private, updated = sources_of(archive, suite, arch)
	asked = apt(private, arch, "apt-cache", "depends", package) if updated.code == 0 else updated
	names = re.findall(r"Depends: (linux-image-[0-9][\w.+-]*-cloud-%s)$" % arch, asked.out, re.MULTILINE)
	if asked.code or not names:
		skip("the mirror does not have the suite %s: %s" % (suite, clip(" ".join((asked.err or asked.out).split()), 200)))
	if arch != "amd64":
		keep(unpack(private, arch, "busybox-static", "usr/bin/busybox"), prefix(suite, arch) + "-busybox")
	kernel = unpack(private, arch, names[0], "boot/vmlinuz-*")
	return keep(kernel, "%s-%s" % (prefix(suite, arch), os.path.basename(kernel)))


def image(archive, suite, arch="amd64"):
	for tool in ("apt-get", MACHINES[arch].split()[0], "cpio", "busybox", "ldd"):
		if not find_tool(tool):
			skip("no %s" % tool)
	cached = sorted((path for path in glob.glob(os.path.join(CACHE, prefix(suite, arch) + "-vmlinuz-*")) if not path.endswith(".part")), key=os.path.getmtime)
	return cached[-1] if cached else download(archive, suite, arch)


def modules(archive, suite, kernel, names):
	"""{name: path} of modules of a kernel that image() returned, from the same package; those that it lacks are built in."""
	release = kernel.partition("-vmlinuz-")[2]
	done = os.path.join(CACHE, "%s-%s-modules" % (suite, release))
	if not os.path.exists(done):
		private, _ = sources_of(archive, suite, "amd64")
		folder = os.path.dirname(os.path.dirname(unpack(private, "amd64", "linux-image-" + release, "boot/vmlinuz-*")))
		for path in glob.glob(os.path.join(folder, "**/*.ko*"), recursive=True):
			name = os.path.basename(path).partition(".ko")[0]
			if name in names:
				if path.endswith(".xz"):
					with lzma.open(path) as packed, open(path + ".out", "wb") as file:
						shutil.copyfileobj(packed, file)
					path += ".out"
				keep(path, "%s-%s-%s.ko" % (suite, release, name))
		with open(done, "w", encoding="ascii"):
			pass
	paths = {name: os.path.join(CACHE, "%s-%s-%s.ko" % (suite, release, name)) for name in names}
	return {name: path for name, path in paths.items() if os.path.exists(path)}


def copy_with_libraries(program, target, folder):
	"""The program, its loader and its libraries, at the paths where the loader looks for them."""
	shutil.copy(program, os.path.join(folder, target))
	for path in re.findall(r"(/\S+) \(0x", run(["ldd", program]).out):
		copied = os.path.join(folder, path.lstrip("/"))
		os.makedirs(os.path.dirname(copied), exist_ok=True)
		shutil.copy(path, copied)


def make_initrd(programs, script, busybox):
	"""`programs`: name in the guest's root -> our program."""
	folder = scratch("initrd")
	shutil.rmtree(folder, True)
	for name in ("bin", "proc", "sys", "dev", "tmp"):
		os.makedirs(os.path.join(folder, name))
	shutil.copy(busybox, os.path.join(folder, "bin", "busybox"))
	for target, program in programs.items():
		copy_with_libraries(program, target, folder)
	with open(os.path.join(folder, "init"), "w", encoding="ascii") as file:
		file.write(PRELUDE + script + "echo @end\npoweroff -f\n")
	os.chmod(os.path.join(folder, "init"), 0o755)
	names = [os.path.relpath(os.path.join(place, name), folder) for place, folders, files in os.walk(folder) for name in folders + files]
	with open(folder + ".img", "wb") as file:
		subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], cwd=folder, input="\n".join(names).encode(), stdout=file, check=True)
	return folder + ".img"


class Step:
	"""How a command in the guest ended."""

	def __init__(self, name, code):
		self.name, self.code, self.out, self.err = name, code, "", ""

	def __str__(self):
		return "%s: exit %d\nstdout: %s\nstderr: %s" % (self.name, self.code, clip(self.out), clip(self.err))


class Guest:
	"""Boots a kernel; .release, and .steps: name -> Step."""

	def __init__(self, kernel, programs, script, arch="amd64", device="", timeout=TIMEOUT):
		"""For another processor the programs are static, and busybox is in the kernel's folder."""
		self.steps = {}
		busybox = find_tool("busybox") if arch == "amd64" else kernel.partition("-vmlinuz-")[0] + "-busybox"
		command = shlex.split(MACHINES[arch] + " " + device + " -nographic -no-reboot -nic none")
		result = run([*command, "-kernel", kernel, "-initrd", make_initrd(programs, script, busybox)], timeout=timeout)
		release = re.search(r"@kernel (\S+)", result.out) # not always at the start of a line: the firmware and the kernel print, too
		check(release and "\n@end" in result.out, lambda: "the guest did not get through:\n%s" % clip(result.out[-4000:], 4000))
		self.release, step = release.group(1), None
		for line in result.out.replace("\r", "").splitlines():
			word, _, rest = line.partition(" ")
			if word == "@step":
				name, _, code = rest.partition(" ")
				step = self.steps[name] = Step(name, int(code))
			elif word == "@out" and step:
				step.out += rest + "\n"
			elif word == "@err" and step:
				step.err += rest + "\n"

	def step(self, name, want=None):
		check(name in self.steps, "the guest has not run %s" % name)
		step = self.steps[name]
		check(want is None or step.code == want, lambda: "want exit %s: %s" % (want, step))
		return step
