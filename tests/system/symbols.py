#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Symbol names: a name that exists is found, and a gap stays a gap. Most tests use name_dump, which resolves addresses of a file; objdump and nm are the
references."""
import collections
import json
import os
import re
import subprocess
import time

from harness import SCRATCH, SONDE, check, check_equal, find_tool, fresh_folder, need_bpf, parse_folded, run, run_tests, scratch, skip, sonde, test

NAME_DUMP = os.environ["NAME_DUMP"]
NOWHERE = os.path.join(SCRATCH, "no-debug-files")


def names_of(path, addresses, debug_dir=NOWHERE):
	"""Returns address -> (start, name) or None."""
	addresses = sorted(set(addresses))
	result = subprocess.run([NAME_DUMP, path, debug_dir], input="".join("%x\n" % address for address in addresses), capture_output=True, text=True,
		timeout=60, check=False)
	check(result.returncode == 0, result.stderr)
	answers = [None if line == "-" else (int(line.split(" ", 1)[0], 16), line.split(" ", 1)[1]) for line in result.stdout.splitlines()]
	check_equal(len(answers), len(addresses), "answers")
	return dict(zip(addresses, answers))


def name_at(path, address, debug_dir=NOWHERE):
	found = names_of(path, [address], debug_dir)[address]
	return found and found[1]


def written(name, text):
	path = scratch(name)
	with open(path, "w", encoding="ascii") as file:
		file.write(text)
	return path


def made(*argv):
	result = run(argv, timeout=60)
	check(result.code == 0, lambda: "%s\n%s" % (" ".join(argv), result))


def symbols_of(path, *options):
	"""Returns nm's functions: [(address, kind, name)]."""
	lines = [line.split() for line in run(["nm", *options, path], timeout=60).out.splitlines()]
	return [(int(words[0], 16), words[1], words[2].partition("@")[0]) for words in lines if len(words) == 3 and words[1] in "tTwWi"]


# --- stubs of the PLT ----------------------------------------------------------------------------------------------------------------

def check_stubs(path, objdump="objdump"):
	"""What objdump calls <name@plt> has that name here too, from the first to the last byte. Returns the number of stubs."""
	sections = [line.split()[1] for line in run([objdump, "-h", path]).out.splitlines() if re.match(r"\s*\d+ \.i?plt", line)]
	labels = []
	for section in sections:
		text = run([objdump, "-d", "--no-show-raw-insn", "-j", section, path], timeout=60).out
		labels += [(int(match.group(1), 16), match.group(2)) for match in re.finditer(r"^([0-9a-f]+) <(\S+)@plt>:", text, re.M)]
	labels = [(address, name.partition("@")[0] if not name.startswith("*ABS*") else None) for address, name in labels]
	found = names_of(path, [address + off for address, _ in labels for off in (0, 5, 7)])
	for address, name in labels:
		for off in (0, 5, 7):
			got = found[address + off]
			if name is None: # the symbol of the IFUNC's resolver function, if it has one
				check(got is None or got[0] == address and got[1].endswith("@plt"), "%s: %x is %s" % (path, address, got))
			else:
				check_equal(got, (address, name + "@plt"), "%s: %x" % (path, address + off))
	return len(labels)


@test
def stubs_of_installed_files():
	notes = []
	libc = re.search(r"=> (\S+libc\.so\S*)", run(["ldd", find_tool("bash")]).out).group(1)
	for path in (libc, find_tool("bash"), find_tool("node"), find_tool("gdb", "git", "python3")):
		if path:
			notes.append("%s %d" % (os.path.basename(path), check_stubs(os.path.realpath(path))))
	return ", ".join(notes)


CALLER = "#include <stdlib.h>\n#include <string.h>\nvoid *(*volatile f)(size_t) = malloc;\n" \
	"int main(int n, char **v) { char *p = malloc(n); free(p); p = f(n); return (int)strlen(strcpy(p, v[0])); }\n"


