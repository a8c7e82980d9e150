#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library as a program's author uses it: installed to its own prefix, found through pkg-config, from C and C++, shared and static. SONDE_BUILD: the
build that is installed; SONDE_BY_LIBRARY: the command line, linked with only the shared library."""
import errno
import os
import re
import shlex
import shutil

from harness import ROOT, SOURCES, build, check, check_equal, find_tool, fresh_folder, need_bpf, run, run_tests, scratch, skip, sonde, test

BUILD = os.path.abspath(os.environ.get("SONDE_BUILD", os.path.join(ROOT, "build")))
BY_LIBRARY = os.environ.get("SONDE_BY_LIBRARY", os.path.join(BUILD, "tests", "system", "sonde-by-library"))
EXAMPLES = os.path.join(ROOT, "examples")
WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
RECORDING = os.path.join(ROOT, "tests", "fuzz", "seeds", "perf_data", "file")
INSTALLED = {}


def install():
	"""Returns the root of the installed tree, which is made once for all tests."""
	if not INSTALLED:
		root = fresh_folder("installed")
		result = run(["meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", root], timeout=300)
		check(result.code == 0, lambda: str(result))
		INSTALLED["root"] = root
	return INSTALLED["root"]


def installed(ending):
	"""Returns the only file of the installed tree whose path ends so."""
	found = [os.path.join(folder, name) for folder, _, names in os.walk(install()) for name in names if os.path.join(folder, name).endswith("/" + ending)]
	check_equal(len(found), 1, "files that end in %s" % ending)
	return found[0]


def pkg_config(*options):
	environment = dict(os.environ, PKG_CONFIG_SYSROOT_DIR=install(), PKG_CONFIG_PATH=os.path.dirname(installed("sonde.pc")))
	result = run(["pkg-config", *options, "sonde"], env=environment)
	check(result.code == 0, lambda: "pkg-config %s: %s" % (" ".join(options), result))
	return shlex.split(result.out)


def compile_with(compiler, source, target, *options):
	"""Compiles a program in the scratch directory with the flags of pkg-config."""
	path = scratch(target)
	result = run([*compiler, "-O2", *WARNINGS, "-o", path, source, *(options or pkg_config("--cflags", "--libs")), "-pthread"], timeout=120)
	check(result.code == 0, lambda: "%s: %s" % (source, result))
	os.chmod(path, 0o755)
	return path


def use(program, *args, **kwargs):
	"""Runs a program that finds the library where it was installed."""
	return run([program, *args], env=dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(installed("libsonde.so.0"))), **kwargs)


def folded(path):
	with open(path, encoding="utf-8") as file:
		return [(line.rpartition(" ")[0].split(";"), int(line.rpartition(" ")[2])) for line in file]


def check_works(path, function, share=0.9):
	"""Checks a profile of a second or two in which a thread of the program does nothing but `function`."""
	stacks = folded(path)
	nr, right = sum(count for _, count in stacks), sum(count for frames, count in stacks if function in frames and re.fullmatch(r"(__)?clone3?|\[libc\.so\.6\+0x[0-9a-f]+\]", frames[1]))
	check(nr >= 5 and right >= share * nr, lambda: "%d of %d samples: %r" % (right, nr, stacks[:10]))
	return "%d of %d" % (right, nr)


# --- what is installed ------------------------------------------------------------------------------------------------------------------

def functions_of(path, *options):
	"""Returns the global names that a library defines, without the version."""
	result = run(["nm", "--defined-only", "-g", *options, path])
	check(result.code == 0, lambda: str(result))
	return sorted(line.split()[2].split("@")[0] for line in result.out.splitlines() if len(line.split()) == 3 and line.split()[1] != "A")


def mapped_functions():
	with open(os.path.join(ROOT, "src", "libsonde.map"), encoding="utf-8") as file:
		return re.findall(r"^\t(sonde_\w+);$", file.read(), re.MULTILINE)


@test
def exported_symbols():
	"""tests/style compares the map with the headers."""
	library = installed("libsonde.so.0")
	check_equal(functions_of(library, "-D"), mapped_functions(), "symbols of the shared library")
	check_equal(functions_of(installed("libsonde.a")), mapped_functions(), "symbols of the static library")
	versions = set(re.findall(r"sonde_\w+(\S*)", run(["nm", "-D", "--defined-only", library]).out))
	check_equal(versions, {"@@LIBSONDE_0"}, "versions of the symbols")
	check("SONAME" in run(["readelf", "-d", library]).out and "[libsonde.so.0]" in run(["readelf", "-d", library]).out, "the name of the library")
	return "%d functions" % len(mapped_functions())


@test
def installed_files():
	with open(installed("sonde/sonde.h"), encoding="utf-8") as ours, open(os.path.join(ROOT, "include", "sonde", "sonde.h"), encoding="utf-8") as source:
		check_equal(ours.read(), source.read(), "sonde.h")
	headers = os.listdir(os.path.dirname(installed("sonde/sonde.h")))
	check_equal(sorted(headers), sorted(os.listdir(os.path.join(ROOT, "include", "sonde"))), "headers")
	version = sonde("--version", want=0).out.split()[1]
	check_equal(pkg_config("--modversion"), [version], "pkg-config's version")
	check(os.path.realpath(installed("libsonde.so")).endswith(".so." + version), "libsonde.so is another version's")


def verbs():
	return re.findall(r"^  (\w+) .*  ", sonde("help", want=0).out.split("Verbs:")[1].split("Exit codes:")[0], re.MULTILINE)


@test
def manual_pages():
	for verb in filter(lambda verb: verb != "help", verbs()):
		installed("man/man1/sonde-%s.1" % verb)
	pages = {name: installed("man/man3/" + name) for name in ("libsonde.3", "sonde_counters.3")}
	described = set()
	for name, path in pages.items():
		if find_tool("groff"):
			result = run(["groff", "-man", "-Tutf8", "-ww", "-z", path])
			check(result.code == 0 and not result.err, lambda: "%s: %s" % (name, result))
		with open(path, encoding="utf-8") as file:
			text = file.read()
		check("@" not in re.sub(r"\bsonde@", "", text), lambda: "a part of %s is missing" % name)
		described |= set(re.findall(r"^\\fB.*?(sonde_\w+)\(", text, re.MULTILINE))
	check_equal(sorted(described), mapped_functions(), "functions that a page describes")


@test
def headers_in_c_and_cpp():
	headers = sorted(os.listdir(os.path.join(ROOT, "include", "sonde")))
	compilers = [[cc, "-x", "c", "-std=" + std] for cc in ("gcc", "clang") for std in ("c11", "c17")] + [["g++", "-x", "c++", "-std=" + std] for std in ("c++17", "c++20")]
	for header in [[name] for name in headers] + [headers, headers[::-1]]:
		source = scratch("headers.c")
		with open(source, "w", encoding="utf-8") as file:
			file.write("".join("#include <sonde/%s>\n" % name for name in header) + "int main(void)\n{\n\treturn 0;\n}\n")
		for compiler in filter(lambda compiler: shutil.which(compiler[0]), compilers):
			result = run([*compiler, *WARNINGS, "-fsyntax-only", *pkg_config("--cflags"), source])
			check(result.code == 0, lambda: "%s: %s: %s" % (" ".join(compiler), header, result))


# --- the examples -----------------------------------------------------------------------------------------------------------------------

@test
def example_profile():
	need_bpf()
	source = os.path.join(EXAMPLES, "profile.c")
	with open(source, encoding="utf-8") as file:
		check(len(file.readlines()) <= 40, "the example is longer than 40 lines")
	program, out = compile_with(["cc"], source, "example-profile"), scratch("example.pb.gz")
	before = os.times()
	result = use(program, out)
	took = os.times().children_user - before.children_user
	check(result.code == 0 and "written: " + out in result.err and not result.out, lambda: str(result))
	own = float(re.search(r"own cost: ([\d.]+) s user", result.err).group(1))
	check(own < took / 2, lambda: "%.2f of %.2f s are said to be sonde's own\n%s" % (own, took, result)) # the rest is the program's
	note = check_works_in_pprof(out)
	result = use(program, "/nowhere/at/all.folded")
	check(result.code == 1 and "/nowhere/at" in result.err, lambda: str(result))
	return note


@test
def example_in_the_readme():
	with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
		source = re.search(r"^```c\n(.*?)^```", file.read(), re.DOTALL | re.MULTILINE).group(1)
	with open(scratch("readme.c"), "w", encoding="utf-8") as file:
		file.write(source)
	if shutil.which("g++"): # C++ requires designators in the order of the fields
		result = run(["g++", "-x", "c++", "-std=c++20", "-fsyntax-only", *pkg_config("--cflags"), scratch("readme.c")])
		check(result.code == 0, lambda: str(result))
	program = compile_with(["cc"], scratch("readme.c"), "readme")
	need_bpf()
	result = use(program, cwd=fresh_folder("readme-out"))
	written = os.path.join(scratch("readme-out"), "cpu.html")
	check(result.code in (0, 5) and os.path.getsize(written) > 10000, lambda: str(result)) # it does nothing, so there may be no sample
	check(re.search(r"^samples: [01] of \d+ ticks; \d+ filtered .*\n(.*\n)*written: cpu.html$", result.err, re.MULTILINE), lambda: str(result))


@test
def the_readme_is_true():
	"""The packages that it lists are those of run_packages() in tools/packages.sh, and it has a line for each verb."""
	with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
		readme = file.read()
	with open(os.path.join(ROOT, "tools", "packages.sh"), encoding="utf-8") as file:
		needed = re.search(r"^run_packages\(\) \{\n.*?EOF'\n(.*?)\n\tEOF", file.read(), re.DOTALL | re.MULTILINE).group(1)
	named = re.search(r"with Debian's `([^`]*)`", readme).group(1).split()
	check_equal(sorted(named), sorted(line.split()[0] for line in needed.splitlines()), "packages")
	check_equal(sorted(re.findall(r"^\| `sonde (\w+)", readme, re.MULTILINE)), sorted(verbs()), "verbs")


@test
def examples_in_cpp():
	"""The examples compile as C++ unchanged: authors of C++ programs copy them."""
	for name in sorted(os.listdir(EXAMPLES)):
		for standard in ("c++20", "c++23"): # unlike C, it warns of each field that a designated initializer leaves zero
			result = run(["g++", "-x", "c++", "-std=" + standard, *WARNINGS, "-Wno-missing-field-initializers", "-fsyntax-only", *pkg_config("--cflags"), os.path.join(EXAMPLES, name)])
			check(result.code == 0, lambda: "%s as %s: %s" % (name, standard, result))


def check_works_in_pprof(path):
	"""Checks by `sonde show` and `sonde convert`."""
	shown = sonde("show", "--top", path, want=0).out
	match = re.search(r"^ *([\d.]+) % +([\d.]+) % .* work\b", shown, re.MULTILINE)
	check(match and float(match.group(1)) >= 90, lambda: shown)
	made = scratch("example.folded")
	sonde("convert", path, made, want=0)
	return check_works(made, "work")


@test
def example_count():
	need_bpf() # which says that the machine is our own: counters need its privileges
	program = compile_with(["cc"], os.path.join(EXAMPLES, "count.c"), "example-count")
	result = use(program)
	check(result.code == 0 and not result.err, lambda: str(result))
	counts = dict(line.split(None, 1) for line in result.out.splitlines())
	check_equal(list(counts), ["task-clock", "page-faults", "context-switches", "instructions", "cycles"], "events")
	check(1000 <= int(counts["page-faults"]) <= 1100, lambda: "work touches 1000 pages\n" + result.out)
	for name in ("instructions", "cycles"):
		check(re.match(r"\d+|the processors of this machine", counts[name]), lambda: result.out)
	result = use(program, "page-faults,no-such-event")
	check(result.code == 1 and "no-such-event" in result.err, lambda: str(result))
	return counts["page-faults"].strip() + " page faults"


@test
def static_library():
	"""Linked with the other libraries shared, and with all of them static where possible."""
	libraries = ["-Wl,-Bstatic" if word == "-lsonde" else word for word in pkg_config("--static", "--cflags", "--libs")]
	at = libraries.index("-Wl,-Bstatic")
	program = compile_with(["cc"], os.path.join(EXAMPLES, "count.c"), "static-sonde", *libraries[:at], "-Wl,-Bstatic", "-lsonde", "-Wl,-Bdynamic", *libraries[at + 1:])
	check("libsonde" not in run(["ldd", program]).out, "the program wants the shared library")
	result = run([program, "page-faults"], env={})
	check(result.code == 0 and 1000 <= int(result.out.split()[1]) <= 1100, lambda: str(result))


@test
def from_cpp():
	program = compile_with(["g++", "-std=c++17"], os.path.join(SOURCES, "library_user.cc"), "library-user")
	stacks, made = scratch("stacks.folded"), scratch("stacks.json")
	with open(stacks, "w", encoding="utf-8") as file:
		file.write("main;a;b 30\nmain;a 10\n")
	result = use(program, stacks, made)
	check(result.code == 0 and "2 samples in some time" in result.out and re.search(r"75.00 % +75.00 % .* b\b", result.out), lambda: str(result))
	sonde("convert", made, scratch("again.folded"), want=0)
	check_equal(sorted(folded(scratch("again.folded"))), [(["main", "a"], 10), (["main", "a", "b"], 30)], "stacks")
	result = use(program, "/nowhere.folded", made)
	check(result.code == 1 and "cannot read /nowhere.folded" in result.out, lambda: str(result))


# --- a good guest -----------------------------------------------------------------------------------------------------------------------

@test
def leaves_its_host_as_it_was():
	need_bpf()
	program, out = compile_with(["gcc", "-D_GNU_SOURCE"], os.path.join(SOURCES, "embedder.c"), "embedder"), scratch("embedder.folded")
	result = use(program, out)
	check(result.code == 0 and result.out == "end\n" and not result.err, lambda: str(result))
	check_works(out, "embedder_work", 0.5)
	return check_works(out + ".second.folded", "embedder_work", 0.5) # beside another session, whose start is included


@test
def few_descriptors():
	"""A session that finds too few descriptors reports it, leaves nothing behind, and does not disturb the next session."""
	need_bpf()
	program, out = compile_with(["gcc", "-D_GNU_SOURCE"], os.path.join(SOURCES, "embedder.c"), "embedder"), scratch("few.folded")
	result = use(program, out, "few", timeout=200)
	check(result.code == 0 and not result.out, lambda: str(result))
	reasons = dict(line.split(": ", 1) for line in result.err.splitlines())
	check(len(reasons) > 20 and all("Too many open files" in reason for reason in reasons.values()), lambda: str(result))
	return "%d descriptors are enough" % (max(map(int, reasons)) + 1)


@test
def a_program_that_forgets():
	"""Its main does not call sonde_is_worker: the result is an error, not endless processes. The program limits itself
	(tests/programs/fuses.h)."""
	program, recording = compile_with(["gcc", "-D_GNU_SOURCE"], os.path.join(SOURCES, "forgetful.c"), "forgetful"), scratch("recording.data")
	shutil.copyfile(RECORDING, recording)
	os.chmod(recording, 0o644)
	result = use(program, cwd=os.path.dirname(recording))
	if result.code == 77:
		skip("no limit of processes could be set: nothing was tried")
	told = [line.split(None, 2) for line in result.out.splitlines()]
	check_equal([(line[0], line[1]) for line in told], [("1", str(-errno.ELOOP)), ("0", str(-errno.ELOOP))], "generations, and what they got")
	check(all("main must ask sonde_is_worker first" in line[2] for line in told), lambda: str(result))


@test
def command_line_by_the_library():
	"""The command line needs only the public part of the library: it is linked with libsonde.so."""
	wants = run(["nm", "-D", "--undefined-only", BY_LIBRARY]).out
	check("sonde_session_new" in wants and "[libsonde.so.0]" in run(["readelf", "-d", BY_LIBRARY]).out, "the program is not linked with the library")
	check_equal(use(BY_LIBRARY, "--version").out, sonde("--version", want=0).out, "version")
	need_bpf()
	made = scratch("by-library.folded")
	result = use(BY_LIBRARY, "profile", "-o", made, "1")
	check(result.code in (0, 5) and os.path.exists(made), lambda: str(result))


@test
def estimate_by_the_library():
	"""What a probe costs is measured at a function of the library's own file, not at that place of the program that uses it."""
	need_bpf()
	made = scratch("by-library.json")
	result = use(BY_LIBRARY, "alloc", "--low-overhead", "-o", made, "--", build("estimated"), "12")
	found = re.search(r"in (\d+) allocations \+- ", result.err)
	true = sum(int(nr) for nr in re.findall(r"^alloc \S+ (\d+) \d+$", result.out, re.MULTILINE))
	check(found and true / 2 <= int(found.group(1)) <= 2 * true, lambda: "true %d\n%s" % (true, result))


run_tests()
