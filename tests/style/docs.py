#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whatever the documents name exists: files, links, our functions and tests, options. Each checker takes {path: text} and returns complaints, so that the last test can
give each of them a fault to find. docs.py [PART OF A TEST'S NAME]"""
import fnmatch
import itertools
import os
import re
import sys

from tree import ROOT, read_tree

sys.path[:0] = [os.path.join(ROOT, "tests"), os.path.join(ROOT, "tools")]
from runtimes_list import LIST, runtimes # noqa: E402
from tap import check, run_tests, test # noqa: E402

SELF = "tests/style/docs.py"
TESTS_OF_TEXTS = (SELF, "tests/style/style.py", "tests/style/runtimes.py") # have made-up names
OTHERS_HAVE = ("include", "tools") # comments in sources name files of the kernel
ENDINGS = ("", ".c", ".h", ".py", "/")
# Of others: names in their sources and programs, a package of Go, musl's
FOREIGN = {"bpf_find_vma", "bpf_rdonly_cast", "bpf_trace_run4", "cpu_atom", "cpu_core", "default_sample_type", "make_fcontext", "protected_hardlinks", "rq_clock_skip_update", "uw_install_context",
	"voluntary_ctxt_switches"}
FOREIGN_PATHS = {"runtime/pprof", "runtime/pprof.runtime_setProfLabel", "src/internal/pthread_impl.h"}
FOREIGN_OPTIONS = {"buildid-mmap"} # perf's


def is_document(path):
	return path.endswith((".md", ".in")) and not path.startswith("tests/")


def lines_of(tree, chosen):
	return ((path, number, line) for path, text in tree.items() if chosen(path) for number, line in enumerate(text.splitlines(), 1))


def quoted(line):
	return re.findall(r"`([^`]+)`", line)


def folders_of(tree):
	return {path[:match.start() + 1] for path in tree for match in re.finditer("/", path)}


def of_each_runtime(name, tree):
	"""NAME stands for each language whose frames are no native ones."""
	return [name.replace("NAME", runtime["name"]) for runtime in runtimes(tree[LIST]) if runtime["how"] == "X"] if "NAME" in name else [name]


def spelled_out(path):
	"""a/{b,c}/<name>.c: a/b/*.c, a/c/*.c"""
	parts = [part[1:-1].split(",") if part.startswith("{") else [part] for part in re.split(r"(\{[^{}]*\})", re.sub(r"<\w+>", "*", path))]
	return ["".join(chosen) for chosen in itertools.product(*parts)]


def is_there(path, known, starts):
	"""True if such a file or folder exists, below one of `starts`, with or without its ending. * is any name."""
	candidates = [start + path.rstrip("/") + ending for start in starts for ending in ENDINGS]
	return any(candidate in known for candidate in candidates) or "*" in path and any(fnmatch.filter(known, candidate) for candidate in candidates)


PATH = r"(?<![\w./~$:*-])(%s)/[\w./*{},<>-]*[\w*}>/]"


def check_paths(tree):
	"""Of documents each path, in backquotes also one from below src or bpf; of the rest, those that end as our files do."""
	known = set(tree) | folders_of(tree)
	tops = sorted({path.split("/")[0] for path in tree if "/" in path})
	below = sorted({path.split("/")[1] for path in tree if path.startswith(("src/", "bpf/")) and path.count("/") > 1} - set(tops))
	whole, part = (re.compile(PATH % "|".join(map(re.escape, names))) for names in (tops, below))
	complaints = []
	for path, number, line in lines_of(tree, lambda path: path not in TESTS_OF_TEXTS):
		found = [(match.group(0), ("",)) for match in whole.finditer(line)
			if is_document(path) or match.group(1) not in OTHERS_HAVE and re.search(r"\w\.(c|h|cc|py|sh|md|mjs)$", match.group(0))]
		if is_document(path):
			found += [(match.group(0), ("src/", "bpf/")) for text in quoted(line) for match in part.finditer(text)]
		complaints += ["%s:%d: there is no %s" % (path, number, each) for name, starts in found for each in of_each_runtime(name, tree)
			for one in spelled_out(each) if not is_there(one, known, starts) and one not in FOREIGN_PATHS]
	return complaints


def check_links(tree):
	known = set(tree) | folders_of(tree)
	return ["%s:%d: the link leads nowhere: %s" % (path, number, link) for path, number, line in lines_of(tree, is_document) for link in re.findall(r"\]\(([^)#\s]+)", line)
		if "://" not in link and not is_there(os.path.normpath(os.path.join(os.path.dirname(path), link)), known, ("",))]


def check_names(tree):
	"""What begins as ours do, and in backquotes each name of several words, stands in the sources, or is a file's."""
	there = {word for path, text in tree.items() if not is_document(path) and path != SELF for word in re.findall(r"\w+", text + " " + os.path.basename(path))}
	return ["%s:%d: nothing is called %s" % (path, number, name) for path, number, line in lines_of(tree, is_document)
		for name in re.findall(r"\b(?:sonde|SONDE)_\w*\w\b(?!\*)", line) + [name for text in quoted(line) for name in re.findall(r"(?<![\w<])(?:[a-z]|NAME)\w*_\w+(?![\w*<])", text)]
		if not set(of_each_runtime(name, tree)) <= there | FOREIGN and not line.startswith(".TH ")] # a page's title is its name in capitals


def check_options(tree):
	there = {word for path, text in tree.items() if not is_document(path) and path != SELF for word in re.findall(r'(?:--|\.name = ")([a-z][\w-]*)', text)}
	return ["%s:%d: nothing has an option --%s" % (path, number, name) for path, number, line in lines_of(tree, is_document)
		for name in re.findall(r"(?<![\w-])--([a-z][\w-]*)", line.replace("\\-", "-")) if name not in there | FOREIGN_OPTIONS]


# --- tests ------------------------------------------------------------------------------------------------------------------------

TREE = read_tree()
CHECKERS = (check_paths, check_links, check_names, check_options)


def none(complaints):
	check(not complaints, lambda: "\n".join(complaints[:40]))


@test
def paths():
	none(check_paths(TREE))


@test
def links():
	none(check_links(TREE))


@test
def names():
	none(check_names(TREE))


@test
def options():
	none(check_options(TREE))


CLEAN = {
	LIST: "#define SONDE_RUNTIME_LIST(X, OWNER, LABELS) \\\n\tX(B, b, 1, 1, 1, 1, 1, 1) \\\n\tLABELS(D, d)\n\n",
	"docs/e.md": "`src/base/NAME.c`, `NAME_new`\n",
	"docs/a.md": "`src/base/b.c`, base/gone, `base/b`, src/{base,elf}/b.h, src/*/b.c, `b_new`, `b_new(1)`, `sonde --deep`, [b](b.md#x), [c](https://c.org/d)\n",
	"docs/b.md": "# x\n", "man/a.in": "src/base\n", "src/base/b.c": "/* docs/b.md */ int b_new(void); x = { .name = \"deep\" };", "src/base/b.h": "", "src/elf/b.h": "",
}
FAULTS = [
	(check_paths, "docs/e.md", "`src/NAME/NAME.c`"), (check_names, "docs/e.md", "`NAME_old`"), (check_names, "docs/e.md", "struct sonde_NAME"),
	(check_paths, "docs/a.md", "src/base/c.c"), (check_paths, "docs/a.md", "(src/c/)"), (check_paths, "docs/a.md", "`base/c`"), (check_paths, "README.md", "src/{base,c}/b.h"),
	(check_paths, "man/a.in", "src/*/c.c"), (check_paths, "src/base/b.h", "/* see docs/c.md */"), (check_links, "docs/a.md", "[c](c.md)"), (check_names, "docs/a.md", "`c_new()`"),
	(check_names, "docs/a.md", "`struct c_d`"), (check_names, "man/a.in", ".B sonde_c"), (check_names, "README.md", "x = SONDE_C;"), (check_options, "docs/a.md", "sonde --wide"), (check_options, "man/a.in", ".B \\-\\-wide"),
]


@test
def checkers_see_faults():
	for checker in CHECKERS:
		none(checker(CLEAN))
	for checker, path, text in FAULTS:
		check(checker({**CLEAN, path: text}), "%s says nothing about %r in %s" % (checker.__name__, text, path))


run_tests()
