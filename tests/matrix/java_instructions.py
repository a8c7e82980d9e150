#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/unit/test_java_code.c, all of its scenarios: HotSpot 17, 21 and 25, each collector, code for older processors, C1 alone, code compiled before its first run, callees
that stay interpreted. SONDE_JAVA_CODE_SECONDS: of each scenario."""
import glob
import os

from roots import root # sets the path to harness
from harness import check, run, run_tests, skip, test # noqa: E402

EXPERIMENTAL = "-XX:+UnlockExperimentalVMOptions" # some collectors are, in some versions
WAYS = {
	"g1": [],
	"parallel": ["-XX:+UseParallelGC"],
	"z": ["-XX:+UseZGC", "-Xmx300m"],
	"shenandoah": [EXPERIMENTAL, "-XX:+UseShenandoahGC", "-Xmx300m"],
	"avx2": ["-XX:UseAVX=2"],
	"c1": ["-XX:TieredStopAtLevel=1"],
	"early": ["-Xcomp"],
	"interpreted_callees": ["-XX:CompileCommand=exclude,JavaCode*.h_*"],
}
GENERATIONAL = {"z_generational": ["-XX:+UseZGC", "-XX:+ZGenerational", "-Xmx300m"]} # 21 to 23
HOST = {"17": "/usr/lib/jvm/java-17-openjdk-amd64/bin/java", "25": "/usr/lib/jvm/temurin-25*/bin/java"}


def place_of(major):
	"""Root and program."""
	if major == "21":
		return root("trixie", ["openjdk-21-jre-headless"]), "/usr/lib/jvm/java-21-openjdk-amd64/bin/java"
	return "", next(iter(glob.glob(HOST[major])), None) or skip("no java %s" % major)


def register(major, way, options):
	def one():
		folder, java = place_of(major)
		seconds = os.environ.get("SONDE_JAVA_CODE_SECONDS", "1.5")
		result = run([os.environ["JAVA_CODE"], folder, java, seconds, "all", *options], timeout=3000)
		check(result.code == 0, lambda: result.out + result.err)
		return " ".join(line for line in result.out.splitlines() if line.startswith("# all"))
	one.__name__ = "java_code_%s_%s" % (major, way)
	test(one)


for number in ("17", "21", "25"):
	for name, given in {**WAYS, **(GENERATIONAL if number == "21" else {})}.items():
		register(number, name, given)

if __name__ == "__main__":
	run_tests(seconds=3600)