@test
def stubs_with_and_without_branch_tracking():
	source = written("caller.c", CALLER)
	notes = []
	for name, flags in (("plain", ["-fcf-protection=none", "-Wl,-z,lazy"]), ("now", ["-Wl,-z,now"]), ("ibt", ["-fcf-protection", "-Wl,-z,ibtplt"])):
		path = scratch("caller-" + name)
		made("gcc", "-O1", "-fno-builtin", *flags, "-o", path, source)
		notes.append("%s %d" % (name, check_stubs(path)))
	if find_tool("aarch64-linux-gnu-gcc"):
		for name, flags in (("arm64", []), ("arm64-bti", ["-mbranch-protection=standard", "-Wl,-z,force-bti"])):
			path = scratch("caller-" + name)
			made("aarch64-linux-gnu-gcc", "-O1", "-fno-builtin", *flags, "-o", path, source)
			notes.append("%s %d" % (name, check_stubs(path, "aarch64-linux-gnu-objdump")))
	check(all(int(note.split()[1]) >= 3 for note in notes), notes)
	return ", ".join(notes)


@test
def stubs_of_a_static_program():
	path = scratch("caller-static")
	made("gcc", "-O1", "-fno-builtin", "-static", "-o", path, written("caller.c", CALLER))
	text = run(["objdump", "-d", "--no-show-raw-insn", "-j", ".plt", path]).out
	slots = [int(address, 16) for address in re.findall(r"^\s*([0-9a-f]+):\s+(?:bnd )?jmp\s+\*", text, re.M)]
	resolvers = {name for _, kind, name in symbols_of(path) if kind == "i"}
	found = names_of(path, slots)
	check(slots and all(found.values()), "%s" % found)
	check({name.removesuffix("@plt") for _, name in found.values()} <= resolvers, "%s are no IFUNCs" % found)
	check("strcpy@plt" in {name for _, name in found.values()}, "%s" % found)
	return "%d" % len(slots)


# --- the small table of stripped files -------------------------------------------------------------------------------------------------

INNER = "__attribute__((noinline)) static int inner(int n) { return n * %d + 1; }\nint outer(int n) { return inner(n) + inner(n + 1); }\n" \
	"__attribute__((noinline)) static int other(int n) { return n + 7; }\nint last(int n) { return other(n) * 2; }\n"


def mini(name, source):
	"""Builds a library whose local names are only in .gnu_debugdata, as rpm's find-debuginfo does. Returns its path and the path of the full
	library."""
	whole, small, packed, path = (scratch(name + ending) for ending in (".whole.so", ".mini", ".mini.xz", ".so"))
	made("gcc", "-O1", "-g", "-shared", "-fPIC", "-fno-ipa-icf", "-o", whole, source)
	exported = {symbol for _, _, symbol in symbols_of(whole, "-D")}
	keep = written(name + ".keep", "\n".join(sorted({symbol for _, _, symbol in symbols_of(whole)} - exported)) + "\n")
	made("objcopy", "--only-keep-debug", whole, small + ".debug")
	made("objcopy", "-S", "--remove-section", ".gdb_index", "--remove-section", ".comment", "--keep-symbols=" + keep, small + ".debug", small)
	made("xz", "-kf", small)
	made("strip", "--strip-all", "-o", path, whole)
	made("objcopy", "--add-section", ".gnu_debugdata=" + packed, path)
	return path, whole


@test
def names_of_a_small_packed_table():
	path, whole = mini("libmini", written("mini.c", INNER % 3))
	symbols = {name: address for address, _, name in symbols_of(whole)}
	check("inner" not in {name for _, _, name in symbols_of(path, "-D")}, "inner is exported")
	for name in ("inner", "outer", "other", "last"):
		check_equal(name_at(path, symbols[name]), name, name)
	without = scratch("libmini.none.so")
	made("objcopy", "--remove-section", ".gnu_debugdata", path, without)
	check_equal(name_at(without, symbols["inner"]), None, "without the table")
	return None


