#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints an object's skeleton, which names it otherwise for the kernel: the kernel's names of .rodata, .data and .bss begin with 8
characters of the object's name, that of .kconfig with 7 (libbpf).
Usage: skeleton.py BPFTOOL OBJECT NAME KERNEL_NAME"""
import re
import subprocess
import sys


def rename(text, name, kernel_name):
	"""Replaces the object's name and that of its sections' maps. The C names keep `name`."""
	text = text.replace('s->name = "%s";' % name, 's->name = "%s";' % kernel_name)
	return re.sub(r'\.name = "(\w+)(\.\w+)";', lambda found: '.name = "%s%s";' % (kernel_name[:15 - max(7, len(found[2]))], found[2]), text)


def main():
	bpftool, path, name, kernel_name = sys.argv[1:]
	text = rename(subprocess.run([bpftool, "gen", "skeleton", path, "name", name], check=True, stdout=subprocess.PIPE, text=True).stdout, name, kernel_name)
	if '"%s"' % kernel_name not in text or '"%s' % name in text:
		sys.exit("%s: this bpftool writes other skeletons than expected" % path)
	sys.stdout.write(text)


if __name__ == "__main__":
	main()
