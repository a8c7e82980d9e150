#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""call_names.py OUTPUT COMPILER...: the table of system calls' names and numbers, of 64 bits and of 32, from the kernel's headers. The two headers
define the same macros, so their values are taken here."""
import re
import subprocess
import sys


def names(compiler, header):
	"""{name: number}; empty: this machine has no such header."""
	source = "#if __has_include(<%s>)\n#include <%s>\n#endif\n" % (header, header)
	run = [*compiler, "-E", "-x", "c", "-"]
	macros = subprocess.run([*run, "-dM"], input=source, stdout=subprocess.PIPE, check=True, text=True).stdout
	found = sorted(set(re.findall(r"^#define __NR_([a-z]\w*) ", macros, re.MULTILINE)) - {"syscalls", "arch_specific_syscall"})
	values = subprocess.run([*run, "-P"], input=source + "".join("\n@%s __NR_%s" % (name, name) for name in found), stdout=subprocess.PIPE, check=True, text=True).stdout
	return {name: int(number) for name, number in re.findall(r"@\s*(\w+)\s+(\d+)", values)}


def table(name, calls):
	rows = "".join('\t{ "%s", %d },\n' % call for call in sorted(calls.items(), key=lambda call: call[1]))
	return "const struct call_number %s[] = {\n%s\t{ 0 },\n};\n" % (name, rows)


def main():
	path, *compiler = sys.argv[1:]
	with open(path, "w", encoding="ascii") as file:
		file.write('#include "programs/call_numbers.h"\n\n' + table("call_numbers_64", names(compiler, "asm/unistd.h")) + "\n" +
			table("call_numbers_32", names(compiler, "asm/unistd_32.h")))


main()
