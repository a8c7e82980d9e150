# SPDX-License-Identifier: Apache-2.0
"""gil.py SECONDS: two threads that compute, each of which waits for the other's giving back the interpreter lock, and one that sleeps 20 ms at a time. At the end a line for each:
NAME TID ELAPSED CPU ASKED SLEPT
in seconds: CPU is the thread's own time on CPUs, ASKED what it asked to sleep, SLEPT how long that took, with what came behind it."""
import sys
import threading
import time

NAP = 0.02
end = time.monotonic() + float(sys.argv[1])
told = []


def compute():
	total = 0
	while time.monotonic() < end:
		for i in range(2000):
			total += i
	return total


def first():
	compute()
	return 0, 0


def second():
	compute()
	return 0, 0


def doze(nap):
	time.sleep(nap)


def naps():
	asked = slept = 0
	while time.monotonic() < end:
		began = time.perf_counter()
		doze(NAP)
		slept += time.perf_counter() - began
		asked += NAP
	return asked, slept


def tell(work):
	began = time.perf_counter()
	asked, slept = work()
	told.append((work.__name__, threading.get_native_id(), time.perf_counter() - began, time.thread_time(), asked, slept))


sys.setswitchinterval(0.01)
threads = [threading.Thread(target=tell, args=(work,)) for work in (first, second, naps)]
for thread in threads:
	thread.start()
for thread in threads:
	thread.join()
for line in told:
	print(*line)
