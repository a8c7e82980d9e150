#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Merges a BPF program and all of our headers that it includes (each once) into one text, and writes that into a C file.

Usage: amalgamate.py PROGRAM.bpf.c INCLUDE_DIR NAME OUTPUT.c
"""
import pathlib
import re
import sys


def expand(path, root, seen):
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        match = re.fullmatch(r'#include "(.*)"', line)
        if not match:
            if line != "#pragma once":
                lines.append(line)
            continue
        included = next(p for p in (path.parent / match.group(1), root / match.group(1)) if p.is_file()).resolve()
        if included not in seen:
            seen.add(included)
            lines += ["", f"/* {included.relative_to(root)} */"] + expand(included, root, seen)
    return lines


def main():
    program, root, name, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3], sys.argv[4]
    text = "\n".join(expand(program, root, set())) + "\n"
    body = "\n".join('\t"' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"' for line in text.splitlines())
    pathlib.Path(output).write_text(f"extern const char {name}[];\nconst char {name}[] =\n{body};\n", encoding="utf-8")


main()
