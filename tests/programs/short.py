# SPDX-License-Identifier: Apache-2.0
"""short.py MILLISECONDS: uses so much CPU time, from its first instruction on, the most of it in <module> > work > leaf, and ends. Prints how many of them in leaf. Python 3.6 and newer."""
import sys
import time


def leaf(end):
	begin = time.process_time()
	count = 0
	while time.process_time() < end:
		for number in range(2000):
			count += number
	return time.process_time() - begin


def work(end):
	return leaf(end) * 1000


print("%.1f" % work(float(sys.argv[1]) / 1000))
