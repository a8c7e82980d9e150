# SPDX-License-Identifier: Apache-2.0
"""Third-party programs, from their registries, and made-up profiles as their input (make_profile): neither BPF nor privileges are needed.

Environment: MAKE_PROFILE, the program that writes the profiles."""
import fcntl
import os
import subprocess
import sys

from harness import ROOT, check, find_tool, scratch, skip

MAKE_PROFILE = os.path.abspath(os.environ.get("MAKE_PROFILE", os.path.join(ROOT, "build", "tests", "system", "make_profile")))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "sonde-tests")
# The last pprof version that Debian 12's Go compiles.
PPROF = "github.com/google/pprof@v0.0.0-20240227163752-401108e1b7e7"
PYTHON_PACKAGES = ["opentelemetry-proto==1.45.2", "jsonschema==4.26.0"]
PLAYWRIGHT = "1.58.2" # the last that runs on Debian 12's Node.js 18
PROFILES = {
	"small": [], "big": ["1000"], # for every reader
	"threads": ["threads"], "heap": ["heap"], # times and labels; several values
	"huge": ["20000"], "empty": ["0"], "timed": ["1980", "timed"], "diff": ["3000", "diff"], "waits": ["waits"], "wall": ["wall"], # for the viewer: the largest that a browser must handle, ...
}


def run(command, seconds=300, **options):
	done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=seconds, **options)
	return done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8", "replace")


def install(path, tool, command, seconds=300, **environment):
	"""Returns `path`; first runs the command that makes it, if it is missing. One at a time: test files run side by side."""
	os.makedirs(CACHE, exist_ok=True)
	with open(os.path.join(CACHE, "lock"), "w", encoding="ascii") as lock:
		fcntl.flock(lock, fcntl.LOCK_EX)
		if os.path.exists(path):
			return path
		if not find_tool(tool):
			skip("no %s to install %s with" % (tool, os.path.basename(path)))
		status, out, err = run(command, seconds, cwd=CACHE, env={**os.environ, **environment})
	if status or not os.path.exists(path):
		skip("%s cannot be installed: %s" % (os.path.basename(path), (err or out).strip().splitlines()[-1:]))
	return path


def pprof_tool():
	return install(os.path.join(CACHE, "bin", "pprof"), "go", ["go", "install", PPROF], GOBIN=os.path.join(CACHE, "bin"),
		GOPATH=os.path.join(CACHE, "go"), GOFLAGS="-modcacherw", GOTOOLCHAIN="local")


def pprof_all(path, *options):
	"""Returns what pprof prints of a file, with nothing left out."""
	status, out, err = run([pprof_tool(), "-symbolize=none", "-nodecount=100000", "-nodefraction=0", "-edgefraction=0", *options, path])
	check(status == 0, err)
	return out


def python_packages():
	folder = install(os.path.join(CACHE, "python", "opentelemetry"), "pip3",
		["pip3", "install", "--quiet", "--target", os.path.join(CACHE, "python"), *PYTHON_PACKAGES])
	folder = os.path.dirname(folder)
	if folder not in sys.path:
		sys.path.insert(0, folder)


OLD_OTLP = """import sys
from google.protobuf import json_format
from opentelemetry.proto.profiles.v1development import profiles_pb2
data = profiles_pb2.ProfilesData()
data.ParseFromString(open(sys.argv[1], "rb").read())
print(json_format.MessageToJson(data))
"""


def old_otlp_as_json(path):
	"""A file of OTLP profiles as JSON, by the classes of opentelemetry-proto 1.9."""
	python_packages()
	folder = os.path.join(CACHE, "opentelemetry-1.9")
	install(os.path.join(folder, "opentelemetry"), "pip3", ["pip3", "install", "--quiet", "--no-deps", "--target", folder, "opentelemetry-proto==1.41.0"])
	status, out, err = run([sys.executable, "-c", OLD_OTLP, path], env={**os.environ, "PYTHONPATH": folder + ":" + os.path.join(CACHE, "python")})
	check(status == 0, err)
	return out


def playwright_folder():
	folder = os.path.join(CACHE, "node")
	os.makedirs(folder, exist_ok=True)
	install(os.path.join(folder, "node_modules", "playwright-core"), "npm",
		["npm", "install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", "playwright-core@" + PLAYWRIGHT])
	return folder


def made(which):
	"""Returns the directory of a made-up profile in all formats."""
	folder = scratch(which)
	if not os.path.isdir(folder):
		os.mkdir(folder)
		status, _, err = run([MAKE_PROFILE, folder] + PROFILES[which])
		check(status == 0, err)
	return folder
