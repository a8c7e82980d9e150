#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""loads.py: the programs that the oldest kernel (boot.py --one) does not use, on Debian 12's kernel. Its verifier is stricter than newer ones, it rounds stacks up, and most people have it."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from guest import Guest, image # noqa: E402
from harness import SONDE, check, need_bpf, run_tests, test # noqa: E402

RELEASE, SUITE = "6.1", ("debian", "bookworm")
SCRIPT = """
step verifier /test_verifier
step offcpu /sonde offcpu -f 1
step wake /sonde offcpu --wake --hist -f 1
step wall /sonde wall -f --every 1 3
step runq /sonde runq 1 1
step slower /sonde runq --slower 10 --stacks 1 1
"""


@test
def all_programs_load():
	need_bpf()
	guest = Guest(image(*SUITE), {"sonde": SONDE, "test_verifier": os.path.join(os.path.dirname(SONDE), "tests", "bpf", "test_verifier")}, SCRIPT)
	check(guest.release.startswith(RELEASE + "."), "this is Linux %s" % guest.release)
	for name in ("verifier", "offcpu", "wake", "wall", "runq", "slower"):
		step = guest.step(name)
		check(step.code == 0 and "cannot load" not in str(step), lambda: "%s: %s" % (name, step)) # pylint: disable=cell-var-from-loop


run_tests(1100)