@test
def a_hostile_packed_table_is_refused():
	"""Data that unpacks to 100 MB of zeros, truncated data, and garbage are refused; the exported names remain."""
	path, whole = mini("libhostile", written("mini.c", INNER % 5))
	symbols = {name: address for address, _, name in symbols_of(whole)}
	bomb, cut, none = scratch("bomb.xz"), scratch("cut.xz"), scratch("none.xz")
	with open(bomb, "wb") as file:
		made_by = subprocess.run(["sh", "-c", "head -c 100000000 /dev/zero | xz -1"], stdout=file, check=False)
		check(made_by.returncode == 0, "xz")
	with open(scratch("libhostile.mini.xz"), "rb") as file:
		whole_bytes = file.read()
	for target, content in ((cut, whole_bytes[:-40]), (none, b"no xz at all")):
		with open(target, "wb") as file:
			file.write(content)
	for packed in (bomb, cut, none):
		one = scratch("hostile.so")
		made("objcopy", "--update-section", ".gnu_debugdata=" + packed, path, one)
		check_equal((name_at(one, symbols["inner"]), name_at(one, symbols["outer"])), (None, "outer"), packed)
	return None


# --- sizes and gaps ------------------------------------------------------------------------------------------------------------------

HOLES = """	.text
	.macro routine name, bytes
	.globl \\name
	.type \\name, @function
\\name:
	.fill \\bytes, 1, 0x90
	.endm
	routine sized, 16
	.size sized, 16
	.fill 32, 1, 0x90 # nobody's
	.cfi_startproc
	routine covered, 24 # by an FDE
	.cfi_endproc
hidden:
	.fill 24, 1, 0x90 # its name is stripped
	routine short, 7
	jz 1f
	ret
1:	xor %eax, %eax
	ret
secret: # ditto
	mov $15, %eax
	syscall
	ret
	routine tail, 3
	jmp *%rax
"""


