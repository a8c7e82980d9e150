#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A language is one line of SONDE_RUNTIME_LIST, its own files, and nothing else (docs/internals/adding-a-runtime.md). Each checker takes {path: text} and returns complaints, so that
the last test can give each of them a fault to find. runtimes.py [PART OF A TEST'S NAME]"""
import os
import re
import sys

from tree import ROOT, read_tree

sys.path[:0] = [os.path.join(ROOT, "tests"), os.path.join(ROOT, "tools")]
from runtimes_list import LIST, runtimes  # noqa: E402
from tap import check, run_tests, test  # noqa: E402

ENGLISH = {"go", "otel"} # otel: OpenTelemetry names its protocols and variables so. Of such a name only what leads to its files and constants counts. Go's tables of functions and stack switches are formats of native code: of src/elf and the unwinder
NATIVE = ("bpf/NAME.bpf.c", "bpf/abi/NAME.h", "src/runtime/NAME/NAME.c", "src/runtime/NAME/meson.build", "docs/internals/NAME.md", "tests/system/NAME.py")
INTERPRETED = NATIVE + ("bpf/runtimes/NAME.h", "tests/unit/test_NAME_walk.c", "tests/matrix/NAME.py")


def is_looked_at(path):
	"""True for what is built into the program, builds it, or loads it for the verifier. Docs may name languages, and so may tests and what is installed for them."""
	return path.startswith(("src/", "bpf/", "include/", "tests/bpf/")) and path.endswith((".c", ".h", ".js", ".css", ".html", ".build", ".in")) or path in ("meson.build", "tools/embed.py")


def code_of(path, text):
	"""Without comments, which may have examples; of what builds, quoted names alone: `python` is a program there."""
	if path.endswith((".build", ".py")):
		return re.sub(r"#[^\n]*|('[^'\n]*')|[^'\n]", lambda match: match.group(1) or "", text)
	return re.sub(r'/\*.*?\*/|(?<!:)//[^\n]*|("(?:\\.|[^"\\\n])*")', lambda match: match.group(1) or "\n" * match.group(0).count("\n"), text, flags=re.DOTALL)


def pattern_of(runtime):
	identifier, name = re.escape(runtime["id"]), re.escape(runtime["name"])
	exact = r"\b(?:SONDE_RUNTIME|FRAME)_%s\b|\b(?:sonde|runtime)_%s\b|\b(?:abi|runtimes?)/%s[./]|\b%s(?:_bpf|\.skel|\.bpf)\b|[\"']%s[\"']" % (identifier, name, name, name, name)
	if runtime["name"] in ENGLISH:
		return re.compile(exact)
	called = "|".join(sorted({re.escape(runtime[key].lower()) for key in ("id", "name", "shown", "otlp") if key in runtime}))
	return re.compile(r"%s|(?i:(?<![a-z])(?:%s)(?![a-z0-9]))" % (exact, called))


def is_own(path, name):
	return path == LIST or re.search(r"(?<![a-z])%s(?![a-z])" % re.escape(name), path)


def check_names(tree):
	listed = [(runtime["name"], pattern_of(runtime)) for runtime in runtimes(tree[LIST])]
	return ["%s:%d: names a language: %s" % (path, number, found.group(0)) for path, text in tree.items() if is_looked_at(path)
		for number, line in enumerate(code_of(path, text).splitlines(), 1) for name, pattern in listed
		for found in [pattern.search(line)] if found and not is_own(path, name)]


def check_files(tree):
	return ["%s: listed, but there is no %s" % (runtime["name"], path) for runtime in runtimes(tree[LIST])
		for path in (name.replace("NAME", runtime["name"]) for name in (INTERPRETED if runtime["how"] == "X" else NATIVE)) if path not in tree]


def check_line(runtime):
	yield re.fullmatch(r"[A-Z][A-Z0-9]*", runtime["id"]) and runtime["name"] == runtime["id"].lower(), "the name is the id in small letters"
	if runtime["how"] == "X":
		yield all(runtime[key] for key in ("shown", "otlp", "firefox")), "it has no name somewhere"
		yield runtime["files"] and all(re.fullmatch(r"\*[^*]+|[^*]+\*?", file) for file in runtime["files"].split(" ")), "its files are no patterns"
		yield len(runtime["svg"]) == 6 and all(least + most <= 255 for least, most in zip(runtime["svg"][::2], runtime["svg"][1::2])), "its colours are none"
		yield len(runtime["page"]) == 8 and all(0 <= value <= 360 for value in runtime["page"]), "its colours are none"


def check_list(tree):
	listed = runtimes(tree[LIST])
	complaints = ["%s: %s" % (runtime["id"], fault) for runtime in listed for is_good, fault in check_line(runtime) if not is_good]
	return complaints + ["%s stands there twice" % key for key in ("id", "name") if len({runtime[key] for runtime in listed}) != len(listed)]


# --- tests ------------------------------------------------------------------------------------------------------------------------

TREE = read_tree()


def none(complaints):
	check(not complaints, lambda: "\n".join(complaints[:40]))


@test
def the_list():
	none(check_list(TREE))


@test
def each_has_its_files():
	none(check_files(TREE))


@test
def nothing_else_names_one():
	none(check_names(TREE))


HEAD = "#define SONDE_RUNTIME_LIST(X, OWNER, LABELS) \\\n"
LINE = '\tX(%s, %s, "Perl", "perl", "*.pl", "blue", (40, 50, 175, 40, 170, 40), (178, 46, 70, 180, 40, 30, 8, 4)) \\\n'
CLEAN = {
	LIST: HEAD + LINE % ("PERL", "perl") + "\tLABELS(GO, go)\n\n",
	"src/session/a.c": '/* as perl does */ int go_on(int to_go); x = "to go"; // Perl\n', "src/runtime/perl/a.c": "perl();", "bpf/runtimes/perl.h": "x = SONDE_RUNTIME_PERL;", "tests/unit/a.c": "FRAME_PERL",
	"docs/a.md": "`perl`", "meson.build": "perl = find_program('perl5') # 'perl'\n",
	**{path.replace("NAME", name): "" for path in INTERPRETED for name in ("perl", "go")},
}
FAULTS = [
	(check_names, {"src/model/a.h": "enum kind { FRAME_PERL };"}), (check_names, {"src/session/a.c": "case FRAME_GO:"}), (check_names, {"bpf/lib/scratch.h": '#include "../abi/go.h"\n'}),
	(check_names, {"bpf/lib/scratch.h": "struct sonde_go go;"}), (check_names, {"src/collect/a.c": '#include "perl.skel.h"\n'}), (check_names, {"src/collect/a.c": "go_bpf__elf_bytes" "(go_bpf)"}),
	(check_names, {"src/runtime/runtimes.c": "&runtime_go,"}), (check_names, {"src/page/assets/a.js": "const KINDS = { perl: 1 };"}), (check_names, {"src/export/a.c": 'x = "perl";'}),
	(check_names, {"src/export/a.c": "static bool is_perl_frame;"}), (check_names, {"bpf/meson.build": "foreach name : ['go', 'profile']\n"}), (check_names, {"src/runtime/meson.build": "files('perl/a.c')\n"}),
	(check_names, {"tests/bpf/load.c": '#include "go.skel.h"\n'}), (check_files, {LIST: HEAD + LINE % ("TOY", "toy") + "\n"}), (check_files, {LIST: HEAD + "\tLABELS(TOY, toy)\n\n"}),
	(check_list, {LIST: HEAD + LINE % ("PERL", "perl5") + "\n"}), (check_list, {LIST: HEAD + LINE % ("PERL", "perl") * 2 + "\n"}),
	(check_list, {LIST: HEAD + LINE.replace("*.pl", "*.p*l") % ("PERL", "perl") + "\n"}), (check_list, {LIST: HEAD + LINE.replace("(40, 50", "(240, 50") % ("PERL", "perl") + "\n"}),
	(check_list, {LIST: HEAD + LINE.replace(", 8, 4)", ")") % ("PERL", "perl") + "\n"}),
]


@test
def checkers_see_faults():
	for checker in (check_names, check_files, check_list):
		none(checker(CLEAN))
	for checker, tree in FAULTS:
		check(checker({**CLEAN, **tree}), "%s says nothing about %r" % (checker.__name__, tree))


run_tests()
