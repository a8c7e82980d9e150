#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The style rules that a machine can check: includes, sizes, licences, banned words, self-contained headers.
Each checker takes {path: text} and returns complaints, so that the last test can give each of them a fault to find.
style.py BUILD [PART OF A TEST'S NAME]"""
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from tree import ROOT, read_tree

sys.path.insert(0, os.path.join(ROOT, "tests"))
from tap import check, run_tests, test # noqa: E402

BUILD = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else os.path.join(ROOT, "build")


def code_only(text):
	"""C text without comments and with empty literals; line numbers stay the same."""
	def blank(match):
		found = match.group(0)
		return '""' if found[0] == '"' else "' '" if found[0] == "'" else "\n" * found.count("\n")
	return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.DOTALL)


def is_c(path, *folders):
	return path.endswith((".c", ".h")) and path.startswith(tuple(folder + "/" for folder in folders))


# --- who may include whom --------------------------------------------------------------------------------------------------------

COMMON = {"base", "codec", "model", "elf", "abi"}
EDGES = { # a folder includes itself and these: those above it in this list, never one below, so there is no circle of folders
	"abi": set(),
	"compat": {"abi"},
	"walk": {"abi"},
	"runtimes": {"abi", "walk"},
	"labels": {"abi", "walk", "runtimes"},
	"lib": {"abi", "compat", "walk", "runtimes", "labels"},
	"heap": {"abi", "compat", "walk", "runtimes", "labels", "lib"},
	"bpf": {"abi", "compat", "walk", "runtimes", "labels", "lib"},
	"sonde": set(),

	"base": set(),
	"identity": {"base"},
	"codec": {"base"},
	"model": {"base", "abi"},
	"elf": {"base"},
	"cfi": {"base", "elf", "abi"},
	"symbols": {"base", "elf", "cfi"},
	"pclntab": {"base", "elf", "cfi"},
	"dwarf": {"base", "elf"},

	# stages: none includes another
	"runtime": COMMON | {"cfi", "pclntab"},
	"unwind": COMMON | {"cfi", "symbols", "pclntab", "walk", "runtimes", "skeleton"}, # the step functions are one text for the kernel and the host
	"probe": COMMON | {"cfi", "symbols"},
	"proxy": COMMON | {"identity"},
	"process": COMMON | {"identity", "proxy"},
	"collect": COMMON | {"skeleton"},
	"symbolize": COMMON | {"symbols", "pclntab", "dwarf"},
	"audit": COMMON,
	"worker": {"base", "codec"},
	"counter": {"base", "codec", "sonde"},
	"curl": {"base"},
	"debuginfod": {"base", "curl"},
	"frames": COMMON,
	"formats": COMMON | {"frames"},
	"show": COMMON | {"frames"},
	"page": COMMON | {"frames", "formats", "show"},
	"perfdata": COMMON,
	"importer": COMMON,
	"viewers": COMMON | {"importer"},
	"import": COMMON | {"importer", "viewers", "perfdata"},

	# layers that combine the stages
	"programs": COMMON | {"collect", "skeleton"},
	"parse": COMMON | {"worker", "probe", "proxy", "process", "unwind", "runtime", "symbolize", "audit", "debuginfod", "sonde"},
	"track": COMMON | {"collect", "proxy", "process", "unwind", "runtime", "parse"},
	"naming": COMMON | {"debuginfod", "proxy", "process", "symbolize", "parse", "track"},
	"stacks": COMMON | {"collect", "process", "runtime", "unwind", "naming"},
	"replay": COMMON | {"perfdata", "process", "symbolize", "unwind", "parse", "track", "naming"},
	"output": COMMON | {"frames", "formats", "show", "page", "import", "perfdata", "proxy", "symbolize", "parse", "replay", "sonde"},
	"engine": COMMON | {"identity", "collect", "audit", "proxy", "process", "parse", "track", "naming", "stacks", "sonde"},
	"offcpu": COMMON | {"collect", "frames", "show", "stacks", "output", "engine", "sonde"},
	"probing": COMMON | {"collect", "dwarf", "programs", "sonde"},
	"events": COMMON | {"collect", "programs", "probing", "frames", "show", "stacks", "engine", "sonde"},
	"memory": COMMON | {"collect", "programs", "process", "runtime", "parse", "track", "naming", "stacks", "engine", "sonde"},
	"session": COMMON | {"identity", "collect", "naming", "runtime", "track", "output", "engine", "offcpu", "events", "memory", "sonde"},
	"examine": COMMON | {"runtime", "unwind", "proxy", "process", "parse", "track", "naming", "session", "sonde"},

	"store": {"base"},
	"send": {"base", "codec", "curl"},
	"serve": {"base"},

	"cli": {"sonde", "base", "store"},
	"stat": {"sonde", "base", "codec", "cli"},
	"doctor": {"sonde", "base", "codec", "cli"},
	"tracing": {"sonde", "base", "cli"},
	"allocs": {"sonde", "base", "cli"},
	"skywalking": {"sonde", "base", "identity", "proxy", "codec", "send", "cli"},
	"flight": {"sonde", "base", "codec", "store", "cli"},
	"settings": {"sonde", "base", "store", "send", "serve", "cli", "skywalking", "flight"},
	"agent": {"sonde", "base", "codec", "store", "send", "serve", "cli", "skywalking", "flight", "settings"},
}
LIBRARIES = { # who may include what of other libraries; headers that are not listed are libc's or the kernel's
	r"bpf/": {"compat", "lib", "heap", "bpf", "collect", "programs", "unwind", "naming", "doctor"}, # doctor tries BPF by itself
	r"(gelf|libelf|elfutils/.*|dwarf|libdw)\.h": {"dwarf", "audit"},
	r"(zlib|zstd|zstd_errors|lzma)\.h": {"elf", "symbols", "symbolize", "codec", "import", "perfdata", "store"},
	r"sqlite3\.h": {"store"},
	r"yaml\.h": {"settings"},
	r"(libiberty/.*|demangle)\.h": {"symbolize"},
	r"(seccomp|linux/seccomp)\.h": {"worker"},
	r"capstone/.*": {"symbolize"},
	r"linux/bpf\.h": {"compat", "lib", "heap", "bpf", "doctor", "agent"}, # agent has the kernel count what its programs take
}


