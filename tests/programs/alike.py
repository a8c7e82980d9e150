# SPDX-License-Identifier: Apache-2.0
"""alike.py SECONDS CHILD: a process and its child, which has the number CHILD, have their own code at the same addresses: alpha_work here, gamma_work there. Both work and wait by turns."""
import ctypes
import os
import sys
import time

SYS_CLONE3, SIGCHLD, SIGKILL, PR_SET_PDEATHSIG = 435, 17, 9, 1


def fork_as(pid):
	"""fork, and the child has that number."""
	wanted = (ctypes.c_int * 1)(pid)
	args = (ctypes.c_ulonglong * 10)()
	args[4], args[8], args[9] = SIGCHLD, ctypes.addressof(wanted), 1
	libc = ctypes.CDLL(None, use_errno=True)
	number = libc.syscall(SYS_CLONE3, args, ctypes.sizeof(args))
	if number == 0:
		libc.prctl(PR_SET_PDEATHSIG, SIGKILL)
	return number


def main():
	seconds, number = float(sys.argv[1]), int(sys.argv[2])
	texts = ["def %s_work(end):\n  while time.monotonic() < end:\n    sum(range(30000))\n    time.sleep(0.001)\n" % name for name in ("alpha", "gamma")]
	end = time.monotonic() + seconds
	time.sleep(0.3) # so that both are known
	pid = fork_as(number)
	names = {"time": time}
	exec(texts[pid == 0], names) # pylint: disable=exec-used
	names["gamma_work" if pid == 0 else "alpha_work"](end)
	if pid == 0:
		os._exit(0)
	if pid < 0:
		sys.exit("no process %d" % number)
	os.waitpid(pid, 0)


main()
