# SPDX-License-Identifier: Apache-2.0
"""An unprivileged user beside root's sonde: Python programs that become nobody after they have opened what they need."""
import subprocess
import sys

from harness import check_equal

NOBODY = 65534
AS_NOBODY = """
os.setgroups([])
os.setresgid(%d, %d, %d)
os.setresuid(%d, %d, %d)
""" % (6 * (NOBODY,))
# Maps the given files as executable.
MAPS = """
import mmap, os, sys
files = [os.open(path, os.O_RDONLY) for path in sys.argv[1:]]
""" + AS_NOBODY + """
kept = [mmap.mmap(file, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC) for file in files]
print("ready", flush=True)
sys.stdin.read()
"""


class Neighbour:
	"""Such a program, from its ready message to the end of the block."""

	def __init__(self, program, *args):
		self.argv = [sys.executable, "-c", program, *map(str, args)]
		self.process = None

	def __enter__(self):
		self.process = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
		check_equal(self.process.stdout.readline(), b"ready\n", "the neighbour")
		return self.process

	def __exit__(self, *_):
		self.process.kill()
		self.process.communicate()