def layer_of(path):
	"""The layer of a file of the tree, None for those without rules (tests, bench)."""
	parts = path.split("/")
	if path.startswith("bpf/"):
		return parts[1] if len(parts) > 2 else "bpf"
	if path.startswith("include/sonde/"):
		return "sonde"
	return parts[1] if path.startswith("src/") and len(parts) > 2 else None


def target_layer(path, included, tree):
	"""The layer that an include with quotes reaches."""
	near = os.path.normpath(os.path.join(os.path.dirname(path), included))
	for candidate in (near, "src/" + included, "bpf/" + included, "include/" + included):
		if candidate in tree:
			return layer_of(candidate) or "none"
	return "skeleton" if included.endswith((".skel.h", ".inc.h")) else "missing"


def check_layers(tree):
	complaints = []
	for path, text in tree.items():
		layer = layer_of(path) if path.endswith((".c", ".h")) else None
		if not layer:
			continue
		if layer not in EDGES:
			complaints.append("%s: the folder %s has no line in the table of layers" % (path, layer))
			continue
		for quote, included in re.findall(r'^[ \t]*#[ \t]*include[ \t]+(["<])([^">]+)', text, re.MULTILINE):
			if quote == '"':
				target = target_layer(path, included, tree)
			else:
				target = "sonde" if included.startswith("sonde/") else layer
				complaints += ["%s: <%s> is not for %s" % (path, included, layer) for pattern, layers in LIBRARIES.items()
					if re.match(pattern, included) and layer not in layers]
			if target != layer and target not in EDGES[layer]:
				complaints.append("%s: %s may not include %s (%s)" % (path, layer, included, target))
	return complaints


def check_order(edges):
	"""A layer includes only layers above it in the list."""
	names = list(edges)
	return ["%s stands above %s, which it includes" % (layer, target) for layer in names for target in edges[layer] if target in names[names.index(layer):]]


