# SPDX-License-Identifier: Apache-2.0
"""Reads SONDE_RUNTIME_LIST from bpf/abi/runtime_list.h."""
import ast
import re

LIST = "bpf/abi/runtime_list.h"
# All lines have one form: bpf/meson.build reads them too.
LINE = re.compile(r"\t(X|OWNER|LABELS)\((\w+), (\w+)(?:, (.*))?\)(?: \\)?")
COLUMNS = ("shown", "otlp", "files", "firefox", "svg", "page")


def runtimes(text):
    """For each runtime: its macro (X, OWNER or LABELS), id, name, and all columns except for LABELS."""
    listed = []
    lines = text.split("#define SONDE_RUNTIME_LIST(X, OWNER, LABELS) \\\n")[1].split("\n\n")[0]
    for line in re.sub(r" \\\n\t +", " ", lines).splitlines():
        how, identifier, name, rest = LINE.fullmatch(line).groups()
        columns = ast.literal_eval(f"[{rest or ''}]")
        listed.append({"how": how, "id": identifier, "name": name, **dict(zip(COLUMNS, columns, strict=how != "LABELS"))})
    return listed


def kinds_for_page(text):
    """The entries of colours.js, one for each kind of frame."""
    return {runtime["name"]: {"label": runtime["shown"], "light": runtime["page"][:3], "dark": runtime["page"][3:6], "vary": runtime["page"][6:]}
            for runtime in runtimes(text) if runtime["how"] != "LABELS"}
