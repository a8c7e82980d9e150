# SPDX-License-Identifier: Apache-2.0
"""The OpenTelemetry eBPF profiler as a peer of bench/runtimes and bench/agent, by the path of its binary. It has no filter for processes, sends to a collector alone, and needs tracefs, which it gets in a mount
namespace of its own. It wants to raise RLIMIT_MEMLOCK, also where the kernel no longer counts that: without CAP_SYS_RESOURCE its rlimit.go has to go on. docs/internals/performance.md says how it is built."""
import ctypes
import fcntl
import glob
import os
import subprocess
import time

from collectors import GrpcDouble
from figures import sampling_program
from harness import check, converted, fresh_folder, scratch

SYS_PIDFD_GETFD = 438
NICE = -20 # beside a workload that has a CPU for itself, it would not learn of processes for minutes
ENABLE, DISABLE = 0x2400, 0x2401 # PERF_EVENT_IOC_
WITH_TRACEFS = ["nice", "-n", str(NICE), "unshare", "-m", "sh", "-c", 'mount -t tracefs tracefs /sys/kernel/tracing && exec "$@"', "sh"]


class Peer:
	"""Samples all processes, until its end. .server: the collector, whose calls have the messages."""

	def __init__(self, path, hertz, *words):
		self.server = GrpcDouble("otlp_double.py", 0, fresh_folder("peer"))
		self.nr_read, self.log = 0, scratch("peer.log")
		with open(self.log, "wb") as log:
			self.process = subprocess.Popen([*WITH_TRACEFS, path, "-collection-agent", self.server.address, "-disable-tls", "-samples-per-second", str(hertz), *words], stdin=subprocess.DEVNULL,
				stdout=log, stderr=log)
		self.pid = self.process.pid
		until = time.monotonic() + 120 # verifying its programs takes seconds of CPU time
		while not sampling_program(self.pid)[1]:
			with open(self.log, encoding="utf-8", errors="replace") as log:
				check(self.process.poll() is None and time.monotonic() < until, lambda: "the peer does not sample: %s" % log.read()[-1500:]) # pylint: disable=cell-var-from-loop
			time.sleep(0.05)

	def sample(self, on):
		"""Switches its perf events, so that it costs nothing while others are measured. It cannot do that itself."""
		libc, pidfd = ctypes.CDLL(None, use_errno=True), os.pidfd_open(self.pid)
		for path in glob.glob("/proc/%d/fd/*" % self.pid):
			if os.path.islink(path) and "perf_event" in os.readlink(path):
				fd = libc.syscall(SYS_PIDFD_GETFD, pidfd, int(os.path.basename(path)), 0)
				check(fd >= 0, lambda: "pidfd_getfd: %s" % os.strerror(ctypes.get_errno()))
				fcntl.ioctl(fd, ENABLE if on else DISABLE, 0)
				os.close(fd)
		os.close(pidfd)

	def reports(self):
		"""The messages that came since the last call, as sonde's JSON reports."""
		self.server.drain(0.1)
		calls, self.nr_read = self.server.calls[self.nr_read:], len(self.server.calls)
		return [converted("--from", "otlp", call["path"]) for call in calls]

	def __enter__(self):
		return self

	def __exit__(self, *exc):
		self.process.kill()
		self.process.wait()
		self.server.__exit__()