def module_of(path):
	return path.rsplit(".", 1)[0]


def includes_of(tree):
	"""{module: modules that it includes}: a header and its .c are one."""
	modules = {}
	for path, text in tree.items():
		if not is_c(path, "src", "bpf", "include"):
			continue
		for included in re.findall(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', text, re.MULTILINE):
			near = os.path.normpath(os.path.join(os.path.dirname(path), included))
			found = next((candidate for candidate in (near, "src/" + included, "bpf/" + included, "include/" + included) if candidate in tree), None)
			modules.setdefault(module_of(path), set()).update({module_of(found)} if found else ())
	return modules


def reached_from(modules, start):
	seen, open_ends = set(), [start]
	while open_ends:
		new = modules.get(open_ends.pop(), set()) - seen
		seen |= new
		open_ends += new
	return seen


def check_circles(tree):
	"""No modules include each other, except the parts of one, whose names begin with the same word."""
	modules = includes_of(tree)
	reached = {module: reached_from(modules, module) for module in modules}
	first_word = {module: re.match(r"(.*/)?[a-z0-9]+", module).group(0) for module in modules} # import.c and importer.c, dwarf_lines.c and dwarf_private.h
	return ["%s and %s include each other" % (one, other) for one in sorted(modules) for other in sorted(reached[one])
		if one < other and one in reached.get(other, ()) and not first_word[other].startswith(first_word[one])]


# --- sizes ------------------------------------------------------------------------------------------------------------------------

MAX_FILE, MEDIAN_FILE, MAX_FOLDER = 1000, 250, 4000
MAX_FUNCTION, MOST_FUNCTION, MEDIAN_FUNCTION = 100, 60, 20


def functions_of(paths, folder):
	"""(path, name, lines) of each C function, by Universal Ctags."""
	if not paths:
		return []
	out = subprocess.run(["ctags", "--output-format=json", "--fields=+ne", "--languages=C,C++", "--langmap=C:.c.h,C++:.cc", "--kinds-C=f",
		"--kinds-C++=f", "-o", "-", "-L", "-"], input="\n".join(paths), cwd=folder, stdout=subprocess.PIPE, check=True, text=True)
	tags = [json.loads(line) for line in out.stdout.splitlines()]
	return [(tag["path"], tag["name"], tag["end"] - tag["line"] + 1) for tag in tags if "end" in tag]


def check_sizes(tree, folder=ROOT):
	sources = [path for path in tree if path.endswith((".c", ".h", ".cc"))]
	product = [path for path in sources if is_c(path, "src", "bpf", "include")]
	lines = {path: text.count("\n") for path, text in tree.items() if path in sources or path.endswith((".py", ".js"))}
	complaints = ["%s: %d lines, the hard stop is %d" % (path, nr, MAX_FILE) for path, nr in lines.items() if nr > MAX_FILE]
	folders = {}
	for path in product:
		folders[os.path.dirname(path)] = folders.get(os.path.dirname(path), 0) + lines[path]
	complaints += ["%s: %d lines, the hard stop is %d" % (name, nr, MAX_FOLDER) for name, nr in folders.items() if nr > MAX_FOLDER]
	functions = functions_of(sources, folder)
	complaints += ["%s: %s has %d lines, the hard stop is %d" % (path, name, nr, MAX_FUNCTION) for path, name, nr in functions if nr > MAX_FUNCTION]
	mine = [nr for path, _, nr in functions if path in product]
	if product and statistics.median(lines[path] for path in product) > MEDIAN_FILE:
		complaints.append("the median file has more than %d lines" % MEDIAN_FILE)
	if mine and statistics.median(mine) > MEDIAN_FUNCTION:
		complaints.append("the median function has %d lines, want at most %d" % (statistics.median(mine), MEDIAN_FUNCTION))
	if mine and sum(nr < MOST_FUNCTION for nr in mine) < 0.9 * len(mine):
		complaints.append("less than 90 %% of the functions have under %d lines" % MOST_FUNCTION)
	return complaints


with open(os.path.join(ROOT, ".clang-format"), encoding="utf-8") as file:
	FORMAT = dict(line.strip().split(": ", 1) for line in file)
WIDTH, TAB = int(FORMAT["ColumnLimit"]), int(FORMAT["IndentWidth"])


def check_width(tree):
	"""No line of C is wider than .clang-format says."""
	return ["%s:%d: %d columns, the limit is %d" % (path, number, len(line.expandtabs(TAB)), WIDTH) for path, text in tree.items()
		if path.endswith((".c", ".h", ".cc")) for number, line in enumerate(text.splitlines(), 1) if len(line.expandtabs(TAB)) > WIDTH]


# --- words ------------------------------------------------------------------------------------------------------------------------

BANNED = r"\b(atoi|atol|atoll|atof|strcpy|stpcpy|strcat|strtok|strtok_r|gets|sprintf|vsprintf|alloca)\s*\("
NUMBERS = r"\b(strto(l|ul|ll|ull|d|f|ld|imax|umax))\s*\(" # base/number.c is the only one that may
TALK = r"\b(printf|vprintf|puts|putchar|perror|exit|abort|assert)\s*\(|\b(stderr|stdout)\b" # stages neither talk nor end the process
END = r"\b_exit\s*\(" # only between fork and exec
LATER = r"\b(TO" + "DO|FIX" + r"ME|XX" + r"X)\b|not implemented"
MACHINE = r"(?<![\w.])/(?:work|farm)/|/tmp/build|/home/\w+/|/root/(?!\.\.\.)"
HOSTS = r"deb\.debian\.org|security\.debian\.org|proxy\.golang\.org|(?:index|static)\.crates\.io|registry\.npmjs\.org|artifactory"


def matches(path, text, pattern, what):
	return ["%s:%d: %s: %s" % (path, number, what, match.group(0).strip()) for number, line in enumerate(text.splitlines(), 1)
		for match in [re.search(pattern, line)] if match]


def check_banned(tree):
	complaints = []
	for path in (path for path in tree if is_c(path, "src", "bpf", "include")):
		code = code_only(tree[path])
		complaints += matches(path, code, BANNED, "banned")
		if path != "src/base/number.c":
			complaints += matches(path, code, NUMBERS, "use base/number.h")
		if path.startswith("src/") and layer_of(path) not in ("cli", "stat", "doctor"):
			complaints += matches(path, code, TALK, "a stage neither prints nor ends the process")
			complaints += matches(path, code, END, "a stage does not end the process") if not re.search(r"\bv?fork\s*\(", code) else []
	return complaints


def check_words(tree):
	complaints = []
	for path, text in tree.items():
		if path == "tests/style/style.py":
			continue # names all of them
		complaints += matches(path, text, MACHINE, "a path of one machine") + matches(path, text, HOSTS, "the host of a registry")
		if path.startswith(("src/", "bpf/", "include/", "tests/", "tools/", "bench/")):
			complaints += matches(path, text, LATER, "left for later")
	return complaints


def check_licences(tree):
	complaints = []
	for path, text in tree.items():
		if not path.endswith((".c", ".h", ".cc", ".rs", ".py", ".sh", ".js", ".mjs", ".css", ".build")) and not text.startswith("#!"):
			continue
		for_kernel = is_c(path, "bpf") or path.endswith(".bpf.c")
		want = "GPL-2.0-only OR BSD-2-Clause" if for_kernel else "Apache-2.0"
		head = text.split("\n", 2)
		line = head[1] if text.startswith("#!") and len(head) > 1 else head[0]
		if not re.fullmatch(r"(//|/\*|#) SPDX-License-Identifier: %s( \*/)?" % re.escape(want), line) and path != ".ci/run":
			complaints.append("%s: does not begin with SPDX-License-Identifier: %s" % (path, want))
	return complaints


# --- the library's interface ------------------------------------------------------------------------------------------------------

SYMBOL_MAP = "src/libsonde.map"


def check_symbol_map(tree):
	"""The public headers declare exactly the functions that the linker's map exports, and the map is sorted."""
	declared = {name for path, text in tree.items() if layer_of(path) == "sonde" for name in re.findall(r"\b(sonde_\w+)\s*\(", code_only(text))}
	mapped = re.findall(r"^\t(\S+);$", code_only(tree.get(SYMBOL_MAP, "")).split("local:")[0], re.MULTILINE)
	complaints = ["%s: its functions are hidden: no visibility push(default)" % path for path, text in tree.items()
		if layer_of(path) == "sonde" and "#pragma GCC visibility push(default)" not in text]
	complaints += ["%s: not in %s: %s" % ("include/sonde", SYMBOL_MAP, name) for name in sorted(declared - set(mapped))]
	complaints += ["%s: in no header: %s" % (SYMBOL_MAP, name) for name in mapped if name not in declared]
	return complaints + ["%s: %s is out of order" % (SYMBOL_MAP, after) for before, after in zip(mapped, mapped[1:]) if before >= after]


NULL_TEST = "tests/unit/test_public_null.c"


def check_null(tree):
	"""The test of NULL arguments covers each library function that takes an object."""
	taken = [name for path, text in tree.items() if layer_of(path) == "sonde"
		for name in re.findall(r"\b(sonde_\w+)\((?:const )?struct sonde_(?:session|profile|counters|names) \*\w+[,)]", code_only(text))]
	return ["%s: not called with NULL in %s" % (name, NULL_TEST) for name in taken if not re.search(r"\b%s\(NULL\b" % name, tree.get(NULL_TEST, ""))]


# --- headers and objects ----------------------------------------------------------------------------------------------------------

def check_headers(tree, folder=ROOT):
	"""Each header compiles alone: those of the host with gcc, those of the kernel side with clang for BPF, the public ones as C++ too. But
	not bpf/lib, bpf/heap, bpf/walk and bpf/runtimes: the includer, the kernel's programs or a test on the host, supplies their functions that read memory."""
	complaints = []
	for path in (path for path in tree if path.endswith(".h") and is_c(path, "src", "bpf", "include") and layer_of(path) not in ("lib", "heap", "walk", "runtimes", "labels")):
		if path.startswith("bpf/") and layer_of(path) != "abi":
			commands = [["clang", "-target", "bpf", "-mcpu=v3", "-O2", "-D__TARGET_ARCH_x86", "-Ibpf", "-idirafter", "/usr/include/x86_64-linux-gnu"]]
		else:
			commands = [["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-Wextra", "-Isrc", "-Ibpf", "-Iinclude", "-I" + BUILD + "/bpf"]]
		if layer_of(path) == "sonde": # for any program: no GNU extensions, no C-only features
			commands = [["gcc", "-std=c11", "-Wextra", "-pedantic", "-Iinclude"], ["g++", "-x", "c++", "-std=c++17", "-Wextra", "-pedantic", "-Iinclude"]]
		for command in commands:
			language = [] if "-x" in command else ["-x", "c"]
			made = subprocess.run([*command, "-fms-extensions", "-Wall", "-Wno-unused-function", "-Wno-unused-parameter", "-Werror", "-fsyntax-only", *language, "-include", path,
				"/dev/null"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False, text=True)
			if made.returncode:
				complaints.append("%s does not compile alone:\n%s" % (path, made.stderr[:600]))
	return complaints


def check_globals(archive):
	"""No stage keeps mutable state in globals: nothing in .data and .bss of the library's objects (constants with addresses in them are in
	.data.rel.ro)."""
	table = subprocess.run(["objdump", "-t", archive], stdout=subprocess.PIPE, check=True, text=True).stdout
	found = re.findall(r"^[0-9a-f]+ .{7} (\.(?:data|bss|tdata|tbss)(?:\.(?!rel\.ro)\S+)?)\t[0-9a-f]+ +(?:\.hidden )?(\S+)$", table, re.MULTILINE)
	return ["%s in %s" % (symbol, section) for section, symbol in found if symbol != section and symbol != "DW.ref.__gcc_personality_v0"]


def symbols_of(archive):
	"""(layer, letter of nm, symbol) of each object of the archive."""
	table = subprocess.run(["nm", "-A", archive], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout
	return re.findall(r"^[^\n]*[/:]src_([a-z0-9]+)_[^\n:]*:[0-9a-f ]{16} ([A-Za-z]) (\S+)$", table, re.MULTILINE)


def check_calls(archive, order):
	"""A layer calls only functions defined in it or in a layer before it in the list: no declaration hides a call of a later layer."""
	found = symbols_of(archive)
	homes = {symbol: layer for layer, letter, symbol in found if letter in "TDRBVW"}
	return sorted({"%s calls %s, which is %s's" % (layer, symbol, homes[symbol]) for layer, letter, symbol in found
		if letter == "U" and order.index(homes.get(symbol, layer)) > order.index(layer)})


# --- tests ------------------------------------------------------------------------------------------------------------------------

TREE = read_tree()


def none(complaints):
	check(not complaints, lambda: "\n".join(complaints[:40]))


@test
def layers():
	none(check_layers(TREE))
	none(check_order(EDGES))


@test
def circles():
	none(check_circles(TREE))


@test
def sizes():
	none(check_sizes(TREE))


@test
def width():
	none(check_width(TREE))


@test
def banned_functions():
	none(check_banned(TREE))


@test
def words():
	none(check_words(TREE))


@test
def licences():
	none(check_licences(TREE))


@test
def headers_compile_alone():
	none(check_headers(TREE))


@test
def symbol_map():
	none(check_symbol_map(TREE))


@test
def null_is_taken():
	none(check_null(TREE))


@test
def no_mutable_globals():
	none(check_globals(os.path.join(BUILD, "libsonde-core.a")))


@test
def calls():
	archive = os.path.join(BUILD, "libsonde-core.a")
	check(len(symbols_of(archive)) > 1000, "the archive's objects are not named as expected")
	none(check_calls(archive, list(EDGES)))
	check(check_calls(archive, list(reversed(EDGES))), "a call of what stands behind is not seen")


FAULTS = [
	(check_layers, {"src/base/a.h": "", "src/formats/b.h": "", "src/symbolize/a.c": '#include "formats/b.h"\n'}),
	(check_layers, {"src/model/a.h": "", "src/base/a.c": ' # include "model/a.h"\n'}),
	(check_layers, {"src/session/a.h": "", "src/cli/a.c": '#include "session/a.h"\n'}),
	(check_layers, {"src/collect/a.h": "", "bpf/lib/a.h": '#include "collect/a.h"\n'}),
	(check_layers, {"src/base/a.c": "#include <zlib.h>\n"}),
	(check_layers, {"src/process/a.c": "#include <bpf/libbpf.h>\n"}),
	(check_layers, {"src/nowhere/a.c": ""}),
	(check_layers, {"bpf/lib/a.h": "", "bpf/walk/b.h": '#include "../lib/a.h"\n'}),
	(check_order, {"model": {"base"}, "base": set()}),
	(check_circles, {"src/elf/a.h": '#include "elf/b.h"\n', "src/elf/b.h": "", "src/elf/b.c": '#include "elf/c.h"\n', "src/elf/c.h": '#include "elf/a.h"\n'}),
	(check_banned, {"src/base/a.c": "int x = atoi(text);\n"}),
	(check_banned, {"src/elf/a.c": "word = strtok_r(text, space, &rest);\n"}),
	(check_banned, {"src/elf/a.c": "x = strtoul (text, 0, 0);\n"}),
	(check_banned, {"src/unwind/a.c": "fprintf(stderr, text);\n"}),
	(check_banned, {"src/unwind/a.c": "_exit(1);\n"}),
	(check_words, {"docs/a.md": "see /wo" + "rk/main\n"}),
	(check_words, {"src/base/a.c": "/* TO" + "DO: later */\n"}),
	(check_licences, {"src/base/a.c": "int x;\n"}),
	(check_licences, {"bpf/a.bpf.c": "// SPDX-License-Identifier: Apache-2.0\n"}),
	(check_sizes, {"src/base/long.c": "int f(void)\n{\n" + "\t;\n" * 101 + "\treturn 0;\n}\n"}),
	(check_sizes, {"src/base/big.h": "int x;\n" * 1001}),
	(check_sizes, {"src/base/many%d.h" % i: "int x;\n" * 810 for i in range(5)}),
	(check_sizes, {"src/base/many.c": "".join("int f%d(void)\n{\n%s\treturn 0;\n}\n" % (i, "\t;\n" * 25) for i in range(5))}),
	(check_width, {"tests/unit/a.h": "\tint %s;\n" % ("x" * 128)}),
	(check_symbol_map, {"include/sonde/a.h": "int sonde_a(int);\n", SYMBOL_MAP: "V {\nglobal:\nlocal:\n\t*;\n};\n"}),
	(check_symbol_map, {"include/sonde/a.h": "int sonde_b(int);\n", SYMBOL_MAP: "V {\nglobal:\n\tsonde_b;\nlocal:\n\t*;\n};\n"}), # hidden
	(check_symbol_map, {SYMBOL_MAP: "V {\nglobal:\n\tsonde_b;\nlocal:\n\t*;\n};\n"}),
	(check_symbol_map, {"include/sonde/a.h": "int sonde_a(int);\nint sonde_b(int);\n", SYMBOL_MAP: "V {\nglobal:\n\tsonde_b;\n\tsonde_a;\nlocal:\n\t*;\n};\n"}),
	(check_null, {"include/sonde/a.h": "int sonde_a(const struct sonde_names *names, int i);\n", NULL_TEST: "sonde_a(names, 1);\n"}),
	(check_headers, {"include/sonde/a.h": "struct sonde_a {};\n"}), # GNU C
	(check_headers, {"include/sonde/a.h": "int sonde_a(int class);\n"}), # C alone
	(check_headers, {"src/base/a.h": "struct a { uint8_t b; };\n"}),
]
CLEAN = {
	"include/sonde/b.h": "/* SPDX-License-Identifier: Apache-2.0 */\n/* sonde_other(): not here */\n#pragma once\n#pragma GCC visibility push(default)\nint sonde_a(void (*call)(void *arg));\nint sonde_b(int x);\n",
	SYMBOL_MAP: "/* c */\nV {\nglobal:\n\tsonde_a;\n\tsonde_b;\nlocal:\n\t*;\n};\n",
	"src/base/b.h": "/* SPDX-License-Identifier: Apache-2.0 */\n#pragma once\n#include <stdint.h>\nint b(uint8_t x);\n",
	"src/model/b.c": '// SPDX-License-Identifier: Apache-2.0\n#include "base/b.h"\n/* atoi() is banned */\nconst char *x = "atoi(1)";\nint b(uint8_t y)\n{\n\treturn y;\n}\n',
}


@test
def checkers_see_faults():
	for number, (checker, tree) in enumerate(FAULTS):
		check(complaints_about(checker, tree), "%s says nothing about fault %d: %r" % (checker.__name__, number, list(tree)))
	for checker in (check_layers, check_circles, check_width, check_banned, check_words, check_licences, check_symbol_map, check_null, check_sizes, check_headers):
		none(complaints_about(checker, CLEAN))
	check(globals_of("static int state; int next(void)\n{\n\treturn state++;\n}\n"), "a mutable global is not seen")
	none(globals_of('extern int a, b; static int *const both[] = {&a, &b};\nint *pick(int i)\n{\n\treturn both[i];\n}\n'))


def complaints_about(checker, tree):
	if checker not in (check_sizes, check_headers):
		return checker(tree)
	with tempfile.TemporaryDirectory(prefix="sonde-style-") as folder:
		for path, text in tree.items():
			os.makedirs(os.path.join(folder, os.path.dirname(path)), exist_ok=True)
			with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
				file.write(text)
		return checker(tree, folder)


def globals_of(text):
	with tempfile.TemporaryDirectory(prefix="sonde-style-") as folder:
		made = os.path.join(folder, "a.o")
		subprocess.run(["gcc", "-fPIE", "-x", "c", "-c", "-o", made, "-"], input=text, check=True, text=True)
		return check_globals(made)


if not shutil.which("ctags") or not shutil.which("objdump"):
	sys.exit("ctags (universal-ctags) and objdump (binutils) are needed")
run_tests()
