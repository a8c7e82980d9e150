# SPDX-License-Identifier: Apache-2.0
"""SONDE_RUNTIME_LIST, as bpf/abi/runtime_list.h has it."""
import ast
import re

LIST = "bpf/abi/runtime_list.h"
# Of one form, as bpf/meson.build reads these lines, too.
LINE = re.compile(r"\t(X|LABELS)\((\w+), (\w+)(?:, (.*))?\)(?: \\)?")
COLUMNS = ("shown", "otlp", "files", "firefox", "svg", "page")


def runtimes(text):
    """Of each: how it is listed (X or LABELS), id, name, and for X all columns."""
    listed = []
    lines = text.split("#define SONDE_RUNTIME_LIST(X, LABELS) \\\n")[1].split("\n\n")[0]
    for line in re.sub(r" \\\n\t +", " ", lines).splitlines():
        how, identifier, name, rest = LINE.fullmatch(line).groups()
        columns = ast.literal_eval(f"[{rest or ''}]")
        listed.append({"how": how, "id": identifier, "name": name, **dict(zip(COLUMNS, columns, strict=how == "X"))})
    return listed


def kinds_for_page(text):
    """What colours.js says of a kind of frame."""
    return {runtime["name"]: {"label": runtime["shown"], "light": runtime["page"][:3], "dark": runtime["page"][3:6], "vary": runtime["page"][6:]}
            for runtime in runtimes(text) if runtime["how"] == "X"}