@test
def gaps_are_gaps():
	"""A function without a size ends where its FDE or its instructions end. It does not reach to the next name, because the function between
	may be stripped."""
	whole, path = scratch("libholes.whole.so"), scratch("libholes.so")
	made("gcc", "-shared", "-nostdlib", "-o", whole, written("holes.s", HOLES))
	made("strip", "-o", path, whole)
	symbols = {name: address for address, _, name in symbols_of(whole)}
	want = {}
	for name, size in (("sized", 16), ("covered", 24), ("hidden", 24), ("short", 13), ("secret", 8), ("tail", 5)):
		for off in (0, size // 2, size - 1):
			want[symbols[name] + off] = name
	want[symbols["sized"] + 16] = want[symbols["sized"] + 47] = None
	for file, gone in ((whole, ()), (path, ("hidden", "secret"))):
		for address, found in names_of(file, want).items():
			check_equal(found and found[1], None if want[address] in gone else want[address], "%s %x" % (file, address))
	return None


@test
def assembly_of_musl():
	"""musl's assembly routines have neither sizes nor FDEs; the code that returns from a signal handler follows setjmp and has no name."""
	library = "/lib/x86_64-linux-musl/libc.so"
	if not os.path.exists(library):
		skip("no musl")
	symbols = {name: address for address, _, name in symbols_of(library, "-D")}
	with open(library, "rb") as file:
		code = file.read()
	restore = code.find(bytes.fromhex("48c7c00f0000000f05")) # mov $15, %rax; syscall
	check(restore > 0, "no code that returns from a handler")
	check_equal(name_at(library, restore), None, "the code behind setjmp") # file offsets equal addresses there
	for name, end in (("memcpy", "memmove"), ("memset", None)):
		last = code.index(b"\xc3", symbols[name])
		check_equal(name_at(library, last), name, "the end of " + name)
		check(end is None or last < symbols[end], "%s ends behind %s" % (name, end))
	return None


# --- which of several names ---------------------------------------------------------------------------------------------------------------

ALIASES = """int plain_long(int n) { return n + 1; }
int plain(int n) __attribute__((alias("plain_long")));
int weak(int n) __attribute__((weak, alias("plain_long")));
__attribute__((visibility("hidden"))) int pl(int n) __attribute__((alias("plain_long")));
int old_form(int n) { return n + 2; }
int new_form(int n) { return n + 3; }
__asm__(".symver old_form, form@ONE"); __asm__(".symver new_form, form@@TWO");
typedef int fn(int);
static int chosen_one(int n) { return n + 4; }
__attribute__((used)) static fn *resolve(void) { return chosen_one; }
int chosen(int n) __attribute__((ifunc("resolve")));
"""


@test
def names_do_not_depend_on_the_table():
	"""Aliases, versions and IFUNCs: .symtab and .dynsym of one file give the same name, without versions."""
	whole, path = scratch("libaliases.whole.so"), scratch("libaliases.so")
	made("gcc", "-O1", "-shared", "-fPIC", "-Wl,--version-script=" + written("map", "ONE { global: form; };\nTWO { global: form; plain*; weak; chosen; };\n"),
		"-o", whole, written("aliases.c", ALIASES))
	made("strip", "-o", path, whole)
	exported = {address for address, _, _ in symbols_of(path, "-D")}
	check_equal(names_of(path, exported), names_of(whole, exported), "names by .dynsym and by .symtab")
	got = {name for _, name in names_of(path, exported).values()}
	check({"plain", "chosen"} <= got and not any("@" in name for name in got), "%s" % got)
	return ", ".join(sorted(got))


CLONES = """#include <time.h>
__attribute__((noinline)) static long spin(long n, int kind) { volatile long sum = kind; for (long i = 0; i < n; i++) sum += i; return sum; }
int main(int n, char **v) { struct timespec t; long begin = 0; for (;;) { clock_gettime(CLOCK_MONOTONIC, &t); begin = begin ? begin : t.tv_sec;
	spin(1000000, 7); spin(1000000, 7); if (t.tv_sec - begin > 20) return 0; } }
"""


@test
def clones_in_a_profile():
	need_bpf()
	path = scratch("clones")
	made("gcc", "-O2", "-o", path, written("clones.c", CLONES))
	clones = {name for _, _, name in symbols_of(path) if name.startswith("spin")}
	check(len(clones) == 1 and min(clones).startswith("spin.constprop.0"), "gcc makes %s of it" % clones)
	with subprocess.Popen([path]) as process:
		try:
			stacks = parse_folded(sonde("profile", "-f", "-a", "-p", process.pid, "-F", 199, 1, want=0).out)
		finally:
			process.kill()
	leaves = {stack.user[-1] for stack in stacks if stack.user}
	check(clones <= leaves, "%s" % leaves)
	return min(clones)


PARTS = """__attribute__((noinline, cold)) static void is_cold(void) { __asm__ volatile(""); }
#define SPIN(n, sum) for (volatile long i = 0; i < (n); i++) (sum) += i
struct pair { long used, unused; };
volatile long sink;
__attribute__((noinline)) static long by_field(const struct pair *pair, long n) { long sum = pair->used; SPIN(n, sum); return sum; }
__attribute__((noinline)) long mixed(long n) { long sum = 0; if (n > 10) { is_cold(); SPIN(n, sum); is_cold(); } return sum; }
static long early(long n) { long sum = 0; if (__builtin_expect(n < 10, 1)) return 0; SPIN(n, sum); SPIN(n, sum); sink += sum; SPIN(n, sum); SPIN(n, sum); sink += sum; return sum + sink; }
__attribute__((noinline)) long one(long n) { return early(n) + 1; }
__attribute__((noinline)) long two(long n) { return early(n) * 2; }
__attribute__((noinline)) long by_field_of(struct pair pair, long n) { return by_field(&pair, n) + 1; }
int main(int n, char **v) { struct pair pair = { n, 0 }; for (;;) sink += by_field_of(pair, 1000000+n) + mixed(1000000) + one(300000) + two(300000); }
"""


@test
def parts_of_functions_in_a_profile():
	"""The parts that gcc splits off a function are where nm says."""
	need_bpf()
	path = scratch("parts")
	made("gcc", "-O2", "-no-pie", "-fno-pie", "-o", path, written("parts.c", PARTS))
	symbols = sorted(symbols_of(path))
	wanted = {name for _, _, name in symbols if re.match(r"(by_field\.isra|mixed\.cold|early\.part)", name)}
	check(any(".isra" in name for name in wanted) and any(".cold" in name for name in wanted), "gcc makes %s of it" % wanted)
	with subprocess.Popen([path]) as process:
		try:
			report = json.loads(sonde("profile", "--format", "json", "-U", "-p", process.pid, "-F", 499, 2, want=0).out)
		finally:
			process.kill()
	seen = collections.Counter()
	for sample in report["samples"]:
		leaf = report["frames"][report["stacks"][sample["user_stack"]][0]]
		name, address = report["functions"][leaf["function"]]["name"], int(leaf["address"], 16)
		if any(name.startswith(own) for own in ("by_field", "mixed", "early", "one", "two", "main")):
			check_equal(name, [other for start, _, other in symbols if start <= address][-1], "%x" % address)
			seen[name] += sample["values"][0]
	check(all(seen[name] >= 10 for name in wanted), "%s of %s" % (seen, wanted))
	return ", ".join(sorted(wanted))


VERSIONED = """__attribute__((noinline)) long form_old(long n) { for (long i = 0; i < n; i++) __asm__ volatile("" : "+r"(i)); return n; }
long form_new(long n) { for (long i = 0; i < n; i++) __asm__ volatile("" : "+r"(i)); return n + 1; }
__asm__(".symver form_old, form@ONE"); __asm__(".symver form_new, form@@TWO");
long same_long(long n) { for (long i = 0; i < n; i++) __asm__ volatile("" : "+r"(i)); return n + 2; }
long same_b(long n) __attribute__((alias("same_long")));
long same_a(long n) __attribute__((alias("same_long")));
long without_size(long n);
__asm__(".text\\n.type without_size, @function\\nwithout_size:\\n.cfi_startproc\\n1: dec %rdi\\njnz 1b\\nmov $3, %eax\\nret\\n.cfi_endproc\\n");
long call_without_size(long n) { return without_size(n); }
"""
CALLS_VERSIONED = """long form(long n), same_long(long n), call_without_size(long n);
int main(void) { volatile long sink = 0; for (;;) sink += form(1000000) + same_long(1000000) + call_without_size(1000000); }
"""


@test
def names_of_two_runs_are_the_same():
	"""Versions, aliases and a local function without a size get the same names in two runs, at different addresses."""
	need_bpf()
	if os.uname().machine != "x86_64":
		skip("the assembly is of x86-64")
	library, path = scratch("libversioned.so"), scratch("versioned")
	script = written("versioned.map", "ONE { global: form; local: form_*; };\nTWO { global: form; same_*; call_without_size; };\n")
	made("gcc", "-O1", "-shared", "-fPIC", "-Wl,--version-script=" + script, "-o", library, written("libversioned.c", VERSIONED))
	made("gcc", "-O1", "-o", path, written("versioned.c", CALLS_VERSIONED), library, "-Wl,-rpath," + SCRATCH)
	runs = []
	for _ in range(2):
		leaves, _ = leaves_of(path)
		runs.append({name for name in leaves if re.match(r"form|same|without", name)})
	check_equal(runs[0], runs[1], "names")
	check({"same_a", "without_size"} <= runs[0] and len(runs[0] & {"form", "form_new"}) == 1 and not any("@" in name for name in runs[0]), "%s" % runs[0])
	return ", ".join(sorted(runs[0]))


# --- other mount namespaces -------------------------------------------------------------------------------------------------------------

OUT_OF_SIGHT = """__attribute__((noinline)) static long unseen(long n) { /* line 1 */
	for (long i = 0; i < n; i++)
		__asm__ volatile("" : "+r"(i));
	return n; }
int main(void) { volatile long sink = 0; for (;;) sink += unseen(1000000); }
"""


def private(folder, commands):
	"""Returns the command prefix that runs a command with its own file system at `folder`; these shell commands fill it."""
	unshare = find_tool("unshare")
	if not unshare or os.geteuid() != 0 or run([unshare, "-m", "true"]).code:
		skip("no right to make a mount namespace")
	return [unshare, "-m", "sh", "-c", "set -e; mount -t tmpfs none '%s'; %s; exec \"$@\"" % (folder, commands), "sh"]


@test
def a_file_that_only_its_process_sees():
	"""Names and lines are read through /proc/PID/root, also from a debug file beside the program."""
	need_bpf()
	folder, whole, debug = fresh_folder("unseen"), scratch("unseen.whole"), scratch("unseen.debug")
	made("gcc", "-O1", "-g", "-Wl,--build-id=none", "-o", whole, written("unseen.c", OUT_OF_SIGHT))
	made("objcopy", "--only-keep-debug", whole, debug)
	made("objcopy", "--strip-all", "--add-gnu-debuglink=" + debug, whole, scratch("unseen.bare"))
	counts = []
	for copy, is_known in (("cp {0}.whole {0}/prog", True), ("cp {0}.bare {0}/prog; mkdir {0}/.debug; cp {0}.debug {0}/.debug/", True), ("cp {0}.bare {0}/prog", False)):
		program = os.path.join(folder, "prog")
		with subprocess.Popen([*private(folder, copy.format(folder)), program]) as process:
			try:
				time.sleep(0.5)
				check(not os.path.exists(program), "it can be seen from here")
				report = json.loads(sonde("profile", "--format", "json", "--lines", "-U", "-p", process.pid, "-F", 499, 1, want=0).out)
			finally:
				process.kill()
		lines = {frame["line"] for frame in report["frames"] if report["functions"][frame["function"]]["name"] == "unseen"}
		check(bool(lines) == is_known and lines <= {1, 2, 3, 4}, "%s: %s" % (copy, lines))
		counts.append(str(len(lines)))
	return ", ".join(counts)


# --- special files ------------------------------------------------------------------------------------------------------------------------

OWN_32 = """__attribute__((noinline)) static void spin(void) { for (volatile unsigned i = 0; i < 1000000; i++) ; }
void _start(void) { for (;;) { spin(); spin(); } }
"""
VDSO = "#include <time.h>\nint main(void) { struct timespec t; for (;;) clock_gettime(CLOCK_MONOTONIC, &t); }\n"
COPY = "#include <string.h>\nstatic char a[4096], b[4096];\nvoid *(*volatile copy)(void *, const void *, size_t) = memcpy;\n" \
	"int main(void) { for (;;) copy(a, b, sizeof(a)); }\n"


def leaves_of(path):
	"""Returns leaf function -> samples, and all stacks, of a program that runs forever."""
	with subprocess.Popen([path]) as process:
		try:
			stacks = parse_folded(sonde("profile", "-f", "-a", "-p", process.pid, "-F", 199, 1, want=0).out)
		finally:
			process.kill()
	leaves = collections.Counter()
	for stack in stacks:
		if stack.user:
			leaves[stack.user[-1]] += stack.count
	return leaves, stacks


@test
def functions_of_the_vdso():
	need_bpf()
	path = scratch("vdso")
	made("gcc", "-O1", "-o", path, written("vdso.c", VDSO))
	leaves, _ = leaves_of(path)
	known = sum(count for name, count in leaves.items() if re.fullmatch(r"(__vdso_)?clock_gettime(64)?", name))
	check(known * 4 > sum(leaves.values()), "%s" % leaves)
	return "%d of %d" % (known, sum(leaves.values()))


@test
def what_an_ifunc_has_chosen():
	"""The chosen implementation has its own name where libc has symbols (static): not the name of the resolver function, and no version."""
	need_bpf()
	path = scratch("copy-static")
	made("gcc", "-O1", "-static", "-o", path, written("copy.c", COPY))
	leaves, _ = leaves_of(path)
	chosen = {name for address, kind, name in symbols_of(path) if kind in "tT" and re.match(r"__mem(cpy|move)_", name)}
	known = sum(count for name, count in leaves.items() if name in chosen)
	check(known * 2 > sum(leaves.values()), "%s" % leaves)
	return leaves.most_common(1)[0][0]


@test
def code_of_32_bits_is_marked():
	"""There are no wrong names and no false stacks: file and offset, below a mark."""
	need_bpf()
	path = scratch("own-32")
	result = run(["gcc", "-m32", "-O1", "-ffreestanding", "-nostdlib", "-static", "-no-pie", "-fno-pie", "-o", path, written("own-32.c", OWN_32)])
	check(result.code == 0, lambda: str(result))
	try:
		leaves, stacks = leaves_of(path)
	except OSError:
		skip("this kernel runs no programs of 32 bits")
	check(leaves, "no samples")
	check(all(re.fullmatch(r"\[own-32\+0x[0-9a-f]+\]", name) for name in leaves), "%s" % leaves)
	check(all(stack.user[0] == "[32-bit code]" and len(stack.user) == 2 for stack in stacks if stack.user), "%s" % [stack.user for stack in stacks])
	return None


# --- lines of the kernel --------------------------------------------------------------------------------------------------------------

CALLS = """#include <fcntl.h>
#include <unistd.h>
#include <sys/syscall.h>
int main(void) { static char block[65536]; int fd = open("/dev/zero", O_RDONLY); for (;;) { syscall(SYS_getppid); if (read(fd, block, sizeof(block)) < 0) return 1; } }
"""
INLINED_LINE, CALL_LINE = 4, 7 # in the made-up kernel's source: where the inlined code is, and where it was called


def kernel_functions():
	"""Returns the kernel's own functions by name: (start, next start), and the start of the kernel's text."""
	lines = [line.split() for line in open("/proc/kallsyms", encoding="ascii")]
	lines = sorted((int(words[0], 16), words[1], words[2]) for words in lines if len(words) == 3)
	starts = sorted({start for start, _, _ in lines})
	following = dict(zip(starts, starts[1:]))
	text = next(start for start, _, name in lines if name == "_stext")
	if not text:
		skip("the kernel hides its addresses")
	count = collections.Counter(name for _, _, name in lines)
	return {name: (start, following[start]) for start, kind, name in lines if kind in "tT" and start in following and count[name] == 1}, text


def running_build_id():
	with open("/sys/kernel/notes", "rb") as file:
		notes = file.read()
	at = notes.find(b"\x14\0\0\0\x03\0\0\0GNU\0")
	if at < 0:
		skip("the kernel tells no build id")
	return notes[at + 12:at + 32].hex()


def made_up_kernel(name, functions, build_id, moved_by=0):
	"""Builds a file with debug info. Each of [(offset from _stext, bytes)] is a kernel function whose whole code is inlined from another
	function. The file is linked at another address, as with KASLR. `moved_by` moves the functions to where none begins."""
	sections = ""
	source = "static inline __attribute__((always_inline)) void made_up(const int bytes)\n{\n\t/* the next one is line 4 */\n" \
		"\t__asm__ volatile(\".fill %c0, 1, 0x90\" : : \"i\"(bytes));\n}\n\n#define MADE(i, bytes) __attribute__((section(\".at\" #i))) void made_##i(void) { made_up(bytes); }\n"
	for i, (offset, size) in enumerate(sorted(functions)):
		source += "#line %d\nMADE(%d, %d)\n" % (CALL_LINE, i, size - 16)
		sections += "\t. = 0x10000000 + %d;\n\t.of%d : { *(.at%d) }\n" % (offset + moved_by, i, i)
	script = written(name + ".lds", "SECTIONS {\n\t. = 0x0f000000;\n\t.notes : { *(.note.gnu.build-id) }\n\t. = 0x10000000;\n\t.text : { _stext = .; *(.text) BYTE(0x90) }\n%s}\n" % sections)
	path = scratch(name)
	made("gcc", "-O2", "-g", "-fcf-protection=none", "-fno-asynchronous-unwind-tables", "-nostdlib", "-static", "-Wl,-T," + script, "-Wl,--build-id=0x" + build_id,
		"-o", path, written(name + ".c", source))
	return path


def kernel_of_calls(*options, before=()):
	"""Profiles a program that only makes system calls. Returns its functions, name -> [{file, line, of what is inlined}], and the messages."""
	program = scratch("calls")
	if not os.path.exists(program):
		made("gcc", "-O1", "-o", program, written("calls.c", CALLS))
	with subprocess.Popen([program]) as process:
		try:
			result = run([*before, SONDE, "profile", "--format", "json", "-K", "-p", process.pid, "-F", 499, *options, 1])
		finally:
			process.kill()
	check(result.code == 0, lambda: str(result))
	return json.loads(result.out), result.err


def functions_of_calls(plain):
	"""Returns the kernel functions that the program calls: name -> (offset from _stext, bytes)."""
	functions, text = kernel_functions()
	seen = sorted({function["name"] for function in plain["functions"]} & set(functions))
	there = {}
	for name in seen: # far enough apart that no two overlap
		start, end = functions[name]
		if start >= text + 4096 and end - start >= 48:
			there[name] = (start - text, end - start)
	check(len(there) >= 3, "%s" % seen)
	return there


@test
def lines_and_inlined_functions_of_the_kernel():
	"""A made-up vmlinux with the running kernel's build id gives other function names at the addresses of real functions."""
	need_bpf()
	build_id = running_build_id()
	plain, _ = kernel_of_calls("--lines")
	there = functions_of_calls(plain)
	check(not any(function["name"] == "made_up" or function["file"] for function in plain["functions"]), "lines without a vmlinux")

	def ask(path):
		report, said = kernel_of_calls("--lines", "--vmlinux", path)
		names, by_name = report["functions"], {}
		for stack in report["stacks"]:
			frames = [report["frames"][frame] for frame in stack]
			for i, frame in enumerate(frames):
				by_name.setdefault(names[frame["function"]]["name"], []).append((frame, names[frame["function"]], frames[i - 1] if i else None))
		return by_name, said, names
	found, said, names = ask(made_up_kernel("vmlinux", there.values(), build_id))
	check("made_up" in found, lambda: "%s %s" % (sorted(found), said))
	check({frame["line"] for frame, _, _ in found["made_up"]} == {INLINED_LINE}, "%s" % found["made_up"][:3])
	shown = [name for name in there if any(frame["line"] == CALL_LINE and function["file"].endswith("vmlinux.c") for frame, function, _ in found.get(name, []))]
	check(len(shown) >= 3, "%s of %s" % (shown, sorted(there)))
	check(not any(function["name"].startswith("made_") and function["name"] != "made_up" for function in names), "the running kernel's names are kept")
	others = [name for name in found if name not in there and name != "made_up" and any(function["file"] for _, function, _ in found[name])]
	check(not others, "%s have lines" % others)

	found, said, _ = ask(made_up_kernel("vmlinux.other", there.values(), "00" * 20))
	check("made_up" not in found and "its build id differs" in said, said)
	found, said, _ = ask(made_up_kernel("vmlinux.moved", there.values(), build_id, 8))
	check("made_up" not in found, "functions that the kernel does not have there")
	made("strip", "-g", "-o", scratch("vmlinux.bare"), scratch("vmlinux"))
	_, said, _ = ask(scratch("vmlinux.bare"))
	check("it has no debug info" in said, said)
	_, said, _ = ask("/dev/null")
	check("/dev/null is no file" in said, said)
	return "%d functions, by their lines %d" % (len(there), len(shown))


@test
def where_a_vmlinux_is_looked_for():
	"""The machine's own directories are searched; sonde runs in a mount namespace that covers them."""
	need_bpf()
	build_id, release = running_build_id(), os.uname().release
	plain, _ = kernel_of_calls("--lines")
	vmlinux = made_up_kernel("vmlinux.found", functions_of_calls(plain).values(), build_id)
	other = made_up_kernel("vmlinux.found.other", functions_of_calls(plain).values(), "00" * 20)
	places = (("/usr/lib/debug", "/boot/vmlinux-%s" % release), ("/usr/lib/debug", "/lib/modules/%s/vmlinux" % release), ("/lib/modules", "/%s/build/vmlinux" % release),
		("/boot", "/vmlinux-%s" % release), ("/usr/lib/debug", "/.build-id/%s/%s.debug" % (build_id[:2], build_id[2:])))
	tested = []
	for folder, name in places:
		if not os.path.isdir(folder):
			continue
		commands = "mkdir -p '%s'; cp '%%s' '%s'" % (os.path.dirname(folder + name), folder + name)
		report, said = kernel_of_calls("--lines", before=private(folder, commands % vmlinux))
		check("made_up" in {function["name"] for function in report["functions"]}, lambda: "%s: %s" % (folder + name, said))
		tested.append(folder + name)
	check(tested, "none of the places' folders is there")
	report, said = kernel_of_calls("--lines", before=private(folder, commands % other))
	check("made_up" not in {function["name"] for function in report["functions"]} and "its build id differs" in said, said)
	return "%d of %d places" % (len(tested), len(places))


run_tests()
