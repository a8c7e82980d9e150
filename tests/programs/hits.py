# SPDX-License-Identifier: Apache-2.0
"""hits.py NR: when a line comes on standard input, asks NR times for the parent's id, each time from asks < middle < outer < main."""
import os
import sys


def asks():
	return os.getppid()


def middle():
	return asks()


def outer():
	return middle()


def main():
	print("pid %d" % os.getpid(), flush=True)
	for _ in sys.stdin:
		for _ in range(int(sys.argv[1])):
			outer()
		print("asked %s" % sys.argv[1], flush=True)


main()
