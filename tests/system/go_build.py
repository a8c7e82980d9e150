# SPDX-License-Identifier: Apache-2.0
"""Builds the programs of tests/programs/go. SONDE_GO is the go command to use (default: go)."""
import os
import re

from harness import PROGRAMS, SOURCES, building, check, find_tool, is_older, run, skip

GO = os.environ.get("SONDE_GO", "go")


def go(*args, **kwargs):
	env = dict(os.environ, GO111MODULE="off", GOFLAGS="", GOENV="off", GOTOOLCHAIN="local")
	env.setdefault("HOME", PROGRAMS) # where go keeps its compiled packages
	return run([GO, *args], timeout=300, env=env, **kwargs)


def go_version():
	"""Returns the version, such as (1, 26)."""
	if not find_tool(GO):
		skip("no go")
	match = re.search(r"go(\d+)\.(\d+)", go("version").out)
	return int(match.group(1)), int(match.group(2))


def go_build(name, variant="", ldflags="", args=()):
	version = go_version()
	folder = os.path.join(SOURCES, "go", name)
	target = os.path.join(PROGRAMS, "go%d.%d-%s%s" % (*version, name, "-" + variant if variant else ""))
	with building():
		if is_older(target, [os.path.join(folder, file) for file in os.listdir(folder)]):
			if version >= (1, 23): # systemstack is restricted since then
				ldflags += " -checklinkname=0"
			built = go("build", "-o", target, "-ldflags", ldflags, *args, ".", cwd=folder)
			check(built.code == 0, lambda: "go build: %s" % built)
	return target
