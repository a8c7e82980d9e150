#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the rows of src/runtime/python/python_tables.c: python_tables.py PREFIX..., each PREFIX with the headers of a CPython of 3.6 to 3.12 (include/python3.N, with internal/).

Compiles a small program against the headers that prints the offsetof and sizeof values we need. `--debug` compiles for a build with Py_DEBUG.
"""
import pathlib
import subprocess
import sys
import tempfile

NONE = "0xffff"

# Field of struct sonde_python -> its C expression, by minor version.
KERNEL = [
    ("tstate_frame", [(6, "offsetof(PyThreadState, frame)"), (11, "offsetof(PyThreadState, cframe)")]),
    ("tstate_thread_id", [(6, "offsetof(PyThreadState, thread_id)")]),
    ("tstate_cframe", [(6, NONE), (10, "offsetof(PyThreadState, cframe)")]),
    ("cframe_frame", [(6, NONE), (11, "offsetof(_PyCFrame, current_frame)")]),
    ("cframe_previous", [(6, NONE), (10, "offsetof(CFrame, previous)"), (11, "offsetof(_PyCFrame, previous)")]),
    ("frame_code", [(6, "offsetof(PyFrameObject, f_code)"), (11, "offsetof(_PyInterpreterFrame, f_code)")]),
    ("frame_back", [(6, "offsetof(PyFrameObject, f_back)"), (11, "offsetof(_PyInterpreterFrame, previous)")]),
    ("frame_position", [(6, "offsetof(PyFrameObject, f_lasti)"), (11, "offsetof(_PyInterpreterFrame, prev_instr)")]),
    ("frame_owner", [(6, NONE), (11, "offsetof(_PyInterpreterFrame, is_entry)"), (12, "offsetof(_PyInterpreterFrame, owner)")]),
    ("code_firstlineno", [(6, "offsetof(PyCodeObject, co_firstlineno)")]),
    ("code_flags", [(6, "offsetof(PyCodeObject, co_flags)")]),
    ("code_argcount", [(6, "offsetof(PyCodeObject, co_argcount)")]),
    ("code_kwonlyargcount", [(6, "offsetof(PyCodeObject, co_kwonlyargcount)")]),
    ("code_code", [(6, "offsetof(PyCodeObject, co_code)"), (11, "offsetof(PyCodeObject, co_code_adaptive)")]),
]
# The same for struct python_layout.
NAMES = [
    ("code_type_off", [(6, "offsetof(PyObject, ob_type)")]),
    ("code_filename", [(6, "offsetof(PyCodeObject, co_filename)")]),
    ("code_name", [(6, "offsetof(PyCodeObject, co_name)")]),
    ("code_qualname", [(6, "0"), (11, "offsetof(PyCodeObject, co_qualname)")]),
    ("code_linetable", [(6, "offsetof(PyCodeObject, co_lnotab)"), (10, "offsetof(PyCodeObject, co_linetable)")]),
    ("code_version", [(6, "0"), (12, "offsetof(PyCodeObject, co_version)")]),
    ("unicode_length", [(6, "offsetof(PyASCIIObject, length)")]),
    ("unicode_state", [(6, "offsetof(PyASCIIObject, state)")]),
    ("unicode_ascii_bytes", [(6, "sizeof(PyASCIIObject)")]),
    ("unicode_compact_bytes", [(6, "sizeof(PyCompactUnicodeObject)")]),
    ("bytes_size", [(6, "offsetof(PyVarObject, ob_size)")]),
    ("bytes_data", [(6, "offsetof(PyBytesObject, ob_sval)")]),
]
# To check the interpreter's file, and to find its data.
OTHER = [
    ("type_basicsize", [(6, "offsetof(PyTypeObject, tp_basicsize)")]),
    ("code_basicsize", [(6, "sizeof(PyCodeObject)"), (11, "offsetof(PyCodeObject, co_code_adaptive)")]),
    ("runtime_key", [(6, "0"), (7, "offsetof(_PyRuntimeState, gilstate.autoTSSkey._key)"), (12, "offsetof(_PyRuntimeState, autoTSSkey._key)")]),
]
HEADERS = [(6, ["Python.h", "code.h", "frameobject.h"]), (7, ["Python.h", "code.h", "frameobject.h", "internal/pystate.h"]),
           (8, ["Python.h", "code.h", "frameobject.h", "internal/pycore_pystate.h", "internal/pycore_runtime.h"]),
           (11, ["Python.h", "internal/pycore_frame.h", "internal/pycore_runtime.h"])]


def of_minor(choices, minor):
    return [what for since, what in choices if since <= minor][-1]


def row(prefix, debug):
    include = sorted(pathlib.Path(prefix, "include").glob("python3.*"))[0]
    defines = {}
    for line in (include / "patchlevel.h").read_text().splitlines():
        words = line.split()
        if len(words) > 2 and words[0] == "#define":
            defines[words[1]] = words[2]
    minor = int(defines["PY_MINOR_VERSION"])
    headers = "".join(f"#include <{name}>\n" for name in of_minor(HEADERS, minor) if (include / name).exists())
    fields = [(group, name, of_minor(choices, minor)) for group, part in (("python.", KERNEL), ("layout.", NAMES), ("", OTHER)) for name, choices in part]
    body = "".join(f'\tprintf("{group}{name} %d\\n", (int)({what}));\n' for group, name, what in fields)
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder, "a.c"), pathlib.Path(folder, "a")
        source.write_text(f"#define Py_BUILD_CORE 1\n{'#define Py_DEBUG 1' if debug else ''}\n{headers}#include <stddef.h>\n#include <stdio.h>\n"
                          f"int main(void)\n{{\n{body}\treturn 0;\n}}\n")
        subprocess.run(["cc", "-w", f"-I{include}", f"-I{include}/internal", "-o", program, source], check=True)
        values = dict(line.split() for line in subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines())
    return minor, defines["PY_VERSION"].strip('"'), values


def print_row(minor, version, values):
    def group(prefix):
        return [f".{name[len(prefix):]} = {value if value != '65535' else 'NONE'}" for name, value in values.items()
                if (name.startswith(prefix) if prefix else "." not in name)]

    def lines(items, indent):
        text, line = "", ""
        for item in items:
            if len(line) + len(item) > 120:
                text, line = text + indent + line.rstrip() + "\n", ""
            line += item + ", "
        return text + indent + line.rstrip() + "\n"

    print(f"\t{{ /* the headers of {version} */\n\t\t.minor = {minor},\n{lines(group(''), chr(9) * 2)}\t\t.python = {{\n{lines(group('python.'), chr(9) * 3)}\t\t}},")
    print(f"\t\t.layout = {{\n{lines(group('layout.'), chr(9) * 3)}\t\t}},\n\t}},")


if __name__ == "__main__":
    for directory in [arg for arg in sys.argv[1:] if arg != "--debug"]:
        print_row(*row(directory, "--debug" in sys.argv))
