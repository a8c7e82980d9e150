#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts the viewer's files into its page and the page into a C file.

Usage: embed.py PAGE.html OUTPUT.c DEPENDENCIES.d

In the page, a line `@style NAME@` or `@script NAME@` is replaced by that file as an inline element, and @hashes style@ and @hashes script@ by their hashes for
the content security policy. The files of all lines `@packed NAME@` become one script, gzipped, which loader.js inserts; its hash is among those of scripts. `@data@` marks the place of the profile: the page is split in two there. In a script, `@runtimes@` is replaced by the part of SONDE_RUNTIME_LIST that the page shows.
"""
import base64
import gzip
import hashlib
import json
import pathlib
import re
import sys

import runtimes_list


HEADER = pathlib.Path(__file__).resolve().parent.parent / runtimes_list.LIST


def without_comments(text):
    """The page is part of every report: lines of comments and indentation stay in the sources."""
    text = re.sub(r"^[ \t]*(//.*|/\*[^\n]*\*/)\n", "", text, flags=re.M)
    return re.sub(r"^[ \t]+", "", text, flags=re.M)


def read(path, used, kinds):
    used.append(path)
    return without_comments(path.read_text(encoding="utf-8")).replace("@runtimes@", kinds)


def hash_of(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def inline(page, folder, tag, hashes, used, kinds):
    def element(match):
        text = read(folder / match.group(1), used, kinds)
        if f"</{tag}" in text.lower() or "<!--" in text:
            sys.exit(f"{match.group(1)} would end its element")
        hashes.append(hash_of(text))
        return f"<{tag}>{text}</{tag}>"

    return re.sub(rf"@{tag} ([a-z_.]+)@", element, page)


def pack(page, folder, hashes, used, kinds):
    text = "".join(read(folder / name, used, kinds) for name in re.findall(r"@packed ([a-z_.]+)@\n", page))
    packed = base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()
    hashes.append(hash_of(text))
    page = re.sub(r"@packed [a-z_.]+@\n", f'<script type="application/gzip" id="packed">{packed}</script>\n', page, count=1)
    return re.sub(r"@packed [a-z_.]+@\n", "", page)


def c_array(name, data):
    lines = [", ".join(str(byte) for byte in data[at:at + 32]) for at in range(0, len(data), 32)]
    body = ",\n\t".join(lines)
    return f"const unsigned char {name}[] = {{\n\t{body}\n}};\nconst size_t {name}_size = sizeof({name});\n"


def main():
    source, output, dependencies = (pathlib.Path(argument) for argument in sys.argv[1:4])
    page, used = source.read_text(encoding="utf-8"), [HEADER]
    kinds = json.dumps(runtimes_list.kinds_for_page(HEADER.read_text(encoding="utf-8")))
    for tag in ("style", "script"):
        hashes = []
        page = inline(page, source.parent, tag, hashes, used, kinds)
        if tag == "script":
            page = pack(page, source.parent, hashes, used, kinds)
        page = page.replace(f"@hashes {tag}@", " ".join(hashes))
    before, after = page.encode().split(b"@data@")
    output.write_text('#include "page/assets/page.h"\n\n' + c_array("page_before_data", before) + c_array("page_after_data", after),
                      encoding="utf-8")
    dependencies.write_text(f"{output}: {' '.join(str(path) for path in used)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
