#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a C file with a number that changes whenever one of the sources changes.

Usage: source_hash.py NAME OUTPUT.c SOURCE...
"""
import hashlib
import pathlib
import sys


def main(name, output, *sources):
    digest = hashlib.sha256()
    for source in sources:
        content = pathlib.Path(source).read_bytes()
        digest.update(b"%d %d\n" % (len(pathlib.Path(source).name), len(content)) + content)
    pathlib.Path(output).write_text("#include <stdint.h>\nconst uint64_t %s = 0x%sULL;\n" % (name, digest.hexdigest()[:16]), encoding="utf-8")


main(*sys.argv[1:])
